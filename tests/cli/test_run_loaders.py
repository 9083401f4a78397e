"""Loaders and ways to train that are not torch's usual ones, under stepwatch run."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable

import pytest

pytest.importorskip("torch")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.usefixtures("python_env")

HEADER = """
import hashlib, sys, warnings
warnings.simplefilter("ignore")
import torch
from torch import nn
F = nn.functional
torch.set_num_threads(1)
torch.manual_seed(0)


def network():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def data(count=40):
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(count, 16, generator=generator)
    return torch.utils.data.TensorDataset(rows, torch.arange(count) % 4)


def train(loader, epochs=2):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    told(model.parameters())


def told(parameters):
    weights = b"".join(each.detach().numpy().tobytes() for each in parameters)
    print(hashlib.sha256(weights).hexdigest(), flush=True)
"""

STATEFUL = """
from torchdata.stateful_dataloader import StatefulDataLoader
loader = StatefulDataLoader(data(), batch_size=4, shuffle=True, num_workers=WORKERS)
if __name__ == "__main__":
    train(loader)
    print(sorted(loader.state_dict()))
"""

NODES = """
from torchdata import nodes
rows = data()
sampler = torch.utils.data.RandomSampler(rows, generator=torch.Generator().manual_seed(3))
node = nodes.ParallelMapper(
    nodes.SamplerWrapper(sampler), rows.__getitem__, num_workers=2, method="thread"
)
node = nodes.Mapper(nodes.Batcher(node, 4), torch.utils.data.default_collate)
train(nodes.Loader(nodes.Prefetcher(node, 2)))
"""

# Each sample is a file that torch loads.
WEBDATASET = """
import webdataset
with webdataset.TarWriter("set.tar") as tar:
    for index, (x, y) in enumerate(data()):
        tar.write({"__key__": f"{index:04}", "x.pth": x.clone(), "y.cls": int(y)})
rows = webdataset.WebDataset("set.tar", shardshuffle=False).decode().to_tuple("x.pth", "y.cls")
train(webdataset.WebLoader(rows, batch_size=4))
"""

GRAIN = """
import hashlib
import grain, jax, numpy
import jax.numpy as jnp


class Source:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return numpy.full(16, index / 40, "float32"), numpy.float32(index % 4)


sampler = grain.samplers.IndexSampler(
    40, shuffle=True, seed=1, num_epochs=2, shard_options=grain.sharding.NoSharding()
)
loader = grain.DataLoader(
    data_source=Source(), sampler=sampler, operations=[grain.transforms.Batch(4)], worker_count=0
)


@jax.jit
def update(weights, x, y):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
    return weights - 0.1 * gradient, value


weights = jnp.zeros(16)
for x, y in loader:
    weights, value = update(weights, x, y)
print(hashlib.sha256(numpy.asarray(weights).tobytes()).hexdigest())
"""

FSDP = """
import os, tempfile
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


def rank(number, store):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    mesh = dist.init_device_mesh("cpu", (2,))
    model = network()
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in torch.utils.data.DataLoader(data(), batch_size=4):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    parameters = [each.full_tensor() for each in model.parameters()]
    if number == 0:
        told(parameters)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank, args=(folder + "/store",), nprocs=2)
"""

# Name → what it needs, the program, steps, loader's batches, phases that there must be.
PROGRAMS: dict[str, tuple[str, str, int, int, set[str]]] = {
    "stateful": ("torchdata", STATEFUL.replace("WORKERS", "0"), 20, 20, {"data_wait", "collate"}),
    "stateful, workers": ("torchdata", STATEFUL.replace("WORKERS", "2"), 20, 20, {"data_wait"}),
    "nodes": ("torchdata", NODES, 20, 20, {"data_wait"}),
    "webdataset": ("webdataset", WEBDATASET, 20, 20, {"data_wait", "preprocess", "collate"}),
    "grain": ("grain", GRAIN, 20, 20, {"data_wait"}),
    "fsdp": ("torch.distributed.fsdp", FSDP, 10, 20, {"communication", "forward", "backward"}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_loaders(stepwatch: Run, env: dict[str, str], tmp_path: Path, name: str) -> None:
    needs, program, count, batches, phases = PROGRAMS[name]
    if find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    (tmp_path / "train.py").write_text(("" if needs == "grain" else HEADER) + program)
    bare = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert bare.returncode == 0, bare.stderr
    seen = stepwatch("run", "-o", "out", "train.py", timeout=300)
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout == bare.stdout
    assert "stepwatch: " not in seen.stderr
    report: dict[str, Any] = json.loads((tmp_path / "out" / "report.json").read_text())
    steps = report["steps"]
    assert steps["count"] == count
    spent = {each["phase"] for each in steps["phases"] if each["ms"]}
    assert phases <= spent
    assert "checkpoint" not in spent
    assert [each["batches"] for each in report["loaders"]] == [batches]


BY_HAND = {
    "autograd.grad": """
        model = network()
        x, y = data().tensors
        for _ in range(30):
            parameters = list(model.parameters())
            gradients = torch.autograd.grad(F.cross_entropy(model(x), y), parameters)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients):
                    parameter -= 0.01 * gradient
    """,
    "torch.func": """
        model = network()
        x, y = data().tensors
        state = {name: each.detach() for name, each in model.named_parameters()}
        def loss(state):
            return F.cross_entropy(torch.func.functional_call(model, state, (x,)), y)
        for _ in range(30):
            gradients, value = torch.func.grad_and_value(loss)(state)
            state = {name: each - 0.01 * gradients[name] for name, each in state.items()}
    """,
    "tensors": """
        weights = torch.zeros(16, 4, requires_grad=True)
        x, y = data().tensors
        for _ in range(30):
            ((x @ weights - F.one_hot(y, 4)) ** 2).mean().backward()
            with torch.no_grad():
                weights -= 0.1 * weights.grad
                weights.grad.zero_()
    """,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_no_loader_and_no_optimizer(stepwatch: Run, tmp_path: Path, name: str) -> None:
    from textwrap import dedent

    (tmp_path / "train.py").write_text(HEADER + dedent(BY_HAND[name]))
    seen = stepwatch("run", "-o", "out", "train.py", timeout=300)
    assert seen.returncode == 0, seen.stderr
    steps = json.loads((tmp_path / "out" / "report.json").read_text())["steps"]
    assert (steps["count"], steps["incomplete"]) == (30, 1)
