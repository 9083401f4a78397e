"""Operator detail on demand: torch's own profiler, open for a few steps.

Never on by default (``stepwatch run --operators``). It is opened at the beginning of a step and
closed at that of another, its events become rows by operator and spans on the timeline, and what
that cost is said. Where it fails, or the program uses it itself, the training goes on without.
"""

from __future__ import annotations

import atexit
import os
import threading
import time

from stepwatch import _core, _imports
from stepwatch.integrations import _notes, _patch, _steps, _totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_SCHEDULE = "warmup=5,active=3,repeat=1"
_SETTING = 14  # the table
_MOST_SPANS = 200_000
_LONGEST_SHAPES = 200
_LONGEST_NAME = 300
_MEMORY = "[memory]"  # what the profiler calls an allocation
# Numbers of phases, as steps have them.
_OTHER, _DATA_WAIT, _FORWARD, _BACKWARD, _OPTIMIZER, _ZERO_GRAD = 0, 1, 6, 8, 9, 10
_PHASES = {
    _OTHER: "other",
    _DATA_WAIT: "data_wait",
    _FORWARD: "forward",
    _BACKWARD: "backward",
    _OPTIMIZER: "optimizer",
    _ZERO_GRAD: "zero_grad",
}
_ACTIVITIES = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3}
# The profiler writes lines of its own to stderr; this says how grave they must be.
_LOG_LEVEL = "KINETO_LOG_LEVEL"

_cost = _core.section("stepwatch operators", "other")
_state: _Operators | None = None


def install(torch: Any) -> None:
    """Wait for the steps that are asked for, if operators are."""
    global _state
    wanted = os.environ.get("STEPWATCH_OPERATORS") or _core.option("operators")
    if _state is not None or wanted not in ("1", "true", "on", "yes"):
        return
    schedule = _core.option("schedule")
    open_for(torch, _SCHEDULE if schedule in ("", "always") else schedule)


def open_for(torch: Any, schedule: str, who: str = "--operators") -> None:
    """Open the profiler in the steps of this schedule, and in no others; ``who`` asked for it."""
    global _state
    remove()
    _state = _Operators(torch, schedule, who)
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

    def __init__(self, torch: Any, schedule: str, who: str) -> None:
        self._torch = torch
        self._who = who
        self._schedule = schedule
        self._thread = 0
        self._window: _Window | None = None
        self._seen = False  # that there are steps
        self._over = False
        self._seconds = self._spent = 0.0
        self._rows = _totals.Totals(15)  # OPERATOR
        self._settings: dict[tuple[str, str], int] = {}

    def step(self, number: int) -> None:
        """A step begins: open or close the window.

        It opens one step ahead, whose events do not count: starting takes a second the first time,
        and a session in which nothing ran has left torch 2.13 blind to kernels ever after.
        """
        if self._over or self._thread not in (0, threading.get_ident()):
            return
        self._seen = True
        active = _core.schedule_action(self._schedule, number) >= 2
        soon = active or _core.schedule_action(self._schedule, number + 1) >= 2
        if self._window is None and not soon:
            return
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

    def finish(self) -> None:
        """The program ends, perhaps within a window."""
        if self._window is not None and self._thread == threading.get_ident():
            self._close(max(0, _core.step_number()))
        elif self._window is None and not self._seconds and not self._over and self._seen:
            _notes.note_once(
                f"{self._who} saw no operators: the program ended before the first step that its"
                f" schedule ({self._schedule}) asks for"
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
            self._window = _Window(self._torch)
            self._thread = threading.get_ident()
        except Exception as error:
            self._stop_for_good(_sentence(error))

    def _close(self, number: int) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        try:
            events = window.close()
            if events is not None and window.first is not None:
                self._keep(window, _Reader(window, events), number)
        except Exception as error:
            self._stop_for_good(_sentence(error))

    def _keep(self, window: _Window, read: _Reader, number: int) -> None:
        for key, values in read.totals().items():
            self._rows.add(key, values)
        for thread, spans in read.spans().items():
            _core.put_operators(thread, spans)
        self._seconds += window.seconds
        first = window.first or 0
        last = max(first, number - 1)
        self._setting("steps", f"{first}-{last}" if last > first else str(first), last - first + 1)
        self._setting("window_seconds", "", self._seconds)
        self._setting("events", "", read.count)

    def _setting(self, name: str, text: str, number: float) -> None:
        key = (name, text)
        handle = self._settings.get(key, 0)
        values = (float(number),)
        made, _ = _core.put_row(handle, _SETTING, 0, ("operators", name, text), values)
        self._settings[key] = made


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
    ) -> None:
        """Open the window, or say why there are no operators."""
        self._window: _Window | None = None
        self._thread = threading.get_ident()
        self._replaced: list[tuple[Any, str, Any]] = []
        self.rows: list[dict[str, Any]] = []  # what it saw, as Run.operators has them
        try:
            if torch._C._autograd._profiler_enabled():
                _notes.note_once("torch.profiler is running already: the trace has no operators")
                return
            self._window = _Window(torch, host=host, device=device, shapes=shapes, memory=memory)
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
            events = window.close()
            if events is None:
                return
            read = _Reader(window, events)
            rows = _totals.Totals(15)
            for key, values in read.totals().items():
                rows.add(key, values)
                self.rows.append(_row(key, values))
            for thread, spans in read.spans().items():
                _core.put_operators(thread, spans)
        except Exception as error:
            _notes.note_once(f"the trace has no operators: {_sentence(error)}")

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


def _row(key: tuple[str, str, int, int], values: list[int]) -> dict[str, Any]:
    name, shapes, phase, device = key
    return {
        "name": name,
        "shapes": shapes or None,
        "phase": _PHASES[phase],
        "device": "gpu" if device else "cpu",
        **dict(zip(("calls", "self_ns", "total_ns", "bytes", "flops"), values)),
    }


class _Window:
    """torch's profiler while it is open, and the clocks at both ends."""

    def __init__(
        self,
        torch: Any,
        *,
        host: bool = True,
        device: bool = True,
        shapes: bool = True,
        memory: bool = False,
    ) -> None:
        self._torch = torch
        self.first: int | None = None  # step that counts
        self.seconds = 0.0
        profiler = torch.autograd.profiler
        cuda = getattr(torch, "cuda", None)
        there = device and cuda is not None and cuda.is_initialized()
        self.device = "cuda" if there else None
        profile = profiler.profile(
            use_cpu=host or not there,
            use_device=self.device,
            record_shapes=shapes,
            profile_memory=memory,
            with_flops=shapes,
            use_kineto=True,
        )
        # Not through the object's own methods, which tell everybody that a profiler is on: compiled
        # functions would be compiled again for it.
        with _Quiet():
            profiler._prepare_profiler(
                profile.config(create_trace_id=True), profile.kineto_activities
            )
            profiler._enable_profiler(profile.config(), profile.kineto_activities)
        self._disable = profiler._disable_profiler
        self.begin = self.end = _clocks()

    def keep_from(self, number: int) -> None:
        """From here on what is seen counts."""
        self.first = number
        self.begin = self.end = _clocks()

    def close(self) -> list[Any] | None:
        """Close it, and return its events; none where it was closed by somebody else."""
        if self.device is not None:
            # What was launched in the window belongs to it.
            self._torch._C._cuda_synchronize()
        self.end = _clocks()
        self.seconds = (self.end[1] - self.begin[1]) / 1e9
        with _Quiet():
            result = self._disable()
        return None if result is None else list(result.events())

    def ticks(self, ns: int) -> int:
        """Convert the profiler's time, which is that of the system clock, to ticks."""
        (ticks, since), (later, until) = self.begin, self.end
        return ticks + (ns - since) * (later - ticks) // max(1, until - since)


def _clocks() -> tuple[int, int]:
    """Read our clock and the system's at one moment, the best of a few."""
    best: tuple[int, int, int] | None = None
    for _ in range(5):
        before = _core.now()
        ns = time.time_ns()
        after = _core.now()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, ns)
    assert best is not None
    return best[1:]


class _Quiet:
    """While the profiler starts it reads from the environment what it may say."""

    def __enter__(self) -> None:
        self._ours = _LOG_LEVEL not in os.environ
        if self._ours:
            os.environ[_LOG_LEVEL] = "99"

    def __exit__(self, *_: object) -> None:
        if self._ours:
            os.environ.pop(_LOG_LEVEL, None)


class _Operator:
    """One call of an operator, or one piece of a device's work."""

    __slots__ = (
        "activity",
        "allocated",
        "begin",
        "depth",
        "end",
        "event",
        "inner",
        "name",
        "phase",
        "track",
    )

    def __init__(self, event: Any, name: str, begin: int, end: int, track: str) -> None:
        self.event = event
        self.name = name
        self.begin = begin
        self.end = end
        self.track = track
        self.activity = 0
        self.allocated = 0
        self.inner = 0
        self.depth = 0
        self.phase = _OTHER


class _Reader:
    """What the events of a window say: nesting, self time, phase."""

    def __init__(self, window: _Window, events: Iterable[Any]) -> None:
        self._window = window
        self._host: dict[str, list[_Operator]] = {}
        self._device: list[_Operator] = []
        self._memory: list[tuple[int, int, str, str]] = []  # moment, bytes, device, track
        self._hosts: dict[Any, bool] = {}
        self.count = 0
        for event in events:
            self._take(event)
        for track in self._host.values():
            self._nest(track)
        self._link()
        self._allocate()

    def _take(self, event: Any) -> None:
        begin = event.start_ns()
        name = event.name()[:_LONGEST_NAME]
        place = event.device_resource_id()
        if begin < self._window.begin[1]:
            return
        if name == _MEMORY:
            device = "cpu" if self._on_host(event) else "device"
            track = f"operators of thread {place}"
            self._memory.append((begin, event.nbytes(), device, track))
            return
        length = event.duration_ns()
        if length < 0 or _is_hidden(event):
            return
        self.count += 1
        kind = _kind(event, name, self._on_host(event))
        if kind == "host":
            track = f"operators of thread {place}"
            operator = _Operator(event, name, begin, begin + length, track)
            self._host.setdefault(track, []).append(operator)
        elif kind in _ACTIVITIES:
            track = f"device {event.device_index()} stream {place}"
            operator = _Operator(event, name, begin, begin + length, track)
            operator.activity = _ACTIVITIES[kind]
            self._device.append(operator)

    def _on_host(self, event: Any) -> bool:
        kind = event.device_type()
        answer = self._hosts.get(kind)
        if answer is None:
            # Once for each kind: making the text takes longer than all else here.
            answer = self._hosts[kind] = "CPU" in str(kind)
        return answer

    def _nest(self, track: list[_Operator]) -> None:
        """Find what lies within what, and hand phases down."""
        track.sort(key=lambda one: (one.begin, -one.end))
        stack: list[_Operator] = []
        for operator in track:
            while stack and stack[-1].end <= operator.begin:
                stack.pop()
            around = stack[-1] if stack else None
            operator.depth = len(stack)
            operator.phase = _phase(operator, around)
            if around is not None:
                around.inner += min(operator.end, around.end) - operator.begin
            stack.append(operator)

    def _link(self) -> None:
        """Give the device's work the phase of the operator that launched it."""
        if self._device:
            launched = {
                operator.event.correlation_id(): operator.phase
                for track in self._host.values()
                for operator in track
            }
            for work in self._device:
                work.phase = launched.get(work.event.linked_correlation_id(), _OTHER)

    def _allocate(self) -> None:
        """Give each allocation to the innermost operator that was open on its thread."""
        self._memory.sort()
        for track, operators in self._host.items():
            stack: list[_Operator] = []
            waiting = iter(operators)
            next_one = next(waiting, None)
            for moment, size, _, thread in self._memory:
                if thread != track or size <= 0:
                    continue
                while next_one is not None and next_one.begin <= moment:
                    stack.append(next_one)
                    next_one = next(waiting, None)
                while stack and stack[-1].end < moment:
                    stack.pop()
                if stack:
                    stack[-1].allocated += size

    def totals(self) -> dict[tuple[str, str, int, int], list[int]]:
        """Return calls, ns without and with inner ones, bytes and flops of each operator.

        Bytes are those that a device moved, or that an operator of the host allocated.
        """
        found: dict[tuple[str, str, int, int], list[int]] = {}
        for device, operators in [
            *((0, track) for track in self._host.values()),
            (1, self._device),
        ]:
            for one in operators:
                key = (one.name, "" if device else _shapes(one.event), one.phase, device)
                values = found.setdefault(key, [0] * 5)
                took = one.end - one.begin
                values[0] += 1
                values[1] += max(0, took - one.inner)
                values[2] += took
                values[3] += max(0, one.event.nbytes()) + one.allocated
                values[4] += max(0, one.event.flops())
        return found

    def spans(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return what goes on the timeline, by track."""
        ticks = self._window.ticks
        found: dict[str, list[tuple[Any, ...]]] = {}
        left = _MOST_SPANS
        for name, track in self._host.items():
            kept = track[: max(0, left)]
            left -= len(kept)
            found[name] = [(one.name, ticks(one.begin), ticks(one.end), one.depth) for one in kept]
        for one in self._device[: max(0, left)]:
            event = one.event
            begin, end, size = ticks(one.begin), ticks(one.end), max(0, event.nbytes())
            place = (event.device_index() & 0xFFFFFFFF, event.device_resource_id() & 0xFFFFFFFF)
            found.setdefault(one.track, []).append(
                (one.name, begin, end, size, *place, one.activity)
            )
        held: dict[str, int] = {}
        for moment, size, device, _ in self._memory[: max(0, left)]:
            held[device] = held.get(device, 0) + size
            name = f"torch memory ({device}), bytes since the block began"
            found.setdefault("torch memory", []).append((name, ticks(moment), float(held[device])))
        return found


def _phase(operator: _Operator, around: _Operator | None) -> int:
    """Tell the phase from what lies around, and from torch's own annotations."""
    name = operator.name
    if name.startswith("autograd::engine::"):
        return _BACKWARD
    if name.startswith("Optimizer.step#"):
        return _OPTIMIZER
    if name.startswith("Optimizer.zero_grad#"):
        return _ZERO_GRAD
    if name.startswith("enumerate(DataLoader)#"):
        return _DATA_WAIT
    if around is not None:
        # A closure that an optimizer calls runs forward and backward; its own work is not numbered.
        if around.phase == _OPTIMIZER and operator.event.sequence_nr() >= 0:
            return _FORWARD
        return around.phase
    if operator.event.scope() == 1:
        return _BACKWARD
    # Operators that autograd has numbered are those of a forward, the loss among them.
    return _FORWARD if operator.event.sequence_nr() >= 0 else _OTHER


def _kind(event: Any, name: str, on_host: bool) -> str:
    """Tell work of the host from that of a device; what is only drawn for the eye is neither."""
    if hasattr(event, "activity_type"):
        kind = str(event.activity_type())
        if on_host:
            kinds = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
            return "host" if kind in kinds else kind
        return kind
    # Before torch 2.13.
    if on_host:
        return "host"
    if event.is_user_annotation():
        return "gpu_user_annotation"
    if name.startswith("Memcpy"):
        return "gpu_memcpy"
    return "gpu_memset" if name.startswith("Memset") else "kernel"


def _is_hidden(event: Any) -> bool:
    return hasattr(event, "is_hidden_event") and bool(event.is_hidden_event())


def _shapes(event: Any) -> str:
    shapes = event.shapes()
    return str(shapes)[:_LONGEST_SHAPES] if any(shapes) else ""
