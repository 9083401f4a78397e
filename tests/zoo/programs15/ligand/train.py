# binding affinity regression, atoms padded to MAX_ATOMS
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(2)
torch.set_num_threads(1)
MAX_ATOMS = 48
FEATS = 96


class Ligands(Dataset):
    def __init__(self, n=960):
        rng = np.random.default_rng(2)
        self.items = []
        for _ in range(n):
            atoms = np.zeros((MAX_ATOMS, FEATS), dtype=np.float32)
            k = rng.integers(20, MAX_ATOMS + 1)
            atoms[:k] = rng.standard_normal((k, FEATS))
            self.items.append((atoms, np.float32(rng.standard_normal())))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def to_batch(samples):
    atoms = torch.tensor([s[0] for s in samples])
    target = torch.tensor([s[1] for s in samples])
    return atoms, target


def to_batch_stacked(samples):
    atoms = torch.from_numpy(np.stack([s[0] for s in samples]))
    target = torch.from_numpy(np.array([s[1] for s in samples]))
    return atoms, target


class SetNet(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.embed = nn.Linear(FEATS, d)
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(d, 1)

    def forward(self, atoms):
        return self.out(self.encoder(self.embed(atoms)).mean(1)).squeeze(-1)


if __name__ == "__main__":
    collate = to_batch_stacked if "--stacked" in sys.argv else to_batch
    loader = DataLoader(Ligands(), batch_size=32, shuffle=True, collate_fn=collate)
    net = SetNet()
    optim = torch.optim.AdamW(net.parameters(), lr=3e-4)
    it = 0
    tic = time.perf_counter()
    for epoch in range(6):
        for atoms, target in loader:
            optim.zero_grad()
            loss = nn.functional.mse_loss(net(atoms), target)
            loss.backward()
            optim.step()
            it += 1
        print(f"[{epoch}] mse {loss.item():.4f}")
    print(f"trained {it} steps in {time.perf_counter() - tic:.3f} s")
