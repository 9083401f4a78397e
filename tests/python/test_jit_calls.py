"""Calls of objects whose C pointer is watched, with objects that every Python has."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stepwatch import _core

UNDECIDED, OWNER, MEMBER, EVALUATES, QUIET = range(5)
pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="needs the GIL"
)


class Hooks:
    """What was asked and told, and what to answer."""

    def __init__(self) -> None:
        self.before: list[tuple[int, Any, Any]] = []
        self.after: list[tuple[int, Any]] = []
        self.compiled: list[tuple[int, Any, Any, Any]] = []
        self.role = UNDECIDED
        self.clean = True
        self.staging = True
        self.blocked: list[Any] = []

    def ask(self, number: int, args: Any, kwargs: Any) -> int:
        self.before.append((number, args, kwargs))
        return self.role

    def install(self) -> None:
        _core.jit_setup(
            before=self.ask,
            after=lambda *told: self.after.append(told),
            compiled=lambda *told: self.compiled.append(told),
            clean=lambda: self.clean,
            staging=lambda: self.staging,
            block=self.blocked.append,
        )


@pytest.fixture
def hooks(recorded: Any) -> Iterator[Hooks]:  # noqa: ARG001
    made = Hooks()
    made.install()
    yield made
    _core.jit_unwatch_all()
    _core.jit_setup(None, None, None, None, None, None)


def watched(function: Callable[..., Any], name: str, *args: Any) -> tuple[Any, int]:
    number = _core.jit_function(_core.section(name))
    made = functools.partial(function, *args)
    assert _core.jit_watch(made, number)
    return made, number


def test_arguments_and_results_pass(hooks: Hooks, recorded: Any) -> None:
    made, number = watched(lambda *args, **kwargs: (args, kwargs), "passes", 1)
    assert made(2, key=3) == ((1, 2), {"key": 3})
    assert made(a=1) == ((1,), {"a": 1})
    assert list(map(made, "ab")) == [((1, "a"), {}), ((1, "b"), {})]
    assert hooks.before[0] == (number, (2,), {"key": 3})
    assert hooks.after[0] == (number, ((1, 2), {"key": 3}))
    assert _core.jit_state(number)[:2] == (UNDECIDED, 4)
    assert _core.jit_watched(made) == number
    assert recorded.calls("passes") == 4


def test_exceptions_pass_and_are_counted(hooks: Hooks, recorded: Any) -> None:
    def fail() -> None:
        _core.jit_running()
        raise KeyError("mine")

    made, number = watched(fail, "fails")
    with pytest.raises(KeyError, match="mine"):
        made()
    assert hooks.after == []
    assert [told[0] for told in hooks.compiled] == [number]
    assert (recorded.calls("fails"), recorded.errors("fails")) == (1, 1)


def test_hooks_that_raise_are_not_noticed(hooks: Hooks, recorded: Any) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("ours")

    _core.jit_setup(broken, broken, broken, broken, broken, broken)
    made, number = watched(lambda: _core.jit_running() and 7, "goes on")
    _core.jit_sync(number, True)
    assert made() == 7
    hooks.install()
    hooks.role = 99  # no such role
    assert made() == 7
    assert recorded.calls("goes on") == 2


@pytest.mark.parametrize("place", ["before", "after", "compiled", "block"])
def test_who_wants_to_stop_can(hooks: Hooks, place: str) -> None:
    """An interrupt that comes while a hook runs is the program's, not ours to swallow."""

    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    parts: dict[str, Any] = dict.fromkeys(
        ["before", "after", "compiled", "clean", "staging", "block"]
    )
    parts["before"] = hooks.ask
    parts[place] = interrupted
    _core.jit_setup(**parts)
    made, number = watched(lambda: _core.jit_running() and 7, "stops")
    _core.jit_sync(number, True)
    with pytest.raises(KeyboardInterrupt):
        made()


def test_traced_calls_do_not_count(hooks: Hooks, recorded: Any) -> None:
    made, number = watched(lambda: 1, "traced")
    hooks.clean = False
    assert made() == 1
    hooks.staging = False
    assert made() == 1
    assert _core.jit_state(number)[1] == 1
    assert recorded.calls("traced") == 1


def test_nested_calls(hooks: Hooks, recorded: Any) -> None:
    """Within a call others are sections, but have no say about steps."""
    inner, inner_number = watched(_core.jit_running, "inner")
    outer, outer_number = watched(lambda: (inner(), _core.jit_running()), "outer")
    assert outer() == (inner_number, outer_number)
    assert _core.jit_running() == 0
    assert [asked[0] for asked in hooks.before] == [outer_number]
    assert [told[0] for told in hooks.compiled] == [inner_number, outer_number]
    assert (recorded.calls("inner"), recorded.calls("outer")) == (1, 1)


def test_sync_waits_for_the_result(hooks: Hooks) -> None:
    made, number = watched(lambda: "result", "waits")
    made()
    assert hooks.blocked == []
    _core.jit_sync(number, True)
    made()
    assert hooks.blocked == ["result"]


def test_steps(hooks: Hooks, recorded: Any) -> None:
    """An owner's calls are steps; what evaluates is none; the last one did not end."""
    train, train_number = watched(lambda: None, "train")
    check, check_number = watched(lambda: None, "check")
    other, other_number = watched(lambda: None, "other")
    _core.jit_role(train_number, OWNER)
    _core.jit_role(check_number, EVALUATES)
    _core.jit_role(other_number, MEMBER, 2)
    for _ in range(3):
        for _ in range(4):
            train()
            other()
        for _ in range(5):
            check()
    assert hooks.before == []
    assert _core.jit_state(other_number)[1:5] == (12, 12, 1, _core.jit_state(train_number)[4])
    for _ in range(3):
        other()
    assert [asked[0] for asked in hooks.before] == [other_number, other_number]
    assert recorded.steps["count"] == 11
    assert recorded.steps["updates"] == 12
    assert recorded.calls("validation") == 3


def test_objects_come_and_go(hooks: Hooks) -> None:
    """Entries go with their objects; what is at their address later is another one."""
    number = _core.jit_function(_core.section("many"))
    kept = []
    for i in range(2000):
        made = functools.partial(abs, i)
        assert _core.jit_watch(made, number)
        assert _core.jit_watch(made, number)
        assert weakref.getweakrefcount(made) == 1
        if i % 3 == 0:
            kept.append(made)
        assert made() == i
    del made
    gc.collect()
    assert [one() for one in kept] == [i for i in range(2000) if i % 3 == 0]
    assert all(_core.jit_watched(one) == number for one in kept)
    fresh = [functools.partial(abs, i) for i in range(2000)]
    assert not any(_core.jit_watched(one) for one in fresh)
    calls = _core.jit_state(number)[1]
    _core.jit_unwatch_all()
    assert [one() for one in kept][:2] == [0, 3]
    assert _core.jit_state(number)[1] == calls
    assert len(hooks.before) == calls
    assert _core.jit_watch(kept[0], number)
    assert kept[0]() == 0
    assert _core.jit_state(number)[1] == calls + 1


def test_last_reference_goes_within_the_call(hooks: Hooks) -> None:  # noqa: ARG001
    holder: list[Any] = []
    made, _ = watched(holder.clear, "forgotten")
    holder.append(made)
    del made
    holder.pop()()
    assert holder == []


def test_threads(hooks: Hooks, recorded: Any) -> None:
    made, number = watched(lambda: _core.jit_running(), "from threads")
    seen: list[set[int]] = []
    threads = [
        threading.Thread(target=lambda: seen.append({made() for _ in range(500)})) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{number}] * 4
    assert len(hooks.after) == 2000
    assert recorded.calls("from threads") == 2000


def test_what_cannot_be_watched_is_refused() -> None:
    number = _core.jit_function(_core.section("refused"))
    for refused in (object(), 3, int, "text"):
        assert not _core.jit_watch(refused, number)
        assert _core.jit_watched(refused) == 0
    with pytest.raises(ValueError, match="no compiled function"):
        _core.jit_watch(functools.partial(int), 0)
    with pytest.raises(ValueError, match="no role 9"):
        _core.jit_role(number, 9)
    with pytest.raises(TypeError, match="section"):
        _core.jit_function("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a name"):
        _core.jit_wait_begin(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a begin"):
        _core.jit_wait_end()  # type: ignore[call-arg]
    assert not _core.jit_watch_buffers(int)


def test_nothing_is_done_while_nothing_is_recorded() -> None:
    made, number = watched(lambda: 5, "not recorded")
    assert made() == 5
    assert _core.jit_state(number)[1] == 0
    assert _core.jit_wait_begin("float(Array)") == 0
    _core.jit_unwatch_all()


def test_waits_nest(recorded: Any) -> None:
    """A wait within another is part of it."""
    begin = _core.jit_wait_begin("float(Array)")
    assert begin > 0
    assert _core.jit_wait_begin("float(Array)") == 0
    assert _core.jit_put_begin("jax.device_put") == 0
    _core.jit_wait_end(0)
    _core.jit_wait_end(begin)
    put = _core.jit_put_begin("jax.device_put")
    _core.jit_put_end(put, 100)
    assert (recorded.calls("sync"), recorded.calls("h2d")) == (1, 1)
