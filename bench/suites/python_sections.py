"""Sections and decorators in Python beside what people write instead."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.pythons import Promise, limited, over, share

ON = {
    "kept": "`with s`, a section object that is kept",
    "named": '`with stepwatch.section("a")`',
    "class": "class with `perf_counter`, an object that is kept",
    "class_new": "the same, a new object each time",
    "contextmanager": "`@contextmanager` with `perf_counter`",
    "record_function": "torch `record_function`, profiler off",
    "clock": "the least: the same trick, two clock reads, nothing else",
    "clock_named": "the same, found by a name that is not looked at",
    "bare_call": "call of a function",
    "decorated": "call of a function with `@stepwatch.profile`",
}
OFF = {
    "off_kept": "`with s`",
    "off_named": '`with stepwatch.section("a")`',
    "off_empty_c": "empty context manager in C",
    "off_bare_call": "call of a function",
    "off_decorated": "call of a function with `@stepwatch.profile`",
}

KEPT, NAMED = over("kept", "empty"), over("named", "empty")
CLASS = over("class", "empty")
CALL, OFF_CALL = over("bare_call", "empty"), over("off_bare_call", "off_empty")

# No section can cost less than reading the clock twice where it reads it. What it costs beyond that
# is some ten nanoseconds anywhere: the cheaper the clock, the more of it that is.
CLOCK, CLOCK_NAMED = over("clock", "empty"), over("clock_named", "empty")
CONTEXT = over("contextmanager", "empty")
RECORD_FUNCTION = over("record_function", "empty")

PROMISES = (
    Promise(
        "kept_clock",
        "`with s`, in managers that only read the clock twice",
        ("kept", "clock"),
        share(KEPT, CLOCK),
        limited(1.65),
    ),
    Promise(
        "named_clock",
        '`with stepwatch.section("a")`, in managers that only read the clock twice',
        ("named", "clock_named"),
        share(NAMED, CLOCK_NAMED),
        limited(1.65),
    ),
    Promise(
        "kept_class",
        "`with s`, in perf_counter classes",
        ("kept", "class"),
        share(KEPT, CLASS),
        limited(1 / 5),
        least=share(CLOCK, CLASS),
        least_needs=("clock",),
    ),
    Promise(
        "kept_contextmanager",
        "`with s`, in @contextmanager timers",
        ("kept", "contextmanager"),
        share(KEPT, CONTEXT),
        limited(1 / 20),
        least=share(CLOCK, CONTEXT),
        least_needs=("clock",),
    ),
    Promise(
        "named_class",
        '`with stepwatch.section("a")`, in perf_counter classes',
        ("named", "class"),
        share(NAMED, CLASS),
        limited(1 / 3.5),
        least=share(CLOCK_NAMED, CLASS),
        least_needs=("clock_named",),
    ),
    Promise(
        "named_record_function",
        '`with stepwatch.section("a")`, in torch record_functions',
        ("named", "record_function"),
        share(NAMED, RECORD_FUNCTION),
        limited(1 / 80),
        least=share(CLOCK_NAMED, RECORD_FUNCTION),
        least_needs=("clock_named",),
    ),
    Promise(
        "off_kept",
        "`with s` that is off, in empty C context managers",
        ("off_kept", "off_empty_c"),
        share(over("off_kept", "off_empty"), over("off_empty_c", "off_empty")),
        limited(1.0),
    ),
    Promise(
        "decorated",
        "what a decorated call adds, in perf_counter classes",
        ("decorated", "class"),
        share(over("decorated", "bare_call"), CLASS),
        limited(1 / 5),
    ),
    Promise(
        "off_decorated",
        "what a decorated call adds when it is off",
        ("off_decorated",),
        over("off_decorated", "off_bare_call"),
        limited(25.0),
        " ns",
    ),
    Promise(
        "off_decorated_calls",
        "a decorated call that is off, in bare calls",
        ("off_decorated",),
        share(over("off_decorated", "off_empty"), OFF_CALL),
        limited(1.3, "3.9", "3.10"),
    ),
)


def measure(bench: Bench) -> Result:
    """Run the script in three processes of each Python."""
    arguments = [str(bench.times(201, 51))]
    found = pythons.measure(bench, "sections", pythons.ALL, bench.times(3, 1), arguments)
    return pythons.summarize(found, PROMISES, {"off_": "off_empty", "": "empty"})


def tables(result: Result) -> list[Table]:
    """On, off, and the promises."""
    title = "Sections in Python, ns over an empty loop: median (p10 … p90)"
    notes = pythons.notes(result)
    return [
        Table(
            f"{title}, recording",
            pythons.head(result, "Python"),
            pythons.table_rows(result, ON),
            notes,
        ),
        Table(
            f"{title}, not recording",
            pythons.head(result, "Python"),
            pythons.table_rows(result, OFF),
        ),
        Table(
            "What is promised of them",
            ("", *pythons.ALL, "at most"),
            pythons.promised_rows(result, PROMISES, pythons.ALL),
        ),
    ]


def verdicts(result: Result) -> list[Verdict]:
    """Five and twenty times cheaper."""
    return pythons.verdicts(result, PROMISES)


SUITE = Suite("python_sections", measure, tables, verdicts)
