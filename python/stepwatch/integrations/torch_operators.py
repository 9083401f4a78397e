"""Operator detail on demand: torch's own profiler, open for a few steps.

Never on by default (``stepwatch run --operators``). It is opened at the beginning of a step and
closed at that of another, its events become rows by operator and spans on the timeline, and what
that cost is said. Where it fails, or the program uses it itself, the training goes on without.
"""

from __future__ import annotations

import atexit
import gc
import os
import threading
import time

from stepwatch import _core, _imports
from stepwatch.integrations import _notes, _patch, _steps, _torch_window, _totals
from stepwatch.integrations._torch_events import PHASES, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch.integrations._torch_window import Window

_SCHEDULE = "warmup=5,active=3,repeat=1"
_SETTING = 14  # the table

_COMMAND = "--operators"

_cost = _core.section("stepwatch operators", "other")
_state: _Operators | None = None


def install(torch: Any, who: str = _COMMAND) -> None:
    """Wait for the steps that are asked for, if operators are."""
    wanted = os.environ.get("STEPWATCH_OPERATORS") or _core.option("operators")
    if _state is not None or wanted not in ("1", "true", "on", "yes"):
        return
    schedule = _core.option("schedule")
    open_for(torch, _SCHEDULE if schedule in ("", "always") else schedule, who)


def open_for(torch: Any, schedule: str, who: str = _COMMAND, brief: bool = False) -> None:
    """Open the profiler in the steps of this schedule, and in no others; ``who`` asked for it.

    ``brief``: that it costs little counts for more than the types of inputs.
    """
    global _state
    remove()
    _state = _Operators(torch, schedule, who, brief)
    _steps.watch(_state.step)
    _imports.watch("torch.autograd.profiler", _give_way_to)
    atexit.register(remove)


def remove() -> None:
    """Close the window, and wait for no other."""
    global _state
    if _state is not None:
        _steps.forget(_state.step)
        _state.finish()
        _state = None
        atexit.unregister(remove)


def _give_way_to(module: Any) -> None:
    """Close the window before a profiler of the program's begins, which else would fail."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            if _state is not None:
                _state.give_way()
            return original(*args, **kwargs)

        return method

    for kind in ("profile", "emit_nvtx", "emit_itt"):
        owner = getattr(module, kind, None)
        for name in ("__enter__", "_prepare_trace", "_start_trace"):
            if owner is not None and name in vars(owner):
                _patch.replace(owner, name, make)


class _Operators:
    """The windows of one process, which one thread opens and closes."""

    def __init__(self, torch: Any, schedule: str, who: str, brief: bool) -> None:
        self._torch = torch
        self._brief = brief
        # Below ``stepwatch run`` there are children that do no training.
        self._says_so = who != _COMMAND
        self._who = who
        self._schedule = schedule
        self._thread = 0
        self._window: Window | None = None
        self._seen = False  # that there are steps
        self._over = False
        self._seconds = self._spent = 0.0
        self._rows = _totals.Totals(15)  # OPERATOR
        self._settings: dict[tuple[str, str], int] = {}

    def step(self, number: int) -> int:
        """A step begins: open or close the window; return the number of the next that matters.

        It opens one step ahead, whose events do not count: starting takes a second the first time,
        and a session in which nothing ran has left torch 2.13 blind to kernels ever after. The
        plain profiler needs neither.
        """
        if self._over or self._thread not in (0, threading.get_ident()):
            return 0
        self._seen = True
        active = _core.schedule_action(self._schedule, number) >= 2
        soon = active or (
            not _torch_window.starts_at_once(self._torch, self._brief)
            and _core.schedule_action(self._schedule, number + 1) >= 2
        )
        if self._window is None and not soon:
            return max(number + 1, _core.schedule_next(self._schedule, number) - 1)
        begin = time.perf_counter()
        if self._window is None:
            with _cost:
                self._open()
        elif not soon or (self._window.first is not None and not active):
            with _cost:
                self._close(number)
                if soon:
                    self._open()
        if self._window is not None and active and self._window.first is None:
            self._window.keep_from(number)
        self._spent += time.perf_counter() - begin
        self._setting("overhead_seconds", "", self._spent)
        return 0

    def finish(self) -> None:
        """The program ends, perhaps within a window."""
        if self._window is not None and self._thread == threading.get_ident():
            self._close(max(0, _core.step_number()))
        elif self._window is None and not self._seconds and not self._over and self._seen:
            _notes.note_once(
                f"{self._who} saw no operators: the program ended before the first step that its"
                f" schedule ({self._schedule}) asks for"
            )
        elif not self._seen and self._says_so:
            _notes.note_once(
                f"{self._who} saw no operators: there were no steps; call stepwatch.torch.auto()"
                " before the loop, or put it into stepwatch.steps()"
            )
        self._over = True

    def give_way(self) -> None:
        """The program opens a profiler of its own."""
        if not self._over:
            self._close(max(0, _core.step_number()))
            self._stop_for_good("the program uses torch.profiler itself")

    def _stop_for_good(self, why: str) -> None:
        self._over = True
        _notes.note_once(f"{self._who} has no more operators: {why}")

    def _open(self) -> None:
        try:
            if self._torch._C._autograd._profiler_enabled():
                self._stop_for_good("the program uses torch.profiler itself")
                return
            # Torch warns of every block that it did not see being allocated: not unless asked for.
            memory = _core.option("memory") == "on"
            self._window = _torch_window.open_one(self._torch, memory=memory, brief=self._brief)
            self._thread = threading.get_ident()
        except Exception as error:
            self._stop_for_good(_sentence(error))

    def _close(self, number: int) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        try:
            seen = window.close()
            if seen is not None and window.first is not None:
                _undisturbed(lambda: self._keep(window, seen, number))
        except Exception as error:
            self._stop_for_good(_sentence(error))

    def _keep(self, window: Window, seen: Any, number: int) -> None:
        window.tell_devices()
        totals = _put(window, seen)
        for key, values in totals.items():
            self._rows.add(key, values)
        self._seconds += window.seconds
        first = window.first or 0
        last = max(first, number - 1)
        self._setting("steps", f"{first}-{last}" if last > first else str(first), last - first + 1)
        self._setting("window_seconds", "", self._seconds)
        self._setting("events", "", sum(values[0] for values in totals.values()))

    def _setting(self, name: str, text: str, number: float) -> None:
        key = (name, text)
        handle = self._settings.get(key, 0)
        values = (float(number),)
        made, _ = _core.put_row(handle, _SETTING, 0, ("operators", name, text), values)
        self._settings[key] = made


def _put(window: Window, seen: Any) -> dict[tuple[str, str, int, int], list[int]]:
    """Put what a window saw into the recording; return the totals of operators."""
    if isinstance(seen, list):
        return _core.put_torch_events(seen, window.tid, window.begin, window.end)
    read = Reader(window, seen)
    for thread, spans in read.spans().items():
        _core.put_operators(thread, spans)
    return read.totals()


def _undisturbed(work: Callable[[], None]) -> None:
    """Keep the garbage collector away from many objects that are made, none of them garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        work()
    finally:
        if was_on:
            gc.enable()


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


class Block:
    """Operators of a block of the program, which begins now; it needs no steps.

    A profiler that the program itself begins inside gets what it wants: ours ends there.
    """

    def __init__(
        self,
        torch: Any,
        *,
        host: bool = True,
        device: bool = True,
        shapes: bool = True,
        memory: bool = False,
        rows: bool = True,
    ) -> None:
        """Open the window, or say why there are no operators.

        ``rows``: their totals go into the recording, too.
        """
        self._in_recording = rows
        self._window: Window | None = None
        self._thread = threading.get_ident()
        self._replaced: list[tuple[Any, str, Any]] = []
        self.totals: dict[tuple[str, str, int, int], list[int]] = {}  # what it saw
        try:
            if torch._C._autograd._profiler_enabled():
                _notes.note_once("torch.profiler is running already: the trace has no operators")
                return
            self._window = _torch_window.open_one(
                torch, host=host, device=device, shapes=shapes, memory=memory, brief=True
            )
            self._watch(torch.autograd.profiler.profile)
            self._window.keep_from(0)
        except Exception as error:
            _notes.note_once(f"the trace has no operators: {_sentence(error)}")

    def close(self) -> None:
        """Close the window, and put what it saw into the recording."""
        window, self._window = self._window, None
        for owner, name, original in self._replaced:
            setattr(owner, name, original)
        self._replaced = []
        if window is None:
            return
        try:
            seen = window.close()
            if seen is None:
                return
            if isinstance(seen, list):
                self.totals = _put(window, seen)
            else:
                window.tell_devices()
                _undisturbed(lambda: self._read(window, seen))
            if self._in_recording:
                rows = _totals.Totals(15)
                for key, values in self.totals.items():
                    rows.add(key, values)
        except Exception as error:
            _notes.note_once(f"the trace has no operators: {_sentence(error)}")

    def _read(self, window: Window, seen: Any) -> None:
        self.totals = _put(window, seen)

    def _watch(self, profile: Any) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def method(*args: Any, **kwargs: Any) -> Any:
                if self._thread == threading.get_ident():
                    self.close()
                return original(*args, **kwargs)

            return method

        for name in ("__enter__", "_prepare_trace", "_start_trace"):
            if name in vars(profile):
                original = vars(profile)[name]
                self._replaced.append((profile, name, original))
                setattr(profile, name, make(original))


def row_of(key: tuple[str, str, int, int], values: list[int]) -> dict[str, Any]:
    """Return the totals of an operator as Run.operators has them."""
    name, shapes, phase, device = key
    return {
        "name": name,
        "shapes": shapes or None,
        "phase": PHASES[phase],
        "device": "gpu" if device else "cpu",
        **dict(zip(("calls", "self_ns", "total_ns", "bytes", "flops"), values)),
    }
