"""Sort short sequences; every epoch draws from harder ones."""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler, Subset


class Sequences(Dataset):
    def __init__(self, count=6000, length=24):
        rng = np.random.default_rng(2)
        self.values = rng.integers(0, 64, (count, length))
        self.difficulty = np.linspace(0, 1, count)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        values = self.values[index]
        return torch.from_numpy(values), torch.from_numpy(np.argsort(values, kind="stable"))


class CurriculumSampler(Sampler):
    def __init__(self, dataset, size):
        self.dataset, self.size, self.level = dataset, size, 0.2

    def __len__(self):
        return self.size

    def __iter__(self):
        allowed = np.flatnonzero(self.dataset.difficulty <= self.level)
        return iter(np.random.choice(allowed, self.size, replace=False).tolist())


class Sorter(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(64, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 24)

    def forward(self, values):
        return self.out(self.encoder(self.embed(values)))


class Trainer:
    def __init__(self, one_loader, epochs=60, steps_per_epoch=4, batch=24):
        self.dataset = Sequences()
        self.epochs, self.steps_per_epoch, self.batch = epochs, steps_per_epoch, batch
        self.model = Sorter()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.steps = 0
        self.sampler = None
        if one_loader:
            self.sampler = CurriculumSampler(self.dataset, steps_per_epoch * batch)
            self.loader = DataLoader(
                self.dataset, batch, sampler=self.sampler, num_workers=2, persistent_workers=True
            )

    def loader_for(self, epoch):
        level = 0.2 + 0.8 * epoch / self.epochs
        if self.sampler is not None:
            self.sampler.level = level
            return self.loader
        allowed = np.flatnonzero(self.dataset.difficulty <= level)
        chosen = np.random.choice(allowed, self.steps_per_epoch * self.batch, replace=False)
        return DataLoader(Subset(self.dataset, chosen.tolist()), self.batch, num_workers=2)

    def run_epoch(self, epoch):
        for values, order in self.loader_for(epoch):
            scores = self.model(values)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), order.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.steps += 1
        return loss.item()

    def fit(self):
        for epoch in range(self.epochs):
            loss = self.run_epoch(epoch)
            if epoch % 10 == 9:
                print(f"epoch {epoch + 1} loss {loss:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(1)
    trainer = Trainer(one_loader="--one-loader" in sys.argv[1:])
    start = time.perf_counter()
    trainer.fit()
    print(f"trained {trainer.steps} steps in {time.perf_counter() - start:.3f} s")
