"""Delay, power and area of small circuits: one graph network, three heads."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

GATES, KINDS = 40, 9


def make_circuits(count):
    kind = torch.randint(KINDS, (count, GATES))
    wires = (torch.rand(count, GATES, GATES) < 0.08).float().tril(-1)
    adjacency = wires + wires.transpose(1, 2) + torch.eye(GATES)
    adjacency = adjacency / adjacency.sum(2, keepdim=True)
    load = wires.sum(1)
    delay = load.amax(1) + 0.1 * kind.float().mean(1)
    power = (load * (kind + 1)).mean(1)
    area = (kind == 3).float().sum(1) / 4
    return kind, adjacency, torch.stack([delay, power, area], 1)


class GraphLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.others = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, adjacency):
        return x + F.relu(self.own(self.norm(x)) + adjacency @ self.others(x))


class CircuitNet(nn.Module):
    def __init__(self, width=128, depth=3):
        super().__init__()
        self.kind = nn.Embedding(KINDS, width)
        self.layers = nn.ModuleList(GraphLayer(width) for _ in range(depth))
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
                for name in ("delay", "power", "area")
            }
        )

    def forward(self, kind, adjacency):
        x = self.kind(kind)
        for layer in self.layers:
            x = layer(x, adjacency)
        pooled = x.mean(1)
        return torch.cat([head(pooled) for head in self.heads.values()], 1)


@torch.no_grad()
def evaluate(model, loader):
    errors = torch.zeros(3)
    for kind, adjacency, targets in loader:
        errors += (model(kind, adjacency) - targets).abs().sum(0)
    return errors / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train = DataLoader(TensorDataset(*make_circuits(1920)), batch_size=32, shuffle=True)
    held = DataLoader(TensorDataset(*make_circuits(256)), batch_size=64)
    model = CircuitNet()
    weights = torch.tensor([1.0, 0.5, 0.5])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)

    step = 0
    begin = time.perf_counter()
    for epoch in range(6):
        for kind, adjacency, targets in train:
            losses = F.smooth_l1_loss(model(kind, adjacency), targets, reduction="none").mean(0)
            loss = (weights * losses).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        errors = evaluate(model, held)
        plateau.step(errors.sum())
        print(f"epoch {epoch}: errors {[round(e, 3) for e in errors.tolist()]}")
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")
