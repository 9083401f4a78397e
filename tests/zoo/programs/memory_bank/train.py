import argparse
import time

import torch
from bank import Bank
from torch import nn

parser = argparse.ArgumentParser(description="Contrastive learning with a bank of negatives.")
parser.add_argument("--rebuild-every", type=int, default=20)
parser.add_argument("--refresh", action="store_true", help="only the rows of the batch, each step")
args = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.randn(2048, 64)
model = nn.Sequential(
    nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
bank = Bank(model, data)
bank.rebuild()

start = time.perf_counter()
for step in range(1, 201):
    chosen = torch.randint(0, len(data), (64,))
    anchors = nn.functional.normalize(model(data[chosen]), dim=1)
    views = nn.functional.normalize(model(data[chosen] + 0.1 * torch.randn(64, 64)), dim=1)
    negatives = bank.vectors[bank.neighbours[chosen]]
    positive = (anchors * views).sum(1, keepdim=True)
    negative = torch.einsum("bd,bkd->bk", anchors, negatives)
    logits = torch.cat([positive, negative], dim=1) / 0.1
    loss = nn.functional.cross_entropy(logits, torch.zeros(64, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if args.refresh:
        bank.refresh(chosen, anchors.detach())
    elif step % args.rebuild_every == 0:
        bank.rebuild()
print(f"loss {loss.item():.3f}")
print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")
