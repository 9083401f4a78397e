"""What the tests in Python share: where the build is."""

from __future__ import annotations

import importlib.machinery
import json
import os
import signal
from pathlib import Path
from typing import Any, Callable

import pytest

ROOT = Path(__file__).parents[1]


def pytest_configure() -> None:
    """Let programs that are tested be interrupted, also where who runs the tests may not be.

    A shell has what it starts in the background ignore Ctrl-C, and so does nohup with a hang-up;
    children inherit that, and handlers they do not.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            own = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if own else signal.SIG_DFL)


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Return the build folder under test."""
    return Path(os.environ.get("TEST_BUILD_DIR", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def stepwatch_cli(build_dir: Path) -> Path:
    """Return the command under test."""
    return build_dir / "src" / "cli" / "stepwatch"


def needs(package: str) -> None:
    """Skip a test where a package is missing, without importing it: it is for the child."""
    if importlib.machinery.PathFinder.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def read_trace(path: Path) -> Any:
    """Read a trace for viewers and check what every one of them must have."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no number of JSON's")

    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    tracks: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    arrows: dict[tuple[str, str, int], Any] = {}
    last: dict[tuple[int, str], float] = {}
    for event in document["traceEvents"]:
        assert isinstance(event["name"], str)
        assert event["name"]
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert event["cat"]
            assert event["dur"] >= 0
            begin = round(event["ts"] * 1000)
            end = begin + round(event["dur"] * 1000)
            tracks.setdefault((event["pid"], event["tid"]), []).append((begin, -end, event["name"]))
        elif event["ph"] in "sf":
            # One begin and one end; where the arrow ends, it is that of the slice around.
            key = (event["ph"], event["cat"], event["id"])
            assert arrows.setdefault(key, event) is event
            assert (event["ph"] == "f") == (event.get("bp") == "e")
        elif event["ph"] == "C":  # curves go forward
            curve = (event["pid"], event["name"])
            assert last.get(curve, event["ts"]) <= event["ts"]
            last[curve] = event["ts"]
    for slices in tracks.values():  # they nest: else Perfetto would move or drop them
        around: list[int] = []
        for begin, minus_end, name in sorted(slices):
            while around and around[-1] <= begin:
                around.pop()
            assert not around or -minus_end <= around[-1], f"{name} cuts into its neighbour"
            around.append(-minus_end)
    begins = {(*track, begin) for track, slices in tracks.items() for begin, *_ in slices}
    for (end, category, number), event in arrows.items():
        assert ("f" if end == "s" else "s", category, number) in arrows
        assert (event["pid"], event["tid"], round(event["ts"] * 1000)) in begins
    return document


@pytest.fixture(scope="session", name="read_trace")
def read_trace_fixture() -> Callable[[Path], Any]:
    """Return a function that reads a trace for viewers and checks that it is sound."""
    return read_trace


# Files whose tests start programs that import a framework, which takes seconds each. They look at
# counts and results, not at time, so that several may run at once.
FRAMEWORKS = {
    "test_brief_loops.py",
    "test_brief_training.py",
    "test_console.py",
    "test_folders.py",
    "test_frameworks.py",
    "test_gpu_monitor_real.py",
    "test_memory_cuda.py",
    "test_memory_holders.py",
    "test_guide0.py",
    "test_guide0_tasks.py",
    "test_guide1.py",
    "test_guide1_batches.py",
    "test_guide1_blocks.py",
    "test_guide1_config.py",
    "test_guide1_examples.py",
    "test_guide1_reports.py",
    "test_guide1_rules.py",
    "test_guide1_training.py",
    "test_guide2.py",
    "test_guide3.py",
    "test_guide3_analysis.py",
    "test_guide3_examples.py",
    "test_guide3_profiler.py",
    "test_guide3_settings.py",
    "test_guide4.py",
    "test_guide4_blocks.py",
    "test_jax_hooks.py",
    "test_logs.py",
    "test_report_schema.py",
    "test_run_launchers.py",
    "test_run_loaders.py",
    "test_run_torch.py",
    "test_sweeps.py",
    "test_sweeps_cuda.py",
    "test_sweeps_training.py",
    "test_torch_attributes.py",
    "test_torch_batches.py",
    "test_torch_compile.py",
    "test_torch_hooks.py",
    "test_torch_slots.py",
    "test_torch_hooks_compile.py",
    "test_torch_loader.py",
    "test_torch_operators.py",
    "test_torch_steps.py",
    "test_torch_waits.py",
    "test_trace_gpu.py",
    "test_trace_tools.py",
}


# Those that look at how long real programs take: they want a machine for themselves.
TIMED = {"test_findings.py", "test_findings_loader.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of those files."""
    for item in items:
        if item.path.name in FRAMEWORKS:
            item.add_marker(pytest.mark.frameworks)
        if item.path.name in TIMED:
            item.add_marker(pytest.mark.timed)
