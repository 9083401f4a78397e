"""Prove that every source file is in a meson.build: what is not listed is not tested.

Meson wants its sources listed, and a test that nobody listed passes for ever.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

# Folder, pattern of its files, and what of the name its meson.build lists.  A folder
# that has no meson.build of its own is described by the one named last.
RULES: tuple[tuple[str, str, str], ...] = (
    ("include/stepwatch", "*.h", "{name}"),
    ("src/base", "*.c", "{name}"),
    ("src/store", "*.c", "{name}"),
    ("src/record", "*.c", "{name}"),
    ("src/watch", "*.c", "{name}"),
    ("src/read", "*.c", "{name}"),
    ("src/analyze", "*.c", "{name}"),
    ("src/export", "*.c", "{name}"),
    ("src/cli", "*.c", "{name}"),
    ("python/ext", "*.c", "{name}"),
    ("python/stepwatch", "*.py", "{name}"),
    ("python/stepwatch", "*.pyi", "{name}"),
    ("python/stepwatch/_bootstrap", "*.py", "{name}"),
    ("python/stepwatch/_sweeps", "*.py", "{name}"),
    ("tests/unit", "test_*.c", "{stem}"),
    ("tests/crash", "test_*.c", "{stem}"),
    ("tests/fuzz", "fuzz_*.c", "{stem}"),
    ("examples", "*.c", "{stem}"),
    ("bench", "*.c", "{stem}"),
    ("docs/man", "*.1", "{name}"),
)


def listed(text: str) -> set[str]:
    """Return the strings of a meson.build, apart from those in comments."""
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())
    return set(re.findall(r"'([^'\n]*)'", code))


def check_tree(root: Path) -> list[str]:
    """Return a sentence for every file below ``root`` that no meson.build lists."""
    problems = []
    for folder, pattern, form in RULES:
        for path in sorted((root / folder).glob(pattern)):
            build = path.parent / "meson.build"
            strings = listed(build.read_text(encoding="utf-8")) if build.exists() else set()
            short = path.stem.partition("_")[2] or path.stem
            names = {path.name, form.format(name=path.name, stem=path.stem)}
            if "{stem}" in form:
                names.add(short)
            if not names & strings:
                where = path.relative_to(root)
                problems.append(f"{where}: not listed in {build.relative_to(root)}")
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
