import sys

from stepwatch.compat.ml_ops.train import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
