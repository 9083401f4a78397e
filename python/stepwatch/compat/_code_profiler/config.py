"""The 33 settings of a code profiler, and which of them are in force."""

from __future__ import annotations

import difflib
import inspect
import os
from dataclasses import dataclass, fields

from stepwatch.compat import _switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEVELS = ("basic", "detailed", "comprehensive")

# What a level leaves off, unless it is asked for by name.
_NOT_COMPREHENSIVE = frozenset(("track_allocations", "track_deallocations", "memory_snapshots"))
_NOT_DETAILED = _NOT_COMPREHENSIVE | {
    "enable_performance_monitoring",
    "track_memory",
    "track_cpu",
    "track_gpu",
    "track_io",
    "profile_augmentation",
    "profile_collate",
    "profile_gradient_computation",
    "enable_memory_profiling",
    "enable_gpu_profiling",
    "track_gpu_memory",
    "track_gpu_utilization",
    "track_cuda_events",
    "enable_io_profiling",
    "track_file_operations",
    "track_network_operations",
    "create_visualizations",
}
_OFF = {"basic": _NOT_DETAILED, "detailed": _NOT_COMPREHENSIVE, "comprehensive": frozenset()}

# Those that mean nothing while another one is off.
_MASTERS = {
    "track_allocations": "enable_memory_profiling",
    "track_deallocations": "enable_memory_profiling",
    "memory_snapshots": "enable_memory_profiling",
    "track_gpu_memory": "enable_gpu_profiling",
    "track_gpu_utilization": "enable_gpu_profiling",
    "track_cuda_events": "enable_gpu_profiling",
    "track_file_operations": "enable_io_profiling",
    "track_network_operations": "enable_io_profiling",
}


@dataclass(init=False)
class ProfilerConfig:
    """What to profile, and where results go.

    Fields read as they were given, or as their default. What is in force is told by
    :meth:`is_on`: switches that were not given follow ``profile_level``, those that were override
    it, and the environment's ``ENABLE_PROFILING=false`` ends it all.

    >>> ProfilerConfig(profile_level="basic", track_memory=True).is_on("track_memory")
    True
    """

    enable_profiling: bool = True
    profile_level: str = "detailed"
    save_profiles: bool = True
    profile_dir: str = "profiles"
    enable_performance_monitoring: bool = True
    monitor_interval: float = 1.0
    track_memory: bool = True
    track_cpu: bool = True
    track_gpu: bool = True
    track_io: bool = True
    profile_data_loading: bool = True
    profile_preprocessing: bool = True
    profile_augmentation: bool = True
    profile_collate: bool = True
    profile_forward_pass: bool = True
    profile_backward_pass: bool = True
    profile_optimizer_step: bool = True
    profile_gradient_computation: bool = True
    enable_memory_profiling: bool = True
    track_allocations: bool = True
    track_deallocations: bool = True
    memory_snapshots: bool = True
    enable_gpu_profiling: bool = True
    track_gpu_memory: bool = True
    track_gpu_utilization: bool = True
    track_cuda_events: bool = True
    enable_io_profiling: bool = True
    track_file_operations: bool = True
    track_network_operations: bool = True
    generate_reports: bool = True
    create_visualizations: bool = True
    export_to_json: bool = True
    export_to_csv: bool = True

    def __init__(self, **given: Any) -> None:
        """Take any of the fields by name."""
        object.__setattr__(self, "_given", set())
        object.__setattr__(self, "_base", _switches.here())
        for name, value in given.items():
            self._check_name(name)
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; from now on it counts as given."""
        self._check_name(name)
        object.__setattr__(self, name, _checked(name, value))
        self.given.add(name)
        if name == "profile_dir":
            object.__setattr__(self, "_base", _switches.here())

    @staticmethod
    def _check_name(name: str) -> None:
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"ProfilerConfig has no field {name!r}{hint}")

    @property
    def given(self) -> set[str]:
        """The fields that were set by somebody."""
        names: set[str] = self.__dict__["_given"]
        return names

    def is_on(self, name: str) -> bool:
        """Tell whether a switch is in force: what was given, else what the level says."""
        if name == "enable_profiling":
            argument = self.enable_profiling if name in self.given else None
            return _switches.enabled(argument=argument, default=True)
        master = _MASTERS.get(name)
        if master is not None and not self._own(master):
            # A part that is asked for by name wakes its master, unless that was refused by name.
            return name in self.given and self._own(name) and master not in self.given
        return self._own(name)

    def _own(self, name: str) -> bool:
        if name in self.given:
            return bool(getattr(self, name))
        return name not in _OFF[self.profile_level]

    @property
    def folder(self) -> str:
        """Where files go: what was given, PROFILE_OUTPUT_DIR, or the default.

        What is relative belongs to where the configuration was made.
        """
        argument = self.profile_dir if "profile_dir" in self.given else None
        said = _switches.output_dir(argument, default=self.profile_dir)
        return _switches.anchored(said, self.__dict__["_base"])

    def in_force(self) -> dict[str, Any]:
        """Return every field as it is in force."""
        found: dict[str, Any] = {
            name: self.is_on(name) if kind is bool else getattr(self, name)
            for name, kind in FIELDS.items()
        }
        found["profile_dir"] = self.folder
        return found


_KINDS: dict[str, type] = {"bool": bool, "str": str, "float": float}
FIELDS: dict[str, type] = {each.name: _KINDS[str(each.type)] for each in fields(ProfilerConfig)}

# What editors and help() show in place of "**given".
ProfilerConfig.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(ProfilerConfig)
    ]
)


def _checked(name: str, value: Any) -> Any:
    """Return the value of a field, or say what is wrong with it."""
    kind = FIELDS[name]
    if kind is bool:
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, not {value!r}")
        return value
    if name == "profile_level":
        if value not in LEVELS:
            raise ValueError(f"profile_level must be one of {', '.join(LEVELS)}, not {value!r}")
        return value
    if name == "profile_dir":
        if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
            raise TypeError(f"profile_dir must be a folder, not {value!r}")
        return os.fspath(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"monitor_interval must be a number of seconds, not {value!r}")
    if not 0.01 <= value <= 3600:
        raise ValueError(f"monitor_interval must be from 0.01 to 3600 seconds, not {value!r}")
    return float(value)


__all__ = ["FIELDS", "LEVELS", "ProfilerConfig"]
