"""Output as a phase: print, logging, and the libraries that programs report their progress with.

What is put in place is C and has no frame, so that whoever looks for its caller (logging itself,
and handlers that hand on to other libraries) finds it where it was.
"""

from __future__ import annotations

import builtins
import sys

from stepwatch import _core, _imports
from stepwatch.integrations import _notes, _patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Modules, and in them classes with the methods that write; a name with a * stands for many.
_LIBRARIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "logging": ("logging", "Logger", ("_log",)),
    "wandb.sdk.wandb_run": ("wandb", "Run", ("log", "log_artifact", "save", "finish")),
    "torch.utils.tensorboard.writer": ("tensorboard", "SummaryWriter", ("add_*", "flush", "close")),
    "tensorboardX.writer": ("tensorboard", "SummaryWriter", ("add_*", "flush", "close")),
    # What mlflow's own functions call, and the loggers of frameworks too.
    "mlflow.tracking.client": ("mlflow", "MlflowClient", ("log_*", "set_tag")),
    # refresh is what all progress bars draw by, at most ten times a second; not the iteration.
    "tqdm.std": ("tqdm", "tqdm", ("refresh", "close", "write")),
    "accelerate.accelerator": ("accelerate", "Accelerator", ("log",)),
}
# Lightning's packages under both of their names: what its trainer hands to all loggers, whoever
# wrote them, and the logger of its own that no other library stands behind.
for _package, _fabric in (
    ("lightning.pytorch", "lightning.fabric"),
    ("pytorch_lightning", "lightning_fabric"),
):
    _LIBRARIES[f"{_package}.trainer.connectors.logger_connector.logger_connector"] = (
        "loggers",
        "_LoggerConnector",
        ("log_metrics",),
    )
    _LIBRARIES[f"{_fabric}.loggers.csv_logs"] = ("csv", "CSVLogger", ("log_*", "save", "finalize"))

_print: Any = None


def install(_: object = None) -> None:
    """Time what writes, in the libraries too that are imported later."""
    _watch_print()
    for module in _LIBRARIES:
        _imports.watch(module, _watch_library)


def remove() -> None:
    """Forget nothing: what was put in place is taken back by ``_patch``."""


def _watch_library(module: Any) -> None:
    section, name, names = _LIBRARIES[module.__name__]
    owner = getattr(module, name, None)
    if owner is not None:
        _time(owner, names, _core.section(section, "logging"))


def _time(owner: Any, names: tuple[str, ...], section: Any) -> None:
    for pattern in names:
        if pattern.endswith("*"):
            found = [name for name in vars(owner) if name.startswith(pattern[:-1])]
        else:
            found = [pattern]
        for name in found:
            function = vars(owner).get(name)
            if isinstance(function, classmethod):
                if type(function.__func__) is not _core.decorated:
                    _patch.put(owner, name, classmethod(section(function.__func__)))
            elif callable(function) and type(function) is not _core.decorated:
                _patch.put(owner, name, section(function))


def _watch_print() -> None:
    """Put a timed print in the place of Python's own, unless somebody has replaced that."""
    global _print
    original = builtins.print
    if original is _print:
        return
    if "numba" in sys.modules:
        # It knows functions by what they were when it was imported.
        _notes.note_once("print is not timed: numba was imported before")
        return
    try:
        _print = _core.timed_print(original)
    except (TypeError, ValueError):
        return  # It is the program's.
    _patch.put(builtins, "print", _print)
    _imports.watch("torch._dynamo.trace_rules", lambda rules: _tell_dynamo(rules, original))


def _tell_dynamo(rules: Any, original: Any) -> None:
    """Let torch.compile take both for print, whenever it has looked what that is."""
    ids = getattr(rules, "_builtin_function_ids", None)
    add = getattr(ids, "add", None)
    if add is not None:
        for function in (original, _print):
            add(id(function))
            names = getattr(ids, "function_names", None)
            if isinstance(names, dict):
                names.setdefault(id(function), "builtins.print")
    config = getattr(sys.modules.get("torch._dynamo"), "config", None)
    reorderable = getattr(config, "reorderable_logging_functions", None)
    if isinstance(reorderable, set) and original in reorderable:
        reorderable.add(_print)
