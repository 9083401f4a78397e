"""The configuration where Hydra is not installed: the same files and overrides, the same result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def value_of(text: str) -> Any:
    """Return what an override's text means: a number, a truth, nothing, a list or plain text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return yaml.safe_load(text)


def _read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def _put(into: dict[str, Any], key: str, value: Any, *, add: bool) -> None:
    """Set ``a.b.c``; a key that is not there is a mistake, unless it is to be added."""
    *outer, last = key.split(".")
    place: Any = into
    for name in outer:
        if add and isinstance(place, dict):
            place.setdefault(name, {})
        place = place.get(name) if isinstance(place, dict) else None
    if not isinstance(place, dict) or (last not in place and not add):
        raise SystemExit(f"Could not override {key!r}: there is no such key in the configuration.")
    place[last] = value


def load(folder: Path, overrides: list[str]) -> dict[str, Any]:
    """Return ``config.yaml`` of the folder with the chosen groups and the overrides in it."""
    own = _read(folder / "config.yaml")
    own.pop("hydra", None)
    choices: dict[str, str] = {}
    order: list[str] = []
    for entry in own.pop("defaults", []):
        if not isinstance(entry, str) and next(iter(entry)).startswith("override hydra/"):
            continue
        order += [entry] if isinstance(entry, str) else list(entry)
        choices.update({} if isinstance(entry, str) else entry)
    single: list[tuple[str, str, bool]] = []
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or key.startswith(("~", "hydra.")):
            raise SystemExit(
                f"{override!r} is no override that works without Hydra: say KEY=VALUE."
            )
        if key in choices:
            if not (folder / key / f"{text}.yaml").is_file():
                known = ", ".join(sorted(path.stem for path in (folder / key).glob("*.yaml")))
                raise SystemExit(f"Could not find '{key}/{text}'; there are {known}.")
            choices[key] = text
        else:
            single.append((key.lstrip("+"), text, key.startswith("+")))
    config: dict[str, Any] = {}
    for name in order if "_self_" in order else [*order, "_self_"]:
        config.update(
            own if name == "_self_" else {name: _read(folder / name / f"{choices[name]}.yaml")}
        )
    for key, text, add in single:
        _put(config, key, value_of(text), add=add)
    return config
