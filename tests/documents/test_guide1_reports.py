"""Guide 1: metrics, the monitor, reports, images, ranks."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import csv
import gc
import html
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import RunText

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import stepwatch
import torch
from stepwatch.compat._code_profiler import files, pictures, probes
from stepwatch.compat.code_profiler import (
    CodeProfiler,
    compare,
    create_code_profiler,
)
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

pytestmark = pytest.mark.once

MIB = 1 << 20
LARGE = 50 * MIB  # The C library maps as much anew each time.


@pytest.fixture
def profiler(tmp_path: Path) -> Any:
    """Return a profiler whose files go where nobody else looks."""
    with create_code_profiler(profile_dir=str(tmp_path), monitor_interval=0.02) as made:
        yield made


class Used:
    """A profiler that was used, its numbers and its report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with create_code_profiler(
            profile_dir=str(folder), profile_level="comprehensive", monitor_interval=0.02
        ) as profiler:
            profiler.start_performance_monitoring()
            for _ in range(3):
                with profiler.profile_section("load", "data_loading"):
                    time.sleep(0.005)
            with profiler.profile_section("keeps"):
                self.kept = b"z" * LARGE
                time.sleep(0.05)
            with profiler.profile_section("frees"):
                held = b"z" * LARGE
                time.sleep(0.05)
                del held
            with profiler.profile_section("writes"):
                (folder / "data").write_bytes(b"x" * 5000)
            data = TensorDataset(torch.zeros(64, 3), torch.zeros(64, dtype=torch.int64))
            loader = DataLoader(data, batch_size=8)
            profiler.profile_data_loading(loader, num_batches=3)
            profiler.profile_model_training(nn.Linear(3, 2), loader, num_batches=3)
            profiler.stop_performance_monitoring()
            self.metrics = profiler.metrics.to_dict()
            self.data = profiler.performance_data
            self.elapsed = profiler.native.elapsed_s
            self.report = profiler.generate_profiling_report()


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Used:
    """Return what came of using every part once."""
    return Used(tmp_path_factory.mktemp("used"))


# --- Metrics ---------------------------------------------------------------------------------


def test_r1_074_a_time_for_each_call(used: Used) -> None:
    times = used.metrics["execution_times"]
    assert len(times["load"]) == 3
    assert all(type(value) is float and value >= 0.005 for value in times["load"])


def test_r1_074_the_list_is_bounded_and_the_sum_exact(
    profiler: CodeProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stepwatch.compat._code_profiler import probes

    monkeypatch.setattr(probes, "LIMIT", 10)
    with create_code_profiler(profile_dir=profiler.config.folder, save_profiles=False) as few:
        for _ in range(25):
            with few.profile_section("a"):
                pass
        assert len(few.metrics.execution_times["a"]) == 10
        assert few.metrics.call_counts["a"] == 25


def test_r1_075_average_times_are_a_mapping(used: Used) -> None:
    averages = used.metrics["average_times"]
    assert isinstance(averages, dict)
    assert "load" in list(averages.keys())
    assert averages["load"] == pytest.approx(sum(used.metrics["execution_times"]["load"]) / 3)
    assert len(list(averages.values())) == len(averages)


def test_r1_076_total_times(used: Used) -> None:
    assert used.metrics["total_times"]["load"] == pytest.approx(
        sum(used.metrics["execution_times"]["load"])
    )


def test_r1_077_memory_usage_by_call(used: Used) -> None:
    assert used.metrics["memory_usage"]["keeps"][0] == pytest.approx(50, abs=4)
    assert len(used.metrics["memory_usage"]["load"]) == 3


def test_r1_078_peak_memory_while_open(used: Used) -> None:
    assert used.metrics["peak_memory"]["frees"] >= 40
    assert used.metrics["memory_usage"]["frees"][0] < 10


def test_r1_079_no_gpu_is_no_error(used: Used) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert used.metrics["gpu_memory_usage"] == {}
    assert used.data["gpu_memory_usage"] == []
    assert "There is no GPU that torch can use: GPU metrics are empty." in used.report["notes"]


def test_r1_079_memory_of_a_gpu(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    torch.zeros(1, device="cuda")
    with create_code_profiler(profile_dir=str(tmp_path)) as made:
        with made.profile_section("on_gpu"):
            kept = torch.zeros(16 * MIB, dtype=torch.uint8, device="cuda")
        assert made.metrics.gpu_memory_usage["on_gpu"] == [16.0]
        with made.profile_section("computes"):
            one = torch.rand(4096, 4096, device="cuda")
            for _ in range(20):
                one = one @ one / 4096
        seconds = made.metrics.cuda_events["computes"]
        assert len(seconds) == 1
        assert seconds[0] > 0
    assert kept.numel() == 16 * MIB


def test_r1_080_no_gpu_no_utilization(used: Used) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert used.metrics["gpu_utilization"] == {}


def test_r1_080_utilization_of_a_gpu(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    one = torch.rand(8192, 8192, device="cuda")
    with create_code_profiler(profile_dir=str(tmp_path), monitor_interval=0.1) as made:
        with made.profile_section("busy"):
            end = time.monotonic() + 3
            while time.monotonic() < end:
                for _ in range(10):
                    torch.mm(one, one)
                torch.cuda.synchronize()
        found = made.metrics.gpu_utilization["busy"]
    assert max(found) > 50
    assert all(0 <= value <= 100 for value in found)


def test_r1_081_call_counts(used: Used) -> None:
    assert used.metrics["call_counts"]["load"] == 3
    assert used.metrics["call_counts"]["keeps"] == 1


def test_r1_082_calls_a_second(used: Used) -> None:
    frequencies = used.metrics["call_frequencies"]
    assert frequencies["load"] == pytest.approx(3 * frequencies["keeps"], rel=0.05)
    assert 3 / (used.elapsed * 1.5) <= frequencies["load"] <= 3 / 0.115


def test_r1_083_the_other_fields(used: Used) -> None:
    metrics = used.metrics
    assert metrics["min_times"]["load"] <= metrics["average_times"]["load"]
    assert metrics["max_times"]["load"] >= metrics["average_times"]["load"]
    assert metrics["memory_leaks"]["keeps"] == pytest.approx(50, abs=1)
    assert "frees" not in metrics["memory_leaks"] or metrics["memory_leaks"]["frees"] < 1
    assert metrics["io_operations"]["writes"]["written_bytes"] == 5000
    assert metrics["file_operations"]["writes"]["write"]["bytes"] == 5000
    assert metrics["network_operations"] == {}
    assert metrics["cuda_events"] == {} or torch.cuda.is_available()
    assert isinstance(metrics["bottlenecks"], list)
    assert isinstance(metrics["recommendations"], list)


def test_r1_084_they_print_as_plain_dictionaries(used: Used) -> None:
    for name, value in used.metrics.items():
        assert f"{value}".startswith("[" if isinstance(value, list) else "{"), name
    assert json.loads(json.dumps(used.metrics)) is not None
    assert f"{used.metrics['call_counts']}" == repr(dict(used.metrics["call_counts"]))


# --- The monitor -----------------------------------------------------------------------------


def test_r1_002_cpu_memory_and_gpu_while_the_program_runs(used: Used) -> None:
    assert len(used.data["cpu_usage"]) >= 2
    assert len(used.data["memory_usage"]) >= 3
    assert set(used.data["timestamps"]) >= {"cpu_usage", "memory_usage", "gpu_memory_usage"}
    moments = used.data["timestamps"]["memory_usage"]
    assert moments == sorted(moments)
    assert len(moments) == len(used.data["memory_usage"])


def test_r1_085_starting_twice_is_harmless(profiler: CodeProfiler) -> None:
    profiler.start_performance_monitoring()
    count = threading.active_count()
    profiler.start_performance_monitoring()
    assert threading.active_count() == count
    assert stepwatch.monitor.running
    profiler.stop_performance_monitoring()


def test_r1_086_stopping_is_prompt_and_always_fine(tmp_path: Path) -> None:
    with create_code_profiler(profile_dir=str(tmp_path), monitor_interval=3600) as made:
        made.stop_performance_monitoring()
        made.start_performance_monitoring()
        made.stop_performance_monitoring()  # Would take an hour if it waited for the interval.
        assert not stepwatch.monitor.running
        made.stop_performance_monitoring()
        assert len(made.performance_data["memory_usage"]) == 2


def test_r1_087_short_runs_have_samples(tmp_path: Path) -> None:
    with create_code_profiler(profile_dir=str(tmp_path)) as made:
        made.start_performance_monitoring()
        time.sleep(0.01)
        made.stop_performance_monitoring()
        found = made.performance_data["cpu_usage"]
    assert len(found) >= 1
    assert all(0 <= value <= 100 * (os.cpu_count() or 1) * 1.5 for value in found)


def test_r1_088_memory_is_what_the_system_says(profiler: CodeProfiler) -> None:
    profiler.start_performance_monitoring()
    profiler.stop_performance_monitoring()
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    real = int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    assert profiler.performance_data["memory_usage"][-1] == pytest.approx(real, rel=0.1)


def test_r1_089_an_empty_list_without_a_gpu(profiler: CodeProfiler) -> None:
    assert profiler.performance_data["gpu_memory_usage"] == []  # Also before it was started.


def test_the_monitor_is_refused_by_its_switch(tmp_path: Path) -> None:
    with create_code_profiler(
        profile_dir=str(tmp_path), enable_performance_monitoring=False
    ) as made:
        made.start_performance_monitoring()
        assert not stepwatch.monitor.running


# --- Reports ---------------------------------------------------------------------------------


def test_r1_090_a_report_is_returned_and_saved(used: Used) -> None:
    saved = json.loads((used.folder / "profiling_report.json").read_text(encoding="utf-8"))
    assert saved == used.report


def test_r1_091_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with create_code_profiler(create_visualizations=False) as made:
        with made.profile_section("a"):
            pass
        made.generate_profiling_report("custom_report.json")
    assert json.loads(Path("custom_report.json").read_text(encoding="utf-8"))["summary"]
    assert not Path("profiles/profiling_report.json").exists()  # cleanup() had nothing to add.


def test_r1_092_the_summary(used: Used) -> None:
    summary = used.report["summary"]
    counts = used.report["detailed_metrics"]["call_counts"]
    averages = used.report["detailed_metrics"]["average_times"]
    assert summary["total_sections_profiled"] == len(counts)
    assert summary["total_function_calls"] == sum(counts.values())
    assert summary["slowest_sections"][0] == [
        max(averages, key=averages.__getitem__), max(averages.values())
    ]  # fmt: skip
    assert len(summary["slowest_sections"]) == len(summary["most_called_sections"]) == 5
    assert summary["most_called_sections"][0][1] == max(counts.values())
    assert summary["bottlenecks_found"] == len(used.report["bottlenecks"])
    assert summary["total_profiling_time"] > 0.1


def test_r1_096_detailed_metrics(used: Used) -> None:
    details = used.report["detailed_metrics"]
    for name in (
        "execution_times", "memory_usage", "gpu_memory_usage", "call_counts", "call_frequencies"
    ):  # fmt: skip
        assert isinstance(details[name], dict)
    assert details["execution_times"]["load"] == used.metrics["execution_times"]["load"]
    assert details["paths"]["load"]["calls"] == 3


def test_r1_097_performance_data(used: Used) -> None:
    # A look at the clock more or less changes the last digits.
    assert used.report["performance_data"]["cpu_usage"] == pytest.approx(
        used.data["cpu_usage"], rel=1e-3
    )
    assert used.report["performance_data"]["memory_usage"]


def test_r1_098_valid_json_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a" / "report.json"
    files.write_json(path, {"nan": float("nan"), "inf": [float("inf")], "tensor": torch.tensor(3)})
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == {"nan": None, "inf": [None], "tensor": 3}
    assert "NaN" not in text
    path.chmod(0o400)
    before = path.read_bytes()
    with pytest.raises(OSError, match=r"exists|directory"):
        files.write_json(path / "below", {})
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["report.json"]


def test_r1_099_cleanup_puts_everything_back(tmp_path: Path) -> None:
    threads, callbacks = threading.active_count(), list(gc.callbacks)
    tasks = len(list(Path("/proc/self/task").iterdir()))
    made = create_code_profiler(
        profile_dir=str(tmp_path), profile_level="comprehensive", create_visualizations=False
    )
    made.start_performance_monitoring()
    with made.profile_section("a"):
        pass
    assert stepwatch.is_recording()
    made.cleanup()
    assert json.loads((tmp_path / "profiling_report.json").read_text(encoding="utf-8"))["summary"]
    assert not stepwatch.is_recording()
    assert not stepwatch.monitor.running
    assert threading.active_count() == threads
    assert len(list(Path("/proc/self/task").iterdir())) <= tasks
    assert gc.callbacks == callbacks
    written = (tmp_path / "profiling_report.json").stat().st_mtime_ns
    made.cleanup()
    assert (tmp_path / "profiling_report.json").stat().st_mtime_ns == written
    assert made.metrics.call_counts == {"a": 1}  # The numbers stay.
    with made.profile_section("late"):
        pass
    assert made.metrics.call_counts == {"a": 1}


def test_r1_099_at_the_end_of_the_program(tmp_path: Path, run_text: RunText) -> None:
    text = """
from core.code_profiler import create_code_profiler
profiler = create_code_profiler(create_visualizations=False)
with profiler.profile_section("a"):
    pass
"""
    run_text(tmp_path, text).ok()
    report = json.loads((tmp_path / "profiles/profiling_report.json").read_text(encoding="utf-8"))
    assert report["detailed_metrics"]["call_counts"] == {"a": 1}


def test_a_recording_of_the_program_is_used(tmp_path: Path) -> None:
    stepwatch.start(out=str(tmp_path / "run"), quiet=True, report=False, history=False)
    try:
        with create_code_profiler(profile_dir=str(tmp_path / "profiles")) as made:
            made.start_performance_monitoring()
            with made.profile_section("mine"):
                time.sleep(0.01)
            made.stop_performance_monitoring()
            assert made.performance_data["memory_usage"]
            data = TensorDataset(torch.zeros(64, 3), torch.zeros(64, dtype=torch.int64))
            made.profile_data_loading(DataLoader(data, batch_size=8), num_batches=3)
            with made.profile_section("after"):
                pass
            notes = made.generate_profiling_report()["notes"]
        assert stepwatch.is_recording()
    finally:
        run = stepwatch.stop()
    assert run is not None
    paths = [row["path"] for row in run.sections]
    assert ["mine"] in paths
    assert ["after"] in paths  # Going through a loader made no validation of it.
    assert any("(stepwatch run --io)" in note for note in notes)


def test_without_torch(tmp_path: Path, run_text: RunText) -> None:
    text = """
import sys
sys.modules["torch"] = None
from core.code_profiler import create_code_profiler
profiler = create_code_profiler(create_visualizations=False)
assert profiler.profile_data_loading([[1, 2], [3, 4], [5, 6]], 2)["avg_batch_size"] == 2
assert profiler.profile_preprocessing(abs, -1, 2)["total_samples_profiled"] == 2
print(profiler.profile_model_training(None, [1], 1)["error"])
profiler.cleanup()
"""
    done = run_text(tmp_path, text).ok()
    assert "profile_model_training needs torch, which cannot be imported here" in done.out


def test_r1_100_any_category(profiler: CodeProfiler) -> None:
    with profiler.profile_section("debug_section", "debug"):
        pass
    report = profiler.generate_profiling_report()
    assert report["detailed_metrics"]["categories"] == {"debug_section": "debug"}


def test_r1_101_debug_mode_prints_details(tmp_path: Path) -> None:
    with create_code_profiler(
        profile_dir=str(tmp_path), profile_level="comprehensive", track_allocations=True
    ) as made:
        with made.profile_section("debug_section", "debug"):
            kept = b"z" * LARGE
        text = f"Detailed metrics: {made.metrics}"
    assert f"'bytes': {made.metrics.allocations['debug_section']['bytes']}" in text
    assert made.metrics.allocations["debug_section"]["bytes"] >= len(kept)
    assert "memory_snapshots={'debug_section': {'calls': 1" in text


def test_r1_120_one_report_answers(used: Used) -> None:
    """JSON, CSV and HTML from one run, with a part for each promise."""
    assert {path.name for path in used.folder.iterdir()} >= {
        "profiling_report.json", "profiling_metrics.csv", "performance_data.csv",
        "profiling_report.html", "visualizations",
    }  # fmt: skip
    details = used.report["detailed_metrics"]
    assert used.report["performance_data"]["cpu_usage"]  # CPU
    assert details["memory_usage"]["keeps"]  # memory
    assert "gpu_memory_usage" in details  # GPU
    assert used.report["data_loading"][0]["throughput"] > 0  # the data pipeline
    assert used.report["training"][0]["throughput"] > 0  # training
    assert isinstance(used.report["recommendations"], list)  # guidance
    page = (used.folder / "profiling_report.html").read_text(encoding="utf-8")
    assert "keeps" in page
    with (used.folder / "profiling_metrics.csv").open(encoding="utf-8") as file:
        assert {row["name"] for row in csv.DictReader(file)} == set(details["call_counts"])


def test_r1_120_the_page_says_what_the_report_says(tmp_path: Path) -> None:
    class Slow:
        def __iter__(self) -> Any:
            for _ in range(3):
                time.sleep(0.12)
                yield [0] * 4

    with create_code_profiler(profile_dir=str(tmp_path)) as made:
        with made.profile_section("a <b> & c", "debug"):
            pass
        made.profile_data_loading(Slow(), num_batches=3)
        report = made.generate_profiling_report()
    text = (tmp_path / "profiling_report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    (found,) = report["bottlenecks"]
    for told in (found["description"], found["recommendation"], *report["recommendations"]):
        assert html.escape(told) in text
    assert "a &lt;b&gt; &amp; c" in text
    assert "Data loading: Slow" in text
    assert "No bottlenecks were found." not in text
    assert text.count("data:image/svg+xml;base64,") == 5
    assert 'href="recording.html"' in text
    assert (tmp_path / "recording.html").is_file()
    with create_code_profiler(profile_dir=str(tmp_path), create_visualizations=False) as healthy:
        with healthy.profile_section("quick"):
            pass
        healthy.generate_profiling_report()
    text = (tmp_path / "profiling_report.html").read_text(encoding="utf-8")
    assert "No bottlenecks were found." in text
    assert "base64" not in text


def test_the_console_of_a_report(
    profiler: CodeProfiler, capsys: pytest.CaptureFixture[str]
) -> None:
    with profiler.profile_section("alone"):
        time.sleep(0.01)
    report = profiler.generate_profiling_report()
    total = report["summary"]["total_profiling_time"]
    average = report["detailed_metrics"]["average_times"]["alone"]
    assert capsys.readouterr().out == (
        f"\n{'=' * 60}\nGENERATING PROFILING REPORT\n{'=' * 60}\n\n"
        "Profiling Report Summary:\n"
        "  Sections profiled: 1\n"
        "  Total function calls: 1\n"
        f"  Total profiling time: {total:.4f}s\n"
        "  Bottlenecks found: 0\n\n"
        f"Slowest sections:\n  - alone: {average:.4f}s\n"
    )


# --- Images ----------------------------------------------------------------------------------


def picture(used: Used, name: str) -> str:
    """Return a picture as SVG, after a look at the PNG beside it."""
    folder = used.folder / "visualizations"
    png = (folder / f"{name}.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert width >= 400
    assert height >= 100
    assert len(png) > 2000
    text = (folder / f"{name}.svg").read_text(encoding="utf-8")
    assert text.lstrip().startswith(("<svg", "<?xml"))
    return text


def test_r1_005_five_kinds_of_images(used: Used) -> None:
    names = {path.stem for path in (used.folder / "visualizations").iterdir()}
    assert names == {
        "execution_times", "average_times", "memory_usage", "call_frequencies",
        "bottleneck_analysis",
    }  # fmt: skip


def test_r1_107_execution_times_are_histograms(used: Used) -> None:
    text = picture(used, "execution_times")
    assert "Execution time distribution" in text
    for name in ("load", "keeps", "training_batch"):
        assert name in text
    assert "n 3" in text  # So many calls of load.
    assert "keeps" in picture(used, "average_times")


def test_r1_107_no_section_is_forgotten(tmp_path: Path) -> None:
    with create_code_profiler(profile_dir=str(tmp_path), profile_level="basic") as made:
        made.config.create_visualizations = True
        for number in range(20):
            with made.profile_section(f"section {number}"):
                pass
        made.generate_profiling_report()
    text = (tmp_path / "visualizations/execution_times.svg").read_text(encoding="utf-8")
    shown = set(re.findall(r"section \d+", text))
    assert f"others ({20 - len(shown)})" in text


def test_r1_108_memory_over_seconds(used: Used) -> None:
    text = picture(used, "memory_usage")
    assert "Memory usage over time" in text
    assert re.search(r"time since monitoring began \((s|ms)\)", text)


def test_r1_108_memory_over_seconds_without_the_monitor(tmp_path: Path) -> None:
    kept = []
    with create_code_profiler(profile_dir=str(tmp_path)) as made:
        for _ in range(4):
            with made.profile_section("grows"):
                kept.append(b"z" * (20 << 20))
                time.sleep(0.02)
        report = made.generate_profiling_report()
        assert made.performance_data["memory_usage"] == []
    seen = report["detailed_metrics"]["memory_over_time"]
    assert seen["seconds"][0] == 0
    assert seen["seconds"] == sorted(seen["seconds"])
    assert seen["seconds"][-1] >= 0.08
    assert seen["mb"][-1] - seen["mb"][0] > 60
    text = (tmp_path / "visualizations/memory_usage.svg").read_text(encoding="utf-8")
    assert "Memory usage over time" in text
    assert "time since profiling began (ms)" in text
    with create_code_profiler(profile_dir=str(tmp_path), track_memory=False) as without:
        with without.profile_section("grows"):
            pass
        without.generate_profiling_report()
    text = (tmp_path / "visualizations/memory_usage.svg").read_text(encoding="utf-8")
    assert "Memory was not tracked." in text


def test_looks_at_memory_are_bounded() -> None:
    resident = probes.Resident()
    for _ in range(5000):
        resident.look(at_once=True)
    assert 1000 <= len(resident.points) <= 2048
    found = resident.over_time()["seconds"]
    assert found[0] == 0, "the first stays"
    assert found == sorted(found)


def test_r1_109_call_frequencies(used: Used) -> None:
    text = picture(used, "call_frequencies")
    assert "Call frequency analysis" in text
    assert "load" in text


def test_r1_110_bottleneck_analysis(used: Used, tmp_path: Path) -> None:
    assert "Bottleneck analysis" in picture(used, "bottleneck_analysis")
    report = dict(used.report)
    report["bottlenecks"] = [
        {"type": "slow_batch_loading", "severity": "high", "evidence": {"share": 0.6}}
    ]
    pictures.draw(str(tmp_path), report)
    text = (tmp_path / "visualizations/bottleneck_analysis.svg").read_text(encoding="utf-8")
    assert "slow_batch_loading (high)" in text
    assert "60" in text
    report["bottlenecks"] = []
    pictures.draw(str(tmp_path), report)
    text = (tmp_path / "visualizations/bottleneck_analysis.svg").read_text(encoding="utf-8")
    assert "No bottlenecks were found." in text


def test_r1_111_two_configurations_compared(tmp_path: Path) -> None:
    reports = {}
    for name, seconds in (("before", 0.004), ("after", 0.001)):
        with create_code_profiler(profile_dir=str(tmp_path / name)) as made:
            for _ in range(12):
                with made.profile_section("step"):
                    time.sleep(seconds)
            reports[name] = made.generate_profiling_report()
    found = compare(reports, str(tmp_path))
    assert found["images"] == [
        f"{tmp_path}/visualizations/profiling_comparison{kind}" for kind in (".png", ".svg")
    ]
    text = Path(found["images"][1]).read_text(encoding="utf-8")
    assert "before" in text
    assert "after" in text
    assert "Execution times of step" in text


def test_r1_111_the_guides_own_path_compares(tmp_path: Path, run_text: RunText) -> None:
    text = """
from core.code_profiler import compare, create_code_profiler
reports = []
for number in range(2):
    with create_code_profiler(profile_dir=f"p{number}") as made:
        with made.profile_section("step"): pass
        reports.append(made.generate_profiling_report())
print(compare(reports, ".")["images"][0])
"""
    done = run_text(tmp_path, text).ok()
    assert done.out.splitlines()[-1].endswith("visualizations/profiling_comparison.png")


def test_r1_112_no_matplotlib_and_no_display(tmp_path: Path, run_text: RunText) -> None:
    text = """
import sys
sys.modules["matplotlib"] = None
from core.code_profiler import create_code_profiler
profiler = create_code_profiler()
with profiler.profile_section("a"):
    pass
profiler.generate_profiling_report()
"""
    run_text(tmp_path, text, DISPLAY="").ok()
    assert (tmp_path / "profiles/visualizations/execution_times.png").stat().st_size > 2000


def test_r1_113_matplotlib_takes_the_metrics(used: Used, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    averages = used.metrics["average_times"]
    bars = axes.bar(list(averages.keys()), list(averages.values()))
    assert len(bars) == len(averages)
    figure.savefig(tmp_path / "own.png")
    plt.close(figure)
    assert (tmp_path / "own.png").stat().st_size > 0


# --- Comparing, ranks ------------------------------------------------------------------------


def test_r1_008_two_runs_with_a_known_speed_up(tmp_path: Path) -> None:
    # Times that were measured elsewhere: so much faster, and not a nanosecond of chance.
    for name, seconds in (("old", 0.004), ("new", 0.002)):
        with create_code_profiler(
            profile_dir=str(tmp_path / name), create_visualizations=False
        ) as made:
            for number in range(30):
                made._recorder.add("step", seconds * (1 + number / 100))
                made._recorder.add("same", 0.001 * (1 + number / 100))
    paths = {name: str(tmp_path / name / "profiling_report.json") for name in ("old", "new")}
    changes = {each["section"]: each for each in compare(paths)["changes"]}
    assert changes["step"]["significant"]
    assert changes["step"]["p_value"] < 0.001
    assert changes["step"]["speedup"] == pytest.approx(2)
    assert not changes["same"]["significant"]
    assert changes["same"]["speedup"] == pytest.approx(1)
    with pytest.raises(ValueError, match="two reports or more"):
        compare([paths["old"]])


def test_r1_008_the_test_knows_chance() -> None:
    from stepwatch.compat._code_profiler.comparing import rank_test

    one = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert rank_test(one, one) == 1.0
    assert rank_test(one, [value + 10 for value in one]) == pytest.approx(0.00094, rel=0.1)
    assert rank_test([1.0], one) is None


RANK = """
import os, sys, time
from core.code_profiler import create_code_profiler
profiler = create_code_profiler(create_visualizations=False, track_gpu=False)
rank = int(os.environ["RANK"])
for _ in range(2 + rank):
    with profiler.profile_section("step"):
        time.sleep(0.01 * (1 + rank))
profiler.cleanup()
"""


def test_r1_015_two_ranks(tmp_path: Path, guide_env: dict[str, str]) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK],
            cwd=tmp_path,
            env={**guide_env, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"},
        )
        for rank in range(2)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    folder = tmp_path / "profiles"
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert {"profiling_report_rank0.json", "profiling_report_rank1.json"} <= names
    assert {"profiling_metrics_rank0.csv", "profiling_metrics_rank1.csv"} <= names
    merged = json.loads((folder / "profiling_report.json").read_text(encoding="utf-8"))
    assert merged["summary"]["ranks"] == 2
    assert merged["detailed_metrics"]["call_counts"] == {"step": 5}
    by_rank = merged["detailed_metrics"]["average_times_by_rank"]["step"]
    assert by_rank["0"] >= 0.01
    assert by_rank["1"] >= 0.02
    one = json.loads((folder / "profiling_report_rank1.json").read_text(encoding="utf-8"))
    assert one["rank"] == {"rank": 1, "world_size": 2}


class OnCpu(Dataset[Any]):
    """Samples that take a while to make, as they are when nobody followed any advice."""

    def __len__(self) -> int:
        return 2048

    def __getitem__(self, index: int) -> Any:
        return torch.full((4096,), float(index % 7)).sqrt(), index % 10


def test_r1_117_the_gpu_is_used_better_after_the_advice(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    model = nn.Sequential(
        nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 10)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def utilization(batches: Any, name: str) -> float:
        with create_code_profiler(profile_dir=str(tmp_path / name), monitor_interval=0.1) as made:
            made.start_performance_monitoring()
            end = time.monotonic() + 5
            while time.monotonic() < end:
                for x, y in batches:
                    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    if time.monotonic() > end:
                        break
                torch.cuda.synchronize()
            made.stop_performance_monitoring()
            values = made.performance_data["gpu_utilization"]
        return float(sum(values) / len(values))

    before = utilization(DataLoader(OnCpu(), batch_size=16), "before")
    # Larger batches, made once, that lie on the device.
    large = [(x.cuda(), y.cuda()) for x, y in DataLoader(OnCpu(), batch_size=512)]
    after = utilization(large, "after")
    assert after >= 90
    assert after >= before * 1.2
