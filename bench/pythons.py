"""What the suites of the Python side share: the Pythons there are, and promises about them.

Each Python runs a script of bench/python in a process of its own, with the extension of the bench
build. A script measures its cases in turn, round by round, and prints one JSON object: ``rounds``
(nanoseconds, one figure a round), ``absent`` (cases whose rival is not installed, and why) and
``missing`` (cases that need something of ours that this build does not have).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import ROOT, Bench, BenchError, Result, Verdict, at_most, number, spread

ALL = ("3.9", "3.10", "3.11", "3.12", "3.13")
# Those that promises are made about.
PROMISED = ("3.11", "3.12", "3.13")
NOT_BUILT = "not in this build"

Rounds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Python:
    """An interpreter, and the one of the same version that has the rivals' packages."""

    version: str
    path: Path
    rivals: Path | None


def find(version: str) -> Python | None:
    """Return the Python of this version that tools/setup.sh has made an environment for."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        path = Path(sys.executable)
    else:
        path = ROOT / f".venv-{version}" / "bin" / "python"
    if not path.exists():
        return None
    rivals = ROOT / f".venv-bench-{version}" / "bin" / "python"
    return Python(version, path, rivals if rivals.exists() else None)


def is_built(bench: Bench, version: str) -> bool:
    """Say whether the build has the extension for this Python."""
    tag = "cpython-" + version.replace(".", "")
    return any((bench.build / "python" / "stepwatch").glob(f"_core.{tag}-*.so"))


def environment(bench: Bench) -> dict[str, str]:
    """Return what a script needs to find the extension of the build."""
    path = [bench.build / "python", bench.build / "bench" / "python"]
    return {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONHASHSEED": "0"}


def script(name: str) -> Path:
    """Return the path of a script that the measured Python runs."""
    return ROOT / "bench" / "python" / f"{name}.py"


def measure(
    bench: Bench,
    name: str,
    versions: Sequence[str],
    processes: int,
    arguments: Sequence[str],
    rivals: bool = False,
) -> dict[str, Result]:
    """Run a script in several processes of each Python, in turn, and join their rounds.

    ``rivals``: with the environment that has the packages we compare with, where it is there.
    """
    found: dict[str, Result] = {}
    for _ in range(processes):
        for version in versions:
            python = find(version)
            so_far = found.setdefault(version, {"rounds": {}})
            if python is None:
                so_far["why"] = "this Python is not here"
            elif not is_built(bench, version):
                so_far["missing_all"] = NOT_BUILT
            else:
                path = python.rivals if rivals and python.rivals else python.path
                with bench.scratch(memory=True) as scratch:
                    command: list[str | Path] = [path, script(name), scratch / "run", *arguments]
                    printed = bench.run_json(command, environment(bench))
                for case, figures in printed.pop("rounds").items():
                    so_far["rounds"].setdefault(case, []).extend(figures)
                so_far.update(printed)
    return found


@dataclass(frozen=True)
class Promise:
    """A figure that is made of the rounds of some cases and must not exceed a limit.

    ``limits`` has one for each Python that something is promised about. ``least`` is the figure
    of a yardstick, which needs the cases ``least_needs``: where that is above the limit as well,
    nothing can keep the promise on this machine, and it is not counted as broken. Where the
    yardstick is below the limit, it is no excuse.
    """

    key: str
    text: str
    needs: tuple[str, ...]
    figure: Callable[[Rounds], list[float]]
    limits: Mapping[str, float]
    unit: str = ""
    least: Callable[[Rounds], list[float]] | None = None
    least_needs: tuple[str, ...] = ()


def limited(limit: float, *versions: str) -> dict[str, float]:
    """Return one limit for these Pythons, or for those that promises are made about."""
    return dict.fromkeys(versions or PROMISED, limit)


def over(case: str, base: str) -> Callable[[Rounds], list[float]]:
    """Make the figure: what a case costs more than another, in the same round."""
    return lambda rounds: [a - b for a, b in zip(rounds[case], rounds[base])]


def share(
    above: Callable[[Rounds], list[float]], below: Callable[[Rounds], list[float]]
) -> Callable[[Rounds], list[float]]:
    """Make the figure: the ratio of two figures of the same round."""
    return lambda rounds: [a / b for a, b in zip(above(rounds), below(rounds)) if b > 0]


def has(found: Result, needs: Sequence[str]) -> bool:
    """Say whether all these cases were measured."""
    return all(case in found["rounds"] for case in needs)


def summarize(
    found: Mapping[str, Result], promises: Sequence[Promise], bases: Mapping[str, str]
) -> Result:
    """Return spreads instead of rounds: of the cases, of what they add, and of the promises.

    ``bases`` says what the cost of a case is counted from: the first entry that its name begins
    with names the other case.
    """
    versions = {}
    for version, one in found.items():
        rounds = one["rounds"]
        made: Result = {key: value for key, value in one.items() if key != "rounds"}
        made["ns"] = {case: spread(figures) for case, figures in rounds.items()}
        made["over_ns"] = {}
        for case in rounds:
            base = next(base for start, base in bases.items() if case.startswith(start))
            made["over_ns"][case] = spread(over(case, base)(rounds))
        made["promised"] = {
            promise.key: spread(promise.figure(rounds))
            for promise in promises
            if has(one, promise.needs)
        }
        made["least"] = {
            promise.key: spread(promise.least(rounds))
            for promise in promises
            if promise.least and has(one, (*promise.needs, *promise.least_needs))
        }
        versions[version] = made
    return {"versions": versions}


def why_not(one: Result, needs: Sequence[str]) -> tuple[str, bool | None]:
    """Say why cases were not measured, and whether that breaks a promise about them."""
    if "why" in one:
        return one["why"], None
    if "missing_all" in one:
        return one["missing_all"], False
    for case in needs:
        if case in one.get("missing", {}):
            return f"{one['missing'][case]} is {NOT_BUILT}", False
    for case in needs:
        if case in one.get("absent", {}):
            return f"not measured: {one['absent'][case]}", None
    raise BenchError(f"no reason is known why {', '.join(needs)} were not measured")


def verdicts(result: Result, promises: Sequence[Promise]) -> list[Verdict]:
    """Judge the promises, each for each of its Pythons."""
    made = []
    for promise in promises:
        for version, limit in promise.limits.items():
            one = result["versions"].get(version, {"why": "this Python is not here"})
            text = f"Python {version}: {promise.text}"
            figure = one.get("promised", {}).get(promise.key)
            if figure is None:
                why, ok = why_not(one, promise.needs)
                made.append(Verdict(f"{text}: {why}", ok, final=True))
            else:
                text += f" (p10 {number(figure['p10'])}, p90 {number(figure['p90'])})"
                made.append(at_most(text, figure["median"], limit, promise.unit))
                least = one.get("least", {}).get(promise.key)
                if not made[-1].ok and least and least["median"] > limit:
                    text = f"{made[-1].text}, which the yardstick misses too"
                    made[-1] = Verdict(f"{text} ({number(least['median'])})", None)
    return made


def cell(one: Result, case: str, figures: str = "over_ns", part: str = "median") -> str:
    """Return one figure for a table, or why there is none."""
    if case in one.get(figures, {}):
        return number(one[figures][case][part])
    try:
        why, _ = why_not(one, (case,))
    except BenchError:
        return "-"
    return NOT_BUILT if why.endswith(NOT_BUILT) else "not measured"


def table_rows(
    result: Result, cases: Mapping[str, str], figures: str = "over_ns"
) -> tuple[tuple[str, ...], ...]:
    """Return a row for each case: the median and the range of each Python."""
    rows = []
    for case, name in cases.items():
        cells = []
        for one in result["versions"].values():
            text = cell(one, case, figures)
            if case in one.get(figures, {}):
                low, high = cell(one, case, figures, "p10"), cell(one, case, figures, "p90")
                text += f" ({low} … {high})"
            cells.append(text)
        rows.append((name, *cells))
    return tuple(rows)


def head(result: Result, first: str) -> tuple[str, ...]:
    """Return the first line of a table with one column for each Python."""
    return (first, *result["versions"])


def notes(result: Result) -> tuple[str, ...]:
    """Return sentences about what was not measured."""
    made: dict[str, list[str]] = {}
    for version, one in result["versions"].items():
        for why in {*one.get("absent", {}).values(), *filter(None, [one.get("why")])}:
            made.setdefault(why, []).append(version)
    return tuple(
        f"Not measured with Python {', '.join(versions)}: {why}." for why, versions in made.items()
    )


def promised_rows(
    result: Result, promises: Sequence[Promise], versions: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Return a row for each promise: what was found and the limit."""
    rows = []
    for promise in promises:
        cells = []
        for version in versions:
            figure = result["versions"].get(version, {}).get("promised", {}).get(promise.key)
            left_out = figure is None or (promise.limits and version not in promise.limits)
            cells.append("-" if left_out else number(figure["median"]) + promise.unit)
        limits = sorted(set(promise.limits.values()))
        text = " or ".join(number(limit) for limit in limits)
        rows.append((promise.text, *cells, text + promise.unit if limits else "published"))
    return tuple(rows)
