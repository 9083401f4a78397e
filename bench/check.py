"""Measure what is promised and say whether it holds; exit code 1 when something does not.

    python bench/check.py --build build-bench [SUITE…]

A machine that does other things at the same time spoils measurements, in either direction: it slows
us down, and a rival too. A suite with a broken promise is measured again, twice at most; each time
this is said, and what is judged after that carries the number of the try in its verdict.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.harness import (
    Bench,
    BenchError,
    Result,
    Suite,
    Verdict,
    result_file,
    save_result,
    say,
)
from bench.suites import SUITES

ATTEMPTS = 3


def measure(bench: Bench, suite: Suite) -> Result:
    """Measure one suite and save its figures."""
    say(f"{suite.name} …")
    result = {"suite": suite.name, "machine": bench.machine(), **suite.measure(bench)}
    save_result(bench.build, suite.name, result)
    return result


def broken(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the promises that do not hold."""
    return [verdict for verdict in verdicts if verdict.ok is False]


def judge(bench: Bench, suite: Suite, show: Callable[[Suite, Result], None]) -> list[Verdict]:
    """Measure a suite until its promises hold, three times at most."""
    verdicts: list[Verdict] = []
    for attempt in range(1, ATTEMPTS + 1):
        result = measure(bench, suite)
        verdicts = suite.verdicts(result)
        if attempt > 1:
            verdicts = [replace(v, text=f"{v.text} [try {attempt}]") for v in verdicts]
        wrong = broken(verdicts)
        if all(verdict.final for verdict in wrong) or attempt == ATTEMPTS:
            show(suite, result)
            break
        for verdict in wrong:
            if not verdict.final:
                say(f"{suite.name}: {verdict.text}: measured again ({attempt + 1} of {ATTEMPTS})")
    return verdicts


def check(bench: Bench, suites: Sequence[Suite], show: Callable[[Suite, Result], None]) -> int:
    """Judge all suites, print the verdicts and return the exit code."""
    verdicts: list[Verdict] = []
    for suite in suites:
        try:
            verdicts += judge(bench, suite, show)
        except BenchError as error:
            result_file(bench.build, suite.name).unlink(missing_ok=True)
            verdicts.append(Verdict(f"{suite.name}: {error}", False))
    print("Promises")
    for verdict in verdicts:
        print(f"  {verdict}")
    wrong = broken(verdicts)
    for verdict in wrong:
        print(f"bench-check: {verdict.text}", file=sys.stderr)
    return 1 if wrong else 0


def chosen(names: Sequence[str]) -> list[Suite]:
    """Return the suites of these names, or all; raise BenchError for a name that is none."""
    unknown = set(names) - {suite.name for suite in SUITES}
    if unknown:
        known = ", ".join(suite.name for suite in SUITES)
        raise BenchError(f"no suite is called {', '.join(sorted(unknown))}; there are {known}")
    return [suite for suite in SUITES if not names or suite.name in names]


def main() -> int:
    """Check without showing tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="default: all")
    parser.add_argument("--build", type=Path, default=Path("build-bench"))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for trying things out")
    arguments = parser.parse_args()
    try:
        bench = Bench(build=arguments.build.resolve(), quick=arguments.quick)
        return check(bench, chosen(arguments.suites), lambda _suite, _result: None)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
