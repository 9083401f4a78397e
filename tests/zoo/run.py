"""Run the zoo: is the verdict right?

python tests/zoo/run.py [--only NAME]… [--repeat N] [--plain] [--json FILE] [--keep DIR]
python tests/zoo/run.py --judge DIR [--only NAME]… [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench.harness import Table, Verdict, say  # noqa: E402
from tests.zoo.execute import execute, reopen  # noqa: E402
from tests.zoo.manifest import ManifestError, Program, read_manifest  # noqa: E402
from tests.zoo.score import Row, Score, judge, score  # noqa: E402


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="this program alone")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run each N times")
    parser.add_argument(
        "--plain", action="store_true", help="also alone, to see what recording costs"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows and score there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the run directories there")
    parser.add_argument(
        "--judge",
        type=Path,
        metavar="DIR",
        help="run nothing: report again on what --keep left there",
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--manifest", type=Path, default=Path(__file__).parent / "zoo.toml")
    options = parser.parse_args(arguments)
    options.manifest = options.manifest.resolve()
    if options.repeat < 1:
        parser.error("--repeat needs a number from 1 on")
    if options.judge:
        if options.keep or options.plain or options.repeat != 1:
            parser.error("--judge runs nothing: it takes no --keep, --plain or --repeat")
        if not options.judge.is_dir():
            parser.error(f"--judge: there is no folder {options.judge}")
        options.judge = options.judge.resolve()
    if options.keep:
        options.keep = options.keep.resolve()
        options.keep.mkdir(parents=True, exist_ok=True)
    return options


def choose(programs: list[Program], only: list[str] | None) -> list[Program]:
    """Return the programs that were asked for."""
    if only is None:
        return programs
    known = {program.name: program for program in programs}
    missing = [name for name in only if name not in known]
    if missing:
        raise ManifestError(f"there is no program {missing[0]}; there are {', '.join(known)}")
    return [known[name] for name in only]


def folders(program: Program, keep: Path) -> tuple[Path, Path]:
    """Return the run directories of a program and of its twin."""
    return keep / program.name, keep / f"{program.name}-fixed"


def run_once(program: Program, cli: Path, plain: bool, keep: Path | None) -> Row:
    """Run a program and its twin, one after the other."""
    kept = folders(program, keep) if keep else (None, None)
    alone = [
        execute(command, program.folder, None) if plain and command else None
        for command in (program.command, program.fixed)
    ]
    bad = execute(program.command, program.folder, cli, kept[0])
    fixed = execute(program.fixed, program.folder, cli, kept[1]) if program.fixed else None
    return judge(program, bad, fixed, alone)


def judge_again(program: Program, cli: Path, kept: Path) -> Row:
    """Judge what was kept of a program and its twin."""
    run, twin = folders(program, kept)
    return judge(program, reopen(run, cli), reopen(twin, cli) if program.fixed else None)


def kept_ones(programs: Sequence[Program], kept: Path) -> list[Program]:
    """Return the programs of which something was kept, and name the others."""
    there = [one for one in programs if any(path.exists() for path in folders(one, kept))]
    missing = [one.name for one in programs if one not in there]
    if missing:
        say(f"left out, as there is no recording of them: {', '.join(missing)}")
    return there


def rows_of(programs: Sequence[Program], cli: Path, options: argparse.Namespace) -> list[Row]:
    """Run or judge again, and say what went wrong."""
    rows: list[Row] = []
    for program in [program for _ in range(options.repeat) for program in programs]:
        if options.judge:
            rows.append(judge_again(program, cli, options.judge))
        else:
            say(program.name)
            rows.append(run_once(program, cli, options.plain, options.keep))
        for problem in rows[-1].problems:
            say(f"{program.name}: {problem}")
    return rows


def times(value: float | None) -> str:
    """Return a speedup as text."""
    return "-" if value is None else f"{value:.2f}"


def mark(value: bool | None) -> str:
    """Return yes, no, or nothing to say."""
    return {True: "yes", False: "NO", None: "-"}[value]


def cells(row: Row) -> tuple[str, ...]:
    """Return the line of a program in the table."""
    between = "-" if row.low is None else f"{times(row.low)}…{times(row.high)}"
    return (
        row.name,
        row.framework,
        "healthy" if row.healthy else "|".join(row.kinds),
        row.found or "-",
        mark(None if row.healthy else row.first),
        mark(row.where),
        ",".join(row.alarms) or "-",
        times(row.measured),
        times(row.own),
        times(row.predicted),
        between,
        "-" if row.error is None else f"{row.error:.0f} %",
    )


HEAD = (
    "program",
    "framework",
    "planted",
    "found first",
    "right",
    "where",
    "alarms",
    "measured",
    "own clock",
    "predicted",
    "range",
    "error",
)


def percent(value: float | None) -> str:
    """Return a median as text."""
    return "not known" if value is None else f"{value:.1f} %"


def table(rows: Sequence[Row], total: Score) -> Table:
    """Return everything that is to be shown."""
    notes = (
        f"found first {total.first}/{total.planted}, "
        f"where right {total.places_right}/{total.places}",
        f"false alarms {total.alarmed}/{total.quiet} (fixed and healthy programs)",
        f"predicted {total.predictions}/{total.planted}, median error {percent(total.error)}, "
        f"measured within the range {total.within}/{total.predictions}",
        f"overhead, median: {percent(total.overhead)} by its own account, "
        f"{percent(total.slower)} by the programs' clocks",
    )
    return Table("zoo", HEAD, tuple(cells(row) for row in rows), notes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and judge."""
    options = parse(arguments)
    try:
        programs = choose(read_manifest(options.manifest), options.only)
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    cli = options.build.resolve() / "src" / "cli" / "stepwatch"
    if not cli.is_file():
        print(f"{cli} is not there; make build makes it", file=sys.stderr)
        return 2
    if options.judge:
        programs = kept_ones(programs, options.judge)
        if not programs:
            return 2
    rows = rows_of(programs, cli, options)
    total = score(rows)
    print(table(rows, total).text())
    for text, ok in total.promises():
        print(Verdict(text, ok))
    if options.json:
        document = {
            "schema": "stepwatch.zoo/1",
            "score": asdict(total),
            "rows": [row.as_dict() for row in rows],
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return total.code


if __name__ == "__main__":
    sys.exit(main())
