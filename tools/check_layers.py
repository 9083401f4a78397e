"""Prove from the ``#include`` lines that no layer looks upward.

    base < store < record < watch
    base < config < record
    base < store < read < analyze < export < history < cli

``record`` and ``read`` do not know each other.  The command, the Python extension and the
examples use public headers only, as any other program would.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# For each folder the layers whose headers it may include, itself among them.
MAY_USE: dict[str, frozenset[str]] = {
    "base": frozenset({"base"}),
    "store": frozenset({"base", "store"}),
    "config": frozenset({"base", "config"}),
    "record": frozenset({"base", "store", "config", "record"}),
    "watch": frozenset({"base", "store", "config", "record", "watch"}),
    "read": frozenset({"base", "store", "read"}),
    "analyze": frozenset({"base", "store", "read", "analyze"}),
    "export": frozenset({"base", "store", "read", "analyze", "export"}),
    "history": frozenset({"base", "store", "read", "analyze", "export", "history"}),
}

# For each public header the layer that implements it.
PUBLIC: dict[str, str] = {
    "error.h": "base",
    "version.h": "base",
    "clock.h": "base",
    "histogram.h": "base",
    "host.h": "base",
    "redact.h": "base",
    "write.h": "base",
    "records.h": "store",
    "store.h": "store",
    "record.h": "record",
    "later.h": "record",
    "config.h": "record",
    "schedule.h": "record",
    "nvml.h": "watch",
    "watch.h": "watch",
    "heap.h": "watch",
    "trace.h": "read",
    "stacks.h": "analyze",
    "training.h": "analyze",
    "gpu.h": "analyze",
    "monitor.h": "analyze",
    "analyze.h": "analyze",
    "findings.h": "analyze",
    "judge.h": "analyze",
    "functions.h": "analyze",
    "io.h": "analyze",
    "memory.h": "analyze",
    "lines.h": "analyze",
    "compare.h": "analyze",
    "history.h": "history",
    "export.h": "export",
    "chart.h": "export",
    "tensorboard.h": "export",
}

# The umbrella includes all of them, so the core itself must not include it.
UMBRELLA = "stepwatch.h"

# Folders that stand outside of the core: public headers, and those beside the file.
CLIENTS = ("src/cli", "python/ext", "examples")

INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*(?P<what>.*?)[ \t]*(?://.*|/\*.*)?$", re.MULTILINE
)
QUOTED = re.compile(r'"(?P<path>[^"]+)"')
ANGLED = re.compile(r"<(?P<path>[^>]+)>")


class Problem(NamedTuple):
    """A line that breaks a rule."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def check_core(layer: str, quoted: bool, target: str) -> str | None:
    """Say what is wrong when ``layer`` includes ``target``, or None."""
    folder, _, name = target.rpartition("/")
    if folder == "stepwatch":
        if quoted:
            return f"public headers are included as <{target}>"
        if name == UMBRELLA:
            return f"<{target}> is for programs; {layer} includes the headers it needs"
        owner = PUBLIC.get(name)
        if owner is None:
            return f"<{target}> has no layer; add it to PUBLIC in tools/check_layers.py"
    elif not folder and quoted:
        owner = layer
    else:
        owner = folder.partition("/")[0]
        if owner == "cli":
            return f"{layer} must not include {target}: cli lies above it"
        if owner not in MAY_USE:
            return f'"{target}" is in no layer' if quoted else None
        if not quoted:
            return f'internal headers are included as "{target}"'
    if owner not in MAY_USE[layer]:
        return f"{layer} must not include {target}, which belongs to {owner}"
    return None


def check_client(client: str, quoted: bool, target: str) -> str | None:
    """Say what is wrong when a folder outside of the core includes ``target``, or None."""
    folder, _, name = target.rpartition("/")
    if folder == "stepwatch":
        if quoted:
            return f"public headers are included as <{target}>"
        if name != UMBRELLA and name not in PUBLIC:
            return f"<{target}> has no layer; add it to PUBLIC in tools/check_layers.py"
        return None
    own = folder in ("", Path(client).name)
    if (quoted and not own) or folder.partition("/")[0] in MAY_USE:
        return f"{client} must not include {target}: it may use public headers only"
    return None


def check_public(header: str, quoted: bool, target: str) -> str | None:
    """Say what is wrong when the public ``header`` includes ``target``, or None."""
    if quoted:
        return f'a public header must not include "{target}": users do not have it'
    folder, _, name = target.rpartition("/")
    if header == UMBRELLA and folder == "stepwatch":
        return None if name in PUBLIC else f"<{target}> has no layer"
    if header == UMBRELLA:
        return None
    if header not in PUBLIC:
        return f"{header} has no layer; add it to PUBLIC in tools/check_layers.py"
    return check_core(PUBLIC[header], quoted, target)


def includes(text: str) -> Iterator[tuple[int, bool, str | None]]:
    """Yield line number, whether quoted, and path (None if it is a macro)."""
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        what = match["what"]
        found = QUOTED.match(what)
        if found:
            yield line, True, found["path"]
            continue
        found = ANGLED.match(what)
        yield line, False, found["path"] if found else None


def sources(folder: Path) -> list[Path]:
    """Return C sources and headers below ``folder``, in a fixed order."""
    return sorted(path for path in folder.rglob("*") if path.suffix in {".c", ".h"})


def check_tree(root: Path) -> list[Problem]:
    """Return every include below ``root`` that breaks a rule."""
    problems = []
    jobs: list[tuple[Path, str, str]] = []
    for folder in sorted(path for path in (root / "src").glob("*") if path.is_dir()):
        name = folder.name
        if f"src/{name}" in CLIENTS or not sources(folder):
            continue
        if name in MAY_USE:
            jobs += [(path, "core", name) for path in sources(folder)]
        else:
            where = folder.relative_to(root)
            problems.append(Problem(where, 0, "is in no layer; add it to tools/check_layers.py"))
    for client in CLIENTS:
        jobs += [(path, "client", client) for path in sources(root / client)]
    jobs += [(path, "public", path.name) for path in sources(root / "include" / "stepwatch")]

    rules = {"core": check_core, "client": check_client, "public": check_public}
    for path, kind, name in jobs:
        where = path.relative_to(root)
        for line, quoted, target in includes(path.read_text(encoding="utf-8")):
            if target is None:
                problems.append(Problem(where, line, "the include is not a plain file name"))
            elif ".." in Path(target).parts:
                problems.append(Problem(where, line, f"{target} climbs out of its folder"))
            else:
                text = rules[kind](name, quoted, target)
                if text:
                    problems.append(Problem(where, line, text))
    return problems


def main() -> int:
    """Check the tree that this file lies in, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    problems = check_tree(parser.parse_args().root)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
