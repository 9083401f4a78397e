"""Record two ways to do the same, and ask which is faster and by how much.

python examples/python/compare_runs.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Callable

import stepwatch

STEPS = 200


def flip_by_loop(row: list[float]) -> list[float]:
    """Turn a row around one by one."""
    turned = []
    for i in range(len(row)):
        turned.append(row[-1 - i])
    return turned


def flip_by_slice(row: list[float]) -> list[float]:
    """Turn it around inside of the interpreter."""
    return row[::-1]


def train(flip: Callable[[list[float]], list[float]], out: Path) -> None:
    """Run a loop whose steps augment and compute."""
    row = [float(i) for i in range(4000)]
    with stepwatch.record("compare", out=out):
        for _ in range(STEPS):
            with stepwatch.step():
                with stepwatch.section("augment"):
                    turned = flip(row)
                with stepwatch.section("forward"):
                    sum(value * value for value in turned)


def main() -> int:
    """Say what changed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch)
        train(flip_by_loop, folder / "loop")
        train(flip_by_slice, folder / "slice")
        change = stepwatch.compare(folder / "loop", folder / "slice")
        print(change)
        return 1 if change.regression else 0


if __name__ == "__main__":
    sys.exit(main())
