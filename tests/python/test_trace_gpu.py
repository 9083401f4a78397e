"""Kineto's files of a program on a GPU: what torch told of three steps on one is played back, and
the real tools find in our file what they find in torch's own.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from .conftest import child

pytestmark = [pytest.mark.once, pytest.mark.slow]

Read = Callable[[Path], Any]

# What torch's own file of the same program has, in three steps.
KERNELS, COPIES, SETS, OPERATORS, CALLS, BACKWARD = 78, 9, 9, 405, 129, 30
KERNEL_US = 427  # a step


@pytest.fixture(scope="module")
def logs(build_dir: Path, stepwatch_cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the one file of the recording."""
    folder = tmp_path_factory.mktemp("gpu")
    program = Path(__file__).with_name("replay_gpu.py")
    child(build_dir, [sys.executable, program, folder / "run"], folder)
    child(build_dir, [stepwatch_cli, "export", "run", "--to", "kineto", "-o", "logs"], folder)
    return folder / "logs"


@pytest.fixture(scope="module")
def document(logs: Path, read_trace: Read) -> Any:
    (file,) = logs.iterdir()
    return read_trace(file)


def slices(document: Any, category: str) -> list[Any]:
    return [e for e in document["traceEvents"] if e["ph"] == "X" and e["cat"] == category]


def test_everything_is_there(document: Any) -> None:
    assert len(slices(document, "kernel")) == KERNELS
    assert len(slices(document, "gpu_memcpy")) == COPIES
    assert len(slices(document, "gpu_memset")) == SETS
    assert len(slices(document, "cpu_op")) == OPERATORS
    assert len(slices(document, "cuda_runtime")) == CALLS
    (about,) = document["deviceProperties"]
    assert about == {"id": 0, "name": "H200", "computeMajor": 9}
    names = {
        (e["pid"], e["tid"]): e["args"]["name"]
        for e in document["traceEvents"]
        if e["name"] == "thread_name"
    }
    assert names[0, 7] == "stream 7"
    assert {(e["pid"], e["tid"]) for e in slices(document, "kernel")} == {(0, 7)}


def test_operators_are_on_the_thread_of_the_sections(document: Any) -> None:
    (tid,) = {e["tid"] for e in slices(document, "user_annotation") if e["name"] == "train"}
    linear = [e for e in slices(document, "cpu_op") if e["name"] == "aten::linear"]
    assert len(linear) == 6
    assert {e["tid"] for e in linear} == {tid}
    assert not any("overlapping" in str(e.get("args")) for e in document["traceEvents"])
    # Backward ran in a thread that recorded nothing else, which has the kernel's number.
    back = [e for e in slices(document, "cpu_op") if e["name"] == "AddmmBackward0"]
    assert {e["tid"] for e in back} == {452}
    assert {e["args"]["Fwd thread id"] for e in back} == {tid}
    assert linear[0]["args"]["Input type"] == ["float", "float", "float"]
    assert linear[0]["args"]["Input Dims"] == [[64, 57600], [256, 57600], [256]]


def test_arrows(document: Any) -> None:
    begins = {(e["pid"], e["tid"], e["ts"]) for e in document["traceEvents"] if e["ph"] == "X"}
    ends: dict[str, dict[int, Any]] = {"s": {}, "f": {}}
    for event in document["traceEvents"]:
        if event["ph"] in ends:
            assert (event["pid"], event["tid"], event["ts"]) in begins
            assert ends[event["ph"]].setdefault(event["id"], event) is event
    assert ends["s"].keys() == ends["f"].keys()
    kinds = [event["cat"] for event in ends["s"].values()]
    assert kinds.count("fwdbwd") == BACKWARD
    assert kinds.count("ac2g") == KERNELS + COPIES + SETS
    for number, begin in ends["s"].items():
        if begin["cat"] == "ac2g":
            assert begin["ts"] < ends["f"][number]["ts"]
            assert ends["f"][number]["pid"] == 0


def test_launches_and_their_work(document: Any) -> None:
    calls = {e["args"]["correlation"]: e for e in slices(document, "cuda_runtime")}
    operators = {e["args"]["External id"]: e for e in slices(document, "cpu_op")}
    assert len(operators) == OPERATORS
    for work in slices(document, "kernel") + slices(document, "gpu_memcpy"):
        call = calls[work["args"]["correlation"]]
        assert call["ts"] < work["ts"]
        assert call["args"]["External id"] == work["args"]["External id"]
        operator = operators[work["args"]["External id"]]
        assert operator["tid"] == call["tid"]
        assert operator["ts"] <= call["ts"] <= operator["ts"] + operator["dur"]
    copied = {e["args"]["bytes"] for e in slices(document, "gpu_memcpy")}
    assert copied == {64 * 3 * 32 * 32 * 4, 64 * 8, 4}  # a batch, its labels, the loss


PLUGIN = """
import json, sys
from torch_tb_profiler.io.cache import Cache
from torch_tb_profiler.profiler.loader import RunLoader

if __name__ == "__main__":
    with Cache() as cache:
        run = RunLoader("logs", sys.argv[1], cache).load()
    (profile,) = run.profiles.values()
    columns = [column.get("name") for column in profile.overview["steps"]["columns"]]
    print(json.dumps({
        "views": [view.display_name for view in profile.views],
        "kernel_us": [row[columns.index("Kernel")] for row in profile.overview["steps"]["rows"]],
        "kernels": len(profile.kernel_table["data"]["rows"]),
        "operators": [row["name"] for row in profile.operation_table_by_name["data"]],
    }))
"""


def test_the_plugin(build_dir: Path, logs: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("torch_tb_profiler") is None:
        pytest.skip("torch-tb-profiler is not installed")
    (tmp_path / "load.py").write_text(PLUGIN)
    out = child(build_dir, [sys.executable, "-W", "ignore", "load.py", logs], tmp_path).stdout
    seen = json.loads(out.splitlines()[-1])
    assert {"Overview", "Operator", "Kernel", "Trace"} <= set(seen["views"])
    assert seen["kernel_us"] == pytest.approx([KERNEL_US] * 3, rel=0.02)
    assert seen["kernels"] > 10
    assert {"aten::addmm", "AddmmBackward0"} <= set(seen["operators"])


ANALYSIS = """
import json, sys
from unittest import mock

# It draws with plotly, which nobody asks for here.
for name in ("plotly", "plotly.express", "plotly.graph_objects", "plotly.subplots", "pydot"):
    sys.modules[name] = mock.MagicMock()
from hta.trace_analysis import TraceAnalysis

if __name__ == "__main__":
    it = TraceAnalysis(trace_dir=sys.argv[1])
    time = it.get_temporal_breakdown(visualize=False).to_dict("records")[0]
    idle = it.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    kinds, kernels = it.get_gpu_kernel_breakdown(visualize=False)
    launches = it.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    queue = it.get_queue_length_time_series(ranks=[0])[0]
    bandwidth = it.get_memory_bw_summary(ranks=[0])
    print(json.dumps({
        "compute": time["compute_time(us)"], "whole": time["kernel_time(us)"],
        "idle": {row["idle_category"]: row["idle_time"] for row in idle.to_dict("records")},
        "kinds": {row["kernel_type"]: row["sum"] for row in kinds.to_dict("records")},
        "kernels": len(kernels), "launches": len(launches),
        "late": bool((launches["launch_delay"] >= 0).all()),
        "queue": [int(queue["queue_length"].min()), int(queue["queue_length"].max())],
        "bandwidth": {name: value for (_, name), value
                      in bandwidth["memory_bw_gbps"]["max"].items()},
    }, default=float))
"""


def test_the_analysis(build_dir: Path, logs: Path, tmp_path: Path) -> None:
    """It leaves out the last step, and rounds to whole microseconds."""
    if importlib.util.find_spec("hta") is None:
        pytest.skip("HolisticTraceAnalysis is not installed")
    (tmp_path / "load.py").write_text(ANALYSIS)
    out = child(build_dir, [sys.executable, "-W", "ignore", "load.py", logs], tmp_path).stdout
    seen = json.loads(out.splitlines()[-1])
    assert seen["compute"] == pytest.approx(2 * KERNEL_US, rel=0.1)
    assert seen["compute"] < seen["whole"]
    assert seen["idle"]["host_wait"] > seen["idle"]["kernel_wait"] > 0
    assert set(seen["kinds"]) == {"COMPUTATION", "MEMORY"}
    assert seen["kernels"] >= 4
    assert seen["launches"] == (KERNELS + COPIES + SETS - 6) * 2 // 3
    assert seen["late"]
    assert seen["queue"][0] == 0
    assert seen["queue"][1] >= 2
    assert 20 < seen["bandwidth"]["Memcpy HtoD"] < 100
