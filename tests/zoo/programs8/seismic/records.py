"""Station records on disk."""

import glob
import gzip
import json
import os

import numpy as np
import torch
from torch.utils.data import Dataset


def read_record(path):
    """Read one record: its three channels and the sample at which the P wave arrives."""
    with gzip.open(path, "rt") as f:
        record = json.load(f)
    trace = np.array([record["channels"][c] for c in "ZNE"], dtype=np.float32)
    return trace, record["onset"]


def convert(path):
    """Write a record's channels beside it as an array."""
    trace, onset = read_record(path)
    target = path.replace(".json.gz", f".{onset}.npy")
    np.save(target, trace)
    return target


class StationRecords(Dataset):
    def __init__(self, root, fmt="json"):
        self.paths = sorted(glob.glob(os.path.join(root, "*.json.gz")))
        self.fmt = fmt
        if fmt == "npy":
            self.paths = [convert(path) for path in self.paths]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        if self.fmt == "npy":
            trace, onset = np.load(path), int(path.split(".")[-2])
        else:
            trace, onset = read_record(path)
        trace = trace - trace.mean(axis=1, keepdims=True)
        trace /= trace.std(axis=1, keepdims=True) + 1e-6
        return torch.from_numpy(trace), onset
