"""Grade stone from sensor tables, with Accelerate and gradient accumulation."""

import time
from dataclasses import dataclass

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Options:
    rows: int = 2560
    sensors: int = 40
    dim: int = 64
    depth: int = 2
    batch_size: int = 32
    accumulate: int = 2
    lr: float = 1e-3
    epochs: int = 1


class TableTransformer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(o.sensors, o.dim) * 0.1)
        self.shift = nn.Parameter(torch.randn(o.sensors, o.dim) * 0.1)
        layer = nn.TransformerEncoderLayer(o.dim, 4, 4 * o.dim, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, o.depth)
        self.head = nn.Linear(o.dim, 4)

    def forward(self, table):
        x = table[..., None] * self.scale + self.shift
        return self.head(self.encoder(x).mean(1))


def main(o):
    set_seed(0)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=o.accumulate)
    table = torch.randn(o.rows, o.sensors)
    grade = table[:, :3].sum(1).add(3).clamp(0, 3.9).long() % 4
    loader = DataLoader(TensorDataset(table, grade), o.batch_size, shuffle=True)
    model = TableTransformer(o)
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion = nn.CrossEntropyLoss()
    start, steps = time.perf_counter(), 0
    for epoch in range(o.epochs):
        model.train()
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = criterion(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            steps += 1
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f}")
    accelerator.print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main(Options())
