"""Pauses of the garbage collector are sections and records of the thread that collects."""

from __future__ import annotations

import gc
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import stepwatch
from stepwatch import _core
from stepwatch.integrations import collector

from .training_trace import GC, Seen


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    stepwatch.stop()
    stepwatch.start(out=tmp_path / "run", quiet=True, policy="stream")
    gc.disable()
    collector.install()
    yield tmp_path / "run"
    collector.remove()
    gc.enable()
    stepwatch.stop()


def seen(folder: Path) -> Seen:
    stepwatch.stop()
    (path,) = folder.glob("*.stepwatch")
    return Seen(path)


def collections(found: Seen) -> list[tuple[int, int]]:
    """Return generation and number of collected objects of each."""
    return [struct.unpack_from("<II", record.body, 24) for record in found.records(GC)]


class Node:
    def __init__(self) -> None:
        self.me = self


def test_a_collection_is_a_section_and_a_record(folder: Path) -> None:
    gc.collect()
    for _ in range(10):
        Node()
    gc.collect(2)
    gc.collect(0)
    found = seen(folder)
    assert found.sections()["gc"] == 3
    full, again, young = collections(found)
    assert full[0] == again[0] == 2
    assert again[1] >= 10
    assert young[0] == 0
    for record in found.records(GC):
        assert record.end >= record.ticks


def test_a_pause_belongs_to_the_thread_that_collects(folder: Path) -> None:
    with stepwatch.section("main"):
        pass
    worker = threading.Thread(target=gc.collect)
    worker.start()
    worker.join()
    found = seen(folder)
    by_thread = {
        thread: [r for r in found.trace.records(7, thread) if r.kind == GC]
        for thread in found.trace.threads()
    }
    assert sorted(len(records) for records in by_thread.values()) == [0, 1]


def test_a_phase_of_the_step(folder: Path) -> None:
    stepwatch.step_begin()
    gc.collect()
    stepwatch.step_end()
    del folder
    run = stepwatch.stop()
    assert run is not None
    (step,) = run.steps
    assert step["gc_ns"] > 0
    assert step["gc_ns"] <= step["duration_ns"]


def test_a_list_that_the_program_clears_gets_its_entry_back(folder: Path) -> None:
    assert gc.callbacks[-1] is _core.collector
    gc.callbacks.clear()
    gc.collect()

    class Owner:
        pass

    owner = Owner()
    for _ in range(70):
        _core.train_step(4, owner)
    assert gc.callbacks == [_core.collector]
    gc.collect()
    _core.train_step_end(4, owner)
    assert len(collections(seen(folder))) == 1


def test_installed_twice_is_one_entry_and_removed_none(folder: Path) -> None:
    collector.install()
    assert gc.callbacks.count(_core.collector) == 1
    collector.remove()
    assert _core.collector not in gc.callbacks
    gc.collect()
    assert not seen(folder).records(GC)


def test_recording_that_begins_or_ends_within_a_collection(folder: Path) -> None:
    _core.collector("stop", {"generation": 2, "collected": 0, "uncollectable": 0})
    _core.collector("start", {"generation": 2, "collected": 0, "uncollectable": 0})
    found = seen(folder)
    _core.collector("stop", {"generation": 2, "collected": 0, "uncollectable": 0})
    assert not found.records(GC)


@pytest.mark.parametrize("arguments", [(), ("start",), (1, 2), ("other", {}), ("stop", None)])
def test_strange_arguments_do_nothing(folder: Path, arguments: tuple[object, ...]) -> None:
    _core.collector(*arguments)  # type: ignore[arg-type]
    assert not seen(folder).records(GC)


def test_nothing_without_a_recording(folder: Path) -> None:
    del folder
    stepwatch.stop()
    gc.collect()
    assert gc.callbacks[-1] is _core.collector
