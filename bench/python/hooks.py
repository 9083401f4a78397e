"""Instructions of the calls that are watched, without and with stepwatch, under callgrind.

hooks.py STEPS
hooks.py STEPS lightning

Each part is called often enough before it counts; stepwatch_bench_counted writes a file for each
part and state. What is printed is, for each file in turn: part, state, calls. ``lightning``: steps
of guide 2's CNN alone, without its callback and with it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Callable

import torch
import training
from stepwatch_bench_counted import counted
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

Work = Callable[[int], None]
# Calls that are counted of each small part, and those before.
CALLS, WARM = 100, 60


def module() -> Work:
    """Calls of a module within another that does nothing."""
    inner = nn.Identity()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Any, calls: int) -> None:
            part = self.inner
            for _ in range(calls):
                part(x)

    outer, x = Outer(), torch.zeros(1)
    return lambda calls: outer(x, calls)


def loss() -> Work:
    """A loss of torch's."""
    x, y = torch.zeros(1), torch.zeros(1)

    def work(calls: int) -> None:
        for _ in range(calls):
            nn.functional.mse_loss(x, y)

    return work


def update() -> Work:
    """zero_grad, backward and step of one parameter."""
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)

    def work(calls: int) -> None:
        for _ in range(calls):
            optimizer.zero_grad()
            parameter.sum().backward()
            optimizer.step()

    return work


def batch() -> Work:
    """A batch of sixteen samples, made by the training process."""
    data = TensorDataset(torch.zeros(16 * 1000, 1))
    iterator = iter(DataLoader(data, batch_size=16))

    def work(calls: int) -> None:
        nonlocal iterator
        for _ in range(calls):
            next(iterator)

    def again() -> None:
        nonlocal iterator
        iterator = iter(DataLoader(data, batch_size=16))

    work.again = again  # type: ignore[attr-defined]
    return work


PARTS: dict[str, Callable[[], Work]] = {
    "module": module,
    "loss": loss,
    "update": update,
    "batch": batch,
}


def fits(steps: int, count: Callable[[str, str, Work, int], None]) -> None:
    """Count steps of guide 2's CNN: alone, between two cycles of its callback, and active.

    Its pictures are small here, so that what is not the CNN's counts most. The active steps have no
    operators of torch's, which has its own profiler for them. A fit has a beginning and an end:
    only its loop over the batches counts.
    """
    from lightning.pytorch.loops import training_epoch_loop as module

    loop: Any = module._TrainingEpochLoop
    original = loop.run
    work: Any = training.PROGRAMS["baseline-small"]()
    state = [""]

    def run(self: Any, fetcher: Any) -> None:
        if state[0]:
            count("baseline", state[0], lambda _: original(self, fetcher), steps)
        else:
            original(self, fetcher)

    loop.run = run
    try:
        for name, schedule in FITS.items():
            tool = training.callback(work, False, schedule) if schedule else training.nothing
            for counts in ("", name):
                gc.collect()
                with tool():
                    state[0] = counts
                    work(steps)
    finally:
        loop.run = original


# By state: steps from one cycle to the next, those that the callback waits, and active ones.
FAR = 1 << 20
FITS = {"thread": None, "idle": (FAR, FAR // 2, 1), "active": (FAR, 0, FAR // 2)}


def prepare(work: Work, warm: int) -> None:
    getattr(work, "again", lambda: None)()
    work(warm)
    gc.collect()


def main() -> None:
    steps = int(sys.argv[1])
    torch.set_num_threads(1)
    made: list[tuple[str, str, int]] = []

    def count(part: str, state: str, work: Work, calls: int) -> None:
        counted(f"{part} {state}", work, calls)
        made.append((part, state, calls))

    if sys.argv[2:] == ["lightning"]:
        with training.thread(), Path(os.devnull).open("w") as sink, redirect_stdout(sink):
            fits(steps, count)
        print(json.dumps(made))
        return
    works = {part: make() for part, make in PARTS.items()}
    whole = training.cnn() if steps else None
    if whole:
        prepare(whole, 30)
        count("cnn", "alone", whole, steps)
    # The allocator of libc takes locks as soon as there is a second thread, whoever began it.
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    if whole:
        prepare(whole, 30)
        count("cnn", "thread", whole, steps)
    for part, work in works.items():
        prepare(work, WARM)
        count(part, "thread", work, CALLS)
    for state in ("stepwatch", "statistics"):
        with training.TOOLS[state]():
            if whole:
                prepare(whole, 60)
                count("cnn", state, whole, steps)
            for part, work in works.items():
                prepare(work, WARM)
                count(part, state, work, CALLS)
    for state in ("counters", "memory"):
        if whole:
            with training.TOOLS[state]():
                prepare(whole, 60)
                count("cnn", state, whole, steps)
    done.set()
    thread.join()
    print(json.dumps(made))


if __name__ == "__main__":
    main()
