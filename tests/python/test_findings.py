"""Findings on real programs: what is planted is found where it is, and healthy programs have none.

Plants are large and take the greater part of a step: the tests say the same on a busy machine.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

HEAD = """\
import gc, json, random, time
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
"""

# A small training that every program below changes in one place.
BASE = """\
layers = [nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(25600, 256), torch.randint(0, 8, (25600,))),
    batch_size=256,
)
def train(steps=100, before=None, after=None):
    for number, (x, y) in enumerate(loader):
        if number == steps:
            break
        if before:
            x = before(x)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if after:
            after(number, x, y)
"""


class Findings:
    """The findings of one run of a program."""

    def __init__(self, report: dict[str, Any], text: str) -> None:
        self.report = report
        self.all: list[dict[str, Any]] = report["findings"]
        self._lines: list[str] = text.splitlines()

    def __getitem__(self, kind: str) -> dict[str, Any]:
        found = [one for one in self.all if one["kind"] == kind]
        assert found, [(one["kind"], one["title"]) for one in self.all]
        return found[0]

    def line(self, finding: dict[str, Any]) -> str:
        """Return the line of the program that the finding names."""
        assert finding["where"]["file"].endswith("program.py")
        number: int = finding["where"]["line"]
        return self._lines[number - 1]

    def serious(self) -> list[str]:
        """Return the titles of those above low; a busy machine is not the program's fault."""
        return [
            f"{one['kind']}: {one['title']}"
            for one in self.all
            if one["severity"] != "low" and one["kind"] != "cpu_starved"
        ]


@pytest.fixture
def look(tmp_path: Path, build_dir: Path) -> Any:
    """Return a function that runs a program below ``stepwatch run`` and gives its findings."""

    def make(text: str, head: str = HEAD) -> Findings:
        script = tmp_path / "program.py"
        script.write_text(head + text)
        command = os.environ.get("TEST_COMMAND") or str(build_dir / "src" / "cli" / "stepwatch")
        env = {**os.environ, "STEPWATCH_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
        out = tmp_path / "run"
        done = subprocess.run(
            [command, "run", "-o", str(out), str(script)],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report = json.loads((out / "report.json").read_text())
        for finding in report["findings"]:
            check(finding)
        return Findings(report, head + text)

    return make


def check(finding: dict[str, Any]) -> None:
    """Check what holds of every finding."""
    assert finding["title"]
    assert finding["advice"]
    assert finding["evidence"]
    assert all(rule.startswith("RULE-") for rule in finding["rules"])
    assert 0 < finding["confidence"] <= 1
    predicted = finding["predicted"]
    if predicted:
        assert 1 <= predicted["low"] <= predicted["speedup"] <= predicted["high"]


# --- what is planted -------------------------------------------------------------------------


def test_python_loop(look: Any) -> None:
    """A loop over numbers in Python."""
    found = look(
        BASE
        + """\
def moments(number, x, y):
    total = 0.0
    for row in x[:64].tolist():
        for value in row:
            total += value * value - total * 1e-9
    return total

train(after=moments)
"""
    )
    finding = found["python_overhead"]
    assert finding["where"]["name"] == "moments"
    assert found.all[0] is finding
    assert finding["predicted"]["speedup"] > 1.2
    assert "for" in found.line(finding) or "total" in found.line(finding)


def test_short_calls(look: Any) -> None:
    """A loop over the elements of a tensor: nearly all time is in native calls, each short."""
    found = look(
        BASE
        + """\
counts = [0] * 8
def count(number, x, y):
    for n in range(len(y)):
        for _ in range(8):
            counts[int(y[n])] += 1

train(after=count)
"""
    )
    assert found["python_overhead"]["where"]["name"] == "count"


def test_work_on_the_batch(look: Any) -> None:
    """Native work between the loader and the model."""
    found = look(
        BASE
        + """\
def sharpen(x):
    for _ in range(2):
        x = torch.fft.irfft2(torch.fft.rfft2(x.repeat(8, 1)), s=(2048, 256))[:256]
    return x

train(before=sharpen)
"""
    )
    finding = found["loader_main_process"]
    assert finding["where"]["name"] == "sharpen"
    assert "workers" in finding["advice"][0]


def test_logging(look: Any) -> None:
    """Print in every step, much of it."""
    found = look(
        BASE
        + """\
def tell(number, x, y):
    for n in range(40):
        print("step", number, n, "." * 2000, flush=True)

train(after=tell)
"""
    )
    finding = found["logging"]
    assert finding["where"]["name"] == "tell"
    assert "print(" in found.line(finding)
    assert finding["evidence"]["calls_per_step"] > 20


def test_validation(look: Any) -> None:
    """The whole set after every tenth step."""
    found = look(
        BASE
        + """\
inputs = torch.randn(20000, 256)
def evaluate(number, x, y):
    if number % 10 == 9:
        model.eval()
        with torch.no_grad():
            for part in inputs.split(500):
                model(part)
        model.train()

train(after=evaluate)
"""
    )
    finding = found["validation"]
    assert finding["evidence"]["validations"] >= 8
    assert finding["predicted"]["low"] > 1.1


def test_checkpoint(look: Any, tmp_path: Path) -> None:
    """A checkpoint after every second step."""
    found = look(
        BASE
        + f"""\
ballast = torch.randn(2_000_000)
def save(number, x, y):
    if number % 2:
        torch.save({{"model": model.state_dict(), "ballast": ballast}}, "{tmp_path}/last.pt")

train(after=save)
"""
    )
    finding = found["checkpoint"]
    assert finding["evidence"]["checkpoints"] >= 40
    assert "torch.save" in found.line(finding)


def test_collections(look: Any) -> None:
    """Garbage is collected by hand in every step, over many objects."""
    found = look(
        BASE
        + """\
catalogue = [{"n": n, "more": [n, n + 1]} for n in range(60_000)]
def tidy(number, x, y):
    gc.collect()

train(after=tidy)
"""
    )
    finding = found["gc"]
    assert "gc.collect()" in found.line(finding)
    assert found.all[0] is finding


def test_optimizer(look: Any) -> None:
    """Many small tensors, one by one."""
    found = look(
        """\
model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(150)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
x = torch.randn(64, 8)
for number in range(60):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    )
    finding = found["optimizer"]
    assert finding["where"]["name"] == "AdamW"
    assert "AdamW(" in found.line(finding)
    assert finding["evidence"]["tensors"] == 300
    assert "fused=True" in finding["advice"][0]


def test_doubles(look: Any) -> None:
    """The same training, in float64."""
    text = BASE.replace("(*layers)", "(*layers).double()")
    found = look(text.replace("randn(25600, 256)", "randn(25600, 256).double()") + "train()\n")
    finding = found["dtype"]
    assert finding["evidence"]["float64_parameters"] == finding["evidence"]["parameters"]
    assert finding["predicted"]["speedup"] > 1.2


def test_slow_steps(look: Any) -> None:
    """Every tenth step sleeps."""
    found = look(
        BASE
        + """\
def wait(number, x, y):
    if number % 10 == 9:
        time.sleep(0.3)

train(after=wait)
"""
    )
    kinds = {one["kind"] for one in found.all} | {kind for one in found.all for kind in one["also"]}
    assert "variance" in kinds, found.all
    finding = next(one for one in found.all if "variance" in (one["kind"], *one["also"]))
    assert finding["where"]["name"] == "wait"


def test_a_block_unlike_its_siblings(look: Any) -> None:
    """One of six blocks is far wider."""
    found = look(
        """\
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(128, width), nn.Linear(width, 128)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

model = nn.Sequential(*[Block(4096 if n == 2 else 128) for n in range(6)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(256, 128)
for number in range(60):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    )
    finding = found["slow_module"]
    assert finding["where"]["name"] == "Sequential.2"
    assert finding["predicted"]["speedup"] > 1.5


def test_recompilations(look: Any) -> None:
    """A number that changes from step to step is a static argument."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    found = look(
        """\
from functools import partial
import jax, jax.numpy as jnp

@partial(jax.jit, static_argnums=1)
def train_step(w, rate):
    return w - rate * jax.grad(lambda v: jnp.sum(jnp.tanh(v @ v)))(w)

w = jnp.eye(32)
for number in range(30):
    w = train_step(w, 0.1 / (number + 1))
print(float(w.sum()))
""",
        head="",
    )
    finding = found["recompile"]
    assert finding["where"]["name"] == "train_step"
    assert any("static" in text for text in finding["advice"])
    assert found.all[0] is finding


# --- what is healthy -------------------------------------------------------------------------

HEALTHY = {
    "mlp": BASE
    + """\
def tell(number, x, y):
    if number % 25 == 0:
        print("step", number)

train(after=tell)
""",
    "cnn": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
        self.fc1, self.fc2 = nn.Linear(32 * 144, 64), nn.Linear(64, 10)
    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        x = nn.functional.max_pool2d(x, 2).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(1280, 1, 28, 28), torch.randint(0, 10, (1280,)))
for epoch in range(3):
    for x, y in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(data.tensors[0][:64])
    model.train()
""",
    "transformer": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(200, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(64, 200)
    def forward(self, ids):
        return self.head(self.encoder(self.tokens(ids)))

model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(0, 200, (960, 48))
for (batch,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(ids), batch_size=16):
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(look: Any, name: str) -> None:
    """A healthy program has no findings; what bounds it is said."""
    found = look(HEALTHY[name])
    assert found.serious() == []
    assert found.report["bound"]
