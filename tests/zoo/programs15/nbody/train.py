"""Interaction network for small gravitating systems: predict accelerations."""

import argparse
import time

import torch
import torch.nn as nn

torch.manual_seed(5)
torch.set_num_threads(1)
N = 7


class InteractionNet(nn.Module):
    def __init__(self, batched):
        super().__init__()
        self.batched = batched
        self.edge = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.node = nn.Sequential(
            nn.Linear(37, 320), nn.ReLU(), nn.Linear(320, 320), nn.ReLU(), nn.Linear(320, 2)
        )
        pairs = [(i, j) for i in range(N) for j in range(N) if i != j]
        self.register_buffer("dst", torch.tensor([p[0] for p in pairs]))
        self.register_buffer("src", torch.tensor([p[1] for p in pairs]))

    def messages(self, state):
        if self.batched:
            e = self.edge(torch.cat([state[:, self.dst], state[:, self.src]], -1))
            return e.view(len(state), N, N - 1, 32).sum(2)
        out = []
        for i in range(N):
            total = 0
            for j in range(N):
                if i != j:
                    total = total + self.edge(torch.cat([state[:, i], state[:, j]], -1))
            out.append(total)
        return torch.stack(out, 1)

    def forward(self, state):
        return self.node(torch.cat([state, self.messages(state)], -1))


def accelerations(state):
    pos, mass = state[..., :2], state[..., 4:]
    d = pos[:, None] - pos[:, :, None]
    r = d.pow(2).sum(-1, keepdim=True) + 0.1
    return (d / r.pow(1.5) * mass[:, None]).sum(2)


parser = argparse.ArgumentParser()
parser.add_argument("--edges", choices=["each", "all"], default="each")
parser.add_argument("--steps", type=int, default=750)
args = parser.parse_args()

states = torch.randn(4096, N, 5)
states[..., 4].abs_()
targets = accelerations(states)
model = InteractionNet(args.edges == "all")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
start = time.perf_counter()
for step in range(args.steps):
    idx = torch.randint(0, len(states), (48,))
    loss = nn.functional.mse_loss(model(states[idx]), targets[idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")
