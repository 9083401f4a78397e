"""What torch's profiler saw in a window: nesting, own time, phase, and what goes on the timeline.

This is for the profiler of ``torch.profiler``; what the plain one saw is read in C.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from stepwatch.integrations._torch_window import Window

_MOST_SPANS = 200_000
_LONGEST_SHAPES = 200  # in the table, to tell rows apart
_LONGEST_INPUTS = 4000  # on the timeline
_LONGEST_NAME = 300
_MEMORY = "[memory]"  # what the profiler calls an allocation
# Numbers of phases, as steps have them.
_OTHER, _DATA_WAIT, _FORWARD, _BACKWARD, _OPTIMIZER, _ZERO_GRAD = 0, 1, 6, 8, 9, 10
PHASES = {
    _OTHER: "other",
    _DATA_WAIT: "data_wait",
    _FORWARD: "forward",
    _BACKWARD: "backward",
    _OPTIMIZER: "optimizer",
    _ZERO_GRAD: "zero_grad",
}
_ACTIVITIES = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3}
_HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
# Of <stepwatch/records.h>.
_IS_BACKWARD, _IS_ANNOTATION, _IS_RUNTIME = 0x0200, 0x0400, 0x0800
# Of torch's at::RecordScope.
_SCOPE_BACKWARD, _SCOPE_USER = 1, 7

_ONE_ELEMENT = "aten::_local_scalar_dense"
_COPIES = ("aten::copy_", _ONE_ELEMENT)
# Bytes of an element, by the names that the profiler has for types.
_SIZES = {
    **dict.fromkeys(("bool", "signed char", "unsigned char"), 1),
    **dict.fromkeys(("short int", "short", "c10::Half", "c10::BFloat16"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("double", "long int", "long", "c10::complex<float>"), 8),
    "c10::complex<double>": 16,
}

# Some torches count operators from 1 in each window, and a trace may have several.
_windows_before = 0


class _Operator:
    """One call of an operator, or one piece of a device's work."""

    __slots__ = (
        "activity",
        "allocated",
        "begin",
        "bytes",
        "correlation",
        "depth",
        "end",
        "external",
        "flags",
        "flops",
        "forward",
        "inner",
        "inputs",
        "name",
        "phase",
        "place",
        "sequence",
        "shapes",
        "text",
        "types",
    )

    def __init__(self, name: str, begin: int, end: int, place: tuple[int, int]) -> None:
        self.name = name
        self.begin = begin
        self.end = end
        self.place = place  # (0, thread), or device and stream
        self.activity = self.allocated = self.inner = self.depth = 0
        self.bytes = self.flops = self.flags = 0
        self.external = self.correlation = self.forward = 0
        self.sequence = -1
        self.shapes: list[Any] = []
        self.text = ""  # of the shapes, if any input has one
        self.inputs: str | None = None  # the same as JSON, with those of lists
        self.types: list[str] | None = None
        self.phase = _OTHER


class Reader:
    """What the events of a window say."""

    def __init__(self, window: Window, seen: Any) -> None:
        """Read what ``Window.close`` returned."""
        self._window = window
        self._host: dict[int, list[_Operator]] = {}  # by the kernel's number of the thread
        self._device: list[_Operator] = []
        # moment, bytes, address, total, reserved, allocator, thread
        self._memory: list[tuple[int, ...]] = []
        self._hosts: dict[Any, bool] = {}
        self._texts: dict[tuple[str, ...], str | None] = {}
        self._before: int | None = None  # to add to each number
        self.count = 0
        self._read(seen)
        for track in self._host.values():
            self._nest(track)
        self._link()
        self._allocate()

    def _read(self, result: Any) -> None:
        global _windows_before
        threads: dict[int, int] = {}  # torch's own numbers of threads, and the kernel's
        highest = 0
        for event in result.events():
            operator = self._take(event)
            if operator is not None and not operator.activity:
                threads[event.start_thread_id()] = operator.place[1]
                if not operator.flags & _IS_RUNTIME:
                    highest = max(highest, operator.external)
        _windows_before = max(_windows_before, highest)
        for track in self._host.values():
            for operator in track:
                operator.forward = threads.get(operator.forward, 0)
        if self._memory:
            self._look_up_addresses(result, threads)

    def _take(self, event: Any) -> _Operator | None:
        begin = event.start_ns()
        if begin < self._window.begin[1]:
            return None
        name = event.name()[:_LONGEST_NAME]
        place = event.device_resource_id()
        on_host = self._on_host(event)
        if name == _MEMORY:
            device = 1 if on_host else 2 + max(0, event.device_index())
            self._memory.append((begin, event.nbytes(), 0, 0, 0, device, place))
            return None
        length = event.duration_ns()
        if length < 0 or _is_hidden(event):
            return None
        self.count += 1
        kind = _kind(event, name, on_host)
        if kind in _ACTIVITIES:
            where = (event.device_index() & 0xFFFFFFFF, place & 0xFFFFFFFF)
            operator = _Operator(name, begin, begin + length, where)
            operator.activity = _ACTIVITIES[kind]
            operator.correlation = event.correlation_id() & 0xFFFFFFFF
            operator.external = self._numbered(event.linked_correlation_id())
            self._device.append(operator)
        elif kind in _HOST:
            operator = _Operator(name, begin, begin + length, (0, place))
            if kind in ("cuda_runtime", "cuda_driver"):
                operator.flags = _IS_RUNTIME
                operator.correlation = event.correlation_id() & 0xFFFFFFFF
                operator.external = self._numbered(event.linked_correlation_id())
            else:
                self._detail(operator, event, kind)
            self._host.setdefault(place, []).append(operator)
        else:
            return None
        operator.bytes = max(0, event.nbytes())
        return operator

    def _detail(self, operator: _Operator, event: Any, kind: str) -> None:
        operator.external = self._numbered(event.correlation_id())
        if kind == "user_annotation":
            operator.flags = _IS_ANNOTATION
        elif event.scope() == _SCOPE_BACKWARD:
            operator.flags = _IS_BACKWARD
        operator.sequence = event.sequence_nr()
        operator.forward = event.fwd_thread_id()
        operator.flops = max(0, event.flops())
        self._inputs(operator, event.shapes())
        if operator.shapes:
            operator.types = event.dtypes()
            if hasattr(event, "structured_input_shapes"):  # torch 2.13
                operator.inputs = str(event.structured_input_shapes())

    def _numbered(self, number: int) -> int:
        if number <= 0:
            return 0
        if self._before is None:
            self._before = 0 if number > _windows_before else _windows_before
        return number + self._before

    def _on_host(self, event: Any) -> bool:
        kind = event.device_type()
        answer = self._hosts.get(kind)
        if answer is None:
            # Once for each kind: making the text takes longer than all else here.
            answer = self._hosts[kind] = "CPU" in str(kind)
        return answer

    def _look_up_addresses(self, result: Any, threads: dict[int, int]) -> None:
        """Ask the tree of events, which knows more of allocations, if it is there."""
        try:
            found: list[tuple[int, ...]] = []
            since = self._window.begin[1]
            waiting = list(result.experimental_event_tree())
            while waiting:
                node = waiting.pop()
                waiting.extend(node.children)
                if node.name == _MEMORY and node.start_time_ns >= since:
                    one = node.extra_fields
                    kind, index = str(one.device).partition(":")[::2]
                    device = 1 if kind == "cpu" else 2 + int(index or 0)
                    thread = threads.get(node.start_tid, 0)
                    numbers = (one.alloc_size, one.ptr or 0, one.total_allocated)
                    found.append((node.start_time_ns, *numbers, one.total_reserved, device, thread))
            if len(found) == len(self._memory):
                self._memory = found
        except (AttributeError, TypeError, ValueError, RuntimeError):
            pass  # It is not for everybody, and may look otherwise in another torch.

    @staticmethod
    def _inputs(operator: _Operator, shapes: list[Any]) -> None:
        if shapes:
            operator.shapes = shapes
            operator.inputs = str(shapes)  # lists of numbers look the same in JSON
            operator.text = operator.inputs if any(shapes) else ""

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
                operator.external: operator
                for track in self._host.values()
                for operator in track
                if not operator.flags & _IS_RUNTIME
            }
            for work in self._device:
                operator = launched.get(work.external)
                if operator is not None:
                    work.phase = operator.phase
                    if work.activity == _ACTIVITIES["gpu_memcpy"] and not work.bytes:
                        work.bytes = _copied(operator)

    def _allocate(self) -> None:
        """Give each allocation to the innermost operator that was open on its thread."""
        self._memory.sort()
        for track, operators in self._host.items():
            stack: list[_Operator] = []
            waiting = iter(operators)
            next_one = next(waiting, None)
            for moment, size, *_, thread in self._memory:
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
        tracks: Iterable[tuple[int, list[_Operator]]] = [
            *((0, track) for track in self._host.values()),
            (1, self._device),
        ]
        for device, operators in tracks:
            for one in operators:
                key = (one.name, one.text[:_LONGEST_SHAPES], one.phase, device)
                values = found.get(key)
                if values is None:
                    values = found[key] = [0] * 5
                took = one.end - one.begin
                values[0] += 1
                values[1] += max(0, took - one.inner)
                values[2] += took
                values[3] += one.bytes + one.allocated
                values[4] += one.flops
        return found

    def spans(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return what goes on the timeline, by track."""
        ticks = self._window.ticks
        found: dict[str, list[tuple[Any, ...]]] = {}
        left = _MOST_SPANS
        for tid, track in self._host.items():
            kept = track[: max(0, left)]
            left -= len(kept)
            found[f"operators of thread {tid}"] = [
                (
                    one.name,
                    ticks(one.begin),
                    ticks(one.end),
                    one.depth,
                    one.flags,
                    one.external,
                    one.sequence,
                    one.correlation,
                    one.forward if one.flags & _IS_BACKWARD else 0,
                    one.inputs if one.inputs and len(one.inputs) <= _LONGEST_INPUTS else None,
                    self._types(one.types) if one.types else None,
                )
                for one in kept
            ]
        for one in self._device[: max(0, left)]:
            device, stream = one.place
            found.setdefault(f"device {device} stream {stream}", []).append(
                (
                    one.name,
                    ticks(one.begin),
                    ticks(one.end),
                    one.bytes,
                    device,
                    stream,
                    one.activity,
                    one.correlation,
                    one.external,
                )
            )
        if self._memory:
            found["torch memory"] = [
                ("torch memory", ticks(moment), *rest)
                for moment, *rest in self._memory[: max(0, left)]
            ]
        return found

    def _types(self, names: list[str]) -> str | None:
        """Write them as JSON; there are few different ones."""
        key = tuple(names)
        if key not in self._texts:
            text = json.dumps(names)
            self._texts[key] = text if len(text) <= _LONGEST_INPUTS else None
        return self._texts[key]


def _copied(operator: _Operator) -> int:
    """Tell how many bytes an operator copies, which torch's profiler does not; 0 is not known."""
    if operator.name not in _COPIES or not operator.shapes or not operator.types:
        return 0
    size = _SIZES.get(operator.types[0], 0)
    for length in [] if operator.name == _ONE_ELEMENT else operator.shapes[0]:
        size *= length
    return size


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
        if around.phase == _OPTIMIZER and operator.sequence >= 0:
            return _FORWARD
        return around.phase
    if operator.flags & _IS_BACKWARD:
        return _BACKWARD
    # Operators that autograd has numbered are those of a forward, the loss among them.
    return _FORWARD if operator.sequence >= 0 else _OTHER


def _kind(event: Any, name: str, on_host: bool) -> str:
    """Tell work of the host from that of a device; what is only drawn for the eye is neither."""
    if hasattr(event, "activity_type"):
        return str(event.activity_type())
    # Before torch 2.13.
    if on_host:
        if event.is_user_annotation():
            return "user_annotation"
        runtime = name.startswith("cuda") or (name[:2] == "cu" and name[2:3].isupper())
        return "cuda_runtime" if runtime else "cpu_op"
    if event.is_user_annotation():
        return "gpu_user_annotation"
    if name.startswith("Memcpy"):
        return "gpu_memcpy"
    return "gpu_memset" if name.startswith("Memset") else "kernel"


def _is_hidden(event: Any) -> bool:
    return hasattr(event, "is_hidden_event") and bool(event.is_hidden_event())
