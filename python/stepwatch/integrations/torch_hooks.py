"""All that is done for torch. One adapter that fails does not take the others with it."""

from __future__ import annotations

from importlib import import_module

from stepwatch import _core, _imports
from stepwatch.integrations import _dynamo, _notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ADAPTERS = (
    "torch_modules",
    "torch_autograd",
    "torch_optim",
    "torch_checkpoint",
    "torch_data",
    "torch_transfer",
    "torch_compile_watch",
    "torch_distributed",
    "torch_operators",
)

_begun: list[Any] = []


def is_installed() -> bool:
    """Tell whether there are hooks."""
    return bool(_begun)


def install(torch: Any) -> None:
    """Install every adapter of torch that there is, once."""
    if _begun:
        return
    try:
        _dynamo.settle()
    except Exception as error:
        _notes.note_once(f"torch.compile may see hooks: {type(error).__name__}: {error}")
    failed: dict[str, str] = {}
    for name in _ADAPTERS:
        try:
            adapter = import_module(f"{__package__}.{name}")
            adapter.install(torch)
            _begun.append(adapter)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    if failed:  # A torch that is half there fails them all: one sentence.
        first, why = next(iter(failed.items()))
        names = ", ".join(name.partition("_")[2] for name in failed)
        _notes.note_once(f"this torch is not watched in full ({names}): {first}: {why}")
    # Those of other frameworks may have come by the time something is compiled.
    _imports.watch("torch._dynamo", lambda _: _dynamo.skip_all(torch))
    _core.fact("torch", str(getattr(torch, "__version__", "?")))


def remove() -> None:
    """Have every adapter forget what it knows."""
    _core.rests_forget()
    while _begun:
        adapter = _begun.pop()
        try:
            adapter.remove()
        except Exception as error:
            _notes.note_once(f"{adapter.__name__} stays: {type(error).__name__}: {error}")
