"""What ``stepwatch.profile`` and ``stepwatch.methods`` make of functions and classes."""

from __future__ import annotations

import sys
from types import FunctionType, MethodType

from stepwatch._core import decorated, section, stretches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    from stepwatch._core import Profiler, _Phase, profiler_section

    # A section of a recording or of a profiler; and what gives one by its name and phase.
    _Section = section | profiler_section
    _Sections = Callable[[str, _Phase | None], _Section]

    _T = TypeVar("_T")
    _C = TypeVar("_C", bound=type)
else:
    # Importing typing takes longer than everything else here.
    def overload(function):
        """Stand in for typing.overload."""
        return function


# Flags of code objects, as in the module inspect; importing that costs more than this package.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200

# What the functions of these names are in a class without being marked so.
_IMPLICIT: dict[str, Any] = {
    "__new__": staticmethod,
    "__init_subclass__": classmethod,
    "__class_getitem__": classmethod,
}

# Code of the wrappers below, to know them again, with the place of the section among their cells.
_WRAPPERS: dict[Any, int] = {}

# Decorators of the program's own around one function; beyond that it is a circle.
_WRAPPERS_MOST = 100


# What is decorated keeps its type, whatever it is: a function, a staticmethod, a property.
@overload
def profile(target: str, /, *, phase: _Phase | None = None) -> Callable[[_T], _T]: ...
@overload
def profile(  # noqa: F811
    target: None = None, /, *, name: str | None = None, phase: _Phase | None = None
) -> Callable[[_T], _T]: ...
@overload
def profile(  # noqa: F811
    target: _T, /, *, name: str | None = None, phase: _Phase | None = None
) -> _T: ...
def profile(  # noqa: F811
    target: Any = None, /, *, name: str | None = None, phase: _Phase | None = None
) -> Any:
    """Time every call of a function as a section.

    Works on functions, methods, ``async`` functions, generators, properties and anything that can
    be called; what it returns has the name, signature and documentation of what it was given.

        @stepwatch.profile
        def augment(batch): ...

        @stepwatch.profile("augment", phase="augment")
        def flip(batch): ...
    """
    return _profile_with(section, target, name, phase)


def _profile_with(sections: _Sections, target: Any, name: str | None, phase: _Phase | None) -> Any:
    if isinstance(target, str):
        if name is not None:
            raise TypeError("profile() got two names")
        target, name = None, target
    if target is not None:
        return _profile(sections, target, name, phase)
    if name is not None:
        # Now, so that a wrong name or phase raises where it stands.
        sections(name, phase)

    def decorator(target: Any) -> Any:
        return _profile(sections, target, name, phase)

    return decorator


def profile_into(
    profiler: Profiler,
    target: Any = None,
    /,
    *,
    name: str | None = None,
    category: str | None = None,
    phase: _Phase | None = None,
) -> Any:
    """Do what ``profile`` does, into a profiler: ``Profiler.profile``."""

    def sections(name: str, phase: _Phase | None) -> profiler_section:
        return profiler.section(name, category, phase)

    return _profile_with(sections, target, name, phase)


def methods_into(profiler: Profiler, cls: Any, /) -> Any:
    """Do what ``methods`` does, into a profiler: ``Profiler.methods``."""
    return _methods(lambda name, phase: profiler.section(name, None, phase), cls)


def methods(cls: _C) -> _C:
    """Time the methods that a class defines, each as a section ``Class.method``.

    ``__init__`` and ``__call__`` are timed too, other special methods are not, nor is what the
    class inherits. The class is changed in place and returned.

        @stepwatch.methods
        class Trainer:
            def train_epoch(self): ...
    """
    return _methods(section, cls)


def _methods(sections: _Sections, cls: _C) -> _C:
    if not isinstance(cls, type):
        raise TypeError(f"methods() decorates a class, not {type(cls).__name__!r}")
    name = _short(cls.__qualname__)
    is_enum = hasattr(cls, "_member_map_")
    for attribute, value in list(vars(cls).items()):
        special = attribute.startswith("__") and attribute.endswith("__")
        if special and attribute not in ("__init__", "__call__"):
            continue
        if is_enum and attribute.startswith("_") and attribute.endswith("_"):
            continue
        if not isinstance(value, _METHODS) and not _is_lazy(value) and not _is_cached(value):
            continue
        made = _wrap(sections, value, f"{name}.{attribute}", None, again=False)
        if made is not value:
            setattr(cls, attribute, made)
    return cls


def decorate(which: _Section, target: Any) -> Any:
    """Time a function as a section that is there already: ``@stepwatch.section("name")``."""
    owner = getattr(which, "profiler", None)

    def sections(name: str, phase: _Phase | None) -> _Section:
        return section(name, phase) if owner is None else owner.section(name, None, phase)

    return _wrap(sections, target, which.name, which.phase, again=True)


_METHODS = (FunctionType, decorated, staticmethod, classmethod, property)


def _profile(sections: _Sections, target: Any, name: str | None, phase: _Phase | None) -> Any:
    if isinstance(target, type):
        raise TypeError(
            f"profile() times functions; for the class {target.__name__!r} use stepwatch.methods"
        )
    # Without a name of its own it is another request for what is there.
    again = name is not None or phase is not None
    return _wrap(sections, target, _name(target) if name is None else name, phase, again=again)


def _wrap(sections: _Sections, target: Any, name: str, phase: _Phase | None, *, again: bool) -> Any:
    """Return the target timed, or itself when it is; ``again``: also when under another name."""
    if isinstance(target, (staticmethod, classmethod)):
        made = _wrap(sections, target.__func__, name, phase, again=again)
        if isinstance(made, (staticmethod, classmethod)):
            made = made.__func__
        return target if made is target.__func__ else type(target)(made)
    if isinstance(target, property):
        return _wrap_property(sections, target, name, phase, again)
    if _is_lazy(target):
        # It has its name and its lock; only what it calls changes.
        target.func = _wrap(sections, target.func, name, phase, again=again)
        return target
    if isinstance(target, type) or not callable(target):
        raise TypeError(f"there is no call to time in a {type(target).__name__!r} object")
    which = sections(name, phase)
    if _is_timed(target, which, again):
        return target
    flags = _code_flags(target)
    if flags & _COROUTINE:
        made = _coroutine(which, target)
    elif flags & _ASYNC_GENERATOR:
        made = _async_generator(which, target)
    elif flags & _GENERATOR:
        made = _generator(which, target)
    else:
        made = decorated(which, target)
    import functools

    functools.update_wrapper(made, target)
    if flags & _ITERABLE_COROUTINE:
        import types

        index = _WRAPPERS[made.__code__]
        made = types.coroutine(made)
        _WRAPPERS[made.__code__] = index
    # A class makes these what they are, but only of functions, and only when it is made.
    implicit = isinstance(target, FunctionType) and "." in _short(target.__qualname__)
    if implicit and target.__name__ in _IMPLICIT:
        made = _IMPLICIT[target.__name__](made)
    return made


def _wrap_property(
    sections: _Sections, target: property, name: str, phase: _Phase | None, again: bool
) -> property:
    made = target
    for function, change, suffix in (
        (target.fget, "getter", ""),
        (target.fset, "setter", ".setter"),
        (target.fdel, "deleter", ".deleter"),
    ):
        if function is not None:
            timed = _wrap(sections, function, name + suffix, phase, again=again)
            if timed is not function:
                made = getattr(made, change)(timed)
    if made is not target and made.__doc__ != target.__doc__:
        made.__doc__ = target.__doc__
    return made


def _is_lazy(value: Any) -> bool:
    """Tell whether it is a cached property or a partial method: an object around one function."""
    functools = sys.modules.get("functools")
    return functools is not None and isinstance(
        value, (functools.cached_property, functools.partialmethod)
    )


def _is_cached(value: Any) -> bool:
    """Tell whether it is what functools.lru_cache makes of a method."""
    functools = sys.modules.get("functools")
    return functools is not None and type(value) is functools._lru_cache_wrapper


def _is_timed(target: Any, which: _Section, again: bool) -> bool:
    """Tell whether a call of the target counts for the section already."""
    owner = getattr(which, "profiler", None)
    wrappers = 0
    while True:
        target = _called(target)
        if isinstance(target, decorated):
            inside, found = target.__stepwatch_function__, target.__stepwatch_section__
        else:
            index = _WRAPPERS.get(getattr(target, "__code__", None))
            if index is None:
                # A decorator of the program's own that says what it stands for. It may call that
                # more than once or not at all, so only the very same view is the same.
                wrappers += 1
                again = True
                target = _wrapped(target) if wrappers < _WRAPPERS_MOST else None
                if target is None:
                    return False
                continue
            inside, found = target.__wrapped__, target.__closure__[index].cell_contents
        # Beyond very many names there may be several objects of one.
        if getattr(found, "profiler", None) is owner and (
            not again or (found.name, found.phase) == (which.name, which.phase)
        ):
            return True
        target = inside


def _wrapped(target: Any) -> Any:
    """Return what a function stands for, where functools.wraps made it so, else None."""
    return target.__dict__.get("__wrapped__") if type(target) is FunctionType else None


def _code_flags(target: Any) -> int:
    """Return the flags of the code behind partials and bound methods."""
    target = _called(target)
    while isinstance(target, decorated):
        target = _called(target.__stepwatch_function__)
    return int(getattr(getattr(target, "__code__", None), "co_flags", 0))


def _called(target: Any) -> Any:
    """Return the function that bound methods, partials and hooks around it call."""
    while True:
        if isinstance(target, MethodType):
            target = target.__func__
        elif type(target) is FunctionType and _hooked(target) is not None:
            target = _hooked(target)
        elif _is_partial(target):
            target = target.func
        else:
            return target


def _hooked(target: FunctionType) -> Any:
    """Return what a function of stepwatch.compat calls that only looks on, else None."""
    made, inside = target.__dict__.get("__stepwatch_around__", (None, None))
    return inside if made is target else None


def _is_partial(target: Any) -> bool:
    functools = sys.modules.get("functools")
    return functools is not None and isinstance(target, functools.partial)


def _name(target: Any) -> str:
    """Return the name that a target has for itself."""
    if isinstance(target, (staticmethod, classmethod)):
        target = target.__func__
    elif isinstance(target, property):
        target = target.fget or target.fset or target.fdel
    elif _is_lazy(target):
        target = target.func
    while not isinstance(getattr(target, "__qualname__", None), str):
        target = target.func if _is_partial(target) else type(target)
    return _short(target.__qualname__)


def _short(name: str) -> str:
    """Drop the functions that something was defined in."""
    return name.rpartition("<locals>.")[2]


def _coroutine(which: _Section, function: Callable[..., Any]) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with which:
            return await function(*args, **kwargs)

    return _remember(wrapper)


def _generator(which: _Section, function: Callable[..., Any]) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return (yield from stretches(which, function(*args, **kwargs)))

    return _remember(wrapper)


def _async_generator(which: _Section, function: Callable[..., Any]) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        call = stretches(which)
        failed = True
        try:
            call.begin()
            # The event loop closes at its end what it was told of: that is the wrapper, and the
            # wrapper closes the inner one.
            hooks = sys.get_asyncgen_hooks()
            sys.set_asyncgen_hooks(None, None)
            try:
                resume = inner.asend(None)
            finally:
                sys.set_asyncgen_hooks(*hooks)
            while True:
                item = await resume
                call.suspend()
                try:
                    sent = yield item
                except GeneratorExit:
                    call.begin()
                    await inner.aclose()
                    failed = False
                    raise
                except BaseException as error:
                    call.begin()
                    resume = inner.athrow(error)
                else:
                    call.begin()
                    resume = inner.asend(sent)
        except StopAsyncIteration:
            failed = False
        finally:
            call.finish(failed)

    return _remember(wrapper)


def _remember(wrapper: Any) -> Any:
    _WRAPPERS[wrapper.__code__] = wrapper.__code__.co_freevars.index("which")
    return wrapper
