"""``python -m stepwatch``: the command line, and how to compile and link C programs."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from stepwatch import __version__


def _command() -> str | None:
    """Return the command that belongs to this package, or the first one of PATH."""
    package = Path(__file__).absolute().parent
    places = [package.parents[1] / "src" / "cli"]  # of a build folder
    # Of an environment: PREFIX/lib/python3.12/site-packages/stepwatch has PREFIX/bin.
    places += [folder / "bin" for folder in list(package.parents)[:4]]
    places.append(Path(sysconfig.get_path("scripts")))
    for place in places:
        program = place / "stepwatch"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    return shutil.which("stepwatch")


def _become(arguments: list[str]) -> int:
    """Become the command, which runs programs with this Python unless another one was named."""
    program = _command()
    if not program:
        print("python -m stepwatch: the command is not installed with the package", file=sys.stderr)
        return 3
    if sys.executable:
        os.environ.setdefault("STEPWATCH_PYTHON", sys.executable)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, ["stepwatch", *arguments])
    except OSError as error:
        print(f"python -m stepwatch: {program} cannot be run: {error.strerror}", file=sys.stderr)
        return 3


def main() -> int:
    """Hand commands over; print what else was asked for, on one line, quoted for a shell."""
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        return _become(sys.argv[1:])
    package = Path(__file__).resolve().parent
    include, lib = package / "include", package / "lib"

    parser = argparse.ArgumentParser(
        prog="python -m stepwatch",
        usage="python -m stepwatch COMMAND [options] …\n"
        "       python -m stepwatch [-h] [--cflags] [--libs] [--pkgconfigdir] [--version]",
        description="COMMAND is one of those of the command stepwatch, such as run or report, "
        "with this Python; the options say how to compile and link C programs.",
    )
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
