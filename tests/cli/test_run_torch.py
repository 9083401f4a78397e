"""Programs of torch under stepwatch run: results, ends and workers are their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

pytest.importorskip("torch")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.usefixtures("python_env")

# What a training program can see of its place, before torch, after it and at the end.
TRAIN = """
import sys
modules = sorted(sys.modules)
import hashlib, json, os, random, threading, warnings
import __main__

def digest(data):
    return hashlib.sha256(data).hexdigest()

about = {
    "argv": sys.argv, "path": sys.path, "flags": list(sys.flags), "main": sorted(vars(__main__)),
    "filters": list(map(repr, warnings.filters)),
    "threads": threading.active_count(), "hooks": [repr(sys.excepthook), repr(sys.gettrace())],
    "cwd": os.getcwd(), "name": __name__, "file": __file__,
}
random.seed(1)
import numpy, torch
numpy.random.seed(2)
torch.manual_seed(3)
torch.set_num_threads(1)

def states():
    return [
        digest(torch.get_rng_state().numpy().tobytes()),
        digest(repr(random.getstate()).encode()),
        digest(repr(numpy.random.get_state()).encode()),
    ]

class Set(torch.utils.data.Dataset):
    def __len__(self):
        return 48
    def __getitem__(self, index):
        return torch.full((8,), float(index)) + torch.rand(8), index % 4

about["filters after"] = list(map(repr, warnings.filters))
about["begin"] = states()
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters())
loader = torch.utils.data.DataLoader(Set(), batch_size=4, shuffle=True, num_workers=WORKERS)
losses, order = [], []
if __name__ == "__main__":
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            order.append(y.tolist())
    about.update(losses=losses, order=order, end=states())
    about["weights"] = [digest(p.detach().numpy().tobytes()) for p in model.parameters()]
    about["attributes"] = sorted(vars(model)) + sorted(vars(loader)) + sorted(vars(optimizer))
    print(json.dumps({"about": about, "modules": modules}))
"""


@pytest.fixture
def plain(tmp_path: Path, env: dict[str, str]) -> Run:
    """Return a function that runs Python as it is."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        settings = {"cwd": tmp_path, "capture_output": True, "text": True, **options}
        return subprocess.run([sys.executable, *arguments], env=env, check=False, **settings)

    return run


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


@pytest.mark.parametrize("workers", [0, 2])
def test_results_are_bit_identical(
    stepwatch: Run, plain: Run, tmp_path: Path, workers: int
) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("WORKERS", str(workers)))
    expected = plain("train.py", "--epochs", "2")
    assert expected.returncode == 0, expected.stderr
    result = stepwatch("run", "-o", "out", "train.py", "--epochs", "2", timeout=300)
    assert result.returncode == 0, result.stderr
    assert "stepwatch: " not in result.stderr
    before, after = json.loads(expected.stdout), json.loads(result.stdout)
    for key, value in before["about"].items():
        assert after["about"][key] == value, key
    added = set(after["modules"]) - set(before["modules"])
    assert {name.partition(".")[0] for name in added} <= {
        "stepwatch",
        "gc",
        "opcode",
        "_opcode",
        "__future__",
        "atexit",
        "types",
    }
    report = report_of(tmp_path / "out")
    assert report["run"]["frameworks"].keys() >= {"torch", "numpy"}
    assert report["run"]["processes"] == 1 + 2 * workers  # workers anew for each epoch
    assert report["run"]["complete"] is True


def test_switched_off(stepwatch: Run, build_dir: Path, tmp_path: Path) -> None:
    """Nothing is put in place of torch's functions, nothing is written, and no thread begins."""
    (tmp_path / "train.py").write_text(
        """
import os
before = len(os.listdir("/proc/self/task"))
import stepwatch
stepwatch.start()
assert not stepwatch.is_recording()
assert len(os.listdir("/proc/self/task")) == before
import torch
for owner, name in (
    (torch.nn.Module, "__call__"), (torch.Tensor, "backward"), (torch.autograd, "backward"),
    (torch.optim.SGD, "step"), (torch.utils.data.DataLoader, "__iter__"), (torch, "save"),
    (torch.Tensor, "item"), (torch.Tensor, "cpu"),
):
    module = getattr(getattr(owner, name), "__module__", None) or ""
    assert not module.startswith("stepwatch"), (owner, name)
with stepwatch.step(), stepwatch.section("forward"):
    pass
print("done")
"""
    )
    extra = {"PYTHONPATH": str(build_dir / "python")}
    names = {"train.py"}
    for words, more in ((("--set", "enabled=false"), {}), ((), {"STEPWATCH_ENABLED": "0"})):
        result = stepwatch("run", *words, "train.py", extra={**extra, **more}, timeout=300)
        assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
        assert {path.name for path in tmp_path.iterdir()} == names


# Trains until something ends it; the numbers of its workers are in "workers".
ENDLESS = """
import os, sys, torch
torch.set_num_threads(1)

class Set(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            yield torch.rand(4)

def begin(number):
    with open(f"worker{number}", "w") as file:
        file.write(str(os.getpid()))

if __name__ == "__main__":
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    settings = dict(worker_init_fn=begin, multiprocessing_context=sys.argv[1])
    loader = torch.utils.data.DataLoader(Set(), batch_size=4, num_workers=2, **settings)
    for number, x in enumerate(loader):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if number == 20:
            print("ready", flush=True)
"""


def start(command: list[str], env: dict[str, str], folder: Path) -> subprocess.Popen[str]:
    """Begin a program in a session of its own, and wait until it trains."""
    process = subprocess.Popen(
        command,
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    line = process.stdout.readline()
    assert line == "ready\n", process.stderr and process.stderr.read()
    return process


def last_line(text: str) -> str:
    """Return the line that says what went wrong."""
    lines = [line for line in text.splitlines() if line.startswith(("RuntimeError", "Keyboard"))]
    return lines[-1] if lines else ""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_interrupted(
    stepwatch_cli: Path, python_env: dict[str, str], tmp_path: Path, method: str
) -> None:
    """As the terminal does: the whole group gets it, workers included."""
    (tmp_path / "train.py").write_text(ENDLESS)
    command = [str(stepwatch_cli), "run", "-o", "out", "train.py", method]
    with start(command, python_env, tmp_path) as process:
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 130
    assert last_line(errors) == "KeyboardInterrupt"
    assert errors.rstrip().endswith(str(tmp_path / "out"))
    report = report_of(tmp_path / "out")
    assert report["run"]["exit"] == {"code": None, "signal": 2}
    assert report["run"]["processes"] == 3


def test_a_worker_is_killed(
    stepwatch_cli: Path, python_env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    outcomes = []
    for prefix in ([sys.executable], [str(stepwatch_cli), "run", "-o", "out"]):
        with start([*prefix, "train.py", "fork"], python_env, tmp_path) as process:
            worker = int((tmp_path / "worker1").read_text())
            os.kill(worker, signal.SIGKILL)
            _, errors = process.communicate(timeout=300)
        # What torch says, and where, depends on what the worker was doing.
        outcomes.append(process.returncode)
    assert outcomes == [1, 1], errors
    report = report_of(tmp_path / "out")
    assert report["run"]["exit"] == {"code": 1, "signal": None}
    assert report["run"]["complete"] is False


def test_the_program_is_killed(
    stepwatch_cli: Path, python_env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    command = [str(stepwatch_cli), "run", "-o", "out", "train.py", "fork"]
    with start(command, python_env, tmp_path) as process:
        parent = (tmp_path / "worker0").read_text()
        status = Path(f"/proc/{parent}/stat").read_text()
        os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 137
    assert errors.rstrip().endswith(str(tmp_path / "out"))
    report = report_of(tmp_path / "out")
    assert report["run"]["exit"] == {"code": None, "signal": 9}
    assert report["run"]["complete"] is False


# --- frameworks that are not what they should be ---

BROKEN = {
    "absent": None,
    "raises": "raise ImportError('libtorch.so: cannot open shared object file')\n",
    "breaks": "raise RuntimeError('half installed')\n",
    "empty": "",
    "old": "__version__ = '0.3.1'\nclass Tensor:\n    pass\n",
    "hostile": (
        "__version__ = 17\n"
        "def __getattr__(name):\n    raise RuntimeError('no ' + name)\n"
        "def __dir__():\n    raise RuntimeError('nothing')\n"
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(
    "framework", ["torch", "jax", "keras", "lightning.pytorch", "transformers"]
)
def test_frameworks_that_are_broken(
    stepwatch: Run, plain: Run, tmp_path: Path, framework: str, kind: str
) -> None:
    text = BROKEN[kind]
    folder = tmp_path.joinpath(*framework.split("."))
    if text is None:
        text = f"raise ModuleNotFoundError('No module named {framework!r}', name={framework!r})\n"
    folder.mkdir(parents=True)
    for parent in folder.parents:
        if parent == tmp_path:
            break
        (parent / "__init__.py").write_text("")
    (folder / "__init__.py").write_text(text)
    (tmp_path / "train.py").write_text(
        f"import sys\nprint('begin')\nimport {framework} as used\n"
        "print(used.__name__, sorted(vars(used)), used.__doc__, used.__spec__.name)\nsys.exit(4)\n"
    )
    expected = plain("train.py")
    result = stepwatch("run", "-o", "out", "train.py")
    assert (result.returncode, result.stdout) == (expected.returncode, expected.stdout)
    # At most one sentence of ours comes before what the program says.
    own = [line for line in result.stderr.splitlines() if line.startswith("stepwatch: ")]
    assert len(own) <= 1
    assert report_of(tmp_path / "out")["run"]["exit"]["code"] == expected.returncode
    if expected.stderr:
        assert expected.stderr in result.stderr
    notes = report_of(tmp_path / "out")["notes"]
    assert len([note for note in notes if framework.partition(".")[0] in note]) <= 2
