"""What the guides print: on outputs that do not take it, a training goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

pytestmark = pytest.mark.once

BLOCKS = """
from improved_profiler import profile_function, profiler
from profiler_config import profiler_config
profiler_config.output_dir = "out"
@profile_function
def work(): return 1
with profiler.profile_context("epoch_1"):
    with profiler.profile_context("schritt ü"):
        work()
"""
OPERATIONS = """
from foundational_ssm.utils.profiling import get_profiler, log_profiling_metrics
with get_profiler().operation("schritt ü"):
    pass
log_profiling_metrics()
"""
SECTIONS = """
from core.code_profiler import create_code_profiler
profiler = create_code_profiler(create_visualizations=False)
with profiler.profile_section("schritt ü", "training"):
    pass
profiler.profile_preprocessing(str, 1, num_samples=2)
profiler.generate_profiling_report()
profiler.cleanup()
"""
FUNCTIONS = """
from ml_ops.profile import cprofile_context, profile_function
@profile_function
def schritt_ü(): return 1
with cprofile_context(enabled=True, profile_name="block"):
    sum(range(3))
schritt_ü()
"""
CLOSE = "import sys; sys.stdout.close()\n"
NONE = "import sys; sys.stdout = None\n"
END = "\nimport os; os.write(2, b'went on')\n"

PROGRAMS = {"0": BLOCKS, "1": SECTIONS, "3": OPERATIONS, "4": FUNCTIONS}


def run(
    folder: Path, env: dict[str, str], program: str, **more: str
) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program + END, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "program.py"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=folder,
        env={**env, **more},
        timeout=120,
    )


@pytest.mark.parametrize("guide", PROGRAMS)
@pytest.mark.parametrize("first", [CLOSE, NONE])
def test_nobody_to_print_for(
    tmp_path: Path, guide_env: dict[str, str], guide: str, first: str
) -> None:
    done = run(tmp_path, guide_env, first + PROGRAMS[guide], ENABLE_PROFILING="1")
    assert done.stderr.endswith("went on"), done.stderr


@pytest.mark.parametrize("guide", PROGRAMS)
def test_letters_that_the_output_does_not_know(
    tmp_path: Path, guide_env: dict[str, str], guide: str
) -> None:
    done = run(tmp_path, guide_env, PROGRAMS[guide], ENABLE_PROFILING="1", PYTHONIOENCODING="ascii")
    assert done.stderr.endswith("went on"), done.stderr
    assert r"\xfc" in done.stdout


def test_a_long_name_fits_into_the_terminal(guide_env: dict[str, str]) -> None:
    program = (
        "from stepwatch.compat.omni import profiler\n"
        "from stepwatch.compat import _omni_tables as tables\n"
        "profiler.config.autosave = False\n"
        "with profiler.profile_context('first ' + 'x' * 200 + ' last'): pass\n"
        "print(tables.grid_of(tables.families(profiler._blocks), 'Block Name'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**guide_env, "COLUMNS": "100"},
    )
    assert {len(line) for line in done.stdout.splitlines() if line} == {100}
    assert "| first xxx" in done.stdout
    assert "xxx last |" in done.stdout
