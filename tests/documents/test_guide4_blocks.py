"""Guide 4: traced blocks within each other, beside each other, and across each other."""

from __future__ import annotations

import json
import pstats
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..conftest import needs
from .conftest import Done, RunText

# Begins and ends of a, b and c lie across each other: a b c | a c b.
TASKS = """
import asyncio
import torch
from ml_ops.profile import torch_profiler
turns = []
async def task(name, begin, rounds):
    while len(turns) < begin:
        await asyncio.sleep(0)
    with torch_profiler(enabled=True, trace_name=name, output_dir="out") as trace:
        turns.append(name)
        for _ in range(rounds):
            await asyncio.sleep(0)
            getattr(torch, own[name])(torch.ones(4), 0)
    ends.append(name)
    rows = {row["name"]: row["calls"] for row in trace.operators()}
    counts[name] = {other: rows.get("aten::" + own[other], 0) for other in own}
own = {"a": "cumsum", "b": "cumprod", "c": "softmax"}
counts, ends = {}, []
async def main():
    await asyncio.gather(task("a", 0, 4), task("b", 1, 12), task("c", 2, 5))
asyncio.run(main())
import json
import subprocess
print(json.dumps([ends, counts]))
import os, tempfile
print([name for name in os.listdir(tempfile.gettempdir()) if name.startswith("stepwatch-trace")])
"""


@pytest.fixture(scope="module")
def tasks(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    needs("torch")
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "tmp").mkdir()
    return run_text(folder, TASKS, TMPDIR=str(folder / "tmp")).ok()


def events(done: Done, name: str) -> list[dict[str, Any]]:
    document = json.loads((done.folder / "out" / f"{name}.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


def test_r4_032_every_task_has_its_trace(tasks: Done) -> None:
    ends, counts = json.loads(tasks.out.splitlines()[0])
    assert ends == ["a", "c", "b"]
    assert tasks.err == ""
    for name, rounds, kernel in (("a", 4, "cumsum"), ("b", 12, "cumprod"), ("c", 5, "softmax")):
        spans = [event["name"] for event in events(tasks, name) if event["ph"] in "XB"]
        assert name in spans
        assert spans.count(f"aten::{kernel}") == rounds
        assert counts[name][name] == rounds
    # What the others did meanwhile is in the table, too, and no more than that.
    assert 0 < counts["a"]["b"] < 12
    assert counts["b"]["c"] == 5


def test_r4_032_nothing_is_left_of_the_recording(tasks: Done) -> None:
    assert tasks.out.splitlines()[1] == "[]"


def test_r4_032_a_block_in_a_block_has_its_own_operators(run_text: RunText, tmp_path: Path) -> None:
    needs("torch")
    text = """
import torch
from ml_ops.profile import torch_profiler
def calls(trace):
    return {row["name"]: row["calls"] for row in trace.operators()}.get("aten::cumsum", 0)
with torch_profiler(enabled=True, trace_name="outer", output_dir="out") as outer:
    torch.ones(3).cumsum(0)
    with torch_profiler(enabled=True, trace_name="inner", output_dir="out") as inner:
        torch.ones(3).cumsum(0)
        torch.ones(3).cumsum(0)
    torch.ones(3).cumsum(0)
print(calls(inner), calls(outer))
"""
    done = run_text(tmp_path, text).ok()
    assert done.out == "2 4\n"
    assert done.err == ""
    for name, count in (("inner", 2), ("outer", 4)):
        names = [event["name"] for event in events(done, name) if event["ph"] in "XB"]
        assert names.count("aten::cumsum") == count


def test_r4_032_what_is_wrong_is_said(run_text: RunText, tmp_path: Path) -> None:
    """Only a folder that cannot be written is blamed on the folder."""
    text = """
import shutil
from ml_ops import profile
with profile.torch_profiler(enabled=True, trace_name="lost", output_dir="out") as trace:
    trace._block.export = lambda path: (_ for _ in ()).throw(ValueError("the run is gone"))
with profile.torch_profiler(enabled=True, trace_name="x", output_dir="/proc/nowhere"):
    pass
"""
    done = run_text(tmp_path, text).ok()
    assert done.err.splitlines()[0] == "stepwatch: out/lost.json is not there: the run is gone"
    assert done.err.splitlines()[1].endswith("set PROFILE_OUTPUT_DIR to a folder that can be.")


def test_r4_032_one_activity_by_its_name(run_text: RunText, tmp_path: Path) -> None:
    needs("torch")
    text = """
import torch
from ml_ops.profile import torch_profiler
with torch_profiler(enabled=True, activities="cpu", trace_name="one", output_dir="out") as trace:
    torch.ones(3).cumsum(0)
print(any(row["name"] == "aten::cumsum" for row in trace.operators()))
try:
    torch_profiler(enabled=True, activities="gpu")
except ValueError as error:
    print(error)
"""
    done = run_text(tmp_path, text).ok()
    assert done.out.splitlines() == ["True", "activity 'gpu' is not known; say cpu or cuda"]


def test_r4_032_generators_are_decorated(run_text: RunText, tmp_path: Path) -> None:
    text = """
import asyncio, inspect, pstats, sys
from ml_ops.profile import profile_function

def inner(): pass
def between(): pass

@profile_function("values")
def values(number):
    "doc"
    heard = []
    try:
        for each in range(number):
            inner()
            try:
                heard.append((yield each))
            except KeyError as error:
                heard.append(error.args[0])
        return heard
    finally:
        heard.append("closed")

@profile_function("later")
async def later(number):
    for each in range(number):
        inner()
        try:
            yield each
        except KeyError as error:
            yield error.args[0]

def use():
    made = values(3)
    got = [next(made), made.send("sent"), made.throw(KeyError("thrown"))]
    between()
    try:
        next(made)
    except StopIteration as end:
        got.append(end.value)
    with_break = values(5)
    next(with_break)
    with_break.close()
    try:
        next(with_break)
    except StopIteration:
        got.append("over")
    return got

async def use_later():
    made = later(2)
    got = [await made.asend(None), await made.athrow(KeyError("thrown"))]
    got += [each async for each in made]
    return got

assert inspect.isgeneratorfunction(values) and values.__doc__ == "doc"
assert inspect.isasyncgenfunction(later)
print([use(), asyncio.run(use_later())], file=sys.stderr)
"""
    off = run_text(tmp_path / "off", text).ok()
    on = run_text(tmp_path / "on", text, ENABLE_PROFILING="true").ok()
    assert (
        on.err
        == off.err
        == ("[[0, 1, 2, ['sent', 'thrown', None, 'closed'], 'over'], [0, 'thrown', 1]]\n")
    )
    assert not (off.folder / "runs").exists()
    for name, calls in (("values", 4), ("later", 2)):
        stats: Any = pstats.Stats(str(on.folder / "runs" / "profiling" / f"{name}.stats"))
        counts = {key[2]: value[1] for key, value in stats.stats.items()}
        assert counts["inner"] == calls
        assert "between" not in counts


def test_r4_032_a_number_below_nothing_prints_nothing(run_text: RunText, tmp_path: Path) -> None:
    text = """
from ml_ops.profile import cprofile_context
with cprofile_context(enabled=True, profile_name="quiet", output_dir="out", print_stats=-1):
    pass
"""
    done = run_text(tmp_path, text).ok()
    assert done.out == ""
    assert (done.folder / "out" / "quiet.stats").is_file()


def test_r4_011_files_have_the_mode_of_any_other(run_text: RunText, tmp_path: Path) -> None:
    text = """
import os
os.umask(0o027)
from ml_ops.profile import cprofile_context, torch_profiler
with torch_profiler(enabled=True, trace_name="trace", output_dir="out"):
    pass
with cprofile_context(enabled=True, profile_name="profile", output_dir="out", print_stats=0):
    pass
"""
    done = run_text(tmp_path, text).ok()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (done.folder / "out").iterdir()}
    assert modes == dict.fromkeys(("trace.json", "profile.stats", "profile.txt"), 0o640)


def test_r4_032_one_thread_traces_at_a_time(tmp_path: Path, run_text: RunText) -> None:
    text = """
import threading
import torch
from ml_ops.profile import torch_profiler
def work(name):
    with torch_profiler(enabled=True, trace_name=name, output_dir="out") as trace:
        torch.ones(3).sum()
    found[name] = trace is not None
def thread(name):
    one = threading.Thread(target=work, args=(name,))
    one.start()
    one.join()
found = {}
with torch_profiler(enabled=True, trace_name="outer", output_dir="out"):
    thread("beside")
    work("inside")
thread("later")
threads = [threading.Thread(target=work, args=(f"many{n}",)) for n in range(8)]
for one in threads: one.start()
for one in threads: one.join()
assert any(on for name, on in found.items() if name.startswith("many"))
print([name for name in ("beside", "inside", "later") if found[name]])
"""
    done = run_text(tmp_path, text).ok()
    assert done.out == "['inside', 'later']\n"
    assert done.err.count("another thread traces a block") == 1
    written = {path.stem for path in (done.folder / "out").iterdir()}
    assert {"outer", "inside", "later"} <= written
    assert "beside" not in written


def test_r4_017_a_recursive_function_is_not_hidden_by_its_own_profile(
    tmp_path: Path, run_text: RunText
) -> None:
    text = """
from ml_ops.profile import profile_function
@profile_function("rec")
def rec(n):
    return 1 if n < 2 else n * rec(n - 1)
rec(10)
rec(4)
"""
    done = run_text(tmp_path, text, ENABLE_PROFILING="true").ok()
    table = (done.folder / "runs" / "profiling" / "rec.txt").read_text(encoding="utf-8")
    assert "14/2 " in table
    assert "_switches.py" not in table


def test_r4_029_functions_of_one_name_in_two_files(
    run_text: RunText, stepwatch_cli: Path, tmp_path: Path
) -> None:
    """A function is found again in its own file, also below lines that are new."""
    text = """
from pathlib import Path
from ml_ops.profile import cprofile_context
for name in ("one", "two"):
    Path(f"{name}.py").write_text(LINES + "def save(n):\\n    return sum(range(n))\\n")
import sys
sys.path.insert(0, ".")
import one, two
with cprofile_context(enabled=True, profile_name=NAME, output_dir="out", print_stats=0):
    one.save(1000)
    two.save(1000)
"""
    for name, lines in (("before", ""), ("after", "# a new line\n")):
        run_text(tmp_path, text, before=f"NAME, LINES = {name!r}, {lines!r}").ok()
    done = subprocess.run(
        [stepwatch_cli, "compare", "out/before.stats", "out/after.stats", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    (result,) = json.loads(done.stdout)["runs"]
    found = [part for part in result["functions"] if part["name"] == "save"]
    assert sorted(Path(part["file"]).name for part in found) == ["one.py", "two.py"]
    assert [part["calls"] for part in found] == [{"before": 1, "after": 1}] * 2


# What is there of a process: descriptors, threads, folders, memory that is a file's.
THINGS = """
import glob, os, tempfile, threading
import stepwatch
def memory():
    return glob.glob(f"/dev/shm/stepwatch-*/{os.getpid()}-*")
earlier = memory()  # of another process with the same number
def things():
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "folders": glob.glob(tempfile.gettempdir() + "/stepwatch-*"),
        "memory": [path for path in memory() if path not in earlier],
        "recording": stepwatch.is_recording(),
    }
"""


def test_r4_007_nothing_is_there_between_blocks(run_text: RunText, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    text = """
from ml_ops.profile import torch_profiler
def block(number):
    with torch_profiler(enabled=True, trace_name=f"n{number}", output_dir="out"):
        with stepwatch.section("inside"):
            return things()
block(0)
before, inside = things(), [block(number) for number in range(1, 40)]
assert things() == before, (things(), before)
assert before["folders"] == before["memory"] == [] and not before["recording"]
# It lies in memory that no folder knows, and no thread is there for it.
assert all(one["recording"] for one in inside)
assert all(one["folders"] == one["memory"] == [] for one in inside)
assert all(one["threads"] == before["threads"] for one in inside)
"""
    done = run_text(tmp_path, text, before=THINGS, TMPDIR=str(tmp_path / "tmp")).ok()
    assert len(list((done.folder / "out").iterdir())) == 40


def test_r4_032_children_of_a_fork_are_in_the_trace(run_text: RunText, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    text = """
from ml_ops.profile import torch_profiler
def child():
    if os.fork() == 0:
        with stepwatch.section("of the child"):
            pass
        stepwatch.stop()
        os._exit(0)
    os.wait()
with torch_profiler(enabled=True, trace_name="outer", output_dir="out"):
    with stepwatch.section("of the parent"):
        pass
    child()
    with torch_profiler(enabled=True, trace_name="inner", output_dir="out"):
        child()
assert things()["folders"] == []
child()  # There is nothing to record into.
with torch_profiler(enabled=True, trace_name="alone", output_dir="out"):
    pass
assert things()["folders"] == []
"""
    done = run_text(tmp_path, text, before=THINGS, TMPDIR=str(tmp_path / "tmp")).ok()
    assert done.err == ""
    for name, children in (("outer", 2), ("inner", 1), ("alone", 0)):
        spans = [(one["name"], one["pid"]) for one in events(done, name) if one["ph"] in "XB"]
        found = [pid for span, pid in spans if span == "of the child"]
        assert len(set(found)) == len(found) == children
        assert [span for span, _ in spans].count("of the parent") == (name == "outer")
        assert name in [span for span, _ in spans]


def test_r4_032_a_kill_within_a_block_leaves_nothing(run_text: RunText, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    text = """
import signal
from ml_ops.profile import torch_profiler
print(os.getpid(), len(earlier), flush=True)
with torch_profiler(enabled=True, trace_name="lost", output_dir="out"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = run_text(tmp_path, text, before=THINGS, TMPDIR=str(tmp_path / "tmp"))
    assert done.code != 0
    assert list((tmp_path / "tmp").iterdir()) == []
    pid, earlier = done.out.split()
    left = list(Path("/dev/shm").glob(f"stepwatch-*/{pid}-*"))
    assert len(left) == int(earlier)


def test_r4_006_annotations_may_cross(run_text: RunText, tmp_path: Path) -> None:
    needs("torch")
    text = """
import threading
import torch
from ml_ops.profile import torch_profiler
with torch_profiler(enabled=True, trace_name="t", output_dir="out") as trace:
    one, other = torch.profiler.record_function("one"), torch.profiler.record_function("other")
    one.__enter__()
    torch.ones(3, 4).cumsum(0)
    other.__enter__()
    one.__exit__(None, None, None)
    with torch.profiler.record_function(""):
        torch.zeros(2)
    other.__exit__(None, None, None)
    weight = torch.ones(4, 2, requires_grad=True)
    (torch.ones(3, 4) @ weight).sum().backward()
rows = {(row["name"], row["shapes"]): row for row in trace.operators()}
product = rows["aten::mm", "[[3, 4], [4, 2]]"]
assert product["phase"] == "forward" and product["flops"] == 2 * 3 * 4 * 2, product
assert rows["aten::cumsum", "[[3, 4], [], []]"]["bytes"] == 3 * 4 * 4
backward = [row for row in rows.values() if row["phase"] == "backward"]
assert any(row["name"] == "aten::mm" for row in backward)
assert all(row["self_ns"] <= row["total_ns"] for row in rows.values())
"""
    done = run_text(tmp_path, text).ok()
    spans = {one["name"]: one for one in events(done, "t") if one["ph"] == "X"}
    first, second = spans["one"], spans["other"]
    assert first["ts"] < second["ts"] < first["ts"] + first["dur"] < second["ts"] + second["dur"]
    assert second["ts"] < spans["aten::zeros"]["ts"]
    assert spans["aten::zeros"]["ts"] < second["ts"] + second["dur"]
