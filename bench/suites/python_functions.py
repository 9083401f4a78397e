"""The function profiler beside cProfile."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.pythons import Promise, over, share

WORKS = {
    "fib": "fib(14)",
    "methods": "methods that call methods",
    "c_calls": "C functions and methods",
}
CASES = {
    f"{work}_{tool}": f"{text}, {name}"
    for work, text in WORKS.items()
    for tool, name in (
        ("stepwatch", "`stepwatch.functions()`"),
        ("cprofile", "cProfile"),
        ("hooks", "the least: hooks that read the clock"),
    )
}
# From 3.12 on there is sys.monitoring; before, the interpreter's part is the same for both.
LIMITS = {"3.9": 1.0, "3.10": 1.0, "3.11": 1.0, "3.12": 0.5, "3.13": 0.5}

PROMISES = tuple(
    Promise(
        work,
        f"a call in {text}, in calls under cProfile",
        (f"{work}_stepwatch", f"{work}_cprofile"),
        share(
            over(f"{work}_stepwatch", f"{work}_plain"), over(f"{work}_cprofile", f"{work}_plain")
        ),
        LIMITS,
        least=share(
            over(f"{work}_hooks", f"{work}_plain"), over(f"{work}_cprofile", f"{work}_plain")
        ),
        least_needs=(f"{work}_hooks",),
    )
    for work, text in WORKS.items()
) + tuple(
    # Where every call is told of, no profiler can be cheaper than being told.
    Promise(
        f"{work}_hooks",
        f"a call in {text}, in hooks that only read the clock",
        (f"{work}_stepwatch", f"{work}_hooks"),
        share(over(f"{work}_stepwatch", f"{work}_plain"), over(f"{work}_hooks", f"{work}_plain")),
        {"3.12": 1.6, "3.13": 1.6},
    )
    for work, text in WORKS.items()
)


def measure(bench: Bench) -> Result:
    """Run the script in three processes of each Python."""
    arguments = [str(bench.times(101, 25))]
    found = pythons.measure(bench, "functions", pythons.ALL, bench.times(3, 1), arguments)
    bases = {work: f"{work}_plain" for work in WORKS}
    return pythons.summarize(found, PROMISES, bases)


def tables(result: Result) -> list[Table]:
    """What a call costs more, and the ratios."""
    return [
        Table(
            "Function profilers, ns that a call costs more: median (p10 … p90)",
            pythons.head(result, "Python"),
            pythons.table_rows(result, CASES),
            pythons.notes(result),
        ),
        Table(
            "What is promised of them",
            ("", *pythons.ALL, "at most"),
            pythons.promised_rows(result, PROMISES, pythons.ALL),
        ),
    ]


def verdicts(result: Result) -> list[Verdict]:
    """Half of cProfile with sys.monitoring, and less than cProfile before."""
    return pythons.verdicts(result, PROMISES)


SUITE = Suite("python_functions", measure, tables, verdicts)
