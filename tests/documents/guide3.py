"""The programs that the tests of guide 3 run, and how their output is read."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from stepwatch.compat import training_profiler

from .conftest import ROOT, Done

EXAMPLE = ROOT / "examples" / "decoding"
# Programs of a few steps: compiling well would take longer than running does.
QUICK = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_backend_optimization_level=0"}
HEADER = re.compile(r"^--- Profiling Metrics \(Step (\d+)\) ---$", re.MULTILINE)
LINE = re.compile(r"^(\w+): avg=(\d+\.\d{4})s, total=(\d+\.\d{2})s, count=(\d+)$", re.MULTILINE)


def headers(text: str) -> list[int]:
    return [int(step) for step in HEADER.findall(text)]


def last_block(text: str) -> dict[str, int]:
    """Return the operations of the last report and how often each was called."""
    return {name: int(count) for name, _, _, count in LINE.findall(text[text.rindex("\n--- ") :])}


def result_of(done: Done) -> Any:
    """Return what a program printed as its last line."""
    return json.loads(done.ok().out.splitlines()[-1])


# A linear recurrence and nothing else, so that a hundred epochs take no time.
JAX_SETUP = f"""
import sys
sys.path.insert(0, {str(EXAMPLE)!r})
import equinox as eqx, jax, jax.random as jr, optax
from data import Batches, recordings
from jax_model import Decoder, mse_loss, predict
train_tensors, val_tensors = recordings(64, steps=10, neurons=8), recordings(16, 10, 8, seed=5)
train_loader = Batches(*train_tensors, size=32)
model, state = eqx.nn.make_with_state(Decoder)(8, width=8, states=8, depth=1, key=jr.PRNGKey(0))
filter_spec = jax.tree_util.tree_map(eqx.is_inexact_array, model)
loss_fn = mse_loss
opt = optax.adam(1e-2)
opt_state = opt.init(eqx.filter(model, filter_spec))
first_model = model
"""

TORCH_SETUP = f"""
import sys
sys.path.insert(0, {str(EXAMPLE)!r})
import torch
from data import recordings
from torch_model import Decoder as TorchDecoder
torch.manual_seed(0)
train_tensors = tuple(map(torch.from_numpy, recordings(64, steps=10, neurons=8)))
val_tensors = tuple(map(torch.from_numpy, recordings(16, 10, 8, seed=5)))
dataset = torch.utils.data.TensorDataset(*train_tensors)
train_loader = torch.utils.data.DataLoader(dataset, batch_size=32)
model = TorchDecoder(8, width=8, states=8, depth=1)
loss_fn = torch.nn.functional.mse_loss
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
"""


JAX_ROWS = f"""
{JAX_SETUP}
import json, time
import jax.numpy as jnp
from foundational_ssm.utils.profiling import *
from foundational_ssm.utils.profiling import get_profiler
profiler = get_profiler()
found = {{}}
inputs, targets = train_tensors
key = jr.PRNGKey(0)
params, static = eqx.partition(model, filter_spec)

compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, duration, **_: compiled.append(event)
    if event.endswith("backend_compile_duration") else None
)

# A loss called as it is: compiled by itself, timed until it is there.
loss = profile_jax_loss_fn(eqx.filter_jit(mse_loss), "my_loss")
plain = eqx.filter_jit(mse_loss)(params, static, state, inputs, targets, key)
timed = loss(params, static, state, inputs, targets, key)
same = jax.tree_util.tree_map(lambda a, b: bool((a == b).all()), timed, plain)
found["same_result"] = all(jax.tree_util.tree_leaves(same))
found["same_wrapper"] = profile_jax_loss_fn(mse_loss) is profile_jax_loss_fn(mse_loss)
found["wrapper_of_wrapper"] = profile_jax_loss_fn(loss, "my_loss") is loss
found["other_name"] = profile_jax_loss_fn(mse_loss, "a") is not profile_jax_loss_fn(mse_loss, "b")

# Waiting: a result that takes its time, beside one that is there.
class Later:
    def block_until_ready(self):
        time.sleep(0.2)
        return self

profile_jax_loss_fn(lambda x: ((x, Later()), {{"grads": jnp.ones(2)}}), "slow_loss")(1.0)
found["slow"] = profiler.get_summary()["slow_loss"]["total_time"]

# A whole step compiled: how often is it traced, how often compiled?
traces = []
@eqx.filter_jit
def make_step(model, state, filter_spec, inputs, targets, loss_fn, opt, opt_state, key):
    traces.append(1)
    params, static = eqx.partition(model, filter_spec)
    (value, state), grads = loss_fn(params, static, state, inputs, targets, key)
    updates, opt_state = opt.update(grads, opt_state, params)
    return eqx.apply_updates(model, updates), state, opt_state, value, grads

profiler.reset()
arguments = [model, state, filter_spec, jnp.asarray(inputs), jnp.asarray(targets), mse_loss]
compiled.clear()
for number in range(12):
    # The wrapper is asked for anew each time, as careless programs do.
    out = profile_make_step(make_step)(*arguments, opt, opt_state, key)
    arguments[0], arguments[1], opt_state = out[0], out[1], out[2]
found["results"] = len(out)
found["traces"] = len(traces)
found["compiled"] = len(compiled)
found["step"] = profiler.get_summary()
found["explained"] = profiler.explain("loss_fn_computation")
log_profiling_metrics()

# The same with the loss looked at apart, and by keyword.
profiler.reset()
probed = profile_make_step(make_step, probe_every=3)
for number in range(6):
    probed(*arguments[:5], loss_fn=mse_loss, opt=opt, opt_state=opt_state, key=key)
found["probed"] = profiler.get_summary()
found["step_of_step"] = profile_make_step(probed) is probed
found["traces_probed"] = len(traces)

# A bound method, and a loss that holds arrays, stay what they are.
class Losses:
    def mse(self, *args):
        return mse_loss(*args)
losses = Losses()
found["method"] = profile_jax_loss_fn(losses.mse) is profile_jax_loss_fn(losses.mse)
class Scaled(eqx.Module):
    scale: jax.Array
    def __call__(self, *args):
        (value, state), grads = mse_loss(*args)
        return (value * self.scale, state), grads
traces.clear()
for scale in (1.0, 2.0):
    values = profile_make_step(make_step)(*arguments[:5], Scaled(jnp.float32(scale)), opt,
        opt_state, key)
    found[f"scaled_{{scale:.0f}}"] = float(values[3])
found["scaled_traces"] = len(traces)

# A loss that raises, while traced and when called.
def broken(*args):
    raise ZeroDivisionError("no such loss")
try:
    profile_make_step(make_step)(*arguments[:5], broken, opt, opt_state, key)
except ZeroDivisionError as error:
    found["raised"] = str(error)
print(json.dumps(found))
"""


WANDB_ROWS = """
import json, sys
import wandb
from foundational_ssm.utils.profiling import TrainingProfiler, get_profiler, log_profiling_metrics
profiler = get_profiler()
profiler.end_timer("op", profiler.start_timer("op"))
log_profiling_metrics(1)            # There is no run yet.
log_profiling_metrics(2)
run = wandb.init(project="p")
silent = TrainingProfiler(log_to_wandb=False)
silent.end_timer("silent", silent.start_timer("silent"))
silent.log_metrics(3)
run.log({"own": 1}, step=4)
log_profiling_metrics(5)            # Ahead of the run.
run.log({"own": 2}, step=500)
log_profiling_metrics(6)            # Behind it: not dropped, and the run's row stays open.
log_profiling_metrics(7)
run.log({"own": 3}, step=600)
log_profiling_metrics(601)
run.log({"own": 4}, step=601)
log_profiling_metrics()             # No step is known.
run.finish()
log_profiling_metrics(8)            # It is over.
print("still here")
"""


# Of every test.


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test a profiler of its own, and let each note be said again."""
    from stepwatch.integrations import _notes

    monkeypatch.delenv("ENABLE_PROFILING", raising=False)
    monkeypatch.delenv("STEPWATCH_RUN_ID", raising=False)
    monkeypatch.setattr(training_profiler, "_profiler", None)
    monkeypatch.setattr(_notes, "_said", set())


@pytest.fixture(autouse=True)
def no_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep JAX out of this process, whose other tests fork; those that need it have a child."""
    for package in ("jax", "equinox"):
        monkeypatch.setitem(sys.modules, package, None)
