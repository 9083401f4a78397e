"""Who holds tensors with their graphs: a list, a sum, an attribute, and nobody."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stepwatch

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

SCRIPT = """
import collections, gc, sys
import stepwatch, torch

class Trainer:
    def __init__(self):
        self.outputs = collections.deque()

LOSSES = []
weight = torch.ones(1, 1, requires_grad=True)

def loss_of():
    # What stays with it: a megabyte that the backward pass would need.
    return (torch.ones(512, 512) * weight).square().sum()

def in_a_list(steps):
    losses = []
    for _ in steps:
        loss = loss_of()
        losses.append(loss)

def in_a_sum(steps):
    total = torch.zeros(())
    for _ in steps:
        total += loss_of()

def in_dicts(steps):
    history = []
    for number in steps:
        history.append({"loss": loss_of(), "number": number})

def in_an_attribute(steps):
    trainer = Trainer()
    for _ in steps:
        trainer.outputs.append(loss_of())

def in_a_global(steps):
    for _ in steps:
        LOSSES.append(loss_of())

def in_a_global_sum(steps):
    global TOTAL
    TOTAL=torch.zeros(())
    for _ in steps:
        TOTAL=TOTAL+loss_of()

def in_a_closure(steps):
    kept = []
    def keep():
        kept.append(loss_of())
    for _ in steps:
        keep()

def numbers_only(steps):
    losses, blocks = [], []
    for _ in steps:
        losses.append(loss_of().item())
        blocks.append(torch.ones(512, 512))

def an_error_is_pending(steps):
    losses = []
    try:
        for number in steps:
            losses.append(loss_of())
        raise KeyError("mine")
    except KeyError:
        pass

def run(function):
    stepwatch.start(out=sys.argv[1] + "/" + function.__name__, quiet=True)
    function(stepwatch.steps(range(30)))
    stepwatch.stop()
    LOSSES.clear()
    globals().pop("TOTAL", None)
    gc.collect()

for function in (in_a_list, in_a_sum, in_dicts, in_an_attribute, in_a_global, in_a_global_sum,
                 in_a_closure, numbers_only, an_error_is_pending):
    run(function)

# A mode of the program's own, and a tensor of a class of its own, are not called.
class Mode(torch.overrides.TorchFunctionMode):
    asked = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if "grad_fn" in str(func):
            Mode.asked += 1
        return func(*args, **(kwargs or {}))

class Own(torch.Tensor):
    asked = 0
    @property
    def grad_fn(self):
        Own.asked += 1

def within_a_mode(steps):
    losses, own = [], [torch.ones(2).as_subclass(Own)]
    with Mode():
        for _ in steps:
            losses.append(loss_of())

run(within_a_mode)
print(Mode.asked, Own.asked)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs, one after the other in one process: to import torch takes long."""
    folder = tmp_path_factory.mktemp("holders")
    script = folder / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        capture_output=True,
        text=True,
        timeout=280,
        # What one program frees goes back to the kernel, so that the next one grows again.
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == "0 0\n"
    return folder


def holders(folder: Path, name: str) -> list[dict[str, Any]]:
    found = stepwatch.open(folder / name).report().to_dict()["memory"]["holders"]
    json.dumps(found, allow_nan=False)
    return list(found)


def line_of(text: str) -> int:
    lines = SCRIPT.splitlines()
    (number,) = (i + 1 for i, line in enumerate(lines) if line.strip() == text)
    return number


def test_a_list(runs: Path) -> None:
    (row,) = holders(runs, "in_a_list")
    assert (row["name"], row["kind"], row["function"]) == ("losses", "list", "in_a_list")
    assert Path(row["file"]).name == "script.py"
    assert SCRIPT.splitlines()[row["line"] - 1].strip() == "losses.append(loss)"
    assert row["tensors"] == row["step"] >= 8
    assert row["additions"] is None
    assert row["whole"] is True


def test_a_sum(runs: Path) -> None:
    (row,) = holders(runs, "in_a_sum")
    assert (row["name"], row["kind"]) == ("total", "Tensor")
    assert row["line"] == line_of("total += loss_of()")
    assert row["additions"] == row["step"] >= 8


@pytest.mark.usefixtures("plain_memory")
def test_values_of_dicts(runs: Path) -> None:
    (row,) = holders(runs, "in_dicts")
    assert (row["name"], row["kind"], row["tensors"]) == ("history", "list", row["step"])
    assert row["line"] == line_of('history.append({"loss": loss_of(), "number": number})')


def test_an_attribute(runs: Path) -> None:
    (row,) = holders(runs, "in_an_attribute")
    assert (row["name"], row["kind"], row["function"]) == ("Trainer.outputs", "deque", None)
    assert row["line"] == line_of("trainer.outputs.append(loss_of())")


def test_a_global(runs: Path) -> None:
    (row,) = holders(runs, "in_a_global")
    assert (row["name"], row["function"], row["tensors"]) == ("LOSSES", None, row["step"])
    assert row["line"] == line_of("LOSSES.append(loss_of())")


def test_a_sum_in_a_global(runs: Path) -> None:
    (row,) = holders(runs, "in_a_global_sum")
    assert (row["name"], row["function"]) == ("TOTAL", None)
    assert row["line"] == line_of("TOTAL=TOTAL+loss_of()")


def test_a_closure(runs: Path) -> None:
    (row,) = holders(runs, "in_a_closure")
    assert (row["name"], row["function"]) == ("kept", "in_a_closure")


def test_numbers_hold_nothing(runs: Path) -> None:
    assert holders(runs, "numbers_only") == []


def test_the_program_goes_on_as_it_was(runs: Path) -> None:
    assert holders(runs, "an_error_is_pending")[0]["name"] == "losses"
    assert holders(runs, "within_a_mode")[0]["name"] == "losses"
    assert len(stepwatch.open(runs / "within_a_mode").steps) == 30


ENDED = """
import stepwatch, torch
weight = torch.ones(1, 1, requires_grad=True)
losses = []
other = []
def step():
    losses.append((torch.ones(512, 512) * weight).square().sum())
for _ in stepwatch.steps(range(20)):
    step()
for _ in range(30):
    step()
"""


@pytest.mark.parametrize(
    ("name", "more", "line"),
    [("losses", "", 7), ("other", "losses, other = other, losses\n", None)],
)
@pytest.mark.usefixtures("plain_memory")
def test_a_script_that_has_ended(
    name: str, more: str, line: int | None, tmp_path: Path, stepwatch_cli: Path
) -> None:
    """Its module has no file any more. A name that no line keeps anything under has no line."""
    script = tmp_path / "script.py"
    script.write_text(ENDED + more, encoding="utf-8")
    words = [str(stepwatch_cli), "run", "-o", str(tmp_path / "run"), str(script)]
    env = {**os.environ, "STEPWATCH_PYTHON": sys.executable}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = holders(tmp_path, "run")
    assert [row["name"] for row in rows] == sorted({name, "losses"}, reverse=True)
    assert (rows[0]["file"], rows[0]["line"], rows[0]["tensors"]) == (str(script), line, 50)
