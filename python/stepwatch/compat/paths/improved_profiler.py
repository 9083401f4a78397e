from stepwatch.compat.omni import (
    auto_profile_blocks,
    profile_function,
    profile_line_by_line,
    profile_methods,
    profiler,
)

__all__ = [
    "auto_profile_blocks",
    "profile_function",
    "profile_line_by_line",
    "profile_methods",
    "profiler",
]
