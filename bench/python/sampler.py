"""What a sampler at 200 Hz costs the thread that it looks at: on and off in turn, in one process.

sampler.py RUN TOOL PAIRS BLOCKS

A pair is BLOCKS times a piece of work with the sampler and one without, the first of the two
changing places; the figures of a pair are sums, wall time and the thread's CPU time. They go to
RUN.json, for some tools print a lot. Scalene has to start this script itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any, Callable

import timing

Switch = Callable[[], "AbstractContextManager[object]"]
HZ = 200
# How long one piece of work takes, about.
PIECE_NS = 40_000_000

try:
    import numpy
except ImportError:
    numpy = None


class AbsentError(Exception):
    """The tool is not installed, or not allowed here."""


class MissingError(Exception):
    """The build does not have what is measured."""


def parse(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in text.split():
        key = word.strip(".,").lower()
        counts[key] = counts.get(key, 0) + 1
    return counts


def pure_step() -> int:
    """Do what a loader does in Python: strings, dicts, small functions."""
    counts = parse("the quick brown fox jumps over the lazy dog. " * 8)
    return sum(len(word) * count for word, count in sorted(counts.items()))


def numpy_step(state: dict[str, Any] = {}) -> float:  # noqa: B006
    """Do one step of a small network."""
    if not state:
        random = numpy.random.default_rng(0)
        state["x"] = random.standard_normal((64, 64))
        state["y"] = random.standard_normal((64, 8))
        state["w1"] = random.standard_normal((64, 64)) * 0.1
        state["w2"] = random.standard_normal((64, 8)) * 0.1
    hidden = numpy.maximum(state["x"] @ state["w1"], 0.0)
    error = hidden @ state["w2"] - state["y"]
    grad = (error @ state["w2"].T) * (hidden > 0)
    state["w2"] -= 1e-3 * (hidden.T @ error)
    state["w1"] -= 1e-3 * (state["x"].T @ grad)
    return float((error * error).mean())


def work(count: int) -> None:
    for _ in range(count):
        pure_step()
        if numpy is not None:
            numpy_step()


@contextmanager
def nothing() -> Iterator[None]:
    yield


def use_stepwatch(run: str) -> Switch:
    import stepwatch

    if timing.lacks(stepwatch, "sample"):
        raise MissingError("stepwatch.sample")
    stepwatch.start(out=run, quiet=True)
    sample: Any = stepwatch.sample
    return lambda: sample(hz=HZ)


def use_pyinstrument() -> Switch:
    try:
        from pyinstrument import Profiler
    except ImportError as error:
        raise AbsentError("pyinstrument is not installed") from error

    @contextmanager
    def sampling() -> Iterator[None]:
        profiler = Profiler(interval=1.0 / HZ)
        profiler.start()
        try:
            yield
        finally:
            profiler.stop()

    return sampling


def use_py_spy(*options: str) -> Switch:
    program = Path(sys.executable).with_name("py-spy")
    if not program.exists():
        raise AbsentError("py-spy is not installed")
    command = [str(program), "record", "--pid", str(os.getpid()), "--rate", str(HZ)]
    command += ["--duration", "600", "--format", "raw", "--output", os.devnull, *options]

    @contextmanager
    def sampling() -> Iterator[None]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout
        # Its first line comes when it is attached.
        said = process.stdout.readline().decode(errors="replace").strip()
        if "Sampling" not in said:
            process.kill()
            process.wait()
            raise AbsentError(f"py-spy could not attach ({said})")
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()

    return sampling


def use_scalene() -> Switch:
    from scalene import scalene_profiler

    @contextmanager
    def sampling() -> Iterator[None]:
        scalene_profiler.start()
        try:
            yield
        finally:
            scalene_profiler.stop()

    return sampling


def prepare(tool: str, run: str) -> Switch:
    """Return what switches the tool on."""
    if tool == "nothing":
        return nothing
    if tool == "stepwatch":
        return use_stepwatch(run)
    if tool == "pyinstrument":
        return use_pyinstrument()
    if tool == "scalene":
        return use_scalene()
    return use_py_spy(*(["--nonblocking"] if tool == "py-spy-nonblocking" else []))


def piece(sampling: Switch, count: int) -> tuple[int, int]:
    """Return wall and CPU time of a piece of work."""
    with sampling():
        wall, cpu = perf_counter_ns(), thread_time_ns()
        work(count)
        return perf_counter_ns() - wall, thread_time_ns() - cpu


def pieces(sampling: Switch, pairs: int, blocks: int) -> list[Any]:
    """Return the figures of all pairs: off and on, wall and CPU time of each."""
    work(20)
    begin = perf_counter_ns()
    work(50)
    count = max(1, round(50 * PIECE_NS / (perf_counter_ns() - begin)))
    figures = []
    # The first pair is for warming up: some tools do a lot when they begin.
    for _ in range(pairs + 1):
        sums = {False: [0, 0], True: [0, 0]}
        for block in range(blocks):
            for on in (block % 2 == 0, block % 2 == 1):
                wall, cpu = piece(sampling if on else nothing, count)
                sums[on][0] += wall
                sums[on][1] += cpu
        figures.append({"off": sums[False], "on": sums[True]})
    return figures[1:]


def main() -> None:
    run, tool, pairs, blocks = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    result: dict[str, Any] = {"numpy": numpy is not None}
    try:
        result["pairs"] = pieces(prepare(tool, run), pairs, blocks)
    except MissingError as error:
        result["missing"] = str(error)
    except AbsentError as error:
        result["absent"] = str(error)
    Path(f"{run}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
