from stepwatch.compat.omni import ProfilerConfig, profiler_config

__all__ = ["ProfilerConfig", "profiler_config"]
