"""What a code profiler prints: banners, a line a batch, summaries."""

from __future__ import annotations

from stepwatch.compat._console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIDTH = 60


def banner(title: str) -> None:
    """Print a heading between two lines."""
    say(f"\n{'=' * WIDTH}\n{title}\n{'=' * WIDTH}")


def loading_batch(number: int, seconds: float, size: int | None, megabytes: float) -> None:
    """Print one batch of a loader."""
    shown = "?" if size is None else size
    say(f"Batch {number}: Time={seconds:.4f}s, Size={shown}, Memory={megabytes:.3f}MB")


def training_batch(number: int, parts: dict[str, float]) -> None:
    """Print one batch of a training, with the parts that are recorded."""
    shown = ", ".join(f"{name}={seconds:.4f}s" for name, seconds in parts.items())
    say(f"Batch {number}: {shown}")


def summary(title: str, lines: list[tuple[str, float | None, str]]) -> None:
    """Print a heading and numbers, each with how it is written; what is not known is left out."""
    say(f"\n{title}:")
    for name, value, form in lines:
        if value is not None:
            say(f"  {name}: {form.format(value)}")


def bottlenecks(found: list[dict[str, Any]]) -> None:
    """Print what is wrong, if anything is."""
    if not found:
        return
    say("\nIdentified Bottlenecks:")
    for each in found:
        say(f"  - {each['description']} (Severity: {each['severity']})")
        say(f"    Recommendation: {each['recommendation']}")


def report(summary: dict[str, Any], recommendations: list[str]) -> None:
    """Print the summary of a report."""
    say("\nProfiling Report Summary:")
    say(f"  Sections profiled: {summary['total_sections_profiled']}")
    say(f"  Total function calls: {summary['total_function_calls']}")
    say(f"  Total profiling time: {summary['total_profiling_time']:.4f}s")
    say(f"  Bottlenecks found: {summary['bottlenecks_found']}")
    if summary["slowest_sections"]:
        say("\nSlowest sections:")
        for name, seconds in summary["slowest_sections"]:
            say(f"  - {name}: {seconds:.4f}s")
    if recommendations:
        say("\nTop recommendations:")
        for number, text in enumerate(recommendations[:5], 1):
            say(f"  {number}. {text}")
