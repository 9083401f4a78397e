"""Lightning: its training loop says what a step is, its evaluation loop what is validation.

Everything inside a step comes from torch's own hooks; here are only the boundaries that torch
cannot see. ``lightning.pytorch`` and ``pytorch_lightning`` are the same to us.
"""

from __future__ import annotations

import sys

from stepwatch import _core, section
from stepwatch.integrations import _notes, _patch
from stepwatch.integrations._framework import FRAMEWORK, epoch, inside, takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def install(module: Any) -> None:
    """Watch the loops of this Lightning."""
    root = module.__name__
    epoch_loop = _part(root, "loops.training_epoch_loop", "_TrainingEpochLoop")
    fit_loop = _part(root, "loops.fit_loop", "_FitLoop")
    evaluation_loop = _part(root, "loops.evaluation_loop", "_EvaluationLoop")
    trainer = getattr(module, "Trainer", None)
    found = epoch_loop is not None and _patch.replace(epoch_loop, "advance", _advance)
    if not found:
        # The loader's own steps are nearly as good.
        _notes.note_once(f"this version of {root} has another training loop than is known here")
    else:
        _patch.replace(epoch_loop, "run", epoch)
    if found and fit_loop is not None:
        _patch.replace(fit_loop, "run", _fit)
    if evaluation_loop is not None:
        _patch.replace(evaluation_loop, "run", _evaluation)
    if trainer is not None:
        checkpoint = section("checkpoint", phase="checkpoint")
        _patch.replace(trainer, "save_checkpoint", inside(checkpoint))


def _part(root: str, module: str, name: str) -> Any:
    return getattr(sys.modules.get(f"{root}.{module}"), name, None)


def _advance(original: Callable[..., Any]) -> Callable[..., Any]:
    begins = _core.framework_step

    def advance(self: Any, data_fetcher: Any) -> Any:
        begins(self)
        try:
            return original(self, data_fetcher)
        except StopIteration:
            _core.train_step_end(FRAMEWORK, self, None)
            raise

    def advance_with(self: Any, *args: Any, **kwargs: Any) -> Any:
        begins(self)
        try:
            return original(self, *args, **kwargs)
        except StopIteration:
            _core.train_step_end(FRAMEWORK, self, None)
            raise

    return advance if takes(original, "self", "data_fetcher") else advance_with


def _fit(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        finally:
            _core.train_release(getattr(self, "epoch_loop", None))

    return run


def _evaluation(original: Callable[..., Any]) -> Callable[..., Any]:
    validation = section("validation", phase="validation")

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        _end_of_epoch(self)
        with validation:
            return original(self, *args, **kwargs)

    return run


def _end_of_epoch(loop: Any) -> None:
    """End the last step of an epoch: what follows is the evaluation and not part of it."""
    try:
        epoch_loop = loop.trainer.fit_loop.epoch_loop
        if epoch_loop.batch_progress.is_last_batch:
            _core.train_step_end(FRAMEWORK, epoch_loop, True)
    except AttributeError:
        pass  # There is no fit.
