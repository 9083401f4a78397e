"""Fill the tables of docs/OVERHEAD.md from saved figures.

A table stands between the comments ``<!-- bench:SUITE -->`` and ``<!-- /bench -->``; what is
between them is replaced. ``<!-- bench:machine -->`` gets the description of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.harness import ROOT, BenchError, Result
from bench.suites import SUITES

PAGE = ROOT / "docs" / "OVERHEAD.md"
PLACE = re.compile(r"(<!-- bench:(?P<name>[a-z_]+) -->\n).*?(<!-- /bench -->)", re.DOTALL)


def machine_text(result: Result) -> str:
    """Describe the machine in one sentence."""
    machine = result["machine"]
    return (
        f"Measured {machine['date']} on {machine['cores']} cores of an {machine['processor']} "
        f"({machine['arch']}, Linux {machine['kernel']}, {machine['compiler']})."
    )


def content(name: str, results: Mapping[str, Result]) -> str | None:
    """Return what belongs at a place, or None where nothing is known."""
    if name == "machine":
        return machine_text(next(iter(results.values()))) if results else None
    suite = next((suite for suite in SUITES if suite.name == name), None)
    if suite is None:
        raise BenchError(f"{PAGE.name} has a place for {name}, which is no suite")
    if name not in results:
        return None
    return "\n\n".join(table.markdown() for table in suite.tables(results[name]))


def fill(text: str, results: Mapping[str, Result]) -> str:
    """Return the page with its tables filled; places of suites without figures stay."""

    def replaced(match: re.Match[str]) -> str:
        made = content(match["name"], results)
        return match[0] if made is None else f"{match[1]}\n{made}\n\n{match[3]}"

    return PLACE.sub(replaced, text)


def update(results: Mapping[str, Result]) -> None:
    """Rewrite the page."""
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
