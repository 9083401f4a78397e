"""Loops of torch in which something stands where one might not look for it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.once

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
nn: Any = torch.nn
F: Any = nn.functional

import stepwatch.torch as stepwatch_torch  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

Recording = Any
PAUSE = 0.01
watched = pytest.mark.usefixtures("watch")


@pytest.fixture
def watch() -> Iterator[stepwatch_torch.Watch]:
    watching = stepwatch_torch.auto()
    yield watching
    watching.remove()


def loader(size: int = 4) -> Any:
    return DataLoader(TensorDataset(torch.randn(24, 3), torch.randn(24, 1)), batch_size=size)


def phases(recorded: Recording) -> dict[str, float]:
    rows = recorded.steps["phases"]
    assert sum(row["share"] or 0 for row in rows) == 1
    return {row["phase"]: row["ms"] or 0 for row in rows}


class Net(nn.Module):  # type: ignore[misc]
    """Gives its loss, too, where it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 1)

    def forward(self, x: Any, y: Any = None) -> Any:
        out = self.linear(x)
        return out if y is None else ((out - y) ** 2).mean()


def written_out(model: Any, x: Any, y: Any) -> Any:
    difference = model(x) - y
    time.sleep(PAUSE)
    return (difference**2).mean()


def known(model: Any, x: Any, y: Any) -> Any:
    out = model(x)
    time.sleep(PAUSE)
    return F.mse_loss(out, y)


def inside(model: Any, x: Any, y: Any) -> Any:
    loss = model(x, y)
    time.sleep(PAUSE)
    return loss


@watched
@pytest.mark.parametrize(
    ("loss_of", "phase"), [(written_out, "loss"), (known, "other"), (inside, "other")]
)
def test_what_lies_between_the_model_and_the_backward(
    recorded: Recording, loss_of: Any, phase: str
) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seen = phases(recorded)
    assert seen[phase] >= PAUSE * 1e3
    if phase == "loss":
        assert recorded.calls("loss") == 0


@watched
def test_what_a_closure_does_itself_is_no_update(recorded: Recording) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():

        def closure(x: Any = x, y: Any = y) -> Any:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            time.sleep(PAUSE)
            return loss

        optimizer.step(closure=closure)
    seen = phases(recorded)
    assert seen["other"] >= PAUSE * 1e3
    assert recorded.steps["updates"] == 6


@watched
def test_a_teacher_that_comes_first(recorded: Recording) -> None:
    """Its batches are those that the student is trained with."""
    teacher, student = Net().eval(), Net()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    train, check = loader(), loader(8)
    for _ in range(2):
        for x, _y in train:
            with torch.no_grad():
                wanted = teacher(x)
            loss = F.mse_loss(student(x), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        student.eval()
        for x, _y in check:
            with torch.no_grad():
                student(x)
        student.train()
    steps = recorded.steps
    assert (steps["count"], steps["unit"], steps["updates"]) == (12, "batch", 12)
    assert [row["steps"] for row in recorded.report["epochs"]] == [6, 6]
    assert recorded.calls("validation") == 2


@watched
def test_a_teacher_without_a_loader(recorded: Recording) -> None:
    teacher, student = Net().eval(), Net()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(6):
        x = torch.randn(4, 3)
        with torch.no_grad():
            time.sleep(PAUSE)
            wanted = teacher(x)
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert phases(recorded)["other"] >= PAUSE * 500  # The first pause lies before the first step.
    assert recorded.steps["count"] == 6
    assert recorded.calls("validation") <= 1  # Before anything was trained nobody can tell.


@watched
def test_a_loader_that_nobody_keeps(recorded: Recording) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for x, y in loader():
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
    assert [row["steps"] for row in recorded.report["epochs"]] == [6, 6, 6]


@watched
def test_epochs_of_a_second_stage_follow_those_of_the_first(recorded: Recording) -> None:
    """Loaders that take turns share their epochs; one that comes later goes on from there."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second, last = loader(4), loader(6), loader(12)

    def train(*loaders: Any) -> None:
        for batches in loaders:
            for x, y in batches:
                optimizer.zero_grad()
                model(x, y).backward()
                optimizer.step()

    for _ in range(3):
        train(first, second)
        with torch.no_grad():
            model.eval()
            for x, _ in loader(8):
                model(x)
            model.train()
    for _ in range(2):
        train(last)
    epochs = [(row["epoch"], row["steps"]) for row in recorded.report["epochs"]]
    assert epochs == [(0, 10), (1, 10), (2, 10), (3, 2), (4, 2)]


def endless(batches: Any) -> Iterator[Any]:
    while True:
        yield from batches


@watched
def test_loaders_that_take_turns(recorded: Recording) -> None:
    """Whichever gives the next batch: each batch is a step, of its own loader's epoch."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sources = [endless(loader(4)), endless(loader(8))]
    for i in range(18):
        x, y = next(sources[i % 2])
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
    assert (recorded.steps["count"], recorded.steps["updates"]) == (18, 18)
    # Six batches of the first loader are an epoch, and three of the second.
    assert [row["steps"] for row in recorded.report["epochs"]] == [9, 6, 3]


@watched
def test_a_loader_that_is_asked_between_two_updates(recorded: Recording) -> None:
    """Both are asked by one helper, but in different places of the loop."""
    first, second = Net(), Net()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
    sources = [endless(loader(4)), endless(loader(8))]
    for _ in range(10):
        x, y = next(sources[0])
        first(x, y).backward()
        optimizers[0].step()
        x, y = next(sources[1])
        second(x, y).backward()
        optimizers[1].step()
    assert (recorded.steps["count"], recorded.steps["updates"]) == (10, 20)


@watched
def test_loaders_that_take_turns_in_two_places(recorded: Recording) -> None:
    """That one optimizer steps for both is known with its second step: then the first step was
    two."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = iter(loader(2)), iter(loader(2))
    for i in range(20):
        if i % 2:
            x, y = next(first)
        else:
            x, y = next(second)
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
    assert (recorded.steps["count"], recorded.steps["updates"]) == (20, 20)


@watched
def test_loaders_made_for_every_pass_beside_those_of_a_validation(recorded: Recording) -> None:
    """One may have the address of one that is gone, and had other batches."""
    for _ in range(4):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            for x, y in loader():
                optimizer.zero_grad()
                model(x, y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for x, _ in loader(8):
                    model(x)
            model.train()
    assert [row["steps"] for row in recorded.report["epochs"]] == [6] * 12


def train_with(batch: Any, model: Any, optimizer: Any) -> None:
    x, y = batch
    optimizer.zero_grad()
    model(x, y).backward()
    optimizer.step()


@watched
def test_the_last_batch_that_a_program_asks_for_itself(recorded: Recording) -> None:
    """Nobody asks for the next one: its step ended with the update, and what follows is none of
    it."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = endless(loader())
    for _ in range(9):
        train_with(next(batches), model, optimizer)
    time.sleep(0.2)
    del batches
    steps = recorded.steps
    assert (steps["count"], steps["updates"], steps["incomplete"]) == (9, 9, 0)
    assert [row["steps"] for row in recorded.report["epochs"]] == [6, 3]
    assert {row["part"]: row["s"] for row in recorded.report["timeline"]}["teardown"] > 0.2


@watched
def test_a_batch_that_a_program_asks_for_and_leaves(recorded: Recording) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(loader())
    for _ in range(4):
        train_with(next(batches), model, optimizer)
    x, y = next(batches)
    model(x, y).backward()
    del batches
    steps = recorded.steps
    assert (steps["count"], steps["updates"], steps["incomplete"]) == (5, 4, 1)


@watched
def test_stages_whose_iterators_live_on(recorded: Recording) -> None:
    """The first batch of a stage is not part of the last step of the one before."""
    model = Net()
    iterators = [iter(loader()) for _ in range(3)]
    for batches in iterators:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            train_with(next(batches), model, optimizer)
    steps = recorded.steps
    assert (steps["count"], steps["updates"], steps["incomplete"]) == (15, 15, 0)


@watched
@pytest.mark.parametrize("left", [False, True])
def test_a_loop_that_takes_a_part_of_a_loader(recorded: Recording, left: bool) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for i, batch in enumerate(itertools.islice(loader(), 4)):
            train_with(batch, model, optimizer)
            if left and i == 2:
                break
    steps = recorded.steps
    assert (steps["count"], steps["incomplete"]) == ((9, 3) if left else (12, 0))


@watched
def test_a_validation_that_says_eval_and_wants_gradients(recorded: Recording) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train, check = loader(), loader(8)
    for _ in range(2):
        model.train()
        for batch in train:
            train_with(batch, model, optimizer)
        model.eval()
        for x, y in check:
            model(x, y).item()
    assert [row["steps"] for row in recorded.report["epochs"]] == [6, 6]
    assert recorded.calls("validation") == 2


@watched
def test_a_teacher_that_was_trained_before(recorded: Recording) -> None:
    """What it computes for the student is forward, once the student is the one that is trained."""
    teacher, student = Net(), Net()
    batches = loader()
    optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
    for batch in batches:
        train_with(batch, teacher, optimizer)
    teacher.eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(10):
        for x, _y in batches:
            with torch.no_grad():
                wanted = teacher(x)
            train_with((x, wanted), student, optimizer)
    steps = recorded.steps
    assert (steps["count"], steps["incomplete"]) == (66, 0)
    # Nobody can tell at first.
    assert recorded.calls("validation") < 30
