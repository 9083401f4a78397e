"""The recording that code profilers stand on: the program's own, or one for as long as it takes.

The monitor, calls on files and sockets, the stages of loaders and the findings need a recording.
Where the program is being recorded already, that one is used, with what it records. Elsewhere one
is begun in a folder of its own, which all code profilers of the process share, and which is
removed with the last of them.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import suppress

import stepwatch
from stepwatch import _core
from stepwatch.compat._scratch import Scratch
from stepwatch.integrations import _notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwatch import Run

_FIRST_PID = os.getpid()


class Session:
    """A recording, and who uses it."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        """Begin a recording with these options, unless there is one."""
        self.users = 0
        self.pid = os.getpid()
        self.folder: Scratch | None = None
        self.why: str | None = None  # Why nothing is recorded.
        self.options = wanted
        self.own = not _core.is_recording()
        self._last: Run | None = None
        if self.own:
            self._begin()

    def _begin(self) -> None:
        try:
            self.folder = Scratch("stepwatch-code-profiler-")
            stepwatch.start(
                name="code_profiler",
                out=f"{self.folder.path}/run",
                quiet=True,
                report=False,
                history=False,
                max_mb=64,
                **self.options,
            )
            if not _core.is_recording():
                self.why = "recording is switched off (STEPWATCH_ENABLED)"
        except (OSError, RuntimeError, ValueError) as error:
            self.why = f"there is no recording: {error}"
            _notes.note_once(f"the code profiler goes without a recording: {error}")

    def has(self, option: str) -> bool:
        """Tell whether the recording has something that must be asked for when it begins."""
        if not self.alive:
            return False
        if self.own:
            return bool(self.options.get(option))
        return _core.option(option) in ("true", "on", "1")

    @property
    def alive(self) -> bool:
        """Whether something is being recorded in this process."""
        return self.pid == os.getpid() and self.why is None and _core.is_recording()

    @property
    def was_left(self) -> bool:
        """Whether the program's recording, which was to be used, is over."""
        return not self.own and self.pid == os.getpid() and not _core.is_recording()

    def run(self) -> Run | None:
        """Return the run so far, looked at anew; None: there is none."""
        if self.alive:
            _core.io_flush()
            self._last = _core._recording(_FIRST_PID)[0]
        if self._last is not None:
            self._last._renew()
        return self._last

    def document(self) -> dict[str, Any]:
        """Return the report of the run so far, {} where there is none."""
        run = self.run()
        return {} if run is None else run.report().to_dict()

    def end(self) -> None:
        """Stop what was begun here, and remove its files."""
        if not self.own or self.pid != os.getpid():
            return
        if self.why is None and _core.is_recording():
            stepwatch.stop()
        if self._last is not None:
            with suppress(Exception):
                self._last.close()
            self._last = None
        if self.folder is not None:
            self.folder.remove()
            self.folder = None


_current: Session | None = None
_lock = threading.RLock()  # Profilers of several threads may begin at the same moment.


def acquire(wanted: dict[str, Any]) -> Session:
    """Return the recording of this process for one more user."""
    with _lock:
        return _acquire(wanted)


def _acquire(wanted: dict[str, Any]) -> Session:
    global _current
    if _current is None or _current.pid != os.getpid():
        _current = Session(wanted)
    elif _current.own and not _current.alive:
        _current = Session(wanted)  # The program has stopped it, and may have begun another.
    _current.users += 1
    return _current


def release(session: Session) -> None:
    """Give it back; the last one ends it."""
    global _current
    with _lock:
        session.users -= 1
        if session.users <= 0:
            session.end()
            if _current is session:
                _current = None


def _end_all() -> None:
    if _current is not None:
        _current.end()


def _renew_lock() -> None:
    """A child of a fork has no thread that would give the lock back."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
atexit.register(_end_all)
