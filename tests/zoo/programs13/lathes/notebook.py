# %% [markdown]
# Vibration of lathes: an autoencoder that should fail on worn bearings.

# %%
import copy
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

torch.set_num_threads(1)
SEED = 23
np.random.seed(SEED)
torch.manual_seed(SEED)

# %% data: three channels, 256 samples
t = np.arange(256) / 256


def vibration(n, worn=False):
    speed = np.random.uniform(8, 14, (n, 1, 1))
    phase = np.random.uniform(0, 2 * np.pi, (n, 3, 1))
    x = np.sin(2 * np.pi * speed * t + phase) + 0.3 * np.sin(4 * np.pi * speed * t + phase)
    if worn:
        x += 0.5 * np.sin(2 * np.pi * 3.7 * speed * t)
    return torch.tensor(x + 0.1 * np.random.randn(n, 3, 256), dtype=torch.float32)


good = vibration(1280)
good_test, worn_test = vibration(64), vibration(64, worn=True)
loader = DataLoader(TensorDataset(good), batch_size=32, shuffle=True, drop_last=True)


# %% model
def down(i, o):
    return nn.Sequential(nn.Conv1d(i, o, 9, stride=2, padding=4), nn.BatchNorm1d(o), nn.GELU())


def up(i, o):
    return nn.Sequential(
        nn.ConvTranspose1d(i, o, 8, stride=2, padding=3), nn.BatchNorm1d(o), nn.GELU()
    )


model = nn.Sequential(
    down(3, 32),
    down(32, 48),
    down(48, 64),
    nn.Conv1d(64, 8, 1),
    nn.Conv1d(8, 64, 1),
    up(64, 48),
    up(48, 32),
    nn.ConvTranspose1d(32, 3, 8, stride=2, padding=3),
)
average = copy.deepcopy(model).requires_grad_(False)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5 * len(loader))

# %% train
history = {"loss": [], "good": [], "worn": []}
steps = 0
begin = time.time()
for epoch in range(5):
    model.train()
    bar = tqdm(loader, desc=f"epoch {epoch}", mininterval=0.5)
    for (x,) in bar:
        noisy = x + 0.05 * torch.randn_like(x)
        loss = F.mse_loss(model(noisy), x)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.02)
        history["loss"].append(loss.item())
        steps += 1
    bar.close()
    model.eval()
    with torch.no_grad():
        history["good"].append(F.mse_loss(model(good_test), good_test).item())
        history["worn"].append(F.mse_loss(model(worn_test), worn_test).item())
    print({k: round(float(np.mean(v[-len(loader) :])), 4) for k, v in history.items()})
seconds = time.time() - begin

# %%
torch.save({"model": model.state_dict(), "average": average.state_dict()}, "lathe.pt")
print(f"trained {steps} steps in {seconds:.3f} s")
