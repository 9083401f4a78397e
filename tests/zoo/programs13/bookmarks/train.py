# %% Recommending bookmarks: who saves what. Two towers over ids, sampled softmax in the batch.
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SPARSE = "--sparse" in sys.argv
USERS, LINKS, DIM = 30_000, 80_000, 32
BATCH, EPOCHS, PER_EPOCH = 512, 4, 40

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)

# %% the log
popularity = rng.zipf(1.3, 400_000) % LINKS
users = torch.from_numpy(rng.integers(0, USERS, EPOCHS * PER_EPOCH * BATCH))
links = torch.from_numpy(popularity[rng.integers(0, len(popularity), len(users))])
history = torch.from_numpy(rng.integers(0, LINKS, (len(users), 4)))


# %% the model
class Tower(nn.Module):
    def __init__(self, inputs, hidden=384):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, DIM),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(USERS, DIM, sparse=SPARSE)
        self.link = nn.Embedding(LINKS, DIM, sparse=SPARSE)
        self.user_tower = Tower(5 * DIM)
        self.link_tower = Tower(DIM)

    def forward(self, user, link, past):
        u = torch.cat([self.user(user), self.link(past).flatten(1)], 1)
        return self.user_tower(u) @ self.link_tower(self.link(link)).T / 0.1


model = TwoTower()
tables = [model.user.weight, model.link.weight]
dense = [*model.user_tower.parameters(), *model.link_tower.parameters()]
if SPARSE:
    optimizers = [torch.optim.SparseAdam(tables, lr=2e-3), torch.optim.Adam(dense, lr=1e-3)]
else:
    optimizers = [torch.optim.Adam([{"params": tables, "lr": 2e-3}, {"params": dense, "lr": 1e-3}])]

# %% train
target = torch.arange(BATCH)
step = 0
start = time.perf_counter()
for epoch in range(EPOCHS):
    losses, hits = [], []
    for _ in range(PER_EPOCH):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        scores = model(users[rows], links[rows], history[rows])
        loss = F.cross_entropy(scores, target)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
        hits.append((scores.detach().argmax(1) == target).float().mean().item())
        step += 1
    print(f"epoch {epoch}: loss {np.mean(losses):.4f} in-batch accuracy {np.mean(hits):.4f}")
seconds = time.perf_counter() - start

# %% keep
torch.save(model.user_tower.state_dict(), "user_tower.pt")
print(f"trained {step} steps in {seconds:.3f} s")
