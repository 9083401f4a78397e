"""Event files, read back by TensorBoard itself."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import charts
from stepwatch.tensorboard import EventFile

Recorder = Callable[..., stepwatch.Run]
pytestmark = pytest.mark.once

# In a process of its own, for what it imports is not free of warnings.
READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], {"scalars": 0, "images": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
json.dump({
    "scalars": {t: [(e.step, e.value, e.wall_time) for e in events.Scalars(t)]
                for t in tags["scalars"]},
    "images": {t: [(e.step, e.width, e.height, len(e.encoded_image_string))
                   for e in events.Images(t)] for t in tags["images"]},
    "texts": {t: [(e.step, e.tensor_proto.string_val[0].decode()) for e in events.Tensors(t)]
              for t in tags["tensors"]
              if events.SummaryMetadata(t).plugin_data.plugin_name == "text"},
}, sys.stdout)
"""


def read(folder: Path | str) -> dict[str, Any]:
    pytest.importorskip("tensorboard")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READER, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_values_are_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    chart = charts.bars(None, {"a": 1})
    chart.write(tmp_path / "a.png")
    with EventFile(folder) as events:
        for step in range(300):
            events.scalar("train/loss", 1 / (step + 1), step, wall_time=1000.5 + step)
        events.scalar("größe µ", -2, step=5)
        events.scalar("last", 3.5, 2**40)
        events.image("bytes", chart.png(), 1)
        events.image("file", tmp_path / "a.png", 2)
        events.image("chart", chart, 3)
        events.text("note", "**bold** é", 4)
    found = read(folder)
    losses = found["scalars"]["train/loss"]
    assert [step for step, _, _ in losses] == list(range(300))
    assert losses[99][1] == pytest.approx(0.01)
    assert losses[7][2] == 1007.5
    step, value, wall = found["scalars"]["größe µ"][0]
    assert (step, value) == (5, -2)
    assert abs(wall - time.time()) < 3600
    assert found["scalars"]["last"][0][:2] == [2**40, 3.5]
    length = len(chart.png())
    sizes = {tag: rows[0][1:] for tag, rows in found["images"].items()}
    assert sizes == dict.fromkeys(("bytes", "file", "chart"), sizes["bytes"])
    assert sizes["bytes"][0] == 1720
    assert sizes["bytes"][2] == length
    assert found["texts"] == {"note": [[4, "**bold** é"]]}


def test_name_of_the_file(tmp_path: Path) -> None:
    first, second = EventFile(tmp_path), EventFile(tmp_path)
    pattern = rf"events\.out\.tfevents\.\d+\.{re.escape(socket.gethostname())}\.{os.getpid()}\.\d+"
    for events in (first, second):
        assert re.fullmatch(pattern, Path(events.path).name)
    assert first.path != second.path
    first.close()
    second.close()


def test_every_event_is_there_at_once(tmp_path: Path) -> None:
    events = EventFile(tmp_path)
    events.scalar("a", 1, 0)
    assert list(read(tmp_path)["scalars"]) == ["a"]
    events.scalar("b", 1, 0)
    assert list(read(tmp_path)["scalars"]) == ["a", "b"]
    events.close()
    events.close()
    with pytest.raises(ValueError, match="the event file is closed"):
        events.scalar("c", 1, 0)


def test_threads_do_not_mix_events(tmp_path: Path) -> None:
    events = EventFile(tmp_path)

    def write(tag: str) -> None:
        for step in range(200):
            events.scalar(tag, step, step)

    threads = [threading.Thread(target=write, args=(f"t{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events.close()
    found = read(tmp_path)["scalars"]
    assert {tag: len(rows) for tag, rows in found.items()} == {f"t{i}": 200 for i in range(4)}


def test_wrong_arguments(tmp_path: Path) -> None:
    events = EventFile(tmp_path)
    wrong: Any = "x"
    with pytest.raises(TypeError):
        events.scalar("a", wrong, 0)
    with pytest.raises(TypeError):
        events.scalar("a", 1.0, wrong)
    with pytest.raises(OverflowError):
        events.scalar("a", 1.0, 2**70)
    with pytest.raises(ValueError, match="the image is not a PNG file"):
        events.image("a", b"GIF89a", 0)
    with pytest.raises(FileNotFoundError):
        events.image("a", tmp_path / "no.png", 0)
    events.scalar("\ud800<\x00>", float("nan"), -1)
    events.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="no file can be made in"):
        EventFile(tmp_path / "file" / "x")


def test_a_run(record_run: Recorder, tmp_path: Path) -> None:
    run = record_run(25)
    folder = tmp_path / "tb"
    assert run.export("tensorboard", folder) == str(folder)
    found = read(folder)
    rows = list(run.steps)
    times = found["scalars"]["step/time_ms"]
    assert [step for step, _, _ in times] == [row["step"] for row in rows]
    assert times[3][1] == pytest.approx(rows[3]["duration_ns"] / 1e6, rel=1e-5)
    parts = [values for tag, values in found["scalars"].items() if tag.startswith("phases/")]
    for index, (_, value, _) in enumerate(times):
        assert sum(part[index][1] for part in parts) == pytest.approx(value, rel=1e-4)
    losses = found["scalars"]["counters/loss"]
    assert [step for step, _, _ in losses] == list(range(25))
    assert losses[4][1] == pytest.approx(0.2)
    assert abs(times[0][2] - time.time()) < 3600
    assert set(found["images"]) == {"charts/steps", "charts/phases", "charts/memory", "charts/cpu"}
    ((step, text),) = found["texts"]["report"]
    assert step == 24
    assert "### run" in text


def test_a_run_without_steps(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    stepwatch.start(name="m", out=tmp_path / "m", monitor_interval_s=0.01, quiet=True)
    time.sleep(0.1)
    stepwatch.counter("value", 7)
    run = stepwatch.stop()
    assert run is not None
    run.export("tensorboard", tmp_path / "tb")
    found = read(tmp_path / "tb")["scalars"]
    assert "step/time_ms" not in found
    milliseconds = [step for step, _, _ in found["monitor/process.rss"]]
    assert milliseconds == sorted(milliseconds)
    assert milliseconds[-1] >= 50
    assert found["counters/value"][0][1] == 7
