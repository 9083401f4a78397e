"""State that a program saves without torch is a phase, and the files are what they were."""

from __future__ import annotations

import inspect
import io
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import stepwatch
from stepwatch.integrations import _patch, saving

DUMP = pickle.dump


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    stepwatch.stop()
    stepwatch.start(out=tmp_path / "run", quiet=True, policy="stream")
    saving.install()
    yield tmp_path
    _patch.restore()
    stepwatch.stop()
    assert pickle.dump is DUMP


def checkpoints(folder: Path) -> int:
    """Return how often something was saved, by the report."""
    stepwatch.stop()
    report = stepwatch.open(folder / "run").report().to_dict()
    rows = [one for one in report["sections"] if one["name"] == "checkpoint"]
    assert all(one["phase"] == "checkpoint" for one in rows)
    return sum(one["calls"] for one in rows)


def test_pickle(folder: Path) -> None:
    for step in range(20):
        with stepwatch.step():
            if step % 5 == 4:
                with (folder / "state.pickle").open("wb") as file:
                    pickle.dump({"step": step}, file)
    assert pickle.loads((folder / "state.pickle").read_bytes()) == {"step": 19}
    assert checkpoints(folder) == 4


def test_it_looks_as_before(folder: Path) -> None:
    assert pickle.dump.__name__ == "dump"
    assert pickle.dump.__doc__ == DUMP.__doc__
    assert inspect.signature(pickle.dump) == inspect.signature(DUMP)
    with pytest.raises(TypeError):
        pickle.dump()  # type: ignore[call-arg]
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dump(lambda: None, io.BytesIO())
    assert checkpoints(folder) == 2


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="NumPy is where the other packages are")
def test_numpy(folder: Path) -> None:
    np = pytest.importorskip("numpy")
    values = np.arange(6.0)
    with stepwatch.step():
        np.save(folder / "a.npy", values)
        np.savez(folder / "b.npz", values=values)
        np.savez_compressed(folder / "c.npz", values=values)
    assert (np.load(folder / "a.npy") == values).all()
    assert (np.load(folder / "b.npz")["values"] == values).all()
    assert checkpoints(folder) == 3
