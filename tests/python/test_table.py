"""Tables of a run: sequences of dicts that are read when asked for."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import Run, Table

from .conftest import TABLES, Recorder

PHASES = [
    "other",
    "data_wait",
    "h2d",
    "preprocess",
    "augment",
    "collate",
    "forward",
    "loss",
    "backward",
    "optimizer",
    "zero_grad",
    "communication",
    "sync",
    "logging",
    "gc",
    "compile",
    "validation",
    "checkpoint",
]


def test_rows(record_run: Recorder) -> None:
    run = record_run(20)
    assert [len(getattr(run, name)) for name in TABLES] == [
        2, 20, 20, 1, 40, 0, 1, 0, 0, 0, *[0] * 13,
    ]  # fmt: skip
    for name in TABLES:
        table = getattr(run, name)
        assert table.name == name
        for row in table:
            assert list(row) == table.columns
    first, second = run.sections
    assert (first["path"], first["phase"], first["calls"]) == (["forward"], "forward", 20)
    assert (second["path"], second["phase"]) == (["forward", "inner"], None)
    assert first["total_ms"] == first["total_ns"] / 1e6
    mark = run.marks[0]
    assert (mark["text"], mark["section"]) == ("a <b> mark", None)
    values = [(row["name"], row["value"], row["section"]) for row in run.counters]
    assert values == [("loss", 1.0 / (i + 1), "inner") for i in range(20)]
    spans = run.spans.to_list()
    assert [row["name"] for row in spans[:2]] == ["inner", "forward"]
    assert [row["parent"] for row in spans[:2]] == ["forward", None]
    assert [row["depth"] for row in spans[:2]] == [1, 0]
    assert {row["pid"] for row in spans} == {os.getpid()}
    (thread,) = run.threads
    assert (thread["tid"], thread["steps"], thread["records"]) == (os.getpid(), 20, 61)


def test_phases_of_which_nothing_was_said(tmp_path: Path) -> None:
    """That is not the same as no time. In a process of its own: sections stay."""
    script = """
import stepwatch, sys
with stepwatch.record("r", out=sys.argv[1], quiet=True) as run:
    for _ in stepwatch.steps(range(3)):
        with stepwatch.section("forward", phase="forward"):
            pass
print([(row["forward_ns"] > 0, row["communication_ns"]) for row in run.steps])
"""
    words = [sys.executable, "-c", script, str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == f"{[(True, None)] * 3}\n", done.stderr


def test_phases_sum_to_the_step(record_run: Recorder) -> None:
    run = record_run(20)
    steps = run.steps.to_list()
    assert [row["step"] for row in steps] == list(range(20))
    for row in steps:
        assert sum(row[f"{phase}_ns"] or 0 for phase in PHASES) == row["duration_ns"]
        assert row["forward_ns"] > 0
        assert row["epoch"] is None
        assert row["samples"] is None
        assert (row["unit"], row["incomplete"], row["warmup"]) == ("manual", False, False)
    report = run.report().steps
    counted = steps[report["warmup"] :]
    total = sum(row["duration_ns"] for row in counted)
    assert report["step_ms"]["mean"] == pytest.approx(total / len(counted) / 1e6)
    for phase in report["phases"]:
        known = [row[f"{phase['phase']}_ns"] for row in counted]
        if phase["measured"]:
            assert phase["ms"] == pytest.approx(sum(known) / len(counted) / 1e6, abs=1e-12)
        else:
            assert known == [None] * len(counted)


def test_usage_is_unknown_where_it_was_not_read(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    stepwatch.start(out=tmp_path / "run", step_usage=False)
    stepwatch.step_begin()
    stepwatch.step_end()
    run = stepwatch.stop()
    assert run is not None
    (row,) = run.steps
    for name in ("usage_steps", "cpu_ns", "run_delay_ns", "voluntary", "minor_faults"):
        assert row[name] is None


SLICES = [None, 0, 1, 5, 39, 40, 100, -1, -5, -40, -100]


def test_indexing_is_that_of_a_list(record_run: Recorder) -> None:
    table = record_run(20).spans
    rows = table.to_list()
    assert len(rows) == len(table) == 40
    for start, stop in itertools.product(SLICES, SLICES):
        for step in (None, 1, 3, -1, -7, sys.maxsize, -sys.maxsize):
            assert table[start:stop:step] == rows[start:stop:step], (start, stop, step)
    for index in [*range(40), *range(-1, -41, -1), 7, 7, 3, 20]:
        assert table[index] == rows[index]
    for index in (40, -41, 10**30):
        with pytest.raises(IndexError):
            table[index]
    with pytest.raises(ValueError, match="zero"):
        table[::0]
    anything: Any = table
    for key in ("name", 1.0, None):
        with pytest.raises(TypeError):
            anything[key]
    assert list(reversed(table)) == rows[::-1]
    assert rows[3] in table


def test_repr(record_run: Recorder) -> None:
    run = record_run(20)
    assert repr(run.spans).splitlines()[0] == "<stepwatch.Table 'spans': 40 rows>"
    assert "duration_ns" in repr(run.spans)
    assert run.spans._repr_html_().count("<tr>") == 11
    assert run.samples._repr_html_().count("<tr>") == 1


def test_any_text_comes_back(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    texts = ["", "ä€𐍈", "a\0b", "x" * 70_000, "tab\tline\n"]
    stepwatch.start(out=tmp_path / "run", policy="stream")
    for text in texts:
        stepwatch.mark(text)
        with stepwatch.section(text):
            pass
    run = stepwatch.stop()
    assert run is not None
    marks = [row["text"] for row in run.marks]
    assert [mark == text or text.startswith(mark) for mark, text in zip(marks, texts)] == [True] * 5
    assert [row["name"] for row in run.spans] == marks


def test_bytes_that_are_no_text(tmp_path: Path, build_dir: Path, no_recording: None) -> None:  # noqa: ARG001
    library = ctypes.CDLL(str(build_dir / "src" / "libstepwatch.so"))
    stepwatch.start(out=tmp_path / "run")
    library.sw_mark(b"a\xff\xc3b\xe2\x82")
    run = stepwatch.stop()
    assert run is not None
    assert run.marks[0]["text"] == "a\ufffd\ufffdb\ufffd"


def put_samples(library: ctypes.CDLL) -> None:
    """Record two looks of a sampler: main → work, and a thread of which nothing is known."""
    library.sw_name.restype = ctypes.c_uint32
    library.sw_row_put.restype = ctypes.c_uint64
    library.sw_now.restype = ctypes.c_uint64

    def name(text: bytes) -> int:
        return int(library.sw_name(text, ctypes.c_size_t(len(text))))

    codes = []
    for function in (b"main", b"Model.work"):
        row = ctypes.create_string_buffer(
            struct.pack("<HHI4I5Q", 0, 0, 0, name(b"/x/a.py"), name(function), 10, 0, *[0] * 5), 64
        )
        assert library.sw_row_put(ctypes.c_uint64(0), row)
        codes.append(struct.unpack_from("<I", row, 4)[0])
    peek = ctypes.create_string_buffer(64)
    assert library.sw_peek_thread(os.getpid(), False, peek) == 0
    thread, node = struct.unpack_from("<II", peek)
    head = struct.pack("<BBHIQ", 7, 2, 0, 0, library.sw_now())
    body = struct.pack("<IIBBBBHH", thread, node, 6, ord("R"), 1, 0, 2, 0)
    frames = struct.pack("<4I", codes[1], 12, codes[0], 3)
    library.sw_record_put(ctypes.create_string_buffer(head + body + frames + bytes(16), 64))
    head = struct.pack("<BBHIQ", 7, 1, 0, 0, library.sw_now())
    body = struct.pack("<IIBBBBHH", 0, 0, 255, 0, 0, 1, 0, 0)
    library.sw_record_put(ctypes.create_string_buffer(head + body, 32))


def test_samples(tmp_path: Path, build_dir: Path, no_recording: None) -> None:  # noqa: ARG001
    stepwatch.start(out=tmp_path / "run")
    with stepwatch.section("forward"):
        put_samples(ctypes.CDLL(str(build_dir / "src" / "libstepwatch.so")))
    run = stepwatch.stop()
    assert run is not None
    first, second = run.samples
    assert (first["phase"], first["section"], first["state"]) == ("forward", "forward", "R")
    assert (first["name"], first["file"], first["line"]) == ("Model.work", "/x/a.py", 12)
    assert (first["stack"], first["depth"], first["in_call"]) == ("main;Model.work", 2, True)
    unknown = {key for key, value in second.items() if value is None}
    assert unknown == {"phase", "section", "state", "name", "file", "line", "stack", "step"}
    assert (second["leaf_only"], second["outer_only"]) == (True, False)


def test_samples_know_their_step(tmp_path: Path, build_dir: Path, no_recording: None) -> None:  # noqa: ARG001
    library = ctypes.CDLL(str(build_dir / "src" / "libstepwatch.so"))
    stepwatch.start(out=tmp_path / "run")
    with stepwatch.section("forward"):
        put_samples(library)
    for _ in stepwatch.steps(range(3)):
        with stepwatch.section("forward"):
            put_samples(library)
    with stepwatch.section("forward"):
        put_samples(library)
    rows = [row for row in stepwatch.stop().samples if row["depth"]]
    assert [row["step"] for row in rows] == [None, 0, 1, 2, None]


def test_files_removed_while_iterating(record_run: Recorder) -> None:
    run = record_run(5, spans=50_000)
    assert run.path is not None
    rows = iter(run.spans)
    next(rows)
    shutil.rmtree(run.path)
    # The files are open: what was begun can be ended.
    assert sum(1 for _ in rows) == 50_009


def test_files_cut_while_iterating(record_run: Recorder) -> None:
    run = record_run(5, spans=50_000)
    assert run.path is not None
    rows = iter(run.spans)
    next(rows)
    (file,) = Path(run.path).glob("*.stepwatch")
    os.truncate(file, file.stat().st_size // 2)
    assert sum(1 for _ in rows) < 50_009
    assert run.spans[0]


def test_threads_iterate_one_table(record_run: Recorder) -> None:
    table = record_run(5, spans=20_000).spans
    expected = sum(row["duration_ns"] for row in table)
    sums: list[int] = []

    def walk() -> None:
        sums.append(sum(row["duration_ns"] for row in table))
        assert table[100] == table[100:101][0]

    threads = [threading.Thread(target=walk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [expected] * 4


def test_threads_share_one_iterator(record_run: Recorder) -> None:
    """Each row is given out once; a thread that comes while another is inside is told so."""
    table = record_run(0, spans=20_000).spans
    rows = iter(table)
    seen: list[int] = []
    lock = threading.Lock()

    def walk() -> None:
        mine = []
        while True:
            try:
                mine.append(next(rows)["begin_ns"])
            except StopIteration:
                break
            except ValueError as error:
                assert "another thread" in str(error)  # noqa: PT017
        with lock:
            seen.extend(mine)

    threads = [threading.Thread(target=walk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [row["begin_ns"] for row in table]


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("plain_memory")
def test_memory_stays_small(tmp_path: Path) -> None:
    code = f"""
import gc, os, stepwatch
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
one = stepwatch.section("one")
with stepwatch.record(out={str(tmp_path / "run")!r}, policy="stream", max_mb=-1) as run:
    for _ in range(1_000_000):
        with one: pass
seen = 0
base = peak = None
for seen, row in enumerate(run.spans, 1):
    if seen % 50_000 == 0:
        now = rss()
        base = base or now
        peak = max(peak or 0, now)
assert seen == len(run.spans)
print(seen, peak - base)
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    seen, grown = map(int, result.stdout.split())
    assert seen == 1_000_000
    assert grown < 4 << 20


@pytest.mark.usefixtures("plain_memory")
def test_nothing_leaks(tmp_path: Path) -> None:
    code = f"""
import gc, os, stepwatch
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
path = {str(tmp_path / "run")!r}
with stepwatch.record(out=path) as run:
    for _ in range(10):
        stepwatch.step_begin()
        with stepwatch.section("forward"):
            stepwatch.counter("loss", 1)
        stepwatch.step_end()
def once():
    run = stepwatch.open(path)
    run.info, run.notes, repr(run)
    for table in (run.sections, run.steps, run.counters, run.spans, run.threads):
        table.to_list(), table[-1], table[1:5:2], repr(table), table._batches(), table.columns
        next(iter(table))
        table.__arrow_c_stream__(), table.__arrow_c_schema__()
    report = run.report()
    str(report), report.to_dict()
    try:
        stepwatch.open(path + "x")
    except FileNotFoundError:
        pass
    with stepwatch.open(path) as closed:
        left = iter(closed.spans)
    try:
        next(left)
    except ValueError:
        pass
for _ in range(100):
    once()
gc.collect()
objects, memory, files = len(gc.get_objects()), rss(), len(os.listdir("/proc/self/fd"))
for _ in range(400):
    once()
gc.collect()
print(len(gc.get_objects()) - objects, rss() - memory, len(os.listdir("/proc/self/fd")) - files)
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    objects, memory, files = map(int, result.stdout.split())
    assert objects < 50
    assert memory < 2 << 20
    assert files == 0


@pytest.mark.parametrize("call", ["run.spans.to_list()", "list(run.spans)", "run.spans._batches()"])
def test_an_interrupt_is_heard(tmp_path: Path, call: str) -> None:
    code = f"""
import signal, stepwatch
one = stepwatch.section("one")
with stepwatch.record(out={str(tmp_path / "run")!r}, policy="stream", max_mb=-1) as run:
    for _ in range(600_000):
        with one: pass
run.name
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    {call}
except KeyboardInterrupt:
    print("interrupted")
print(run.spans[0]["name"])
"""
    result = run_python(code)
    assert (result.stdout, result.stderr) == ("interrupted\none\n", "")


def test_tables_keep_their_run(record_run: Recorder) -> None:
    def table() -> Table:
        return record_run(5).steps

    kept = table()
    gc.collect()
    assert len(kept) == 5
    rows = iter(kept)
    del kept
    assert len(list(rows)) == 5


def test_to_pandas_without_pandas(tmp_path: Path) -> None:
    code = f"""
import sys, stepwatch
sys.modules["pandas"] = None
with stepwatch.record(out={str(tmp_path / "run")!r}) as run:
    pass
try:
    run.steps.to_pandas()
except ImportError as error:
    print(error)
"""
    expected = "to_pandas() needs pandas, which is not installed; to_list() does without\n"
    assert run_python(code).stdout == expected


def test_to_pandas(record_run: Recorder) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    run = record_run(20, spans=70_000)
    for name in TABLES:
        table = getattr(run, name)
        frame = table.to_pandas()
        assert list(frame.columns) == table.columns
        assert len(frame) == len(table)
        for column in table.columns:
            known = frame[column].notna()
            expected = [row[column] for row in table]
            assert [value for value, is_known in zip(frame[column], known) if is_known] == [
                value for value in expected if value is not None
            ]
    steps = run.steps.to_pandas()
    assert steps["duration_ns"].dtype == "int64"
    assert steps["data_wait_ns"].dtype == pandas.Int64Dtype()
    assert run.report().to_pandas().shape == (3, len(run.sections.columns))


# --- profiles ---


def recursive(depth: int) -> int:
    if depth == 0:
        return 0
    return recursive(depth - 1) + len("ab")


@pytest.fixture
def profiled_run(tmp_path: Path, no_recording: None) -> Run:  # noqa: ARG001
    """Return a run with exact profiles of recursive(3), called twice."""
    profile = stepwatch.Lines(recursive)
    stepwatch.start(out=str(tmp_path / "profiled"), name="profiled")
    with stepwatch.functions("calls"), profile:
        recursive(3)
        recursive(3)
    run = stepwatch.stop()
    assert run is not None
    return run


def test_functions(profiled_run: Run) -> None:
    rows = profiled_run.functions.to_list()
    assert [row["self_ns"] for row in rows] == sorted(
        (row["self_ns"] for row in rows), reverse=True
    )
    (row,) = [row for row in rows if row["name"] == "recursive"]
    code = recursive.__code__
    assert (row["file"], row["line"]) == (code.co_filename, code.co_firstlineno)
    assert (row["calls"], row["primitive_calls"], row["errors"]) == (8, 2, 0)
    assert row["native"] is False
    assert 0 < row["self_ns"] <= row["total_ns"]
    (native,) = [row for row in rows if row["name"] and "len" in row["name"]]
    assert (native["file"], native["line"], native["native"]) == (None, None, True)
    assert native["calls"] == 6


def test_lines(profiled_run: Run) -> None:
    first = recursive.__code__.co_firstlineno
    rows = profiled_run.lines.to_list()
    assert [(row["line"] - first, row["hits"]) for row in rows] == [(1, 8), (2, 2), (3, 6)]
    assert all(row["name"] == "recursive" and row["first_line"] == first for row in rows)
    assert rows[1]["text"] == "        return 0"
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    for row in rows:
        assert row["per_hit_ns"] == pytest.approx(row["time_ns"] / row["hits"])
    report = profiled_run.report().to_dict()
    told = {row["line"]: row["hits"] for row in report["lines"] if row["source"] == "profile"}
    assert told == {row["line"]: row["hits"] for row in rows}


def test_stacks(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    """Stacks add up to the samples, and to what report.json says of its functions."""
    stepwatch.start(out=str(tmp_path / "sampled"), name="sampled", sampler_hz=500)

    def spin() -> None:
        for _ in range(2000):
            recursive(20)

    run = None
    with stepwatch.section("busy"):
        for _ in range(200):
            spin()
            if len(stepwatch.open(tmp_path / "sampled").samples) > 5:
                break
    run = stepwatch.stop()
    assert run is not None
    rows = run.stacks.to_list()
    assert rows
    counted = sum(row["running"] + row["waiting"] for row in rows)
    assert counted == run.report().to_dict()["sampler"]["kept"]
    for row in rows:
        assert row["stack"].split(";")[-1] == (row["name"] or "?")
        assert row["stack"].count(";") == row["depth"] - 1
        assert row["running_ms"] == pytest.approx(row["running"] * 2)
    assert any(row["section"] == "busy" and "spin" in row["stack"] for row in rows)
    assert {row["pid"] for row in rows} == {os.getpid()}


@pytest.mark.parametrize("name", ["functions", "lines"])
def test_profiles_as_arrow(profiled_run: Run, name: str) -> None:
    pyarrow: Any = pytest.importorskip("pyarrow")
    table = getattr(profiled_run, name)
    read = pyarrow.table(table)
    assert read.column_names == table.columns
    assert read.to_pylist() == table.to_list()
    assert {str(field.type) for field in read.schema} <= {"string", "int64", "double", "bool"}
