"""Guide 1: bottlenecks and advice, each rule where the numbers ask for it and nowhere else."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path
from typing import Any

import pytest

from .guides import snippet

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from stepwatch import _core
from stepwatch.compat._code_profiler.facts import Facts
from stepwatch.compat._code_profiler.rules import judge
from stepwatch.compat.code_profiler import create_code_profiler
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

pytestmark = pytest.mark.once

GIB = 1 << 30


def loader(**other: Any) -> dict[str, Any]:
    """Return what is known of a loader that nobody has to wait for."""
    return {
        "loader": "DataLoader of Pictures",
        "avg_batch_time": 0.0005,
        "p50_batch_time": 0.0005,
        "p99_batch_time": 0.0006,
        "first_batch_time": 0.001,
        "throughput": 64000.0,
        "avg_batch_size": 32.0,
        "avg_memory_per_batch": 1.0,
        "workers": 2,
        "pin_memory": True,
        "persistent_workers": True,
        "prefetch_factor": 2,
        "batch_size": 32,
        "dtypes": {"float32": 4 << 20, "int64": 256},
        **other,
    }


def training(**other: Any) -> dict[str, Any]:
    """Return what is known of a training that does what it should."""
    return {
        "avg_total_time": 0.1,
        "avg_transfer_time": 0.0,
        "avg_forward_time": 0.04,
        "avg_loss_time": 0.001,
        "avg_backward_time": 0.05,
        "avg_optimizer_time": 0.005,
        "on_gpu": False,
        "capability": None,
        "amp": False,
        "parameter_dtypes": {"float32": 1 << 20},
        "gradient_times": {"a": 0.02, "b": 0.02, "c": 0.01},
        "gradient_parameters": {"a": 10, "b": 10, "c": 5},
        **other,
    }


def row(**other: Any) -> dict[str, Any]:
    """Return the native row of a section that is nothing special."""
    return {
        "name": "step",
        "category": "general",
        "calls": 100,
        "errors": 0,
        "total_ns": 10**9,
        "self_ns": 10**9,
        "mean_ns": 10**7,
        "memory_bytes": 0,
        "peak_bytes": 0,
        **other,
    }


def facts(**other: Any) -> Facts:
    """Return the facts of a healthy run, but for what is given."""
    healthy: dict[str, Any] = {
        "cores": 8.0,
        "loaders": [loader()],
        "trainings": [training()],
        "sections": [row()],
        "total_s": 10.0,
        "memory_share": 0.2,
        "memory_mb": 2000.0,
        "cpu_share": 0.5,
    }
    return Facts(**{**healthy, **other})


def on_gpu(**other: Any) -> dict[str, Any]:
    """Return facts of a healthy run on a GPU."""
    gpu: dict[str, Any] = {
        "gpu": True,
        "trainings": [training(on_gpu=True, capability=9, amp=True)],
        "gpu_utilization": 92.0,
        "gpu_memory_share": 0.7,
        "gpu_reserved_bytes": 10 * GIB,
        "gpu_allocated_bytes": 9 * GIB,
    }
    return {**gpu, **other}


SLOW = {"avg_batch_time": 0.4, "p50_batch_time": 0.3, "p99_batch_time": 0.5, "throughput": 80.0}
SWEEP = {
    "rows": [
        {"batch_size": 32, "given": True, "fits": True},
        {"batch_size": 128, "fits": True},
        {"batch_size": 256, "fits": False},
    ],
    "best": {"batch_size": 128},
    "fixed_share": 0.4,
}

# Rule, its words, and the facts that ask for it.
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("RULE-06", "Increase num_workers", {"loaders": [loader(**SLOW, workers=0)]}),
    (
        "RULE-07",
        "Enable pin_memory",
        on_gpu(
            loaders=[loader(pin_memory=False)],
            trainings=[training(on_gpu=True, capability=9, amp=True, avg_transfer_time=0.006)],
        ),
    ),
    (
        "RULE-08",
        "Use persistent_workers",
        {"loaders": [loader(**SLOW, persistent_workers=False, first_batch_time=2.0)]},
    ),
    ("RULE-09", "Optimize batch size", {"batch_sizes": SWEEP}),
    (
        "RULE-10",
        "Use prefetching",
        {"loaders": [loader(**{**SLOW, "p50_batch_time": 0.1}, workers=8)]},
    ),
    ("RULE-11", "Monitor memory usage", {"tracks_memory": False, "memory_share": 0.75}),
    ("RULE-12", "Optimize data types", {"loaders": [loader(dtypes={"float64": 8 << 20})]}),
    (
        "RULE-13",
        "Implement caching",
        {"sections": [row(name="lookup", calls=5000)], "repeats": {"lookup": 0.9}},
    ),
    ("RULE-14", "Regular garbage collection", {"gc_s": 0.2}),
    (
        "RULE-15",
        "Use memory-efficient operations",
        {"sections": [row(calls=2, memory_bytes=600 << 20)]},
    ),
    ("RULE-16", "Monitor GPU memory", on_gpu(tracks_gpu=False)),
    ("RULE-17", "Optimize batch size for the GPU", on_gpu(gpu_memory_share=0.95)),
    (
        "RULE-18",
        "Use mixed precision",
        on_gpu(trainings=[training(on_gpu=True, capability=9, amp=False)]),
    ),
    (
        "RULE-19",
        "Optimize data transfer: minimize CPU-GPU transfers",
        on_gpu(trainings=[training(on_gpu=True, amp=True, avg_transfer_time=0.02)]),
    ),
    ("RULE-20", "GPU memory management", on_gpu(gpu_allocated_bytes=4 * GIB)),
    (
        "RULE-21",
        "Profile forward/backward passes",
        {
            "trainings": [
                {
                    key: value
                    for key, value in training().items()
                    if key not in ("avg_forward_time", "avg_backward_time")
                }
            ]
        },
    ),
    (
        "RULE-22",
        "Optimize model architecture: simplify a",
        {"trainings": [training(gradient_times={"a": 0.09, "b": 0.005, "c": 0.005},
                                gradient_parameters={"a": 1, "b": 50, "c": 49})]},
    ),
    ("RULE-23", "Use efficient optimizers", {"trainings": [training(avg_optimizer_time=0.03)]}),
    ("RULE-24", "Gradient accumulation", {"batch_sizes": SWEEP}),
    (
        "RULE-25",
        "Mixed precision training",
        on_gpu(trainings=[training(on_gpu=True, capability=9, amp=False)]),
    ),
    ("RULE-26", "memory profiling", {"memory_share": 0.85}),
    ("RULE-27", "num_workers, enable pin_memory", {"loaders": [loader(**SLOW)]}),
    ("RULE-28", "Increase batch size", on_gpu(gpu_utilization=40.0)),
    ("RULE-29", "use multiprocessing", on_gpu(cpu_share=0.97, gpu_utilization=60.0)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "words", "given"), CASES, ids=[case[0] for case in CASES])
def test_r1_114_every_strategy_is_reachable(rule: str, words: str, given: dict[str, Any]) -> None:
    bottlenecks, recommendations = judge(facts(**given))
    fired = {each for entry in bottlenecks for each in entry["rules"]}
    assert rule in fired
    assert any(words in text for text in recommendations), recommendations


@pytest.mark.parametrize(("rule", "given"), [(case[0], case[2]) for case in CASES])
def test_r1_095_advice_to_the_character(rule: str, given: dict[str, Any]) -> None:
    expected = json.loads(Path(__file__).with_name("guide1_advice.json").read_text())[rule]
    bottlenecks, recommendations = judge(facts(**given))
    said = [[each["type"], each["severity"], each["description"]] for each in bottlenecks]
    assert [said, recommendations] == expected


def test_the_type_that_is_too_wide_is_named() -> None:
    mixed = {"float32": 6 << 20, "int64": 4 << 20}
    (found,) = judge(facts(loaders=[loader(dtypes=mixed)]))[0]
    assert found["description"] == "40% of a batch of DataLoader of Pictures is int64"
    assert found["evidence"]["bytes_by_type"] == mixed


def test_the_library_judges() -> None:
    """Whoever has numbers may ask, and what is no question is refused in one sentence."""
    ((rule, kind, text, severity, share, subject, part, gain, evidence, told),) = _core.judge(
        [("run", {}), ("section", {"mean_ns": 3e9, "calls": 2, "nothing": None})]
    )
    assert (rule, text, kind, severity) == ("RULE-59", "RULE-59", "slow_section", "low")
    assert (share, subject, part, gain, told) == (0.0, 1, None, 0, {})
    assert evidence == {"calls": 2, "average_s": 3.0}
    for wrong in ([("loder", {})], [(3, {})]):
        with pytest.raises(ValueError, match="is no kind of subject"):
            _core.judge(wrong)  # type: ignore[arg-type]
    for wrong in ([3], [("run",)], [("run", [])], [("run", {1: 2})], [("run", {"a": "b"})]):
        with pytest.raises(TypeError):
            _core.judge(wrong)  # type: ignore[arg-type]


def test_r1_114_all_24_are_there() -> None:
    assert [case[0] for case in CASES] == [f"RULE-{number:02}" for number in range(6, 30)]


def remedies(name: str) -> list[str]:
    """Return the remedies of an entry of the guide's list of common issues."""
    solution = snippet(name).partition("Solution: ")[2].strip()
    return [part.strip().lower() for part in solution.split(",")]


@pytest.mark.parametrize(
    ("name", "rule", "given"),
    [
        ("S1-12", "RULE-26", {"memory_share": 0.85}),
        ("S1-13", "RULE-27", {"loaders": [loader(**SLOW)]}),
        ("S1-14", "RULE-28", on_gpu(gpu_utilization=40.0)),
        ("S1-15", "RULE-29", on_gpu(cpu_share=0.97, gpu_utilization=60.0)),
    ],
)
def test_the_troubles_of_the_guide(name: str, rule: str, given: dict[str, Any]) -> None:
    (entry,) = [each for each in judge(facts(**given))[0] if rule in each["rules"]]
    for remedy in remedies(name):
        assert remedy in entry["recommendation"].lower()


def test_s1_12_high_memory_usage() -> None:
    assert remedies("S1-12") == [
        "enable memory profiling", "optimize data types", "implement caching"
    ]  # fmt: skip
    test_the_troubles_of_the_guide("S1-12", "RULE-26", {"memory_share": 0.85})


def test_s1_13_slow_data_loading() -> None:
    assert remedies("S1-13")[0] == "increase num_workers"
    test_the_troubles_of_the_guide("S1-13", "RULE-27", {"loaders": [loader(**SLOW)]})


def test_s1_14_gpu_underutilization() -> None:
    assert remedies("S1-14")[0] == "increase batch size"
    test_the_troubles_of_the_guide("S1-14", "RULE-28", on_gpu(gpu_utilization=40.0))


def test_s1_15_cpu_bottlenecks() -> None:
    assert remedies("S1-15")[1] == "use multiprocessing"
    given = on_gpu(cpu_share=0.97, gpu_utilization=60.0)
    test_the_troubles_of_the_guide("S1-15", "RULE-29", given)


@pytest.mark.parametrize("given", [{}, on_gpu()], ids=["cpu", "gpu"])
def test_r1_003_a_healthy_run_has_no_bottlenecks(given: dict[str, Any]) -> None:
    assert judge(facts(**given)) == ([], [])


class Slow(Dataset[Any]):
    """Samples of 30 ms."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.03)
        return torch.full((3,), float(index)), index % 3


def small_model() -> Any:
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))


def test_r1_003_a_real_healthy_run(tmp_path: Path) -> None:
    data = TensorDataset(torch.randn(512, 3), torch.arange(512) % 3)
    with create_code_profiler(profile_dir=str(tmp_path)) as profiler:
        for _ in range(50):
            with profiler.profile_section("step", "training"):
                time.sleep(0.001)
        profiler.profile_data_loading(DataLoader(data, batch_size=8), num_batches=5)
        report = profiler.generate_profiling_report()
    assert report["bottlenecks"] == []
    assert report["recommendations"] == []
    assert report["summary"]["bottlenecks_found"] == 0


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the report on a slow loader."""
    folder = tmp_path_factory.mktemp("planted")
    with create_code_profiler(profile_dir=str(folder)) as profiler:
        profiler.profile_data_loading(DataLoader(Slow(), batch_size=4), num_batches=2)
        profiler.profile_model_training(small_model(), DataLoader(Slow(), batch_size=4), 2)
        profiler.generate_profiling_report()
        return profiler.generate_profiling_report()


def test_r1_003_a_planted_bottleneck_is_found(planted: dict[str, Any]) -> None:
    assert planted["summary"]["bottlenecks_found"] == len(planted["bottlenecks"]) >= 1
    assert planted["bottlenecks"][0]["type"] == "slow_batch_loading"


def test_r1_004_recommendations_say_what_to_change(planted: dict[str, Any]) -> None:
    texts = planted["recommendations"]
    assert any("Increase num_workers of DataLoader of Slow from 0 to " in text for text in texts)
    assert all(isinstance(text, str) and text for text in texts)


def test_r1_007_the_culprit_is_named(planted: dict[str, Any]) -> None:
    assert "DataLoader of Slow" in planted["bottlenecks"][0]["description"]
    (_, sections) = judge(facts(sections=[row(name="mine", mean_ns=3 * 10**9)]))
    assert sections == ["Optimize mine: it averages 3.00 s"]


def test_r1_093_order_is_severity_then_share(planted: dict[str, Any]) -> None:
    order = ["critical", "high", "medium", "low"]
    many = facts(
        loaders=[loader(**SLOW, dtypes={"float64": 8 << 20})],
        memory_share=0.96,
        gc_s=0.2,
        sections=[row(name="lookup", calls=5000)],
        repeats={"lookup": 0.9},
    )
    found = judge(many)[0]
    keys = [(order.index(each["severity"]), -each["evidence"]["share"]) for each in found]
    assert keys == sorted(keys)
    assert len(found) >= 4
    assert judge(many) == judge(many)
    assert planted["bottlenecks"][0]["type"] == "slow_batch_loading"


def test_r1_094_keys_of_a_bottleneck(planted: dict[str, Any]) -> None:
    for each in planted["bottlenecks"]:
        assert set(each) == {
            "description", "severity", "recommendation", "type", "evidence", "rules"
        }  # fmt: skip
        assert each["severity"] in ("low", "medium", "high", "critical")
        assert each["description"]
        assert each["recommendation"]
    assert planted["bottlenecks"][0]["evidence"]["avg_batch_time"] >= 0.12


def test_r1_095_recommendations_are_ranked_and_said_once() -> None:
    many = facts(loaders=[loader(**SLOW, workers=0)], gc_s=0.05001, memory_share=0.9)
    texts = judge(many)[1]
    assert len(texts) == len(set(texts))
    shares = {rule: each["evidence"]["share"] for each in judge(many)[0] for rule in each["rules"]}
    assert shares["RULE-26"] > shares["RULE-27"] > shares["RULE-14"]
    places = [
        next(i for i, text in enumerate(texts) if words in text)
        for words in ("memory profiling", "num_workers", "garbage collection")
    ]
    assert places == sorted(places)


def test_findings_of_a_recording_are_bottlenecks_too() -> None:
    finding = {
        "kind": "loader_workers",
        "title": "The loader is too slow.",
        "severity": "critical",
        "share": 0.9,
        "evidence": {"wait_ms": 12.0},
        "advice": ["Give it 4 workers."],
        "rules": ["RULE-02", "RULE-06"],
    }
    found, texts = judge(facts(findings=[finding]))
    assert found[0]["type"] == "loader_workers"
    assert found[0]["evidence"]["wait_ms"] == 12.0
    assert found[0]["rules"] == ["RULE-02", "RULE-06"]
    assert texts == ["Give it 4 workers."]
