"""The training optimizer of "Code Profiling System": trains a model, and profiles itself doing it.

>>> optimizer = create_optimized_training_optimizer(model, train_loader, val_loader, max_epochs=3)
>>> results = await optimizer.train()
>>> report = optimizer.code_profiler.generate_profiling_report()
>>> optimizer.cleanup()
"""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path

import stepwatch
from stepwatch._sweeps import _state
from stepwatch.compat import _switches
from stepwatch.compat._code_profiler import files
from stepwatch.compat._code_profiler.config import FIELDS, ProfilerConfig
from stepwatch.compat._code_profiler.loop import Loop
from stepwatch.compat.code_profiler import CodeProfiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What is not given; programs may change it for all optimizers that follow.
DEFAULTS: dict[str, Any] = {
    "max_epochs": 100,
    "learning_rate": 0.001,
    "weight_decay": 1e-5,
    "gradient_clip": 1.0,
    "early_stopping_patience": 10,
    "checkpoint_dir": "checkpoints",
    "save_interval": 5,
}
PERFORMANCE = {"mixed_precision": False, "gradient_accumulation_steps": 1}
MULTI_GPU = {"strategy": "none"}
STRATEGIES = ("none", "data_parallel", "ddp")


class OptimizedTrainingOptimizer:
    """Trains with early stopping, checkpoints and profiling; the profiler is ``code_profiler``."""

    def __init__(
        self,
        model: Any,
        train_loader: Any,
        val_loader: Any = None,
        experiment_name: str = "optimized_training",
        *,
        debug_mode: bool = False,
        enable_pytorch_debugging: bool = False,
        performance_config: dict[str, Any] | None = None,
        multi_gpu_config: dict[str, Any] | None = None,
        optimizer: Any = None,
        loss_fn: Callable[..., Any] | None = None,
        logger: Any = None,
        **settings: Any,
    ) -> None:
        """Take what to train with; further keywords are training settings and profiler fields.

        ``debug_mode`` profiles comprehensively, ``enable_pytorch_debugging`` has autograd look for
        numbers that are none.
        """
        torch = self._torch = _state.need_torch("compat.training_optimizer")
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
        profiling = {name: settings.pop(name) for name in list(settings) if name in FIELDS}
        self.settings = _merged(DEFAULTS, settings, "create_optimized_training_optimizer")
        _state.check_count("max_epochs", self.settings["max_epochs"])
        self.performance = _merged(PERFORMANCE, performance_config or {}, "performance_config")
        _state.check_count(
            "gradient_accumulation_steps", self.performance["gradient_accumulation_steps"]
        )
        self.multi_gpu = _merged(MULTI_GPU, multi_gpu_config or {}, "multi_gpu_config")
        if self.multi_gpu["strategy"] not in STRATEGIES:
            raise ValueError(
                f"strategy must be one of {', '.join(STRATEGIES)}, not "
                f"{self.multi_gpu['strategy']!r}"
            )
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError(
                "create_optimized_training_optimizer takes an optimizer that steps without a "
                "closure, unlike LBFGS"
            )
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.experiment_name = experiment_name
        self.debugging = enable_pytorch_debugging
        self.loss_fn = loss_fn
        self._base = _switches.here()
        profiling.setdefault("profile_dir", f"{self.checkpoint_dir}/profiles")
        if debug_mode:
            profiling.setdefault("profile_level", "comprehensive")
        self.code_profiler = CodeProfiler(ProfilerConfig(**profiling), logger)
        self.optimizer = optimizer or torch.optim.Adam(
            [p for p in model.parameters() if p.requires_grad],
            lr=self.settings["learning_rate"],
            weight_decay=self.settings["weight_decay"],
        )
        self.results: dict[str, Any] | None = None
        self._loop = Loop(self)
        self._clean = False

    @property
    def checkpoint_dir(self) -> str:
        """Where checkpoints and the summary go; one that is relative, from where this was made."""
        return _switches.anchored(str(self.settings["checkpoint_dir"]), self._base)

    # --- Training ------------------------------------------------------------------------

    async def train(self, resume_from: str | None = None) -> dict[str, Any]:
        """Train; other tasks of the event loop have their turn after each batch."""
        for _ in self._loop.go(resume_from):
            await asyncio.sleep(0)
        self.results = self._loop.results()
        return self.results

    def train_sync(self, resume_from: str | None = None) -> dict[str, Any]:
        """Train, without an event loop."""
        for _ in self._loop.go(resume_from):
            pass
        self.results = self._loop.results()
        return self.results

    # --- What there is to say about it ---------------------------------------------------

    def get_training_summary(self) -> dict[str, Any]:
        """Return what was trained, with which settings, and how it went."""
        parameters = list(self.model.parameters())
        return {
            "experiment_name": self.experiment_name,
            "model": type(self.model).__name__,
            "parameters": sum(p.numel() for p in parameters),
            "trainable_parameters": sum(p.numel() for p in parameters if p.requires_grad),
            "device": str(self._loop.trainer.device),
            "optimizer": type(self.optimizer).__name__,
            "settings": dict(self.settings),
            "performance_config": dict(self.performance),
            "multi_gpu_config": dict(self.multi_gpu),
            "history": list(self._loop.history),
            "results": self.results,
        }

    def benchmark_performance(self, num_iterations: int = 100) -> dict[str, Any]:
        """Measure so many training steps and the waiting for their batches; nothing is learned."""
        _state.check_count("num_iterations", num_iterations)
        training = stepwatch.benchmark_training(
            self.model, self.train_loader, num_iterations, self.optimizer, self.loss_fn
        )
        loading = stepwatch.benchmark_dataloader(self.train_loader, num_iterations, workers=())
        return {"training": dict(training), "data_loading": dict(loading.rows[0])}

    def get_optimal_batch_size(self, target_memory_usage: float = 0.8) -> int:
        """Return the batch size that is fastest here and takes at most that share of memory."""
        if not 0 < target_memory_usage <= 1:
            raise ValueError(
                f"target_memory_usage must be more than 0 and at most 1, not {target_memory_usage}"
            )
        found = stepwatch.find_batch_size(
            self.model,
            self.train_loader,
            optimizer=self.optimizer,
            loss_fn=self.loss_fn,
            memory_fraction=target_memory_usage,
        )
        self.code_profiler.know_batch_sizes(found.to_dict())
        if found.best is None:
            raise RuntimeError("no batch size fits: " + " ".join(found.notes))
        return int(found.best["batch_size"])

    def create_training_visualizations(self) -> list[str]:
        """Draw losses by epoch; return the files."""
        from stepwatch.compat._code_profiler import pictures

        folder = str(Path(self.checkpoint_dir) / "visualizations")
        return pictures.draw_training(folder, self.experiment_name, self._loop.history)

    def cleanup(self) -> None:
        """Release everything and write ``final_training_summary.json``; twice is once."""
        if self._clean:
            return
        self._clean = True
        self._loop.close()
        try:
            if self.code_profiler.config.is_on("save_profiles"):
                path = Path(self.checkpoint_dir) / "final_training_summary.json"
                files.write_json(files.of_rank(str(path)), self.get_training_summary())
        except OSError as error:
            self.code_profiler.notices.warn(f"The training summary could not be written: {error}")
        finally:
            self.code_profiler.cleanup()


def _merged(defaults: dict[str, Any], given: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the defaults with what was given; an unknown name is a mistake."""
    for name in given:
        if name not in defaults:
            near = difflib.get_close_matches(name, [*defaults, *FIELDS], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{what} has no {name!r}{hint}")
    return {**defaults, **given}


def create_optimized_training_optimizer(
    model: Any,
    train_loader: Any,
    val_loader: Any = None,
    experiment_name: str = "optimized_training",
    debug_mode: bool = False,
    enable_pytorch_debugging: bool = False,
    performance_config: dict[str, Any] | None = None,
    multi_gpu_config: dict[str, Any] | None = None,
    **kwargs: Any,
) -> OptimizedTrainingOptimizer:
    """Return what trains the model; keywords are settings and fields of ``ProfilerConfig``."""
    return OptimizedTrainingOptimizer(
        model,
        train_loader,
        val_loader,
        experiment_name,
        debug_mode=debug_mode,
        enable_pytorch_debugging=enable_pytorch_debugging,
        performance_config=performance_config,
        multi_gpu_config=multi_gpu_config,
        **kwargs,
    )


__all__ = [
    "DEFAULTS",
    "OptimizedTrainingOptimizer",
    "create_optimized_training_optimizer",
]
