"""What the package imports when it is first used: seldom wanted, or a framework's face.

A ``__getattr__`` in the package would do that, too, but CPython keeps its short way to attributes
for modules that have none: each ``stepwatch.section`` of a program would take 25 ns longer.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _load(module: str, name: str | None = None) -> Any:
    __import__(module)
    found = sys.modules[module]
    return found if name is None else getattr(found, name)


class LazyModule(type(sys)):  # type: ignore[misc]
    """A module of the package until something in it is asked for; importing it replaces this."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # Whoever looks a module over wants nothing of it.
        return getattr(_load(self.__name__), name)

    def __dir__(self) -> list[str]:
        return dir(_load(self.__name__))


class Lazy:
    """A function or an object of a module until it is used; from then on it is in its place."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        """Keep where it is."""
        self._module = module
        self._name = name

    @property
    def __wrapped__(self) -> Any:
        """The thing itself: signatures and sources are its own."""
        found = _load(self._module, self._name)
        package = sys.modules[__package__]
        if vars(package).get(self._name) is self:
            setattr(package, self._name, found)
        return found

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self.__wrapped__.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Lazy.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.__wrapped__, name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> Any:
        return _load, (self._module, self._name)
