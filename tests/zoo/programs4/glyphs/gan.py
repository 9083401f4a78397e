import argparse
import os
import time

import torch
import torch.nn.functional as F
from nets import Discriminator, Generator, real_glyphs
from samples import SampleWriter
from tqdm import trange


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iterations", type=int, default=120)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--sample-every", type=int, default=1)
    p.add_argument("--out", default="samples")
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    os.makedirs(args.out, exist_ok=True)

    source = torch.Generator().manual_seed(4)
    g, d = Generator(), Discriminator()
    opt_g = torch.optim.Adam(g.parameters(), 2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), 2e-4, betas=(0.5, 0.999))
    writer = SampleWriter(g, args.out)
    start = time.perf_counter()
    for it in (bar := trange(args.iterations, mininterval=2)):
        real = real_glyphs(args.batch, source)
        fake = g(torch.randn(args.batch, g.z))

        d_loss = F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        g_loss = F.softplus(-d(fake)).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()

        if it % args.sample_every == 0:
            writer.write(it)
        if it % 20 == 0:
            bar.set_postfix(d=f"{d_loss.item():.3f}", g=f"{g_loss.item():.3f}")
    print(f"losses {d_loss.item():.5f} {g_loss.item():.5f}")
    print(f"trained {args.iterations} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
