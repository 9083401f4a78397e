"""What can be set for a training: by its file, by ``-o training/ocr.key=value``, or not at all."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from stepwatch.compat import _switches
from stepwatch.integrations._notes import note_once

FILE = Path("configs/training/ocr/default.yaml")
GROUP = "training/ocr"
TRAINERS = ("simple", "lightning")


@dataclass
class Settings:
    """The keys of ``configs/training/ocr/default.yaml`` and their defaults."""

    enable_profiling: bool | None = None
    profile_every_n_steps: int = 100
    profile_output_dir: str | None = None
    max_epochs: int = 2
    batch_size: int = 16
    learning_rate: float = 0.002
    num_workers: int = 0
    val_split: float = 0.1
    max_images: int | None = None
    seed: int = 0
    trainer: str = "simple"
    # What was typed, which is heard before the environment's yes.
    typed_profiling: bool | None = None


KEYS = {field.name for field in fields(Settings)} - {"typed_profiling"}
_WHOLE = {  # and the least that makes sense
    "profile_every_n_steps": 1,
    "max_epochs": 1,
    "batch_size": 1,
    "num_workers": 0,
    "max_images": 1,
    "seed": 0,
}
_EMPTY = ("", "null", "none", "~")


class WrongOptionError(ValueError):
    """An option that does not exist or makes no sense; the text says what to do."""


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, sorted(KEYS), 1, 0.5)
    if near:
        return f"there is no option {key!r}; did you mean {GROUP}.{near[0]}?"
    return f"there is no option {key!r}; known are {', '.join(sorted(KEYS))}."


def value_of(key: str, value: Any) -> Any:
    """Return a value as its key wants it; None is "not given"."""
    if key not in KEYS:
        raise WrongOptionError(_unknown(key))
    text = str(value).strip()
    if value is None or (key != "seed" and text.lower() in _EMPTY):
        return None
    if key == "enable_profiling":
        truth = _switches.truth(text)
        if truth is None:
            raise WrongOptionError(f"{key} is {text!r} but should be true or false.")
        return truth
    if key in _WHOLE:
        try:
            whole = int(text)
        except ValueError:
            whole = -1
        if whole < _WHOLE[key]:
            raise WrongOptionError(
                f"{key} is {text!r} but should be a whole number from {_WHOLE[key]} on."
            )
        return whole
    if key == "learning_rate":
        return _number(key, text, 0.0, 1000.0)
    if key == "val_split":
        return _number(key, text, 0.0, 0.9)
    if key == "trainer" and text not in TRAINERS:
        raise WrongOptionError(f"trainer is {text!r} but should be {' or '.join(TRAINERS)}.")
    return text


def _number(key: str, text: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise WrongOptionError(
            f"{key} is {text!r} but should be a number from {least:g} to {most:g}."
        )
    return number


def parse_override(text: str) -> tuple[str, Any]:
    """Take ``training/ocr.key=value`` apart; "/" and "." mean the same."""
    name, equals, value = text.partition("=")
    parts = name.strip().replace("/", ".").split(".")
    if not equals:
        raise WrongOptionError(f"-o {text!r} has no value; say {GROUP}.key=value.")
    if parts[:2] != GROUP.split("/") or len(parts) != 3:
        known = parts[-1] if parts[-1] in KEYS else ""
        near = known or next(iter(difflib.get_close_matches(parts[-1], sorted(KEYS), 1, 0.5)), "")
        hint = f"; did you mean {GROUP}.{near}?" if near else f"; options begin with {GROUP}."
        raise WrongOptionError(f"there is no option {name.strip()!r}{hint}")
    return parts[2], value_of(parts[2], value)


def _plain_yaml(text: str) -> dict[str, Any]:
    """Read ``key: value`` lines, which is all that this file needs, where PyYAML is absent."""
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split(" #")[0].rstrip() if not line.startswith("#") else ""
        if not content or content == "---":
            continue
        key, colon, value = content.partition(":")
        if not colon or key != key.strip() or (value and not value.startswith(" ")):
            raise ValueError(f"line {number} is no 'key: value', and PyYAML is not installed")
        found[key] = value.strip().strip("'\"")
    return found


def _read_yaml(text: str) -> dict[str, Any]:
    try:
        yaml = import_module("yaml")
    except ImportError:
        return _plain_yaml(text)
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ValueError("it is no mapping")
    return content


def read_file(settings: Settings, path: Path) -> None:
    """Take over what a file says; each mistake in it is one warning, and is ignored."""
    try:
        content = _read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        note_once(f"{path} is not used: {error}.")
        return
    for key, value in content.items():
        if key == "defaults":  # Hydra's list of other files, which is not ours to read
            continue
        try:
            chosen = value_of(str(key), value)
        except WrongOptionError as error:
            note_once(f"{path}: {error} It is ignored.")
            continue
        if chosen is not None:
            setattr(settings, str(key), chosen)


def gather(overrides: list[str], path: Path | None = None) -> Settings:
    """Return the settings: defaults, then the file if there is one, then what was typed."""
    settings = Settings()
    typed = [parse_override(text) for text in overrides]
    if path is not None or FILE.is_file():
        read_file(settings, path or FILE)
    for key, value in typed:
        if key == "enable_profiling":
            settings.typed_profiling = value
        elif value is not None:
            setattr(settings, key, value)
    return settings
