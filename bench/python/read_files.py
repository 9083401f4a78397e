"""A loader that reads many small files, as a data set of images is read.

read_files.py FOLDER FILES EPOCHS [patch]: prints the seconds of the epochs. With ``patch`` calls
are counted and timed in Python, as a program would do it for itself.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def patch() -> dict[str, list[int]]:
    """Put functions around those of ``os`` that count and time them."""
    seen: dict[str, list[int]] = {}

    def wrap(name: str) -> None:
        inner = getattr(os, name)
        clock = time.perf_counter_ns
        sums = seen.setdefault(name, [0, 0, 0])

        def outer(*arguments: object) -> object:
            begin = clock()
            result = inner(*arguments)
            sums[0] += 1
            sums[1] += clock() - begin
            sums[2] += len(result) if isinstance(result, bytes) else 0
            return result

        setattr(os, name, outer)

    for name in ("open", "read", "close"):
        wrap(name)
    return seen


def epoch(paths: list[str]) -> int:
    """Read all files, and do a little with what they hold."""
    total = 0
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        while part := os.read(fd, 4096):
            total += part[0] + len(part)
        os.close(fd)
    return total


def main() -> None:
    """Make the files that are missing, read them all, print how long it took."""
    folder, files, epochs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(exist_ok=True)
    paths = [str(folder / f"{i}.bin") for i in range(files)]
    for path in paths:
        if not Path(path).exists():
            Path(path).write_bytes(bytes(16384))
    if sys.argv[4:] == ["patch"]:
        patch()
    epoch(paths)
    begin = time.perf_counter()
    for _ in range(epochs):
        epoch(paths)
    print(time.perf_counter() - begin)


main()
