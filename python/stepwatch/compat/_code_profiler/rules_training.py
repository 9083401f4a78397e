"""Rules about the GPU and about training steps; see :mod:`.rules`."""

from __future__ import annotations

from stepwatch.compat._code_profiler.rules import (
    CPU,
    GPU,
    RULES,
    SEVERITIES,
    SLOW_SECTION_S,
    Found,
    _is_slow,
    _transfer_share,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from stepwatch.compat._code_profiler.facts import Facts

# Parts of a step; sections that the profiler's own methods make are no news to anybody.
_PARTS = ("forward", "backward", "optimizer")


def watch_gpu(facts: Facts) -> Iterator[Found]:
    """RULE-16: there is a GPU, and nobody looks."""
    if facts.gpu and not facts.tracks_gpu:
        yield Found(
            "RULE-16",
            "gpu_not_tracked",
            "low",
            0.0,
            "There is a GPU, and its memory is not tracked",
            "Monitor GPU memory: set enable_gpu_profiling=True and track_gpu=True",
        )


def gpu_batch_size(facts: Facts) -> Iterator[Found]:
    """RULE-17: the GPU's memory has room, or has none left."""
    memory, busy = facts.gpu_memory_share, facts.gpu_utilization
    if memory is None:
        return
    if memory > 0.9:
        yield Found(
            "RULE-17",
            "gpu_memory",
            "high",
            memory,
            f"{memory:.0%} of the GPU's memory is in use",
            "Optimize batch size for the GPU: a smaller batch, or gradient checkpointing",
            gpu_memory_share=memory,
        )
    elif memory < 0.6 and busy is not None and busy < 80 and facts.trainings:
        yield Found(
            "RULE-17",
            "gpu_underutilization",
            "low",
            (80 - busy) / 100,
            f"The GPU computes {busy:.0f} % of the time and {memory:.0%} of its memory is in use",
            "Optimize batch size for the GPU: optimizer.get_optimal_batch_size() finds one",
            gpu_memory_share=memory,
            gpu_utilization=busy,
        )


def mixed_precision(facts: Facts) -> Iterator[Found]:
    """RULE-18: float32 on a GPU that is faster with less."""
    for training in facts.trainings[-1:]:
        full = training["parameter_dtypes"].get("float32", 0)
        capable = (training["capability"] or 0) >= 7
        if training["on_gpu"] and capable and training["amp"] is False and full:
            share = _computing(training)
            yield Found(
                "RULE-18",
                "mixed_precision",
                "medium",
                share / 3,
                f"Forward and backward, {share:.0%} of a step, compute in float32",
                "Use mixed precision on the GPU: torch.autocast('cuda', dtype=torch.bfloat16)",
                computing_share=share,
            )


def automatic_precision(facts: Facts) -> Iterator[Found]:
    """RULE-25: the same for the training loop."""
    for found in mixed_precision(facts):
        yield Found(
            "RULE-25",
            found.kind,
            found.severity,
            found.share,
            found.description,
            "Mixed precision training: performance_config={'mixed_precision': True} enables "
            "automatic mixed precision",
        )


def _computing(training: dict[str, Any]) -> float:
    parts = (training.get("avg_forward_time") or 0.0, training.get("avg_backward_time") or 0.0)
    total = training["avg_total_time"]
    return float(sum(parts) / total) if total else 0.0


def transfers(facts: Facts) -> Iterator[Found]:
    """RULE-19: copies between host and device."""
    share = _transfer_share(facts)
    if share > 0.1:
        yield Found(
            "RULE-19",
            "data_transfer",
            "high" if share > 0.3 else "medium",
            share,
            f"Copying batches to the GPU takes {share:.0%} of a step",
            "Optimize data transfer: minimize CPU-GPU transfers, keep tensors on the device, copy "
            "with non_blocking=True from pinned memory",
            transfer_share=share,
        )


def gpu_memory(facts: Facts) -> Iterator[Found]:
    """RULE-20: torch holds much more of the GPU than it uses."""
    reserved, used = facts.gpu_reserved_bytes, facts.gpu_allocated_bytes
    if reserved and used and reserved > 1.5 * used and reserved - used > 1 << 30:
        yield Found(
            "RULE-20",
            "gpu_memory",
            "low",
            1 - used / reserved,
            f"torch holds {reserved / used:.1f} times the memory of the GPU that it uses",
            "GPU memory management: torch.cuda.empty_cache() between phases, "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            reserved_bytes=reserved,
            allocated_bytes=used,
        )


def underused_gpu(facts: Facts) -> Iterator[Found]:
    """RULE-28: the GPU idles, and the loader is not why."""
    busy = facts.gpu_utilization
    if busy is None or busy >= 50 or not facts.trainings:
        return
    if any(_is_slow(facts, loader) for loader in facts.loaders):
        return
    yield Found(
        "RULE-28",
        "gpu_underutilization",
        "high" if busy < 30 else "medium",
        (100 - busy) / 100,
        f"GPU underutilization: it computes {busy:.0f} % of the time",
        GPU,
        gpu_utilization=busy,
    )


def busy_cpu(facts: Facts) -> Iterator[Found]:
    """RULE-29: the CPU is at its limit while the GPU waits."""
    cpu, busy = facts.cpu_share, facts.gpu_utilization
    if cpu is not None and busy is not None and cpu >= 0.9 and busy < 70:
        yield Found(
            "RULE-29",
            "cpu_bottleneck",
            "high",
            (100 - busy) / 100,
            f"CPU bottleneck: {cpu:.0%} of the cores are busy while the GPU computes {busy:.0f} % "
            "of the time",
            CPU,
            cpu_share=cpu,
            gpu_utilization=busy,
        )


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


ALL: tuple[Callable[[Facts], Iterator[Found]], ...] = (
    *RULES,
    watch_gpu,
    gpu_batch_size,
    mixed_precision,
    automatic_precision,
    transfers,
    gpu_memory,
    underused_gpu,
    busy_cpu,
    parts_unknown,
    heavy_layer,
    heavy_update,
    accumulate,
    slow_section,
)


def _of_recording(facts: Facts) -> Iterator[Found]:
    """Return the findings of the recording, which has seen the steps one by one."""
    for finding in facts.findings:
        advice = finding.get("advice") or [finding["title"]]
        found = Found(
            (finding.get("rules") or ["RULE-01"])[0],
            finding["kind"],
            finding["severity"],
            finding.get("share") or 0.0,
            finding["title"],
            " ".join(advice),
        )
        found.evidence.update(finding.get("evidence") or {})
        found.evidence["rules"] = finding.get("rules") or []
        yield found


def judge(facts: Facts) -> tuple[list[dict[str, Any]], list[str]]:
    """Return bottlenecks, by severity and then by share, and what to change, by gain."""
    found = list(_of_recording(facts))
    for rule in ALL:
        found.extend(rule(facts))
    found.sort(key=lambda each: (SEVERITIES.index(each.severity), -each.share))  # Else as above.
    kinds: dict[str, dict[str, Any]] = {}
    for each in found:
        entry = kinds.get(each.kind)
        if entry is None:
            kinds[each.kind] = {
                "type": each.kind,
                "description": each.description,
                "severity": each.severity,
                "recommendation": each.recommendation,
                "evidence": dict(each.evidence),
                "rules": [each.rule],
            }
            continue
        if each.rule not in entry["rules"]:
            entry["rules"].append(each.rule)
        if each.recommendation not in entry["recommendation"]:
            entry["recommendation"] += f". {each.recommendation}"
        for key, value in each.evidence.items():
            entry["evidence"].setdefault(key, value)
    ranked = sorted(found, key=lambda each: (-each.share, SEVERITIES.index(each.severity)))
    return list(kinds.values()), list(dict.fromkeys(each.recommendation for each in ranked))
