"""Guide 0, "Machine Learning Training Example with Advanced Flexible Profiler": its example."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Done, RunText
from .guide0 import LINE, OUT, files, load, told
from .guide0_programs import (
    IMPORTS,
    LINES,
    QUIET,
    TREE,
)

pytestmark = pytest.mark.once


EXAMPLE = ROOT / "examples" / "ml_training_example.py"


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


def test_r0_011_blocks_are_printed_during_training(either: Done) -> None:
    reports = either.out.split("\nBlock Profiling Report:\n")
    # Five epochs, and the steps 1, 10, 50 and 100.
    assert len(reports) - 1 == 9
    first = reports[3]  # that of epoch_0, after steps 1 and 10
    assert [found["name"] for found in LINE.finditer(first)][:1] == ["epoch_0"]
    before_second_epoch = either.out.split("Epoch 1, Batch 0")[0]
    assert "epoch_0: Total time: " in before_second_epoch


# --- Blocks ----------------------------------------------------------------------------


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
