import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from mail import ByLength, Letters, pad


class Triage(nn.Module):
    def __init__(self, words=3000, width=128):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.encoder = nn.TransformerEncoderLayer(width, 4, 256, batch_first=True, dropout=0.0)
        self.out = nn.Linear(width, 1)

    def forward(self, ids):
        padding = ids == 0
        hidden = self.encoder(self.words(ids), src_key_padding_mask=padding)
        keep = (~padding).unsqueeze(-1)
        return self.out((hidden * keep).sum(1) / keep.sum(1)).squeeze(1)


def get_loader(args):
    letters = Letters(16 * 200)
    if args.group:
        return DataLoader(letters, batch_sampler=ByLength(letters, 16), collate_fn=pad)
    return DataLoader(letters, 16, shuffle=True, collate_fn=pad)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--group", action="store_true", help="batches of similar length")
    parser.add_argument("--lr", type=float, default=5e-4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(6)
    loader = get_loader(args)
    model = Triage()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    n = 0
    start = time.perf_counter()
    for ids, urgent in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids), urgent)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n += 1
        if n % 50 == 0:
            print(f"{n} letters/16: {loss.item():.4f}")
    print(f"trained {n} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
