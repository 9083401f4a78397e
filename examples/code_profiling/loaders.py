"""Three settings of one loader side by side, with a picture of the comparison.

python examples/code_profiling/loaders.py [FOLDER]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from stepwatch.compat.code_profiler import compare, create_code_profiler
from torch.utils.data import DataLoader, Dataset

SETTINGS: dict[str, dict[str, object]] = {
    "no workers": {"num_workers": 0},
    "two workers": {"num_workers": 2},
    "two workers that stay": {
        "num_workers": 2,
        "persistent_workers": True,
        "prefetch_factor": 4,
    },
}


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Small pictures that take a millisecond to read."""

    def __len__(self) -> int:
        return 256

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.001)
        return torch.full((3, 16, 16), float(index)), index % 10


def main(folder: str = "profiles") -> dict[str, object]:
    """Profile each setting for itself, then compare the reports."""
    reports = {}
    for name, settings in SETTINGS.items():
        place = str(Path(folder) / name.replace(" ", "_"))
        with create_code_profiler(profile_dir=place, create_visualizations=False) as profiler:
            loader = DataLoader(Pictures(), batch_size=16, **settings)  # type: ignore[arg-type]
            profiler.profile_data_loading(loader, num_batches=8)
            reports[name] = profiler.generate_profiling_report()
    comparison = compare(reports, folder)
    for change in comparison["changes"]:
        told = "" if change["significant"] else " (may be chance)"
        print(
            f"{change['section']}: {change['after']} is {change['speedup']:.2f} times as fast "
            f"as {change['before']}{told}"
        )
    return comparison


if __name__ == "__main__":
    main(*sys.argv[1:2])
