"""Parcel scans in compressed shards, read one after the other."""

import gzip
import json
import os
import random

import torch
from torch.utils.data import IterableDataset, get_worker_info


def write_shards(root, shards, rows, width):
    os.makedirs(root, exist_ok=True)
    rng = random.Random(0)
    lines = []
    for _ in range(120):
        scan = [round(rng.gauss(0, 1), 4) for _ in range(width)]
        lines.append(json.dumps({"scan": scan, "zone": rng.randrange(9)}) + "\n")
    for shard in range(shards):
        with gzip.open(os.path.join(root, f"part-{shard:03d}.jsonl.gz"), "wt", 1) as f:
            f.writelines(rng.choices(lines, k=rows))


class Shards(IterableDataset):
    def __init__(self, root):
        self.files = sorted(os.path.join(root, name) for name in os.listdir(root))

    def load(self, file):
        with gzip.open(file, "rt") as f:
            rows = [json.loads(line) for line in f]
        random.shuffle(rows)
        scans = torch.tensor([row["scan"] for row in rows])
        return scans, torch.tensor([row["zone"] for row in rows])

    def __iter__(self):
        info = get_worker_info()
        torch.set_num_threads(1)
        files = self.files if info is None else self.files[info.id :: info.num_workers]
        for file in files:
            yield from zip(*self.load(file))
