"""stepwatch.profile and sections as decorators: one call, one count; functions stay themselves."""

from __future__ import annotations

import abc
import asyncio
import copy
import doctest
import functools
import gc
import inspect
import operator
import pickle
import sys
import threading
import time
import types
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import stepwatch

if TYPE_CHECKING:
    from .conftest import Recording


@stepwatch.profile
def documented(first: int, second: int = 2, *rest: int, key: str = "k", **more: int) -> str:
    """Say what came.

    >>> documented(1)
    '1 2 () k {}'
    """
    return f"{first} {second} {rest} {key} {more}"


@stepwatch.profile
async def coroutine(value: int) -> int:
    await asyncio.sleep(0.01)
    return value


@stepwatch.profile
def generator(count: int) -> Generator[Any, Any, str]:
    """Yield numbers."""
    for number in range(count):
        sent = yield number
        if sent is not None:
            yield sent
    return "done"


@stepwatch.profile
async def async_generator(count: int) -> AsyncIterator[int]:
    for number in range(count):
        await asyncio.sleep(0)
        yield number


class Members:
    """A class with every kind of member."""

    def __init__(self) -> None:
        self.value = 1

    @stepwatch.profile
    def method(self, more: int = 0) -> int:
        return self.value + more

    @stepwatch.profile
    @staticmethod
    def static_above(value: int) -> int:
        return value

    @staticmethod
    @stepwatch.profile
    def static_below(value: int) -> int:
        return value

    @stepwatch.profile
    @classmethod
    def class_above(cls) -> str:
        return cls.__name__

    @classmethod
    @stepwatch.profile
    def class_below(cls) -> str:
        return cls.__name__

    @stepwatch.profile  # type: ignore[prop-decorator]
    @property
    def above(self) -> int:
        """Documented."""
        return self.value

    @property
    @stepwatch.profile
    def below(self) -> int:
        return self.value

    @stepwatch.profile  # type: ignore[prop-decorator]
    @functools.cached_property
    def cached(self) -> int:
        return self.value

    async def plain(self) -> int:
        return self.value

    timed_plain = stepwatch.profile("Members.plain")(plain)


def test_arguments_pass_untouched() -> None:
    assert documented(1) == "1 2 () k {}"
    assert documented(1, 3, 4, 5, key="x", y=6) == "1 3 (4, 5) x {'y': 6}"
    assert documented(*(1, 2), **{"second": 2} if False else {}) == "1 2 () k {}"
    with pytest.raises(TypeError, match="documented"):
        documented()  # type: ignore[call-arg]


def test_looks_like_the_function() -> None:
    function = documented.__wrapped__  # type: ignore[attr-defined]
    assert isinstance(function, types.FunctionType)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        assert getattr(documented, name) == getattr(function, name)
    for name in ("__code__", "__globals__", "__defaults__", "__kwdefaults__", "__closure__"):
        assert getattr(documented, name) is getattr(function, name)
    assert inspect.signature(documented) == inspect.signature(function)
    assert inspect.getsource(documented) == inspect.getsource(function)
    assert inspect.getfile(documented) == __file__
    assert inspect.isfunction(documented)
    assert inspect.isroutine(documented)
    assert inspect.unwrap(documented) is function
    assert callable(documented)
    assert "documented" in repr(documented)
    finder = doctest.DocTestFinder()
    assert [test.name for test in finder.find(documented, "documented") if test.examples]


def test_inspect_tells_kinds_apart() -> None:
    assert inspect.iscoroutinefunction(coroutine)
    assert asyncio.iscoroutinefunction(coroutine)
    assert inspect.isgeneratorfunction(generator)
    assert inspect.isasyncgenfunction(async_generator)
    for plain in (documented, Members.method):
        assert not inspect.iscoroutinefunction(plain)
        assert not inspect.isgeneratorfunction(plain)
    assert inspect.isgenerator(generator(1))
    assert generator.__doc__ == "Yield numbers."
    assert str(inspect.signature(generator)).startswith("(count: ")


def test_attributes_can_be_set() -> None:
    @stepwatch.profile
    def function(value: int = 1) -> int:
        return value

    function.note = "mine"  # type: ignore[attr-defined]
    assert function.note == "mine"  # type: ignore[attr-defined]
    assert function.__dict__["note"] == "mine"
    del function.note  # type: ignore[attr-defined]
    assert not hasattr(function, "note")
    function.__defaults__ = (5,)
    assert function() == 5
    function.__name__ = "other"
    assert function.__name__ == "other"


def test_pickle_and_copy() -> None:
    for function in (documented, coroutine, generator, async_generator):
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.copy(function) is function
        assert copy.deepcopy(function) is function
    bound = pickle.loads(pickle.dumps(Members().method))
    assert bound(1) == 2
    part = stepwatch.profile("part")(functools.partial(divmod, 7))
    assert pickle.loads(pickle.dumps(part))(2) == (3, 1)


def test_weak_and_collected() -> None:
    def make() -> Any:
        @stepwatch.profile
        def function() -> Any:
            return function

        return function

    function = make()
    reference = weakref.ref(function)
    assert reference() is not None
    assert function() is function
    del function
    gc.collect()
    assert reference() is None


def test_counts_and_names(recorded: Recording) -> None:
    documented(1)
    documented(2)
    members = Members()
    assert members.method() == 1
    assert members.method(more=2) == 3
    assert Members.method(members) == 1
    assert Members.static_above(3) == members.static_below(3) == 3
    assert Members.class_above() == members.class_below() == "Members"
    assert members.above == members.below == 1
    assert Members.above.__doc__ == "Documented."
    assert members.cached == members.cached == 1
    assert recorded.calls("documented") == 2
    assert recorded.calls("Members.method") == 3
    for name in ("static_above", "static_below", "class_above", "class_below", "above", "below"):
        assert recorded.calls(f"Members.{name}") == 1, name
    assert recorded.calls("Members.cached") == 1


def test_names_and_phases(recorded: Recording) -> None:
    @stepwatch.profile("given", phase="loss")
    def first() -> None: ...

    @stepwatch.profile(name="given too")
    def second() -> None: ...

    @stepwatch.profile(phase="backward")
    def third() -> None: ...

    @stepwatch.profile()
    def fourth() -> None: ...

    for function in (first, second, third, fourth):
        function()
    assert recorded.calls("given too") == recorded.calls("fourth") == 1
    assert recorded.rows("given")[0]["phase"] == "loss"
    assert recorded.rows("third")[0]["phase"] == "backward"


def test_property_functions_each(recorded: Recording) -> None:
    class Owner:
        value = 0

        def get(self) -> int:
            return self.value

        def put(self, value: int) -> None:
            self.value = value

        def drop(self) -> None:
            self.value = 0

        attribute = stepwatch.profile("attribute")(property(get, put, drop, "Doc."))

    owner = Owner()
    owner.attribute = 3
    assert owner.attribute == 3
    del owner.attribute
    assert isinstance(Owner.attribute, property)
    assert Owner.attribute.__doc__ == "Doc."
    for name in ("attribute", "attribute.setter", "attribute.deleter"):
        assert recorded.calls(name) == 1, name


def test_callables_of_all_kinds(recorded: Recording) -> None:
    class Caller:
        def __call__(self, value: int) -> int:
            return value + 1

    assert stepwatch.profile(len)([1, 2]) == 2
    assert stepwatch.profile("get")(operator.itemgetter(1))("ab") == "b"
    assert stepwatch.profile(functools.partial(int, base=2))("11") == 3
    assert stepwatch.profile(Caller())(1) == 2
    assert stepwatch.profile(Members().method)() == 1
    assert stepwatch.profile(functools.partial(Members.method, Members()))() == 1
    cached = stepwatch.profile("cached function")(functools.lru_cache(None)(lambda value: value))
    assert cached(1) == cached(1) == 1
    assert cached.cache_info().hits == 1
    assert recorded.calls("len") == recorded.calls("get") == 1
    assert recorded.calls("Caller") == 1
    assert recorded.calls("cached function") == 2
    assert recorded.calls("Members.method") == 2


def test_refused() -> None:
    with pytest.raises(TypeError, match=r"for the class 'Members' use stepwatch\.methods"):
        stepwatch.profile(Members)
    with pytest.raises(TypeError, match="no call to time in a 'int'"):
        stepwatch.profile(3)
    with pytest.raises(TypeError, match="two names"):
        stepwatch.profile("a", name="b")
    with pytest.raises(ValueError, match="no phase"):
        stepwatch.profile("a", phase="b")  # type: ignore[call-overload]


def test_exceptions(recorded: Recording) -> None:
    error = KeyError("mine")

    @stepwatch.profile("raises")
    def function(error: BaseException) -> None:
        raise error

    for raised in (error, SystemExit(1), KeyboardInterrupt()):
        with pytest.raises(type(raised)) as caught:
            function(raised)
        assert caught.value is raised
    assert caught.tb is not None
    names = [entry.name for entry in caught.traceback]
    assert names[-1] == "function"
    assert len(names) == 2, "there is no frame of ours between"
    assert recorded.calls("raises") == recorded.errors("raises") == 3


def test_recursion(recorded: Recording) -> None:
    @stepwatch.profile("down")
    def down(depth: int) -> int:
        return down(depth - 1) + 1 if depth else 0

    assert down(150) == 150
    with pytest.raises(RecursionError):
        down(1_000_000)
    assert down(10) == 10
    assert recorded.calls("down") >= 151 + 11
    assert recorded.open("down") == 0


def test_stacked_counts_once(recorded: Recording) -> None:
    def function() -> None: ...

    once = stepwatch.profile(function)
    assert stepwatch.profile(once) is once
    assert stepwatch.profile(name="function")(once) is once
    twice = stepwatch.profile("view")(once)
    assert twice is not once
    assert stepwatch.profile(twice) is twice
    assert stepwatch.profile("function")(twice) is twice
    assert stepwatch.section("view")(twice) is twice
    twice()
    assert recorded.calls("function") == recorded.calls("view") == 1
    assert stepwatch.profile(coroutine) is coroutine
    assert stepwatch.profile(generator) is generator
    assert stepwatch.profile(async_generator) is async_generator
    static = staticmethod(once)
    assert stepwatch.profile(static) is static


def test_stacked_around_another_decorator(recorded: Recording) -> None:
    def logged(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def wrapper(*args: object) -> object:
            return function(*args)

        return wrapper

    @stepwatch.profile
    @logged
    @logged
    @stepwatch.profile
    def work() -> None: ...

    @stepwatch.profile
    @logged
    @stepwatch.profile("inner")
    def outer() -> None: ...

    def circle() -> None: ...

    circle.__wrapped__ = circle  # type: ignore[attr-defined]
    work()
    outer()
    assert stepwatch.profile("circle")(circle) is not circle, "and it ends"
    assert recorded.calls("work") == 1
    assert recorded.calls("outer") == recorded.calls("inner") == 1, "two names, two views"


def test_section_as_decorator(recorded: Recording) -> None:
    section = stepwatch.section("decorating", phase="augment")

    @section
    def function() -> int:
        return 1

    @section
    async def waits() -> int:
        return 2

    assert function() == 1
    assert asyncio.run(waits()) == 2
    assert recorded.calls("decorating") == 2
    assert recorded.rows("decorating")[0]["phase"] == "augment"


def test_coroutines_have_their_own_time(recorded: Recording) -> None:
    async def main() -> list[int]:
        return list(await asyncio.gather(coroutine(1), coroutine(2), coroutine(3)))

    assert asyncio.run(main()) == [1, 2, 3]
    assert recorded.calls("coroutine") == 3
    assert recorded.open("coroutine") == 0
    assert min(row["min_ms"] for row in recorded.rows("coroutine")) >= 10
    never = coroutine(1)
    never.close()


def test_generators_count_their_own_time_once(recorded: Recording) -> None:
    @stepwatch.profile
    def slow(pause: float) -> Iterator[int]:
        for number in range(3):
            time.sleep(pause)
            yield number

    for _ in slow(0.01):
        time.sleep(0.05)
    assert recorded.calls("slow") == 1
    assert 30 <= recorded.total_ms("slow") < 150


def test_generators_in_all_ways(recorded: Recording) -> None:
    made = generator(3)
    assert next(made) == 0
    assert made.send("sent") == "sent"
    with pytest.raises(ValueError, match="thrown"):
        made.throw(ValueError("thrown"))
    assert recorded.folder

    def delegate() -> Generator[int, None, None]:
        result = yield from generator(2)
        assert result == "done"

    assert list(delegate()) == [0, 1]
    for _ in generator(5):
        break
    dropped = generator(5)
    next(dropped)
    del dropped
    closed = generator(5)
    next(closed)
    closed.close()
    unused = generator(5)
    del unused
    gc.collect()
    assert recorded.calls("generator") == 5
    assert recorded.errors("generator") == 1
    assert recorded.open("generator") == 0


def test_generator_cleans_up_when_dropped() -> None:
    ended = []

    @stepwatch.profile
    def cleaning() -> Iterator[int]:
        try:
            yield 1
        finally:
            ended.append(1)

    made = cleaning()
    next(made)
    del made
    gc.collect()
    assert ended == [1]


def test_old_coroutines(recorded: Recording) -> None:
    @stepwatch.profile("old")
    @types.coroutine
    def old() -> Generator[Any, Any, int]:
        yield from asyncio.sleep(0.01).__await__()
        return 4

    async def main() -> int:
        return await old()

    assert asyncio.run(main()) == 4
    assert recorded.calls("old") == 1
    assert stepwatch.profile(old) is old


def test_async_generators(recorded: Recording) -> None:
    ended = []

    @stepwatch.profile
    async def echo() -> Any:
        sent = None
        try:
            while True:
                try:
                    sent = yield sent
                except KeyError:
                    sent = "caught"
        finally:
            await asyncio.sleep(0)
            ended.append(1)

    async def main() -> None:
        assert [item async for item in async_generator(3)] == [0, 1, 2]
        made = echo()
        assert await made.asend(None) is None
        assert await made.asend("x") == "x"
        assert await made.athrow(KeyError("y")) == "caught"
        with pytest.raises(ValueError, match="z"):
            await made.athrow(ValueError("z"))
        assert ended == [1]
        made = echo()
        await made.asend(None)
        await made.aclose()
        assert ended == [1, 1]
        left = echo()
        await left.asend(None)

    asyncio.run(main())
    assert ended == [1, 1, 1]
    assert recorded.calls("async_generator") == 1
    assert recorded.errors("async_generator") == 0
    assert recorded.calls("echo") == 3
    assert recorded.errors("echo") == 1
    assert recorded.open("echo") == 0


def test_threads(recorded: Recording) -> None:
    @stepwatch.profile("worker")
    def worker() -> None: ...

    def work() -> None:
        for _ in range(2000):
            worker()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorded.calls("worker") == 8000


def test_abstract_methods_stay_abstract() -> None:
    class Base(abc.ABC):
        @stepwatch.profile
        @abc.abstractmethod
        def method(self) -> None: ...

    with pytest.raises(TypeError, match="abstract"):
        Base()  # type: ignore[abstract]


def test_implicit_static_and_class_methods(recorded: Recording) -> None:
    class Base:
        names: ClassVar[list[str]] = []

        @stepwatch.profile("made")
        @stepwatch.profile
        def __new__(cls) -> Base:
            return super().__new__(cls)

        @stepwatch.profile
        def __init_subclass__(cls, **options: object) -> None:
            super().__init_subclass__(**options)
            cls.names.append(cls.__name__)

        @stepwatch.profile
        def __class_getitem__(cls, item: object) -> tuple[str, object]:
            return cls.__name__, item

    class Derived(Base):
        pass

    assert not isinstance(vars(Base)["__new__"].__func__, staticmethod)
    assert Base.names == ["Derived"]
    assert Derived[7] == ("Derived", 7)  # type: ignore[misc]
    assert type(Derived()) is Derived
    assert type(Derived().__new__(Base)) is Base  # type: ignore[misc, call-arg]
    assert recorded.calls("Base.__init_subclass__") == 1
    assert recorded.calls("Base.__class_getitem__") == 1
    assert recorded.calls("Base.__new__") == recorded.calls("made") == 3


def test_the_function_may_go_while_it_runs(recorded: Recording) -> None:
    class Holder:
        function: Any = None

    def function() -> int:
        Holder.function = None
        gc.collect()
        return 1

    Holder.function = stepwatch.profile("going")(function)
    del function
    assert Holder.function() == 1
    assert recorded.calls("going") == 1


def test_no_references_are_lost() -> None:
    @stepwatch.profile
    def function(value: object) -> object:
        return value

    value = object()
    function(value)
    before = sys.getrefcount(value), sys.getrefcount(function)
    for _ in range(1000):
        function(value)
        function(value=value)
    assert (sys.getrefcount(value), sys.getrefcount(function)) == before
