"""What watching costs each statement of a plain training loop: on and off in turn, in one process.

statements.py TOOL PAIRS

TOOL is one of those of training.py. A pair is a block of steps with the tool and one without, the
first of the two changing places; the first steps of a block are left out: each block installs the
tool anew, the interpreter learns again what it knew of the code, and stepwatch looks at them in
full, as it does at all steps with the tool ``looked``. Of a block the median of each statement
counts. One JSON object is printed: in microseconds, the quartiles of what statements
and the step as a whole took longer, and the step without the tool.
"""

from __future__ import annotations

import gc
import json
import sys
from statistics import median, quantiles
from time import perf_counter_ns
from typing import Any

import training
from torch.utils.data import DataLoader

# Steps of a block, and those of them that are left out.
STEPS, LEFT_OUT = 500, 210
NAMES = ("next", "zero_grad", "forward", "loss", "backward", "step")


class Loop:
    """The CNN of training.py, with a look at the clock after each statement."""

    def __init__(self) -> None:
        parts = training.cnn_parts(16 * STEPS)
        self.model, self.criterion, self.optimizer, self.data = parts

    def block(self) -> list[list[int]]:
        """Return what each statement took, by step, in nanoseconds."""
        gc.collect()
        model, criterion, optimizer, now = (
            self.model,
            self.criterion,
            self.optimizer,
            perf_counter_ns,
        )
        times = []
        iterator = iter(DataLoader(self.data, batch_size=16, shuffle=True))
        for _ in range(STEPS):
            at = [now()]
            images, labels = next(iterator)
            at.append(now())
            optimizer.zero_grad()
            at.append(now())
            out = model(images)
            at.append(now())
            loss = criterion(out, labels)
            at.append(now())
            loss.backward()
            at.append(now())
            optimizer.step()
            at.append(now())
            times.append([after - before for before, after in zip(at, at[1:])])
        return times[LEFT_OUT:]


def medians(times: list[list[int]]) -> list[float]:
    """Return the median of each statement, and of the step as a whole, in microseconds."""
    return [median(column) / 1000 for column in (*zip(*times), [sum(row) for row in times])]


def main() -> None:
    tool, pairs = training.TOOLS[sys.argv[1]], int(sys.argv[2])
    loop = Loop()
    with tool():
        loop.block()
    loop.block()
    more: list[list[float]] = []
    alone: list[float] = []
    for pair in range(pairs):
        found: dict[bool, list[float]] = {}
        for on in (True, False) if pair % 2 else (False, True):
            if on:
                with tool():
                    found[on] = medians(loop.block())
            else:
                found[on] = medians(loop.block())
        more.append([with_it - without for with_it, without in zip(found[True], found[False])])
        alone.append(found[False][-1])
    result: dict[str, Any] = {
        name: [round(value, 2) for value in quantiles(column, n=4)]
        for name, column in zip((*NAMES, "whole"), zip(*more))
    }
    print(json.dumps({**result, "step_us": round(median(alone), 1)}))


if __name__ == "__main__":
    main()
