"""Rules about the GPU."""

from __future__ import annotations

from stepwatch.compat._code_profiler.rule import CPU, GPU, Found, is_slow, transfer_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stepwatch.compat._code_profiler.facts import Facts
    from stepwatch.compat._code_profiler.rule import Rule


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
    share = transfer_share(facts)
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
    if any(is_slow(facts, loader) for loader in facts.loaders):
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


RULES: tuple[Rule, ...] = (
    watch_gpu,
    gpu_batch_size,
    mixed_precision,
    automatic_precision,
    transfers,
    gpu_memory,
    underused_gpu,
    busy_cpu,
)
