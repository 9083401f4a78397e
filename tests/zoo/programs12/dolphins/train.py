"""Calls of dolphins: a transformer encoder, fed by two workers."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS = 70


class Calls(Dataset):
    def __init__(self, count):
        self.count = count
        self.frames = torch.randn(128, 64, 128)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        frames = self.frames[index % 128]
        return frames / frames.std(), index % 9


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            128, 4, dim_feedforward=512, dropout=0.0, batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(128, 9)

    def forward(self, frames):
        return self.head(self.layers(frames).mean(dim=1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Calls(STEPS * 16), batch_size=16, shuffle=True, num_workers=2)
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    steps = 0
    start = time.perf_counter()
    for frames, labels in loader:
        loss = nn.functional.cross_entropy(model(frames), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 20 == 0:
            print(f"step {steps} loss {loss.item():.3f}")
    seconds = time.perf_counter() - start
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
