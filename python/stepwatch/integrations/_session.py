"""A recording that a framework's callback begins and ends, unless there is one already."""

from __future__ import annotations

import stepwatch
from stepwatch import integrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Session:
    """Record from :meth:`begin` to :meth:`end`; within ``stepwatch run`` that one goes on."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Keep the options of ``stepwatch.start`` for later."""
        self._config = config
        self._own = False
        self.run: stepwatch.Run | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        return {"_config": self._config, "_own": False, "run": None}

    @property
    def records(self) -> bool:
        """Whether the recording is the one that began here."""
        return self._own

    def begin(self) -> None:
        """Begin, and watch the frameworks."""
        if not stepwatch.is_recording():
            stepwatch.start(**self._config)
            self._own = stepwatch.is_recording()
        if stepwatch.is_recording():
            integrations.install()

    def end(self) -> stepwatch.Run | None:
        """End what was begun here, and return the Run: None where another recording goes on."""
        if self._own:
            self._own = False
            self.run = stepwatch.stop() or None  # Somebody else may have stopped it.
        return self.run


class Records:
    """First base of a callback that has a session."""

    def __init__(self, **config: Any) -> None:
        """Take the options of ``stepwatch.start``."""
        super().__init__()
        self._session = Session(config)

    @property
    def run(self) -> stepwatch.Run | None:
        """What was recorded; None before the end, and where another recording goes on."""
        return self._session.run


def missing(package: str, name: str, why: object) -> type:
    """Return a class that says on its first use that the package is not to be had."""
    text = f"stepwatch.{name} needs the package {package}, which cannot be imported here: {why}"

    class Missing:
        def __init__(self, *_: Any, **__: Any) -> None:
            raise ModuleNotFoundError(text)

    Missing.__name__ = Missing.__qualname__ = name.rpartition(".")[2]
    return Missing
