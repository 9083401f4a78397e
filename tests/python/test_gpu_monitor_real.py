"""The GPU monitor on a real GPU, beside nvidia-smi and torch; with -s, what each call costs."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once


def has_gpu() -> bool:
    """Whether nvidia-smi lists a GPU; asking torch would make a context in this process."""
    if shutil.which("nvidia-smi") is None:
        return False
    found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return found.returncode == 0 and "GPU 0" in found.stdout


if not has_gpu():
    pytest.skip("there is no GPU with a driver", allow_module_level=True)

PROGRAM = """
import json, os, subprocess, sys, time
import torch
import stepwatch

size, seconds = int(sys.argv[1]), float(sys.argv[2])
a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
held = torch.empty(int(sys.argv[3]) << 20, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
begin = time.monotonic()
smi = None
steps = 0
while time.monotonic() - begin < seconds:
    with stepwatch.step():
        for _ in range(20):
            a = (a @ b).clamp(-1, 1)
        torch.cuda.synchronize()
    steps += 1
    if smi is None and time.monotonic() - begin > seconds / 2:
        fields = "uuid,name,memory.used,memory.total,clocks.max.sm,power.limit"
        fields += ",temperature.gpu,driver_version"
        query = ["nvidia-smi", "--id=0", "--query-gpu=" + fields, "--format=csv,noheader,nounits"]
        smi = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
        smi = dict(zip(fields.split(","), [field.strip() for field in smi.split(",")]))
        free, total = torch.cuda.mem_get_info()
        smi["cuda_used"] = total - free
        smi["reserved"] = torch.cuda.memory_reserved()
print(json.dumps({"smi": smi, "steps": steps, "step_ms": 1e3 * (time.monotonic() - begin) / steps}))
"""


@pytest.fixture(scope="module")
def run(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Return a function that trains under `stepwatch run` and gives what program and report say."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("gpu")
    (folder / "train.py").write_text(PROGRAM)
    command = build_dir / "src" / "cli" / "stepwatch"
    if not command.exists():
        pytest.skip("stepwatch has not been built")

    def run(name: str, *options: str, seconds: float = 12, held_mib: int = 3000) -> Any:
        arguments = [str(command), "run", "-o", name, "--set=sampler_hz=0", *options]
        arguments += ["train.py", "8192", str(seconds), str(held_mib)]
        done = subprocess.run(
            arguments,
            cwd=folder,
            env={**os.environ, "STEPWATCH_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.strip().splitlines()[-1])
        return said, json.loads((folder / name / "report.json").read_text()), done.stderr

    return run


def value(device: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the statistics of a value, or None where it is missing."""
    for one in device["series"]:
        if one["name"] == name:
            return dict(one)
    return None


def first_device(report: dict[str, Any]) -> dict[str, Any]:
    assert "devices" in report["gpu"], report["gpu"]
    devices = [device for device in report["gpu"]["devices"] if device["index"] == 0]
    return dict(devices[0])


def test_values_are_those_of_nvidia_smi(run: Callable[..., Any]) -> None:
    said, report, text = run("watched", "--set=monitor_interval_s=0.25")
    print(text)
    smi = said["smi"]
    device = first_device(report)
    for one in device["series"]:
        numbers = " ".join(f"{key}={one[key]:<12.6g}" for key in ("mean", "min", "max"))
        print(f"{one['name']:28} {one['unit'] or '':8} n={one['samples']:<4} {numbers}", end="")
        print(f" in steps={one['steps']['mean']}")
    print("missing:", device["missing"])
    print("reasons:", json.dumps(device["clock_reasons"]))
    print("nvidia-smi:", smi)
    (source,) = [one for one in report["monitor"]["sources"] if one["name"] == "gpu"]
    print(f"a look of the monitor waits {source['us_per_look']:.0f} µs for the GPU's thread")

    assert device["name"] == smi["name"]
    assert device["uuid"] == smi["uuid"]
    assert report["gpu"]["driver"] == smi["driver_version"]
    assert device["visible"] is True
    mib = 2**20
    assert abs(device["memory_bytes"] / mib - float(smi["memory.total"])) < 2048
    memory = value(device, "memory_used_bytes")
    assert memory is not None
    assert memory["max"] >= smi["reserved"], "at least what torch holds"
    near = abs(memory["max"] / mib - float(smi["memory.used"]))
    assert near < 1024, f"{memory['max'] / mib:.0f} MiB, nvidia-smi says {smi['memory.used']}"
    own = value(device, "process_memory_bytes")
    if own is None:
        why = [one["why"] for one in device["missing"] if one["name"] == "process_memory_bytes"]
        print("memory of the process is not known:", why)
        assert why
    elif own["max"] > 0:
        assert own["max"] >= smi["reserved"]
    if smi["clocks.max.sm"].isdigit():
        assert device["sm_clock_max_mhz"] == float(smi["clocks.max.sm"])
    temperature = value(device, "temperature_c")
    assert temperature is not None
    assert abs(temperature["max"] - float(smi["temperature.gpu"])) < 25

    busy = value(device, "utilisation_percent")
    assert busy is not None
    assert busy["steps"]["mean"] > 50, "matrix products all the time"
    power = value(device, "power_w")
    assert power is not None
    assert power["steps"]["mean"] > 100
    clock = value(device, "sm_clock_mhz")
    assert clock is not None
    assert 200 < clock["steps"]["mean"] <= device["sm_clock_max_mhz"]
    if device["activity"]:
        active = value(device, "sm_active_percent")
        tensor = value(device, "tensor_active_percent")
        assert active is not None
        assert tensor is not None
        assert 20 < active["steps"]["mean"] <= 100
        assert 5 < tensor["steps"]["mean"] <= 100
    if device["energy_j"] is not None:
        # Power and energy come from different sensors and over slightly different times.
        expected = power["steps"]["mean"] * said["steps"] * said["step_ms"] / 1e3
        print(f"energy {device['energy_j']:.0f} J, by power {expected:.0f} J")
        assert 0.4 * expected < device["energy_j"] < 2.5 * expected
        assert device["energy_per_step_j"] > 0
    errors = value(device, "xid_errors")
    assert errors is None or errors["last"] == 0


def test_what_watching_costs(run: Callable[..., Any]) -> None:
    """Print steps with and without; no limit, for machines are noisy."""
    off, report, _ = run("off", "--set=gpu=off", seconds=6)
    assert report["gpu"]["recorded"] is False
    once, _, _ = run("once", "--set=monitor_interval_s=1", seconds=6)
    often, report, _ = run("often", "--set=monitor_interval_s=0.1", seconds=6)
    print(
        f"step without {off['step_ms']:.3f} ms, each second {once['step_ms']:.3f} ms, "
        f"ten times a second {often['step_ms']:.3f} ms"
    )
    device = first_device(report)
    power = value(device, "power_w")
    assert power is not None
    assert power["samples"] > 30


def test_doctor(build_dir: Path) -> None:
    command = [str(build_dir / "src" / "cli" / "stepwatch"), "doctor", "--json"]
    if not Path(command[0]).exists():
        pytest.skip("stepwatch has not been built")
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    checks = [one for one in json.loads(found.stdout)["checks"] if one["check"].startswith("gpu")]
    for check in checks:
        print(check["status"], check["text"])
    assert "libnvidia-ml" in checks[0]["text"]
    assert len(checks) >= 2


class Metric(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("result", ctypes.c_int),
        ("value", ctypes.c_double),
        ("text", ctypes.c_void_p * 3),
    ]


class Metrics(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("before", ctypes.c_void_p),
        ("after", ctypes.c_void_p),
        ("metric", Metric * 800),
    ]


class Field(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("result", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    ]


def measure(call: Callable[[], int], times: int) -> tuple[int, float, float]:
    """Return the last result, the median and the longest time in µs."""
    spent = []
    result = 0
    for _ in range(times):
        begin = time.perf_counter()
        result = call()
        spent.append(1e6 * (time.perf_counter() - begin))
    return result, statistics.median(spent), max(spent)


def test_cost_of_calls() -> None:
    """Print the cost of every call that the monitor makes, by NVML itself."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    begin = time.perf_counter()
    assert nvml.nvmlInit_v2() == 0
    print(f"\nnvmlInit_v2 {1e3 * (time.perf_counter() - begin):.1f} ms")
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    one = ctypes.c_uint()
    long = ctypes.c_ulonglong()
    memory = (ctypes.c_ulonglong * 5)()
    memory_version = ctypes.c_uint.from_buffer(memory)
    processes = (ctypes.c_ulonglong * 1024)()
    fields = (Field * 4)()
    for field, which in zip(fields, (197, 198, 138, 139)):
        field.id, field.scope = which, 0xFFFFFFFF if which < 197 else 0
    metrics = Metrics()
    samples = [ctypes.c_void_p(), ctypes.c_void_p()]
    ready = [nvml.nvmlGpmSampleAlloc(ctypes.byref(sample)) for sample in samples]
    events = ctypes.c_void_p()
    nvml.nvmlEventSetCreate(ctypes.byref(events))
    nvml.nvmlDeviceRegisterEvents(device, ctypes.c_ulonglong(8), events)
    event = (ctypes.c_ulonglong * 4)()

    def memory2() -> int:
        memory_version.value = ctypes.sizeof(memory) | 2 << 24
        return int(nvml.nvmlDeviceGetMemoryInfo_v2(device, memory))

    def list_processes() -> int:
        one.value = 256
        call = nvml.nvmlDeviceGetComputeRunningProcesses_v3
        return int(call(device, ctypes.byref(one), processes))

    def activity() -> int:
        metrics.version, metrics.count = 1, 8
        metrics.before, metrics.after = samples[0].value, samples[1].value
        for index, metric in enumerate((2, 3, 5, 10, 20, 21, 60, 61)):
            metrics.metric[index].id = metric
        return int(nvml.nvmlGpmMetricsGet(ctypes.byref(metrics)))

    def number(name: str, *arguments: Any) -> Callable[[], int]:
        return lambda: int(getattr(nvml, name)(device, *arguments, ctypes.byref(one)))

    def large(name: str, *arguments: Any) -> Callable[[], int]:
        return lambda: int(getattr(nvml, name)(device, *arguments, ctypes.byref(long)))

    pair = (ctypes.c_uint * 2)()
    calls: list[tuple[str, Callable[[], int], int]] = [
        ("memory (v2)", memory2, 200),
        ("utilisation", lambda: int(nvml.nvmlDeviceGetUtilizationRates(device, pair)), 200),
        ("power", number("nvmlDeviceGetPowerUsage"), 200),
        ("temperature", number("nvmlDeviceGetTemperature", 0), 200),
        ("reasons for clocks", large("nvmlDeviceGetCurrentClocksEventReasons"), 200),
        ("SM clock", number("nvmlDeviceGetClockInfo", 1), 50),
        ("memory clock", number("nvmlDeviceGetClockInfo", 2), 50),
        ("energy", large("nvmlDeviceGetTotalEnergyConsumption"), 20),
        ("ECC, corrected", large("nvmlDeviceGetTotalEccErrors", 0, 0), 20),
        ("ECC, uncorrected", large("nvmlDeviceGetTotalEccErrors", 1, 0), 20),
        ("events (Xid)", lambda: int(nvml.nvmlEventSetWait_v2(events, event, 0)), 50),
        (
            "counts of PCIe, NVLink",
            lambda: int(nvml.nvmlDeviceGetFieldValues(device, 4, fields)),
            20,
        ),
        ("processes", list_processes, 20),
        ("PCIe throughput", number("nvmlDeviceGetPcieThroughput", 0), 3),
    ]
    results = {}
    for name, call, times in calls:
        result, median, most = measure(call, times)
        results[name] = result
        print(f"{name:24} result {result:3}  median {median:9.1f} µs  longest {most:9.1f} µs")
    if ready == [0, 0]:
        get = nvml.nvmlGpmSampleGet
        result, median, most = measure(lambda: int(get(device, samples[0])), 1)
        print(f"{'GPM, first sample':24} result {result:3}  {median:9.1f} µs")
        time.sleep(0.25)
        spent = []
        for _ in range(10):
            time.sleep(0.12)
            samples.reverse()
            result, median, most = measure(lambda: int(get(device, samples[1])), 1)
            code, metric_time, _ = measure(activity, 1)
            spent.append((median, metric_time))
        values = [(metrics.metric[i].result, metrics.metric[i].value) for i in range(8)]
        sampling = statistics.median(a for a, _ in spent)
        counting = statistics.median(b for _, b in spent)
        print(f"{'GPM, sample':24} result {result:3}  median {sampling:9.1f} µs")
        print(f"{'GPM, metrics':24} result {code:3}  median {counting:9.1f} µs")
        print(f"GPM values: {values}")
    for field in fields:
        print(f"field {field.id}: result {field.result} type {field.type} value {field.value}")
    nvml.nvmlShutdown()
    assert results["memory (v2)"] == 0
    assert results["power"] == 0
