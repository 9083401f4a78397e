"""``stepwatch.record``: a recording that is as long as a block."""

from __future__ import annotations

import os

from stepwatch._core import _nothing, _recording, section, start, stop

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from stepwatch._core import Run

_FIRST_PID = os.getpid()


class record:  # noqa: N801
    """Record what runs inside the block, and hand out the Run that it becomes.

    Where something is being recorded already, by ``stepwatch run`` or by ``stepwatch.start``, that
    recording goes on: the block becomes a section of it, named ``name``, and the Run is that of
    the whole.

    >>> with stepwatch.record("train", out="runs/today") as run:
    ...     train()
    >>> print(run.report())
    """

    def __init__(
        self, name: str | None = None, *, out: str | os.PathLike[str] | None = None, **config: Any
    ) -> None:
        """Take the name of the run, its directory, and the options of ``stepwatch.start``."""
        self._name = name
        self._config: dict[str, Any] = {"name": name, "out": out, **config}
        self._open: list[tuple[Run, section | None, int, int]] = []

    def __enter__(self) -> Run:
        """Start, or join what is being recorded."""
        run, number = _recording(_FIRST_PID)
        if run is not None:
            around = section("record" if self._name is None else self._name)
            around.__enter__()
            self._open.append((run, around, number, os.getpid()))
            return run
        start(**self._config)
        run, number = _recording(_FIRST_PID)
        if run is None:
            run = _nothing()
        self._open.append((run, None, number, os.getpid()))
        return run

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop what this block started; an exception passes."""
        run, around, number, pid = self._open.pop()
        if around is not None:
            around.__exit__(exc_type, exc, traceback)
        elif number and pid == os.getpid() and number == _recording(_FIRST_PID)[1]:
            stop()
        # What was looked at inside the block was not all.
        run._renew()
