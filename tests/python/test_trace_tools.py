"""Traces of a real training, opened by the real tools: TensorBoard's plug-in for torch.profiler and
HolisticTraceAnalysis.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from .conftest import child

pytest.importorskip("torch", reason="torch is not installed")

pytestmark = [pytest.mark.once, pytest.mark.slow]

Read = Callable[[Path], Any]

TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
import stepwatch

torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss_of = torch.nn.CrossEntropyLoss()
data = TensorDataset(torch.randn(96, 8), torch.arange(96) % 2)
if __name__ == "__main__":
    with stepwatch.section("epoch 0"):
        for x, y in DataLoader(data, batch_size=8, num_workers=2):
            optimizer.zero_grad()
            loss = loss_of(net(x), y)
            loss.backward()
            optimizer.step()
            stepwatch.counter("loss", loss.item())
    stepwatch.mark("trained")
"""


@pytest.fixture(scope="module")
def trained(build_dir: Path, stepwatch_cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of 12 steps, operators in steps 5 to 7, and its traces."""
    folder = tmp_path_factory.mktemp("traces")
    (folder / "train.py").write_text(TRAIN)
    options = ("-o", "run", "--operators", "--set", "history=off")
    child(build_dir, (stepwatch_cli, "run", *options, "train.py"), folder)
    for name, target in (("chrome", "chrome.json"), ("kineto", "logs")):
        child(build_dir, (stepwatch_cli, "export", "run", "--to", name, "-o", target), folder)
    return folder


@pytest.fixture(scope="module")
def kineto(trained: Path) -> Path:
    (file,) = (trained / "logs").iterdir()
    return file


def slices(document: Any, **wanted: Any) -> list[Any]:
    return [
        event
        for event in document["traceEvents"]
        if event["ph"] == "X" and all(event[key] == value for key, value in wanted.items())
    ]


def lies_in(inner: Any, outer: Any) -> bool:
    begin, end = outer["ts"], outer["ts"] + outer["dur"]
    return bool(begin <= inner["ts"] and inner["ts"] + inner["dur"] <= end)


# --- our own reading ---


def test_chrome(trained: Path, read_trace: Read) -> None:
    document = read_trace(trained / "chrome.json")
    steps = slices(document, cat="step")
    assert [e["name"] for e in steps] == [f"ProfilerStep#{i}" for i in range(12)]
    for name in ("Sequential.0", "Sequential.1", "Sequential.2", "CrossEntropyLoss"):
        calls = slices(document, name=name)
        assert len(calls) == 12
        assert all(lies_in(call, step) for call, step in zip(calls, steps))
        assert calls[0]["cat"].startswith("module")
    (epoch,) = slices(document, name="epoch 0")
    assert lies_in(steps[3], epoch)
    # Operators lie in their steps.
    linear = slices(document, name="aten::linear")
    assert [sum(lies_in(call, step) for call in linear) for step in steps[5:8]] == [2, 2, 2]
    assert len(linear) == 6
    assert {e["cat"] for e in linear} == {"operator"}
    # Workers fetched every batch, in processes of their own.
    fetches = slices(document, name="fetch batch")
    assert sorted(e["args"]["batch"] for e in fetches) == list(range(12))
    assert len({e["pid"] for e in fetches}) == 2
    assert steps[0]["pid"] not in {e["pid"] for e in fetches}
    # And in the modules that called them, on the same track.
    for call in linear:
        within = [m for m in slices(document, tid=call["tid"]) if lies_in(call, m)]
        assert {m["name"] for m in within} & {"Sequential.0", "Sequential.2"}
    assert [e["name"] for e in document["traceEvents"] if e["ph"] == "i"] == ["trained"]


def test_kineto_names_and_modules(kineto: Path, read_trace: Read) -> None:
    document = read_trace(kineto)
    by_id = {e["args"]["Python id"]: e for e in slices(document, cat="python_function")}
    layers = slices(document, name="nn.Module: Sequential.1")
    assert len(layers) == 12
    for layer in layers:
        parent = by_id[layer["args"]["Python parent id"]]
        assert parent["name"] == "nn.Module: Sequential"
        assert lies_in(layer, parent)
    memory = [e for e in document["traceEvents"] if e["name"] == "[memory]"]
    assert memory
    for event in memory:
        assert event["ph"] == "i"
        assert event["args"]["Device Type"] == 0
        assert event["args"]["Total Allocated"] > 1 << 20
    (first, *_) = products = slices(document, name="aten::addmm")
    assert {e["cat"] for e in products} == {"cpu_op"}
    assert first["args"]["Input Dims"] == [[16], [8, 8], [8, 16], [], []]
    assert first["args"]["Input type"][:3] == ["float"] * 3
    back = slices(document, name="AddmmBackward0")
    assert {e["args"]["Sequence number"] for e in back} == {
        e["args"]["Sequence number"] for e in products
    }
    arrows = [e for e in document["traceEvents"] if e["ph"] == "s"]
    assert {e["cat"] for e in arrows} == {"fwdbwd"}
    assert {e["ts"] for e in arrows} >= {e["ts"] for e in products}


# --- TensorBoard's plug-in ---

PLUGIN = """
import json, sys
from torch_tb_profiler.io.cache import Cache
from torch_tb_profiler.profiler.loader import RunLoader

if __name__ == "__main__":
    with Cache() as cache:
        run = RunLoader("logs", sys.argv[1], cache).load()
    (profile,) = run.profiles.values()
    modules = profile.module_stats if hasattr(profile, "module_stats") else None
    print(json.dumps({
        "workers": run.workers,
        "views": [view.display_name for view in profile.views],
        "steps": profile.overview["steps"],
        "performance": profile.overview["performance"],
        "operators": profile.operation_table_by_name["data"],
        # Of each: name, id, calls, operators, …, children.
        "modules": [[m[0], m[2], [(c[0], c[3]) for c in m[-1]]] for m in modules or []],
        "memory": profile.memory_snapshot is not None,
    }))
"""


@pytest.fixture(scope="module")
def plugin(build_dir: Path, kineto: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what the plug-in makes of the trace."""
    pytest.importorskip("torch_tb_profiler", reason="torch-tb-profiler is not installed")
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "load.py").write_text(PLUGIN)
    done = child(build_dir, [sys.executable, "-W", "ignore", "load.py", kineto.parent], folder)
    # It complains of slices that overlap and of events it cannot read, with a letter and a date.
    said = re.findall(r"^[WEF]\d{4} .*", done.stderr, re.MULTILINE)
    return {**json.loads(done.stdout.splitlines()[-1]), "said": said}


def test_the_plugin_takes_it(plugin: Any, kineto: Path) -> None:
    assert plugin["said"] == []
    assert plugin["workers"] == [kineto.name.split(".")[0]]
    assert {"Overview", "Operator", "Trace", "Memory", "Module"} <= set(plugin["views"])
    assert plugin["memory"]


def test_the_plugin_sees_the_steps(plugin: Any) -> None:
    columns = [column.get("name") for column in plugin["steps"]["columns"]]
    rows = plugin["steps"]["rows"]
    assert [row[0] for row in rows] == [str(i) for i in range(12)]
    waited = [row[columns.index("DataLoader")] for row in rows]
    assert all(time > 0 for time in waited)
    computed = [row[columns.index("CPU Exec")] for row in rows]
    assert all(time > 0 for time in computed[5:8])  # where there are operators


def test_the_plugin_sees_the_operators(plugin: Any) -> None:
    calls = {row["name"]: row["calls"] for row in plugin["operators"]}
    assert calls["aten::linear"] == 6
    assert calls["aten::addmm"] == 6
    assert all(
        row["host_total_duration"] >= row["host_self_duration"] for row in plugin["operators"]
    )


def test_the_plugin_sees_the_modules(plugin: Any) -> None:
    modules = {name: (count, children) for name, count, children in plugin["modules"]}
    # Operators of three steps: one of each layer, not counting those that it called.
    layers = [[f"Sequential.{i}", 3] for i in range(3)]
    assert modules["Sequential"] == (12, layers)
    assert modules["CrossEntropyLoss"] == (12, [])


# --- HolisticTraceAnalysis ---

ANALYSIS = """
import json, sys
from hta.common.trace import Trace

if __name__ == "__main__":
    trace = Trace(trace_dir=sys.argv[1])
    trace.parse_traces(use_multiprocessing=False)
    names = trace.symbol_table.get_sym_table()
    whole = trace.get_trace(0)
    counts = whole["name"].map(lambda number: names[number]).value_counts().to_dict()
    categories = whole["cat"].map(lambda number: names[number]).value_counts().to_dict()
    trace.align_and_filter_trace()
    kept = trace.get_trace(0)
    print(json.dumps({
        "counts": counts, "categories": categories, "rows": len(kept),
        "ranks": sorted(trace.get_all_traces()),
        "iterations": sorted(int(i) for i in trace.get_iterations()),
        "negative": int((whole["dur"] < -1).sum()),
    }))
"""


def test_the_analysis_takes_it(build_dir: Path, kineto: Path, tmp_path: Path) -> None:
    pytest.importorskip("hta", reason="HolisticTraceAnalysis is not installed")
    (tmp_path / "load.py").write_text(ANALYSIS)
    words = (sys.executable, "-W", "ignore", "load.py", kineto.parent)
    seen = json.loads(child(build_dir, words, tmp_path).stdout.splitlines()[-1])
    assert seen["ranks"] == [0]
    assert seen["counts"]["aten::linear"] == 6
    assert seen["counts"]["nn.Module: Sequential"] == 12
    assert all(seen["counts"][f"ProfilerStep#{i}"] == 1 for i in range(12))
    assert seen["categories"]["cpu_op"] > 50
    assert seen["iterations"] == list(range(11))  # it leaves the last one out
    assert seen["rows"] > 100
    assert seen["negative"] == 0  # slices shorter than a microsecond are rounded inwards


# --- several ranks ---

RANKS = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
torch.set_num_threads(1)
net = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for (x,) in DataLoader(TensorDataset(torch.randn(24, 8)), batch_size=4):
    optimizer.zero_grad()
    loss = net(x).sum()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach().clone())
dist.destroy_process_group()
"""

BOTH = """
import json, sys
from torch_tb_profiler.io.cache import Cache
from torch_tb_profiler.profiler.loader import RunLoader

if __name__ == "__main__":
    with Cache() as cache:
        run = RunLoader("logs", sys.argv[1], cache).load()
    together = next(profile for (worker, _), profile in run.profiles.items() if worker == "All")
    rows = {name: table["rows"] for name, table in together.comm_ops["data"].items()}
    print(json.dumps({"workers": run.workers, "calls": rows}))
"""


def test_ranks(build_dir: Path, stepwatch_cli: Path, tmp_path: Path, read_trace: Read) -> None:
    """Each rank has a file; the plug-in shows them side by side, with what they exchanged."""
    pytest.importorskip("torch_tb_profiler", reason="torch-tb-profiler is not installed")
    (tmp_path / "ranks.py").write_text(RANKS)
    (tmp_path / "load.py").write_text(BOTH)
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    options = ("-o", "run", "--no-report", "--set", "history=off")
    child(build_dir, (stepwatch_cli, "run", *options, "--", *launcher, "ranks.py"), tmp_path)
    words = ("export", "run", "--to", "kineto", "--steps", "1-4", "-o", "logs")
    child(build_dir, (stepwatch_cli, *words), tmp_path)
    documents = [read_trace(file) for file in (tmp_path / "logs").iterdir()]
    assert sorted(d["distributedInfo"]["rank"] for d in documents) == [0, 1]
    for document in documents:
        assert document["distributedInfo"]["backend"] == "gloo"
        assert len(slices(document, name="gloo:all_reduce", cat="cpu_op")) == 4
    done = child(build_dir, (sys.executable, "-W", "ignore", "load.py", "logs"), tmp_path)
    seen = json.loads(done.stdout.splitlines()[-1])
    assert len(seen["workers"]) == 3  # both, and all together
    assert [rows[0][:2] for rows in seen["calls"].values()] == [["gloo:all_reduce", 4]] * 2


# --- Run.export ---


def test_export_in_python(trained: Path, tmp_path: Path, read_trace: Read) -> None:
    import stepwatch

    with stepwatch.open(trained / "run") as run:
        assert run.export("chrome", tmp_path / "a.json") == str(tmp_path / "a.json")
        assert (tmp_path / "a.json").read_bytes().count(b"ProfilerStep#") == 12
        run.export("chrome", tmp_path / "b.json", steps=6)
        document = read_trace(tmp_path / "b.json")
        assert [e["name"] for e in slices(document, cat="step")] == ["ProfilerStep#6"]
        assert len(slices(document, name="aten::linear")) == 2
        file = Path(run.export("kineto", tmp_path / "logs", steps=range(5, 8)))
        assert file.parent == tmp_path / "logs"
        assert file.name.endswith(".pt.trace.json")
        assert len(slices(read_trace(file), name="aten::linear")) == 6
        run.export("chrome", tmp_path / "s.json", samples=True)
        looks = [
            e for e in read_trace(tmp_path / "s.json")["traceEvents"] if e.get("cat") == "sample"
        ]
        assert len(looks) == sum(1 for sample in run.samples if sample["depth"])
        assert looks
        assert all(e["ph"] == "i" and e["args"]["stack"][-1] == e["name"] for e in looks)
        assert run.export("kineto", str(tmp_path / "k.json")) == str(tmp_path / "k.json")
        read_trace(tmp_path / "k.json")
