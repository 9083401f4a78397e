"""Guide 4: traces of training steps, function profiles of the export, and their switches."""

from __future__ import annotations

import json
import pstats
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stepwatch.compat.ml_ops import settings

from .conftest import ROOT, Done, RunText
from .guide4_programs import SCENARIOS
from .guides import snippet

pytestmark = pytest.mark.once

# Several tests at once have one thread each; more would wait for each other.
THREADS = {"OMP_NUM_THREADS": "1"}
STEP_SPANS = {"forward", "loss", "decoding"}
TRAIN = "python -m ml_ops.train train-ocr"


def events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a trace, which must be one JSON document."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return found


def spans(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the spans of a trace by name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events(path):
        if event["ph"] == "X":
            found.setdefault(event["name"], []).append(event)
    return found


def within(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    """Tell whether one span lies in another."""
    end = outer["ts"] + outer["dur"]
    return bool(outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= end + 0.01)


def names(folder: Path) -> set[str]:
    """Return the names of files in a folder, none where there is no folder."""
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def make_plates(folder: Path, count: int, *kinds: str) -> None:
    """Run the example that makes pictures."""
    program = ROOT / "examples" / "ml_ops" / "make_plates.py"
    command = [sys.executable, str(program), str(folder), "--count", str(count), "--kinds", *kinds]
    subprocess.run(command, check=True, capture_output=True)


# --- the guide's commands, as they stand ---


@pytest.fixture(scope="module")
def first(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run the guide's first block in a folder whose data/ is empty."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "data").mkdir()
    return shell(folder, snippet("S4-1"), **THREADS).ok()


@pytest.fixture(scope="module")
def configured(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Train for 250 steps with the guide's file in place and nothing in the environment."""
    folder = tmp_path_factory.mktemp("configured")
    (folder / "data").mkdir()
    file = folder / "configs" / "training" / "ocr" / "default.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(snippet("S4-2"), encoding="utf-8")
    options = "-o training/ocr.max_epochs=1 -o training.ocr.batch_size=1"
    return shell(folder, f"{TRAIN} data --max-images 278 {options}", **THREADS).ok()


@pytest.fixture(scope="module")
def exported(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run the guide's export on pictures of each kind."""
    folder = tmp_path_factory.mktemp("exported")
    make_plates(folder / "data" / "raw", 30, "png", "jpg", "ppm")
    (folder / "data" / "raw" / "whole.ppm").write_bytes(b"P6\n4 2\n255\n" + bytes(24))
    (folder / "data" / "raw" / "broken.png").write_bytes(b"no picture")
    return shell(folder, snippet("S4-4")).ok()


@pytest.fixture(scope="module")
def stats_file(exported: Done) -> Path:
    """Return the profile of the export."""
    return exported.folder / "runs" / "profiling" / "export_yolo_format.stats"


def test_s4_01_the_environment_alone_switches_on(first: Done) -> None:
    assert "profiling is on, into runs/profiling" in first.err
    assert "train_step_0.json" in names(first.folder / "runs" / "profiling")


def test_s4_02_the_file_alone_switches_on(configured: Done) -> None:
    assert "profiling is on" in configured.err
    assert "train_step_0.json" in names(configured.folder / "runs" / "profiling")


@pytest.fixture(scope="module")
def usage(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run the two training commands of the usage examples."""
    folder = tmp_path_factory.mktemp("usage")
    make_plates(folder / "data" / "ccpd_small", 24, "png")
    return shell(folder, snippet("S4-3"), **THREADS).ok()


def test_s4_03_both_commands_train_and_trace(usage: Done) -> None:
    assert usage.err.count("Training on 22 plates, 2 batches an epoch; profiling is on") == 2
    found = names(usage.folder / "runs" / "profiling")
    assert found == {
        "train_step_0.json",
        "train_step_0_epoch_1.json",
        "val_step_epoch_0.json",
        "val_step_epoch_1.json",
    }


def test_s4_04_export_is_profiled(exported: Done, stats_file: Path) -> None:
    found = names(stats_file.parent)
    assert found == {"export_yolo_format.stats", "export_yolo_format.txt"}
    assert "Exported 31 images to data/processed (28 train, 3 val, 1 passed over)" in exported.err


@pytest.fixture(scope="module")
def shown(shell: RunText, exported: Done) -> Done:
    """Look at the profile as the guide says, and ask pstats for three rows."""
    return shell(exported.folder, snippet("S4-5"), stdin="sort time\nstats 3\nquit\n").ok()


def test_s4_05_cat_and_pstats_read_the_same_file(shown: Done) -> None:
    text, browser = shown.out.split("Welcome to the profile statistics browser.")
    counts = re.findall(r"(\d+) function calls", shown.out)
    assert "function calls" in text
    assert "List reduced from" in browser
    assert len(counts) == 2
    assert counts[0] == counts[1]


# --- rows about the training ---


def test_r4_002_trains_and_writes_traces(first: Done) -> None:
    assert "256 made-up plates are used instead" in first.err
    assert re.search(r"epoch 1: loss \d+\.\d+, \d+\.\d img/s; validation loss \d", first.err)
    found = spans(first.folder / "runs" / "profiling" / "train_step_0.json")
    assert any(name.startswith("aten::") for name in found)


def test_r4_003_yaml_switches_on_without_the_environment(configured: Done) -> None:
    assert "train_step_0.json" in names(configured.folder / "runs" / "profiling")


def test_r4_004_one_step_in_a_hundred(configured: Done) -> None:
    assert "250 batches an epoch" in configured.err
    found = names(configured.folder / "runs" / "profiling")
    assert found == {
        "train_step_0.json",
        "train_step_100.json",
        "train_step_200.json",
        "val_step_epoch_0.json",
    }


def test_r4_005_training_and_validation_are_traced(first: Done) -> None:
    folder = first.folder / "runs" / "profiling"
    assert "backward" in spans(folder / "train_step_0.json")
    validation = spans(folder / "val_step_epoch_0.json")
    assert set(validation) >= STEP_SPANS
    assert "backward" not in validation


@pytest.mark.parametrize("name", ["train_step_0", "train_step_0_epoch_1", "val_step_epoch_1"])
def test_r4_006_forward_loss_and_decoding_are_spans(first: Done, name: str) -> None:
    found = spans(first.folder / "runs" / "profiling" / f"{name}.json")
    (block,) = found[name]
    order = ["forward", "loss", "decoding"]
    if name.startswith("train"):
        order += ["backward", "optimizer"]
    parts = [found[part][0] for part in order]
    assert all(within(part, block) for part in parts)
    for earlier, later in zip(parts, parts[1:]):
        assert earlier["ts"] + earlier["dur"] <= later["ts"]


def test_r4_007_other_steps_are_left_alone(configured: Done) -> None:
    for number in (0, 100, 200):
        path = configured.folder / "runs" / "profiling" / f"train_step_{number}.json"
        assert len(spans(path)["forward"]) == 1, "the trace is of one step"


def test_r4_008_traces_are_what_the_viewer_takes(first: Done) -> None:
    for path in (first.folder / "runs" / "profiling").glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert isinstance(document["traceEvents"], list)
        for event in document["traceEvents"]:
            assert {"ph", "name", "pid"} <= set(event)
            if event["ph"] == "X":
                assert isinstance(event["tid"], int)
                assert event["ts"] >= 0
                assert event["dur"] >= 0


@pytest.fixture(scope="module")
def lightning(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Train for three epochs under the real Lightning."""
    pytest.importorskip("lightning")
    folder = tmp_path_factory.mktemp("lightning")
    (folder / "data").mkdir()
    options = "-o training/ocr.trainer=lightning -o training/ocr.max_epochs=3"
    command = f"{TRAIN} data --max-images 64 {options}"
    return shell(folder, command, ENABLE_PROFILING="1", **THREADS).ok()


def test_r4_009_steps_of_plate_ocr_are_instrumented(
    lightning: Done, scenarios: dict[str, Any]
) -> None:
    found = spans(lightning.folder / "runs" / "profiling" / "train_step_0.json")
    (block,) = found["train_step_0"]
    for part in (*STEP_SPANS, "backward", "optimizer"):
        assert within(found[part][0], block), part
    # Without any loop, a step is traced by itself.
    assert set(scenarios["step_alone"]["spans"]) >= STEP_SPANS
    assert scenarios["step_alone"]["loss"] > 0


def test_r4_013_default_folder(first: Done) -> None:
    assert (first.folder / "runs" / "profiling" / "train_step_0.json").is_file()
    assert names(first.folder) == {"data", "runs"}


def test_r4_015_names_carry_the_batch(configured: Done, first: Done) -> None:
    for number in (0, 100, 200):
        name = f"train_step_{number}"
        path = configured.folder / "runs" / "profiling" / f"{name}.json"
        assert name in spans(path)
    # The next epoch begins at 0 again and takes nothing away.
    folder = first.folder / "runs" / "profiling"
    assert "train_step_0" in spans(folder / "train_step_0.json")
    assert "train_step_0_epoch_1" in spans(folder / "train_step_0_epoch_1.json")


def test_r4_018_max_images(usage: Done, configured: Done) -> None:
    assert "Training on 250 plates" in configured.err
    assert "Training on 22 plates" in usage.err, "a folder may have fewer"


def test_r4_021_the_timeline_has_named_tracks(first: Done) -> None:
    found = events(first.folder / "runs" / "profiling" / "train_step_0.json")
    named = {(event["pid"], event["tid"]) for event in found if event["name"] == "thread_name"}
    assert any(event["name"] == "process_name" for event in found)
    operators = [event for event in found if event.get("cat") == "operator"]
    assert operators
    assert {(event["pid"], event["tid"]) for event in operators} <= named
    # Spans of one track lie beside or within each other, or a viewer draws them wrong.
    tracks: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in found:
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for track in tracks.values():
        stack: list[dict[str, Any]] = []
        for event in sorted(track, key=lambda one: (one["ts"], -one["dur"])):
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"]:
                stack.pop()
            assert not stack or within(event, stack[-1])
            stack.append(event)


def test_r4_027_one_validation_trace_an_epoch(lightning: Done) -> None:
    found = {name for name in names(lightning.folder / "runs" / "profiling") if "val" in name}
    assert found == {f"val_step_epoch_{epoch}.json" for epoch in range(3)}
    for name in found:
        path = lightning.folder / "runs" / "profiling" / name
        assert len(spans(path)["forward"]) == 1, "the first batch alone"


# --- rows about the export ---


def functions_of(path: Path) -> dict[str, tuple[int, float]]:
    """Return calls and time of each function in a profile, by name."""
    table = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]
    return {key[2]: (value[1], value[3]) for key, value in table.items()}


def test_r4_010_functions_of_the_export_are_named(stats_file: Path, exported: Done) -> None:
    found = functions_of(stats_file)
    assert found["load_image"][0] == 32
    assert found["parse_name"][0] == 31
    assert found["write_label"][0] == 31
    assert found["write_image"][0] == 31
    moved = re.search(
        r"Files: (\d+), read ([\d.]+) KiB in (\d+) calls and [\d.]+ ms, "
        r"wrote ([\d.]+) KiB in (\d+) calls",
        exported.err,
    )
    assert moved is not None
    assert int(moved[1]) >= 62
    assert float(moved[2]) > 1
    assert float(moved[4]) > 1


def test_r4_011_stats_hold_times(stats_file: Path) -> None:
    found = functions_of(stats_file)
    assert found["export_pictures"][1] >= found["load_image"][1] > 0


def test_r4_012_export_yolo_format_exports(exported: Done) -> None:
    processed = exported.folder / "data" / "processed"
    images = {path.stem: path.suffix for path in (processed / "images").rglob("*.*")}
    labels = list((processed / "labels").rglob("*.txt"))
    assert {path.stem for path in labels} == set(images)
    assert set(images.values()) == {".png", ".jpg"}, "YOLO reads no PPM"
    plate = next(path for path in labels if path.stem.startswith("0000-"))
    # 98 by 30 pixels, the plate from (6, 6) to (92, 24).
    assert plate.read_text() == "0 0.500000 0.500000 0.877551 0.600000\n"
    whole = next(path for path in labels if path.stem == "whole")
    assert whole.read_text() == "0 0.500000 0.500000 1.000000 1.000000\n"
    assert "names:\n  0: plate\n" in (processed / "data.yaml").read_text()
    assert exported.err.rstrip().endswith("img/s")


def test_r4_016_stats_are_readable_by_cat(stats_file: Path) -> None:
    content = stats_file.read_bytes()
    text = stats_file.with_suffix(".txt").read_bytes()
    assert b"function calls" in content
    assert content.endswith(text)
    assert b"load_image" in text


def test_r4_020_the_word_preprocess_may_be_missing(shell: RunText, exported: Done) -> None:
    command = "python -m ml_ops.data data/raw again --max-images 5"
    folder = exported.folder / "other"
    done = shell(exported.folder, command, ENABLE_PROFILING="yes", PROFILE_OUTPUT_DIR=str(folder))
    assert "Exported 5 images to again" in done.ok().err
    assert functions_of(folder / "export_yolo_format.stats")["load_image"][0] == 5


def test_r4_020_a_folder_without_pictures_is_told(shell: RunText, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    done = shell(tmp_path, "python -m ml_ops.data preprocess raw processed").ok()
    assert "raw has no pictures: nothing was exported" in done.err
    assert "Exported 0 images to processed" in done.err


def test_r4_022_cat_shows_text(shown: Done) -> None:
    text = shown.out.split("Welcome to the profile statistics browser.")[0]
    assert re.search(r"ncalls +tottime +percall +cumtime", text)
    assert "images.py" in text


def test_r4_023_pstats_browses(shown: Done, stats_file: Path) -> None:
    browser = shown.out.split("Welcome to the profile statistics browser.")[1]
    assert f"{'runs/profiling/' + stats_file.name}% " in browser
    assert "due to restriction <3>" in browser
    assert len(re.findall(r"^ +\d+(?:/\d+)? +\d\.\d{3}", browser, re.MULTILINE)) == 3


# --- switches and helpers, in one program ---


@pytest.fixture(scope="module")
def finished(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run all scenarios."""
    return run_text(tmp_path_factory.mktemp("scenarios"), SCENARIOS, **THREADS).ok()


@pytest.fixture(scope="module")
def scenarios(finished: Done) -> dict[str, Any]:
    """Return what came of them."""
    found: dict[str, Any] = json.loads((finished.folder / "results.json").read_text())
    return found


ON = ["runs/profiling/train_step_0.json", "runs/profiling/val_step_epoch_0.json"]


@pytest.mark.parametrize("word", ["true", "1", "ON"])
def test_r4_001_words_that_switch_on(scenarios: dict[str, Any], word: str) -> None:
    assert scenarios["switches"][f"{word} None None"] == [0, ON]


@pytest.mark.parametrize("said", ["false None None", "false true None", "0 None true"])
def test_r4_001_the_environments_no_is_final(scenarios: dict[str, Any], said: str) -> None:
    assert scenarios["switches"][said] == [0, []]


def test_r4_001_the_data_command_listens_too(scenarios: dict[str, Any]) -> None:
    first, second, third, counts = scenarios["argument"]
    assert first == [], "nothing said, nothing written"
    assert second == ["p/export_yolo_format.stats", "p/export_yolo_format.txt"]
    assert third == ["p/export_yolo_format.txt"], "an explicit False is heard before a yes"
    assert counts == [1, 0, 0]
    assert scenarios["split"] == [0, 1, 1]


def test_r4_001_other_words_count_as_not_set(scenarios: dict[str, Any]) -> None:
    assert scenarios["switches"]["perhaps None None"] == [0, []]


@pytest.mark.parametrize(
    ("said", "on"),
    [
        ("None true None", True),
        ("None false None", False),
        ("true false None", True),
        ("true None false", False),
        ("None None true", True),
    ],
)
def test_r4_003_who_is_heard_first(scenarios: dict[str, Any], said: str, on: bool) -> None:
    assert scenarios["switches"][said] == [0, ON if on else []]


def test_r4_007_steps_between_are_not_recorded(scenarios: dict[str, Any]) -> None:
    assert scenarios["recorded"] == [True, False, True, False, True]


def test_r4_014_profile_output_dir_is_always_honoured(scenarios: dict[str, Any]) -> None:
    assert scenarios["elsewhere"] == [
        "configs/training/ocr/default.yaml",
        "said/loose.stats",
        "said/loose.txt",
        "there/traces/loose.stats",
        "there/traces/loose.txt",
        "there/traces/train_step_0.json",
        "there/traces/val_step_epoch_0.json",
    ]
    assert "configured/train_step_0.json" in scenarios["file_folder"]


def test_r4_017_profiles_have_the_names_that_were_given(scenarios: dict[str, Any]) -> None:
    found = scenarios["nine"]["decorated files"]
    assert "here/sums.stats" in found
    assert "runs/profiling/__main__.plain.stats" in found
    assert "runs/profiling/by_name_.._x.stats" in found, "one file in one folder"


def test_r4_019_overrides_take_slashes_and_dots(scenarios: dict[str, Any]) -> None:
    assert scenarios["switches"]["None None true"] == [0, ON]
    code, found = scenarios["typed"]
    assert code == 0
    assert found == [
        "runs/profiling/train_step_0.json",
        "runs/profiling/train_step_2.json",
        "runs/profiling/train_step_4.json",
        "runs/profiling/val_step_epoch_0.json",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-o training/ocr.max_epoch=3", "did you mean training/ocr.max_epochs?"),
        ("-o training/ocr.max_epochs=many", "max_epochs is 'many' but should be a whole number"),
        ("-o enable_profiling=true", "did you mean training/ocr.enable_profiling?"),
        ("-o training/ocr.seed", "has no value"),
        ("--max-images 0", "--max-images is 0 but should be at least 1"),
        ("-o training/ocr.trainer=magic", "should be simple or lightning"),
    ],
)
def test_r4_019_wrong_options_are_told(
    scenarios: dict[str, Any], words: str, sentence: str
) -> None:
    code, said = scenarios["wrong"][words]
    assert code == 2
    assert sentence in said


def test_r4_025_off_by_default(scenarios: dict[str, Any]) -> None:
    assert scenarios["switches"]["None None None"] == [0, []]
    assert scenarios["nine"]["off by default"] == [True, True]


def test_r4_026_every_nth_step_and_no_other(scenarios: dict[str, Any]) -> None:
    traced = [name for name in scenarios["typed"][1] if "train_step" in name]
    assert len(traced) == 3, "six steps, one in two"


@pytest.fixture(scope="module")
def recorded(shell: RunText, stepwatch_cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Train under ``stepwatch run``, twice, with traces asked for."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "data").mkdir()
    words = "train-ocr data --max-images 40 -o training/ocr.batch_size=4"
    run = f"{stepwatch_cli} run --set runs_dir=runs -m ml_ops.train {words}"
    text = f"{run}\n{run}\n{stepwatch_cli} history runs --json"
    return shell(
        folder,
        text,
        STEPWATCH_PYTHON=sys.executable,
        ENABLE_PROFILING="true",
        PROFILE_OUTPUT_DIR="traces",
        **THREADS,
    ).ok()


def test_r4_006_traces_are_cut_out_of_a_recording(recorded: Done) -> None:
    found = spans(recorded.folder / "traces" / "train_step_0.json")
    (block,) = found["train_step_0"]
    for part in (*STEP_SPANS, "backward", "optimizer"):
        assert any(within(one, block) for one in found[part]), part
        assert all(within(one, block) for one in found[part]), "it has this step alone"
    assert any(name.startswith("aten::") for name in found)
    assert names(recorded.folder / "traces") == {
        "train_step_0.json",
        "train_step_0_epoch_1.json",
        "val_step_epoch_0.json",
        "val_step_epoch_1.json",
    }


def test_r4_028_practices_are_in_what_we_say(
    recorded: Done, stats_file: Path, stepwatch_cli: Path
) -> None:
    runs = sorted((recorded.folder / "runs").glob("*/report.json"))
    assert len(runs) == 2
    report = json.loads(runs[0].read_text())
    # Representative workloads: 18 steps are few, and the report says so.
    assert "Only 18 steps were recorded: a longer run says more." in report["notes"]
    # Compare before and after: the earlier run of the same program is known.
    assert len(json.loads(recorded.out)["runs"]) == 2
    # Focus on hotspots: the function with most time of its own comes first.
    command = [str(stepwatch_cli), "stats", str(stats_file), "--sort", "self", "--top", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    top = max(pstats.Stats(str(stats_file)).stats.items(), key=lambda item: item[1][2])  # type: ignore[attr-defined]
    assert top[0][2].strip("<>") in done.stdout
    # Data apart from training: the export has a profile of its own.
    assert "training_step" not in functions_of(stats_file)


def compare(stepwatch_cli: Path, folder: Path, ending: str) -> dict[str, Any]:
    """Run the command on before and after."""
    command = [str(stepwatch_cli), "compare", f"before{ending}", f"after{ending}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["runs"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("ending", [".json", ".stats", "_report.json", ""])
def test_r4_029_compare_finds_the_improvement(
    finished: Done, stepwatch_cli: Path, ending: str
) -> None:
    found = compare(stepwatch_cli, finished.folder / "compare", ending)
    assert found["verdict"] == "faster"
    assert found["speedup"] > 1.5  # 50 where nobody else computes.
    if ending == ".json":
        (part,) = (one for one in found["sections"] if one["name"] == "decoding")
        assert part["before_ms"] >= 200
        assert part["after_ms"] >= 4
        assert part["difference_ms"] < -10
    if ending == ".stats":
        assert "sleep" in found["functions"][0]["name"]


BARE = """
import sys
from pathlib import Path
import stepwatch
from ml_ops.profile import cprofile_context, torch_profiler
from ml_ops.data import main
from stepwatch.compat.ml_ops.settings import gather

with torch_profiler(trace_name="bare") as trace:
    with stepwatch.section("work"):
        sum(range(1000))
with cprofile_context(profile_name="bare", print_stats=0):
    sorted([2, 1])
Path("raw").mkdir()
Path("raw/a.ppm").write_bytes(b"P6 1 1 255\\n   ")
Path("raw/b.png").write_bytes(b"x")
code = main(["raw", "out"])
print(code, gather([]).profile_every_n_steps)
print([name for name in ("torch", "PIL", "yaml", "numpy", "lightning") if name in sys.modules])
from ml_ops.train import main
Path("data").mkdir()
print(main(["train-ocr", "data"]))
"""


def test_r4_030_nothing_but_python_is_needed(guide_env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "configs" / "training" / "ocr" / "default.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(snippet("S4-2").replace("100 ", "50 "), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-S", "-c", BARE],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**guide_env, "ENABLE_PROFILING": "true"},
    )
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()[-3:]
    assert (first, second) == ("0 50", "[]")
    assert third == "3"
    assert "torch is not installed" in done.stderr
    assert "work" in spans(tmp_path / "runs" / "profiling" / "bare.json")
    assert functions_of(tmp_path / "runs" / "profiling" / "bare.stats")
    assert "Exported 1 images to out (1 train, 0 val, 1 passed over)" in done.stderr
    assert done.stderr.count("Pillow is not installed: only PPM pictures are read") == 1


def test_r4_031_inference_is_traced_the_same_way(scenarios: dict[str, Any]) -> None:
    found = scenarios["inference"]
    assert {"inference", "forward", "decoding"} <= set(found["spans"])
    assert "aten::conv2d" in found["spans"]
    assert not any("Backward" in name for name in found["spans"])
    assert found["texts"] == 2
    assert found["path"] == "runs/profiling/inference.json"


def test_r4_031_its_table_is_sorted_by_self_time(scenarios: dict[str, Any]) -> None:
    table = scenarios["inference"]["table"]
    assert table.startswith("Sorted by self CPU time\n")
    assert table in scenarios["inference"]["said"], "it is logged"
    rows = re.findall(r"^(\S.*?) +([\d.]+)ms +[\d.]+ +[\d.]+ms", table, re.MULTILINE)
    assert 5 < len(rows) <= 20
    times = [float(row[1]) for row in rows]
    assert times == sorted(times, reverse=True)
    assert {row[0] for row in rows} <= {name[:44] for name in scenarios["inference"]["operators"]}


def test_r4_032_off_by_argument(scenarios: dict[str, Any]) -> None:
    assert scenarios["nine"]["off by argument"] == [True, True]
    assert scenarios["nine"]["off, no files"] == []
    assert scenarios["nine"]["off for all"] is True, "STEPWATCH_ENABLED=0 is stronger than we are"


def test_r4_032_off_by_environment(scenarios: dict[str, Any]) -> None:
    assert scenarios["nine"]["trace off by environment"] is True
    assert scenarios["nine"]["profile off by environment"] is True
    assert scenarios["nine"]["false, no files"] == []


def test_r4_032_the_trace_is_exported_and_summed_up(scenarios: dict[str, Any]) -> None:
    found, inside, said = scenarios["nine"]["exported"]
    assert found == ["here/named.json"]
    assert {"named", "aten::mm"} <= set(inside)
    assert said[0] == "Saved here/named.json"
    assert "Sorted by self CPU time" in said[1]


def test_r4_032_stats_are_written_and_printed(scenarios: dict[str, Any]) -> None:
    assert {"here/sums.stats", "here/sums.txt"} <= set(scenarios["nine"]["stats"])
    assert "function calls" in scenarios["nine"]["printed"]
    assert "Ordered by: internal time" in scenarios["nine"]["printed"]


def test_r4_032_the_decorator(finished: Done, scenarios: dict[str, Any]) -> None:
    assert scenarios["nine"]["transparent"] == [3, "plain", "Adds.", []]
    assert scenarios["nine"]["decorated"] == [[2, 3], [1, 2], 7]
    path = finished.folder / "nine_on" / "runs" / "profiling" / "__main__.plain.stats"
    # Written once more at the end of the program, with all calls.
    assert functions_of(path)["plain"][0] == 2


def test_r4_032_should_profile(scenarios: dict[str, Any]) -> None:
    assert scenarios["nine"]["should not"] == [False, False]
    assert scenarios["nine"]["should"] == [True, False, True]
    assert scenarios["nine"]["every"] == [True, False]


def test_r4_032_arguments_have_an_effect(scenarios: dict[str, Any]) -> None:
    lean = scenarios["nine"]["lean"]
    assert lean["shapes"] == []
    assert "[[8, 8], [8, 8]]" in lean["full shapes"]
    assert lean["counters"] == []
    assert any("memory" in name for name in lean["full counters"])
    assert lean["allocated"] == 0
    assert lean["full allocated"] >= 3 * 256
    assert lean["device spans"] == ["b"], "no device, no operators"
    assert lean["sections"] == ["alone", "d"]
    assert "sort_by is 'beauty'" in scenarios["nine"]["sort"]


def test_r4_032_signatures_are_those_of_the_origin(scenarios: dict[str, Any]) -> None:
    assert scenarios["signature"] == [
        "(None, 50000, False)",
        "(True, None, True, True, None, 'trace')",
        "(True, None, 'profile', 'cumulative', 20)",
    ]


def test_r4_032_constants_are_read_when_they_are_asked_for(scenarios: dict[str, Any]) -> None:
    assert scenarios["nine"]["constants"] == [True, "runs/profiling"]
    assert scenarios["nine"]["set in the module"] == ["set.stats", "set.txt"]
    assert scenarios["nine"]["unset in the module"] is True


def test_r4_032_exceptions_pass_and_files_are_written(scenarios: dict[str, Any]) -> None:
    found = scenarios["raises"]
    assert found["said"] == "no loss today"
    assert {"train_step_0", "forward"} <= set(found["spans"])
    assert "decoding" not in found["spans"]
    assert found["second"] == "no rows today"
    assert found["running"] is False
    assert "runs/profiling/failing.stats" in found["files"]


def test_r4_032_the_programs_own_profiler_comes_first(scenarios: dict[str, Any]) -> None:
    seen, ours = scenarios["nine"]["their own"]
    assert seen is True
    assert "c" in ours
    assert "aten::mm" not in ours


# --- bad input ---


def test_a_folder_that_cannot_be_written_is_said_once(scenarios: dict[str, Any]) -> None:
    code, text, said = scenarios["unwritable"]
    assert code == 0
    assert any(line.startswith("epoch 2: loss") for line in said)
    assert text.count("nothing can be written to /proc/no/folder") == 1
    assert "set PROFILE_OUTPUT_DIR to a folder that can be." in text


def test_missing_data_is_told(scenarios: dict[str, Any]) -> None:
    assert scenarios["nowhere"] == [
        3,
        "ml_ops.train: file is no folder; name the folder that has the pictures.",
    ]


def test_s4_03_the_commands_run_where_there_are_no_data(shell: RunText, tmp_path: Path) -> None:
    few = snippet("S4-3").replace("--max-images 1000", "--max-images 24")
    assert few != snippet("S4-3")
    limit = "data/ccpd_small -o training/ocr.enable_profiling=true"
    assert limit in few
    done = shell(tmp_path, few.replace(limit, f"{limit} --max-images 24"), **THREADS).ok()
    told = "data/ccpd_small is not there: 24 made-up plates are used instead."
    assert done.err.count(told) == 2
    assert "train_step_0.json" in names(tmp_path / "runs" / "profiling")


def test_mistakes_in_the_file_are_ignored_and_told(scenarios: dict[str, Any]) -> None:
    code, said = scenarios["odd_file"]
    assert code == 0
    assert "there is no option 'max_epoch'; did you mean training/ocr.max_epochs?" in said
    assert "batch_size is 'none of it' but should be a whole number from 1 on." in said


def test_no_validation_pictures(scenarios: dict[str, Any]) -> None:
    assert scenarios["no_validation"] == [0, ["runs/profiling/train_step_0.json"]]


def test_the_examples_file_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "examples" / "ml_ops" / "configs" / "training" / "ocr" / "default.yaml"
    found = settings.gather(["training.ocr.batch_size=4"], path)
    assert (found.enable_profiling, found.profile_every_n_steps) == (True, 100)
    assert (found.learning_rate, found.batch_size, found.trainer) == (0.004, 4, "simple")
    assert capsys.readouterr().err == ""
