import argparse
import time

import torch
import torch.nn.functional as F

from gcn import GCN


def load_graph(nodes=1400, features=128, classes=7):
    torch.manual_seed(15)
    links = (torch.rand(nodes, nodes) < 0.06).float()
    links = torch.maximum(links, links.t()).fill_diagonal_(0)
    return torch.randn(nodes, features), links, torch.randint(classes, (nodes,))


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--cached", action="store_true")
args = parser.parse_args()

torch.set_num_threads(1)
x, adjacency, y = load_graph()
known = torch.arange(len(y)) < 600
model = GCN(x.shape[1], args.hidden, 7, adjacency, cached=args.cached)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

start = time.perf_counter()
for epoch in range(args.epochs):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x)[known], y[known])
    loss.backward()
    optimizer.step()
    if epoch % 50 == 0:
        print(f"Epoch: {epoch:03d}, Loss: {loss.item():.4f}")
print(f"trained {args.epochs} steps in {time.perf_counter() - start:.3f} s")
