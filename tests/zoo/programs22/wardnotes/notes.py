import torch
from torch.utils.data import Dataset

WORDS = 2000
LENGTH = 64
WARDS = 5


class Notes(Dataset):
    """Tokenised notes and the ward that each was written in."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.wards = torch.randint(WARDS, (count,), generator=generator)
        common = torch.randint(WORDS, (count, LENGTH), generator=generator)
        typical = torch.randint(60, (count, LENGTH), generator=generator)
        typical = typical + 100 * self.wards[:, None]
        chosen = torch.rand(count, LENGTH, generator=generator) < 0.2
        self.words = torch.where(chosen, typical, common)

    def __len__(self):
        return len(self.wards)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.wards[index]}
