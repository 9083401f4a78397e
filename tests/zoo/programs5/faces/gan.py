import argparse
import time
from pathlib import Path

import torch
from nets import Judge, Painter, portraits
from progress import Gallery
from torch.nn.functional import softplus


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--samples-every", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images = portraits(2000, torch.Generator().manual_seed(0))
    painter, judge = Painter(), Judge()
    paint = torch.optim.Adam(painter.parameters(), 2e-4, (0.5, 0.99))
    decide = torch.optim.Adam(judge.parameters(), 2e-4, (0.5, 0.99))
    gallery = Gallery(Path("samples"))
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        real = images[torch.randint(len(images), (args.batch,))]
        fake = painter(torch.randn(args.batch, 32))
        judge_loss = softplus(-judge(real)).mean() + softplus(judge(fake.detach())).mean()
        decide.zero_grad()
        judge_loss.backward()
        decide.step()
        painter_loss = softplus(-judge(fake)).mean()
        paint.zero_grad()
        painter_loss.backward()
        paint.step()
        if step % 10 == 0:
            gallery.add(judge_loss.item(), painter_loss.item())
        if step % args.samples_every == 0:
            gallery.save(painter, step)
    print(f"judge {judge_loss.item():.3f}, painter {painter_loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
