"""stepwatch export --to chrome and --to kineto: traces that viewers open."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Read = Callable[[Path], Any]

FILE = re.compile(r"[A-Za-z0-9.-]+_(\d+)\.(\d{13})\.pt\.trace\.json")


def export(stepwatch: Run, *words: str | Path) -> None:
    result = stepwatch("export", *words)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def slices(document: Any, name: str | None = None) -> list[Any]:
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    return [event for event in events if name is None or event["name"] == name]


def is_one_sentence(result: subprocess.CompletedProcess[str], code: int) -> None:
    assert result.returncode == code
    assert result.stdout == ""
    assert result.stderr.startswith("stepwatch: ")
    assert len(result.stderr.splitlines()) == 1


# --- chrome ---


def test_chrome(stepwatch: Run, recorded: Path, tmp_path: Path, read_trace: Read) -> None:
    export(stepwatch, recorded, "--to", "chrome", "-o", "trace.json")
    document = read_trace(tmp_path / "trace.json")
    steps = [e for e in slices(document) if e["name"].startswith("ProfilerStep#")]
    assert [e["name"] for e in steps] == [f"ProfilerStep#{i}" for i in range(40)]
    assert [e["args"]["epoch"] for e in steps] == [i // 10 for i in range(40)]
    assert all(e["cat"] == "step" for e in steps)
    for step in steps:
        phases = sum(step["args"]["phases_us"].values())
        assert phases == pytest.approx(step["dur"], abs=0.05)
    for name in ("data", "forward", "layer", "backward"):
        calls = slices(document, name)
        assert len(calls) == 40
        for call, step in zip(calls, steps):
            assert step["tid"] == call["tid"]
            assert step["ts"] <= call["ts"] <= call["ts"] + call["dur"] <= step["ts"] + step["dur"]
    # 20 ms of sleep by the kernel's clock; ours may differ by some parts in a million.
    assert slices(document, "data")[7]["dur"] > 19_990
    assert slices(document, "layer")[0]["dur"] >= 50
    losses = [e for e in document["traceEvents"] if e["ph"] == "C" and e["name"] == "loss"]
    assert [e["args"]["value"] for e in losses] == [1 / (i + 1) for i in range(40)]
    names = {
        (e["name"], e["args"]["name"])
        for e in document["traceEvents"]
        if e["ph"] == "M" and "name" in e["args"]
    }
    assert ("thread_name", "program") in names
    assert ("process_name", "program") in names
    missing = " ".join(document["stepwatch"]["missing"])
    assert "Operators of the framework were not recorded" in missing
    assert "Work of GPUs was not recorded" in missing


def test_stdout(stepwatch: Run, recorded: Path, tmp_path: Path, read_trace: Read) -> None:
    for name in ("chrome", "kineto"):
        result = stepwatch("export", recorded, "--to", name)
        assert (result.returncode, result.stderr) == (0, "")
        (tmp_path / "out.json").write_text(result.stdout)
        assert len(slices(read_trace(tmp_path / "out.json"), "layer")) == 40
        again = stepwatch("export", recorded, "--to", name, "-o", "-")
        assert again.stdout == result.stdout


def test_some_steps(stepwatch: Run, recorded: Path, tmp_path: Path, read_trace: Read) -> None:
    for words, wanted in (("5-7", [5, 6, 7]), ("0", [0]), ("38-1000", [38, 39])):
        export(stepwatch, recorded, "--to", "chrome", "--steps", words, "-o", "trace.json")
        document = read_trace(tmp_path / "trace.json")
        names = [e["name"] for e in slices(document) if e["cat"] == "step"]
        assert names == [f"ProfilerStep#{i}" for i in wanted]
        assert len(slices(document, "layer")) == len(wanted)
        assert document["stepwatch"]["first_step"] == wanted[0]


def test_samples(stepwatch: Run, recorded: Path, tmp_path: Path, read_trace: Read) -> None:
    """Those of C programs have none; which ones there are is looked at elsewhere."""
    export(stepwatch, recorded, "--to", "chrome", "--samples", "-o", "trace.json")
    document = read_trace(tmp_path / "trace.json")
    assert not any(e.get("cat") == "sample" for e in document["traceEvents"])
    result = stepwatch("export", recorded, "--to", "collapsed", "--samples")
    is_one_sentence(result, 2)
    assert "--samples means nothing for the format collapsed" in result.stderr


def test_wrong_steps(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    for words in ("x", "", "-3", "3-", "3-x", "7-5", "1,2", "99999999999999999999999"):
        result = stepwatch("export", recorded, "--to", "chrome", f"--steps={words}", "-o", "t")
        is_one_sentence(result, 2)
        assert "step" in result.stderr
    for name in ("chrome", "kineto"):
        result = stepwatch("export", recorded, "--to", name, "--steps", "40-50", "-o", "t.json")
        is_one_sentence(result, 3)
        assert "there is no step 40" in result.stderr
        assert "0 to 39" in result.stderr
    result = stepwatch("export", recorded, "--to", "json", "--steps", "1")
    is_one_sentence(result, 2)
    assert "--steps means nothing for the format json" in result.stderr
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("t")] == []


def test_runs_without_steps_or_events(stepwatch: Run, program: Path) -> None:
    stepwatch("run", "-o", "named", "--", program, "names", "alone")
    result = stepwatch("export", "named", "--to", "chrome", "--steps", "0")
    is_one_sentence(result, 3)
    assert "holds no steps" in result.stderr
    quiet = ("--set", "events=off", "--set", "monitor_interval_s=0")
    stepwatch("run", "-o", "totals", *quiet, "--", program, "names", "alone")
    for name in ("chrome", "kineto"):
        result = stepwatch("export", "totals", "--to", name)
        is_one_sentence(result, 3)
        assert "holds no single events" in result.stderr


@pytest.mark.parametrize(
    "name",
    ['"\\', "two\nlines", "\x1b[31mred", "</script>", "層" * 400, "{}[]", "a" * 5000, "\u2028"],
)
def test_odd_names(
    stepwatch: Run, program: Path, tmp_path: Path, read_trace: Read, name: str
) -> None:
    stepwatch("run", "-o", "odd", "--", program, "names", name)
    for form in ("chrome", "kineto"):
        export(stepwatch, "odd", "--to", form, "-o", "odd.json")
        (event,) = slices(read_trace(tmp_path / "odd.json"))
        assert event["name"].startswith(name[:100])


def test_bytes_that_are_no_text(
    stepwatch: Run, program: Path, tmp_path: Path, read_trace: Read
) -> None:
    stepwatch("run", "-o", "odd", "--", program, "names", os.fsdecode(b"\xff\xfeab\xed\xa0\x80"))
    export(stepwatch, "odd", "--to", "kineto", "-o", "odd.json")
    (event,) = slices(read_trace(tmp_path / "odd.json"))
    assert event["name"].strip("\ufffd") == "ab"


def test_processes_are_merged(
    stepwatch: Run, program: Path, tmp_path: Path, read_trace: Read
) -> None:
    stepwatch("run", "-o", "forked", "--", program, "fork", "3")
    export(stepwatch, "forked", "--to", "chrome", "-o", "trace.json")
    document = read_trace(tmp_path / "trace.json")
    pids = {
        int(re.findall(r"-(\d+)\.", p.name)[0]) for p in (tmp_path / "forked").glob("*.stepwatch")
    }
    assert len(pids) == 4
    assert {event["pid"] for event in slices(document)} <= pids
    named = {e["pid"] for e in document["traceEvents"] if e["name"] == "process_name"}
    assert len(named) >= 3


def test_a_killed_program(stepwatch: Run, program: Path, tmp_path: Path, read_trace: Read) -> None:
    result = stepwatch("run", "-o", "killed", "--", program, "steps", "3", "raise", "9")
    assert result.returncode == 128 + 9
    export(stepwatch, "killed", "--to", "chrome", "-o", "trace.json")
    document = read_trace(tmp_path / "trace.json")
    assert len(slices(document, "layer")) == 3


# --- kineto ---


def test_kineto(stepwatch: Run, recorded: Path, tmp_path: Path, read_trace: Read) -> None:
    export(stepwatch, recorded, "--to", "kineto", "-o", "logs/")
    export(stepwatch, recorded, "--to", "kineto", "-o", "logs")  # again: the same file
    (file,) = (tmp_path / "logs").iterdir()
    match = FILE.fullmatch(file.name)
    assert match
    document = read_trace(file)
    assert document["schemaVersion"] == 1
    assert document["traceName"] == file.name
    assert document["deviceProperties"] == []
    assert "distributedInfo" not in document
    assert document["baseTimeNanoseconds"] // 10**6 <= int(match[2])
    step = slices(document, "ProfilerStep#3")[0]
    assert step["cat"] == "user_annotation"
    assert step["pid"] == int(match[1])
    ids = [e["args"]["External id"] for e in slices(document)]
    assert len(set(ids)) == len(ids)
    assert slices(document, "forward")[0]["cat"] == "user_annotation"
    # Waiting for data has the name by which tools know it.
    (wait,) = {e["name"] for e in slices(document) if e["cat"] == "cpu_op"}
    assert wait == "enumerate(DataLoader)#data.__next__"
    assert not any(e["cat"] in ("kernel", "gpu_memcpy") for e in slices(document))


def test_windows_have_files_of_their_own(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    for words in ("0-3", "10-13"):
        export(stepwatch, recorded, "--to", "kineto", "--steps", words, "-o", "logs")
    names = sorted(p.name for p in (tmp_path / "logs").iterdir())
    assert len(names) == 2
    assert len({FILE.fullmatch(name)[1] for name in names}) == 1  # type: ignore[index]


def test_a_file_for_each_rank(
    stepwatch: Run, program: Path, tmp_path: Path, read_trace: Read
) -> None:
    both = tmp_path / "both"
    both.mkdir()
    for rank in ("0", "1"):
        place = {"RANK": rank, "WORLD_SIZE": "2", "LOCAL_RANK": rank}
        stepwatch("run", "-o", f"run{rank}", "--", program, "steps", "5", extra=place)
        for file in (tmp_path / f"run{rank}").rglob("*.stepwatch"):
            shutil.copy(file, both)
    export(stepwatch, both, "--to", "kineto", "-o", "logs")
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == 2
    ranks = set()
    for file in files:
        assert FILE.fullmatch(file.name)
        # As tools look for it: with a blank, in a line of the file.
        ranks.add(int(re.findall(r'"rank":\s+(\d+)', file.read_text())[0]))
        document = read_trace(file)
        assert document["distributedInfo"]["world_size"] == 2
        assert len(slices(document, "layer")) == 5
    assert ranks == {0, 1}
    for words in ((), ("-o", "one.json")):
        result = stepwatch("export", both, "--to", "kineto", *words)
        is_one_sentence(result, 2)
        assert "2 ranks" in result.stderr
    export(stepwatch, both, "--to", "chrome", "-o", "all.json")
    assert len(slices(read_trace(tmp_path / "all.json"), "layer")) == 10


# --- places ---


def test_places_that_cannot_be_written(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    for name, target in (
        ("chrome", "no/such/folder/x.json"),
        ("chrome", "folder"),
        ("kineto", "no/such/folder"),
        ("kineto", "file/x"),
        ("kineto", "no/such/x.json"),
    ):
        is_one_sentence(stepwatch("export", recorded, "--to", name, "-o", target), 3)
    assert {p.name for p in tmp_path.iterdir()} <= {"file", "folder", "recorded", "history.db"}
    assert list((tmp_path / "folder").iterdir()) == []
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(stepwatch: Run, recorded: Path) -> None:
    for name in ("chrome", "kineto"):
        is_one_sentence(stepwatch("export", recorded, "--to", name, "-o", "/dev/full"), 3)


def test_a_limit_on_file_size(
    stepwatch_cli: Path, recorded: Path, env: dict[str, str], tmp_path: Path
) -> None:
    """The old file stays, and no half of the new one."""
    (tmp_path / "out.json").write_text("old")
    words = [stepwatch_cli, "export", recorded, "--to", "kineto", "-o", tmp_path / "out.json"]
    result = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *map(str, words)],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    is_one_sentence(result, 3)
    assert (tmp_path / "out.json").read_text() == "old"
    assert not list(tmp_path.glob("out.json?*"))


def test_a_reader_that_leaves(stepwatch_cli: Path, recorded: Path, env: dict[str, str]) -> None:
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [stepwatch_cli, "export", recorded, "--to", "chrome"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=env,
        check=False,
    )
    os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


def test_unreadable_input(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("just text\n" * 1000)
    for path in ("missing", "text"):
        for name in ("chrome", "kineto"):
            is_one_sentence(stepwatch("export", path, "--to", name, "-o", "out"), 3)
    assert not (tmp_path / "out").exists()
