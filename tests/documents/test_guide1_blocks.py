"""Guide 1: its blocks of code as they stand."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest

from .conftest import Done, RunText
from .guides import snippet, with_bodies

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

from stepwatch.compat.code_profiler import (
    create_code_profiler,
)

pytestmark = pytest.mark.once

# What the blocks take for granted, and nothing else.
BEFORE = """
import asyncio, ast, contextlib, inspect, io, json, logging, os, time, traceback
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, Dataset
from core.code_profiler import create_code_profiler
import stepwatch.compat.training_optimizer
stepwatch.compat.training_optimizer.DEFAULTS["max_epochs"] = 2
torch.set_num_threads(1)

def make_dataset(samples=704):
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(
        torch.randn(samples, 6, generator=generator),
        torch.randint(0, 3, (samples,), generator=generator),
    )

class Slow(Dataset):
    def __len__(self): return 12
    def __getitem__(self, index):
        time.sleep(0.06)
        return torch.zeros(4), 0

def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

def make_profiler(**settings):
    profiler = create_code_profiler(**settings)
    for _ in range(3):
        with profiler.profile_section("load", "data_loading"):
            time.sleep(0.002)
        with profiler.profile_section("step", "training"):
            sum(range(1000))
    return profiler

def slow_profiler():
    profiler = create_code_profiler()
    profiler.profile_data_loading(DataLoader(Slow(), batch_size=3), num_batches=2)
    return profiler

small = [(torch.randn(8, 6), torch.randint(0, 3, (8,))) for _ in range(3)]
logging.basicConfig(level=logging.INFO)
PLACEHOLDERS = {
    "S1-1": lambda: dict(load_data=make_dataset, create_dataloader=DataLoader),
    "S1-2": lambda: dict(logger=logging.getLogger("guide")),
    "S1-3": lambda: dict(dataset=make_dataset(), profiler=create_code_profiler()),
    "S1-4": lambda: dict(processed_data=1, get_sample_data=lambda: 2,
                         profiler=create_code_profiler()),
    "S1-5": lambda: dict(YourModel=make_model, dataset=make_dataset(), DataLoader=DataLoader,
                         profiler=create_code_profiler()),
    "S1-6": lambda: dict(model=make_model(), train_loader=small, val_loader=small),
    "S1-7": lambda: dict(profiler=make_profiler()),
    "S1-8": lambda: dict(profiler=create_code_profiler(), train_model=lambda: time.sleep(0.02)),
    "S1-9": lambda: dict(profiler=slow_profiler()),
    "S1-10": lambda: dict(profiler=make_profiler()),
    "S1-11": lambda: dict(profiler=make_profiler()),
    "S1-16": lambda: dict(create_code_profiler=create_code_profiler),
    "S1-17": lambda: dict(create_dataset=make_dataset, create_model=make_model, sample_data=1,
                          processed_data=2),
    "S1-18": lambda: dict(model=make_model(), train_loader=small, val_loader=small),
}

def show(value):
    plain = (int, float, str, list, dict, bool, type(None))
    return value if isinstance(value, plain) else repr(value)

results = {}
blocks = json.load(open("blocks.json"))
for name, text in blocks.items():
    os.makedirs(name)
    os.chdir(name)
    out, failed, space = io.StringIO(), None, PLACEHOLDERS[name]()
    try:
        code = compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with contextlib.redirect_stdout(out):
            done = eval(code, space)
            if inspect.iscoroutine(done):
                asyncio.run(done)
            profiler = space.get("profiler")
            if profiler is not None:
                profiler.cleanup()
    except BaseException:
        failed = traceback.format_exc()
    kept = {key: show(value) for key, value in space.items() if key in
            ("report", "metrics", "results", "performance_data", "profiling_report",
             "loading_metrics", "preprocessing_metrics", "training_metrics")}
    files = sorted(os.path.join(folder, file)[2:]
                   for folder, _, found in os.walk(".") for file in found)
    config = getattr(space.get("profiler"), "config", None)
    results[name] = dict(out=out.getvalue(), failed=failed, kept=kept, files=files,
                         config=config.in_force() if config is not None else None)
    os.chdir("..")
json.dump(results, open("results.json", "w"))
"""

RUN = [f"S1-{number}" for number in (*range(1, 12), 16, 17, 18)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, run_text: RunText) -> dict[str, Any]:
    """Run all blocks of code in one program, each in a folder and with names of its own."""
    folder = tmp_path_factory.mktemp("guide1")
    texts = {name: with_bodies(snippet(name)) for name in RUN}
    (folder / "blocks.json").write_text(json.dumps(texts), encoding="utf-8")
    done: Done = run_text(folder, BEFORE).ok()
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    found["folder"] = folder
    found["err"] = done.err
    return found


def block(ran: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what a block did; fail with its own words when it failed."""
    found: dict[str, Any] = ran[name]
    assert found["failed"] is None, found["failed"]
    return found


def last_lines(found: dict[str, Any], count: int) -> list[str]:
    """Return what the block itself printed at its end."""
    return list(found["out"].rstrip("\n").split("\n")[-count:])


def test_s1_01_basic_usage(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-1")
    report = found["kept"]["report"]
    assert report["detailed_metrics"]["call_counts"] == {"data_loading": 1}
    assert "profiles/profiling_report.json" in found["files"]
    assert "GENERATING PROFILING REPORT" in found["out"]


def test_s1_02_advanced_configuration(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-2")
    assert found["config"]["profile_dir"] == "custom_profiles"
    assert found["config"]["monitor_interval"] == 0.5
    assert found["config"]["profile_level"] == "comprehensive"
    assert "Code profiler initialized (level: comprehensive)" in ran["err"]


def test_s1_03_data_loading(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-3")
    metrics = found["kept"]["metrics"]
    assert last_lines(found, 3) == [
        f"Average batch time: {metrics['avg_batch_time']:.4f}s",
        f"Throughput: {metrics['throughput']:.1f} samples/second",
        f"Memory per batch: {metrics['avg_memory_per_batch']:.3f}MB",
    ]
    assert metrics["total_batches_profiled"] == 20
    assert metrics["avg_batch_size"] == 32


def test_s1_04_preprocessing(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-4")
    metrics = found["kept"]["metrics"]
    assert last_lines(found, 2) == [
        f"Average processing time: {metrics['avg_processing_time']:.6f}s",
        f"Throughput: {metrics['throughput']:.1f} samples/second",
    ]
    assert metrics["total_samples_profiled"] == 100


def test_s1_05_model_training(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-5")
    metrics = found["kept"]["metrics"]
    assert last_lines(found, 4) == [
        f"Average total time: {metrics['avg_total_time']:.4f}s",
        f"Average forward time: {metrics['avg_forward_time']:.4f}s",
        f"Average backward time: {metrics['avg_backward_time']:.4f}s",
        f"Throughput: {metrics['throughput']:.1f} batches/second",
    ]


def test_s1_06_optimizer_integration(ran: dict[str, Any]) -> None:
    results = block(ran, "S1-6")["kept"]["results"]
    assert results["total_epochs"] == 2
    assert results["final_training_loss"] > 0


def test_s1_07_available_metrics(ran: dict[str, Any]) -> None:
    lines = last_lines(block(ran, "S1-7"), 9)
    names = [line.partition(": ")[0] for line in lines]
    assert names == [
        "Execution times", "Average times", "Total times", "Memory usage", "Peak memory",
        "GPU memory usage", "GPU utilization", "Call counts", "Call frequencies",
    ]  # fmt: skip
    assert all(line.partition(": ")[2].startswith("{") for line in lines)
    assert lines[7] == "Call counts: {'load': 3, 'step': 3}"
    import torch

    seen = torch.cuda.is_available()
    none = "{'load': [0.0, 0.0, 0.0], 'step': [0.0, 0.0, 0.0]}" if seen else "{}"
    assert lines[5] == f"GPU memory usage: {none}"


def test_s1_08_performance_monitoring(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-8")
    data = found["kept"]["performance_data"]
    lines = last_lines(found, 3)
    assert lines[0] == f"CPU usage: {data['cpu_usage']}"
    assert lines[1] == f"Memory usage: {data['memory_usage']}"
    assert lines[2] == f"GPU memory usage: {data['gpu_memory_usage']}"
    import torch

    assert bool(data["gpu_memory_usage"]) == torch.cuda.is_available()
    assert len(data["memory_usage"]) >= 2


def test_s1_09_bottleneck_analysis(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-9")
    bottlenecks = found["kept"]["report"]["bottlenecks"]
    assert bottlenecks
    text = found["out"][found["out"].index("Found ") :]
    assert text.startswith(f"Found {len(bottlenecks)} bottlenecks:\n- Slow data loading: ")
    for each in bottlenecks:
        assert f"- {each['description']}\n  Severity: {each['severity']}\n" in text
        assert f"  Recommendation: {each['recommendation']}\n" in text
    assert "\nOptimization recommendations:\n- " in text


def test_s1_10_a_report_by_name(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-10")
    assert "custom_report.json" in found["files"]
    saved = json.loads((ran["folder"] / "S1-10/custom_report.json").read_text(encoding="utf-8"))
    assert saved == found["kept"]["report"]
    for title, key in (
        ("Summary", "summary"),
        ("Bottlenecks", "bottlenecks"),
        ("Recommendations", "recommendations"),
        ("Detailed metrics", "detailed_metrics"),
    ):
        assert f"{title}: {saved[key]}\n" in found["out"]


def test_s1_11_custom_visualizations(ran: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    found = block(ran, "S1-11")
    assert "custom_execution_times.png" in found["files"]
    picture = ran["folder"] / "S1-11" / "custom_execution_times.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_s1_16_debug_mode(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-16")
    text = found["out"][found["out"].index("Detailed metrics: ") :]
    assert text.startswith("Detailed metrics: ProfilerMetrics(\n")
    assert "call_counts={'debug_section': 1}" in text
    assert "allocations={'debug_section': {'count': " in text
    assert found["config"]["track_allocations"] is True


def test_s1_17_complete_example(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-17")
    kept = found["kept"]
    assert last_lines(found, 3) == [
        f"Data loading throughput: {kept['loading_metrics']['throughput']:.1f} samples/second",
        f"Preprocessing throughput: {kept['preprocessing_metrics']['throughput']:.1f} "
        "samples/second",
        f"Training throughput: {kept['training_metrics']['throughput']:.1f} batches/second",
    ]
    assert "profiles/profiling_report.json" in found["files"]


def test_s1_18_integration_example(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-18")
    report = found["kept"]["profiling_report"]
    assert f"Profiling report: {report}\n" in found["out"]
    assert "checkpoints/profiled_training_best.pt" in found["files"]
    assert "checkpoints/final_training_summary.json" in found["files"]
    assert {"data_loading", "forward", "backward", "optimizer"} <= set(
        report["detailed_metrics"]["call_counts"]
    )


def test_r1_102_the_complete_example_has_this_order(ran: dict[str, Any]) -> None:
    out = block(ran, "S1-17")["out"]
    titles = (
        "PROFILING DATA LOADING",
        "PROFILING PREPROCESSING",
        "PROFILING MODEL TRAINING",
        "GENERATING PROFILING REPORT",
        "Data loading throughput: ",
    )
    places = [out.index(title) for title in titles]
    assert places == sorted(places)
    report = block(ran, "S1-17")["kept"]["report"]
    assert {"data_loading_setup", "data_loading_batch", "training_batch"} <= set(
        report["detailed_metrics"]["call_counts"]
    )


def test_r1_103_the_values_are_plain_floats(ran: dict[str, Any]) -> None:
    """JSON took them without help; the lines themselves are compared above."""
    for name in ("S1-3", "S1-4", "S1-5"):
        metrics = block(ran, name)["kept"]["metrics"]
        assert type(metrics["throughput"]) is float
    with create_code_profiler(save_profiles=False) as profiler:
        found = profiler.profile_preprocessing(abs, -1, num_samples=2)
        assert type(found["avg_processing_time"]) is float
