import random

import torch
from torch.utils.data import Dataset

SYLLABLES = [
    "ba",
    "do",
    "fi",
    "gu",
    "ke",
    "lo",
    "mi",
    "nu",
    "pa",
    "re",
    "si",
    "to",
    "vu",
    "wa",
    "ye",
    "zo",
]


def make_words(count):
    return [
        SYLLABLES[i % 16]
        + SYLLABLES[i // 16 % 16]
        + SYLLABLES[i // 256 % 16]
        + SYLLABLES[i * 7 % 16]
        for i in range(count)
    ]


def make_verses(words, count, length, seed):
    rng = random.Random(seed)
    half = len(words) // 2
    verses = []
    for _ in range(count):
        label = rng.randrange(2)
        own = words[label * half : (label + 1) * half]
        picked = [
            rng.choice(own) if rng.random() < 0.3 else rng.choice(words) for _ in range(length)
        ]
        verses.append((" ".join(picked), label))
    return verses


class Vocabulary:
    def __init__(self, words):
        self.words = list(words)

    def encode(self, text):
        return [self.words.index(word) for word in text.split()]


class MappedVocabulary(Vocabulary):
    def __init__(self, words):
        super().__init__(words)
        self.position = {word: i for i, word in enumerate(self.words)}

    def encode(self, text):
        return [self.position[word] for word in text.split()]


class Verses(Dataset):
    def __init__(self, verses, vocabulary):
        self.verses = verses
        self.vocabulary = vocabulary

    def __len__(self):
        return len(self.verses)

    def __getitem__(self, index):
        text, label = self.verses[index]
        return torch.tensor(self.vocabulary.encode(text)), label
