"""Statistics of torch's allocator of devices, from a torch that says what a test wants."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stepwatch

MB = 1_000_000

FAKE = """
import sys, time, types
import stepwatch

class Cuda:
    def __init__(self, devices=2, begun=True):
        self.devices, self.begun, self.calls, self.step = devices, begun, [], 0

    def is_initialized(self):
        return self.begun

    def device_count(self):
        return self.devices

    def memory_stats_as_nested_dict(self, device):
        self.calls.append(device)
        return self.stats(device)

    def stats(self, device):
        if device:
            return {"allocation": {"all": {"allocated": 0}}}
        allocated, reserved = 10_000_000 * (1 + self.step), 100_000_000
        return {
            "allocation": {"all": {"allocated": 7}},
            "allocated_bytes": {"all": {"current": allocated, "peak": allocated + 1}},
            "reserved_bytes": {"all": {"current": reserved, "peak": reserved + 2}},
            "inactive_split_bytes": {"all": {"current": 3_000_000, "peak": 4_000_000}},
            "num_alloc_retries": 5,
            "num_ooms": 1,
        }

def use(cuda):
    torch = types.ModuleType("torch")
    torch.__version__ = "2.0"
    torch.cuda = cuda
    sys.modules["torch"] = torch
    return cuda
"""


def run(tmp_path: Path, script: str) -> tuple[Any, list[str]]:
    """What the report says of memory, and what the script printed."""
    begin = f"stepwatch.start(out={str(tmp_path / 'run')!r}, quiet=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", FAKE + begin + script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return stepwatch.open(tmp_path / "run"), done.stdout.splitlines()


STEPS = """
cuda = use(Cuda())
for step in range(4):
    with stepwatch.step():
        cuda.step = step
        time.sleep(0.15)
print(len(cuda.calls), sorted(set(cuda.calls[2:-2])))
stepwatch.stop()
"""


def test_once_a_step(tmp_path: Path) -> None:
    """Every reading is a value of each counter; peaks and shares are of all of them."""
    recorded, lines = run(tmp_path, STEPS)
    # Both devices at first and at the end; in between the one that is in use.
    assert lines[0].split() == ["5", "[0]"]
    values: dict[str, list[float]] = {}
    for row in recorded.counters:
        values.setdefault(row["name"], []).append(row["value"])
    assert values["torch.cuda.0.allocated_bytes"] == [10 * MB, 20 * MB, 30 * MB, 40 * MB]
    assert values["torch.cuda.0.reserved_bytes"] == [100 * MB] * 4
    assert values["torch.cuda.0.inactive_split_bytes"] == [3 * MB] * 4
    assert len(values) == 3
    gpu, cpu = recorded.report().to_dict()["memory"]["allocators"]
    assert gpu["name"] == "torch.cuda"
    assert gpu["device"] == 0
    assert gpu["allocated_bytes"] == 40 * MB
    assert gpu["allocated_peak_bytes"] == 40 * MB + 1
    assert gpu["reserved_peak_bytes"] == 100 * MB + 2
    assert (gpu["retries"], gpu["ooms"], gpu["readings"]) == (5, 1, 5)
    assert gpu["inactive_split_peak_bytes"] == 4 * MB
    assert gpu["fragmentation"] == pytest.approx(0.9)
    assert gpu["why"] is None
    assert cpu["name"] == "torch.cpu"
    assert [cpu[key] for key in ("device", "allocated_bytes", "retries")] == [None] * 3
    assert "--memory" in cpu["why"]


@pytest.mark.parametrize("retries", [5, 0])
def test_an_allocator_that_ran_out(tmp_path: Path, retries: int) -> None:
    """The finding has what was held and not in use; without retries there is none."""
    script = f"""
class Out(Cuda):
    def stats(self, device):
        return {{**super().stats(device), "num_alloc_retries": {retries}}}

use(Out(1))
for step in range(30):
    with stepwatch.step():
        time.sleep(0.005)
stepwatch.stop()
"""
    recorded, _ = run(tmp_path, script)
    found = [
        finding
        for finding in recorded.report().to_dict()["findings"]
        if finding["kind"] == "memory_pressure" and "allocator" in finding["title"]
    ]
    assert len(found) == (1 if retries else 0)
    if found:
        assert found[0]["title"] == "The allocator of device 0 ran out of memory 5 times"
        assert found[0]["evidence"]["retries"] == 5
        assert found[0]["evidence"]["in_pieces_mb"] == pytest.approx(4)
        assert found[0]["evidence"]["unused_share"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    "loop",
    [
        "for batch in stepwatch.steps(range(300)): pass",
        "for i in range(300):\n    stepwatch.step_begin(); stepwatch.step_end()",
        "for i in range(300):\n    with stepwatch.step(): pass",
    ],
)
def test_no_more_than_ten_times_a_second(tmp_path: Path, loop: str) -> None:
    script = f"""
cuda = use(Cuda(1))
begin = time.monotonic()
{loop}
took = time.monotonic() - begin
print(len(cuda.calls), took)
stepwatch.stop()
"""
    _, lines = run(tmp_path, script)
    calls, took = lines[0].split()
    assert 1 <= int(calls) <= 1 + float(took) / 0.1


def test_the_program_sets_the_peak_back(tmp_path: Path) -> None:
    script = """
class Back(Cuda):
    def stats(self, device):
        found = super().stats(device)
        found["allocated_bytes"]["all"]["peak"] = 900_000_000 if self.step == 0 else 5
        return found

cuda = use(Back(1))
for step in range(2):
    cuda.step = step
    with stepwatch.step():
        time.sleep(0.11)
stepwatch.stop()
"""
    recorded, _ = run(tmp_path, script)
    assert (
        recorded.report().to_dict()["memory"]["allocators"][0]["allocated_peak_bytes"] == 900 * MB
    )


@pytest.mark.parametrize(
    ("cuda", "calls"),
    [
        ("None", "0"),
        ("Cuda(begun=False)", "0"),
        ("Cuda(devices=0)", "0"),
        ("type('Bare', (), {'calls': []})()", "0"),
        ("type('Odd', (Cuda,), {'stats': lambda self, device: []})(1)", "1"),
        ("type('Odd', (Cuda,), {'stats': lambda self, device: {}})(1)", "1"),
        ("type('Odd', (Cuda,), {'stats': lambda self, device: 1 / 0})(1)", "1"),
        ("type('Odd', (Cuda,), {'device_count': lambda self: 'two'})(1)", "0"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, cuda: str, calls: str) -> None:
    """No device, none begun, a torch of another shape: no numbers, and the program goes on."""
    script = f"""
cuda = use({cuda})
for step in range(3):
    with stepwatch.step():
        time.sleep(0.11)
print(len(getattr(cuda, "calls", [])))
stepwatch.stop()
"""
    recorded, lines = run(tmp_path, script)
    assert lines == [calls]
    assert len(recorded.steps) == 3
    assert len(recorded.counters) == 0
    (cpu,) = recorded.report().to_dict()["memory"]["allocators"]
    assert cpu["name"] == "torch.cpu"


def test_values_that_are_missing(tmp_path: Path) -> None:
    """Some backends of the allocator say less: what they do not say is unknown, not 0."""
    script = """
class Less(Cuda):
    def stats(self, device):
        return {"allocation": {"all": {"allocated": 1}}, "num_ooms": -1,
                "allocated_bytes": {"all": {"current": 8, "peak": 9}}, "reserved_bytes": 7}

use(Less(1))
with stepwatch.step():
    pass
stepwatch.stop()
"""
    recorded, _ = run(tmp_path, script)
    gpu = recorded.report().to_dict()["memory"]["allocators"][0]
    assert (gpu["allocated_bytes"], gpu["allocated_peak_bytes"]) == (8, 9)
    unknown = ("reserved_bytes", "retries", "ooms", "inactive_split_bytes")
    assert [gpu[key] for key in unknown] == [None] * 4
    assert [row["name"] for row in recorded.counters] == ["torch.cuda.0.allocated_bytes"]


def test_a_killed_program_has_them(tmp_path: Path) -> None:
    script = """
import os
use(Cuda(1))
with stepwatch.step():
    pass
print("here", flush=True)
os.kill(os.getpid(), 9)
"""
    begin = f"stepwatch.start(out={str(tmp_path / 'run')!r}, quiet=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", FAKE + begin + script], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9
    found = stepwatch.open(tmp_path / "run").report().to_dict()["memory"]["allocators"]
    assert [row["allocated_bytes"] for row in found] == [10 * MB]
    json.dumps(found, allow_nan=False)


def test_without_torch(tmp_path: Path) -> None:
    recorded, _ = run(tmp_path, "with stepwatch.step():\n    pass\nstepwatch.stop()\n")
    assert recorded.report().to_dict()["memory"]["allocators"] == []
