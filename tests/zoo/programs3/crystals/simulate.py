import numpy as np
from torch.utils.data import Dataset

SIDE = 64


def place_atoms(rng, lattice):
    """Put atoms on a sheared grid, each a little off its place."""
    angle = (0.5 * np.pi, np.pi / 3, 0.4 * np.pi)[lattice]
    pitch = rng.uniform(6.0, 9.0)
    i, j = np.mgrid[-12:13, -12:13].reshape(2, -1)
    x = pitch * (i + j * np.cos(angle))
    y = pitch * j * np.sin(angle)
    turn = rng.uniform(0, 2 * np.pi)
    points = np.stack([x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)], 1)
    points += SIDE / 2 + rng.normal(0, 0.3, points.shape)
    return points[((points > 1) & (points < SIDE - 2)).all(1)]


def draw(points):
    axis = np.arange(SIDE, dtype=np.float32)
    gy = np.exp(-((axis - points[:, :1].astype(np.float32)) ** 2) / 2)
    gx = np.exp(-((axis - points[:, 1:].astype(np.float32)) ** 2) / 2)
    return gy.T @ gx


def diffract(rng, picture):
    pattern = np.abs(np.fft.fftshift(np.fft.fft2(picture))) ** 2
    return rng.poisson(np.minimum(pattern, 1e4)).astype(np.float32)


def detector(rng, counts):
    counts = np.log1p(counts)
    counts += rng.normal(0, 0.1, counts.shape)
    return (counts - counts.mean()) / counts.std()


class Crystals(Dataset):
    """Diffraction patterns made up as they are asked for; a number always gives the same one."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        rng = np.random.default_rng(number)
        lattice = number % 3
        pattern = diffract(rng, draw(place_atoms(rng, lattice)))
        return detector(rng, pattern)[None].astype(np.float32), lattice
