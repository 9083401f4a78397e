"""The guide's profiling helpers: traces of blocks, function profiles, and who switches them.

``PROFILING_ENABLED`` and ``PROFILE_OUTPUT_DIR`` say what the environment says now; a program may
set them, which counts in the environment's place.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import logging
import os
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast

import stepwatch
from stepwatch import _core
from stepwatch.compat import _names, _switches
from stepwatch.compat._console import say
from stepwatch.compat._trace_block import TraceBlock
from stepwatch.integrations._notes import note_once

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from stepwatch.compat._trace_block import Totals

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_DIR = "runs/profiling"

logger = logging.getLogger("ml_ops.profile")

# What pstats calls its orders, and what they are called here.
_SORTS = {
    **dict.fromkeys(("cumulative", "cumtime"), "cumulative"),
    **dict.fromkeys(("time", "tottime", "self"), "self"),
    **dict.fromkeys(("calls", "ncalls"), "calls"),
    **dict.fromkeys(("name", "nfl", "stdname"), "name"),
    **dict.fromkeys(("filename", "file", "module", "line"), "file"),
    "pcalls": "pcalls",
    "errors": "errors",
}


# And torch's profiler.
_ORDERS = {
    "self_cpu_time_total": "self",
    "cpu_time_total": "total",
    "self_cuda_time_total": "device",
    "cuda_time_total": "device",
    "self_device_time_total": "device",
    "device_time_total": "device",
}


# Where a folder that the environment or nobody named was first asked for: files stay together when
# the program goes elsewhere.
_bases: dict[str, str] = {}


def __getattr__(name: str) -> Any:
    if name == "PROFILING_ENABLED":
        return bool(_switches.environment())
    if name == "PROFILE_OUTPUT_DIR":
        return output_dir()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_enabled(
    argument: bool | None = None, override: bool | None = None, configured: bool | None = None
) -> bool:
    """Tell whether profiling is on; None is "not given"."""
    said: bool | None = globals().get("PROFILING_ENABLED")
    if said is None:
        return _switches.enabled(
            argument=argument, override=override, configured=configured, default=False
        )
    if not said:
        return False
    return next((one for one in (argument, override) if one is not None), True)


def output_dir(
    argument: str | os.PathLike[str] | None = None,
    configured: str | os.PathLike[str] | None = None,
) -> Path:
    """Return where files go; the folder is made when the first is written."""
    said: str | os.PathLike[str] | None = globals().get("PROFILE_OUTPUT_DIR")
    if argument is None and said is not None:
        argument = said
    folder = _switches.output_dir(argument, configured, default=DEFAULT_DIR)
    if argument is None:
        folder = _switches.anchored(folder, _bases.setdefault(folder, _switches.here()))
    return Path(folder)


def begin_here() -> None:
    """Let relative folders belong to where the program is now: a command begins."""
    _bases.clear()


def should_profile(step: int, profile_every_n_steps: int = 1) -> bool:
    """Tell whether this step is one to profile: profiling is on, and it is the n-th."""
    return is_enabled() and is_due(step, profile_every_n_steps)


def is_due(step: int, every: int) -> bool:
    """Tell whether a step is one of every so many, the first included; 0 is none."""
    return every > 0 and step >= 0 and _core.schedule_action(f"every={every}", step) >= 2


def _written(path: Path, write: Callable[[str], object]) -> bool:
    """Make the folder and the file in it; a failure is said once, and no more."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replaces = path.exists()
        write(str(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if path.parent.is_dir() and os.access(path.parent, os.W_OK):
            note_once(f"{path} is not there: {reason}")
        else:
            note_once(
                f"nothing can be written to {path.parent}: {reason}; "
                f"set {_switches.FOLDER} to a folder that can be."
            )
        return False
    logger.info("Saved %s%s", path, ", in the place of an earlier one" if replaces else "")
    return True


# --- traces ---


class Trace:
    """A block that is being traced: what ``torch_profiler`` hands out."""

    def __init__(self, block: TraceBlock, path: Path) -> None:
        """Take the block and where it will be written."""
        self._path, self._base = os.fspath(path), _switches.here()
        self._block = block
        self._totals: Totals = {}

    @property
    def path(self) -> Path:
        """Where the trace is written."""
        return Path(_switches.anchored(self._path, self._base))

    @property
    def name(self) -> str:
        """The name of the block, which its span in the trace has."""
        return self._block.name

    def operators(self) -> list[dict[str, Any]]:
        """Return torch's operators in the block, once it has ended; none before."""
        if not self._totals:
            return []
        from stepwatch.integrations.torch_operators import row_of

        return [row_of(key, values) for key, values in self._totals.items()]

    def table(self, sort_by: str | None = None, row_limit: int = 20) -> str:
        """Return the operators as text, those with most time of their own first."""
        return _table(self._totals, sort_by, row_limit)

    def key_averages(self) -> Trace:
        """Return what has a ``table``, as torch's profiler does."""
        return self

    def finish(self) -> None:
        """Write the trace, log the table, let go of the recording."""
        try:
            self._totals = self._block.totals
            written = _written(self.path, self._block.export)
            if written and self._totals and logger.isEnabledFor(logging.INFO):
                logger.info("%s", self.table())
        finally:
            self._block.close()


def _table(totals: Totals, sort_by: str | None, row_limit: int) -> str:
    """Lay out operators as torch's profiler does: by time of the device if there is one."""
    # name: own, total, device, bytes, calls, shapes
    names: dict[str, list[Any]] = {}
    for (name, shapes, _, device), (calls, own, whole, size, _) in totals.items():
        one = names.get(name)
        if one is None:
            one = names[name] = [0, 0, 0, 0, 0, set()]
        if device:
            one[2] += own
        else:
            one[0] += own
            one[1] += whole
            one[3] += size
        one[4] += calls
        if shapes:
            one[5].add(shapes)
    on_device = any(one[2] for one in names.values())
    order = _ORDERS.get(sort_by or "", "device" if on_device else "self")
    place = ("self", "total", "device").index(order)
    most = sum(one[0] for one in names.values()) or 1
    lines = [f"Sorted by {'self CUDA' if order == 'device' else order + ' CPU'} time"]
    head = f"{'Name':<44} {'Self CPU':>10} {'%':>5} {'CPU total':>10} "
    head += f"{'Self CUDA':>10} " if on_device else ""
    head += f"{'Allocated':>10} {'Calls':>6}  Input shapes"
    lines += [head, "-" * len(head)]
    ranked = sorted(names.items(), key=lambda item: (-item[1][place], item[0]))
    for name, (own, whole, kernels, size, calls, seen) in ranked[:row_limit]:
        gpu = f"{kernels / 1e6:>8.3f}ms " if on_device else ""
        more = f" and {len(seen) - 1} more" if len(seen) > 1 else ""
        lines.append(
            f"{name[:44]:<44} {own / 1e6:>8.3f}ms {100 * own / most:>5.1f} {whole / 1e6:>8.3f}ms "
            f"{gpu}{size / 1024:>7.1f}KiB {calls:>6}  {min(seen, default='')}{more}".rstrip()
        )
    return "\n".join(lines)


class _Tracing:
    """The block of ``torch_profiler``; None is handed out when it is off."""

    def __init__(self, decide: Callable[[], bool], make: Callable[[], Trace]) -> None:
        self._decide = decide
        self._make = make
        self._open: list[tuple[Trace, TraceBlock] | None] = []

    def __enter__(self) -> Trace | None:
        self._open.append(None)
        if not self._decide():
            return None
        try:
            trace = self._make()
            block = trace._block
            if not block.start():
                return None
        except (OSError, RuntimeError, ValueError) as error:
            note_once(f"a block cannot be traced: {error}")
            return None
        self._open[-1] = (trace, block)
        return trace

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write what there is, also when an exception leaves the block; it passes."""
        opened = self._open.pop()
        if opened is not None:
            trace, block = opened
            block.stop(exc_type, exc, traceback)
            trace.finish()


def torch_profiler(
    enabled: bool = _names.ON,  # type: ignore[assignment]
    activities: Iterable[Any] | str | None = None,
    record_shapes: bool = True,
    profile_memory: bool = True,
    output_dir: str | os.PathLike[str] | None = None,
    trace_name: str = "trace",
) -> AbstractContextManager[Trace | None]:
    """Trace a block: its sections and torch's operators, into ``{output_dir}/{trace_name}.json``.

    It is on if ``enabled=True`` was said or ENABLE_PROFILING is true, and never when that is
    false; then None is handed out and nothing is done. ``activities`` are torch's
    ``ProfilerActivity``, or "cpu" and "cuda"; all there are unless told. An empty list asks for
    sections alone, which costs far less.
    """
    asked = [activities] if isinstance(activities, str) else activities
    names = None if asked is None else {_activity(one) for one in asked}
    folder = _once(output_dir)

    def make() -> Trace:
        block = TraceBlock(
            trace_name,
            host=names is None or "cpu" in names,
            device=names is None or "cuda" in names,
            shapes=record_shapes,
            memory=profile_memory,
        )
        return Trace(block, folder() / f"{_names.safe(trace_name)}.json")

    return _Tracing(lambda: is_enabled(_names.given(enabled)), make)


def _activity(one: Any) -> str:
    name = str(getattr(one, "name", one)).rsplit(".", 1)[-1].lower()
    if name not in ("cpu", "cuda"):
        raise ValueError(f"activity {name!r} is not known; say cpu or cuda")
    return name


def _once(argument: str | os.PathLike[str] | None) -> Callable[[], Path]:
    """Return who knows the folder: one that is relative belongs to where it is said, here."""
    base = _switches.here()

    def folder() -> Path:
        said = output_dir(argument)
        return said if argument is None else Path(_switches.anchored(os.fspath(said), base))

    return folder


# --- function profiles ---


def _sort_of(sort_by: str) -> Any:
    word = str(getattr(sort_by, "value", sort_by))
    if word not in _SORTS:
        raise ValueError(f"sort_by is {word!r} but should be one of {', '.join(sorted(_SORTS))}")
    return _SORTS[word]


class _Functions:
    """The block of ``cprofile_context``."""

    def __init__(
        self,
        decide: Callable[[], bool],
        path: Callable[[], Path],
        sort: Any,
        printed: int | None,
    ) -> None:
        self._decide = decide
        self._path = path
        self._sort = sort
        self._printed = printed
        self._open: list[stepwatch.functions | None] = []

    def __enter__(self) -> stepwatch.functions | None:
        profile = stepwatch.functions(self._path().stem) if self._decide() else None
        self._open.append(profile)
        if profile is not None:
            try:
                profile.start()
            except RuntimeError as error:
                note_once(f"functions cannot be profiled: {error}")
                self._open[-1] = profile = None
        return profile

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop and write, also when an exception leaves the block; it passes."""
        profile = self._open.pop()
        if profile is not None:
            profile.stop()
            save(profile, self._path(), self._sort)
            if self._printed is None or self._printed > 0:
                say(profile.text(self._sort, self._printed), end="")


def save(profile: stepwatch.functions, path: Path, sort: Any = "cumulative") -> None:
    """Write a function profile: for pstats and for the eye in one file, and the text alone."""
    _written(path, lambda name: profile.save(name, sort))


def cprofile_context(
    enabled: bool = _names.ON,  # type: ignore[assignment]
    output_dir: str | os.PathLike[str] | None = None,
    profile_name: str = "profile",
    sort_by: str = "cumulative",
    print_stats: int | None = 20,
) -> AbstractContextManager[stepwatch.functions | None]:
    """Profile the functions of a block into ``{output_dir}/{profile_name}.stats`` and ``.txt``.

    Switched as :func:`torch_profiler` is. The first ``print_stats`` rows are printed, None is all
    and 0 or less none; ``sort_by`` takes the orders of pstats.
    """
    folder = _once(output_dir)
    return _Functions(
        lambda: is_enabled(_names.given(enabled)),
        lambda: folder() / f"{_names.safe(profile_name)}.stats",
        _sort_of(sort_by),
        print_stats,
    )


class _Calls:
    """All calls of one decorated function, in one profile."""

    _PAUSE = 1.0  # seconds between two savings

    def __init__(self, name: str) -> None:
        self._name = name
        self._profile = stepwatch.functions(name)
        self._lock = threading.Lock()
        self._running = 0
        self._saved: float | None = None
        self._path = Path()

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._path = (output_dir() / f"{_names.safe(self._name)}.stats").absolute()
                try:
                    self._profile.start()
                except RuntimeError as error:
                    note_once(f"functions cannot be profiled: {error}")

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._running -= 1
            if self._running or not self._profile.running:
                return
            self._profile.stop()
            first = self._saved is None
            if first:
                atexit.register(self._save)
            if first or time.monotonic() - (self._saved or 0) > self._PAUSE:
                self._save()
            if first:
                say(self._profile.text(limit=20), end="")

    def _save(self) -> None:
        if not self._profile.running:
            save(self._profile, self._path)
            self._saved = time.monotonic()


def _generator(function: Callable[..., Any], calls: _Calls) -> Callable[..., Any]:
    """Return a generator function whose generators are profiled whenever they run."""

    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Any:
        running = function(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(next, running)
        while True:
            try:
                with calls if is_enabled() else nullcontext():
                    given = resume()
            except StopIteration as end:
                return end.value
            try:
                resume = functools.partial(running.send, (yield given))
            except GeneratorExit:
                running.close()
                raise
            except BaseException as error:  # The consumer threw it in: the generator is to see it.
                resume = functools.partial(running.throw, error)

    return generator


def _async_generator(function: Callable[..., Any], calls: _Calls) -> Callable[..., Any]:
    """Return the same for an asynchronous one."""

    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> Any:
        running = function(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(running.asend, None)
        while True:
            try:
                with calls if is_enabled() else nullcontext():
                    given = await resume()
            except StopAsyncIteration:
                return
            try:
                resume = functools.partial(running.asend, (yield given))
            except GeneratorExit:
                await running.aclose()
                raise
            except BaseException as error:
                resume = functools.partial(running.athrow, error)

    return generator


def profile_function(func: F | str, name: str | None = None) -> F:
    """Profile the functions below each call of one, into ``{module}.{function}.stats``.

    ``@profile_function``, ``@profile_function("name")`` and a plain call on a function all do.
    Calls add up; the table is printed after the first. Of a generator what it does itself is
    profiled, not what happens between its values. While profiling is off, the function is called
    as it is.
    """
    if isinstance(func, str):
        return cast(F, functools.partial(profile_function, name=func))
    own = getattr(func, "__qualname__", type(func).__name__).split("<locals>.")[-1]
    calls = _Calls(name or f"{getattr(func, '__module__', None) or '__main__'}.{own}")
    function: Callable[..., Any] = func

    if inspect.isgeneratorfunction(func):
        return cast(F, _generator(function, calls))
    if inspect.isasyncgenfunction(func):
        return cast(F, _async_generator(function, calls))
    if inspect.iscoroutinefunction(func):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            if not is_enabled():
                return await function(*args, **kwargs)
            with calls:
                return await function(*args, **kwargs)

        return cast(F, coroutine)

    here = threading.local()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # A call within a profiled one is part of it; asking again would be in its table.
        if getattr(here, "inside", False) or not is_enabled():
            return function(*args, **kwargs)
        here.inside = True
        try:
            with calls:
                return function(*args, **kwargs)
        finally:
            here.inside = False

    return cast(F, call)


__all__ = [
    "DEFAULT_DIR",
    "Trace",
    "cprofile_context",
    "profile_function",
    "should_profile",
    "torch_profiler",
]
