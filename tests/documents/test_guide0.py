"""Guide 0, "Machine Learning Training Example with Advanced Flexible Profiler", row by row."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Done, RunText
from .guide0_programs import (
    ADVICE,
    COMBINATIONS,
    ENDS,
    FIRST,
    FORMATS,
    HEALTHY,
    IMPORTS,
    LINES,
    MANY,
    METHODS,
    OFF,
    QUIET,
    SECOND,
    SIZES,
    STEPS,
    SWITCH,
    TREE,
)
from .guides import snippet, with_bodies

pytestmark = pytest.mark.once

EXAMPLE = ROOT / "examples" / "ml_training_example.py"
OUT = "ml_profiling_output"

LINE = re.compile(
    r"^(?P<name>\S.*): Total time: (?P<total>\d+\.\d{6})s, Calls: (?P<calls>\d+), "
    r"Avg time: (?P<avg>\d+\.\d{6})s$",
    re.MULTILINE,
)


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def told(done: Done) -> Any:
    """Return what a program said in its last line, as JSON."""
    return json.loads(done.ok().out.splitlines()[-1])


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


# --- The example program ---------------------------------------------------------------


def run_example(folder: Path, env: dict[str, str], *arguments: str) -> Done:
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=env,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr, folder).ok()


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory, guide_env: dict[str, str]) -> Done:
    """Run the example as it is, with torch."""
    return run_example(tmp_path_factory.mktemp("example") / "run", guide_env)


@pytest.fixture(scope="module")
def without_torch(
    tmp_path_factory: pytest.TempPathFactory, guide_env: dict[str, str]
) -> dict[str, str]:
    """Return an environment in which there is no torch."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "torch.py").write_text("raise ImportError('no torch here')\n", encoding="utf-8")
    return {**guide_env, "PYTHONPATH": f"{folder}:{guide_env['PYTHONPATH']}"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, without_torch: dict[str, str]) -> Done:
    """Run the example where there is no torch."""
    return run_example(tmp_path_factory.mktemp("plain") / "run", without_torch)


@pytest.fixture(scope="module", params=["example", "plain"])
def either(request: pytest.FixtureRequest) -> Done:
    done: Done = request.getfixturevalue(request.param)
    return done


@pytest.fixture(scope="module")
def overall(example: Done) -> Any:
    return load(example.folder / OUT / "overall_profile_step_final.json")


def test_r0_001_the_example_runs(either: Done) -> None:
    assert either.err == ""
    # It learns, with torch and without.
    losses = [float(text) for text in re.findall(r"Val Loss: (\d\.\d{4})", either.out)]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert re.search(r"^Epoch 4, Batch 30, Loss: \d\.\d{4}$", either.out, re.MULTILINE)
    assert files(either.folder) == {OUT}


def test_r0_002_it_generates_data_twice(overall: Any) -> None:
    assert overall["blocks"]["generate_data"]["calls"] == 2


def test_r0_003_it_defines_a_network(plain: Done, example: Done) -> None:
    source = EXAMPLE.read_text(encoding="utf-8")
    assert "Linear(input_dim, hidden)" in source
    # Both networks were trained: each of 32 batches in each of 5 epochs.
    for done in (plain, example):
        final = load(done.folder / OUT / "overall_profile_step_final.json")
        assert final["blocks"]["train_step"]["calls"] == 160


def test_r0_004_its_trainer_has_methods(overall: Any) -> None:
    aliases = {entry["alias"] for entry in overall["functions"].values()}
    assert aliases == {"__init__", "train_epoch", "validate", "train"}
    assert overall["functions"]["Trainer.train"]["calls"] == 1


def test_r0_005_it_trains_for_some_epochs(
    overall: Any, tmp_path: Path, without_torch: dict[str, str]
) -> None:
    def epochs(blocks: Any) -> dict[str, int]:
        return {name: entry["calls"] for name, entry in blocks.items() if name[:6] == "epoch_"}

    assert epochs(overall["blocks"]) == {f"epoch_{number}": 1 for number in range(5)}
    short = run_example(tmp_path / "run", without_torch, "--epochs", "2", "--no-torch")
    final = load(short.folder / OUT / "overall_profile_step_final.json")
    assert epochs(final["blocks"]) == {"epoch_0": 1, "epoch_1": 1}


# --- Settings --------------------------------------------------------------------------


def test_r0_006_settings_count_at_once(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(
        tmp_path,
        IMPORTS
        + QUIET
        + """
@profile_methods
class Trainer:
    def method(self): pass
@auto_profile_blocks
def block(): pass
@profile_line_by_line
def lines():
    return 1
def all_of_it():
    Trainer().method(); block(); lines()
    with profiler.profile_context("context"): pass
seen = []
for on in (True, False, True):
    profiler_config.enabled = on
    all_of_it()
    overall = profiler.get_overall_profile()
    (line,) = [line for line in profiler.get_line_profile().splitlines() if "return 1" in line]
    functions, blocks = overall["functions"], overall["blocks"]
    entries = functions["Trainer.method"], blocks["block"], functions["lines"], blocks["context"]
    seen.append([*(entry["calls"] for entry in entries), int(line.split()[1])])
for name, value in (
    ("save_format", "xml"), ("no_such", 1), ("steps_to_save", ["x"]), ("steps_to_save", 5),
    ("enabled", "perhaps"),
):
    try:
        setattr(profiler_config, name, value)
    except Exception as error:
        seen.append(f"{type(error).__name__}: {error}")
profiler_config.enabled = "no"
seen += ["no", profiler_config.enabled]
print(json.dumps(seen))
""",
    )
    first, second, third, *errors = told(done)
    assert first == second == [1, 1, 1, 1, 1]
    assert third == [2, 2, 2, 2, 2]
    assert errors[0] == "ValueError: save_format is one of 'json', 'txt', 'csv', not 'xml'"
    assert errors[1].startswith("AttributeError: ProfilerConfig has no setting 'no_such'; there")
    assert errors[2] == "TypeError: steps_to_save is a list of step numbers, not of 'x'"
    assert errors[3] == "TypeError: steps_to_save is a list of step numbers, not 5"
    assert errors[4] == "ValueError: enabled is True or False, not 'perhaps'"
    assert errors[5:] == ["no", False]


def test_r0_007_off_is_nearly_free(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(tmp_path / "code", IMPORTS + OFF)
    blocks, profile, lines = told(done)
    assert (profile, lines) == ({}, "")
    assert blocks < 50, "calls that are not profiled leave nothing behind"
    assert done.out.count("\n") == 1
    assert files(done.folder) == {"program.py", "start.py"}
    # The environment's no is final, also against the program; its other words are not heard.
    on = OFF.replace("profiler_config.enabled = False", "profiler_config.enabled = True")
    outside = run_text(tmp_path / "env", IMPORTS + on, ENABLE_PROFILING="false")
    assert told(outside)[1:] == [{}, ""]
    assert files(outside.folder) == {"program.py", "start.py"}


def test_r0_008_files_go_into_the_folder(example: Done, tmp_path: Path, run_text: RunText) -> None:
    assert files(example.folder) == {OUT}
    text = """
with profiler.profile_context("block"): pass
profiler.save_block_profile(filename="bare.json")
profiler.save_block_profile(filename="other/given.json")
profiler.save_block_profile()
"""
    default = run_text(tmp_path / "default", IMPORTS + QUIET + text).ok()
    made = {"bare.json", "block_profile_step_custom.json", "overall_profile_step_final.json"}
    assert files(default.folder / "profiling_output") == made
    assert files(default.folder / "other") == {"given.json"}
    outside = run_text(
        tmp_path / "env", IMPORTS + QUIET + text, PROFILE_OUTPUT_DIR="elsewhere"
    ).ok()
    assert files(outside.folder / "elsewhere") == made
    said = 'profiler_config.output_dir = "deep/said"\n'
    code = run_text(tmp_path / "said", IMPORTS + QUIET + said + text, PROFILE_OUTPUT_DIR="no").ok()
    assert files(code.folder / "deep" / "said") == made
    assert not (code.folder / "no").exists()


def test_r0_008_a_folder_that_cannot_be_written(tmp_path: Path, run_text: RunText) -> None:
    text = """
open("taken", "w").close()
profiler_config.output_dir = "taken/out"
for epoch in range(3):
    with profiler.profile_context(f"epoch_{epoch}"):
        with profiler.profile_context("train_step"): pass
profiler.save_overall_profile(step="end")
print(profiler.get_block_profile()["train_step"]["calls"])
"""
    done = run_text(tmp_path, IMPORTS + QUIET + text).ok()
    assert done.out == "3\n"
    assert done.err == (
        "stepwatch: Profiles cannot be written into 'taken/out' (Not a directory); the program "
        "goes on without. Set profiler_config.output_dir to a folder that can be written.\n"
    )


def test_r0_009_formats(tmp_path: Path, run_text: RunText) -> None:
    folder = run_text(tmp_path, IMPORTS + QUIET + FORMATS).ok().folder / "out"
    kinds = ("json", "txt", "csv")
    assert files(folder) == {
        f"{what}_profile_step_7.{k}" for what in ("block", "overall") for k in kinds
    }
    assert set(load(folder / "block_profile_step_7.json")) == {"outer", "inner, quoted"}
    text = (folder / "overall_profile_step_7.txt").read_text(encoding="utf-8")
    assert text.startswith("\nOverall Profiling Report:\nFunction Profiling:\nTrainer.fit: Total")
    assert [found["name"] for found in LINE.finditer(text)] == [
        "Trainer.fit",
        "outer",
        "inner, quoted",
    ]
    assert "\n\nBlock Profiling:\nouter: " in text
    table = (folder / "overall_profile_step_7.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["kind"], row["name"], row["calls"]) for row in rows] == [
        ("function", "Trainer.fit", "1"),
        ("block", "outer", "1"),
        ("block", "inner, quoted", "1"),
    ]
    assert float(rows[1]["total_time"]) >= float(rows[2]["total_time"]) > 0


@pytest.mark.parametrize(
    ("block", "call"),
    [
        ("with profiler.profile_context('train_step'): pass", ""),
        ("with profiler.profile_context('training_step'): pass", ""),
        ("with profiler.profile_context('something'): pass", "profiler.step_profiler()"),
    ],
)
def test_r0_010_saved_at_those_steps(
    tmp_path: Path, run_text: RunText, block: str, call: str
) -> None:
    folder = run_text(tmp_path, IMPORTS + QUIET + STEPS % (block, call)).ok().folder / "out"
    name = block.split("'")[1]
    expected = set()
    for step in (1, 10, 50, 100):
        expected |= {f"{kind}_profile_step_{step}.json" for kind in ("block", "overall", "line")}
        expected.add(f"line_profile_step_{step}.txt")
        assert load(folder / f"block_profile_step_{step}.json")[name]["calls"] == step
    # The first line is counted before the first step ends only where the program says when.
    if not call:
        expected -= {"line_profile_step_1.json", "line_profile_step_1.txt"}
    assert files(folder) == expected


def test_r0_010_the_program_says_what_a_step_is(tmp_path: Path, run_text: RunText) -> None:
    """Every second batch: its own count is heard, that of the blocks no longer."""
    block = "with profiler.profile_context('train_step'): pass"
    call = "number % 2 and profiler.step_profiler()"
    folder = run_text(tmp_path, IMPORTS + QUIET + STEPS % (block, call)).ok().folder / "out"
    for step in (1, 10, 50):
        profile = load(folder / f"block_profile_step_{step}.json")
        assert profile["train_step"]["calls"] == 2 * step
    assert not (folder / "block_profile_step_100.json").exists()


def test_r0_011_blocks_are_printed_during_training(either: Done) -> None:
    reports = either.out.split("\nBlock Profiling Report:\n")
    # Five epochs, and the steps 1, 10, 50 and 100.
    assert len(reports) - 1 == 9
    first = reports[3]  # that of epoch_0, after steps 1 and 10
    assert [found["name"] for found in LINE.finditer(first)][:1] == ["epoch_0"]
    before_second_epoch = either.out.split("Epoch 1, Batch 0")[0]
    assert "epoch_0: Total time: " in before_second_epoch


@pytest.fixture
def saved(tmp_path: Path, run_text: RunText) -> Any:
    def run(setting: str, value: object) -> set[str]:
        folder = tmp_path / f"{setting} {value}"
        done = run_text(folder, IMPORTS + QUIET + SWITCH % (setting, value)).ok()
        return files(done.folder / "out")

    return run


def test_r0_012_save_line_profile(saved: Any) -> None:
    line = {f"line_profile_step_{step}.{end}" for step in (1, "final") for end in ("txt", "json")}
    assert line <= saved("save_line_profile", True)
    assert not any("line" in name for name in saved("save_line_profile", False))


def test_r0_013_save_block_profile(saved: Any) -> None:
    block = {f"epoch_{n}_block_profile.json" for n in (0, 1)} | {"block_profile_step_1.json"}
    assert block <= saved("save_block_profile", True)
    assert not any("block" in name for name in saved("save_block_profile", False))


def test_r0_014_save_overall_profile(saved: Any) -> None:
    overall = {f"overall_profile_step_{step}.json" for step in (1, "final")}
    assert overall <= saved("save_overall_profile", True)
    assert not any("overall" in name for name in saved("save_overall_profile", False))


def test_r0_015_every_combination(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(tmp_path, IMPORTS + COMBINATIONS)
    assert told(done) == [128, []]


# --- Functions -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory, run_text: RunText) -> Any:
    return told(run_text(tmp_path_factory.mktemp("methods"), IMPORTS + QUIET + METHODS))


def test_r0_016_all_methods_of_a_class(methods: Any) -> None:
    every = {name: calls for name, calls in methods["calls"].items() if name.startswith("Every.")}
    names = (
        "__init__",
        "plain",
        "static",
        "made",
        "twice",
        "numbers",
        "later",
        "__call__",
        "fails",
    )
    assert every == {f"Every.{name}": 1 for name in names}
    assert not any("own" in name or "__len__" in name for name in methods["calls"])
    assert methods["same"] is methods["isinstance"] is True
    assert methods["coroutine"] is methods["generator"] is True
    assert methods["copied"] == 7


def test_r0_017_methods_have_their_class(methods: Any) -> None:
    assert methods["calls"]["Every.plain"] == 1
    assert methods["calls"]["Other.plain"] == 2
    # A bare name finds its method where it is the only one.
    assert methods["alias"] == [1, False]
    entry = methods["entry"]
    assert entry["calls"] == 1
    assert entry["total_time"] == entry["avg_time"] > 0


def test_r0_018_calls_that_raise(methods: Any) -> None:
    assert methods["failure"] == ["as it was", "NoneType"]
    assert methods["calls"]["Every.fails"] == 1
    assert methods["errors"] == 1


# --- Blocks ----------------------------------------------------------------------------


def test_r0_019_functions_as_blocks(tmp_path: Path, run_text: RunText) -> None:
    text = """
import inspect
@auto_profile_blocks
def generate_data(num_samples=1000, input_dim=10):
    '''Make data.'''
    return num_samples * input_dim
results = [generate_data(), generate_data(5), generate_data(input_dim=2), generate_data(2, 3)]
print(json.dumps([results, profiler.get_block_profile()["generate_data"]["calls"],
    str(inspect.signature(generate_data)), generate_data.__doc__,
    list(profiler.get_overall_profile()["functions"])]))
"""
    results, calls, signature, doc, functions = told(run_text(tmp_path, IMPORTS + QUIET + text))
    assert results == [10000, 50, 2000, 6]
    assert (calls, signature, doc) == (4, "(num_samples=1000, input_dim=10)", "Make data.")
    assert functions == []


def test_r0_020_methods_as_blocks(overall: Any) -> None:
    for name in ("train_epoch", "validate"):
        assert overall["blocks"][name]["calls"] == 5
        assert overall["functions"][f"Trainer.{name}"]["calls"] == 5
    assert overall["functions"]["Trainer.train"]["calls"] == 1


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, run_text: RunText) -> Any:
    done = run_text(tmp_path_factory.mktemp("tree"), IMPORTS + QUIET + TREE)
    assert done.err == ("stepwatch: end_block() was called with no block open; it did nothing.\n")
    return told(done)


def test_r0_021_blocks_in_any_place(tree: Any) -> None:
    blocks, failure = tree
    assert failure == "KeyError('as it was')"
    assert (blocks["fails"]["calls"], blocks["fails"]["errors"]) == (1, 1)
    assert (blocks["shared"]["calls"], blocks["thread 2"]["calls"]) == (800, 200)
    assert set(blocks["thread 2"]["paths"]) == {"shared:thread 2"}
    recursive = blocks["recursive"]
    assert recursive["calls"] == 5
    # All five were open for these 10 ms, which passed once.
    assert 0.01 <= recursive["total_time"] < 0.05
    step = blocks["train_step"]
    assert step["calls"] == 6
    assert step["avg_time"] == pytest.approx(step["total_time"] / 6)
    assert set(blocks["inner"]["paths"]) == {"by hand:inner"}


def test_r0_022_ten_thousand_names(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(tmp_path, IMPORTS + QUIET + MANY)
    names, grown, printed, last = told(done)
    assert (names, last) == (10_001, 1)
    assert grown < 100 << 20
    # What is printed has one line for the family.
    assert {(found["name"], found["calls"]) for found in LINE.finditer(printed)} == {
        ("epoch_*", "10000"),
        ("train_epoch", "10000"),
    }
    # A file for each of the first 1,000 epochs, then for the 1024th, 2048th, 4096th, 8192nd.
    numbers = {int(re.findall(r"\d+", name)[0]) for name in files(done.folder / "out")}
    assert numbers == {*range(1000), 1023, 2047, 4095, 8191}
    assert done.err.count("1000 block profiles of epochs were saved") == done.err.count("\n") == 1
    assert set(load(done.folder / "out" / "epoch_8191_block_profile.json")) == {
        "epoch_8191",
        "train_epoch",
    }


def test_r0_023_nested_blocks_have_inclusive_time(tree: Any, overall: Any) -> None:
    blocks, _ = tree
    epoch = blocks["epoch_0"]
    train = blocks["train_epoch"]["paths"]["epoch_0:train_epoch"]
    step = blocks["train_step"]["paths"]["epoch_0:train_epoch:train_step"]
    leaf = blocks["leaf"]["paths"]["epoch_0:train_epoch:train_step:leaf"]
    assert (step["calls"], leaf["calls"]) == (3, 3)
    assert 0.03 <= leaf["total_time"] <= step["total_time"]
    assert step["total_time"] + 0.02 <= train["total_time"]
    assert train["total_time"] + 0.01 <= epoch["total_time"]
    assert 0.02 <= train["self_time"] <= train["total_time"] - step["total_time"] + 1e-6
    assert epoch["self_time"] < epoch["total_time"] - train["total_time"]
    for number in range(5):  # and so in the example
        outer = overall["blocks"][f"epoch_{number}"]["total_time"]
        inner = overall["blocks"]["train_epoch"]["paths"][f"epoch_{number}:train_epoch"]
        steps = overall["blocks"]["train_step"]["paths"][f"epoch_{number}:train_epoch:train_step"]
        assert outer >= inner["total_time"] >= steps["total_time"] > 0


# --- Lines -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory, run_text: RunText) -> tuple[Done, str]:
    done = run_text(tmp_path_factory.mktemp("lines"), IMPORTS + QUIET + LINES)
    text, calls = told(done)
    assert calls == 1
    return done, text


def line_rows(text: str) -> dict[str, tuple[int, float, float, float]]:
    """Return hits, seconds, seconds a hit and percents by the source of a line."""
    unit = float(re.findall(r"^Unit of Time and Per Hit: \S+ \((\S+) s\)$", text, re.MULTILINE)[0])
    row = re.compile(r"^ *\d+ +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)  (.*)$", re.MULTILINE)
    return {
        source.strip(): (int(hits), float(time) * unit, float(each) * unit, float(share))
        for hits, time, each, share, source in row.findall(text)
    }


def test_r0_024_lines_of_that_method_only(lines: tuple[Done, str]) -> None:
    _, text = lines
    assert text.count("Function: ") == 1
    assert "def train(self, num_epochs):" in text
    assert "time.sleep(0.001)" not in text
    rows = line_rows(text)
    assert 0.06 <= rows["time.sleep(0.02)"][1] < 0.6
    assert 0.01 <= rows["time.sleep(0.01)"][1] < 0.2


def test_r0_025_columns_and_unit(lines: tuple[Done, str]) -> None:
    _, text = lines
    assert re.search(r"Line # +Hits +Time +Per Hit +% Time +Line Contents", text)
    rows = line_rows(text)
    hits = {source: row[0] for source, row in rows.items()}
    assert hits == {
        "total = 0": 1,
        "for epoch in range(num_epochs):": 4,
        "time.sleep(0.02)": 3,
        "total += self.other()": 3,
        "time.sleep(0.01)": 1,
        "return total": 1,
    }
    for count, seconds, each, _ in rows.values():
        assert each == pytest.approx(seconds / count, rel=0.05, abs=1e-7)
    assert sum(row[3] for row in rows.values()) == pytest.approx(100, abs=0.5)


# --- Files -----------------------------------------------------------------------------


def test_r0_026_a_block_profile_for_each_epoch(either: Done) -> None:
    for number in range(5):
        profile = load(either.folder / OUT / f"epoch_{number}_block_profile.json")
        # That epoch's blocks, and no others: files do not grow.
        assert set(profile) == {f"epoch_{number}", "train_epoch", "train_step", "validate"}
        assert profile["train_step"]["calls"] == 32
        assert profile["train_epoch"]["calls"] == 1
    assert not (either.folder / OUT / "epoch_5_block_profile.json").exists()


def test_r0_026_epochs_of_two_kinds_have_two_files(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(
        tmp_path,
        IMPORTS
        + QUIET
        + """
profiler_config.output_dir = "out"
for name in ("train_epoch_1", "val_epoch_1", "Epoch 1", "a/b epoch_2"):
    with profiler.profile_context(name): pass
profiler_config.autosave = False
profiler.save_block_profile(step="3/4")
""",
    ).ok()
    found = {name for name in files(done.folder / "out") if "block_profile" in name}
    assert found == {
        "train_epoch_1_block_profile.json",
        "val_epoch_1_block_profile.json",
        "epoch_1_block_profile.json",
        "a_b_epoch_2_block_profile.json",
        "block_profile_step_3_4.json",
    }
    assert set(load(done.folder / "out" / "val_epoch_1_block_profile.json")) == {"val_epoch_1"}


@pytest.mark.parametrize(
    ("inside", "after", "code", "epochs"),
    [
        ("pass", "", 0, 3),
        ("if epoch == 1: raise OSError('gone')", "", 0, 2),
        ("pass", "raise SystemExit(3)", 3, 3),
        ("pass", "raise RuntimeError('at the end')", 1, 3),
    ],
)
def test_r0_027_the_overall_profile_is_saved_at_the_end(
    tmp_path: Path, run_text: RunText, inside: str, after: str, code: int, epochs: int
) -> None:
    done = run_text(tmp_path, IMPORTS + QUIET + ENDS % (inside, after))
    assert done.code == code, done.err
    # At the end of train, also by an exception; and once more at the program's.
    made = json.loads(done.out.splitlines()[-1])
    assert {"overall_profile_step_final.json", "line_profile_step_final.txt"} <= set(made)
    final = load(tmp_path / "profiling_output" / "overall_profile_step_final.json")
    assert final["functions"]["Trainer.train"]["calls"] == 1
    assert final["functions"]["Trainer.train"]["errors"] == (epochs == 2)
    assert final["blocks"]["train_step"]["calls"] == epochs
    assert final["blocks"]["afterwards"]["calls"] == 1


def test_r0_027_nothing_is_saved_unasked_without_autosave(
    tmp_path: Path, run_text: RunText
) -> None:
    text = (ENDS % ("pass", "")).replace("made = ", "made = [] #")
    off = "profiler_config.autosave = False\n"
    done = run_text(tmp_path, IMPORTS + off + text).ok()
    assert not (tmp_path / "profiling_output").exists()
    assert done.out == "[]\n"


def test_r0_027_other_processes_of_the_program(tmp_path: Path, run_text: RunText) -> None:
    text = """
with profiler.profile_context("work"): pass
child = os.fork()
if child == 0:
    with profiler.profile_context("elsewhere"): pass
    sys.exit()
os.waitpid(child, 0)
print(os.path.exists("profiling_output"))
"""
    done = run_text(tmp_path / "fork", IMPORTS + QUIET + text).ok()
    assert done.out == "False\n"  # the child saved nothing
    final = load(done.folder / "profiling_output" / "overall_profile_step_final.json")
    assert set(final["blocks"]) == {"work"}
    # Of processes that train together each has files of its own.
    block = 'with profiler.profile_context("epoch_1"): pass\n'
    second = run_text(tmp_path / "rank", IMPORTS + QUIET + block, RANK="1").ok()
    assert files(second.folder / "profiling_output") == {"rank_1"}
    assert files(second.folder / "profiling_output" / "rank_1") == {
        "epoch_1_block_profile.json",
        "overall_profile_step_final.json",
    }


def test_r0_028_the_line_profile_is_saved(either: Done, lines: tuple[Done, str]) -> None:
    for step in (1, 10, 50, 100, "final"):
        text = (either.folder / OUT / f"line_profile_step_{step}.txt").read_text(encoding="utf-8")
        assert "def train(self, num_epochs):" in text
        assert "train_loss = self.train_epoch(epoch)" in text
    document = load(either.folder / OUT / "line_profile_step_final.json")
    (function,) = document["functions"]
    assert function["name"] == "Trainer.train"
    hits = {line["source"].strip(): line["hits"] for line in function["lines"]}
    assert hits["train_loss = self.train_epoch(epoch)"] == 5
    assert (lines[0].folder / "profiling_output" / "line_profile_step_0.txt").is_file()


def test_r0_029_what_is_printed(either: Done, tmp_path: Path, guide_env: dict[str, str]) -> None:
    last = either.out.split("\nBlock Profiling Report:\n")[-1]
    entries = [found.groupdict() for found in LINE.finditer(last)]
    names = [entry["name"] for entry in entries]
    assert names[:4] == ["epoch_4", "train_epoch", "train_step", "validate"]
    for entry in entries:
        expected = float(entry["total"]) / int(entry["calls"])
        assert float(entry["avg"]) == pytest.approx(expected, abs=2e-6)
    saved = re.findall(r"^Saved (.+) to (\S+)$", either.out, re.MULTILINE)
    assert ("block profile", f"{OUT}/epoch_4_block_profile.json") in saved
    assert ("overall profile", f"{OUT}/overall_profile_step_final.json") in saved
    assert ("line-by-line profile", f"{OUT}/line_profile_step_final.txt") in saved
    assert all((either.folder / path).is_file() for _, path in saved)
    # On a terminal: a table.
    program = IMPORTS + 'with profiler.profile_context("a block"): pass\n'
    program += "profiler_config.autosave = False\nprofiler.print_block_profile()\n"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = (
        subprocess.run(
            ["script", "-qec", f"{sys.executable} program.py", "/dev/null"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=guide_env,
        )
        if shutil.which("script")
        else None
    )
    if done is not None:
        assert "| Block Name | Total Time (s) | Calls | Avg Time (s) | % of Run |" in done.stdout
        assert re.search(r"\| a block +\| +0\.0\d{5} \| +1 \|", done.stdout)


ENTRY = {"total_time", "calls", "avg_time", "min", "max", "std", "p50", "p95", "self_time", "path"}


def test_r0_030_what_a_block_profile_holds(either: Done) -> None:
    for name in ("epoch_2_block_profile.json", "block_profile_step_100.json"):
        text = (either.folder / OUT / name).read_text(encoding="utf-8")
        assert text.startswith('{\n  "')  # indented by 2
        for entry in json.loads(text).values():
            assert set(entry) >= ENTRY
            assert 0 < entry["min"] <= entry["p50"] <= entry["p95"] <= entry["max"]
            assert entry["total_time"] == pytest.approx(entry["avg_time"] * entry["calls"])
            assert 0 <= entry["self_time"] <= entry["total_time"]
            assert entry["path"] in entry["paths"]
            paths = entry["paths"].values()
            assert sum(path["calls"] for path in paths) == entry["calls"]
            assert sum(path["total_time"] for path in paths) == pytest.approx(entry["total_time"])
    step = load(either.folder / OUT / "epoch_2_block_profile.json")["train_step"]
    assert step["path"] == "epoch_2:train_epoch:train_step"


def test_r0_031_the_overall_profile_has_everything(overall: Any) -> None:
    assert set(overall["functions"]) == {
        f"Trainer.{name}" for name in ("__init__", "train_epoch", "validate", "train")
    }
    epochs = {f"epoch_{number}" for number in range(5)}
    assert set(overall["blocks"]) == {
        "generate_data",
        "train_epoch",
        "train_step",
        "validate",
        *epochs,
    }
    blocks, functions = overall["blocks"], overall["functions"]
    inside = blocks["train_epoch"]["total_time"] + blocks["validate"]["total_time"]
    assert inside <= sum(blocks[name]["total_time"] for name in epochs)
    assert functions["Trainer.train"]["total_time"] <= overall["elapsed_time"]
    own = sum(entry["self_time"] for entry in blocks.values())
    assert own <= overall["elapsed_time"]


def test_r0_032_sorted_with_shares_of_the_run(overall: Any) -> None:
    for kind in ("functions", "blocks"):
        entries = list(overall[kind].values())
        totals = [entry["total_time"] for entry in entries]
        assert totals == sorted(totals, reverse=True)
        for entry in entries:
            share = 100 * entry["total_time"] / overall["elapsed_time"]
            assert entry["percent"] == pytest.approx(share, rel=0.02)
            assert 0 <= entry["self_percent"] <= entry["percent"] <= 100


# --- Advice ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory, run_text: RunText) -> list[list[Any]]:
    found = []
    for text in (ADVICE, HEALTHY):
        done = run_text(tmp_path_factory.mktemp("advice"), IMPORTS + QUIET + text).ok()
        found.append(load(done.folder / "out" / "overall_profile_step_final.json")["advice"])
    return found


def test_r0_033_the_five_uses_are_advice(
    advised: list[list[Any]], tmp_path: Path, run_text: RunText
) -> None:
    planted, healthy = advised
    assert healthy == []
    rules = {entry["rule"]: entry for entry in planted}
    # 1: what takes significantly more time than the others; 2: data loading.
    assert set(rules) == {"RULE-01", "RULE-02"}
    assert {entry["evidence"]["name"] for entry in planted if entry["rule"] == "RULE-01"} == {
        "data_loading",
        "train_step",
    }
    assert rules["RULE-02"]["evidence"]["name"] == "data_loading"
    assert rules["RULE-02"]["severity"] in ("high", "critical")
    assert "num_workers" in rules["RULE-02"]["text"]
    # 3 and 5: transfers, use of the GPU and layers are told by the report of a recording; 4: sizes
    # of batches are tried out, with time and memory of each.
    done = run_text(tmp_path, SIZES)
    checked, sizes = told(done)
    assert {"transfer", "slow_module", "loader_workers"} <= set(checked)
    assert [row["batch_size"] for row in sizes] == [8, 16, 32]
    for row in sizes:
        assert row["samples_per_second"] > 0
        assert "memory_bytes" in row
    rulebook = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    for rule, home in (("03", "`transfer`"), ("05", "`slow_module`")):
        assert re.search(rf"\| RULE-{rule} \|.*{home}", rulebook)


def test_r0_034_advice_carries_numbers(advised: list[list[Any]]) -> None:
    for entry in advised[0]:
        evidence = entry["evidence"]
        assert evidence["calls"] == 3
        assert 0.09 <= evidence["self_time"] <= evidence["total_time"]
        assert 0.3 <= evidence["share"] <= 0.7
        assert evidence["gain_at_most"] == pytest.approx(1 / (1 - evidence["share"]))
        assert f"{100 * evidence['share']:.0f} %" in entry["text"]


# --- What the guide's profiler has besides -----------------------------------------------


def test_r0_035_the_calls_of_the_original(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(tmp_path / "first", IMPORTS + QUIET + FIRST)
    said, before, after = told(done)
    made = files(done.folder / "out")
    for kind in ("block", "overall", "line"):
        # Step 0 is step 0, and step 2 was asked for.
        assert {f"{kind}_profile_step_0.json", f"{kind}_profile_step_2.json"} <= made
    assert {"lines.txt", "block_profile_step_final.json"} <= made
    assert not any("custom" in name or "step_1." in name for name in made)
    assert files(done.folder / "sub") == {"overall.json"}
    assert said[0].startswith("\nLine-by-Line Profiling Report:\n")
    assert said[1].startswith("\nBlock Profiling Report:\nepoch: Total time: ")
    assert said[2].startswith(
        "\nOverall Profiling Report:\nFunction Profiling:\nwork: Total time: "
    )
    assert before == [["advice", "blocks", "elapsed_time", "functions"], ["epoch", "inside"], True]
    assert after == [{}, "", {}]
    profile = load(done.folder / "sub" / "overall.json")
    assert profile["functions"]["preprocess"]["calls"] == 9
    assert set(profile["blocks"]["inside"]["paths"]) == {"epoch:inside"}

    second = told(run_text(tmp_path / "second", SECOND))
    assert {name: entry["calls"] for name, entry in second["functions"].items()} == {
        "renamed": 2,
        "MyClass.slow": 2,
        "MyClass.__init__": 2,
    }
    assert second["blocks"]["outer"]["total_time"] >= second["blocks"]["inner"]["total_time"]
    assert set(second["blocks"]["inner"]["paths"]) == {"outer:inner"}


@pytest.mark.parametrize(
    ("setting", "value", "file"),
    [
        ("line_by_line_file", "my_lines.txt", "out/my_lines.txt"),
        ("block_profiling_file", "my_blocks.json", "out/my_blocks.json"),
        ("overall_profiling_file", "apart/all.csv", "apart/all.csv"),
        ("print_line_profile", True, "Line-by-Line Profiling Report:"),
        ("print_overall_profile", True, "Overall Profiling Report:"),
        ("print_save_info", True, "Saved overall profile to out/overall_profile_step_final.json"),
    ],
)
def test_r0_036_the_settings_of_the_original(
    tmp_path: Path, run_text: RunText, setting: str, value: object, file: str
) -> None:
    program = SWITCH % (setting, repr(value))
    done = run_text(tmp_path, IMPORTS + QUIET + program).ok()
    if setting.startswith("print"):
        assert file in done.out
        without = run_text(tmp_path / "off", IMPORTS + QUIET + SWITCH % (setting, "False")).ok()
        assert without.out == ""
        return
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert {"l": "def train(epochs):", "b": '"epoch_0"', "o": "kind,name,total_time"}[
        setting[0]
    ] in text
    defaults = run_text(
        tmp_path / "defaults",
        IMPORTS + "given = ProfilerConfig(save_format='csv')\n"
        "print(json.dumps([repr(ProfilerConfig()), given.save_format]))\n",
    )
    shown, given = told(defaults)
    assert given == "csv"
    assert shown == (
        "ProfilerConfig(enabled=True, output_dir='profiling_output', save_format='json', "
        "steps_to_save=[1, 100, 1000], print_line_profile=False, print_block_profile=True, "
        "print_overall_profile=True, print_save_info=True, save_line_profile=True, "
        "save_block_profile=True, save_overall_profile=True, line_by_line_file=None, "
        "block_profiling_file=None, overall_profiling_file=None, autosave=True)"
    )


# --- The blocks of the guide -------------------------------------------------------------


def test_s0_01_configuration(tmp_path: Path, run_text: RunText) -> None:
    after = "print(repr(profiler_config))\n"
    done = run_text(tmp_path, snippet("S0-1"), before=IMPORTS, after=after).ok()
    for setting in (
        "enabled=True",
        "output_dir='ml_profiling_output'",
        "save_format='json'",
        "steps_to_save=[1, 10, 50, 100]",
        "print_block_profile=True",
        "save_line_profile=True",
        "save_block_profile=True",
        "save_overall_profile=True",
    ):
        assert setting in done.out
    assert files(done.folder) == {"program.py", "start.py"}  # nothing ran, nothing is saved


def test_s0_02_methods_of_a_class(tmp_path: Path, run_text: RunText) -> None:
    text = with_bodies(snippet("S0-2"))
    done = run_text(tmp_path, text, before=IMPORTS, after="print(Trainer.__name__, Trainer())\n")
    assert done.ok().out.startswith("Trainer <__main__.Trainer object at ")


def test_s0_03_functions_as_blocks(tmp_path: Path, run_text: RunText) -> None:
    after = """
generate_data(); generate_data(5, input_dim=2); train_epoch(None, 3); validate(None)
print(json.dumps({name: entry["calls"] for name, entry in profiler.get_block_profile().items()}))
"""
    done = run_text(tmp_path, with_bodies(snippet("S0-3")), before=IMPORTS + QUIET, after=after)
    assert told(done) == {"generate_data": 2, "train_epoch": 1, "validate": 1}


def test_s0_04_contexts(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(
        tmp_path, with_bodies(snippet("S0-4")), before=IMPORTS + "epoch = 3\n" + QUIET
    ).ok()
    out = done.folder / "profiling_output"
    assert set(load(out / "epoch_3_block_profile.json")) == {"epoch_3"}
    assert set(load(out / "overall_profile_step_final.json")["blocks"]) == {"train_step", "epoch_3"}
    assert load(out / "block_profile_step_1.json")["train_step"]["calls"] == 1


def test_s0_05_lines(tmp_path: Path, run_text: RunText) -> None:
    done = run_text(
        tmp_path, with_bodies(snippet("S0-5")), before=IMPORTS + QUIET, after="train(None, 2)\n"
    ).ok()
    text = (done.folder / "profiling_output" / "line_profile_step_final.txt").read_text("utf-8")
    assert re.search(r"^ *\d+ +1 .* pass$", text, re.MULTILINE)
