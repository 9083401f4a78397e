"""stepwatch compare: runs, reports and function profiles.

What a comparison says of known differences is tested in tests/unit; here the differences are so
large that no load of the machine hides them.
"""

from __future__ import annotations

import json
import marshal
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def slow(stepwatch: Run, program: Path, tmp_path: Path) -> Path:
    """Return a run whose steps take about ten times as long as those of ``fast``."""
    assert stepwatch("run", "-o", "slow", "--", program, "work", "4000").returncode == 0
    return tmp_path / "slow"


@pytest.fixture
def fast(stepwatch: Run, program: Path, tmp_path: Path) -> Path:
    assert stepwatch("run", "-o", "fast", "--", program, "work", "200").returncode == 0
    return tmp_path / "fast"


def compared(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the only run of a comparison."""
    document = json.loads(result.stdout)
    assert document["schema"] == "stepwatch.compare/1"
    [run] = document["runs"]
    assert isinstance(run, dict)
    return run


def part(run: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    key = "phase" if kind == "phases" else "name"
    [found] = [row for row in run[kind] if row[key] == name]
    assert isinstance(found, dict)
    return found


def test_faster(stepwatch: Run, slow: Path, fast: Path) -> None:
    result = stepwatch("compare", slow, fast, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    run = compared(result)
    assert run["verdict"] == "faster"
    assert run["tested"]
    assert not run["regression"]
    assert 1 < run["low"] < run["speedup"] < run["high"]
    assert run["speedup"] > 2
    assert run["median_speedup"] > 2
    assert run["steps"]["before"] > 30
    assert run["step_ms"]["before"] / run["step_ms"]["after"] == pytest.approx(run["speedup"])
    data = part(run, "phases", "data_wait")
    assert data["changed"] is True
    assert data["low_ms"] < data["difference_ms"] < data["high_ms"] < 0
    assert data["difference_ms"] == pytest.approx(data["after_ms"] - data["before_ms"])
    assert run["phases"][0] == data
    assert part(run, "sections", "data")["changed"] is True
    assert part(run, "sections", "data")["per"] == "step"
    assert run["modules"] == run["functions"] == []


def test_slower_is_a_regression(stepwatch: Run, slow: Path, fast: Path) -> None:
    result = stepwatch("compare", fast, slow)
    assert (result.returncode, result.stderr) == (1, "")
    assert f"{slow} against {fast}" in " ".join(result.stdout.split())
    assert "\n  slower by " in result.stdout
    assert "of which data_wait +" in " ".join(result.stdout.split())
    assert "A regression of more than 5 %." in " ".join(result.stdout.split())
    # Nothing can be slower by 100 %.
    assert stepwatch("compare", fast, slow, "--threshold", "100").returncode == 0
    assert stepwatch("compare", fast, slow, "--threshold=20%").returncode == 1


def test_a_run_and_itself(stepwatch: Run, fast: Path) -> None:
    result = stepwatch("compare", fast, fast, "--json")
    assert result.returncode == 0
    run = compared(result)
    assert (run["verdict"], run["speedup"]) == ("same", 1)
    assert run["low"] < 1 < run["high"]
    assert not [row for row in run["phases"] + run["sections"] if row["changed"]]
    again = stepwatch("compare", fast, fast, "--json")
    assert again.stdout == result.stdout


def test_several_runs(stepwatch: Run, slow: Path, fast: Path) -> None:
    result = stepwatch("compare", slow, fast, slow, "--json")
    document = json.loads(result.stdout)
    assert [run["verdict"] for run in document["runs"]] == ["faster", "same"]
    assert document["baseline"]["path"] == str(slow)
    assert document["regression"] is False
    text = stepwatch("compare", slow, fast, slow, "--threshold", "1").stdout
    table = text.partition("\nRuns ")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[-1] for line in table] == ["verdict", "baseline", "faster", "same"]


def test_native_files_and_reports(stepwatch: Run, slow: Path, fast: Path) -> None:
    [native] = fast.glob("*.stepwatch")
    exact = compared(stepwatch("compare", slow, fast, "--json"))
    assert compared(stepwatch("compare", slow, native, "--json"))["speedup"] == exact["speedup"]
    result = stepwatch("compare", slow / "report.json", fast / "report.json", "--json")
    assert result.returncode == 0
    rough = compared(result)
    assert rough["speedup"] == pytest.approx(exact["speedup"], rel=0.02)
    assert rough["tested"]
    assert rough["low"] is not None
    assert any("as if steps were independent" in note for note in rough["notes"])
    assert part(rough, "phases", "data_wait")["changed"] is None
    assert stepwatch("compare", fast / "report.json", slow).returncode == 1


def test_report_without_a_deviation(stepwatch: Run, slow: Path, fast: Path) -> None:
    path = fast / "report.json"
    document = json.loads(path.read_text())
    document["steps"]["step_ms"]["std"] = None
    path.write_text(json.dumps(document))
    result = stepwatch("compare", path, slow / "report.json", "--json")
    run = compared(result)
    assert (run["tested"], run["low"], run["verdict"]) == (False, None, "slower")
    assert any("No test is possible" in note for note in run["notes"])
    assert result.returncode == 1


def test_too_few_steps(stepwatch: Run, program: Path, slow: Path) -> None:
    stepwatch("run", "-o", "few", "--", program, "steps", "5")
    result = stepwatch("compare", slow, "few", "--json")
    assert result.returncode == 0
    run = compared(result)
    assert (run["verdict"], run["why"]) == ("incomparable", "these data can show nothing")
    assert (run["low"], run["high"], run["regression"]) == (None, None, False)
    assert any("with fewer than 8 nothing can be shown" in note for note in run["notes"])


def test_no_steps(stepwatch: Run, program: Path, slow: Path) -> None:
    stepwatch("run", "-o", "none", "--", program, "names", "one")
    run = compared(stepwatch("compare", slow, "none", "--json"))
    assert (run["verdict"], run["why"]) == ("incomparable", "only one of them has steps")
    assert (run["basis"], run["tested"]) == ("duration", False)
    assert run["step_ms"]["after"] is None
    assert any("has no steps" in note for note in run["notes"])
    assert "not comparable" in stepwatch("compare", slow, "none").stdout
    run = compared(stepwatch("compare", "none", "none", "--json"))
    assert (run["basis"], run["tested"]) == ("duration", False)
    assert run["verdict"] != "incomparable"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_text(stepwatch: Run, slow: Path, fast: Path, width: int) -> None:
    # Relative paths, as people type them.
    text = stepwatch("compare", slow.name, fast.name, "--width", str(width)).stdout
    assert max(len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert not any(line != line.rstrip() for line in text.splitlines())
    ascii_text = stepwatch("compare", slow.name, fast.name, "--ascii").stdout
    assert ascii_text.isascii()
    assert " to " in ascii_text
    assert "…" in stepwatch("compare", slow.name, fast.name, "--unicode").stdout
    coloured = stepwatch("compare", slow.name, fast.name, "--color", "always").stdout
    assert "\x1b[1m" in coloured


def write_profile(path: Path, decode_s: float, load_s: float, file: str = "/src/train.py") -> Path:
    """Write what cProfile would."""
    table: dict[tuple[str, int, str], Any] = {
        (file, 10, "decode"): (8, 8, decode_s, decode_s, {}),
        (file, 20, "load"): (4, 4, load_s, decode_s + load_s, {}),
    }
    path.write_bytes(marshal.dumps(table))
    return path


def test_function_profiles(stepwatch: Run, tmp_path: Path) -> None:
    before = write_profile(tmp_path / "before.stats", 3.0, 1.0)
    after = write_profile(tmp_path / "after.prof", 1.0, 1.0)
    result = stepwatch("compare", before, after, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    run = compared(result)
    assert (run["verdict"], run["speedup"], run["tested"]) == ("faster", 2, False)
    assert [row["name"] for row in run["functions"]] == ["decode", "load"]
    decode = run["functions"][0]
    assert (decode["before_ms"], decode["after_ms"], decode["difference_ms"]) == (3000, 1000, -2000)
    assert decode["calls"] == {"before": 8, "after": 8}
    assert (decode["file"], decode["line"], decode["changed"]) == ("/src/train.py", 10, None)
    assert run["phases"] == []
    assert stepwatch("compare", after, before).returncode == 1
    text = stepwatch("compare", before, after).stdout
    assert "faster by 100 % (no test): 4.00 s in functions before, 2.00 s now" in text
    assert "decode (train.py:10)" in text


def test_small_differences_of_profiles_are_none(stepwatch: Run, tmp_path: Path) -> None:
    before = write_profile(tmp_path / "before.stats", 3.0, 1.0)
    after = write_profile(tmp_path / "after.stats", 3.1, 1.0)
    result = stepwatch("compare", before, after)
    assert result.returncode == 0
    assert "no difference of more than 5.0 % (no test)" in result.stdout
    assert stepwatch("compare", before, after, "--threshold", "1").returncode == 1


def test_runs_and_profiles_do_not_mix(stepwatch: Run, fast: Path, tmp_path: Path) -> None:
    profile = write_profile(tmp_path / "p.stats", 1.0, 1.0)
    for words in ((fast, profile), (profile, fast / "report.json")):
        result = stepwatch("compare", *words)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1
        assert "runs are compared with runs, and profiles with profiles." in result.stderr


def test_other_programs(stepwatch: Run, slow: Path) -> None:
    path = slow / "report.json"
    document = json.loads(path.read_text())
    document["run"]["command"] = "./another --with=options"
    document["sections"] = []
    for phase in document["steps"]["phases"]:
        phase["measured"] = phase["phase"] == "other"
    path.write_text(json.dumps(document))
    result = stepwatch("compare", slow, path, "--json")
    run = compared(result)
    assert result.returncode == 0
    assert (run["verdict"], run["why"]) == ("incomparable", "different programs")
    assert run["speedup"] is None


def test_what_else_differs(stepwatch: Run, fast: Path) -> None:
    path = fast / "report.json"
    document = json.loads(path.read_text())
    document["run"].update(
        host="elsewhere", python="3.1", frameworks={"torch": "9.0"}, exit={"code": 3}
    )
    path.write_text(json.dumps(document))
    other = fast / "other.json"
    document["run"].update(host="here", python="3.2", frameworks={"torch": "9.1"})
    other.write_text(json.dumps(document))
    notes = compared(stepwatch("compare", path, other, "--json"))["notes"]
    assert "Machine: elsewhere before, here now." in notes
    assert "Python: 3.1 before, 3.2 now." in notes
    assert "torch: 9.0 before, 9.1 now." in notes
    assert f"{other} ended with exit code 3." in notes


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "which runs?"),
        (["a"], "'a' with what?"),
        (["a", "b", "--threshold"], "--threshold"),
        (["a", "b", "--threshold", "much"], "--threshold takes a percentage of at least 0"),
        (["a", "b", "--threshold", "-1"], "--threshold takes a percentage of at least 0"),
        (["a", "b", "--threshold", "nan"], "--threshold takes a percentage of at least 0"),
        (["a", "b", "--threshhold", "3"], "--threshold"),
        (["a", "b", "--color", "blue"], "--color takes auto, always or never"),
        (["a", "b", "--width", "20"], "--width"),
        (["a", "b", "--top", "0"], "--top"),
    ],
)
def test_wrong_usage(stepwatch: Run, words: list[str], complaint: str) -> None:
    result = stepwatch("compare", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("nothing", None, "nothing does not exist"),
        ("nothing.json", None, "nothing.json cannot be opened"),
        ("nothing.stats", None, "nothing.stats cannot be opened"),
        ("bad.stepwatch", b"\0" * 4096, "bad.stepwatch"),
        ("empty.json", b"", "empty.json is no report of stepwatch"),
        ("trace.json", b'{"traceEvents": []}', "trace.json is a trace without spans"),
        ("new.json", b'{"schema": "stepwatch.report/7"}', "newer version"),
        ("cut.json", b'{"schema": "stepwatch.report/1", "run": {', "cut.json is damaged"),
        ("bad.stats", b"not marshalled", "bad.stats is not a table of pstats"),
    ],
)
def test_unreadable(
    stepwatch: Run, tmp_path: Path, fast: Path, name: str, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = stepwatch("compare", fast, name)
    assert (result.returncode, result.stdout) == (3, "")
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1


def test_damaged_run(stepwatch: Run, slow: Path, fast: Path) -> None:
    [native] = fast.glob("*.stepwatch")
    whole = native.read_bytes()
    native.write_bytes(whole[: len(whole) * 3 // 4])
    result = stepwatch("compare", slow, fast, "--json")
    assert result.returncode in (0, 3)
    if result.returncode == 0:
        assert any("not complete" in note for note in compared(result)["notes"])


def test_no_room_for_the_answer(stepwatch: Run, fast: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = stepwatch("compare", fast, fast, capture_output=False, stdout=full)
    assert result.returncode == 3
