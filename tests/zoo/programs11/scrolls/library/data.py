import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Scrolls(Dataset):
    """Made-up passages, with the school that each was copied in."""

    def __init__(self, n, vocab, schools, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, schools, (n,), generator=g).tolist()
        self.texts = []
        for i, school in enumerate(self.labels):
            length = int(torch.randint(40, 49, (), generator=g))
            if i % 163 == 81:
                length = 480
            ids = torch.randint(0, vocab // schools, (length,), generator=g)
            self.texts.append(ids * schools + school)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], self.labels[i]


class Pad:
    def __init__(self, limit=None):
        self.limit = limit

    def __call__(self, rows):
        texts = [ids[: self.limit] for ids, _ in rows]
        return pad_sequence(texts, batch_first=True), torch.tensor([y for _, y in rows])


def build_loader(limit, batch_size):
    data = Scrolls(1664, 4000, 8)
    return DataLoader(data, batch_size=batch_size, shuffle=True, collate_fn=Pad(limit))
