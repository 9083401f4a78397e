"""Next-item prediction over browsing sessions of a clothes shop."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from batches import pack_sessions, pad_sessions

ITEMS = 400
GROUPS = 20


class Sessions(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        prices = rng.gamma(2.0, 20.0, ITEMS).astype(np.float32)
        self.rows = []
        for _ in range(count):
            length = int(rng.integers(18, 33))
            start = rng.integers(1, ITEMS)
            walk = (start + np.cumsum(rng.integers(-3, 4, length))) % (ITEMS - 1) + 1
            self.rows.append(
                {
                    "items": walk.astype(np.int64),
                    "dwell": rng.exponential(1.0, length).astype(np.float32),
                    "price": prices[walk] / 40.0,
                    "group": walk % GROUPS,
                }
            )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class NextItem(nn.Module):
    def __init__(self, width=64, layers=1):
        super().__init__()
        self.item = nn.Embedding(ITEMS, width, padding_idx=0)
        self.group = nn.Embedding(GROUPS, width)
        self.extra = nn.Linear(2, width)
        self.place = nn.Parameter(torch.randn(40, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, batch):
        items = batch["items"]
        length = items.shape[1]
        side = torch.stack([batch["dwell"], batch["price"]], -1)
        x = self.item(items) + self.group(batch["group"]) + self.extra(side) + self.place[:length]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.body(x, mask=mask, is_causal=True)
        return self.norm(x) @ self.item.weight.T


@torch.no_grad()
def hit_rate(model, loader):
    model.eval()
    hits = seen = 0
    for batch in loader:
        target = batch["target"]
        top = model(batch).topk(10, -1).indices
        real = target > 0
        hits += ((top == target[..., None]).any(-1) & real).sum().item()
        seen += real.sum().item()
    model.train()
    return hits / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", choices=["padded", "packed"], default="padded")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    collate = pad_sessions if args.batches == "padded" else pack_sessions
    train = DataLoader(
        Sessions(1280, 1),
        args.batch_size,
        shuffle=True,
        collate_fn=collate,
    )
    held_out = [pack_sessions([row for row in Sessions(32, 2)])]
    model = NextItem()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        losses = []
        for batch in train:
            logits = model(batch)
            loss = F.cross_entropy(logits.flatten(0, 1), batch["target"].flatten(), ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            steps += 1
        print(f"{epoch}: loss {np.mean(losses):.3f}, hit@10 {hit_rate(model, held_out):.3f}")
    seconds = time.perf_counter() - start
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
