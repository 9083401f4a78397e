"""Rules about memory, and about work that is done over and over."""

from __future__ import annotations

from stepwatch.compat._code_profiler.loading import wide_share
from stepwatch.compat._code_profiler.probes import MIB
from stepwatch.compat._code_profiler.rule import (
    BIG_BATCH_MB,
    FREQUENT,
    MEMORY,
    TINY_S,
    VERY_BIG_BATCH_MB,
    Found,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepwatch.compat._code_profiler.facts import Facts
    from stepwatch.compat._code_profiler.rule import Rule


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
                f"{row['name']} was called {row['calls']} times, "
                f"{row['mean_ns'] / 1e3:.1f} µs each",
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


RULES: tuple[Rule, ...] = (
    watch_memory,
    data_types,
    caching,
    tiny_calls,
    collector,
    big_sections,
    high_memory,
)
