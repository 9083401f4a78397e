"""What changed between runs."""

from __future__ import annotations

import os

from stepwatch._core import _compare
from stepwatch._report import Report, _escape

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any, Union

    from stepwatch._core import Run, _Comparison

    Comparable = Union[Run, Report, str, os.PathLike[str]]


class Comparison:
    """Runs against a baseline: what changed, and whether the data can show it.

    The attributes are those of the first run that was compared; ``runs`` has all of them.

    >>> change = stepwatch.compare("runs/before", "runs/after")
    >>> change.verdict, change.speedup, change.low, change.high
    ('faster', 1.31, 1.28, 1.34)
    >>> print(change)
    """

    def __init__(self, comparison: _Comparison) -> None:
        """Take what the library found; ``stepwatch.compare`` does that."""
        self._comparison = comparison
        self._document: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the document of ``stepwatch compare --json``, schema stepwatch.compare/1."""
        import json

        document: dict[str, Any] = json.loads(self._comparison.json())
        return document

    def _known(self) -> dict[str, Any]:
        if self._document is None:
            self._document = self.to_dict()
        return self._document

    def _first(self, key: str) -> Any:
        return self._known()["runs"][0][key]

    @property
    def baseline(self) -> dict[str, Any]:
        """What the others are compared with."""
        baseline: dict[str, Any] = self._known()["baseline"]
        return baseline

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Every run that was compared with the baseline."""
        runs: list[dict[str, Any]] = self._known()["runs"]
        return runs

    @property
    def regression(self) -> bool:
        """Whether a run is slower by more than the threshold."""
        return bool(self._known()["regression"])

    @property
    def verdict(self) -> str:
        """Say ``faster``, ``slower``, ``same`` or ``incomparable``."""
        return str(self._first("verdict"))

    @property
    def sentence(self) -> str:
        """The answer in one sentence, without its full stop."""
        return str(self._first("sentence"))

    @property
    def speedup(self) -> float | None:
        """The time of a step before / after; 1.31 is 31 % more steps per second."""
        value: float | None = self._first("speedup")
        return value

    @property
    def low(self) -> float | None:
        """Lower end of the interval of 95 % around the speedup; None: nothing was tested."""
        value: float | None = self._first("low")
        return value

    @property
    def high(self) -> float | None:
        """Upper end of that interval."""
        value: float | None = self._first("high")
        return value

    @property
    def median_speedup(self) -> float | None:
        """The median step before / after."""
        value: float | None = self._first("median_speedup")
        return value

    @property
    def phases(self) -> list[dict[str, Any]]:
        """Phases of a step: those that changed first, the largest difference in front."""
        parts: list[dict[str, Any]] = self._first("phases")
        return parts

    @property
    def modules(self) -> list[dict[str, Any]]:
        """Modules, in the same order."""
        parts: list[dict[str, Any]] = self._first("modules")
        return parts

    @property
    def sections(self) -> list[dict[str, Any]]:
        """Sections, in the same order."""
        parts: list[dict[str, Any]] = self._first("sections")
        return parts

    @property
    def functions(self) -> list[dict[str, Any]]:
        """Functions, where profiles were compared."""
        parts: list[dict[str, Any]] = self._first("functions")
        return parts

    @property
    def notes(self) -> list[str]:
        """What to know before believing it, a sentence each."""
        notes: list[str] = self._first("notes")
        return notes

    def text(
        self, width: int = 80, *, color: bool = False, unicode: bool = True, top: int = 20
    ) -> str:
        """Return it as a terminal shows it: 60 to 200 columns, ``top`` rows a table."""
        return self._comparison.text(width, color, unicode, top)

    def __str__(self) -> str:
        """Return it as text of 80 columns."""
        return self.text()

    def __repr__(self) -> str:
        """Return it as text of 80 columns."""
        return self.text().rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{_escape(self.text(120))}</pre>"


def compare(a: Comparable, b: Comparable, *more: Comparable, threshold: float = 5.0) -> Comparison:
    """Say what changed from ``a``, the baseline, to ``b`` and each further run.

    They are runs, their reports, or paths: run directories, native files, ``report.json``; or else
    all of them function profiles (``.stats``). A run that is slower by more than ``threshold``
    percent is a regression.

    >>> stepwatch.compare("runs/before", "runs/after").verdict
    'faster'
    """
    items = tuple(item._run if isinstance(item, Report) else item for item in (a, b, *more))
    return Comparison(_compare(items, threshold))
