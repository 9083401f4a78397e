"""Every public name says what it is, with an example, and the examples run."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import textwrap
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch

# They take a model, a loader or a GPU; their own tests run them. The shell is that of IPython.
ELSEWHERE = {
    "benchmark_callable",
    "benchmark_dataloader",
    "benchmark_training",
    "find_batch_size",
    "load_ipython_extension",
}
NAMES = [name for name in stepwatch.__all__ if name != "__version__"]


def text_of(thing: object) -> str:
    return getattr(thing, "__doc__", None) or ""


def examples(text: str) -> list[str]:
    """Return the code of a docstring: after >>>, or else what is indented."""
    if ">>>" in text:
        return [example.source for example in doctest.DocTestParser().get_examples(text)]
    lines = text.splitlines()
    # Those of Python are indented as a whole; an example is so once more.
    depth = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    whole = depth and any(line.strip() for line in lines[1:] if not line[depth:].startswith(" "))
    indent = " " * (depth + 4 if whole and not lines[-1].strip() else 4)
    code = [line for line in lines[1:] if not line.strip() or line.startswith(indent)]
    return [textwrap.dedent("\n".join(code))] if any(line.strip() for line in code) else []


def members(name: str) -> Iterator[tuple[str, object]]:
    thing = getattr(stepwatch, name)
    kind = thing if isinstance(thing, type) else type(thing)
    if kind.__module__.partition(".")[0] == "stepwatch":
        for key in vars(kind):
            if not key.startswith("_"):
                yield f"{name}.{key}", getattr(kind, key)


@pytest.mark.parametrize("name", NAMES)
def test_has_an_example(name: str) -> None:
    assert examples(text_of(getattr(stepwatch, name))), f"{name} has no example"
    for path, member in members(name):
        assert text_of(member), f"{path} has no docstring"


@pytest.mark.parametrize("name", NAMES)
def test_signatures_of_methods_begin_with_self(name: str) -> None:
    for path, member in members(name):
        if type(member) is types.MethodDescriptorType:
            assert next(iter(inspect.signature(member).parameters)) == "self", path


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the examples speak of."""
    monkeypatch.chdir(tmp_path)
    folders = ("runs/before", "runs/after", "runs/profiling/2026-01-01T120000-train")
    for folder in folders:
        stepwatch.start(out=folder, name="train", report=False)
        for _ in stepwatch.steps(range(30)):
            with stepwatch.section("forward"):
                pass
        stepwatch.stop()

    def train(*_: object) -> None:
        time.sleep(0.001)

    return {
        "stepwatch": stepwatch,
        "path": folders[0],
        "run": stepwatch.open(folders[0]),
        "loader": [1, 2, 3],
        "batches": iter([1, 2, 3]),
        "batch": 1,
        "images": [],
        **dict.fromkeys(("train", "train_step", "validate", "main", "flip", "model"), train),
    }


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_the_example_runs(name: str, names: dict[str, Any]) -> None:
    try:
        for source in examples(text_of(getattr(stepwatch, name))):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, f"<{name}>", "exec"), names)
    finally:
        stepwatch.stop()
        # Functions of the examples stay chosen, and with them the seat for line events.
        for function in [value for value in names.values() if callable(value)]:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                stepwatch.lines.remove(function)
