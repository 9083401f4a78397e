"""How the recorder gets into a Python, and that nothing of the way is left to be seen."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.usefixtures("python_env")

# What a program could find changed.
STATE = """
import sys
modules = sorted(sys.modules)
import gc, json, os, signal, threading
state = {
    "path": sys.path, "meta_path": [type(f).__name__ for f in sys.meta_path],
    "path_hooks": len(sys.path_hooks), "cache": sorted(sys.path_importer_cache),
    "trace": repr(sys.gettrace()), "profile": repr(sys.getprofile()),
    "threads": threading.active_count(), "gc": [gc.isenabled(), gc.get_threshold()],
    "signals": [repr(signal.getsignal(n)) for n in (2, 3, 10, 13, 15, 17)],
    "recursion": sys.getrecursionlimit(), "switch": sys.getswitchinterval(),
    "warnings": [sys.warnoptions, list(map(repr, __import__("warnings").filters))],
    "hooks": [repr(sys.excepthook), repr(sys.displayhook), repr(sys.unraisablehook)],
    "builtins": sorted(vars(__builtins__)), "main": sorted(globals()),
    "files": [sys.stdin.name, sys.stdout.encoding, sys.stderr.errors],
    "open": sorted(os.listdir("/proc/self/fd"))[:3],
}
print(json.dumps({"state": state, "modules": modules, "environ": dict(os.environ)}))
"""


def state_of(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    state: dict[str, Any] = json.loads(result.stdout)
    return state


@pytest.fixture
def plain(tmp_path: Path, env: dict[str, str]) -> Run:
    """Return a function that runs Python as it is."""

    def run(
        *arguments: str, extra: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            env={**env, **(extra or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("flags", [(), ("-W", "error", "-X", "dev"), ("-B", "-O")])
def test_nothing_else_is_different(
    stepwatch: Run, plain: Run, tmp_path: Path, build_dir: Path, flags: tuple[str, ...]
) -> None:
    (tmp_path / "train.py").write_text(STATE)
    expected = state_of(plain(*flags, "train.py"))
    result = stepwatch("run", "-o", "out", "--", sys.executable, *flags, "train.py")
    found = state_of(result)
    assert "stepwatch: " not in result.stderr
    assert "Warning" not in result.stderr
    # The folders of the package: that is where its parts were found.
    package = str(build_dir / "python" / "stepwatch")
    cache = found["state"]["cache"]
    found["state"]["cache"] = [path for path in cache if not path.startswith(package)]
    # It waits for frameworks to be imported.
    assert found["state"]["meta_path"].pop(0) == "_Finder"
    assert found["state"] == expected["state"]
    added = set(found["modules"]) - set(expected["modules"])
    # In its development mode Python looks up a codec when it loads any extension.
    # The others are in the interpreter or small; loops are found by the names of instructions.
    usual = {"__future__", "atexit", "encodings.ascii", "types", "gc"}
    usual |= {"opcode", "_opcode", "_opcode_metadata"}
    assert {name for name in added if name.partition(".")[0] != "stepwatch"} <= usual
    assert set(expected["modules"]) <= set(found["modules"])
    environ = {
        key: value
        for key, value in found["environ"].items()
        if not key.startswith("STEPWATCH_") and key != "PYTHONPATH"
    }
    assert environ == {k: v for k, v in expected["environ"].items() if "STEPWATCH" not in k}


def test_the_users_path_is_kept(stepwatch: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys, mine\nprint(sys.path, mine.name)\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text("name = 'mine'\n")
    extra = {"PYTHONPATH": f"{tmp_path / 'own'}:/nowhere"}
    expected = plain("train.py", extra=extra)
    assert expected.returncode == 0
    result = stepwatch("run", "-o", "out", "train.py", extra=extra)
    assert result.stdout == expected.stdout


def test_another_package_of_that_name(stepwatch: Run, tmp_path: Path, build_dir: Path) -> None:
    (tmp_path / "stepwatch").mkdir()
    (tmp_path / "stepwatch" / "__init__.py").write_text("raise RuntimeError('the wrong one')\n")
    (tmp_path / "train.py").write_text("import stepwatch\nprint(stepwatch.__file__)\n")
    result = stepwatch("run", "-o", "out", "train.py", extra={"PYTHONPATH": str(tmp_path)})
    assert result.stdout == f"{build_dir / 'python' / 'stepwatch' / '__init__.py'}\n"


@pytest.mark.parametrize(
    "text",
    [
        "print('own', __name__, __file__)\nimport sys\nsys.mine = 1\n",
        "raise RuntimeError('own mistake')\n",
        "import nowhere_to_be_found\n",
        "raise SystemExit(7)\n",
        "x = (\n",
    ],
)
def test_the_users_sitecustomize(stepwatch: Run, plain: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(text)
    code = "import sys\nprint(getattr(sys, 'mine', 0), sys.modules.get('sitecustomize'))\n"
    (tmp_path / "train.py").write_text(code)
    extra = {"PYTHONPATH": str(tmp_path / "own")}
    expected = plain("train.py", extra=extra)
    result = stepwatch("run", "-o", "out", "train.py", extra=extra)
    assert (result.returncode, result.stdout) == (expected.returncode, expected.stdout)
    if "(" not in text.splitlines()[0] or "mistake" in text:
        assert expected.stderr
        assert result.stderr.startswith(expected.stderr)


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_does_not_listen(stepwatch: Run, tmp_path: Path, flag: str) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    result = stepwatch("run", "-o", "out", "--", sys.executable, flag, "train.py")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert "recorded nothing" in result.stderr
    assert "-I, -E or -S" in result.stderr
    assert len(result.stderr.splitlines()) == 2


def test_no_package(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    extra = {"STEPWATCH_PACKAGE": "/nowhere"}
    result = stepwatch("run", "-o", "out", "train.py", extra=extra)
    assert (result.returncode, result.stdout) == (0, "ran\n")
    (sentence, folder) = result.stderr.splitlines()
    assert "train.py is not recorded" in sentence
    assert folder == str(tmp_path / "out")


def broken_package(build_dir: Path, folder: Path) -> Path:
    """Copy the package to be broken; it finds the library where it is in the build."""
    package = folder / "broken" / "python" / "stepwatch"
    shutil.copytree(build_dir / "python" / "stepwatch", package)
    (folder / "broken" / "src").symlink_to(build_dir / "src")
    return package


def test_a_package_for_another_python(stepwatch: Run, tmp_path: Path, build_dir: Path) -> None:
    package = broken_package(build_dir, tmp_path)
    for path in package.glob("_core.*.so"):
        path.rename(package / "_core.cpython-399-x86_64-linux-gnu.so")
    code = "import subprocess, sys\nprint('ran', flush=True)\n"
    code += "if len(sys.argv) == 1:\n    subprocess.run([sys.executable, 'train.py', 'child'])\n"
    (tmp_path / "train.py").write_text(code)
    extra = {"STEPWATCH_PACKAGE": str(package)}
    result = stepwatch("run", "-o", "out", "train.py", extra=extra)
    assert (result.returncode, result.stdout) == (0, "ran\nran\n")
    version = "{}.{}".format(*sys.version_info)
    sentence = f"it is Python {version}, and stepwatch in {package} is for Python 3.99"
    first, *_ = result.stderr.splitlines()
    assert first == f"stepwatch: this Python is not recorded: {sentence}"
    # The child's stderr is the program's; that it is missing is said afterwards.
    assert result.stderr.count("stepwatch: this Python is not recorded") == 1
    assert result.stderr.count("is not recorded") == 2
    assert len((tmp_path / "out" / "notes.txt").read_text().splitlines()) == 2


def test_one_of_two_pythons(stepwatch: Run, tmp_path: Path, build_dir: Path) -> None:
    """What could not be recorded is a note of the report."""
    package = broken_package(build_dir, tmp_path)
    (package / "_startup.py").write_text(
        "import sys\n"
        "if 'bad' in open('/proc/self/cmdline').read():\n    raise RuntimeError('on purpose')\n"
        "from stepwatch import _core\n"
        "begin = _core.start\n"
    )
    (tmp_path / "train.py").write_text(
        "import subprocess, sys\n"
        "if 'bad' not in sys.argv:\n"
        "    print(subprocess.run([sys.executable, 'train.py', 'bad'], stderr=-1).stderr)\n"
    )
    extra = {"STEPWATCH_PACKAGE": str(package)}
    result = stepwatch("run", "-o", "out", "train.py", extra=extra)
    assert (result.returncode, result.stdout) == (0, "b''\n")
    (note,) = [
        note
        for note in json.loads((tmp_path / "out" / "report.json").read_text())["notes"]
        if "not recorded" in note
    ]
    assert "RuntimeError: on purpose" in note


def test_a_broken_package_breaks_nothing(stepwatch: Run, tmp_path: Path, build_dir: Path) -> None:
    package = broken_package(build_dir, tmp_path)
    (package / "__init__.py").write_text("raise RuntimeError('broken\\nin two lines')\n")
    (tmp_path / "train.py").write_text("print('ran')\n")
    extra = {"STEPWATCH_PACKAGE": str(package)}
    result = stepwatch("run", "-o", "out", "train.py", extra=extra)
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert "this Python is not recorded: RuntimeError: broken in two lines" in result.stderr
    assert "Traceback" not in result.stderr


def test_subinterpreters(stepwatch: Run, tmp_path: Path) -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    code = f"""
import {name} as interpreters, sys
one = interpreters.create()
interpreters.run_string(one, "import sys; print('within', 'sitecustomize' in sys.modules)")
interpreters.destroy(one)
print("done")
"""
    (tmp_path / "train.py").write_text(code)
    result = stepwatch("run", "-o", "out", "train.py")
    assert (result.returncode, result.stdout) == (0, "within False\ndone\n")
    assert "stepwatch: " not in result.stderr
    assert len(list((tmp_path / "out").glob("*.stepwatch"))) == 1


def test_bootstrap_alone_does_nothing(plain: Run, build_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('stepwatch' in sys.modules)\n")
    folder = build_dir / "python" / "stepwatch" / "_bootstrap"
    result = plain("train.py", extra={"PYTHONPATH": str(folder)})
    assert (result.returncode, result.stdout, result.stderr) == (0, "False\n", "")


def test_interrupted_before_the_program(build_dir: Path, python_env: dict[str, str]) -> None:
    """An interrupt that comes while the recorder begins ends the program as one does."""
    file = build_dir / "python" / "stepwatch" / "_bootstrap" / "sitecustomize.py"
    code = f"""
import _frozen_importlib_external
text = open({str(file)!r}).read()
def find(*_):
    raise KeyboardInterrupt
_frozen_importlib_external.PathFinder.find_spec = find
exec(text, {{"__name__": "bootstrap", "__file__": {str(file)!r}}})
print("not reached")
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**python_env, "STEPWATCH_RUN_ID": "1"},
    )
    assert (result.returncode, result.stdout) == (-signal.SIGINT, "")
    assert result.stderr == "KeyboardInterrupt\n"
