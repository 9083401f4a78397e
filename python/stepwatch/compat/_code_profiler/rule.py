"""What a rule says, and what rules share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from stepwatch.compat._code_profiler.facts import Facts

    Rule = Callable[[Facts], Iterator["Found"]]

SEVERITIES = ("critical", "high", "medium", "low")

# Of the origin, where nothing but the loader was measured.
SLOW_BATCH_S, VERY_SLOW_BATCH_S = 0.1, 0.5
BIG_BATCH_MB, VERY_BIG_BATCH_MB = 100.0, 500.0
LOW_RATE, VERY_LOW_RATE = 100.0, 50.0
WAIT_SHARE = 0.2
SLOW_SECTION_S = 1.0
FREQUENT = 1000
TINY_S = 20e-6

# What the guide's list of common issues says, word for word.
MEMORY = "Enable memory profiling, optimize data types, implement caching"
LOADING = "Increase num_workers, enable pin_memory, optimize preprocessing"
GPU = "Increase batch size, optimize data transfer, use mixed precision"
CPU = "Optimize preprocessing, use multiprocessing, reduce CPU operations"


class Found:
    """What a rule found."""

    def __init__(
        self,
        rule: str,
        kind: str,
        severity: str,
        share: float,
        description: str,
        recommendation: str,
        **evidence: Any,
    ) -> None:
        """Take the rule's number, and what to say; ``share`` is of the time, or of the memory."""
        self.rule, self.kind, self.severity = rule, kind, severity
        self.rules = [rule]
        self.share = min(max(share, 0.0), 1.0)
        self.description, self.recommendation = description, recommendation
        self.evidence = {"share": self.share, **evidence}


def wait_share(facts: Facts, loader: dict[str, Any]) -> float | None:
    """Return which part of a training step would be waiting; None: no training was measured."""
    compute = facts.compute_s
    if compute is None:
        return None
    wait = float(loader["avg_batch_time"])
    return wait / (wait + compute) if wait + compute else 0.0


def is_slow(facts: Facts, loader: dict[str, Any]) -> bool:
    """Tell whether a loader holds training up, or seems to where no training was measured."""
    share = wait_share(facts, loader)
    if share is not None:
        return share > WAIT_SHARE and loader["avg_batch_time"] > 1e-3
    return bool(loader["avg_batch_time"] > SLOW_BATCH_S)


def slow_loaders(facts: Facts) -> Iterator[dict[str, Any]]:
    """Return those that are."""
    return (loader for loader in facts.loaders if is_slow(facts, loader))


def transfer_share(facts: Facts) -> float:
    """Return which part of a step is copying to the device."""
    if not facts.trainings:
        return 0.0
    last = facts.trainings[-1]
    if not last.get("on_gpu") or not last["avg_total_time"]:
        return 0.0
    return float(last.get("avg_transfer_time") or 0.0) / float(last["avg_total_time"])
