import sys

from stepwatch.compat.ml_ops.train import main, train_ocr

__all__ = ["main", "train_ocr"]

if __name__ == "__main__":
    sys.exit(main())
