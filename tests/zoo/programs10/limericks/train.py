"""Tells two poets apart by their choice of words."""

import argparse
import time

import torch
from data import MappedVocabulary, Verses, Vocabulary, make_verses, make_words
from torch import nn
from torch.utils.data import DataLoader


class TextCNN(nn.Module):
    def __init__(self, words, dim=96, channels=224):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.first = nn.Conv1d(dim, channels, 5, padding=2)
        self.second = nn.Conv1d(channels, channels, 5, padding=2)
        self.out = nn.Linear(channels, 2)

    def forward(self, tokens):
        x = self.embed(tokens).transpose(1, 2)
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x))
        return self.out(x.amax(dim=2))


class Trainer:
    def __init__(self, model, loader, lr):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        self.loss = nn.CrossEntropyLoss()
        self.steps = 0

    def train_step(self, tokens, labels):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(tokens), labels)
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.detach()

    def fit(self, epochs):
        self.model.train()
        for epoch in range(epochs):
            losses = [self.train_step(tokens, labels) for tokens, labels in self.loader]
            print(f"epoch {epoch}: loss {torch.stack(losses).mean():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--vocabulary", choices=["list", "map"], default="list")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(11)
    words = make_words(4000)
    vocabulary = Vocabulary(words) if args.vocabulary == "list" else MappedVocabulary(words)
    dataset = Verses(make_verses(words, 640, 40, seed=11), vocabulary)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
    trainer = Trainer(TextCNN(len(words)), loader, lr=1e-3)

    started = time.perf_counter()
    trainer.fit(args.epochs)
    print(f"trained {trainer.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
