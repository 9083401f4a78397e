"""The five guides as they are, and the blocks of code in them.

Blocks are numbered from 1 in the order of the text: S1-3 is the third block of guide 1.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "guides"
GUIDES = range(5)

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A fenced block: its language ("" for plain text) and its text, without common indentation."""

    language: str
    text: str


def blocks(guide: int) -> list[Block]:
    """Return all blocks of a guide."""
    text = (FOLDER / f"guide{guide}.md").read_text(encoding="utf-8")
    return [
        Block(found["language"], textwrap.dedent(found["text"])) for found in _FENCE.finditer(text)
    ]


def snippet(name: str) -> str:
    """Return the text of a block by its name, "S1-3", exactly as it stands."""
    guide, number = (int(part) for part in name[1:].split("-"))
    return blocks(guide)[number - 1].text


def with_bodies(text: str) -> str:
    """Give ``pass`` to definitions and blocks whose body is a comment alone."""
    lines = text.splitlines()
    out: list[str] = []
    for number, line in enumerate(lines):
        out.append(line)
        if not line.rstrip().endswith(":") or line.lstrip().startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        body = []
        for later in lines[number + 1 :]:
            if later.strip() and len(later) - len(later.lstrip()) <= indent:
                break
            body.append(later)
        if all(not part.strip() or part.lstrip().startswith("#") for part in body):
            out.append(" " * (indent + 4) + "pass")
    return "\n".join(out) + "\n"
