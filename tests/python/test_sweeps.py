"""Loaders of torch that are measured, and are afterwards as they were."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _core

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Sampler  # noqa: E402

MIB = 1048576


def random_states() -> list[bytes]:
    """Return the state of everything that draws at random, bit by bit."""
    legacy: Any = numpy.random.get_state()
    return [
        repr(random.getstate()).encode(),
        repr(legacy[2:]).encode(),
        legacy[1].tobytes(),
        torch.get_rng_state().numpy().tobytes(),
    ]


def measured(loader: Any, *args: Any, **kwargs: Any) -> Any:
    """Measure the loader, and see that nothing of the program is another than before."""
    states, children = random_states(), set(multiprocessing.active_children())
    try:
        return stepwatch.benchmark_dataloader(loader, *args, **kwargs)
    finally:
        assert random_states() == states
        assert set(multiprocessing.active_children()) == children
        assert not _core.train_aside()


class Numbers(Dataset[Any]):
    """Draws from every generator there is."""

    def __init__(self, count: int = 48, seconds: float = 0.0) -> None:
        self.count, self.seconds = count, seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if self.seconds:
            time.sleep(self.seconds)
        noise = random.random() + float(numpy.random.rand()) + float(torch.rand(()))
        return torch.full((2,), index + 0 * noise), index


def indices(loader: Any) -> list[list[int]]:
    return [batch[1].tolist() for batch in loader]


# --- What is measured ---------------------------------------------------------------------


def test_a_loader_that_sleeps() -> None:
    loader = DataLoader(Numbers(64, 0.02 / 4), batch_size=4)
    result = measured(loader, num_batches=10, workers=())
    (row,) = result.rows
    assert 0.02 <= row["avg_batch_time"] < 0.2
    assert row["min_batch_time"] <= row["avg_batch_time"] <= row["max_batch_time"]
    assert row["first_batch_time"] >= 0.02
    assert row["avg_batch_size"] == 4
    assert row["total_batches_profiled"] == 10
    assert row["throughput"] == row["samples_per_second"]
    assert row["throughput"] == pytest.approx(4 / row["avg_batch_time"], rel=1e-9)
    assert row["batches_per_second"] == pytest.approx(1 / row["avg_batch_time"], rel=1e-9)
    assert row["avg_memory_per_batch"] == pytest.approx(
        row["avg_memory_per_batch_bytes"] / MIB, abs=1e-6
    )
    assert row["avg_memory_per_batch_bytes"] >= row["avg_batch_bytes"] == 4 * (2 * 4 + 8)
    assert {"std_batch_time", "p50_batch_time", "p99_batch_time"} <= set(row)
    assert f"{row['avg_batch_time']:.4f} {row['throughput']:.1f}"


def test_workers_are_tried_and_the_given_come_first() -> None:
    loader = DataLoader(Numbers(400, 0.002), batch_size=2, num_workers=1, prefetch_factor=3)
    result = measured(loader, num_batches=6, workers=[0, 1, 2], prefetch=2)
    settings = [(row["workers"], row["prefetch"]) for row in result.rows]
    assert settings == [(1, 3), (0, None), (1, 2), (2, 2)]
    assert [row["given"] for row in result.rows] == [True, False, False, False]
    assert all(row["total_batches_profiled"] >= 1 for row in result.rows)
    assert any(row is result.best for row in result.rows)
    text = result.table()
    assert text.count("as given") == text.count("  best") + text.count(", best") == 1
    assert json.loads(json.dumps(result.to_dict()))["best"] == result.best
    assert (loader.num_workers, loader.prefetch_factor) == (1, 3)


def test_numbers_of_workers_come_by_themselves() -> None:
    loader = DataLoader(Numbers(200), batch_size=2)
    result = measured(loader, num_batches=4)
    tried = [row["workers"] for row in result.rows]
    assert tried[:2] == [0, 1]
    assert result.rows[0]["given"]
    cores = int(_core.cpus_usable())
    assert max(tried) <= max(1, cores)
    assert all(row["prefetch"] in (2, 4, 8) for row in result.rows if row["workers"])


def test_more_workers_than_cores() -> None:
    count = int(_core.cpus_usable()) + 3
    loader = DataLoader(Numbers(200), batch_size=2)
    result = measured(loader, num_batches=4, workers=count)
    assert [row["workers"] for row in result.rows] == [0, count]
    # Each worker had a turn beyond the first.
    assert result.rows[1]["total_batches_profiled"] >= count


def test_batches_are_timed_in_whole_waves() -> None:
    loader = DataLoader(Numbers(600), batch_size=2)
    rows = measured(loader, num_batches=10, workers=[0, 4], rounds=2).rows
    assert rows[0]["total_batches_profiled"] == 5 * rows[0]["rounds"] >= 10
    assert rows[1]["total_batches_profiled"] == 8 * rows[1]["rounds"] >= 16


def test_fewer_batches_than_workers() -> None:
    loader = DataLoader(Numbers(6), batch_size=2)
    result = measured(loader, workers=[1, 4])
    assert result.rows[2]["total_batches_profiled"] >= 1
    assert "too few batches to see every worker" in result.table()
    assert result.best is not None
    assert result.best["workers"] != 4


def test_an_exhausted_loader() -> None:
    loader = DataLoader(Numbers(10), batch_size=4)
    result = measured(loader, workers=())
    assert result.rows[0]["total_batches_profiled"] == 2
    assert result.rows[0]["avg_batch_size"] == 3
    assert result.notes == ["The loader has fewer than 20 batches."]


@pytest.mark.parametrize("dataset", [Numbers(0), []])
def test_an_empty_loader(dataset: Any) -> None:
    with pytest.raises(ValueError, match="the loader gives no batches"):
        measured(DataLoader(dataset, batch_size=4), workers=())


def test_one_sample_a_batch() -> None:
    row = measured(DataLoader(Numbers()), num_batches=5, workers=()).rows[0]
    assert row["avg_batch_size"] == 1
    assert row["throughput"] == pytest.approx(row["batches_per_second"], rel=1e-9)


def test_no_batches_at_all_but_samples() -> None:
    loader = DataLoader(Numbers(), batch_size=None)
    row = measured(loader, num_batches=5, workers=()).rows[0]
    assert row["total_batches_profiled"] == 5


class Large(Dataset[Any]):
    """Eight megabytes a sample; kept, or given away."""

    def __init__(self, keep: bool) -> None:
        self.keep, self.kept = keep, []  # type: ignore[var-annotated]

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> Any:
        data = torch.full((8 * MIB,), index % 100, dtype=torch.uint8)
        if self.keep:
            time.sleep(0.005)
            self.kept.append(data)
            return torch.zeros(1)
        return data


def test_memory_of_what_a_batch_holds() -> None:
    loader = DataLoader(Large(False), batch_size=1)
    row = measured(loader, num_batches=4, workers=()).rows[0]
    assert row["avg_batch_bytes"] == 8 * MIB
    assert row["avg_memory_per_batch"] >= 8


@pytest.mark.parametrize("workers", [0, 1])
def test_memory_that_a_batch_leaves_behind(workers: int) -> None:
    loader = DataLoader(Large(True), batch_size=1, num_workers=workers)
    row = measured(loader, num_batches=8, workers=()).rows[0]
    assert row["avg_batch_bytes"] == 4
    # The kernel's count may be behind by some pages; a worker may be ahead of the question.
    assert row["avg_memory_per_batch"] > (4 if workers == 0 else 1)


# --- What stays as it was ------------------------------------------------------------------


@pytest.mark.parametrize("generator", [None, torch.Generator().manual_seed(11)])
@pytest.mark.parametrize("workers", [0, 1])
def test_the_order_of_batches(generator: Any, workers: int) -> None:
    loader = DataLoader(
        Numbers(), batch_size=4, shuffle=True, generator=generator, num_workers=workers
    )
    state = None if generator is None else generator.get_state()
    shared = torch.get_rng_state()
    expected = indices(loader)
    torch.set_rng_state(shared)
    if generator is not None:
        generator.set_state(state)
    measured(loader, num_batches=4, workers=[0, 1])
    if generator is not None:
        assert torch.equal(generator.get_state(), state)
    assert indices(loader) == expected


class Shuffles(Sampler[int]):
    """Changes itself whenever it is gone through, in every way there is."""

    def __init__(self, count: int) -> None:
        self.order = list(range(count))
        self.array = numpy.arange(count)
        self.passes = 0
        self.own = random.Random(4)
        self.generator = torch.Generator().manual_seed(5)
        self.state = {"seen": [0]}

    def __iter__(self) -> Iterator[int]:
        self.passes += 1
        self.own.shuffle(self.order)
        self.array[:] = self.array[::-1].copy()
        self.state["seen"][0] += 1
        torch.randperm(3, generator=self.generator)
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)

    def told(self) -> tuple[Any, ...]:
        return (
            list(self.order), self.array.tolist(), self.passes, self.own.getstate(),
            self.generator.get_state().tolist(), self.state["seen"][0],
        )  # fmt: skip


class Foreign:
    """A sampler that torch does not know the class of."""

    def __init__(self, inner: Shuffles) -> None:
        self.inner, self.calls = inner, 0

    def __iter__(self) -> Iterator[list[int]]:
        self.calls += 1
        order = list(self.inner)
        return (order[at : at + 4] for at in range(0, len(order), 4))

    def __len__(self) -> int:
        return len(self.inner) // 4


@pytest.mark.parametrize("kind", ["sampler", "batch_sampler", "foreign"])
def test_samplers_of_the_programs_own(kind: str) -> None:
    sampler = Shuffles(48)
    before = sampler.told()
    if kind == "sampler":
        loader = DataLoader(Numbers(), batch_size=4, sampler=sampler)
    elif kind == "batch_sampler":
        loader = DataLoader(Numbers(), batch_sampler=BatchSampler(sampler, 4, False))
    else:
        foreign: Any = Foreign(sampler)
        loader = DataLoader(Numbers(), batch_sampler=foreign)
    result = measured(loader, num_batches=4, workers=[0, 1])
    assert sampler.told() == before
    assert result.rows[0]["avg_batch_size"] == 4
    if kind == "foreign":
        assert foreign.calls == 0


def test_a_sampler_that_can_be_used_once() -> None:
    source: Any = (index for index in range(8))
    loader = DataLoader(Numbers(), batch_size=4, sampler=source)
    with pytest.raises(TypeError, match="its sampler is an iterator"):
        measured(loader)
    assert list(source) == list(range(8))


def test_a_pass_of_the_program_goes_on() -> None:
    torch.manual_seed(8)
    expected = indices(DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2))
    loader = DataLoader(
        Numbers(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True
    )
    torch.manual_seed(8)
    iterator = iter(loader)
    workers = [each.pid for each in iterator._workers]
    found = [next(iterator)[1].tolist() for _ in range(3)]
    measured(loader, num_batches=4, workers=[0, 2])
    assert [each.pid for each in iterator._workers] == workers
    assert all(each.is_alive() for each in iterator._workers)
    assert loader._iterator is iterator
    found += [batch[1].tolist() for batch in iterator]
    assert found == expected
    iterator._shutdown_workers()


def test_other_settings_of_the_loader_are_kept() -> None:
    seen: list[int] = []

    def collate(samples: list[Any]) -> Any:
        seen.append(len(samples))
        return torch.tensor([index for _, index in samples])

    context = multiprocessing.get_context("fork")
    loader = DataLoader(
        Numbers(50), batch_size=4, collate_fn=collate, drop_last=True, num_workers=1,
        timeout=60, multiprocessing_context=context, worker_init_fn=init_worker,
    )  # fmt: skip
    before = dict(vars(loader))
    result = measured(loader, num_batches=4, workers=[0, 2])
    assert vars(loader) == before
    assert set(seen) == {4}  # Without workers, in this process.
    assert all(row["avg_batch_bytes"] == 32 for row in result.rows)


def init_worker(number: int) -> None:
    assert torch.utils.data.get_worker_info().id == number


class Unlike(DataLoader[Any]):
    """A loader whose constructor is of another shape."""

    def __init__(self, count: int) -> None:
        super().__init__(Numbers(count), batch_size=3)
        self.extra = "kept"

    def __iter__(self) -> Any:
        assert self.extra == "kept"
        return super().__iter__()


def test_classes_of_the_programs_own() -> None:
    result = measured(Unlike(30), num_batches=4, workers=[1])
    assert [row["avg_batch_size"] for row in result.rows] == [3, 3]
    assert "Unlike of Numbers" in result.table()


class Keeps(DataLoader[Any]):
    """Goes on with one iterator for ever."""

    def __init__(self) -> None:
        super().__init__(Numbers(), batch_size=4)
        self.mine = super().__iter__()

    def __iter__(self) -> Any:
        return (next(self.mine) for _ in range(3))


def test_a_loader_that_keeps_its_iterator() -> None:
    loader = Keeps()
    result = measured(loader, num_batches=4, workers=())
    assert result.rows[0]["total_batches_profiled"] == 4
    assert "keeps an iterator of its own" in result.table()
    assert next(loader.mine)[1].tolist() == [0, 1, 2, 3]


def test_loaders_that_accelerate_made() -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(Numbers(), batch_size=4))
    before = list(accelerator.gradient_state.dataloader_references)
    result = measured(loader, num_batches=4, workers=[1])
    assert accelerator.gradient_state.dataloader_references == before
    assert [row["workers"] for row in result.rows] == [0, 1]
    assert "moving batches to the device is no part of it" in result.table()


# --- Iterable datasets ---------------------------------------------------------------------


class Stream(IterableDataset[Any]):
    def __init__(self, count: int = 40) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        return iter(range(self.count))

    def __len__(self) -> int:
        return self.count


@pytest.mark.parametrize("workers", [0, 1])
def test_iterable_datasets_are_measured_as_they_are(workers: int) -> None:
    loader = DataLoader(Stream(), batch_size=4, num_workers=workers)
    before = dict(vars(loader))
    result = measured(loader, num_batches=5)
    assert [row["workers"] for row in result.rows] == [workers]
    assert result.rows[0]["total_batches_profiled"] == 5
    assert vars(loader) == before
    assert len(list(loader)) == 10


def test_iterable_datasets_with_workers_on_request() -> None:
    result = measured(DataLoader(Stream(), batch_size=4), num_batches=2, workers=[1])
    assert [row["workers"] for row in result.rows] == [0, 1]


# --- What goes wrong in the program ---------------------------------------------------------


class UnusualError(Exception):
    """Nobody else raises this."""


class Fails(Numbers):
    """Fails at a sample, or ends the worker it is in."""

    error = UnusualError("sample 9")

    def __init__(self, dies: bool = False) -> None:
        super().__init__()
        self.dies, self.parent = dies, os.getpid()

    def __getitem__(self, index: int) -> Any:
        if self.dies and os.getpid() != self.parent:
            os._exit(3)
        if index == 9 and not self.dies:
            raise self.error
        return super().__getitem__(index)


def test_an_exception_of_the_dataset_is_its_own() -> None:
    with pytest.raises(UnusualError) as caught:
        measured(DataLoader(Fails(), batch_size=4))
    assert caught.value is Fails.error


def test_an_exception_in_a_worker_comes_as_torch_gives_it() -> None:
    with pytest.raises(UnusualError, match="Caught UnusualError in DataLoader worker process 0"):
        measured(DataLoader(Fails(), batch_size=4, num_workers=1))


def test_a_worker_that_dies() -> None:
    loader = DataLoader(Fails(dies=True), batch_size=4)
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        measured(loader, workers=[1])
    if sys.version_info >= (3, 11):
        assert "with 1 worker (prefetch 2)" in caught.value.__notes__[0]


# --- The example -----------------------------------------------------------------------------


def test_the_example_runs(build_dir: Path) -> None:
    program = Path(__file__).parents[2] / "examples" / "python" / "sweeps.py"
    done = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(build_dir / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    for text in (
        "DataLoader of Pictures, batch size 16",
        "flip: 100 calls",
        "Sequential: 10 batch",
    ):
        assert text in done.stdout
    assert done.stdout.endswith("The model is as it was.\n")


# --- Within a recording ---------------------------------------------------------------------

PROGRAM = """
import torch, stepwatch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)))
loader = DataLoader(data, batch_size=8, num_workers=1)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def epoch():
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

epoch()
if {swept}:
    stepwatch.benchmark_dataloader(loader, num_batches=4, workers=[0, 1])
    stepwatch.benchmark_training(model, loader, num_batches=4)
    stepwatch.find_batch_size(model, loader, max_batch_size=16)
    stepwatch.benchmark_callable(model, data.tensors[0], number=5)
epoch()
print([p.sum().item() for p in model.parameters()])
"""


def recorded_run(tmp_path: Path, command: Path, build_dir: Path, swept: bool) -> Any:
    program = tmp_path / f"train_{swept}.py"
    program.write_text(PROGRAM.format(swept=swept), encoding="utf-8")
    folder = tmp_path / f"run_{swept}"
    environment = {
        **os.environ,
        "PYTHONPATH": str(build_dir / "python"),
        "STEPWATCH_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [command, "run", "-o", folder, "--no-report", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    with stepwatch.open(folder) as run:
        return done.stdout, run.report().to_dict(), [dict(row) for row in run.loaders]


def calls_of(report: Any) -> dict[str, int]:
    return {row["name"]: row["calls"] for row in report["sections"] if row["name"] != "gc"}


def test_sweeps_are_no_part_of_the_training(
    tmp_path: Path, stepwatch_cli: Path, build_dir: Path
) -> None:
    plain, before, loaders_before = recorded_run(tmp_path, stepwatch_cli, build_dir, False)
    swept, report, loaders = recorded_run(tmp_path, stepwatch_cli, build_dir, True)
    assert swept == plain
    for key in ("count", "updates", "unit", "incomplete"):
        assert report["steps"][key] == before["steps"][key]
    assert report["steps"]["count"] == 16
    assert [(row["name"], row["passes"]) for row in loaders] == [
        (row["name"], row["passes"]) for row in loaders_before
    ]
    calls = calls_of(report)
    for name in ("dataloader", "training", "callable"):
        assert calls.pop(f"benchmark_{name}") == 1
    assert calls.pop("find_batch_size") == 1
    assert calls == calls_of(before)
