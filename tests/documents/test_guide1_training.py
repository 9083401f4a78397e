"""Guide 1: steps of a training, and the optimizer that profiles itself."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib.util
import inspect
import json
import time
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import stepwatch
import torch
from stepwatch.compat.code_profiler import (
    CodeProfiler,
    create_code_profiler,
)
from stepwatch.compat.training_optimizer import (
    OptimizedTrainingOptimizer,
    create_optimized_training_optimizer,
)
from torch import nn
from torch.utils.data import DataLoader

from .guide1 import Sleeps, points, small_model

pytestmark = pytest.mark.once

# --- Training --------------------------------------------------------------------------------


class Sleeper(nn.Module):
    """A layer that takes 5 ms forward and 8 ms backward."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        time.sleep(0.005)
        out = self.inner(x)
        if out.requires_grad:
            out.register_hook(lambda _: time.sleep(0.008))
        return out


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the numbers of a model that sleeps."""
    with create_code_profiler(profile_dir=str(tmp_path_factory.mktemp("training"))) as made:
        return made.profile_model_training(
            Sleeper(), DataLoader(points(), batch_size=8), num_batches=4
        )


def test_r1_029_everything_is_put_back(profiler: CodeProfiler) -> None:
    model = small_model()
    loader = DataLoader(points(), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    nn.functional.cross_entropy(model(points()[:8][0]), points()[:8][1]).backward()
    model.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    state = torch.get_rng_state()
    losses: list[float] = []

    def loss_fn(output: Any, target: Any) -> Any:
        loss = nn.functional.cross_entropy(output, target)
        losses.append(float(loss.detach()))
        return loss

    found = profiler.profile_model_training(
        model, loader, num_batches=4, optimizer=optimizer, loss_fn=loss_fn
    )
    assert found["optimizer"] == "SGD"
    assert len(set(losses)) > 1  # It did learn meanwhile.
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(torch.equal(a, p.grad) for a, p in zip(gradients, model.parameters()))
    assert not model.training
    assert not optimizer.state
    assert torch.equal(state, torch.get_rng_state())
    assert not any(parameter._backward_hooks for parameter in model.parameters())


def test_r1_030_the_whole_is_more_than_its_parts(trained: dict[str, Any]) -> None:
    parts = sum(trained[f"avg_{part}_time"] for part in ("forward", "backward", "optimizer"))
    assert trained["avg_total_time"] >= parts


def test_r1_031_forward_alone(trained: dict[str, Any]) -> None:
    assert trained["avg_forward_time"] >= 0.005
    assert trained["avg_forward_time"] < trained["avg_total_time"] - 0.008


def test_r1_032_backward_alone(trained: dict[str, Any]) -> None:
    assert trained["avg_backward_time"] >= 0.008
    assert trained["avg_backward_time"] < trained["avg_total_time"] - 0.005


def test_r1_033_throughput_is_batches_a_second(trained: dict[str, Any]) -> None:
    assert trained["throughput"] == pytest.approx(1 / trained["avg_total_time"])
    assert trained["batches_per_second"] == trained["throughput"]
    assert trained["samples_per_second"] == pytest.approx(8 * trained["throughput"])


def test_r1_058_layers_have_their_share(profiler: CodeProfiler) -> None:
    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(_: Any, gradient: Any) -> Any:
            time.sleep(0.01)
            return gradient

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.last(Slow.apply(self.first(x)))

    found = profiler.profile_model_training(Net(), DataLoader(points(), 8), num_batches=3)
    assert list(found["gradient_times"]) == ["last", "first"]
    assert found["gradient_times"]["first"] >= 0.009
    assert found["gradient_times"]["last"] < found["gradient_times"]["first"]
    assert all(norm > 0 for norm in found["gradient_norms"].values())
    assert profiler.metrics.call_counts["gradient_computation"] == 3


def test_r1_016_mixed_precision_is_seen(profiler: CodeProfiler) -> None:
    loader = DataLoader(points(), batch_size=8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert "error" not in profiler.profile_model_training(small_model(), loader, 2)
    profiler.profile_model_training(small_model(), loader, 2)
    report = profiler.generate_profiling_report()
    assert [training["amp"] for training in report["training"]] == [True, False]


# --- The optimizer ---------------------------------------------------------------------------


@pytest.fixture
def loaders() -> dict[str, Any]:
    return {
        "train_loader": DataLoader(points(), batch_size=16),
        "val_loader": DataLoader(points(48), batch_size=16),
    }


def make_optimizer(folder: Path, loaders: dict[str, Any], **settings: Any) -> Any:
    given = {"max_epochs": 2, "checkpoint_dir": str(folder), "create_visualizations": False}
    return create_optimized_training_optimizer(small_model(), **loaders, **{**given, **settings})


def test_r1_013_the_optimizer_profiles_itself(tmp_path: Path, loaders: dict[str, Any]) -> None:
    optimizer = make_optimizer(tmp_path, loaders)
    assert isinstance(optimizer, OptimizedTrainingOptimizer)
    results = optimizer.train_sync()
    assert results["performance_summary"]["average_times"]["forward"] > 0
    optimizer.cleanup()


def test_r1_013_a_slow_loader_is_found_while_training(tmp_path: Path) -> None:
    # A batch takes 80 ms, and a step next to nothing, also where other programs compute.
    loader = DataLoader(Sleeps(0.02, 100), batch_size=4)
    optimizer = make_optimizer(tmp_path, {"train_loader": loader}, max_epochs=1)
    try:
        optimizer.train_sync()
        found = optimizer.code_profiler.generate_profiling_report()["bottlenecks"]
    finally:
        optimizer.cleanup()
    (worst,) = [each for each in found if each["type"].startswith("loader_")]  # The recording's.
    assert "RULE-06" in worst["rules"]
    assert worst["evidence"]["wait_share"] > 0.1


def test_r1_014_advice_can_be_applied(tmp_path: Path, loaders: dict[str, Any]) -> None:
    optimizer = make_optimizer(tmp_path, loaders)
    before = [value.clone() for value in optimizer.model.parameters()]
    size = optimizer.get_optimal_batch_size(target_memory_usage=0.5)
    assert isinstance(size, int)
    assert size >= 1
    found = optimizer.benchmark_performance(num_iterations=3)
    assert found["training"]["total_batches_profiled"] == 3
    assert found["data_loading"]["avg_batch_size"] == 16
    assert all(torch.equal(a, b) for a, b in zip(before, optimizer.model.parameters()))
    with pytest.raises(ValueError, match="more than 0 and at most 1, not 3"):
        optimizer.get_optimal_batch_size(3)
    optimizer.cleanup()


def test_r1_034_an_object_that_trains(tmp_path: Path, loaders: dict[str, Any]) -> None:
    optimizer = make_optimizer(tmp_path, loaders, learning_rate=0.05)
    before = [value.clone() for value in optimizer.model.parameters()]
    results = optimizer.train_sync()
    assert results["total_epochs"] == 2
    assert not all(torch.equal(a, b) for a, b in zip(before, optimizer.model.parameters()))
    assert optimizer.optimizer.param_groups[0]["lr"] == 0.05
    optimizer.cleanup()


def test_r1_035_the_name_of_the_experiment(tmp_path: Path, loaders: dict[str, Any]) -> None:
    optimizer = make_optimizer(tmp_path, loaders, experiment_name="mine", save_interval=1)
    optimizer.train_sync()
    pictures = optimizer.create_training_visualizations()
    optimizer.cleanup()
    names = {path.name for path in tmp_path.iterdir()}
    assert {"mine_best.pt", "mine_epoch_1.pt", "mine_epoch_2.pt"} <= names
    assert [Path(path).name for path in pictures] == ["mine_training.png", "mine_training.svg"]
    summary = json.loads((tmp_path / "final_training_summary.json").read_text(encoding="utf-8"))
    assert summary["experiment_name"] == "mine"
    assert summary["results"]["total_epochs"] == 2
    assert [entry["epoch"] for entry in summary["history"]] == [1, 2]
    # A name is one file, and what is saved of the profile does not decide about the model.
    other = make_optimizer(
        tmp_path / "other", loaders, experiment_name="lr=0.1/ü", save_profiles=False
    )
    other.train_sync()
    assert [Path(path).name for path in other.create_training_visualizations()] == [
        "lr=0.1_ü_training.png",
        "lr=0.1_ü_training.svg",
    ]
    other.cleanup()
    assert (tmp_path / "other" / "lr=0.1_ü_best.pt").is_file()


OF_OPTIMIZER = (
    "enable_profiling",
    "save_profiles",
    "enable_performance_monitoring",
    "track_memory",
    "track_cpu",
    "track_gpu",
    "profile_data_loading",
    "profile_preprocessing",
    "profile_forward_pass",
    "profile_backward_pass",
    "profile_optimizer_step",
    "enable_memory_profiling",
    "enable_gpu_profiling",
    "generate_reports",
    "create_visualizations",
)


def test_r1_036_profiling_keywords_are_honoured(tmp_path: Path, loaders: dict[str, Any]) -> None:
    for name in OF_OPTIMIZER:
        optimizer = make_optimizer(tmp_path, loaders, **{name: False})
        assert not optimizer.code_profiler.config.is_on(name)
        optimizer.cleanup()
    optimizer = make_optimizer(tmp_path, loaders, profile_level="basic", monitor_interval=7)
    assert optimizer.code_profiler.config.profile_level == "basic"
    assert optimizer.code_profiler.config.monitor_interval == 7
    assert optimizer.code_profiler.config.folder == f"{tmp_path}/profiles"
    optimizer.cleanup()
    with pytest.raises(TypeError, match="has no 'max_epoch'; did you mean 'max_epochs'"):
        make_optimizer(tmp_path, loaders, max_epoch=3)


SECTIONS = {
    "profile_data_loading": "data_loading",
    "profile_preprocessing": "preprocessing",
    "profile_forward_pass": "forward",
    "profile_backward_pass": "backward",
    "profile_optimizer_step": "optimizer",
}


@pytest.mark.parametrize("name", SECTIONS)
def test_r1_036_a_part_that_is_off_is_missing(
    tmp_path: Path, loaders: dict[str, Any], name: str
) -> None:
    optimizer = make_optimizer(tmp_path, loaders, **{name: False})
    assert optimizer.train_sync()["total_epochs"] == 2
    counts = optimizer.code_profiler.metrics.call_counts
    assert set(SECTIONS.values()) - set(counts) == {SECTIONS[name]}
    optimizer.cleanup()


def test_r1_037_train_is_a_coroutine(tmp_path: Path, loaders: dict[str, Any]) -> None:
    import asyncio

    optimizer = make_optimizer(tmp_path, loaders)
    turns = []

    async def both() -> dict[str, Any]:
        async def other() -> None:
            for _ in range(3):
                turns.append(len(optimizer.code_profiler.metrics.call_counts))
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        results: dict[str, Any] = await optimizer.train()
        await task
        return results

    assert inspect.iscoroutinefunction(optimizer.train)
    results = asyncio.run(both())
    assert set(results) == {
        "total_epochs", "best_epoch", "best_metric", "final_training_loss",
        "final_validation_loss", "early_stopping_triggered", "performance_summary",
        "multi_gpu_summary",
    }  # fmt: skip
    assert turns[-1] > 0  # Others had their turn while it trained.
    optimizer.cleanup()


def test_r1_038_the_profiler_is_live_after_training(
    tmp_path: Path, loaders: dict[str, Any]
) -> None:
    optimizer = make_optimizer(tmp_path, loaders)
    optimizer.train_sync()
    assert isinstance(optimizer.code_profiler, CodeProfiler)
    report = optimizer.code_profiler.generate_profiling_report()
    assert report["detailed_metrics"]["call_counts"]["forward"] == 12
    assert (tmp_path / "profiles" / "profiling_report.json").exists()
    optimizer.cleanup()


def test_r1_039_cleanup_twice(tmp_path: Path, loaders: dict[str, Any]) -> None:
    optimizer = make_optimizer(tmp_path, loaders)
    optimizer.train_sync()
    optimizer.cleanup()
    left = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    optimizer.cleanup()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == left
    assert not stepwatch.is_recording()
    assert not stepwatch.monitor.running
    assert not hasattr(DataLoader.__iter__, "__stepwatch__")


def test_r1_040_phases_are_recorded_by_themselves(tmp_path: Path, loaders: dict[str, Any]) -> None:
    optimizer = make_optimizer(tmp_path, loaders)
    optimizer.train_sync()
    counts = optimizer.code_profiler.metrics.call_counts
    assert counts["forward"] == counts["backward"] == counts["optimizer"] == 12
    assert counts["data_loading"] == 12
    assert counts["validation"] == 6
    assert optimizer.code_profiler.performance_data["memory_usage"]
    optimizer.cleanup()


def test_training_stops_early_and_goes_on(tmp_path: Path, loaders: dict[str, Any]) -> None:
    optimizer = make_optimizer(
        tmp_path, loaders, max_epochs=9, learning_rate=0.0, early_stopping_patience=2
    )
    results = optimizer.train_sync()
    assert (results["total_epochs"], results["early_stopping_triggered"]) == (3, True)
    optimizer.cleanup()
    again = make_optimizer(tmp_path, loaders, max_epochs=3)
    results = again.train_sync(resume_from=str(tmp_path / "optimized_training_best.pt"))
    assert [entry["epoch"] for entry in again.get_training_summary()["history"]] == [1, 2, 3]
    again.cleanup()


def test_accumulation_and_mixed_precision(tmp_path: Path, loaders: dict[str, Any]) -> None:
    settings = {"mixed_precision": True, "gradient_accumulation_steps": 4}
    optimizer = make_optimizer(tmp_path, loaders, performance_config=settings)
    optimizer.train_sync()
    counts = optimizer.code_profiler.metrics.call_counts
    assert (counts["backward"], counts["optimizer"]) == (12, 4)  # 6 batches: 4, and 2 more.
    optimizer.cleanup()
    with pytest.raises(TypeError, match="performance_config has no 'amp'"):
        make_optimizer(tmp_path, loaders, performance_config={"amp": True})
    with pytest.raises(ValueError, match="none, data_parallel, ddp, not 'many'"):
        make_optimizer(tmp_path, loaders, multi_gpu_config={"strategy": "many"})


def test_nothing_to_train_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    optimizer = make_optimizer(tmp_path, {"train_loader": []})
    results = optimizer.train_sync()
    assert (results["total_epochs"], results["final_training_loss"]) == (0, None)
    assert "The training loader gives no batches" in capsys.readouterr().err
    optimizer.cleanup()


def test_a_model_that_raises_leaves_nothing_behind(tmp_path: Path, loaders: dict[str, Any]) -> None:
    def loss_fn(output: Any, target: Any) -> Any:
        raise ArithmeticError(f"{len(output)} and {len(target)}")

    optimizer = make_optimizer(tmp_path, loaders, loss_fn=loss_fn)
    with pytest.raises(ArithmeticError, match="16 and 16"):
        optimizer.train_sync()
    assert not stepwatch.monitor.running
    assert not hasattr(DataLoader.__iter__, "__stepwatch__")
    optimizer.cleanup()
    assert not stepwatch.is_recording()
