import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(48, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 512), nn.ReLU()
        )
        self.head = nn.Linear(512, 6)

    def forward(self, x):
        return self.head(self.layers(x))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
    model.train()
    return right / len(loader.dataset)


def make_loader(count, batch, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 48, generator=generator)
    return DataLoader(TensorDataset(x, x[:, :6].argmax(1)), batch_size=batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval-every", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = make_loader(500 * 64, 64, 1)
    val_loader = make_loader(4096, 128, 2)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step, (x, y) in enumerate(train_loader, 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if step % args.eval_every == 0:
            print(f"step {step}: accuracy {evaluate(model, val_loader):.3f}")
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
