import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


def simulate(hours, storage, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    load = np.sin(t / 24 * 2 * np.pi) + 0.4 * np.sin(t / 168 * 2 * np.pi)
    wear = np.cumsum(0.001 * (1.0 + load) + 0.01 * rng.standard_normal(hours))
    series = load + wear + 0.1 * rng.standard_normal(hours)
    return ((series - series.mean()) / series.std()).astype(storage)


class Windows(Dataset):
    """Every stretch of the series, history and horizon together."""

    def __init__(self, series, history, horizon):
        self.series = torch.from_numpy(series)
        self.windows = self.series.unfold(0, history + horizon, 1)
        self.history = history

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        window = self.windows[torch.tensor(index)]
        return window[:, : self.history], window[:, self.history :]


def build_loader(cfg):
    data = Windows(simulate(cfg.hours, cfg.storage, cfg.seed), cfg.history, cfg.horizon)
    drawn = RandomSampler(data, num_samples=cfg.steps * cfg.batch_size)
    return DataLoader(data, sampler=BatchSampler(drawn, cfg.batch_size, True), batch_size=None)
