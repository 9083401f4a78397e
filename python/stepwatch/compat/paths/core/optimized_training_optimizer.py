from stepwatch.compat.training_optimizer import (
    OptimizedTrainingOptimizer,
    create_optimized_training_optimizer,
)

__all__ = ["OptimizedTrainingOptimizer", "create_optimized_training_optimizer"]
