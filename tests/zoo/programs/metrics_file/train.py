import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tracker import Tracker


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-every", type=int, default=1)
    parser.add_argument("--log-file", default="metrics.jsonl")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(400 * 64, 100)
    loader = DataLoader(TensorDataset(x, x[:, :1].sin()), batch_size=64)
    layers = []
    for _ in range(6):
        layers += [nn.Linear(layers[-2].out_features if layers else 100, 256), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    tracker = Tracker(args.log_file, args.log_every)
    start = time.perf_counter()
    for step, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tracker.log(step, model, loss=loss.item(), lr=optimizer.param_groups[0]["lr"])
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
