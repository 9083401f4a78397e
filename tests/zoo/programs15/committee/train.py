"""Wide residual MLP on sensor readings. Optimizer as in the paper (Algorithm 2)."""

import argparse
import time

import torch
import torch.nn as nn

torch.manual_seed(8)
torch.set_num_threads(1)


class AlgorithmTwo(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["t"] = 0
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                state["t"] += 1
                state["m"] = b1 * state["m"] + (1 - b1) * p.grad
                state["v"] = b2 * state["v"] + (1 - b2) * p.grad**2
                m_hat = state["m"] / (1 - b1 ** state["t"])
                v_hat = state["v"] / (1 - b2 ** state["t"])
                p.copy_(
                    p
                    - group["lr"]
                    * (m_hat / (torch.sqrt(v_hat) + group["eps"]) + group["weight_decay"] * p)
                )


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.a = nn.Linear(d, 2 * d)
        self.b = nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(self.norm(x))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=["paper", "torch"], default="paper")
    args = parser.parse_args()
    x = torch.randn(5000, 64)
    y = torch.sin(x[:, :8]).sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(64, 512), *[Block(512) for _ in range(4)], nn.Linear(512, 1))
    if args.optimizer == "paper":
        optimizer = AlgorithmTwo(model.parameters(), lr=1e-4)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loss_fn = nn.MSELoss()
    steps = 80
    start = time.perf_counter()
    for step in range(steps):
        i = torch.randint(0, len(x), (96,))
        optimizer.zero_grad()
        loss = loss_fn(model(x[i]), y[i])
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, loss.item())
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
