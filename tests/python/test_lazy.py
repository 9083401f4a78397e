"""Names of the package that are imported when they are used."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest
import stepwatch
from stepwatch._lazy import Lazy

SWEEPS = ["benchmark_callable", "benchmark_dataloader", "benchmark_training", "find_batch_size"]


def told(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_nothing_is_imported_before_it_is_used() -> None:
    code = """
import sys, stepwatch
before = set(sys.modules)
for name in stepwatch.__all__:
    getattr(stepwatch, name)
for name in ("charts", "hf", "hydra", "jax", "keras", "lightning", "tensorboard", "torch"):
    assert hasattr(stepwatch, name)
    assert getattr(getattr(stepwatch, name), "__path__", None) is None
print(len(set(sys.modules) - before))
"""
    assert told(code) == ["0"]


def test_the_short_way_to_attributes_is_open() -> None:
    """CPython has none to attributes of modules with a ``__getattr__``."""
    assert "__getattr__" not in vars(stepwatch)
    with pytest.raises(AttributeError, match="no attribute 'sectoin'"):
        _ = stepwatch.sectoin  # type: ignore[attr-defined]


def test_faces_are_what_an_import_gives() -> None:
    code = """
import stepwatch
face = stepwatch.torch
auto = face.auto
import stepwatch.torch as imported
from stepwatch import torch as again
print(auto is imported.auto, again is imported, stepwatch.torch is imported, face.auto is auto)
print("auto" in dir(face))
"""
    assert told(code) == ["True", "True", "True", "True", "True"]


@pytest.mark.parametrize("name", SWEEPS)
def test_functions_are_seen_through(name: str) -> None:
    from stepwatch import _sweeps

    function = Lazy("stepwatch._sweeps", name)
    real = getattr(_sweeps, name)
    assert inspect.signature(function) == inspect.signature(real)
    assert function.__doc__ == real.__doc__
    assert function.__name__ == name
    assert inspect.unwrap(function) is real
    assert repr(function) == repr(real)
    assert set(dir(real)) <= set(dir(function))
    assert pickle.loads(pickle.dumps(function)) is real


def test_what_was_used_is_in_its_place() -> None:
    code = """
import stepwatch
early = stepwatch.monitor
early.interval_of_a_test = 3
from stepwatch._monitor import monitor
print(stepwatch.monitor is monitor, monitor.interval_of_a_test, early is not monitor)
with early() as block:
    print(block is stepwatch.monitor)
"""
    assert told(code) == ["True", "3", "True", "True"]
