"""stepwatch run above and below launchers: torchrun, accelerate, uv, notebooks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Callable

import pytest

package: Any = pytest.importorskip("stepwatch", reason="there is no package here")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.usefixtures("python_env")

# A rank that needs no framework; its arguments are "rank=code" for those that fail.
RANK = """
import os, sys, stepwatch
rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or (
    os.environ.get("PMI_RANK") or os.environ.get("SLURM_PROCID"))
for number in range(12):
    with stepwatch.step():
        pass
print("rank", rank, "of", os.environ.get("WORLD_SIZE"), flush=True)
codes = dict(word.split("=") for word in sys.argv[1:])
sys.exit(int(codes.get(rank, codes.get("all", 0))))
"""

# Starts two of them, as launchers do, with the variables of one.
LAUNCHER = """
import json, os, subprocess, sys
ranks = [
    subprocess.Popen(sys.argv[2:], env={**os.environ, **{
        key: value.replace("%r", str(rank)) for key, value in json.loads(sys.argv[1]).items()}})
    for rank in (0, 1)
]
sys.exit(max(rank.wait() for rank in ranks))
"""

TORCH = {"RANK": "%r", "LOCAL_RANK": "%r", "WORLD_SIZE": "2"}


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(RANK)
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    return path


@pytest.fixture
def launch(tmp_path: Path, env: dict[str, str]) -> Run:
    """Return a function that runs any command."""

    def run(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        extra = options.pop("extra", {})
        settings = {"cwd": tmp_path, "capture_output": True, "text": True, **options}
        return subprocess.run(
            [str(word) for word in words],
            env={**env, **extra},
            check=False,
            timeout=300,
            **settings,
        )

    return run


@pytest.fixture
def torchrun() -> list[str]:
    pytest.importorskip("torch")
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def runs(folder: Path) -> list[Path]:
    return sorted((folder / "runs" / "profiling").glob("[0-9]*"))


def facts_of(folder: Path) -> list[dict[str, str]]:
    return [package.open(path).info["facts"] for path in sorted(folder.glob("*.stepwatch"))]


def ranks_of(folder: Path) -> list[tuple[str | None, ...]]:
    keys = ("rank", "local_rank", "world_size")
    return sorted(tuple(facts.get(key) for key in keys) for facts in facts_of(folder))


# --- variables ---


@pytest.mark.parametrize(
    ("variables", "ranks"),
    [
        (TORCH, [("0", "0", "2"), ("1", "1", "2")]),
        (
            {"OMPI_COMM_WORLD_RANK": "%r", "OMPI_COMM_WORLD_SIZE": "2"},
            [("0", None, "2"), ("1", None, "2")],
        ),
        ({"PMI_RANK": "%r", "PMI_SIZE": "2"}, [("0", None, "2"), ("1", None, "2")]),
        (
            {"SLURM_PROCID": "%r", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"},
            [("0", "0", "2"), ("1", "0", "2")],
        ),
        # The launcher's own words come before those of the place it runs in.
        (
            {**TORCH, "SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
            [("0", "0", "2"), ("1", "1", "2")],
        ),
        ({"LOCAL_RANK": "%r", "WORLD_SIZE": "2"}, [("0", "0", "2"), ("1", "1", "2")]),
    ],
)
def test_ranks_share_a_directory(
    launch: Run,
    stepwatch_cli: Path,
    train: Path,
    variables: dict[str, str],
    ranks: list[tuple[str | None, ...]],
) -> None:
    words = [json.dumps(variables), stepwatch_cli, "run", train.name]
    result = launch(sys.executable, "launcher.py", *words)
    assert result.returncode == 0, result.stderr
    (folder,) = runs(train.parent)
    assert ranks_of(folder) == ranks
    report = report_of(folder)
    assert (report["run"]["ranks"], report["run"]["processes"]) == (2, 2)
    assert report["run"]["exit"] == {"code": 0, "signal": None}
    assert report["steps"]["count"] == 12
    # One of them reports.
    assert result.stderr.count(f"{folder}\n") == 1
    assert result.stderr.count("Steps  12 steps") == 1
    assert len(result.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
        {"RANK": "five", "WORLD_SIZE": "2"},
        {"RANK": "7", "WORLD_SIZE": "2"},
        {"RANK": "-1", "WORLD_SIZE": "2"},
        {"RANK": "", "WORLD_SIZE": ""},
    ],
)
def test_those_that_are_alone(
    launch: Run, stepwatch_cli: Path, train: Path, variables: dict[str, str]
) -> None:
    for _ in range(2):
        result = launch(stepwatch_cli, "run", train.name, extra=variables)
        assert result.returncode == 0, result.stderr
    folders = runs(train.parent)
    assert len(folders) == 2
    assert [report_of(folder)["run"]["ranks"] for folder in folders] == [1, 1]


def test_the_first_failure_counts(launch: Run, stepwatch_cli: Path, train: Path) -> None:
    words = [json.dumps(TORCH), stepwatch_cli, "run", "-o", "out", train.name, "1=3"]
    result = launch(sys.executable, "launcher.py", *words)
    assert result.returncode == 3
    folder = train.parent / "out"
    assert ranks_of(folder) == [("0", "0", "2"), ("1", "1", "2")]
    assert report_of(folder)["run"]["exit"] == {"code": 3, "signal": None}
    # The folder holds a run now, which a later launch does not join.
    again = launch(sys.executable, "launcher.py", *words)
    assert again.returncode == 2
    assert again.stderr.count("out already holds a run") == 2
    assert len(list(folder.glob("*.stepwatch"))) == 2


def test_a_later_launch_of_the_same_name(launch: Run, stepwatch_cli: Path, train: Path) -> None:
    variables = {**TORCH, "TORCHELASTIC_RUN_ID": "100"}  # as examples have it
    words = [json.dumps(variables), stepwatch_cli, "run", "--no-report", train.name]
    for count in (1, 2):
        result = launch(sys.executable, "launcher.py", *words)
        assert result.returncode == 0, result.stderr
        folders = runs(train.parent)
        assert [len(ranks_of(folder)) for folder in folders] == [2] * count
    # Nothing is left of the first but its directory.
    assert len(list((train.parent / "runs" / "profiling").glob(".launch*"))) == 1


def test_shells_in_between(launch: Run, stepwatch_cli: Path, train: Path) -> None:
    line = f"{stepwatch_cli} run --no-report {train.name}; exit $?"
    words = [json.dumps(TORCH), "/bin/sh", "-c", line]
    result = launch(sys.executable, "launcher.py", *words)
    assert result.returncode == 0, result.stderr
    (folder,) = runs(train.parent)
    assert len(ranks_of(folder)) == 2


def test_profiles_of_ranks_have_names_of_their_own(
    launch: Run, stepwatch_cli: Path, train: Path
) -> None:
    words = [json.dumps(TORCH), stepwatch_cli, "run", "-o", "out", "--functions", train.name]
    result = launch(sys.executable, "launcher.py", *words)
    assert result.returncode == 0, result.stderr
    names = sorted(path.name for path in (train.parent / "out").glob("functions*.stats"))
    assert len(names) == 2
    assert "functions.stats" in names


def test_a_place_that_cannot_be_written(launch: Run, stepwatch_cli: Path, train: Path) -> None:
    words = [json.dumps(TORCH), stepwatch_cli, "run", "-o", "/proc/out", train.name]
    result = launch(sys.executable, "launcher.py", *words)
    assert result.returncode == 2
    assert result.stderr.count("stepwatch: run: /proc/out cannot be made: ") == 2


def test_a_program_that_is_not_there(launch: Run, stepwatch_cli: Path, train: Path) -> None:
    words = [json.dumps(TORCH), stepwatch_cli, "run", "--", "no-such-program"]
    assert launch(sys.executable, "launcher.py", *words).returncode == 127
    assert not [path for folder in runs(train.parent) for path in folder.iterdir()]


# --- torchrun ---


def test_above_torchrun(stepwatch: Run, torchrun: list[str], train: Path) -> None:
    result = stepwatch("run", "-o", "out", *torchrun[1:], train.name, timeout=300)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    folder = train.parent / "out"
    report = report_of(folder)
    # The launcher is not one of the processes: it trains nothing.
    assert (report["run"]["ranks"], report["run"]["processes"]) == (2, 2)
    assert report["run"]["name"] == "train"
    assert report["steps"]["count"] == 12
    assert ranks_of(folder) == [("0", "0", "2"), ("1", "1", "2")]
    assert result.stderr.endswith(f"{folder}\n")


def test_above_torchrun_with_a_rank_that_fails(
    stepwatch: Run, launch: Run, torchrun: list[str], train: Path
) -> None:
    command = shutil.which("torchrun", path=str(Path(sys.executable).parent))
    if not command:
        pytest.skip("there is no command torchrun beside this Python")
    words = [command, *torchrun[3:], train.name, "1=3"]
    expected = launch(*words, extra={"PYTHONPATH": str(Path(package.__file__).parents[1])})
    result = stepwatch("run", "-o", "out", "--", *words, timeout=300)
    assert result.returncode == expected.returncode == 1
    assert "exitcode  : 3" in result.stderr
    report = report_of(train.parent / "out")
    assert report["run"]["exit"] == {"code": 1, "signal": None}
    assert report["run"]["ranks"] == 2


def test_below_torchrun(launch: Run, stepwatch_cli: Path, torchrun: list[str], train: Path) -> None:
    words = [*torchrun, "--no-python", stepwatch_cli, "run", train.name, "1=3"]
    result = launch(*words)
    assert result.returncode == 1
    (folder,) = runs(train.parent)
    report = report_of(folder)
    assert (report["run"]["ranks"], report["run"]["processes"]) == (2, 2)
    assert report["run"]["exit"] == {"code": 3, "signal": None}
    assert result.stderr.count(f"{folder}\n") == 1


def test_above_and_below_torchrun(
    stepwatch: Run, stepwatch_cli: Path, torchrun: list[str], train: Path
) -> None:
    inner = [*torchrun, "--no-python", stepwatch_cli, "run", train.name]
    result = stepwatch("run", "-o", "out", "--", *inner, timeout=300)
    assert result.returncode == 0, result.stderr
    assert runs(train.parent) == []
    assert ranks_of(train.parent / "out") == [("0", "0", "2"), ("1", "1", "2")]
    assert result.stderr.count("Steps  12 steps") == 1


DDP = """
import hashlib, os, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(16, 4))
data = torch.utils.data.TensorDataset(torch.randn(64, 16), torch.randn(64, 4))
sampler = torch.utils.data.DistributedSampler(data)
loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler, num_workers=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
state = torch.get_rng_state().numpy().tobytes()
if dist.get_rank() == 0:
    print(hashlib.sha256(weights).hexdigest(), hashlib.sha256(state).hexdigest(), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_training_on_two_ranks(
    stepwatch: Run, launch: Run, torchrun: list[str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(DDP)
    expected = launch(*torchrun, "train.py")
    assert expected.returncode == 0, expected.stderr
    result = stepwatch("run", "-o", "out", *torchrun[1:], "train.py", timeout=300)
    assert (result.returncode, result.stdout) == (0, expected.stdout)
    report = report_of(tmp_path / "out")
    assert report["run"]["ranks"] == 2
    assert report["run"]["complete"] is True
    assert report["run"]["frameworks"]["torch"]


# --- others ---


def test_accelerate(stepwatch: Run, train: Path) -> None:
    pytest.importorskip("accelerate")
    words = ["--cpu", "--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no"]
    module = ["-m", "accelerate.commands.launch", *words, "--dynamo_backend", "no"]
    result = stepwatch("run", "-o", "out", *module, train.name, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "rank None of None\n"
    report = report_of(train.parent / "out")
    assert (report["run"]["processes"], report["run"]["name"]) == (1, "train")
    assert report["steps"]["count"] == 12


@pytest.mark.parametrize("order", ["above", "below"])
def test_uv(launch: Run, stepwatch_cli: Path, train: Path, order: str) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if not uv:
        pytest.skip("uv is not installed")
    words: list[str | Path] = [uv, "run", "--offline", "--no-project", "--python", sys.executable]
    run: list[str | Path] = [stepwatch_cli, "run", "-o", "out"]
    if order == "above":
        words = [*run, "--", *words, train.name, "all=7"]
    else:
        words = [*words, "--", *run, train.name, "all=7"]
    result = launch(*words)
    assert (result.returncode, result.stdout) == (7, "rank None of None\n"), result.stderr
    report = report_of(train.parent / "out")
    assert (report["run"]["processes"], report["run"]["name"]) == (1, "train")
    assert report["steps"]["count"] == 12


def test_a_signal_to_the_group_comes_once(
    stepwatch_cli: Path, python_env: dict[str, str], tmp_path: Path
) -> None:
    """Notebooks and torchrun send signals to the whole group, which the program is in."""
    (tmp_path / "train.py").write_text(
        textwrap.dedent(
            """
            import os, signal, sys, time
            for number in (1, 2, 10, 12):
                signal.signal(number, lambda number, _: os.write(1, b"got %d\\n" % number))
            signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
            os.write(1, b"ready\\n")
            while True:
                time.sleep(0.01)
            """
        )
    )
    with subprocess.Popen(
        [str(stepwatch_cli), "run", "--no-report", "-o", "out", "train.py"],
        env=python_env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        for send, number in ((os.killpg, 1), (os.kill, 2), (os.killpg, 10), (os.kill, 12)):
            send(process.pid, number)
            assert process.stdout.readline() == f"got {number}\n"
        os.killpg(process.pid, signal.SIGTERM)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 1
    assert output == ""  # each came once
    assert errors.startswith("terminated\n")


CELL = """
import time
caught = 0
for seconds in (600, 1):
    try:
        if seconds > 1:
            print("ready", flush=True)
        time.sleep(seconds)
    except KeyboardInterrupt:
        caught += 1
print("caught", caught, flush=True)
"""


class Kernel:
    """A notebook's kernel, below stepwatch run or by itself."""

    def __init__(self, command: list[str], env: dict[str, str], folder: Path) -> None:
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import KernelManager

        self.manager: Any = KernelManager()
        self.manager._kernel_spec = KernelSpec(argv=command, display_name="", language="python")
        with (folder / "kernel.txt").open("w") as output:
            self.manager.start_kernel(env=env, cwd=str(folder), stdout=output, stderr=output)
        self.client: Any = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def run(self, code: str, *, interrupt: bool = False) -> str:
        request = self.client.execute(code)
        text = ""
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            content = message["content"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "stream":
                text += content["text"]
                if interrupt and "ready" in text:
                    interrupt = False
                    self.manager.interrupt_kernel()
            elif message["msg_type"] in ("execute_result", "display_data"):
                text += content["data"]["text/plain"]
            elif message["msg_type"] == "error":
                text += content["ename"]
            elif content.get("execution_state") == "idle":
                return text

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("below", [True, False])
def test_a_notebook(
    stepwatch_cli: Path, python_env: dict[str, str], tmp_path: Path, below: bool
) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")
    command = ["-m", "ipykernel_launcher", "-f", "{connection_file}"]
    if below:
        command = [str(stepwatch_cli), "run", "-o", "out", *command]
    else:
        command = [sys.executable, *command]
        python_env["PYTHONPATH"] = str(Path(package.__file__).parents[1])
    kernel = Kernel(command, python_env, tmp_path)
    try:
        steps = "import stepwatch\nfor _ in range(12):\n    with stepwatch.step(): pass"
        if below:
            assert kernel.run(steps) == ""
        else:
            kernel.run("%load_ext stepwatch")
            kernel.run("import stepwatch; stepwatch.start(out='out')")
            assert kernel.run(steps) == ""
        assert kernel.run(CELL, interrupt=True) == "ready\ncaught 1\n"
        if not below:
            kernel.run("run = stepwatch.stop()")
            assert kernel.run("run.report().steps['count']") == "12"
    finally:
        kernel.end()
    if below:
        report = report_of(tmp_path / "out")
        assert report["steps"]["count"] == 12
        assert report["run"]["name"] == "ipykernel_launcher"
