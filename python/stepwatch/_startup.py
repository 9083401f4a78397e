"""What happens in a Python below ``stepwatch run``, from its first moment to its last.

The folder ``_bootstrap`` calls :func:`begin` before the program has begun. Nothing is imported here
that the program could miss or find changed, and nothing that goes wrong here reaches it. Results
are written when the program ends, after everything else that it does at its end.
"""

import atexit
import os
import sys

import stepwatch
from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# The parts of the package that are asked for by name.
_package: "Any" = stepwatch
# The process that has begun; a fork is another one.
_begun_in = 0
# What the command line asked for and this process has. Both start afresh in a fork by themselves.
_functions: "Any" = None
_lines: "Any" = None
_main_is_awaited = False


def begin() -> None:
    """Begin the recording of this process, and what the command line asked for."""
    if _core.is_recording():
        return  # Another interpreter of this process was here before.
    purpose = _purpose()
    if purpose == "tracker":
        return
    if purpose == "program":
        # What is registered first is called last: the profilers put what they have into the trace
        # in between.
        atexit.register(_end)
        _begin_here()
        atexit.register(_save)
        if _functions is not None:
            # Before anything else of ours, which is not the program's and does not count.
            atexit.register(_functions.stop)
    os.register_at_fork(after_in_child=_forked)


def _purpose() -> str:
    """Tell the servants of multiprocessing and the launchers of ranks from programs.

    A server does nothing but fork; each of its forks is a worker of the program's. A launcher
    starts the program and waits: it has nothing to tell, and would only be in the way.
    """
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
    return "launcher" if _is_launcher(words[1:]) else "program"


# Modules and commands that start ranks, and what must come next for them to do so.
_LAUNCHERS = {
    "torch.distributed.run": "",
    "torch.distributed.launch": "",
    "torchrun": "",
    "accelerate.commands.launch": "",
    "accelerate.commands.accelerate_cli": "launch",
    "accelerate": "launch",
    "accelerate-launch": "",
    "deepspeed.launcher.runner": "",
    "deepspeed.launcher.launch": "",
    "deepspeed": "",
    "horovodrun": "",
    "fabric": "run",
    "lightning": "run",
}


def _is_launcher(words: "list[str]") -> bool:
    """Tell from the words after the interpreter whether it runs a launcher."""
    words = [word for word in words if word]
    while words and words[0].startswith("-") and words[0] != "-m":
        if words[0].startswith("-c"):
            return False
        del words[: 2 if words[0] in ("-W", "-X") else 1]
    if words and words[0] == "-m":
        del words[0]
    if not words:
        return False
    follows = _LAUNCHERS.get(words[0].rpartition("/")[2])
    return follows is not None and (not follows or words[1:2] == [follows])


def _begin_here() -> None:
    global _begun_in
    _begun_in = os.getpid()
    _core.start()
    if _core.is_recording():
        _attempt("the frameworks are not watched", _begin_integrations)
        _attempt("there is no line profile", _begin_lines)
        _attempt("there is no function profile", _begin_functions)


def _begin_integrations() -> None:
    from stepwatch import integrations

    integrations.install()


def _begin_functions() -> None:
    global _functions
    if _functions is None and _core.option("functions") == "on":
        functions = _package.functions()
        functions.start()
        _functions = functions


def _begin_lines() -> None:
    global _lines, _main_is_awaited
    names = _core.option("lines")
    if _lines is None and names:
        _lines = _package.lines
        for name in names.split(","):
            _attempt(f"{name} has no line profile", _lines.add_by_name, name)
        if "__main__:" in names:
            _main_is_awaited = True
            _core._await_main(_see)


def _see(code: "Any") -> bool:
    """See the code of the program just before it runs: the only moment when it can be known."""
    _attempt("functions of the program have no line profile", _prepare_main, code)
    return not _main_is_awaited


def _prepare_main(code: "Any") -> None:
    global _main_is_awaited
    if getattr(code, "co_name", "") != "<module>" or not sys.argv:
        return
    path, file = os.path.abspath(sys.argv[0]), os.path.abspath(code.co_filename)
    if file in (path, os.path.join(path, "__main__.py")):
        _main_is_awaited = False
        code = _core._loops_code(code)
        watched = _package._line_targets.prepare(code, "__main__")
        if watched is not code:
            _core._take_constants(code, watched)


def _forked() -> None:
    """In a forked child: if it is a worker of multiprocessing, it begins a file of its own.

    Any other child may be about to become another program; it begins with its first section.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        what = f"process {os.getpid()} is not recorded"
        _attempt(what, util.register_after_fork, _forked, _worker_began)


def _worker_began(_: object) -> None:
    if _begun_in != os.getpid():
        _attempt(f"process {os.getpid()} is not recorded", _begin_worker)


def _begin_worker() -> None:
    _begin_here()
    # Workers end by os._exit, which calls nothing that atexit knows.
    util: "Any" = sys.modules["multiprocessing.util"]
    util.Finalize(None, _end, exitpriority=-1_000_001)
    util.Finalize(None, _save, exitpriority=-1_000_000)
    if _functions is not None:
        util.Finalize(None, _functions.stop, exitpriority=-999_999)


def _save() -> None:
    """Write the profiles of this process."""
    try:
        if _functions is not None:
            _attempt("the function profile could not be written", _save_functions)
        if _lines is not None:
            _attempt("the line profile could not be written", _save_lines)
    except KeyboardInterrupt:
        pass  # The program has ended; somebody does not want to wait for its results.


def _end() -> None:
    """End the recording; that of a program that ends by a signal later is complete, too."""
    _attempt("the recording could not be ended", _core.stop)


def _save_functions() -> None:
    _functions.stop()
    text = _new_file("functions", ".txt")  # Saving writes a text beside, with the mode of any file.
    _functions.save(_new_file("functions", ".stats"))
    with open(text, "w", encoding="utf-8", errors="replace") as file:
        file.write(_functions.text())


def _save_lines() -> None:
    _lines.disable()
    _lines.save(_new_file("lines", ".txt"))
    _lines.save(_new_file("lines", ".json"))


def _new_file(stem: str, suffix: str) -> str:
    """Make an empty file that only the user can read, and return its path.

    The program's own results have plain names, those of its children a number.
    """
    if not _is_the_program():
        stem = f"{stem}-{os.getpid()}"
    path = os.path.join(os.environ["STEPWATCH_OUT"], stem + suffix)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    return path


def _is_the_program() -> bool:
    """Tell whether this is what ``stepwatch run`` started itself."""
    return str(os.getppid()) == os.environ.get("STEPWATCH_SUPERVISOR")


def _attempt(what: str, action: "Callable[..., object]", *arguments: object) -> None:
    """Do something that must not fail in the program's eyes."""
    try:
        action(*arguments)
    except Exception as error:
        _note(f"{what}: {type(error).__name__}: {error}")


def _note(text: str) -> None:
    """Leave a sentence for the report. What the user started says it at once; the others' stderr
    may be read by the program."""
    text = " ".join(text.split())
    try:
        if _is_the_program() and sys.stderr is not None:
            sys.stderr.write(f"stepwatch: {text}\n")
            sys.stderr.flush()
        path = os.path.join(os.environ["STEPWATCH_OUT"], "notes.txt")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        file = os.open(path, flags, 0o600)
        try:
            os.write(file, f"{text}\n".encode("utf-8", "replace"))
        finally:
            os.close(file)
    except (KeyError, OSError, ValueError):
        pass  # There is nobody to tell.
