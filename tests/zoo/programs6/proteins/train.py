import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Chains(Dataset):
    def __init__(self, count, length=80, seed=5):
        generator = torch.Generator().manual_seed(seed)
        self.residues = torch.randint(21, (count, length), generator=generator)
        self.structure = torch.randint(8, (count, length), generator=generator)

    def __len__(self):
        return len(self.residues)

    def __getitem__(self, i):
        return self.residues[i], self.structure[i]


class Folder(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embedding = nn.Embedding(21, width)
        layer = nn.TransformerEncoderLayer(width, 4, 384, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 8)

    def forward(self, residues):
        return self.out(self.encoder(self.embedding(residues)))


class Average:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1

    def __str__(self):
        return f"{self.total / max(self.count, 1):.4f}"


class Experiment:
    def __init__(self, args):
        self.accumulate = args.accumulate
        self.loader = DataLoader(Chains(12 * 100), args.batch_size, shuffle=True)
        self.model = Folder()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.average = Average()

    def run(self):
        batches = 0
        for residues, structure in self.loader:
            logits = self.model(residues)
            loss = nn.functional.cross_entropy(logits.transpose(1, 2), structure)
            (loss / self.accumulate).backward()
            batches += 1
            self.average.add(loss.item())
            if batches % self.accumulate == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
            if batches % 25 == 0:
                print(f"{batches} {self.average}")
        return batches


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--accumulate", type=int, default=4)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    experiment = Experiment(parser.parse_args())
    start = time.perf_counter()
    count = experiment.run()
    print(f"trained {count} steps in {time.perf_counter() - start:.3f} s")
