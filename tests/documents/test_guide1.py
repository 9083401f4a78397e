"""Guide 1: its blocks of code as they stand, sections, functions, loaders, training."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib.util
import inspect
import json
import logging
import random
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .conftest import Done, RunText
from .guides import snippet, with_bodies

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import stepwatch
import torch
from stepwatch.compat import code_profiler
from stepwatch.compat.code_profiler import (
    CodeProfiler,
    ProfilerConfig,
    ProfilerMetrics,
    create_code_profiler,
)
from stepwatch.compat.training_optimizer import (
    OptimizedTrainingOptimizer,
    create_optimized_training_optimizer,
)
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples" / "code_profiling"

# --- The guide's blocks ----------------------------------------------------------------------

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
    assert lines[5] == "GPU memory usage: {}"


def test_s1_08_performance_monitoring(ran: dict[str, Any]) -> None:
    found = block(ran, "S1-8")
    data = found["kept"]["performance_data"]
    lines = last_lines(found, 3)
    assert lines[0] == f"CPU usage: {data['cpu_usage']}"
    assert lines[1] == f"Memory usage: {data['memory_usage']}"
    assert lines[2] == "GPU memory usage: []"
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


# --- A profiler ------------------------------------------------------------------------------


@pytest.fixture
def profiler(tmp_path: Path) -> Any:
    """Return a profiler whose files go where nobody else looks."""
    with create_code_profiler(profile_dir=str(tmp_path / "profiles")) as made:
        yield made


class Sleeps(Dataset[Any]):
    """Samples that take their time."""

    def __init__(self, seconds: float, count: int = 4096) -> None:
        self.seconds, self.count = seconds, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.full((3,), float(index)), index % 3


def small_model() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))


def points(count: int = 96) -> Any:
    generator = torch.Generator().manual_seed(5)
    return TensorDataset(
        torch.randn(count, 3, generator=generator), torch.arange(count, dtype=torch.int64) % 3
    )


def test_r1_001_three_kinds_of_operations_and_free_sections(profiler: CodeProfiler) -> None:
    loader = DataLoader(points(), batch_size=8)
    profiler.profile_data_loading(loader, num_batches=2)
    profiler.profile_preprocessing(abs, -1, num_samples=2)
    profiler.profile_model_training(small_model(), loader, num_batches=2)
    with profiler.profile_section("anything"):
        pass
    counts = profiler.metrics.call_counts
    assert counts["data_loading_batch"] == counts["preprocessing.abs"] == 2
    assert counts["training_batch"] == counts["forward_pass"] == counts["optimizer_step"] == 2
    assert counts["anything"] == 1


def test_r1_006_any_iterable_callable_and_model(profiler: CodeProfiler) -> None:
    batches = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    found = profiler.profile_data_loading(batches, num_batches=2)
    assert found["total_batches_profiled"] == 2
    assert found["avg_batch_size"] == 3
    assert profiler.profile_preprocessing(str.upper, "text", num_samples=4)["throughput"] > 0


def test_r1_009_code_profiler() -> None:
    assert inspect.isclass(CodeProfiler)
    assert list(inspect.signature(CodeProfiler.__init__).parameters)[1:3] == ["config", "logger"]


def test_r1_010_profiler_config() -> None:
    config = ProfilerConfig(track_cpu=False, monitor_interval=2)
    assert (config.track_cpu, config.monitor_interval) == (False, 2.0)
    assert "track_cpu=False" in repr(config)
    assert config == ProfilerConfig(monitor_interval=2, track_cpu=False)
    with pytest.raises(TypeError, match="ProfilerConfig has no field 'colour'"):
        ProfilerConfig(colour="red")


def test_r1_011_profiler_metrics(profiler: CodeProfiler) -> None:
    assert isinstance(profiler.metrics, ProfilerMetrics)
    with profiler.profile_section("a"):
        pass
    text = repr(profiler.metrics)
    assert text.startswith("ProfilerMetrics(\n")
    assert "call_counts={'a': 1}" in text


def test_r1_012_utility_functions(tmp_path: Path) -> None:
    assert callable(code_profiler.create_code_profiler)
    with create_code_profiler(profile_dir=str(tmp_path), save_profiles=False) as newest:

        @code_profiler.profile_function
        def plain() -> int:
            return 1

        @code_profiler.profile_function("named", category="io")
        def other() -> int:
            return 2

        assert plain() + other() == 3
        assert newest.metrics.call_counts == {"plain": 1, "named": 1}


def test_r1_017_every_form_of_making_one(tmp_path: Path) -> None:
    forms: list[dict[str, Any]] = [
        {},
        {"enable_profiling": True, "profile_level": "detailed", "save_profiles": True},
        {"profile_level": "comprehensive", "track_allocations": True},
        {"logger": logging.getLogger("x"), "monitor_interval": 0.5},
    ]
    for form in forms:
        with create_code_profiler(profile_dir=str(tmp_path), **form) as made:
            assert isinstance(made, CodeProfiler)
            assert made.enabled
    with pytest.raises(TypeError, match="no field 'nothing'"):
        create_code_profiler(nothing=1)


class Listener:
    """A logger of the origin's kind."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def log_info(self, text: str) -> None:
        self.heard.append(text)


def test_r1_018_loggers_of_three_kinds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    config = ProfilerConfig(profile_dir=str(tmp_path))
    listener = Listener()
    for logger in (logging.getLogger("guide1"), listener, None):
        with CodeProfiler(config, logger=logger) as made, made.profile_section("a"):
            pass
    started = "Code profiler initialized (level: detailed)"
    assert started in caplog.messages
    assert listener.heard[0] == started
    with pytest.raises(TypeError, match="logger must have info"):
        CodeProfiler(config, logger=object())


def test_r1_106_the_logger_hears_of_slow_sections_and_reports(tmp_path: Path) -> None:
    listener = Listener()
    config = ProfilerConfig(profile_dir=str(tmp_path))
    with CodeProfiler(config, logger=listener, slow_section=0.01) as made:
        with made.profile_section("quick"):
            pass
        with made.profile_section("slow"):
            time.sleep(0.02)
        made.generate_profiling_report()
    assert listener.heard[0].startswith("Code profiler initialized")
    assert [text for text in listener.heard if text.startswith("Section")] == [
        text for text in listener.heard if text.startswith("Section slow took 0.0")
    ]
    assert f"Profiling report saved to {tmp_path}/profiling_report.json" in listener.heard


def test_r1_019_sections_nest_recur_and_run_in_threads(profiler: CodeProfiler) -> None:
    def recurse(depth: int) -> None:
        with profiler.profile_section("deep"):
            if depth:
                recurse(depth - 1)

    def work() -> None:
        for _ in range(10):
            with profiler.profile_section("threaded"):
                pass

    with profiler.profile_section("outer", "data_loading"):
        recurse(3)
        kept = b"z" * (40 << 20)
        time.sleep(0.01)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(KeyError), profiler.profile_section("fails"):
        raise KeyError("mine")
    metrics = profiler.metrics
    assert metrics.call_counts == {"outer": 1, "deep": 4, "threaded": 40, "fails": 1}
    assert metrics.memory_usage["outer"][0] == pytest.approx(len(kept) / (1 << 20), abs=4)
    assert metrics.total_times["outer"] >= 0.01
    report = profiler.generate_profiling_report()
    assert report["detailed_metrics"]["categories"]["outer"] == "data_loading"
    assert report["detailed_metrics"]["categories"]["deep"] == "general"
    assert report["summary"]["errors"] == 1
    assert report["detailed_metrics"]["paths"]["outer/deep"]["calls"] == 4


def test_r1_020_functions_by_every_form(profiler: CodeProfiler) -> None:
    @profiler.profile_function("training_step")
    def train_step(one: int, *, two: int = 2) -> int:
        """Train."""
        return one + two

    @profiler.profile_function
    def bare() -> int:
        return 1

    called = profiler.profile_function(bare, category="other")
    assert train_step(1, two=5) == 6
    assert (train_step.__name__, train_step.__doc__) == ("train_step", "Train.")
    assert bare() == called() == 1
    counts = profiler.metrics.call_counts
    assert counts == {"training_step": 1, "bare": 2}
    assert counts["function.train_step"] == 1  # The origin's name for it.
    assert "function.train_step" not in counts
    with pytest.raises(TypeError, match="takes a function or a name, not 3"):
        profiler.profile_function(3)


def test_r1_020_coroutines_and_generators_stay_what_they_are(profiler: CodeProfiler) -> None:
    import asyncio

    @profiler.profile_function("waits")
    async def waits() -> int:
        await asyncio.sleep(0.01)
        return 7

    @profiler.profile_function("gives")
    def gives() -> Any:
        yield 1
        yield 2

    assert asyncio.run(waits()) == 7
    assert list(gives()) == [1, 2]
    assert profiler.metrics.call_counts == {"waits": 1, "gives": 1}
    assert profiler.metrics.total_times["waits"] >= 0.009


# --- Loading ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow_loading(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the numbers of a loader that sleeps 20 ms for a batch of 32."""

    class Batches(Dataset[Any]):
        def __len__(self) -> int:
            return 64

        def __getitems__(self, indices: list[int]) -> list[Any]:
            time.sleep(0.02)
            return [(torch.zeros(3), 0)] * len(indices)

        def __getitem__(self, index: int) -> Any:
            raise AssertionError(index)

    folder = tmp_path_factory.mktemp("loading")

    class Long(Batches):
        def __len__(self) -> int:
            return 320

    with create_code_profiler(profile_dir=str(folder)) as made:
        return made.profile_data_loading(DataLoader(Long(), batch_size=32), num_batches=8)


def test_r1_021_waits_for_each_batch(slow_loading: dict[str, Any]) -> None:
    assert 0.02 <= slow_loading["avg_batch_time"] < 0.06
    assert slow_loading["total_batches_profiled"] == 8


def test_r1_021_the_loader_is_not_used_up(profiler: CodeProfiler) -> None:
    loader = DataLoader(points(), batch_size=8)
    before = [batch[0].tolist() for batch in loader]
    profiler.profile_data_loading(loader, num_batches=3)
    assert [batch[0].tolist() for batch in loader] == before
    few = profiler.profile_data_loading([torch.zeros(4)] * 3, num_batches=20)
    assert few["total_batches_profiled"] == 2  # The first is apart.


def test_r1_022_the_first_batch_is_apart(slow_loading: dict[str, Any]) -> None:
    assert slow_loading["first_batch_time"] >= 0.02
    assert slow_loading["avg_batch_time"] == pytest.approx(
        1 / slow_loading["batches_per_second"], rel=1e-6
    )


def test_r1_023_throughput_is_samples_a_second(slow_loading: dict[str, Any]) -> None:
    assert slow_loading["throughput"] <= 32 / 0.02
    assert slow_loading["throughput"] == pytest.approx(32 / slow_loading["avg_batch_time"])
    assert slow_loading["samples_per_second"] == slow_loading["throughput"]


@pytest.mark.parametrize(
    "batch", [torch.zeros(5, 2), [torch.zeros(5), torch.zeros(5)], {"x": torch.zeros(5)}]
)
def test_r1_023_batches_of_many_shapes(profiler: CodeProfiler, batch: Any) -> None:
    assert profiler.profile_data_loading([batch] * 4, num_batches=2)["avg_batch_size"] == 5


def test_r1_024_memory_of_a_batch(profiler: CodeProfiler) -> None:
    class Large(Dataset[Any]):
        def __len__(self) -> int:
            return 12

        def __getitem__(self, index: int) -> Any:
            return torch.full((9 << 20,), float(index))  # 36 MB, mapped anew each time.

    found = profiler.profile_data_loading(DataLoader(Large(), batch_size=1), num_batches=3)
    assert 36 <= found["avg_memory_per_batch"] < 110
    assert found["avg_memory_per_batch_bytes"] == pytest.approx(
        found["avg_memory_per_batch"] * 1048576, abs=1
    )


def test_r1_025_the_origins_keys(slow_loading: dict[str, Any]) -> None:
    assert {
        "avg_batch_time", "min_batch_time", "max_batch_time", "std_batch_time", "avg_batch_size",
        "avg_memory_per_batch", "throughput", "total_batches_profiled",
    } <= set(slow_loading)  # fmt: skip
    assert (
        slow_loading["min_batch_time"]
        <= slow_loading["avg_batch_time"]
        <= slow_loading["max_batch_time"]
    )


def test_the_lines_of_loading(profiler: CodeProfiler, capsys: pytest.CaptureFixture[str]) -> None:
    import re

    profiler.profile_data_loading([torch.zeros(32)] * 4, num_batches=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["", "=" * 60, "PROFILING DATA LOADING", "=" * 60]
    form = r"Batch \d: Time=\d\.\d{4}s, Size=32, Memory=\d\.\d{3}MB"
    assert [bool(re.fullmatch(form, line)) for line in lines[4:6]] == [True, True]
    assert lines[4].startswith("Batch 1: ")
    assert "Data Loading Summary:" in lines


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 2, 4])
def test_r1_104_loaders_with_workers(profiler: CodeProfiler, workers: int) -> None:
    loader = DataLoader(points(320), batch_size=8, num_workers=workers)
    found = profiler.profile_data_loading(loader, num_batches=4)
    assert found["avg_batch_size"] == 8
    assert found["total_batches_profiled"] >= 4
    assert found["avg_making_time"] > 0  # What the workers did is known.


@pytest.mark.parametrize("shuffle", [False, True])
def test_r1_105_random_states_stay(profiler: CodeProfiler, shuffle: bool) -> None:
    def order(profiled: bool) -> Any:
        torch.manual_seed(3)
        random.seed(3)
        loader = DataLoader(points(), batch_size=8, shuffle=shuffle)
        if profiled:
            profiler.profile_data_loading(loader, num_batches=4)
            profiler.profile_model_training(small_model_of(), loader, num_batches=2)
        return [batch[0].tolist() for batch in loader], torch.rand(1).item(), random.random()

    model = small_model()

    def small_model_of() -> Any:
        return model

    assert order(profiled=True) == order(profiled=False)


# --- Preprocessing ---------------------------------------------------------------------------


def test_r1_026_the_function_is_called_so_often(profiler: CodeProfiler) -> None:
    calls: list[Any] = []
    found = profiler.profile_preprocessing(calls.append, {"a": 1}, num_samples=100)
    assert calls == [{"a": 1}] * 100
    assert found["total_samples_profiled"] == 100
    assert profiler.metrics.call_counts == {"preprocessing.append": 100}  # One section.


def test_r1_027_average_time_of_a_call(profiler: CodeProfiler) -> None:
    found = profiler.profile_preprocessing(lambda _: time.sleep(0.001), 0, num_samples=10)
    assert 0.001 <= found["avg_processing_time"] < 0.02
    assert found["min_processing_time"] <= found["avg_processing_time"]


def test_r1_028_throughput_is_calls_a_second(profiler: CodeProfiler) -> None:
    found = profiler.profile_preprocessing(lambda _: time.sleep(0.001), 0, num_samples=10)
    total = profiler.metrics.total_times["preprocessing.<lambda>"]
    assert found["throughput"] == pytest.approx(10 / total, rel=1e-3)


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
    assert profiler.metrics.call_counts["gradient_computation"] == 4  # And one to warm up.


def test_r1_016_mixed_precision_is_seen(profiler: CodeProfiler) -> None:
    loader = DataLoader(points(), batch_size=8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert "error" not in profiler.profile_model_training(small_model(), loader, 2)
    profiler.profile_model_training(small_model(), loader, 2)
    report = profiler.generate_profiling_report()
    assert [training["amp"] for training in report["training"]] == [True, False]


# --- What is wrong with the input ------------------------------------------------------------


def test_what_fails_is_told_and_the_program_goes_on(
    profiler: CodeProfiler, capsys: pytest.CaptureFixture[str]
) -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 3))

        def forward(self, _: Any) -> Any:
            self.weight.data.zero_()
            raise RuntimeError("broken on purpose")

    model = Breaks()
    found = profiler.profile_model_training(model, DataLoader(points(), 8), 2)
    assert found == {"error": "Profiling model training failed: RuntimeError: broken on purpose"}
    assert torch.equal(model.weight, torch.ones(3, 3))
    empty = DataLoader(TensorDataset(torch.zeros(0, 3)), batch_size=4)
    assert "the loader gives no batches" in profiler.profile_data_loading(empty)["error"]
    assert "error" in profiler.profile_preprocessing(lambda _: 1 / 0, 1)
    err = capsys.readouterr().err
    assert err.count("stepwatch: Profiling model training failed") == 1
    with pytest.raises(ValueError, match="num_batches must be at least 1, not 0"):
        profiler.profile_data_loading([1], num_batches=0)


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with create_code_profiler(profile_dir=str(tmp_path / "file" / "inside")) as made:
        with made.profile_section("a"):
            pass
        report = made.generate_profiling_report()
    assert report["detailed_metrics"]["call_counts"] == {"a": 1}
    err = capsys.readouterr().err
    assert err.count("The profiling report could not be written") == 1


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
    loader = DataLoader(Sleeps(0.004, 100), batch_size=4)
    optimizer = make_optimizer(tmp_path, {"train_loader": loader}, max_epochs=1)
    optimizer.train_sync()
    worst = optimizer.code_profiler.generate_profiling_report()["bottlenecks"][0]
    assert worst["type"].startswith("loader_")  # A finding of the recording.
    assert "RULE-06" in worst["rules"]
    assert worst["evidence"]["wait_share"] > 0.3
    optimizer.cleanup()


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
    assert counts["data_loading"] == 14  # With the end of each epoch.
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


# --- Examples --------------------------------------------------------------------------------


def example(name: str) -> ModuleType:
    """Import an example program."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_r1_119_the_demonstrations_run(tmp_path: Path) -> None:
    report = example("bottlenecks").main(str(tmp_path))
    types = [each["type"] for each in report["bottlenecks"]]
    assert types[0] == "slow_batch_loading"
    assert "repeated_calls" in types
    assert {"large_matrix", "cpu_loop", "lookup"} <= set(report["detailed_metrics"]["call_counts"])
    assert "SlowDataset" in report["bottlenecks"][0]["description"]


def test_r1_111_three_loaders_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = example("loaders").main(str(tmp_path))
    assert found["reports"] == ["no workers", "two workers", "two workers that stay"]
    assert (tmp_path / "visualizations/profiling_comparison.png").read_bytes()[:4] == b"\x89PNG"
    text = (tmp_path / "visualizations/profiling_comparison.svg").read_text(encoding="utf-8")
    for name in found["reports"]:
        assert name in text
    assert "data_loading_batch: " in capsys.readouterr().out


def test_three_ways_of_preprocessing(tmp_path: Path) -> None:
    times = example("preprocessing").main(str(tmp_path))
    assert times["normalize_by_hand"] > times["normalize"]
    assert times["normalize_by_hand"] > times["normalize_in_place"]


def test_the_optimizer_of_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    results = asyncio.run(example("optimizer").train(str(tmp_path)))
    assert results["total_epochs"] == 3
    assert (tmp_path / "visualizations" / "rings_training.svg").exists()
    assert "validation: " in capsys.readouterr().out


@pytest.fixture(scope="module")
def improved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what is done before and after following the advice, counted; `make claims` times it.

    ``decoded`` is how often a sample was decoded while batches were loaded and trained with.
    """
    module: Any = example("before_after")
    decode, calls = module.decode, [0]

    def counted(index: int) -> Any:
        calls[0] += 1
        return decode(index)

    module.decode = counted
    folder = tmp_path_factory.mktemp("improved")
    found = {}
    for name in ("before", "after"):
        dataset = module.Decoded() if name == "before" else module.Kept()
        calls[0] = 0
        numbers = module.measure(dataset, str(folder / name))
        found[name] = {**numbers, "decoded": calls[0]}
        text = (folder / name / "profiling_report.json").read_text(encoding="utf-8")
        found[name]["report"] = json.loads(text)
    return found


def test_r1_115_loading_does_less(improved: dict[str, dict[str, Any]]) -> None:
    before, after = improved["before"], improved["after"]
    (loader,) = before["report"]["data_loading"]
    assert before["decoded"] >= 32 * loader["total_batches_profiled"]
    assert loader["avg_batch_time"] >= 32 * 0.004, "decoding takes that long"
    assert any("do counted once" in text for text in before["report"]["recommendations"])
    assert after["decoded"] == 0
    assert not any("caching" in text for text in after["report"]["recommendations"])


def test_r1_116_memory_is_halved(improved: dict[str, dict[str, Any]]) -> None:
    assert improved["after"]["batch_bytes"] == improved["before"]["batch_bytes"] / 2


def test_r1_118_training_does_less(improved: dict[str, dict[str, Any]]) -> None:
    (before,) = improved["before"]["report"]["training"]
    (after,) = improved["after"]["report"]["training"]
    assert before["avg_data_time"] >= 32 * 0.004, "a step waits for decoding"
    assert improved["after"]["decoded"] == 0, "and does not any more"
    assert after["total_batches_profiled"] == before["total_batches_profiled"]
    widths = [list(each["parameter_dtypes"].items()) for each in (before, after)]
    (wide, bytes_before), (narrow, bytes_after) = (each[0] for each in widths)
    assert (wide, narrow) == ("float64", "float32")
    assert bytes_after == bytes_before / 2
