"""Guide 1: the examples run, and following the advice helps."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)


pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples" / "code_profiling"


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
