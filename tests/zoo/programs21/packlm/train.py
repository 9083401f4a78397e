"""A tiny language model of tales."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from corpus import Packed, make_tales, pack
from model import TaleModel
from tokenizer import BPE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--context", type=int, default=160)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--max-steps", type=int, default=80)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    tales = make_tales(4800, seed=9)
    tokenizer = BPE().fit(tales, n_merges=120)
    data = Packed(tales, tokenizer, args.context)
    loader = DataLoader(
        data, args.batch_size, shuffle=True, drop_last=True, num_workers=2, collate_fn=pack
    )
    model = TaleModel(len(tokenizer.vocab), args.context, args.dim, 4, args.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    print(f"{len(data)} rows, {len(tokenizer.vocab)} tokens")

    start = time.perf_counter()
    for step, (ids, targets, mask) in enumerate(loader, 1):
        logits = model(ids, mask)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: perplexity {loss.exp().item():.2f}")
        if step == args.max_steps:
            break
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
