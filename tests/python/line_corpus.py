# fmt: off
# ruff: noqa
# mypy: ignore-errors
# How the programs are laid out over lines is what they are about.
"""Awkward programs for the line profiler: each function is run by itself, alone and watched.

Every entry of PROGRAMS is a function to watch and a function that uses it.  Nothing here
depends on time.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {}


def use(watched: Callable[..., Any], name: str | None = None) -> Any:
    """Say how the function ``watched`` is used."""

    def register(user: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[name or watched.__name__.strip("_")] = (watched, user)
        return user

    return register


def helper(*values: Any, **named: Any) -> int:
    return len(values) + len(named)


def loops(count: int) -> int:
    total = 0
    for index in range(count):
        if index % 3 == 0:
            continue
        total += index
    else:
        total += 1
    while total > 5:
        total -= 3
        if total == 7:
            break
    else:
        total = 100
    return total


use(loops)(lambda: [loops(count) for count in (0, 1, 7, 20)])


def one_line_loops(count: int) -> int:
    total = 0
    for index in range(count): total += index
    while total > 3: total -= 2
    if total: total += 1
    return total


use(one_line_loops)(lambda: [one_line_loops(count) for count in (0, 5, 9)])


def try_finally(what: int) -> int:
    try:
        if what == 1:
            raise ValueError("one")
        if what == 2:
            return 2
        helper(what)
    except ValueError:
        what = 10
    else:
        what += 5
    finally:
        what += 1
    return what


use(try_finally)(lambda: [try_finally(what) for what in range(4)])


def return_in_finally(what: int) -> int:
    for index in range(3):
        try:
            if what == 1:
                raise KeyError(index)
            if what == 2:
                continue
            helper()
        finally:
            if what != 2:
                return index
    return -1


use(return_in_finally)(lambda: [return_in_finally(what) for what in range(3)])


def nested_handlers(what: int) -> str:
    seen = ""
    try:
        try:
            if what > 0:
                raise ValueError(what)
            seen += "a"
        except ValueError as error:
            seen += "b"
            if what > 1:
                raise KeyError(what) from error
        finally:
            seen += "c"
    except KeyError:
        seen += "d"
    return seen


use(nested_handlers)(lambda: [nested_handlers(what) for what in range(3)])


@contextlib.contextmanager
def manager(swallow: bool) -> Iterator[int]:
    try:
        yield 1
    except ValueError:
        if not swallow:
            raise


def with_statements(what: int) -> int:
    with manager(True) as first, manager(False) as second:
        if what == 1:
            raise ValueError("swallowed")
        if what == 2:
            return first
        helper(first, second)
    with manager(
        True,
    ) as third:
        helper(third)
    return what


def use_with_statements() -> list[int]:
    seen = []
    for what in (0, 1, 2):
        with contextlib.suppress(ValueError):
            seen.append(with_statements(what))
    return seen


use(with_statements)(use_with_statements)


def leaves_by_exception(depth: int) -> int:
    helper(depth)
    value = helper(
        depth,
        1 // depth,
    )
    return value


def use_leaves_by_exception() -> None:
    for depth in (1, 0, 2, 0):
        with contextlib.suppress(ZeroDivisionError):
            leaves_by_exception(depth)


use(leaves_by_exception)(use_leaves_by_exception)


def multi_line(count: int) -> Any:
    first = helper(
        count,
        helper(1),
        helper(
            2,
        ),
        named=helper(
            3,
            4,
        ),
    )
    table = {
        "a": helper(1),
        "b": [
            helper(value)
            for value in range(3)
        ],
    }
    total = (
        first
        + helper(1)
        + len(table)
    )
    assert (
        total
        > 0
    ), "never"
    text = f"{first}" \
        f"{total}"
    if (
        first > 1
        and total > 1
        or count
    ):
        text += "!"
    return [
        text,
        total,
    ]


use(multi_line)(lambda: [multi_line(count) for count in range(3)])


def comprehensions(count: int) -> Any:
    squares = [value * value for value in range(count)]
    evens = {
        value: helper(value)
        for value in squares
        if value % 2 == 0
    }
    nested = [[helper(a, b) for a in range(3)] for b in range(count)]
    lazy = sum(helper(value) for value in squares)
    unique = {helper(*value) for value in nested}
    return len(evens), lazy, unique


use(comprehensions)(lambda: [comprehensions(count) for count in (0, 1, 4)])


def lambdas(count: int) -> int:
    double = lambda value: value * 2
    pick = (
        lambda value: (
            helper(value)
        )
    )
    return sum(map(double, range(count))) + pick(count)


use(lambdas)(lambda: [lambdas(count) for count in range(4)])

one_line_lambda = lambda value: helper(value) + 1
use(one_line_lambda, "one_line_lambda")(lambda: [one_line_lambda(value) for value in range(4)])


def nested_functions(count: int) -> int:
    total = 0

    def inner(value: int) -> int:
        nonlocal total
        total += value
        return total

    def with_default(
        value: int = helper(1, 2),
    ) -> int:
        return value

    class Local:
        attribute = helper(3)

        def method(self) -> int:
            return self.attribute

    for index in range(count):
        inner(index)
    return total + with_default() + Local().method()


use(nested_functions)(lambda: [nested_functions(count) for count in range(3)])


def make_closure(start: int) -> Callable[[int], int]:
    def closure(step: int) -> int:
        nonlocal start
        start += step
        return start

    return closure


def class_body() -> type:
    class Body:
        first = helper(1)
        if first:
            second = [value for value in range(first)]
        for third in range(2):
            fourth = third

        def method(self) -> int:
            return self.first

    return Body


use(class_body)(lambda: class_body()().method())


def recursion(count: int) -> int:
    if count < 2:
        return count
    return recursion(count - 1) + recursion(count - 2)


use(recursion)(lambda: recursion(9))


def deep_recursion(count: int) -> int:
    if count:
        return 1 + deep_recursion(count - 1)
    return 0


def use_deep_recursion() -> int:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(3000)
    try:
        return deep_recursion(2000)
    finally:
        sys.setrecursionlimit(limit)


use(deep_recursion)(use_deep_recursion)


def mutual(count: int) -> int:
    if count <= 0:
        return 0
    return other_half(count) + 1


def other_half(count: int) -> int:
    with contextlib.suppress(ValueError):
        if count % 3 == 0:
            mutual(count - 2)
            raise ValueError(count)
    return mutual(count - 1)


use(mutual)(lambda: mutual(9))


def generator(count: int) -> Generator[int, Any, str]:
    received = []
    for index in range(count):
        got = yield index
        if got is not None:
            received.append(got)
    return f"{received}"


def use_generator() -> None:
    list(generator(3))
    one = generator(4)
    other = generator(2)
    next(one)
    next(other)
    one.send("a")
    with contextlib.suppress(StopIteration):
        other.send("b")
        other.send("c")
    one.close()
    generator(5)


use(generator)(use_generator)


def catching_generator(count: int) -> Generator[int, None, str]:
    caught = 0
    while caught < count:
        try:
            yield caught
            caught += 10
        except KeyError:
            caught += 1
        finally:
            helper(caught)
    return "done"


def use_catching_generator() -> None:
    one = catching_generator(3)
    next(one)
    one.throw(KeyError("a"))
    one.throw(KeyError("b"))
    with contextlib.suppress(StopIteration):
        next(one)
    two = catching_generator(3)
    next(two)
    with contextlib.suppress(ValueError):
        two.throw(ValueError("out"))
    three = catching_generator(3)
    next(three)
    three.close()
    four = catching_generator(3)
    with contextlib.suppress(KeyError):
        four.throw(KeyError("early"))


use(catching_generator)(use_catching_generator)


def generator_with(count: int) -> Generator[int, None, None]:
    with manager(True):
        for index in range(count):
            yield index
    with manager(False), manager(True):
        yield -1


def use_generator_with() -> None:
    list(generator_with(2))
    one = generator_with(2)
    next(one)
    one.throw(ValueError("swallowed"))
    one.close()
    two = generator_with(1)
    next(two)
    two.close()


use(generator_with)(use_generator_with)


def delegating(count: int) -> Generator[int, Any, str]:
    first = yield from generator(count)
    second = yield from [
        helper(1),
        helper(2),
    ]
    return f"{first}{second}"


def use_delegating() -> None:
    list(delegating(3))
    one = delegating(3)
    next(one)
    one.send("x")
    one.close()
    two = delegating(2)
    next(two)
    with contextlib.suppress(KeyError):
        two.throw(KeyError("through"))


use(delegating)(use_delegating)


async def coroutine(name: str, count: int) -> list[str]:
    seen = []
    for index in range(count):
        seen.append(f"{name}{index}")
        await asyncio.sleep(0)
    async with Gate() as gate:
        seen.append(gate.name)
    async for item in ticker(2):
        seen.append(str(item))
    more = [item async for item in ticker(2)]
    return seen + [f"{more}"]


class Gate:
    name = "gate"

    async def __aenter__(self) -> Gate:
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.sleep(0)


async def ticker(count: int) -> AsyncIterator[int]:
    for index in range(count):
        await asyncio.sleep(0)
        yield index


async def run_interleaved() -> Any:
    return await asyncio.gather(coroutine("a", 3), coroutine("b", 2), coroutine("c", 0))


use(coroutine)(lambda: asyncio.run(run_interleaved()))
use(ticker)(lambda: asyncio.run(run_interleaved()))


async def cancelled(seen: list[str]) -> None:
    try:
        seen.append("begin")
        await asyncio.sleep(60)
        seen.append("never")
    except asyncio.CancelledError:
        seen.append("cancelled")
        await asyncio.sleep(0)
        raise
    finally:
        seen.append("end")


async def run_cancelled() -> list[str]:
    seen: list[str] = []
    task = asyncio.get_running_loop().create_task(cancelled(seen))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return seen


use(cancelled)(lambda: asyncio.run(run_cancelled()))


async def async_catching(count: int) -> AsyncIterator[int]:
    try:
        for index in range(count):
            yield index
    except KeyError:
        yield -1
    finally:
        await asyncio.sleep(0)


async def run_async_catching() -> None:
    async for _ in async_catching(2):
        pass
    one: Any = async_catching(3)
    await one.__anext__()
    await one.athrow(KeyError("in"))
    await one.aclose()
    two: Any = async_catching(3)
    await two.__anext__()
    await two.aclose()


use(async_catching)(lambda: asyncio.run(run_async_catching()))


def threaded(count: int) -> int:
    total = 0
    for index in range(count):
        total += helper(index)
    return total


def use_threaded() -> None:
    def work() -> None:
        for _ in range(20):
            threaded(10)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


use(threaded)(use_threaded)


def plain_decorator(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def undecorated(count: int) -> int:
    total = helper(count)
    return total


decorated = plain_decorator(plain_decorator(undecorated))
use(undecorated)(lambda: [decorated(count) for count in range(3)])


_SOURCE = (
    "def with_many_constants(what):\n"
    "    total = 0\n"
    "    for index in range(2):\n"
    "        if what == index:\n"
    "            total += 1\n"
    + "".join(f"        total += {1000 + number} * (total > {2000 + number})\n" for number in range(300))
    + "        while total > 1:\n"
    "            total //= 2\n"
    "    return total\n"
)
_namespace: dict[str, Any] = {"__name__": __name__}
exec(compile(_SOURCE, "<many constants>", "exec"), _namespace)
with_many_constants = _namespace["with_many_constants"]
use(with_many_constants)(lambda: [with_many_constants(what) for what in range(3)])

_SOURCE = (
    "def wide_generator(what):\n"
    "    try:\n"
    "        for index in range(what):\n"
    + "".join(f"            what += {1000 + number} * (what > {9000 + number})\n" for number in range(200))
    + "            yield index\n"
    "    except KeyError:\n"
    "        yield -1\n"
    "    return what\n"
)
exec(compile(_SOURCE, "<wide generator>", "exec"), _namespace)
wide_generator = _namespace["wide_generator"]


def use_wide_generator() -> None:
    list(wide_generator(3))
    one = wide_generator(2)
    next(one)
    one.throw(KeyError("in"))
    list(one)


use(wide_generator)(use_wide_generator)


if sys.version_info >= (3, 10):
    _SOURCE = '''
def matching(value):
    match value:
        case 0 | 1:
            return "small"
        case [first, *rest] if first:
            return f"{first}{rest}"
        case {"key": inner}:
            result = helper(inner)
        case str():
            result = "text"
        case _:
            result = None
    return result
'''
    _namespace["helper"] = helper
    exec(compile(_SOURCE, "<match>", "exec"), _namespace)
    matching = _namespace["matching"]
    use(matching)(
        lambda: [matching(value) for value in (0, 1, [1, 2], [0], {"key": 1}, "a", None, {})]
    )
