"""Tide gauge forecasting with an LSTM."""

import time

import torch
import torch.nn as nn

torch.manual_seed(20)
torch.set_num_threads(1)


class Tide(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 128, batch_first=True)
        self.out = nn.Linear(128, 12)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.out(h[:, -1])


t = torch.arange(20000) / 12
level = torch.sin(t) + 0.4 * torch.sin(1.93 * t) + 0.05 * torch.randn(20000)
series = torch.stack([level, torch.sin(t / 24), torch.cos(t / 24)], -1)
windows = series.unfold(0, 96, 1).transpose(1, 2)
model = Tide()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
steps = 110
start = time.perf_counter()
for step in range(steps):
    i = torch.randint(0, len(windows) - 12, (64,))
    y = torch.stack([level[k + 96 : k + 108] for k in i.tolist()])
    loss = nn.functional.mse_loss(model(windows[i]), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(step, loss.item())
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
