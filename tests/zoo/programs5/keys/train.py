"""Which key was struck? Sound of keyboards, all in memory, with checkpoints now and then."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    keys = torch.randint(26, (6400,))
    t = torch.arange(512)
    sound = torch.sin(t * (0.05 + 0.01 * keys[:, None])) + torch.randn(6400, 512)
    train = DataLoader(TensorDataset(sound[:5760], keys[:5760]), 64, shuffle=True, num_workers=0)
    valid = DataLoader(TensorDataset(sound[5760:], keys[5760:]), 128)
    net = nn.Sequential(
        nn.Unflatten(1, (1, 512)), nn.Conv1d(1, 48, 16, 4), nn.ReLU(), nn.Conv1d(48, 96, 8, 2),
        nn.ReLU(), nn.Conv1d(96, 96, 4, 2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(),
        nn.Linear(384, 26),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=360)
    steps, start = 0, time.perf_counter()
    for epoch in range(4):
        net.train()
        for x, y in train:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            steps += 1
            if steps % 50 == 0:
                print(f"step {steps}: {loss.item():.4f}", flush=True)
            if steps % 200 == 0:
                torch.save({"net": net.state_dict(), "step": steps}, "latest.pt")
        net.eval()
        with torch.no_grad():
            right = sum((net(x).argmax(1) == y).sum() for x, y in valid)
        print(f"epoch {epoch}: {right.item() / 640:.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
