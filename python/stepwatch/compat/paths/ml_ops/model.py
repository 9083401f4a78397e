from stepwatch.compat.ml_ops.model import PlateOCR

__all__ = ["PlateOCR"]
