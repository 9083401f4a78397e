"""The training loop of :mod:`stepwatch.compat.training_optimizer`, batch by batch."""

from __future__ import annotations

import math
from contextlib import ExitStack, nullcontext
from pathlib import Path

from stepwatch import _core
from stepwatch import torch as watch
from stepwatch._sweeps import _batches
from stepwatch._sweeps._steps import Trainer
from stepwatch.compat._code_profiler import files, sections
from stepwatch.compat._names import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stepwatch.compat.training_optimizer import OptimizedTrainingOptimizer


class Loop:
    """Epochs of training and validation, with the sections that the guide's report has."""

    def __init__(self, owner: OptimizedTrainingOptimizer) -> None:
        """Take the optimizer with everything in it; nothing is trained yet."""
        import torch

        self._torch, self._owner = torch, owner
        self.model = owner.model
        self.trainer = Trainer(torch, owner.model, owner.optimizer, owner.loss_fn)
        self.history: list[dict[str, Any]] = []
        self.best_epoch: int | None = None
        self.best = math.inf
        self.stopped_early = False
        self._scaler: Any = None
        self._hooks: Any = None

    # --- Epochs --------------------------------------------------------------------------

    def go(self, resume_from: str | None) -> Iterator[None]:
        """Train; a turn for others after each batch."""
        owner, profiler = self._owner, self._owner.code_profiler
        first = 1 if resume_from is None else self._load(resume_from)
        self._parallel()
        with ExitStack() as stack:
            if profiler.config.is_on("enable_performance_monitoring"):
                profiler.start_performance_monitoring()
                stack.callback(profiler.stop_performance_monitoring)
            if profiler.enabled:
                profiler._recorder.begin_use()
                self._hooks = watch.auto(self.model, owner.optimizer)
                stack.callback(self.close)
            if owner.debugging:
                stack.enter_context(self._torch.autograd.detect_anomaly(check_nan=True))
            since_best = 0
            for epoch in range(first, owner.settings["max_epochs"] + 1):
                yield from self._epoch(epoch)
                entry = self.history[-1]
                if entry["training_loss"] is None:
                    break
                better = entry["metric"] < self.best
                if better:
                    self.best, self.best_epoch, since_best = entry["metric"], epoch, 0
                else:
                    since_best += 1
                self._save(epoch, better)
                if since_best >= owner.settings["early_stopping_patience"]:
                    self.stopped_early = True
                    break

    def _epoch(self, epoch: int) -> Iterator[None]:
        profiler = self._owner.code_profiler
        self.model.train()
        losses: list[float] = []
        with profiler.profile_section("training_epoch", "epoch"):
            for number, batch in enumerate(self._batches(self._owner.train_loader), 1):
                losses.append(self._step(batch, number))
                yield
            self._update()  # What the last batches of an accumulation left.
        if not losses:
            profiler.notices.warn("The training loader gives no batches: nothing was trained.")
            self.history.append({"epoch": epoch, "training_loss": None, "metric": math.inf})
            return
        trained = sum(losses) / len(losses)
        validated = yield from self._validate()
        self.history.append(
            {
                "epoch": epoch,
                "training_loss": trained,
                "validation_loss": validated,
                "metric": trained if validated is None else validated,
            }
        )

    def _batches(self, loader: Any) -> Iterator[Any]:
        """Give the batches; waiting for each is the section data_loading."""
        profiler = self._owner.code_profiler
        if not profiler.config.is_on("profile_data_loading"):
            return iter(loader)
        return sections.batches(profiler._recorder, loader, "data_loading", "data_loading")

    # --- Steps ---------------------------------------------------------------------------

    def _part(self, name: str, switch: str) -> Any:
        profiler = self._owner.code_profiler
        return profiler.profile_section(name, name) if profiler.config.is_on(switch) else _NOTHING

    def _step(self, batch: Any, number: int) -> float:
        trainer, owner = self.trainer, self._owner
        every = owner.performance["gradient_accumulation_steps"]
        with self._part("preprocessing", "profile_preprocessing"):
            batch = _batches.to_device(self._torch, batch, trainer.device)
            arguments, named, targets = trainer._split(batch)
        with self._part("forward", "profile_forward_pass"), self._precision():
            output = self.model(*arguments, **named)
            loss = trainer._loss(output, targets)
        with self._part("backward", "profile_backward_pass"):
            scaled = loss / every
            (scaled if self._scaler is None else self._scaler.scale(scaled)).backward()
        self._waiting = True
        if number % every == 0:
            self._update()
        return float(loss.detach())

    _waiting = False  # Whether there are gradients that no update has used.

    def _update(self) -> None:
        if not self._waiting:
            return
        self._waiting = False
        owner = self._owner
        clip, optimizer = owner.settings["gradient_clip"], owner.optimizer
        with self._part("optimizer", "profile_optimizer_step"):
            if self._scaler is not None:
                self._scaler.unscale_(optimizer)
            if clip:
                self._torch.nn.utils.clip_grad_norm_(self.model.parameters(), clip)
            if self._scaler is None:
                optimizer.step()
            else:
                self._scaler.step(optimizer)
                self._scaler.update()
            optimizer.zero_grad()

    def _precision(self) -> Any:
        """Return autocast where mixed precision is wanted: float16 on a GPU, else bfloat16."""
        if not self._owner.performance["mixed_precision"]:
            return _NOTHING
        kind = self.trainer.device.type
        if kind == "cuda" and self._scaler is None:
            self._scaler = self._torch.amp.GradScaler("cuda")
        dtype = self._torch.float16 if kind == "cuda" else self._torch.bfloat16
        return self._torch.autocast(kind, dtype=dtype)

    def _validate(self) -> Any:
        loader = self._owner.val_loader
        if loader is None:
            return None
        profiler, trainer = self._owner.code_profiler, self.trainer
        losses: list[float] = []
        self.model.eval()
        try:
            with self._torch.no_grad():
                for batch in loader:
                    with profiler.profile_section("validation", "validation"), self._precision():
                        moved = _batches.to_device(self._torch, batch, trainer.device)
                        arguments, named, targets = trainer._split(moved)
                        output = self.model(*arguments, **named)
                        losses.append(float(trainer._loss(output, targets)))
                    yield
        finally:
            self.model.train()
        return sum(losses) / len(losses) if losses else None

    # --- Several devices, checkpoints ----------------------------------------------------

    def _parallel(self) -> None:
        strategy, nn = self._owner.multi_gpu["strategy"], self._torch.nn
        distributed = self._torch.distributed
        if strategy == "data_parallel" and self._torch.cuda.device_count() > 1:
            self.model = nn.DataParallel(self._owner.model)
        elif strategy == "ddp":
            if not (distributed.is_available() and distributed.is_initialized()):
                raise RuntimeError(
                    "strategy 'ddp' needs torch.distributed.init_process_group() before training"
                )
            self.model = nn.parallel.DistributedDataParallel(self._owner.model)

    def _save(self, epoch: int, better: bool) -> None:
        owner = self._owner
        interval = owner.settings["save_interval"]
        name = safe(owner.experiment_name)
        names = []
        if better:
            names.append(f"{name}_best.pt")
        if interval and epoch % interval == 0:
            names.append(f"{name}_epoch_{epoch}.pt")
        # Checkpoints are the training's, whatever is saved of its profile.
        if not names or files.rank()[0] != 0:
            return
        folder = Path(owner.checkpoint_dir)
        state = {
            "epoch": epoch,
            "model": owner.model.state_dict(),
            "optimizer": owner.optimizer.state_dict(),
            "best": self.best,
            "best_epoch": self.best_epoch,
            "history": self.history,
        }
        try:
            with owner.code_profiler.profile_section("checkpoint", "checkpoint"):
                folder.mkdir(parents=True, exist_ok=True)
                for file in names:
                    meanwhile = folder / f"{file}.part"
                    self._torch.save(state, meanwhile)
                    meanwhile.replace(folder / file)
        except (OSError, RuntimeError) as error:
            owner.code_profiler.notices.warn(f"The checkpoint could not be written: {error}")

    def _load(self, path: str) -> int:
        """Go on where a checkpoint was written; return the next epoch."""
        state = self._torch.load(path, map_location=self.trainer.device, weights_only=True)
        self._owner.model.load_state_dict(state["model"])
        self._owner.optimizer.load_state_dict(state["optimizer"])
        self.history, self.best_epoch = list(state["history"]), state["best_epoch"]
        self.best = state["best"]
        return int(state["epoch"]) + 1

    # --- Results -------------------------------------------------------------------------

    def close(self) -> None:
        """Take the hooks away."""
        if self._hooks is not None:
            self._hooks.remove()
            self._hooks = None

    def results(self) -> dict[str, Any]:
        """Return what training came to."""
        last = self.history[-1] if self.history else {}
        profiler = self._owner.code_profiler
        averages = profiler.metrics.average_times
        distributed = self._torch.distributed
        ranks = distributed.is_available() and distributed.is_initialized()
        return {
            "total_epochs": len([e for e in self.history if e["training_loss"] is not None]),
            "best_epoch": self.best_epoch,
            "best_metric": self.best if math.isfinite(self.best) else None,
            "final_training_loss": last.get("training_loss"),
            "final_validation_loss": last.get("validation_loss"),
            "early_stopping_triggered": self.stopped_early,
            "performance_summary": {
                "average_times": dict(averages),
                "total_times": dict(profiler.metrics.total_times),
                "memory_mb": _core.resident([0]) / 1048576,
                "loss": self.trainer.loss_name,
            },
            "multi_gpu_summary": {
                "strategy": self._owner.multi_gpu["strategy"],
                "devices": self._torch.cuda.device_count(),
                "world_size": distributed.get_world_size() if ranks else files.rank()[1],
                "rank": distributed.get_rank() if ranks else files.rank()[0],
            },
        }


_NOTHING = nullcontext()
