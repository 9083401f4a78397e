"""Batches of any size, out of what a loader or a dataset has."""

from __future__ import annotations

from itertools import islice

from stepwatch._sweeps import _batches
from stepwatch._sweeps._passes import Passes, close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_POOL = 256  # Samples that are really loaded; larger batches have them several times.


class Samples:
    """Makes batches of any size out of what a loader or a dataset has."""

    def __init__(self, torch: Any, data: Any, collate_fn: Callable[..., Any] | None) -> None:
        """Look at what is given; nothing is loaded yet."""
        self._torch = torch
        self.given: int | None = None
        self.length: int | None = None
        self._batch: tuple[Any, int] | None = None
        self._pool: list[Any] = []
        self._source: Iterator[Any] | None = None
        utilities = torch.utils.data
        dataset = data
        if isinstance(data, utilities.DataLoader):
            self.given = data.batch_size if isinstance(data.batch_size, int) else None
            dataset = data.dataset if data.batch_sampler is not None else None
            collate_fn = collate_fn or data.collate_fn
        elif isinstance(data, (list, tuple)) or not (
            hasattr(data, "__getitem__") or isinstance(data, utilities.IterableDataset)
        ):
            dataset = None
        self._collate = collate_fn or utilities.default_collate
        if dataset is None:  # There are batches, and no samples.
            self._take_batch(Passes(data, "find_batch_size"))
        elif isinstance(dataset, utilities.IterableDataset):
            self._source = iter(dataset)
        else:
            self.length = len(dataset)
            if self.length == 0:
                raise ValueError("the dataset is empty: there is nothing to train with")
            step = max(1, self.length // _POOL)
            self._source = (dataset[index] for index in range(0, self.length, step))

    def _take_batch(self, passes: Passes) -> None:
        iterator = iter(passes.make(passes.given))
        try:
            batch = next(iterator, None)
        finally:
            close(iterator)
        size = None if batch is None else _batches.Sizes(passes.batch_size).of(batch)
        if not size:
            raise ValueError("the loader gives no batches whose samples can be counted")
        if _batches.repeat(self._torch, batch, size, size) is None:
            raise ValueError(
                "batches of another size cannot be made out of these: give the dataset, or a"
                " DataLoader over it"
            )
        self._batch = (batch, size)
        self.given = self.given or size

    def make(self, count: int) -> Any:
        """Return a batch of so many samples."""
        if self._batch is not None:
            return _batches.repeat(self._torch, *self._batch, count)
        if self._source is not None and len(self._pool) < min(count, _POOL):
            self._pool.extend(islice(self._source, min(count, _POOL) - len(self._pool)))
        if not self._pool:
            raise ValueError("the dataset is empty: there is nothing to train with")
        return self._collate([self._pool[index % len(self._pool)] for index in range(count)])
