"""Hugging Face: ``Trainer(…, callbacks=[stepwatch.hf.Callback()])``.

Under ``stepwatch run`` nothing is needed; the callback is for programs that are started otherwise.
"""

from __future__ import annotations

from stepwatch.integrations._session import Records, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from transformers.trainer_callback import TrainerCallback as _Base
except ImportError as error:
    _Base = missing("transformers", "hf.Callback", error)

__all__ = ["Callback"]


class Callback(Records, _Base):  # type: ignore[misc,unused-ignore]
    """Record a training of the Trainer, from its beginning to its end.

    >>> callback = stepwatch.hf.Callback(name="finetune")
    >>> Trainer(model, args, train_dataset=data, callbacks=[callback]).train()
    >>> print(callback.run.report())
    """

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Begin to record."""
        self._session.begin()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End."""
        self._session.end()
