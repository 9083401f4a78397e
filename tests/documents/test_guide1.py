"""Guide 1: sections, functions, loaders, preprocessing, and what is wrong with them."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib.util
import inspect
import logging
import random
import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from stepwatch.compat import code_profiler
from stepwatch.compat.code_profiler import (
    CodeProfiler,
    ProfilerConfig,
    ProfilerMetrics,
    create_code_profiler,
)
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from .conftest import RunText
from .guide1 import points, small_model

pytestmark = pytest.mark.once


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
    shown = inspect.signature(ProfilerConfig).parameters
    assert len(shown) == 33
    assert all(shown[field.name].default == field.default for field in fields(ProfilerConfig))


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
    assert inspect.signature(create_code_profiler).parameters["enable_profiling"].default is True
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


def test_r1_018_a_logger_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def info(self, text: str) -> None:
            raise OSError(text)

    config = ProfilerConfig(profile_dir=str(tmp_path))
    with CodeProfiler(config, logger=Broken(), slow_section=0.0) as made:
        with made.profile_section("a"):
            pass
        assert made.profile_data_loading([])["error"].startswith("Profiling data loading failed")
    assert capsys.readouterr().err.splitlines() == [
        "stepwatch: The logger raised OSError: it is told nothing more.",
        "stepwatch: Profiling data loading failed: ValueError: the loader gives no batches: "
        "there is nothing to measure",
    ]


def test_r1_019_metrics_are_read_while_threads_record(tmp_path: Path, run_text: RunText) -> None:
    """Also profilers that begin at the same moment get along: nothing is said on stderr."""
    text = """
import threading
from core.code_profiler import create_code_profiler

begin = threading.Barrier(6)
counts = []

def own(number):
    made = create_code_profiler(profile_dir=f"own{number}", save_profiles=False)
    begin.wait(60)
    for _ in range(20):
        with made.profile_section("own"):
            pass
    counts.append(made.metrics.call_counts["own"])
    made.cleanup()

threads = [threading.Thread(target=own, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert counts == [20] * 6, counts

shared = create_code_profiler(track_allocations=True, save_profiles=False)

def record(begin):
    for number in range(600):
        with shared.profile_section("same"):
            pass
        with shared.profile_section(f"another {begin + number}"):
            pass

threads = [threading.Thread(target=record, args=(begin,)) for begin in (0, 1000, 2000)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    shared.metrics.gpu_utilization, shared.metrics.io_operations, shared.metrics.allocations
assert shared.generate_profiling_report()["detailed_metrics"]["call_counts"]["same"] == 1800
shared.cleanup()
"""
    done = run_text(tmp_path, text).ok()
    assert done.err == ""


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


def test_r1_019_a_section_is_kept_and_used_again(profiler: CodeProfiler) -> None:
    kept = profiler.profile_section("kept", "debug")
    entered, left = threading.Event(), threading.Event()

    def beside() -> None:
        with kept:
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=beside)
    with kept:
        thread.start()
        assert entered.wait(10)
        with kept:
            pass
    left.set()
    thread.join()

    @kept
    def decorated(value: int) -> int:
        return value + 1

    assert decorated(1) == 2
    with profiler.profile_section("after"):
        pass
    assert profiler.metrics.call_counts == {"kept": 4, "after": 1}
    paths = profiler.generate_profiling_report()["detailed_metrics"]["paths"]
    assert "after" in paths, "no section was left open"


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
    assert few["total_batches_profiled"] == 3


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
    nothing = profiler.profile_data_loading(empty)
    assert "the loader gives no batches" in nothing["error"]
    assert nothing["total_batches_profiled"] == 0
    assert f"{nothing['avg_batch_time']:.4f}" == "nan"
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
