import time

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from .ema import Ema
from .model import Denoiser
from .schedule import Schedule


def make_images(n, side):
    coarse = torch.rand(n, 3, 4, 4) * 2 - 1
    return F.interpolate(coarse, size=side, mode="bilinear")


def loss_fn(model, schedule, x):
    t = torch.randint(0, schedule.steps, (len(x),))
    noise = torch.randn_like(x)
    return F.mse_loss(model(schedule.corrupt(x, noise, t), t / schedule.steps), noise)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(22)
    data = TensorDataset(make_images(640, 32))
    loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
    model, schedule = Denoiser(), Schedule(1000)
    ema = Ema(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    steps = 0
    start = time.perf_counter()
    for epoch in range(2):
        for (x,) in loader:
            loss = loss_fn(model, schedule, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
