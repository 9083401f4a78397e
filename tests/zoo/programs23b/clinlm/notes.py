"""Made-up clinical notes, already split into word pieces; [SEP] ends each section."""

import numpy as np
from torch.utils.data import Dataset

PAD, CLS, SEP, MASK = 0, 1, 2, 3
FIRST_WORD = 10
VOCABULARY = 640
# Pieces from here on continue the word before them.
FIRST_CONTINUATION = 520


class Notes(Dataset):
    def __init__(self, count, length, seed):
        rng = np.random.default_rng(seed)
        self.notes = []
        for size in rng.integers(length // 2, length - 1, size=count):
            start = int(rng.integers(FIRST_WORD, FIRST_CONTINUATION))
            # Neighbouring words are about the same thing, so that there is something to learn.
            pieces = start + rng.integers(-40, 40, size=size)
            pieces = np.clip(pieces, FIRST_WORD, FIRST_CONTINUATION - 1)
            continued = rng.random(size) < 0.25
            continued[0] = False
            pieces[continued] = rng.integers(FIRST_CONTINUATION, VOCABULARY, continued.sum())
            pieces[rng.choice(np.arange(5, size), size=3, replace=False)] = SEP
            self.notes.append([CLS, *pieces.tolist(), SEP])

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, position):
        return {"input_ids": self.notes[position]}
