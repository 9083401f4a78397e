"""Whether a guide's profiling is on, and where its files go: who is heard first."""

from __future__ import annotations

import os

from stepwatch.integrations._notes import note_once

SWITCH = "ENABLE_PROFILING"
FOLDER = "PROFILE_OUTPUT_DIR"

_WORDS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def truth(text: str) -> bool | None:
    """Return what a word means as a switch, None when it means nothing."""
    return _WORDS.get(text.strip().lower())


def environment() -> bool | None:
    """Return what ENABLE_PROFILING says now, None when it says nothing."""
    text = os.environ.get(SWITCH)
    if text is None or not text.strip():
        return None
    value = truth(text)
    if value is None:
        note_once(
            f"{SWITCH}={text!r} is neither true nor false, and taken as not set; "
            "say true, 1, yes, on, false, 0, no or off."
        )
    return value


def enabled(
    *,
    argument: bool | None = None,
    override: bool | None = None,
    configured: bool | None = None,
    default: bool,
) -> bool:
    """Return whether profiling is on; None is "not given".

    The environment's no is final. Then comes what the code says, then what was typed on the
    command line, then the environment's yes, then a configuration file, then the default.
    """
    outside = environment()
    if outside is False:
        return False
    for said in (argument, override, outside, configured):
        if said is not None:
            return said
    return default


def output_dir(
    argument: str | os.PathLike[str] | None = None,
    configured: str | os.PathLike[str] | None = None,
    *,
    default: str,
) -> str:
    """Return the folder for files: the code's, PROFILE_OUTPUT_DIR, the file's, the default."""
    if argument is not None:
        return os.fspath(argument)
    outside = os.environ.get(FOLDER)
    if outside:
        return outside
    return os.fspath(configured) if configured is not None else default


def here() -> str:
    """Return the folder that the program is in; empty where that has been removed."""
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def anchored(path: str, base: str) -> str:
    """Return a path as it was said in ``base``: so while the program is there, else in full.

    A program that goes to another folder keeps its files together.
    """
    return path if here() == base else os.path.join(base, path)  # noqa: PTH118
