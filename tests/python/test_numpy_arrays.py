"""Types of the arrays that a loop without a framework computes with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import stepwatch

pytest.importorskip("numpy")

PROGRAM = """\
import numpy as np

class Net:
    def __init__(self, dtype):
        self.weights = {name: np.full((200, 200), 0.01, dtype) for name in ("in", "out")}
        self.names = ["a", "b"]

    def __getattr__(self, name):
        raise RuntimeError("the program was asked for " + name)

    def step(self, x):
        for _ in range(4):
            x = np.tanh(x @ self.weights["in"]) @ self.weights["out"]
        return x

class Proxy:
    @property
    def __class__(self):
        raise RuntimeError("the program was asked what this is")

def main(dtype):
    net, x, few, proxy = Net(dtype), np.ones((200, 200), dtype), np.ones(3), Proxy()
    for step in range(60):
        y = net.step(x)
    print(float(y[0, 0]) >= 0)

import sys
main(sys.argv[1])
"""


def recorded(folder: Path, cli: Path, dtype: str) -> dict[str, float]:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(stepwatch.__file__).parents[1]),
        "STEPWATCH_PYTHON": sys.executable,
        "OPENBLAS_NUM_THREADS": "1",
    }
    out = folder / dtype
    done = subprocess.run(
        [cli, "run", "-o", out, folder / "program.py", dtype],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    rows = stepwatch.open(out).settings
    return {row["name"]: row["number"] for row in rows if row["what"] == "numpy"}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_of_a_loop(tmp_path: Path, stepwatch_cli: Path, dtype: str) -> None:
    found = recorded(tmp_path, stepwatch_cli, dtype)
    # Two of weights, what goes in, and what the step before gave; small ones do not count.
    assert set(found) == {f"{dtype}_elements"}
    assert found[f"{dtype}_elements"] >= 120_000
