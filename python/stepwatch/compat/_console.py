"""Print what a guide prints: nobody to print for, or a letter too many, never stops a training."""

from __future__ import annotations

import sys


def say(text: str, end: str = "\n") -> None:
    """Print lines; letters that the output does not know are written as escapes."""
    out = sys.stdout
    if out is None:
        return
    text += end
    try:
        try:
            out.write(text)
        except UnicodeEncodeError:
            encoding = getattr(out, "encoding", None) or "ascii"
            out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        out.flush()
    except (OSError, ValueError):
        pass  # It was closed, or its reader is gone.
