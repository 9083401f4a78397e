"""Guide 0: blocks of tasks, which run beside each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Done, RunText

TASKS = """
import asyncio, time
from improved_profiler import profiler
from profiler_config import profiler_config

profiler_config.output_dir = "out"
profiler_config.print_overall_profile = False

async def fetch():
    with profiler.profile_context("fetch"):
        await asyncio.sleep(0.05)
    with profiler.profile_context("load_data"):
        await asyncio.sleep(0.05)

async def main():
    with profiler.profile_context("all"):
        await asyncio.gather(*(fetch() for _ in range(5)))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def tasks(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    grid = """
    from stepwatch.compat import _omni_tables as tables
    print(tables.grid_of(tables.families(profiler._blocks), "Block Name"))
    """
    return run_text(tmp_path_factory.mktemp("tasks"), TASKS, after=grid).ok()


@pytest.fixture(scope="module")
def overall(tasks: Done) -> dict[str, Any]:
    text = (tasks.folder / "out/overall_profile_step_final.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def test_r0_032_percentages_of_tasks_add_up(overall: dict[str, Any]) -> None:
    blocks = overall["blocks"]
    assert sum(block["self_time"] for block in blocks.values()) > 2 * overall["elapsed_time"]
    assert sum(block["self_percent"] for block in blocks.values()) == pytest.approx(100)
    assert all(block["percent"] <= 100 for block in blocks.values())
    beside = overall["overlap"]["blocks"]
    assert beside["measured_time"] == pytest.approx(
        sum(block["self_time"] for block in blocks.values())
    )
    assert beside["at_once"] > 2
    assert "functions" not in overall["overlap"]


def test_r0_034_advice_says_that_times_overlap(overall: dict[str, Any]) -> None:
    advice = overall["advice"]
    assert {each["evidence"]["name"] for each in advice} >= {"fetch", "load_data"}
    shares = {each["evidence"]["name"]: each["evidence"]["share"] for each in advice}
    assert sum(shares.values()) <= 1
    for each in advice:
        assert "Some ran beside each other: " in each["text"]
        assert each["evidence"]["gain_at_most"] is None


def test_r0_029_a_table_says_what_its_percentages_are_of(tasks: Done) -> None:
    assert "| Avg Time (s) | % of All |" in tasks.out
    assert "percentages are of the former.\n" in tasks.out


def test_r0_032_nothing_is_said_where_nothing_overlaps(run_text: RunText, tmp_path: Path) -> None:
    one = (
        TASKS.replace("range(5)", "range(1)")
        .replace("await asyncio.gather(*(", "await (")
        .replace(" for _ in range(1)))", ")")
    )
    done = run_text(tmp_path, one).ok()
    text = (done.folder / "out/overall_profile_step_final.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert "overlap" not in found
    assert all("beside" not in each["text"] for each in found["advice"])
    assert found["advice"][0]["evidence"]["gain_at_most"] > 1
