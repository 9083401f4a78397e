"""Record three steps, and put into them what torch's profiler saw of three steps on a GPU.

The file beside this has every event as torch told it: this machine needs no GPU, and everything
after torch is the real thing. Arguments: the folder of the run.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

import stepwatch
from stepwatch import _core
from stepwatch.integrations import _torch_window
from stepwatch.integrations._torch_events import Reader

MARGIN = 50_000  # ns at both ends of a step


class Event:
    """One event, whose answers are known."""

    def __init__(self, keys: list[str], values: list[Any]) -> None:
        """Take them."""
        self._answers = dict(zip(keys, values))

    def __getattr__(self, name: str) -> Any:
        if name not in self._answers:
            raise AttributeError(name)
        value = self._answers[name]
        return lambda: value


class Result:
    """What closing the profiler returned."""

    def __init__(self, events: list[Event]) -> None:
        """Take the events."""
        self._events = events

    def events(self) -> list[Event]:
        """Return them."""
        return self._events


def main() -> None:
    """Do it."""
    file = Path(__file__).with_name("gpu_events.json.gz")
    known = json.loads(gzip.decompress(file.read_bytes()))
    stepwatch.start(out=sys.argv[1], policy="stream", history=False, monitor_interval_s=0)
    _core.fact("torch.device.0", json.dumps({"id": 0, "name": "H200", "computeMajor": 9}))
    window = _torch_window.Window(None, False)
    window.keep_from(0)
    starts: list[int] = known["steps"]
    began = []
    for first, last in zip(starts[:3], starts[1:4]):
        with stepwatch.step(), stepwatch.section("train"):
            began.append(time.time_ns())
            while time.time_ns() < began[-1] + last - first + 2 * MARGIN:
                pass
    window._ends()
    moved = []
    place = known["keys"].index("device_resource_id")
    main = known["events"][0][place]  # the thread that ran forward, which is ours here
    for values in known["events"]:
        values[place] = window.tid if values[place] == main else values[place]
        at = dict(zip(known["keys"], values))["start_ns"]
        step = max((i for i in range(3) if starts[i] <= at), default=None)
        if step is not None and at < starts[3]:
            values[known["keys"].index("start_ns")] = began[step] + MARGIN + at - starts[step]
            moved.append(Event(known["keys"], values))
    read = Reader(window, Result(moved))
    for thread, spans in read.spans().items():
        _core.put_operators(thread, spans)
    stepwatch.stop()
    print(json.dumps({"events": read.count, "moved": len(moved)}))


if __name__ == "__main__":
    main()
