from stepwatch.compat.code_profiler import (
    CodeProfiler,
    ProfilerConfig,
    ProfilerMetrics,
    compare,
    create_code_profiler,
    profile_function,
)

__all__ = [
    "CodeProfiler",
    "ProfilerConfig",
    "ProfilerMetrics",
    "compare",
    "create_code_profiler",
    "profile_function",
]
