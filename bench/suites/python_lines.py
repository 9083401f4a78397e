"""The line profiler beside line_profiler."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.pythons import Promise, Rounds, limited, over, share

TOOLS = {"stepwatch": "`@stepwatch.lines`", "line_profiler": "line_profiler 5.1"}
CASES = {
    **{f"line_{tool}": f"a line of a chosen function, {name}" for tool, name in TOOLS.items()},
    **{f"callee_{tool}": f"two such lines and a call, {name}" for tool, name in TOOLS.items()},
    **{f"other_{tool}": f"a call from elsewhere, {name}" for tool, name in TOOLS.items()},
}
LIMITS = {"3.11": 1 / 2, "3.12": 1 / 4, "3.13": 1 / 4}
LINE = {tool: over(f"line_{tool}", "line_plain") for tool in TOOLS}


def callee_ns(rounds: Rounds) -> list[float]:
    """Return what a function pays that a chosen one calls: without the two lines of the latter."""
    with_call = over("callee_stepwatch", "callee_plain")(rounds)
    without = over("pair_stepwatch", "pair_plain")(rounds)
    return [more - lines for more, lines in zip(with_call, without)]


PROMISES = (
    Promise(
        "line",
        "a line, in lines of line_profiler",
        ("line_stepwatch", "line_line_profiler"),
        share(LINE["stepwatch"], LINE["line_profiler"]),
        LIMITS,
    ),
    # The same function with the profiler on and off; two nanoseconds are below what can be told.
    Promise(
        "other",
        "a call of a function that no chosen one calls pays",
        ("other_stepwatch", "other_off"),
        over("other_stepwatch", "other_off"),
        limited(2.0),
        " ns",
    ),
)
# Published, and no promise: from 3.12 on it is nothing, before the interpreter calls us.
CALLEE = Promise(
    "callee",
    "a call of a function that a chosen one calls pays",
    ("callee_stepwatch", "pair_stepwatch"),
    callee_ns,
    {},
    " ns",
)


def measure(bench: Bench) -> Result:
    """Run the script in three processes of each Python, with the rivals' environment."""
    arguments = [str(bench.times(101, 25))]
    found = pythons.measure(
        bench, "lines", pythons.PROMISED, bench.times(3, 1), arguments, rivals=True
    )
    bases = {
        "line": "line_plain",
        "callee": "callee_plain",
        "pair": "pair_plain",
        "other": "other_plain",
    }
    return pythons.summarize(found, (*PROMISES, CALLEE), bases)


def tables(result: Result) -> list[Table]:
    """What a line and a call cost more, and the ratios."""
    return [
        Table(
            "Line profilers, ns that it costs more: median (p10 … p90)",
            pythons.head(result, "Python"),
            pythons.table_rows(result, CASES),
            pythons.notes(result),
        ),
        Table(
            "What is promised of them",
            ("", *result["versions"], "at most"),
            pythons.promised_rows(result, (*PROMISES, CALLEE), list(result["versions"])),
        ),
    ]


def verdicts(result: Result) -> list[Verdict]:
    """A quarter of line_profiler with sys.monitoring, half of it before."""
    return pythons.verdicts(result, PROMISES)


SUITE = Suite("python_lines", measure, tables, verdicts)
