"""stepwatch.open: runs that are whole, damaged, missing, or still going on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import stepwatch
from stepwatch import Run

Recorder = Callable[..., Run]


def the_file(run: Run) -> Path:
    assert run.path is not None
    (file,) = Path(run.path).glob("*.stepwatch")
    return file


def test_attributes(record_run: Recorder, tmp_path: Path) -> None:
    record_run(20)
    run = stepwatch.open(tmp_path / "run")
    assert run.path == str(tmp_path / "run")
    assert (run.name, run.id, run.processes, run.complete) == ("run", None, 1, True)
    assert run.recorded
    assert not run.closed
    assert run.command is not None
    assert run.duration_s > 0
    assert run.notes == []
    assert run.info["complete"] is True
    assert run.info["exit_code"] is None
    assert run.info["facts"]["pid"] == str(os.getpid())
    assert run.info["begin_ns"] <= run.steps[0]["begin_ns"]
    assert repr(run).startswith(f"<stepwatch.Run {run.path!r}: 'run', ")
    assert "20 steps" in repr(run)
    assert os.fspath(run) == run.path


@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_any_kind_of_path(record_run: Recorder, kind: Callable[[str], str]) -> None:
    run = record_run(3)
    assert run.path is not None
    assert len(stepwatch.open(kind(run.path)).steps) == 3
    assert len(stepwatch.open(kind(str(the_file(run)))).steps) == 3


def test_agrees_with_the_report(record_run: Recorder) -> None:
    run = record_run(20)
    document = run.report().to_dict()
    assert document["schema"] == "stepwatch.report/1"
    assert document["run"]["name"] == run.name
    assert document["steps"]["count"] == len(run.steps)
    sections = run.sections.to_list()
    assert len(sections) == len(document["sections"]) == 2
    for ours, theirs in zip(sections, document["sections"]):
        shared = {key: ours[key] for key in theirs if key in ours}
        assert shared == {key: theirs[key] for key in shared}
        assert set(theirs) - set(ours) == {"open_ms"}
    assert len(run.spans) == sum(row["calls"] for row in sections)


def test_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist") as caught:
        stepwatch.open(tmp_path / "none")
    assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        stepwatch.open(str(tmp_path / "none" / "deeper"))


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no stepwatch traces"):
        stepwatch.open(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no trace", bytes(65536), b"\xff" * 100_000])
def test_not_a_trace(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.stepwatch"
    file.write_bytes(content)
    for path in (file, tmp_path):
        with pytest.raises(ValueError, match=r"x\.stepwatch"):
            stepwatch.open(path)


@pytest.mark.parametrize("name", ["a.pt.trace.json", "a.json.gz"])
def test_torch_traces_are_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"traceEvents": []}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"torch\.profiler"):
        stepwatch.open(tmp_path / name)


@pytest.mark.parametrize("path", [3, None, 1.5, "a\0b"])
def test_what_is_no_path(path: object) -> None:
    anything: Callable[[object], object] = stepwatch.open  # type: ignore[assignment]
    with pytest.raises((TypeError, ValueError)):
        anything(path)


def test_no_permission() -> None:
    # Not below tmp_path, which other users cannot enter anyway.
    top = Path(tempfile.mkdtemp())
    try:
        top.chmod(0o755)
        (top / "closed").mkdir(mode=0)
        (top / "x.stepwatch").write_bytes(b"x")
        (top / "x.stepwatch").chmod(0)
        code = f"""
import os, sys, stepwatch
if os.geteuid() == 0:
    os.seteuid(65534)
for path in ({str(top / "closed")!r}, {str(top / "x.stepwatch")!r}):
    try:
        stepwatch.open(path)
    except PermissionError as error:
        assert error.errno == 13 and "Permission denied" in str(error), error
    else:
        sys.exit("opened")
"""
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stderr) == (0, "")
    finally:
        (top / "closed").chmod(0o700)
        shutil.rmtree(top)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated(record_run: Recorder, share: float) -> None:
    file = the_file(record_run(50, spans=20_000))
    os.truncate(file, int(file.stat().st_size * share))
    try:
        run = stepwatch.open(file)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert not run.complete
    assert run.notes
    assert len(run.spans.to_list()) == len(run.spans) <= 20_100
    assert run.report().to_dict()["run"]["complete"] is False


@pytest.mark.parametrize("seed", range(8))
def test_damaged(record_run: Recorder, seed: int) -> None:
    import random

    file = the_file(record_run(50, spans=5_000))
    content = bytearray(file.read_bytes())
    chance = random.Random(seed)
    for _ in range(200):
        content[chance.randrange(len(content))] = chance.randrange(256)
    file.write_bytes(content)
    try:
        run = stepwatch.open(file)
    except ValueError:
        return
    for table in (run.sections, run.steps, run.counters, run.marks, run.spans, run.threads):
        for row in table:
            assert list(row) == table.columns
    str(run.report())


def test_closed(record_run: Recorder) -> None:
    run = record_run(5)
    spans, rows, report = run.spans, iter(run.spans), run.report()
    next(rows)
    with run as same:
        assert same is run
    assert run.closed
    run.close()
    uses: list[Callable[[], object]] = [
        lambda: run.name,
        lambda: run.steps,
        lambda: run.info,
        lambda: run.report(),
        lambda: run.__enter__(),
        lambda: len(spans),
        lambda: spans[0],
        lambda: next(rows),
        lambda: spans.to_list(),
        lambda: spans.__arrow_c_stream__(),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="is closed"):
            use()
    assert "closed" in repr(run)
    assert "closed" in repr(spans)
    assert run.path is not None
    # A report has all it needs.
    assert report.steps["count"] == 5
    assert "forward" in str(report)


def test_a_run_that_vanished(record_run: Recorder) -> None:
    run = record_run(5)
    assert run.path is not None
    shutil.rmtree(run.path)
    with pytest.raises(FileNotFoundError):
        len(run.steps)
    assert "cannot be read" in repr(run)


@pytest.mark.usefixtures("no_recording")
def test_own_process_while_recording(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", policy="stream")
    for _ in range(10):
        stepwatch.step_begin()
        with stepwatch.section("forward"):
            pass
        stepwatch.step_end()
    run = stepwatch.open(tmp_path / "run")
    assert not run.complete
    assert len(run.steps) == 10
    assert [row["calls"] for row in run.sections] == [10]
    assert any("still running" in note for note in run.notes)
    stepwatch.stop()
    assert stepwatch.open(tmp_path / "run").complete


def test_a_killed_process(tmp_path: Path) -> None:
    code = f"""
import os, signal, stepwatch
stepwatch.start(out={str(tmp_path / "run")!r}, policy="stream")
for _ in range(10):
    with stepwatch.section("forward"):
        pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    run = stepwatch.open(tmp_path / "run")
    assert not run.complete
    assert len(run.spans) == 10
    assert any("killed" in note for note in run.notes)


def test_several_processes(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    stepwatch.start(out=tmp_path / "run")
    with stepwatch.section("both"):
        pass
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            with stepwatch.section("both"):
                pass
            stepwatch.stop()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    run = stepwatch.stop()
    assert run is not None
    assert run.processes == 3
    assert len({row["pid"] for row in run.spans}) == 3
    assert sum(row["calls"] for row in run.sections) == 3


def test_report(record_run: Recorder, tmp_path: Path) -> None:
    run = record_run(20)
    report = run.report()
    assert report.findings == report.to_dict()["findings"]
    assert isinstance(report.findings, list)
    assert report.notes == report.to_dict()["notes"]
    assert report.steps["count"] == 20
    assert {row["name"] for row in report.sections} == {"forward", "inner"}
    assert str(report) == report.text(80)
    assert max(map(len, report.text(60).splitlines())) <= 60
    assert "\x1b[" in report.text(color=True)
    assert "\x1b[" not in report.text()
    assert report.text(unicode=False).isascii()
    assert repr(report).startswith("<stepwatch.Report of ")
    report.save(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == report.to_dict()
    report.save(str(tmp_path / "r.txt"))
    assert (tmp_path / "r.txt").read_text(encoding="utf-8") == str(report)
    report.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    report.save(tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text(encoding="utf-8").startswith("### ")
    with pytest.raises(ValueError, match=r"\.json, \.md or \.txt"):
        report.save(tmp_path / "r.docx")
    with pytest.raises(FileNotFoundError):
        report.save(tmp_path / "missing" / "r.html")
    assert sorted(path.name for path in tmp_path.glob("r.*")) == [
        "r.html", "r.json", "r.md", "r.txt"
    ]  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path, no_recording: None) -> Run:  # noqa: ARG001
    stepwatch.start(out=tmp_path / "run")
    with stepwatch.section("<script>alert('1')</script>&"):
        stepwatch.mark('"<img>"')
    run = stepwatch.stop()
    assert run is not None
    return run


def test_html_is_escaped(hostile: Run) -> None:
    for text in (
        hostile.report()._repr_html_(),
        hostile.sections._repr_html_(),
        hostile.marks._repr_html_(),
    ):
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;" in text


def test_only_the_library_makes_them() -> None:
    for kind in (stepwatch.Run, stepwatch.Table):
        with pytest.raises(TypeError, match="made by stepwatch only"):
            kind()
        with pytest.raises(TypeError):
            object.__new__(kind)


def test_opened_by_many_threads_at_once(record_run: Recorder) -> None:
    run = record_run(20)
    seen: list[int] = []

    def look() -> None:
        seen.append(len(run.steps) + run.processes)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [21] * 8
