"""stepwatch.compare: what the command says, as an object."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import stepwatch
from stepwatch import Run

from .conftest import Recorder

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(record_run: Recorder) -> tuple[Run, Run]:
    return record_run(30, name="a"), record_run(40, name="b")


def test_attributes(runs: tuple[Run, Run]) -> None:
    change = stepwatch.compare(*runs)
    assert isinstance(change, stepwatch.Comparison)
    assert change.verdict in ("faster", "slower", "same")
    assert change.speedup is not None
    assert change.low is not None
    assert change.high is not None
    assert change.median_speedup is not None
    assert 0 < change.low < change.speedup < change.high
    assert change.regression == (change.verdict == "slower" and change.speedup < 0.95)
    assert change.baseline["path"] == runs[0].path
    assert [run["path"] for run in change.runs] == [runs[1].path]
    assert {row["phase"] for row in change.phases} == {"forward", "other", "between_steps"}
    assert {row["name"] for row in change.sections} == {"forward", "inner"}
    assert (change.modules, change.functions) == ([], [])
    assert all(isinstance(note, str) for note in change.notes)
    assert change.sentence in change.runs[0]["sentence"]


def test_document(runs: tuple[Run, Run]) -> None:
    change = stepwatch.compare(*runs, threshold=7.5)
    document = change.to_dict()
    assert document["schema"] == "stepwatch.compare/1"
    assert document["threshold_percent"] == 7.5
    assert document["runs"][0]["speedup"] == change.speedup
    # It is the reader's own.
    document["runs"].clear()
    assert len(change.runs) == 1


def test_text(runs: tuple[Run, Run]) -> None:
    change = stepwatch.compare(*runs)
    assert str(change) == change.text()
    assert repr(change) == change.text().rstrip("\n")
    assert "Phases, a step" in str(change)
    assert max(map(len, change.text(60).splitlines())) <= 60
    assert change.text(unicode=False).isascii()
    assert "\x1b[" in change.text(color=True)
    assert change._repr_html_().startswith("<pre>")


def test_everything_that_can_be_compared(runs: tuple[Run, Run], tmp_path: Path) -> None:
    a, b = runs
    report = tmp_path / "b.json"
    b.report().save(report)
    exact = stepwatch.compare(a, b)
    assert a.path is not None
    for other in (b.path, Path(b.path or ""), os.fsencode(b.path or ""), b.report()):
        assert stepwatch.compare(a.path, other).speedup == exact.speedup  # type: ignore[arg-type]
    rough = stepwatch.compare(a, report)
    assert rough.speedup is not None  # of steps this short a report knows little
    assert [row["changed"] for row in rough.phases] == [None] * len(rough.phases)
    assert [run["verdict"] for run in stepwatch.compare(a, b, a).runs][1] == "same"


def test_profiles(tmp_path: Path) -> None:
    def work() -> int:
        return sum(range(100))

    paths = []
    for calls in (10, 20):
        with stepwatch.functions() as profile:
            for _ in range(calls):
                work()
        paths.append(tmp_path / f"{calls}.stats")
        profile.save(paths[-1])
    change = stepwatch.compare(*paths)
    assert change.runs[0]["basis"] == "functions"
    assert change.low is None
    [row] = [row for row in change.functions if row["name"].endswith("work")]
    assert row["calls"] == {"before": 10, "after": 20}


def test_a_closed_run_stays_compared(runs: tuple[Run, Run]) -> None:
    a, b = runs
    change = stepwatch.compare(a, b)
    a.close()
    b.close()
    assert change.verdict
    with pytest.raises(ValueError, match="is closed"):
        stepwatch.compare(a, b)


def test_mistakes(runs: tuple[Run, Run], tmp_path: Path) -> None:
    a = runs[0]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        stepwatch.compare(a, tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="cannot be opened"):
        stepwatch.compare(a, tmp_path / "nothing.json")
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(ValueError, match="no report of stepwatch"):
        stepwatch.compare(tmp_path / "x.json", a)
    with pytest.raises(TypeError):
        stepwatch.compare(a, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        stepwatch.compare(a)  # type: ignore[call-arg]
    for threshold in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="threshold is no percentage"):
            stepwatch.compare(a, a, threshold=threshold)
    with stepwatch.record("off", out=tmp_path / "off", enabled=False) as nothing:
        pass
    with pytest.raises(ValueError, match="nothing was recorded"):
        stepwatch.compare(a, nothing)


@pytest.mark.once
def test_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "python" / "compare_runs.py", tmp_path],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert f"{tmp_path / 'slice'} against {tmp_path / 'loop'}" in " ".join(done.stdout.split())
    assert "augment" in done.stdout
