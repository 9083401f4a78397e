"""Hugging Face's Trainer: it takes several batches at once, and trains on one after the other."""

from __future__ import annotations

from stepwatch import _core, section
from stepwatch.integrations import _patch
from stepwatch.integrations._framework import FRAMEWORK, epoch, inside, takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Progress:
    """How far a trainer is: whether the open step has trained on its batch already."""

    trained = False


_progress = _Progress()


def install(module: Any) -> None:
    """Watch the Trainer of ``transformers.trainer``."""
    trainer = module.Trainer
    # Older versions ask for one batch at a time: there the loader's own steps are right.
    if _patch.replace(trainer, "get_batch_samples", _get_batch_samples):
        _patch.replace(trainer, "training_step", _training_step)
    _patch.replace(trainer, "_inner_training_loop", _training)
    _patch.replace(trainer, "_run_epoch", epoch)
    _patch.replace(trainer, "evaluate", inside(section("validation", phase="validation")))
    _patch.replace(trainer, "_save_checkpoint", inside(section("checkpoint", phase="checkpoint")))
    _patch.replace(trainer, "log", inside(section("logging", phase="logging")))


def _get_batch_samples(original: Callable[..., Any]) -> Callable[..., Any]:
    begins = _core.framework_step

    def get_batch_samples(self: Any, epoch_iterator: Any, num_batches: Any, device: Any) -> Any:
        begins(self)
        _progress.trained = False
        result = original(self, epoch_iterator, num_batches, device)
        if not result[0]:
            _core.train_step_end(FRAMEWORK, self, None)
        return result

    def get_batch_samples_with(self: Any, *args: Any, **kwargs: Any) -> Any:
        begins(self)
        _progress.trained = False
        result = original(self, *args, **kwargs)
        if not result[0]:
            _core.train_step_end(FRAMEWORK, self, None)
        return result

    names = ("self", "epoch_iterator", "num_batches", "device")
    return get_batch_samples if takes(original, *names) else get_batch_samples_with


def _training_step(original: Callable[..., Any]) -> Callable[..., Any]:
    begins = _core.framework_step

    def training_step(self: Any, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        if _progress.trained:
            # The next of the batches that were taken at once, for accumulated gradients.
            begins(self)
        _progress.trained = True
        return original(self, model, inputs, num_items_in_batch)

    def training_step_with(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _progress.trained:
            begins(self)
        _progress.trained = True
        return original(self, *args, **kwargs)

    names = ("self", "model", "inputs", "num_items_in_batch")
    known = takes(original, *names) and original.__defaults__ == (None,)
    return training_step if known else training_step_with


def _training(original: Callable[..., Any]) -> Callable[..., Any]:
    def _inner_training_loop(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        finally:
            _core.train_release(self)

    return _inner_training_loop
