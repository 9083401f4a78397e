"""CPU time of others that watch the same: psutil in a Python thread, and wandb's system monitor.

Usage: monitor.py FOLDER psutil|wandb INTERVAL SECONDS. Prints one JSON object with ``percent`` of a
core, or ``absent`` and why.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any


def look(process: Any) -> None:
    """Read what the monitor's basic set has; the machine is left out there, too."""
    with process.oneshot():
        process.cpu_times()
        process.memory_info()
        process.io_counters()
        process.num_ctx_switches()
        process.threads()


def with_psutil(interval: float, seconds: float) -> dict[str, Any]:
    """Look in a thread at absolute moments and return its CPU time."""
    try:
        import psutil  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        return {"absent": str(error)}
    process = psutil.Process()
    found: dict[str, Any] = {}

    def watch() -> None:
        look(process)
        begin, before = time.monotonic(), time.thread_time()
        looks = 0
        while time.monotonic() - begin < seconds:
            looks += 1
            time.sleep(max(0.0, begin + looks * interval - time.monotonic()))
            look(process)
        used, passed = time.thread_time() - before, time.monotonic() - begin
        found.update(percent=100 * used / passed, us_per_look=used * 1e6 / looks, looks=looks)

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    return found


def cpu_of_children() -> float:
    """CPU seconds of the processes below this one: wandb's service is one of them."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    total = 0.0
    for pid, seconds in used.items():
        at = pid
        while at in parents and at != os.getpid():
            at = parents[at]
        if at == os.getpid() and pid != at:
            total += seconds
    return total


def with_wandb(folder: str, interval: float, seconds: float) -> dict[str, Any]:
    """Run wandb offline, with its system monitor and without: the difference is what it costs."""
    try:
        import wandb
    except ImportError as error:
        return {"absent": str(error)}
    rates = []
    for disabled in (True, False):
        try:
            run = wandb.init(
                mode="offline",
                dir=folder,
                settings=wandb.Settings(
                    silent=True,
                    x_disable_stats=disabled,
                    x_stats_sampling_interval=max(interval, 0.1),
                ),
            )
        except Exception as error:
            return {"absent": f"{type(error).__name__}: {error}"}
        time.sleep(3)
        before, mine = cpu_of_children(), time.process_time()
        time.sleep(seconds)
        used = cpu_of_children() - before + time.process_time() - mine
        rates.append(100 * used / seconds)
        run.finish()
    return {"percent": rates[1] - rates[0], "without": rates[0], "interval": max(interval, 0.1)}


def main() -> None:
    folder, tool = sys.argv[1:3]
    interval, seconds = float(sys.argv[3]), float(sys.argv[4])
    Path(folder).mkdir(parents=True, exist_ok=True)
    found = (
        with_psutil(interval, seconds)
        if tool == "psutil"
        else with_wandb(folder, interval, seconds)
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
