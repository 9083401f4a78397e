"""What happens in a Python below ``stepwatch run``, from its first moment to its last.

The folder ``_bootstrap`` calls :func:`begin` before the program has begun. Nothing is imported here
that the program could miss or find changed; results are written when the program ends.
"""

import atexit
import os
import sys

import stepwatch
from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What this process has begun. A fork begins anew.
_begun_in = 0
_profiler: "Any" = None
_lines: "Any" = None


def begin() -> None:
    """Begin the recording of this process, and what the command line asked for."""
    if _core.is_recording():
        return  # Another interpreter of this process was here before.
    purpose = _purpose()
    if purpose == "tracker":
        return
    if purpose == "server":
        # It does nothing but fork, and each fork is a process of the program's.
        os.register_at_fork(after_in_child=_forked)
        return
    _begin_here()
    atexit.register(finish)
    os.register_at_fork(after_in_child=_forked)


def _purpose() -> str:
    """Tell the servants of multiprocessing from programs."""
    words = getattr(sys, "orig_argv", None)  # Python 3.10
    if words is None:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().decode("utf-8", "replace").split("\0")
    for word in words[1:]:
        if word.startswith("from multiprocessing."):
            if "_tracker import main" in word:
                return "tracker"
            if ".forkserver import main" in word:
                return "server"
    return "program"


def _begin_here() -> None:
    global _begun_in, _profiler, _lines
    _begun_in = os.getpid()
    _profiler = _lines = None
    _core.start()
    if not _core.is_recording():
        return
    if os.environ.get("STEPWATCH_FUNCTIONS") == "1":
        functions = getattr(stepwatch, "functions", None)
        if functions is None:
            _tell("there is no function profiler in this version")
        else:
            _profiler = functions()
            _profiler.start()
    names = os.environ.get("STEPWATCH_LINES")
    if names:
        _lines = getattr(stepwatch, "lines", None)
        if _lines is None:
            _tell("there is no line profiler in this version")
        else:
            for name in names.split(","):
                _lines.add_by_name(name)


def _forked() -> None:
    """Run in a forked child: if it is a worker of multiprocessing, it begins a file of its own.

    Any other child may be about to become another program; it begins with its first section.
    """
    try:
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(_forked, _worker_began)
    except Exception as error:
        _tell(f"process {os.getpid()} is not recorded: {error}")


def _worker_began(_: object) -> None:
    try:
        if _begun_in == os.getpid():
            return
        _begin_here()
        # Workers end by os._exit, which calls nothing that atexit knows.
        util = sys.modules["multiprocessing.util"]
        util.Finalize(None, finish, exitpriority=-1_000_000)
    except Exception as error:
        _tell(f"process {os.getpid()} is not recorded: {error}")


def finish() -> None:
    """Write the results of this process and end its recording."""
    try:
        if _begun_in == os.getpid():
            if _profiler is not None:
                _save_functions()
            if _lines is not None:
                _save_lines()
        _core.stop()
    except BaseException as error:  # an interrupt, too: the program has ended
        _tell(f"the results of process {os.getpid()} are incomplete: {error!r}")


def _path(stem: str, suffix: str) -> str:
    """Return where a result goes: the program's own, or that of one of its children."""
    if str(os.getppid()) != os.environ.get("STEPWATCH_SUPERVISOR"):
        stem = f"{stem}-{os.getpid()}"
    return os.path.join(os.environ["STEPWATCH_OUT"], stem + suffix)


def _write(path: str, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _save_functions() -> None:
    _profiler.stop()


def _save_lines() -> None:
    pass


def _tell(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"stepwatch: {text}\n")
