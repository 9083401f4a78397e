"""Findings about loaders, from real programs: each cause planted, and programs that are fine."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)
TWO_CORES = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="workers need a core of their own"
)

# Samples compute (CPU time, so that other programs do not change how much it is) or wait; a step
# sleeps, as it would for a device.
PROGRAM = """
import os, signal, sys, time
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

options = dict(work=0.0, sleep=0.0, decode=0.0, collate=0.0, step=20.0, steps=30, epochs=1, kill=0)
settings = dict(num_workers=0)
iterable = False
for argument in sys.argv[1:]:
    key, _, value = argument.partition("=")
    if key == "iterable":
        iterable = True
    elif key in options:
        options[key] = type(options[key])(value)
    else:
        settings[key] = int(value)


def compute(ms):
    end = time.thread_time() + ms / 1e3
    while time.thread_time() < end:
        pass


class Decode:
    def __call__(self, x):
        compute(options["decode"])
        return x


class Samples(Dataset):
    def __init__(self):
        self.transform = Decode()

    def __len__(self):
        return 4 * options["steps"]

    def __getitem__(self, index):
        compute(options["work"])
        time.sleep(options["sleep"] / 1e3)
        return self.transform(torch.full((8,), float(index)))


class Stream(IterableDataset):
    def __iter__(self):
        samples = Samples()
        return (samples[i] for i in range(len(samples)))


def pad(samples):
    compute(options["collate"])
    return torch.stack(samples)


torch.set_num_threads(1)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = Stream() if iterable else Samples()
train_loader = DataLoader(dataset, batch_size=4, collate_fn=pad, **settings)
for epoch in range(options["epochs"]):
    for number, batch in enumerate(train_loader):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        time.sleep(options["step"] / 1e3)
        if options["kill"] and number == options["kill"]:
            os.kill(os.getpid(), signal.SIGKILL)
"""
BUILT = 1 + PROGRAM.splitlines().index(
    "train_loader = DataLoader(dataset, batch_size=4, collate_fn=pad, **settings)"
)


class Number(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class Finding(ctypes.Structure):
    """sw_finding of <stepwatch/findings.h>."""

    _fields_ = [
        ("id", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("also", ctypes.c_uint64),
        ("title", ctypes.c_char_p),
        ("severity", ctypes.c_int),
        ("confidence", ctypes.c_double),
        ("share", ctypes.c_double),
        ("evidence", Number * 16),
        ("evidence_count", ctypes.c_size_t),
        ("file", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("advice", ctypes.c_char_p * 4),
        ("advice_count", ctypes.c_size_t),
        ("predicted", ctypes.c_bool),
        ("step_ns", ctypes.c_uint64),
        ("speedup", ctypes.c_double),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("rules", ctypes.c_char_p * 8),
        ("rule_count", ctypes.c_size_t),
    ]


def read_findings(build_dir: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the findings about loaders of a run, as the library has them."""
    library = ctypes.CDLL(str(build_dir / "src" / "libstepwatch.so"))
    library.sw_findings_get.restype = ctypes.POINTER(Finding)
    library.sw_finding_kind_name.restype = ctypes.c_char_p
    run, summary, findings = (ctypes.c_void_p() for _ in range(3))
    assert library.sw_run_open(ctypes.byref(run), str(folder).encode(), None) == 0
    assert library.sw_summary_create(ctypes.byref(summary), run, None) == 0
    assert library.sw_findings_of_summary(ctypes.byref(findings), summary, None) == 0
    count = ctypes.c_size_t()
    items = library.sw_findings_get(findings, ctypes.byref(count))
    result = []
    for item in (items[i] for i in range(count.value)):
        kind = library.sw_finding_kind_name(item.kind).decode()
        if not kind.startswith("loader_") or kind == "loader_main_process":
            continue
        result.append(
            {
                "kind": kind,
                "file": item.file.decode() if item.file else None,
                "name": item.name.decode() if item.name else None,
                "line": item.line,
                "advice": [item.advice[i].decode() for i in range(item.advice_count)],
                "rules": [item.rules[i].decode() for i in range(item.rule_count)],
                "evidence": {
                    each.name.decode(): each.value for each in item.evidence[: item.evidence_count]
                },
                "predicted": (item.low, item.speedup, item.high) if item.predicted else None,
            }
        )
    library.sw_findings_free(findings)
    library.sw_summary_free(summary)
    library.sw_run_free(run)
    return result


@pytest.fixture
def find(build_dir: Path, stepwatch_cli: Path, tmp_path: Path) -> Any:
    """Run the program under stepwatch and return what is found."""

    def find(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
        script = tmp_path / "train.py"
        script.write_text(PROGRAM)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            [stepwatch_cli, "run", "--no-report", "-o", tmp_path / "run", script, *arguments],
            env={**os.environ, "PYTHONPATH": str(build_dir / "python"), "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return read_findings(build_dir, tmp_path / "run")

    return find


def one(findings: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(findings) == 1, findings
    finding = findings[0]
    if finding["predicted"]:
        low, speedup, high = finding["predicted"]
        assert 1 <= low <= speedup <= high
    return finding


@TWO_CORES
def test_samples_that_compute_want_workers(find: Any) -> None:
    finding = one(find("work=4"))
    assert finding["kind"] == "loader_workers"
    assert (Path(finding["file"]).name, finding["line"]) == ("train.py", BUILT)
    assert finding["name"] == "train_loader"
    assert finding["advice"][0].startswith(f"train.py:{BUILT}: DataLoader(num_workers=0) → num_w")
    assert {"RULE-02", "RULE-06"} <= set(finding["rules"])
    assert finding["predicted"][1] > 1.1
    assert finding["evidence"]["workers_proposed"] <= len(os.sched_getaffinity(0))


def test_a_slow_transform_is_named(find: Any) -> None:
    finding = one(find("decode=6"))
    assert (finding["kind"], finding["name"]) == ("loader_transform", "Decode")
    assert Path(finding["file"]).name == "train.py"
    assert "RULE-38" in finding["rules"]


def test_slow_collating_is_named(find: Any) -> None:
    finding = one(find("collate=20"))
    assert (finding["kind"], finding["name"]) == ("loader_collate", "pad")


def test_samples_that_wait(find: Any) -> None:
    finding = one(find("sleep=8"))
    assert finding["kind"] == "loader_io"
    assert finding["evidence"]["blocked_share"] > 0.5
    assert finding["advice"][0].startswith(f"train.py:{BUILT}: DataLoader(num_workers=0) → num_w")


def test_workers_that_start_in_every_epoch(find: Any) -> None:
    finding = one(find("num_workers=2", "steps=5", "epochs=6"))
    assert finding["kind"] == "loader_restart"
    assert "persistent_workers=True" in finding["advice"][0]
    assert finding["evidence"]["restarts"] == 5


def test_a_program_that_is_fine(find: Any) -> None:
    assert find("step=30") == []


def test_workers_that_stay_and_keep_up(find: Any) -> None:
    arguments = ["num_workers=2", "persistent_workers=1", "sleep=2", "step=60"]
    assert find(*arguments, "steps=12", "epochs=2") == []


def test_iterable_samples(find: Any) -> None:
    finding = one(find("sleep=8", "iterable"))
    assert finding["kind"] == "loader_io"
    assert any("get_worker_info" in advice for advice in finding["advice"])


def test_a_run_that_was_killed(find: Any) -> None:
    finding = one(find("sleep=8", "kill=25", code=137))
    assert finding["kind"] == "loader_io"
