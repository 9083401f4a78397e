from stepwatch.compat.ml_ops.profile import (
    cprofile_context,
    profile_function,
    should_profile,
    torch_profiler,
)

__all__ = ["cprofile_context", "profile_function", "should_profile", "torch_profiler"]
