import argparse
import time

import torch
from mining import hardest_triplets, hardest_triplets_fast
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Learn an embedding with hard triplets.")
parser.add_argument("--fast-mining", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
labels = torch.randint(0, 16, (51200,))
points = torch.randn(16, 64)[labels] + 0.8 * torch.randn(51200, 64)
loader = DataLoader(TensorDataset(points, labels), batch_size=256, shuffle=True)

model = nn.Sequential(
    nn.Linear(64, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 32)
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
criterion = nn.TripletMarginLoss(margin=0.5)

steps = 0
start = time.perf_counter()
for x, y in loader:
    embedded = nn.functional.normalize(model(x), dim=1)
    with torch.no_grad():
        distances = torch.cdist(embedded, embedded)
    if args.fast_mining:
        a, p, n = hardest_triplets_fast(distances, y)
    else:
        a, p, n = hardest_triplets(distances.tolist(), y.tolist())
    loss = criterion(embedded[a], embedded[p], embedded[n])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
print(f"loss {loss.item():.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
