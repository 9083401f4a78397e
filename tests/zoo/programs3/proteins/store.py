"""Embeddings of proteins on the group's file server, one file each."""

import os
import time

import numpy as np

LATENCY = 0.004
RESIDUES, WIDTH = 64, 96


def prepare(folder, count, seed=0):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(seed)
    family = rng.integers(0, 8, count)
    centers = rng.normal(0, 0.3, (8, WIDTH))
    everything = np.empty((count, RESIDUES, WIDTH), np.float32)
    for number in range(count):
        everything[number] = rng.normal(centers[family[number]], 1.0, (RESIDUES, WIDTH))
        np.save(f"{folder}/{number:05d}.npy", everything[number])
    np.save(f"{folder}/all.npy", everything)
    return family


def open_remote(path):
    """The server answers a few milliseconds after it was asked."""
    time.sleep(LATENCY)
    return open(path, "rb")


class OneFileEach:
    def __init__(self, folder):
        self.folder = folder

    def read(self, number):
        with open_remote(f"{self.folder}/{number:05d}.npy") as file:
            return np.load(file)


class Packed:
    def __init__(self, folder):
        with open_remote(f"{folder}/all.npy") as file:
            self.everything = np.load(file)

    def read(self, number):
        return self.everything[number]
