"""Transcripts of service calls and the desk that each was routed to."""

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

VOCABULARY = 3000
DESKS = 12
PAD = 0


def make_calls(count, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(36, 57, size=count)
    lengths[rng.choice(count, size=count // 240, replace=False)] = rng.integers(
        420, 460, size=count // 240
    )
    calls = []
    for length in lengths:
        desk = int(rng.integers(DESKS))
        words = rng.integers(1, VOCABULARY, size=length)
        words[rng.random(length) < 0.15] = 1 + desk
        calls.append((torch.from_numpy(words), desk))
    return calls


class Calls(Dataset):
    def __init__(self, calls, window=None):
        self.samples = []
        for words, desk in calls:
            pieces = [words] if window is None else words.split(window)
            self.samples.extend((piece, desk) for piece in pieces)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def collate(samples):
    words = pad_sequence([words for words, _ in samples], batch_first=True, padding_value=PAD)
    return words, torch.tensor([desk for _, desk in samples])
