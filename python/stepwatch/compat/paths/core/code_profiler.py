from stepwatch.compat.code_profiler import (
    CodeProfiler,
    ProfilerConfig,
    ProfilerMetrics,
    create_code_profiler,
    profile_function,
)

__all__ = [
    "CodeProfiler",
    "ProfilerConfig",
    "ProfilerMetrics",
    "create_code_profiler",
    "profile_function",
]
