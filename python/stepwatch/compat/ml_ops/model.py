"""A small reader of number plates whose steps can be traced.

It has the methods of a LightningModule, and is one where the program has imported Lightning before
this module. Without Lightning any loop that calls the same methods in the same order will do.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import stepwatch
from stepwatch.compat import _switches
from stepwatch.compat.ml_ops import images, profile

if TYPE_CHECKING:
    from collections.abc import Iterator

HEIGHT, WIDTH = 24, 96
BLANK = 0  # the class for "nothing here"
CLASSES = len(images.ALPHABET) + 1

_FORWARD = stepwatch.section("forward")
_LOSS = stepwatch.section("loss")
_DECODING = stepwatch.section("decoding")
_BACKWARD = stepwatch.section("backward")
_OPTIMIZER = stepwatch.section("optimizer")


def _base() -> Any:
    """Return LightningModule where Lightning is in use, else torch's own Module."""
    for name in ("lightning.pytorch", "pytorch_lightning"):
        module = sys.modules.get(name)
        if module is not None:
            return module.LightningModule
    return nn.Module


def encode(texts: list[str]) -> torch.Tensor:
    """Return the classes of the signs of plates."""
    return torch.tensor([[images.ALPHABET.index(sign) + 1 for sign in text] for text in texts])


class PlateOCR(_base()):  # type: ignore[misc]
    """Reads plates column by column; the loss aligns what it reads with the plate (CTC).

    While profiling is on, every ``profile_every_n_steps``-th training step and the first
    validation step of each epoch leave a trace: forward, loss, decoding, and in training also
    backward and optimizer.
    """

    def __init__(
        self,
        learning_rate: float = 0.002,
        enable_profiling: bool | None = None,
        profile_every_n_steps: int = 100,
        profile_output_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Build the network; ``enable_profiling`` None leaves it to ENABLE_PROFILING."""
        super().__init__()
        self.learning_rate = learning_rate
        self.enable_profiling = enable_profiling
        self.profile_every_n_steps = profile_every_n_steps
        self._folder = None if profile_output_dir is None else os.fspath(profile_output_dir)
        self._made_in = _switches.here()
        self.metrics: dict[str, float] = {}
        self.own_epoch = 0  # where no Lightning counts them
        self._named: set[str] = set()
        self._tracing: AbstractContextManager[Any] | None = None
        self._updating = False
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, (HEIGHT // 4, 3), padding=(0, 1)),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, CLASSES)
        self.criterion = nn.CTCLoss(blank=BLANK, zero_infinity=True)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return the logarithm of each class's probability: column, picture, class."""
        columns = self.features(pictures).squeeze(2).permute(2, 0, 1)
        result: torch.Tensor = self.head(columns).log_softmax(2)
        return result

    def compute_loss(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return how badly the scores fit the plates."""
        columns, count = scores.shape[:2]
        result: torch.Tensor = self.criterion(
            scores,
            targets,
            torch.full((count,), columns, dtype=torch.long),
            torch.full((count,), targets.shape[1], dtype=torch.long),
        )
        return result

    @staticmethod
    def decode(scores: torch.Tensor) -> list[str]:
        """Return the plates that the scores say: the best class of each column, repeats once."""
        texts = []
        for row in scores.argmax(2).t().tolist():
            kept = [one for one, before in zip(row, [BLANK, *row]) if one not in (BLANK, before)]
            texts.append("".join(images.ALPHABET[one - 1] for one in kept))
        return texts

    # --- steps ---

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Return the loss of a batch; traced by itself where no loop has begun the trace."""
        with self._traced_here(self._train_name, batch_idx):
            return self._shared_step(batch, "train")

    def validation_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Return the loss of a batch that is not learnt from."""
        with self._traced_here(self._validation_name, batch_idx):
            return self._shared_step(batch, "val")

    def predict_step(self, batch: Any, batch_idx: int = 0) -> list[str]:  # noqa: ARG002
        """Return the plates on the pictures of a batch."""
        with _FORWARD:
            scores = self(batch[0] if isinstance(batch, (list, tuple)) else batch)
        with _DECODING:
            return self.decode(scores)

    def _shared_step(self, batch: Any, stage: str) -> torch.Tensor:
        pictures, targets = batch
        with _FORWARD:
            scores = self(pictures)
        with _LOSS:
            loss = self.compute_loss(scores, targets)
        with _DECODING:
            read = self.decode(scores.detach())
            said = ["".join(images.ALPHABET[one - 1] for one in row) for row in targets.tolist()]
        right = sum(one == other for one, other in zip(read, said))
        self._note(f"{stage}_loss", float(loss.detach()))
        self._note(f"{stage}_accuracy", right / max(1, len(said)))
        return loss

    def _note(self, name: str, value: float) -> None:
        self.metrics[name] = value
        if self._trainer_here() is not None:
            self.log(name, value)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return what learns."""
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)

    # --- what a loop calls around a step: Lightning's names ---

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:  # noqa: ARG002
        """Begin the trace of this step, if it is one to trace."""
        self._end()
        self._begin(self._train_name(batch_idx))

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002
        """End it, after backward and optimizer."""
        self._end()

    def backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        """Go back through the network."""
        with self._ends_when_failing(), _BACKWARD:
            loss.backward(*args, **kwargs)

    def on_before_optimizer_step(self, optimizer: Any) -> None:  # noqa: ARG002
        """Lightning runs the step from inside the optimizer: its own work begins here."""
        if not self._updating:
            self._updating = True
            _OPTIMIZER.__enter__()

    def update(self, optimizer: torch.optim.Optimizer) -> None:
        """Let the optimizer learn, for loops other than Lightning's."""
        with self._ends_when_failing(), _OPTIMIZER:
            optimizer.step()
            optimizer.zero_grad()

    # --- tracing ---

    @property
    def epoch(self) -> int:
        """The number of the epoch, from 0."""
        trainer = self._trainer_here()
        return self.own_epoch if trainer is None else int(trainer.current_epoch)

    def _trainer_here(self) -> Any:
        return getattr(self, "_trainer", None)

    def _is_on(self) -> bool:
        return profile.is_enabled(self.enable_profiling)

    @property
    def profile_output_dir(self) -> str | None:
        """Where traces go; one that is relative, from where the model was made."""
        return None if self._folder is None else _switches.anchored(self._folder, self._made_in)

    def _train_name(self, batch_idx: int) -> str | None:
        if not self._is_on() or not profile.is_due(batch_idx, self.profile_every_n_steps):
            return None
        name = f"train_step_{batch_idx}"
        # Epochs begin again at 0: the first keeps the name, and no other takes its place.
        if name in self._named:
            return f"{name}_epoch_{self.epoch}"
        self._named.add(name)
        return name

    def _validation_name(self, batch_idx: int) -> str | None:
        trainer = self._trainer_here()
        if batch_idx != 0 or not self._is_on() or getattr(trainer, "sanity_checking", False):
            return None
        return f"val_step_epoch_{self.epoch}"

    def _begin(self, name: str | None) -> None:
        if name is not None:
            self._tracing = profile.torch_profiler(
                enabled=True, output_dir=self.profile_output_dir, trace_name=name
            )
            self._tracing.__enter__()

    def _end(self, *error: Any) -> None:
        if self._updating:
            self._updating = False
            _OPTIMIZER.__exit__(None, None, None)
        tracing, self._tracing = self._tracing, None
        if tracing is not None:
            tracing.__exit__(*(error or (None, None, None)))

    @contextmanager
    def _ends_when_failing(self) -> Iterator[None]:
        """Write the trace also when the step fails; the exception passes."""
        try:
            yield
        except BaseException:
            self._end(*sys.exc_info())
            raise

    @contextmanager
    def _traced_here(self, name_of: Any, batch_idx: int) -> Iterator[None]:
        with self._ends_when_failing():
            begun = self._tracing is None
            if begun:
                self._begin(name_of(batch_idx))
            yield
            # In a loop that calls the other methods, the trace goes on to the end of the step.
            if begun:
                self._end()
