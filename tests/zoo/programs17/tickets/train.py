"""Route support tickets to a team."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Tickets(Dataset):
    def __init__(self, n, max_length):
        rng = np.random.default_rng(9)
        lengths = rng.integers(28, 48, n)
        pasted = rng.random(n) < 0.006
        lengths[pasted] = rng.integers(350, 450, pasted.sum())
        self.texts = [torch.from_numpy(rng.integers(1, 1500, k)) for k in lengths]
        self.team = rng.integers(0, 9, n)
        self.max_length = max_length

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i][: self.max_length], int(self.team[i])


def collate(batch):
    texts, teams = zip(*batch)
    return pad_sequence(texts, batch_first=True), torch.tensor(teams)


class Router(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.embed = nn.Embedding(1500, d, padding_idx=0)
        layer = nn.TransformerEncoderLayer(d, 4, 192, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, 9)

    def forward(self, ids):
        pad = ids == 0
        h = self.encoder(self.embed(ids), src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1)
        return self.out((h * keep).sum(1) / keep.sum(1))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--max-length", type=int, default=None)
    args = ap.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(
        Tickets(args.steps * 16, args.max_length), batch_size=16, shuffle=True, collate_fn=collate
    )
    model = Router()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for n, (ids, team) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(ids), team)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"trained {n} steps in {time.perf_counter() - start:.3f} s")
