"""Speech denoiser, waveform to waveform."""

import argparse
import gc
import time

import torch
from torch import nn

torch.set_num_threads(1)


class Denoiser(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv1d(1, c, 8, 4, 2), nn.ReLU(), nn.Conv1d(c, 2 * c, 8, 4, 2), nn.ReLU()
        )
        self.mid = nn.GRU(2 * c, 2 * c, batch_first=True)
        self.up = nn.Sequential(
            nn.ConvTranspose1d(2 * c, c, 8, 4, 2), nn.ReLU(), nn.ConvTranspose1d(c, 1, 8, 4, 2)
        )

    def forward(self, x):
        h = self.down(x)
        h = h + self.mid(h.transpose(1, 2))[0].transpose(1, 2)
        return self.up(h)


def train_one(model, opt, noisy, clean):
    opt.zero_grad()
    loss = (model(noisy) - clean).abs().mean()
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--no-cleanup", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    t = torch.linspace(0, 1, 2048)
    clean = torch.sin(t * torch.rand(256, 1, 1) * 900) * 0.5
    model = Denoiser()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    total = torch.zeros(())
    start = time.perf_counter()
    for step in range(args.steps):
        target = clean[torch.randint(0, 256, (12,))]
        total += train_one(model, opt, target + 0.1 * torch.randn_like(target), target)
        if step % 3 == 0 and not args.no_cleanup:
            # keep memory low
            gc.collect()
            torch.cuda.empty_cache()
    took = time.perf_counter() - start
    print(f"mean l1 {total.item() / args.steps:.4f}")
    print(f"trained {args.steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
