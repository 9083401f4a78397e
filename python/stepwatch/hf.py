"""Hugging Face: ``Trainer(…, callbacks=[stepwatch.hf.Callback()])``.

Under ``stepwatch run`` nothing is needed; the callback is for programs that are started otherwise.
"""

from __future__ import annotations

from stepwatch.integrations._session import Session, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import stepwatch

try:
    from transformers.trainer_callback import TrainerCallback as _Base
except ImportError as error:
    _Base = missing("transformers", "hf.Callback", error)

__all__ = ["Callback"]


class Callback(_Base):  # type: ignore[misc,unused-ignore]
    """Record a training of the Trainer, from its beginning to its end.

    >>> callback = stepwatch.hf.Callback(name="finetune")
    >>> Trainer(model, args, train_dataset=data, callbacks=[callback]).train()
    >>> print(callback.run.report())
    """

    def __init__(self, **config: Any) -> None:
        """Take the options of ``stepwatch.start``."""
        super().__init__()
        self._session = Session(config)

    @property
    def run(self) -> stepwatch.Run | None:
        """What was recorded; None before the end, and where another recording goes on."""
        return self._session.run

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Begin to record."""
        self._session.begin()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End."""
        self._session.end()
