"""Guide 1: batches of any kind, as many calls as batches, and nothing left of a killed process."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from stepwatch.compat._code_profiler.watching import _at
from stepwatch.compat._scratch import Scratch
from stepwatch.compat.code_profiler import CodeProfiler, create_code_profiler
from stepwatch.compat.training_optimizer import create_optimized_training_optimizer
from torch import nn

pytestmark = pytest.mark.once

X = torch.arange(12.0).reshape(4, 3)
Y = torch.tensor([0, 1, 1, 0])


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)


class Keyword(Model):
    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Whole(Model):
    def forward(self, batch: Any) -> Any:
        return self.layer(batch["image"])


class Typed(Model):
    def forward(self, what: dict[str, Any]) -> Any:
        return self.layer(what["image"])


class Several(Model):
    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs["left"] + inputs["right"])


class OwnLoss(Model):
    def forward(self, input_ids: Any = None, labels: Any = None) -> Any:
        logits = self.layer(input_ids)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


BATCHES: list[tuple[type[Model], dict[str, Any]]] = [
    (Keyword, {"x": X, "y": Y}),
    (Keyword, {"x": X, "label": Y, "index": [1, 2, 3, 4]}),
    (Keyword, {"image": X, "label": Y}),
    (Whole, {"image": X, "label": Y}),
    (Typed, {"image": X, "label": Y}),
    (Several, {"left": X, "right": X, "labels": Y}),
    (OwnLoss, {"input_ids": X, "labels": Y}),
]


@pytest.fixture
def profiler(tmp_path: Path) -> Any:
    with create_code_profiler(profile_dir=str(tmp_path), save_profiles=False) as made:
        yield made


@pytest.mark.parametrize(("kind", "batch"), BATCHES)
def test_r1_029_mappings_reach_the_model(
    kind: type[Model], batch: dict[str, Any], profiler: CodeProfiler
) -> None:
    found = profiler.profile_model_training(kind(), [batch] * 3, num_batches=3)
    assert found.get("error") is None
    assert found["loss"] == ("the model's own" if kind is OwnLoss else "cross_entropy")
    assert set(found["gradient_times"]) == {"layer"}


def test_r1_029_a_loss_of_the_program_has_the_target(profiler: CodeProfiler) -> None:
    seen: list[Any] = []

    def loss(output: Any, target: Any) -> Any:
        seen.append(target)
        return nn.functional.cross_entropy(output, target)

    batch = {"image": X, "label": Y}
    found = profiler.profile_model_training(Whole(), [batch] * 2, 2, loss_fn=loss)
    assert found.get("error") is None
    assert all(target is Y or torch.equal(target, Y) for target in seen)
    assert len(seen) == 3, "one step comes before those that count"


class Counted:
    """A loader that counts what was taken of it; its first batch comes late."""

    def __init__(self, length: int) -> None:
        self.length, self.taken = length, 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Any:
        for number in range(self.length):
            time.sleep(0.05 if number == 0 else 0.001)
            self.taken += 1
            yield [0] * 4


@pytest.mark.parametrize(("length", "asked"), [(9, 5), (5, 5), (3, 5), (9, 1)])
def test_r1_021_as_many_batches_as_asked(
    length: int, asked: int, profiler: CodeProfiler, capsys: pytest.CaptureFixture[str]
) -> None:
    loader = Counted(length)
    found = profiler.profile_data_loading(loader, num_batches=asked)
    expected = min(length, asked)
    assert loader.taken == found["total_batches_profiled"] == expected
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Batch ")]
    assert len(lines) == expected == profiler.metrics.call_counts["data_loading_batch"]
    assert found["first_batch_time"] >= 0.05
    assert found["max_batch_time"] < 0.05 or asked == 1, "the first is in no mean"


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(("asked", "taken"), [(6, 6), (7, 7), (3, 4)])
def test_r1_021_batches_of_workers(asked: int, taken: int, profiler: CodeProfiler) -> None:
    data = torch.utils.data.TensorDataset(torch.zeros(80, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
    found = profiler.profile_data_loading(loader, num_batches=asked)
    assert found["total_batches_profiled"] == taken, "two for each worker at least"


def test_r1_081_as_many_calls_as_batches(profiler: CodeProfiler) -> None:
    loader = [(X, Y)] * 4
    loaded = profiler.profile_data_loading(loader, num_batches=4)
    assert loaded["total_batches_profiled"] == 4
    profiler.profile_model_training(Keyword(), loader, num_batches=4)
    counts = profiler.metrics.call_counts
    names = ("data_loading_batch", "training_batch", "forward_pass", "backward_pass")
    expected = dict.fromkeys((*names, "optimizer_step", "gradient_computation"), 4)
    assert {name: counts[name] for name in expected} == expected


def test_r1_040_as_many_waits_as_batches(tmp_path: Path) -> None:
    optimizer = create_optimized_training_optimizer(
        Keyword(), [(X, Y)] * 3, [(X, Y)] * 2, max_epochs=2, checkpoint_dir=str(tmp_path)
    )
    optimizer.train_sync()
    counts = optimizer.code_profiler.metrics.call_counts
    operations = optimizer.code_profiler.metrics.io_operations
    optimizer.cleanup()
    steps = ("data_loading", "preprocessing", "forward", "backward", "optimizer")
    assert {name: counts[name] for name in steps} == dict.fromkeys(steps, 6)
    assert (counts["validation"], counts["training_epoch"]) == (4, 2)
    assert "data_loading" in operations


def test_r1_048_the_system_is_seen_as_often_as_the_process(profiler: CodeProfiler) -> None:
    profiler.config.monitor_interval = 0.05
    profiler.start_performance_monitoring()
    for _ in range(100):
        time.sleep(0.05)
        if len(profiler.performance_data["cpu_usage"]) >= 12:
            break
    profiler.stop_performance_monitoring()
    data = profiler.performance_data
    assert len(data["cpu_usage"]) >= 12
    assert len(data["system_cpu_usage"]) == len(data["cpu_usage"])
    assert data["timestamps"]["system_cpu_usage"] == data["timestamps"]["cpu_usage"]


def test_r1_087_a_short_time_has_no_more_than_all_cores(profiler: CodeProfiler) -> None:
    for _ in range(20):
        profiler.start_performance_monitoring()
        time.sleep(0.002)
        profiler.stop_performance_monitoring()
    data = profiler.performance_data
    assert len(data["cpu_usage"]) >= 20
    assert max(data["system_cpu_usage"]) <= 100.0 * (os.cpu_count() or 1)


def test_a_mean_holds_for_all_moments_of_its_time() -> None:
    seen = [(1.0, 0.5), (2.0, 0.7)]
    moments = [(0.9, 0.0), (1.0, 0.0), (1.1, 0.0), (2.0, 0.0), (2.4, 0.0)]
    assert _at(seen, moments) == [(0.9, 0.5), (1.0, 0.5), (1.1, 0.7), (2.0, 0.7), (2.4, 0.7)]
    assert _at([], moments) == []


def test_r1_083_less_than_a_page_is_no_leak(tmp_path: Path) -> None:
    kept = []
    with create_code_profiler(
        profile_level="comprehensive", profile_dir=str(tmp_path), save_profiles=False
    ) as made:
        for _ in range(3):
            with made.profile_section("keeps"):
                kept.append(bytearray(1 << 20))
            with made.profile_section("gives back"):
                bytearray(1 << 20)
        assert set(made.metrics.memory_leaks) == {"keeps"}
        assert made.metrics.memory_leaks["keeps"] == pytest.approx(3, rel=0.01)


KILLED = """
import os, signal
from stepwatch.compat.code_profiler import create_code_profiler
profiler = create_code_profiler()
with profiler.profile_section("work"):
    print(profiler._recorder.session.folder.path, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout.strip())
    assert (left / "run").is_dir(), "the recording was there"
    (tmp_path / "stepwatch-code-profiler-mine").mkdir()  # Not one of these: no lock.
    other = Scratch("stepwatch-code-profiler-")
    assert not left.exists()
    third = Scratch("stepwatch-code-profiler-")
    assert Path(other.path).is_dir(), "somebody has it"
    third.remove()
    other.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["stepwatch-code-profiler-mine"]
