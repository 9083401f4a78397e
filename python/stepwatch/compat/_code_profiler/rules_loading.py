"""Rules about loaders."""

from __future__ import annotations

import math

from stepwatch.compat._code_profiler.rule import (
    LOADING,
    LOW_RATE,
    VERY_LOW_RATE,
    VERY_SLOW_BATCH_S,
    Found,
    is_slow,
    slow_loaders,
    transfer_share,
    wait_share,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stepwatch.compat._code_profiler.facts import Facts
    from stepwatch.compat._code_profiler.rule import Rule


def _share(facts: Facts, loader: dict[str, Any]) -> float:
    share = wait_share(facts, loader)
    return 1.0 if share is None else share


def slow_loading(facts: Facts) -> Iterator[Found]:
    """RULE-27: batches come too slowly."""
    for loader in slow_loaders(facts):
        wait, rate = loader["avg_batch_time"], loader["throughput"]
        share = wait_share(facts, loader)
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
    for loader in slow_loaders(facts):
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
    for loader in slow_loaders(facts):
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
    copying = transfer_share(facts)
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


def persistent(facts: Facts) -> Iterator[Found]:
    """RULE-08: workers that stay between epochs."""
    for loader in facts.loaders:
        first, usual = loader["first_batch_time"], loader["p50_batch_time"]
        if not loader["workers"] or loader["persistent_workers"] or first is None:
            continue
        # A start that nobody would notice is none.
        if usual and first > 3 * usual and first > 0.02 and is_slow(facts, loader):
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
    for loader in slow_loaders(facts):
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


RULES: tuple[Rule, ...] = (
    slow_loading,
    workers,
    heavy_transform,
    pin_memory,
    persistent,
    prefetch,
    batch_size,
)
