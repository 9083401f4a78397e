"""Two threads record twice as much as one, as far as the machine lets two threads be twice one."""

from __future__ import annotations

from bench.harness import Bench, Result, Suite, Table, Verdict, at_least, number, ratios, spread

NAMES = {
    "private_1": "by hand, one thread",
    "private_2": "by hand, two threads",
    "section_1": "sections, one thread",
    "section_2": "sections, two threads",
}


def measure(bench: Bench) -> Result:
    """Join the rounds of several processes."""
    rates: dict[str, list[float]] = {}
    for _ in range(bench.times(5, 1)):
        with bench.scratch() as scratch:
            program = bench.program("threads")
            printed = bench.run_json([program, scratch / "run", str(bench.times(15, 5))])
        if "rates" not in printed:
            return {"skipped": f"{printed['cores']} core only"}
        for name, figures in printed["rates"].items():
            rates.setdefault(name, []).extend(figures)
    ceiling = [two / one for one, two in zip(rates["private_1"], rates["private_2"])]
    ours = [two / one for one, two in zip(rates["section_1"], rates["section_2"])]
    return {
        "per_us": {name: spread(figures) for name, figures in rates.items()},
        "speedup": spread(ours),
        "ceiling": spread(ceiling),
        "of_ceiling": ratios(ours, ceiling),
    }


def tables(result: Result) -> list[Table]:
    """Rates and their ratios."""
    head = ("a microsecond", "median", "min", "p10", "p90")
    if "skipped" in result:
        return [Table("Two threads", head, (), (f"Skipped: {result['skipped']}.",))]
    rows = [(name, result["per_us"][key]) for key, name in NAMES.items()]
    rows += [
        ("speed-up by hand, nothing shared", result["ceiling"]),
        ("speed-up of sections", result["speedup"]),
    ]
    keys = ("median", "min", "p10", "p90")
    made = tuple((name, *(number(figures[key]) for key in keys)) for name, figures in rows)
    return [Table("Two threads, ring", head, made)]


def verdicts(result: Result) -> list[Verdict]:
    """At least 95 % of what two threads reach that share nothing."""
    if "skipped" in result:
        return [Verdict(f"two threads: {result['skipped']}", None)]
    ceiling = min(2.0, result["ceiling"]["median"])
    if ceiling < 1.5:
        busy = f"two threads that share nothing are {number(ceiling)} times one"
        return [Verdict(f"two threads: no two cores are free ({busy})", None)]
    text = f"speed-up of two threads (this machine allows {number(ceiling)})"
    return [at_least(text, result["speedup"]["median"], 0.95 * ceiling)]


SUITE = Suite("threads", measure, tables, verdicts)
