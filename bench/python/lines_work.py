"""What the line profilers are measured on; loaded once for each of them.

A profiler may change the code of a function, so each has functions of its own.
"""

from __future__ import annotations


def work(n: int) -> int:
    total = 0
    for i in range(n):
        a = i + 1
        b = a * 2
        if b > 3:
            total = total + b
    return total


def work_lines(n: int) -> int:
    """Return how many lines ``work(n)`` runs: the innermost is left out for the first i."""
    return 5 * n + 2


def helper(x: int) -> int:
    y = x + 1
    return y * 2


def calls(n: int) -> None:
    for i in range(n):
        helper(i)


def c_calls(n: int) -> None:
    for i in range(n):
        abs(i)


def other_calls(n: int) -> None:
    for i in range(n):
        helper(i)
