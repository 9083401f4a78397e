"""Begins the recording in every Python below ``stepwatch run``.

``stepwatch run`` puts the folder of this file in front of PYTHONPATH, and Python imports
``sitecustomize`` at its start, whatever it is started for. Nothing of it is left to be seen:
the folder leaves ``sys.path`` (children get it from the variable), and a ``sitecustomize`` of
the user's own is imported in its place, with whatever that raises.

Pythons that cannot be recorded run this too: the file keeps to what any of them can read.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _leave_path():
    # type: () -> None
    sys.path[:] = [entry for entry in sys.path if entry != _FOLDER]
    sys.path_importer_cache.pop(_FOLDER, None)


def _tell(why):
    # type: (str) -> None
    """Leave a note in the run directory; the program that was asked for says it at once."""
    version = ".".join(str(number) for number in sys.version_info[:3])
    why = " ".join(why.split())
    which = "%s (Python %s, process %d)" % (sys.executable or "?", version, os.getpid())
    line = which + " is not recorded: " + why + "\n"
    try:
        if str(os.getppid()) == os.environ.get("STEPWATCH_SUPERVISOR") and sys.stderr:
            sys.stderr.write("stepwatch: this Python is not recorded: %s\n" % why)
            sys.stderr.flush()
        path = os.path.join(os.environ["STEPWATCH_OUT"], "notes.txt")
        # One write of one line: several processes may be at it.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, line.encode("utf-8", "replace"))
        finally:
            os.close(file)
    except (AttributeError, KeyError, OSError, ValueError):
        pass  # There is nobody to tell.


def _fits(package):
    # type: (str) -> bool
    """Tell whether the package has an extension for this Python."""
    import _imp

    return any(
        os.path.exists(os.path.join(package, "_core" + suffix))
        for suffix in _imp.extension_suffixes()
    )


def _version_of(package):
    # type: (str) -> str
    """Return the version of Python that the package was made for, as far as its files tell."""
    for name in sorted(os.listdir(package)):
        tag = name.split(".")[1] if name.startswith("_core.") and name.endswith(".so") else ""
        if tag.startswith("cpython-3"):
            return "3." + tag.split("-")[1][1:]
    return "another version"


def _begin():
    # type: () -> None
    package = os.path.dirname(_FOLDER)
    if sys.version_info < (3, 9) or sys.implementation.name != "cpython":
        _tell("the recorder needs CPython 3.9 or newer")
        return
    import _frozen_importlib
    import _frozen_importlib_external

    find = _frozen_importlib_external.PathFinder.find_spec
    # The package of the command counts, whichever this Python has installed. Only where that one
    # cannot be loaded, another is as good. Nothing stays on sys.path that was not there.
    parent = os.path.dirname(package)
    known = parent in sys.path_importer_cache
    spec = find("stepwatch", [parent] if _fits(package) else None)
    if not known:
        sys.path_importer_cache.pop(parent, None)
    folders = spec.submodule_search_locations if spec else None
    if not folders or not (_fits(folders[0]) and find("stepwatch._startup", folders)):
        version = "%d.%d" % sys.version_info[:2]
        made = _version_of(package)
        _tell("it is Python %s, and stepwatch in %s is for Python %s" % (version, package, made))
        return
    if "stepwatch" not in sys.modules:
        _frozen_importlib._load(spec)  # type: ignore[attr-defined]
    from stepwatch import _startup

    _startup.begin()


def _interrupted():
    # type: () -> None
    """Die as an interrupted program does. Here Python would say that site cannot be imported."""
    import _signal  # type: ignore[import-not-found]

    if sys.stderr:
        sys.stderr.write("KeyboardInterrupt\n")
        sys.stderr.flush()
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGINT)


_leave_path()
if os.environ.get("STEPWATCH_RUN_ID"):
    try:
        _begin()
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        _tell("%s: %s" % (type(error).__name__, error))

# The user's own takes this one's place; where there is none, Python takes ImportError as that.
if sys.modules.get(__name__) is not None and __name__ == "sitecustomize":
    del sys.modules[__name__]
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
