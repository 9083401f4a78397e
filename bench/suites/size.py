"""Size of the shared library and of the functions that every section runs through."""

from __future__ import annotations

import shutil
import subprocess

from bench.harness import Bench, Result, Suite, Table, Verdict

HOT = (
    "sw_section_enter",
    "sw_section_leave",
    "sw_section_begin",
    "sw_section_end",
    "sw_counter",
    "sw_mark",
    "sw_step_begin",
    "sw_step_end",
)


def measure(bench: Bench) -> Result:
    """Ask the binary tools."""
    library = bench.library
    stripped = library.stat().st_size
    with bench.scratch() as scratch:
        if shutil.which("strip"):
            copy = scratch / "stripped.so"
            subprocess.run(["strip", "-o", copy, library], check=True)
            stripped = copy.stat().st_size
    functions: dict[str, int] = {}
    if shutil.which("nm"):
        listing = bench.run(["nm", "-S", "--defined-only", library]).stdout
        for line in listing.splitlines():
            words = line.split()
            if len(words) == 4 and words[3].partition(".")[0] in HOT:
                name = words[3].partition(".")[0]
                functions[name] = functions.get(name, 0) + int(words[1], 16)
    return {"file": library.stat().st_size, "stripped": stripped, "functions": functions}


def tables(result: Result) -> list[Table]:
    """All sizes; nothing is promised of them."""
    rows = [
        ("libstepwatch.so", f"{result['file']:,}"),
        ("libstepwatch.so, stripped", f"{result['stripped']:,}"),
    ]
    rows += [(name, f"{size:,}") for name, size in sorted(result["functions"].items())]
    return [Table("Size", ("", "bytes"), tuple(rows))]


def verdicts(result: Result) -> list[Verdict]:
    """Nothing is promised."""
    del result
    return []


SUITE = Suite("size", measure, tables, verdicts)
