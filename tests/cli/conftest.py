"""The command under test, and a small program for it to run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

ROOT = Path(__file__).parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def stepwatch_cli(build_dir: Path) -> Path:
    """Return the command under test; TEST_COMMAND names another one."""
    path = os.environ.get("TEST_COMMAND")
    return Path(path).resolve() if path else build_dir / "src" / "cli" / "stepwatch"


def sanitizers(build_dir: Path) -> list[str]:
    """Return the flags that a program needs to run with a library built with sanitizers."""
    options = json.loads((build_dir / "meson-info" / "intro-buildoptions.json").read_text())
    for option in options:
        if option["name"] == "b_sanitize" and option["value"] not in ("none", [], ""):
            value = option["value"]
            return ["-fsanitize=" + (value if isinstance(value, str) else ",".join(value))]
    return []


@pytest.fixture(scope="session")
def program(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile program.c against the library of the build, as a user would."""
    path = tmp_path_factory.mktemp("program") / "program"
    library = build_dir / "src"
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", f"-I{ROOT}/include"]
    command += [str(Path(__file__).parent / "program.c"), "-o", str(path)]
    command += [f"-L{library}", f"-Wl,-rpath,{library}", "-lstepwatch", *sanitizers(build_dir)]
    subprocess.run(command, check=True)
    return path


@pytest.fixture
def env() -> dict[str, str]:
    """Return an environment in which nothing but the test decides."""
    keep = ("PATH", "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
    chosen = {key: os.environ[key] for key in keep if key in os.environ}
    return {**chosen, "LC_ALL": "C.UTF-8"}


@pytest.fixture
def python_env(build_dir: Path, env: dict[str, str]) -> dict[str, str]:
    """Let scripts run in the Python of the tests; skip where the build has no package for it."""
    package = build_dir / "python" / "stepwatch"
    if not list(package.glob(f"_core.{sys.implementation.cache_tag}-*.so")):
        pytest.skip("this build has no extension for this Python")
    env["STEPWATCH_PYTHON"] = sys.executable
    return env


@pytest.fixture
def stepwatch(stepwatch_cli: Path, tmp_path: Path, env: dict[str, str]) -> Run:
    """Return a function that runs the command in an empty folder."""

    def run(
        *arguments: str | Path, extra: dict[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        settings: dict[str, object] = {
            "capture_output": True,
            "text": True,
            "check": False,
            "cwd": tmp_path,
            "timeout": 120,
            **options,
        }
        command = [str(stepwatch_cli), *(str(argument) for argument in arguments)]
        result: subprocess.CompletedProcess[str] = subprocess.run(
            command,
            env={**env, **(extra or {})},
            **settings,  # type: ignore[call-overload]
        )
        return result

    return run


@pytest.fixture
def recorded(stepwatch: Run, program: Path, tmp_path: Path) -> Path:
    """Return the directory of a run with 40 steps."""
    result = stepwatch("run", "-o", "recorded", "--", program, "steps", "40")
    assert result.returncode == 0, result.stderr
    return tmp_path / "recorded"
