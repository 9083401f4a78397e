import argparse
import time

import torch
import torch.nn.functional as F

from .layers import normalize
from .model import GCN


def load_graph(nodes, features, classes):
    g = torch.Generator().manual_seed(42)
    labels = torch.randint(0, classes, (nodes,), generator=g)
    same = labels[:, None] == labels[None, :]
    chance = torch.where(same, 0.01, 0.001)
    upper = torch.triu((torch.rand(nodes, nodes, generator=g) < chance).float(), 1)
    x = (torch.rand(nodes, features, generator=g) < 0.05).float()
    return x, upper + upper.T, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=700)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--prepare", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, adjacency, labels = load_graph(args.nodes, 400, 7)
    train = torch.arange(0, args.nodes, 2)
    if args.prepare:
        adjacency = normalize(adjacency)
    model = GCN(x.shape[1], 256, 7, prepared=args.prepare)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    t = time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        out = model(x, adjacency)
        loss = F.cross_entropy(out[train], labels[train])
        loss.backward()
        optimizer.step()
        if epoch % 30 == 0:
            print(f"epoch {epoch:4d} loss {loss.item():.4f}")
    print(f"trained {args.epochs} steps in {time.perf_counter() - t:.3f} s")


if __name__ == "__main__":
    main()
