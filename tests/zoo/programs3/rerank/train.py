"""Order the answers to a query: listwise softmax over hand-made features."""

import sys
import time

import torch
from metrics import RunningNdcg, TensorNdcg
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
torch.set_num_threads(1)

QUERIES, ANSWERS, FEATURES = 2400, 64, 46
features = torch.randn(QUERIES, ANSWERS, FEATURES)
gains = (features[..., :5].sum(-1) + torch.randn(QUERIES, ANSWERS)).clamp(0, 4).round()
loader = DataLoader(TensorDataset(features, gains), batch_size=40, shuffle=True)

model = nn.Sequential(
    nn.Linear(FEATURES, 128),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Linear(128, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

steps = 0
tic = time.perf_counter()
for epoch in range(6):
    ndcg = TensorNdcg() if "--tensors" in sys.argv[1:] else RunningNdcg()
    for x, y in loader:
        scores = model(x).squeeze(-1)
        loss = -(y.softmax(1) * scores.log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ndcg.update(scores.detach(), y)
        steps += 1
    print(f"epoch {epoch}: loss {loss.item():.4f}, ndcg {float(ndcg.value()):.4f}")
print(f"trained {steps} steps in {time.perf_counter() - tic:.3f} s")
