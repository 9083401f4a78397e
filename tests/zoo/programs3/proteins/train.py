import argparse
import time

import torch
from store import WIDTH, OneFileEach, Packed, prepare
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Proteins(Dataset):
    def __init__(self, store, family):
        self.store = store
        self.family = family

    def __len__(self):
        return len(self.family)

    def __getitem__(self, number):
        return torch.from_numpy(self.store.read(number)), int(self.family[number])


class FamilyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(WIDTH, 128, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(128, 128, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(128, 128, 5, padding=2),
            nn.GELU(),
        )
        self.weigh = nn.Linear(128, 1)
        self.head = nn.Linear(128, 8)

    def forward(self, x):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)
        attention = self.weigh(h).softmax(1)
        return self.head((attention * h).sum(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=["files", "packed"], default="files")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(1)

    family = prepare("embeddings", 1600)
    store = OneFileEach("embeddings") if args.store == "files" else Packed("embeddings")
    loader = DataLoader(
        Proteins(store, family),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    model = FamilyNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))
    criterion = nn.CrossEntropyLoss()

    seen = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            seen += 1
        print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"trained {seen} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
