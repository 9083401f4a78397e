import json
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


def write_corpus(path, sentences=480, words=40_000, seed=4):
    rng = np.random.default_rng(seed)
    folder = Path(path)
    folder.mkdir(exist_ok=True)
    vocabulary = {f"word{i}": {"id": i, "freq": int(rng.integers(1, 999))} for i in range(words)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    lines = [" ".join(f"word{w}" for w in rng.integers(0, 800, 24)) for _ in range(sentences)]
    (folder / "train.txt").write_text("\n".join(lines))
    return folder


class Proverbs(Dataset):
    """The vocabulary is opened in the process that uses it; it does not travel well."""

    def __init__(self, folder):
        self.folder = folder
        self.lines = (folder / "train.txt").read_text().split("\n")
        self.vocabulary = None

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        if self.vocabulary is None:
            self.vocabulary = json.loads((self.folder / "vocab.json").read_text())
        ids = [self.vocabulary[word]["id"] for word in self.lines[index].split()]
        return torch.tensor(ids)
