"""What the tests of guide 0 share: reading what its programs leave."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .conftest import Done

OUT = "ml_profiling_output"


LINE = re.compile(
    r"^(?P<name>\S.*): Total time: (?P<total>\d+\.\d{6})s, Calls: (?P<calls>\d+), "
    r"Avg time: (?P<avg>\d+\.\d{6})s$",
    re.MULTILINE,
)


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def told(done: Done) -> Any:
    """Return what a program said in its last line, as JSON."""
    return json.loads(done.ok().out.splitlines()[-1])


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
