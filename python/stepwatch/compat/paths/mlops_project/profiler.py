from stepwatch.compat.lightning_guide import ProfilerCallback

__all__ = ["ProfilerCallback"]
