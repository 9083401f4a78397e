"""A relative folder belongs to where it was said: files stay together, wherever programs go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..conftest import needs
from .conftest import RunText

BLOCKS = """
import os
from improved_profiler import profiler
from profiler_config import profiler_config

{assign}
os.mkdir("elsewhere")
for epoch in range(2):
    with profiler.profile_context(f"epoch_{{epoch}}"):
        with profiler.profile_context("train_step"):
            os.chdir("{start}/elsewhere" if {early} or epoch else "{start}")
os.chdir("/")
"""


def files(folder: Path) -> set[str]:
    """Return the files below a folder, but for the program's own."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return found - {"program.py", "start.py"}


@pytest.mark.parametrize(
    ("assign", "early", "env", "expected"),
    [
        ("profiler_config.output_dir = 'out'", True, {}, "out"),
        # What nobody assigned belongs to where the first file is written.
        ("", False, {}, "profiling_output"),
        ("", False, {"PROFILE_OUTPUT_DIR": "said"}, "said"),
        (
            "profiler_config.overall_profiling_file = 'all/overall.json'",
            False,
            {},
            "profiling_output",
        ),
    ],
    ids=["assigned", "default", "environment", "file"],
)
def test_r0_008_a_program_that_goes_elsewhere(
    assign: str, early: bool, env: dict[str, str], expected: str, run_text: RunText, tmp_path: Path
) -> None:
    text = BLOCKS.format(assign=assign, early=early, start=tmp_path)
    done = run_text(tmp_path, text, **env).ok()
    found = files(tmp_path)
    blocks = {f"{expected}/epoch_{epoch}_block_profile.json" for epoch in range(2)}
    assert blocks <= found, done.out
    overall = "overall_profile_step_final.json"
    assert ("all/overall.json" if "all/" in assign else f"{expected}/{overall}") in found
    assert {name.partition("/")[0] for name in found} <= {expected, "all"}
    # Where the program still is where it began, paths are printed as they were said.
    shown = f"{tmp_path}/{expected}" if early else expected
    assert f"Saved block profile to {shown}/epoch_0_block_profile.json\n" in done.out


def test_r1_044_a_program_that_goes_elsewhere(run_text: RunText, tmp_path: Path) -> None:
    text = f"""
import os
from core.code_profiler import create_code_profiler

profiler = create_code_profiler(profile_dir="out")
for number in range(2):
    with profiler.profile_section("work"):
        pass
    profiler.generate_profiling_report()
    os.makedirs("{tmp_path}/elsewhere", exist_ok=True)
    os.chdir("{tmp_path}/elsewhere")
with profiler.profile_section("more"):
    pass
profiler.cleanup()
print(profiler.config.in_force()["profile_dir"])
"""
    done = run_text(tmp_path, text).ok()
    assert done.out.splitlines()[-1] == str(tmp_path / "out")
    assert {name.partition("/")[0] for name in files(tmp_path)} == {"out"}
    assert '"more"' in (tmp_path / "out/profiling_report.json").read_text()


def test_r1_039_the_optimizer_keeps_its_files_together(run_text: RunText, tmp_path: Path) -> None:
    needs("torch")
    text = """
import os
import torch
from core.optimized_training_optimizer import create_optimized_training_optimizer

data = [(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))] * 2
optimizer = create_optimized_training_optimizer(
    torch.nn.Linear(3, 3), data, max_epochs=2, save_interval=1, profile_level="basic")
os.mkdir("elsewhere")
os.chdir("elsewhere")
optimizer.train_sync()
optimizer.create_training_visualizations()
optimizer.cleanup()
"""
    run_text(tmp_path, text).ok()
    found = files(tmp_path)
    assert {name.partition("/")[0] for name in found} == {"checkpoints"}
    assert "checkpoints/final_training_summary.json" in found
    assert "checkpoints/profiles/profiling_report.json" in found


def test_r2_008_the_callback_keeps_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pickle

    from stepwatch.compat.lightning_guide import ProfilerCallback

    monkeypatch.delenv("PROFILE_OUTPUT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    callback: Any = ProfilerCallback("logs")
    assert callback.output_dir == Path("logs")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert callback.output_dir == tmp_path / "logs"
    assert pickle.loads(pickle.dumps(callback)).output_dir == tmp_path / "logs"


@pytest.mark.parametrize("where", ["", "output_dir='runs/profiling', "], ids=["default", "said"])
def test_r4_013_a_program_that_goes_elsewhere(
    where: str, run_text: RunText, tmp_path: Path
) -> None:
    text = f"""
import os
from ml_ops.profile import cprofile_context, torch_profiler

os.mkdir("elsewhere")
with torch_profiler({where}trace_name="first") as trace:
    os.chdir("elsewhere")
print(trace.path)
functions = cprofile_context({where}profile_name="second", print_stats=0)
if "{where}":
    os.chdir("..")
    functions = cprofile_context({where}profile_name="second", print_stats=0)
with functions:
    os.chdir("/")
os.chdir("{tmp_path}")
"""
    done = run_text(tmp_path, text, ENABLE_PROFILING="true").ok()
    assert done.out.splitlines() == [f"{tmp_path}/runs/profiling/first.json"]
    assert files(tmp_path) == {
        f"runs/profiling/{name}" for name in ("first.json", "second.stats", "second.txt")
    }


def test_r4_013_a_command_begins_where_it_is_called(run_text: RunText, tmp_path: Path) -> None:
    text = """
import os
from ml_ops.data import main

for name in ("a", "b"):
    os.mkdir(name)
    os.mkdir(f"{name}/raw")
    with open(f"{name}/raw/x.ppm", "wb") as file:
        file.write(b"P6 4 4 255\\n" + bytes(48))
    os.chdir(name)
    assert main(["raw", "made"]) == 0
    os.chdir("..")
"""
    run_text(tmp_path, text, ENABLE_PROFILING="true").ok()
    stats = {name for name in files(tmp_path) if name.endswith(".stats")}
    assert stats == {f"{name}/runs/profiling/export_yolo_format.stats" for name in "ab"}
