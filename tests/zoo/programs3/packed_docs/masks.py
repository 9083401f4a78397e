import torch


def document_mask(documents):
    """Who may look at whom: earlier tokens of the same document."""
    batch, length = documents.shape
    allowed = torch.zeros(batch, length, length, dtype=torch.bool)
    for b, row in enumerate(documents.tolist()):
        for i in range(length):
            for j in range(i + 1):
                if row[i] == row[j]:
                    allowed[b, i, j] = True
    return allowed


def document_mask_compared(documents):
    same = documents[:, :, None] == documents[:, None, :]
    return same.tril()
