"""Steps that are watched in brief: real trainings of short steps, and what is known of them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stepwatch

from .test_brief import ALWAYS, PHASES

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

ROWS, BATCH, EPOCHS = 1600, 8, 4
EPOCH = ROWS // BATCH
FIRST = 100  # steps that are looked at before any is not

PROGRAM = """
import os, zlib
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WITH = os.environ.get("WITH", "")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(ROWS, 64), torch.randint(0, 10, (ROWS,)))
criterion = nn.CrossEntropyLoss()
loader = DataLoader(data, batch_size=BATCH, shuffle=True)
checks = DataLoader(data, batch_size=400)
if WITH == "sections":
    import stepwatch
    mine = stepwatch.section("mine")
for epoch in range(EPOCHS):
    for x, y in loader:
        optimizer.zero_grad()
        if WITH == "sections":
            with mine:
                loss = criterion(model(x), y)
        else:
            loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if WITH == "output":
            print(f"{loss.item():.4f}")
        if WITH == "failure" and epoch == 2:
            raise RuntimeError("the program's own")
    model.eval()
    with torch.no_grad():
        for x, _ in checks:
            model(x)
    model.train()
weights = torch.cat([each.detach().flatten() for each in model.parameters()])
print(zlib.crc32(weights.numpy().tobytes()), zlib.crc32(torch.get_rng_state().numpy().tobytes()))
"""
for name in ("ROWS", "BATCH", "EPOCHS"):
    PROGRAM = PROGRAM.replace(name, str(globals()[name]))

Trained = Callable[..., Any]


@pytest.fixture
def trained(tmp_path: Path, stepwatch_cli: Path, build_dir: Path) -> Trained:
    """Return what runs the program, by itself or below ``stepwatch run``: what it said, the run."""

    def run(*options: str, bare: bool = False, status: int = 0, kind: str = "") -> Any:
        script = tmp_path / "train.py"
        script.write_text(PROGRAM, encoding="utf-8")
        out = tmp_path / "run"
        keep = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        environment = {**keep, "OMP_NUM_THREADS": "1", "WITH": kind}
        command = [sys.executable]
        if not bare:
            environment["PYTHONPATH"] = str(build_dir / "python")
            environment["STEPWATCH_PYTHON"] = sys.executable
            environment["STEPWATCH_POLICY"] = "stream"
            command = [str(stepwatch_cli), "run", "--no-report", "-o", str(out), *options]
        done = subprocess.run(
            [*command, str(script)],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout if bare else (done.stdout, stepwatch.open(out))

    return run


def rows_of(run: stepwatch.Run) -> list[dict[str, Any]]:
    """Return the steps, whose phases sum to each of them exactly."""
    rows = run.steps.to_list()
    for row in rows:
        assert sum(row[f"{phase}_ns"] or 0 for phase in PHASES) == row["duration_ns"]
    return rows


def test_what_is_known_of_such_steps(trained: Trained) -> None:
    _, run = trained()
    rows = rows_of(run)
    assert len(rows) == EPOCHS * EPOCH
    brief = [row["step"] for row in rows if row["brief"]]
    assert len(brief) > EPOCHS * EPOCH // 2
    assert brief[0] >= FIRST
    # The first step of each pass is looked at, for that is where loaders begin.
    assert not {number * EPOCH for number in range(EPOCHS)} & set(brief)
    for row in rows:
        known = {phase for phase in PHASES if row[f"{phase}_ns"] is not None}
        if row["brief"]:
            assert known <= ALWAYS | {"other"}
        else:
            assert known >= {"forward", "loss", "backward", "optimizer", "zero_grad"}
    assert {row["epoch"] for row in rows} == set(range(EPOCHS))


def test_what_is_reported(trained: Trained) -> None:
    _, run = trained()
    report = run.report().to_dict()
    brief = sum(row["brief"] for row in run.steps)
    assert report["steps"]["count"] == report["steps"]["updates"] == EPOCHS * EPOCH
    assert report["steps"]["looked"] < report["steps"]["counted"]
    phases = {each["phase"]: each for each in report["steps"]["phases"]}
    assert sum(each["share"] or 0 for each in phases.values()) == pytest.approx(1, abs=1e-9)
    assert phases["backward"]["share"] > 0.1
    loaders = {each["name"]: each for each in run.loaders}
    assert loaders["loader"]["batches"] == loaders["loader"]["waits"] == EPOCHS * EPOCH
    assert loaders["checks"]["waits"] == EPOCHS * ROWS // 400
    assert report["loader"]["batches"] == EPOCHS * EPOCH
    stages = {each["kind"]: each for each in report["loader"]["stages"]}
    assert stages["wait"]["calls"] == EPOCHS * EPOCH
    assert stages["fetch"]["calls"] >= EPOCHS * EPOCH - brief
    assert stages["fetch"]["calls"] < report["loader"]["batches"]
    assert stages["getitem"]["calls"] == BATCH * stages["fetch"]["calls"]
    linear = next(each for each in report["modules"] if each["class"] == "Linear")
    assert linear["calls"] >= EPOCHS * EPOCH - brief
    assert linear["calls"] < EPOCHS * EPOCH
    # Every call in a validation is seen.
    assert linear["validation_calls"] == EPOCHS * ROWS // 400


def test_results_are_the_same(trained: Trained) -> None:
    said, run = trained()
    assert any(row["brief"] for row in run.steps)
    assert said == trained(bare=True)


def test_output_is_always_seen(trained: Trained) -> None:
    said, run = trained(kind="output")
    assert len(said.splitlines()) == EPOCHS * EPOCH + 1
    rows = rows_of(run)
    assert sum(row["brief"] for row in rows) > EPOCH
    assert all(row["logging_ns"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("option", "kind"),
    [("brief=off", ""), ("schedule=wait=1,warmup=1,active=900", ""), ("brief=on", "sections")],
)
def test_every_step_is_looked_at_where_that_is_asked_for(
    trained: Trained, option: str, kind: str
) -> None:
    """By an option, by a schedule that chooses steps, or by sections of the program's own."""
    _, run = trained("--set", option, kind=kind)
    rows = rows_of(run)
    assert len(rows) == EPOCHS * EPOCH
    assert not any(row["brief"] for row in rows)
    linear = next(each for each in run.report().to_dict()["modules"] if each["class"] == "Linear")
    assert linear["calls"] == EPOCHS * EPOCH
    mine = sum(each["calls"] for each in run.sections if each["name"] == "mine")
    assert mine == (EPOCHS * EPOCH if kind else 0)


def test_a_program_that_fails_in_such_a_step(trained: Trained) -> None:
    said, run = trained(kind="failure", status=1)
    assert said == ""
    rows = rows_of(run)
    assert len(rows) == 2 * EPOCH + 1
    assert any(row["brief"] for row in rows)
