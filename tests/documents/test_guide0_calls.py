"""Guide 0: functions and blocks of programs, advice, and the calls of the original."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, RunText
from .guide0 import LINE, files, load, told
from .guide0_programs import (
    ADVICE,
    FIRST,
    HEALTHY,
    IMPORTS,
    MANY,
    METHODS,
    QUIET,
    SECOND,
    SIZES,
)
from .guides import snippet, with_bodies

pytestmark = pytest.mark.once


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


# --- The blocks of the guide -------------------------------------------------------------


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
