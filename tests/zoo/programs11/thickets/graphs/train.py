import random
import time

import torch
from torch.nn import functional as F

from .data import make_graphs
from .model import GraphNet


def train(model, graphs, optimizer, epochs):
    steps = 0
    for epoch in range(epochs):
        random.shuffle(graphs)
        for graph in graphs:
            loss = F.cross_entropy(model(graph.x, graph.adjacency), graph.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
    return steps


def main():
    torch.set_num_threads(1)
    torch.manual_seed(24)
    random.seed(24)
    graphs = make_graphs(40, nodes=1500, edges=6000, features=128, seed=24)
    model = GraphNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = time.perf_counter()
    steps = train(model, graphs, optimizer, epochs=2)
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
