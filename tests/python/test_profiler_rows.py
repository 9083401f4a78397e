"""stepwatch.Profiler: loops and statistics."""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

if TYPE_CHECKING:
    pass
from .profiler_rows import calls_by_path, row_of

# --- Loops -----------------------------------------------------------------------------


class Loader:
    """Something that loads batches."""

    batch_size = 4

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[int]:
        for number in range(3):
            time.sleep(0.002)
            yield number


def test_steps_and_waits() -> None:
    profiler = stepwatch.Profiler()
    loop = profiler.steps(Loader())
    assert (len(loop), loop.batch_size, bool(loop)) == (3, 4, True)
    for _ in range(2):
        for _ in loop:
            with profiler.section("work"):
                time.sleep(0.001)
    assert calls_by_path(profiler) == {
        ("step",): 6,
        ("step", "data_wait"): 6,
        ("step", "work"): 6,
    }
    assert row_of(profiler, "data_wait")["min_ns"] >= 2_000_000
    step = row_of(profiler, "step")
    parts = row_of(profiler, "data_wait")["total_ns"] + row_of(profiler, "work")["total_ns"]
    assert step["total_ns"] - step["self_ns"] == parts


def test_a_loop_that_is_left_has_no_last_step() -> None:
    profiler = stepwatch.Profiler()
    for number in profiler.steps(range(10)):
        if number == 4:
            break
    assert (profiler.calls("step"), profiler.calls("data_wait")) == (4, 5)
    with profiler.section("after"):
        pass
    assert ("after",) in calls_by_path(profiler)


def test_a_loader_that_fails() -> None:
    profiler = stepwatch.Profiler()

    def broken() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        for _ in profiler.data(broken(), name="read"):
            pass
    row = row_of(profiler, "read")
    assert (row["calls"], row["errors"]) == (2, 1)
    assert profiler.section("read").phase == "data_wait"
    with pytest.raises(TypeError, match="not iterable"):
        profiler.data(3)  # type: ignore[arg-type]
    assert list(profiler.data([])) == []
    assert profiler.calls("data_wait") == 0


def test_steps_by_hand() -> None:
    profiler = stepwatch.Profiler()
    for number in range(3):
        with contextlib.suppress(ValueError), profiler.step(), profiler.section("work"):
            if number == 2:
                raise ValueError
    row = row_of(profiler, "step")
    assert (row["calls"], row["errors"]) == (3, 1)
    assert calls_by_path(profiler) == {("step",): 3, ("step", "work"): 3}
    profiler.enabled = False
    with profiler.step():
        pass
    assert profiler.calls("step") == 3


def test_a_step_within_itself_ends_the_outer_one() -> None:
    profiler = stepwatch.Profiler()
    step = profiler.step()
    with step, profiler.section("outer"), step, profiler.section("inner"):
        pass
    assert profiler.calls("step") == 2
    with profiler.section("after"):
        pass
    assert ("after",) in calls_by_path(profiler)  # nothing was left open


# --- Statistics ------------------------------------------------------------------------


def test_measurements_taken_elsewhere() -> None:
    profiler = stepwatch.Profiler()
    seconds = [0.001 * number for number in range(1, 101)]
    for value in seconds:
        profiler.add("op", value)
    row = row_of(profiler, "op")
    assert profiler.values("op") == pytest.approx(seconds)
    assert (row["calls"], row["errors"]) == (100, 0)
    assert row["total_ns"] == row["self_ns"] == 5_050_000_000
    assert (row["min_ns"], row["max_ns"], row["last_ns"]) == (1_000_000, 100_000_000, 100_000_000)
    assert row["mean_ns"] == pytest.approx(50_500_000)
    assert row["std_ns"] == pytest.approx(statistics.pstdev(seconds) * 1e9)
    for key, value in (("p50_ns", 50e6), ("p90_ns", 90e6), ("p95_ns", 95e6), ("p99_ns", 99e6)):
        assert row[key] == pytest.approx(value, rel=0.01)  # type: ignore[literal-required]
    assert [row["memory_bytes"], row["peak_bytes"], row["peak_how"]] == [None] * 3
    profiler.add("many", 2.0, count=4)
    many = row_of(profiler, "many")
    assert (many["calls"], many["total_ns"], many["mean_ns"]) == (4, 2_000_000_000, 5e8)
    assert profiler.values("many") == [0.5]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 20])
def test_quantiles_of_few_calls_are_those_of_the_calls(count: int) -> None:
    profiler = stepwatch.Profiler()
    values = [(number * 7) % count + 1 for number in range(count)]
    for value in values:
        profiler.add("op", value)
    row = row_of(profiler, "op")
    for key, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)):
        exact = sorted(values)[math.ceil(share * count) - 1]
        found = row[key] / 1e9  # type: ignore[literal-required]
        assert found == pytest.approx(exact, rel=0.01 if count > 8 else 1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("op", -1.0), "seconds should be from 0 to 1e9"),
        (("op", float("nan")), "seconds should be from 0 to 1e9"),
        (("op", float("inf")), "seconds should be from 0 to 1e9"),
        (("op", 1.0, 0), "count should be 1 or more, not 0"),
    ],
)
def test_wrong_measurements(arguments: Any, message: str) -> None:
    profiler = stepwatch.Profiler()
    with pytest.raises(ValueError, match=message):
        profiler.add(*arguments)
    with pytest.raises(ValueError, match=r"not -2\.5$"):
        profiler.add("op", seconds=-2.5)
    assert profiler.rows() == []


def test_rows_are_sorted_by_total() -> None:
    profiler = stepwatch.Profiler()
    for name, seconds in (("a", 1.0), ("b", 3.0), ("c", 2.0), ("d", 3.0)):
        profiler.add(name, seconds)
    profiler.section("never")
    assert [row["name"] for row in profiler.rows()] == ["b", "d", "c", "a"]
    assert [row["path"] for row in profiler.paths()] == [["b"], ["d"], ["c"], ["a"]]
    assert profiler.row("never") is profiler.row("unknown") is None
    assert (profiler.calls("never"), profiler.values("unknown")) == (0, [])
    with pytest.raises(TypeError, match="is a str"):
        profiler.calls(3)  # type: ignore[arg-type]


def test_the_newest_values_are_kept() -> None:
    profiler = stepwatch.Profiler(values=10)
    for number in range(37):
        profiler.add("op", float(number))
    assert profiler.values("op") == [float(number) for number in range(27, 37)]
    assert profiler.calls("op") == 37
    nothing = stepwatch.Profiler(values=0)
    nothing.add("op", 1.0)
    assert (nothing.values("op"), nothing.calls("op")) == ([], 1)


def test_ten_thousand_names() -> None:
    profiler = stepwatch.Profiler()
    for number in range(10_000):
        with profiler.section(f"epoch_{number}"), profiler.section("train"):
            pass
    rows = profiler.rows()
    assert len(rows) == 10_001
    assert profiler.calls("epoch_9999") == 1
    families = {row["name"]: row for row in profiler.rows(families=True)}
    assert set(families) == {"epoch_*", "train"}
    assert families["epoch_*"]["calls"] == 10_000
    epochs = [row for row in rows if row["name"] != "train"]
    for key in ("total_ns", "self_ns"):
        assert families["epoch_*"][key] == sum(row[key] for row in epochs)
    assert families["epoch_*"]["max_ns"] == max(row["max_ns"] for row in epochs)
    means = [row["mean_ns"] for row in epochs]
    assert families["epoch_*"]["mean_ns"] == pytest.approx(statistics.fmean(means))
    assert families["epoch_*"]["std_ns"] == pytest.approx(statistics.pstdev(means), rel=1e-6)
    assert len(profiler.paths()) == 20_000


def test_names_without_end_are_folded() -> None:
    profiler = stepwatch.Profiler(values=1)
    for number in range(70_000):
        profiler.add(f"batch_{number}", 0.001)
    profiler.add("another", 0.001)
    assert profiler.calls("batch_65535") == 1
    assert profiler.calls("batch_69999") == 0
    assert profiler.calls("batch_*") == 70_000 - 65_536
    assert profiler.calls("(more)") == 1


def test_families_without_end_are_folded_too() -> None:
    profiler = stepwatch.Profiler()
    for number in range(65_536):
        profiler.section(f"name {number}")
        profiler.counter(f"name {number}", 0)

    def name(number: int) -> str:  # each is of a family of its own
        return f"{number:016b}0".translate({0x30: "a1", 0x31: "b2"})

    for number in range(65_536):
        profiler.section(name(number))
        profiler.counter(name(number), 1)
    for number in range(5):
        profiler.add(name(65_536 + number) + "c3", 1.0)
        profiler.counter(name(65_536 + number) + "c3", 2)
    assert profiler.calls("(more)") == 5
    counters = profiler.counters()
    assert len(counters) == 2 * 65_536 + 1
    assert [value for _, value in counters["(more)"]] == [2.0] * 5


def test_what_was_called_inside_of_a_section() -> None:
    profiler = stepwatch.Profiler()
    with profiler.section("setup"), profiler.section("load"):
        pass
    for epoch in range(3):
        with profiler.section(f"epoch_{epoch}"):
            for part in ("train", "validate"):
                with profiler.section(part):
                    for _ in range(epoch + 6):
                        with profiler.section("load"):
                            pass
    rows = {row["name"]: row for row in profiler.rows(under="epoch_2")}
    assert {name: row["calls"] for name, row in rows.items()} == {
        "epoch_2": 1,
        "train": 1,
        "validate": 1,
        "load": 16,
    }
    paths = profiler.paths(under="epoch_2")
    loads = [row for row in paths if row["name"] == "load"]
    assert sorted(row["path"] for row in loads) == [
        ["epoch_2", "train", "load"],
        ["epoch_2", "validate", "load"],
    ]
    assert rows["load"]["total_ns"] == sum(row["total_ns"] for row in loads)
    assert rows["load"]["max_ns"] == max(row["max_ns"] for row in loads)
    assert rows["load"]["min_ns"] <= rows["load"]["p50_ns"] <= rows["load"]["max_ns"]
    assert profiler.rows(under="nothing") == profiler.paths(under="nothing") == []
    with pytest.raises(TypeError, match="not both"):
        profiler.rows(families=True, under="epoch_2")
    with pytest.raises(TypeError, match="under must be str"):
        profiler.rows(under=3)  # type: ignore[arg-type]


def test_series_and_marks() -> None:
    profiler = stepwatch.Profiler(values=4)
    for number in range(11):
        profiler.counter("loss", number / 2)
    profiler.mark("changed")
    series = profiler.counters()["loss"]
    assert [value for _, value in series] == [3.5, 4.0, 4.5, 5.0]
    moments = [moment for moment, _ in series]
    assert moments == sorted(moments)
    ((moment, text),) = profiler.marks()
    assert (text, moment >= moments[-1]) == ("changed", True)
    with pytest.raises(TypeError):
        profiler.counter("loss", "high")  # type: ignore[arg-type]
    profiler.enabled = False
    profiler.counter("loss", 1)
    profiler.mark("not kept")
    assert (len(profiler.counters()["loss"]), len(profiler.marks())) == (4, 1)


def test_all_values_may_be_kept() -> None:
    profiler = stepwatch.Profiler(values=sys.maxsize)
    for number in range(10):
        profiler.counter("loss", number)
        profiler.mark("text")
        profiler.add("op", number)
    assert len(profiler.counters()["loss"]) == len(profiler.marks()) == 10
    assert len(profiler.values("op")) == 10
