"""Run the examples with and without recording and compare; check the snippets of docs/c-api.md.

python examples/check_examples.py run PROGRAM [ARGS…]
python examples/check_examples.py snippets
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "c-api.md"
# A snippet names its file: <!-- from examples/minimal.c -->
SNIPPET = re.compile(r"<!-- from (?P<file>\S+) -->\n```c\n(?P<code>.*?)```", re.DOTALL)


def run(command: list[str], recorded: bool) -> tuple[int, str, int]:
    """Return exit code, output and the number of trace files that were left."""
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("STEPWATCH_")}
        env["STEPWATCH_OUT"] = str(Path(folder) / "run")
        env["STEPWATCH_ENABLED"] = "1" if recorded else "0"
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout, len(list(Path(folder).rglob("*.stepwatch")))


def compare(command: list[str]) -> list[str]:
    """Return what is wrong with a program under the recorder."""
    code, output, traces = run(command, recorded=True)
    plain_code, plain_output, plain_traces = run(command, recorded=False)
    problems = []
    if code != 0 or plain_code != 0:
        problems.append(f"exit code {code} recorded, {plain_code} not recorded")
    # The tour prints what it recorded, so it has nothing to print when it did not.
    if plain_output and output != plain_output:
        problems.append("recording changed what the program printed")
    if traces == 0 or plain_traces != 0:
        problems.append(f"{traces} traces when recorded, {plain_traces} when not")
    return problems


def stale_snippets() -> list[str]:
    """Return a sentence for every snippet that is not in the file it names."""
    problems = []
    found = list(SNIPPET.finditer(PAGE.read_text(encoding="utf-8")))
    for match in found:
        source = (ROOT / match["file"]).read_text(encoding="utf-8")
        code = textwrap.dedent(match["code"]).strip("\n")
        lines = source.splitlines()
        wanted = code.splitlines()
        # The page shows a part of a function without the function's indentation.
        here = any(
            textwrap.dedent("\n".join(lines[i : i + len(wanted)])) == code
            for i in range(len(lines) - len(wanted) + 1)
        )
        if not here:
            problems.append(f"{PAGE.name}: this is not in {match['file']}:\n{code}")
    if not found:
        problems.append(f"{PAGE.name} has no snippets")
    return problems


def main() -> int:
    """Do what the first argument says."""
    words = sys.argv[1:]
    if words[:1] == ["run"] and len(words) > 1:
        problems = compare(words[1:])
    elif words == ["snippets"]:
        problems = stale_snippets()
    else:
        print((__doc__ or "").split("\n\n")[1].rstrip(), file=sys.stderr)
        return 2
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
