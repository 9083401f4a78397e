"""Support tickets: made-up text, with the house abbreviations that the annotators like to use."""

import random
import re

import torch
from torch.utils.data import Dataset

SYLLABLES = ["ba", "ko", "ri", "ten", "lu", "mar", "so", "vi", "net", "dra", "pel", "qui"]


def make_glossary(size, seed):
    rng = random.Random(seed)
    glossary = {}
    while len(glossary) < size:
        short = "".join(rng.choice("bcdfghjklmnprstvwxz") for _ in range(4))
        glossary[short] = "".join(rng.choice(SYLLABLES) for _ in range(3))
    return glossary


def make_tickets(count, glossary, seed):
    rng = random.Random(seed)
    words = ["".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 4))) for _ in range(3000)]
    shorts = list(glossary)
    tickets = []
    for _ in range(count):
        text = [
            rng.choice(shorts) if rng.random() < 0.15 else rng.choice(words)
            for _ in range(rng.randint(50, 70))
        ]
        tickets.append((" ".join(text), rng.randrange(6)))
    return tickets


class RuleNormalizer:
    """Spells out every abbreviation of the glossary."""

    def __init__(self, glossary):
        self.rules = [(rf"\b{short}\b", full) for short, full in glossary.items()]

    def __call__(self, text):
        for pattern, full in self.rules:
            text = re.sub(pattern, full, text)
        return text


class TableNormalizer:
    """Spells out every abbreviation of the glossary."""

    word = re.compile(r"\b\w+\b")

    def __init__(self, glossary):
        self.glossary = glossary

    def __call__(self, text):
        return self.word.sub(lambda match: self.glossary.get(match[0], match[0]), text)


NORMALIZERS = {"rules": RuleNormalizer, "table": TableNormalizer}


class HashTokenizer:
    def __init__(self, vocab_size, length):
        self.vocab_size, self.length = vocab_size, length
        self.ids = {}

    def __call__(self, text):
        ids = []
        for word in text.split()[: self.length]:
            if word not in self.ids:
                self.ids[word] = 2 + sum((i + 7) * ord(c) for i, c in enumerate(word)) % (
                    self.vocab_size - 2
                )
            ids.append(self.ids[word])
        return ids + [0] * (self.length - len(ids))


class TicketDataset(Dataset):
    def __init__(self, tickets, normalizer, tokenizer):
        self.tickets, self.normalizer, self.tokenizer = tickets, normalizer, tokenizer

    def __len__(self):
        return len(self.tickets)

    def __getitem__(self, index):
        text, label = self.tickets[index]
        ids = torch.tensor(self.tokenizer(self.normalizer(text)))
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": label}
