"""stepwatch.charts: images that others can read, whatever is put in."""

from __future__ import annotations

import io
import math
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import stepwatch
from stepwatch import charts

from .conftest import Recorder

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<b>&\"'\x00\x1b[31m\ud800\u202e\uffff\n]]>"


def texts(chart: charts.Chart) -> list[str]:
    """Return the texts of a chart, read by a parser of XML."""
    root = ElementTree.fromstring(chart.svg())
    assert root.tag == SVG + "svg"
    return [element.text or "" for element in root.iter(SVG + "text")]


def size(png: bytes) -> tuple[int, int]:
    """Check a PNG file by its own check sums, and return its width and height."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, header, data = 8, b"", b""
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        body = png[at + 8 : at + 8 + length]
        (crc,) = struct.unpack_from(">I", png, at + 8 + length)
        assert crc == zlib.crc32(kind + body)
        header = body if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height = struct.unpack(">II", header[:8])
    assert len(zlib.decompress(data)) == height * (3 * width + 1)
    return width, height


# --- what is shown ---


def test_histogram_shows_counts_of_values() -> None:
    chart = charts.histogram(
        None, {"load": [0.01] * 5 + [0.02] * 3}, title="Times", x_label="time", unit="s", bins=2
    )
    shown = texts(chart)
    assert "Times" in shown
    assert "n 8, median 10 ms, p95 20 ms" in shown
    assert "time (ms)" in shown
    root = ElementTree.fromstring(chart.svg())
    bars = [path for path in root.iter(SVG + "path") if path.get("fill") == "#2166ac"]
    heights = [path_height(path) for path in bars]
    assert sorted(heights)[-1] / sorted(heights)[-2] == pytest.approx(5 / 3, rel=0.01)


def path_height(path: ElementTree.Element) -> float:
    numbers = path.get("d", "").replace("M", " ").replace("L", " ").replace("Z", "").split()
    ys = [float(number) for number in numbers[1::2]]
    return max(ys) - min(ys)


def test_series_that_differ_have_a_plot_each() -> None:
    shown = texts(charts.histogram(None, {"fast": [1e-6, 2e-6], "slow": [1.0, 2.0]}, unit="s"))
    assert {"fast", "slow"} <= set(shown)
    assert shown.count("count") == 2
    together = texts(
        charts.histogram(None, {"a": [1.0, 2.0], "b": [1.5, 2.0]}, unit="s", split="together")
    )
    assert together.count("count") == 1


def test_values_over_decades_have_a_logarithmic_scale() -> None:
    values = [10.0**power for power in range(-5, 1)]
    shown = texts(charts.histogram(None, {"x": values}, unit="s"))
    assert {"10 µs", "1 ms", "100 ms"} <= set(shown)
    linear = texts(charts.histogram(None, {"x": values}, unit="s", scale="linear"))
    assert "10 µs" not in linear


def test_lines_over_seconds() -> None:
    data: dict[str, list[tuple[float, float | None]]] = {
        "rss": [(0.0, 1e6), (30.0, None), (60.0, 3e6)],
        "other": [(0, 2e6), (60, 2e6)],
    }
    shown = texts(charts.lines(None, data, title="Memory", x_label="time", x_unit="s", unit="B"))
    assert {"Memory", "rss", "other", "time (s)", "MiB"} <= set(shown)
    assert "1 value not known, where lines are interrupted" in shown


def test_bars_and_groups() -> None:
    shown = texts(charts.bars(None, {"small": 0.001, "large": 2.5, "none": None}, unit="s"))
    names = [text for text in shown if text in ("small", "large", "none")]
    assert names == ["large", "small", "none"]
    assert {"2.5 s", "1 ms", "no value"} <= set(shown)
    kept = texts(charts.bars(None, {"small": 1, "large": 2}, sort=False))
    assert kept.index("small") < kept.index("large")
    groups = texts(charts.bars(None, {"load": {"before": 4, "after": 1}, "step": {"after": 2}}))
    assert {"before", "after", "load", "step", "4", "1", "2"} <= set(groups)


def test_areas_are_stacked() -> None:
    chart = charts.areas(None, {"a": [(0, 1), (1, 1)], "b": [(0, 3), (1, 3)]}, x_label="step")
    root = ElementTree.fromstring(chart.svg())
    paths = [p for p in root.iter(SVG + "path") if p.get("opacity") == "0.85"]
    assert path_height(paths[1]) / path_height(paths[0]) == pytest.approx(3, rel=0.01)


def test_grid(tmp_path: Path) -> None:
    one = charts.bars(None, {"a": 1}, title="First")
    two = charts.lines(None, {"b": [(0, 1), (1, 2)]}, title="Second")
    grid = charts.grid(tmp_path / "grid.png", [one, two, one], columns=2, title="All")
    assert {"All", "First", "Second"} <= set(texts(grid))
    width, height = size((tmp_path / "grid.png").read_bytes())
    alone = size(two.png())
    assert width == 2 * 2 * 640
    assert height > alone[1]


def test_charts_without_data_say_why() -> None:
    for make in (charts.histogram, charts.lines, charts.areas, charts.bars):
        shown = texts(make(None, {}, empty="Nobody looked."))
        assert {"no data", "Nobody looked."} <= set(shown)


# --- files ---


def test_files(tmp_path: Path) -> None:
    for name in ("a.svg", "b.PNG"):
        chart = charts.bars(tmp_path / name, {"x": 1})
        data = (tmp_path / name).read_bytes()
        assert data == (chart.svg().encode() if name == "a.svg" else chart.png())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.PNG"]
    chart = charts.bars(None, {"y": 2})
    (tmp_path / "a.svg").chmod(0o600)
    assert chart.write(tmp_path / "a.svg") == str(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_mode & 0o777 == 0o600
    assert "y" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_wrong_paths(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.svg or \.png, not 'x\.jpg'"):
        charts.bars("x.jpg", {"a": 1})
    with pytest.raises(FileNotFoundError):
        charts.bars(tmp_path / "no" / "x.png", {"a": 1})
    assert not list(tmp_path.iterdir())


def test_pillow_reads_it() -> None:
    image = pytest.importorskip("PIL.Image")
    chart = charts.bars(None, {"a": 3, "b": 1}, width=500, height=200)
    with image.open(io.BytesIO(chart.png())) as picture:
        picture.load()
        assert picture.size == (1000, 400)
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
    assert {(255, 255, 255), (0x21, 0x66, 0xAC)} <= colours


def test_nothing_else_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys, stepwatch; assert 'stepwatch.charts' not in sys.modules;"
        f"stepwatch.charts.bars({str(tmp_path / 'x.png')!r}, {{'a': 1}});"
        "stepwatch.tensorboard.EventFile;"
        "print([m for m in ('matplotlib', 'PIL', 'numpy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_same_bytes_in_another_process() -> None:
    code = (
        "import sys; from stepwatch import charts;"
        "sys.stdout.buffer.write(charts.bars(None, {'a': 1.5, 'b': 2}, unit='s').png())"
    )
    env = dict(os.environ, LC_ALL="C")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=env)
    assert done.stdout == charts.bars(None, {"a": 1.5, "b": 2}, unit="s").png()


# --- hostile input ---

VALUES: list[list[Any]] = [
    [],
    [0],
    [-1.5],
    [math.nan, math.inf, -math.inf, None],
    [1e308, -1e308, 1e-320],
    [10**400, 1, True],
    [0.0] * 100,
    [float(i % 97) for i in range(100_000)],
]


@pytest.mark.parametrize("values", VALUES, ids=range(len(VALUES)))
def test_hostile_values_and_names(values: list[Any]) -> None:
    points = list(enumerate(values))
    made = [
        charts.histogram(None, {HOSTILE: values, "": values}, title=HOSTILE, unit=HOSTILE),
        charts.histogram(None, {HOSTILE: values}, scale="log", split="apart"),
        charts.lines(None, {HOSTILE: points, "x" * 10_000: points}, x_unit="s", unit="B"),
        charts.areas(None, {HOSTILE: points, "b": points}),
        charts.bars(None, {f"{HOSTILE}{i}": value for i, value in points[:200]}),
        charts.bars(None, {HOSTILE: {str(i): value for i, value in points[:60]}}),
    ]
    for chart in [*made, charts.grid(None, made, columns=3, title=HOSTILE)]:
        for text in texts(chart):
            assert "\x1b" not in text
        size(chart.png())


def test_wrong_types() -> None:
    wrong: Any
    for wrong in ([1, 2], 5, "abc"):
        with pytest.raises(TypeError, match="data must be a dict"):
            charts.histogram(None, wrong)
    with pytest.raises(TypeError, match="values must be numbers, not str"):
        charts.histogram(None, {"a": "123"})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        charts.histogram(None, {"a": ["x"]})  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"a point is \(x, y\), not 3 numbers"):
        charts.lines(None, {"a": [(1, 2, 3)]})  # type: ignore[list-item]
    with pytest.raises(ValueError, match="scale cannot be 'loud'"):
        charts.histogram(None, {}, scale="loud")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="width and height of a chart lie between"):
        charts.bars(None, {}, width=1e9)
    with pytest.raises(ValueError, match="at most 64 groups"):
        charts.bars(None, {"a": {str(i): i for i in range(65)}})
    with pytest.raises(ValueError, match="top cannot be negative"):
        charts.bars(None, {}, top=-1)
    with pytest.raises(ValueError, match="at least one chart"):
        charts.grid(None, [])
    grid = charts.grid(None, [charts.bars(None, {"a": 1})])
    with pytest.raises(TypeError, match="a grid holds charts"):
        charts.grid(None, [grid])


# --- runs ---


def test_charts_of_a_run(record_run: Recorder) -> None:
    run = record_run(30)
    shown = texts(run.chart("steps"))
    assert "Time of a step" in shown
    # Slow steps at the beginning may be warm-up.
    assert any(re.match(r"n (2\d|30), median ", text) for text in shown)
    assert "forward" in texts(run.chart("phases"))
    assert "No monitor ran." in texts(run.chart("cpu"))
    assert {"no data", "No monitor ran."} <= set(texts(run.chart("gpu")))
    with pytest.raises(ValueError, match="there is no chart 'disk'; there are steps"):
        run.chart("disk")  # type: ignore[arg-type]


def test_memory_of_a_run_over_seconds(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    import time

    stepwatch.start(name="m", out=tmp_path / "m", monitor_interval_s=0.01, quiet=True)
    time.sleep(0.2)
    run = stepwatch.stop()
    assert run is not None
    shown = set(texts(run.chart("memory")))
    assert {"Memory over time", "resident"} <= shown
    assert shown & {"memory (MiB)", "memory (GiB)"}
    assert "program" in texts(run.chart("cpu"))
    for name in ("r.html", "r.md"):
        run.report().save(tmp_path / name)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count('<svg class="chart"') == 2
    for part in ('<section id="memory">', '<section id="monitor">', "process.rss_anon"):
        assert part in page
    assert '<section id="io">' not in page
    markdown = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "\n- Memory: " in markdown
    assert "\n- Machine: " in markdown
