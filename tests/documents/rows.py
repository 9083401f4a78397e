"""The numbers of all rows and snippets, and the tests that speak for them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent

# Rows of each guide; P are promises about cost that hold for all of them.
COUNTS = {"R0": 36, "R1": 120, "R2": 44, "R3": 38, "R4": 32}
PROMISES = 10
SNIPPETS = {0: 5, 1: 18, 2: 6, 3: 12, 4: 5}

ROWS = [f"{guide}-{row:03}" for guide, count in COUNTS.items() for row in range(1, count + 1)]
ROWS += [f"P-{row:02}" for row in range(1, PROMISES + 1)]
BLOCKS = [f"S{guide}-{row}" for guide, count in SNIPPETS.items() for row in range(1, count + 1)]

_NAME = re.compile(r"test_(?:(r\d)_(\d{3})|(p)_(\d{2})|(s\d)_(\d{2}))(?:_|$)")


def by_row() -> dict[str, list[str]]:
    """Return, for each row or snippet, the tests whose name begins with its number."""
    found: dict[str, list[str]] = {}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            match = _NAME.match(node.name)
            if match:
                kind, number = (part for part in match.groups() if part)
                number = str(int(number)) if kind.startswith("s") else number
                found.setdefault(f"{kind.upper()}-{number}", []).append(f"{path.name}::{node.name}")
    return found
