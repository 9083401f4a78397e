"""Guide 0: settings, and which files are saved when."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import RunText
from .guide0 import LINE, files, load, told
from .guide0_programs import (
    COMBINATIONS,
    ENDS,
    FORMATS,
    IMPORTS,
    OFF,
    QUIET,
    STEPS,
    SWITCH,
)
from .guides import snippet

pytestmark = pytest.mark.once


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


# --- Files -----------------------------------------------------------------------------


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


# --- What the guide's profiler has besides -----------------------------------------------


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


def test_r0_006_settings_can_be_copied(tmp_path: Path, run_text: RunText) -> None:
    text = """
import copy, dataclasses, pickle
profiler_config.output_dir = "here"
kept = [copy.copy(profiler_config), copy.deepcopy(profiler_config),
        pickle.loads(pickle.dumps(profiler_config)),
        dataclasses.replace(profiler_config, output_dir="elsewhere")]
same = [each == profiler_config for each in kept]
for each in kept:
    each.output_dir = "away"
for each in kept[:3]:
    each.steps_to_save.append(7)
print(json.dumps([same, profiler_config.output_dir, profiler_config.steps_to_save,
                  dataclasses.asdict(profiler_config)["save_format"]]))
"""
    same, folder, steps, format_ = told(run_text(tmp_path, IMPORTS + text).ok())
    assert same == [True, True, True, False]
    assert (folder, steps, format_) == ("here", [1, 100, 1000], "json")


def test_r0_035_a_file_for_lines_that_is_asked_for(tmp_path: Path, run_text: RunText) -> None:
    text = """
profiler_config.autosave = False
with profiler.profile_context("block"): pass
profiler.step_profiler()
profiler.save_line_profile(step="asked")
"""
    done = run_text(tmp_path, IMPORTS + text).ok()
    made = {path.name for path in (done.folder / "profiling_output").iterdir()}
    assert "line_profile_step_1.txt" not in made, "nobody chose lines"
    text = (done.folder / "profiling_output" / "line_profile_step_asked.txt").read_text("utf-8")
    assert text == "No line was counted: @profile_line_by_line chooses functions.\n"


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
