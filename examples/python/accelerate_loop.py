"""A hand-written loop with Accelerate and accumulated gradients.

stepwatch run examples/python/accelerate_loop.py
stepwatch run -- accelerate launch examples/python/accelerate_loop.py
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    data = TensorDataset(torch.randn(800, 32), torch.randint(0, 10, (800,)))
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(
        model, optimizer, DataLoader(data, batch_size=10, shuffle=True)
    )
    for epoch in range(2):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
