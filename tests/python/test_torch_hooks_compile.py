"""torch.compile does not notice the hooks: same graphs, same weights, same words on stderr."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.once, pytest.mark.slow]

pytest.importorskip("torch", reason="torch is not installed")

# With "hooks" everything is recorded and watched, from before the first import of dynamo or,
# with "late", from after it.
HEADER = """
import json, os, re, sys
HOW, OUT = sys.argv[1:3]
import torch, torch.nn as nn, torch.nn.functional as F
if HOW == "late":
    import torch._dynamo
if HOW != "bare":
    import stepwatch, stepwatch.torch
    stepwatch.start(out=OUT, quiet=True)
    stepwatch.torch.auto()
from torch._dynamo.utils import counters


class Graphs:
    # A back end that keeps what it was given.
    def __init__(self):
        self.seen = []

    def __call__(self, module, _):
        self.seen.append(
            [(node.op, re.sub("0x[0-9a-f]+|[0-9]{9,}", "", str(node.target)))
             for node in module.graph.nodes]
        )
        return module.forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.rest = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(4, 3))

    def forward(self, x):
        return self.rest(self.first(x))


class Broken(Net):
    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.rest(x)


answers = {}


def answer(name, graphs, *tensors):
    breaks = sorted(re.sub("(?s)\\n.*", "", text) for text in counters["graph_break"])
    breaks = [re.sub("inline|call", "", text) for text in breaks]
    answers[name] = {
        "graphs": graphs.seen,
        "breaks": breaks,
        "frames": dict(counters["frames"]),
        "stats": dict(counters["stats"]),
        "tensors": [tensor.detach().double().tolist() for tensor in tensors],
    }
    torch._dynamo.reset()
    counters.clear()


torch.manual_seed(0)
x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
"""

FOOTER = """
if HOW != "bare":
    stepwatch.stop()
with open(os.path.join(OUT + ".json"), "w") as file:
    json.dump(answers, file)
"""

MODULES = """
graphs = Graphs()
model = Net()
compiled = torch.compile(model, backend=graphs, fullgraph=True)
answer("module", graphs, compiled(x))

graphs = Graphs()
model = Net()
model.compile(backend=graphs, fullgraph=True)
answer("in place", graphs, model(x))

graphs = Graphs()
model = Net()
model.first.register_forward_hook(lambda module, args, output: output + 1)
compiled = torch.compile(model, backend=graphs, fullgraph=True)
answer("with a hook of the program", graphs, compiled(x))

graphs = Graphs()
model = Net()
criterion = nn.CrossEntropyLoss()


@torch.compile(backend=graphs, fullgraph=True)
def loss(x, y):
    output = model(x)
    return F.cross_entropy(output, y) + F.mse_loss(output, output * 2) + criterion(output, y)


answer("losses", graphs, loss(x, y))
"""

TRAINING = """
graphs = Graphs()
compiled = torch.compile(Broken(), backend=graphs)
answer("broken", graphs, compiled(x))

@torch.compile(backend=graphs)
def made(x):
    return Net()(x)


graphs = Graphs()
answer("made inside", graphs, made(x))


class Own(Net):
    def __call__(self, *args):
        return super().__call__(*args) * 2


graphs = Graphs()
answer("own call", graphs, torch.compile(Own(), backend=graphs)(x))


def train(name, model, **how):
    graphs = Graphs()
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)

    @torch.compile(backend=graphs, **how)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    losses = [step(x, y) for _ in range(8)]
    scheduler.step()
    answer(name, graphs, *losses, *model.parameters())


train("whole step", Net())

graphs = Graphs()
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
forward = torch.compile(model, backend=graphs, fullgraph=True)
step = torch.compile(optimizer.step, backend=graphs)
for _ in range(60):
    optimizer.zero_grad()
    loss = F.cross_entropy(forward(x), y)
    loss.backward()
    step()
answer("forward and optimizer", graphs, loss, *model.parameters())

graphs = Graphs()
model = Net()


@torch.compile(backend=graphs, fullgraph=True)
def cleared(x):
    model.zero_grad()
    return model(x)


answer("clearing inside", graphs, cleared(x))

graphs = Graphs()


@torch.compile(backend=graphs)
def gradient(x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(model(x).sum(), x)[0]


answer("gradient", graphs, gradient(x))

graphs = Graphs()


@torch.compile(backend=graphs, fullgraph=True)
def cast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(x)


answer("autocast", graphs, cast(x))

# As far down as it goes without a compiler.
graphs = Graphs()
model = Net()
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    loss = F.cross_entropy(compiled(x), y)
    loss.backward()
    optimizer.step()
answer("aot", graphs, loss, *model.parameters())
"""

PARALLEL = """
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, port, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(rank)
    model = nn.parallel.DistributedDataParallel(Net())
    graphs = Graphs()
    compiled = torch.compile(model, backend=graphs)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.cross_entropy(compiled(x), y)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
    answer("ddp", graphs, loss, *model.parameters())
    with open(results, "w") as file:
        json.dump(answers, file)
    if HOW != "bare":
        stepwatch.stop()
    # gloo's own threads now and then keep a forked process from ending.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


import socket

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
context = mp.get_context("fork")
ranks = [
    context.Process(target=work, args=(rank, port, f"{OUT}.{rank}")) for rank in range(2)
]
for process in ranks:
    process.start()
for process in ranks:
    process.join()
    assert process.exitcode == 0, process.exitcode
for rank in range(2):
    with open(f"{OUT}.{rank}") as file:
        answers[str(rank)] = json.load(file)
"""


def run(tmp_path: Path, how: str, program: str, *flags: str) -> tuple[dict[str, Any], str]:
    script = tmp_path / "program.py"
    script.write_text(HEADER + textwrap.dedent(program) + FOOTER, encoding="utf-8")
    out = tmp_path / how
    done = subprocess.run(
        [sys.executable, *flags, script, how, out],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers: dict[str, Any] = json.loads(Path(f"{out}.json").read_text(encoding="utf-8"))
    # When, and which process.
    return answers, re.sub(r"\d{4,} [\d:.]+ \d+|0x[0-9a-f]+", "", done.stderr)


PROGRAMS = {
    "modules": (MODULES, "-Werror"),
    "training": (TRAINING, "-Wdefault"),
    "parallel": (PARALLEL, "-Wdefault"),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("how", ["hooks", "late"])
def test_nothing_is_noticed(name: str, how: str, tmp_path: Path) -> None:
    program, warnings = PROGRAMS[name]
    bare, bare_said = run(tmp_path, "bare", program, warnings)
    seen, said = run(tmp_path, how, program, warnings)
    assert list(seen) == list(bare)
    for case in bare:
        assert seen[case] == bare[case], case
    # Ranks speak in any order.
    assert sorted(said.splitlines()) == sorted(bare_said.splitlines())
    if name == "modules":
        assert [len(bare[case]["graphs"]) for case in bare] == [1, 1, 1, 1]
