"""Guide 3: its blocks of code, its two trainers, and W&B, in programs of their own."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from stepwatch.compat import _wandb
from stepwatch.compat.training_analysis import analyze

from ..conftest import needs
from .conftest import RunText
from .guide3 import (
    JAX_ROWS,
    JAX_SETUP,
    QUICK,
    TORCH_SETUP,
    WANDB_ROWS,
    _fresh,  # noqa: F401
    headers,
    last_block,
    no_jax,  # noqa: F401
    result_of,
)
from .guides import snippet

pytestmark = pytest.mark.once


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
after = float(loss_fn(model.cpu()(val_tensors[0]), val_tensors[1]))
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


def stored(folder: Path) -> list[dict[str, Any]]:
    """Return the history of the only run in a folder."""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    return _wandb.history(str(path))


@pytest.fixture(scope="module")
def wandb_rows(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    needs("wandb")
    done = run_text(tmp_path_factory.mktemp("wandb"), WANDB_ROWS, WANDB_SILENT="false").ok()
    return {"out": done.out, "err": done.err, "rows": stored(done.folder)}


def test_r3_005_train_decoding_jax_trains_and_returns_the_model(trainers: dict[str, Any]) -> None:
    before, after = trainers["jax_losses"]
    assert after < 0.7 * before
    assert trainers["jax"]["make_step_total"]["count"] == 200
    assert "wandb_run_name='my_experiment' is given, but wandb has no active run" in trainers["err"]


def test_r3_005_a_loss_of_another_kind_is_told(trainers: dict[str, Any]) -> None:
    assert trainers["bad_loss"].startswith("a loss_fn returns ((value, state), grads) here")


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
