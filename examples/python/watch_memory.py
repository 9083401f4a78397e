"""Watch the memory of a program while it grows, and say how much and how fast.

Run it as it is: python examples/python/watch_memory.py
"""

from __future__ import annotations

import tempfile
import time

import stepwatch


def grow(megabytes: int) -> list[bytearray]:
    """Take memory, a megabyte every few milliseconds."""
    kept = []
    for _ in range(megabytes):
        with stepwatch.section("grow"):
            kept.append(bytearray(b"x" * (1 << 20)))
            time.sleep(0.005)
    return kept


def main() -> None:
    """Record, with a look every 20 ms, and print what the monitor saw."""
    with tempfile.TemporaryDirectory() as folder:
        with stepwatch.record("memory", out=f"{folder}/run", monitor_interval_s=0.02) as run:
            grow(50)
        if not run.recorded:
            return
        series = {row["name"]: row for row in run.monitor}
        memory, cpu = series["process.rss"], series["process.cpu_user"]
        grown = (memory["max"] - memory["first"]) / 2**20
        print(f"{memory['samples']} looks")
        print(f"memory grew by {grown:.0f} MiB to {memory['max'] / 2**20:.0f} MiB")
        print(f"{cpu['mean']:.2f} cores used")


if __name__ == "__main__":
    main()
