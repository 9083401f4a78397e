import argparse
import time

import torch
import torch.nn.functional as F

from models import GCN, normalize_adj

torch.set_num_threads(1)
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=140)
parser.add_argument("--hidden", type=int, default=128)
parser.add_argument("--normalize", choices=["forward", "load"], default="forward")


def load_data(n=700):
    g = torch.Generator().manual_seed(12)
    adj = (torch.rand(n, n, generator=g) < 0.01).float()
    adj = ((adj + adj.T) > 0).float()
    return adj, torch.rand(n, 256, generator=g), torch.randint(0, 7, (n,), generator=g)


def main():
    args = parser.parse_args()
    torch.manual_seed(0)
    adj, features, labels = load_data()
    idx_train = torch.arange(0, 300)
    if args.normalize == "load":
        adj = normalize_adj(adj)
    model = GCN(features.shape[1], args.hidden, 7, normalized_input=args.normalize == "load")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    t_total = time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss = F.cross_entropy(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        if epoch % 20 == 0:
            print(f"Epoch: {epoch:04d} loss_train: {loss.item():.4f}")
    print(f"trained {args.epochs} steps in {time.perf_counter() - t_total:.3f} s")


if __name__ == "__main__":
    main()
