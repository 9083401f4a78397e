import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from corpus import Proverbs, write_corpus


class NextWord(nn.Module):
    def __init__(self, vocabulary=800, width=96):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, ids):
        states, _ = self.gru(self.embedding(ids))
        return self.output(states)


class Trainer:
    def __init__(self, model, loader, lr):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.steps = 0

    def step(self, ids):
        logits = self.model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss

    def fit(self, epochs):
        for epoch in range(epochs):
            for ids in self.loader:
                loss = self.step(ids)
            if epoch % 5 == 4:
                print(f"after {epoch + 1} epochs: {loss.item():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--persistent", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(9)
    torch.set_num_threads(1)
    loader = DataLoader(
        Proverbs(write_corpus("corpus")),
        batch_size=32,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.persistent,
    )
    trainer = Trainer(NextWord(), loader, lr=2e-3)
    start = time.perf_counter()
    trainer.fit(args.epochs)
    print(f"trained {trainer.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
