"""GPUs under `stepwatch run`, by a library that stands in for NVIDIA's (tests/nvml/fake_nvml.c)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Steps of 20 ms; the monitor looks every 100 ms.
STEPS = """
import sys, time
import stepwatch
for _ in range(int(sys.argv[1])):
    with stepwatch.step():
        time.sleep(0.02)
"""


class Fake:
    """A machine with GPUs that do what a text says."""

    def __init__(self, run: Run, folder: Path, build: Path, env: dict[str, str]) -> None:
        self.run_command = run
        self.folder = folder
        self.library = build / "tests" / "nvml" / "fake_nvml.so"
        self.cuda = build / "tests" / "nvml" / "libcuda.so.1"
        self.env = env
        self.said = ""

    def run(self, script: str, program: str = STEPS, *arguments: str, **more: Any) -> Any:
        (self.folder / "fake.txt").write_text(script + f"\nlog {self.folder}/log\n")
        (self.folder / "train.py").write_text(program)
        options = {"gpu": "on", "nvml": str(self.library), "monitor_interval_s": "0.1"}
        options.update(more.pop("options", {}))
        chosen = [f"--set={key}={value}" for key, value in options.items()]
        result = self.run_command(
            *("run", "-o", "run", "--set=sampler_hz=0", *chosen, "train.py", *arguments),
            extra={**self.env, "FAKE_NVML": str(self.folder / "fake.txt"), **more.pop("extra", {})},
        )
        self.said = result.stderr
        assert result.returncode == more.pop("code", 0), result.stderr
        assert "Traceback" not in result.stderr
        return json.loads((self.folder / "run" / "report.json").read_text())

    def log(self) -> list[list[str]]:
        return [line.split() for line in (self.folder / "log").read_text().splitlines()]


@pytest.fixture
def fake(stepwatch: Run, tmp_path: Path, build_dir: Path, python_env: dict[str, str]) -> Fake:
    """Return such a machine."""
    return Fake(stepwatch, tmp_path, build_dir, python_env)


def series(device: dict[str, Any], name: str) -> Any:
    """Return the statistics of a value, or None."""
    found = [one for one in device["series"] if one["name"] == name]
    return found[0] if found else None


def kinds(report: dict[str, Any]) -> list[str]:
    return [finding["kind"] for finding in report["findings"]]


def test_everything(fake: Fake) -> None:
    report = fake.run(
        "gpus 2\ngpu0.power 100000\n@6 gpu0.power 300000\ngpu0.memory 1000\n"
        "@6 gpu0.memory 5000\n@11 gpu0.memory 4000\ngpu0.processes self:777\n"
        "gpu1.clock 1234\ngpu0.energy 5000\n@6 gpu0.energy 9000",
        STEPS,
        "80",
    )
    gpu = report["gpu"]
    assert gpu["driver"] == "580.65.06"
    first, second = gpu["devices"]
    assert (first["index"], second["index"]) == (0, 1)
    assert first["name"] == "FAKE H200"
    assert first["uuid"] == "GPU-00000001-aaaa-bbbb-cccc-000000000000"
    assert first["visible"] is True
    assert first["memory_bytes"] == 141 * 2**30
    assert first["power_limit_w"] == 700
    assert first["energy_j"] == 4
    power = series(first, "power_w")
    assert (power["min"], power["max"], power["last"]) == (100, 300, 300)
    assert power["steps"]["samples"] >= 5
    memory = series(first, "memory_used_bytes")
    assert (memory["first"], memory["max"], memory["last"]) == (1000, 5000, 4000)
    assert series(first, "process_memory_bytes")["last"] == 777
    assert series(first, "sm_active_percent")["mean"] == 80
    assert series(first, "tensor_active_percent")["mean"] == 35
    assert series(first, "xid_errors")["last"] == 0
    assert series(second, "sm_clock_mhz")["mean"] == 1234
    assert first["missing"] == []
    assert first["clock_reasons"]["by_reason"] == []
    assert first["clock_reasons"]["limited"]["steps_share"] == 0
    assert first["energy_per_step_j"] > 0
    names = {one["name"] for one in report["monitor"]["series"]}
    assert "gpu.1.temperature_c" in names
    calls = fake.log()
    assert calls[-1][:2] == ["shutdown", "0"], "samples were not given back"
    assert len([call for call in calls if call[:2] == ["energy", "gpu0"]]) == 2, "at both ends"
    assert not [note for note in report["notes"] if "GPU" in note]
    checks = {check["kind"]: check for check in report["checked"]}
    assert checks["gpu_throttle"]["checked"]
    page = (fake.folder / "run" / "report.html").read_text(encoding="utf-8")
    part = page.split('<section id="gpu">')[1].split("</section>")[0]
    assert "<td>0 FAKE H200</td>" in part
    assert "1,234 MHz</td>" in part
    assert "141 GiB</td>" in part
    assert ">GPU 1</text>" in part, "in the legend of the chart"


def test_report_fits_the_schema(fake: Fake) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    report = fake.run("gpus 2\ngpu1.mig 1\ngpu0.reasons 4\ngpu1.power.result 3", STEPS, "20")
    path = Path(__file__).parents[2] / "docs" / "report.schema.json"
    check = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    assert [error.message for error in check.iter_errors(report)] == []
    whole, _, part = report["gpu"]["devices"]
    assert part["part_of"] == 1
    assert whole["part_of"] is None
    assert {"name": "power_w", "why": "the whole device has it"} in part["missing"]
    broken = {**report, "gpu": {"driver": 5, "devices": []}}
    assert list(check.iter_errors(broken))


LOADS_CUDA = "import ctypes, os\nctypes.CDLL(os.environ['CUDA'])\n" + STEPS


def test_auto_waits_for_cuda(fake: Fake) -> None:
    report = fake.run("", STEPS, "10", options={"gpu": "auto"})
    assert report["gpu"] == {
        "recorded": False,
        "why": "Not watched: the program did not load the CUDA driver.",
    }
    assert not [note for note in report["notes"] if "GPU" in note]
    assert not (fake.folder / "log").exists(), "nobody may touch the driver"
    (check,) = [one for one in report["checked"] if one["kind"] == "gpu_throttle"]
    assert not check["checked"]

    (fake.folder / "run").rename(fake.folder / "first")
    extra = {"CUDA": str(fake.cuda)}
    report = fake.run("", LOADS_CUDA, "40", options={"gpu": "auto"}, extra=extra)
    assert series(report["gpu"]["devices"][0], "power_w")["mean"] == 650


@pytest.mark.parametrize(
    ("script", "options", "why", "notes"),
    [
        ("", {"gpu": "off"}, "gpu is off in the configuration", 0),
        ("", {"nvml": "/nowhere.so"}, "/nowhere.so", 1),
        ("", {"nvml": "libm.so.6"}, "is not NVML", 1),
        ("init 9", {}, "the driver is not loaded", 1),
        ("init 18", {}, "different versions", 1),
        ("gpus 0", {}, "knows of no GPU", 1),
        ("gpu0.handle 4", {}, "no permission", 1),
    ],
)
def test_nothing_to_watch(
    fake: Fake, script: str, options: dict[str, str], why: str, notes: int
) -> None:
    report = fake.run(script, STEPS, "20", options=options)
    assert report["gpu"]["recorded"] is False
    assert why in report["gpu"]["why"]
    assert len([note for note in report["notes"] if "GPU" in note]) == notes


def test_no_monitor(fake: Fake) -> None:
    report = fake.run("", STEPS, "5", options={"monitor_interval_s": "0"})
    assert report["gpu"] == {"recorded": False, "why": "The monitor did not run."}


@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("@4 gpu0.result 15", "GPU 0 cannot be watched any more: the device fell off the bus"),
        ("@4 gpu0.result 9", "could not be watched for a part of the run: the driver is not"),
        ("@4 gpu0.result 1", "for a part of the run: the library was shut down"),
        ("@4 gpu0.power.result 4", "GPU 0: no power: this user has no permission."),
        ("@4 gpu0.power.result 999", "GPU 0: no power for a part of the run: the driver reports"),
        ("gpu0.xid 79", "GPU 0 reported error Xid 79: the device fell off the bus."),
    ],
)
def test_trouble_is_told_once(fake: Fake, script: str, note: str) -> None:
    report = fake.run(script, STEPS, "70")
    told = [text for text in report["notes"] if "GPU" in text]
    assert len(told) == 1
    assert note in told[0]
    (device,) = report["gpu"]["devices"]
    assert series(device, "power_w")["mean"] == 650, "what was known stays known"


def test_a_driver_that_hangs_does_not_hang_the_program(fake: Fake) -> None:
    report = fake.run("@4 gpu0.energy.sleep 600000\n@4 gpu0.power.sleep 600000", STEPS, "40")
    (device,) = report["gpu"]["devices"]
    assert series(device, "power_w")["mean"] == 650
    looks = report["monitor"]["looks"]
    assert looks >= 6, "the monitor goes on without it"


def test_a_driver_that_takes_its_time_to_start(fake: Fake) -> None:
    report = fake.run("init.sleep 600000", STEPS, "20")
    assert report["gpu"]["recorded"] is False
    assert report["monitor"]["looks"] >= 3


FORKS = """
import os, sys, time, warnings
import stepwatch
warnings.simplefilter("error")
for step in range(60):
    with stepwatch.step():
        time.sleep(0.02)
        if step % 20 == 10:
            child = os.fork()
            if child == 0:
                with stepwatch.section("child"):
                    time.sleep(0.3)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
"""


def test_forks(fake: Fake) -> None:
    report = fake.run("", FORKS)
    assert len({call[2] for call in fake.log()}) == 1, "a child must not call the driver"
    (device,) = report["gpu"]["devices"]
    assert series(device, "power_w")["samples"] >= 10
    inits = [call for call in fake.log() if call[0] == "init"]
    assert len(inits) == 1
    assert fake.log()[-1][0] == "shutdown"


def test_killed(fake: Fake) -> None:
    program = STEPS + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    report = fake.run("", program, "60", code=128 + signal.SIGKILL)
    (device,) = report["gpu"]["devices"]
    assert series(device, "power_w")["mean"] == 650
    assert series(device, "power_w")["samples"] >= 5


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [True, True]),
        ("0", [True, False]),
        ("1", [False, True]),
        ("", [False, False]),
        ("GPU-00000002", [False, True]),
    ],
)
def test_visible_devices(fake: Fake, visible: str | None, expected: list[bool]) -> None:
    # Chosen in the first lines of the program, as many do: after recording began.
    first = f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = {visible!r}\n"
    report = fake.run("gpus 2", (first if visible is not None else "") + STEPS, "20")
    devices = sorted(report["gpu"]["devices"], key=lambda device: device["index"])
    assert [device["visible"] for device in devices] == expected


def test_ranks_share_devices(fake: Fake) -> None:
    extra = {"RANK": "2", "LOCAL_RANK": "2", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}
    report = fake.run("gpus 4", STEPS, "20", extra=extra)
    asked = {call[1] for call in fake.log() if call[0] == "power"}
    assert asked == {"gpu2"}
    devices = {device["index"]: device for device in report["gpu"]["devices"]}
    assert series(devices[2], "power_w")
    assert not devices[1]["series"]
    assert devices[1]["missing"][0]["why"] == "another process of the run watches this device"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("gpu0.reasons 4\ngpu0.clock 1100\ngpu0.limit 400000", "its power limit"),
        ("gpu0.reasons 4\ngpu0.clock 1100", "its power limit"),
        ("gpu0.reasons 32\ngpu0.clock 1500\ngpu0.temperature 88", "heat"),
        ("gpu0.reasons 72\ngpu0.clock 800", "heat"),
        ("gpu0.reasons 136\ngpu0.clock 900", "the hardware slows it down"),
        ("gpu0.reasons 8\ngpu0.clock.result 3", "the hardware slows it down"),
    ],
)
def test_reduced_clocks(fake: Fake, script: str, words: str) -> None:
    report = fake.run(f"gpu0.processes self:1000\n{script}", STEPS, "120")
    assert kinds(report) == ["gpu_throttle"]
    (finding,) = report["findings"]
    assert words in finding["title"]
    assert finding["predicted"] is None
    assert finding["evidence"]["throttled_share"] == 1
    assert finding["evidence"]["throttled_share_low"] > 0.5
    assert finding["advice"]


@pytest.mark.parametrize(
    "script",
    [
        "gpu0.reasons 0\ngpu0.clock 600",
        "gpu0.reasons 1\ngpu0.clock 345",  # idle
        "gpu0.reasons 2\ngpu0.clock 1000",  # the user's own choice
        "gpu0.reasons 16\ngpu0.clock 1000",
        "gpu0.reasons 256\ngpu0.clock 1000",
        "gpu0.reasons 4\ngpu0.clock 1700",  # a busy GPU at its usual limit
        "gpu0.reasons 4\ngpu0.clock.result 3",
        "gpu0.reasons 32\ngpu0.clock 1970",  # nothing is lost by it
        "gpu0.reasons 64\ngpu0.clock 1000\ngpu0.processes 4242:5\ngpu0.gpu 0",  # not ours
    ],
)
def test_usual_clocks(fake: Fake, script: str) -> None:
    report = fake.run(f"gpu0.processes self:1000\n{script}", STEPS, "120")
    assert kinds(report) == []


def test_shares_have_intervals(fake: Fake) -> None:
    changing = ",".join((["64"] * 6 + ["0"] * 6) * 10)
    script = f"gpu0.processes self:1000\ngpu0.reasons {changing}\ngpu0.clock 1000"
    report = fake.run(script, STEPS, "200")
    (device,) = report["gpu"]["devices"]
    reasons = device["clock_reasons"]
    heat = reasons["heat"]
    assert 0.3 < heat["steps_share"] < 0.7
    assert 0 <= heat["steps_low"] < heat["steps_share"] < heat["steps_high"] <= 1
    assert heat["sm_clock_mhz"] == 1000
    (by_reason,) = reasons["by_reason"]
    assert by_reason["reason"] == "hw_thermal_slowdown"
    assert reasons["power"]["steps_share"] == 0
    # Neighbours are alike, so that the interval is wider than that of as many independent looks.
    independent = 1.96 * (0.25 / reasons["step_looks"]) ** 0.5
    assert heat["steps_high"] - heat["steps_low"] > 2 * independent


def test_program_in_c(fake: Fake, program: Path) -> None:
    """It ends by exit, where what libraries registered runs before what the recorder did."""
    (fake.folder / "fake.txt").write_text(f"log {fake.folder}/log\n")
    chosen = [f"--set=nvml={fake.library}", "--set=gpu=on", "--set=monitor_interval_s=0.1"]
    result = fake.run_command(
        *("run", "-o", "run", *chosen, "--", program, "steps", "40"),
        extra={"FAKE_NVML": str(fake.folder / "fake.txt")},
    )
    assert result.returncode == 0, result.stderr
    report = json.loads((fake.folder / "run" / "report.json").read_text())
    (device,) = report["gpu"]["devices"]
    assert series(device, "power_w")["last"] == 650
    assert series(device, "energy_j")["samples"] >= 1
    assert fake.log()[-1][:2] == ["shutdown", "0"]


def test_too_short_to_tell(fake: Fake) -> None:
    report = fake.run("gpu0.processes self:9\ngpu0.reasons 64\ngpu0.clock 500", STEPS, "20")
    assert kinds(report) == []
    (check,) = [one for one in report["checked"] if one["kind"] == "gpu_throttle"]
    assert not check["checked"]
    assert "too few" in check["why"]


def test_remarks(fake: Fake) -> None:
    used = "gpu0.processes self:1000\n"
    report = fake.run(used + "gpu0.gpu 30\n@3 gpu0.ecc_uncorrected 2", STEPS, "120")
    notes = "\n".join(report["notes"])
    assert "GPU 0 computes 30 % of the time of steps (its multiprocessors 80 %)" in notes
    assert "a larger batch may fit" in notes
    assert "2 errors of memory that could not be corrected" in notes
    (fake.folder / "run").rename(fake.folder / "first")
    report = fake.run(used + f"gpu0.memory {(135 * 2**30)}", STEPS, "120")
    notes = "\n".join(report["notes"])
    assert "Of the memory of GPU 0, up to 96 % was in use" in notes
    assert kinds(report) == []


def test_doctor(stepwatch: Run, build_dir: Path, tmp_path: Path) -> None:
    folder = build_dir / "tests" / "nvml"
    script = tmp_path / "fake.txt"
    script.write_text("gpus 2\ngpu1.power.result 4\ngpu1.name FAKE A100\ngpu1.gpm 0\n")

    def checks(library: str, **extra: str) -> list[dict[str, str]]:
        found = stepwatch("doctor", "--json", extra={"STEPWATCH_NVML": library, **extra})
        assert found.returncode == 0, found.stderr
        every = json.loads(found.stdout)["checks"]
        return [check for check in every if check["check"].startswith("gpu")]

    library, first, second = checks(str(folder / "fake_nvml.so"), FAKE_NVML=str(script))
    assert "driver 580.65.06" in library["text"]
    assert first["status"] == "ok"
    assert "FAKE H200, 141 GiB, visible to programs" in first["text"]
    assert "(GPM)" in first["text"]
    assert second["status"] == "warn"
    assert "power (this user has no permission)" in second["text"]
    assert "(GPM)" not in second["text"]

    _, old = checks(str(folder / "fake_nvml_old.so"))
    assert "energy" in old["text"]
    _, bare = checks(str(folder / "fake_nvml_bare.so"))
    assert "name unknown, memory unknown" in bare["text"]

    (none,) = checks("/nowhere.so")
    assert none["status"] == "warn"
    assert "/nowhere.so" in none["text"]
    script.write_text("init 9\n")
    (none,) = checks(str(folder / "fake_nvml.so"), FAKE_NVML=str(script))
    assert "the driver is not loaded" in none["text"]


def test_bad_options(stepwatch: Run) -> None:
    result = stepwatch("run", "--set=gpu=perhaps", "--", sys.executable, "-c", "print(1)")
    assert result.returncode == 2
    assert 'gpu is "perhaps" but should be auto, on or off' in result.stderr
    assert result.stdout == ""
