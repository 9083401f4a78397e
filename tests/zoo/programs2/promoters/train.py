import sys
import time

import torch
import torch.nn.functional as F
from genome import PromoterStream
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)

max_steps = 300
stream = PromoterStream(table="--table" in sys.argv)
loader = DataLoader(stream, batch_size=48, num_workers=2)

model = nn.Sequential(
    nn.Conv1d(4, 24, 15, stride=4, padding=7),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(24, 24, 9, padding=4),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(1),
    nn.Flatten(),
    nn.Linear(24, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=40)

batches = iter(loader)
average = None
step = 0
begin = time.perf_counter()
while step < max_steps:
    x, y = next(batches)
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(model(x).squeeze(1), y.float())
    loss.backward()
    optimizer.step()
    scheduler.step()
    average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
    step += 1
    if step % 60 == 0:
        print(f"step {step} loss {average:.4f} lr {scheduler.get_last_lr()[0]:.2e}")
print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")
