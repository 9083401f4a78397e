"""What every suite needs: running programs, spreads, tables and verdicts.

All figures are compared within one run on one machine: cases alternate, ratios are taken round by
round, and what is stated of many rounds is their median, with the smallest and the 10th and 90th
percentile beside it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[1]

# What a suite measured, as it is saved to its JSON file.
Result = dict[str, Any]


class BenchError(Exception):
    """A program could not be run or did not print what it should."""


@dataclass(frozen=True)
class Spread:
    """Median of many figures, and how far they lie apart."""

    median: float
    min: float
    p10: float
    p90: float
    count: int


def spread(figures: Sequence[float]) -> dict[str, Any]:
    """Return the spread of ``figures`` as a JSON object."""
    ordered = sorted(figures)
    last = len(ordered) - 1
    return asdict(
        Spread(
            median=statistics.median(ordered),
            min=ordered[0],
            p10=ordered[round(0.1 * last)],
            p90=ordered[round(0.9 * last)],
            count=len(ordered),
        )
    )


def ratios(above: Sequence[float], below: Sequence[float]) -> dict[str, Any]:
    """Return the spread of the ratios of figures that were taken in the same round."""
    return spread([a / b for a, b in zip(above, below)])


@dataclass(frozen=True)
class Table:
    """A table of texts; the columns after the first are aligned to the right."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the table for a terminal."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        out = [self.title]
        for line in lines:
            cells = [line[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
            out.append("  " + "  ".join(cells).rstrip())
        out += [f"  {note}" for note in self.notes]
        return "\n".join(out)

    def markdown(self) -> str:
        """Return the table for docs/OVERHEAD.md."""
        out = [f"**{self.title}**", "", "| " + " | ".join(self.head) + " |"]
        out.append("|---|" + "---:|" * (len(self.head) - 1))
        out += ["| " + " | ".join(row) + " |" for row in self.rows]
        for note in self.notes:
            out += ["", note]
        return "\n".join(out)


@dataclass(frozen=True)
class Verdict:
    """Whether one promise holds. ``ok`` is None when it could not be looked at.

    ``final``: measuring again cannot change it.
    """

    text: str
    ok: bool | None
    final: bool = False

    def __str__(self) -> str:
        word = {True: "ok", False: "BROKEN", None: "skipped"}[self.ok]
        return f"{word:8}{self.text}"


def at_most(text: str, value: float, limit: float, unit: str = "") -> Verdict:
    """Judge a figure that must not exceed a limit."""
    return Verdict(f"{text}: {number(value)}{unit}, at most {number(limit)}{unit}", value <= limit)


def at_least(text: str, value: float, limit: float, unit: str = "") -> Verdict:
    """Judge a figure that must reach a limit."""
    return Verdict(f"{text}: {number(value)}{unit}, at least {number(limit)}{unit}", value >= limit)


def number(value: float) -> str:
    """Return a figure with three significant digits, thousands separated."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


def mib(size: float) -> str:
    """Return bytes in MiB."""
    return f"{size / 2**20:.1f} MiB"


@dataclass
class Finished:
    """A process that has ended."""

    stdout: str
    stderr: str
    code: int
    seconds: float
    cpu_seconds: float
    peak_rss_bytes: int


@dataclass
class Bench:
    """The build that is measured, and how thoroughly."""

    build: Path
    quick: bool = False
    refresh_instructions: bool = False

    def __post_init__(self) -> None:
        if not self.build.is_dir():
            raise BenchError(f"{self.build} does not exist; make bench builds it")

    def program(self, name: str) -> Path:
        """Return the path of a benchmark program."""
        return self._existing(self.build / "bench" / "micro" / name)

    def example(self, name: str) -> Path:
        """Return the path of an example."""
        return self._existing(self.build / "examples" / name)

    @property
    def command(self) -> Path:
        """The path of the stepwatch command."""
        return self._existing(self.build / "src" / "cli" / "stepwatch")

    @property
    def library(self) -> Path:
        """The path of the shared library."""
        return self._existing(self.build / "src" / "libstepwatch.so").resolve()

    def times(self, usual: int, quick: int) -> int:
        """Return how often to do something."""
        return quick if self.quick else usual

    @staticmethod
    def _existing(path: Path) -> Path:
        if not path.exists():
            raise BenchError(f"{path} has not been built")
        return path

    @contextmanager
    def scratch(self, memory: bool = False) -> Iterator[Path]:
        """Give a folder that is removed afterwards: in the build, or in memory if that exists."""
        shm = Path("/dev/shm")
        parent = shm if memory and os.access(shm, os.W_OK) else self.build
        path = Path(tempfile.mkdtemp(prefix="stepwatch-bench-", dir=parent))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def run(
        self,
        command: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        codes: Sequence[int] = (0,),
    ) -> Finished:
        """Run a program to its end and say what it used; raise if it leaves with another code."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("STEPWATCH_")}
        environment.update(env or {})
        words = [str(word) for word in command]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            begin = time.monotonic()
            process = subprocess.Popen(words, stdout=out, stderr=err, env=environment)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            finished = Finished(
                stdout=out.read(),
                stderr=err.read(),
                code=process.returncode,
                seconds=seconds,
                cpu_seconds=usage.ru_utime + usage.ru_stime,
                peak_rss_bytes=usage.ru_maxrss * 1024,
            )
        if finished.code not in codes:
            why = finished.stderr.strip().splitlines()
            said = why[-1] if why else "it said nothing"
            raise BenchError(f"{' '.join(words)}: exit code {finished.code}: {said}")
        return finished

    def run_json(
        self, command: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Run a program that prints one JSON object."""
        finished = self.run(command, env)
        try:
            return cast("dict[str, Any]", json.loads(finished.stdout))
        except ValueError as error:
            raise BenchError(f"{command[0]} printed no JSON: {error}") from error

    def compiler(self) -> str:
        """Return name and version of the compiler that made the build."""
        path = self.build / "meson-info" / "intro-compilers.json"
        if not path.exists():
            return "unknown"
        made_with = json.loads(path.read_text(encoding="utf-8"))["host"]["c"]
        return f"{made_with['id']} {made_with['version']}"

    def machine(self) -> dict[str, Any]:
        """Describe where the figures come from."""
        model = "unknown processor"
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
        return {
            "processor": model,
            "arch": platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(),
            "compiler": self.compiler(),
            "load": os.getloadavg()[0],
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
        }


@dataclass(frozen=True)
class Suite:
    """One thing that is measured, how it is shown, and what is promised of it.

    ``counts``: it counts, and what else the machine does changes nothing.
    """

    name: str
    measure: Callable[[Bench], Result]
    tables: Callable[[Result], list[Table]]
    verdicts: Callable[[Result], list[Verdict]]
    counts: bool = False


def result_file(build: Path, suite: str) -> Path:
    """Return where the figures of a suite are saved."""
    return build / "bench" / f"{suite}.json"


def save_result(build: Path, suite: str, result: Result) -> None:
    """Save the figures of a suite."""
    path = result_file(build, suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def load_result(build: Path, suite: str) -> Result | None:
    """Return the saved figures of a suite, or None."""
    path = result_file(build, suite)
    if not path.exists():
        return None
    return cast("Result", json.loads(path.read_text(encoding="utf-8")))


def say(text: str) -> None:
    """Say something about the measuring itself."""
    print(text, file=sys.stderr, flush=True)
