import argparse
import time

import torch
from records import BUCKETS, NUMERIC, Cards, CardTable, make_cards
from torch import nn
from torch.utils.data import DataLoader


class HistoryNet(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.shop = nn.Embedding(BUCKETS, 16)
        self.place = nn.Embedding(BUCKETS, 16)
        self.encoder = nn.Sequential(
            nn.Linear(32 + NUMERIC, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, tokens, numbers):
        shop, place = self.shop(tokens[..., 0]), self.place(tokens[..., 1])
        x = self.encoder(torch.cat([shop, place, numbers], dim=-1))
        return self.head(x.mean(dim=1)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cards", type=int, default=1536)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--table", action="store_true", help="hold the cards as a table")
    args = parser.parse_args()

    torch.manual_seed(7)
    torch.set_num_threads(1)
    lines, labels = make_cards(args.cards, seed=7)
    dataset = CardTable(lines, labels) if args.table else Cards(lines, labels)
    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
        prefetch_factor=4,
    )
    model = HistoryNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss_fn = nn.BCEWithLogitsLoss()

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for tokens, numbers, target in loader:
            loss = loss_fn(model(tokens, numbers), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
