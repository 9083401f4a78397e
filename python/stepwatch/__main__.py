"""``python -m stepwatch``: how to compile and link C programs with this installation."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from stepwatch import __version__


def main() -> int:
    """Print what was asked for, on one line, quoted for a shell."""
    package = Path(__file__).resolve().parent
    include, lib = package / "include", package / "lib"

    parser = argparse.ArgumentParser(prog="python -m stepwatch", description=__doc__)
    parser.add_argument("--cflags", action="store_true", help="print flags for the compiler")
    parser.add_argument("--libs", action="store_true", help="print flags for the linker")
    parser.add_argument(
        "--pkgconfigdir", action="store_true", help="print the folder for PKG_CONFIG_PATH"
    )
    parser.add_argument("--version", action="version", version=f"stepwatch {__version__}")
    arguments = parser.parse_args()

    words: list[str] = []
    if arguments.cflags:
        words.append(f"-I{include}")
    if arguments.libs:
        words += [f"-L{lib}", "-lstepwatch", f"-Wl,-rpath,{lib}"]
    if arguments.pkgconfigdir:
        words.append(str(lib / "pkgconfig"))
    if not words:
        parser.print_usage(sys.stderr)
        return 2
    if not include.is_dir():
        print(f"{package} has no headers: it is a build folder, not installed", file=sys.stderr)
        return 3
    print(shlex.join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
