"""Functions that stand for others: they take what those take, and tell when they run."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

import pytest
from stepwatch.integrations import _patch
from stepwatch.integrations._stand_in import Hooks, stand_in


class Told:
    """What was told, in turn."""

    def __init__(self, token: object = "token", apart: Any = None, given: object = None) -> None:
        self.log: list[tuple[str, object]] = []
        self.token = token
        self.hooks = Hooks(self.enter, self.leave, self.failed, given, apart)

    def enter(self, told: object) -> object:
        self.log.append(("enter", told))
        return self.token

    def leave(self, token: object) -> None:
        self.log.append(("leave", token))

    def failed(self, token: object) -> None:
        self.log.append(("failed", token))


def plain(a: int, b: int = 2, *, c: int = 3) -> tuple[int, ...]:
    return a, b, c


def nameless(a: int, /, b: int = 2) -> tuple[int, ...]:
    return a, b


def names_of_ours(token: int, original: int = 1, sw: int = 2) -> tuple[int, ...]:
    return token, original, sw


def anything(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return (*args, kwargs)


def must_be_named(a: int, *, c: int) -> tuple[int, ...]:
    return a, c


def test_arguments_are_handed_on() -> None:
    told = Told()
    function = stand_in(plain, told.hooks, None)
    assert function(1) == (1, 2, 3)
    assert function(1, b=5, c=6) == (1, 5, 6)
    assert function(a=7) == (7, 2, 3)
    assert told.log == [("enter", 1), ("leave", "token")] * 2 + [("enter", 7), ("leave", "token")]
    assert function.__code__.co_argcount == 2  # Nothing is packed and unpacked.


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (nameless, (1,), {"b": 4}),
        (names_of_ours, (1, 2), {"sw": 5}),
        (anything, (1, 2, 3), {"x": 4}),
        (must_be_named, (1,), {"c": 2}),
        (len, ("four",), {}),
    ],
)
def test_whatever_the_parameters_are(function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    told = Told()
    assert stand_in(function, told.hooks, None)(*args, **kwargs) == function(*args, **kwargs)
    assert told.log == [("enter", args[0]), ("leave", "token")]


@pytest.mark.parametrize("function", [plain, nameless, must_be_named])
def test_wrong_arguments_are_the_callers_mistake(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        stand_in(function, Told().hooks, None)(1, 2, 3, 4, 5)


def test_what_is_told() -> None:
    told = Told(given="this")
    stand_in(plain, told.hooks, None)(1)
    assert told.log[0] == ("enter", "this")


def test_none_records_nothing() -> None:
    told = Told(token=None)
    assert stand_in(plain, told.hooks, None)(1) == (1, 2, 3)
    assert told.log == [("enter", 1)]


def test_exceptions_pass() -> None:
    def fails(a: int) -> None:
        raise KeyboardInterrupt(a)

    told = Told()
    with pytest.raises(KeyboardInterrupt, match="1"):
        stand_in(fails, told.hooks, None)(1)
    assert told.log == [("enter", 1), ("failed", "token")]


def test_decorators_of_others_may_take_more() -> None:
    """What a wrapper is given is not known from what is inside."""

    @functools.wraps(plain)
    def more(*args: Any, extra: int = 0, **kwargs: Any) -> tuple[int, ...]:
        return (*plain(*args, **kwargs), extra)

    assert stand_in(more, Told().hooks, None)(1, extra=9) == (1, 2, 3, 9)


def test_a_closure_is_put_apart() -> None:
    def step(_: object, closure: Any = None) -> Any:
        return closure() if closure else None

    told = Told(apart=lambda closure: lambda: ("apart", closure()))
    function = stand_in(step, told.hooks, None)
    assert function(1) is None
    assert function(1, lambda: 2) == ("apart", 2)


def test_it_looks_like_the_original() -> None:
    class Owner:
        def method(self, a: int, b: str = "x") -> None:
            """Do something."""

    before = Owner.method
    assert _patch.replace(Owner, "method", lambda one: stand_in(one, Told().hooks, None))
    assert Owner.method is not before
    assert inspect.signature(Owner.method) == inspect.signature(before)
    assert Owner.method.__doc__ == before.__doc__
    assert Owner.method.__qualname__ == before.__qualname__
    _patch.restore()
    assert Owner.method is before
