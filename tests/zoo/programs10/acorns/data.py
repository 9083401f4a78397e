import json

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

SPECIES = 10
FEATURES = 256


def write_sites(path, count, seed):
    rng = np.random.default_rng(seed)
    sites = {
        f"site-{i}": {"height": round(float(h), 3), "rain": round(float(r), 3)}
        for i, (h, r) in enumerate(zip(rng.random(count), rng.random(count), strict=True))
    }
    with open(path, "w") as file:
        json.dump(sites, file)


class Acorns(Dataset):
    """Measured acorns, with the climate of the site they were found at."""

    def __init__(self, path, count, sites, seed):
        generator = torch.Generator().manual_seed(seed)
        self.path = path
        self.measures = torch.randn(count, FEATURES, generator=generator)
        self.species = (self.measures[:, :SPECIES]).argmax(dim=1).tolist()
        self.site = torch.randint(sites, (count,), generator=generator).tolist()
        self.climate = None

    def open(self):
        with open(self.path) as file:
            self.climate = json.load(file)

    def __len__(self):
        return len(self.species)

    def __getitem__(self, index):
        climate = self.climate[f"site-{self.site[index]}"]
        return self.measures[index], climate["height"] + climate["rain"], self.species[index]


def open_in_worker(_):
    get_worker_info().dataset.open()
