"""Keras 3: ``model.fit(…, callbacks=[stepwatch.keras.Callback()])``.

Under ``stepwatch run`` nothing is needed; the callback is for programs that are started otherwise.
"""

from __future__ import annotations

from stepwatch.integrations._session import Records, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from keras.callbacks import Callback as _Base
except ImportError as error:
    _Base = missing("keras", "keras.Callback", error)

__all__ = ["Callback"]


class Callback(Records, _Base):  # type: ignore[misc,unused-ignore]
    """Record a fit, from its beginning to its end.

    >>> callback = stepwatch.keras.Callback(name="mnist")
    >>> model.fit(x, y, callbacks=[callback])
    >>> print(callback.run.report())
    """

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Begin to record."""
        self._session.begin()

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """End."""
        self._session.end()
