"""stepwatch export: files that other tools read, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def sampled(stepwatch: Run, program: Path, tmp_path: Path) -> Path:
    """Return the directory of a run with 40 + 40 running and 120 waiting samples at 100 Hz."""
    alone = ("--set", "history=off")  # nothing beside it
    result = stepwatch("run", "-o", "sampled", *alone, "--", program, "samples", "40")
    assert result.returncode == 0, result.stderr
    return tmp_path / "sampled"


def export(stepwatch: Run, *words: str | Path) -> str:
    result = stepwatch("export", *words)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    text: str = result.stdout
    return text


# --- collapsed ---


def test_collapsed(stepwatch: Run, sampled: Path) -> None:
    assert export(stepwatch, sampled, "--to", "collapsed") == (
        "Net.fit (/src/train.py) 40\nNet.fit (/src/train.py);a\\x3bb (/src/train.py) 40\n"
    )
    assert export(stepwatch, sampled, "--to=collapsed", "--lines") == (
        "Net.fit (/src/train.py:12) 40\nNet.fit (/src/train.py:12);a\\x3bb (/src/train.py:21) 40\n"
    )
    text = export(
        stepwatch, sampled, "--to=collapsed", "--waiting", "--threads", "--sections", "--lines"
    )
    lines = text.splitlines()
    assert len(lines) == 3
    assert all(re.fullmatch(r"thread [^;]+;section sampled;[^;]+.* \d+", line) for line in lines)
    assert lines[-1].endswith(";idle (/src/train.py:31);(waiting) 120")


# --- speedscope ---


def check_speedscope(document: Any) -> None:
    """Check what the schema of speedscope and its importer demand."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str)
        assert frame["name"]
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame.get("file", ""), str)
        assert isinstance(frame.get("line", 1), int)
        assert frame.get("line", 1) > 0
    assert document["profiles"]
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    for profile in document["profiles"]:
        assert profile["type"] == "sampled"
        assert isinstance(profile["name"], str)
        assert profile["unit"] in {"seconds", "none"}
        assert len(profile["samples"]) == len(profile["weights"])
        for sample in profile["samples"]:
            assert sample
            assert all(isinstance(i, int) and 0 <= i < len(frames) for i in sample)
        assert all(weight >= 0 for weight in profile["weights"])
        length = profile["endValue"] - profile["startValue"]
        assert math.isclose(sum(profile["weights"]), length, rel_tol=1e-12)


def stacks_of(document: Any, profile: int) -> dict[tuple[str, ...], float]:
    names = [frame["name"] for frame in document["shared"]["frames"]]
    chosen = document["profiles"][profile]
    stacks = [tuple(names[i] for i in sample) for sample in chosen["samples"]]
    assert len(set(stacks)) == len(stacks)
    return dict(zip(stacks, chosen["weights"]))


def test_speedscope(stepwatch: Run, sampled: Path) -> None:
    document = json.loads(export(stepwatch, sampled, "--to", "speedscope"))
    check_speedscope(document)
    assert document["name"] == "program"
    assert len(document["profiles"]) == 1
    profile = document["profiles"][0]
    assert profile["unit"] == "seconds"
    assert profile["endValue"] == pytest.approx(0.8)
    assert stacks_of(document, 0) == pytest.approx({("Net.fit",): 0.4, ("Net.fit", "a;b"): 0.4})
    frame = next(f for f in document["shared"]["frames"] if f["name"] == "Net.fit")
    assert (frame["file"], frame["line"]) == ("/src/train.py", 10)


def test_speedscope_with_everything(stepwatch: Run, sampled: Path) -> None:
    options = ("--waiting", "--lines", "--sections")
    document = json.loads(export(stepwatch, sampled, "--to", "speedscope", *options))
    check_speedscope(document)
    stacks = stacks_of(document, 0)
    assert stacks[("section sampled", "Net.fit", "idle", "(waiting)")] == pytest.approx(1.2)
    frame = next(f for f in document["shared"]["frames"] if f["name"] == "Net.fit")
    assert frame["line"] == 12


def test_several_processes(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    """Each process has a profile of its own; collapsed stacks are those of all."""
    both = tmp_path / "both"
    both.mkdir()
    for number in (10, 30):
        stepwatch("run", "-o", f"run{number}", "--", program, "samples", str(number))
        (file,) = (tmp_path / f"run{number}").glob("*.stepwatch")
        shutil.copy(file, both)
    assert export(stepwatch, both, "--to", "collapsed").startswith("Net.fit (/src/train.py) 40\n")
    document = json.loads(export(stepwatch, both, "--to", "speedscope"))
    check_speedscope(document)
    ends = [profile["endValue"] for profile in document["profiles"]]
    assert ends == pytest.approx([0.6, 0.2])  # the busiest first
    assert len({profile["name"] for profile in document["profiles"]}) == 2


# --- json ---


def test_json_is_the_report(stepwatch: Run, sampled: Path) -> None:
    exported = json.loads(export(stepwatch, sampled, "--to", "json"))
    assert exported == json.loads(stepwatch("report", sampled, "--json").stdout)


def test_functions_and_lines_of_the_report(stepwatch: Run, sampled: Path) -> None:
    report = json.loads(export(stepwatch, sampled, "--to", "json"))
    sampler = report["sampler"]
    assert sampler["hz"] == 100
    assert (sampler["looks"], sampler["kept"], sampler["partial"]) == (200, 200, 4)
    assert sampler["given_up"] == 0
    assert sampler["reject_share"] == 0.02
    assert (sampler["running"], sampler["waiting"]) == (80, 120)
    assert sampler["cpu_s"] >= 0
    functions = {row["name"]: row for row in report["functions"]}
    assert set(functions) == {"Net.fit", "a;b", "idle"}
    fit, native, idle = functions["Net.fit"], functions["a;b"], functions["idle"]
    assert report["functions"][0] is idle
    assert (fit["samples"], fit["self_samples"]) == (200, 40)
    assert (fit["file"], fit["line"], fit["source"]) == ("/src/train.py", 10, "sampler")
    assert fit["self_ms"] == pytest.approx(400)
    assert fit["total_ms"] == pytest.approx(2000)
    assert fit["self_share"] == pytest.approx(0.2)
    assert fit["self_low"] == pytest.approx(0.1504, abs=1e-4)
    assert fit["self_high"] == pytest.approx(0.2608, abs=1e-4)
    assert (fit["total_share"], fit["total_high"]) == (1, 1)
    assert fit["running_share"] == 1
    assert idle["running_share"] == 0
    assert native["in_call_samples"] == 40
    for row in report["functions"]:
        (phase,) = row["phases"]
        assert phase["phase"] is None
        assert phase["samples"] == row["samples"]
    lines = {(row["name"], row["line"]): row for row in report["lines"]}
    assert set(lines) == {("Net.fit", 12), ("a;b", 21), ("idle", 31)}
    assert lines["Net.fit", 12]["first_line"] == 10
    assert sum(row["self_samples"] for row in report["lines"]) == 200
    text = stepwatch("report", sampled).stdout
    assert "Where Python was" in text
    assert "train.py:10" in text


def test_a_run_without_a_sampler(stepwatch: Run, recorded: Path) -> None:
    report = json.loads(export(stepwatch, recorded, "--to", "json"))
    for part in ("functions", "lines", "sampler"):
        assert report[part]["recorded"] is False
        assert report[part]["why"]
    for name in ("collapsed", "speedscope"):
        result = stepwatch("export", recorded, "--to", name, "-o", "file")
        assert result.returncode == 3
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
        assert "stepwatch.sample()" in result.stderr
        assert not Path(recorded.parent, "file").exists()


def test_a_sampler_that_saw_nothing(stepwatch: Run, program: Path) -> None:
    stepwatch("run", "-o", "out", "--", program, "samples", "0")
    report = json.loads(export(stepwatch, "out", "--to", "json"))
    assert report["functions"] == report["lines"] == []
    assert report["sampler"]["reject_share"] is None
    result = stepwatch("export", "out", "--to", "collapsed")
    assert result.returncode == 3
    assert len(result.stderr.splitlines()) == 1
    assert "Where Python was" not in stepwatch("report", "out").stdout


def test_unknown_formats_name_those_there_are(stepwatch: Run, sampled: Path) -> None:
    for name in ("Chrome", "Collapsed", "", "pprof"):
        result = stepwatch("export", sampled, "--to", name)
        assert result.returncode == 2
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
        for known in ("chrome", "collapsed", "json", "kineto", "pstats", "speedscope"):
            assert known in result.stderr
    help_text = stepwatch("export", "--help").stdout
    assert re.findall(r"^  (\w+) +\S", help_text.split("Formats:")[1], re.MULTILINE) == re.findall(
        r"\w+", result.stderr.split("there are ")[1].replace(" and", "")
    )


# --- files ---


def test_a_file_is_replaced_whole(stepwatch: Run, sampled: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    target.chmod(0o640)
    with target.open() as old:
        assert export(stepwatch, sampled, "--to", "collapsed", "-o", target) == ""
        assert old.read() == "old"  # who had it open still has the old one
    assert target.read_text().startswith("Net.fit")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.txt", "sampled"]


def test_a_new_file_has_the_usual_mode(stepwatch: Run, sampled: Path, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        export(stepwatch, sampled, "--to", "json", "--out", tmp_path / "new.json")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640


def test_a_link_stays_a_link(stepwatch: Run, sampled: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real").write_text("old")
    (tmp_path / "link").symlink_to("folder/real")
    export(stepwatch, sampled, "--to", "collapsed", "-o", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "real").read_text().startswith("Net.fit")


def test_stdout_and_devices(stepwatch: Run, sampled: Path, tmp_path: Path) -> None:
    expected = export(stepwatch, sampled, "--to", "collapsed")
    assert export(stepwatch, sampled, "--to", "collapsed", "-o", "-") == expected
    assert export(stepwatch, sampled, "--to", "collapsed", "-o", "/dev/null") == ""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        export(stepwatch, sampled, "--to", "collapsed", "-o", pipe)
        assert reader.stdout is not None
        assert reader.stdout.read() == expected


def is_one_sentence(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 3
    assert result.stdout == ""
    assert result.stderr.startswith("stepwatch: ")
    assert len(result.stderr.splitlines()) == 1


def test_places_that_cannot_be_written(stepwatch: Run, sampled: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in ("no/such/folder/x", "folder", "sampled/run.json/x", "x" * 300, ""):
        is_one_sentence(stepwatch("export", sampled, "--to", "collapsed", "-o", target))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "sampled"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(stepwatch: Run, sampled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    is_one_sentence(stepwatch("export", sampled, "--to", "json", "-o", folder / "x"))
    target = tmp_path / "mine"
    target.write_text("old")
    target.chmod(0o444)
    is_one_sentence(stepwatch("export", sampled, "--to", "json", "-o", target))
    assert target.read_text() == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["collapsed", "json", "speedscope"])
def test_a_full_disk(stepwatch: Run, sampled: Path, name: str) -> None:
    is_one_sentence(stepwatch("export", sampled, "--to", name, "-o", "/dev/full"))


def test_a_limit_on_file_size(
    stepwatch_cli: Path, sampled: Path, env: dict[str, str], tmp_path: Path
) -> None:
    """The old file stays, and no half of the new one."""
    target = tmp_path / "out.json"
    target.write_text("old")
    words = [str(stepwatch_cli), "export", str(sampled), "--to", "json", "-o", str(target)]
    result = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *words],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    is_one_sentence(result)
    assert target.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json", "sampled"]


def test_a_reader_that_leaves(stepwatch_cli: Path, sampled: Path, env: dict[str, str]) -> None:
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [stepwatch_cli, "export", sampled, "--to", "json"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=env,
        check=False,
    )
    os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


def test_pstats_takes_no_options_and_no_terminal(
    stepwatch: Run, stepwatch_cli: Path, sampled: Path, env: dict[str, str]
) -> None:
    for option in ("--waiting", "--lines", "--threads", "--sections"):
        result = stepwatch("export", sampled, "--to", "pstats", option)
        assert result.returncode == 2
        assert result.stderr.endswith("means nothing for the format pstats.\n")
    master, slave = os.openpty()
    words = [str(stepwatch_cli), "export", str(sampled), "--to", "pstats"]
    told = subprocess.run(words, stdout=slave, stderr=subprocess.PIPE, env=env, check=False)
    os.close(slave)
    os.close(master)
    assert told.returncode == 2
    assert b"pstats is not for terminals" in told.stderr


def test_unreadable_input(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("just text\n" * 1000)
    for path in ("missing", "text"):
        for name in ("collapsed", "json", "pstats", "speedscope"):
            is_one_sentence(stepwatch("export", path, "--to", name, "-o", "out"))
    assert not (tmp_path / "out").exists()
