"""Guide 2, profiling of a Lightning training: its rows and its blocks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch.compat import lightning_guide

from .conftest import ROOT, Done, RunText
from .guide2_programs import FITS, HOOKS
from .guides import snippet

pytestmark = [pytest.mark.once, pytest.mark.slow]

for _package in ("torch", "lightning", "pytorch_lightning"):
    if find_spec(_package) is None:
        pytest.skip(f"{_package} is not installed", allow_module_level=True)

EXAMPLE = ROOT / "examples" / "lightning_guide"
LOGS = Path("outputs") / "profiler_logs"
TRACE = re.compile(r"[^.]+(\.[^.]+)*_\d+\.\d{13}\.pt\.trace\.json")

Traces = list[dict[str, Any]]


# --- Programs that run once ------------------------------------------------------------------


def copy(folder: Path) -> Path:
    """Return a copy of the example: what it writes stays there."""
    ignored = shutil.ignore_patterns("__pycache__", "outputs")
    shutil.copytree(EXAMPLE, folder, ignore=ignored)
    return folder


@pytest.fixture(scope="module")
def first(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run the guide's first block: two models."""
    return shell(copy(tmp_path_factory.mktemp("first") / "it"), snippet("S2-1")).ok()


@pytest.fixture(scope="module")
def quick(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run the guide's quick check."""
    return shell(copy(tmp_path_factory.mktemp("quick") / "it"), snippet("S2-3")).ok()


@pytest.fixture(scope="module")
def full(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run the guide's comprehensive analysis."""
    return shell(copy(tmp_path_factory.mktemp("full") / "it"), snippet("S2-4")).ok()


def edit(folder: Path) -> Path:
    """Put the guide's block of YAML in the place of the one in the file."""
    path = folder / "configs" / "config.yaml"
    before, _, rest = path.read_text(encoding="utf-8").partition("profiling:\n")
    after = re.sub(r"\A(  .*\n)*", "", rest)
    path.write_text(before + snippet("S2-2") + after, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def edited(
    shell: RunText, guide_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Done:
    """Run with an edited file, where there is no Hydra; nothing about ``enabled`` is typed."""
    folder = edit(copy(tmp_path_factory.mktemp("edited") / "it"))
    absent = tmp_path_factory.mktemp("absent")
    (absent / "hydra.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    return shell(
        folder,
        "uv run src/mlops_project/train.py data.subsample_percentage=0.1 "
        "profiling.output_dir=elsewhere model=efficientnet",
        PYTHONPATH=f"{absent}:{guide_env['PYTHONPATH']}",
    ).ok()


@pytest.fixture(scope="module")
def off(shell: RunText, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Run with the file as it is."""
    folder = copy(tmp_path_factory.mktemp("off") / "it")
    return shell(folder, "uv run src/mlops_project/train.py data.subsample_percentage=0.1").ok()


@pytest.fixture(scope="module")
def fits(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run many small fits in one program: (what it found, what it said by part)."""
    done = run_text(tmp_path_factory.mktemp("fits"), FITS).ok()
    return answer(done), parts(done.out), parts(done.err), done.folder


@pytest.fixture(scope="module")
def hooks(run_text: RunText, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Call the hooks by hand, where neither Lightning nor torch can be imported."""
    done = run_text(tmp_path_factory.mktemp("hooks"), HOOKS).ok()
    return answer(done), parts(done.out), done.err


def answer(done: Done) -> Any:
    return json.loads(done.out.splitlines()[-1])


def parts(text: str) -> dict[str, str]:
    """Return what was said, by the line that begins each part."""
    pieces = re.split(r"^--- (\w+)$", text, flags=re.MULTILINE)
    return dict(zip(["", *pieces[1::2]], pieces[0::2]))


# --- What traces hold ------------------------------------------------------------------------


def traces(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.pt.trace.json"))


def events(path: Path) -> Traces:
    found: Traces = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return found


def step_numbers(path: Path) -> list[int]:
    return sorted(
        int(event["name"].partition("#")[2])
        for event in events(path)
        if event["ph"] == "X" and event["name"].startswith("ProfilerStep#")
    )


def check_trace(path: Path) -> None:
    """Check the name and what TensorBoard's plug-in needs to find in the file."""
    assert TRACE.fullmatch(path.name), path.name
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["schemaVersion"] == 1
    assert document["traceEvents"]
    for event in document["traceEvents"]:
        assert event["name"]
        assert event["ph"] in "XiMCfsbe"
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert isinstance(event["ts"], (int, float))
            assert event["cat"]
    names = {event["name"] for event in document["traceEvents"] if event.get("cat") == "cpu_op"}
    assert "aten::convolution_backward" in names


# --- What was added --------------------------------------------------------------------------


def test_r2_001_operators_where_torch_is(first: Done) -> None:
    for path in traces(first.folder / LOGS / "BaselineCNN"):
        found = [event for event in events(path) if event.get("cat") == "cpu_op"]
        names = {event["name"] for event in found}
        assert {"aten::conv2d", "aten::convolution_backward", "aten::linear"} <= names
        assert any(event.get("args", {}).get("Input Dims") for event in found)
        steps = [e for e in events(path) if e["ph"] == "X" and "ProfilerStep#" in e["name"]]
        begin = min(event["ts"] for event in steps)
        end = max(event["ts"] + event["dur"] for event in steps)
        # They lie within the recorded steps, to the microsecond that clocks may differ by.
        inside = [begin - 50 <= e["ts"] and e["ts"] + e["dur"] <= end + 50 for e in found]
        assert all(inside)


def test_r2_001_without_torch_there_are_sections(hooks: Any) -> None:
    assert hooks[0]["default"]["traces"] == [[2, 3, 4], [52, 53, 54]]
    assert "Top 10 operations by CPU time:" in hooks[0]["default"]["summary"]


def test_r2_002_settings_are_read_from_the_file(edited: Done, first: Done) -> None:
    assert "Profiling: 2 cycles of 3 active steps, every 50 steps" in edited.out
    assert not (edited.folder / "outputs").exists()
    assert len(traces(edited.folder / "elsewhere" / "EfficientNet")) == 2
    assert "Profiling: 2 cycles of 3 active steps, every 50 steps" in first.out


def test_r2_003_a_chrome_trace_is_exported(first: Done) -> None:
    found = events(first.folder / LOGS / "BaselineCNN" / "chrome_trace.json")
    assert any(event["name"] == "aten::conv2d" for event in found)
    assert any(event["ph"] == "M" and event["name"] == "thread_name" for event in found)


def test_r2_004_the_callback_does_it_all(fits: Any, hooks: Any) -> None:
    found = fits[0]
    assert found["simple"]["steps"] == 20
    assert found["simple"]["traces"] == [[2, 3, 4]]
    assert found["older"]["traces"] == [[2, 3, 4]], "pytorch_lightning"
    assert not found["simple"]["recording"]
    made, _, said = hooks
    assert made["default"]["steps"] == 60
    assert next(row["action"] for row in made["default"]["actions"]) == "run_training_epoch"
    assert said.count("Lightning is not installed here") == 1


def test_r2_004_an_exception_of_the_program_passes(fits: Any) -> None:
    found = fits[0]["raises"]
    assert found["traces"] == [[2, 3, 4]]
    assert found["chrome"] == [2, 3, 4]
    assert not found["recording"]


def test_r2_004_an_unwritable_folder_stops_nothing(fits: Any) -> None:
    found, _, said, _ = fits
    assert found["unwritable"]["steps"] == 20
    assert found["unwritable"]["traces"] == []
    assert "Not a directory" in said["unwritable"]
    assert "Traceback" not in said["unwritable"]


def test_r2_004_a_full_disk_stops_nothing(fits: Any) -> None:
    found, _, said, folder = fits
    assert found["full"]["steps"] == 20
    assert "Profiling could not write" in said["full"]
    assert "Traceback" not in said["full"]
    for path in (folder / "full").glob("*.json"):
        json.loads(path.read_text())  # what is there is whole


def test_r2_004_a_wrong_schedule_is_one_sentence(fits: Any) -> None:
    found, _, said, _ = fits
    assert found["wrong"] == {"steps": 20, "left": False}
    assert said["wrong"].count("stepwatch: ") == 1
    assert "active_steps is 0, not a whole number of at least 1" in said["wrong"]


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("schedule_every_n_steps", "often", 0),
        ("wait_steps", -1, 0),
        ("warmup_steps", None, 0),
        ("active_steps", "0", 1),
        ("repeat_cycles", "-2", 0),
    ],
)
def test_r2_004_a_wrong_number_is_told_by_its_name(
    name: str, value: Any, least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A schedule of the recorder's is nothing that the guide speaks of."""
    callback = lightning_guide.ProfilerCallback(tmp_path / "logs", **{name: value})
    callback.setup(stage="fit")
    wanted = f"{name} is {value!r}, not a whole number of at least {least}. The training goes on."
    assert wanted in capsys.readouterr().err
    callback.on_train_batch_start()
    callback.on_train_end()
    assert not (tmp_path / "logs").exists()


def test_r2_004_a_recording_that_is_on_is_used(fits: Any) -> None:
    found = fits[0]
    first, second = found["joined"]
    assert first["recording"]
    assert second["recording"]
    assert found["joined_runs"] == [False, False]
    assert found["joined_steps"] == 40
    assert first["traces"] == [[2, 3, 4]]
    assert second["traces"] == [[22, 23, 24]], "steps of that recording"
    assert second["chrome"] == [22, 23, 24]


def test_r2_004_with_stepwatch_run(shell: RunText, build_dir: Path, tmp_path: Path) -> None:
    folder = copy(tmp_path / "it")
    done = shell(
        folder,
        f"{build_dir}/src/cli/stepwatch run -o run -- uv run src/mlops_project/train.py "
        "profiling.enabled=true data.subsample_percentage=0.1",
    ).ok()
    logs = folder / LOGS / "BaselineCNN"
    assert [step_numbers(path) for path in traces(logs)] == [[2, 3, 4], [52, 53, 54]]
    assert step_numbers(logs / "chrome_trace.json") == [2, 3, 4, 52, 53, 54]
    assert not (logs / "runs").exists()
    assert any(e["name"] == "aten::conv2d" for e in events(traces(logs)[1]))
    report = json.loads((folder / "run" / "report.json").read_text())
    assert report["steps"]["count"] == 60
    assert "FIT Profiler Report" in done.out


# --- How to enable it ------------------------------------------------------------------------


def test_r2_005_on_by_the_command_line(first: Done) -> None:
    assert len(traces(first.folder / LOGS / "BaselineCNN")) == 2
    assert "BaselineCNN: accuracy" in first.out


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["profiling.enabled=true"],
        ["model=resnet", "data.subsample_percentage=0.1", "profiling.active_steps=5"],
        ["training.learning_rate=1e-2", "model.width=4", "model=efficientnet"],
        ["+training.note=text", "profiling.output_dir=other/place", "seed=null"],
    ],
)
def test_r2_005_without_hydra_the_same(overrides: list[str]) -> None:
    hydra = pytest.importorskip("hydra", reason="hydra is not installed")
    omegaconf = pytest.importorskip("omegaconf", reason="omegaconf is not installed")
    with hydra.initialize_config_dir(str(EXAMPLE / "configs"), version_base=None):
        wanted = omegaconf.OmegaConf.to_container(hydra.compose("config", overrides))
    assert settings().load(EXAMPLE / "configs", overrides) == wanted


@pytest.mark.parametrize(
    "override", ["model=alexnet", "profiling.enable=true", "training", "a.b=1"]
)
def test_r2_005_without_hydra_mistakes_are_told(override: str) -> None:
    with pytest.raises(SystemExit) as error:
        settings().load(EXAMPLE / "configs", [override])
    assert override.partition("=")[0] in str(error.value)


def settings() -> Any:
    spec = spec_from_file_location("settings", EXAMPLE / "src" / "mlops_project" / "settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_r2_006_other_settings_beside_it(first: Done) -> None:
    assert re.search(r"^BaselineCNN: accuracy \S+ after 600 steps$", first.out, re.MULTILINE)
    assert re.search(r"^ResNet: accuracy \S+ after 60 steps$", first.out, re.MULTILINE)
    assert len(traces(first.folder / LOGS / "ResNet")) == 2


def test_r2_007_off_by_default(off: Done) -> None:
    assert re.fullmatch(r"BaselineCNN: accuracy \S+ after 60 steps\n", off.out)
    assert {path.name for path in off.folder.iterdir()} == {"configs", "src"}


@pytest.mark.parametrize(
    ("outside", "profiling", "overrides", "on"),
    [
        (None, {}, [], False),
        (None, {"enabled": False}, [], False),
        (None, {"enabled": True}, [], True),
        ("true", {"enabled": False}, [], True),
        ("true", {"enabled": False}, ["profiling.enabled=false"], False),
        ("false", {"enabled": True}, ["profiling.enabled=true"], False),
        (None, {"enabled": "yes"}, ["++profiling.enabled=yes"], True),
    ],
)
def test_r2_007_who_is_heard(
    monkeypatch: pytest.MonkeyPatch,
    outside: str | None,
    profiling: dict[str, Any],
    overrides: list[str],
    on: bool,
) -> None:
    monkeypatch.delenv("ENABLE_PROFILING", raising=False)
    if outside is not None:
        monkeypatch.setenv("ENABLE_PROFILING", outside)
    made = lightning_guide.ProfilerCallback.from_config(profiling, overrides=overrides)
    assert (made is not None) is on


def test_r2_008_where_files_go(edited: Done, first: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(traces(edited.folder / "elsewhere" / "EfficientNet")) == 2
    assert sorted(path.name for path in (first.folder / LOGS).iterdir()) == [
        "BaselineCNN",
        "ResNet",
    ]
    make = lightning_guide.ProfilerCallback.from_config
    said = {"enabled": True, "output_dir": "file"}
    monkeypatch.setenv("PROFILE_OUTPUT_DIR", "outside")
    monkeypatch.delenv("ENABLE_PROFILING", raising=False)
    one = make(said, model_name="Net")
    other = make(said, model_name="Net", overrides=["profiling.output_dir=file"])
    assert one is not None
    assert other is not None
    assert one.output_dir == Path("outside/Net")
    assert other.output_dir == Path("file/Net")


def test_r2_009_how_often(first: Done, hooks: Any) -> None:
    logs = first.folder / LOGS / "BaselineCNN"
    assert [step_numbers(path) for path in traces(logs)] == [[2, 3, 4], [52, 53, 54]]
    assert hooks[0]["every"]["traces"] == [[2, 3, 4], [22, 23, 24]]


def test_r2_009_cycles_that_do_not_fit_follow_each_other(hooks: Any) -> None:
    found, _, said = hooks
    assert found["tight"]["traces"] == [[2, 3, 4], [7, 8, 9], [12, 13, 14]]
    assert said.count("cycles follow each other without a gap") == 1
    assert "longer than its period" not in said, "once, and in the words of the guide"


def test_r2_010_wait_steps(hooks: Any) -> None:
    assert hooks[0]["wait"]["traces"] == [[4, 5, 6], [54, 55, 56]]


def test_r2_011_warmup_steps(hooks: Any) -> None:
    assert hooks[0]["warmup"]["traces"] == [[5, 6, 7], [55, 56, 57]]


def test_r2_012_active_steps(first: Done, hooks: Any) -> None:
    for path in traces(first.folder / LOGS / "ResNet"):
        assert len(step_numbers(path)) == 3
    assert hooks[0]["active"]["traces"] == [[2, 3, 4, 5, 6], [52, 53, 54, 55, 56]]


def test_r2_013_repeat_cycles(hooks: Any) -> None:
    found = hooks[0]
    assert len(found["default"]["traces"]) == 2
    assert found["repeat"]["traces"] == [[2, 3, 4], [22, 23, 24], [42, 43, 44]]
    assert [steps[0] for steps in found["endless"]["traces"]] == [2, 12, 22, 32, 42, 52]


def test_r2_013_a_training_that_ends_early_leaves_what_there_is(hooks: Any) -> None:
    found = hooks[0]
    assert found["cut"]["traces"] == [[2, 3]]
    assert found["cut"]["merged"] == [2, 3]
    assert found["none"]["traces"] == []
    assert found["none"]["merged"] == []


# --- What comes out --------------------------------------------------------------------------


def table_rows(text: str) -> dict[str, list[str]]:
    """Return the cells of the table of actions by the first."""
    _, _, rest = text.partition("FIT Profiler Report")
    lines = [line for line in rest.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_r2_014_a_table_at_the_end(first: Done) -> None:
    rows = table_rows(first.out.partition("BaselineCNN: accuracy")[0])
    head = ["Mean duration (s)", "Num calls", "Total time (s)", "Percentage %", "Self %"]
    assert rows.pop("Action") == head
    whole = rows.pop("Total")
    total = float(whole[2])
    shares = 0.0
    for action, (mean, calls, time, percent, own) in rows.items():
        assert float(mean) * int(calls) == pytest.approx(float(time), rel=0.01), action
        assert float(percent) == pytest.approx(100 * float(time) / total, rel=0.01, abs=0.01)
        assert 0 <= float(own) <= float(percent) + 0.01
        shares += float(own)
    assert sum(int(cells[1]) for cells in rows.values()) == int(whole[1])
    assert shares <= 100.5
    assert float(whole[4]) == pytest.approx(shares, abs=1)


def test_r2_014_lightnings_own_profiler_still_reports(fits: Any) -> None:
    said = fits[1]["simple"]
    assert "FIT Profiler Report" in said
    actions = {row["action"]: row["calls"] for row in fits[0]["simple"]["actions"]}
    assert actions["run_training_batch"] == 20


def test_r2_014_other_hooks_are_passed_by(fits: Any) -> None:
    found = fits[0]["hooks"]
    silent = [
        "on_after_backward",
        "on_before_backward",
        "on_before_optimizer_step",
        "on_before_zero_grad",
        "on_train_batch_start",
    ]
    assert found["last"] == silent, "Lightning calls no function of ours in a step"
    assert found["heard"] == 20, "but what a class of the program's has made of one"
    assert found["after"] == []


def test_r2_015_writing_is_no_time_of_the_loader(hooks: Any) -> None:
    rows = {row["action"]: row for row in hooks[0]["default"]["actions"]}
    assert rows["[ProfilerCallback].write_trace"]["calls"] == 2
    loader = rows["train_dataloader_next"]
    assert loader["total_s"] == pytest.approx(loader["self_s"]), "nothing is inside"


def test_r2_015_beside_a_profiler_of_ours(fits: Any) -> None:
    found = fits[0]
    assert found["ours"]["traces"] == [[2, 3, 4]]
    assert found["ours_sections"]["run_training_batch"] == 20
    calls = {row["action"]: row["calls"] for row in found["ours"]["actions"]}
    assert calls["run_training_batch"] == 20


def test_r2_015_lightnings_names(first: Done) -> None:
    rows = table_rows(first.out.partition("BaselineCNN: accuracy")[0])
    calls = {name: int(cells[1]) for name, cells in rows.items() if cells[1].isdigit()}
    assert calls["run_training_epoch"] == 2
    assert calls["run_training_batch"] == 600
    assert calls["[LightningModule]BaselineCNN.optimizer_step"] == 600
    assert calls["[_TrainingEpochLoop].train_dataloader_next"] == 600
    assert calls["[Strategy]SingleDeviceStrategy.training_step"] == 600
    assert calls["[Strategy]SingleDeviceStrategy.backward"] == 600
    own = [name for name in calls if "ProfilerCallback" in name]
    assert own == ["[ProfilerCallback].write_trace"], "said, and not hidden in another's time"
    assert calls[own[0]] == 2


def test_r2_016_traces_for_tensorboard(first: Done) -> None:
    for model in ("BaselineCNN", "ResNet"):
        found = traces(first.folder / LOGS / model)
        assert len(found) == 2
        for path in found:
            check_trace(path)


def test_r2_017_one_trace_of_all_cycles(first: Done, fits: Any, hooks: Any) -> None:
    for model in ("BaselineCNN", "ResNet"):
        path = first.folder / LOGS / model / "chrome_trace.json"
        assert step_numbers(path) == [2, 3, 4, 52, 53, 54]
        ops = [e for e in events(path) if e["name"] == "aten::conv2d" and e["ph"] == "X"]
        single = [
            len([e for e in events(one) if e["name"] == "aten::conv2d"])
            for one in traces(first.folder / LOGS / model)
        ]
        assert len(ops) == sum(single) > 0
    assert hooks[0]["default"]["merged"] == [2, 3, 4, 52, 53, 54]
    assert fits[0]["stack"]["chrome"] == [2, 3, 4]


def test_r2_018_tensorboards_plugin_shows_it(first: Done) -> None:
    plugin(first.folder / LOGS / "BaselineCNN", steps=3)


def plugin(folder: Path, steps: int) -> None:
    """Have the real plug-in read the folder."""
    pytest.importorskip("torch_tb_profiler", reason="torch-tb-profiler is not installed")
    consts: Any = import_module("torch_tb_profiler.consts")
    reader: Any = import_module("torch_tb_profiler.profiler.data")
    for path in traces(folder):
        match = consts.WORKER_PATTERN.match(path.name)
        assert match is not None
        data = reader.RunProfileData.parse(match.group(1), None, str(path), str(folder))
        data.process()
        assert len(data.steps_names) == steps
        names = {row.name for row in data.op_list_groupby_name}
        assert "aten::conv2d" in names


def test_r2_020_quick_check(quick: Done) -> None:
    assert re.search(r"^BaselineCNN: accuracy \S+ after 6 steps$", quick.out, re.MULTILINE)
    logs = quick.folder / LOGS / "BaselineCNN"
    assert [step_numbers(path) for path in traces(logs)] == [[2, 3, 4]]


def test_r2_021_comprehensive_analysis(full: Done) -> None:
    logs = full.folder / LOGS / "BaselineCNN"
    wanted = [[2, 3, 4, 5, 6], [27, 28, 29, 30, 31], [52, 53, 54, 55, 56]]
    assert [step_numbers(path) for path in traces(logs)] == wanted
    assert step_numbers(logs / "chrome_trace.json") == [step for cycle in wanted for step in cycle]


# --- Key metrics -----------------------------------------------------------------------------


def slow(fits: Any, name: str) -> float:
    value = fits[0]["slow"]["metrics"][name]
    assert value is not None
    return float(value)


def test_r2_027_training_step_time(fits: Any, first: Done) -> None:
    assert slow(fits, "training_step_time") >= 0.046
    assert re.search(r"^  Training step time +[\d.]+ ms  100.0%$", first.out, re.MULTILINE)


def test_r2_028_data_loading_time(fits: Any) -> None:
    assert 0.02 <= slow(fits, "data_loading_time") < 0.2


def test_r2_029_forward_pass(fits: Any) -> None:
    assert 0.012 <= slow(fits, "forward_pass_time") < 0.2


def test_r2_030_backward_pass(fits: Any) -> None:
    assert 0.008 <= slow(fits, "backward_pass_time") < 0.2


def test_r2_031_optimizer_step(fits: Any) -> None:
    assert 0.006 <= slow(fits, "optimizer_step_time") < 0.2


# --- Tips ------------------------------------------------------------------------------------


def test_r2_032_runs_of_several_sizes_are_compared(fits: Any) -> None:
    found, _, _, folder = fits
    paths = [folder / path for path in found["sizes"].values()]
    change = stepwatch.compare(*paths)
    assert change.baseline["batch_size"] == 1
    assert [run["batch_size"]["after"] for run in change.runs] == [4, 16]
    assert [run["basis"] for run in change.runs] == ["samples", "samples"]


def test_r2_033_models_are_compared(first: Done, edited: Done, build_dir: Path) -> None:
    runs = sorted((first.folder / LOGS).glob("*/runs/*"))
    runs += sorted((edited.folder / "elsewhere").glob("*/runs/*"))
    done = subprocess.run(
        [build_dir / "src" / "cli" / "stepwatch", "compare", "--json", *runs],
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    names = [document["baseline"]["name"], *(run["name"] for run in document["runs"])]
    assert names == ["BaselineCNN", "ResNet", "EfficientNet"]
    for run in document["runs"]:
        assert run["verdict"] in ("faster", "slower", "same")
        assert any(row["phase"] == "forward" for row in run["phases"])


def test_r2_034_what_takes_most_comes_first(first: Done) -> None:
    text = (first.folder / LOGS / "BaselineCNN" / "profiler_summary.txt").read_text()
    totals = [milliseconds(cells[3]) for cells in summary_rows(text, "CPU")]
    assert len(totals) == 10
    assert totals == sorted(totals, reverse=True)
    rows = table_rows(first.out.partition("BaselineCNN: accuracy")[0])
    times = [float(cells[2]) for name, cells in rows.items() if name not in ("Action", "Total")]
    assert times == sorted(times, reverse=True)


def test_r2_035_leaks_and_spikes(fits: Any) -> None:
    found = fits[0]
    (leak,) = [finding for finding in found["leak"] if finding["kind"] == "memory_growth"]
    assert leak["evidence"]["mb_per_step"] == pytest.approx(1.05, rel=0.3)
    assert "RULE-31" in leak["rules"]
    assert "Memory grows by" in fits[1]["leak"]
    (spike,) = [note for note in found["spike"] if note.startswith("Memory has a spike")]
    assert "at step 60:" in spike
    assert spike in fits[1]["spike"]


def test_r2_036_a_gpu_that_is_little_used_is_told(
    run_text: RunText, build_dir: Path, tmp_path: Path
) -> None:
    library = build_dir / "tests" / "nvml" / "fake_nvml.so"
    if not library.exists():
        pytest.skip("this build has no stand-in for NVIDIA's library")
    fake = tmp_path / "fake.txt"
    fake.write_text("gpus 1\ngpu0.gpu 20\ngpu0.memory 1000\ngpu0.processes self:777\n")
    program = HOOKS.partition("class Rank")[0].replace(
        "            pass\n", "            __import__('time').sleep(0.01)\n"
    )
    done = run_text(
        tmp_path / "it",
        program + "train('gpu', 200, gpu='on', monitor_interval_s=0.05)",
        FAKE_NVML=str(fake),
        STEPWATCH_NVML=str(library),
    ).ok()
    assert re.search(r"^- .*GPU 0.*(20|computes).*$", done.out, re.MULTILINE), done.out


# --- Troubleshooting -------------------------------------------------------------------------


def test_r2_037_the_error_of_torch_stops_nothing(fits: Any) -> None:
    found, _, said, _ = fits
    assert found["stack"]["steps"] == 20
    assert found["stack"]["traces"] == [[2, 3, 4]]
    assert said["stack"].count("stack.empty()") == 1
    assert "Traceback" not in said["stack"]


def test_r2_038_no_trace_is_saved_twice(first: Done, full: Done) -> None:
    for done in (first, full):
        assert "already saved" not in done.out + done.err
        assert "Warning" not in done.err


def test_r2_039_whether_there_is_cuda(first: Done, build_dir: Path) -> None:
    import torch

    there = torch.cuda.is_available()
    line = next(line for line in first.out.splitlines() if line.startswith("CUDA available: "))
    assert line.startswith(f"CUDA available: {there} (")
    if torch.version.cuda is None:
        assert line.endswith("is built without CUDA)")
    done = subprocess.run(
        [build_dir / "src" / "cli" / "stepwatch", "doctor", "--json"],
        capture_output=True,
        text=True,
    )
    checks = [
        check for check in json.loads(done.stdout)["checks"] if check["check"].startswith("gpu")
    ]
    assert checks
    assert there or "No GPU can be watched: " in checks[0]["text"]


def test_r2_040_the_cost_is_measured_and_printed(first: Done) -> None:
    (run,) = (first.folder / LOGS / "BaselineCNN" / "runs").iterdir()
    percent = stepwatch.open(run).report().to_dict()["overhead"]["percent"]
    assert percent > 0
    form = (
        r"^Profiling overhead: ([\d.e+-]+)% of the time \(recording ([\d.e-]+) s, "
        r"torch's profiler ([\d.e-]+) s, writing traces ([\d.e-]+) s\)$"
    )
    found = re.search(form, first.out, re.MULTILINE)
    assert found is not None
    share, *seconds = (float(text) for text in found.groups())
    out = first.out.partition("BaselineCNN: accuracy")[0]
    total = float(table_rows(out)["Total"][2])
    assert share == pytest.approx(100 * sum(seconds) / total, rel=0.1, abs=0.5)
    assert all(second > 0 for second in seconds)
    # What torch's profiler took is a part of the recording's own figure, and counts once.
    overhead = stepwatch.open(run).report().to_dict()["overhead"]["seconds"]
    opened = sum(
        row["number"]
        for row in stepwatch.open(run).settings
        if (row["what"], row["name"]) == ("operators", "overhead_seconds")
    )
    assert opened > 0
    assert seconds[0] == pytest.approx(overhead - opened, rel=0.01)


def test_r2_040_a_step_has_no_more_calls_than_without(fits: Any) -> None:
    """What is ours in a step is in C; Lightning's own profiler, which does nothing, is not."""
    found = fits[0]["calls"]
    assert 0 < found["idle"] < found["without"]
    assert found["active"] < found["without"]


def test_r2_041_nothing_is_done_when_off(off: Done, fits: Any) -> None:
    assert "Profil" not in off.out
    found = fits[0]["switched"]
    assert found["steps"] == 20
    assert not found["left"]


def test_r2_042_key_bottlenecks(first: Done) -> None:
    text = first.out.partition("Key bottlenecks:\n")[2]
    lines = text.partition("\n\n")[0].splitlines()
    assert len(lines) == 5
    form = r"\d\. [^:]+: [\d.e-]+%( of total time| for \w+) \(self [\d.e-]+%\)"
    for line in lines:
        assert re.fullmatch(form, line), line
    assert lines[0].startswith("1. run_training_epoch: ")
    shares = [float(re.findall(r": ([\d.e-]+)%", line)[0]) for line in lines]
    assert shares == sorted(shares, reverse=True)
    assert "write_trace" in first.out, "it is in the table"
    assert not any("write_trace" in line for line in lines)


def summary_rows(text: str, device: str) -> list[list[str]]:
    rest = text.partition(f"Top 10 operations by {device} time:")[2].partition("\nTop 10")[0]
    lines = [line for line in rest.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def milliseconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def test_r2_043_a_summary_of_operations(first: Done) -> None:
    text = (first.folder / LOGS / "BaselineCNN" / "profiler_summary.txt").read_text()
    assert text.startswith("Profiled steps: 6\n")
    rows = {cells[0]: cells for cells in summary_rows(text, "CPU")}
    assert int(rows["Optimizer.step#Adam.step"][5]) == 6
    gpu = text.partition("Top 10 operations by CUDA time:")[2]
    assert summary_rows(text, "CUDA") or "none was recorded. CUDA available: False" in gpu


def test_r2_005_another_word_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    said = {"enabled": "perhaps"}
    callback = lightning_guide.ProfilerCallback
    assert callback.from_config(said, overrides=["profiling.enabled=perhaps"]) is None
    assert "profiling.enabled=perhaps is neither true nor false" in capsys.readouterr().err


def test_r2_044_commands_can_be_copied(run_text: RunText, tmp_path: Path) -> None:
    program = HOOKS.partition("class Rank")[0] + 'train("my logs", 6, enabled=True)'
    lines = run_text(tmp_path, program).ok().out.splitlines()
    assert "View: tensorboard --logdir='my logs'" in lines
    assert any(line.startswith("Run: stepwatch report 'my logs/runs/") for line in lines)


def test_r2_044_lines_of_the_beginning_and_the_end(first: Done, hooks: Any) -> None:
    logs = LOGS / "BaselineCNN"
    lines = first.out.partition("BaselineCNN: accuracy")[0].splitlines()
    assert lines[0] == (
        f"Profiling: 2 cycles of 3 active steps, every 50 steps (wait 1, warm-up 1), to {logs}"
    )
    end = lines[lines.index("Profiling done: 2 cycles, 6 steps recorded.") :]
    names = [path.name for path in traces(first.folder / logs)]
    assert end[1:3] == [f"Trace: {logs}/{name}" for name in names]
    assert end[3] == f"Chrome trace: {logs}/chrome_trace.json (load it in chrome://tracing)"
    assert end[4] == f"Summary: {logs}/profiler_summary.txt"
    assert end[5].startswith(f"Run: stepwatch report {logs}/runs/")
    assert end[6] == f"View: tensorboard --logdir={logs}"
    assert "Open files" not in first.out, "there are few"
    # Another rank writes beside the first one, and says nothing.
    assert hooks[1]["rank"].strip() == ""
    assert hooks[0]["rank"]["chrome"].endswith("chrome_trace.rank1.json")


MANY_FILES = """
import os, resource
from stepwatch.compat.lightning_guide import ProfilerCallback
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
callback = ProfilerCallback("logs", schedule_every_n_steps=5, active_steps=1, repeat_cycles=1)
callback.on_train_start()
for step in range(4):
    callback.on_train_batch_start(None, None, None, step)
    callback.on_train_batch_end(None, None, None, None, step)
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(235 - len(os.listdir("/proc/self/fd")))]
callback.on_train_end()
"""


def test_r2_044_advice_where_files_run_out(run_text: RunText, tmp_path: Path) -> None:
    done = run_text(tmp_path, MANY_FILES).ok()
    (line,) = [line for line in done.out.splitlines() if line.startswith("Open files")]
    assert re.fullmatch(
        r'Open files: 2\d\d of 256; before "Too many open files" appears, use fewer cycles or '
        r"loader workers, or raise the limit \(ulimit -n\)\.",
        line,
    )


# --- Blocks ----------------------------------------------------------------------------------


def test_s2_01_command_line(first: Done) -> None:
    for model in ("BaselineCNN", "ResNet"):
        logs = first.folder / LOGS / model
        found = sorted(path.name for path in logs.iterdir() if path.is_file())
        assert "chrome_trace.json" in found
        assert "profiler_summary.txt" in found
        assert sum(bool(TRACE.fullmatch(name)) for name in found) == 2
        assert len(found) == 4


def test_s2_02_configuration() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    theirs = yaml.safe_load(snippet("S2-2"))["profiling"]
    ours = yaml.safe_load((EXAMPLE / "configs" / "config.yaml").read_text())["profiling"]
    assert ours == {**theirs, "enabled": False}
    made = lightning_guide.ProfilerCallback.from_config(theirs, model_name="ResNet")
    assert made is not None
    for key, value in theirs.items():
        if key not in ("enabled", "output_dir"):
            assert getattr(made, key) == value
    assert made.output_dir == LOGS / "ResNet"


def test_s2_03_quick_performance_check(quick: Done) -> None:
    logs = quick.folder / LOGS / "BaselineCNN"
    for path in traces(logs):
        check_trace(path)
    assert step_numbers(logs / "chrome_trace.json") == [2, 3, 4]


def test_s2_04_comprehensive_analysis(full: Done) -> None:
    found = traces(full.folder / LOGS / "BaselineCNN")
    assert [len(step_numbers(path)) for path in found] == [5, 5, 5]
    for path in found:
        check_trace(path)


def test_s2_05_tensorboard(full: Done) -> None:
    folder = snippet("S2-5").split("--logdir=")[1].strip()
    plugin(full.folder / folder, steps=5)


def test_s2_06_cuda_check(run_text: RunText, tmp_path: Path) -> None:
    import torch

    done = run_text(tmp_path, snippet("S2-6")).ok()
    assert done.out == f"CUDA available: {torch.cuda.is_available()}\n"
