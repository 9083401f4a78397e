"""The extension: what it accepts, what it refuses, and that exceptions pass unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    """Leave no recording behind when a test fails."""
    yield
    stepwatch.stop()


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Path]:
    """Record into a folder of the test's own."""
    folder = tmp_path / "run"
    stepwatch.start(name="test", out=folder, quiet=True)
    yield folder
    stepwatch.stop()


def test_start_and_stop(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not stepwatch.is_recording()
    stepwatch.start(name="test", out=folder)
    assert stepwatch.is_recording()
    run = stepwatch.stop()
    assert run is not None
    assert run.path == str(folder)
    assert not stepwatch.is_recording()
    assert not stepwatch.stop()
    assert list(folder.glob("*.stepwatch"))


def test_start_again(tmp_path: Path) -> None:
    for name in ("first", "second"):
        stepwatch.start(out=tmp_path / name)
        with stepwatch.section("again"):
            pass
        run = stepwatch.stop()
        assert run is not None
        assert run.path == str(tmp_path / name)


@pytest.mark.usefixtures("recording")
def test_everything_once() -> None:
    for number in range(3):
        stepwatch.step_begin()
        with stepwatch.section("forward"), stepwatch.section("inner"):
            stepwatch.counter("loss", number)
        stepwatch.mark("after")
        stepwatch.step_end()


def test_one_object_per_name() -> None:
    assert stepwatch.section("a") is stepwatch.section(name="a")
    assert stepwatch.section("a") is not stepwatch.section("b")
    assert stepwatch.section("a").name == "a"
    assert repr(stepwatch.section("it's")) == 'stepwatch.section("it\'s")'


@pytest.mark.usefixtures("recording")
def test_exception_passes_unchanged() -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, stepwatch.section("failing"):
        raise error
    assert caught.value is error
    assert error.__context__ is None


def test_exit_ignores_nothing_it_was_given() -> None:
    section = stepwatch.section("by hand")
    assert section.__enter__() is section
    assert section.__exit__(None, None, None) is None  # type: ignore[func-returns-value]
    exit_method: Any = section.__exit__
    for arguments in ((None,), (None, None), (None, None, None, None)):
        with pytest.raises(TypeError):
            exit_method(*arguments)


@pytest.mark.usefixtures("recording")
@pytest.mark.parametrize("text", ["", "ä", "a\0b", "\udcff", "x" * 100_000])
def test_any_text_is_accepted(text: str) -> None:
    with stepwatch.section(text):
        stepwatch.mark(text)
        stepwatch.counter(text, float("nan"))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.section(1),
        lambda s: s.section(),
        lambda s: s.mark(b"bytes"),
        lambda s: s.counter("loss"),
        lambda s: s.counter("loss", "high"),
        lambda s: s.counter(1, 1.0),
        lambda s: s.start("name"),
        lambda s: s.start(name=3),
        lambda s: s.start(max_mb="much"),
        lambda s: s.start(keep_first="x"),
        lambda s: s.start(sampler_hz="often"),
    ],
)
def test_wrong_types(call: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        call(stepwatch)
    assert not stepwatch.is_recording()


@pytest.mark.parametrize(
    "config",
    [
        {"policy": "sometimes"},
        {"max_mb": float("nan")},
        {"name": "a\0b"},
        {"sampler_hz": -1},
        {"sampler_hz": 1000.5},
        {"sampler_hz": float("nan")},
    ],
)
def test_wrong_values(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        stepwatch.start(**config)
    assert not stepwatch.is_recording()


def test_unknown_option_names_the_nearest() -> None:
    start: Any = stepwatch.start
    with pytest.raises(TypeError, match=r"'polcy'.*'policy'"):
        start(polcy="ring")


def test_threads_share_sections(recording: Path) -> None:
    def work() -> None:
        for _ in range(1000):
            with stepwatch.section("shared"), stepwatch.section("inner"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recording.is_dir()


def run_python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=dict(os.environ)
    )


def test_fork_is_silent(tmp_path: Path) -> None:
    code = f"""
import os, stepwatch
stepwatch.start(out={str(tmp_path / "run")!r})
for _ in range(3):
    stepwatch.step_begin()
    pid = os.fork()
    if pid == 0:
        with stepwatch.section("child"):
            pass
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    stepwatch.step_end()
stepwatch.stop()
"""
    result = run_python(code, "-W", "error")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_recording_that_cannot_start_does_not_raise(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    code = f"""
import stepwatch
stepwatch.start(out={str(blocked / "run")!r})
with stepwatch.section("a"):
    print("done")
run = stepwatch.stop()
assert not run and not run.recorded
"""
    result = run_python(code)
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("stepwatch: ")


def test_import_brings_no_framework() -> None:
    code = """
import sys, stepwatch
heavy = {"numpy", "torch", "jax", "tensorflow", "lightning", "transformers"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run_python(code).stdout.strip() == "[]"
