"""What a compiled function was compiled for, in words, and how two such things differ."""

from __future__ import annotations

import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_SHOWN = 2
_MOST_TEXT = 60


def parameters_of(function: Any) -> list[str]:
    """Return the names of the parameters that can be given by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


class Signature:
    """The arguments of a call, as the compiler sees them."""

    def __init__(
        self, module: Any, parameters: list[str], information: Any, args: Any, kwargs: Any
    ) -> None:
        numbers = getattr(information, "static_argnums", None) or ()
        names = getattr(information, "static_argnames", None) or ()
        # Label -> text; of each argument also its structure.
        self.leaves: dict[str, str] = {}
        self.structures: dict[str, str] = {}
        self.placements: dict[str, str] = {}
        for i, argument in enumerate(args):
            name = parameters[i] if i < len(parameters) else ""
            label = f"argument {i}" + (f" ('{name}')" if name else "")
            is_static = i in numbers or i - len(args) in numbers or name in names
            self._add(module, label, argument, is_static)
        for name, argument in kwargs.items():
            self._add(module, f"argument '{name}'", argument, name in names)

    def _add(self, module: Any, label: str, argument: Any, is_static: bool) -> None:
        if is_static:
            self.leaves[label] = "static " + _short(argument)
            return
        trees = module.tree_util
        flat, structure = trees.tree_flatten_with_path(argument)
        self.structures[label] = str(structure)
        for path, leaf in flat:
            place = label + str(trees.keystr(path))
            self.leaves[place] = _abstract(leaf)
            sharding = getattr(leaf, "sharding", None)
            if sharding is not None:
                committed = getattr(leaf, "committed", getattr(leaf, "_committed", None))
                self.placements[place] = f"{sharding}{' committed' if committed else ''}"

    def difference(self, others: list[Signature]) -> str | None:
        """Say how this differs from the nearest of the others; None: it does not."""
        if not others:
            return "the first call"
        # The newest of those that are equally near.
        differences = min((self._differences(o) for o in reversed(others)), key=len)
        if not differences:
            return None
        more = len(differences) - _MOST_SHOWN
        text = "; ".join(differences[:_MOST_SHOWN])
        return f"{text}; and {more} more" if more > 0 else text

    def _differences(self, other: Signature) -> list[str]:
        found = _compare(other.leaves, self.leaves)
        if not found:
            found = [
                f"{label}: another structure"
                for label, structure in self.structures.items()
                if other.structures.get(label) != structure
            ]
        return found or _compare(other.placements, self.placements)


def _compare(before: dict[str, str], now: dict[str, str]) -> list[str]:
    found = []
    for label, text in now.items():
        old = before.get(label)
        if old != text:
            found.append(f"{label}: {old} → {text}" if old is not None else f"{label}: new, {text}")
    found.extend(f"{label}: not there any more" for label in before if label not in now)
    return found


def _abstract(leaf: Any) -> str:
    shape = getattr(leaf, "shape", None)
    dtype = getattr(leaf, "dtype", None)
    if shape is not None and dtype is not None:
        weak = " (weak type)" if getattr(leaf, "weak_type", False) else ""
        return f"{dtype}[{','.join(str(n) for n in shape)}]{weak}"
    if isinstance(leaf, (bool, int, float, complex)):
        return f"Python {type(leaf).__name__}"
    return _short(leaf)


def _short(value: Any) -> str:
    """Text of a value that is not long and tells no addresses."""
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    text = " ".join(repr(value).split())
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
