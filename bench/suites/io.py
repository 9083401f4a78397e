"""What watching calls on files costs: a single call, and a loader that does little else."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict, at_most, number, ratios, spread

CALLS = {
    "read": "pread of 16 bytes",
    "write": "write of 16 bytes to /dev/null",
    "open": "open and close",
    "stream": "fread of 8 bytes, buffered",
}
TOOLS = {
    "plain": "nothing",
    "run": "stepwatch run",
    "io": "stepwatch run --io",
    "patch": "os.open, os.read, os.close wrapped in Python",
    "strace": "strace -c -f",
}
# Beyond the call itself, in ns.
MOST_NS = 100.0
OPEN_MOST_NS = 2000.0


def loader(bench: Bench, folder: Path, tool: str, number_of: int) -> float | None:
    """Return the seconds of reading the files under one tool; None: it is not here."""
    script: list[str | Path] = [pythons.script("read_files"), str(folder / "data"), "200", "20"]
    env: dict[str, str] = {"STEPWATCH_PYTHON": sys.executable}
    words: list[str | Path] = [sys.executable, *script]
    run: list[str | Path] = [bench.command, "run", "--no-report", "-o"]
    run += [folder / f"run{number_of}", "--set", "sampler_hz=0"]
    if tool == "patch":
        words.append("patch")
    elif tool == "strace":
        if shutil.which("strace") is None:
            return None
        words = ["strace", "-c", "-f", "-o", folder / "strace.txt", *words]
    elif tool == "run":
        words = [*run, *script]
    elif tool == "io":
        words = [*run, "--io", *script]
    return float(bench.run(words, env).stdout)


def measure(bench: Bench) -> Result:
    """Measure single calls in one process, and the loader in many that alternate."""
    with bench.scratch(memory=True) as scratch:
        rounds = bench.times(301, 61)
        printed = bench.run_json([bench.program("io"), scratch / "run", str(rounds)])
        found = printed["rounds"]
        calls = {
            name: {
                "raw": spread(found[f"{name}_raw"]),
                "watched": spread(found[f"{name}_watched"]),
                "extra": spread(
                    [b - a for a, b in zip(found[f"{name}_raw"], found[f"{name}_watched"])]
                ),
            }
            for name in CALLS
        }
        seconds: dict[str, list[float]] = {tool: [] for tool in TOOLS}
        turn = 0
        for _ in range(bench.times(7, 3)):
            for tool, taken in seconds.items():
                turn += 1
                value = loader(bench, scratch, tool, turn)
                if value is not None:
                    taken.append(value)
    slower = {tool: ratios(taken, seconds["plain"]) for tool, taken in seconds.items() if taken}
    return {"calls": calls, "loader": slower, "plain_s": spread(seconds["plain"])}


def tables(result: Result) -> list[Table]:
    """Calls with and without, and the loader under each tool."""
    kinds = ("raw", "watched", "extra")
    calls = tuple(
        (name, *(number(result["calls"][key][kind]["median"]) for kind in kinds))
        for key, name in CALLS.items()
    )
    loaders = []
    for tool, name in TOOLS.items():
        found = result["loader"].get(tool)
        cells: tuple[str, ...] = ("not measured", "", "")
        if found:
            cells = tuple(number(found[key]) for key in ("median", "p10", "p90"))
        loaders.append((name, *cells))
    return [
        Table("A call on a file", ("ns", "not watched", "watched", "more"), calls),
        Table(
            "A loader that reads 200 files of 16 KiB, 4 KiB at a time, against nothing",
            ("times as long", "median", "p10", "p90"),
            tuple(loaders),
            ("The files are in memory, so that the calls are as short as they get.",),
        ),
    ]


def verdicts(result: Result) -> list[Verdict]:
    """A call costs less than 100 ns more, and opening a file, whose path is looked up, 2 µs."""
    calls = result["calls"]
    made = [
        at_most(f"watched: {CALLS[name]}", calls[name]["extra"]["median"], MOST_NS, " ns more")
        for name in ("read", "write", "stream")
    ]
    extra = calls["open"]["extra"]["median"]
    made.append(at_most("watched: open and close", extra, OPEN_MOST_NS, " ns more"))
    return made


SUITE = Suite("io", measure, tables, verdicts)
