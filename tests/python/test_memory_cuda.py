"""Memory of a GPU, as torch's allocator counts it, beside what torch itself says."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest
import stepwatch

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch  # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

MB = 1 << 20


def allocator(run: Any) -> dict[str, Any]:
    rows = run.report().to_dict()["memory"]["allocators"]
    return next(row for row in rows if row["name"] == "torch.cuda")


def test_values_of_each_step(tmp_path: Path) -> None:
    """A tensor more in each step: every reading sees it, and the peak is torch's own."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    device = torch.cuda.current_device()
    kept, truth = [], []
    stepwatch.start(out=tmp_path / "run", quiet=True)
    for _ in range(5):
        with stepwatch.step():
            kept.append(torch.empty(64 * MB, dtype=torch.uint8, device="cuda"))
            time.sleep(0.15)
        truth.append(torch.cuda.memory_allocated())
    run = stepwatch.stop()
    assert run is not None
    name = f"torch.cuda.{device}.allocated_bytes"
    assert [row["value"] for row in run.counters if row["name"] == name] == truth
    found = allocator(run)
    assert found["device"] == device
    assert found["allocated_bytes"] == truth[-1]
    assert found["allocated_peak_bytes"] == torch.cuda.max_memory_allocated()
    assert found["reserved_peak_bytes"] == torch.cuda.max_memory_reserved()
    assert found["retries"] == torch.cuda.memory_stats()["num_alloc_retries"]
    assert found["readings"] == 6


def test_blocks_in_pieces(tmp_path: Path) -> None:
    """Every other tensor is freed: what is held and not in use is seen."""
    torch.cuda.empty_cache()
    stepwatch.start(out=tmp_path / "run", quiet=True)
    with stepwatch.step():
        kept = [torch.empty(3 * MB, dtype=torch.uint8, device="cuda") for _ in range(64)]
        del kept[::2]
        time.sleep(0.15)
    run = stepwatch.stop()
    assert run is not None
    found = allocator(run)
    truth = torch.cuda.memory_stats()["inactive_split_bytes.all.peak"]
    assert found["inactive_split_peak_bytes"] == truth > 32 * MB
    assert found["fragmentation"] > 0.2


def test_a_device_that_is_not_used_stays_so(tmp_path: Path) -> None:
    """Nothing is said of devices on which the program allocated nothing."""
    stepwatch.start(out=tmp_path / "run", quiet=True)
    with stepwatch.step():
        torch.empty(MB, device="cuda")
    run = stepwatch.stop()
    assert run is not None
    rows = run.report().to_dict()["memory"]["allocators"]
    used = {row["device"] for row in rows if row["name"] == "torch.cuda"}
    assert used == {torch.cuda.current_device()}
