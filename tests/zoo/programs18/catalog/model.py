import torch
import torch.nn.functional as F
from torch import nn


class OneHotWords(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = words
        self.project = nn.Linear(words, width, bias=False)

    def forward(self, ids):
        return self.project(F.one_hot(ids, self.words).float())


class Titles(nn.Module):
    """Category of a product from its title."""

    def __init__(self, words, width, categories, lookup):
        super().__init__()
        self.tokens = nn.Embedding(words, width) if lookup else OneHotWords(words, width)
        self.conv = nn.Conv1d(width, 160, 5, padding=2)
        self.mix = nn.Conv1d(160, 160, 5, padding=2)
        self.out = nn.Linear(160, categories)

    def forward(self, ids):
        x = self.tokens(ids).transpose(1, 2)
        x = torch.relu(self.conv(x))
        x = torch.relu(self.mix(x))
        return self.out(x.amax(dim=2))
