"""Guide 0: loops and with statements of a function as blocks inside of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from stepwatch.compat.omni import FlexibleProfiler, ProfilerConfig


@pytest.fixture
def profiler() -> FlexibleProfiler:
    return FlexibleProfiler(ProfilerConfig(enabled=True, autosave=False))


def blocks(profiler: FlexibleProfiler) -> dict[str, int]:
    """Return the calls of each path, without the numbers of lines."""
    return {
        ":".join(name.partition(" (line")[0] for name in path["path"]): path["calls"]
        for path in profiler._blocks.paths()
    }


def test_r0_019_inner_statements_are_blocks(profiler: FlexibleProfiler) -> None:
    factor = 2

    @profiler.auto_profile_blocks(inner=True)
    def work(count: int = 3, *, more: int = 1) -> int:
        """Add up."""
        total = 0
        for i in range(count):
            for _ in range(2):
                total += factor * i
        if more:
            with contextlib.nullcontext(more) as value:
                total += value
        while total > 1000:
            break
        return total

    assert [work(), work(4), work(2, more=0)] == [13, 25, 4]
    assert work.__doc__ == "Add up."
    assert work.__defaults__ == (3,)
    assert blocks(profiler) == {
        "work": 3,
        "work:for i in range(count)": 3,
        "work:with contextlib.nullcontext(more)": 2,
        "work:while total > 1000": 3,
    }


def test_r0_019_inner_methods_keep_their_class(profiler: FlexibleProfiler) -> None:
    class Base:
        def name(self) -> str:
            return "base"

    class Derived(Base):
        __hidden = "hidden"

        @profiler.auto_profile_blocks(inner=True)
        def name(self) -> str:
            for _ in range(1):
                return f"{super().name()} {self.__hidden}"
            return ""

        @staticmethod
        @profiler.auto_profile_blocks(inner=True)
        def count(values: Any) -> int:
            seen = 0
            for _ in values:
                seen += 1
            return seen

    assert Derived().name() == "base hidden"
    assert Derived.count("abc") == 3
    assert blocks(profiler)["name:for _ in range(1)"] == 1
    assert blocks(profiler)["count:for _ in values"] == 1


def test_r0_019_inner_generators_coroutines_and_errors(profiler: FlexibleProfiler) -> None:
    @profiler.auto_profile_blocks(inner=True)
    def numbers(count: int) -> Iterator[int]:
        for i in range(count):
            yield 2 * i

    @profiler.auto_profile_blocks(inner=True)
    async def wait(times: int) -> int:
        for _ in range(times):
            await asyncio.sleep(0)
        return times

    @profiler.auto_profile_blocks(inner=True)
    def fail() -> None:
        for i in range(3):
            if i == 1:
                raise KeyError("its own")

    assert list(numbers(4)) == [0, 2, 4, 6]
    assert asyncio.run(wait(3)) == 3
    with pytest.raises(KeyError, match="its own") as caught:
        fail()
    assert caught.traceback[-1].lineno > 90, "lines are those of the source"
    row = next(
        row for row in profiler._blocks.rows() if row["name"].startswith("for i in range(3)")
    )
    assert (row["calls"], row["errors"]) == (1, 1)


def test_r0_019_inner_where_there_is_no_source(
    profiler: FlexibleProfiler, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    exec("def made(n):\n    for _ in range(n):\n        pass\n    return n", names)
    assert profiler.auto_profile_blocks(inner=True)(names["made"])(5) == 5
    assert blocks(profiler) == {"made": 1}
    assert "made has no inner blocks: " in capsys.readouterr().err
