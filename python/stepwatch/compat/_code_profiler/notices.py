"""Who is told what a code profiler does."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Notices:
    """Tells a logger of any kind; warnings without one go to stderr, once each."""

    def __init__(self, logger: Any = None) -> None:
        """Take a logger of ``logging``, an object with ``log_info``, or nobody."""
        self._logger = logger
        self.said: list[str] = []
        known = any(callable(getattr(logger, name, None)) for name in ("log_info", "info"))
        if logger is not None and not known:
            raise TypeError(
                f"logger must have info() or log_info(), which {type(logger).__name__} has not"
            )

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return self._logger is not None

    def info(self, text: str) -> None:
        """Say what happens."""
        self._tell(("log_info", "info"), text)

    def warn(self, text: str) -> None:
        """Say what went wrong, once, in one sentence."""
        text = " ".join(text.split())
        if text in self.said:
            return
        self.said.append(text)
        if self._logger is None:
            sys.stderr.write(f"stepwatch: {text}\n")
        else:
            self._tell(("log_warning", "warning", "log_info", "info"), text)

    def _tell(self, names: tuple[str, ...], text: str) -> None:
        if self._logger is None:
            return
        for name in names:
            method = getattr(self._logger, name, None)
            if not callable(method):
                continue
            try:
                method(text)
            except Exception as error:
                # A logger that fails is no reason to end a training; stderr hears warnings then.
                self._logger = None
                self.warn(f"The logger raised {type(error).__name__}: it is told nothing more.")
                if text in self.said:
                    sys.stderr.write(f"stepwatch: {text}\n")
            return
