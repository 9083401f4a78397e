import random

from torch.utils.data import Dataset


class Stories(Dataset):
    """Token ids of made-up stories, with the desk each belongs to."""

    def __init__(self, n, vocab, max_len, n_desks, seed=0):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            desk = rng.randrange(n_desks)
            length = rng.randrange(max_len // 2, max_len)
            ids = [
                2 + (rng.randrange(vocab - 2) // 7 * 7 + desk) % (vocab - 2) for _ in range(length)
            ]
            title = rng.randrange(4, 12)
            self.rows.append({"ids": ids, "title": title, "desk": desk})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]
