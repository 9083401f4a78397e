"""Models that are trained to be measured, and are afterwards bit for bit what they were."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import dataclasses
import importlib.util
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _core
from stepwatch._sweeps.batch_size import _best, _fixed_share

pytestmark = pytest.mark.once

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset  # noqa: E402

functional = torch.nn.functional


class Net(nn.Module):
    """Has everything that training changes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 3)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.register_buffer("step", torch.zeros(()))
        self.register_buffer("spread", torch.zeros(1).expand(5), persistent=False)
        self.calls = 0
        self.plain = torch.zeros(2)
        self.act: Callable[[], None] = lambda: None

    def forward(self, x: torch.Tensor) -> Any:
        self.act()
        self.calls += 1
        self.step += 1
        self.plain += 1
        random.random()
        numpy.random.rand()
        return self.head(self.drop(self.norm(self.first(x))))


def bits(tensor: Any) -> Any:
    if tensor is None:
        return None
    return (id(tensor), tensor.data_ptr(), tensor.dtype, tensor.detach().numpy().tobytes())


def state_of(model: nn.Module, optimizer: Any = None) -> Any:
    """Return all there is to a model and its optimizer, with the identity of each tensor."""
    legacy: Any = numpy.random.get_state()
    found: list[Any] = [
        [(name, bits(p), p.requires_grad, bits(p.grad)) for name, p in model.named_parameters()],
        [(name, bits(buffer)) for name, buffer in model.named_buffers()],
        [(name, module.training) for name, module in model.named_modules()],
        [getattr(model, "calls", None), bits(getattr(model, "plain", None))],
        repr(random.getstate()),
        legacy[1].tobytes(),
        torch.get_rng_state().numpy().tobytes(),
    ]
    if optimizer is not None:
        for key, values in optimizer.state.items():
            found.append((id(key), id(values)))
            found += [
                (name, bits(value) if isinstance(value, torch.Tensor) else value)
                for name, value in values.items()
            ]
        found += [
            {key: value if key != "params" else list(map(id, value)) for key, value in each.items()}
            for each in optimizer.param_groups
        ]
        found.append({k: v for k, v in vars(optimizer).items() if isinstance(v, (int, str))})
    return found


@pytest.fixture
def model() -> Net:
    torch.manual_seed(0)
    net = Net()
    net.norm.eval()  # One part is in another mode than the rest.
    return net


def make_loader(count: int = 24, batch_size: int = 4) -> Any:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 4, generator=generator)
    y = torch.randint(0, 3, (count,), generator=generator)
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)


def used(model: Net, name: str) -> Any:
    """Return an optimizer that has a state already, and leave gradients."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer: Any
    if name == "SGD":
        optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    else:
        optimizer = getattr(torch.optim, name)(trained, lr=0.1)
    model(torch.randn(4, 4)).sum().backward()
    optimizer.step()
    model.first.weight.grad = None
    return optimizer


# --- Training steps -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop"])
def test_everything_is_put_back(model: Net, name: str) -> None:
    optimizer = used(model, name)
    loader = make_loader()
    before = state_of(model, optimizer)
    found = stepwatch.benchmark_training(model, loader, num_batches=4, optimizer=optimizer)
    assert state_of(model, optimizer) == before
    assert model.head.weight.grad is not None
    assert model.first.weight.grad is None
    assert found["optimizer"] == name
    assert found["total_batches_profiled"] == 4


def test_a_fresh_optimizer_is_fresh_again(model: Net) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    before = state_of(model, optimizer)
    stepwatch.benchmark_training(model, make_loader(), num_batches=3, optimizer=optimizer)
    assert state_of(model, optimizer) == before
    assert len(optimizer.state) == 0


def test_without_optimizer_one_is_made(model: Net) -> None:
    before = state_of(model)
    found = stepwatch.benchmark_training(model, make_loader(), num_batches=3)
    assert state_of(model) == before
    assert found["optimizer"] == "Adam, made for this"
    assert found["loss"] == "cross_entropy"


def test_training_goes_on_as_if_nothing_had_been(model: Net) -> None:
    def train(measure: bool) -> list[bytes]:
        torch.manual_seed(0)
        net = Net()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        loader = make_loader()
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for _ in range(3):
            for x, y in loader:
                optimizer.zero_grad()
                functional.cross_entropy(net(x), y).backward()
                optimizer.step()
            if measure:
                stepwatch.benchmark_training(net, loader, 3, optimizer)
                stepwatch.find_batch_size(
                    net, loader, optimizer=optimizer, max_batch_size=8, num_batches=1
                )
            scheduler.step()
        return [value.numpy().tobytes() for value in net.state_dict().values()]

    del model
    assert train(True) == train(False)


def test_numbers_agree(model: Net) -> None:
    model.act = lambda: time.sleep(0.004)
    found = stepwatch.benchmark_training(model, make_loader(), num_batches=5)
    assert found["avg_forward_time"] >= 0.004
    parts = ("transfer", "forward", "loss", "backward", "optimizer")
    assert all(found[f"avg_{part}_time"] > 0 for part in parts)
    assert found["avg_total_time"] >= sum(found[f"avg_{part}_time"] for part in parts)
    assert found["min_total_time"] <= found["avg_total_time"] <= found["max_total_time"]
    assert found["throughput"] == pytest.approx(1 / found["avg_total_time"], rel=1e-9)
    assert found["throughput"] == found["batches_per_second"]
    assert found["samples_per_second"] == pytest.approx(4 * found["throughput"], rel=1e-9)
    assert found["avg_batch_size"] == 4
    assert found["first_total_time"] >= 0.004
    assert found["avg_gpu_memory_usage"] is None
    assert json.loads(json.dumps(found.to_dict())) == found
    assert "Net: 5 batches on cpu, times in seconds" in repr(found)


class Sleepy(torch.autograd.Function):
    """Takes its time on the way back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        time.sleep(0.005)
        return gradient


def test_backward_is_what_backward_takes() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return Sleepy.apply(self.layer(x))

    found = stepwatch.benchmark_training(Late(), make_loader(), num_batches=3)
    assert found["avg_backward_time"] >= 0.005


def test_fewer_batches_than_asked_for(model: Net) -> None:
    found = stepwatch.benchmark_training(model, make_loader(8), num_batches=10)
    assert found["total_batches_profiled"] == 2


def test_no_batches(model: Net) -> None:
    before = state_of(model)
    with pytest.raises(ValueError, match="gives no batches: there is nothing to train with"):
        stepwatch.benchmark_training(model, [])
    assert state_of(model) == before


class UnusualError(Exception):
    """Nobody else raises this."""


@pytest.mark.parametrize("kind", [UnusualError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["forward", "loss", "backward", "optimizer", "loader"])
def test_everything_is_put_back_after_an_exception(
    model: Net, place: str, kind: type[BaseException]
) -> None:
    optimizer = used(model, "Adam")
    raised, calls = kind("third"), 0

    def fails() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise raised

    def loss(output: Any, targets: Any) -> Any:
        if place == "loss":
            fails()
        return functional.cross_entropy(output, targets)

    class Batches:
        def __iter__(self) -> Iterator[Any]:
            for batch in make_loader():
                if place == "loader":
                    fails()
                yield batch

    undo: list[Any] = []
    if place == "forward":
        model.act = fails
    elif place == "backward":
        undo.append(model.head.weight.register_hook(lambda _: fails()))
    elif place == "optimizer":
        undo.append(optimizer.register_step_pre_hook(lambda *_: fails()))
    before = state_of(model, optimizer)
    with pytest.raises(kind) as caught:
        stepwatch.benchmark_training(model, Batches(), 8, optimizer, loss)
    assert caught.value is raised
    assert state_of(model, optimizer) == before
    assert not _core.train_aside()


def test_gradients_may_be_switched_off_around(model: Net) -> None:
    with torch.no_grad():
        found = stepwatch.benchmark_training(model, make_loader(), num_batches=2)
        assert not torch.is_grad_enabled()
    assert found["avg_backward_time"] > 0


def test_a_compiled_model_is_put_back() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    compiled = torch.compile(net, backend="eager")
    before = state_of(net)
    stepwatch.benchmark_training(compiled, make_loader(), num_batches=2)
    assert state_of(net) == before


def test_shared_weights_are_put_back() -> None:
    torch.manual_seed(0)
    one = nn.Linear(4, 4)
    net = nn.Sequential(one, nn.ReLU(), one, nn.Linear(4, 3))
    before = state_of(net)
    stepwatch.benchmark_training(net, make_loader(), num_batches=3)
    assert state_of(net) == before
    assert net[0].weight is net[2].weight


def test_weights_that_the_model_exchanges_are_put_back() -> None:
    class Exchanges(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)
            self.register_buffer("last", None)
            self.kept = self.layer.weight.detach()

        def forward(self, x: torch.Tensor) -> Any:
            self.last = x.detach()
            self.kept = self.new = self.layer(x)
            self.more = nn.Linear(1, 1)
            self.layer.weight.data = self.layer.weight.data.clone()
            return self.layer(x)

    net = Exchanges()
    before, kept = state_of(net), net.kept
    stepwatch.benchmark_training(net, make_loader(), num_batches=2)
    assert state_of(net) == before
    assert net.last is None
    assert net.kept is kept
    assert not hasattr(net, "new")
    assert not hasattr(net, "more")


# --- Batches and losses --------------------------------------------------------------------


def trained(batch: Any, net: Any, **kwargs: Any) -> Any:
    return stepwatch.benchmark_training(net, [batch] * 2, num_batches=2, **kwargs)


class Calls(nn.Module):
    """Does with its arguments what the test wants."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.weight, *args, **kwargs)


@dataclasses.dataclass
class Output:
    loss: Any
    logits: Any = None


ONES = torch.ones(4, 3)


@pytest.mark.parametrize(
    ("batch", "function", "loss"),
    [
        ((ONES, torch.zeros(4).long()), lambda w, x: w * x, "cross_entropy"),
        ([ONES, torch.zeros(4).int()], lambda w, x: w * x, "cross_entropy"),
        ((ONES, torch.zeros(4, 3)), lambda w, x: w * x, "mse_loss"),
        ((ONES, torch.zeros(4)), lambda w, x: w * x[:, :1], "mse_loss"),
        (
            (ONES, torch.zeros(4, 5).long()),
            lambda w, _: w * torch.ones(4, 5, 7),
            "cross_entropy",
        ),
        (
            (ONES, torch.zeros(4, 5).long()),
            lambda w, _: w * torch.ones(4, 7, 5),
            "cross_entropy",
        ),
        ((ONES, ONES, torch.zeros(4, 3)), lambda w, x, y: w * x + y, "mse_loss"),
        (ONES, lambda w, x: (w * x).sum(), "the model's own"),
        ([ONES], lambda w, x: (w * x).sum(), "the model's own"),
        ({"a": ONES}, lambda w, a: {"loss": (w * a).sum()}, "the model's own"),
        ({"a": ONES}, lambda w, a: Output((w * a).sum()), "the model's own"),
        ({"a": ONES}, lambda w, a: ((w * a).sum(), a), "the model's own"),
        (
            {"a": ONES, "labels": torch.zeros(4).long()},
            lambda w, a, labels: Output(None, (w * a, labels)).logits[0],
            "cross_entropy",
        ),
    ],
)
def test_losses_that_can_be_guessed(batch: Any, function: Any, loss: str) -> None:
    assert trained(batch, Calls(function))["loss"] == loss


def test_a_loss_that_is_given() -> None:
    seen: list[Any] = []

    def loss(output: Any, *targets: Any) -> Any:
        seen.append([target.tolist() for target in targets])
        return output.sum()

    y = torch.tensor([1.0, 2.0])
    trained((torch.ones(2), y), Calls(lambda w, x: w * x), loss_fn=loss)
    trained({"x": torch.ones(2), "labels": y}, Calls(lambda w, x: w * x), loss_fn=loss)
    trained(torch.ones(2), Calls(lambda w, x: w * x), loss_fn=loss)
    assert seen == [[[1.0, 2.0]]] * 6 + [[]] * 3
    module = nn.MSELoss()
    assert trained((y, y), Calls(lambda w, x: w * x), loss_fn=module)["loss"] == "MSELoss"


def test_a_loss_that_cannot_be_guessed() -> None:
    sentence = (
        r"the loss cannot be guessed from an output that is float32 of shape \(4, 3\) and targets"
        r" that are float32 of shape \(4, 9\): give loss_fn="
    )
    with pytest.raises(ValueError, match=sentence):
        trained((ONES, torch.zeros(4, 9)), Calls(lambda w, x: w * x))
    with pytest.raises(ValueError, match="of type str and targets that are not there"):
        trained(ONES, Calls(lambda w, x: "text"))  # noqa: ARG005


def test_models_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16, num_labels=3,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    batch = transformers.BatchEncoding(
        {"input_ids": torch.randint(0, 50, (4, 8)), "labels": torch.tensor([0, 1, 2, 0])}
    )
    before = state_of(model)
    found = stepwatch.benchmark_training(model, [batch] * 3, num_batches=3)
    assert state_of(model) == before
    assert found["loss"] == "the model's own"
    assert found["avg_batch_size"] == 4
    sizes = stepwatch.find_batch_size(model, [batch], max_batch_size=8, num_batches=1)
    assert [row["batch_size"] for row in sizes.rows] == [4, 8]
    assert state_of(model) == before


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ((3, []), TypeError, "takes a torch.nn.Module, not int"),
        ((nn.LazyLinear(3), []), ValueError, "this one has lazy modules, so call it once"),
        ((nn.ReLU(), []), ValueError, "no parameter of this one requires gradients"),
        ((nn.Linear(1, 1), 5), TypeError, "benchmark_training takes a loader, not int"),
        ((nn.Linear(1, 1), [], 0), ValueError, "num_batches must be at least 1"),
        ((nn.Linear(1, 1), [], 1, 5), TypeError, "must be an optimizer of torch, not int"),
    ],
)
def test_wrong_arguments(arguments: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        stepwatch.benchmark_training(*arguments)


def test_an_optimizer_that_wants_a_closure(model: Net) -> None:
    optimizer = torch.optim.LBFGS(model.parameters())
    with pytest.raises(ValueError, match="steps without a closure, unlike LBFGS"):
        stepwatch.benchmark_training(model, make_loader(), optimizer=optimizer)


# --- Batch sizes ---------------------------------------------------------------------------


def test_sizes_double_from_the_loaders_own(model: Net) -> None:
    optimizer = used(model, "Adam")
    loader = make_loader(64)
    before = state_of(model, optimizer)
    result = stepwatch.find_batch_size(model, loader, optimizer=optimizer, num_batches=2)
    assert state_of(model, optimizer) == before
    sizes = [row["batch_size"] for row in result.rows]
    assert sizes[0] == 4
    assert sizes == [4 * 2**place for place in range(len(sizes))]
    assert sizes[-1] <= 64
    assert [row["given"] for row in result.rows] == [True] + [False] * (len(sizes) - 1)
    for row in result.rows:
        assert row["fits"]
        assert row["throughput"] == pytest.approx(row["batch_size"] / row["p50_batch_time"])
        assert row["batches_per_second"] == pytest.approx(1 / row["p50_batch_time"])
        assert row["total_batches_profiled"] >= 2
        assert row["memory_bytes"] >= 0
        assert 0 <= row["memory_share"] < 1
    assert result.best is not None
    fastest = max(row["throughput"] for row in result.rows)
    assert result.best["throughput"] >= 0.95 * fastest
    assert json.loads(json.dumps(result.to_dict()))["best"] == result.best
    assert "smallest batch size within 5%" in result.table()


def test_a_dataset_is_enough(model: Net) -> None:
    dataset = make_loader(40).dataset
    result = stepwatch.find_batch_size(model, dataset, max_batch_size=16, num_batches=1)
    assert [row["batch_size"] for row in result.rows] == [8, 16]
    small = stepwatch.find_batch_size(model, torch.utils.data.Subset(dataset, range(3)))
    assert [row["batch_size"] for row in small.rows] == [3]


def test_an_iterable_dataset(model: Net) -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter([(torch.ones(4), 1), (torch.zeros(4), 2)])

    result = stepwatch.find_batch_size(model, Stream(), max_batch_size=16, num_batches=1)
    assert [row["batch_size"] for row in result.rows] == [8, 16]


def test_the_loaders_collate_function_is_used() -> None:
    seen: list[int] = []

    def collate(samples: list[Any]) -> Any:
        seen.append(len(samples))
        return torch.stack([x for x, _ in samples]), torch.tensor([y for _, y in samples])

    loader = DataLoader(make_loader().dataset, batch_size=4, collate_fn=collate)
    stepwatch.find_batch_size(nn.Linear(4, 3), loader, max_batch_size=8, num_batches=1)
    assert seen[:2] == [4, 8]
    assert set(seen) == {4, 8}


def test_batches_are_made_out_of_batches(model: Net) -> None:
    seen: list[int] = []
    model.first.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    batches = [(torch.randn(6, 4), torch.zeros(6).long())]
    result = stepwatch.find_batch_size(model, batches, max_batch_size=12, num_batches=1)
    assert [row["batch_size"] for row in result.rows] == [6, 12]
    assert set(seen) == {6, 12}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([(torch.ones(4, 4), ["a", "b", "c", "d"])], "give the dataset, or a DataLoader over it"),
        ([], "gives no batches whose samples can be counted"),
        (TensorDataset(torch.ones(0, 4)), "the dataset is empty"),
    ],
)
def test_what_batches_cannot_be_made_of(model: Net, data: Any, text: str) -> None:
    before = state_of(model)
    with pytest.raises(ValueError, match=text):
        stepwatch.find_batch_size(model, data)
    assert state_of(model) == before


class Limited(nn.Module):
    """Has no memory for more than so many samples, says torch."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.layer, self.seen = most, nn.Linear(4, 3), []  # type: ignore[var-annotated]

    def forward(self, x: torch.Tensor) -> Any:
        self.seen.append(len(x))
        self.layer.weight.data += 1
        if len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
        return self.layer(x)


def test_too_large_a_batch_is_the_last() -> None:
    net = Limited(20)
    before = state_of(net)
    result = stepwatch.find_batch_size(net, make_loader(400, 16), num_batches=1)
    assert state_of(net) == before
    # Between one that fits and one that does not, one more is tried.
    assert [(row["batch_size"], row["fits"]) for row in result.rows] == [
        (16, True),
        (24, False),
        (32, False),
    ]
    failed = result.rows[2]
    assert failed["why"] == "out of memory: CUDA out of memory. Tried to allocate 2 GiB"
    assert failed["throughput"] is failed["memory_bytes"] is None
    assert result.best is result.rows[0]


def test_too_large_a_start_is_halved() -> None:
    net = Limited(5)
    result = stepwatch.find_batch_size(net, make_loader(400, 16), num_batches=1)
    assert [(row["batch_size"], row["fits"]) for row in result.rows] == [
        (4, True),
        (8, False),
        (16, False),
    ]
    assert result.best is result.rows[0]


def test_nothing_fits() -> None:
    net = Limited(0)
    before = state_of(net)
    result = stepwatch.find_batch_size(net, make_loader(400, 2))
    assert state_of(net) == before
    assert result.best is None
    assert "Not even a batch of one sample fits." in result.table()


def test_another_exception_is_the_models_own(model: Net) -> None:
    raised = RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    def fails() -> None:
        raise raised

    model.act = fails
    before = state_of(model)
    with pytest.raises(RuntimeError) as caught:
        stepwatch.find_batch_size(model, make_loader())
    assert caught.value is raised
    assert state_of(model) == before


def test_memory_that_is_not_there_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "memory_available", lambda: 1 << 20)
    net = nn.Sequential(nn.Linear(4, 65536), nn.Linear(65536, 3))
    result = stepwatch.find_batch_size(net, make_loader(400, 16), num_batches=1)
    assert [row["batch_size"] for row in result.rows] == [16, 24, 32][: len(result.rows)]
    assert result.rows[-1]["fits"] is False
    assert "not tried: it would take about" in result.rows[-1]["why"]
    assert result.rows[-1]["total_batches_profiled"] == 0


PROGRAM = """
import resource, sys
import torch, stepwatch
from torch.utils.data import Dataset

torch.set_num_threads(1)

class Wide(Dataset):
    def __len__(self): return 4096
    def __getitem__(self, index): return torch.ones(1024), index % 2

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1024, 2)
    def forward(self, x):
        # Nobody can foresee this from smaller ones.
        if len(x) >= 64:
            torch.ones(1 << 33)
        return self.layer(x)

net = Net()
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
weights = net.layer.weight.clone()
result = stepwatch.find_batch_size(net, Wide(), start=16, num_batches=1)
assert torch.equal(net.layer.weight, weights)
print([(row["batch_size"], row["fits"]) for row in result.rows if row["batch_size"] >= 48])
print(result.rows[-1]["why"].partition(":")[0])
"""


def test_memory_that_the_system_refuses(tmp_path: Path, build_dir: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program],
        env={"PYTHONPATH": str(build_dir / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["[(48, True), (64, False)]", "out of memory"]


def row(size: int, took: float, share: float | None = 0.1) -> dict[str, Any]:
    return {
        "batch_size": size,
        "p50_batch_time": took,
        "throughput": size / took,
        "memory_share": share,
    }


def test_the_best_is_where_the_gain_ends() -> None:
    rows = [row(8, 1.0), row(16, 1.0), row(32, 1.03), row(64, 2.0)]
    assert _best(rows) is rows[2]
    rows = [row(8, 1.0), row(16, 1.98)]
    assert _best(rows) is rows[0]


def test_the_best_leaves_memory_to_spare() -> None:
    rows = [row(8, 1.0, 0.3), row(16, 1.1, 0.6), row(32, 1.2, 0.93)]
    assert _best(rows) is rows[1]
    assert _best([row(8, 1.0, 0.95)]) is not None
    assert _best([]) is None


def test_time_that_does_not_depend_on_the_size() -> None:
    rows = [row(size, 0.3 + 0.1 * size) for size in (1, 2, 4, 8)]
    share = _fixed_share(rows, rows[0])
    assert share == pytest.approx(0.75)
    assert _fixed_share(rows[:2], rows[0]) is None


@pytest.mark.parametrize(
    ("keywords", "kind", "text"),
    [
        ({"start": 0}, ValueError, "start must be at least 1"),
        ({"max_batch_size": 0}, ValueError, "max_batch_size must be at least 1"),
        ({"num_batches": 0}, ValueError, "num_batches must be at least 1"),
        ({"memory_fraction": 0}, ValueError, "memory_fraction must be more than 0"),
        ({"memory_fraction": 1.5}, ValueError, "memory_fraction must be more than 0 and at most 1"),
        ({"budget_s": -1}, ValueError, "budget_s must be more than 0 seconds"),
    ],
)
def test_wrong_arguments_of_batch_sizes(
    model: Net, keywords: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        stepwatch.find_batch_size(model, make_loader(), **keywords)


class Fails(Dataset[Any]):
    error = UnusualError("sample 3")

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        if index == 3:
            raise self.error
        return torch.ones(4), 0


def test_a_dataset_that_raises(model: Net) -> None:
    before = state_of(model)
    with pytest.raises(UnusualError) as caught:
        stepwatch.find_batch_size(model, Fails())
    assert caught.value is Fails.error
    assert state_of(model) == before


# --- Devices -------------------------------------------------------------------------------


def test_results_of_jax_are_waited_for() -> None:
    pytest.importorskip("jax")

    class Later:
        waits = 0

        def block_until_ready(self) -> Later:
            Later.waits += 1
            return self

    stepwatch.benchmark_callable(Later, number=5, warmup=1)
    assert Later.waits == 6
