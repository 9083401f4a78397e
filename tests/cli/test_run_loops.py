"""Training programs of torch as people write them, under stepwatch run: steps, epochs, phases."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any, Callable

import pytest

pytest.importorskip("torch")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.usefixtures("python_env")

HEADER = """
import queue, threading, time
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

PAUSE = 0.004
torch.set_num_threads(1)
data = TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(4, 1)

def train(x, y, optimizer):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
"""


@pytest.fixture
def record(stepwatch: Run, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Return a function that runs a program and returns its report."""

    def run(program: str) -> dict[str, Any]:
        (tmp_path / "train.py").write_text(HEADER + textwrap.dedent(program))
        result = stepwatch("run", "-o", "out", "train.py", timeout=300)
        assert result.returncode == 0, result.stderr
        report: dict[str, Any] = json.loads((tmp_path / "out" / "report.json").read_text())
        return report

    return run


Record = Callable[[str], "dict[str, Any]"]


def phases_of(report: dict[str, Any]) -> dict[str, float]:
    rows = report["steps"]["phases"]
    assert sum(row["share"] or 0 for row in rows) == 1
    return {row["phase"]: row["ms"] or 0 for row in rows}


def epochs_of(report: dict[str, Any]) -> list[int]:
    return [row["steps"] for row in report["epochs"]]


@pytest.mark.parametrize("batches", ["loader", "list(loader)"])
def test_an_update_that_is_written_out(record: Record, batches: str) -> None:
    """Where there is no optimizer, what follows a backward is the update."""
    report = record(
        f"""
        for epoch in range(2):
            for x, y in {batches}:
                F.mse_loss(model(x), y).backward()
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter -= 0.1 * parameter.grad
                        parameter.grad = None
                    time.sleep(PAUSE)
        """
    )
    assert report["steps"]["count"] == 20
    seen = phases_of(report)
    assert seen["optimizer"] >= 4
    assert seen["other"] < 4


def test_beside_an_optimizer_nothing_else_is_the_update(record: Record) -> None:
    report = record(
        """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            train(x, y, optimizer)
            time.sleep(PAUSE)
        """
    )
    assert phases_of(report)["other"] >= 4


def test_batches_that_another_thread_takes(record: Record) -> None:
    """Neither its epochs nor its steps are those of the training."""
    report = record(
        """
        class Ahead:
            def __iter__(self):
                batches = queue.Queue(2)

                def take():
                    for batch in loader:
                        time.sleep(PAUSE)
                        batches.put(batch)
                    batches.put(None)

                threading.Thread(target=take, daemon=True).start()
                while (batch := batches.get()) is not None:
                    yield batch

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for x, y in Ahead():
                train(x, y, optimizer)
        """
    )
    assert report["steps"]["count"] == 30
    assert epochs_of(report) == [10, 10, 10]
    assert phases_of(report)["data_wait"] > 0


def test_turns_of_a_critic_are_no_epochs(record: Record) -> None:
    report = record(
        """
        critic = nn.Linear(4, 1)
        inner = torch.optim.SGD(critic.parameters(), lr=0.1)
        outer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            for _ in range(3):
                inner.zero_grad()
                critic(torch.randn(4, 4)).mean().backward()
                inner.step()
            outer.zero_grad()
            model(torch.randn(4, 4)).mean().backward()
            outer.step()
        """
    )
    assert report["steps"]["updates"] == 80
    assert report["epochs"]["recorded"] is False
