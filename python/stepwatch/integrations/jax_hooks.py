"""What JAX does, told to the recorder without changing anything that the program can see.

A compiled function stays the object that it is: the C pointer in it that runs its calls is led
through the recorder (``_core.jit_watch``). Compilations come from ``jax.monitoring``, waiting from
the methods of arrays. The parts: which calls are steps (``jax_steps``), what was compiled and why
(``jax_compiles``), where the program waits (``jax_waits``).
"""

from __future__ import annotations

import sys
import weakref

from stepwatch import _core
from stepwatch.integrations import _notes, _patch, jax_compiles, jax_steps, jax_waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Number of the function of the program by what tells it from others.
_numbers: dict[tuple[object, ...], int] = {}
# What was watched when everything was put back.
_before: list[tuple[weakref.ref[Any], int]] = []
_installed = False


def install(module: Any) -> None:
    """Watch what is compiled from now on, compilations and waits."""
    global _installed
    if _installed:
        return
    if not callable(getattr(module, "jit", None)):
        _notes.note_once("jax is not watched: it has no jit; it seems to be half installed")
        return
    _installed = True
    core: Any = getattr(sys.modules.get("jax._src"), "core", None)
    jax_waits.prepare(module, getattr(core, "trace_state_clean", None))
    jax_compiles.install(module)
    jax_waits.install(module)
    _core.jit_setup(
        before=jax_steps.before,
        after=jax_steps.after,
        compiled=jax_compiles.call_is_over,
        clean=getattr(core, "trace_state_clean", None),
        staging=_staging_of(core),
        block=jax_waits.block,
    )
    jax_steps.prepare(module)
    for reference, number in _before:
        compiled = reference()
        if compiled is not None:
            _core.jit_watch(compiled, number)
    if not _watch_makers(module):
        _notes.note_once(
            f"calls of functions that jax {getattr(module, '__version__', '')} compiles are not"
            " seen: this version makes them in a way that is not known; steps come from loops"
        )


def remove() -> None:
    """Put everything back. What ``_patch`` replaced it puts back itself."""
    global _installed, _before
    if not _installed:
        return
    _installed = False
    _before = _core.jit_unwatch_all()
    jax_compiles.remove()
    jax_waits.remove()


def _staging_of(core: Any) -> Callable[[], bool] | None:
    """Make the function that tells whether what is called now is only written down.

    Derivatives of what runs are computed as it runs; what is traced for a compiler is not run.
    """
    context = getattr(core, "trace_ctx", None)
    evaluation = getattr(core, "EvalTrace", None)
    if context is None or evaluation is None:
        local: Any = getattr(core, "thread_local_state", None)  # Up to 0.4.35.
        if not hasattr(getattr(local, "trace_state", None), "trace_stack"):
            return None
        return lambda: bool(local.trace_state.trace_stack.dynamic.level)

    def staging() -> bool:
        trace = context.trace
        for _ in range(64):
            if trace is None or isinstance(trace, evaluation):
                return False
            if "Jaxpr" in type(trace).__name__:
                return True
            trace = getattr(trace, "parent_trace", None)
        return False

    return staging


def _watch_makers(module: Any) -> bool:
    """See each compiled function when it is made.

    That is a private function of jax. Where it is missing, the public one has to do, which those
    who took it before have not from us.
    """
    pjit = sys.modules.get("jax._src.pjit")
    found = _patch.replace(pjit, "_cpp_pjit", _maker) or _patch.replace(module, "jit", _jit)
    pxla: Any = sys.modules.get("jax._src.interpreters.pxla")
    executable = getattr(pxla, "MeshExecutable", None)
    if executable is not None:
        _patch.replace(executable, "create_cpp_call", _ahead_of_time)
    return found


def _maker(original: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        _attempt(made, information=next((a for a in args if hasattr(a, "static_argnums")), None))
        return made

    return make


def _jit(original: Callable[..., Any]) -> Callable[..., Any]:
    def jit(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if args:
            _attempt(made)
            return made

        def decorator(function: Any) -> Any:
            compiled = made(function)
            _attempt(compiled)
            return compiled

        return decorator

    return jit


def _ahead_of_time(original: Callable[..., Any]) -> Callable[..., Any]:
    """``jit(f).lower(x).compile()``: its calls count for f."""

    def create_cpp_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        if made is not None:
            name = getattr(getattr(self, "unsafe_call", None), "name", None)
            _attempt(made, jax_compiles.plain_name(name) if isinstance(name, str) else None)
        return made

    return create_cpp_call


def _attempt(made: Any, name: str | None = None, information: Any = None) -> None:
    try:
        watch(made, name, information=information)
    except Exception as error:
        _notes.note_once(
            f"a compiled function of jax is not watched: {type(error).__name__}: {error}"
        )


def watch(
    compiled: Any, name: str | None = None, *, asked: bool = False, information: Any = None
) -> int:
    """Let the calls of a compiled function count; return its number, 0 if that cannot be.

    The functions that jax itself is made of are left alone unless they are asked for.
    ``information`` is what jax knows about the arguments.
    """
    function = getattr(compiled, "__wrapped__", None)
    module = str(getattr(function, "__module__", ""))
    if not asked and (module == "jax" or module.startswith(("jax.", "jaxlib."))):
        return 0
    if name is None:
        name = str(getattr(function, "__name__", None) or getattr(compiled, "__name__", "jit"))
    if function is None and not asked:
        key: tuple[object, ...] = jax_compiles.key_of(name) or (name,)
    else:
        key = _key(function, name)
    number = _numbers.get(key)
    if number is None:
        section = _core.section(name)
        if section.phase is None:
            # One call does forward, backward and update; there is no nearer name for it.
            section = _core.section(name, "forward")
        number = _core.jit_function(section)
        if not number:
            _notes.note_once("there are too many compiled functions; further ones are not seen")
            return 0
        _numbers[key] = number
        jax_compiles.learn(number, name, key, function, information)
        jax_steps.learn(number, name, foreign=not asked and _is_made_by_import())
    return number if _core.jit_watch(compiled, number) else 0


def _is_made_by_import() -> bool:
    """Tell whether a library compiles this function while it is imported, for its own use."""
    frame = sys._getframe(1)
    while frame is not None:
        if "importlib" in frame.f_code.co_filename:
            return True
        if _core.jit_is_user_code(frame.f_code):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _key(function: Any, name: str) -> tuple[object, ...]:
    """What is the same for all functions that come from one place in the program."""
    code = jax_compiles.code_of(function)
    place = (code.co_filename, code.co_firstlineno) if code is not None else (id(function),)
    return (
        name,
        getattr(function, "__module__", ""),
        getattr(function, "__qualname__", ""),
        *place,
    )
