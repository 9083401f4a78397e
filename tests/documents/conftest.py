"""How the blocks of the guides are run: in a child, with the guides' import paths in reach."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Callable, NamedTuple

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepwatch.compat.code_profiler import CodeProfiler

ROOT = Path(__file__).parents[2]

# Runs a file as a program; ``await`` may stand at its top level, as it does in a notebook.
START = """
import ast, asyncio, inspect, sys
path = sys.argv[1]
with open(path, encoding="utf-8") as file:
    text = file.read()
sys.argv = sys.argv[1:]
code = compile(text, path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
names = {"__name__": "__main__", "__file__": path, "__builtins__": __builtins__}
import types
main = types.ModuleType("__main__")
main.__dict__.update(names)
sys.modules["__main__"] = main
result = eval(code, main.__dict__)
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


class Done(NamedTuple):
    """What a program left: exit code, output, and the folder it ran in."""

    code: int
    out: str
    err: str
    folder: Path

    def ok(self) -> Done:
        """Return itself; fail with the program's own words when it failed."""
        assert self.code == 0, self.err + self.out
        return self


RunText = Callable[..., Done]


@pytest.fixture(scope="session")
def compat_folder() -> str:
    """Return the folder with the guides' import paths, as the command prints it."""
    done = subprocess.run(
        [sys.executable, "-m", "stepwatch.compat"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="session")
def guide_env(compat_folder: str) -> dict[str, str]:
    """Return an environment in which the guides' imports work and no switch is set."""
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in ("ENABLE_PROFILING", "PROFILE_OUTPUT_DIR", "NO_COLOR")
        and not key.startswith(("STEPWATCH_", "WANDB_"))
    }
    paths = [compat_folder, os.environ.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    env["PYTHONWARNINGS"] = "ignore"
    env["WANDB_MODE"] = "offline"
    env["WANDB_SILENT"] = "true"
    env["MPLBACKEND"] = "Agg"
    return env


@pytest.fixture(scope="session")
def run_text(guide_env: dict[str, str]) -> RunText:
    """Return a function that runs a program's text in a folder of its own.

    ``before`` stands in front of the text (placeholders), ``after`` behind it (what a test asks);
    further keywords are environment variables.
    """

    def run(folder: Path, text: str, *, before: str = "", after: str = "", **env: str) -> Done:
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "program.py"
        program.write_text(
            textwrap.dedent(before) + "\n" + text + "\n" + textwrap.dedent(after), encoding="utf-8"
        )
        start = folder / "start.py"
        start.write_text(START, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(start), str(program)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**guide_env, **env},
            timeout=300,
        )
        return Done(done.returncode, done.stdout, done.stderr, folder)

    return run


@pytest.fixture(scope="session")
def shell(guide_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> RunText:
    """Return a function that runs a block of command lines; ``uv run X`` means X here."""
    tools = tmp_path_factory.mktemp("tools")
    uv = tools / "uv"
    # uv gives a script to the project's Python, and anything else to the shell's PATH.
    uv.write_text(
        f"""#!/bin/sh
test "$1" = run && shift
case "$1" in
*.py) exec "{sys.executable}" "$@" ;;
esac
exec "$@"
""",
        encoding="utf-8",
    )
    uv.chmod(0o755)
    python = tools / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)

    def run(folder: Path, text: str, *, stdin: str = "", **env: str) -> Done:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["bash", "-e", "-c", text],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=folder,
            input=stdin,
            env={**guide_env, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", **env},
            timeout=300,
        )
        return Done(done.returncode, done.stdout, done.stderr, folder)

    return run


@pytest.fixture
def profiler(tmp_path: Path) -> Iterator[CodeProfiler]:
    """Return a code profiler (guide 1) whose files go where nobody else looks."""
    from stepwatch.compat.code_profiler import create_code_profiler

    with create_code_profiler(profile_dir=str(tmp_path / "profiles")) as made:
        yield made
