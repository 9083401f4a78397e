"""What adapters of frameworks left in a trace, with names in the place of their numbers."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from .test_format_spec import EVENTS, Trace

COMPILED, WAIT, SETTING, OPERATOR = 12, 13, 14, 15
SPAN, COMPILE, GC, SYNC, XFER, COLLECTIVE = 1, 8, 9, 10, 11, 12
# Which keys of a row are names.
NAMES = {COMPILED: (0, 1, 2), WAIT: (0, 1), SETTING: (0, 1, 2), OPERATOR: (0, 1)}


class Row(NamedTuple):
    keys: tuple[Any, ...]
    values: tuple[int, ...]
    flags: int


class Seen:
    """One trace of a finished process."""

    def __init__(self, path: Path) -> None:
        self.trace = Trace(path.read_bytes())
        self.names, self.facts = self.trace.names()

    def rows(self, table: int) -> list[Row]:
        found = []
        for row in self.trace.rows(table).values():
            keys = tuple(
                self.names.get(key, "") if at in NAMES[table] else key
                for at, key in enumerate(row.key)
            )
            found.append(Row(keys, row.value, row.flags))
        return found

    def settings(self, what: str) -> dict[str, Any]:
        """Return texts and numbers of settings by name."""
        found: dict[str, Any] = {}
        for row in self.rows(SETTING):
            if row.keys[0] == what:
                (number,) = struct.unpack("<d", struct.pack("<Q", row.values[0]))
                found[row.keys[1]] = row.keys[2] or number
        return found

    def records(self, kind: int) -> list[Any]:
        """Return the records of a kind, of all threads."""
        return [
            record
            for thread in self.trace.threads()
            for record in self.trace.records(EVENTS, thread)
            if record.kind == kind
        ]

    def sections(self) -> dict[str, int]:
        """Return calls by name."""
        calls: dict[str, int] = {}
        for thread in self.trace.threads():
            for node in self.trace.nodes(thread, 0).values():
                if node.section:
                    name = self.names[node.section]
                    calls[name] = calls.get(name, 0) + node.calls
        return calls


class Child(NamedTuple):
    """A program that has ended."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def seen(self) -> Seen:
        (path,) = self.folder.glob("*.stepwatch")
        return Seen(path)

    @property
    def answer(self) -> Any:
        """Return what it printed last, as JSON."""
        return json.loads(self.out.splitlines()[-1])


BEGIN = """
import json, os, sys
import stepwatch
RECORDS = os.environ["RECORDS"] == "1"
if RECORDS:
    stepwatch.start(out=os.environ["FOLDER"], quiet=True, policy="stream")
def install(*names):
    if RECORDS:
        import importlib
        for name in names:
            module = importlib.import_module("stepwatch.integrations." + name)
            module.install(sys.modules.get("torch"))
with open(sys.argv[1]) as file:
    program = compile(file.read(), sys.argv[1], "exec")
exec(program, globals())
"""


def run(
    folder: Path, text: str, *, records: bool = True, fails: bool = False, **environment: str
) -> Child:
    """Run a program; ``install("logs", …)`` in it installs adapters when it is recorded."""
    folder.mkdir(exist_ok=True)
    script = folder / "program.py"
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    begin = folder / "begin.py"
    begin.write_text(BEGIN, encoding="utf-8")
    out = folder / ("recorded" if records else "bare")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(begin), str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "RECORDS": str(int(records)), "FOLDER": str(out), **environment},
    )
    assert fails or done.returncode == 0, done.stderr
    return Child(done.returncode, done.stdout, done.stderr, out)
