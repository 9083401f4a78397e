"""Bottlenecks and recommendations: what the guide advises, each where the numbers ask for it.

A rule looks at the facts and says what it found, or nothing. What several rules say of the same
kind becomes one bottleneck; every rule that fires is a recommendation.
"""

from __future__ import annotations

import math

from stepwatch.compat._code_profiler.loading import wide_share
from stepwatch.compat._code_profiler.probes import MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from stepwatch.compat._code_profiler.facts import Facts

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
        self.share = min(max(share, 0.0), 1.0)
        self.description, self.recommendation = description, recommendation
        self.evidence = {"share": self.share, **evidence}


# --- Loading ---------------------------------------------------------------------------------


def _wait_share(facts: Facts, loader: dict[str, Any]) -> float | None:
    """Return which part of a training step would be waiting; None: no training was measured."""
    compute = facts.compute_s
    if compute is None:
        return None
    wait = float(loader["avg_batch_time"])
    return wait / (wait + compute) if wait + compute else 0.0


def _is_slow(facts: Facts, loader: dict[str, Any]) -> bool:
    share = _wait_share(facts, loader)
    if share is not None:
        return share > WAIT_SHARE and loader["avg_batch_time"] > 1e-3
    return bool(loader["avg_batch_time"] > SLOW_BATCH_S)


def _slow(facts: Facts) -> Iterator[dict[str, Any]]:
    return (loader for loader in facts.loaders if _is_slow(facts, loader))


def _share(facts: Facts, loader: dict[str, Any]) -> float:
    share = _wait_share(facts, loader)
    return 1.0 if share is None else share


def slow_loading(facts: Facts) -> Iterator[Found]:
    """RULE-27: batches come too slowly."""
    for loader in _slow(facts):
        wait, rate = loader["avg_batch_time"], loader["throughput"]
        share = _wait_share(facts, loader)
        very = (
            wait > VERY_SLOW_BATCH_S
            or (rate is not None and rate < VERY_LOW_RATE)
            or (share is not None and share > 0.5)
        )
        text = f"Slow data loading: {loader['loader']} takes {wait * 1e3:.1f} ms for a batch"
        if share is not None:
            text += f", {share:.0%} of a training step"
        if rate is not None and rate < LOW_RATE:
            text += f", {rate:.1f} samples/second"
        yield Found(
            "RULE-27",
            "slow_batch_loading",
            "high" if very else "medium",
            _share(facts, loader),
            text,
            f"{LOADING} of {loader['loader']}",
            avg_batch_time=wait,
            throughput=rate,
            wait_share=share,
        )


def workers(facts: Facts) -> Iterator[Found]:
    """RULE-06: more workers, as many as batches need and never more than there are cores."""
    for loader in _slow(facts):
        now = loader["workers"]
        if now is None:
            continue
        most = max(1, math.floor(facts.cores))
        making = loader.get("avg_making_time") or loader["avg_batch_time"] * max(now, 1)
        compute = facts.compute_s
        needed = most if not compute else math.ceil(making / compute)
        wanted = max(1, min(most, needed))
        if wanted > now:
            yield Found(
                "RULE-06",
                "slow_batch_loading",
                "medium",
                _share(facts, loader),
                f"{loader['loader']} has {now} workers on {most} cores",
                f"Increase num_workers of {loader['loader']} from {now} to {wanted}: batches are "
                "then made beside the training",
                num_workers=now,
                suggested_num_workers=wanted,
            )


def heavy_transform(facts: Facts) -> Iterator[Found]:
    """RULE-13, RULE-38: one transform is most of making a batch, and is done anew every epoch."""
    for loader in _slow(facts):
        making, parts = loader.get("avg_making_time"), loader.get("augmentation") or {}
        if not making or not parts:
            continue
        samples = loader["avg_batch_size"] or 1.0
        name = max(parts, key=lambda each: parts[each]["avg_time"])
        share = min(parts[name]["avg_time"] * samples / making, 1.0)
        if share > 0.5:
            yield Found(
                "RULE-13",
                "slow_batch_loading",
                "medium",
                _share(facts, loader) * share,
                f"{name} is {share:.0%} of making a batch of {loader['loader']}",
                f"Implement caching: do {name} once and keep the results, or do it before training",
                transform=name,
                transform_share=share,
            )


def pin_memory(facts: Facts) -> Iterator[Found]:
    """RULE-07: pinned memory for copies to the GPU."""
    copying = _transfer_share(facts)
    for loader in facts.loaders:
        if facts.gpu and loader["pin_memory"] is False and copying > 0.03:
            yield Found(
                "RULE-07",
                "data_transfer",
                "medium" if copying > 0.1 else "low",
                copying,
                f"Copying batches to the GPU takes {copying:.0%} of a step, from memory that is "
                "not pinned",
                f"Enable pin_memory: DataLoader(..., pin_memory=True) of {loader['loader']}",
                transfer_share=copying,
            )


def _transfer_share(facts: Facts) -> float:
    if not facts.trainings:
        return 0.0
    last = facts.trainings[-1]
    if not last.get("on_gpu") or not last["avg_total_time"]:
        return 0.0
    return float(last.get("avg_transfer_time") or 0.0) / float(last["avg_total_time"])


def persistent(facts: Facts) -> Iterator[Found]:
    """RULE-08: workers that stay between epochs."""
    for loader in facts.loaders:
        first, usual = loader["first_batch_time"], loader["p50_batch_time"]
        if not loader["workers"] or loader["persistent_workers"] or first is None:
            continue
        # A start that nobody would notice is none.
        if usual and first > 3 * usual and first > 0.02 and _is_slow(facts, loader):
            yield Found(
                "RULE-08",
                "slow_batch_loading",
                "low",
                0.0,
                f"Starting the workers of {loader['loader']} takes {first * 1e3:.0f} ms of each "
                "epoch",
                f"Use persistent_workers=True for {loader['loader']}: keep workers alive between "
                "epochs",
                first_batch_time=first,
                median_batch_time=usual,
            )


def prefetch(facts: Facts) -> Iterator[Found]:
    """RULE-10: enough workers, and batches come in bursts."""
    for loader in _slow(facts):
        if loader["workers"] and loader["workers"] >= math.floor(facts.cores):
            late, usual = loader["p99_batch_time"], loader["p50_batch_time"]
            if late > 3 * usual:
                ahead = loader["prefetch_factor"] or 2
                yield Found(
                    "RULE-10",
                    "slow_batch_loading",
                    "low",
                    _share(facts, loader) / 2,
                    f"Batches of {loader['loader']} come in bursts",
                    f"Use prefetching: raise prefetch_factor of {loader['loader']} from {ahead} to "
                    f"{2 * ahead}",
                    p50_batch_time=usual,
                    p99_batch_time=late,
                )


def batch_size(facts: Facts) -> Iterator[Found]:
    """RULE-09: much of a batch's time does not depend on its size."""
    sweep = facts.batch_sizes
    if sweep and sweep.get("best") and (sweep.get("fixed_share") or 0.0) > 0.2:
        given = next((row["batch_size"] for row in sweep["rows"] if row.get("given")), None)
        best = sweep["best"]["batch_size"]
        if given is None or best > given:
            yield Found(
                "RULE-09",
                "batch_size",
                "medium",
                sweep["fixed_share"],
                f"{sweep['fixed_share']:.0%} of a batch's time does not depend on its size",
                f"Optimize batch size: {best} samples a batch are the fastest that fit here",
                batch_size=given,
                suggested_batch_size=best,
            )


# --- Memory ----------------------------------------------------------------------------------


def watch_memory(facts: Facts) -> Iterator[Found]:
    """RULE-11: much memory in use, and nobody looks."""
    if not facts.tracks_memory and (facts.memory_share or 0.0) > 0.7:
        share = facts.memory_share or 0.0
        yield Found(
            "RULE-11",
            "high_memory_usage",
            "medium",
            share,
            f"The process has {share:.0%} of the machine's memory, and memory is not tracked",
            "Monitor memory usage: set track_memory=True",
            memory_share=share,
        )


def data_types(facts: Facts) -> Iterator[Found]:
    """RULE-12: elements of eight bytes where four would do."""
    for loader in facts.loaders:
        share = wide_share(loader["dtypes"])
        size = sum(loader["dtypes"].values())
        if share > 0.2 and size > MIB:
            saved = share * size / 2 / MIB
            wide = max(loader["dtypes"], key=loader["dtypes"].__getitem__)
            yield Found(
                "RULE-12",
                "data_types",
                "medium" if share > 0.5 else "low",
                share / 2,
                f"{share:.0%} of a batch of {loader['loader']} is {wide}",
                f"Optimize data types: float32 or smaller integers instead of {wide} save "
                f"{saved:.1f} MB a batch",
                bytes_by_type=dict(loader["dtypes"]),
            )


def caching(facts: Facts) -> Iterator[Found]:
    """RULE-13: the same arguments over and over."""
    for row in facts.sections:
        repeated = facts.repeats.get(row["name"], 0.0)
        share = row["total_ns"] / 1e9 / facts.total_s if facts.total_s else 0.0
        if row["calls"] >= FREQUENT and repeated > 0.5 and share * repeated > 0.01:
            yield Found(
                "RULE-13",
                "repeated_calls",
                "medium" if share > 0.2 else "low",
                share * repeated,
                f"{row['name']} was called {row['calls']} times, {repeated:.0%} of them with "
                "arguments that it had before",
                f"Implement caching: keep the results of {row['name']} (functools.lru_cache), "
                "or call it less often",
                calls=row["calls"],
                repeated_share=repeated,
            )


def tiny_calls(facts: Facts) -> Iterator[Found]:
    """RULE-60: so many short calls that calling is what they cost."""
    for row in facts.sections:
        if row["calls"] >= FREQUENT and row["mean_ns"] < TINY_S * 1e9 and not row.get("added"):
            if facts.repeats.get(row["name"], 0.0) > 0.5:
                continue  # Caching says it.
            share = row["total_ns"] / 1e9 / facts.total_s if facts.total_s else 0.0
            if share < 0.02:
                continue
            yield Found(
                "RULE-60",
                "frequent_calls",
                "low",
                share,
                f"{row['name']} was called {row['calls']} times, {row['mean_ns'] / 1e3:.1f} µs each",
                f"Batch the calls of {row['name']}, or consider caching",
                calls=row["calls"],
            )


def collector(facts: Facts) -> Iterator[Found]:
    """RULE-14: pauses of the garbage collector."""
    measured = sum(row["self_ns"] for row in facts.sections) / 1e9
    share = facts.gc_s / measured if measured else 0.0
    if share > 0.01 and facts.gc_s > 0.05:
        yield Found(
            "RULE-14",
            "garbage_collection",
            "high" if share > 0.2 else "medium" if share > 0.1 else "low",
            share,
            f"The garbage collector took {share:.1%} of the time in sections",
            "Regular garbage collection at moments of your choice: gc.freeze() before the loop, "
            "gc.disable() in it, gc.collect() between epochs",
            seconds=facts.gc_s,
        )


def big_sections(facts: Facts) -> Iterator[Found]:
    """RULE-15: sections that take much memory for a moment, or with every call."""
    for row in facts.sections:
        if row.get("memory_bytes") is None:
            continue
        delta = row["memory_bytes"] / row["calls"] / MIB
        peak = (row.get("peak_bytes") or 0) / MIB
        if delta > BIG_BATCH_MB or (peak > BIG_BATCH_MB and peak > 2 * max(delta, 1.0)):
            most = max(delta, peak)
            yield Found(
                "RULE-15",
                "high_memory_usage",
                "high" if most > VERY_BIG_BATCH_MB else "medium",
                min(most / facts.memory_mb, 1.0) if facts.memory_mb else 0.5,
                f"High memory usage: {row['name']} takes {most:.0f} MB",
                f"Use memory-efficient operations in {row['name']}: in place, or in pieces",
                mean_delta_mb=delta,
                peak_mb=peak,
            )


def high_memory(facts: Facts) -> Iterator[Found]:
    """RULE-26: too much memory for a batch, or for the machine."""
    share = facts.memory_share or 0.0
    if share > 0.8:
        yield Found(
            "RULE-26",
            "high_memory_usage",
            "critical" if share > 0.95 else "high",
            share,
            f"High memory usage: the process has {share:.0%} of the machine's memory",
            MEMORY,
            memory_share=share,
        )
    for loader in facts.loaders:
        size = loader.get("avg_memory_per_batch")
        if size is not None and size > BIG_BATCH_MB:
            yield Found(
                "RULE-26",
                "high_memory_usage",
                "high" if size > VERY_BIG_BATCH_MB else "medium",
                min(size / facts.memory_mb, 1.0) if facts.memory_mb else 0.5,
                f"High memory usage: a batch of {loader['loader']} takes {size:.0f} MB",
                MEMORY,
                avg_memory_per_batch=size,
            )


RULES: tuple[Callable[[Facts], Iterator[Found]], ...] = (
    slow_loading,
    workers,
    heavy_transform,
    pin_memory,
    persistent,
    prefetch,
    batch_size,
    watch_memory,
    data_types,
    caching,
    tiny_calls,
    collector,
    big_sections,
    high_memory,
)
