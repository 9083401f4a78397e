import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def make_reviews(count, vocabulary=2000, seed=0):
    """Most have some tens of words; now and then someone writes an essay."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(24, 49, count)
    essays = rng.random(count) < 0.004
    lengths[essays] = rng.integers(500, 900, int(essays.sum()))
    reviews = []
    for length in lengths:
        stars = int(rng.integers(0, 2))
        words = rng.integers(0, vocabulary // 2, length) * 2 + (
            rng.random(length) < 0.3 + 0.4 * stars
        )
        reviews.append((torch.from_numpy(words), stars))
    return reviews


class Batcher:
    def __init__(self, limit=None):
        self.limit = limit

    def __call__(self, samples):
        words = pad_sequence([words[: self.limit] for words, _ in samples], batch_first=True)
        return words, torch.tensor([stars for _, stars in samples])


class Classifier(nn.Module):
    def __init__(self, vocabulary=2000, width=64):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, 2)

    def forward(self, words):
        hidden, _ = self.rnn(self.embed(words))
        return self.out(hidden.amax(1))


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def __call__(self, value):
        if value < self.best - 1e-4:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    losses = [criterion(model(words), stars).item() for words, stars in loader]
    model.train()
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-words", type=int, default=None)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    reviews = make_reviews(1800)
    batcher = Batcher(args.max_words)
    train = DataLoader(reviews, args.batch, shuffle=True, collate_fn=batcher)
    held = DataLoader(make_reviews(96, seed=1), 48, collate_fn=Batcher(48))
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    stop = EarlyStopping(patience=5)

    step = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for words, stars in train:
            loss = criterion(model(words), stars)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
        value = validate(model, held, criterion)
        print(f"epoch {epoch}: held-out loss {value:.4f}")
        plateau.step(value)
        if stop(value):
            break
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
