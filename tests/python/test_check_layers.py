"""The checks of the tree find what they are there to find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

TOOLS = Path(__file__).parents[2] / "tools"


def run_check(tool: str, root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOLS / tool), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/base/a.c", '"base/os.h"'),
        ("src/base/a.c", '"os.h"'),
        ("src/base/a.c", "<stepwatch/error.h>"),
        ("src/base/a.c", "<sys/mman.h>"),
        ("src/store/a.c", '"base/os.h"'),
        ("src/record/a.c", '"store/format.h" // why'),
        ("src/record/a.c", "<stepwatch/schedule.h>"),
        ("src/read/a.c", '"store/format.h"'),
        ("src/export/a.c", "<stepwatch/analyze.h>"),
        ("src/cli/a.c", "<stepwatch/stepwatch.h>"),
        ("src/cli/a.c", '"cli/command.h"'),
        ("python/ext/a.c", '"section.h"'),
        ("examples/a.c", "<stepwatch/stepwatch.h>"),
        ("include/stepwatch/record.h", "<stepwatch/error.h>"),
        ("include/stepwatch/stepwatch.h", "<stepwatch/export.h>"),
    ],
)
def test_allowed(tmp_path: Path, path: str, include: str) -> None:
    write(tmp_path, path, f"#include {include}\n")
    result = run_check("check_layers.py", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/base/a.c", '"store/format.h"'),
        ("src/base/a.h", "<stepwatch/record.h>"),
        ("src/store/a.c", '"record/thread.h"'),
        ("src/record/a.c", '"read/cursor.h"'),
        ("src/record/a.c", "<stepwatch/trace.h>"),
        ("src/read/a.c", '"record/thread.h"'),
        ("src/read/deep/a.c", "<stepwatch/record.h>"),
        ("src/analyze/a.c", '"record/thread.h"'),
        ("src/analyze/a.c", "<stepwatch/export.h>"),
        ("src/export/a.c", '"cli/command.h"'),
        ("src/export/a.c", "<stepwatch/stepwatch.h>"),
        ("src/base/a.c", "<base/os.h>"),
        ("src/base/a.c", '"stepwatch/error.h"'),
        ("src/base/a.c", '"../store/format.h"'),
        ("src/base/a.c", "<stepwatch/unheard_of.h>"),
        ("src/base/a.c", "HEADER"),
        ("src/nowhere/a.c", "<stdio.h>"),
        ("src/cli/a.c", '"base/os.h"'),
        ("python/ext/a.c", '"record/thread.h"'),
        ("examples/a.c", '"base/os.h"'),
        ("include/stepwatch/error.h", "<stepwatch/record.h>"),
        ("include/stepwatch/record.h", '"record/thread.h"'),
        ("include/stepwatch/record.h", "<stepwatch/stepwatch.h>"),
        ("include/stepwatch/unheard_of.h", "<stdio.h>"),
    ],
)
def test_forbidden(tmp_path: Path, path: str, include: str) -> None:
    write(tmp_path, path, f"/* why */\n# include {include}\n")
    result = run_check("check_layers.py", tmp_path)
    assert result.returncode == 1
    where = "src/nowhere:0" if "nowhere" in path else f"{path}:2"
    assert result.stderr.startswith(f"{where}: ")
    assert len(result.stderr.splitlines()) == 1


def test_listed_source(tmp_path: Path) -> None:
    write(tmp_path, "src/base/a.c", "")
    write(tmp_path, "tests/unit/test_a_b.c", "")
    write(tmp_path, "src/base/meson.build", "core_sources += files(\n  'a.c',\n)\n")
    write(tmp_path, "tests/unit/meson.build", "unit_tests = [\n  'a_b',\n]\n")
    assert run_check("check_sources.py", tmp_path).returncode == 0


def test_forgotten_source(tmp_path: Path) -> None:
    write(tmp_path, "src/base/a.c", "")
    write(tmp_path, "src/base/meson.build", "core_sources += files(\n  # 'a.c',\n)\n")
    write(tmp_path, "tests/unit/test_a_b.c", "")
    result = run_check("check_sources.py", tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "src/base/a.c: not listed in src/base/meson.build",
        "tests/unit/test_a_b.c: not listed in tests/unit/meson.build",
    ]
