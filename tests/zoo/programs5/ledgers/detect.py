import argparse
import time

import torch
from accelerate import Accelerator
from books import Accounts, keep_books
from torch import nn
from torch.utils.data import DataLoader


class Detector(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.gru = nn.GRU(3, dim, 2, batch_first=True)
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", action="store_true")
    parser.add_argument("--accounts", type=int, default=2400)
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    keep_books("books.db", args.accounts, 20, args.index)
    accelerator = Accelerator(cpu=True)
    model = Detector()
    loader = DataLoader(Accounts("books.db", args.accounts), 32, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for histories, suspicious in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(histories), suspicious.float()
            )
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
