"""What the runs of the zoo say about the verdict: found, where, false alarms, gains."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.zoo.execute import Outcome
from tests.zoo.manifest import Program

FOUND_AT_LEAST = 0.95
ERROR_AT_MOST = 15.0

Report = Mapping[str, Any]
Finding = Mapping[str, Any]


@dataclass
class Row:
    """One program, run once with what is planted in it and once without."""

    name: str
    framework: str
    healthy: bool
    kinds: tuple[str, ...]
    problems: list[str] = field(default_factory=list)
    found: str | None = None
    first: bool = False
    where: bool | None = None
    alarms: list[str] = field(default_factory=list)
    measured: float | None = None
    own: float | None = None
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    overhead: list[float] = field(default_factory=list)
    slower: list[float] = field(default_factory=list)

    @property
    def error(self) -> float | None:
        """How far the prediction is off, in percent of the measured speedup."""
        if self.predicted is None or self.measured is None:
            return None
        return 100 * abs(self.predicted - self.measured) / self.measured

    @property
    def within(self) -> bool | None:
        """Whether the measured speedup lies in the predicted range."""
        if self.measured is None or self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    def as_dict(self) -> dict[str, Any]:
        """Return everything for a JSON file."""
        return {**asdict(self), "error_percent": self.error, "within": self.within}


def waited_outside(report: Report, counted: int) -> float:
    """Return the seconds of waiting outside of steps for what steps have handed out.

    Where calls return before their results are there (JAX), a loop may hand out all of an
    epoch and wait at its end: that is the time of its steps. Validation has its own waits.
    """
    phase_of = {
        tuple(section["path"]): section.get("phase") for section in report.get("sections", ())
    }

    def within(path: Sequence[str]) -> set[str | None]:
        return {phase_of.get(tuple(path[:length])) for length in range(1, len(path))}

    waited: float = sum(
        section["total_ms"]
        for section in report.get("sections", ())
        if section.get("phase") == "sync"
        and not within(section["path"]) & {"sync", "validation", "checkpoint"}
    )
    inside: float = sum(
        phase["ms"] or 0.0
        for phase in report.get("steps", {}).get("phases", ())
        if phase["phase"] == "sync"
    )
    return max(0.0, waited - inside * counted) / 1e3


def seconds_a_step(report: Report, compiled: bool = False) -> float | None:
    """Return the time of a step, with its part of what lies between steps, which is what
    predictions are of: validation, checkpoints, the gaps between epochs, and the wait at the end.

    Runs of the same length may differ in how many of their steps were warm-up. Where it is
    about compilations (`compiled`), the warm-up counts: what is left of them is there.
    """
    parts = {part["part"]: part["s"] for part in report.get("timeline", ())}
    steps = report.get("steps", {})
    count = steps.get("count") or 0
    counted = count - (steps.get("warmup") or 0)
    if counted <= 0 or "steps" not in parts:
        return None
    between: float = parts.get("between_steps", 0.0) + parts.get("between_epochs", 0.0)
    beside: float = parts.get("validation", 0.0) + parts.get("checkpoint", 0.0)
    beside += max(between, waited_outside(report, counted))
    if compiled:
        return float((parts.get("warmup", 0.0) + parts["steps"] + beside) / count)
    return float(parts["steps"] / counted + beside / count)


def findings(report: Report) -> list[Finding]:
    """Return the findings; a report without them has none."""
    found = report.get("findings")
    return found if isinstance(found, list) else []


def alarms(report: Report) -> list[str]:
    """Return the kinds of the findings above low."""
    return [found["kind"] for found in findings(report) if found.get("severity") != "low"]


def step_problem(program: Program, outcome: Outcome) -> str | None:
    """Say where the report counts other steps than the program made."""
    if outcome.report is None or outcome.steps is None:
        return None
    count = outcome.report.get("steps", {}).get("count") or 0
    if outcome.steps - program.uncounted <= count <= outcome.steps:
        return None
    return f"{count} steps are in the report, and it made {outcome.steps}"


def judge_finding(row: Row, program: Program, report: Report) -> None:
    """See what comes first of what was found."""
    found = findings(report)
    if not found:
        return
    row.found = found[0]["kind"]
    row.first = row.found in program.kinds
    if program.where is not None:
        row.where = row.first and program.where.matches(found[0].get("where"))
    predicted = found[0].get("predicted")
    if row.first and predicted:
        row.predicted = predicted.get("speedup")
        row.low, row.high = predicted.get("low"), predicted.get("high")


def overhead_of(outcome: Outcome) -> list[float]:
    """Return what the recorder cost by its own account, in percent."""
    if outcome.report is None:
        return []
    percent = outcome.report.get("overhead", {}).get("percent")
    return [] if percent is None else [percent]


def slowdown(recorded: Outcome, plain: Outcome | None) -> list[float]:
    """Return how much longer it trained with the recorder, in percent, by its own clock."""
    if plain is None or not recorded.seconds or not plain.seconds:
        return []
    return [100 * (recorded.seconds / plain.seconds - 1)]


def judge(
    program: Program,
    bad: Outcome,
    fixed: Outcome | None = None,
    plain: Sequence[Outcome | None] = (None, None),
) -> Row:
    """Compare what the runs of a program say with what the manifest does."""
    row = Row(program.name, program.framework, program.healthy, program.kinds)
    named = (
        [("", bad, plain[0])]
        if fixed is None
        else [
            ("", bad, plain[0]),
            ("fixed: ", fixed, plain[1]),
        ]
    )
    for label, outcome, alone in named:
        for text in (
            outcome.error,
            step_problem(program, outcome),
            alone.error and f"alone: {alone.error}" if alone else None,
        ):
            if text:
                row.problems.append(label + text)
        row.overhead += overhead_of(outcome)
        row.slower += slowdown(outcome, alone)
    if program.where is not None:
        row.where = False
    if program.healthy:
        row.alarms = alarms(bad.report) if bad.report else []
        return row
    if bad.report:
        judge_finding(row, program, bad.report)
    if fixed and fixed.report:
        row.alarms = alarms(fixed.report)
    if bad.report and fixed and fixed.report:
        compiled = "recompile" in (row.found, *program.kinds)
        slow = seconds_a_step(bad.report, compiled)
        fast = seconds_a_step(fixed.report, compiled)
        row.measured = slow / fast if slow and fast else None
    if bad.seconds and fixed and fixed.seconds:
        row.own = bad.seconds / fixed.seconds
    return row


@dataclass(frozen=True)
class Score:
    """The figures over all rows. A median without figures is None, and never passes."""

    planted: int
    first: int
    places: int
    places_right: int
    quiet: int
    alarmed: int
    predictions: int
    within: int
    error: float | None
    overhead: float | None
    slower: float | None
    broken: int

    @property
    def code(self) -> int:
        """Return 0, 1 where the verdict is not good enough, 3 where something did not run."""
        if self.broken:
            return 3
        return 0 if all(ok for _, ok in self.promises()) else 1

    def promises(self) -> list[tuple[str, bool]]:
        """Return what the zoo asks for, and whether it holds; what was not run is not asked for."""
        asked = []
        if self.planted:
            asked.append(
                (
                    f"found first: {self.first} of {self.planted}, at least "
                    f"{100 * FOUND_AT_LEAST:.0f} %",
                    self.first >= FOUND_AT_LEAST * self.planted,
                )
            )
            known = "none" if self.error is None else f"{self.error:.1f} %"
            asked.append(
                (
                    f"median error of predictions: {known}, at most {ERROR_AT_MOST:.0f} %",
                    self.error is not None and self.error <= ERROR_AT_MOST,
                )
            )
        asked.append((f"false alarms: {self.alarmed} of {self.quiet}, none", self.alarmed == 0))
        return asked


def median(figures: Sequence[float]) -> float | None:
    """Return the median, None without figures."""
    return statistics.median(figures) if figures else None


def score(rows: Sequence[Row]) -> Score:
    """Add up the rows."""
    planted = [row for row in rows if not row.healthy]
    places = [row for row in planted if row.where is not None]
    errors = [row.error for row in planted if row.error is not None]
    return Score(
        planted=len(planted),
        first=sum(row.first for row in planted),
        places=len(places),
        places_right=sum(bool(row.where) for row in places),
        quiet=len(rows),
        alarmed=sum(bool(row.alarms) for row in rows),
        predictions=sum(row.predicted is not None for row in planted),
        within=sum(row.within is True for row in planted),
        error=median(errors),
        overhead=median([percent for row in rows for percent in row.overhead]),
        slower=median([percent for row in rows for percent in row.slower]),
        broken=sum(bool(row.problems) for row in rows),
    )
