import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


def write_bank(path, notes, length, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(length) / length
    pitch = 4.0 + np.arange(notes)[:, None] % 61
    bank = np.sin(2 * np.pi * pitch * t) + 0.05 * rng.standard_normal((notes, length))
    np.savez_compressed(path, bank=(bank * 4000).astype(np.int16))


class Bank:
    """The recorded notes; opened where they are used."""

    def __init__(self, path):
        with np.load(path) as f:
            self.notes = torch.from_numpy(f["bank"])


class Chords(Dataset):
    def __init__(self, path, size, instruments):
        self.path, self.size, self.instruments = path, size, instruments
        self.bank = None

    def open(self):
        self.bank = Bank(self.path)

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        notes = self.bank.notes
        a = (i * 37) % len(notes)
        b = (i * 91 + 5) % len(notes)
        mix = (notes[a].float() + notes[b].float()) / 8000.0
        return mix, a % self.instruments


def open_bank(_):
    get_worker_info().dataset.open()


def build_loader(cfg):
    return DataLoader(
        Chords(cfg.bank, cfg.chords, cfg.instruments),
        batch_size=cfg.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=cfg.workers,
        persistent_workers=cfg.keep_workers,
        worker_init_fn=open_bank,
    )
