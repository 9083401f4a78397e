"""Recordings that the tests of runs and tables read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import stepwatch

Recorder = Callable[..., stepwatch.Run]


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
