"""Recommend films; somebody once ran out of memory here."""

import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def load_catalogue(films):
    rng = random.Random(0)
    return {
        film: {
            "title": f"Film {film}",
            "year": rng.randrange(1950, 2024),
            "genres": [rng.randrange(20) for _ in range(3)],
            "cast": [(rng.randrange(5000), rng.randrange(10)) for _ in range(6)],
        }
        for film in range(films)
    }


class Ratings(Dataset):
    def __init__(self, catalogue, count):
        self.catalogue = catalogue
        generator = torch.Generator().manual_seed(0)
        self.films = torch.randint(0, len(catalogue), (count,), generator=generator).tolist()
        self.stars = torch.rand(count, generator=generator)

    def __len__(self):
        return len(self.films)

    def __getitem__(self, index):
        film = self.catalogue[self.films[index]]
        features = [film["year"] - 1950, *film["genres"], *[actor for actor, _ in film["cast"]]]
        return torch.tensor(features), self.stars[index]


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5000, 64)
        self.mlp = nn.Sequential(nn.Linear(640, 1536), nn.ReLU(), nn.Linear(1536, 1))

    def forward(self, features):
        return self.mlp(self.embedding(features).flatten(1))[:, 0]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    catalogue = load_catalogue(2_000)
    loader = DataLoader(Ratings(catalogue, 160 * 128), batch_size=128, shuffle=True)
    model = Scorer()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    start = time.perf_counter()
    for features, stars in loader:
        loss = nn.functional.mse_loss(model(features), stars)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
