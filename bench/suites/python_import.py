"""What ``import stepwatch`` costs, and that it brings no framework."""

from __future__ import annotations

import json

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict, at_most, number, spread

LIMIT_MS = 15.0
FRAMEWORKS = ("torch", "numpy", "jax", "tensorflow", "keras", "lightning", "transformers", "pandas")
MODULES = "import sys; a = set(sys.modules); import stepwatch, json; b = set(sys.modules); "
MODULES += "print(json.dumps(sorted(b - a)))"


def measure(bench: Bench) -> Result:
    """Start each Python with and without the import, in turn."""
    versions: dict[str, Result] = {}
    for version in pythons.PROMISED:
        python = pythons.find(version)
        if python is None:
            versions[version] = {"why": "this Python is not here"}
            continue
        if not pythons.is_built(bench, version):
            versions[version] = {"missing_all": pythons.NOT_BUILT}
            continue
        env = pythons.environment(bench)
        codes = {"bare": "pass", "stepwatch": "import stepwatch"}
        seconds: dict[str, list[float]] = {name: [] for name in codes}
        # The first time compiles; it does not count.
        for turn in range(bench.times(15, 5) + 1):
            for name, code in codes.items():
                took = bench.run([python.path, "-c", code], env).seconds
                if turn > 0:
                    seconds[name].append(1000.0 * took)
        modules = json.loads(bench.run([python.path, "-c", MODULES], env).stdout)
        versions[version] = {
            "ms": {name: spread(figures) for name, figures in seconds.items()},
            "added_ms": min(seconds["stepwatch"]) - min(seconds["bare"]),
            "modules": len(modules),
            "frameworks": sorted({name.partition(".")[0] for name in modules} & set(FRAMEWORKS)),
        }
    return {"versions": versions}


def tables(result: Result) -> list[Table]:
    """Both starts and their difference."""
    rows = []
    for version, one in result["versions"].items():
        if "ms" not in one:
            rows.append((version, *["-"] * 6))
            continue
        cells = [number(one["ms"][name][key]) for name in one["ms"] for key in ("min", "median")]
        rows.append((version, *cells, number(one["added_ms"]), str(one["modules"])))
    head = (
        "Python",
        "bare, least ms",
        "median",
        "import, least ms",
        "median",
        "added, ms",
        "modules",
    )
    return [Table("import stepwatch, 15 starts each, in turn", head, tuple(rows))]


def verdicts(result: Result) -> list[Verdict]:
    """A few milliseconds, and no framework."""
    made = []
    for version, one in result["versions"].items():
        text = f"Python {version}: import stepwatch, over the bare interpreter"
        if "ms" not in one:
            why, ok = pythons.why_not(one, ())
            made.append(Verdict(f"{text}: {why}", ok, final=True))
            continue
        made.append(at_most(text, one["added_ms"], LIMIT_MS, " ms"))
        brought = ", ".join(one["frameworks"])
        text = f"Python {version}: import stepwatch brings no framework"
        made.append(Verdict(f"{text}: {brought}" if brought else text, not brought))
    return made


SUITE = Suite("python_import", measure, tables, verdicts)
