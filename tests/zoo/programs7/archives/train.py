"""Date manuscripts from line images: Accelerate, clipping, a warm-up of the learning rate."""

import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    """Whole batches from memory."""

    def __init__(self, steps, batch):
        g = torch.Generator().manual_seed(100)
        self.images = torch.rand(800, 1, 24, 160, generator=g)
        self.years = self.images[:, 0, :, :40].mean((1, 2)) * 10
        self.steps, self.batch = steps, batch

    def __iter__(self):
        g = torch.Generator().manual_seed(1)
        for _ in range(self.steps):
            rows = torch.randint(0, len(self.images), (self.batch,), generator=g)
            yield self.images[rows], self.years[rows]


class Dater(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.columns = nn.Conv2d(1, width, (24, 8), stride=(1, 4))
        self.rnn = nn.GRU(width, 128, batch_first=True)
        self.year = nn.Linear(128, 1)

    def forward(self, x):
        x = torch.relu(self.columns(x)).squeeze(2).transpose(1, 2)
        return self.year(self.rnn(x)[0].mean(1)).squeeze(1)


def main(steps=160, batch=48):
    torch.set_num_threads(1)
    set_seed(2)
    accelerator = Accelerator(cpu=True)
    model = Dater()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
    loader = DataLoader(Lines(steps, batch), batch_size=None)
    model, optimizer, loader, warmup = accelerator.prepare(model, optimizer, loader, warmup)
    count, start = 0, time.perf_counter()
    for images, years in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.l1_loss(model(images), years)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warmup.step()
            optimizer.zero_grad()
        count += 1
        if count % 40 == 0:
            accelerator.print(f"{count}: off by {loss.item():.3f}")
    accelerator.print(f"trained {count} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
