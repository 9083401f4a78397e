"""Guide 3: what the operations of a training say together: a table, its bottlenecks, advice.

Of a profiler, or of what a W&B run has stored:

    python -m stepwatch.compat.training_analysis wandb/offline-run-…/run-….wandb --plot times.png
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
from pathlib import Path

import stepwatch
from stepwatch.compat import _wandb, training_profiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

__all__ = ["Analysis", "analyze"]

HIGH_VARIANCE = 2.0  # p95 beyond this many means
VARIANCE_CALLS = 20  # fewer calls do not tell
HIGH_FREQUENCY = 1000  # calls

# Names of what is a whole step; what lies outside of it: waiting for data, validation, compiling.
_STEPS = (training_profiler.STEP, training_profiler.TORCH_STEP, "train_step", "step_total", "total")
_DATA = (training_profiler.DATA, "data_loading", "data_wait")
_LOSSES = (training_profiler.LOSS, "loss_computation", "forward_backward")
_OUTSIDE = (training_profiler.VALIDATION, training_profiler.COMPILATION)
_COLUMNS = ("mean", "std", "min", "max", "total", "count", "p50", "p95", "p99")


class UnknownStepError(ValueError):
    """There is no such operation."""


class Analysis:
    """Operations with their statistics, longest total first; times are in seconds."""

    def __init__(self, components: list[dict[str, Any]], step: str | None = None) -> None:
        """Take rows with ``name`` and the statistics; ``step`` names the one that is a step."""
        self.components = sorted(components, key=lambda row: (-row["total"], row["name"]))
        known = {row["name"]: row for row in components}
        self.step = step or next((name for name in _STEPS if name in known), None)
        if self.step is not None and self.step not in known:
            there = f"there are {', '.join(known)}" if known else "nothing was measured"
            raise UnknownStepError(f"there is no operation {self.step!r}: {there}")
        self._whole = self._whole_of(known)
        for row in self.components:
            row["share"] = None
            if self._whole and row["name"] not in _OUTSIDE:
                row["share"] = row["total"] / self._whole

    def _whole_of(self, known: dict[str, dict[str, Any]]) -> float:
        """Return the time of all steps: waiting for data, and the step itself or its parts."""
        if self.step is None:
            return float(sum(r["total"] for r in known.values() if r["name"] not in _OUTSIDE))
        waits = sum(known[name]["total"] for name in _DATA if name in known and name != self.step)
        return float(known[self.step]["total"] + waits)

    def row(self, name: str) -> dict[str, Any] | None:
        """Return the statistics of an operation."""
        return next((row for row in self.components if row["name"] == name), None)

    def top(self, count: int = 3) -> list[dict[str, Any]]:
        """Return the operations that took most, apart from the step as a whole."""
        return [row for row in self.components if row["name"] != self.step][:count]

    @property
    def high_variance(self) -> list[str]:
        """Operations whose slow calls take more than twice the mean: p95 > 2 x mean."""
        return [
            row["name"]
            for row in self.components
            if row["p95"] is not None
            and row["count"] >= VARIANCE_CALLS
            and row["p95"] > HIGH_VARIANCE * row["mean"]
        ]

    @property
    def high_frequency(self) -> list[str]:
        """Operations that were called more than 1000 times."""
        return [row["name"] for row in self.components if row["count"] > HIGH_FREQUENCY]

    @property
    def advice(self) -> list[dict[str, Any]]:
        """What to try, each as ``operation``, ``why``, ``try`` (sentences) and ``rules``."""
        found: list[dict[str, Any]] = []
        for row in self.components:
            for rule in _ADVICE:
                why = rule.why(row, self)
                if not why:
                    continue
                if not found or (found[-1]["operation"], found[-1]["why"]) != (row["name"], why):
                    found.append({"operation": row["name"], "why": why, "try": [], "rules": []})
                found[-1]["try"] += rule.texts
                found[-1]["rules"] += rule.rules
        return found

    def unexplained(self) -> float | None:
        """Return the share of the step that none of the other operations explains."""
        row = self.row(self.step) if self.step is not None else None
        if row is None or not row["total"]:
            return None
        outside = (self.step, *_DATA, *_OUTSIDE)
        parts = sum(r["total"] for r in self.components if r["name"] not in outside)
        return max(0.0, 1.0 - float(parts) / float(row["total"]))

    def table(self) -> str:
        """Return a table of all operations as text."""
        head = ("Component", "Mean (s)", "Total (s)", "Count", "P95 (s)", "% of step")
        lines = [
            (
                row["name"],
                f"{row['mean']:.4f}",
                f"{row['total']:.2f}",
                str(row["count"]),
                "-" if row["p95"] is None else f"{row['p95']:.4f}",
                "-" if row["share"] is None else f"{100 * row['share']:.1f}",
            )
            for row in self.components
        ]
        widths = [max(len(line[at]) for line in (head, *lines)) for at in range(len(head))]
        return "\n".join(
            "  ".join(
                text.ljust(width) if at == 0 else text.rjust(width)
                for at, (text, width) in enumerate(zip(line, widths))
            ).rstrip()
            for line in (head, *lines)
        )

    def report(self) -> str:
        """Return the table, the bottlenecks, what stands out, and advice."""
        if not self.components:
            return "nothing was measured"
        lines = [self.table(), "", "Top bottlenecks:"]
        for number, row in enumerate(self.top(), 1):
            share = "" if row["share"] is None else f", {100 * row['share']:.1f} % of step"
            lines.append(f"  {number}. {row['name']}: {row['total']:.2f}s{share}")
        if self.high_variance:
            lines.append(f"High variance (p95 > 2 x mean): {', '.join(self.high_variance)}")
        if self.high_frequency:
            lines.append(f"High frequency (> 1000 calls): {', '.join(self.high_frequency)}")
        for advice in self.advice:
            lines += ["", f"{advice['operation']}: {advice['why']}"]
            lines += [f"  - {text}" for text in advice["try"]]
        return "\n".join(lines)

    def plot(self, path: str | os.PathLike[str]) -> str:
        """Draw means, shares of the step, p95 and counts in four fields; .svg or .png."""
        from stepwatch import charts

        within = [row for row in self.components if row["name"] not in _OUTSIDE]

        def bars(key: str, rows: list[dict[str, Any]], title: str, unit: str | None) -> Any:
            found = {row["name"]: row[key] for row in rows if row[key] is not None}
            return charts.bars(None, found, title=title, unit=unit, empty="nothing was measured")

        shares = [
            {**row, "share": None if row["share"] is None else 100 * row["share"]} for row in within
        ]
        charts.grid(
            os.fspath(path),
            [
                bars("mean", within, "Mean time", "s"),
                bars("share", shares, "Share of step", "%"),
                bars("p95", within, "95th percentile", "s"),
                bars("count", self.components, "Calls", None),
            ],
            columns=2,
        )
        return os.fspath(path)


# Advice ------------------------------------------------------------------------------------------


class _Rule:
    """Applies to operations of these names beyond a share of the step, or a mean in seconds."""

    def __init__(
        self,
        names: tuple[str, ...],
        texts: tuple[str, ...],
        rules: tuple[str, ...] = (),
        *,
        share: float | None = None,
        mean: float | None = None,
    ) -> None:
        self.names, self.texts, self.rules = names, texts, rules
        self.share, self.mean = share, mean

    def why(self, row: dict[str, Any], _: Analysis) -> str | None:
        if row["name"] not in self.names:
            return None
        if self.share is not None and row["share"] is not None and row["share"] > self.share:
            return f"{100 * row['share']:.1f} % of step (more than {100 * self.share:.0f} %)"
        if self.mean is not None and row["mean"] > self.mean:
            return f"{1000 * row['mean']:.1f} ms on average (more than {1000 * self.mean:.0f} ms)"
        return None


class _Step(_Rule):
    """The step itself: most of it is not explained by parts that were measured."""

    def why(self, row: dict[str, Any], whole: Analysis) -> str | None:
        left = whole.unexplained() if row["name"] == whole.step else None
        if left is None or left <= 0.3 or (row["share"] or 0.0) <= 0.5:
            return None
        return f"no operation inside explains {100 * left:.0f} % of it"


class _InJax(_Rule):
    """As above, where JAX compiles the step."""

    def why(self, row: dict[str, Any], whole: Analysis) -> str | None:
        return super().why(row, whole) if whole.step != training_profiler.TORCH_STEP else None


class _Compiling(_Rule):
    """Compiling goes on after it should be done, or takes much of the time."""

    def why(self, row: dict[str, Any], whole: Analysis) -> str | None:
        if row["name"] != training_profiler.COMPILATION:
            return None
        share = row["total"] / (row["total"] + whole._whole)
        return f"{100 * share:.0f} % of the time, {row['count']} times" if share > 0.1 else None


class _Validation(_Rule):
    def why(self, row: dict[str, Any], whole: Analysis) -> str | None:
        if row["name"] != training_profiler.VALIDATION:
            return None
        share = row["total"] / (row["total"] + whole._whole)
        return f"{100 * share:.0f} % of the time" if share > 0.2 else None


_ADVICE: tuple[_Rule, ...] = (
    _Rule(
        _DATA,
        (
            "increase num_workers in the DataLoader",
            "use pin_memory=True where there is a GPU",
            "preprocess data offline",
        ),
        ("RULE-36", "RULE-37", "RULE-38"),
        share=0.2,
    ),
    _Rule(("data_loading",), ("prefetch batches, or cache them",), mean=0.05),
    _Rule(
        _LOSSES,
        ("reduce the model's complexity", "use mixed precision"),
        ("RULE-39", "RULE-40"),
        share=0.5,
    ),
    _InJax(
        _LOSSES,
        ("optimize JAX compilation: constant shapes, constant static arguments",),
        ("RULE-41",),
        share=0.5,
    ),
    _Compiling(
        (),
        (
            "keep shapes and static arguments constant: each new one compiles again",
            "set jax_compilation_cache_dir, so that the next run need not compile",
        ),
        ("RULE-41",),
    ),
    _Step(
        (),
        (
            "profile individual components of the step",
            "try other batch sizes",
            "check for unnecessary computations",
        ),
        ("RULE-42", "RULE-43", "RULE-44"),
    ),
    _Rule(("training_step",), ("try a smaller batch or a smaller model",), mean=0.1),
    _Rule(("model_partition",), ("partition the model once and keep the parts",), mean=0.01),
    _Rule(("optimizer_update",), ("try a simpler optimizer",), ("RULE-23",), mean=0.01),
    _Rule((training_profiler.UPDATE,), ("update several batches at once",), mean=0.01),
    _Rule(
        ("forward_pass",),
        ("try a smaller batch, model parallelism or another architecture",),
        share=0.3,
    ),
    _Rule(
        ("backward_pass",),
        ("try gradient checkpointing or mixed precision",),
        ("RULE-63",),
        share=0.3,
    ),
    _Validation((), ("validate less often",), ("RULE-62",)),
)  # fmt: skip


# Sources -----------------------------------------------------------------------------------------


def analyze(source: Any = None, *, step: str | None = None) -> Analysis:
    """Analyze a profiler, or the stored history of a run.

    ``source`` is a :class:`TrainingProfiler` (default: the module's own), the rows of a history
    (dicts), its columns (a dict of lists or a DataFrame), a run of wandb's API, or a file:
    ``.wandb``, ``.csv``, ``.json`` or ``.jsonl``. Columns ``timing_X`` and ``timing_step_X`` hold
    a time each; ``profiling/X_total_time`` and ``_count`` grow, and give the mean of each stretch
    between two rows.
    """
    if source is None:
        source = training_profiler.get_profiler()
    if isinstance(source, training_profiler.TrainingProfiler):
        found = _statistics(source.native)
        for name, figures in source.get_summary().items():
            if name not in {row["name"] for row in found}:
                found.append(_derived(name, figures))
        return Analysis(found, step)
    if isinstance(source, stepwatch.Profiler):
        return Analysis(_statistics(source), step)
    return Analysis(_statistics(_from_columns(_columns(source))), step)


def _statistics(native: stepwatch.Profiler) -> list[dict[str, Any]]:
    names = {"total": "total_ns", "mean": "mean_ns", "std": "std_ns", "min": "min_ns"}
    names.update(max="max_ns", p50="p50_ns", p95="p95_ns", p99="p99_ns")
    found = []
    for row in native.rows():
        if row["calls"]:
            values: Mapping[str, Any] = row
            times = {
                key: None if values[name] is None else values[name] / 1e9
                for key, name in names.items()
            }
            found.append({"name": row["name"], "count": row["calls"], **times})
    return found


def _derived(name: str, figures: Mapping[str, float]) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    row.update(name=name, count=figures["count"])
    row.update(mean=figures["avg_time"], total=figures["total_time"])
    return row


def _from_columns(columns: Mapping[str, Sequence[Any]]) -> stepwatch.Profiler:
    """Put stored times into a profiler, which has the statistics."""
    native = stepwatch.Profiler("history")
    for column, values in columns.items():
        if column.startswith("timing_"):
            name = column[len("timing_") :]
            name = name[len("step_") :] if name.startswith("step_") else name
            for value in _numbers(values):
                native.add(name, value)
        elif column.startswith("profiling/") and column.endswith("_total_time"):
            name = column[len("profiling/") : -len("_total_time")]
            counts = columns.get(f"profiling/{name}_count", ())
            _add_growth(native, name, list(zip(values, counts)))
    return native


def _add_growth(native: stepwatch.Profiler, name: str, pairs: Iterable[tuple[Any, Any]]) -> None:
    before = (0.0, 0)
    for total, count in pairs:
        if not _is_number(total) or not _is_number(count):
            continue
        if count < before[1] or total < before[0]:
            before = (0.0, 0)  # It was reset.
        calls = int(count - before[1])
        if calls > 0:
            native.add(name, total - before[0], count=calls)
        before = (total, count)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _numbers(values: Iterable[Any]) -> list[float]:
    return [float(value) for value in values if _is_number(value) and value >= 0]


def _columns(source: Any) -> Mapping[str, Sequence[Any]]:
    if isinstance(source, (str, os.PathLike)):
        source = _file(os.fspath(source))
    elif hasattr(source, "scan_history"):
        source = list(source.scan_history())
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        return {str(name): list(source[name]) for name in source.columns}
    if isinstance(source, dict):
        return source
    try:
        rows = [dict(row) for row in source]
    except (TypeError, ValueError):
        raise TypeError(
            f"a history is rows (dicts), columns or a file, not {type(source).__name__}"
        ) from None
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _file(path: str) -> Any:
    if path.endswith(".wandb"):
        return _wandb.history(path)
    with Path(path).open(encoding="utf-8", newline="") as file:
        if path.endswith(".csv"):
            return [
                {key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)
            ]
        try:
            if path.endswith(".jsonl"):
                return [json.loads(line) for line in file if line.strip()]
            return json.load(file)
        except ValueError as error:
            raise ValueError(
                f"{path} is no history: a file ends in .wandb, .csv, .jsonl or .json ({error})"
            ) from None


def _value(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report of a stored history."""
    parser = argparse.ArgumentParser(
        prog="python -m stepwatch.compat.training_analysis",
        description="Shows what the timing columns of a W&B run's history say.",
    )
    parser.add_argument("history", help="a file: .wandb of an offline run, .csv, .json or .jsonl")
    parser.add_argument("--step", help="the operation that is a whole step")
    parser.add_argument("--plot", metavar="FILE", help="also draw it, as .png or .svg")
    options = parser.parse_args(arguments)
    if options.plot and not options.plot.lower().endswith((".png", ".svg")):
        print(
            f"{parser.prog}: --plot takes a file that ends in .png or .svg, not {options.plot!r}",
            file=sys.stderr,
        )
        return 2
    try:
        analysis = analyze(options.history, step=options.step)
    except UnknownStepError as error:
        print(f"{parser.prog}: --step: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError, TypeError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 3
    print(analysis.report())
    if options.plot:
        try:
            analysis.plot(options.plot)
        except (OSError, ValueError) as error:
            print(f"{parser.prog}: {error}", file=sys.stderr)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
