"""Reports of a run, and what tables look like."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from stepwatch._core import Run, Table

_SHOWN_ROWS = 10
_SHOWN_WIDTH = 100


class Report:
    """The verdict on a run: where the time went.

    >>> report = stepwatch.open(path).report()
    >>> report.steps["count"]
    400
    >>> print(report)
    """

    def __init__(self, run: Run) -> None:
        """Take a run that nobody else closes; ``run.report()`` does that."""
        self._run = run
        self._document: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``report.json`` holds, schema stepwatch.report/1.

        >>> run.report().to_dict()["run"]["name"]
        """
        import json

        document: dict[str, Any] = json.loads(self._run._report_json())
        return document

    def _part(self, key: str) -> Any:
        if self._document is None:
            self._document = self.to_dict()
        return self._document.get(key)

    @property
    def steps(self) -> dict[str, Any]:
        """Steps and phases; without steps ``{"recorded": False, "why": …}``.

        >>> print(run.report().steps.get("step_ms"))
        """
        return self._part("steps") or {"recorded": False, "why": "Nothing was recorded."}

    @property
    def sections(self) -> list[dict[str, Any]]:
        """Sections by path.

        >>> [row["path"] for row in run.report().sections]
        """
        return self._part("sections") or []

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What to change, the largest gain first.

        >>> [finding["title"] for finding in run.report().findings]
        """
        return self._part("findings") or []

    @property
    def notes(self) -> list[str]:
        """What was lost or could not be recorded, a sentence each.

        >>> print(*run.report().notes)
        """
        return self._part("notes") or []

    def text(
        self, width: int = 80, *, color: bool = False, unicode: bool = True, top: int = 20
    ) -> str:
        """Return the report as a terminal shows it: 60 to 200 columns, ``top`` rows a table.

        >>> print(run.report().text(width=120, top=20))
        """
        return self._run._report_text(width, color, unicode, top)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the sections as a pandas.DataFrame.

        >>> run.report().to_pandas().sort_values("self_ms")
        """
        return self._run.sections.to_pandas()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, ``.html``, ``.json``, ``.md`` or ``.txt`` by its name.

        >>> run.report().save("report.html")
        """
        name = os.fspath(path)
        suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122
        if suffix == ".json":
            text = self._run._report_json()
        elif suffix == ".txt":
            text = self.text()
        elif suffix in (".html", ".htm"):
            text = self._run._report_html()
        elif suffix == ".md":
            text = self._run._report_markdown()
        else:
            raise ValueError(
                f"a report is saved as .html, .json, .md or .txt, not as {suffix or name!r}"
            )
        meanwhile = f"{name}.{os.getpid()}"  # an old file stays until the new one is whole
        try:
            with open(meanwhile, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(text)
            os.replace(meanwhile, name)  # noqa: PTH105
        except OSError:
            if os.path.exists(meanwhile):  # noqa: PTH110
                os.unlink(meanwhile)  # noqa: PTH108
            raise

    def __str__(self) -> str:
        """Return the report as text of 80 columns."""
        return self.text()

    def __repr__(self) -> str:
        """Name the run and how much there is in it."""
        steps = self.steps.get("count", 0)
        return (
            f"<stepwatch.Report of {self._run.path!r}: {steps} steps, "
            f"{len(self.sections)} sections, {len(self.findings)} findings>"
        )

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, where no looks leak in or out."""
        page = _escape(self._run._report_html())
        return (
            '<iframe sandbox title="stepwatch report" '
            f'style="width:100%;height:40rem;border:0" srcdoc="{page}"></iframe>'
        )


def _escape(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text.replace("'", "&#x27;")


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def table_to_text(table: Table) -> str:
    """Return what repr() of a table says; it never raises for what is wrong with the files."""
    try:
        count, rows = len(table), table[:3]
    except (ValueError, OSError) as error:
        return f"<stepwatch.Table {table.name!r}: {error}>"
    lines = [f"<stepwatch.Table {table.name!r}: {count} rows>", "  " + ", ".join(table.columns)]
    for number, row in enumerate(rows):
        values = ", ".join("-" if value is None else str(value) for value in row.values())
        lines.append(_shorten(f"  {number}: {values}", _SHOWN_WIDTH))
    if count > len(rows):
        lines.append("  …")
    return "\n".join(lines)


def table_to_html(table: Table) -> str:
    """Return the first rows as a table for notebooks; every text of the program is escaped."""
    rows = table[:_SHOWN_ROWS]
    head = "".join(f"<th>{_escape(name)}</th>" for name in table.columns)
    body = []
    for row in rows:
        cells = ("" if value is None else str(value) for value in row.values())
        body.append("".join(f"<td>{_escape(_shorten(cell, _SHOWN_WIDTH))}</td>" for cell in cells))
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    caption = f"{_escape(table.name)}: {len(table)} rows, {len(rows)} shown"
    return (
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def table_to_pandas(table: Table) -> pandas.DataFrame:
    """Return a DataFrame without a detour over rows, and without rounding an integer."""
    try:
        import numpy  # type: ignore[import-not-found,unused-ignore]
        import pandas
    except ImportError as error:
        raise ImportError(
            "to_pandas() needs pandas, which is not installed; to_list() does without"
        ) from error

    def bits(data: bytes, count: int) -> Any:
        return numpy.unpackbits(numpy.frombuffer(data, numpy.uint8), bitorder="little")[:count] != 0

    batches = table._batches()
    columns: dict[str, Any] = {}
    for index, name in enumerate(table.columns):
        _, nullable, kind, _, _ = batches[0][1][index]
        if kind == "list":
            columns[name] = pandas.Series([row[name] for row in table], dtype=object)
            continue
        parts: list[Any] = []
        masks: list[Any] = []
        for count, batch in batches:
            _, _, _, data, known = batch[index]
            if kind == "str":
                parts.append(numpy.array([*data, None], object)[:-1])
            elif kind == "bool":
                parts.append(bits(data, count) if count else numpy.zeros(0, bool))
            else:
                parts.append(numpy.frombuffer(data, kind) if count else numpy.zeros(0, kind))
            masks.append(numpy.zeros(count, bool) if known is None else ~bits(known, count))
        values, mask = numpy.concatenate(parts), numpy.concatenate(masks)
        if kind == "int64" and nullable:
            columns[name] = pandas.arrays.IntegerArray(values, mask)
        elif kind == "float64":
            columns[name] = numpy.where(mask, numpy.nan, values)
        else:
            columns[name] = values
    return pandas.DataFrame(columns, columns=table.columns)
