import random

import torch
from torch.utils.data import Dataset

SUBJECTS = "the miller,an old sailor,my sister,the raven,a lonely giant,the tailor".split(",")
VERBS = "carried,forgot,dreamt of,hid,sold,painted,followed,mended".split(",")
OBJECTS = "a silver lantern,the winter road,three apples,his boat,the queen,a song".split(",")
PLACES = "beyond the hills,in the harbour,under the bridge,at midnight,far from home".split(",")


def make_tales(n, seed):
    rng = random.Random(seed)
    tales = []
    for _ in range(n):
        lines = []
        for _ in range(rng.randint(1, 5)):
            parts = [rng.choice(group) for group in (SUBJECTS, VERBS, OBJECTS, PLACES)]
            lines.append(" ".join(parts) + " .")
        tales.append(" ".join(lines))
    return tales


class Packed(Dataset):
    """Several tales in each row, up to the context length; a tale may go on in the next row."""

    def __init__(self, tales, tokenizer, context):
        stream, owners = [], []
        for number, tale in enumerate(tales):
            ids = tokenizer.encode(tale)
            stream += ids
            owners += [number] * len(ids)
        rows = (len(stream) - 1) // context
        self.ids = torch.tensor(stream[: rows * context + 1])
        self.owners = torch.tensor(owners[: rows * context + 1])
        self.context = context

    def __len__(self):
        return (len(self.ids) - 1) // self.context

    def __getitem__(self, i):
        begin, end = i * self.context, (i + 1) * self.context
        return self.ids[begin:end], self.ids[begin + 1 : end + 1], self.owners[begin:end]


def pack(rows):
    """A token sees only what came before it in its own tale."""
    ids, targets, owners = (torch.stack(part) for part in zip(*rows))
    mask = []
    for row in owners.tolist():
        mask.append([[i >= j and a == b for j, b in enumerate(row)] for i, a in enumerate(row)])
    return ids, targets, torch.tensor(mask).unsqueeze(1)
