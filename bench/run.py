"""Measure the recorder and the reader, print tables and save the figures as JSON.

python bench/run.py --build build-bench [--check] [SUITE…]
python bench/run.py --build build-bench --markdown     # docs/OVERHEAD.md from saved figures
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import check, page
from bench.harness import Bench, BenchError, Result, Suite, load_result, say
from bench.suites import SUITES

# Our own programs make a load of one to two.
BUSY = 2.0


def show(suite: Suite, result: Result) -> None:
    """Print the tables of a suite."""
    for table in suite.tables(result):
        print(table.text(), end="\n\n", flush=True)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = ", ".join(suite.name for suite in SUITES)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"{names}; default: all")
    parser.add_argument("--build", type=Path, default=Path("build-bench"))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for trying things out")
    parser.add_argument("--check", action="store_true", help="exit code 1 on a broken promise")
    parser.add_argument(
        "--markdown", action="store_true", help="fill docs/OVERHEAD.md from the saved figures only"
    )
    parser.add_argument(
        "--refresh-instructions",
        action="store_true",
        help="record the instruction counts of this build in bench/baselines",
    )
    return parser.parse_args()


def write_page(build: Path) -> int:
    """Fill the page from what has been measured."""
    found = {suite.name: load_result(build, suite.name) for suite in SUITES}
    counts = {suite.name for suite in SUITES if suite.counts}
    results = {}
    for name, result in found.items():
        if result is None:
            say(f"{name}: no figures in {build / 'bench'}; its table stays as it is")
        elif result["machine"]["load"] > BUSY and name not in counts:
            load = result["machine"]["load"]
            say(f"{name}: measured at a load of {load:.1f}, which is not published")
        else:
            results[name] = result
    page.update(results)
    return 0 if results else 1


def measure_all(bench: Bench, suites: Sequence[Suite]) -> int:
    """Measure without judging; what cannot be measured does not stop the rest."""
    failed = []
    for suite in suites:
        try:
            show(suite, check.measure(bench, suite))
        except BenchError as error:
            say(f"{suite.name}: {error}")
            failed.append(suite.name)
    print(f"Figures: {bench.build / 'bench'}/*.json")
    return 2 if failed else 0


def main() -> int:
    """Measure, or write the page."""
    arguments = parse()
    try:
        bench = Bench(
            build=arguments.build.resolve(),
            quick=arguments.quick,
            refresh_instructions=arguments.refresh_instructions,
        )
        suites = check.chosen(arguments.suites)
        if arguments.markdown:
            return write_page(bench.build)
        if os.getloadavg()[0] > 0.5:
            say(f"The load of this machine is {os.getloadavg()[0]:.1f}: the figures may suffer.")
        if arguments.check:
            return check.check(bench, suites, show)
        return measure_all(bench, suites)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
