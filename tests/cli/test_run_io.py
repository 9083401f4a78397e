"""Calls on files and sockets under ``run --io``: exact numbers, and programs notice nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text())
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return report


def io_of(folder: Path) -> dict[str, Any]:
    io: dict[str, Any] = report_of(folder)["io"]
    assert io["recorded"] is True
    assert io["missed"] == 0
    return io


def thing(io: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [file for file in io["files"] if file["name"] == name]
    return dict(found)


def operations(io: dict[str, Any], section: str) -> dict[str, dict[str, int]]:
    (found,) = [each for each in io["sections"] if each["section"] == section]
    return dict(found["operations"])


KNOWN = """
import os, stepwatch
with stepwatch.section("load"):
    for _ in range(3):
        fd = os.open("in.bin", os.O_RDONLY)
        while os.read(fd, 1000):
            pass
        os.close(fd)
    with open("in.bin", "rb") as file:
        assert len(file.read()) == 10_000
with stepwatch.section("save"):
    with open("out.tmp", "wb", buffering=0) as file:
        file.write(bytes(50_000))
        os.pwrite(file.fileno(), b"x" * 10, 0)
        os.fsync(file.fileno())
    os.replace("out.tmp", "out.bin")
with stepwatch.section("cache"):
    with open("cache.bin", "wb", buffering=0) as file:
        file.write(bytes(20_000))
    for _ in range(3):
        with open("cache.bin", "rb") as file:
            file.read()
print("done")
"""


@pytest.mark.usefixtures("python_env")
def test_known_calls(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(10_000))
    (tmp_path / "known.py").write_text(KNOWN)
    run = stepwatch("run", "--io", "-o", "run", "known.py")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "done\n"
    io = io_of(tmp_path / "run")
    here = os.path.realpath(tmp_path)
    read = thing(io, f"{here}/in.bin")
    assert read["kind"] == "file"
    assert read["size_bytes"] == 10_000
    assert read["read_again_bytes"] == 30_000
    assert read["failed"] == 0
    assert read["operations"]["open"]["calls"] == 4
    assert read["operations"]["close"]["calls"] == 4
    # Three times ten and an empty one; then all at once and an empty one.
    assert read["operations"]["read"]["calls"] == 33 + 2
    assert read["operations"]["read"]["bytes"] == 40_000
    assert read["operations"]["read"]["small"] == 30
    wrote = thing(io, f"{here}/out.tmp")
    assert wrote["operations"]["write"]["calls"] == 2
    assert wrote["operations"]["write"]["bytes"] == 50_010
    assert wrote["operations"]["write"]["small"] == 1
    assert wrote["operations"]["sync"]["calls"] == 1
    assert wrote["operations"]["sync"]["ms"] > 0
    assert wrote["read_again_bytes"] is None
    assert thing(io, f"{here}/cache.bin")["read_again_bytes"] == 40_000
    assert thing(io, f"{here}/out.bin")["operations"]["rename"]["calls"] == 1
    assert operations(io, "load")["read"]["calls"] == 35
    assert "write" not in operations(io, "load")
    assert operations(io, "save")["write"]["bytes"] == 50_010
    # Nothing of ours is among them.
    assert not [file for file in io["files"] if file["name"].startswith(f"{here}/run/")]
    assert io["totals"]["file"]["sync"]["calls"] == 1
    assert "read 98" in run.stderr or "read 97" in run.stderr  # KiB, in the text report
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    part = page.split('<section id="io">')[1].split("</section>")[0]
    assert f"{here}/in.bin</td>" in part
    assert "<td>files: sync</td>" in part
    markdown = stepwatch("report", "run", "--markdown").stdout
    assert "\n- Files read: " in markdown


@pytest.mark.usefixtures("python_env")
def test_not_asked_for(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(10_000))
    (tmp_path / "known.py").write_text(KNOWN)
    run = stepwatch("run", "-o", "run", "known.py")
    assert run.returncode == 0, run.stderr
    io = report_of(tmp_path / "run")["io"]
    assert io["recorded"] is False
    assert "--io" in io["why"]
    # What the kernel counts is there all the same: 40,000 bytes and more.
    assert io["kernel"]["read_bytes"] > 40_000
    assert io["kernel"]["write_calls"] >= 2


@pytest.mark.usefixtures("python_env")
def test_switched_off(stepwatch: Run, tmp_path: Path, build_dir: Path) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(10_000))
    (tmp_path / "known.py").write_text(KNOWN)
    off = {"STEPWATCH_ENABLED": "0", "PYTHONPATH": str(build_dir / "python")}
    run = stepwatch("run", "--io", "-o", "run", "known.py", extra=off)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "done\n"


def test_by_configuration(tmp_path: Path, build_dir: Path, python_env: dict[str, str]) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(10_000))
    code = KNOWN.replace("import os, stepwatch", "import os, stepwatch\nstepwatch.start(io=True)")
    code += "run = stepwatch.stop()\nimport json\nprint(json.dumps(run.report().to_dict()))\n"
    code += "print(json.dumps(list(run.files)))"
    (tmp_path / "known.py").write_text(code)
    env = {**python_env, "STEPWATCH_OUT": str(tmp_path / "run")}
    env["PYTHONPATH"] = str(build_dir / "python")
    done = subprocess.run(
        [sys.executable, "known.py"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said, report, files = done.stdout.splitlines()
    assert said == "done"
    io = json.loads(report)["io"]
    read = thing(io, f"{os.path.realpath(tmp_path)}/in.bin")
    assert read["operations"]["read"]["calls"] == 35
    assert read["operations"]["open"]["calls"] == 4
    (row,) = [row for row in json.loads(files) if row["name"] == read["name"]]
    assert (row["kind"], row["reads"], row["read_bytes"]) == ("file", 35, 40_000)
    assert (row["small_reads"], row["opens"], row["writes"]) == (30, 4, 0)
    assert (row["size_bytes"], row["read_again_bytes"]) == (10_000, 30_000)


LOADER = """
import hashlib, os, sys
import torch
from torch.utils.data import DataLoader, Dataset

FOLDER, WORKERS, HOW = sys.argv[1], int(sys.argv[2]), sys.argv[3]

class Files(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, index):
        fd = os.open(f"{FOLDER}/{index}.bin", os.O_RDONLY)
        parts = []
        while part := os.read(fd, 1024):
            parts.append(part)
        os.close(fd)
        return torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.uint8).float()

def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(4096, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    how = HOW if WORKERS else None
    for _ in range(2):
        loader = DataLoader(
            Files(), batch_size=4, num_workers=WORKERS, multiprocessing_context=how
        )
        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
    state = model.weight.detach().numpy().tobytes()
    print(hashlib.sha256(state).hexdigest())

if __name__ == "__main__":
    main()
"""


@pytest.mark.frameworks
@pytest.mark.parametrize(("workers", "how"), [(0, "none"), (2, "fork"), (2, "spawn")])
def test_files_of_a_loader(
    stepwatch: Run, tmp_path: Path, python_env: dict[str, str], workers: int, how: str
) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "data"
    folder.mkdir()
    for index in range(32):
        (folder / f"{index}.bin").write_bytes(bytes([index]) * 4096)
    (tmp_path / "train.py").write_text(LOADER)
    words = ["train.py", str(folder), str(workers), how]
    plain = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=python_env, capture_output=True, text=True
    )
    assert plain.returncode == 0, plain.stderr
    run = stepwatch("run", "--io", "-o", "run", *words, timeout=280)
    assert run.returncode == 0, run.stderr
    assert run.stdout == plain.stdout
    io = io_of(tmp_path / "run")
    assert io["processes"] == (1 + 2 * workers if workers else 1)
    for index in range(32):
        read = thing(io, f"{os.path.realpath(folder)}/{index}.bin")
        # Two epochs, four pieces and an empty one.
        assert read["operations"]["open"]["calls"] == 2
        assert read["operations"]["read"]["calls"] == 10
        assert read["operations"]["read"]["bytes"] == 2 * 4096
        assert read["operations"]["read"]["small"] == 8
        assert read["read_again_bytes"] == 4096
    where = {each["phase"]: each["operations"] for each in io["phases"]}
    if workers:
        assert where["other processes"]["read"]["bytes"] >= 32 * 2 * 4096
    else:
        inside = ("data_wait", "preprocess")
        assert sum(where[phase]["read"]["calls"] for phase in inside if phase in where) >= 320


STRESS = """
import os, signal, socket, subprocess, sys, threading

log = os.open("log", os.O_WRONLY | os.O_CREAT, 0o600)
seen = 0
def handler(*_):
    global seen
    seen += 1
    os.write(log, b"!")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)

def work(number):
    for i in range(50):
        name = f"{number}.{i}"
        with open(name, "wb") as file:
            file.write(b"x" * 100)
        with open(name, "rb") as file:
            assert file.read() == b"x" * 100
        os.unlink(name)

threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for i in range(5):
    out = subprocess.run([sys.executable, "-S", "-c", "print(1)"], capture_output=True)
    assert out.stdout == b"1\\n", out
    pid = os.fork()
    if pid == 0:
        work(f"child{i}")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
left, right = socket.socketpair()
left.sendall(b"hello")
assert right.recv(5) == b"hello"
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
assert os.path.getsize("log") == seen
print("whole")
"""


@pytest.mark.usefixtures("python_env")
def test_stress(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "stress.py").write_text(STRESS)
    run = stepwatch("run", "--io", "-o", "run", "stress.py")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "whole\n"
    io = report_of(tmp_path / "run")["io"]
    here = os.path.realpath(tmp_path)
    names = {file["name"]: file for file in io["files"]}
    for number in range(4):
        mine = names.get(f"{here}/{number}.7")
        if mine:  # among the thousand that took most of the time
            assert mine["operations"]["write"]["bytes"] == 100
            assert mine["operations"]["read"]["bytes"] == 100


@pytest.mark.usefixtures("python_env")
def test_secrets_are_hidden(stepwatch: Run, tmp_path: Path) -> None:
    secret = "token=ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    (tmp_path / "open.py").write_text(f"open('{secret}', 'w').write('x')")
    run = stepwatch("run", "--io", "-o", "run", "open.py")
    assert run.returncode == 0, run.stderr
    assert "ghp_16C7" not in (tmp_path / "run" / "report.json").read_text()
    for trace in (tmp_path / "run").glob("*.stepwatch"):
        assert b"ghp_16C7" not in trace.read_bytes()


# A program at a fixed address, whose own stub stands for a function everywhere.
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stepwatch/stepwatch.h>
#include <unistd.h>

ssize_t (*volatile taken)(int, void *, size_t);

int main(void)
{
    char byte[10];
    taken = read;
    sw_init(NULL);
    SW_SECTION("load") {
        int fd = open("in.bin", O_RDONLY);
        for (int i = 0; i < 5; i++) {
            if (read(fd, byte, 10) != 10 || taken(fd, byte, 10) != 10) {
                return 1;
            }
        }
        close(fd);
    }
    sw_shutdown();
    return 0;
}
"""


@pytest.mark.parametrize("how", [["-no-pie", "-fno-pie"], ["-pie", "-fPIE"], ["-fno-plt"]])
def test_a_program_in_c(stepwatch: Run, tmp_path: Path, build_dir: Path, how: list[str]) -> None:
    library = build_dir / "src"
    (tmp_path / "in.bin").write_bytes(bytes(1000))
    (tmp_path / "reads.c").write_text(PROGRAM)
    words = ["cc", "-std=gnu11", "-O1", *how, f"-I{ROOT}/include", "reads.c", "-o", "reads"]
    words += [f"-L{library}", f"-Wl,-rpath,{library}", "-lstepwatch"]
    subprocess.run(words, check=True, cwd=tmp_path)
    run = stepwatch("run", "--io", "-o", "run", "--", "./reads")
    assert run.returncode == 0, run.stderr
    io = io_of(tmp_path / "run")
    read = thing(io, f"{os.path.realpath(tmp_path)}/in.bin")
    assert read["operations"]["open"]["calls"] == 1
    # The pointer was taken before; only a stub of the program's own leads through its entry.
    expected = 10 if "-no-pie" in how else 5
    assert read["operations"]["read"]["calls"] == expected
    assert operations(io, "load")["read"]["bytes"] == expected * 10


# Every step reads a little; one reads a lot, and takes long for it; another writes.
UNEVEN = """
import os, time
import stepwatch

for batch in stepwatch.steps(range(40)):
    fd = os.open("in.bin", os.O_RDONLY)
    for _ in range(30 * 32 if batch == 20 else 1):
        os.pread(fd, 1 << 18, 0)
    os.close(fd)
    if batch == 30:
        with open("out.bin", "wb", buffering=0) as file:
            for _ in range(10):
                file.write(bytes(3 << 20))
    time.sleep(1.0 if batch in (20, 30) else 0.015)
"""


def test_reading_and_writing_by_step(stepwatch: Run, tmp_path: Path) -> None:
    """From the kernel, also without --io."""
    (tmp_path / "in.bin").write_bytes(bytes(1 << 18))
    script = tmp_path / "uneven.py"
    script.write_text(UNEVEN)
    done = stepwatch("run", "-o", str(tmp_path / "run"), str(script))
    assert done.returncode == 0, done.stderr
    report = report_of(tmp_path / "run")
    io = report["io"]
    assert io["recorded"] is False
    steps = io["steps"]
    assert 10 < steps["readings"] <= 40
    # What the recorder and the monitor read themselves is little.
    assert (1 << 18) <= steps["read_bytes"]["p50"] < 1.2 * (1 << 18)
    assert 240 << 20 <= steps["read_bytes"]["max"] < 300 << 20
    assert 30 << 20 <= steps["written_bytes"]["max"] < 40 << 20
    assert steps["read_calls"]["max"] >= 960
    series = {reading["step"]: reading for reading in steps["series"]}
    assert series[20]["read_bytes"] >= 240 << 20
    assert series[30]["written_bytes"] >= 30 << 20
    assert sum(reading["read_bytes"] for reading in steps["series"]) == steps["read_bytes"]["total"]
    worst = {row["step"]: row for row in report["steps"]["worst"]}
    assert set(worst) >= {20, 30}
    assert 240 << 20 <= worst[20]["read_bytes"] < 300 << 20
    assert worst[20]["read_calls"] >= 960
    assert "; read 24" in worst[20]["why"]
    assert "wrote" not in worst[20]["why"]
    assert "; wrote 30" in worst[30]["why"]
    assert "read" not in worst[30]["why"]
