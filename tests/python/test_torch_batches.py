"""Batches that the program makes itself: the loop of torch that waits for them gives the steps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

pytestmark = pytest.mark.once

pytest.importorskip("torch", reason="torch is not installed")

BEGINNING = """
import time, torch, torch.nn.functional as F

torch.set_num_threads(1)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def batch():
    time.sleep(0.01)
    return torch.randn(4, 3), torch.randn(4, 1)


def update(x, y):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
"""

OWN_CLASS = """
class Shards:
    def __iter__(self):
        self.left = 10
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return batch()


shards = Shards()
for epoch in range(2):
    for x, y in shards:
        update(x, y)
"""

GENERATOR = """
def batches(count):
    for _ in range(count):
        yield batch()


def train():
    for epoch in range(2):
        for i, (x, y) in enumerate(batches(10)):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()


train()
"""

# Nothing is waited for: what leads to an update is a step, what is gathered before it, too.
ROLLOUTS = """
for rollout in range(5):
    data = [batch() for _ in range(4)]
    for x, y in data:
        update(x, y)
"""


def report(tmp_path: Path, command: Path, text: str) -> dict[str, Any]:
    (tmp_path / "program.py").write_text(dedent(BEGINNING + text))
    done = subprocess.run(
        [command, "run", "-o", tmp_path / "run", "--", sys.executable, "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads((tmp_path / "run" / "report.json").read_text())
    return result


@pytest.mark.parametrize("text", [OWN_CLASS, GENERATOR])
def test_waiting_for_own_batches(tmp_path: Path, stepwatch_cli: Path, text: str) -> None:
    result = report(tmp_path, stepwatch_cli, text)
    steps = result["steps"]
    assert (steps["count"], steps["updates"]) == (20, 20)
    phases = {row["phase"]: row["ms"] or 0 for row in steps["phases"]}
    assert phases["data_wait"] > phases["other"]
    assert phases["data_wait"] >= 5
    assert result["epochs"][-1]["steps"] == 10


def test_what_is_gathered_before_the_loop(tmp_path: Path, stepwatch_cli: Path) -> None:
    result = report(tmp_path, stepwatch_cli, ROLLOUTS)
    steps = result["steps"]
    assert (steps["count"], steps["unit"], steps["updates"]) == (20, "update", 20)
    phases = {row["phase"]: row["ms"] or 0 for row in steps["phases"]}
    assert phases["other"] >= 5
    assert phases["data_wait"] == 0


# The gradients of four batches make an update.
ACCUMULATED = """
def batches(count):
    for _ in range(count):
        yield batch()


def train():
    for i, (x, y) in enumerate(batches(22), 1):
        (F.mse_loss(model(x), y) / 4).backward()
        if i % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


train()
"""

# What is checked with comes from a loader, which says nothing of the samples in a step.
CHECKED = (
    ACCUMULATED
    + """
from torch.utils.data import DataLoader, TensorDataset

model.eval()
with torch.no_grad():
    for x, y in DataLoader(TensorDataset(torch.randn(24, 3), torch.randn(24, 1)), batch_size=8):
        model(x)
"""
)

# Nothing is waited for, and two optimizers step.
ACCUMULATED_BY_NUMBER = """
head = torch.nn.Linear(1, 1)
second = torch.optim.SGD(head.parameters(), lr=0.1)
data = [batch() for _ in range(22)]
for i in range(22):
    F.mse_loss(head(model(data[i][0])), data[i][1]).backward()
    if i % 4 == 3:
        for one in (optimizer, second):
            one.step()
            one.zero_grad()
"""


@pytest.mark.parametrize("text", [ACCUMULATED, CHECKED])
def test_gradients_of_several_batches(tmp_path: Path, stepwatch_cli: Path, text: str) -> None:
    """A step is a batch, however few of them have an update; the first ones have phases, too."""
    result = report(tmp_path, stepwatch_cli, text)
    steps = result["steps"]
    assert (steps["count"], steps["unit"], steps["updates"]) == (22, "batch", 5)
    assert steps["samples_per_s"] is None
    phases = {row["phase"]: row["ms"] or 0 for row in steps["phases"]}
    assert phases["data_wait"] >= 5
    assert phases["other"] < phases["data_wait"] / 4


def test_gradients_of_several_batches_without_waiting(tmp_path: Path, stepwatch_cli: Path) -> None:
    result = report(tmp_path, stepwatch_cli, ACCUMULATED_BY_NUMBER)
    steps = result["steps"]
    assert (steps["count"], steps["unit"], steps["updates"]) == (22, "batch", 10)


# The update follows a loop over parts of a batch: that is a step.
PARTS = """
def train():
    for i in range(10):
        x, y = batch()
        for k in range(4):
            (F.mse_loss(model(x), y) / 4).backward()
        optimizer.step()
        optimizer.zero_grad()


train()
"""


def test_parts_of_a_batch_are_no_steps(tmp_path: Path, stepwatch_cli: Path) -> None:
    result = report(tmp_path, stepwatch_cli, PARTS)
    steps = result["steps"]
    assert (steps["count"], steps["unit"], steps["updates"]) == (10, "update", 10)
