"""What the guides say one can gain, shown: run an example, do what its report says, run it again.

python tools/claims.py --build build [--keep FOLDER]

Prints a table of before and after beside what the guides claim, and ends with 1 when a gain is
smaller. What needs a GPU is left out where there is none, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "claims"


class Claim(NamedTuple):
    """A row of the guides' table, and what came out; `gain` is None where it was not measured."""

    row: str
    what: str
    claimed: str
    before: str
    after: str
    gain: float | None
    least: float
    why: str = ""


class Runner:
    """Runs examples under the command of a build."""

    def __init__(self, build: Path, folder: Path) -> None:
        self.command = build / "src" / "cli" / "stepwatch"
        self.folder = folder
        self.env = {
            **os.environ,
            "STEPWATCH_PYTHON": sys.executable,
            "PYTHONPATH": str(build / "python"),
            "OMP_NUM_THREADS": "1",
        }

    def report(self, name: str, script: str, *arguments: str, memory: bool = False) -> Any:
        """Run an example under the recorder and return its report."""
        out = self.folder / name
        words = [self.command, "run", "-o", out, *(["--memory"] if memory else [])]
        self.call([*words, EXAMPLES / script, *arguments])
        return json.loads((out / "report.json").read_text(encoding="utf-8"))

    def text(self, script: str, *arguments: str) -> str:
        """Run an example by itself and return what it prints."""
        return self.call([sys.executable, EXAMPLES / script, *arguments])

    def call(self, words: list[Any]) -> str:
        """Run a command in the folder and return what it prints."""
        done = subprocess.run(
            [str(word) for word in words],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(
                f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}"
            )
        return done.stdout


def advice(report: Any, kind: str, word: str) -> str:
    """Return what the report advises, of a kind, with a word in it; it must be there."""
    for finding in report["findings"]:
        for text in finding["advice"]:
            if finding["kind"] == kind and word in text:
                return str(text)
    raise SystemExit(f"the report has no finding {kind} that advises {word!r}")


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


def loading(runner: Runner) -> Claim:
    """Samples that are parsed again in every epoch."""
    before = runner.report("loading-before", "loading.py")
    kinds = ("loader_workers", "loader_transform")
    kind = next((f["kind"] for f in before["findings"] if f["kind"] in kinds), kinds[0])
    say(f"loading.py: {advice(before, kind, 'made once and kept')}")

    def samples(*arguments: str) -> float:
        found = re.search(r"samples/s: ([\d.]+)", runner.text("loading.py", *arguments))
        assert found is not None
        return float(found[1])

    slow = samples("--loading-only")
    fast = samples("--loading-only", "--parse-once")
    return Claim(
        "R1-115",
        "data loading",
        "100 → 500 samples/s, 5 times faster",
        f"{slow:,.0f} samples/s",
        f"{fast:,.0f} samples/s",
        fast / slow,
        5,
    )


def peak(report: Any) -> int:
    """Return the most bytes that the section "training" had in use."""
    sections = report["memory"]["allocations"]["sections"]
    return max(int(row["peak_bytes"]) for row in sections if row["path"][0] == "training")


def precision(runner: Runner) -> list[Claim]:
    """Double precision that nobody needs."""
    reports = [
        runner.report(f"precision-{dtype}", "precision.py", "--dtype", dtype, memory=True)
        for dtype in ("float64", "float32")
    ]
    say(f"precision.py: {advice(reports[0], 'dtype', 'float32')}")
    high, low = (peak(report) for report in reports)
    slow, fast = (float(report["steps"]["steps_per_s"]) for report in reports)
    return [
        Claim(
            "R1-116",
            "memory of the training",
            "8 GB → 4 GB, 50 % less",
            f"{high / 1e6:.0f} MB",
            f"{low / 1e6:.0f} MB",
            high / low,
            1.95,
        ),
        Claim(
            "R1-118",
            "training speed",
            "100 % → 150 %",
            f"{slow:.1f} steps/s",
            f"{fast:.1f} steps/s",
            fast / slow,
            1.5,
        ),
    ]


def utilisation(report: Any) -> float:
    """Return how much of the time the busiest GPU was at work in steps, in percent."""
    series = [one for device in report["gpu"]["devices"] for one in device["series"]]
    found = [one["steps"]["mean"] for one in series if one["name"] == "utilisation_percent"]
    return max(float(mean) for mean in found if mean is not None)


def gpu(runner: Runner) -> Claim:
    """A GPU that waits for the host."""
    claim = ("R1-117", "GPU utilisation", "60 % → 95 %")
    if runner.text("gpu.py", "--is-there").strip() != "yes":
        return Claim(*claim, "", "", None, 1.5, "there is no GPU here")
    before = runner.report("gpu-before", "gpu.py")
    say(f"gpu.py: {advice(before, 'host_sync', 'Read the value')}")
    after = runner.report("gpu-after", "gpu.py", "--read-seldom")
    busy = [utilisation(report) for report in (before, after)]
    return Claim(*claim, f"{busy[0]:.0f} %", f"{busy[1]:.0f} %", busy[1] / busy[0], 1.5)


def slow_down(runner: Runner, program: str, tool: str) -> float:
    """Return by how much a tool slows a training down, in percent: pairs with it and without."""
    script = ROOT / "bench" / "python" / "training.py"
    run = runner.folder / tool
    runner.call([sys.executable, script, run, program, tool, 10, 200])
    pairs = json.loads(Path(f"{run}.json").read_text(encoding="utf-8"))["pairs"]
    return statistics.median(100 * (float(pair["on"]) / float(pair["off"]) - 1) for pair in pairs)


def costs(runner: Runner) -> list[str]:
    """Say what profiling costs where the guides speak of 5 to 20 %, with torch's beside ours."""
    lines = []
    for row, what, claimed, program, tools in (
        ("R2-040", "recording every step", "5-15 %", "cnn", ("stepwatch", "torch.profiler")),
        ("R4-024", "tracing one step in 100", "5-20 %", "cnn-every", ("every-ours", "every-torch")),
    ):
        ours, torch = (slow_down(runner, program, tool) for tool in tools)
        lines.append(
            f"{row}: {what} slows the CNN down by {ours:.1f} %, torch.profiler by {torch:.1f} %; "
            f"the guide says {claimed}."
        )
    return lines


def table(claims: list[Claim]) -> str:
    """Return the table, as text with columns."""
    head = ("row", "what", "claimed", "before", "after", "gain")
    rows = [
        (
            claim.row,
            claim.what,
            claim.claimed,
            claim.before,
            claim.after,
            f"{claim.gain:.2f} times" if claim.gain else f"not measured: {claim.why}",
        )
        for claim in claims
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure all claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--keep", type=Path, help="leave the runs there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
        runner = Runner(options.build.resolve(), options.keep or Path(folder))
        claims = [loading(runner), *precision(runner), gpu(runner)]
        cost = costs(runner)
    say("\n" + table(sorted(claims)))
    small = [claim for claim in claims if claim.gain is not None and claim.gain < claim.least]
    for claim in small:
        say(f"{claim.row}: {claim.what} gains {claim.gain:.2f} times, not {claim.least} times.")
    say("\n".join(cost))
    say("More about costs: docs/OVERHEAD.md, which make bench measures.")
    return 1 if small else 0


if __name__ == "__main__":
    sys.exit(main())
