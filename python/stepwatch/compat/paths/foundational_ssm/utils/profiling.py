from stepwatch.compat.training_profiler import (
    TrainingProfiler,
    get_profiler,
    log_profiling_metrics,
    profile_data_loader,
    profile_jax_loss_fn,
    profile_make_step,
    profile_operation,
    profile_training_loop,
)

__all__ = [
    "TrainingProfiler",
    "get_profiler",
    "log_profiling_metrics",
    "profile_data_loader",
    "profile_jax_loss_fn",
    "profile_make_step",
    "profile_operation",
    "profile_training_loop",
]
