"""``python -m stepwatch.compat``: the folder to put on PYTHONPATH for the guides' imports."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    """Print the folder, on one line."""
    parser = argparse.ArgumentParser(
        prog="python -m stepwatch.compat",
        description="Prints the folder that provides the import paths of the profiling guides.",
        epilog="PYTHONPATH=$(python -m stepwatch.compat) python train.py",
    )
    parser.parse_args()
    print(Path(__file__).resolve().parent / "paths")
    return 0


if __name__ == "__main__":
    sys.exit(main())
