"""report.json and its schema: every report fits it, and what is wrong does not."""

from __future__ import annotations

import copy
import json
import signal
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

jsonschema = pytest.importorskip("jsonschema")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())
CHECK = jsonschema.Draft202012Validator(SCHEMA)

FINDING = {
    "id": "loader_workers:train.py", "kind": "loader_workers", "also": ["loader_collate"],
    "title": "38 % of each step waits for data", "severity": "high", "confidence": 0.9,
    "share": 0.38, "evidence": {"wait_share": 0.38, "batches_per_s": None},
    "where": {"file": "/src/train.py", "line": 31, "name": None},
    "advice": ["Set num_workers=2."], "rules": ["RULE-02"],
    "predicted": {"step_ms": 5.5, "speedup": 1.5, "low": 1.25, "high": 1.75},
}  # fmt: skip

TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters())
data = TensorDataset(torch.randn(160, 8), torch.randint(0, 4, (160,)))
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=8):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def problems(document: Any) -> list[str]:
    found = CHECK.iter_errors(document)
    return [f"{list(error.absolute_path)}: {error.message}" for error in found]


def report(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert problems(document) == []
    return document


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "words",
    [
        ["names", "only sections"],
        ["steps", "1"],
        ["steps", "40"],
        ["families", "12"],
        ["samples", "20"],
        ["fork", "2"],
        ["steps", "20", "raise", str(int(signal.SIGKILL))],
        ["print", "nothing recorded"],
    ],
)
def test_reports_of_programs(
    stepwatch: Run, program: Path, tmp_path: Path, words: list[str]
) -> None:
    stepwatch("run", "-o", "out", "--", program, *words)
    document = report(tmp_path / "out")
    assert document["run"]["complete"] == ("raise" not in words)


@pytest.mark.usefixtures("python_env")
def test_report_of_python(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def work():\n    return sum(range(100))\nwork()\n")
    stepwatch("run", "-o", "out", "--functions", "--lines", "train:work", "train.py")
    assert report(tmp_path / "out")["functions"]


@pytest.mark.usefixtures("python_env")
def test_report_of_torch(stepwatch: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(TRAIN)
    result = stepwatch("run", "-o", "out", "train.py")
    assert result.returncode == 0, result.stderr
    document = report(tmp_path / "out")
    assert document["steps"]["count"] == 60
    assert document["modules"]
    assert document["loader"]["workers"] == 0


def changed(document: dict[str, Any], path: list[str | int], value: Any) -> dict[str, Any]:
    other = copy.deepcopy(document)
    at: Any = other
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return other


def test_what_is_wrong_is_found(recorded: Path) -> None:
    document = {**report(recorded), "findings": [FINDING]}
    assert problems(document) == []
    least = {**FINDING, "where": None, "predicted": None, "share": None, "also": []}
    assert problems({**document, "findings": [least]}) == []
    assert problems({**document, "more": 1}) == []
    wrong: list[tuple[list[str | int], Any]] = [
        (["schema"], "stepwatch.report/2"),
        (["notes"], KeyError),
        (["run", "duration_s"], "3"),
        (["timeline", 0, "part"], "lunch"),
        (["steps", "count"], -1),
        (["steps", "phases", 0, "share"], 1.5),
        (["steps", "phases", 1, "ms"], 0),  # h2d was not measured: null, not 0
        (["steps", "worst", 0, "why"], None),
        (["sections", 0, "path"], []),
        (["findings", 0, "severity"], "huge"),
        (["findings", 0, "confidence"], 2),
        (["findings", 0, "evidence", "wait_share"], "38 %"),
        (["findings", 0, "where", "line"], 0),
        (["findings", 0, "predicted", "speedup"], None),
        (["findings", 0, "rules"], KeyError),
        (["checked", 0, "checked"], "yes"),
        (["epochs"], {"recorded": True}),
    ]
    for path, value in wrong:
        assert problems(changed(document, path, value)), path
