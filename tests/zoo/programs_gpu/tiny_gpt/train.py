"""Train a small language model on made-up text."""

from __future__ import annotations

import argparse
import contextlib
import time

import torch
from model import GPT, Config


def batches(config: Config, count: int, size: int, device: torch.device):
    text = torch.randint(0, config.vocabulary, (400_000,), device=device)
    for _ in range(count):
        start = torch.randint(0, len(text) - config.length - 1, (size, 1), device=device)
        index = start + torch.arange(config.length + 1, device=device)
        chunk = text[index]
        yield chunk[:, :-1], chunk[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", choices=["32", "bf16"], default="32")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    config = Config()
    model = GPT(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    begin = time.perf_counter()
    for step, (tokens, target) in enumerate(batches(config, args.steps, args.batch, device)):
        context = (
            torch.autocast("cuda", dtype=torch.bfloat16)
            if args.precision == "bf16"
            else contextlib.nullcontext()
        )
        with context:
            loss = model(tokens, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
