"""Put plain functions in the place of a framework's, and back again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# (owner, name, what was there, what is there now, whether it was the owner's own), newest last.
_replaced: list[tuple[Any, str, Any, Any, bool]] = []


def replace(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> bool:
    """Put what ``make`` makes of ``owner.name`` in its place; tell whether there was such a name.

    The function looks like the one that it stands for: name, doc, signature and ``__wrapped__``.
    """
    original = getattr(owner, name, None)
    if original is None:
        return False
    if getattr(original, "__stepwatch__", False):
        return True  # It is there already.
    function = make(original)
    import functools  # Here, where a framework has it: the program may never import it.

    try:
        functools.update_wrapper(function, original)
    except TypeError:  # A C function whose __qualname__ is no text.
        function.__doc__ = getattr(original, "__doc__", None)
        function.__name__ = function.__qualname__ = name
        function.__wrapped__ = original  # type: ignore[attr-defined]
    function.__stepwatch__ = True  # type: ignore[attr-defined]
    own = name in vars(owner)
    before = vars(owner)[name] if own else None
    if isinstance(before, staticmethod):
        setattr(owner, name, staticmethod(function))
    else:
        setattr(owner, name, function)
    _replaced.append((owner, name, before, function, own))
    return True


def put(owner: Any, name: str, value: Any) -> None:
    """Put a value as it is in the place of ``owner.name``."""
    own = name in vars(owner)
    before = vars(owner)[name] if own else None
    setattr(owner, name, value)
    _replaced.append((owner, name, before, value, own))


def restore() -> None:
    """Undo every replacement, unless somebody else has put something on top of it."""
    while _replaced:
        owner, name, before, function, own = _replaced.pop()
        now = vars(owner).get(name)
        if getattr(now, "__func__", now) is not function:
            continue
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
