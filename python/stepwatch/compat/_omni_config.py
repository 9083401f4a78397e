"""Settings of the flexible profiler: what is printed, what is saved, and where."""

from __future__ import annotations

import os
from dataclasses import dataclass

from stepwatch.compat import _switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FORMATS = ("json", "txt", "csv")
FOLDER = "profiling_output"

# Every setting with its default. ``enabled`` and ``output_dir`` are "not given" until they are
# assigned: then the environment is heard.
_DEFAULTS: dict[str, Any] = {
    "enabled": None,
    "output_dir": None,
    "save_format": "json",
    "steps_to_save": (1, 100, 1000),
    "print_line_profile": False,
    "print_block_profile": True,
    "print_overall_profile": True,
    "print_save_info": True,
    "save_line_profile": True,
    "save_block_profile": True,
    "save_overall_profile": True,
    "line_by_line_file": None,
    "block_profiling_file": None,
    "overall_profiling_file": None,
    "autosave": True,
}
_FILES = ("line_by_line_file", "block_profiling_file", "overall_profiling_file")


@dataclass(init=False, repr=False, eq=False)
class ProfilerConfig:
    """Settings that may be assigned at any time and count from then on.

        profiler_config.output_dir = "ml_profiling_output"
        profiler_config.steps_to_save = [1, 10, 50, 100]

    ``steps_to_save`` counts from 1: the first step is step 1. ``autosave=False`` leaves saving and
    printing to the calls that the program makes itself.
    """

    enabled: bool
    output_dir: str
    save_format: str
    steps_to_save: list[int]
    print_line_profile: bool
    print_block_profile: bool
    print_overall_profile: bool
    print_save_info: bool
    save_line_profile: bool
    save_block_profile: bool
    save_overall_profile: bool
    line_by_line_file: str | None
    block_profiling_file: str | None
    overall_profiling_file: str | None
    autosave: bool

    def __init__(self, **settings: Any) -> None:
        """Take settings by name; the others have their defaults."""
        values = dict(_DEFAULTS, steps_to_save=list(_DEFAULTS["steps_to_save"]))
        # Where a path was said: it means the same after the program has gone elsewhere.
        self.__dict__.update(_values=values, _changed=None, _bases={})
        for name, value in settings.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Return a setting; what was not assigned follows the environment."""
        values = self.__dict__.get("_values", {})
        if name not in values:
            raise AttributeError(f"ProfilerConfig has no setting {name!r}; there are: {_names()}")
        if name == "enabled":
            return _switches.enabled(argument=values["enabled"], default=True)
        if name == "output_dir":
            return _switches.output_dir(values["output_dir"], default=FOLDER)
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a setting and keep it; whoever listens hears of it."""
        if name not in _DEFAULTS:
            raise AttributeError(f"ProfilerConfig has no setting {name!r}; there are: {_names()}")
        self._values[name] = _checked(name, value)
        if name == "output_dir" or name in _FILES:
            self._bases.pop(name, None)
            if value is not None:
                self._bases[name] = _switches.here()
        if self._changed is not None:
            self._changed()

    def __repr__(self) -> str:
        """Show all settings as they are in force."""
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in _DEFAULTS)
        return f"ProfilerConfig({settings})"

    def __eq__(self, other: object) -> bool:
        """Tell whether all settings are the same."""
        if not isinstance(other, ProfilerConfig):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _DEFAULTS)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what was set; nobody listens to a copy."""
        state = (dict(self._values, steps_to_save=list(self.steps_to_save)), dict(self._bases))
        return _restored, state

    def _folder(self) -> str:
        """Return where files go; one that nobody assigned is where the first file went."""
        base = self._bases.setdefault("output_dir", _switches.here())
        return _switches.anchored(self.output_dir, base)

    def _file(self, name: str) -> str | None:
        """Return the file that a setting names: a bare name is one of the folder."""
        path: str | None = self._values[name]
        if path is None or os.path.basename(path) == path:  # noqa: PTH119
            return path
        return _switches.anchored(path, self._bases[name])

    def _listen(self, changed: Callable[[], None]) -> None:
        self.__dict__["_changed"] = changed


def _restored(values: dict[str, Any], bases: dict[str, str]) -> ProfilerConfig:
    made = ProfilerConfig()
    made.__dict__.update(_values=values, _bases=bases)
    return made


def _names() -> str:
    return ", ".join(_DEFAULTS)


def _checked(name: str, value: Any) -> Any:
    if name == "save_format":
        if value not in FORMATS:
            allowed = ", ".join(repr(each) for each in FORMATS)
            raise ValueError(f"save_format is one of {allowed}, not {value!r}")
        return value
    if name == "steps_to_save":
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise TypeError(f"steps_to_save is a list of step numbers, not {value!r}")
        if not isinstance(value, list):
            value = list(value)
        for step in value:
            if isinstance(step, bool) or not isinstance(step, int):
                raise TypeError(f"steps_to_save is a list of step numbers, not of {step!r}")
        return value
    if name in _FILES or name == "output_dir":
        if value is not None and not isinstance(value, (str, os.PathLike)):
            raise TypeError(f"{name} is a path, or None for the default, not {value!r}")
        return None if value is None else os.fspath(value)
    if name == "enabled" and value is None:
        return None  # not given again
    if isinstance(value, str):
        meant = _switches.truth(value)
        if meant is None:
            raise ValueError(f"{name} is True or False, not {value!r}")
        return meant
    return bool(value)
