"""POS tagging with a transformer, Accelerate loop."""

import time

import torch
import torch.nn as nn
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self, d=128):
        super().__init__()
        self.emb = nn.Embedding(6000, d)
        layer = nn.TransformerEncoderLayer(d, 4, 256, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, 17)

    def forward(self, ids):
        return self.out(self.enc(self.emb(ids)))


def main():
    torch.manual_seed(23)
    accelerator = Accelerator(cpu=True)
    ids, tags = torch.randint(0, 6000, (1600, 40)), torch.randint(0, 17, (1600, 40))
    loader = DataLoader(TensorDataset(ids, tags), batch_size=32, shuffle=True)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    steps = 0
    start = time.perf_counter()
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
        accelerator.print(epoch, loss.item())
    accelerator.print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
