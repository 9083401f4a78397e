import sys

from stepwatch.compat.ml_ops.data import export_yolo_format, main

__all__ = ["export_yolo_format", "main"]

if __name__ == "__main__":
    sys.exit(main())
