import random

import torch
from torch.utils.data import Dataset, get_worker_info

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def load_lexicon(size=80_000):
    """Every worker has its own copy of the lexicon."""
    rng = random.Random(9)
    lexicon = {}
    while len(lexicon) < size:
        word = "".join(rng.choices(LETTERS, k=6))
        lexicon.setdefault(word, len(lexicon))
    return lexicon


def start_worker(worker_id):
    get_worker_info().dataset.lexicon = load_lexicon()


class Sentences(Dataset):
    def __init__(self, count):
        rng = random.Random(1)
        self.sentences = [
            ["".join(rng.choices(LETTERS, k=6)) for _ in range(24)] for _ in range(count)
        ]
        self.lexicon = None

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, index):
        ids = [self.lexicon.get(word, 0) % 5000 for word in self.sentences[index]]
        return torch.tensor(ids), torch.tensor(index % 2)
