"""Tables as Arrow streams: read by hand, and by the libraries that are here."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import Table

from .conftest import TABLES, Recorder


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowStream(ctypes.Structure):
    pass


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))),
    ("private_data", ctypes.c_void_p),
]
ArrowStream._fields_ = [
    (
        "get_schema",
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowSchema)),
    ),
    (
        "get_next",
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowArray)),
    ),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(ArrowStream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowStream))),
    ("private_data", ctypes.c_void_p),
]

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype = ctypes.c_void_p
pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def values(schema: Any, array: Any) -> list[Any]:
    """Return the values of one column, as the specification says how to read it."""
    count, form = array.length, schema.format.decode()
    assert array.offset == 0
    assert bool(schema.flags & 2) or array.null_count == 0

    def cells(index: int, kind: Any, length: int) -> Any:
        return ctypes.cast(array.buffers[index], ctypes.POINTER(kind))[:length]

    def bits(index: int) -> list[bool]:
        data = cells(index, ctypes.c_uint8, (count + 7) // 8)
        return [bool(data[i // 8] >> i % 8 & 1) for i in range(count)]

    known = bits(0) if array.buffers[0] else [True] * count
    assert known.count(False) == array.null_count
    if form == "l":
        found = cells(1, ctypes.c_int64, count)
    elif form == "g":
        found = cells(1, ctypes.c_double, count)
    elif form == "b":
        found = bits(1)
    elif form == "u":
        offsets = cells(1, ctypes.c_int32, count + 1)
        data = ctypes.string_at(array.buffers[2], offsets[-1])
        found = [data[a:b].decode() for a, b in zip(offsets, offsets[1:])]
    else:
        assert form == "+l"
        offsets = cells(1, ctypes.c_int32, count + 1)
        items = values(schema.children[0].contents, array.children[0].contents)
        found = [items[a:b] for a, b in zip(offsets, offsets[1:])]
    return [value if is_known else None for value, is_known in zip(found, known)]


def batches(capsule: object) -> Iterator[list[dict[str, Any]]]:
    """Read a stream and release all of it."""
    stream = ArrowStream.from_address(pointer(capsule, b"arrow_array_stream"))
    schema = ArrowSchema()
    assert stream.get_schema(stream, schema) == 0
    assert schema.format == b"+s"
    names = [schema.children[i].contents.name.decode() for i in range(schema.n_children)]
    while True:
        array = ArrowArray()
        assert stream.get_next(stream, array) == 0
        assert not stream.get_last_error(stream)
        if not array.release:
            break
        assert (array.n_children, array.null_count) == (len(names), 0)
        columns = [
            values(schema.children[i].contents, array.children[i].contents)
            for i in range(array.n_children)
        ]
        assert {len(column) for column in columns} == {array.length}
        yield [dict(zip(names, row)) for row in zip(*columns)]
        array.release(array)
        assert not array.release
    schema.release(schema)
    assert not schema.release


def read(table: Table) -> list[dict[str, Any]]:
    return [row for batch in batches(table.__arrow_c_stream__()) for row in batch]


@pytest.mark.parametrize("name", TABLES)
def test_same_rows(record_run: Recorder, name: str) -> None:
    table = getattr(record_run(20, spans=300), name)
    assert read(table) == table.to_list()


def test_batches(record_run: Recorder) -> None:
    table = record_run(0, spans=140_000).spans
    sizes = [len(batch) for batch in batches(table.__arrow_c_stream__())]
    assert sizes == [65_536, 65_536, 140_000 - 2 * 65_536]


def test_unknown_from_the_middle_on(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    """The bitmap of what is known begins with the first row that is not."""
    with stepwatch.record(out=tmp_path / "run", policy="stream") as run:
        for number in range(600):
            if number in (13, 14, 255, 256, 511, 599):
                stepwatch.counter("a", number)
            else:
                with stepwatch.section("around"):
                    stepwatch.counter("a", number)
    rows = read(run.counters)
    assert rows == run.counters.to_list()
    assert [i for i, row in enumerate(rows) if row["section"] is None] == [
        13,
        14,
        255,
        256,
        511,
        599,
    ]


def test_texts_are_utf8(tmp_path: Path, build_dir: Path, no_recording: None) -> None:  # noqa: ARG001
    library = ctypes.CDLL(str(build_dir / "src" / "libstepwatch.so"))
    broken = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ok\xe2\x82z", b"\xc0\x80"]
    with stepwatch.record(out=tmp_path / "run", policy="stream") as run:
        for text in broken:
            library.sw_mark(text)
    rows = read(run.marks)
    assert rows == run.marks.to_list()
    assert [row["text"] for row in rows] == [text.decode("utf-8", "replace") for text in broken]


def test_much_text_makes_smaller_batches(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    with stepwatch.record(out=tmp_path / "run", policy="stream") as run:
        section = stepwatch.section("x" * 60_000)
        for _ in range(3000):
            with section:
                pass
    length = len(run.spans[0]["name"])
    seen = 0
    for batch in batches(run.spans.__arrow_c_stream__()):
        assert len(batch) * length <= (64 << 20) + 256 * length
        seen += len(batch)
    assert seen == 3000


def test_outlives_its_run(record_run: Recorder) -> None:
    run = record_run(20)
    expected = run.spans.to_list()
    capsule = run.spans.__arrow_c_stream__()
    run.close()
    del run
    gc.collect()
    assert [row for batch in batches(capsule) for row in batch] == expected


def test_read_and_released_by_other_threads(record_run: Recorder) -> None:
    """Functions called through ctypes run without the GIL."""
    table = record_run(5, spans=5_000).spans
    expected = table.to_list()
    results: list[bool] = []

    def work() -> None:
        capsule = table.__arrow_c_stream__()
        rows = [row for batch in batches(capsule) for row in batch]
        stream = ArrowStream.from_address(pointer(capsule, b"arrow_array_stream"))
        stream.release(stream)
        results.append(rows == expected and not stream.release)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_unread_streams_are_released(record_run: Recorder) -> None:
    run = record_run(5)
    for name in TABLES:
        table = getattr(run, name)
        table.__arrow_c_stream__()
        table.__arrow_c_stream__(None)
        table.__arrow_c_stream__(requested_schema=table.__arrow_c_schema__())
        with pytest.raises(TypeError):
            table.__arrow_c_stream__(1, 2)


def test_children_may_be_taken_apart(record_run: Recorder) -> None:
    """Whoever takes a child over releases it; the rest is released without it."""
    capsule = record_run(5).sections.__arrow_c_stream__()
    stream = ArrowStream.from_address(pointer(capsule, b"arrow_array_stream"))
    array, child = ArrowArray(), ArrowArray()
    assert stream.get_next(stream, array) == 0
    first = array.children[0].contents
    ctypes.memmove(ctypes.byref(child), ctypes.byref(first), ctypes.sizeof(child))
    ctypes.memset(ctypes.byref(first), 0, ctypes.sizeof(first))
    array.release(array)
    assert child.length == 2
    child.release(child)


# --- Libraries ---


def test_pyarrow(record_run: Recorder) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    run = record_run(20, spans=70_000)
    for name in TABLES:
        table = getattr(run, name)
        read_back = pyarrow.table(table)
        read_back.validate(full=True)
        assert read_back.schema == pyarrow.schema(table)
        assert read_back.to_pylist() == table.to_list()
    reader = pyarrow.RecordBatchReader.from_stream(run.spans)
    assert sum(batch.num_rows for batch in reader) == 70_040


def test_pandas(record_run: Recorder) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("this pandas has no DataFrame.from_arrow")
    run = record_run(20)
    frame = pandas.DataFrame.from_arrow(run.steps)
    assert frame["duration_ns"].sum() == sum(row["duration_ns"] for row in run.steps)


def test_polars(record_run: Recorder) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    run = record_run(20, spans=70_000)
    frame = polars.DataFrame(run.spans)
    assert frame.shape == (70_040, len(run.spans.columns))
    assert frame["duration_ns"].sum() == sum(row["duration_ns"] for row in run.spans)
    for name in TABLES:
        table = getattr(run, name)
        assert polars.DataFrame(table).to_dicts() == table.to_list()


def test_duckdb(record_run: Recorder) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    run = record_run(20, spans=70_000)
    spans = run.spans
    total = sum(row["duration_ns"] for row in spans)
    query = "select count(*), sum(duration_ns) from spans"
    assert duckdb.sql(query).fetchall() == [(70_040, total)]
    assert duckdb.sql(query).fetchall() == [(70_040, total)]
    counts = duckdb.sql("select name, count(*) from spans group by name order by name").fetchall()
    assert counts == [("forward", 20), ("inner", 20), ("one", 70_000)]
    steps = duckdb.from_arrow(run.steps).fetchall()
    assert steps == [tuple(row.values()) for row in run.steps]
