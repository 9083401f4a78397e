"""Folders for as long as something is recorded, also when the process is killed meanwhile.

Whoever has such a folder holds a lock on a file in it. What nobody holds was left by a process that
is gone, and is removed by the next one that makes a folder of the kind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_LOCK = ".lock"


class Scratch:
    """A folder of this process; ``remove`` ends it."""

    def __init__(self, prefix: str, name: str | None = None) -> None:
        """Make it, named with ``prefix``, and remove those of the same kind that nobody has.

        ``name`` is what follows the prefix, where that is known before.
        """
        _sweep(prefix)
        # It gets its name once it is locked: nobody may take it for one that was left.
        new = tempfile.mkdtemp(prefix="stepwatch-new-")
        try:
            self._lock = os.open(f"{new}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.path = str(Path(new).with_name(prefix + (name or new.rpartition("-")[2])))
            os.rename(new, self.path)  # noqa: PTH104
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Remove it with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def _sweep(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # Not one of these, or another user's.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # Somebody has it.
        finally:
            os.close(lock)


__all__ = ["Scratch"]
