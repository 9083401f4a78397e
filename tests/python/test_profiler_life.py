"""stepwatch.Profiler: on, off and again, memory, and beside a recording."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

if TYPE_CHECKING:
    from .conftest import Recording
from .profiler_rows import calls_by_path, row_of

# --- On, off, again --------------------------------------------------------------------


def test_switched_at_any_time() -> None:
    profiler = stepwatch.Profiler(enabled=False)
    section = profiler.section("work")

    @profiler.profile("function")
    def function() -> None: ...

    def both() -> None:
        with section:
            pass
        function()
        profiler.add("op", 1.0)
        assert list(profiler.steps([1, 2])) == [1, 2]

    both()
    assert profiler.rows() == []
    profiler.enabled = True
    both()
    counts = {row["name"]: row["calls"] for row in profiler.rows()}
    assert counts == {"work": 1, "function": 1, "op": 1, "step": 2, "data_wait": 2}
    with section:
        profiler.enabled = False
        both()  # the inner call was never opened, so its end is not that of the outer one
        assert profiler.calls("work") == 1
    assert profiler.calls("work") == 2  # it was open
    both()
    assert profiler.calls("work") == 2
    with pytest.raises(AttributeError):
        del profiler.enabled


def test_reset_and_what_is_open() -> None:
    profiler = stepwatch.Profiler()
    section = profiler.section("work")
    with section, profiler.section("inner"):
        time.sleep(0.02)
        with section:
            pass
        profiler.counter("loss", 1)
        before = profiler.started_ns
        profiler.reset()
        assert (profiler.rows(), profiler.paths(), profiler.counters()) == ([], [], {})
        assert profiler.started_ns > before
    assert calls_by_path(profiler) == {("work",): 1, ("work", "inner"): 1}
    assert row_of(profiler, "work")["total_ns"] < 20_000_000
    assert profiler.section("work") is section


def test_reset_with_very_many_open_calls() -> None:
    profiler = stepwatch.Profiler()

    def waits() -> Generator[None, None, None]:
        with profiler.section("task"):
            yield

    def thread() -> None:
        tasks = [waits() for _ in range(30_000)]
        for task in tasks:
            next(task)
        profiler.reset()
        for task in reversed(tasks):
            task.close()

    size = threading.stack_size(256 * 1024)
    try:
        one = threading.Thread(target=thread)
        one.start()
        one.join()
    finally:
        threading.stack_size(size)
    assert profiler.calls("task") == 30_000
    assert calls_by_path(profiler) == {("task",): 30_000}


def test_close_and_with() -> None:
    with stepwatch.Profiler("block") as profiler, profiler.section("work"):
        pass
    assert repr(profiler) == "<stepwatch.Profiler 'block': 1 sections, 1 calls, closed>"
    first = profiler.elapsed_s
    assert profiler.elapsed_s == first
    with profiler.section("work"):
        pass
    profiler.close()
    assert (profiler.enabled, profiler.calls("work")) == (False, 1)
    profiler.enabled = True
    with profiler.section("work"):
        pass
    assert profiler.calls("work") == 2
    assert profiler.elapsed_s > first


def test_copies_have_the_settings_and_no_statistics() -> None:
    profiler = stepwatch.Profiler("mine", values=3, memory=True)
    section = profiler.section("work", category="a", phase="loss")
    with section:
        pass
    for copied in (copy.deepcopy(profiler), pickle.loads(pickle.dumps(profiler))):
        assert (copied.name, copied.memory, copied.rows()) == ("mine", True, [])
    other = copy.deepcopy(section)
    assert (other.name, other.category, other.phase) == ("work", "a", "loss")
    assert other.profiler is not profiler


def test_it_goes_when_nobody_has_it() -> None:
    profiler = stepwatch.Profiler()
    weak = weakref.ref(profiler)
    section = profiler.section("work")
    with section:
        pass
    kept = profiler.steps([1])
    del profiler
    gc.collect()
    assert weak() is not None  # its sections keep it
    del section, kept
    gc.collect()
    assert weak() is None


def test_derived_classes() -> None:
    class Mine(stepwatch.Profiler):
        def total(self) -> int:
            return sum(row["self_ns"] for row in self.rows())

    mine = Mine("derived")
    with mine.section("work"):
        pass
    for _ in mine.steps([1]):
        pass
    assert mine.total() > 0
    assert mine.calls("step") == 1


# --- Memory ----------------------------------------------------------------------------

MEMORY = """
import mmap, stepwatch
profiler = stepwatch.Profiler(memory=True)

def take(size):
    block = mmap.mmap(-1, size)
    for at in range(0, size, 4096):
        block[at] = 1
    return block

with profiler.section("keeps"):
    kept = take(64 << 20)
    with profiler.section("inner"):
        more = take(16 << 20)
with profiler.section("returns"):
    take(128 << 20).close()
with profiler.section("frees"):
    kept.close()
with stepwatch.memory(sample_kb=0), profiler.section("counted"):
    text = bytearray(32 << 20)
    del text
profiler.memory = False
with profiler.section("not looked"):
    pass
for name in ("keeps", "inner", "returns", "frees", "counted", "not looked"):
    row = profiler.row(name)
    print(name, row["memory_bytes"], row["peak_bytes"], row["peak_rss_bytes"], row["peak_how"],
          len(profiler.memory_values(name)), sep="|")
"""


def test_memory_of_calls() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    lines = [line.split("|") for line in done.stdout.splitlines()]
    rows = {name: rest for name, *rest in lines}
    mib, slack = 1 << 20, 4 << 20

    def near(text: str, value: int) -> bool:
        return abs(int(text) - value) <= slack

    assert near(rows["keeps"][0], 80 * mib)
    assert near(rows["keeps"][1], 80 * mib)
    assert near(rows["inner"][0], 16 * mib)
    # The kernel's mark of the most there was tells what two looks cannot see.
    assert near(rows["returns"][0], 0)
    assert near(rows["returns"][1], 128 * mib)
    assert near(rows["frees"][0], -64 * mib)
    assert near(rows["frees"][1], 0)
    assert int(rows["returns"][2]) > int(rows["keeps"][2])
    assert near(rows["counted"][1], 32 * mib)
    assert [rows[name][3] for name in rows] == ["sampled"] * 4 + ["exact", "None"]
    assert [rows[name][4] for name in rows] == ["1"] * 5 + ["0"]
    assert rows["not looked"][:3] == ["None"] * 3


WINDOWS = """
import gc, stepwatch

def leave_open():
    profiler = stepwatch.Profiler(memory=True)
    profiler.section("never ends").__enter__()

with stepwatch.memory(sample_kb=0):
    for _ in range(40):
        leave_open()
        gc.collect()
    profiler = stepwatch.Profiler(memory=True)
    with profiler.section("counted"):
        pass
    print(profiler.row("counted")["peak_how"])
"""


def test_profilers_that_go_leave_nothing_open() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "exact\n"


# --- With a recording ------------------------------------------------------------------


def test_sections_are_also_in_the_recording(recorded: Recording) -> None:
    profiler = stepwatch.Profiler()

    @profiler.profile("function")
    def function() -> None: ...

    for _ in profiler.steps(range(4)):
        with profiler.section("outer"), profiler.section("inner"):
            function()
    profiler.enabled = False
    with profiler.section("outer"):
        pass
    sections = {tuple(row["path"]): row["calls"] for row in recorded.report["sections"]}
    assert sections[("outer",)] == 4
    assert sections[("outer", "inner")] == 4
    assert sections[("outer", "inner", "function")] == 4
    assert recorded.report["steps"]["count"] == 4


def test_a_recording_that_begins_and_ends_meanwhile(tmp_path: Any) -> None:
    profiler = stepwatch.Profiler()
    with profiler.section("around"):
        stepwatch.start(out=tmp_path / "one", quiet=True)
        with profiler.section("inside"):
            stepwatch.stop()
            stepwatch.start(out=tmp_path / "two", quiet=True)
    run = stepwatch.stop()
    assert run is not None
    assert [row["name"] for row in run.sections] == []
    assert calls_by_path(profiler) == {("around",): 1, ("around", "inside"): 1}
