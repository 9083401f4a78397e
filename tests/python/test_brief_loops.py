"""Steps in brief of unusual loops: several loaders, kept iterators, wrapped models."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import stepwatch

from .test_brief_training import rows_of

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

HEAD = """
import gc, weakref
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(1, 16), torch.zeros(1, dtype=torch.long)

def loader_of(batches, **more):
    rows = 2 * batches
    data = TensorDataset(torch.randn(rows, 16), torch.randint(0, 4, (rows,)))
    return DataLoader(data, batch_size=2, **more)

def train(model, optimizer, x, y):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 4)

    def forward(self, x):
        return self.layer(x)
"""

Recorded = Callable[[str], stepwatch.Run]


@pytest.fixture
def recorded(tmp_path: Path, stepwatch_cli: Path, build_dir: Path) -> Recorded:
    """Return what runs a program below ``stepwatch run``."""

    def run(program: str) -> stepwatch.Run:
        script = tmp_path / "train.py"
        script.write_text(HEAD + program, encoding="utf-8")
        keep = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        done = subprocess.run(
            [str(stepwatch_cli), "run", "--no-report", "-o", str(tmp_path / "run"), str(script)],
            env={
                **keep,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": str(build_dir / "python"),
                "STEPWATCH_PYTHON": sys.executable,
                "STEPWATCH_POLICY": "stream",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return stepwatch.open(tmp_path / "run")

    return run


def calls_of(run: stepwatch.Run, name: str) -> int:
    modules = run.report().to_dict()["modules"]
    return sum(each["calls"] for each in modules if each["class"] == name)


def test_two_loaders_at_once(recorded: Recorded) -> None:
    """The second one is asked in every step: then every step is looked at."""
    run = recorded("""
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for (x, y), (u, _) in zip(loader_of(1000), loader_of(1000)):
    train(model, optimizer, x + u, y)
""")
    rows = rows_of(run)
    assert len(rows) == 1000
    brief = sum(row["brief"] for row in rows)
    assert brief < 100
    assert calls_of(run, "Linear") >= 1000 - brief


def test_samples_are_counted_once(recorded: Recorded) -> None:
    """Also where the dataset has been timed and left alone in turn."""
    run = recorded("""
class Squares(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return torch.full((16,), float(index)), 1

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(Squares(), batch_size=2):
    train(model, optimizer, x, y)
""")
    rows = rows_of(run)
    assert len(rows) == 2000
    assert sum(row["brief"] for row in rows) > 1000
    stages = {each["kind"]: each for each in run.report().to_dict()["loader"]["stages"]}
    assert stages["fetch"]["calls"] >= 100
    assert stages["getitem"]["calls"] == 2 * stages["fetch"]["calls"]


def test_a_model_behind_another_validates(recorded: Recorded) -> None:
    """What wraps it calls its forward, as compiled models do: training never calls it."""
    run = recorded("""
class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner.forward(x)

raw = Net()
model = Wrapper(raw)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number, (x, y) in enumerate(loader_of(1500)):
    train(model, optimizer, x, y)
    if number % 50 == 49:
        raw.eval()
        with torch.no_grad():
            raw(x)
        raw.train()
""")
    rows = rows_of(run)
    assert len(rows) == 1500
    assert any(row["brief"] for row in rows)
    validated = [row["step"] for row in rows if row["validation_ns"]]
    assert validated == list(range(49, 1500, 50))


def test_a_teacher_that_was_trained_is_no_validation(recorded: Recorded) -> None:
    run = recorded("""
encoder = Net()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
for x, y in loader_of(400):
    train(encoder, optimizer, x, y)

class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            seen = encoder(x)
        return self.head(seen)

encoder.eval()
probe = Probe()
optimizer = torch.optim.SGD(probe.parameters(), lr=0.01)
for x, y in loader_of(1000):
    train(probe, optimizer, x, y)
""")
    rows = rows_of(run)
    assert len(rows) == 1400
    assert sum(row["brief"] for row in rows) > 500
    assert not any(row["validation_ns"] for row in rows)


def test_passes_of_an_iterator_that_is_kept(recorded: Recorded) -> None:
    """Workers that stay give every pass the same iterator; the loop leaves it by break."""
    run = recorded("""
if __name__ == "__main__":
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = loader_of(400, num_workers=1, persistent_workers=True)
    for epoch in range(4):
        for number, (x, y) in enumerate(loader):
            train(model, optimizer, x, y)
            if number == 299:
                break
""")
    rows = rows_of(run)
    assert len(rows) == 1200
    assert [row["epoch"] for row in rows] == [step // 300 for step in range(1200)]
    assert any(row["brief"] for row in rows)
    assert not any(rows[epoch * 300]["brief"] for epoch in range(4))


def test_iterators_are_freed(recorded: Recorded) -> None:
    """Also one that its own dataset holds."""
    recorded("""
class Holder(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.zeros(16), 0

    def collate(self, samples):
        return torch.utils.data.default_collate(samples)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
gone = []
for _ in range(3):
    data = Holder()
    data.iterator = iter(DataLoader(data, batch_size=2, collate_fn=data.collate))
    train(model, optimizer, *next(data.iterator))
    gone.append(weakref.ref(data))
    del data
gc.collect()
assert [each() for each in gone] == [None] * 3
""")
