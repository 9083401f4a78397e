"""Three ways to prepare a sample, measured with the same one.

python examples/code_profiling/preprocessing.py [FOLDER]
"""

from __future__ import annotations

import sys

import torch
from stepwatch.compat.code_profiler import create_code_profiler


def normalize_by_hand(sample: torch.Tensor) -> torch.Tensor:
    """Normalize number by number, in plain Python."""
    values = [float(value) for value in sample.flatten()]
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    return torch.tensor([(value - mean) / spread for value in values]).reshape(sample.shape)


def normalize(sample: torch.Tensor) -> torch.Tensor:
    """Normalize the whole tensor at once."""
    return (sample - sample.mean()) / sample.std(correction=0)


def normalize_in_place(sample: torch.Tensor) -> torch.Tensor:
    """Normalize a copy without further copies."""
    copy = sample.clone()
    return copy.sub_(sample.mean()).div_(sample.std(correction=0))


def main(folder: str = "profiles") -> dict[str, float]:
    """Measure each of them, and return how long a call takes."""
    sample = torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(1))
    times = {}
    with create_code_profiler(profile_dir=folder, create_visualizations=False) as profiler:
        for function in (normalize_by_hand, normalize, normalize_in_place):
            found = profiler.profile_preprocessing(function, sample, num_samples=50)
            times[function.__name__] = found["avg_processing_time"]
    for name, seconds in sorted(times.items(), key=lambda item: item[1]):
        print(f"{name}: {seconds * 1e6:.1f} µs")
    return times


if __name__ == "__main__":
    main(*sys.argv[1:2])
