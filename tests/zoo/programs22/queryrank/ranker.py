import time

import torch
from clicks import FEATURES
from torch import nn
from torch.nn import functional as F


class Ranker(nn.Module):
    """Scores every document of a list in the light of the list's mean."""

    def __init__(self, width=128):
        super().__init__()
        self.document = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU())
        self.score = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, features, mask):
        documents = self.document(features)
        weights = mask.unsqueeze(-1).float()
        context = (documents * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
        scores = self.score(torch.cat([documents, context.expand_as(documents)], dim=-1))
        return scores.squeeze(-1).masked_fill(~mask, -1e4)


def listwise_loss(scores, grades, mask):
    target = F.softmax(grades.masked_fill(~mask, -1e4), dim=1)
    return F.cross_entropy(scores, target)


class Trainer:
    def __init__(self, model, loader, epochs, lr=2e-3):
        self.model = model
        self.loader = loader
        self.epochs = epochs
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
        self.steps = 0

    def train_step(self, batch):
        features, grades, mask = batch
        loss = listwise_loss(self.model(features, mask), grades, mask)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.detach()

    def fit(self):
        start = time.perf_counter()
        for epoch in range(self.epochs):
            total = 0.0
            for batch in self.loader:
                total += self.train_step(batch)
            print(f"epoch {epoch}: loss {float(total) / len(self.loader):.4f}")
        print(f"trained {self.steps} steps in {time.perf_counter() - start:.3f} s")
