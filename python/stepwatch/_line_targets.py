"""Which functions the line profiler is asked to watch: from objects, and from names."""

from __future__ import annotations

import atexit
import sys
import types

from stepwatch import _core

# Nothing is imported that the program may not have imported itself: it must not find modules
# there, or pay for them, because it is profiled.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

    from stepwatch._core import Lines

_NEW_LOCALS = 2  # a flag of code: that of a function


def functions_of(target: object) -> list[types.FunctionType]:
    """Return the Python functions that ``target`` stands for."""
    if isinstance(target, types.ModuleType):
        return list(_of_module(target))
    if isinstance(target, type):
        return list(_of_class(target))
    found = list(_of_callable(target))
    if not found:
        raise TypeError(
            f"lines needs a function, class or module written in Python, not {target!r:.200}"
        )
    return found


def _from_functools(*names: str) -> tuple[Any, ...]:
    """Return classes of functools; there are no objects of them where it is not imported."""
    functools = sys.modules.get("functools")
    return tuple(getattr(functools, name) for name in names if hasattr(functools, name))


def _of_callable(target: object) -> Iterator[types.FunctionType]:
    """Yield the innermost functions behind wrappers, methods, properties and partials."""
    if isinstance(target, property):
        for part in (target.fget, target.fset, target.fdel):
            if part is not None:
                yield from _of_callable(part)
        return
    seen: set[int] = set()
    current: Any = target
    while id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, (staticmethod, classmethod, types.MethodType)):
            current = current.__func__
        elif isinstance(current, _from_functools("partial", "partialmethod", "cached_property")):
            current = current.func
        elif "__wrapped__" in getattr(current, "__dict__", ()) or (
            not isinstance(current, types.FunctionType) and _wraps(current)
        ):
            current = current.__wrapped__
        elif isinstance(current, types.FunctionType):
            yield current
            return
        else:
            try:
                call = _static(type(current), "__call__")
            except AttributeError:
                return
            if not isinstance(call, types.FunctionType):
                return
            current = call


def _static(target: object, name: str) -> Any:
    """Return an attribute as it is stored, without running code of the program's.

    Raises AttributeError.
    """
    places: list[Any] = []
    if isinstance(target, type):
        places += [vars(base) for base in type.__dict__["__mro__"].__get__(target)]
    else:
        try:
            places.append(object.__getattribute__(target, "__dict__"))
        except AttributeError:
            places = []  # it has slots only
    for place in places + [vars(base) for base in type(target).__mro__]:
        if name in place:
            return place[name]
    raise AttributeError(name)


def _wraps(target: object) -> bool:
    try:
        return _static(target, "__wrapped__") is not None
    except AttributeError:
        return False


def _of_class(target: type) -> Iterator[types.FunctionType]:
    """Yield the functions that the class itself defines."""
    wrappers = (
        property,
        staticmethod,
        classmethod,
        *_from_functools("cached_property", "partialmethod"),
    )
    for value in list(vars(target).values()):
        if isinstance(value, type):
            if value.__qualname__.startswith(target.__qualname__ + "."):
                yield from _of_class(value)
        elif callable(value) or isinstance(value, wrappers):
            for function in _of_callable(value):
                if function.__module__ == target.__module__:
                    yield function


def _of_module(target: types.ModuleType) -> Iterator[types.FunctionType]:
    """Yield the functions written in the module, those of its classes included."""
    for value in list(vars(target).values()):
        if isinstance(value, type):
            if value.__module__ == target.__name__:
                yield from _of_class(value)
        elif callable(value):
            for function in _of_callable(value):
                if function.__globals__ is vars(target):
                    yield function


# --- names ---------------------------------------------------------------------------


class _Name:
    """A function that is asked for by name and has not been found yet."""

    def __init__(self, lines: Lines, module: str, path: str) -> None:
        self.lines = lines
        self.module = module
        self.path = path

    def __str__(self) -> str:
        return f"{self.module}:{self.path}"


_waiting: list[_Name] = []


def add_by_name(lines: Lines, name: str) -> bool:
    """Watch ``module:function``; True if it is there already, else it is awaited."""
    if not isinstance(name, str):
        raise TypeError(f"a function's name must be str, not {type(name).__name__}")
    module, colon, path = name.partition(":")
    parts = path.split(".")
    if not colon or not module or not all(parts) or not all(module.split(".")):
        raise ValueError(f"a function's name is written package.module:function, not {name!r}")
    wanted = _Name(lines, module, path)
    if _resolve(wanted):
        return True
    if not _waiting:
        sys.meta_path.insert(0, _FINDER)
        atexit.register(_say_missing)
    _waiting.append(wanted)
    if module in sys.modules:
        # It is being run, as the program's own script is: by its first step it has its functions.
        from stepwatch.integrations import _steps

        _steps.watch(_at_step)
    return False


def _at_step(_: int) -> None:
    from stepwatch.integrations import _steps

    _steps.forget(_at_step)
    _look_again()


def missing() -> list[str]:
    """Return the names that were asked for and not found so far."""
    _look_again()
    return [str(name) for name in _waiting]


def _resolve(wanted: _Name) -> bool:
    """Watch the function if its module has it by now."""
    target: Any = sys.modules.get(wanted.module)
    if target is None:
        return False
    for part in wanted.path.split("."):
        if part == "<locals>":
            return False
        try:
            target = _static(target, part)
        except AttributeError:
            return False
    try:
        wanted.lines.add(target)
    except TypeError:
        return False
    return True


@_core._unseen
def _look_again() -> None:
    _waiting[:] = [name for name in _waiting if not _resolve(name)]


def _known_names(module: str) -> list[str]:
    """Return names of functions in the module, as they are asked for."""
    found = sys.modules.get(module)
    return [] if found is None else [function.__qualname__ for function in _of_module(found)]


def _say_missing() -> None:
    """Say at the end what was never found, one line each."""
    before = [name for name in _waiting if name.module in sys.modules]
    _look_again()
    late = [name for name in before if name not in _waiting]
    startup: Any = sys.modules.get("stepwatch._startup")  # below `stepwatch run`
    if startup is not None and not startup._is_the_program():
        # Names are for whichever process has the module; only where it is can one be wrong.
        _waiting[:] = [
            name for name in _waiting if name.module != "__main__" and name.module in sys.modules
        ]
    for name in late:
        text = f"lines of {name} were not recorded: it was defined after that was asked for"
        _say(startup, f"{text}; ask where it is there, or write @stepwatch.lines above it")
    if not _waiting:
        return
    import difflib  # at the program's end

    for name in _waiting:
        if name.module not in sys.modules:
            near = difflib.get_close_matches(name.module, sys.modules, 1)
            why = f"module {name.module} was not imported"
            hint = f"; did you mean {near[0]}:{name.path}?" if near else ""
        else:
            near = difflib.get_close_matches(name.path, _known_names(name.module), 3)
            why = f"{name.module} has no function {name.path}"
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
        _say(startup, f"lines of {name} were not recorded: {why}{hint}")
    _waiting.clear()


def _say(startup: Any, text: str) -> None:
    if startup is not None:
        startup._note(text)
    elif sys.stderr is not None:
        print(f"stepwatch: {text}", file=sys.stderr)


class _LookAfter:
    """Loads a module as its own loader does, then looks for functions in it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @_core._between
    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        made: types.ModuleType | None = self._inner.create_module(spec)
        return made

    @_core._between
    def exec_module(self, module: types.ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        _look_again()


class _Finder:
    """Notices when an awaited module is imported; finding it is left to the others."""

    @_core._between
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        for name in _waiting:
            if name.module == fullname:
                break
        else:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            try:
                find = finder.find_spec
            except AttributeError:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                _look_after(spec)
                return spec
        return None


@_core._unseen
def _look_after(spec: ModuleSpec) -> None:
    if hasattr(spec.loader, "exec_module"):
        spec.loader = _LookAfter(spec.loader)  # type: ignore[assignment]


_FINDER = _Finder()


def prepare(code: types.CodeType, module: str) -> types.CodeType:
    """Watch awaited functions of a module whose code is about to run, as ``__main__``.

    Returns the code to run.  For whoever executes a script itself:

        exec(prepare(compile(source, path, "exec"), "__main__"), namespace)
    """
    for name in [name for name in _waiting if name.module == module]:
        path = [part for part in name.path.split(".") if part != "<locals>"]
        replaced = _prepare_path(name, code, path, "")
        if replaced is not None:
            code = replaced
            _waiting.remove(name)
    return code


def _prepare_path(
    name: _Name, code: types.CodeType, path: list[str], outer: str
) -> types.CodeType | None:
    """Return ``code`` with the function at ``path`` watched, or None if it is not there."""
    constants = list(code.co_consts)
    found = False
    for index, inner in enumerate(constants):
        if not isinstance(inner, types.CodeType) or inner.co_name != path[0]:
            continue
        qualname = getattr(inner, "co_qualname", outer + inner.co_name)
        if len(path) == 1:
            new: types.CodeType | None = name.lines._add_code(inner, qualname)
        else:
            local = ".<locals>." if inner.co_flags & _NEW_LOCALS else "."
            new = _prepare_path(name, inner, path[1:], qualname + local)
        if new is not None:
            constants[index] = new
            found = True
    if not found:
        return None
    if all(new is old for new, old in zip(constants, code.co_consts)):
        return code
    return code.replace(co_consts=tuple(constants))
