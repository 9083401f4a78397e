"""What a code profiler prints: banners, a line a batch, summaries."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIDTH = 60


def banner(title: str) -> None:
    """Print a heading between two lines."""
    print(f"\n{'=' * WIDTH}\n{title}\n{'=' * WIDTH}")


def loading_batch(number: int, seconds: float, size: int | None, megabytes: float) -> None:
    """Print one batch of a loader."""
    shown = "?" if size is None else size
    print(f"Batch {number}: Time={seconds:.4f}s, Size={shown}, Memory={megabytes:.3f}MB")


def training_batch(number: int, parts: dict[str, float]) -> None:
    """Print one batch of a training, with the parts that are recorded."""
    shown = ", ".join(f"{name}={seconds:.4f}s" for name, seconds in parts.items())
    print(f"Batch {number}: {shown}")


def summary(title: str, lines: list[tuple[str, float | None, str]]) -> None:
    """Print a heading and numbers, each with how it is written; what is not known is left out."""
    print(f"\n{title}:")
    for name, value, form in lines:
        if value is not None:
            print(f"  {name}: {form.format(value)}")


def bottlenecks(found: list[dict[str, Any]]) -> None:
    """Print what is wrong, if anything is."""
    if not found:
        return
    print("\nIdentified Bottlenecks:")
    for each in found:
        print(f"  - {each['description']} (Severity: {each['severity']})")
        print(f"    Recommendation: {each['recommendation']}")


def report(summary: dict[str, Any], recommendations: list[str]) -> None:
    """Print the summary of a report."""
    print("\nProfiling Report Summary:")
    print(f"  Sections profiled: {summary['total_sections_profiled']}")
    print(f"  Total function calls: {summary['total_function_calls']}")
    print(f"  Total profiling time: {summary['total_profiling_time']:.4f}s")
    print(f"  Bottlenecks found: {summary['bottlenecks_found']}")
    if summary["slowest_sections"]:
        print("\nSlowest sections:")
        for name, seconds in summary["slowest_sections"]:
            print(f"  - {name}: {seconds:.4f}s")
    if recommendations:
        print("\nTop recommendations:")
        for number, text in enumerate(recommendations[:5], 1):
            print(f"  {number}. {text}")
