# next-basket recommendation
import argparse
import gc
import random
import time

import torch
import torch.nn as nn

torch.manual_seed(14)
random.seed(14)
torch.set_num_threads(1)

parser = argparse.ArgumentParser()
parser.add_argument("--tidy-every", type=int, default=4)
parser.add_argument("--steps", type=int, default=85)
args = parser.parse_args()

ITEMS = 3000
customers = [
    {
        "id": c,
        "baskets": [[random.randrange(ITEMS) for _ in range(6)] for _ in range(12)],
        "age": random.random(),
    }
    for c in range(3000)
]


def make_batch(size):
    chosen = random.sample(customers, size)
    history = torch.tensor([sum(c["baskets"][:8], []) for c in chosen])
    target = torch.tensor([c["baskets"][8][0] for c in chosen])
    return history, target


class NextBasket(nn.Module):
    def __init__(self, d=128):
        super().__init__()
        self.items = nn.Embedding(ITEMS, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, ITEMS)

    def forward(self, history):
        h, _ = self.rnn(self.items(history))
        return self.out(h[:, -1])


model = NextBasket()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
start = time.perf_counter()
for step in range(1, args.steps + 1):
    history, target = make_batch(64)
    loss = nn.functional.cross_entropy(model(history), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % args.tidy_every == 0:
        gc.collect()
    if step % 20 == 0:
        print(step, loss.item())
print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")
