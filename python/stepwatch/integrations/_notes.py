"""Say once what could not be recorded."""

from __future__ import annotations

import os
import sys

_said: set[str] = set()


def note_once(text: str) -> None:
    """Leave a sentence for the report; under no ``stepwatch run`` it goes to stderr."""
    text = " ".join(text.split())
    if text in _said:
        return
    _said.add(text)
    try:
        folder = os.environ.get("STEPWATCH_OUT")
        if os.environ.get("STEPWATCH_RUN_ID") and folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            file = os.open(f"{folder}/notes.txt", flags, 0o600)
            try:
                os.write(file, f"{text}\n".encode("utf-8", "replace"))
            finally:
                os.close(file)
        elif sys.stderr is not None:
            sys.stderr.write(f"stepwatch: {text}\n")
    except (OSError, ValueError):
        pass  # There is nobody to tell.
