"""Diffusion model of closed curves, with an average of the weights."""

import argparse
import time

import torch
import torch.nn.functional as F
from diffusion import Denoiser, Schedule
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def make_curves(count, points=64):
    angle = torch.linspace(0, 6.28, points)
    amplitude = torch.randn(count, 2, 4, 1) / torch.arange(1, 5).view(4, 1)
    phase = 6.28 * torch.rand(count, 2, 4, 1)
    waves = amplitude * torch.sin(torch.arange(1, 5).view(4, 1) * angle + phase)
    return waves.sum(2).flatten(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=192)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    curves = make_curves(8000)
    schedule = Schedule()
    model = Denoiser(curves.shape[1])
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.995))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

    begin = time.perf_counter()
    for step in range(args.steps):
        x = curves[torch.randint(len(curves), (args.batch,))]
        t = torch.randint(schedule.steps, (len(x),))
        noise = torch.randn_like(x)
        loss = F.mse_loss(model(schedule.corrupt(x, t, noise), t), noise)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(model)
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")
    took = time.perf_counter() - begin
    torch.save(average.module.state_dict(), "average.pt")
    print(f"trained {args.steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
