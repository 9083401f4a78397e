"""Earlier runs of a place: what runs leave there, and what the command shows of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
NOT_ADDED = "stepwatch: the run was not added to the history: "


def runs_of(stepwatch: Run, *arguments: str | Path) -> list[dict[str, Any]]:
    result = stepwatch("history", "--json", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["schema"] == "stepwatch.history/1"
    runs: list[dict[str, Any]] = document["runs"]
    return runs


def is_one_sentence(result: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    assert result.returncode == code
    assert result.stdout == ""
    assert re.fullmatch(r"stepwatch: history: [^\n]*\.\n", result.stderr)
    assert words in result.stderr


def test_two_runs(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    for _ in range(2):
        result = stepwatch("run", "--set", "keep_last=7", "--", program, "steps", "40")
        assert result.returncode == 0
        assert "history" not in result.stderr
    newest, oldest = runs_of(stepwatch)
    assert newest["started_utc"] > oldest["started_utc"]
    assert newest["program"] == str(program.resolve())
    assert newest["arguments_hash"] == oldest["arguments_hash"]
    assert newest["config"] == {"keep_last": "7"}
    assert newest["exit"] == {"code": 0, "signal": None}
    assert newest["complete"] is True
    assert not newest["gone"]
    assert newest["git"] is None
    assert newest["finding"] is None or newest["finding"]["kind"]
    report = json.loads((tmp_path / "runs/profiling" / newest["report"]).read_text())
    assert newest["id"] == report["run"]["id"]
    assert newest["command"] == report["run"]["command"]
    assert newest["duration_s"] == pytest.approx(report["run"]["duration_s"])
    assert newest["steps"]["count"] == 40
    for key in ("mean", "p50", "p99"):
        assert newest["steps"]["step_ms"][key] == pytest.approx(report["steps"]["step_ms"][key])
    assert newest["steps"]["steps_per_s"] == pytest.approx(report["steps"]["steps_per_s"])
    shares = {
        phase["phase"]: phase["share"]
        for phase in report["steps"]["phases"]
        if phase["share"] is not None
    }
    assert newest["steps"]["shares"] == pytest.approx(shares)
    assert newest["overhead_percent"] == pytest.approx(report["overhead"]["percent"])
    ratio = newest["steps"]["steps_per_s"] / oldest["steps"]["steps_per_s"]
    assert newest["previous"] == {
        "id": oldest["id"],
        "directory": oldest["directory"],
        "same_arguments": True,
        "steps_per_s_ratio": pytest.approx(ratio),
    }
    assert oldest["previous"] is None
    assert [run["best"] for run in (newest, oldest)].count(True) == 1
    assert runs_of(stepwatch, "--limit", "1") == [newest]
    assert runs_of(stepwatch, "--program", "nothing like it") == []
    assert len(runs_of(stepwatch, "--program", program.name)) == 2
    # The place as an operand, from elsewhere.
    (tmp_path / "elsewhere").mkdir()
    result = stepwatch(
        "history", "--json", tmp_path / "runs" / "profiling", cwd=tmp_path / "elsewhere"
    )
    assert json.loads(result.stdout)["runs"] == [newest, oldest]


def test_scripts(stepwatch: Run, python_env: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import stepwatch\nfor _ in stepwatch.steps(range(5)):\n    pass\n")
    for words in (
        ("train.py",),
        ("./train.py",),
        ("--", sys.executable, "train.py"),
        ("train.py", "--token", "hunter2"),
        ("train.py", "--token", "another"),
        ("-m", "train"),
    ):
        result = stepwatch("run", *words, extra=python_env)
        assert result.returncode == 0, result.stderr
    module, other_secret, secret, *plain = runs_of(stepwatch)
    assert module["program"] == "train"
    assert {run["program"] for run in (other_secret, secret, *plain)} == {str(script)}
    assert len({run["arguments_hash"] for run in plain}) == 1
    # A secret is no part of what a run is called, and of what makes it another one.
    assert "hunter2" not in (tmp_path / "runs/profiling/history.db").read_bytes().decode("latin1")
    assert secret["arguments_hash"] == other_secret["arguments_hash"]
    assert secret["arguments_hash"] != plain[0]["arguments_hash"]
    assert secret["previous"]["same_arguments"] is False
    assert other_secret["previous"] == {
        "id": secret["id"],
        "directory": secret["directory"],
        "same_arguments": True,
        "steps_per_s_ratio": other_secret["previous"]["steps_per_s_ratio"],
    }
    assert plain[0]["python"] == "{}.{}.{}".format(*sys.version_info[:3])


@pytest.mark.skipif(not shutil.which("git"), reason="git is not here")
def test_commit(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "gc.auto=0")
        command = ["git", *identity, *words]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return result.stdout.strip()

    shutil.copy(program, tmp_path / "program")
    (tmp_path / "notes").write_text("one\n")
    (tmp_path / ".gitignore").write_text("runs\n")
    git("init", "-q")
    stepwatch("run", "--", "./program", "steps", "2")  # before the first commit
    git("add", ".")
    git("commit", "-qm", "first")
    commits = [git("rev-parse", "HEAD")]
    stepwatch("run", "--", "./program", "steps", "2")
    (tmp_path / "notes").write_text("one and two\n")
    stepwatch("run", "--", "./program", "steps", "2")
    git("commit", "-qam", "second")
    git("pack-refs", "--all")
    commits.append(git("rev-parse", "HEAD"))
    stepwatch("run", "--", "./program", "steps", "2")
    git("worktree", "add", "-q", "--detach", "further", commits[0])
    stepwatch("run", "--", "further/program", "steps", "2")
    states = [run["git"] for run in runs_of(stepwatch)]
    assert states == [
        {"commit": commits[0], "dirty": None},
        {"commit": commits[1], "dirty": None},
        {"commit": commits[0], "dirty": True},
        {"commit": commits[0], "dirty": None},
        None,
    ]
    assert f" {commits[0][:9]}+ " in stepwatch("history", "--width", "200").stdout


def test_exits(stepwatch: Run, program: Path) -> None:
    stepwatch("run", "--", program, "steps", "3")
    assert stepwatch("run", "--", program, "steps", "3", "exit", "5").returncode == 5
    assert stepwatch("run", "--", program, "steps", "3", "raise", "9").returncode == 137
    assert stepwatch("run", "--", "sh", "-c", "exit 4").returncode == 4
    nothing, killed, failed, good = runs_of(stepwatch)
    assert good["exit"] == {"code": 0, "signal": None}
    assert failed["exit"] == {"code": 5, "signal": None}
    assert killed["exit"] == {"code": None, "signal": 9}
    assert nothing["exit"] == {"code": 4, "signal": None}
    assert (killed["complete"], nothing["complete"]) == (False, None)
    assert nothing["report"] is None
    assert nothing["steps"]["recorded"] is False
    assert "signal 9" in stepwatch("history").stdout


def test_runs_that_are_not_wanted(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    words = ("--", program, "steps", "2")
    stepwatch("run", "--no-report", *words)
    stepwatch("run", "--set", "history=off", *words)
    stepwatch("run", *words, extra={"STEPWATCH_HISTORY": "no"})
    assert not (tmp_path / "runs/profiling/history.db").exists()
    assert runs_of(stepwatch) == []
    (tmp_path / "stepwatch.toml").write_text("history = false\n")
    stepwatch("run", *words)
    assert runs_of(stepwatch) == []
    stepwatch("run", "--set", "history=on", *words)
    assert len(runs_of(stepwatch)) == 1


def test_where_it_lies(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    stepwatch("run", "-o", "here/there/run", "--", program, "steps", "2")
    assert (tmp_path / "here/there/history.db").stat().st_mode & 0o777 == 0o600
    assert [run["directory"] for run in runs_of(stepwatch, "here/there")] == ["run"]
    # A place that the configuration names is the usual one.
    (tmp_path / "stepwatch.toml").write_text('runs_dir = "here/there"\n')
    assert len(runs_of(stepwatch)) == 1
    result = stepwatch("history", "--json", extra={"STEPWATCH_OUT": "here/there/next/"})
    assert len(json.loads(result.stdout)["runs"]) == 1


def test_empty_places(stepwatch: Run, tmp_path: Path) -> None:
    for _ in range(2):  # without the folder, and with it
        result = stepwatch("history")
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == "There are no runs here yet; 'stepwatch run' makes one.\n"
        assert runs_of(stepwatch) == []
        (tmp_path / "runs/profiling").mkdir(parents=True, exist_ok=True)
    assert list((tmp_path / "runs/profiling").iterdir()) == []


def test_wrong_places(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("hello")
    is_one_sentence(stepwatch("history", "missing"), 3, "No such file")
    is_one_sentence(stepwatch("history", foreign), 3, "holds no runs")
    is_one_sentence(stepwatch("history", "--json", foreign), 3, "holds no runs")
    is_one_sentence(stepwatch("history", foreign / "letter.txt"), 3, "is a file")
    is_one_sentence(stepwatch("history", recorded), 3, "is a run itself")
    is_one_sentence(stepwatch("history", "a", "b"), 2, "one folder at a time")
    is_one_sentence(stepwatch("history", "--limit", "0"), 2, "--limit")
    is_one_sentence(stepwatch("history", "--color", "blue"), 2, "auto, always or never")
    assert [path.name for path in foreign.iterdir()] == ["letter.txt"]


def test_a_foreign_database(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "history.db") as other:
        other.execute("CREATE TABLE visits (url TEXT)")
    other.close()
    before = (tmp_path / "history.db").read_bytes()
    result = stepwatch("run", "-o", "run", "--", program, "steps", "2", "exit", "3")
    assert result.returncode == 3
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith(NOT_ADDED)]
    assert "another program" in sentence
    is_one_sentence(stepwatch("history", "."), 3, "another program")
    is_one_sentence(stepwatch("history", "--rebuild", "."), 3, "another program")
    assert (tmp_path / "history.db").read_bytes() == before


def test_at_once(stepwatch_cli: Path, program: Path, tmp_path: Path, env: dict[str, str]) -> None:
    command = [str(stepwatch_cli), "run", "--", str(program), "steps", "3"]
    processes = [
        subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
        for _ in range(16)
    ]
    for process in processes:
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0
        assert NOT_ADDED not in stderr
    with sqlite3.connect(tmp_path / "runs/profiling/history.db") as database:
        ((count,),) = database.execute("SELECT count(*) FROM runs")
        assert count == 16
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()


def test_damage(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    for _ in range(3):
        stepwatch("run", "--", program, "steps", "3")
    before = runs_of(stepwatch)
    place = tmp_path / "runs/profiling"
    (place / "history.db").write_bytes(b"not a database, and longer than a header" * 200)
    result = stepwatch("run", "--", program, "steps", "3", "exit", "7")
    assert result.returncode == 7
    (sentence,) = [line for line in result.stderr.splitlines() if "damaged" in line]
    (aside,) = place.glob("history.db.damaged-*")
    assert aside.name in sentence
    assert aside.read_bytes().startswith(b"not a database")
    newest, *others = runs_of(stepwatch)
    assert newest["exit"]["code"] == 7
    assert [run["id"] for run in others] == [run["id"] for run in before]
    # The reader repairs it, too, and says so in its own document.
    (place / "history.db").write_bytes(b"x" * 5000)
    document = json.loads(stepwatch("history", "--json").stdout)
    assert len(document["runs"]) == 4
    assert len(document["notes"]) == 1
    assert "was damaged" in document["notes"][0]
    assert len(list(place.glob("history.db.damaged-*"))) == 2
    assert "damaged" not in stepwatch("history").stdout


def test_gone_and_rebuilt(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    stepwatch("run", "-o", "place/a", "--", program, "steps", "3")
    stepwatch("run", "-o", "place/b", "--", program, "steps", "3")
    shutil.rmtree(tmp_path / "place/a")
    assert [run["gone"] for run in runs_of(stepwatch, "place")] == [False, True]
    assert "(gone)" in stepwatch("history", "place").stdout
    report = json.loads((tmp_path / "place/b/report.json").read_text())
    report["findings"] = [{"kind": "loader_workers", "predicted": {"speedup": 1.3}}]
    (tmp_path / "place/b/report.json").write_text(json.dumps(report))
    assert runs_of(stepwatch, "place")[0]["finding"] is None
    newest, oldest = runs_of(stepwatch, "--rebuild", "place")
    assert newest["finding"] == {"kind": "loader_workers", "speedup": 1.3}
    assert oldest["gone"]
    assert "loader_workers 1.30\N{MULTIPLICATION SIGN}" in stepwatch("history", "place").stdout
    # What was deleted with its database is gone for good, the rest comes back.
    (tmp_path / "place/history.db").unlink()
    assert [run["directory"] for run in runs_of(stepwatch, "place")] == ["b"]


def test_runs_without_the_command(
    stepwatch: Run, program: Path, python_env: dict[str, str], tmp_path: Path, build_dir: Path
) -> None:
    """A run that a program recorded by itself is found where it lies, once it has ended."""
    code = (
        "import stepwatch\n"
        "with stepwatch.record('mine'):\n"
        "    for _ in stepwatch.steps(range(5)):\n        pass\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**python_env, "PYTHONPATH": str(build_dir / "python")},
        cwd=tmp_path,
        check=True,
    )
    stepwatch("run", "--", program, "steps", "3")
    supervised, own = runs_of(stepwatch)
    assert own["name"] == "mine"
    assert own["steps"]["count"] == 5
    assert own["exit"] == {"code": None, "signal": None}
    assert own["report"] is None
    assert supervised["name"] == program.name


def test_locked(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    stepwatch("run", "--", program, "steps", "3")
    other = sqlite3.connect(tmp_path / "runs/profiling/history.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    result = stepwatch("run", "--", program, "steps", "3", "exit", "9")
    assert result.returncode == 9
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith(NOT_ADDED)]
    assert "locked by another process" in sentence
    assert result.stderr.splitlines()[-1].startswith(str(tmp_path / "runs/profiling"))
    other.execute("ROLLBACK")
    other.close()
    assert len(runs_of(stepwatch)) == 2  # found when somebody looks


def in_mounts(
    script: str, stepwatch_cli: Path, program: Path, tmp_path: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a shell script in mounts of its own, with $S the command and $P the program."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root: a mount namespace of its own")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    return subprocess.run(
        ["unshare", "-m", "sh", "-ec", script],
        env={**env, "S": str(stepwatch_cli), "P": str(program)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("made", [False, True])
def test_a_folder_that_cannot_be_written(
    stepwatch_cli: Path, program: Path, tmp_path: Path, env: dict[str, str], made: bool
) -> None:
    (tmp_path / "place/run").mkdir(parents=True)
    first = '"$S" run -o place/first -- "$P" steps 3 2>/dev/null\n' if made else ""
    script = f"""{first}mount --bind place place
mount -t tmpfs none place/run
mount -o remount,ro,bind place
code=0
"$S" run -o place/run -- "$P" steps 3 exit 6 || code=$?
test -s place/run/report.json
"$S" history --json place
exit $code
"""
    result = in_mounts(script, stepwatch_cli, program, tmp_path, env)
    assert result.returncode == 6, result.stderr
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith(NOT_ADDED)]
    assert "history.db" in sentence
    document = json.loads(result.stdout)
    assert [run["directory"] for run in document["runs"]] == ["run", "first"][: 1 + made]
    assert len(document["notes"]) == 1


def test_a_full_disk(
    stepwatch_cli: Path, program: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    (tmp_path / "place").mkdir()
    script = """mount -t tmpfs -o size=64k none place
mkdir place/run
mount -t tmpfs none place/run
head -c 65536 /dev/zero > place/filling 2>/dev/null || true
code=0
"$S" run -o place/run -- "$P" steps 3 exit 6 || code=$?
test -s place/run/report.json
"$S" history --json place
exit $code
"""
    result = in_mounts(script, stepwatch_cli, program, tmp_path, env)
    assert result.returncode == 6, result.stderr
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith(NOT_ADDED)]
    assert "space" in sentence
    document = json.loads(result.stdout)
    assert [run["directory"] for run in document["runs"]] == ["run"]
    assert "space" in document["notes"][0]


def columns_of(line: str) -> int:
    return len(re.sub(r"\033\[\d+m", "", line))


@pytest.mark.parametrize("width", [60, 61, 80, 133, 200])
@pytest.mark.parametrize("characters", ["--ascii", "--unicode"])
def test_pages(stepwatch: Run, program: Path, width: int, characters: str) -> None:
    for _ in range(3):
        stepwatch("run", "--name", "a-run-with-a-long-name", "--", program, "steps", "3")
    result = stepwatch("history", "--width", str(width), characters, "--color", "never")
    assert "\033" not in result.stdout
    lines = result.stdout.splitlines()
    assert max(map(columns_of, lines)) <= width
    assert result.stdout.isascii() == (characters == "--ascii")
    assert lines[0].split()[:3] == ["run", "when", "(UTC)"]
    assert sum(line.startswith("a-run") for line in lines) == 3
    assert "plain ratio" in result.stdout
    assert "in 3 runs" in " ".join(result.stdout.split())


def test_colour(stepwatch: Run, program: Path) -> None:
    stepwatch("run", "--", program, "steps", "3")
    assert "\033[1m" in stepwatch("history", "--color", "always").stdout
    for extra in ({}, {"NO_COLOR": "1"}):
        assert "\033" not in stepwatch("history", extra=extra).stdout


def test_limit(stepwatch: Run, program: Path) -> None:
    for _ in range(3):
        stepwatch("run", "--", program, "steps", "3")
    result = stepwatch("history", "--limit", "2")
    assert "2 of 3 runs; --limit shows more." in result.stdout
    assert "of 3 runs" not in stepwatch("history", "--limit", "all").stdout
    document = json.loads(stepwatch("history", "--json", "--limit", "2").stdout)
    assert (document["total"], len(document["runs"])) == (3, 2)
    (trend,) = document["trends"]
    assert trend["runs"] == len(trend["step_ms"]) == 3


def test_without_sqlite(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    """A machine without the library has runs, and sees them."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libsqlite3.so.0").write_text("this is no library\n")
    extra = {"LD_LIBRARY_PATH": str(tmp_path / "lib")}
    result = stepwatch("run", "--", program, "steps", "3", "exit", "2", extra=extra)
    assert result.returncode == 2
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith(NOT_ADDED)]
    assert "libsqlite3-0" in sentence
    result = stepwatch("history", "--json", extra=extra)
    document = json.loads(result.stdout)
    assert [run["exit"]["code"] for run in document["runs"]] == [2]
    assert "libsqlite3-0" in document["notes"][0]
    checks = json.loads(stepwatch("doctor", "--json", extra=extra).stdout)["checks"]
    (check,) = [check for check in checks if check["check"] == "history"]
    assert check["status"] == "warn"
    assert "libsqlite3-0" in check["text"]
