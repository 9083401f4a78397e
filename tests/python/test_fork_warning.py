"""Python 3.12 and later warn on fork in a process with several threads.

The recorder has a helper thread. It is gone at the moment of the fork, so that programs run with
``-W error`` do not break. The library is loaded by ctypes: no extension has to be built for each
Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# It looks for other Pythons itself.
pytestmark = pytest.mark.once

SCRIPT = """
import ctypes, os, sys, time
lib = ctypes.CDLL(sys.argv[1])
lib.sw_section_get.restype = ctypes.c_void_p
lib.sw_section_enter.argtypes = [ctypes.c_void_p]
lib.sw_section_leave.argtypes = [ctypes.c_void_p]
assert lib.sw_init_sized(None, ctypes.c_size_t(0)) == 0
section = lib.sw_section_get(b"a")
seen = 0
for _ in range(20):
    lib.sw_step_begin()
    lib.sw_section_enter(section)
    lib.sw_section_leave(section)
    time.sleep(0.001)
    seen = max(seen, len(os.listdir("/proc/self/task")))
    pid = os.fork()
    if pid == 0:
        lib.sw_section_enter(section)
        lib.sw_section_leave(section)
        lib.sw_shutdown()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    lib.sw_step_end()
lib.sw_shutdown()
print(seen)
"""


def warning_pythons() -> list[str]:
    """Return the interpreters here that are new enough to warn."""
    found = [shutil.which(f"python3.{minor}") for minor in range(12, 16)]
    versions = Path.home() / ".pyenv" / "versions"
    found += [str(path) for path in sorted(versions.glob("3.1[2-9]*/bin/python"))]
    if sys.version_info >= (3, 12):
        found.append(sys.executable)
    working = []
    for path in found:
        if (
            path
            and subprocess.run([path, "-c", "import ctypes"], capture_output=True).returncode == 0
        ):
            working.append(path)
    return sorted(set(working))


@pytest.mark.parametrize("python", warning_pythons() or [None])
def test_fork_is_silent(python: str | None, build_dir: Path, tmp_path: Path) -> None:
    if python is None:
        pytest.skip("no Python 3.12 or later here, and earlier ones do not warn")
    result = subprocess.run(
        [python, "-W", "error", "-c", SCRIPT, str(build_dir / "src" / "libstepwatch.so")],
        env={**os.environ, "STEPWATCH_OUT": str(tmp_path / "run"), "STEPWATCH_ENABLED": "1"},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "2\n", "the helper thread was there between the forks"
    assert len(list((tmp_path / "run").glob("*.stepwatch"))) == 21
