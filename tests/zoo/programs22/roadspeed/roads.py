"""A city's road segments and the speeds measured on them."""

import numpy as np
import torch
from torch.utils.data import TensorDataset

HISTORY = 12
HORIZON = 6


def road_network(segments, seed):
    """Adjacency of segments that lie close to each other, weighted by distance."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 10, size=(segments, 2))
    distance = np.linalg.norm(place[:, None] - place[None, :], axis=-1)
    weight = np.exp(-(distance**2)) * (distance < 2.0)
    np.fill_diagonal(weight, 0.0)
    return torch.from_numpy(weight.astype(np.float32))


def measured_speeds(adjacency, windows, seed):
    generator = torch.Generator().manual_seed(seed)
    segments = adjacency.shape[0]
    hours = torch.arange(windows + HISTORY + HORIZON) / 12.0
    daily = torch.sin(hours[:, None] + torch.rand(segments, generator=generator) * 6.28)
    noise = torch.randn(len(hours), segments, generator=generator) * 0.1
    smooth = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1e-6)
    speeds = daily @ smooth.T + noise
    past = torch.stack([speeds[i : i + HISTORY].T for i in range(windows)])
    future = torch.stack(
        [speeds[i + HISTORY : i + HISTORY + HORIZON].T for i in range(windows)],
    )
    return TensorDataset(past, future)
