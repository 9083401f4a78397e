"""Sweeps on a GPU: times with the device at rest, memory that runs out, everything put back."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import gc
import importlib.util
from typing import Any

import pytest
import stepwatch

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)


class Rows(Dataset[Any]):
    """Samples that are cheap to have."""

    def __init__(self, width: int) -> None:
        self.width = width

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Any:
        return torch.full((self.width,), float(index % 7)), index % 3


def net(width: int = 256) -> Any:
    torch.manual_seed(0)
    layers = nn.Linear(width, width), nn.BatchNorm1d(width), nn.Dropout(0.5), nn.Linear(width, 3)
    return nn.Sequential(*layers).cuda()


def state_of(model: Any, optimizer: Any) -> Any:
    tensors = [*model.parameters(), *model.buffers()]
    tensors += [p.grad for p in model.parameters() if p.grad is not None]
    for values in optimizer.state.values():
        tensors += [value for value in values.values() if isinstance(value, torch.Tensor)]
    return (
        [(id(t), t.data_ptr(), str(t.device), t.detach().cpu().numpy().tobytes()) for t in tensors],
        [p.grad is None for p in model.parameters()],
        torch.get_rng_state().numpy().tobytes(),
        [state.numpy().tobytes() for state in torch.cuda.get_rng_state_all()],
    )


def allocated() -> int:
    gc.collect()
    torch.cuda.synchronize()
    return int(torch.cuda.memory_allocated())


def used(model: Any) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.ones(4, 256, device="cuda")).sum().backward()
    optimizer.step()
    return optimizer


def test_training_is_put_back_on_the_device() -> None:
    model = net()
    optimizer = used(model)
    loader = DataLoader(Rows(256), batch_size=64, num_workers=2, pin_memory=True)
    before, memory = state_of(model, optimizer), allocated()
    found = stepwatch.benchmark_training(model, loader, 5, optimizer)
    assert state_of(model, optimizer) == before
    assert allocated() == memory
    assert found["device"] == "cuda:0"
    assert found["avg_gpu_memory_usage_bytes"] > 0
    assert found["avg_transfer_time"] > 0


class Heavy(nn.Module):
    """Queues work for the device and returns at once."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4096, 4096, device="cuda") / 64)

    def forward(self, x: torch.Tensor) -> Any:
        for _ in range(20):
            x = x @ self.weight
        return x.sum()


def device_seconds(function: Any) -> float:
    """Return what the device takes for it, as the device's own clock has it; the least of five."""
    took = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end) / 1e3)
    return float(min(took))


def test_times_are_those_of_the_device() -> None:
    model = Heavy()
    batch = torch.randn(4096, 4096, device="cuda")
    least = device_seconds(lambda: model(batch))
    found = stepwatch.benchmark_training(model, [batch] * 6, num_batches=5)
    assert found["avg_forward_time"] >= 0.8 * least
    assert found["avg_backward_time"] >= 0.8 * least
    call = stepwatch.benchmark_callable(model, batch, number=10)
    assert call["avg_processing_time"] >= 0.8 * least


def test_batch_sizes_until_memory_runs_out() -> None:
    # What the forward keeps: 20 000 000 numbers a sample, so that the device is full soon.
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(20_000_000, device="cuda"))

        def forward(self, x: torch.Tensor) -> Any:
            kept = x[:, :1] * self.weight
            for _ in range(4):
                kept = kept.sin()
            return kept.mean()

    model = Keeps()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    before, memory = state_of(model, optimizer), allocated()
    result = stepwatch.find_batch_size(
        model, Rows(4), optimizer=optimizer, start=16, num_batches=2, memory_fraction=1.0
    )
    print(result)
    assert state_of(model, optimizer) == before
    assert allocated() == memory
    fits = [row["fits"] for row in result.rows]
    sizes = [row["batch_size"] for row in result.rows]
    shares = [row["memory_share"] for row in result.rows if row["fits"]]
    assert shares == sorted(shares)
    assert result.best is not None
    assert result.best["memory_share"] <= 0.9
    # It stopped for want of memory, or as there was nothing to gain.
    assert fits[0]
    assert sizes == sorted(sizes)


class Bottomless(nn.Module):
    """Takes what there is from so many samples on."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.layer, self.most = nn.Linear(256, 3).cuda(), most

    def forward(self, x: torch.Tensor) -> Any:
        if len(x) > self.most:
            kept = [self.layer(x)]
            while True:
                kept.append(torch.empty(1 << 32, dtype=torch.uint8, device="cuda"))
        return self.layer(x)


def test_memory_that_the_device_does_not_have() -> None:
    model = Bottomless(40)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    # The first product of matrices takes memory that the library for them keeps.
    model(torch.ones(2, 256, device="cuda")).sum().backward()
    before, memory = state_of(model, optimizer), allocated()
    data = TensorDataset(torch.ones(1000, 256), torch.zeros(1000).long())
    result = stepwatch.find_batch_size(model, data, optimizer=optimizer, start=32, num_batches=2)
    print(result)
    assert [(row["batch_size"], row["fits"]) for row in result.rows] == [
        (32, True),
        (48, False),
        (64, False),
    ]
    assert "out of memory" in result.rows[1]["why"]
    assert state_of(model, optimizer) == before
    assert allocated() == memory
    assert torch.cuda.memory_reserved() < 1 << 32


def test_pinned_loaders() -> None:
    loader = DataLoader(Rows(4096), batch_size=64, pin_memory=True, num_workers=2)
    before = torch.cuda.get_rng_state().numpy().tobytes()
    result = stepwatch.benchmark_dataloader(loader, num_batches=8, workers=[0, 2, 4])
    print(result)
    assert [row["workers"] for row in result.rows] == [2, 0, 4]
    assert all(row["avg_batch_bytes"] == 64 * (4096 * 4 + 8) for row in result.rows)
    assert torch.cuda.get_rng_state().numpy().tobytes() == before
