"""A block of a program that is traced because somebody asked for it, now.

It is recorded as any other run is, but in memory, which goes away again. Where something is being
recorded already, that recording goes on, and the block is cut out of it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stepwatch
from stepwatch import _core
from stepwatch._record import _FIRST_PID
from stepwatch.compat._scratch import Scratch
from stepwatch.integrations._notes import note_once

if TYPE_CHECKING:
    from types import TracebackType

    from stepwatch import Run

    # name, shapes, phase, device: calls, ns without and with inner ones, bytes, flops
    Totals = dict[tuple[str, str, int, int], list[int]]

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


_PREFIX = "stepwatch-trace-"


class _Own:
    """A recording that a block has begun; blocks of other tasks may outlast that one.

    It lies in memory, for nobody else reads it, ends with the last block that is open, and goes
    with the last that is closed. Only where the program forks meanwhile is there a folder, for what
    its children record.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._mark = os.urandom(8).hex()
        self._folder: Scratch | None = None
        self._run: Run | None = None
        self._runs: list[Run] = []
        self._fd = -1
        self._number = 0
        self._pid = os.getpid()
        self._open = 0
        self._held = 0

    def begin(self) -> bool:
        """Begin it, for one block."""
        out = f"{tempfile.gettempdir()}/{_PREFIX}{self._mark}/run"
        _core._start_brief(name=self._name, out=out, **_OPTIONS)
        made = _core._brief_run()
        if made is None:
            return False
        self._run, self._fd = made
        self._number = _core._recording(self._pid)[1]
        self.join()
        return True

    def join(self) -> None:
        """Let one more block be a part of it."""
        self._open += 1
        self._held += 1

    def before_fork(self) -> None:
        """Make the folder that children of the program record into, with this recording in it."""
        if self._folder is None and self._fd >= 0 and self._pid == os.getpid():
            self._folder = Scratch(_PREFIX, self._mark)
            run = Path(self._folder.path, "run")
            run.mkdir(0o700)
            (run / f"own-{self._pid}.stepwatch").symlink_to(f"/proc/self/fd/{self._fd}")

    def run(self) -> Run:
        """Return what is recorded by now."""
        if self._folder is not None:
            # Children may have come since.
            self._runs.append(stepwatch.open(f"{self._folder.path}/run"))
            return self._runs[-1]
        assert self._run is not None
        self._run._renew()
        return self._run

    def leave(self) -> None:
        """End it, if this block was the last."""
        self._open -= 1
        if self._open == 0:
            global _own
            if _own is self:
                _own = None
            here = self._pid == os.getpid()
            if here and self._number == _core._recording(self._pid)[1]:
                _core.stop()

    def let_go(self) -> None:
        """Remove it, if nobody needs it any more."""
        self._held -= 1
        if self._held > 0 or self._pid != os.getpid():
            return
        for run in (self._run, *self._runs):
            if run is not None:
                run.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._folder is not None:
            self._folder.remove()


def _before_fork() -> None:
    if _own is not None:
        _own.before_fork()


os.register_at_fork(before=_before_fork)

_own: _Own | None = None  # The one that is under way.


class _Operators:
    """torch's profiler, which there is once: open while blocks want it, for all of them.

    Blocks may lie within each other or, in tasks, across each other. So the profiler is opened anew
    whenever one begins or ends, and what it saw belongs to those that were open. Not where a device
    is at work: a profiler that sees no kernel may leave torch blind to all that follow. There a
    block that begins later has no operators of its own.
    """

    def __init__(self) -> None:
        self._wanted: list[TraceBlock] = []
        self._members: list[TraceBlock] = []
        self._block: Any = None
        self._on_device = False

    def begins(self, one: TraceBlock) -> None:
        """Give this block what torch does from now on."""
        torch: Any = sys.modules.get("torch")
        wanted = one._operators
        if torch is None or not (wanted["host"] or wanted["device"]):
            return
        cuda = getattr(torch, "cuda", None)
        in_use = bool(wanted["device"] and cuda and cuda.is_initialized())
        if not wanted["host"] and not in_use:
            note_once("no device is in use here: the trace has no operators")
            return
        if self._block is not None and self._on_device:
            note_once("a block within a traced one has its operators in the outer trace alone")
        else:
            self._close()
        self._wanted.append(one)
        self._open(torch)

    def ends(self, one: TraceBlock) -> None:
        """Have what torch did until now in the recording, and in this block's table."""
        if one not in self._wanted:
            return
        if one in self._members:
            self._close()
        self._wanted.remove(one)
        if self._wanted:
            self._open(sys.modules["torch"])

    def _open(self, torch: Any) -> None:
        if self._block is None:
            from stepwatch.integrations.torch_operators import Block

            # Of a recording of our own nobody reads the table.
            self._block = Block(torch, rows=_own is None, **self._wanted[0]._operators)
            self._members = list(self._wanted)
            cuda = getattr(torch, "cuda", None)
            self._on_device = bool(cuda and cuda.is_initialized())

    def _close(self) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.close()
            for one in self._members:
                one._add(block.totals)


_torch = _Operators()


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
        self._own: _Own | None = None
        self._recorded = False
        self._span: stepwatch.section | stepwatch.record | None = None
        self.totals: Totals = {}  # what torch did, by operator and shapes of its inputs
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
            self.stop()
            self.close()
            raise

    def _start(self) -> bool:
        global _own
        # Below ``stepwatch run`` recording begins with the first that is recorded.
        _core._recording(_FIRST_PID)
        if stepwatch.is_recording():
            # Joining makes the block a section of that name.
            joining = stepwatch.record(self.name)
            _torch.begins(self)
            self._begin_ns = time.monotonic_ns()
            self.run = joining.__enter__()
            self._span = joining
            if _own is not None:
                self._own = _own
                self._own.join()
                self._recorded = True
            return True
        own = _Own(self.name)
        if not own.begin():
            if not stepwatch.is_recording():
                note_once("recording is switched off (STEPWATCH_ENABLED): nothing is traced")
            self.stop()
            self.close()
            return False
        self._own = _own = own
        self._recorded = True
        _torch.begins(self)
        span = stepwatch.section(self.name)
        self._begin_ns = time.monotonic_ns()
        span.__enter__()
        self._span = span
        return True

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
        _torch.ends(self)
        if self._own is not None and self._recorded:
            self._recorded = False
            self._own.leave()

    def _add(self, totals: Totals) -> None:
        """Add what torch did in a part of the block."""
        if not self.totals:
            self.totals = {key: list(values) for key, values in totals.items()}
            return
        for key, values in totals.items():
            known = self.totals.setdefault(key, [0] * len(values))
            known[:] = [one + other for one, other in zip(known, values)]

    def export(self, path: str) -> str:
        """Write the block as a trace in Chrome's format; return where it is."""
        run = self.run if self._own is None else self._own.run()
        if run is None:
            raise ValueError("nothing was recorded")
        return run.export("chrome", path, window=(self._begin_ns, self._end_ns))

    def close(self) -> None:
        """Let go of the files that the block was recorded in."""
        self.run = None
        own, self._own = self._own, None
        if own is not None:
            own.let_go()
        if self._has_turn:
            self._has_turn = False
            _turn.give()
