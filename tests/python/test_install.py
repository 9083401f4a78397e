"""``pip install .`` gives library, headers, pkg-config files, command and extension."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
#include <stdio.h>
#include <stepwatch/stepwatch.h>

int main(void)
{
    SW_SECTION("forward") { puts(SW_VERSION_STRING); }
    return 0;
}
"""

# A C library in the process of an interpreter must reach the interpreter's recorder.
SHARED = """
#include <stepwatch/stepwatch.h>

int is_recording(void);

int is_recording(void)
{
    return sw_is_recording();
}
"""

pytestmark = [pytest.mark.slow, pytest.mark.once]


def run(*command: str | Path, **environment: str) -> str:
    """Run a command without the paths of the build folder and return its output."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    env.update(environment)
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, env=env
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh virtual environment with the package in it, made without a network."""
    folder = tmp_path_factory.mktemp("install")
    build = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    run(*build, "--no-index", "--wheel-dir", folder, f"-Cbuild-dir={folder / 'build'}", ROOT)
    (wheel,) = folder.glob("stepwatch-*.whl")
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python")]
    run(*pip, "install", "--no-index", "--no-deps", wheel)
    return venv


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


def test_import(prefix: Path) -> None:
    code = "import stepwatch; print(stepwatch.__version__)"
    version = run(prefix / "bin" / "python", "-c", code).strip()
    metadata = "import importlib.metadata as m; print(m.version('stepwatch'))"
    assert run(prefix / "bin" / "python", "-c", metadata).strip() == version


def test_command_stands_alone(prefix: Path, tmp_path: Path) -> None:
    copy = shutil.copy(prefix / "bin" / "stepwatch", tmp_path / "stepwatch")
    assert run(copy, "--version").startswith("stepwatch ")


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not here")
@pytest.mark.parametrize("folder", ["share/pkgconfig", None])
def test_pkg_config(prefix: Path, tmp_path: Path, folder: str | None) -> None:
    python = prefix / "bin" / "python"
    where = str(prefix / folder) if folder else run(python, "-m", "stepwatch", "--pkgconfigdir")
    flags = run("pkg-config", "--cflags", "--libs", "stepwatch", PKG_CONFIG_PATH=where.strip())
    compile_and_run(tmp_path, shlex.split(flags))


def test_flags_from_python(prefix: Path, tmp_path: Path) -> None:
    flags = run(prefix / "bin" / "python", "-m", "stepwatch", "--cflags", "--libs")
    compile_and_run(tmp_path, shlex.split(flags))


def compile_and_run(folder: Path, flags: list[str]) -> None:
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM, encoding="utf-8")
    run(*compiler(), source, "-o", program, *flags)
    assert run(program).strip()


def test_one_recorder_per_process(prefix: Path, tmp_path: Path) -> None:
    python = prefix / "bin" / "python"
    flags = shlex.split(run(python, "-m", "stepwatch", "--cflags", "--libs"))
    source, library = tmp_path / "shared.c", tmp_path / "shared.so"
    source.write_text(SHARED, encoding="utf-8")
    run(*compiler(), "-shared", "-fPIC", source, "-o", library, *flags)
    code = f"""
import ctypes, stepwatch
library = ctypes.CDLL({str(library)!r})
before = library.is_recording()
stepwatch.start(out={str(tmp_path / "run")!r})
print(before, library.is_recording())
stepwatch.stop()
"""
    assert run(python, "-c", code).split() == ["0", "1"]


def test_command_by_python(prefix: Path, tmp_path: Path) -> None:
    python = prefix / "bin" / "python"
    assert run(python, "-m", "stepwatch", "--version") == run(
        prefix / "bin" / "stepwatch", "--version"
    )
    script = tmp_path / "train.py"
    script.write_text("import sys\nprint(sys.prefix)\n", encoding="utf-8")
    words = ("-m", "stepwatch", "run", "--no-report", "-o", tmp_path / "run", script)
    assert run(python, *words, PATH="/usr/bin:/bin").strip() == str(prefix)


def test_run_uses_the_python_beside_the_command(prefix: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys\nprint(sys.prefix)\n", encoding="utf-8")
    link = tmp_path / "stepwatch"
    link.symlink_to(prefix / "bin" / "stepwatch")
    for number, command in enumerate((prefix / "bin" / "stepwatch", link)):
        folder = tmp_path / f"run{number}"
        assert run(command, "run", "-o", folder, script).strip() == str(prefix)
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        assert report["run"]["python"] == ".".join(map(str, sys.version_info[:3]))


def test_everything_is_there(prefix: Path) -> None:
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    paths = {"base": str(prefix), "platbase": str(prefix)}
    package = Path(sysconfig.get_path("platlib", scheme, vars=paths)) / "stepwatch"
    headers = {path.name for path in (ROOT / "include" / "stepwatch").glob("*.h")}
    assert {path.name for path in (package / "include" / "stepwatch").iterdir()} == headers
    assert (package / "py.typed").exists()
    pages = {path.name for path in (ROOT / "docs" / "man").glob("*.1")}
    man = prefix / "share" / "man" / "man1"
    assert {path.name for path in man.glob("*.1")} == pages
    assert (prefix / "share" / "bash-completion" / "completions" / "stepwatch").exists()
