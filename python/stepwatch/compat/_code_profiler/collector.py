"""Pauses of the garbage collector within sections."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepwatch.compat._code_profiler.recorder import Recorder


class Collector:
    """How long the garbage collector took while sections were open: an entry of gc.callbacks."""

    def __init__(self, recorder: Recorder) -> None:
        """Take who knows whether a section is open."""
        self._recorder = recorder
        self.seconds = 0.0
        self._begin = 0.0

    def __call__(self, phase: str, _: dict[str, int]) -> None:
        """Take the time between the begin of a collection and its end."""
        if phase == "start":
            self._begin = time.perf_counter() if self._recorder.open_now > 0 else 0.0
        elif self._begin:
            self.seconds += time.perf_counter() - self._begin
            self._begin = 0.0
