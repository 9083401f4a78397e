"""Incoming mail of an insurer: mostly short letters, now and then a long report."""

import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler


class Mail(Dataset):
    def __init__(self, count, vocab_size, classes, seed=14):
        rng = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        self.documents = []
        for _ in range(count):
            length = rng.randint(400, 480) if rng.random() < 0.006 else rng.randint(24, 48)
            ids = torch.randint(1, vocab_size, (length,), generator=generator)
            self.documents.append((ids, rng.randrange(classes)))

    def __len__(self):
        return len(self.documents)

    def __getitem__(self, index):
        return self.documents[index]


def pad_batch(samples):
    ids = pad_sequence([ids for ids, _ in samples], batch_first=True)
    return ids, torch.tensor([label for _, label in samples])


class RandomBatches(Sampler):
    def __init__(self, dataset, batch_size, seed):
        self.dataset, self.batch_size, self.rng = dataset, batch_size, random.Random(seed)

    def __len__(self):
        return len(self.dataset) // self.batch_size

    def order(self):
        indices = list(range(len(self.dataset)))
        self.rng.shuffle(indices)
        return indices

    def __iter__(self):
        indices = self.order()
        batches = [
            indices[i : i + self.batch_size] for i in range(0, len(indices), self.batch_size)
        ]
        self.rng.shuffle(batches)
        yield from batches


class LengthBatches(RandomBatches):
    def order(self):
        return sorted(super().order(), key=lambda i: len(self.dataset.documents[i][0]))


BATCHES = {"random": RandomBatches, "length": LengthBatches}
