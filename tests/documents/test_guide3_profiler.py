"""Guide 3: the profiler of training operations, by itself."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest
from stepwatch.compat import decoding
from stepwatch.compat.training_profiler import (
    TrainingProfiler,
    get_profiler,
    log_profiling_metrics,
    profile_data_loader,
    profile_make_step,
    profile_operation,
    profile_training_loop,
)

from .guide3 import (
    _fresh,  # noqa: F401
    headers,
    last_block,
    no_jax,  # noqa: F401
)

pytestmark = pytest.mark.once


def test_r3_001_data_batches_are_tracked() -> None:
    assert list(profile_data_loader([(1, 2)] * 7)) == [(1, 2)] * 7
    figures = get_profiler().get_summary()["data_batch_production"]
    assert figures["count"] == 7
    assert figures["avg_time"] == pytest.approx(figures["total_time"] / 7)


def eager_step(*args: Any) -> tuple[Any, ...]:
    """Do what the guide's step does, without any framework."""
    model, state, _, inputs, targets, loss_fn, _, opt_state, key = args
    (value, state), grads = loss_fn(model, None, state, inputs, targets, key)
    time.sleep(0.003)
    return model, state, opt_state, value, grads


def sleeping_loss(*_: Any) -> Any:
    time.sleep(0.005)
    return (0.25, "state"), "grads"


def test_r3_002_loss_computation_is_tracked() -> None:
    step = profile_make_step(eager_step)
    for _ in range(4):
        out = step("m", "s", None, 1, 2, sleeping_loss, "opt", "os", 0)
    assert out == ("m", "state", "os", 0.25, "grads")
    figures = get_profiler().get_summary()["loss_fn_computation"]
    assert figures["count"] == 4
    assert 0.005 <= figures["avg_time"] < 0.5


def test_r3_003_model_updates_are_what_the_loss_leaves_of_a_step() -> None:
    step = profile_make_step(eager_step)
    for _ in range(4):
        step("m", "s", None, 1, 2, sleeping_loss, "opt", "os", 0)
    found = get_profiler().get_summary()
    assert list(found) == ["loss_fn_computation", "make_step_total", "model_update"]
    rest = found["make_step_total"]["total_time"] - found["loss_fn_computation"]["total_time"]
    assert found["model_update"]["total_time"] == pytest.approx(rest)
    assert found["model_update"]["count"] == 4
    assert found["model_update"]["avg_time"] >= 0.003


def test_r3_004_custom_operations_have_any_name() -> None:
    profiler = get_profiler()
    for name in ("augment", "a b/c", "Ünïcode", "augment"):
        profiler.end_timer(name, profiler.start_timer(name))
    counts = {name: row["count"] for name, row in profiler.get_summary().items()}
    assert counts == {"augment": 2, "a b/c": 1, "Ünïcode": 1}


def test_r3_005_without_jax_a_step_of_ones_own_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    def make_step(model: int, *rest: Any) -> tuple[Any, ...]:
        state, _, inputs, targets, loss_fn, _, opt_state, key = rest
        (value, state), grads = loss_fn(model, None, state, inputs, targets, key)
        return model + 1, state, opt_state, value, grads

    loader = [(1, 2)] * 3
    model = decoding.train_decoding_jax(
        0, None, loader, None, None, sleeping_loss, None, None, None,
        epochs=2, log_every=6, make_step=make_step,
    )  # fmt: skip
    assert model == 6
    out = capsys.readouterr().out
    assert headers(out) == [6]
    assert last_block(out)["loss_fn_computation"] == 6


def test_r3_008_header(capsys: pytest.CaptureFixture[str]) -> None:
    profiler = TrainingProfiler(log_to_wandb=False)
    profiler.end_timer("op", profiler.start_timer("op"))
    profiler.log_metrics(100)
    assert capsys.readouterr().out.startswith("\n--- Profiling Metrics (Step 100) ---\nop: avg=")


def test_r3_009_lines(capsys: pytest.CaptureFixture[str]) -> None:
    profiler = TrainingProfiler(log_to_wandb=False)
    profiler.native.add("data_batch_production", 2.34, count=100)
    profiler.native.add("tiny", 0.0000021)
    profiler.log_metrics(100)
    assert capsys.readouterr().out == (
        "\n--- Profiling Metrics (Step 100) ---\n"
        "data_batch_production: avg=0.0234s, total=2.34s, count=100\n"
        "tiny: avg=0.0000s, total=0.00s, count=1\n"
    )
    profiler.units = True
    profiler.log_metrics(100)
    assert "tiny: avg=0.0000s, total=0.00s, count=1 (2.1 µs each)\n" in capsys.readouterr().out


def test_r3_011_there_is_one_profiler() -> None:
    assert get_profiler() is get_profiler()
    assert isinstance(get_profiler(), TrainingProfiler)


def test_r3_012_start_timer_returns_a_float_of_a_steady_clock() -> None:
    first, second = (get_profiler().start_timer("op") for _ in range(2))
    assert type(first) is float
    assert second >= first


def test_r3_013_end_timer_counts_one(capsys: pytest.CaptureFixture[str]) -> None:
    profiler = get_profiler()
    outer = profiler.start_timer("op")
    inner = profiler.start_timer("op")
    time.sleep(0.01)
    profiler.end_timer("op", inner)
    profiler.end_timer("op", outer)
    profiler.end_timer("another", outer)
    threads = [
        threading.Thread(target=lambda: profiler.end_timer("op", profiler.start_timer("op")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = profiler.get_summary()
    assert found["op"]["count"] == 10
    assert found["op"]["total_time"] >= 0.02
    assert found["another"]["count"] == 1
    # What is no time of start_timer is said, and counts nothing.
    profiler.end_timer("op", None)  # type: ignore[arg-type]
    profiler.end_timer("op", time.time())
    profiler.end_timer("op", -5.0)
    profiler.end_timer("op", 0)
    profiler.end_timer("op", time.process_time())
    assert profiler.get_summary()["op"]["count"] == 10
    said = capsys.readouterr().err
    assert "end_timer('op') takes what start_timer returned, not NoneType" in said
    assert "end_timer('op') got a time that is not of start_timer" in said


def test_r3_014_log_profiling_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    profiler = get_profiler()
    profiler.end_timer("op", profiler.start_timer("op"))
    log_profiling_metrics()
    for _ in range(3):
        profiler.step()
    log_profiling_metrics()
    log_profiling_metrics(step=77)
    out = capsys.readouterr().out
    assert headers(out) == [0, 3, 77]
    assert last_block(out) == {"op": 1}


def test_r3_015_decorated_functions_of_all_kinds() -> None:
    class Model:
        @profile_operation("method")
        def method(self, x: int) -> int:
            return x + 1

    @profile_operation("async")
    async def later() -> str:
        await asyncio.sleep(0)
        return "done"

    @profile_operation("generator")
    def items() -> Any:
        yield from range(3)

    @profile_operation("failing")
    def failing() -> None:
        raise KeyError("as before")

    model = Model()
    assert [model.method(n) for n in range(5)] == [1, 2, 3, 4, 5]
    assert asyncio.run(later()) == "done"
    assert list(items()) == [0, 1, 2]
    with pytest.raises(KeyError, match="as before"):
        failing()
    counts = {name: row["count"] for name, row in get_profiler().get_summary().items()}
    assert counts == {"method": 5, "async": 1, "generator": 1, "failing": 1}
    row = get_profiler().native.row("failing")
    assert row is not None
    assert row["errors"] == 1
    assert failing.__name__ == "failing"


class Loader:
    """A loader of its own kind."""

    dataset = "the data"

    def __init__(self) -> None:
        self.batch_size = 4

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        for number in range(3):
            time.sleep(0.004)
            yield number

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


def test_r3_016_a_profiled_loader_is_a_loader() -> None:
    loader = Loader()
    before = dict(vars(loader)), type(loader).__iter__
    profiled = profile_data_loader(loader)
    assert (dict(vars(loader)), type(loader).__iter__) == before
    assert len(profiled) == 3
    assert (profiled.dataset, profiled.batch_size) == ("the data", 4)
    profiled.set_epoch(2)
    assert loader.epoch == 2
    assert [list(profiled) for _ in range(2)] == [[0, 1, 2], [0, 1, 2]]
    assert list(loader) == [0, 1, 2]
    figures = get_profiler().get_summary()["data_batch_production"]
    assert figures["count"] == 6
    assert 0.004 <= figures["avg_time"] < 0.4
    assert profile_data_loader(profiled) is profiled


def test_r3_016_generators_lists_and_nothing() -> None:
    generator = profile_data_loader(n for n in range(3))
    assert next(generator) == 0
    assert list(generator) == [1, 2]
    with pytest.raises(TypeError, match="has no len"):
        len(generator)
    some = profile_data_loader([5, 6])
    assert some[1] == 6
    for item in some:
        assert item == 5
        break
    assert not profile_data_loader([])
    assert list(profile_data_loader([])) == []
    assert get_profiler().get_summary()["data_batch_production"]["count"] == 4
    with pytest.raises(TypeError, match="profile_data_loader takes what a for loop can go through"):
        profile_data_loader(5)

    def failing() -> Any:
        yield 1
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        list(profile_data_loader(failing()))


def test_r3_019_profilers_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    first = TrainingProfiler(log_to_wandb=False, log_every=4)
    second = TrainingProfiler(log_to_wandb=False)
    assert (second.log_every, TrainingProfiler().log_to_wandb) == (100, True)
    first.end_timer("op", first.start_timer("op"))
    assert second.get_summary() == {}
    for _ in range(10):
        first.step()
    assert headers(capsys.readouterr().out) == [4, 8]
    for _ in range(199):
        second.step()
    assert headers(capsys.readouterr().out) == [100]
    never = TrainingProfiler(log_to_wandb=False, log_every=0)
    for _ in range(100):
        never.step()
    assert capsys.readouterr().out == ""


def test_r3_020_reset() -> None:
    profiler = get_profiler()

    @profile_operation("decorated")
    def function() -> None: ...

    function()
    profiler.step()
    profiler.reset()
    assert (profiler.get_summary(), profiler.step_count) == ({}, 0)
    function()
    assert profiler.get_summary()["decorated"]["count"] == 1


def test_r3_021_the_summary_is_a_copy() -> None:
    profiler = get_profiler()
    profiler.native.add("op", 1.5, count=3)
    summary = profiler.get_summary()
    assert repr(summary) == "{'op': {'total_time': 1.5, 'count': 3, 'avg_time': 0.5}}"
    summary["op"]["count"] = 99
    summary.clear()
    assert profiler.get_summary()["op"]["count"] == 3
    assert profiler.timers == profiler.get_summary()


@pytest.fixture
def three_calls() -> dict[str, float]:
    profiler = TrainingProfiler()
    for seconds in (0.5, 1.0, 3.0):
        profiler.native.add("op", seconds)
    return profiler.get_summary()["op"]


def test_r3_022_avg_time_is_the_exact_mean(three_calls: dict[str, float]) -> None:
    assert three_calls["avg_time"] == 1.5


def test_r3_023_total_time_in_seconds(three_calls: dict[str, float]) -> None:
    assert three_calls["total_time"] == 4.5


def test_r3_024_count(three_calls: dict[str, float]) -> None:
    assert three_calls["count"] == 3


def test_r3_031_little_overhead() -> None:
    profiler = TrainingProfiler(log_to_wandb=False, log_every=0)
    section = profiler.operation("op")
    best = float("inf")
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(500):
            with section:
                pass
            profiler.end_timer("timer", profiler.start_timer("timer"))
            profiler.step()
        best = min(best, (time.perf_counter() - begin) / 500)
    # All of it together, of a step that takes a millisecond: less than one part in a hundred.
    # Typically it is one part in a thousand.
    assert best < 10e-6
    assert profiler.get_summary()["op"]["count"] == 5000


def test_r3_032_disabled_means_nothing_is_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    class Spied(Loader):
        def __iter__(self) -> Any:
            seen.append(sys._getframe(1).f_code.co_name)
            return iter([(1, 2)] * 3)

    def make_step(*args: Any) -> Any:
        seen.append(args[5])
        return args[0], args[1], args[7], 0.0, None

    decoding.train_decoding_jax(
        0, None, Spied(), None, None, sleeping_loss, None, None, None,
        epochs=1, log_every=1, make_step=make_step, enable_profiling=False,
    )  # fmt: skip
    assert seen[1:] == [sleeping_loss] * 3
    assert get_profiler().get_summary() == {}
    assert capsys.readouterr().out == ""


def test_r3_032_the_environment_switches_it_off_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENABLE_PROFILING", "false")
    profiler = get_profiler()
    profiler.end_timer("op", profiler.start_timer("op"))
    list(profile_data_loader([1, 2]))
    assert profile_make_step(eager_step)("m", "s", None, 1, 2, sleeping_loss, "o", "os", 0)
    assert profiler.get_summary() == {}
    log_profiling_metrics()
    said = capsys.readouterr()
    assert said.out == ""
    assert "ENABLE_PROFILING says so in the environment" in said.err


def test_r3_033_a_larger_log_every_logs_less(capsys: pytest.CaptureFixture[str]) -> None:
    def reports(log_every: int) -> int:
        get_profiler().reset()
        decoding.train_decoding_jax(
            0, None, [(1, 2)] * 10, None, None, None, None, None, None,  # type: ignore[arg-type]
            epochs=4, log_every=log_every, make_step=lambda *a, **_: (a[0], a[1], a[7], 0, 0),
        )  # fmt: skip
        return len(headers(capsys.readouterr().out))

    # What is shorter than log_every is reported once, at its end.
    assert [reports(every) for every in (1, 5, 20, 100)] == [40, 8, 2, 1]
    assert reports(0) == 0


def test_r3_034_missing_metrics_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    profiler = get_profiler()

    @profile_operation("never")
    def never() -> None: ...

    decoding.train_decoding_jax(
        0, None, [(1, 2)], None, None, sleeping_loss, None, None, None,
        epochs=1, make_step=eager_step, enable_profiling=False,
    )  # fmt: skip
    profiler.start_timer("begun")
    log_profiling_metrics()
    out = capsys.readouterr().out
    # RULE-33: the switch.
    assert (
        "nothing was measured: train_decoding_jax was called with enable_profiling=False\n" in out
    )
    # RULE-35: what is there to be measured, and was not called; once.
    assert "not called so far: never, begun\n" in out
    log_profiling_metrics()
    assert "not called so far" not in capsys.readouterr().out
    why = profiler.explain("make_step_total", "never", "begun")
    assert why[0] == (
        "train_decoding_jax was called with enable_profiling=False; enable_profiling=True measures"
    )
    assert why[1:4] == [
        "make_step_total: nothing is timed under this name; measured: nothing",
        "never: never called",
        "begun: start_timer was called, end_timer never",
    ]
    # RULE-34: W&B.
    assert why[4].startswith("wandb ")
    profiler.log_to_wandb = False
    never()
    assert profiler.explain("never") == why[:1]
    profiler.enabled = False
    assert profiler.explain("never")[0] == "profiling is off: profiler.enabled is False"


def test_r3_034_what_is_off_does_not_blame_the_program() -> None:
    profiler = get_profiler()
    profiler.enabled = False
    profiler.end_timer("timed", profiler.start_timer("timed"))
    why = [text for text in profiler.explain() if "wandb" not in text]
    assert why == ["profiling is off: profiler.enabled is False"]


def test_r3_034_an_empty_loader_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    model = decoding.train_decoding_jax(
        "model", None, [], None, None, sleeping_loss, None, None, None,
        epochs=3, make_step=eager_step,
    )  # fmt: skip
    assert model == "model"
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("train_loader gives no batches") == 1


def test_r3_038_loops(capsys: pytest.CaptureFixture[str]) -> None:
    profiler = get_profiler()
    profiler.native.add("before", 1.0)

    def training(steps: int) -> Any:
        for number in range(steps):
            profiler.end_timer("op", profiler.start_timer("op"))
            yield number

    loop = profile_training_loop(training, log_every=3)
    assert loop.__name__ == "training"
    assert list(loop(7)) == list(range(7))
    out = capsys.readouterr().out
    assert headers(out) == [3, 6, 7]
    assert last_block(out) == {"op": 7}
    assert profile_training_loop(lambda: ("model", "state"))() == ("model", "state")
    assert headers(capsys.readouterr().out) == [0]

    async def later() -> int:
        profiler.native.add("awaited", 0.5)
        return 5

    coroutine: Any = profile_training_loop(later)()
    assert capsys.readouterr().out == ""
    assert asyncio.run(coroutine) == 5
    assert last_block(capsys.readouterr().out) == {"awaited": 1}

    @TrainingProfiler(log_to_wandb=False).time_operation("op")
    def function(x: int) -> int:
        return x

    assert function(3) == 3
