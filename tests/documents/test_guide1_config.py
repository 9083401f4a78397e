"""Guide 1: each of the 33 settings changes exactly the part that it names."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from stepwatch.compat._code_profiler import facts, probes, watching
from stepwatch.compat.code_profiler import (
    CodeProfiler,
    ProfilerConfig,
    create_code_profiler,
)
from torch.utils.data import DataLoader, Dataset

from .conftest import RunText
from .guides import FOLDER

pytestmark = pytest.mark.once

Vanishes = Callable[..., "set[str]"]

SAMPLES = {
    "cpu samples",
    "memory samples",
    "gpu memory samples",
    "gpu utilization samples",
    "io samples",
    "network samples",
}
LARGE = 40 << 20  # The C library maps as much anew each time.
FILES = {"json", "csv", "html", "images", "trace"}


class Doubled(Dataset[Any]):
    """Numbers, doubled by a transform."""

    def __init__(self) -> None:
        self.transform: Callable[[Any], Any] = lambda value: value * 2

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        return self.transform(torch.full((4,), float(index))), index % 2


class FakeGpu:
    """A device as torch.cuda shows it, for machines that have none."""

    allocated = 0

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            assert enable_timing
            self.moment = 0.0

        def record(self) -> None:
            self.moment = time.perf_counter()

        def query(self) -> bool:
            return True

        def synchronize(self) -> None:
            pass

        def elapsed_time(self, other: Any) -> float:
            return float(other.moment - self.moment) * 1e3

    def memory_allocated(self) -> int:
        self.allocated += 1 << 20
        return self.allocated

    def memory_reserved(self) -> int:
        return self.allocated

    def mem_get_info(self) -> tuple[int, int]:
        return 8 << 30, 16 << 30


def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a GPU where the profiler looks for one."""
    device = FakeGpu()
    monkeypatch.setattr(probes, "cuda", lambda: device)
    monkeypatch.setattr(facts, "cuda", lambda: device)
    series = watching.Watching.series

    def with_gpu(self: Any) -> Any:
        found = series(self)
        if found:
            now = time.monotonic()
            found["gpu.0.memory_used_bytes"] = [(now, 3 << 20)]
            found["gpu.0.utilisation_percent"] = [(now, 55.0)]
        return found

    def whole(self: Any, ending: str) -> list[tuple[float, float]]:
        assert ending == ".utilisation_percent"
        opened = self._recorder.moments.open.get("reading")
        return [(opened[0][0], 42.0)] if opened else []

    monkeypatch.setattr(watching.Watching, "series", with_gpu)
    monkeypatch.setattr(watching.Watching, "whole", whole)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a GPU."""
    fake_gpu(monkeypatch)


def burn(seconds: float) -> None:
    """Compute for a while."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(100))


def exercise(folder: Path, **settings: Any) -> SimpleNamespace:
    """Use every part of a profiler once, and return what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    given: dict[str, Any] = {"profile_level": "comprehensive"}
    given["profile_dir"] = str(folder / "profiles")
    given["monitor_interval"] = 0.02
    profiler = create_code_profiler(**{**given, **settings})
    kept: list[Any] = []
    profiler.start_performance_monitoring()
    with profiler.profile_section("reading", "data_loading"):
        (folder / "file").write_bytes(b"x" * 10_000)
        (folder / "file").read_bytes()
        one, other = socket.socketpair()
        one.sendall(b"y" * 100)
        other.recv(100)
        one.close()
        other.close()
        kept.append(b"z" * LARGE)
        burn(0.1)
    profiler.stop_performance_monitoring()
    loader = DataLoader(Doubled(), batch_size=4)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    loading = profiler.profile_data_loading(loader, num_batches=2)
    preprocessing = profiler.profile_preprocessing(abs, -1, num_samples=3)
    training = profiler.profile_model_training(model, loader, num_batches=2)
    data, metrics = profiler.performance_data, profiler.metrics.to_dict()
    report = profiler.generate_profiling_report()
    profiler.cleanup()
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return SimpleNamespace(**locals())


def there(done: SimpleNamespace) -> dict[str, Any]:
    """Return all parts by name; those that are not there are empty."""
    return {
        "sections": done.metrics["call_counts"].get("reading"),
        "memory deltas": done.metrics["memory_usage"].get("reading"),
        "peak memory": done.metrics["peak_memory"].get("reading"),
        "memory of a batch": "avg_memory_per_batch" in done.loading,
        "memory of preprocessing": "avg_memory_usage" in done.preprocessing,
        "memory of training": "avg_memory_usage" in done.training,
        "memory samples": done.data["memory_usage"],
        "cpu samples": done.data["cpu_usage"],
        "io samples": done.data.get("io_read_mb_per_s"),
        "network samples": "network_mb_per_s" in done.data,
        "gpu memory samples": done.data["gpu_memory_usage"],
        "gpu utilization samples": done.data["gpu_utilization"],
        "io counters": done.metrics["io_operations"].get("reading"),
        "file operations": done.metrics["file_operations"].get("reading"),
        "network operations": done.metrics["network_operations"].get("reading"),
        "gpu memory": done.metrics["gpu_memory_usage"].get("reading"),
        "gpu utilization": done.metrics["gpu_utilization"].get("reading"),
        "gpu events": done.metrics["cuda_events"].get("reading"),
        "gpu memory of training": "avg_gpu_memory_usage" in done.training,
        "allocations": done.metrics["allocations"].get("reading"),
        "deallocations": done.metrics["deallocations"].get("reading"),
        "leaks": done.metrics["memory_leaks"].get("reading"),
        "snapshots": done.metrics["memory_snapshots"].get("reading"),
        "loading": done.loading,
        "augmentation": "avg_augmentation_time" in done.loading,
        "collate": "avg_collate_time" in done.loading,
        "preprocessing": done.preprocessing,
        "training": done.training,
        "forward": "avg_forward_time" in done.training,
        "backward": "avg_backward_time" in done.training,
        "optimizer": "avg_optimizer_time" in done.training,
        "gradients": done.training.get("gradient_times"),
        "report": done.report,
        "stacks": done.report.get("functions"),
        "trace": "profiles/trace.json" in done.files,
        "json": "profiles/profiling_report.json" in done.files,
        "csv": {"profiles/profiling_metrics.csv", "profiles/performance_data.csv"} <= done.files,
        "html": "profiles/profiling_report.html" in done.files,
        "images": any(name.endswith(".png") for name in done.files),
    }


def parts(done: SimpleNamespace) -> set[str]:
    """Return the names of all parts that are there."""
    return {name for name, value in there(done).items() if value}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Return what comes of everything switched on, with a GPU."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        fake_gpu(monkeypatch)
        return exercise(tmp_path_factory.mktemp("full"))


@pytest.fixture
def vanishes(full: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vanishes:
    """Return a function that switches something off and tells which parts are gone."""
    fake_gpu(monkeypatch)

    def compare(name: str) -> set[str]:
        less = parts(exercise(tmp_path, **{name: False}))
        assert less <= parts(full), "switching something off added a part"
        return parts(full) - less

    return compare


def test_the_table_of_the_guide_is_the_configuration() -> None:
    text = (FOLDER / "guide1.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+?) \|", text, re.MULTILINE)
    assert len(rows) == 33
    fields = {field.name: field for field in dataclasses.fields(ProfilerConfig)}
    assert list(fields) == [name for name, _, _ in rows]
    for name, kind, default in rows:
        assert fields[name].type == kind
        assert getattr(ProfilerConfig(), name) == json.loads(
            default.lower() if kind == "bool" else default
        )


def test_everything_is_there_at_first(full: SimpleNamespace) -> None:
    """The other tests stand on this: with everything on, no part is missing."""
    assert set(there(full)) - parts(full) == set()


def test_r1_041_enable_profiling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = exercise(tmp_path, enable_profiling=False)
    assert parts(done) == set()
    assert done.report == {}
    assert done.files == {"file"}
    assert "Profiling is off (enable_profiling)" in capsys.readouterr().err
    assert done.profiler.metrics.call_counts == {}


def test_r1_002_a_recording_that_ends_too_early_is_said(tmp_path: Path, run_text: RunText) -> None:
    text = """
import stepwatch
from core.code_profiler import create_code_profiler
profiler = create_code_profiler(profile_dir="p", create_visualizations=False)
with stepwatch.record("short", out="run", quiet=True):
    with profiler.profile_section("step", "training"):
        pass
(note,) = [n for n in profiler.generate_profiling_report()["notes"] if "has ended" in n]
profiler.cleanup()
"""
    run_text(tmp_path, text).ok()


PRINTED = """
from torch import nn
from torch.utils.data import DataLoader
from core.code_profiler import create_code_profiler
profiler = create_code_profiler(profile_dir="p", create_visualizations=False{settings})
loader = DataLoader([(0.0, 0.0)] * {length}, batch_size=2)
found = profiler.profile_data_loading(loader, num_batches=2)
print(f"{{found['avg_batch_time']:.4f}} {{found['throughput']:.1f}}")
print(f"{{found['avg_memory_per_batch']:.3f}}")
found = profiler.profile_preprocessing(str, 1, num_samples=2)
print(f"{{found['avg_processing_time']:.6f}} {{found['throughput']:.1f}}")
found = profiler.profile_model_training(nn.Linear(1, 1), loader, num_batches=2)
print(f"{{found['avg_total_time']:.4f}} {{found['avg_forward_time']:.4f}}")
print(f"{{found['avg_backward_time']:.4f}} {{found['throughput']:.1f}}")
assert found.get("no such number") is None
try:
    found["no such number"]
except KeyError:
    pass
report = profiler.generate_profiling_report()
print(len(report["bottlenecks"]), report["summary"], report["detailed_metrics"] or "nothing")
for one in report["recommendations"]:
    print(one)
profiler.cleanup()
print("went on")
"""


@pytest.mark.parametrize(
    ("settings", "length"),
    [
        (", enable_profiling=False", 8),
        (', profile_level="basic"', 8),
        (", profile_forward_pass=False, track_memory=False", 8),
        (", generate_reports=False", 0),
    ],
)
def test_r1_041_the_lines_of_the_guide_print_whatever_is_known(
    tmp_path: Path, run_text: RunText, settings: str, length: int
) -> None:
    done = run_text(tmp_path, PRINTED.format(settings=settings, length=length)).ok()
    assert done.out.endswith("went on\n")
    assert "nan" in done.out


def test_r1_041_the_environment_says_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_PROFILING", "false")
    assert parts(exercise(tmp_path, enable_profiling=True)) == set()


LEVELS = {
    "basic": {
        "sections", "loading", "preprocessing", "training", "forward", "backward", "optimizer",
        "report", "json", "csv", "html",
    },
    "detailed": {"allocations", "deallocations", "leaks", "snapshots", "stacks", "trace"},
}  # fmt: skip


@pytest.mark.usefixtures("gpu")
def test_r1_042_profile_level(full: SimpleNamespace, tmp_path: Path) -> None:
    assert parts(exercise(tmp_path / "basic", profile_level="basic")) == LEVELS["basic"]
    detailed = parts(exercise(tmp_path / "detailed", profile_level="detailed"))
    assert parts(full) - detailed == LEVELS["detailed"]
    with pytest.raises(ValueError, match="basic, detailed, comprehensive, not 'full'"):
        ProfilerConfig(profile_level="full")


def test_r1_042_comprehensive_knows_functions_and_events(full: SimpleNamespace) -> None:
    assert "burn" in {row["name"] for row in full.report["functions"]}
    trace = json.loads((full.folder / "profiles/trace.json").read_text(encoding="utf-8"))
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert "reading" in {event.get("name") for event in events}


def test_r1_042_given_switches_override_the_level(tmp_path: Path) -> None:
    done = exercise(tmp_path / "a", profile_level="basic", track_memory=True)
    memory = {name for name in parts(done) if "memory" in name} - {"memory samples"}
    assert parts(done) - LEVELS["basic"] == memory
    assert "memory deltas" in memory
    done = exercise(tmp_path / "b", profile_level="detailed", track_allocations=True)
    assert {"allocations"} <= parts(done)
    assert not parts(done) & {"deallocations", "leaks", "snapshots"}


def test_r1_043_save_profiles(vanishes: Vanishes) -> None:
    assert vanishes("save_profiles") == FILES


def test_r1_044_profile_dir(tmp_path: Path) -> None:
    done = exercise(tmp_path, profile_dir=str(tmp_path / "elsewhere"))
    assert {name.partition("/")[0] for name in done.files} == {"file", "elsewhere"}
    assert "elsewhere/profiling_report.json" in done.files


def test_r1_044_the_environment_names_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILE_OUTPUT_DIR", "outside")
    assert ProfilerConfig().folder == "outside"
    assert ProfilerConfig(profile_dir="said").folder == "said"


def test_r1_045_enable_performance_monitoring(vanishes: Vanishes) -> None:
    assert vanishes("enable_performance_monitoring") == SAMPLES


def test_r1_046_monitor_interval(tmp_path: Path) -> None:
    counts = {}
    for interval in (0.02, 3600.0):
        with create_code_profiler(
            profile_dir=str(tmp_path), monitor_interval=interval, save_profiles=False
        ) as profiler:
            profiler.start_performance_monitoring()
            time.sleep(0.3)
            profiler.stop_performance_monitoring()
            moments = profiler.performance_data["timestamps"]["memory_usage"]
            counts[interval] = len(moments)
            if interval < 1:  # Without the look at the stop.
                mean = (moments[-2] - moments[0]) / (len(moments) - 2)
                assert mean >= 0.018
    assert counts[3600.0] == 2  # When it starts and when it stops.
    assert 8 <= counts[0.02] <= 17
    for bad in (0, -1, 1e9):
        with pytest.raises(ValueError, match=r"monitor_interval must be from 0\.01 to 3600"):
            ProfilerConfig(monitor_interval=bad)


def test_r1_047_track_memory(vanishes: Vanishes) -> None:
    assert vanishes("track_memory") == {
        "memory deltas",
        "peak memory",
        "memory of a batch",
        "memory of preprocessing",
        "memory of training",
        "memory samples",
    }


def test_r1_048_track_cpu(vanishes: Vanishes) -> None:
    assert vanishes("track_cpu") == {"cpu samples"}


def test_r1_049_track_gpu(vanishes: Vanishes) -> None:
    assert vanishes("track_gpu") == {
        "gpu memory",
        "gpu events",
        "gpu utilization",
        "gpu memory samples",
        "gpu utilization samples",
        "gpu memory of training",
    }


def test_r1_050_track_io(vanishes: Vanishes) -> None:
    assert vanishes("track_io") == {"io counters", "io samples", "network samples"}


def test_r1_051_profile_data_loading(vanishes: Vanishes) -> None:
    gone = vanishes("profile_data_loading")
    assert gone == {"loading", "augmentation", "collate", "memory of a batch"}


def test_r1_052_profile_preprocessing(vanishes: Vanishes) -> None:
    assert vanishes("profile_preprocessing") == {"preprocessing", "memory of preprocessing"}


def test_r1_053_profile_augmentation(vanishes: Vanishes) -> None:
    assert vanishes("profile_augmentation") == {"augmentation"}


def test_r1_054_profile_collate(vanishes: Vanishes) -> None:
    assert vanishes("profile_collate") == {"collate"}


@pytest.mark.parametrize("workers", [0, 2])
def test_r1_053_transforms_are_timed_in_workers_too(tmp_path: Path, workers: int) -> None:
    with create_code_profiler(profile_dir=str(tmp_path), save_profiles=False) as profiler:
        loader = DataLoader(Doubled(), batch_size=4, num_workers=workers)
        found = profiler.profile_data_loading(loader, num_batches=3)
        (timed,) = found["augmentation"].values()
        assert timed["calls"] % 4 == 0
        assert timed["calls"] >= 16
        assert timed["avg_time"] > 0
        assert profiler.metrics.call_counts["augmentation"] == timed["calls"]


@pytest.mark.parametrize("workers", [0, 2])
def test_r1_054_collation_is_timed_in_workers_too(tmp_path: Path, workers: int) -> None:
    with create_code_profiler(profile_dir=str(tmp_path), save_profiles=False) as profiler:
        loader = DataLoader(Doubled(), batch_size=4, num_workers=workers)
        found = profiler.profile_data_loading(loader, num_batches=3)
        assert found["avg_collate_time"] > 0
        assert profiler.metrics.call_counts["collate"] >= 4


def test_r1_055_profile_forward_pass(vanishes: Vanishes) -> None:
    assert vanishes("profile_forward_pass") == {"forward"}


def test_r1_056_profile_backward_pass(vanishes: Vanishes) -> None:
    assert vanishes("profile_backward_pass") == {"backward"}


def test_r1_057_profile_optimizer_step(vanishes: Vanishes) -> None:
    assert vanishes("profile_optimizer_step") == {"optimizer"}


def test_r1_058_profile_gradient_computation(vanishes: Vanishes) -> None:
    assert vanishes("profile_gradient_computation") == {"gradients"}


def test_r1_059_enable_memory_profiling(vanishes: Vanishes) -> None:
    gone = vanishes("enable_memory_profiling")
    assert gone == {"allocations", "deallocations", "leaks", "snapshots"}


def test_r1_060_track_allocations(vanishes: Vanishes) -> None:
    assert vanishes("track_allocations") == {"allocations", "leaks"}


def test_r1_060_allocations_are_counted(full: SimpleNamespace) -> None:
    assert full.metrics["allocations"]["reading"]["bytes"] >= LARGE
    assert full.metrics["allocations"]["reading"]["count"] >= 1


def test_r1_061_track_deallocations(vanishes: Vanishes) -> None:
    assert vanishes("track_deallocations") == {"deallocations", "leaks"}


def test_r1_061_what_is_not_freed_is_told(full: SimpleNamespace) -> None:
    assert 39.9 < full.metrics["memory_leaks"]["reading"] < 42
    assert full.metrics["deallocations"]["reading"]["count"] >= 1


def test_r1_062_memory_snapshots(vanishes: Vanishes) -> None:
    assert vanishes("memory_snapshots") == {"snapshots"}


def test_r1_062_snapshots_name_lines(full: SimpleNamespace) -> None:
    taken = full.metrics["memory_snapshots"]["reading"]
    assert taken["calls"] == 1
    assert taken["in_use_bytes"] >= LARGE
    assert Path(__file__).name in {Path(site["file"]).name for site in taken["top"]}


def test_r1_063_enable_gpu_profiling(vanishes: Vanishes) -> None:
    assert vanishes("enable_gpu_profiling") == {
        "gpu memory",
        "gpu events",
        "gpu utilization",
        "gpu memory samples",
        "gpu utilization samples",
        "gpu memory of training",
    }


def test_r1_064_track_gpu_memory(vanishes: Vanishes) -> None:
    gone = vanishes("track_gpu_memory")
    assert gone == {"gpu memory", "gpu memory samples", "gpu memory of training"}


def test_r1_065_track_gpu_utilization(vanishes: Vanishes) -> None:
    assert vanishes("track_gpu_utilization") == {"gpu utilization", "gpu utilization samples"}


def test_r1_066_track_cuda_events(vanishes: Vanishes) -> None:
    assert vanishes("track_cuda_events") == {"gpu events"}


@pytest.mark.usefixtures("gpu")
def test_r1_066_events_come_in_pairs_of_their_own(tmp_path: Path) -> None:
    with create_code_profiler(profile_dir=str(tmp_path), save_profiles=False) as profiler:
        with profiler.profile_section("outer"):
            for _ in range(3):
                with profiler.profile_section("inner"):
                    time.sleep(0.01)
        events = profiler.metrics.cuda_events
        assert len(events["inner"]) == 3
        assert min(events["inner"]) >= 0.009
        assert events["outer"][0] >= sum(events["inner"])


def test_r1_067_enable_io_profiling(vanishes: Vanishes) -> None:
    gone = vanishes("enable_io_profiling")
    assert gone == {"file operations", "network operations", "network samples"}


def test_r1_068_track_file_operations(vanishes: Vanishes) -> None:
    assert vanishes("track_file_operations") == {"file operations"}


def test_r1_068_calls_on_files_are_counted(full: SimpleNamespace) -> None:
    files = full.metrics["file_operations"]["reading"]
    assert files["write"]["bytes"] == 10_000
    assert files["read"]["bytes"] == 10_000
    assert files["open"]["count"] == 2
    assert files["read"]["time"] > 0


def test_r1_069_track_network_operations(vanishes: Vanishes) -> None:
    assert vanishes("track_network_operations") == {"network operations", "network samples"}


def test_r1_069_calls_on_sockets_are_counted(full: SimpleNamespace) -> None:
    network = full.metrics["network_operations"]["reading"]
    assert network["send"]["bytes"] == 100
    assert network["receive"] == {**network["receive"], "bytes": 100, "count": 1}


def test_r1_070_generate_reports(vanishes: Vanishes) -> None:
    assert vanishes("generate_reports") == {"report", "stacks"} | FILES


def test_r1_071_create_visualizations(vanishes: Vanishes) -> None:
    assert vanishes("create_visualizations") == {"images"}


def test_r1_072_export_to_json(vanishes: Vanishes) -> None:
    assert vanishes("export_to_json") == {"json"}


def test_r1_073_export_to_csv(vanishes: Vanishes) -> None:
    assert vanishes("export_to_csv") == {"csv"}


def test_r1_073_a_row_for_each_section(tmp_path: Path) -> None:
    import csv

    exercise(tmp_path)
    with (tmp_path / "profiles/profiling_metrics.csv").open(encoding="utf-8") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert ",".join(next(iter(rows.values()))) == (
        "name,category,count,total,avg,min,max,std,p50,p95,p99,memory,gpu"
    )
    reading = rows["reading"]
    assert reading["category"] == "data_loading"
    assert reading["count"] == "1"
    assert float(reading["total"]) == float(reading["avg"]) >= 0.05
    assert float(reading["memory"]) >= 39
    assert reading["gpu"] == ("0.0" if torch.cuda.is_available() else "")
    with (tmp_path / "profiles/performance_data.csv").open(encoding="utf-8") as file:
        samples = list(csv.DictReader(file))
    assert {"cpu_usage", "memory_usage"} <= {row["series"] for row in samples}
    assert all(float(row["value"]) >= 0 for row in samples)


def test_unknown_names_and_values_are_refused() -> None:
    with pytest.raises(TypeError, match="no field 'track_memry'; did you mean 'track_memory'"):
        ProfilerConfig(track_memry=True)
    with pytest.raises(TypeError, match="track_cpu must be True or False, not 'yes'"):
        create_code_profiler(track_cpu="yes")
    with pytest.raises(TypeError, match="must be a ProfilerConfig, not dict"):
        CodeProfiler({"track_cpu": True})  # type: ignore[arg-type]
    config = ProfilerConfig()
    with pytest.raises(TypeError, match="no field 'nothing'"):
        config.nothing = 1
