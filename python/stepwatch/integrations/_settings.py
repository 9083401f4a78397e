"""Settings and other figures of a program that are known by a name."""

from __future__ import annotations

from stepwatch import _core

_SETTING = 14  # table of the trace
_settings: dict[tuple[str, str], tuple[int, str]] = {}


def setting(what: str, name: str, value: float | str) -> None:
    """Keep a setting; a number that changes keeps its row."""
    text = value if isinstance(value, str) else ""
    number = float("nan") if isinstance(value, str) else float(value)
    handle, before = _settings.get((what, name), (0, text))
    if before != text:
        handle = 0
    handle, _ = _core.put_row(handle, _SETTING, 0, (what, name, text), (number,))
    _settings[what, name] = handle, text
