"""A block of a program that is traced because somebody asked for it, now.

It is recorded as any other run is, in a folder of its own that goes away again. Where something is
being recorded already, that recording goes on, and the block is cut out of it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

import stepwatch
from stepwatch.integrations._notes import note_once

if TYPE_CHECKING:
    from types import TracebackType

    from stepwatch import Run

_OPTIONS: dict[str, Any] = {
    "config": "none",
    "policy": "stream",
    "schedule": "always",
    "max_mb": 256,
    "events": True,
    "sampler_hz": 0,
    "monitor_interval_s": 0,
    "operators": False,
    "functions": False,
    "memory": False,
    "io": False,
    "quiet": True,
}


class _Turn:
    """Whose turn it is: torch's profiler and a recording are there once, for one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._blocks = 0

    def take(self) -> bool:
        """Take the turn for one more block; False while another thread has it."""
        with self._lock:
            if self._thread not in (None, threading.get_ident()):
                return False
            self._thread = threading.get_ident()
            self._blocks += 1
            return True

    def give(self) -> None:
        """Give the turn back with the outermost block."""
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                self._thread = None


_turn = _Turn()


class TraceBlock:
    """One block, from ``start`` to ``stop``; afterwards ``export`` writes it, ``close`` lets go."""

    def __init__(
        self,
        name: str,
        *,
        host: bool = True,
        device: bool = True,
        shapes: bool = True,
        memory: bool = True,
    ) -> None:
        """Take the name of the block and what of torch's operators is wanted."""
        self.name = name
        self.run: Run | None = None
        self._operators = {"host": host, "device": device, "shapes": shapes, "memory": memory}
        self._folder: str | None = None
        self._record: stepwatch.record | None = None
        self._span: stepwatch.section | stepwatch.record | None = None
        self._block: Any = None
        self._rows: list[dict[str, Any]] = []
        self._begin_ns = self._end_ns = 0
        self._has_turn = False

    def start(self) -> bool:
        """Begin, or join what is being recorded; False when that cannot be, which is said once.

        The first start of torch's profiler takes a moment, and is not a part of the block.
        """
        self._has_turn = _turn.take()
        if not self._has_turn:
            note_once("another thread traces a block: those beside it are not traced")
            return False
        try:
            return self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> bool:
        if stepwatch.is_recording():
            # Joining makes the block a section of that name.
            self._span = joining = stepwatch.record(self.name)
            self._open()
            self._begin_ns = time.monotonic_ns()
            self.run = joining.__enter__()
            return True
        self._folder = tempfile.mkdtemp(prefix="stepwatch-trace-")
        out = os.path.join(self._folder, "run")  # noqa: PTH118
        self._record = stepwatch.record(self.name, out=out, **_OPTIONS)
        self.run = self._record.__enter__()
        if not stepwatch.is_recording():
            note_once("recording is switched off (STEPWATCH_ENABLED): nothing is traced")
            self.stop()
            self.close()
            return False
        self._open()
        self._span = span = stepwatch.section(self.name)
        self._begin_ns = time.monotonic_ns()
        span.__enter__()
        return True

    def _open(self) -> None:
        """Ask torch for its operators, if the program uses it."""
        torch: Any = sys.modules.get("torch")
        wanted = self._operators
        if torch is None or not (wanted["host"] or wanted["device"]):
            return
        cuda = getattr(torch, "cuda", None)
        if not wanted["host"] and not (wanted["device"] and cuda and cuda.is_initialized()):
            note_once("no device is in use here: the trace has no operators")
            return
        from stepwatch.integrations.torch_operators import Block

        self._block = Block(torch, **wanted)

    def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """End the block; a recording that it joined goes on."""
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(exc_type, exc, traceback)
        self._end_ns = time.monotonic_ns()
        if self._block is not None:
            self._block.close()
            self._rows = self._block.rows
            self._block = None
        record, self._record = self._record, None
        if record is not None:
            record.__exit__(exc_type, exc, traceback)

    def operators(self) -> list[dict[str, Any]]:
        """Return what torch did in the block, a row for each operator and shape of its inputs."""
        return self._rows

    def export(self, path: str) -> str:
        """Write the block as a trace in Chrome's format; return where it is."""
        if self.run is None:
            raise ValueError("nothing was recorded")
        return self.run.export("chrome", path, window=(self._begin_ns, self._end_ns))

    def close(self) -> None:
        """Let go of the files that the block was recorded in."""
        run, self.run = self.run, None
        folder, self._folder = self._folder, None
        if folder is not None:
            if run is not None:
                run.close()
            shutil.rmtree(folder, ignore_errors=True)
        if self._has_turn:
            self._has_turn = False
            _turn.give()
