"""The judging of measurements: what cannot be measured never passes for something that holds."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench import page, pythons  # noqa: E402
from bench.harness import BenchError  # noqa: E402
from bench.suites import SUITES  # noqa: E402
from bench.suites.python_sampler import interval  # noqa: E402

pytestmark = pytest.mark.once

PROMISE = pythons.Promise(
    "ratio",
    "ours, in theirs",
    ("ours", "theirs"),
    pythons.share(pythons.over("ours", "empty"), pythons.over("theirs", "empty")),
    pythons.limited(0.5, "3.12"),
)
ROUNDS = {"empty": [10.0, 10.0, 20.0], "ours": [20.0, 20.0, 30.0], "theirs": [50.0, 50.0, 60.0]}


def judged(**found: Any) -> bool | None:
    result = pythons.summarize({"3.12": {"rounds": {}, **found}}, [PROMISE], {"": "empty"})
    (verdict,) = pythons.verdicts(result, [PROMISE])
    return verdict.ok


def test_promise_is_judged_by_rounds() -> None:
    assert judged(rounds=ROUNDS) is True
    assert judged(rounds={**ROUNDS, "ours": [40.0, 40.0, 50.0]}) is False


@pytest.mark.parametrize(("yardstick", "expected"), [(45.0, None), (20.0, False)])
def test_only_a_yardstick_that_misses_excuses(yardstick: float, expected: bool | None) -> None:
    promise = dataclasses.replace(
        PROMISE,
        least=pythons.share(pythons.over("least", "empty"), pythons.over("theirs", "empty")),
        least_needs=("least",),
    )
    rounds = {**ROUNDS, "ours": [50.0, 50.0, 60.0], "least": [yardstick, yardstick, yardstick]}
    result = pythons.summarize({"3.12": {"rounds": rounds}}, [promise], {"": "empty"})
    (verdict,) = pythons.verdicts(result, [promise])
    assert verdict.ok is expected


def test_missing_breaks_a_promise() -> None:
    without = {case: figures for case, figures in ROUNDS.items() if case != "ours"}
    assert judged(rounds=without, missing={"ours": "stepwatch.ours"}) is False
    assert judged(missing_all=pythons.NOT_BUILT) is False


def test_absent_rival_is_said() -> None:
    without = {case: figures for case, figures in ROUNDS.items() if case != "theirs"}
    assert judged(rounds=without, absent={"theirs": "it is not installed"}) is None
    # Ours missing as well is worse than a rival that is not here.
    missing = {"missing": {"ours": "stepwatch.ours"}, "absent": {"theirs": "not installed"}}
    assert judged(rounds={"empty": [1.0]}, **missing) is False


def test_unexplained_gap_is_an_error() -> None:
    with pytest.raises(BenchError):
        judged(rounds={"empty": [1.0]})


@pytest.mark.parametrize(("count", "low", "high"), [(20, 6, 15), (10, 2, 9), (6, 1, 6), (3, 1, 3)])
def test_interval_of_the_median(count: int, low: int, high: int) -> None:
    found = interval([float(number) for number in range(count, 0, -1)])
    assert (found["low"], found["high"]) == (low, high)
    assert found["median"] == (count + 1) / 2


def test_page_has_a_place_for_every_suite() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    places = {match["name"] for match in page.PLACE.finditer(text)}
    assert places == {"machine", *(suite.name for suite in SUITES)}
