import argparse
import time

import torch

from model import GPT, BatchedAttention, MultiHeadAttention, block_size

torch.set_num_threads(1)
parser = argparse.ArgumentParser()
parser.add_argument("--max-iters", type=int, default=70)
parser.add_argument("--attention", default="heads", choices=["heads", "batched"])
args = parser.parse_args()

torch.manual_seed(1337)
batch_size = 16
data = torch.randint(0, 65, (100_000,))


def get_batch():
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    at = ix[:, None] + torch.arange(block_size)
    return data[at], data[at + 1]


model = GPT(65, MultiHeadAttention if args.attention == "heads" else BatchedAttention)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
t0 = time.perf_counter()
for it in range(args.max_iters):
    xb, yb = get_batch()
    loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 50 == 0:
        print(f"iter {it}: loss {loss.item():.4f}")
print(f"trained {args.max_iters} steps in {time.perf_counter() - t0:.3f} s")
