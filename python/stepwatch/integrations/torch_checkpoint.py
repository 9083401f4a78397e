"""Checkpoints: torch.save and torch.load."""

from __future__ import annotations

from stepwatch import _core
from stepwatch.integrations import _dynamo, _patch
from stepwatch.integrations._timed import timed_after_validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install(torch: Any) -> None:
    """Watch saving and loading."""
    around = _core.section("checkpoint", "checkpoint")
    make = timed_after_validation(around, torch)
    for name in ("save", "load"):
        for owner in (torch, torch.serialization):
            if _patch.replace(owner, name, make):
                _dynamo.skip(torch, getattr(owner, name))


def remove() -> None:
    """Nothing is kept here; what was replaced is put back by _patch."""
