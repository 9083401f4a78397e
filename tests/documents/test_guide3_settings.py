"""Guide 3: settings that cannot be, and optimizers that compute the loss themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from stepwatch.compat.decoding import train_decoding_jax, train_decoding_torch
from stepwatch.compat.training_profiler import TrainingProfiler, profile_training_loop

from ..conftest import needs
from .conftest import RunText


@pytest.mark.parametrize("wrong", ["3", 2.5, True, [1]])
def test_r3_019_log_every_is_looked_at_when_it_is_said(wrong: Any) -> None:
    sentence = re.escape(
        f"log_every must be a whole number of steps, 0 or None for never, not {wrong!r}"
    )
    with pytest.raises(TypeError, match=sentence):
        TrainingProfiler(log_every=wrong)
    profiler = TrainingProfiler(log_to_wandb=False, log_every=3)
    with pytest.raises(TypeError, match=sentence):
        profiler.log_every = wrong
    assert profiler.log_every == 3
    with pytest.raises(TypeError, match=sentence):
        profile_training_loop(lambda: None, log_every=wrong)
    trainers: list[tuple[Any, int]] = [(train_decoding_jax, 9), (train_decoding_torch, 6)]
    for train, count in trainers:
        with pytest.raises(TypeError, match=sentence):
            train(*[None] * count, log_every=wrong)


def test_r3_019_what_is_a_whole_number_does() -> None:
    class Three:
        def __index__(self) -> int:
            return 3

    assert TrainingProfiler(log_every=Three()).log_every == 3  # type: ignore[arg-type]
    assert TrainingProfiler(log_every=None).log_every is None
    assert TrainingProfiler(log_every=0).log_every == 0


LBFGS = """
import json
import torch
from foundational_ssm.trainer.decoding import train_decoding_torch
from foundational_ssm.utils.profiling import get_profiler

torch.manual_seed(0)
inputs = torch.randn(16, 3)
pair = (inputs, inputs @ torch.tensor([[1.0], [2.0], [3.0]]))
model = torch.nn.Linear(3, 1)
asked = 0

def loss_fn(output, target):
    global asked
    asked += torch.is_grad_enabled()
    return torch.nn.functional.mse_loss(output, target)

first = float(loss_fn(model(pair[0]), pair[1]))
asked = 0
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
train_decoding_torch(model, [pair] * 2, pair, pair, optimizer, loss_fn, num_epochs=3, log_every=0)
last = float(loss_fn(model.cpu()(pair[0]), pair[1]))  # It may have gone to a GPU.
asked -= 1
summary = get_profiler().get_summary()
counts = {name: summary[name]["count"] for name in summary}
times = {name: summary[name]["total_time"] for name in summary}
print(json.dumps([first, last, asked, counts, times]))
"""


def test_r3_006_an_optimizer_that_wants_a_closure(run_text: RunText, tmp_path: Path) -> None:
    needs("torch")
    done = run_text(tmp_path, LBFGS).ok()
    first, last, asked, counts, times = json.loads(done.out.splitlines()[-1])
    assert last < first / 100
    assert counts["training_step"] == counts["model_update"] == 6
    assert counts["loss_fn_computation"] == asked > 6
    assert times["loss_fn_computation"] <= times["model_update"] <= times["training_step"]
