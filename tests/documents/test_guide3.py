"""Guide 3: times of training operations, its two trainers, and W&B."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from stepwatch.compat import _wandb, decoding, training_profiler
from stepwatch.compat.training_analysis import analyze
from stepwatch.compat.training_profiler import (
    TrainingProfiler,
    get_profiler,
    log_profiling_metrics,
    profile_data_loader,
    profile_make_step,
    profile_operation,
    profile_training_loop,
)

from .conftest import RunText, needs
from .guide3 import (
    JAX_ROWS,
    JAX_SETUP,
    QUICK,
    TORCH_SETUP,
    WANDB_ROWS,
    headers,
    last_block,
    result_of,
)
from .guides import snippet

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test a profiler of its own, and let each note be said again."""
    from stepwatch.integrations import _notes

    monkeypatch.delenv("ENABLE_PROFILING", raising=False)
    monkeypatch.delenv("STEPWATCH_RUN_ID", raising=False)
    monkeypatch.setattr(training_profiler, "_profiler", None)
    monkeypatch.setattr(_notes, "_said", set())


# The programs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trainers(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run S3-1: its first half with JAX, its second one with torch, as it names both alike."""
    needs("equinox")
    needs("torch")
    jax_part, mark, torch_part = snippet("S3-1").partition("# For PyTorch training\n")
    program = f"""
{JAX_SETUP}
from foundational_ssm.trainer.decoding import train_decoding_jax, train_decoding_torch
from foundational_ssm.utils.profiling import get_profiler
{jax_part}
jax_summary = get_profiler().get_summary()
def value(model):
    params, static = eqx.partition(model, filter_spec)
    (loss, _), _ = mse_loss(params, static, state, *val_tensors, jr.PRNGKey(0))
    return float(loss)
jax_losses = [value(first_model), value(model)]
bad_loss = None
try:
    train_decoding_jax(model, filter_spec, train_loader, None, None, lambda *_: jax.numpy.ones(()),
        state, opt, opt_state, epochs=1)
except TypeError as error:
    bad_loss = str(error)
get_profiler().reset()
print("=== torch")
{TORCH_SETUP}
before = float(loss_fn(model(val_tensors[0]), val_tensors[1]))
{mark}{torch_part}
after = float(loss_fn(model(val_tensors[0]), val_tensors[1]))
import json
torch_summary = get_profiler().get_summary()
print("=== end")
train_decoding_torch(model, [], None, None, optimizer, loss_fn, num_epochs=2, device="cuda")
arrays = [tuple(value.numpy() for value in train_tensors)]
try:
    train_decoding_torch(model, arrays, None, None, optimizer, lambda *_: 1 / 0, num_epochs=1)
except ZeroDivisionError:
    print("raised")
try:
    train_decoding_torch(model, [train_tensors[0]], None, None, optimizer, loss_fn)
except TypeError as error:
    print(error)
print(json.dumps({{"jax": jax_summary, "torch": torch_summary,
    "bad_loss": bad_loss, "jax_losses": jax_losses, "torch_losses": [before, after],
    "device": next(model.parameters()).device.type}}))
"""
    done = run_text(tmp_path_factory.mktemp("trainers"), program, **QUICK).ok()
    jax_out, _, rest = done.out.partition("=== torch\n")
    torch_out, _, bad_out = rest.partition("=== end\n")
    texts = {"jax_out": jax_out, "torch_out": torch_out, "bad_out": bad_out, "err": done.err}
    return {**result_of(done), **texts}


@pytest.fixture(scope="module")
def jax_rows(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    needs("equinox")
    done = run_text(tmp_path_factory.mktemp("jax"), JAX_ROWS, **QUICK)
    return {**result_of(done), "out": done.out}


@pytest.fixture(scope="module")
def complete(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run S3-11 with the real wandb, offline, and read back what the run has stored."""
    needs("equinox")
    needs("wandb")
    after = """
    wandb.finish()
    """
    done = run_text(
        tmp_path_factory.mktemp("complete"),
        snippet("S3-11"),
        before=JAX_SETUP,
        after=after,
        WANDB_SILENT="false",
        **QUICK,
    ).ok()
    return {"out": done.out, "err": done.err, "rows": stored(done.folder)}


@pytest.fixture(autouse=True)
def no_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep JAX out of this process, whose other tests fork; those that need it have a child."""
    for package in ("jax", "equinox"):
        monkeypatch.setitem(sys.modules, package, None)


def stored(folder: Path) -> list[dict[str, Any]]:
    """Return the history of the only run in a folder."""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    return _wandb.history(str(path))


@pytest.fixture(scope="module")
def wandb_rows(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    needs("wandb")
    done = run_text(tmp_path_factory.mktemp("wandb"), WANDB_ROWS, WANDB_SILENT="false").ok()
    return {"out": done.out, "err": done.err, "rows": stored(done.folder)}


# What is tracked ---------------------------------------------------------------------------------


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


# The trainers ------------------------------------------------------------------------------------


def test_r3_005_train_decoding_jax_trains_and_returns_the_model(trainers: dict[str, Any]) -> None:
    before, after = trainers["jax_losses"]
    assert after < 0.7 * before
    assert trainers["jax"]["make_step_total"]["count"] == 200
    assert "wandb_run_name='my_experiment' is given, but wandb has no active run" in trainers["err"]


def test_r3_005_a_loss_of_another_kind_is_told(trainers: dict[str, Any]) -> None:
    assert trainers["bad_loss"].startswith("a loss_fn returns ((value, state), grads) here")


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


def test_r3_006_train_decoding_torch_trains_where_it_can(trainers: dict[str, Any]) -> None:
    before, after = trainers["torch_losses"]
    assert after < 0.7 * before
    assert trainers["torch"]["training_step"]["count"] == 200
    assert trainers["device"] in ("cpu", "cuda")


def test_r3_006_bad_input(trainers: dict[str, Any]) -> None:
    said = trainers["err"]
    assert said.count("train_decoding_torch: train_loader gives no batches") == 1
    if trainers["device"] == "cpu":
        assert said.count("there is no GPU here, so training is on the CPU") == 1
    assert trainers["bad_out"].splitlines()[:2] == [
        "raised",
        "a loader gives pairs of inputs and targets here, not Tensor",
    ]


def test_r3_007_the_console_is_told_every_log_every(trainers: dict[str, Any]) -> None:
    assert headers(trainers["jax_out"]) == list(range(10, 201, 10))
    assert headers(trainers["torch_out"]) == list(range(10, 101, 10))


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


def test_r3_010_wandb_keys(complete: dict[str, Any]) -> None:
    rows = [row for row in complete["rows"] if "profiling/make_step_total_count" in row]
    assert len(rows) == 20
    counts = [row["profiling/make_step_total_count"] for row in rows]
    assert counts == list(range(10, 201, 10))
    for operation in ("data_batch_production", "loss_fn_computation", "make_step_total"):
        total, count = (rows[-1][f"profiling/{operation}_{key}"] for key in ("total_time", "count"))
        assert rows[-1][f"profiling/{operation}_avg_time"] == pytest.approx(total / count)


def test_r3_010_only_where_a_run_is_active(wandb_rows: dict[str, Any]) -> None:
    said = wandb_rows["err"]
    assert said.count("wandb has no active run: profiling metrics go to the console only") == 1
    assert len(headers(wandb_rows["out"])) == 9
    assert not any("profiling/silent_count" in row for row in wandb_rows["rows"])
    assert wandb_rows["out"].endswith("still here\n")


# Its functions -----------------------------------------------------------------------------------


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


def test_r3_016_torch_loaders(trainers: dict[str, Any]) -> None:
    assert trainers["torch"]["data_batch_production"]["count"] == 200


def test_r3_017_loss_functions_are_timed_until_results_are_there(jax_rows: dict[str, Any]) -> None:
    assert jax_rows["same_result"]
    assert jax_rows["same_wrapper"]
    assert jax_rows["wrapper_of_wrapper"]
    assert jax_rows["other_name"]
    assert jax_rows["method"]
    assert 0.2 <= jax_rows["slow"] < 20


def test_r3_018_one_compilation_under_profile_make_step(jax_rows: dict[str, Any]) -> None:
    assert jax_rows["traces"] == 1
    assert jax_rows["compiled"] == 1
    assert jax_rows["results"] == 5
    step = jax_rows["step"]
    assert step["make_step_total"]["count"] == 12
    # Compiling is no part of any step.
    assert step["compilation"]["count"] == 1
    assert step["compilation"]["total_time"] > 10 * step["make_step_total"]["avg_time"]


def test_r3_018_a_loss_within_is_no_loss_time(jax_rows: dict[str, Any]) -> None:
    assert "loss_fn_computation" not in jax_rows["step"]
    why = "loss_fn_computation: not measured, it runs inside a compiled function (once traced); "
    printed = [line for line in jax_rows["out"].splitlines() if line.startswith(why)]
    assert len(printed) == 1
    assert any(line.startswith(why) for line in jax_rows["explained"])
    # Looked at apart when that was asked for, without compiling the step again.
    assert jax_rows["probed"]["loss_fn_computation"]["count"] == 2
    assert jax_rows["probed"]["make_step_total"]["count"] == 6
    assert jax_rows["traces_probed"] == 1
    assert jax_rows["step_of_step"]


def test_r3_018_losses_with_arrays_and_losses_that_raise(jax_rows: dict[str, Any]) -> None:
    assert jax_rows["scaled_traces"] == 1
    assert jax_rows["scaled_2"] == pytest.approx(2 * jax_rows["scaled_1"])
    assert jax_rows["raised"] == "no such loss"


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


@pytest.mark.parametrize("which", ["jax", "torch"])
def test_r3_025_data_batch_production(trainers: dict[str, Any], which: str) -> None:
    assert trainers[which]["data_batch_production"]["count"] == 200
    assert last_block(trainers[f"{which}_out"])["data_batch_production"] == 200


@pytest.mark.parametrize("which", ["jax", "torch"])
def test_r3_026_loss_fn_computation(trainers: dict[str, Any], which: str) -> None:
    assert trainers[which]["loss_fn_computation"]["count"] == 200
    assert last_block(trainers[f"{which}_out"])["loss_fn_computation"] == 200


def test_r3_027_make_step_total(trainers: dict[str, Any]) -> None:
    found = trainers["jax"]
    assert last_block(trainers["jax_out"])["make_step_total"] == 200
    parts = found["loss_fn_computation"]["total_time"] + found["model_update"]["total_time"]
    assert found["make_step_total"]["total_time"] == pytest.approx(parts)


def test_r3_028_training_step_is_forward_backward_and_update(trainers: dict[str, Any]) -> None:
    found = trainers["torch"]
    assert last_block(trainers["torch_out"])["training_step"] == 200
    parts = found["loss_fn_computation"]["total_time"] + found["model_update"]["total_time"]
    assert found["training_step"]["total_time"] >= parts
    assert "make_step_total" not in found


# W&B ---------------------------------------------------------------------------------------------


def test_r3_029_steps_of_wandb_only_grow(
    complete: dict[str, Any], wandb_rows: dict[str, Any]
) -> None:
    for found in (complete, wandb_rows):
        steps = [row["_step"] for row in found["rows"]]
        assert steps == sorted(set(steps))
        assert "WARNING" not in found["err"]
    profiling = [row for row in complete["rows"] if "profiling/make_step_total_count" in row]
    assert [row["_step"] for row in profiling] == list(range(10, 201, 10))
    # Nothing of the program's own is lost, wherever its steps are.
    rows = wandb_rows["rows"]
    own = {row["own"]: row["_step"] for row in rows if "own" in row}
    assert own == {1: 4, 2: 500, 3: 600, 4: 601}
    by_step = {
        row["_step"]: row.get("profiling/step") for row in rows if "profiling/op_count" in row
    }
    assert by_step == {5: None, 500: 6, 501: 7, 601: 601, 602: 602}


def test_r3_030_the_summary_is_printed_at_the_end(complete: dict[str, Any]) -> None:
    last = complete["out"].splitlines()[-1]
    assert last.startswith("Final profiling summary: {")
    summary = ast.literal_eval(last.partition(": ")[2])
    assert summary["make_step_total"]["count"] == 200
    assert set(summary["make_step_total"]) == {"avg_time", "total_time", "count"}


# Trouble -----------------------------------------------------------------------------------------


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


def test_r3_034_without_wandb_and_jax(run_text: RunText, tmp_path: Path) -> None:
    before = """
    import sys
    for name in ("wandb", "jax", "equinox", "torch"):
        sys.modules[name] = None
    """
    after = """
    log_profiling_metrics()
    from foundational_ssm.utils.profiling import profile_make_step, profile_jax_loss_fn
    print(profile_make_step(lambda *a: a)(1, 2), profile_jax_loss_fn(lambda x: -x)(3))
    from foundational_ssm.trainer.decoding import train_decoding_jax, train_decoding_torch
    for train in (train_decoding_jax, train_decoding_torch):
        try:
            train(*[[]] * 9)
        except ModuleNotFoundError as error:
            print(error)
    """
    done = run_text(tmp_path, snippet("S3-3"), before=before, after=after).ok()
    note = "stepwatch: wandb is not installed: profiling metrics go to the console only\n"
    assert done.err == note
    assert "(1, 2) -3\n" in done.out
    assert "train_decoding_jax needs the packages jax and equinox, or a make_step" in done.out
    assert "train_decoding_torch needs the package torch, which cannot be imported" in done.out


def test_r3_035_custom_operations(run_text: RunText, tmp_path: Path) -> None:
    before = "from foundational_ssm.utils.profiling import profile_operation"
    after = "my_function()\nprint(get_profiler().get_summary()['my_custom_operation']['count'])"
    assert run_text(tmp_path, snippet("S3-12"), before=before, after=after).ok().out == "2\n"


def test_r3_037_both_frameworks_alike(trainers: dict[str, Any]) -> None:
    common = {"data_batch_production", "loss_fn_computation", "model_update", "validation"}
    assert set(trainers["jax"]) == common | {"make_step_total", "compilation"}
    assert set(trainers["torch"]) == common | {"training_step"}


def test_r3_038_from_what_wandb_stored(complete: dict[str, Any]) -> None:
    analysis = analyze(complete["rows"])
    row = analysis.row("make_step_total")
    assert row is not None
    assert row["count"] == 200
    last = complete["rows"][-1]["_step"]
    assert last == 200
    totals = [r["profiling/make_step_total_total_time"] for r in complete["rows"]
              if "profiling/make_step_total_total_time" in r]  # fmt: skip
    assert row["total"] == pytest.approx(totals[-1], rel=1e-6)
    assert analysis.step == "make_step_total"


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


# The blocks of the guide -------------------------------------------------------------------------


def test_s3_01_both_trainers(trainers: dict[str, Any]) -> None:
    assert last_block(trainers["jax_out"])["make_step_total"] == 200
    assert last_block(trainers["torch_out"])["training_step"] == 200
    assert re.search(r"^Epoch 100/100, Train Loss: \d\.\d{4}, Val Loss: \d\.\d{4}$",
                     trainers["jax_out"], re.MULTILINE)  # fmt: skip


def test_s3_02_the_console_looks_like_the_sample(trainers: dict[str, Any]) -> None:
    sample = snippet("S3-2").splitlines()
    out = trainers["jax_out"]
    block = out[out.index("--- Profiling Metrics (Step 100) ---") :].splitlines()
    for number, line in enumerate(sample):
        pattern = re.sub(r"\d+(?=(\\\.\d+)?s|$)", r"\\d+", re.escape(line))
        pattern = re.sub(r"\\\.(\d+)s", lambda m: rf"\.\d{{{len(m[1])}}}s", pattern)
        assert re.fullmatch(pattern if number else re.escape(line), block[number]), block[number]
    assert [line.rpartition("=")[2] for line in block[1:4]] == ["100"] * 3


def test_s3_03_direct_use(run_text: RunText, tmp_path: Path) -> None:
    done = run_text(tmp_path, snippet("S3-3")).ok()
    assert headers(done.out) == [0]
    assert last_block(done.out) == {"my_operation": 1}


def test_s3_04_decorator(run_text: RunText, tmp_path: Path) -> None:
    before = "data = 3\ndef complex_computation(data):\n    return data * 2"
    after = """
    from foundational_ssm.utils.profiling import get_profiler
    print(result, get_profiler().get_summary()["expensive_function"]["count"])
    """
    done = run_text(tmp_path, snippet("S3-4"), before=before, after=after).ok()
    assert done.out == "6 100\n"


def test_s3_05_loader(run_text: RunText, tmp_path: Path) -> None:
    after = """
    from foundational_ssm.utils.profiling import get_profiler
    print(batch, get_profiler().get_summary()["data_batch_production"]["count"])
    """
    done = run_text(tmp_path, snippet("S3-5"), before="train_loader = [1, 2, 3]", after=after).ok()
    assert done.out == "3 3\n"


def test_s3_06_loss(run_text: RunText, tmp_path: Path) -> None:
    before = """
    import jax, jax.numpy as jnp
    def my_loss_fn(params, static, state, inputs, targets, key):
        def loss(params):
            return jnp.mean((inputs * params - targets) ** 2), state
        return jax.value_and_grad(loss, has_aux=True)(params)
    model_params, model_static, state, key = jnp.float32(2), None, jnp.zeros(1), None
    inputs, targets = jnp.arange(4.0), jnp.ones(4)
    """
    after = """
    from foundational_ssm.utils.profiling import get_profiler
    print(float(value), float(grads), list(state))
    print(get_profiler().get_summary()["my_loss_computation"]["count"])
    """
    needs("jax")
    done = run_text(tmp_path, snippet("S3-6"), before=before, after=after).ok()
    assert done.out.splitlines()[-1] == "1"
    assert done.out.startswith("9.0 11.0 ")


def test_s3_07_make_step(run_text: RunText, tmp_path: Path) -> None:
    before = """
    def my_make_step(model, state, filter_spec, inputs, targets, loss_fn, opt, opt_state, key):
        (value, state), grads = loss_fn(model, None, state, inputs, targets, key)
        return model + 1, state, opt_state, value, grads
    def loss_fn(*args):
        return (0.5, "new state"), "gradients"
    model, state, filter_spec, inputs, targets, opt, opt_state, key = 1, 2, 3, 4, 5, 6, 7, 8
    """
    after = """
    from foundational_ssm.utils.profiling import get_profiler
    print(model, state, opt_state, value, grads, sorted(get_profiler().get_summary()))
    """
    done = run_text(tmp_path, snippet("S3-7"), before=before, after=after).ok()
    assert done.out == (
        "2 new state 7 0.5 gradients ['loss_fn_computation', 'make_step_total', 'model_update']\n"
    )


def test_s3_08_a_profiler_of_ones_own(run_text: RunText, tmp_path: Path) -> None:
    after = "print(profiler.log_to_wandb, profiler.log_every, profiler.step_count)"
    assert run_text(tmp_path, snippet("S3-8"), after=after).ok().out == "True 100 0\n"


def test_s3_09_reset_and_summary(run_text: RunText, tmp_path: Path) -> None:
    before = """
    from foundational_ssm.utils.profiling import profile_operation
    @profile_operation("op")
    def op(): pass
    op()
    """
    assert run_text(tmp_path, snippet("S3-9"), before=before, after="print(summary)").ok().out == (
        "{}\n"
    )


def test_s3_10_the_keys_of_wandb(complete: dict[str, Any]) -> None:
    listed = [line for line in snippet("S3-10").splitlines() if line.startswith("profiling/")]
    keys = [key for row in complete["rows"] for key in row if key.startswith("profiling/")]
    assert len(listed) == 6
    assert set(listed) <= set(keys)
    form = re.compile(r"profiling/\w+_(avg_time|total_time|count)")
    assert [key for key in keys if not form.fullmatch(key)] == []


def test_s3_11_complete_script(complete: dict[str, Any]) -> None:
    assert headers(complete["out"]) == list(range(10, 201, 10))
    assert complete["out"].splitlines()[-1].startswith("Final profiling summary: {")
    losses = [row["train/loss"] for row in complete["rows"] if "train/loss" in row]
    assert len(losses) == 20
    assert losses[-1] < losses[0]


def test_s3_12_custom_operations(run_text: RunText, tmp_path: Path) -> None:
    before = "from foundational_ssm.utils.profiling import profile_operation, log_profiling_metrics"
    done = run_text(
        tmp_path, snippet("S3-12"), before=before, after="my_function()\nlog_profiling_metrics(5)"
    ).ok()
    assert headers(done.out) == [5]
    assert last_block(done.out) == {"my_custom_operation": 2}
