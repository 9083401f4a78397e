"""What the Lightning guide's callback prints and writes as text."""

from __future__ import annotations

import os
import shlex
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    import stepwatch
    from stepwatch.compat.lightning_guide import ProfilerCallback

_TOP = 10
_BOTTLENECKS = 5
# What the callback itself does between steps, among Lightning's actions.
WRITING = "[ProfilerCallback].write_trace"
_FINDINGS = 3
_NOTES = 6
_USUAL_LEAST = 5
_NAME_WIDTH = 60

# What the guide calls these actions.
_LABELS = {
    "train_dataloader_next": "Data loading",
    "val_next": "Validation data loading",
    "training_step": "Forward pass",
    "backward": "Backward pass",
    "optimizer_step": "Optimizer steps",
    "validation_step": "Validation",
}
# What the guide says to watch: the key here, its words, and the phases of a step. A loader without
# workers makes the batches while it is waited for.
_METRICS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("training_step_time", "Training step time", ()),
    ("data_loading_time", "Data loading time", ("data_wait", "preprocess", "augment", "collate")),
    ("forward_pass_time", "Forward pass", ("forward",)),
    ("backward_pass_time", "Backward pass", ("backward",)),
    ("optimizer_step_time", "Optimizer step", ("optimizer",)),
)


def cuda_available() -> str:
    """Return the guide's line on CUDA, with the reason where there is none."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return "CUDA available: False (torch is not imported)"
    if torch.cuda.is_available():
        return f"CUDA available: True ({torch.cuda.get_device_name()})"
    if torch.version.cuda is None:
        why = f"torch {torch.__version__} is built without CUDA"
    elif os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        why = "CUDA_VISIBLE_DEVICES hides every device"
    else:
        why = "torch finds no usable device; `stepwatch doctor` says more"
    return f"CUDA available: False ({why})"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def beginning(callback: ProfilerCallback) -> str:
    """Return what is said when profiling begins."""
    cycles = callback.repeat_cycles
    many = _count(cycles, "cycle") if cycles else "cycles without end"
    return (
        f"Profiling: {many} of {_count(callback.active_steps, 'active step')}, every "
        f"{_count(callback.schedule_every_n_steps, 'step')} (wait {callback.wait_steps}, "
        f"warm-up {callback.warmup_steps}), to {callback.output_dir}\n{cuda_available()}"
    )


FEWER_FILES = "use fewer cycles or loader workers, or raise the limit (ulimit -n)"
_MANY_FILES = 0.8  # Of the limit.


def _open_files() -> list[str]:
    """Return what to do when this process has nearly as many files open as it may; else nothing."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    except (ImportError, OSError):
        return []
    if limit == resource.RLIM_INFINITY or used <= _MANY_FILES * limit:
        return []
    return [f'Open files: {used} of {limit}; before "Too many open files" appears, {FEWER_FILES}.']


def ending(callback: ProfilerCallback, cycles: int, steps: int) -> str:
    """Return where everything is."""
    lines = [f"Profiling done: {_count(cycles, 'cycle')}, {_count(steps, 'step')} recorded."]
    lines += [f"Trace: {path}" for path in callback.traces]
    if callback.chrome_trace is not None:
        lines.append(f"Chrome trace: {callback.chrome_trace} (load it in chrome://tracing)")
    if callback.summary is not None:
        lines.append(f"Summary: {callback.summary}")
    if callback.run is not None and callback.run.path is not None:
        lines.append(f"Run: stepwatch report {shlex.quote(_short_path(callback.run.path))}")
    lines.append(f"View: tensorboard --logdir={shlex.quote(str(callback.output_dir))}")
    lines += _open_files()
    return "\n".join(lines)


def _short_path(path: str) -> str:
    """Return the path from here, where that is no way up."""
    short = os.path.relpath(path)
    return path if short.startswith(os.pardir) else short


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], rules: Sequence[int]) -> str:
    """Draw a table; ``rules`` are the rows that a line goes under, the head being row 0."""
    lines = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    width = sum(widths) + 3 * len(widths) + 1
    text = ["-" * width]
    for number, line in enumerate(lines):
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(size) for cell, size in zip(line[1:], widths[1:])]
        text.append("| " + " | ".join(cells) + " |")
        if number in rules or number == len(lines) - 1:
            text.append("-" * width)
    return "\n".join(text)


def _shorten(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"


def action_rows(rows: Iterable[Mapping[str, Any]], took: float) -> list[dict[str, Any]]:
    """Return the actions, the longest first, with shares of the whole time in percent."""
    found = []
    for row in rows:
        total, own = row["total_ns"] / 1e9, row["self_ns"] / 1e9
        if not row["calls"]:
            continue
        found.append(
            {
                "action": row["name"],
                "mean_s": total / row["calls"],
                "calls": row["calls"],
                "total_s": total,
                "self_s": own,
                "percent": 100 * total / took,
                "self_percent": 100 * own / took,
            }
        )
    return sorted(found, key=lambda row: -row["total_s"])


def action_table(actions: Sequence[Mapping[str, Any]], took: float) -> str:
    """Return the table that Lightning's simple profiler prints, with self % beside the whole."""
    heads = (
        "Action",
        "Mean duration (s)",
        "Num calls",
        "Total time (s)",
        "Percentage %",
        "Self %",
    )
    calls = sum(row["calls"] for row in actions)
    own = sum(row["self_percent"] for row in actions)
    rows = [("Total", "-", str(calls), f"{took:.5g}", "100", f"{own:.4g}")]
    rows += [
        (
            row["action"],
            f"{row['mean_s']:.5g}",
            str(row["calls"]),
            f"{row['total_s']:.5g}",
            f"{row['percent']:.4g}",
            f"{row['self_percent']:.4g}",
        )
        for row in actions
    ]
    return "FIT Profiler Report\n\n" + _table(heads, rows, (0, 1))


def bottlenecks(actions: Sequence[Mapping[str, Any]]) -> str:
    """Return the list of key bottlenecks: the epochs as a whole, and what takes most itself.

    The largest share comes first, as in the guide. Writing traces is no bottleneck of the program:
    its time stands with the overhead.
    """
    whole = [row for row in actions if row["action"] == "run_training_epoch"]
    rest = [
        row
        for row in actions
        if row not in whole and row["action"] != WRITING and row["self_percent"] > 0
    ]
    rest.sort(key=lambda row: -row["self_percent"])
    chosen = [*whole, *rest][:_BOTTLENECKS]
    chosen.sort(key=lambda row: -row["percent"])
    lines = ["Key bottlenecks:"]
    for number, row in enumerate(chosen, start=1):
        name = row["action"].rpartition(".")[2]
        label = _LABELS.get(name)
        share = f"{row['percent']:.3g}%"
        what = f"{label}: {share} for {name}" if label else f"{name}: {share} of total time"
        lines.append(f"{number}. {what} (self {row['self_percent']:.3g}%)")
    return "\n".join(lines) if len(lines) > 1 else ""


def usual_steps(
    rows: Sequence[Mapping[str, Any]], cycles: Sequence[tuple[int, int]]
) -> list[Mapping[str, Any]]:
    """Return the steps that profiling did not make longer; where these are few, active ones.

    The step before a cycle opens torch's profiler, the one after it closes that and writes.
    """
    active = {step for first, last in cycles for step in range(first, last + 1)}
    edges = {step for first, last in cycles for step in (first - 1, last + 1)}
    whole = [row for row in rows if not row["incomplete"] and row["step"] not in edges - active]
    plain = [row for row in whole if row["step"] not in active and not row["warmup"]]
    if len(plain) >= _USUAL_LEAST:
        return plain
    return [row for row in whole if row["step"] in active] or whole


def step_metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the guide's key metrics in seconds a step; None where one was not measured."""
    found: dict[str, float | None] = {}
    for key, _, phases in _METRICS:
        names = [f"{phase}_ns" for phase in phases] or ["duration_ns"]
        known = [row[name] for row in rows for name in names if row[name] is not None]
        found[key] = sum(known) / len(rows) / 1e9 if known else None
    return found


def metric_lines(metrics: Mapping[str, float | None], count: int) -> str:
    """Return the key metrics as text."""
    whole = metrics.get("training_step_time")
    if not whole:
        return ""
    lines = [f"Key metrics, mean of {_count(count, 'step')}:"]
    for key, label, _ in _METRICS:
        value = metrics[key]
        if value is None:
            lines.append(f"  {label:<19} not measured")
        else:
            lines.append(f"  {label:<19} {value * 1e3:9.3f} ms  {100 * value / whole:5.1f}%")
    return "\n".join(lines)


def findings(document: Mapping[str, Any]) -> str:
    """Return what the verdict says is wrong, the most important first."""
    found = document.get("findings") or []
    lines = ["Findings:"] if found else []
    for finding in found[:_FINDINGS]:
        advice = "; ".join(finding.get("advice", [])[:1])
        lines.append(f"- {finding['title']}" + (f": {advice}" if advice else ""))
    notes = document.get("notes") or []
    lines += ["Notes:"] if notes else []
    lines += [f"- {note}" for note in notes[:_NOTES]]
    return "\n".join(lines)


def overhead(costs: Mapping[str, float], took: float) -> str:
    """Return what profiling cost, in all and by what; costs are in seconds."""
    parts = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in costs.items())
    share = 100 * sum(costs.values()) / took
    percent = f"{share:.0f}" if share >= 10 else f"{share:.2g}"
    return f"Profiling overhead: {percent}% of the time ({parts})"


def costs(
    document: Mapping[str, Any],
    run: stepwatch.Run,
    rows: Sequence[Mapping[str, Any]],
    cycles: Sequence[tuple[int, int]],
    writing: float,
) -> dict[str, float]:
    """Return what recording, torch's profiler and writing took.

    Torch's profiler took what opening, closing and reading it did, and by how much active steps
    are longer than the usual one.
    """
    opened = sum(
        row["number"] or 0
        for row in run.settings
        if row["what"] == "operators" and row["name"] == "overhead_seconds"
    )
    # The recording's own figure has that in it.
    recording = max(0.0, ((document.get("overhead") or {}).get("seconds") or 0.0) - opened)
    active = {step for first, last in cycles for step in range(first, last + 1)}
    longer = [row["duration_ns"] for row in rows if row["step"] in active]
    usual = sorted(row["duration_ns"] for row in usual_steps(rows, cycles))
    if usual:
        opened += max(0, sum(longer) - len(longer) * usual[len(usual) // 2]) / 1e9
    return {"recording": recording, "torch's profiler": opened, "writing traces": writing}


def _operations(run: stepwatch.Run) -> dict[str, dict[str, list[int]]]:
    """Return calls, self and total ns of each operator, by device."""
    found: dict[str, dict[str, list[int]]] = {"cpu": {}, "gpu": {}}
    for row in run.operators:
        entry = found[row["device"]].setdefault(row["name"], [0, 0, 0])
        entry[0] += row["calls"]
        entry[1] += row["self_ns"]
        entry[2] += row["total_ns"]
    return found


def _operation_table(device: str, operations: Mapping[str, Sequence[int]]) -> str:
    whole = sum(entry[1] for entry in operations.values()) or 1
    heads = ("Name", f"Self {device} %", f"Self {device}", f"{device} total", "Mean", "Calls")
    top = sorted(operations.items(), key=lambda item: -item[1][2])[:_TOP]
    rows = [
        (
            _shorten(name),
            f"{100 * own / whole:.2f}",
            _duration(own),
            _duration(total),
            _duration(total / calls),
            str(calls),
        )
        for name, (calls, own, total) in top
    ]
    return _table(heads, rows, (0,))


def _duration(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            return f"{ns / size:.3f} {unit}"
    return f"{ns / 1e3:.3f} us"


def operation_summary(run: stepwatch.Run | None, steps: int) -> str:
    """Return the text of ``profiler_summary.txt``."""
    found = _operations(run) if run is not None else {"cpu": {}, "gpu": {}}
    parts = [f"Profiled steps: {steps}"]
    for device, label in (("cpu", "CPU"), ("gpu", "CUDA")):
        parts.append(f"Top {_TOP} operations by {label} time:")
        if found[device]:
            parts.append(_operation_table(label, found[device]))
        elif device == "gpu":
            parts.append(f"none was recorded. {cuda_available()}")
        else:
            parts.append("none was recorded; notes on stderr say why.")
    return "\n\n".join(parts) + "\n"
