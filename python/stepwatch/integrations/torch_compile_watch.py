"""torch.compile: what it compiles, how long that takes, and why it compiles again.

Dynamo tells when it compiles through its handler of callbacks, and afterwards what, in the metrics
that it keeps of every compilation. The program may clear the callbacks (``torch._dynamo.reset``
does), so the handler's own method is timed instead.
"""

from __future__ import annotations

import re
import sys
import threading

from stepwatch import _core, _imports
from stepwatch.integrations import _notes, _patch, _totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_COMPILE = _core.section("compile", "compile")
_AGAIN = 1  # flag of a row: not the first of its function
_MOST = 4096
_LONGEST_REASON = 300

_local = threading.local()
_rows = _totals.Totals(12)  # COMPILED
_counts: dict[tuple[str, str, int], int] = {}
_names: dict[str, tuple[str, str, int]] = {}  # by the id of the compilation


def install(_: Any) -> None:
    """Watch dynamo when the program comes to use it."""
    _imports.watch("torch._dynamo", _watch)


def remove() -> None:
    """Forget nothing: what was put in place is taken back by ``_patch``."""


def _watch(dynamo: Any) -> None:
    handler: Any = getattr(dynamo, "callback_handler", None)
    if not hasattr(handler, "install_callbacks"):
        _notes.note_once("when torch.compile compiles is not recorded with this torch")
    elif not isinstance(handler.install_callbacks, _Timed):
        _patch.put(handler, "install_callbacks", _Timed(handler.install_callbacks))
    utils: Any = sys.modules.get("torch._dynamo.utils")
    if not _patch.replace(utils, "record_compilation_metrics", _with_metrics):
        _notes.note_once("what torch.compile compiles is not recorded with this torch")
        return
    # A thread that has compiled already holds the function.
    context = getattr(getattr(utils, "_metrics_context_tls", None), "metrics_context", None)
    if hasattr(context, "_on_exit"):
        _patch.put(context, "_on_exit", utils.record_compilation_metrics)


class _Timed:
    """``install_callbacks``, around whose context the compilation is timed."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> _Compiling:
        return _Compiling(self._original(*args, **kwargs))


class _Compiling:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __enter__(self) -> Any:
        _core.rests_never()
        # What is compiled within a compilation is part of it.
        _local.depth = getattr(_local, "depth", 0) + 1
        if _local.depth == 1:
            _local.begin = _core.now()
        _COMPILE.__enter__()
        return self._inner.__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            return self._inner.__exit__(*error)
        finally:
            _COMPILE.__exit__(None, None, None)
            _local.depth -= 1
            _local.end = _core.now()


def _with_metrics(original: Callable[..., Any]) -> Callable[..., Any]:
    def record_compilation_metrics(*args: Any, **kwargs: Any) -> Any:
        try:
            values = [*args, *kwargs.values()]
            _compiled(next(value for value in values if isinstance(value, dict)))
        except Exception as error:
            _notes.note_once(f"a compilation is not recorded: {type(error).__name__}: {error}")
        return original(*args, **kwargs)

    return record_compilation_metrics


def _compiled(metrics: dict[str, Any]) -> None:
    """Count a compilation, from what dynamo knows of it."""
    begin, end = _local.__dict__.pop("begin", 0), _local.__dict__.pop("end", 0)
    if metrics.get("is_runtime") or not end or end < begin:
        return
    name, file, line = _function(metrics)
    reason = _reason(metrics)
    whole = end - begin
    later = min(whole, _ticks(metrics, "aot_autograd_cumulative_compile_time_us"))
    last = _ticks(metrics, "inductor_cumulative_compile_time_us")
    if metrics.get("is_forward") is False:
        later = whole  # Of a backward, nothing is traced any more.
    last = min(later, last) or later
    count = _counts.get((name, file, line), 0) + 1
    if count > 1 or len(_counts) < _MOST:
        _counts[name, file, line] = count
    spent = [1, whole, whole - later, later - last, last]
    _rows.add((name, reason, file, line), spent, _AGAIN if count > 1 else 0)
    _core.put_compile(name, reason, 0, begin, end, count, file, line)


def _ticks(metrics: dict[str, Any], name: str) -> int:
    return int((metrics.get(name) or 0) * _core.ticks_per_second() / 1e6)


def _function(metrics: dict[str, Any]) -> tuple[str, str, int]:
    """Return name, file and line; those of a backward are its forward's."""
    number = str(metrics.get("compile_id") or _current_id())
    name = metrics.get("co_name")
    if name is None:
        name, file, line = _names.get(number, ("(unknown)", "", 0))
        return f"{name} (backward)", file, line
    resumed = re.fullmatch(r"torch_dynamo_resume_in_(.+)_at_(\d+)", name)
    if resumed:
        name = f"{resumed[1]} (resumed at line {resumed[2]})"
    found = (name, metrics.get("co_filename") or "", metrics.get("co_firstlineno") or 0)
    if "/torch/_dynamo/" in found[1]:
        found = _module() or found
    if len(_names) < _MOST:
        _names[number] = found
    return found


def _module() -> tuple[str, str, int] | None:
    """Return class and caller of the compiled module that runs.

    Dynamo compiles modules of torch's own, an ``nn.Sequential`` for instance, through a function of
    its own, of which the program has never heard.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith("eval_frame.py"):
            module = getattr(frame.f_locals.get("self"), "_orig_mod", None)
            site = _core.user_site() if module is not None else None
            if site is not None:
                return type(module).__name__, site[0], site[1]
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _current_id() -> object:
    guards: Any = sys.modules.get("torch._guards")
    return guards.CompileContext.current_compile_id() if guards is not None else None


def _reason(metrics: dict[str, Any]) -> str:
    """Say in one line why it was compiled again; nothing for the first time."""
    failed = metrics.get("fail_type")
    text = metrics.get("recompile_reason")
    if not text:
        return f"failed: {failed}" if failed else ""
    text = text.splitlines()[0]
    text = re.sub(r"^\d+/\d+: ", "", text)  # the compilation whose guard it was
    text = " ".join(text.split("  #")[0].split())  # and the source line that asked for it
    if re.search(r"==|!=|<|>| is | in |\bnot\b|^___", text) and "mismatch" not in text:
        text = f"guard failed: {text}"
    return text[:_LONGEST_REASON]
