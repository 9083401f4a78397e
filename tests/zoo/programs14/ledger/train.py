"""Sort invoices and contracts by their text."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Invoices(Dataset):
    def __init__(self, count, max_tokens):
        rng = np.random.default_rng(31)
        lengths = rng.integers(40, 65, count)
        lengths[rng.choice(count, count // 240, replace=False)] = 520
        if max_tokens:
            lengths = np.minimum(lengths, max_tokens)
        self.texts = [torch.from_numpy(rng.integers(1, 3000, n)) for n in lengths]
        self.labels = torch.from_numpy(rng.integers(0, 5, count))

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], self.labels[index]


def collate(items):
    texts, labels = zip(*items)
    return pad_sequence(texts, batch_first=True), torch.stack(labels)


class Reader(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.embed = nn.Embedding(3000, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, dim, 5, padding=2)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 5)

    def forward(self, ids):
        h = self.embed(ids)
        h = h + torch.relu(self.conv(h.transpose(1, 2))).transpose(1, 2)
        return self.head(self.encoder(h).amax(1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-tokens", type=int, default=0)
    parser.add_argument("--count", type=int, default=2240)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(31)
    loader = DataLoader(Invoices(args.count, args.max_tokens), 16, shuffle=True, collate_fn=collate)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    start = time.perf_counter()
    running = 0.0
    for step, (ids, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), labels)
        loss.backward()
        optimizer.step()
        running = 0.95 * running + 0.05 * loss.item()
        if step % 70 == 0:
            print(step, round(running, 4))
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")
