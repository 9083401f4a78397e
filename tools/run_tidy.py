"""Run clang-tidy over the sources that are shipped, on all cores."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHIPPED = ("src", "python/ext", "examples")


def shipped_sources(build: Path) -> list[Path]:
    """Return the compiled files that are shipped, from the compilation database."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {(Path(entry["directory"]) / entry["file"]).resolve() for entry in entries}
    folders = [ROOT / name for name in SHIPPED]
    return sorted(path for path in files if any(folder in path.parents for folder in folders))


def main() -> int:
    """Print what clang-tidy finds; fail if it finds something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    build = parser.parse_args().build

    def tidy(path: Path) -> subprocess.CompletedProcess[str]:
        # GCC's own warning options are unknown to clang, which need not trouble anyone.
        command = ["clang-tidy", "-p", str(build), "--quiet"]
        command += ["--extra-arg=-Wno-unknown-warning-option", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(tidy, shipped_sources(build)):
            if result.returncode != 0:
                failed = True
                print(result.stdout, end="")
    print("tidy:", "failed" if failed else "ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
