# RBF features + MLP for the potential-energy surface
import argparse
import time

import torch
import torch.nn as nn

torch.manual_seed(7)
torch.set_num_threads(1)


class RBF(nn.Module):
    def __init__(self, dim, centers):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(centers, dim))
        self.log_gamma = nn.Parameter(torch.zeros(centers) - 4)

    def forward(self, x):
        d2 = (x.unsqueeze(1) - self.centers.unsqueeze(0)).pow(2).sum(-1)
        return torch.exp(-self.log_gamma.exp() * d2)


class RBFMatmul(RBF):
    def forward(self, x):
        d2 = x.pow(2).sum(-1, keepdim=True) + self.centers.pow(2).sum(-1) - 2 * x @ self.centers.t()
        return torch.exp(-self.log_gamma.exp() * d2)


class Surface(nn.Module):
    def __init__(self, rbf):
        super().__init__()
        self.rbf = rbf(48, 320)
        self.mlp = nn.Sequential(
            nn.Linear(320, 800), nn.SiLU(), nn.Linear(800, 800), nn.SiLU(), nn.Linear(800, 1)
        )

    def forward(self, x):
        return self.mlp(self.rbf(x)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--distance", choices=["diff", "matmul"], default="diff")
    args = parser.parse_args()
    x = torch.randn(4096, 48)
    y = x.pow(2).sum(-1).sqrt() + 0.1 * torch.randn(4096)
    model = Surface(RBF if args.distance == "diff" else RBFMatmul)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    start = time.perf_counter()
    for epoch in range(10):
        perm = torch.randperm(len(x))
        for i in range(0, len(x), 256):
            b = perm[i : i + 256]
            loss = (model(x[b]) - y[b]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
        print(epoch, loss.item())
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
