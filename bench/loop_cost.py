"""What the search for the training loop costs, and the loop that was found; prints it.

    stepwatch run --no-report --set sampler_hz=0 -- python bench/loop_cost.py

Each function is there twice, once in a file that counts as the user's own code and once in one
that does not; both are measured in turn, and the best of many short trials is taken.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from stepwatch import _core

SOURCE = """
def hot_for(n):
    total = 0
    for i in range(n):
        total += i & 3

def empty_for(n):
    for i in range(n):
        pass

def hot_while(n):
    i = 0
    while i < n:
        i += 1

def short_passes(n):
    for i in range(n):
        for j in three:
            pass

def train(n, wait):
    for i in range(n):
        if wait:
            sleep(wait)

def train_for_some_time(n, wait):
    i = 0
    while i < n:
        i += 1
        if wait:
            sleep(wait)
"""


def _best(function: Any, *arguments: Any) -> float:
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


def _compare(what: str, count: int, ours: Any, theirs: Any, *more: Any) -> None:
    bare = watched = 1e9
    for _ in range(40):
        bare = min(bare, _best(theirs, count, *more))
        watched = min(watched, _best(ours, count, *more))
    more_ns = (watched - bare) / count * 1e9
    print(
        f"{what:34} {bare / count * 1e9:8.1f} ns {watched / count * 1e9:8.1f} ns "
        f"{more_ns:+8.1f} ns an iteration"
    )


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for place in ("own", "site-packages"):
            file = Path(folder) / place / "functions.py"
            file.parent.mkdir()
            file.write_text(SOURCE)
            spec = importlib.util.spec_from_file_location(f"functions_{place}", file)
            assert spec is not None
            assert spec.loader is not None
            module: Any = importlib.util.module_from_spec(spec)
            module.three, module.sleep = (1, 2, 3), time.sleep
            spec.loader.exec_module(module)
            names.append(module)
        ours, theirs = names
        print(f"Python {sys.version.split()[0]:29} {'bare':>8}    {'watched':>8}")
        # Both loops are found in turn; then their iterations do nothing but iterate.
        for name in ("train", "train_for_some_time"):
            getattr(ours, name)(600 if name == "train" else 2400, 0.0005)
            print(f"  found: {_core._loops_now()}")
            _compare(f"{name} (found)", 2000, getattr(ours, name), getattr(theirs, name), 0)
        for name, count in (("hot_for", 20000), ("empty_for", 20000), ("hot_while", 20000)):
            _compare(name, count, getattr(ours, name), getattr(theirs, name))
        _compare("short_passes", 5000, ours.short_passes, theirs.short_passes)


if __name__ == "__main__":
    main()
