"""Recordings that a profiler starts, with its own name and options."""

from __future__ import annotations

import copy
import pickle
import pstats
from pathlib import Path

import pytest
import stepwatch


def test_start_and_stop(tmp_path: Path) -> None:
    profiler = stepwatch.Profiler("training", out=tmp_path / "run", quiet=True, sampler_hz=0)
    profiler.start()
    assert stepwatch.is_recording()
    for _ in profiler.steps(range(4)):
        with profiler.section("work"):
            pass
    run = profiler.stop()
    assert not stepwatch.is_recording()
    assert run.name == "training"
    assert run.path == str(tmp_path / "run")
    assert {row["name"]: row["calls"] for row in run.sections}["work"] == 4
    assert len(run.steps) == 4
    assert profiler.calls("work") == 4
    assert not profiler.stop()  # Once is enough.


def test_options_of_the_call_come_last(tmp_path: Path) -> None:
    profiler = stepwatch.Profiler("training", out=tmp_path / "one", quiet=True)
    profiler.start(out=tmp_path / "two", name="other")
    run = profiler.stop()
    assert (run.name, run.path) == ("other", str(tmp_path / "two"))
    assert not (tmp_path / "one").exists()


def test_somebody_elses_recording_goes_on(tmp_path: Path) -> None:
    profiler = stepwatch.Profiler("training", quiet=True)
    stepwatch.start(out=tmp_path / "run", quiet=True)
    profiler.start(out=tmp_path / "mine")
    with profiler.section("work"):
        pass
    assert not profiler.stop()
    assert stepwatch.is_recording()
    run = stepwatch.stop()
    assert [row["name"] for row in run.sections] == ["work"]
    assert not (tmp_path / "mine").exists()


def test_switched_off_nothing_is_recorded(tmp_path: Path) -> None:
    profiler = stepwatch.Profiler("training", enabled=False, out=tmp_path / "run", quiet=True)
    profiler.start()
    assert not stepwatch.is_recording()
    assert not profiler.stop()
    assert not (tmp_path / "run").exists()


def test_record(tmp_path: Path) -> None:
    profiler = stepwatch.Profiler("training", quiet=True)
    with profiler.record(out=tmp_path / "run") as run, profiler.section("work"):
        pass
    assert run.name == "training"
    assert [row["name"] for row in run.sections] == ["work"]
    with profiler.record("named", out=tmp_path / "named") as run:
        pass
    assert run.name == "named"
    with pytest.raises(TypeError, match="takes a name"):
        profiler.record("a", "b")  # type: ignore[call-arg]


def test_wrong_options() -> None:
    with pytest.raises(TypeError, match="sampler_hz"):
        stepwatch.Profiler("training", sampler_hs=3)
    with pytest.raises(TypeError, match="max_mb"):
        stepwatch.Profiler("training", max_mb="much")
    with pytest.raises(TypeError, match="keyword"):
        stepwatch.Profiler("training").start("run")  # type: ignore[call-arg]
    assert stepwatch.Profiler(name="kept").name == "kept"


def test_copies_have_the_options(tmp_path: Path) -> None:
    profiler = stepwatch.Profiler("training", out=str(tmp_path / "run"), quiet=True)
    for other in (copy.deepcopy(profiler), pickle.loads(pickle.dumps(profiler))):
        other.start()
        run = other.stop()
        assert run.path == str(tmp_path / "run")
        (tmp_path / "run").rename(tmp_path / f"run-{id(other)}")


def test_the_other_profilers_are_at_hand() -> None:
    profiler = stepwatch.Profiler("training")
    with profiler.functions() as profile:
        sorted([3, 1, 2])
    assert vars(pstats.Stats(profile))["total_calls"] >= 1
    assert profiler.sample is stepwatch.sample

    @profiler.lines  # type: ignore[untyped-decorator]
    def add() -> int:
        a = 1
        return a + 1

    assert add() == 2
    profiler.lines.remove(add)
