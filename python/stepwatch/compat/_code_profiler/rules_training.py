"""Rules about training steps, and about sections that are slow."""

from __future__ import annotations

from stepwatch.compat._code_profiler.rule import SLOW_SECTION_S, Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepwatch.compat._code_profiler.facts import Facts
    from stepwatch.compat._code_profiler.rule import Rule


_PARTS = ("forward", "backward", "optimizer")


def parts_unknown(facts: Facts) -> Iterator[Found]:
    """RULE-21: much of a step is not told apart."""
    for training in facts.trainings[-1:]:
        total = training["avg_total_time"]
        known = sum(training.get(f"avg_{part}_time") or 0.0 for part in (*_PARTS, "loss"))
        missing = [part for part in _PARTS if f"avg_{part}_time" not in training]
        share = 1 - known / total if total else 0.0
        if missing and share > 0.3:
            names = ", ".join(missing)
            yield Found(
                "RULE-21",
                "unknown_time",
                "low",
                share / 2,
                f"{share:.0%} of a training step is not told apart: {names} is not recorded",
                "Profile forward/backward passes: "
                + ", ".join(f"{_SWITCH[part]}=True" for part in missing),
                unexplained_share=share,
            )


_SWITCH = {
    "forward": "profile_forward_pass",
    "backward": "profile_backward_pass",
    "optimizer": "profile_optimizer_step",
}


def heavy_layer(facts: Facts) -> Iterator[Found]:
    """RULE-22: a layer out of proportion to what it learns."""
    for training in facts.trainings[-1:]:
        times = training.get("gradient_times") or {}
        sizes = training.get("gradient_parameters") or {}
        total, learned = sum(times.values()), sum(sizes.values())
        if len(times) < 3 or total < 5e-3 or not learned:
            continue
        layer = max(times, key=times.__getitem__)
        share, size = times[layer] / total, sizes.get(layer, 0) / learned
        if share > 0.5 and share > 3 * size:
            yield Found(
                "RULE-22",
                "slow_layer",
                "medium",
                share / 2,
                f"{layer} takes {share:.0%} of the backward pass and has {size:.0%} of what is "
                "learned",
                f"Optimize model architecture: simplify {layer}, or use a cheaper kind of layer",
                layer=layer,
                backward_share=share,
                parameter_share=size,
            )


def heavy_update(facts: Facts) -> Iterator[Found]:
    """RULE-23: the update takes too much of a step."""
    for training in facts.trainings[-1:]:
        update, total = training.get("avg_optimizer_time"), training["avg_total_time"]
        if update and total and update / total > 0.15 and update > 0.01:
            share = update / total
            yield Found(
                "RULE-23",
                "slow_optimizer",
                "high" if share > 0.4 else "medium",
                share,
                f"The optimizer step takes {update * 1e3:.1f} ms, {share:.0%} of a training step",
                "Use efficient optimizers: fused=True or foreach=True, or a simpler optimizer",
                optimizer_share=share,
            )


def accumulate(facts: Facts) -> Iterator[Found]:
    """RULE-24: larger batches would be faster, and do not fit."""
    sweep = facts.batch_sizes
    if not sweep or not sweep.get("best"):
        return
    failed = [row["batch_size"] for row in sweep["rows"] if row.get("fits") is False]
    best = sweep["best"]["batch_size"]
    if failed and min(failed) <= 4 * best:
        yield Found(
            "RULE-24",
            "batch_size",
            "low",
            0.1,
            f"A batch of {min(failed)} samples does not fit into memory",
            f"Gradient accumulation: batches of {best}, and an update every "
            f"{max(2, min(failed) // best)} of them",
            batch_size=best,
            does_not_fit=min(failed),
        )


def slow_section(facts: Facts) -> Iterator[Found]:
    """RULE-59: a section of more than a second a call, where nothing else explains it."""
    for row in facts.sections:
        seconds = row["mean_ns"] / 1e9
        if seconds > SLOW_SECTION_S and row["category"] not in ("training", "epoch"):
            share = row["total_ns"] / 1e9 / facts.total_s if facts.total_s else 0.0
            yield Found(
                "RULE-59",
                "slow_section",
                "medium" if share > 0.3 else "low",
                share,
                f"Section {row['name']} takes {seconds:.2f} s a call",
                f"Optimize {row['name']}: it averages {seconds:.2f} s",
                calls=row["calls"],
                average_s=seconds,
            )


RULES: tuple[Rule, ...] = (
    parts_unknown,
    heavy_layer,
    heavy_update,
    accumulate,
    slow_section,
)
