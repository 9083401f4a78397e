"""Functions that stand for others, take what those take, and say when they begin and end.

A function that takes anything and hands it on has to pack and unpack it, which costs more than all
that is recorded of a call. So the code is written for the parameters that the original has.
"""

from __future__ import annotations

from types import CodeType, FunctionType

from stepwatch import _core
from stepwatch.integrations import _dynamo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Names of ours begin with sw_, for parameters may have any.
_SOURCE = """
def sw_make(sw_original, sw_compiling, sw_enter, sw_leave, sw_failed, sw_given, sw_apart):
    def sw_rests({parameters}):
        if 0:
            {cells}
        return sw_original({arguments})
    def sw_stand_in({parameters}):
{asked}        sw_token = sw_enter({told})
        if sw_token is None:
            return sw_original({arguments})
        {before}
        try:
            sw_result = sw_original({arguments})
        except BaseException:
            sw_failed(sw_token)
            raise
        sw_leave(sw_token)
        return sw_result
    return sw_stand_in, sw_rests.__code__
"""
# In the eyes of a compiler that was told so what enters says None (_torch_compile.py), and C asks
# whether anything else of torch compiles. With an older torch it is asked here.
_ASKED = """\
        if sw_compiling():
            return sw_original({arguments})
"""
_KEYWORDS, _ANY = 8, 4  # co_flags
_made: dict[tuple[Any, ...], Callable[..., tuple[Any, CodeType]]] = {}


class Hooks:
    """What is called around a function: in C, for the time between is the function's.

    ``enter`` returns None where nothing is to be recorded, or what the other two are given. It is
    told ``given``, or the function's first argument. ``apart`` makes of a closure, where there is
    one, what is called in its place. ``rests``: nothing is recorded where a step is watched in
    brief, and the function has the code of the original then; ``backward``: but not where there are
    steps without an update.
    """

    def __init__(
        self,
        enter: Callable[[Any], Any],
        leave: Callable[[Any], object],
        failed: Callable[[Any], object],
        given: object = None,
        apart: Callable[[Any], Any] | None = None,
        rests: bool = False,
        backward: bool = False,
    ) -> None:
        self.around = (enter, leave, failed, given, apart)
        self.rests, self.backward = rests, backward


def stand_in(
    original: Any, hooks: Hooks, torch: Any, namespace: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Return a function for the place of another.

    With a ``namespace``, which is what the function knows then, torch's compilers take the original
    wherever they meet it. They would take a method without its object, and have ways of their own
    with others; there they are told by what they see: that something compiles.
    """
    known = namespace is not None or torch is None
    asks = not known and not _dynamo.is_told(torch)
    make = _maker(*_shape(original), hooks.around[3] is None, hooks.around[4] is not None, asks)
    compiling = torch.compiler.is_compiling if asks else None
    made, rests = make(original, compiling, *hooks.around)
    alike = _same_code(original, made.__code__) if hooks.rests else None
    if alike is not None:
        # It needs the names that the original knows, too.
        namespace = original.__globals__ if namespace is None else namespace
    if namespace is not None:
        made = FunctionType(made.__code__, namespace, made.__name__, None, made.__closure__)
    if hooks.rests:
        _core.rest_code(made, alike or rests, hooks.backward)
    inner = _innermost(original)
    if inner is not None:
        made.__defaults__, made.__kwdefaults__ = inner.__defaults__, inner.__kwdefaults__
    if torch is not None:
        _dynamo.skip(torch, made)
        if known:
            _dynamo.see_through(made, original)
    return made  # type: ignore[no-any-return]


def _same_code(original: Any, code: CodeType) -> CodeType | None:
    """Return what a function with this code can be given to do what the original does, else None.

    Functions keep the cells that they were made with; code that has none of its own may have those.
    """
    if not isinstance(original, FunctionType) or original.__code__.co_freevars:
        return None
    return original.__code__.replace(co_freevars=code.co_freevars)


def _innermost(original: Any) -> Any:
    """Return the function whose parameters are those of the original, else None.

    What torch puts around its functions hands on what it is given; others may do anything.
    """
    for _ in range(8):
        if not isinstance(original, FunctionType):
            return None
        if not original.__code__.co_flags & (_KEYWORDS | _ANY):
            return original
        if not original.__globals__.get("__name__", "").startswith("torch."):
            return None
        original = getattr(original, "__wrapped__", None)
    return None


def _shape(original: Any) -> tuple[tuple[str, ...], int, int, int]:
    """Return names of parameters, how many may be left out, how many need their names, …

    and how many must not have one. No names: it takes anything.
    """
    inner = _innermost(original)
    if inner is None:
        return (), 0, 0, 0
    code = inner.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    if code.co_kwonlyargcount and len(inner.__kwdefaults__ or ()) != code.co_kwonlyargcount:
        return (), 0, 0, 0
    names = code.co_varnames[:count]
    optional = len(inner.__defaults__ or ())
    return names, optional, code.co_kwonlyargcount, code.co_posonlyargcount


def _maker(
    names: tuple[str, ...],
    optional: int,
    keywords: int,
    nameless: int,
    tells_first: bool,
    apart: bool,
    asks: bool,
) -> Callable[..., tuple[Any, CodeType]]:
    key = (names, optional, keywords, nameless, tells_first, apart, asks)
    found = _made.get(key)
    if found is not None:
        return found
    closure = apart and "closure" in names
    if names:
        plain = len(names) - keywords
        parameters = [
            name if number < plain - optional else f"{name}=None"
            for number, name in enumerate(names)
        ]
        arguments = [
            name if number < plain else f"{name}={name}" for number, name in enumerate(names)
        ]
        if keywords:
            parameters.insert(plain, "*")
        if nameless:
            parameters.insert(nameless, "/")
        # Where a step is watched in brief the token is True, and the closure runs as it is.
        asks_apart = "if closure is not None and sw_token is not True: "
        first, before = names[0], f"{asks_apart}closure = sw_apart(closure)"
    else:
        parameters = arguments = ["*sw_args", "**sw_kwargs"]
        first, before = "sw_args[0] if sw_args else None", "pass"
        if apart:
            closure = True
            before = "if sw_token is not True: sw_args, sw_kwargs = sw_apart(sw_args, sw_kwargs)"
    asked = _ASKED.format(arguments=", ".join(arguments)) if asks else ""
    cells = ["sw_enter", "sw_leave", "sw_failed"]
    cells += ["sw_compiling"] * asks + ["sw_given"] * (not tells_first) + ["sw_apart"] * closure
    source = _SOURCE.format(
        asked=asked,
        cells=", ".join(cells),
        parameters=", ".join(parameters),
        arguments=", ".join(arguments),
        told=first if tells_first else "sw_given",
        before=before if closure else "pass",
    )
    scratch: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), scratch)
    made: Callable[..., tuple[Any, CodeType]] = scratch["sw_make"]
    _made[key] = made
    return made
