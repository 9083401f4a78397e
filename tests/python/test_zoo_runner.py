"""The runner of the zoo: what counts as found, where, false alarm and gain; its exit codes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

pytest.importorskip("tomllib", reason="the manifest of the zoo is read since Python 3.11")

from tests.zoo import run  # noqa: E402
from tests.zoo.execute import Outcome  # noqa: E402
from tests.zoo.manifest import ManifestError, Program, Where, read_manifest  # noqa: E402
from tests.zoo.score import Row, judge, score, seconds_a_step  # noqa: E402

pytestmark = pytest.mark.once

Json = dict[str, Any]


def finding(kind: str = "gc", severity: str = "high", speedup: float | None = 2.0) -> Json:
    predicted = None
    if speedup is not None:
        predicted = {
            "step_ms": 1.0,
            "speedup": speedup,
            "low": speedup - 0.2,
            "high": speedup + 0.2,
        }
    where = {"file": "/somewhere/train.py", "line": 2, "name": "work"}
    return {"kind": kind, "severity": severity, "where": where, "predicted": predicted}


def report(seconds: float = 2.0, found: list[Json] | None = None, **steps: Any) -> Json:
    return {
        "schema": "stepwatch.report/1",
        "overhead": {"percent": 0.5},
        "timeline": [{"part": "startup", "s": 9.0}, {"part": "steps", "s": seconds}],
        "steps": {"count": 100, "warmup": 0, **steps},
        "findings": found if found is not None else [],
    }


def outcome(document: Json | None, seconds: float = 2.0) -> Outcome:
    return Outcome(steps=100, seconds=seconds, report=document)


PLANTED = Program(
    name="planted",
    framework="torch",
    folder=Path(),
    command=("train.py",),
    fixed=("train.py", "--fixed"),
    kinds=("gc",),
    where=Where(("train.py",), (), (range(1, 4),), ("work",)),
    uncounted=0,
)
HEALTHY = Program("healthy", "torch", Path(), ("train.py",), None, (), None, 0)


def test_a_step_has_its_part_of_validation_and_checkpoints() -> None:
    document = report(4.0, warmup=20)
    document["timeline"] += [{"part": "validation", "s": 3.0}, {"part": "checkpoint", "s": 2.0}]
    document["timeline"] += [{"part": "warmup", "s": 50.0}, {"part": "teardown", "s": 7.0}]
    assert seconds_a_step(document) == pytest.approx(4.0 / 80 + 5.0 / 100)


def test_a_run_that_compiles_has_its_warm_up() -> None:
    document = report(4.0, warmup=20)
    document["timeline"] += [{"part": "warmup", "s": 6.0}, {"part": "validation", "s": 2.0}]
    assert seconds_a_step(document, compiled=True) == pytest.approx(12.0 / 100)
    bad = report(9.0, [finding("recompile")])
    bad["timeline"].append({"part": "warmup", "s": 15.0})
    row = judge(replace(PLANTED, kinds=("recompile",)), outcome(bad), outcome(document))
    assert row.measured == pytest.approx(2.0)


def test_a_step_has_its_part_of_what_lies_between_steps() -> None:
    document = report(4.0, warmup=20)
    document["timeline"] += [{"part": "between_epochs", "s": 3.0}]
    document["timeline"] += [{"part": "between_steps", "s": 0.5}]
    assert seconds_a_step(document) == pytest.approx(4.0 / 80 + 3.5 / 100)
    document["sections"] = [{"path": ["sync"], "phase": "sync", "total_ms": 4000.0}]
    assert seconds_a_step(document) == pytest.approx(4.0 / 80 + 4.0 / 100)  # 0.5 at the end


def test_a_step_has_its_part_of_waits_at_the_end_of_an_epoch() -> None:
    document = report(4.0, phases=[{"phase": "sync", "ms": 10.0}, {"phase": "loss", "ms": None}])
    document["sections"] = [
        {"path": ["sync"], "phase": "sync", "total_ms": 2500.0},
        {"path": ["sync", "sync"], "phase": "sync", "total_ms": 900.0},  # a part of it
        {"path": ["validation"], "phase": "validation", "total_ms": 800.0},
        {"path": ["validation", "step", "sync"], "phase": "sync", "total_ms": 700.0},
        {"path": ["fit"], "phase": None, "total_ms": 9000.0},
        {"path": ["fit", "sync"], "phase": "sync", "total_ms": 500.0},
    ]
    assert seconds_a_step(document) == pytest.approx((4.0 + 2.5 + 0.5 - 1.0) / 100)
    document["sections"] = document["sections"][2:4]
    assert seconds_a_step(document) == pytest.approx(4.0 / 100)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": {"count": 0}},
        {"steps": {"count": 5, "warmup": 5}},
        {"timeline": []},
        {"steps": {}},
    ],
)
def test_a_run_without_steps_has_no_time_a_step(change: Json) -> None:
    assert seconds_a_step({**report(), **change}) is None


def test_found_predicted_and_measured() -> None:
    bad = report(4.2, [finding(speedup=2.0), finding("variance")])
    row = judge(PLANTED, outcome(bad, 5.0), outcome(report(2.0), 2.0))
    assert (row.found, row.first, row.where, row.alarms) == ("gc", True, True, [])
    assert row.measured == pytest.approx(2.1)
    assert row.own == pytest.approx(2.5)
    assert row.error == pytest.approx(100 * 0.1 / 2.1)
    assert row.within is True
    assert row.problems == []
    assert row.overhead == [0.5, 0.5]


def test_measured_outside_of_the_range() -> None:
    row = judge(PLANTED, outcome(report(6.0, [finding()])), outcome(report(2.0)))
    assert row.within is False
    assert row.error == pytest.approx(100 / 3)


def test_second_is_not_first() -> None:
    bad = report(4.0, [finding("variance"), finding()])
    row = judge(PLANTED, outcome(bad), outcome(report()))
    assert (row.found, row.first, row.where, row.predicted) == ("variance", False, False, None)


def test_nothing_found() -> None:
    row = judge(PLANTED, outcome(report(4.0)), outcome(report()))
    assert (row.found, row.first, row.where) == (None, False, False)
    assert row.measured == pytest.approx(2.0)


def test_a_finding_without_prediction() -> None:
    row = judge(PLANTED, outcome(report(4.0, [finding(speedup=None)])), outcome(report()))
    assert (row.first, row.predicted, row.error, row.within) == (True, None, None, None)


def test_alarms_are_above_low_and_not_of_the_planted_run() -> None:
    fixed = report(2.0, [finding("dtype", "low"), finding("logging", "medium")])
    row = judge(PLANTED, outcome(report(4.0, [finding()])), outcome(fixed))
    assert row.alarms == ["logging"]
    assert judge(HEALTHY, outcome(report(found=[finding()]))).alarms == ["gc"]
    assert judge(HEALTHY, outcome(report(found=[finding("gc", "low")]))).alarms == []


@pytest.mark.parametrize("missing", [{"recorded": False, "why": "…"}, None])
def test_a_report_without_findings_has_none(missing: Json | None) -> None:
    assert judge(HEALTHY, outcome({**report(), "findings": missing})).alarms == []


@pytest.mark.parametrize(
    ("found", "right"),
    [
        ({"file": "/a/train.py", "line": 99, "name": "work"}, True),
        ({"file": "/a/train.py", "line": 3, "name": "other"}, True),
        ({"file": "/a/train.py", "line": 99, "name": "Trainer.work"}, True),
        ({"file": "/a/train.py", "line": 99, "name": "homework"}, False),
        ({"file": "/a/train.py", "line": 4, "name": None}, False),
        ({"file": "/a/other.py", "line": 2, "name": "work"}, False),
        ({"file": None, "line": 2, "name": "work"}, False),
        (None, False),
    ],
)
def test_where(found: Json | None, right: bool) -> None:
    assert PLANTED.where is not None
    assert PLANTED.where.matches(found) is right


@pytest.mark.parametrize(("count", "right"), [(100, True), (98, True), (97, False), (101, False)])
def test_steps_are_what_the_program_says(count: int, right: bool) -> None:
    program = Program("healthy", "jax", Path(), ("train.py",), None, (), None, uncounted=2)
    assert (judge(program, outcome(report(count=count))).problems == []) is right


def test_what_did_not_run_is_a_problem_of_that_run() -> None:
    row = judge(PLANTED, outcome(report(4.0, [finding()])), Outcome(error="it left nothing"))
    assert row.problems == ["fixed: it left nothing"]
    assert (row.first, row.measured, row.error) == (True, None, None)
    alone = judge(PLANTED, outcome(report()), outcome(report()), [None, Outcome(error="it fell")])
    assert alone.problems == ["fixed: alone: it fell"]


def test_slowdown_is_by_the_clock_of_the_program() -> None:
    row = judge(HEALTHY, outcome(report(), 2.1), None, [outcome(None, 2.0), None])
    assert row.slower == [pytest.approx(5.0)]


def row_of(first: bool = True, alarms: int = 0, predicted: float | None = 2.0) -> Row:
    return Row(
        "planted",
        "torch",
        False,
        ("gc",),
        first=first,
        where=first,
        alarms=["dtype"] * alarms,
        measured=2.0,
        predicted=predicted,
        low=1.9,
        high=2.1,
    )


def test_score_adds_up() -> None:
    rows = [
        row_of(predicted=2.0),
        row_of(predicted=2.2),
        row_of(predicted=3.0),
        row_of(False, alarms=2, predicted=None),
        Row("healthy", "torch", True, (), alarms=["gc"], overhead=[1.0, 2.0], slower=[4.0]),
    ]
    total = score(rows)
    assert (total.planted, total.first, total.places, total.places_right) == (4, 3, 4, 3)
    assert (total.quiet, total.alarmed) == (5, 2)
    assert (total.predictions, total.broken) == (3, 0)
    assert total.error == pytest.approx(10.0)
    assert (total.overhead, total.slower) == (1.5, 4.0)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row_of()], 0),
        ([row_of()] * 19 + [row_of(False, predicted=None)], 0),
        ([row_of()] * 18 + [row_of(False, predicted=None)], 1),
        ([row_of(alarms=1)], 1),
        ([row_of(predicted=2.29)], 0),
        ([row_of(predicted=2.31)], 1),
        ([row_of(predicted=None)], 1),
        ([Row("healthy", "torch", True, ())], 0),
        ([Row("healthy", "torch", True, (), alarms=["gc"])], 1),
        ([row_of(), Row("healthy", "torch", True, (), problems=["it fell"])], 3),
    ],
)
def test_code_of_the_score(rows: list[Row], code: int) -> None:
    assert score(rows).code == code


MANIFEST = """
[[program]]
name = "one"
file = "one/train.py"
fixed = { file = "one/fixed.py" }
kinds = ["gc"]
where = { file = "train.py", functions = ["work"] }

[[program]]
name = "two"
file = "two/train.py"
healthy = true
"""
SCRIPT = 'def work():\n    return 100\n\n\nprint(f"trained {work()} steps in 2.5 s")\n'

# Does what `stepwatch run -o DIR SCRIPT` does, but the report was there before;
# `stepwatch report DIR --json` says what DIR/again.json does, or the report once more.
CLI = f"""#!{sys.executable}
import pathlib, shutil, subprocess, sys
if sys.argv[1] == "report":
    run = pathlib.Path(sys.argv[2])
    assert sys.argv[3:] == ["--json"]
    ready = run / "again.json"
    sys.exit(print((ready if ready.exists() else run / "report.json").read_text()))
_, command, option, out, script, *arguments = sys.argv
assert (command, option) == ("run", "-o")
done = subprocess.run([sys.executable, script, *arguments])
ready = pathlib.Path(script).with_suffix(".json")
if ready.exists():
    pathlib.Path(out).mkdir()
    shutil.copy(ready, pathlib.Path(out, "report.json"))
sys.exit(done.returncode)
"""

Zoo = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a manifest, its programs, and a command that has reports ready."""
    (tmp_path / "zoo.toml").write_text(MANIFEST)
    for name in ("one/train", "one/fixed", "two/train"):
        path = tmp_path / "programs" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCRIPT)
        document = report(4.0, [finding()]) if name == "one/train" else report()
        path.with_suffix(".json").write_text(json.dumps(document))
    cli = tmp_path / "build" / "src" / "cli" / "stepwatch"
    cli.parent.mkdir(parents=True)
    cli.write_text(CLI)
    cli.chmod(0o755)
    return tmp_path


@pytest.fixture
def zoo(folder: Path) -> Zoo:
    """Return the runner on that folder."""

    def go(*arguments: str) -> int:
        common = ["--manifest", str(folder / "zoo.toml"), "--build", str(folder / "build")]
        return run.main([*common, *arguments])

    return go


def test_good_run(zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo("--json", str(folder / "out.json"), "--plain") == 0
    out = capsys.readouterr().out
    assert "found first 1/1, where right 1/1" in out
    assert "false alarms 0/2" in out
    assert "BROKEN" not in out
    document = json.loads((folder / "out.json").read_text())
    assert document["score"]["first"] == 1
    one, two = document["rows"]
    assert (one["name"], one["measured"], one["error_percent"], one["within"]) == (
        "one",
        2.0,
        0.0,
        True,
    )
    assert (two["healthy"], two["slower"]) == (True, [0.0])


def test_run_directories_are_kept(zoo: Zoo, folder: Path) -> None:
    kept = folder / "kept"
    for _ in range(2):
        assert zoo("--keep", str(kept)) == 0
    assert sorted(path.name for path in kept.iterdir()) == ["one", "one-fixed", "two"]
    assert json.loads((kept / "one" / "report.json").read_text())["findings"]


def said_again(zoo: Zoo, kept: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = zoo("--judge", str(kept))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_what_was_kept_is_judged_again(
    zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = folder / "kept"
    assert zoo("--keep", str(kept)) == 0
    first = capsys.readouterr().out
    (folder / "programs" / "one" / "fixed.py").write_text("raise SystemExit('it ran')")
    code, out, err = said_again(zoo, kept, capsys)
    assert (code, err) == (0, "")
    row = next(line for line in first.splitlines() if line.split()[:1] == ["one"])
    assert row.split() in [line.split() for line in out.splitlines()]
    assert row.split()[6:9] == ["2.00", "1.00", "2.00"]
    (kept / "one" / "again.json").write_text(json.dumps(report(4.0, [finding("variance")])))
    code, out, _ = said_again(zoo, kept, capsys)
    assert code == 1
    assert "found first 0/1" in out


def test_recordings_that_are_missing(
    zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = folder / "kept"
    assert zoo("--keep", str(kept), "--only", "one") == 0
    (kept / "one" / "said.txt").unlink()  # of runs that were recorded by hand
    code, out, err = said_again(zoo, kept, capsys)
    assert code == 0
    assert "left out, as there is no recording of them: two" in err
    assert "false alarms 0/1" in out
    shutil.rmtree(kept / "one-fixed")
    code, out, err = said_again(zoo, kept, capsys)
    assert code == 3
    assert "one: fixed: there is no recording of it" in err
    shutil.rmtree(kept / "one")
    assert said_again(zoo, kept, capsys)[0] == 2


def test_runs_that_failed_are_not_judged(
    zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = folder / "kept"
    (folder / "programs" / "two" / "train.py").write_text("raise SystemExit('no data')")
    assert zoo("--keep", str(kept), "--only", "two") == 3
    code, _, err = said_again(zoo, kept, capsys)
    assert code == 3
    assert "two: it ended with code 1: no data" in err


def test_a_report_that_fails_is_3(
    zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = folder / "kept"
    assert zoo("--keep", str(kept), "--only", "two") == 0
    (kept / "two" / "again.json").write_text("{")
    code, _, err = said_again(zoo, kept, capsys)
    assert code == 3
    assert "two: the report on it cannot be read" in err
    (kept / "two" / "again.json").unlink()
    (kept / "two" / "report.json").unlink()
    code, _, err = said_again(zoo, kept, capsys)
    assert code == 3
    assert "two: the report on it ended with code 1: FileNotFoundError" in err


def test_repeated_runs_are_rows_of_their_own(zoo: Zoo, capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo("--repeat", "3", "--only", "one") == 0
    assert "found first 3/3" in capsys.readouterr().out


def test_a_wrong_verdict_is_1(zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ready = folder / "programs" / "two" / "train.json"
    ready.write_text(json.dumps(report(found=[finding("logging")])))
    assert zoo() == 1
    assert "BROKEN  false alarms: 1 of 2" in capsys.readouterr().out
    assert zoo("--only", "one") == 0


def test_a_missing_report_is_3(zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "programs" / "one" / "fixed.json").unlink()
    assert zoo() == 3
    said = capsys.readouterr()
    assert "one: fixed: it left no report.json" in said.err
    assert "found first 1/1" in said.out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "cannot be read"),
        ('{"schema": "other/1"}', "none of schema"),
        ("[]", "none of schema"),
    ],
)
def test_an_unreadable_report_is_3(
    zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    (folder / "programs" / "two" / "train.json").write_text(text)
    assert zoo("--only", "two") == 3
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("raise SystemExit('no data')", "it ended with code 1: no data"),
        ("print('done')", "it did not say how many steps it trained"),
    ],
)
def test_a_program_that_fails_is_3(
    zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str], script: str, sentence: str
) -> None:
    (folder / "programs" / "two" / "train.py").write_text(script)
    assert zoo("--only", "two") == 3
    assert f"two: {sentence}" in capsys.readouterr().err


def test_wrong_usage_is_2(zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo("--only", "three") == 2
    assert "there is no program three; there are one, two" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        zoo("--repeat", "0")
    assert caught.value.code == 2
    for wrong in (["gone"], [str(folder), "--plain"], [str(folder), "--repeat", "2"]):
        with pytest.raises(SystemExit) as caught:
            zoo("--judge", *wrong)
        assert caught.value.code == 2
    (folder / "build" / "src" / "cli" / "stepwatch").unlink()
    assert zoo() == 2
    assert "make build makes it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "one"\n', "", "a program has no name"),
        ('name = "two"', 'name = "one"', "one: it is there twice"),
        ("healthy = true", "healthi = true", "two: there is no key healthi"),
        ("healthy = true", "", "two: either it is healthy, or it has kinds and a fixed twin"),
        ('kinds = ["gc"]', 'kinds = ["cg"]', "one: there is no kind cg"),
        ('kinds = ["gc"]', "", "one: either it is healthy"),
        ('{ file = "one/fixed.py" }', "{}", "one: fixed needs another file, module or args"),
        ("one/fixed.py", "one/gone.py", "one: there is no file"),
        ('file = "two/train.py"', "", "two: it needs a file, or a module and the folder"),
        ('file = "two/train.py"', 'folder = "no"\nmodule = "m"', "two: there is no folder"),
        ('["work"]', '["play"]', "one: there is no play in train.py"),
        ('file = "train.py", f', 'file = "t.py", f', "one: there is no t.py in"),
        ('file = "train.py", f', "f", "one: where needs names, or a file with functions"),
        ("[[program]]", "[[programs]]", "it has no [[program]]"),
        ("[[program]]", "[[program", "zoo.toml: "),
    ],
)
def test_bad_manifest_is_2(
    zoo: Zoo, folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    assert old in MANIFEST
    (folder / "zoo.toml").write_text(MANIFEST.replace(old, new))
    assert zoo() == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""


def test_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"gone\.toml"):
        read_manifest(tmp_path / "gone.toml")


def test_the_zoo_itself() -> None:
    programs = read_manifest(ROOT / "tests" / "zoo" / "zoo.toml")
    planted = [program for program in programs if not program.healthy]
    assert len(planted) >= 18
    assert len(programs) - len(planted) >= 5
    for program in planted:
        assert program.fixed != program.command
        assert len(program.kinds) <= 2
    frameworks = {program.framework for program in programs}
    assert frameworks == {"torch", "lightning", "huggingface", "jax", "numpy"}
    listed = {program.folder for program in programs}
    there = {path.resolve() for path in (ROOT / "tests" / "zoo" / "programs").iterdir()}
    assert there == listed
