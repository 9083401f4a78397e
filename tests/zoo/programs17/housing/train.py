# House prices, deep tabular baseline. Notebook exported with nbconvert.
import argparse
import time

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--cast", choices=["model", "data"], default="model")
args = parser.parse_args()

# In[2]:
rng = np.random.default_rng(2024)
rows = 6000
df = pd.DataFrame({f"f{i}": rng.normal(size=rows) for i in range(60)})
df["price"] = df[["f0", "f1", "f2"]].sum(axis=1) + rng.normal(scale=0.1, size=rows)
df = (df - df.mean()) / df.std()

# In[3]:
X = torch.tensor(df.drop(columns="price").values)
y = torch.tensor(df["price"].values).unsqueeze(1)
if args.cast == "data":
    X, y = X.float(), y.float()


# In[4]:
class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.f(x)


torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(60, 224), Residual(224), Residual(224), Residual(224), nn.Linear(224, 1)
)
if args.cast == "model":
    model = model.double()

# In[5]:
loader = DataLoader(TensorDataset(X, y), batch_size=256, shuffle=True, drop_last=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()
step = 0
tic = time.perf_counter()
while step < args.steps:
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == args.steps:
            break
print("rmse", round(loss.item() ** 0.5, 4))
print(f"trained {step} steps in {time.perf_counter() - tic:.3f} s")
