"""Configuration objects as lines of options, and the profiles that options ask for."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Where a configuration of the whole program keeps ours.
_PART = "profiling"

_functions: Any = None
_lines: Any = None


def pairs_of(config: Any) -> list[str]:
    """Return ``key=value`` for each option of a mapping, a dataclass or an OmegaConf object.

    If it has a part named ``profiling``, that part counts, as in a file.
    """
    options = _items(config)
    if options is None:
        raise TypeError(
            f"config should be a path, a mapping or a dataclass, not {type(config).__name__}"
        )
    if _PART in options:
        part = options[_PART]
        options = {} if part is None else _items(part)
        if options is None:
            raise TypeError(f"{_PART} should be a mapping, not {type(part).__name__}")
    return list(_pairs("", options))


def _items(config: Any) -> dict[Any, Any] | None:
    """Return the entries of what has names and values; None for anything else."""
    omegaconf: Any = sys.modules.get("omegaconf")
    if omegaconf is not None and isinstance(config, omegaconf.DictConfig):
        # Only our own part is resolved: the rest may lack values that it gets later.
        if _PART in config:
            return {_PART: config[_PART]}
        values: dict[Any, Any] | None = omegaconf.OmegaConf.to_container(config, resolve=True)
        return values
    if hasattr(config, "keys") and hasattr(config, "__getitem__"):
        return {key: config[key] for key in config.keys()}  # noqa: SIM118
    if hasattr(config, "__dataclass_fields__") and not isinstance(config, type):
        return {name: getattr(config, name) for name in config.__dataclass_fields__}
    return None


def _pairs(prefix: str, options: dict[Any, Any]) -> Iterator[str]:
    for key, value in options.items():
        name = f"{prefix}{key}"
        inner = _items(value)
        if inner is not None:
            yield from _pairs(f"{name}.", inner)
        # OmegaConf's mark for a value that nobody has given.
        elif value is not None and value != "???":
            yield f"{name}={_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        text = repr(value)
        return f"{value:f}" if "e" in text else text
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def began() -> None:
    """Begin the profiles that the options of this recording ask for."""
    global _functions, _lines
    import stepwatch
    from stepwatch import _core

    package: Any = stepwatch
    names = _core.option("lines")
    if names:
        _lines = package.lines
        for name in names.split(","):
            _lines.add_by_name(name)
    if _core.option("functions") == "on":
        _functions = package.functions()
        _functions.start()
    if _core.option("operators") == "on":
        from stepwatch import _imports

        _imports.watch("torch", _watch_operators)


def _watch_operators(torch: Any) -> None:
    from stepwatch.integrations import torch_operators

    asked = "STEPWATCH_OPERATORS" in os.environ
    torch_operators.install(torch, "--operators" if asked else "operators=True")


def ends() -> None:
    """End them, before the recording does."""
    global _functions, _lines
    if _functions is not None:
        _functions.stop()
    if _lines is not None:
        _lines.disable()
    _functions = _lines = None
    operators: Any = sys.modules.get("stepwatch.integrations.torch_operators")
    if operators is not None:
        operators.remove()
