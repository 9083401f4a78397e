"""Every row and every snippet has a test of its name, or a stated reason why it has none."""

from __future__ import annotations

import hashlib
import re

import pytest

from .guides import FOLDER, GUIDES, blocks
from .rows import BLOCKS, HERE, ROWS, SNIPPETS, by_row

pytestmark = pytest.mark.once

WRITTEN = (
    "ffb10256966abe9b",
    "4ca1a84516f48c14",
    "8e4434bc488f7dc0",
    "60a45b3bfc628910",
    "22ec61260d9609ec",
)


def reasons() -> dict[str, str]:
    """Return the rows without a test and why; Python before 3.11 has no reader of TOML."""
    found: dict[str, str] = {}
    for path in sorted((HERE / "untested").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(r'^([A-Z]\d?-\d+) = "(.+)"$', text, re.MULTILINE))
    return found


def test_every_row_and_block_is_tested_or_has_a_reason() -> None:
    spoken_for, why = set(by_row()), set(reasons())
    everything = {*ROWS, *BLOCKS}
    assert everything - spoken_for - why == set()
    assert spoken_for & why == set(), "they have a test and a reason why they have none"
    assert (spoken_for | why) - everything == set()


@pytest.mark.parametrize("guide", GUIDES)
def test_the_guides_are_as_they_were_written(guide: int) -> None:
    """No formatter may touch them: their blocks are to run as they stand."""
    text = (FOLDER / f"guide{guide}.md").read_bytes()
    assert hashlib.sha256(text).hexdigest().startswith(WRITTEN[guide])


@pytest.mark.parametrize("guide", GUIDES)
def test_the_guides_have_these_blocks(guide: int) -> None:
    assert len(blocks(guide)) == SNIPPETS[guide]
