"""Guide 3: the example programs train, and show what the guide shows."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Callable

import pytest

from ..conftest import needs
from .guide3 import EXAMPLE, QUICK, headers, last_block

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def example(
    guide_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., str]:
    def run(name: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, str(EXAMPLE / name), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path_factory.mktemp("example"),
            env={**guide_env, **QUICK},
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_examples_the_three_demonstrations(example: Callable[..., str]) -> None:
    needs("equinox")
    needs("torch")
    out = example("demos.py")
    parts = {part.partition(" ===")[0]: part for part in out.split("\n=== ")[1:]}
    assert last_block(parts["decorator"])["expensive_function"] == 10
    assert last_block(parts["torch"])["training_step"] == 5
    jax_counts = last_block(parts["jax"])
    assert jax_counts["data_batch_production"] == jax_counts["make_step_total"] == 5
    assert jax_counts["loss_fn_computation"] == 5
    assert headers(out) == [0, 5, 5]


def decoded(out: str) -> float:
    found = re.search(r"^validation R2: (\d\.\d+)$", out, re.MULTILINE)
    assert found is not None, out
    return float(found[1])


def test_examples_decode_with_torch(example: Callable[..., str]) -> None:
    needs("torch")
    out = example("train_torch.py", "--epochs", "4", "--log-every", "2")
    assert decoded(out) > 0.6
    assert headers(out) == [2, 4]
    assert last_block(out)["training_step"] == 64
    assert "Top bottlenecks:" in out


def test_examples_decode_with_jax_alike_with_and_without_profiling(
    example: Callable[..., str],
) -> None:
    needs("equinox")
    out = example("train_jax.py", "--epochs", "4", "--log-every", "32")
    assert decoded(out) > 0.6
    assert headers(out) == [32, 64]
    assert last_block(out)["make_step_total"] == 64
    assert "Top bottlenecks:" in out
    without = example("train_jax.py", "--epochs", "4", "--log-every", "32", "--no-profiling")
    wanted = [line for line in out.splitlines() if line.startswith(("Epoch", "validation R2"))]
    assert without.splitlines() == wanted
