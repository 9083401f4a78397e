"""Earlier runs of a place, as Python sees them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Callable

import pytest
import stepwatch

from .conftest import Recorder


def test_runs_of_a_folder(record_run: Recorder, tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        record_run(5, name=name)
    runs = stepwatch.history(tmp_path)
    assert [run["name"] for run in runs] == ["third", "second", "first"]
    newest = runs[0]
    assert type(newest) is dict
    assert newest["steps"]["count"] == 5
    assert newest["complete"] is True
    assert newest["exit"] == {"code": None, "signal": None}
    assert newest["directory"] == "third"
    assert newest["previous"]["directory"] == "second"
    assert (tmp_path / "history.db").is_file()
    assert stepwatch.history(str(tmp_path), limit=2) == runs[:2]
    assert stepwatch.history(path=bytes(tmp_path), limit=None) == runs
    assert stepwatch.history(tmp_path, 1) == runs[:1]


def test_a_run_that_goes_on(record_run: Recorder, tmp_path: Path) -> None:
    record_run(5, name="ended")
    stepwatch.start(name="going", out=tmp_path / "going")
    try:
        assert [run["name"] for run in stepwatch.history(tmp_path)] == ["ended"]
    finally:
        stepwatch.stop()
    assert [run["name"] for run in stepwatch.history(tmp_path)] == ["going", "ended"]


def test_the_usual_place(
    record_run: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert stepwatch.history() == []
    record_run(5, name="runs")
    assert stepwatch.history() == []
    monkeypatch.setenv("STEPWATCH_RUNS_DIR", str(tmp_path))
    assert [run["directory"] for run in stepwatch.history()] == ["runs"]


def test_mistakes(tmp_path: Path) -> None:
    anything: Callable[..., Any] = stepwatch.history
    (tmp_path / "letter.txt").write_text("hello")
    with pytest.raises(FileNotFoundError):
        stepwatch.history(tmp_path / "missing")
    with pytest.raises(ValueError, match="holds no runs"):
        stepwatch.history(tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        stepwatch.history(tmp_path / "letter.txt")
    for limit in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            stepwatch.history(tmp_path, limit=limit)
    for arguments in ((3,), (tmp_path, "x"), (tmp_path, 1.5), (tmp_path, 1, 2)):
        with pytest.raises(TypeError):
            anything(*arguments)


def test_threads(record_run: Recorder, tmp_path: Path) -> None:
    record_run(5, name="one")
    results: list[list[dict[str, Any]]] = []
    threads = [
        threading.Thread(target=lambda: results.append(stepwatch.history(tmp_path)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(result == results[0] for result in results)
    assert len(results[0]) == 1
