"""Iterations that turn out to have been steps only later: their phases, and the latest time."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import stepwatch


def record(tmp_path: Path, cli: Path, text: str) -> stepwatch.Run:
    path, out = tmp_path / "program.py", tmp_path / "out"
    path.write_text("import time\nimport stepwatch\n" + textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": str(Path(stepwatch.__file__).parents[1])}
    subprocess.run(
        [cli, "run", "--no-report", "--set", "sampler_hz=0", "-o", out, "--", sys.executable, path],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    return stepwatch.open(out)


def phases(step: dict[str, Any]) -> dict[str, float]:
    names = [key for key in step if key.endswith("_ns")]
    aside = ("begin_ns", "duration_ns", "cpu_ns", "run_delay_ns")
    return {name[:-3]: step[name] for name in names if step[name] and name not in aside}


def test_sections_of_the_first_iterations(tmp_path: Path, stepwatch_cli: Path) -> None:
    """What is done between the passes belongs to none of them."""
    run = record(
        tmp_path,
        stepwatch_cli,
        """
        for epoch in range(4):
            for i in range(30):
                with stepwatch.section("forward"):
                    time.sleep(0.001)
                with stepwatch.section("backward"):
                    time.sleep(0.002)
                    with stepwatch.section("loss"):
                        time.sleep(0.001)
            with stepwatch.section("checkpoint"):
                time.sleep(0.003)
        """,
    )
    steps = list(run.steps)
    assert len(steps) >= 118  # From 3.12 on the beginning of a pass has no event.
    for step in steps:
        seen = phases(step)
        assert seen["forward"] >= 1e6
        assert seen["backward"] >= 2e6
        assert seen["loss"] >= 1e6
        assert "checkpoint" not in seen
        assert sum(seen.values()) == step["duration_ns"]


TWICE = """
for epoch in range({epochs}):
    for batch in batches({count}):
        time.sleep(0.002)
"""


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        # The loop around it has not gone on twice when the program ends.
        (TWICE.format(epochs=2, count=30), [0] * 30 + [1] * 30),
        (TWICE.format(epochs=1, count=30), [0] * 30),
        # Too few, and too short.
        (TWICE.format(epochs=1, count=12), []),
        ("for _ in range(2):\n    for _ in range(30):\n        sum(range(100))\n", []),
    ],
)
def test_what_is_known_when_the_program_ends(
    tmp_path: Path, stepwatch_cli: Path, program: str, steps: list[int]
) -> None:
    text = """
def batches(count):
    for i in range(count):
        time.sleep(0.001)
        yield i
"""
    run = record(tmp_path, stepwatch_cli, text + program)
    found = list(run.steps)
    # From 3.12 on the beginning of a pass has no event.
    missing = 0 if sys.version_info < (3, 12) else 2
    assert len(steps) - missing <= len(found) <= len(steps)
    assert {step["epoch"] for step in found} == set(steps)
    assert sum(step["data_wait_ns"] >= 1e6 for step in found) >= len(found) - missing
    sites = [row for row in run.sites if row["what"] == "loop"]
    assert len(sites) == bool(steps)


@pytest.mark.once
def test_compilations_of_jax_before_the_loop_is_known(tmp_path: Path, stepwatch_cli: Path) -> None:
    pytest.importorskip("jax")
    run = record(
        tmp_path,
        stepwatch_cli,
        """
        import jax
        import jax.numpy as jnp

        @jax.jit
        def update(w, x):
            return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w)

        w = jnp.ones(4)
        for i in range(12):
            w = update(w, jnp.ones((8, 4)))
            print(float(w.sum()))
        """,
    )
    steps = list(run.steps)
    assert len(steps) == 12
    assert phases(steps[0])["compile"] > 0
    assert all(phases(step)["logging"] > 0 for step in steps)
