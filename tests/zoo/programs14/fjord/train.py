"""Two-tower recommender: users and items by id, scores by a small network."""

import argparse
import time

import torch
from torch import nn

torch.manual_seed(17)
torch.set_num_threads(1)

parser = argparse.ArgumentParser()
parser.add_argument("--table", choices=["dense", "sparse"], default="dense")
parser.add_argument("--steps", type=int, default=140)
args = parser.parse_args()

USERS, ITEMS, DIM, BATCH = 60_000, 90_000, 32, 256


class TwoTower(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.users = nn.Embedding(USERS, DIM, sparse=sparse)
        self.items = nn.Embedding(ITEMS, DIM, sparse=sparse)
        self.net = nn.Sequential(
            nn.Linear(2 * DIM, 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, 1),
        )

    def forward(self, user, item):
        return self.net(torch.cat([self.users(user), self.items(item)], -1)).squeeze(-1)

    def tables(self):
        return [self.users.weight, self.items.weight]


def interactions(steps):
    gen = torch.Generator().manual_seed(3)
    for _ in range(steps):
        user = torch.randint(USERS, (BATCH,), generator=gen)
        item = torch.randint(ITEMS, (BATCH,), generator=gen)
        clicked = ((user + item) % 3 == 0).float()
        yield user, item, clicked


sparse = args.table == "sparse"
model = TwoTower(sparse)
if sparse:
    optimizers = [
        torch.optim.SparseAdam(model.tables(), lr=1e-3),
        torch.optim.Adam(model.net.parameters(), lr=1e-3),
    ]
else:
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3)]

start = time.perf_counter()
done = 0
for user, item, clicked in interactions(args.steps):
    loss = nn.functional.binary_cross_entropy_with_logits(model(user, item), clicked)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    done += 1
    if done % 50 == 0:
        print(f"{done} loss {loss.item():.4f}")
print(f"trained {done} steps in {time.perf_counter() - start:.3f} s")
