"""What rows of training become: tables of a run and keys of report.json, as docs/ describe them."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import stepwatch

DOCS = Path(__file__).parents[2] / "docs"
TRAINING = [
    "epochs",
    "modules",
    "loaders",
    "stages",
    "batches",
    "compilations",
    "waits",
    "sites",
    "settings",
    "operators",
]

# A training process and its worker, without any framework: what adapters write.
PROGRAM = """
import os
import sys
import time
import stepwatch
from stepwatch import _core

SITE, MODULE, LOADER, STAGE, COMPILED, WAIT, SETTING, OPERATOR = range(8, 16)
NONE = 2**32 - 1
MS = int(_core.ticks_per_second() / 1000)

stepwatch.start(out=sys.argv[1], policy="stream")
put = lambda table, keys, values=(), flags=0: _core.put_row(0, table, flags, keys, values)

if len(sys.argv) > 2:  # the worker
    put(STAGE, ("train", 0, 4, "fetch"), (5, 50 * MS, 0, 9 * MS, 11 * MS))
    put(STAGE, ("train", 0, 1, "Images"), (80, 40 * MS, 10**6, MS, MS))
    put(STAGE, ("train", 0, 2, "RandomCrop"), (80, 30 * MS, 10**6, MS, MS))
    put(STAGE, ("train", 0, 3, "default_collate"), (5, 5 * MS, 10**6, MS, MS))
    put(STAGE, ("train", 0, 7, "index"), (5, 50 * MS, 0, MS, MS))
    stepwatch.stop()
    sys.exit()

_, site = put(SITE, (1, "/src/train.py", 30, "DataLoader"), ("main",))
_, model = put(SITE, (3, "/src/train.py", 12, "Net"), ("main",))
put(LOADER, ("train", "Images", 1, 16), (1 | 8, 2, 72, 1, site + 1))
put(LOADER, ("val", "Images", 0, 16), (0, 0, 2**64 - 1, 1, 0))
put(STAGE, ("train", NONE, 8, "wait"), (6, 6 * MS, 0, MS, MS))
put(STAGE, ("val", NONE, 8, "wait"), (50, 90 * MS, 0, MS, MS))
put(MODULE, ("Net", "Net", 0, model + 1), (), 1)
put(MODULE, ("Net.fc", "Linear", "float32", 0), (110, 440, 110, 3 * MS, 2))
put(COMPILED, ("forward", "first", "/src/train.py", 14), (1, 100 * MS, 10 * MS, 10 * MS, 80 * MS))
put(COMPILED, ("forward", "size mismatch", "/src/train.py", 14), (2, 50 * MS), 1)
put(WAIT, ("Tensor.item", "/src/train.py", 40, 1), (5, MS, 20, MS, 0))
put(SETTING, ("amp", "dtype", "bfloat16"), ())
put(OPERATOR, ("aten::mm", "[[8, 8]]", 6, 0), (10, 1000, 1500, 64, 1024))

net, fc, validation = (
    stepwatch.section("Net", "forward"), stepwatch.section("Net.fc"),
    stepwatch.section("validation", "validation"))


class Pass:
    pass


owner = Pass()
for index in range(5):
    _core.train_wait(3, owner, owner)
    begin = _core.now()
    time.sleep(0.001)
    _core.train_got(owner)
    _core.put_batch("train", begin, _core.now(), begin, begin + MS, 0, 0, 0, 0, 4096,
                    index, 0, index, None, 1)
    with net:
        with fc:
            time.sleep(0.002)
    _core.train_works(True)
    _core.train_update(owner)
_core.train_wait(3, owner, owner)
_core.train_end(owner)
with validation:
    time.sleep(0.02)
    with net:
        pass
stepwatch.stop()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> stepwatch.Run:
    out = tmp_path_factory.mktemp("training") / "run"
    for extra in ([], ["worker"]):
        command = [sys.executable, "-c", PROGRAM, str(out), *extra]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, "")
    return stepwatch.open(out)


@pytest.fixture(scope="module")
def report(run: stepwatch.Run) -> Any:
    return run.report().to_dict()


def read(table: stepwatch.Table) -> Any:
    """Return the rows as another library sees them."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pyarrow.table(table).to_pylist()


def only(table: stepwatch.Table, **wanted: object) -> dict[str, Any]:
    (found,) = (row for row in table if all(row[k] == v for k, v in wanted.items()))
    return found


def test_modules(run: stepwatch.Run) -> None:
    assert [row["name"] for row in run.modules] == ["Net.fc", "Net"]
    fc = only(run.modules, name="Net.fc")
    assert (fc["class"], fc["dtype"], fc["calls"]) == ("Linear", "float32", 5)
    assert (fc["parameters"], fc["bytes"], fc["trainable"]) == (110, 440, 110)
    assert fc["total_ns"] == fc["self_ns"] > 5 * 1.9e6
    assert fc["backward_ns"] == pytest.approx(1.5e6, rel=0.01)
    net = only(run.modules, name="Net")
    assert (net["file"], net["line"], net["root"]) == ("/src/train.py", 12, True)
    assert (net["calls"], net["validation_calls"]) == (5, 1)
    assert (net["backward_ns"], net["dtype"]) == (None, None)


def test_loaders(run: stepwatch.Run) -> None:
    train = only(run.loaders, main=True)
    assert (train["name"], train["workers"], train["batch_size"]) == ("train", 1, 16)
    assert (train["pin_memory"], train["shuffled"], train["drop_last"]) == (True, True, False)
    assert (train["line"], train["samples"], train["waits"]) == (30, 72, 6)
    assert train["busy_share"] == pytest.approx(0.5, rel=0.01)
    val = only(run.loaders, name="val")
    assert (val["samples"], val["prefetch_factor"], val["file"]) == (None, None, None)
    crop = only(run.stages, name="RandomCrop")
    assert (crop["loader"], crop["worker"], crop["kind"]) == ("train", 0, "transform")
    assert crop["share"] == pytest.approx(0.6, rel=0.01)
    assert only(run.stages, kind="fetch")["cpu_ns"] is None
    assert {row["worker"] for row in run.stages if row["kind"] == "wait"} == {None}


def test_places(run: stepwatch.Run) -> None:
    first, again = run.compilations
    assert (first["reason"], first["again"], first["compilations"]) == ("first", False, 1)
    assert (again["reason"], again["again"], again["trace_ns"]) == ("size mismatch", True, None)
    assert first["backend_ns"] == pytest.approx(80e6, rel=0.01)
    (wait,) = run.waits
    assert (wait["call"], wait["line"], wait["kind"], wait["bytes"]) == (
        "Tensor.item",
        40,
        "sync",
        20,
    )
    assert [row["what"] for row in run.sites] == ["loader", "model"]
    assert run.settings.to_list() == [
        {"what": "amp", "name": "dtype", "text": "bfloat16", "number": None}
    ]
    (operator,) = run.operators
    assert (operator["phase"], operator["device"], operator["flops"]) == ("forward", "cpu", 1024)


def test_batches_and_epochs(run: stepwatch.Run) -> None:
    assert [row["index"] for row in run.batches] == list(range(5))
    for number, row in enumerate(run.batches):
        assert (row["loader"], row["worker"], row["step"]) == ("train", None, number)
        assert row["fetch_begin_ns"] == row["begin_ns"]
        assert row["fetch_end_ns"] - row["begin_ns"] == pytest.approx(1e6, rel=0.01)
        assert (row["put_ns"], row["cpu_ns"], row["bytes"]) == (None, None, 4096)
    assert sum(row["steps"] for row in run.epochs) in (0, 5)


@pytest.mark.parametrize("name", TRAINING)
def test_arrow_has_the_same(run: stepwatch.Run, name: str) -> None:
    table = getattr(run, name)
    assert read(table) == table.to_list()


def test_report(report: Any) -> None:
    steps = report["steps"]
    assert (steps["count"], steps["unit"], steps["updates"]) == (5, "batch", 5)
    assert steps["samples_per_s"] == pytest.approx(steps["steps_per_s"] * 16)
    loader = report["loader"]
    assert (loader["name"], loader["workers"], loader["pin_memory"]) == ("train", 1, True)
    phases = {phase["phase"]: phase["share"] for phase in steps["phases"]}
    assert loader["wait_share"] == phases["data_wait"] > 0
    (worker,) = loader["per_worker"]
    assert worker["getitem_ms"] == pytest.approx(0.5, rel=0.01)
    assert worker["collate_ms"] == pytest.approx(1, rel=0.01)
    assert sum(stage["share"] or 0 for stage in loader["stages"]) == pytest.approx(1)
    crop = loader["stages"][0]
    assert (crop["name"], crop["ms"]) == ("RandomCrop", pytest.approx(6, rel=0.01))
    assert [loader["name"] for loader in report["loaders"]] == ["train", "val"]
    assert report["compile"]["count"] == 3
    assert report["compile"]["recompilations"] == 2
    (function,) = report["compile"]["functions"]
    assert (function["reason"], function["compilations"]) == ("size mismatch", 3)
    assert report["dtypes"][0]["dtype"] == "float32"


def test_timeline(report: Any) -> None:
    """The parts sum to the duration, and the validation after the last step is one of them."""
    parts = {part["part"]: part["s"] for part in report["timeline"]}
    whole = sum(round(s * 1e9) for s in parts.values())
    assert whole == round(report["run"]["duration_s"] * 1e9)
    assert parts["validation"] >= 0.02
    assert parts["steps"] + parts.get("warmup", 0) >= 5 * 0.003


def documented() -> dict[str, dict[str, set[str]]]:
    """Return the keys that the page describes: by part, and by inner part ("" the part itself)."""
    page = (DOCS / "report-json.md").read_text(encoding="utf-8")
    parts: dict[str, dict[str, set[str]]] = {}
    for chapter in page.split("\n## ")[1:]:
        title, _, body = chapter.partition("\n")
        for table in body.strip().split("\n\n"):
            head = re.match(r"\| key(?: of `(\w+)`)? \| is \|", table)
            if head:
                rows = [line.split("|")[1] for line in table.splitlines()[2:]]
                keys = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
                parts.setdefault(title, {})[head[1] or ""] = keys
    return parts


@pytest.mark.parametrize(
    "part",
    ["steps", "loader", "modules", "compile", "waits", "sites", "settings", "operators"],
)
def test_the_page_has_every_key(report: Any, part: str) -> None:
    described = documented()[part]
    value = report[part]
    for element in value if isinstance(value, list) else [value]:
        assert set(element) == described[""]
    for inner in set(described) - {""}:
        assert value[inner]
        for element in value[inner]:
            assert set(element) == described[inner]


def test_the_page_has_every_column(run: stepwatch.Run) -> None:
    page = (DOCS / "reading.md").read_text(encoding="utf-8")
    for name in TRAINING:
        (row,) = re.findall(rf"^\| `run\.{name}` \|[^|]*\|(.*)\|$", page, re.MULTILINE)
        named = [key for key in re.findall(r"`(\w+)`", row) if key != "None"]
        assert named == getattr(run, name).columns


def test_nothing_of_training(tmp_path: Path, no_recording: None) -> None:  # noqa: ARG001
    """Parts that were not recorded say so, and their tables are empty."""
    with stepwatch.record(out=tmp_path / "run") as run, stepwatch.section("a"):
        pass
    report = run.report().to_dict()
    for part in ("loader", "loaders", "modules", "dtypes", "compile", "waits", "sites",
                 "settings", "operators", "epochs"):  # fmt: skip
        assert report[part]["recorded"] is False
        assert report[part]["why"].endswith(".")
    assert [len(getattr(run, name)) for name in TRAINING] == [0] * len(TRAINING)


def test_text(run: stepwatch.Run) -> None:
    for width in (60, 80, 200):
        text = run.report().text(width=width, unicode=False)
        assert all(len(line) <= width for line in text.splitlines())
        assert text.isascii()
        for part in ("Loader   train: 1 worker", "a batch  RandomCrop 6.00 ms", "Net.fc",
                     "Compile  3 compilations", "Waits    Tensor.item"):  # fmt: skip
            assert part in text


def test_hostile_rows(tmp_path: Path) -> None:
    """Whatever an adapter puts into rows, the report can be made and is whole."""
    program = """
        import random, sys, stepwatch
        from stepwatch import _core
        stepwatch.start(out=sys.argv[1])
        pick = random.Random(7).choice
        for number in range(2000):
            keys = [pick([0, 1, "", "x", "\\ud7ff\\n", 2**32 - 1, 77]) for _ in range(4)]
            values = [pick([0, 1, 2**63, 2**64 - 1, 10**9]) for _ in range(5)]
            _core.put_row(0, 8 + number % 8, pick([0, 1, 2, 65535]), tuple(keys), tuple(values))
        stepwatch.stop()
    """
    out = tmp_path / "run"
    command = [sys.executable, "-c", textwrap.dedent(program), str(out)]
    subprocess.run(command, check=True)
    run = stepwatch.open(out)
    assert run.report().to_dict()["schema"] == "stepwatch.report/1"
    assert str(run.report())
    for name in TRAINING:
        assert len(getattr(run, name).to_list()) == len(getattr(run, name))
