"""Awkward programs for the function profiler, each a function without arguments.

They do the same every time, so that two profilers can be compared over two runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import itertools
import json
import operator
import re
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

PROGRAMS: list[Callable[[], object]] = []


def program(function: Callable[[], object]) -> Callable[[], object]:
    """Add a function to the corpus."""
    PROGRAMS.append(function)
    return function


def fib(n: int) -> int:
    """Recurse twice."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@program
def recursion() -> object:
    """A function that calls itself."""
    return fib(12)


def even(n: int) -> bool:
    """Half of a pair."""
    return True if n == 0 else odd(n - 1)


def odd(n: int) -> bool:
    """The other half."""
    return False if n == 0 else even(n - 1)


@program
def mutual_recursion() -> object:
    """Two functions that call each other, entered from both sides."""
    return even(11), odd(8), [even(i) for i in range(5)]


def count(n: int) -> Iterator[int]:
    """Yield through another generator."""
    for i in range(n):  # noqa: UP028
        yield i
    yield from inner(n)


def inner(n: int) -> Generator[int, None, None]:
    """Yield squares."""
    for i in range(n):
        yield i * i


@program
def generators() -> object:
    """Generators: exhausted, interleaved, left alone."""
    a, b = count(3), count(4)
    left = [next(a), next(b), next(a), next(b)]
    left += list(b)
    del a
    left.extend(x for x in count(2))
    return left


def catching() -> Generator[int, None, None]:
    """Survive what is thrown in."""
    number = 0
    while True:
        try:
            number += 1
            yield number
        except KeyError:
            number += 100


@program
def generator_throw() -> object:
    """throw() into generators that catch it, and into some that do not."""
    a = catching()
    got = [next(a), a.throw(KeyError("x")), next(a), a.send(None)]
    for _ in range(3):
        b = inner(3)
        next(b)
        with contextlib.suppress(ValueError):
            b.throw(ValueError("out"))
    return got


def cleaning(log: list[int]) -> Generator[int, None, None]:
    """Do something when closed."""
    try:
        yield 1
        yield 2
    finally:
        log.append(len(log))


@program
def generator_close() -> object:
    """close() on generators with a finally, by hand and by the collector."""
    log: list[int] = []
    for _ in range(3):
        a = cleaning(log)
        next(a)
        a.close()
    b = cleaning(log)
    next(b)
    del b
    gc.collect()
    return log


async def child(n: int) -> int:
    """Give the loop a turn."""
    await asyncio.sleep(0)
    return n


async def ticker(n: int) -> AsyncIterator[int]:
    """Yield between turns."""
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def parent() -> list[int]:
    """Awaits in sequence; nothing depends on the clock."""
    got = [await child(i) for i in range(3)]
    async for x in ticker(3):
        got.append(x)
    return got


def drive(coroutine: Any) -> Any:
    """Run a coroutine without an event loop: what a loop calls depends on its mood."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


@program
def coroutines() -> object:
    """async functions and generators."""
    return drive(parent())


def failing(n: int) -> int:
    """Raise from below."""
    if n == 0:
        raise LookupError("bottom")
    return failing(n - 1)


@program
def exceptions() -> object:
    """Exceptions through Python frames."""
    caught = 0
    for depth in range(4):
        try:
            failing(depth)
        except LookupError:
            caught += 1
    return caught


@program
def exceptions_through_c() -> object:
    """Exceptions through C frames, raised by Python callbacks and by C itself."""
    caught = 0
    for call in (
        lambda: sorted([3, 2, 1], key=lambda x: failing(x)),
        lambda: list(map(failing, [1, 2])),
        lambda: int("x"),
        lambda: dict[str, int]().pop("x"),
        lambda: functools.reduce(lambda _, b: failing(b), [1, 2, 3]),
        lambda: json.loads("{"),
        lambda: max([object(), object()], key=operator.attrgetter("nothing")),
    ):
        try:
            call()
        except (LookupError, ValueError, AttributeError):
            caught += 1
    return caught


def compare(a: str, b: str) -> int:
    """Tell which is longer."""
    return len(a) - len(b)


@program
def callbacks() -> object:
    """C functions that call Python ones."""
    words = ["pear", "fig", "apple"]
    return (
        sorted(words, key=lambda w: (len(w), w)),
        sorted(words, key=len),
        sorted(words, key=functools.cmp_to_key(compare)),
        list(map(lambda w: w.upper(), words)),  # noqa: C417
        list(filter(lambda w: "p" in w, words)),
        max(words, key=str.lower),
        functools.reduce(lambda a, b: a + len(b), words, 0),
        re.sub("p", lambda m: m.group(0).upper(), "apple"),
        [list(group) for _, group in itertools.groupby(words, key=lambda w: len(w) > 3)],
    )


class Point:
    """A class with everything that is called behind one's back."""

    def __init__(self, x: int) -> None:
        self._x = x

    @property
    def x(self) -> int:
        """A property."""
        return self._x

    @x.setter
    def x(self, value: int) -> None:
        self._x = value

    @classmethod
    def make(cls, x: int) -> Point:
        """A class method."""
        return cls(x)

    @staticmethod
    def twice(x: int) -> int:
        """A static method."""
        return 2 * x

    def __add__(self, other: Point) -> Point:
        return Point(self.x + other.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self._x)

    def __len__(self) -> int:
        return self._x

    def __getattr__(self, name: str) -> int:
        if name.startswith("n"):
            return len(name)
        raise AttributeError(name)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._x))

    def __call__(self, n: int) -> int:
        return self._x + n


class Sub(Point):
    """Calls up."""

    def __init__(self, x: int) -> None:
        super().__init__(x + 1)


@program
def classes() -> object:
    """Methods of all kinds, and slots that lead to Python."""
    a, b = Point(1), Point.make(2)
    c = a + b
    c.x += 4
    seen = {a, b, c, Sub(3)}
    return len(c), c == a, a in seen, list(b), b(3), a.nothing, getattr(a, "zero", 0), a.twice(2)


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator with a wrapper of its own."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@traced
@traced
def decorated(n: int) -> int:
    """Decorated twice by wrappers with the same name, file and line."""
    return n if n == 0 else decorated(n - 1)


@functools.lru_cache(maxsize=None)  # noqa: UP033
def cached(n: int) -> int:
    """Cached by C code."""
    return n if n < 2 else cached(n - 1) + cached(n - 2)


@program
def decorators() -> object:
    """Wrappers, caches and partials."""
    cached.cache_clear()
    half = functools.partial(decorated, 3)
    return decorated(4), cached(10), half(), contextlib.suppress(KeyError)


@program
def lambdas() -> object:
    """Several functions on one line, several with one name."""
    twice: Callable[[int], int] = lambda x: x * 2  # noqa: E731
    a: Callable[[int], int]
    b: Callable[[int], int]
    a, b = (lambda x: x + 1), (lambda x: twice(x))

    def same(x: int) -> int:
        def same(x: int) -> int:
            return x + 1

        return same(x)

    return [a(1), b(2), a(b(3)), same(3), same(4)]


@program
def comprehensions() -> object:
    """Comprehensions, which are functions in some versions."""
    return (
        [len(str(x)) for x in range(5)],
        {str(x) for x in range(4)},
        {x: abs(x) for x in range(-2, 2)},
        sum(x * x for x in range(6)),
        [[y for y in range(x)] for x in range(3)],  # noqa: C416
    )


def deep(n: int) -> int:
    """Recurse, with a C function in between."""
    return 0 if n == 0 else max(deep(n - 1), n)


@program
def deep_recursion() -> object:
    """Five thousand calls deep."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return deep(5_000)
    finally:
        sys.setrecursionlimit(limit)


@program
def compiled() -> object:
    """exec and eval of code that has no file."""
    names: dict[str, Any] = {}
    exec("def added(x):\n    return x + 1\n", names)
    return [names["added"](i) for i in range(3)], eval("sum(range(4))"), eval("len('abc')")


@program
def freed() -> object:
    """Code that is gone when the next is made, at the same address as like as not."""
    total = 0
    for i in range(300):
        names: dict[str, Any] = {}
        exec(f"def gone_{i % 7}(x):\n    return len(str(x))\n", names)
        total += names[f"gone_{i % 7}"](i)
        names.clear()
    return total


@program
def builtin_methods() -> object:
    """The kinds of native functions and their names."""
    numbers = [3, 1, 2]
    numbers.append(4)
    list.append(numbers, 5)
    append = numbers.append
    append(6)
    table = dict.fromkeys("abc", 0)
    table.update(a=1)
    return (
        table.get("a"),
        "x".join(["a", "b"]),
        str.join("x", ["a", "b"]),
        str.maketrans("a", "b"),
        int.from_bytes(b"ab", "big"),
        bytes.fromhex("00ff"),
        object().__repr__ is None,
        numbers.index(5),
        isinstance(numbers, list),
        getattr(numbers, "count")(1),  # noqa: B009
        operator.itemgetter(1)(numbers),
        sys.intern("name"),
    )
