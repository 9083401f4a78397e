import torch
from torch.utils.data import Dataset


class Clauses(Dataset):
    """Clauses of contracts as token ids, to be continued."""

    def __init__(self, count, length, vocab_size, seed=21):
        generator = torch.Generator().manual_seed(seed)
        start = torch.randint(vocab_size, (count, 1), generator=generator)
        stride = torch.randint(1, 7, (count, 1), generator=generator)
        self.ids = (start + stride * torch.arange(length)) % vocab_size

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}
