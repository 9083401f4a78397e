"""What the tests of the package share: recordings, and what the command says about them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import stepwatch

Recorder = Callable[..., stepwatch.Run]
# The tables that every run has.
TABLES = (
    "sections",
    "steps",
    "counters",
    "marks",
    "spans",
    "samples",
    "threads",
    "functions",
    "lines",
    "stacks",
    "epochs",
    "modules",
    "loaders",
    "stages",
    "batches",
    "compilations",
    "waits",
    "sites",
    "settings",
    "operators",
    "files",
    "memory",
    "allocations",
)


def load(name: str, *, known: bool = False) -> Any:
    """Import a file that lies beside this one by its bare name; if known, others find it too."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if known:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def child(
    build_dir: Path, words: Sequence[str | Path], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program to its good end, with the package and nothing of the environment besides."""
    keep = ("PATH", "HOME", "TMPDIR")
    env = {key: os.environ[key] for key in keep if key in os.environ}
    env["STEPWATCH_PYTHON"] = sys.executable
    env["PYTHONPATH"] = str(build_dir / "python")
    result = subprocess.run(
        [str(word) for word in words],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture
def no_recording() -> Iterator[None]:
    """Leave no recording behind when a test fails."""
    yield
    stepwatch.stop()


@pytest.fixture
def record_run(tmp_path: Path, no_recording: None) -> Recorder:  # noqa: ARG001
    """Return a function that records ``steps`` steps of two sections, and gives the run."""

    def make(steps: int = 20, spans: int = 0, name: str = "run") -> stepwatch.Run:
        stepwatch.start(name=name, out=tmp_path / name, policy="stream", max_mb=-1, quiet=True)
        for number in range(steps):
            stepwatch.step_begin()
            with stepwatch.section("forward"), stepwatch.section("inner"):
                stepwatch.counter("loss", 1.0 / (number + 1))
            stepwatch.step_end()
        stepwatch.mark("a <b> mark")
        one = stepwatch.section("one")
        for _ in range(spans):
            with one:
                pass
        run = stepwatch.stop()
        assert run is not None
        return run

    return make


class Recording:
    """A recording that a test makes and then reads."""

    def __init__(self, folder: Path, command: Path) -> None:
        self.folder = folder
        self._command = command
        self._report: dict[str, Any] | None = None

    @property
    def report(self) -> dict[str, Any]:
        """Stop, and return the report."""
        if self._report is None:
            stepwatch.stop()
            done = subprocess.run(
                [self._command, "report", self.folder, "--json"],
                capture_output=True,
                text=True,
                check=True,
            )
            self._report = json.loads(done.stdout)
        return self._report

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a section, one for each path that led to it."""
        return [row for row in self.report["sections"] if row["name"] == name]

    def calls(self, name: str) -> int:
        return sum(row["calls"] for row in self.rows(name))

    def errors(self, name: str) -> int:
        return sum(row["errors"] for row in self.rows(name))

    def total_ms(self, name: str) -> float:
        return float(sum(row["total_ms"] for row in self.rows(name)))

    def open(self, name: str) -> int:
        return sum(row["open"] for row in self.rows(name))

    @property
    def steps(self) -> dict[str, Any]:
        steps = self.report["steps"]
        assert isinstance(steps, dict)
        return steps


@pytest.fixture
def recorded(tmp_path: Path, stepwatch_cli: Path) -> Iterator[Recording]:
    """Record into a folder of the test's own, everything kept."""
    stepwatch.stop()
    recording = Recording(tmp_path / "run", stepwatch_cli)
    stepwatch.start(name="test", out=recording.folder, quiet=True, policy="stream")
    yield recording
    stepwatch.stop()


@pytest.fixture
def plain_memory() -> None:
    """Skip where a sanitizer or valgrind has malloc: it keeps freed memory, and wants to be loaded
    first."""
    loaded = Path("/proc/self/maps").read_text(encoding="utf-8")
    if "libasan" in loaded or "vgpreload_memcheck" in loaded:
        pytest.skip("the sanitizer has malloc, and keeps freed memory")
