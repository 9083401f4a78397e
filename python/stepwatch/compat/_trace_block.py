"""A block of a program that is traced because somebody asked for it, now.

It is recorded as any other run is, in a folder of its own that goes away again. Where something is
being recorded already, that recording goes on, and the block is cut out of it.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import stepwatch
from stepwatch.compat._scratch import Scratch
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


_SUMS = ("calls", "self_ns", "total_ns", "bytes", "flops")


class _Own:
    """A recording that a block has begun; blocks of other tasks may outlast that one.

    It ends with the last block that is open, and its files go with the last that is closed.
    """

    def __init__(self, name: str) -> None:
        self._folder = Scratch("stepwatch-trace-")
        out = f"{self._folder.path}/run"
        self._record = stepwatch.record(name, out=out, **_OPTIONS)
        self._runs: list[Run] = []
        self._open = 0
        self._held = 0

    def enter(self) -> Run:
        """Begin it, for one block."""
        run = self._record.__enter__()
        self.join(run)
        return run

    def join(self, run: Run) -> None:
        """Let one more block be a part of it."""
        self._runs.append(run)
        self._open += 1
        self._held += 1

    def leave(self, *error: Any) -> None:
        """End it, if this block was the last."""
        self._open -= 1
        if self._open == 0:
            global _own
            if _own is self:
                _own = None
            self._record.__exit__(*error)

    def let_go(self) -> None:
        """Remove its files, if nobody needs them any more."""
        self._held -= 1
        if self._held == 0:
            for run in self._runs:
                run.close()
            self._folder.remove()


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

            self._block = Block(torch, **self._wanted[0]._operators)
            self._members = list(self._wanted)
            cuda = getattr(torch, "cuda", None)
            self._on_device = bool(cuda and cuda.is_initialized())

    def _close(self) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.close()
            for one in self._members:
                one._add(block.rows)


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
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}
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
        if stepwatch.is_recording():
            # Joining makes the block a section of that name.
            joining = stepwatch.record(self.name)
            _torch.begins(self)
            self._begin_ns = time.monotonic_ns()
            self.run = joining.__enter__()
            self._span = joining
            if _own is not None:
                self._own = _own
                self._own.join(self.run)
                self._recorded = True
            return True
        self._own = own = _Own(self.name)
        self.run = own.enter()
        self._recorded = True
        if not stepwatch.is_recording():
            note_once("recording is switched off (STEPWATCH_ENABLED): nothing is traced")
            self.stop()
            self.close()
            return False
        _own = own
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
            self._own.leave(exc_type, exc, traceback)

    def operators(self) -> list[dict[str, Any]]:
        """Return what torch did in the block, a row for each operator and shape of its inputs."""
        return list(self._rows.values())

    def _add(self, rows: list[dict[str, Any]]) -> None:
        """Add what torch did in a part of the block."""
        for row in rows:
            key = tuple(row[name] for name in ("name", "shapes", "phase", "device"))
            known = self._rows.get(key)
            if known is None:
                self._rows[key] = dict(row)
                continue
            for name in _SUMS:
                known[name] += row[name]

    def export(self, path: str) -> str:
        """Write the block as a trace in Chrome's format; return where it is."""
        if self.run is None:
            raise ValueError("nothing was recorded")
        return self.run.export("chrome", path, window=(self._begin_ns, self._end_ns))

    def close(self) -> None:
        """Let go of the files that the block was recorded in."""
        self.run = None
        own, self._own = self._own, None
        if own is not None:
            own.let_go()
        if self._has_turn:
            self._has_turn = False
            _turn.give()
