"""What the sampler costs the thread it looks at: equal work with and without it, in turn.

PYTHONPATH=build/python python bench/sampler_cost.py [pairs] [seconds]
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import stepwatch

BATCHES = 20


def batch(rounds: int) -> float:
    """Return the time of a fixed amount of Python."""
    begin = time.perf_counter()
    total = 0
    for i in range(rounds):
        total += i * i % 7
    return time.perf_counter() - begin


def work(rounds: int) -> float:
    """Return the best of some batches: each is long enough to be looked at several times.

    What neighbours on the machine take is not in the best one; what the sampler takes is in all.
    """
    return min(batch(rounds) for _ in range(BATCHES))


def main(pairs: int, seconds: float) -> None:
    """Measure and print one JSON line."""
    rounds = 100_000
    while (taken := batch(rounds)) < seconds / BATCHES:
        rounds = int(rounds * max(1.2, min(4.0, seconds / BATCHES / taken)))
    differences, looks, cpu = [], 0, 0.0
    for i in range(pairs):
        # Which comes first changes, so that a drift of the machine cancels out.
        with_it = None
        if i % 2:
            plain = work(rounds)
        with stepwatch.sample(hz=200) as s:
            with_it = work(rounds)
        if not i % 2:
            plain = work(rounds)
        differences.append(100 * (with_it / plain - 1))
        looks += s.stats()["looks"]
        cpu += s.stats()["cpu_s"]
    spread = statistics.stdev(differences) / pairs**0.5
    print(
        json.dumps(
            {
                "python": sys.version.split()[0],
                "pairs": pairs,
                "slowdown_percent": round(statistics.mean(differences), 3),
                "half_interval_95": round(1.96 * spread, 3),
                "median_percent": round(statistics.median(differences), 3),
                "looks": looks,
                "cpu_us_per_look": round(1e6 * cpu / max(looks, 1), 2),
            }
        )
    )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 20,
        float(sys.argv[2]) if len(sys.argv) > 2 else 0.5,
    )
