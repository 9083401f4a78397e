"""What guides share: names of files, and arguments that were not given."""

from __future__ import annotations

import re

_LONGEST = 120
# Besides letters and digits of any script.
_UNSAFE = re.compile(r"[^\w+=,@.\-]")


def safe(name: str) -> str:
    """Return a name that is one file in one folder, whatever was asked for."""
    text = _UNSAFE.sub("_", name.strip())
    while len(text.encode()) > _LONGEST:
        text = text[:-1]
    if text[:1] in (".", "-"):
        text = "_" + text[1:]
    return text or "_"


class Default(int):
    """A truth value that stands in a signature and was not given by the caller.

    It counts, prints and compares as the truth value that the guide documents.
    """

    def __repr__(self) -> str:
        """Return what the guide says: True or False."""
        return repr(bool(self))


ON = Default(1)
OFF = Default(0)


def given(value: bool | int | None) -> bool | None:
    """Return what the caller said, None when nothing was said."""
    return None if value is None or isinstance(value, Default) else bool(value)
