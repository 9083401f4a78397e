"""The data loader of torch, seen whole: real programs, recorded and not, and what was recorded."""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch.integrations import loader_rows

from .conftest import load

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

NONE = 2**32 - 1
UNKNOWN = 2**64 - 1
KINDS = (
    *("getitem", "transform", "collate", "fetch", "serialise", "room", "index"),
    *("wait", "unpickle", "pin", "start", "first", "shutdown"),
)
STEP, BATCH, EVENTS, STEPS = 4, 5, 7, 8
PIN, PERSISTENT, DROP_LAST, SHUFFLED, ITERABLE, FOREIGN = (1 << bit for bit in range(6))


programs = load("loader_programs")
Trace = load("test_format_spec").Trace


class File:
    """What one process has recorded, as far as it is about loaders."""

    def __init__(self, path: Path) -> None:
        trace = Trace(path.read_bytes())
        names, _ = trace.names()

        def name(number: int) -> str:
            return names[number] if number else ""

        self.sites = [
            (row.key[0], name(row.key[1]), row.key[2], name(row.key[3]), name(row.value[0]))
            for row in trace.rows(8).values()
        ]
        self.loaders = {
            name(row.key[0]): (name(row.key[1]), *row.key[2:], *row.value)
            for row in trace.rows(10).values()
        }
        self.settings = {
            (name(row.key[0]), name(row.key[1])): name(row.key[2])
            for row in trace.rows(14).values()
        }
        self.stages = {
            (name(row.key[0]), row.key[1], KINDS[row.key[2] - 1], name(row.key[3])): row.value
            for row in trace.rows(11).values()
        }
        assert len(self.stages) == len(trace.rows(11))
        self.modules = {name(row.key[1]) for row in trace.rows(9).values()}
        self.batches = [
            Batch(name(record.id), record)
            for thread in trace.threads()
            for record in trace.records(EVENTS, thread)
            if record.kind == BATCH
        ]
        self.steps = [
            record
            for thread in trace.threads()
            for record in trace.records(STEPS, thread)
            if record.kind == STEP
        ]

    def calls(self, loader: str, worker: int = NONE) -> dict[tuple[str, str], int]:
        """Return how often each stage was entered, by kind and name."""
        return {
            (kind, stage): value[0]
            for (name, number, kind, stage), value in self.stages.items()
            if (name, number) == (loader, worker)
        }

    def ticks(self, loader: str, kind: str, worker: int = NONE) -> int:
        return sum(
            value[1]
            for (name, number, each, _), value in self.stages.items()
            if (name, number, each) == (loader, worker, kind)
        )


class Batch:
    def __init__(self, loader: str, record: Any) -> None:
        self.loader, self.begin = loader, record.ticks
        fields = struct.unpack_from("<8Q", record.body, 16)
        self.end, self.fetch_begin, self.fetch_end, self.put, self.receive, self.pin = fields[:6]
        self.cpu_ns, self.bytes = fields[6:]
        self.number, self.epoch, self.index, self.worker, self.depth, self.step = (
            struct.unpack_from("<QIIIIQ", record.body, 80)
        )


class Result:
    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.done, self.folder = done, folder
        notes = folder / "notes.txt"
        self.notes = notes.read_text() if notes.exists() else ""
        self.files = [File(path) for path in sorted(folder.glob("*.stepwatch"))]
        own = [file for file in self.files if file.loaders]
        self.program = own[0] if own else None

    @property
    def main(self) -> File:
        assert self.program is not None, self.done.stderr
        return self.program

    @property
    def workers(self) -> list[File]:
        return [file for file in self.files if file is not self.program]

    def steps(self) -> dict[str, Any]:
        with stepwatch.open(self.folder) as run:
            found = run.report().to_dict()["steps"]
        assert isinstance(found, dict)
        return found


Runner = Callable[..., Result]


@pytest.fixture
def program(tmp_path: Path, stepwatch_cli: Path, build_dir: Path) -> Runner:
    """Return what runs a program below ``stepwatch run``, everything kept."""

    def run(text: str, *args: str, bare: bool = False, check: bool = True) -> Any:
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(text, encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": str(build_dir / "python"),
            "STEPWATCH_PYTHON": sys.executable,
            "STEPWATCH_POLICY": "stream",
            "OMP_NUM_THREADS": "1",
        }
        out = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        command = [str(stepwatch_cli), "run", "--no-report", "--out", str(out)]
        if bare:
            environment["PYTHONPATH"] = ""
            command = [sys.executable]
        done = subprocess.run(
            [*command, "train.py", *args],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done if bare else Result(out, done)

    return run


def script(body: str) -> str:
    """Make a program of the body of its main function."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return f'{programs.HEADER}\n\ndef main():\n{lines}\n\nif __name__ == "__main__":\n    main()\n'


def line_of(text: str, what: str) -> int:
    return 1 + next(n for n, line in enumerate(text.splitlines()) if what in line)


@pytest.mark.slow
def test_the_program_does_the_same(program: Runner) -> None:
    """Batches, their order, all random states, what the program sees of its own objects."""
    bare: Any = program(programs.EVERYTHING, bare=True)
    result = program(programs.EVERYTHING)
    assert len(bare.stdout.splitlines()) == 2 * 11 * 4 + 1
    assert result.done.stdout == bare.stdout
    assert result.notes == ""


def test_without_workers(program: Runner) -> None:
    text = script(
        """
transform = chain()
transform.transforms.append(torch.nn.Sequential(torch.nn.ReLU(), Part()))
loader = DataLoader(Samples(20, transform), batch_size=5, shuffle=True, drop_last=True)
forward = torch.nn.ReLU.forward
train(loader, 3)
assert torch.nn.ReLU.forward is forward
assert [type(each) for each in transform.transforms[-1]] == [torch.nn.ReLU, Part]
evaluation = DataLoader(
    Stream(6), batch_size=None,
)
with torch.no_grad():
    for batch in evaluation:
        pass
"""
    )
    result = program(text)
    main = result.main
    assert (result.notes, result.workers) == ("", [])
    sites = {}
    for name, about in main.loaders.items():
        site = main.sites[about[7] - 1]
        sites[name] = (site[0], Path(site[1]).name, *site[2:])
    assert {name: about[:7] for name, about in main.loaders.items()} == {
        "loader": ("Samples", 0, 5, SHUFFLED | DROP_LAST, 0, 20, 3),
        "evaluation": ("Stream", 0, 0, ITERABLE, 0, UNKNOWN, 1),
    }
    lines = {"loader": "loader = DataLoader(Samples", "evaluation": "evaluation = DataLoader("}
    for name, what in lines.items():
        assert sites[name] == (1, "train.py", line_of(text, what), "DataLoader", "main")
    assert main.settings["loader.sampler", "loader"] == "RandomSampler"
    assert main.settings["loader.collate", "loader"] == "default_collate"
    assert main.settings["loader.collate", "evaluation"] == "default_convert"
    assert main.calls("loader") == {
        ("getitem", "getitem"): 60,
        ("transform", "Noise"): 60,
        ("transform", "Flip"): 60,
        ("transform", "scale"): 60,
        ("transform", "shift"): 60,
        ("transform", "Part"): 120,
        ("transform", "<lambda>"): 60,
        ("transform", "ReLU"): 60,
        ("collate", "default_collate"): 12,
        ("fetch", "fetch"): 12,
        ("wait", "wait"): 12,
        ("start", "start"): 3,
        ("first", "first"): 3,
    }
    # Six samples; the question that had no answer is none.
    assert main.calls("evaluation")["getitem", "next"] == 6
    assert main.calls("evaluation")["wait", "wait"] == 6
    order = ("transform", "getitem", "fetch", "wait")
    times = [main.ticks("loader", kind) for kind in order]
    assert times == sorted(times)
    assert times[0] > 0
    steps = result.steps()
    assert steps["count"] == 12
    phases = {each["phase"]: each for each in steps["phases"]}
    assert {"data_wait", "preprocess", "augment", "collate"} <= set(phases)
    assert main.modules == {"Linear"}  # The one among the transforms is no model.
    mine = [batch for batch in main.batches if batch.loader == "loader"]
    assert [batch.index for batch in mine] == [0, 1, 2, 3] * 3
    assert [batch.epoch for batch in mine] == [0] * 4 + [1] * 4 + [2] * 4
    assert [batch.step for batch in mine] == list(range(12))
    assert len({batch.number for batch in main.batches}) == 18
    for batch in mine:
        assert batch.worker == NONE
        assert batch.begin < batch.fetch_begin < batch.fetch_end < batch.end


def check_workers(result: Result, count: int, last: str = "<lambda>") -> None:
    """Check three passes over 24 samples in batches of four, with two workers at a time."""
    batches, passes, fetched = 18, 3, 18
    main = result.main
    assert result.notes == ""
    assert len(result.workers) == count
    assert main.loaders["loader"][6] == passes
    given = main.calls("loader")
    assert given["wait", "wait"] == batches
    assert given["unpickle", "unpickle"] == batches
    assert given["first", "first"] == given["start", "start"] == passes
    by_number = {}
    made = {0: 0, 1: 0}
    for worker in result.workers:
        assert {stage[0] for stage in worker.stages} <= {"loader"}
        assert (worker.modules, worker.steps) == (set(), [])
        (number,) = {stage[1] for stage in worker.stages}
        calls = worker.calls("loader", number)
        made[number] += calls["fetch", "fetch"]
        samples = calls["getitem", "getitem"]
        assert samples == 4 * calls["fetch", "fetch"]
        for name in ("Noise", "Flip", "scale", "shift", "Part", last):
            assert calls["transform", name] == samples
        assert calls["collate", "stack"] == calls["fetch", "fetch"]
        assert calls["serialise", "serialise"] == calls["room", "pipe"] == len(worker.batches)
        assert ("index", "between passes") in calls
        assert worker.stages["loader", number, "fetch", "fetch"][2] > 0
        for batch in worker.batches:
            assert batch.worker == number
            by_number[batch.number] = batch
    assert sum(made.values()) == fetched
    assert len({batch.number for batch in main.batches}) == len(main.batches) == batches
    for batch in main.batches:
        other = by_number[batch.number]
        assert (batch.loader, batch.index, batch.epoch) == ("loader", other.index, other.epoch)
        moments = [batch.begin, other.begin, other.fetch_begin, other.fetch_end]
        moments += [batch.receive, batch.end]
        assert moments == sorted(moments)
        assert other.fetch_end < other.put < batch.receive
        assert other.bytes >= 4 * 4 * 4
    assert any(batch.cpu_ns > 0 for batch in by_number.values())


WORKERS = """
loader = DataLoader(Samples(24, chain()), batch_size=4, collate_fn=stack, num_workers=2, {more})
train(loader, 3)
"""


def test_workers(program: Runner) -> None:
    result = program(script(WORKERS.format(more="")))
    check_workers(result, 6)
    assert result.main.loaders["loader"][:6] == ("Samples", 2, 4, 0, 2, 24)
    assert result.main.settings["loader.start_method", "loader"] == "fork"
    assert result.main.calls("loader")["shutdown", "shutdown"] == 3
    assert result.steps()["count"] == 18


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("train = DataLoader(samples, batch_size=4)", "train"),
        ("    self.train: Loader = torch.utils.data.DataLoader(", "train"),
        ("train = wrap(DataLoader(samples))", "train"),
        ("train = make_loader(samples)", "train"),
        ("net = Net(); train = DataLoader(samples); steps = 3", "train"),
        ("net = Net(); train = make_loader(samples)", None),
        ("train = DataLoader(a); test = DataLoader(b)", None),
        ("train, test = DataLoader(a), DataLoader(b)", None),
        ("for batch in DataLoader(samples, batch_size=4):", None),
        ("return DataLoader(samples, batch_size=4)", None),
    ],
)
def test_loaders_are_named_as_the_program_does(line: str, name: str | None) -> None:
    assert loader_rows._assigned(line, "DataLoader") == name


def test_loaders_that_nobody_keeps(program: Runner) -> None:
    """Built in the head of the loop, for training and for validation, both of the same dataset."""
    text = script(
        """
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.utils.data.TensorDataset(torch.randn(60, 4))
for _ in range(3):
    for (batch,) in DataLoader(rows, batch_size=5, shuffle=True):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    with torch.no_grad():
        for (batch,) in DataLoader(rows, batch_size=30):
            model(batch)
"""
    )
    result = program(text)
    name = "DataLoader(TensorDataset)"
    assert {loader: about[2:7] for loader, about in result.main.loaders.items()} == {
        name: (5, SHUFFLED, 0, 60, 3),
        f"{name} (2)": (30, 0, 0, 60, 3),
    }
    assert result.main.calls(name)["wait", "wait"] == 36
    assert result.main.calls(f"{name} (2)")["wait", "wait"] == 6
    steps = result.steps()
    assert steps["samples_per_s"] == pytest.approx(5 * steps["steps_per_s"])


def test_persistent_workers(program: Runner) -> None:
    result = program(script(WORKERS.format(more="persistent_workers=True, prefetch_factor=4")))
    check_workers(result, 2)
    assert result.main.loaders["loader"][3:5] == (PERSISTENT, 4)
    for worker in result.workers:
        (number,) = {stage[1] for stage in worker.stages}
        calls = worker.calls("loader", number)
        # The first index of a pass, word of the next, and the end.
        assert calls["index", "between passes"] + calls.get(("index", "prefetched"), 0) >= 9 + 2


def test_workers_that_end_with_the_program(program: Runner) -> None:
    """Which are killed: nothing of what they did before is lost."""
    result = program(
        script(
            """
global loader
loader = DataLoader(Samples(40, scale), batch_size=4, num_workers=2, persistent_workers=True)
train(loader, 2)
"""
        )
    )
    for worker in result.workers:
        (number,) = {stage[1] for stage in worker.stages}
        calls = worker.calls("loader", number)
        assert calls["fetch", "fetch"] == calls["room", "pipe"] == 10
        assert calls["getitem", "getitem"] == calls["transform", "scale"] == 40


@pytest.mark.parametrize("workers", [0, 2])
def test_chains_in_attributes_of_any_name(program: Runner, workers: int) -> None:
    result = program(
        script(
            f"""
class Mine(Dataset):
    last = Compose([Flip("b")])  # The class has it.

    def __init__(self):
        self.first, self.others = Compose([Named("a"), scale]), {{"train": Compose([Part()])}}
        self.callback = named

    def __len__(self):
        return 12

    def __getitem__(self, index):
        sample = self.last(self.callback(torch.ones(4) * index))
        return self.others["train"](self.first(sample)), 1

loader = DataLoader(Mine(), batch_size=4, num_workers={workers})
train(loader, 2)
"""
        )
    )
    found: dict[str, int] = {}
    for file in result.workers if workers else [result.main]:
        for number in {stage[1] for stage in file.stages}:
            for (kind, name), calls in file.calls("loader", number).items():
                if kind == "transform":
                    found[name] = found.get(name, 0) + calls
    assert found == {"Named": 24, "scale": 24, "Part": 24, "Flip": 24}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_are_not_forked(program: Runner, method: str) -> None:
    text = WORKERS.format(more=f"multiprocessing_context={method!r}, persistent_workers=True")
    # What is spawned must be picklable, which a lambda is not.
    result = program(script(text).replace("Part(), lambda x: x]", "Part(), named]"))
    check_workers(result, 2, "named")
    assert result.main.settings["loader.start_method", "loader"] == method


def test_workers_of_a_recording_of_the_programs_own(tmp_path: Path) -> None:
    """Without ``run``: the program records itself, and its forked workers do, too."""
    text = script(
        f"""
import stepwatch
from stepwatch import integrations
stepwatch.start(out={str(tmp_path / "own")!r}, quiet=True, policy="stream")
integrations.install()
"""
        + WORKERS.format(more="")
        + "\nstepwatch.stop()\n"
    )
    file = tmp_path / "train.py"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, file], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    check_workers(Result(tmp_path / "own", done), 6)


def test_stream_with_workers(program: Runner) -> None:
    result = program(
        script("loader = DataLoader(Stream(10), batch_size=3, num_workers=2)\ntrain(loader, 2)")
    )
    main = result.main
    assert main.loaders["loader"][3] == ITERABLE
    # Five samples a worker are two batches, in two passes.
    assert main.calls("loader")["wait", "wait"] == 8
    assert sum(len(worker.batches) for worker in result.workers) >= 8
    numbers = {batch.number for worker in result.workers for batch in worker.batches}
    assert {batch.number for batch in main.batches} <= numbers


def test_several_loaders_and_ways_to_leave_them(program: Runner) -> None:
    text = script(
        """
class Mine(DataLoader):
    def __init__(self, data, **more):
        super().__init__(data, **more)

train_set = Mine(Samples(16), batch_size=2, shuffle=True)
held_out = DataLoader(Samples(8), batch_size=4)
model = torch.nn.Linear(4, 1)
for epoch in range(2):
    for x, _ in train_set:
        model(x).sum().backward()
        other = next(iter(held_out))
    model.eval()
    with torch.no_grad():
        for x, _ in held_out:
            model(x)
    model.train()
train(train_set, 2, most=3)
for epoch in range(3):
    anew = DataLoader(Samples(4), batch_size=2)
    train(anew)
    del anew
print([DataLoader(Samples(4), batch_size=2) for _ in range(2)] != [])
"""
    )
    result = program(text)
    main = result.main
    assert result.notes == ""
    assert main.loaders["train_set"][6] == 4
    site = main.sites[main.loaders["train_set"][7] - 1]
    assert (site[2], site[3]) == (line_of(text, "train_set = Mine("), "Mine")
    assert main.loaders["held_out"][6] == 16 + 2
    # A loader that is built anew for each epoch is one loader.
    assert main.loaders["anew"][6] == 3
    assert {name for name in main.loaders if "(" in name} == {
        "DataLoader(Samples)",
        "DataLoader(Samples) (2)",
    }
    # Two passes of eight, two of three that were left in the fourth step, three of two.
    steps = result.steps()
    assert steps["count"] - steps.get("incomplete", 0) in (16 + 6 + 6, 16 + 8 + 6)


FAILS = {
    "worker": "train(DataLoader(Failing(), batch_size=4, num_workers=2))",
    "program": "train(DataLoader(Failing(), batch_size=4))",
    "collate": """
def broken(samples):
    raise ValueError("cannot stack")

train(DataLoader(Samples(), batch_size=4, num_workers=1, collate_fn=broken))
""",
    "settings": "DataLoader(Samples(), num_workers=-1)",
    "timeout": """
class Slow(Samples):
    def __getitem__(self, index):
        time.sleep(3 if index == 8 else 0)
        return super().__getitem__(index)

train(DataLoader(Slow(), batch_size=4, num_workers=1, timeout=1))
""",
    "killed": """
class Deadly(Samples):
    def __getitem__(self, index):
        if index == 12:
            time.sleep(2)  # What was sent shall have come.
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return super().__getitem__(index)

train(DataLoader(Deadly(), batch_size=4, num_workers=1))
""",
    "start": """
def fails(worker):
    raise OSError("no such disk")

train(DataLoader(Samples(), batch_size=4, num_workers=1, worker_init_fn=fails))
""",
    "interrupt": """
class Interrupting(Samples):
    def __getitem__(self, index):
        if index == 8:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(5)
        return super().__getitem__(index)

train(DataLoader(Interrupting(), batch_size=4, num_workers=1))
""",
}


def without_us(text: str) -> str:
    """Return a traceback without the frames of the package, and without what differs by chance."""
    text = re.sub(r'  File "[^"]*/stepwatch/[^"]*", line.*\n(    .*\n)*', "", text)
    text = re.sub(r"pid\(s\) \d+|pid \d+", "pid", text)
    return re.sub(r"stepwatch: .*\n|.*/run-\d+\n", "", text)


@pytest.mark.parametrize("what", FAILS)
def test_failures_are_the_programs_own(program: Runner, what: str) -> None:
    text = script(FAILS[what])
    bare: Any = program(text, bare=True, check=False)
    result = program(text, check=False)
    assert bare.returncode != 0
    if what != "interrupt":
        assert result.done.returncode == bare.returncode
        texts = [without_us(each.stderr) for each in (result.done, bare)]
        if what in ("killed", "timeout"):  # Where the program waits is chance.
            texts = [text.splitlines()[-1] for text in texts]
        # Whether a batch waited for its turn is chance, too.
        where = re.compile(r"line \d+, in _next_data\n.*\n(?: +[\^~]+\n)?")
        assert where.sub("", texts[0]) == where.sub("", texts[1])
    else:
        assert "KeyboardInterrupt" in bare.stderr
        assert "KeyboardInterrupt" in result.done.stderr
    assert result.notes == ""
    if what == "killed":
        (worker,) = result.workers
        ((name, number),) = {stage[:2] for stage in worker.stages}
        # Killed in its fourth batch; what it counted last is lost.
        assert number == 0
        assert 4 <= worker.calls(name, 0)["getitem", "getitem"] <= 12


def test_hooks_that_fail_break_nothing(program: Runner) -> None:
    """Whatever goes wrong on our side, the program goes on, and one note says so."""
    body = """
from stepwatch.integrations import loader_rows, torch_transforms, torch_worker

def fails(*_, **__):
    raise RuntimeError("ours")

loader_rows.Row.begin_pass = fails
torch_transforms.Stages.find = fails
print(train(DataLoader(Samples(8), batch_size=4)))
torch_worker.Worker.got = torch_worker.Worker.gives = fails
print(train(DataLoader(Samples(8), batch_size=4, num_workers=1)))
"""
    result = program(script("torch.manual_seed(1)\n" + body))
    plain = body[body.index("print(train") :].replace("torch_worker.Worker.got", "_ = ''\n#")
    bare: Any = program(script("torch.manual_seed(1)\n" + plain), bare=True)
    assert result.done.stdout == bare.stdout
    assert "RuntimeError: ours" in result.notes
    assert len(result.notes.splitlines()) == len(set(result.notes.splitlines()))


def test_accelerate_gives_its_own_steps(program: Runner) -> None:
    """Its loader asks for the next batch before it gives the one before."""
    pytest.importorskip("accelerate")
    result = program(
        script(
            """
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
loader = DataLoader(Samples(20), batch_size=4)
model, prepared = accelerator.prepare(model, loader)
print(type(iter(prepared)).__name__, len(prepared))
for epoch in range(2):
    for x, index in prepared:
        accelerator.backward(model(x).sum())
        print(index.tolist(), prepared.end_of_dataloader)
"""
        )
    )
    lines = result.done.stdout.splitlines()
    assert lines[0] == "generator 5"
    assert lines[1:6] == lines[6:]
    assert lines[5] == "[16, 17, 18, 19] True"
    assert result.notes == ""
    steps = result.steps()
    assert steps["count"] == 10
    waits = [each for each in result.main.batches if each.epoch == 0]
    assert len(waits) >= 5


def test_any_iterator(program: Runner) -> None:
    """Loaders that are known by their class alone: generators, objects, their own iterators."""
    result = program(
        script(
            """
from stepwatch.integrations import any_loader

class Generating:
    def __iter__(self):
        for number in range(4):
            yield torch.full((2, 4), float(number))

class Going:
    def __init__(self):
        self.left, self.extra = 3, "mine"

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return torch.ones(2, 4)

class Holding:
    batch_size = 2

    def __iter__(self):
        return Going()

class Own(Going):
    def __iter__(self):
        self.left = 3
        return self

class Broken:
    def __iter__(self):
        raise OSError("no data")

for kind in (Generating, Holding, Own, Broken):
    assert any_loader.watch(kind)
assert not any_loader.watch(int)
generating, holding, own = Generating(), Holding(), Own()
for loader in (generating, holding, own):
    train(loader, 2)
iterator = iter(holding)
print(iterator.extra, iterator.left, len(list(iterator)), len(list(own)))
paused = iter(generating)
next(paused)
paused.close()
try:
    next(iter(Broken()))
except OSError as error:
    print(error)
"""
        )
    )
    assert result.done.stdout == "mine 3 3 3\nno data\n"
    assert result.notes == ""
    main = result.main
    assert main.loaders["Generating"][:4] == ("", 0, 0, FOREIGN)
    assert main.loaders["Holding"][2] == 2
    assert main.loaders["Generating"][6] == 3
    assert main.calls("Generating") == {("wait", "wait"): 9, ("first", "first"): 3}
    assert main.calls("Holding")["wait", "wait"] == 9
    assert main.calls("Own")["wait", "wait"] == 9
    # A loader that was trained with gives steps whoever goes through it, but for the first batch
    # of a pass: that may have been asked for ahead.
    assert result.steps()["count"] == 2 * (4 + 3 + 3) + 2 + 2


def test_pinning(program: Runner) -> None:
    """Torch's own thread that pins, with an accelerator that is only said to be there."""
    result = program(
        script(
            """
torch.accelerator.is_available = lambda *_: True
torch.accelerator.current_accelerator = lambda *_: torch.device("cuda")
torch.accelerator.current_device_index = lambda: 0
torch.accelerator.set_device_index = lambda _: None
torch.Tensor.pin_memory = lambda self, *_: self.clone()
threaded = DataLoader(Samples(16), batch_size=4, num_workers=2, pin_memory=True)
train(threaded, 2)
alone = DataLoader(Samples(8), batch_size=4, pin_memory=True)
train(alone)
"""
        )
    )
    assert result.notes == ""
    main = result.main
    assert (main.loaders["threaded"][3], main.loaders["alone"][3]) == (PIN, PIN)
    assert main.calls("threaded")["pin", "pin"] == 8
    assert main.calls("threaded")["unpickle", "unpickle"] == 8
    assert main.calls("alone")["pin", "pin"] == 2
    for batch in main.batches:
        assert batch.begin < batch.pin <= batch.end
        assert batch.loader == "alone" or batch.receive < batch.pin


def test_switched_off(program: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """With enabled=false nothing of torch is replaced."""
    monkeypatch.setenv("STEPWATCH_ENABLED", "0")
    result = program(
        script(
            """
from torch.utils.data import dataloader
print(DataLoader.__init__.__module__, dataloader._BaseDataLoaderIter.__next__.__code__.co_filename)
train(DataLoader(Samples(8), batch_size=4))
"""
        )
    )
    assert "stepwatch" not in result.done.stdout
    assert result.files == []


def test_compiled_code_does_not_notice(program: Runner) -> None:
    """The same graphs and breaks, where the loop itself is compiled."""
    text = script(
        """
import torch._dynamo

@torch.compile(backend="eager")
def epoch(model, loader):
    total = torch.zeros(())
    for x, _ in loader:
        total = total + model(x).sum()
    return total

@torch.compile(backend="eager")
def augment(transform, x):
    return transform(x) + 1

flip = Flip("a")
loader = DataLoader(Samples(8, Compose([Noise(), flip, Part()])), batch_size=4)
torch.manual_seed(1)
random.seed(1)
numpy.random.seed(1)
model = torch.nn.Linear(4, 1)
print(epoch(model, loader), augment(flip, torch.ones(3)), augment(Part(), torch.ones(3)))
print(sorted(torch._dynamo.utils.counters["stats"].items()))
print(sum(torch._dynamo.utils.counters["graph_break"].values()))
"""
    )
    bare: Any = program(text, bare=True)
    result = program(text)
    assert "unique_graphs" in bare.stdout
    assert result.done.stdout == bare.stdout
    assert result.notes == ""
