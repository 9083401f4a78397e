"""Samples in a trace: rows and records, of killed programs and of children, too."""

from __future__ import annotations

import ctypes
from pathlib import Path

from .sampler_programs import answer, run


class Row(ctypes.Structure):
    _fields_ = (
        ("table", ctypes.c_uint16),
        ("flags", ctypes.c_uint16),
        ("index", ctypes.c_uint32),
        ("key", ctypes.c_uint32 * 4),
        ("value", ctypes.c_uint64 * 5),
    )


class Name(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("length", ctypes.c_uint32))


class Sample(ctypes.Structure):
    """sw_record_sample."""

    _fields_ = (
        ("kind", ctypes.c_uint8),
        ("units", ctypes.c_uint8),
        ("flags", ctypes.c_uint16),
        ("id", ctypes.c_uint32),
        ("ticks", ctypes.c_uint64),
        ("thread", ctypes.c_uint32),
        ("node", ctypes.c_uint32),
        ("phase", ctypes.c_uint8),
        ("state", ctypes.c_uint8),
        ("in_call", ctypes.c_uint8),
        ("leaf_only", ctypes.c_uint8),
        ("depth", ctypes.c_uint16),
        ("domain", ctypes.c_uint16),
    )


class Event(ctypes.Structure):
    _fields_ = (
        ("record", ctypes.POINTER(Sample)),
        ("begin_ns", ctypes.c_uint64),
        ("end_ns", ctypes.c_uint64),
        ("trace", ctypes.c_uint32),
        ("thread", ctypes.c_uint32),
    )


class Filter(ctypes.Structure):
    _fields_ = (
        ("kinds", ctypes.c_uint32),
        ("steps", ctypes.c_bool),
        ("one_thread", ctypes.c_bool),
        ("thread", ctypes.c_uint32),
        ("from_ns", ctypes.c_uint64),
        ("to_ns", ctypes.c_uint64),
    )


CODE, CONTEXT, STACK, SAMPLER = 0, 4, 5, 6


class Trace:
    """A trace file, read with the library."""

    def __init__(self, build: Path, path: Path) -> None:
        self.lib = ctypes.CDLL(str(build / "src" / "libstepwatch.so"))
        self.lib.sw_trace_get_row.restype = ctypes.POINTER(Row)
        self.lib.sw_trace_row_count.restype = ctypes.c_size_t
        self.lib.sw_trace_get_name.restype = ctypes.POINTER(Name)
        self.handle = ctypes.c_void_p()
        assert self.lib.sw_trace_open(ctypes.byref(self.handle), bytes(path), None) == 0

    def rows(self, table: int) -> list[Row]:
        """Return the rows of a table."""
        count = self.lib.sw_trace_row_count(self.handle, table)
        found = []
        for i in range(count):
            row = self.lib.sw_trace_get_row(self.handle, table, ctypes.c_size_t(i))
            assert row, "rows are all there"
            found.append(row.contents)
        return found

    def name(self, number: int) -> str:
        """Return a name of the trace."""
        found = self.lib.sw_trace_get_name(self.handle, number)
        text: bytes = found.contents.text if found else b""
        return text.decode()

    def samples(self) -> list[tuple[Sample, list[tuple[int, int]]]]:
        """Return the SAMPLE records with their frames."""
        cursor = ctypes.c_void_p()
        wanted = Filter(kinds=1 << 7)
        handles = (ctypes.c_void_p * 1)(self.handle)
        opened = self.lib.sw_cursor_open(
            ctypes.byref(cursor), handles, ctypes.c_size_t(1), ctypes.byref(wanted), None
        )
        assert opened == 0
        event = Event()
        found = []
        while self.lib.sw_cursor_next(cursor, ctypes.byref(event)) == 0:
            at = ctypes.addressof(event.record.contents)
            sample = Sample.from_buffer_copy(ctypes.string_at(at, 32))
            frames = (ctypes.c_uint32 * (2 * sample.depth)).from_address(at + 32)
            pairs = [(frames[2 * i], frames[2 * i + 1]) for i in range(sample.depth)]
            found.append((sample, pairs))
        self.lib.sw_cursor_free(cursor)
        return found


def test_samples_in_the_trace(build_dir: Path, tmp_path: Path) -> None:
    """Rows and records say the same as the object; sections, phases and steps are told."""
    stats = answer(
        f"""
        def layer():
            spin(0.1)

        with stepwatch.sample(hz=500) as s:
            spin(0.1)
            stepwatch.start(out={str(tmp_path / "run")!r}, policy="stream")
            for _ in range(3):
                stepwatch.step_begin()
                with stepwatch.section("forward"):
                    layer()
                with stepwatch.section("checkup"):
                    spin(0.05)
                stepwatch.step_end()
            with stepwatch.section("validate"):
                spin(0.1)
            seen = {{}}
            for t in s.stacks():
                if "spin" in names(t):
                    tag = (str(t["section"]), str(t["phase"]))
                    seen[tag] = seen.get(tag, 0) + t["running"] + t["waiting"]
            # Stack and section are read one after the other: a thread that was held up between
            # two sections may show one stray sample.
            tags = sorted(tag for tag, count in seen.items() if count > 2)
            stepwatch._core.stop()
        print(json.dumps({{"tags": tags, **s.stats()}}))
        """
    )
    assert stats["tags"][:3] == [["None", "None"], ["checkup", "other"], ["forward", "forward"]]
    assert stats["tags"][3][0] == "validate"
    (file,) = (tmp_path / "run").glob("*.stepwatch")
    trace = Trace(build_dir, file)
    code, contexts, stacks = trace.rows(CODE), trace.rows(CONTEXT), trace.rows(STACK)
    (sampler,) = trace.rows(SAMPLER)
    by_section: dict[str, int] = {}
    for row in contexts:
        section = trace.name(row.key[1])
        by_section[section] = by_section.get(section, 0) + row.value[0] + row.value[1]
    assert by_section["forward"] > by_section["checkup"] > 0
    assert sum(row.value[0] + row.value[1] for row in stacks) == sum(by_section.values())
    assert sampler.key[0] == 500
    looks, kept, _, given_up, cpu = sampler.value
    assert looks == kept + given_up
    assert sum(by_section.values()) <= kept < stats["kept"], "samples before the start are not here"
    assert cpu > 0

    def path(row: Row) -> list[str]:
        own = trace.name(code[row.key[1]].key[1])
        if row.flags & 1:
            assert row.key[0] < len(contexts)
            return [own]
        assert row.key[0] < row.index, "parents come first"
        return [*path(stacks[row.key[0]]), own]

    paths = {tuple(path(row)) for row in stacks if row.value[0] + row.value[1]}
    assert ("<module>", "layer", "spin") in paths
    samples = trace.samples()
    assert len(samples) == sum(by_section.values())
    phases = {sample.phase for sample, _ in samples}
    assert 6 in phases, "forward"
    assert {sample.state for sample, _ in samples} & {ord("R"), ord("S")}
    leaves = {trace.name(code[frames[0][0]].key[3]) for _, frames in samples}
    assert "spin" in leaves
    outermost = {trace.name(code[frames[-1][0]].key[3]) for _, frames in samples}
    assert "<module>" in outermost


def test_killed_program_keeps_its_samples(build_dir: Path, tmp_path: Path) -> None:
    run(
        f"""
        import os, signal
        stepwatch.start(out={str(tmp_path / "run")!r})
        stepwatch._core.sampler_start(500)
        with stepwatch.section("forward"):
            spin(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        expect=-9,
    )
    (file,) = (tmp_path / "run").glob("*.stepwatch")
    trace = Trace(build_dir, file)
    assert sum(row.value[0] + row.value[1] for row in trace.rows(STACK)) > 10


def test_children_record_their_samples(build_dir: Path, tmp_path: Path) -> None:
    run(
        f"""
        import os
        stepwatch.start(out={str(tmp_path / "run")!r})
        stepwatch._core.sampler_start(500)

        def child_work():
            spin(0.2)

        with stepwatch.section("forward"):
            spin(0.1)
        if os.fork() == 0:
            with stepwatch.section("work"):
                child_work()
            stepwatch.stop()
            os._exit(0)
        assert os.wait()[1] == 0
        spin(0.1)
        """,
        "-W",
        "error",
    )
    files = sorted((tmp_path / "run").glob("*.stepwatch"))
    assert len(files) == 2
    found = []
    for file in files:
        trace = Trace(build_dir, file)
        found.append({trace.name(row.key[1]) for row in trace.rows(CODE)})
        assert len(trace.rows(SAMPLER)) == 1
    assert sorted("child_work" in names for names in found) == [False, True]
