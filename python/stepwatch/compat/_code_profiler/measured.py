"""What a measurement returns, so that the guide's own lines can print it whatever is known."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BEGINNINGS = ("avg_", "min_", "max_", "std_", "p50_", "p99_", "first_")
_COUNTS = ("total_batches_profiled", "total_samples_profiled")
_RATES = ("throughput", "samples_per_second", "batches_per_second")


class Measured(dict):  # type: ignore[type-arg]
    """Numbers by name; ``[]`` gives NaN for one that was not measured, 0 for how many were.

    ``get`` gives None for both. Profiling may be off, a measurement may have failed, a level may
    leave a number out: ``f"{metrics['throughput']:.1f}"`` says ``nan`` then, and the program goes
    on.
    """

    def __getitem__(self, name: Any) -> Any:
        """Return a number; KeyError for what is none of a measurement."""
        value = self.get(name)
        if value is not None:
            return value
        if name in _COUNTS:
            return 0
        if isinstance(name, str) and (name in _RATES or name.startswith(_BEGINNINGS)):
            return float("nan")
        return super().__getitem__(name)


class NoReport(dict):  # type: ignore[type-arg]
    """A report of nothing: empty, and so are its parts when somebody goes through them."""

    def __missing__(self, name: str) -> Any:
        """Return the part, with nothing in it."""
        if name in ("summary", "detailed_metrics"):
            return {}
        if name in ("bottlenecks", "recommendations"):
            return []
        raise KeyError(name)
