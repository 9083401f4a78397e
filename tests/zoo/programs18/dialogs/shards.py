import torch


def corpus(count, words, seed=0):
    """Dialogs, sorted by length as the export wrote them."""
    g = torch.Generator().manual_seed(seed)
    lengths = (16 + 140 * torch.rand(count, generator=g) ** 2).long().sort().values
    return [torch.randint(1, words, (int(n),), generator=g) for n in lengths]


def block(dialogs, rank, world):
    per_rank = len(dialogs) // world
    return dialogs[rank * per_rank : (rank + 1) * per_rank]


def stripe(dialogs, rank, world):
    per_rank = len(dialogs) // world
    return dialogs[rank::world][:per_rank]


def batches(dialogs, size, epochs):
    padded = []
    for at in range(0, len(dialogs) - size + 1, size):
        part = dialogs[at : at + size]
        padded.append(torch.nn.utils.rnn.pad_sequence(part, batch_first=True))
    for epoch in range(epochs):
        g = torch.Generator().manual_seed(epoch)
        for k in torch.randperm(len(padded), generator=g).tolist():
            yield padded[k]
