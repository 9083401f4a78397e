"""A reader of traces in plain Python, written from docs/FORMAT.md and nothing else.

It proves that the page suffices, on files that tests/fuzz/make_corpus.c writes.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.once

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus" / "trace"
PAGE = 4096
DEFS, THREADS, LANE, STACK, NODES, HIST, EVENTS, STEPS, FREE, ROWS = range(1, 11)
CHUNKS = (EVENTS, STEPS)


class Block(NamedTuple):
    kind: int
    flags: int
    size: int
    used: int
    address: int
    sequence: int
    thread: int
    domain: int
    revision: int
    records: int
    payload: bytes
    hot: bool


class Node(NamedTuple):
    section: int
    parent: int
    number: int
    calls: int
    inclusive: int
    child: int
    errors: int
    hist: tuple[int, ...]


class Row(NamedTuple):
    flags: int
    key: tuple[int, ...]
    value: tuple[int, ...]


class Record(NamedTuple):
    kind: int
    flags: int
    id: int
    ticks: int
    end: int
    body: bytes


def blocks_of(data: bytes, file_id: bytes, hot: bool) -> Iterator[Block]:
    """Yield the blocks of a file; pages that are no header are stepped over."""
    at = PAGE
    while at + 128 <= len(data):
        magic, kind, flags, size, used, address, sequence, thread, domain, revision = (
            struct.unpack_from("<IHHIIQQIIQ", data, at)
        )
        if magic != 0x4B4C4253 or kind == 0 or size < PAGE or size % PAGE:
            at += PAGE
            continue
        used = min(used, size - 128, len(data) - at - 128)
        (records,) = struct.unpack_from("<I", data, at + 72)
        if kind <= ROWS and kind != FREE and data[at + 48 : at + 56] == file_id[:8]:
            payload = data[at + 128 : at + min(size, len(data) - at)]
            yield Block(
                kind, flags, size, used, address, sequence, thread, domain, revision, records,
                payload, hot,
            )  # fmt: skip
        at += size


class Trace:
    """The content of a home file and, where it should be read, of its hot file."""

    def __init__(self, home: bytes, hot: bytes | None = None) -> None:
        super_block = home[:PAGE]
        assert super_block[:8] == b"STEPWTCH"
        self.version, endian, _, role = struct.unpack_from("<IIII", super_block, 8)
        assert self.version == 1
        assert endian == 0x01020304
        assert role == 1
        file_id = super_block[24:40]
        (self.state,) = struct.unpack_from("<I", super_block, 40)
        if self.state != 0 or hot is None or hot[24:40] != file_id or hot[20] != 2:
            hot = None
        found = list(blocks_of(hot, file_id, True)) if hot else []
        found += blocks_of(home, file_id, False)
        self.super = hot[:PAGE] if hot else super_block
        self.name = self.super[528:656].split(b"\0")[0].decode()
        self.total = struct.unpack_from("<24Q", self.super, 272)
        self.chunks: dict[tuple[int, int, int], Block] = {}
        self.blocks: dict[int, Block] = {}
        for block in found:
            if block.kind in CHUNKS:
                key = (block.kind, block.thread, block.sequence)
                other = self.chunks.get(key)
                if not other or (block.used, block.flags & 1) > (other.used, other.flags & 1):
                    self.chunks[key] = block
            else:
                other = self.blocks.get(block.address)
                if not other or (block.hot, block.revision) > (other.hot, other.revision):
                    self.blocks[block.address] = block

    def of_kind(self, kind: int) -> list[Block]:
        return sorted((b for b in self.blocks.values() if b.kind == kind), key=lambda b: b.sequence)

    def names(self) -> tuple[dict[int, str], dict[str, str]]:
        """Return names by id, and facts."""
        names: dict[int, str] = {}
        facts: dict[str, str] = {}
        for block in self.of_kind(DEFS):
            at = 0
            while at + 8 <= block.used:
                size, kind = struct.unpack_from("<IH", block.payload, at)
                entry = block.payload[at : at + size]
                if kind == 1:
                    number, _, _, length = struct.unpack_from("<IIII", entry, 8)
                    names.setdefault(number, entry[24 : 24 + length].decode("utf-8", "replace"))
                elif kind == 2:
                    key, value = struct.unpack_from("<II", entry, 8)
                    text = entry[16:].decode()
                    facts[text[:key]] = text[key : key + value]
                at += size
        return names, facts

    def threads(self) -> dict[int, tuple[str, int, int]]:
        """Return name, dropped and overwritten by index."""
        threads = {}
        for block in self.of_kind(THREADS):
            for at in range(0, block.used - 127, 128):
                index, _, incarnations = struct.unpack_from("<III", block.payload, at)
                dropped, overwritten = struct.unpack_from("<QQ", block.payload, at + 40)
                name = block.payload[at + 64 : at + 96].split(b"\0")[0].decode()
                if incarnations:
                    threads[index] = (name, dropped, overwritten)
        return threads

    def nodes(self, thread: int, domain: int) -> dict[int, Node]:
        nodes = {}
        for block in self.of_kind(NODES):
            if (block.thread, block.domain) == (thread, domain):
                for at in range(0, block.used - 319, 320):
                    fields = struct.unpack_from("<IIIHHQQQQQQQQ60I", block.payload, at)
                    section, parent, index, _, _, calls, inclusive, child = fields[:8]
                    nodes[index] = Node(
                        section, parent, index, calls, inclusive, child, fields[11], fields[13:]
                    )
        return nodes

    def at_address(self, address: int, length: int) -> tuple[Block, int]:
        for block in self.blocks.values():
            if block.address + 128 <= address <= block.address + block.size - length:
                return block, address - block.address - 128
        raise LookupError(address)

    def histogram(self, pages: tuple[int, ...]) -> dict[int, int]:
        """Return counts by the lowest value of their bucket."""
        counts = {}
        for octave, page in enumerate(pages[:59]):
            if page:
                block, at = self.at_address(page * 64, 512)
                assert block.kind == HIST
                for bucket, count in enumerate(struct.unpack_from("<64Q", block.payload, at)):
                    low = bucket if octave == 0 else (64 + bucket) << (octave - 1)
                    if count:
                        counts[low] = count
        return counts

    def open_sections(self, thread: int, domain: int) -> list[int]:
        """Return the indexes of the nodes of open sections, outermost first."""
        lane = next(b for b in self.of_kind(LANE) if (b.thread, b.domain) == (thread, domain))
        capacity, stack = struct.unpack_from("<IQ", lane.payload, 12)
        found = []
        for level in range(capacity):
            block, at = self.at_address(stack + level * 32, 32)
            (node,) = struct.unpack_from("<I", block.payload, at + 24)
            if node == 0:
                break
            block, at = self.at_address(node * 64, 320)
            found.append(struct.unpack_from("<I", block.payload, at + 8)[0])
        return found

    def records(self, kind: int, thread: int) -> Iterator[Record]:
        for key in sorted(k for k in self.chunks if k[:2] == (kind, thread)):
            chunk, at, count = self.chunks[key], 0, 0
            while at + 32 <= chunk.used:
                number, units, flags, name, ticks = struct.unpack_from("<BBHIQ", chunk.payload, at)
                body = chunk.payload[at : at + units * 32]
                end = struct.unpack_from("<Q", body, 16)[0] if flags & 1 else ticks
                yield Record(number, flags, name, ticks, end, body)
                at += units * 32
                count += 1
            assert not chunk.flags & 1 or count == chunk.records

    def rebuilt(self, thread: int, domain: int) -> dict[tuple[int, ...], tuple[int, int]]:
        """Return calls and inclusive ticks by path, from SPAN records alone."""
        sums: Counter[tuple[int, ...]] = Counter()
        calls: Counter[tuple[int, ...]] = Counter()
        waiting: list[tuple[int, tuple[int, ...], int, int]] = []  # depth, path, duration, calls
        for record in self.records(EVENTS, thread):
            if record.kind == 1:
                depth, span_domain = struct.unpack_from("<HH", record.body, 28)
                if span_domain == domain:
                    inside = [w for w in waiting if w[0] > depth]
                    waiting = [w for w in waiting if w[0] <= depth]
                    waiting += [(depth, (record.id, *path), *sum_) for _, path, *sum_ in inside]
                    call = 0 if record.flags & 0x10 else 1
                    waiting.append((depth, (record.id,), record.end - record.ticks, call))
        for _, path, time, call in waiting:
            calls[path] += call
            sums[path] += time
        return {path: (calls[path], sums[path]) for path in calls}

    def rows(self, table: int) -> dict[int, Row]:
        """Return the rows of a table by index."""
        rows = {}
        for block in self.of_kind(ROWS):
            for at in range(0, block.used - 63, 64):
                number, flags, index, *rest = struct.unpack_from("<HHI4I5Q", block.payload, at)
                if number == table:
                    rows[index] = Row(flags, tuple(rest[:4]), tuple(rest[4:]))
        return rows


def paths(nodes: dict[int, Node]) -> dict[tuple[int, ...], tuple[int, int]]:
    """Return calls and inclusive ticks of stored nodes by path."""
    by_index: dict[int, tuple[int, ...]] = {0: ()}
    for index in sorted(nodes)[1:]:
        by_index[index] = (*by_index[nodes[index].parent], nodes[index].section)
    return {by_index[n.number]: (n.calls, n.inclusive) for n in nodes.values() if n.inclusive}


def test_closed_trace() -> None:
    trace = Trace((CORPUS / "example").read_bytes())
    names, facts = trace.names()
    threads = trace.threads()
    assert (trace.state, trace.name) == (1, "example")
    assert names == {1: "step", 2: "forward", 3: "layer_*", 4: "loss", 5: "train.py"}
    assert facts == {"host": "gpu-7", "command": "train --epochs 3"}
    assert [threads[i][0] for i in (0, 1)] == ["main", "loader"]
    assert trace.total[0] + sum(t[1] for t in threads.values()) == 6
    assert trace.total[1] + sum(t[2] for t in threads.values()) == 15
    nodes = trace.nodes(0, 0)
    assert [(n.section, n.parent, n.calls, n.errors) for n in nodes.values()] == [
        (0, 0, 0, 0),
        (1, 0, 20, 0),
        (2, 1, 20, 3),
        (3, 2, 60, 0),
    ]
    assert nodes[2].child == nodes[3].inclusive
    assert trace.open_sections(0, 0) == []
    for thread, domain in ((0, 0), (0, 1), (1, 0)):
        assert paths(trace.nodes(thread, domain)) == trace.rebuilt(thread, domain)


def test_histograms() -> None:
    trace = Trace((CORPUS / "example").read_bytes())
    durations = [r.end - r.ticks for r in trace.records(EVENTS, 0) if r.kind == 1 and r.id == 3]
    expected: Counter[int] = Counter()
    for value in durations:
        octave = max(0, value.bit_length() - 1 - 5)
        bucket = (value >> max(0, octave - 1)) & 63
        expected[bucket if octave == 0 else (64 + bucket) << (octave - 1)] += 1
    assert trace.histogram(trace.nodes(0, 0)[3].hist) == expected


def test_looks_of_the_monitor() -> None:
    trace = Trace((CORPUS / "monitored").read_bytes())
    records = list(trace.records(EVENTS, 1))
    names, _ = trace.names()
    looks = [r for r in records if r.kind == 17]
    assert [r.body[30] for r in looks] == [1, 0, 0, 0, 0, 2]
    for look in looks:
        assert look.body[29] == 1
        node, section, start = struct.unpack_from("<IIQ", look.body, 64)
        assert (node, names[section], start) == (1, "epoch", 1000000000)
        assert struct.unpack_from("<Q", look.body, 48) == (1,)
        assert len([r for r in records if r.kind == 15 and r.ticks == look.ticks]) == 2
    values = [struct.unpack_from("<d", r.body, 16)[0] for r in records if r.kind == 15]
    assert values[::2] == [50.0, 70.0, 90.0, 110.0, 130.0, 150.0]


def test_every_kind_of_record() -> None:
    trace = Trace((CORPUS / "example").read_bytes())
    loader = Counter(r.kind for r in trace.records(EVENTS, 1))
    assert loader == {1: 20, **dict.fromkeys((2, 3, *range(5, 18)), 1)}
    steps = list(trace.records(STEPS, 0))
    assert [struct.unpack_from("<Q", s.body, 24)[0] for s in steps] == list(range(20))
    for step in steps:
        assert sum(struct.unpack_from("<20Q", step.body, 96)) == step.end - step.ticks
    sample = next(r for r in trace.records(EVENTS, 1) if r.kind == 7)
    (depth,) = struct.unpack_from("<H", sample.body, 28)
    frames = [struct.unpack_from("<II", sample.body, 32 + 8 * i) for i in range(depth)]
    assert frames == [(1, 10), (2, 20), (3, 30)]


def test_killed_process() -> None:
    data = (CORPUS / "killed_pair").read_bytes()
    assert data[-16:-8] == b"SW__PAIR"
    (split,) = struct.unpack("<Q", data[-8:])
    trace = Trace(data[:split], data[split:-16])
    spans = list(trace.records(EVENTS, 0))
    assert len(spans) == 300
    assert [s.ticks for s in spans] == sorted(s.ticks for s in spans)
    nodes = trace.nodes(0, 0)
    assert [nodes[i].section for i in trace.open_sections(0, 0)] == [1, 2]
    assert nodes[2].calls == 300
    home_only = Trace(data[:split])
    assert len(list(home_only.records(EVENTS, 0))) == 248


def test_stretches_of_a_call() -> None:
    trace = Trace((CORPUS / "sampled").read_bytes())
    found = paths(trace.nodes(1, 0))
    assert found == trace.rebuilt(1, 0)
    assert found[(2,)] == (1, 300 + 301 + 302 + 303)
    assert found[(2, 3)] == (4, 4 * 50)


def test_rows() -> None:
    """The samples of the page's tables: every path from its leaf to its thread."""
    trace = Trace((CORPUS / "sampled").read_bytes())
    names, _ = trace.names()
    threads = trace.threads()
    codes, contexts, stacks = trace.rows(0), trace.rows(4), trace.rows(5)
    assert sorted(stacks) == list(range(7))
    found = {}
    for row in stacks.values():
        running, waiting, in_call = row.value[:3]
        if not running and not waiting:
            continue
        path: list[tuple[str, int]] = []
        at = row
        while True:
            path.insert(0, (names[codes[at.key[1]].key[1]], at.key[2]))
            if at.flags & 1:
                break
            at = stacks[at.key[0]]
        thread, section, phase, _ = contexts[at.key[0]].key
        where = (threads[thread][0], names.get(section), phase)
        found[(where, *path)] = (running, waiting, in_call)
    main = ("main", 3)
    assert found == {
        (("main", "forward", 6), main, ("Net.fit", 12)): (30, 0, 0),
        (("main", "forward", 6), main, ("Net.fit", 12), ("matmul", 0)): (50, 0, 50),
        (("main", None, 0), main, ("Net.fit", 14)): (10, 0, 0),
        (("main", None, 0), main, ("Net.fit", 14), ("Net.fit", 15)): (10, 0, 0),
        (("loader", None, 255), ("load", 57)): (5, 95, 0),
    }
    for number, context in contexts.items():
        below = [v for (where, *_), v in found.items() if where[2] == context.key[2]]
        assert context.value[0] == sum(v[0] for v in below), number
    assert codes[2].flags == 1
    (sampler,) = trace.rows(6).values()
    assert sampler.key[0] == 100
    assert sampler.value == (210, 200, 6, 10, 2500000)


def test_rows_of_training() -> None:
    """One row of each table of training, with the meaning that the page gives its fields."""
    trace = Trace((CORPUS / "trained").read_bytes())
    names, _ = trace.names()
    site, model = (trace.rows(8)[i] for i in (0, 1))
    assert (site.key[0], names[site.key[1]], site.key[2]) == (1, "train.py", 30)
    module = trace.rows(9)[0]
    assert (names[module.key[0]], names[module.key[1]]) == ("forward", "Linear")
    assert trace.rows(8)[module.key[3] - 1] == model
    assert module.flags == 1
    assert module.value == (110, 440, 100, 900, 3)
    assert module.key[0] in {node.section for node in trace.nodes(0, 0).values()}
    loader = trace.rows(10)[0]
    assert (names[loader.key[0]], names[loader.key[1]], *loader.key[2:]) == (
        "train", "Images", 1, 16,
    )  # fmt: skip
    assert loader.value == (1 | 8, 2, 2**64 - 1, 3, 1)
    stages = [
        (names[s.key[0]], s.key[1], s.key[2], names.get(s.key[3])) for s in trace.rows(11).values()
    ]
    assert stages == [
        ("train", 0, 1, "Images"),
        ("train", 0, 2, "RandomCrop"),
        ("train", 2**32 - 1, 8, None),
    ]
    compiled = trace.rows(12)[0]
    assert [names[k] for k in compiled.key[:3]] == ["forward", "shapes differ", "train.py"]
    assert (compiled.flags, compiled.value) == (1, (2, 5000, 1000, 1000, 3000))
    wait = trace.rows(13)[0]
    assert (names[wait.key[0]], wait.key[2], wait.key[3]) == ("Tensor.item", 40, 1)
    setting = trace.rows(14)[0]
    assert [names[k] for k in setting.key[:3]] == ["amp", "dtype", "bfloat16"]
    operator = trace.rows(15)[0]
    assert (names[operator.key[0]], names[operator.key[1]], *operator.key[2:]) == (
        "aten::mm", "[8, 8]", 6, 0,
    )  # fmt: skip


def test_tables_of_the_page_are_those_of_the_header() -> None:
    """Numbers and names of tables, in the page and in records.h."""
    root = Path(__file__).parents[2]
    header = (root / "include" / "stepwatch" / "records.h").read_text(encoding="utf-8")
    body = header.split("#define SW_TABLE_TABLE(X)")[1].split("enum sw_table")[0]
    tables = [(int(n), name) for n, name in re.findall(r"X\((\d+), (\w+), ", body)]
    page = (root / "docs" / "FORMAT.md").read_text(encoding="utf-8")
    section = page.split("\n## Rows\n")[1].split("\n## ")[0]
    assert tables == [(int(n), name) for n, name in re.findall(r"\| (\d+) \| ([A-Z]+) \|", section)]
    stages = header.split("#define SW_STAGE_TABLE(X)")[1].split("enum sw_stage_kind")[0]
    named = re.findall(r"X\((\d+), \w+, \"(\w+)\"", stages)
    flat = " ".join(section.split())
    kinds = flat.split("The kinds of a STAGE: ")[1].split(". Stages may lie")[0]
    assert named == re.findall(r"(\d+)\s(\w+)", kinds)
    flags = dict(re.findall(r"#define SW_RECORD_([A-Z]+)\s*\\?\s*(0x[0-9a-f]+)", header))
    records = page.split("\n## Records\n")[1]
    assert flags
    for name, number in flags.items():
        assert f"| {number} | {name}: " in records
