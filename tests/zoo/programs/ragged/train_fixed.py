"""Classify sequences of different lengths."""

import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Sequences(Dataset):
    def __init__(self, count, vocabulary=500):
        rng = random.Random(0)
        self.items = []
        for _ in range(count):
            label = rng.randrange(3)
            low, high = label * 100, label * 100 + 300
            tokens = [rng.randrange(low, high) for _ in range(rng.randrange(40, 120))]
            self.items.append((torch.tensor(tokens), label))
        self.vocabulary = vocabulary

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def pad_batch(items):
    rows = [tokens for tokens, _ in items]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    mask = (torch.arange(batch.shape[1])[None] < lengths[:, None]).float()
    return batch, mask, torch.tensor([label for _, label in items])


class Encoder(nn.Module):
    def __init__(self, vocabulary, width=96):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 128, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, batch, mask):
        x = self.layer(self.embedding(batch), src_key_padding_mask=mask == 0)
        return self.head((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


def main():
    torch.manual_seed(0)
    data = Sequences(2000)
    loader = DataLoader(data, batch_size=16, shuffle=True, collate_fn=pad_batch)
    model = Encoder(data.vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps, start = 0, time.perf_counter()
    for batch, mask, labels in loader:
        loss = nn.functional.cross_entropy(model(batch, mask), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        if steps % 30 == 0:
            print(f"step {steps}: loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
