"""What is said where a rule fires: the rules themselves are in C (stepwatch/judge.h).

A description consists of clauses; one that needs a number which is not known is left out.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What the guide's list of common issues says, word for word.
MEMORY = "Enable memory profiling, optimize data types, implement caching"
LOADING = "Increase num_workers, enable pin_memory, optimize preprocessing"
GPU = "Increase batch size, optimize data transfer, use mixed precision"
CPU = "Optimize preprocessing, use multiprocessing, reduce CPU operations"

_COMPUTES = ("Forward and backward, {computing_share:.0%} of a step, compute in float32",)

# By rule, the clauses of the description, and what to do.
TEXTS: dict[str, tuple[tuple[str, ...], str]] = {
    "RULE-06": (
        ("{subject} has {num_workers} workers on {cores} cores",),
        "Increase num_workers of {subject} from {num_workers} to {suggested_num_workers}: batches "
        "are then made beside the training",
    ),
    "RULE-07": (
        (
            "Copying batches to the GPU takes {transfer_share:.0%} of a step, from memory that is "
            "not pinned",
        ),
        "Enable pin_memory: DataLoader(..., pin_memory=True) of {subject}",
    ),
    "RULE-08": (
        ("Starting the workers of {subject} takes {first_batch_time:ms0} ms of each epoch",),
        "Use persistent_workers=True for {subject}: keep workers alive between epochs",
    ),
    "RULE-09": (
        ("{fixed_share:.0%} of a batch's time does not depend on its size",),
        "Optimize batch size: {suggested_batch_size} samples a batch are the fastest that fit here",
    ),
    "RULE-10": (
        ("Batches of {subject} come in bursts",),
        "Use prefetching: raise prefetch_factor of {subject} from {prefetch_factor} to "
        "{suggested_prefetch_factor}",
    ),
    "RULE-11": (
        ("The process has {memory_share:.0%} of the machine's memory, and memory is not tracked",),
        "Monitor memory usage: set track_memory=True",
    ),
    "RULE-12": (
        ("{wide_share:.0%} of a batch of {subject} is {part}",),
        "Optimize data types: float32 or smaller integers instead of {part} save "
        "{saved_mb:.1f} MB a batch",
    ),
    "RULE-13": (
        (
            "{subject} was called {calls} times, {repeated_share:.0%} of them with arguments that "
            "it had before",
        ),
        "Implement caching: keep the results of {subject} (functools.lru_cache), or call it less "
        "often",
    ),
    "RULE-13 transform": (
        ("{part} is {transform_share:.0%} of making a batch of {subject}",),
        "Implement caching: do {part} once and keep the results, or do it before training",
    ),
    "RULE-14": (
        ("The garbage collector took {gc_share:.1%} of the time in sections",),
        "Regular garbage collection at moments of your choice: gc.freeze() before the loop, "
        "gc.disable() in it, gc.collect() between epochs",
    ),
    "RULE-15": (
        ("High memory usage: {subject} takes {most_mb:.0f} MB",),
        "Use memory-efficient operations in {subject}: in place, or in pieces",
    ),
    "RULE-16": (
        ("There is a GPU, and its memory is not tracked",),
        "Monitor GPU memory: set enable_gpu_profiling=True and track_gpu=True",
    ),
    "RULE-17": (
        ("{gpu_memory_share:.0%} of the GPU's memory is in use",),
        "Optimize batch size for the GPU: a smaller batch, or gradient checkpointing",
    ),
    "RULE-17 room": (
        (
            "The GPU computes {gpu_utilization:.0f} % of the time and {gpu_memory_share:.0%} of "
            "its memory is in use",
        ),
        "Optimize batch size for the GPU: optimizer.get_optimal_batch_size() finds one",
    ),
    "RULE-18": (
        _COMPUTES,
        "Use mixed precision on the GPU: torch.autocast('cuda', dtype=torch.bfloat16)",
    ),
    "RULE-19": (
        ("Copying batches to the GPU takes {transfer_share:.0%} of a step",),
        "Optimize data transfer: minimize CPU-GPU transfers, keep tensors on the device, copy "
        "with non_blocking=True from pinned memory",
    ),
    "RULE-20": (
        ("torch holds {held_times:.1f} times the memory of the GPU that it uses",),
        "GPU memory management: torch.cuda.empty_cache() between phases, "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ),
    "RULE-21": (
        (
            "{unexplained_share:.0%} of a training step is not told apart: {missing} is not "
            "recorded",
        ),
        "Profile forward/backward passes: {switches}",
    ),
    "RULE-22": (
        (
            "{part} takes {backward_share:.0%} of the backward pass and has "
            "{parameter_share:.0%} of what is learned",
        ),
        "Optimize model architecture: simplify {part}, or use a cheaper kind of layer",
    ),
    "RULE-23": (
        ("The optimizer step takes {update_ms:.1f} ms, {optimizer_share:.0%} of a training step",),
        "Use efficient optimizers: fused=True or foreach=True, or a simpler optimizer",
    ),
    "RULE-24": (
        ("A batch of {does_not_fit} samples does not fit into memory",),
        "Gradient accumulation: batches of {batch_size}, and an update every {every} of them",
    ),
    "RULE-25": (
        _COMPUTES,
        "Mixed precision training: performance_config={{'mixed_precision': True}} enables "
        "automatic mixed precision",
    ),
    "RULE-26": (
        ("High memory usage: the process has {memory_share:.0%} of the machine's memory",),
        MEMORY,
    ),
    "RULE-26 batch": (
        ("High memory usage: a batch of {subject} takes {avg_memory_per_batch:.0f} MB",),
        MEMORY,
    ),
    "RULE-27": (
        (
            "Slow data loading: {subject} takes {avg_batch_time:ms1} ms for a batch",
            ", {wait_share:.0%} of a training step",
            ", {low_rate:.1f} samples/second",
        ),
        f"{LOADING} of {{subject}}",
    ),
    "RULE-28": (("GPU underutilization: it computes {gpu_utilization:.0f} % of the time",), GPU),
    "RULE-29": (
        (
            "CPU bottleneck: {cpu_share:.0%} of the cores are busy while the GPU computes "
            "{gpu_utilization:.0f} % of the time",
        ),
        CPU,
    ),
    "RULE-59": (
        ("Section {subject} takes {average_s:.2f} s a call",),
        "Optimize {subject}: it averages {average_s:.2f} s",
    ),
    "RULE-60": (
        ("{subject} was called {calls} times, {mean_us:.1f} µs each",),
        "Batch the calls of {subject}, or consider caching",
    ),
}

# Under which name the part of a subject is evidence.
PART = {"RULE-13 transform": "transform", "RULE-22": "layer"}


class _Seconds(float):
    """A number of seconds that knows ``{:ms1}``: milliseconds with one decimal."""

    def __format__(self, how: str) -> str:
        if how.startswith("ms"):
            return f"{self * 1e3:.{how[2:]}f}"
        return super().__format__(how)


def say(text: str, words: dict[str, Any]) -> tuple[str, str]:
    """Return the description and what to do; ``words`` are the numbers and names of it."""
    clauses, advice = TEXTS[text]
    known = {
        name: _Seconds(value) if isinstance(value, float) else value
        for name, value in words.items()
        if value is not None
    }
    said = []
    for clause in clauses:
        try:
            said.append(clause.format_map(known))
        except KeyError:
            continue
    return "".join(said), advice.format_map(known)
