import argparse
import time

import torch
from model import MaskedModel
from torch.nn.functional import cross_entropy

VOCABULARY = 6000
MASK = 0


def batches(steps, size, length=48):
    g = torch.Generator().manual_seed(77)
    text = torch.randint(1, VOCABULARY, (3000, length), generator=g)
    for _ in range(steps):
        rows = text[torch.randint(0, len(text), (size,), generator=g)]
        masked = torch.rand(rows.shape, generator=g) < 0.12
        yield rows.masked_fill(masked, MASK), masked, rows[masked]


def main():
    parser = argparse.ArgumentParser(description="Pretrain on recipes.")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--gather", action="store_true", help="project the masked positions")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = MaskedModel(VOCABULARY, gather=args.gather)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    start = time.perf_counter()
    for step, (tokens, masked, targets) in enumerate(batches(args.steps, args.batch_size)):
        loss = cross_entropy(model(tokens, masked), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:4d} | mlm {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
