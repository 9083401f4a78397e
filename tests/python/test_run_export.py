"""Run.export: files for other tools, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest
import stepwatch

Read = Callable[[Path], Any]


@pytest.fixture
def run(tmp_path: Path) -> stepwatch.Run:
    with stepwatch.record("exported", out=str(tmp_path / "run")) as run:
        for number in range(6):
            with stepwatch.step(), stepwatch.section("forward"):
                stepwatch.counter("loss", 1 / (number + 1))
    return run


def test_chrome(run: stepwatch.Run, tmp_path: Path, read_trace: Read) -> None:
    target = tmp_path / "trace.json"
    target.write_text("old")
    assert run.export("chrome", target) == str(target)
    document = read_trace(target)
    names = [e["name"] for e in document["traceEvents"] if e["ph"] == "X"]
    assert names.count("forward") == 6
    assert names.count("ProfilerStep#5") == 1
    assert document["traceName"] == "trace.json"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "trace.json"]


def test_steps(run: stepwatch.Run, tmp_path: Path, read_trace: Read) -> None:
    for steps, wanted in ((2, [2]), ((1, 3), [1, 2, 3]), (range(4, 6), [4, 5]), ([0, 9], range(6))):
        run.export("chrome", tmp_path / "trace.json", steps=steps)
        events = read_trace(tmp_path / "trace.json")["traceEvents"]
        names = [e["name"] for e in events if e["ph"] == "X" and e["cat"] == "step"]
        assert names == [f"ProfilerStep#{i}" for i in wanted]


def test_several_stretches_of_steps(run: stepwatch.Run, tmp_path: Path, read_trace: Read) -> None:
    target = tmp_path / "trace.json"
    for steps, wanted in (
        ([(4, 5), (0, 1)], [0, 1, 4, 5]),
        ([(2, 2)], [2]),
        ([(0, 0), (3, 3), (40, 50)], [0, 3]),
    ):
        run.export("chrome", target, steps=steps)
        events = [e for e in read_trace(target)["traceEvents"] if e["ph"] == "X"]
        names = [e["name"] for e in events if e["cat"] == "step"]
        assert names == [f"ProfilerStep#{i}" for i in wanted]
        assert len([e for e in events if e["name"] == "forward"]) == len(wanted)
    with pytest.raises(ValueError, match="overlap at step 3"):
        run.export("chrome", target, steps=[(3, 5), (0, 3)])
    with pytest.raises(ValueError, match="no step 7"):
        run.export("chrome", target, steps=[(7, 8), (9, 9)])


def test_kineto(run: stepwatch.Run, tmp_path: Path, read_trace: Read) -> None:
    file = Path(run.export("kineto", tmp_path / "deep" / "logs"))
    assert file.parent == tmp_path / "deep" / "logs"
    assert file.name.split("_")[1].startswith(f"{os.getpid()}.")
    assert read_trace(file)["schemaVersion"] == 1
    assert run.export("kineto", tmp_path / "one.json") == str(tmp_path / "one.json")
    assert read_trace(tmp_path / "one.json")["traceName"] == "one.json"


def test_a_running_recording(tmp_path: Path, read_trace: Read) -> None:
    stepwatch.start(out=str(tmp_path / "run"))
    try:
        for _ in range(3):
            with stepwatch.step(), stepwatch.section("forward"):
                pass
        with stepwatch.section("outer"), stepwatch.open(tmp_path / "run") as run:
            run.export("chrome", tmp_path / "now.json")
    finally:
        stepwatch.stop()
    events = read_trace(tmp_path / "now.json")["traceEvents"]
    names = [e["name"] for e in events if e["ph"] == "X"]
    assert names.count("forward") == 3
    (outer,) = [e for e in events if e["name"] == "outer"]
    assert outer["args"]["unfinished"] is True


def test_other_formats(run: stepwatch.Run, tmp_path: Path) -> None:
    run.export("json", tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["steps"]["count"] == 6
    for name, word in (
        ("pstats", "function profile"),
        ("collapsed", "samples"),
        ("speedscope", "samples"),
    ):
        with pytest.raises(ValueError, match=word):
            run.export(name, tmp_path / "none")
    assert not list(tmp_path.glob("none*"))


def test_wrong_arguments(run: stepwatch.Run, tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    with pytest.raises(ValueError, match="no format 'perfect'; there are chrome, collapsed"):
        run.export("perfect", target)
    with pytest.raises(ValueError, match="mean nothing for the format"):
        run.export("json", target, steps=3)
    with pytest.raises(ValueError, match="samples mean nothing"):
        run.export("json", target, samples=True)
    with pytest.raises(ValueError, match=r"no step 6 .* 0 to 5"):
        run.export("chrome", target, steps=(6, 9))
    with pytest.raises(ValueError, match=r"no step 6 .* 0 to 5"):
        run.export("kineto", tmp_path / "logs", steps=(6, 9))
    with pytest.raises(ValueError, match="end before they begin"):
        run.export("chrome", target, steps=(3, 1))
    with pytest.raises(ValueError, match="must follow one another"):
        run.export("chrome", target, steps=range(0, 6, 2))
    for steps in ((1, 2, 3), ("a", "b"), (1.5, 2.5)):
        with pytest.raises(TypeError, match="a number or two"):
            run.export("chrome", target, steps=steps)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        run.export("chrome")  # type: ignore[call-arg]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_places(run: stepwatch.Run, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run.export("chrome", tmp_path / "no" / "trace.json")
    with pytest.raises(IsADirectoryError):
        run.export("chrome", tmp_path)
    (tmp_path / "file").write_text("old")
    with pytest.raises(FileExistsError):
        run.export("kineto", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    (tmp_path / "link").symlink_to("file")
    run.export("chrome", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert "ProfilerStep#0" in (tmp_path / "file").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(run: stepwatch.Run) -> None:
    with pytest.raises(OSError, match="No space left"):
        run.export("chrome", "/dev/full")


def test_nothing_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWATCH_ENABLED", "0")
    with stepwatch.record("off", out=str(tmp_path / "run")) as run:
        pass
    with pytest.raises(ValueError, match="nothing was recorded"):
        run.export("chrome", tmp_path / "trace.json")
    assert not (tmp_path / "trace.json").exists()


def test_a_closed_run(run: stepwatch.Run, tmp_path: Path) -> None:
    run.close()
    with pytest.raises(ValueError, match="is closed"):
        run.export("chrome", tmp_path / "trace.json")
