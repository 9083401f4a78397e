"""stepwatch.methods: R0-016 to R0-018."""

from __future__ import annotations

import abc
import asyncio
import copy
import dataclasses
import enum
import functools
import inspect
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest
import stepwatch

if TYPE_CHECKING:
    from .conftest import Recording


class Base:
    def inherited(self) -> str:
        return "inherited"


@stepwatch.methods
class Every(Base):
    """A class with every kind of member."""

    constant = 3

    def __init__(self, value: int = 1) -> None:
        """Keep the value."""
        self.value = value

    def __call__(self, more: int) -> int:
        return self.value + more

    def __repr__(self) -> str:
        return f"Every({self.value})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Every) and other.value == self.value

    __hash__ = None  # type: ignore[assignment]

    def method(self, first: int, second: int = 2) -> int:
        """Add."""
        return first + second

    def fails(self) -> None:
        raise KeyError("mine")

    @staticmethod
    def static(value: int) -> int:
        return value

    @classmethod
    def of(cls, value: int) -> Every:
        return cls(value)

    @property
    def prop(self) -> int:
        """Documented."""
        return self.value

    @prop.setter
    def prop(self, value: int) -> None:
        self.value = value

    @functools.cached_property
    def cached(self) -> int:
        return self.value

    async def wait(self) -> int:
        await asyncio.sleep(0)
        return self.value

    def generate(self) -> Iterator[int]:
        yield from range(3)

    async def agenerate(self) -> AsyncIterator[int]:
        yield 1

    def _private(self) -> int:
        return 1

    class Nested:
        def method(self) -> None: ...


@stepwatch.methods
class Other:
    def method(self) -> None: ...


def test_every_kind_is_counted(recorded: Recording) -> None:
    every = Every(2)
    assert every(1) == 3
    assert every.method(1) == 3
    assert every.method(1, second=5) == 6
    assert Every.static(4) == every.static(4) == 4
    assert Every.of(5).value == 5
    assert every.prop == 2
    every.prop = 7
    assert every.cached == every.cached == 7
    assert asyncio.run(every.wait()) == 7
    assert list(every.generate()) == [0, 1, 2]

    async def all_items() -> list[int]:
        return [item async for item in every.agenerate()]

    assert asyncio.run(all_items()) == [1]
    assert every._private() == 1
    assert repr(every) == "Every(7)"
    assert every == Every(7)
    every.inherited()
    Every.Nested().method()
    Other().method()
    expected = {
        "Every.__init__": 3,
        "Every.__call__": 1,
        "Every.method": 2,
        "Every.static": 2,
        "Every.of": 1,
        "Every.prop": 1,
        "Every.prop.setter": 1,
        "Every.cached": 1,
        "Every.wait": 1,
        "Every.generate": 1,
        "Every.agenerate": 1,
        "Every._private": 1,
        "Other.method": 1,
    }
    counted = {row["name"] for row in recorded.report["sections"]}
    assert counted == set(expected)
    for name, calls in expected.items():
        assert recorded.calls(name) == calls, name


def test_errors_are_counted_and_pass(recorded: Recording) -> None:
    with pytest.raises(KeyError, match="mine"):
        Every().fails()
    assert (recorded.calls("Every.fails"), recorded.errors("Every.fails")) == (1, 1)


def test_the_class_stays_itself() -> None:
    assert isinstance(Every(), Every)
    assert isinstance(Every(), Base)
    assert Every.__doc__ == "A class with every kind of member."
    assert Every.__name__ == "Every"
    assert Every.__module__ == __name__
    assert Every.__init__.__doc__ == "Keep the value."
    assert Every.method.__doc__ == "Add."
    assert Every.__dict__["prop"].__doc__ == "Documented."
    assert isinstance(Every.__dict__["static"], staticmethod)
    assert isinstance(Every.__dict__["of"], classmethod)
    assert isinstance(Every.__dict__["prop"], property)
    assert isinstance(Every.__dict__["cached"], functools.cached_property)
    assert str(inspect.signature(Every)) == "(value: 'int' = 1) -> 'None'"
    assert list(inspect.signature(Every.method).parameters) == ["self", "first", "second"]
    assert list(inspect.signature(Every().method).parameters) == ["first", "second"]
    assert list(inspect.signature(Every()).parameters) == ["more"]
    assert inspect.iscoroutinefunction(Every.wait)
    assert inspect.isgeneratorfunction(Every.generate)
    assert inspect.isasyncgenfunction(Every.agenerate)
    assert pickle.loads(pickle.dumps(Every(9))) == Every(9)
    assert pickle.loads(pickle.dumps(Every)) is Every
    assert pickle.loads(pickle.dumps(Every(9).method))(1, 1) == 2
    assert copy.deepcopy(Every(4)) == Every(4)
    assert "inherited" not in vars(Every)
    assert Every.constant == 3


def test_idempotent(recorded: Recording) -> None:
    @stepwatch.methods
    @stepwatch.methods
    class Twice:
        @stepwatch.profile
        def method(self) -> None: ...

        @stepwatch.profile("another name")
        def named(self) -> None: ...

    before = dict(vars(Twice))
    assert stepwatch.methods(Twice) is Twice
    assert dict(vars(Twice)) == before
    Twice().method()
    Twice().named()
    assert recorded.calls("Twice.method") == 1
    assert recorded.calls("another name") == 1
    assert recorded.calls("Twice.named") == 0


def test_methods_with_a_cache_or_another_decorator(recorded: Recording) -> None:
    def logged(function: Callable[[Cached], int]) -> Callable[[Cached], int]:
        @functools.wraps(function)
        def wrapper(self: Cached) -> int:
            return function(self)

        return wrapper

    @stepwatch.methods
    class Cached:
        @functools.lru_cache(maxsize=4)  # noqa: B019
        def slow(self, number: int) -> int:
            return number

        @logged
        @stepwatch.profile
        def both(self) -> int:
            return 1

    one = Cached()
    assert [one.slow(3), one.slow(3), one.slow(number=4)] == [3, 3, 4]
    assert Cached.slow.cache_info().hits == 1
    assert one.both() == 1
    assert recorded.calls("Cached.slow") == 3
    assert recorded.calls("Cached.both") == 1


def test_overriding_and_super(recorded: Recording) -> None:
    @stepwatch.methods
    class Parent:
        def work(self) -> int:
            return 1

    @stepwatch.methods
    class Child(Parent):
        def work(self) -> int:
            return super().work() + 1

    assert Child().work() == 2
    assert recorded.calls("Parent.work") == recorded.calls("Child.work") == 1
    assert recorded.rows("Parent.work")[0]["path"] == ["Child.work", "Parent.work"]


def test_slots_dataclasses_enums_abstract_and_tuples(recorded: Recording) -> None:
    @stepwatch.methods
    class Slotted:
        __slots__ = ("value",)

        def __init__(self) -> None:
            self.value = 1

        def get(self) -> int:
            return self.value

    @stepwatch.methods
    @dataclasses.dataclass
    class Above:
        value: int = 1

        def get(self) -> int:
            return self.value

    @dataclasses.dataclass(frozen=True, order=True)
    @stepwatch.methods
    class Below:
        value: int = 1

        def get(self) -> int:
            return self.value

    @stepwatch.methods
    class Colour(enum.Enum):
        RED = 1

        def get(self) -> int:
            return int(self.value)

    @stepwatch.methods
    class Abstract(abc.ABC):
        @abc.abstractmethod
        def get(self) -> int: ...

        def concrete(self) -> int:
            return self.get()

    class Concrete(Abstract):
        def get(self) -> int:
            return 1

    @stepwatch.methods
    class Tuple(NamedTuple):
        value: int = 1

        def get(self) -> int:
            return self.value

    assert Slotted().get() == Above().get() == Below().get() == Colour.RED.get() == 1
    assert Concrete().concrete() == Tuple().get() == 1
    assert Above(2) == Above(2)
    assert dataclasses.asdict(Above(2)) == {"value": 2}
    assert Below(1) < Below(2)
    assert Colour(1) is Colour.RED
    with pytest.raises(TypeError, match="abstract"):
        Abstract()  # type: ignore[abstract]
    for name in ("Slotted.get", "Above.get", "Below.get", "Colour.get", "Tuple.get"):
        assert recorded.calls(name) == 1, name
    assert recorded.calls("Slotted.__init__") == 1
    assert recorded.calls("Above.__init__") >= 1
    assert recorded.calls("Abstract.concrete") == 1


def test_only_classes() -> None:
    with pytest.raises(TypeError, match="decorates a class, not 'function'"):
        stepwatch.methods(lambda: None)  # type: ignore[type-var]
