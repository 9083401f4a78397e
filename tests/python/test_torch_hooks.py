"""An unchanged torch loop: steps, phases, modules, losses, optimizers, and the same results."""

from __future__ import annotations

import copy
import functools
import gc
import io
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _core
from stepwatch.integrations import _notes

pytestmark = pytest.mark.once

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
nn: Any = torch.nn
F: Any = nn.functional

import stepwatch.torch as stepwatch_torch  # noqa: E402
from stepwatch.integrations import _patch, torch_hooks, torch_modules  # noqa: E402

BATCH, CLASSES = 4, 3
Recording = Any
watched = pytest.mark.usefixtures("watch")


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self, wide: int = 4) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, wide, 3)
        self.tail = nn.Sequential(nn.BatchNorm2d(wide), nn.ReLU(inplace=True))
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(wide, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # torch.jit needs to know
        return self.head(self.drop(self.tail(self.conv(x)).mean((2, 3))))


def batch() -> tuple[Any, Any]:
    return torch.randn(BATCH, 1, 6, 6), torch.randint(0, CLASSES, (BATCH,))


@pytest.fixture
def watch() -> Iterator[stepwatch_torch.Watch]:
    watching = stepwatch_torch.auto()
    yield watching
    watching.remove()


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, Any, Any]]:
    """Rows that are put, as (table, flags, keys, values)."""
    put = _core.put_row
    seen: list[tuple[int, int, Any, Any]] = []

    def put_row(handle: int, table: int, flags: int, keys: Any, values: Any) -> Any:
        seen.append((table, flags, keys, values))
        return put(handle, table, flags, keys, values)

    monkeypatch.setattr(_core, "put_row", put_row)
    return seen


def paths(recorded: Recording) -> dict[str, tuple[str | None, int]]:
    return {
        "/".join(row["path"]): (row["phase"], row["calls"]) for row in recorded.report["sections"]
    }


def train(model: Any, optimizer: Any, steps: int, loss: Any = None) -> list[float]:
    criterion = loss or nn.CrossEntropyLoss()
    losses = []
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        value = criterion(model(x), y)
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses


# --- What is seen -------------------------------------------------------------------------


@watched
def test_a_plain_loop(recorded: Recording) -> None:
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 10)
    seen = paths(recorded)
    assert seen["Net"] == ("forward", 10)
    assert seen["Net/Net.conv"] == (None, 10)
    assert seen["Net/Net.tail/Net.tail.1"] == (None, 10)
    assert seen["CrossEntropyLoss"] == ("loss", 10)
    assert seen["backward"] == ("backward", 10)
    assert seen["optimizer"] == ("optimizer", 10)
    assert seen["zero_grad"] == ("zero_grad", 10)
    assert not [path for path in seen if "cross_entropy" in path]
    assert (recorded.steps["count"], recorded.steps["updates"]) == (10, 10)
    assert recorded.steps["unit"] == "update"
    measured = {row["phase"] for row in recorded.steps["phases"] if row["measured"]}
    assert {"forward", "loss", "backward", "optimizer", "zero_grad"} <= measured


@watched
def test_functions_that_compute_a_loss(recorded: Recording) -> None:
    model = nn.Linear(2, 2)
    x = torch.randn(3, 2)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        loss(model(x), x).backward()
    F.kl_div(F.log_softmax(model(x), 1), F.softmax(x, 1), reduction="batchmean").backward()
    with pytest.raises(ValueError, match="Expected input batch_size"):
        F.cross_entropy(model(x), torch.zeros(2, dtype=torch.long))
    seen = paths(recorded)
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"):
        assert seen[name] == ("loss", 1)
    assert recorded.errors("cross_entropy") == 1
    assert seen["backward"] == ("backward", 5)


@watched
def test_gradient_accumulation(recorded: Recording) -> None:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(12):
        x, y = batch()
        (F.cross_entropy(model(x), y) / 4).backward()
        if i % 4 == 3:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    seen = paths(recorded)
    assert seen["clip_grad"] == ("optimizer", 3)
    assert seen["backward"][1] == 12
    assert (recorded.steps["count"], recorded.steps["updates"]) == (3, 3)


@watched
def test_two_optimizers(recorded: Recording) -> None:
    generator, critic = Net(), Net(2)
    first = torch.optim.Adam(generator.parameters())
    second = torch.optim.SGD(critic.parameters(), lr=0.1)
    for _ in range(6):
        for model, optimizer in ((critic, second), (generator, first)):
            train(model, optimizer, 1)
    seen = paths(recorded)
    assert seen["Net"] == ("forward", 6)
    assert seen["Net 2"] == ("forward", 6)
    assert seen["optimizer: Adam"] == ("optimizer", 6)
    assert seen["optimizer: SGD"] == ("optimizer", 6)
    assert (recorded.steps["count"], recorded.steps["updates"]) == (6, 12)


@watched
def test_a_closure_is_no_part_of_the_optimizer(recorded: Recording) -> None:
    model = nn.Linear(2, 1)
    x, y = torch.randn(8, 2), torch.randn(8, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)
    seen = paths(recorded)
    assert seen["optimizer"] == ("optimizer", 4)
    assert seen["optimizer/closure/Linear"][0] == "forward"
    assert seen["optimizer/closure/backward"][0] == "backward"
    assert seen["optimizer/closure/mse_loss"][0] == "loss"
    assert recorded.steps["updates"] == 4


class Asking(torch.optim.SGD):  # type: ignore[misc]
    """It asks its closure for more than a loss."""

    asked: list[Any]

    def step(self, closure: Any = None) -> Any:
        self.asked.append([getattr(closure, name, None) for name in ("__name__", "scale", "func")])
        return super().step(closure)


class Scaled:
    scale = 4

    def __call__(self) -> int:
        return 3


@watched
def test_closures_stay_what_they_are(recorded: Recording) -> None:
    def closure(loss: int = 1) -> int:
        return loss

    closure.scale = 2  # type: ignore[attr-defined]
    part = functools.partial(closure, 2)
    part.scale = 3  # type: ignore[attr-defined]
    optimizer = Asking(nn.Linear(2, 1).parameters(), lr=0.1)
    optimizer.asked = []
    assert [optimizer.step(one) for one in (closure, part, Scaled())] == [1, 2, 3]
    assert optimizer.asked == [["closure", 2, None], [None, 3, closure], [None, 4, None]]
    assert paths(recorded)["optimizer/closure"] == ("other", 3)


@watched
def test_validation_between_epochs(recorded: Recording, tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        train(model, optimizer, 4)
        model.eval()
        with torch.no_grad():
            for _ in range(2):
                model(batch()[0])
        model.train()
        torch.save(model.state_dict(), tmp_path / "model.pt")
    model.load_state_dict(torch.load(tmp_path / "model.pt"))
    seen = paths(recorded)
    assert seen["validation"] == ("validation", 3)
    assert seen["validation/Net"][1] == 6
    assert seen["Net"] == ("forward", 12)
    assert seen["checkpoint"] == ("checkpoint", 4)
    assert (recorded.steps["count"], recorded.steps["updates"]) == (12, 12)


@watched
def test_validation_within_a_section_of_the_program(recorded: Recording) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, 4)
    with stepwatch.section("evaluate the model"), torch.inference_mode():
        model.eval()
        model(batch()[0])
    model.train()
    train(model, optimizer, 4)
    seen = paths(recorded)
    assert seen["evaluate the model/Net"] == ("validation", 1)
    assert seen["Net"] == ("forward", 8)


@watched
def test_a_frozen_teacher_is_no_validation(recorded: Recording) -> None:
    teacher, student = Net(8).eval(), Net()
    for parameter in teacher.parameters():
        parameter.requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(6):
        x, _ = batch()
        optimizer.zero_grad()
        mine = student(x)
        with torch.no_grad():
            wanted = teacher(x)
        F.mse_loss(mine, wanted).backward()
        optimizer.step()
    seen = paths(recorded)
    assert "validation" not in seen
    assert seen["Net 2"] == ("forward", 6)
    assert recorded.steps["count"] == 6


@watched
@pytest.mark.usefixtures("recorded")
def test_kernels_of_convolutions(rows: list[tuple[int, int, Any, Any]]) -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, (3, 5)), torch.nn.MaxPool2d(2), torch.nn.Conv2d(2, 1, 1)
    )
    model(torch.zeros(1, 1, 12, 12)).sum().backward()
    kernels = {
        keys[1]: values[0]
        for table, _, keys, values in rows
        if table == torch_modules.SETTING and keys[0] == "kernel"
    }
    assert kernels == {"Sequential.0": 15, "Sequential.2": 1}


class Frozen(torch.nn.Module):  # type: ignore[misc]
    """A part that learns, and one that does not and drops out, with this probability."""

    def __init__(self, chance: float) -> None:
        super().__init__()
        self.learns = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.0))
        self.stays = torch.nn.Sequential(
            torch.nn.Linear(4, 4), torch.nn.Dropout(chance), torch.nn.BatchNorm1d(4)
        ).requires_grad_(False)
        self.also = torch.nn.Sequential(torch.nn.Linear(4, 4)).requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.learns(x) + self.also(self.stays(x))


@watched
@pytest.mark.usefixtures("recorded")
def test_frozen_parts_that_stand_still(rows: list[tuple[int, int, Any, Any]]) -> None:
    def still() -> set[str]:
        return {
            keys[1]
            for table, _, keys, _ in rows
            if table == torch_modules.SETTING and keys[0] == "still"
        }

    x = torch.zeros(3, 4)
    first = Frozen(0.5)
    first(x)  # drops out
    second = Frozen(0.0)
    second(x)  # goes by its batch
    assert still() == set()
    third = Frozen(0.5)
    third.stays.eval()
    third(x)
    assert still() == {"Frozen 3.stays"}
    fourth = Frozen(0.0)
    fourth.stays[2].eval()
    fourth(x)
    assert still() == {"Frozen 3.stays", "Frozen 4.stays"}
    fifth = Frozen(0.5).eval()
    fifth(x)  # a validation: nobody knows
    assert len(still()) == 2
    teacher = Frozen(0.5).requires_grad_(False).eval()
    teacher(x)
    assert still() == {"Frozen 3.stays", "Frozen 4.stays", "Frozen 6"}
    attending = torch.nn.MultiheadAttention(4, 2, dropout=0.5).requires_grad_(False)
    both = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.0), attending)
    seen = torch_modules._look_still(both.requires_grad_(False), "both", True, {})
    assert seen == (False, True, True, [])
    both.append(both[0])  # what stands twice in it is as it is
    attending.eval()
    seen = torch_modules._look_still(both, "both", True, {})
    assert seen == (True, True, True, ["both"])


@watched
def test_schedulers_and_scaling(recorded: Recording, rows: list[tuple[int, int, Any, Any]]) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedulers = [
        torch.optim.lr_scheduler.StepLR(optimizer, 1),
        torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
    ]
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(4):
        x, y = batch()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        schedulers[0].step()
        schedulers[1].step(float(loss.detach()))
    settings = {keys[:2]: keys[2] for table, _, keys, _ in rows if table == torch_modules.SETTING}
    assert settings["amp", "cpu"] == "bfloat16"
    assert settings["grad_scaler", "enabled"] == "True"
    assert settings["optimizer", "class"] == "SGD"
    assert ("threads", "intraop") in settings
    assert ("threads", "cores") in settings
    seen = paths(recorded)
    # One more each when they are built.
    assert seen["lr_scheduler"] == ("optimizer", 9)
    assert seen["grad_scaler"] == ("optimizer", 16)
    assert seen["grad_scaler/optimizer"] == ("optimizer", 4)
    assert recorded.steps["updates"] == 4


@watched
def test_an_optimizer_of_the_program(recorded: Recording) -> None:
    class Own(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {"lr": 0.1})

        @torch.no_grad()  # type: ignore[untyped-decorator]
        def step(self, _: Any = None) -> None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter -= group["lr"] * parameter.grad

    class Further(Own):
        def step(self, closure: Any = None) -> None:
            super().step(closure)

    model = Net()
    train(model, Further(model.parameters()), 5)
    assert paths(recorded)["optimizer"] == ("optimizer", 5)
    assert recorded.steps["updates"] == 5


def test_what_was_built_before(recorded: Recording) -> None:
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    watching = stepwatch_torch.auto(model, optimizer)
    try:
        for _ in range(5):
            train(model, optimizer, 1)
            scheduler.step()
        assert recorded.calls("optimizer") == 5
        assert recorded.calls("lr_scheduler") == 5
        assert recorded.steps["updates"] == 5
    finally:
        watching.remove()


# --- Modules --------------------------------------------------------------------------------


@pytest.mark.usefixtures("recorded")
@watched
def test_rows_of_modules(rows: list[tuple[int, int, Any, Any]]) -> None:
    model = Net()
    model.head.requires_grad_(False)
    model.head.to(torch.bfloat16)
    here = "tests/python/test_torch_hooks.py"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(batch()[0])
    modules = {
        keys[0]: (keys[1:], values[:3], flags)
        for table, flags, keys, values in rows
        if table == torch_modules.MODULE
    }
    assert modules["Net"][0][0] == "Net"
    assert modules["Net"][2] == torch_modules.ROOT
    assert modules["Net"][0][2] > 0  # where it was built
    assert modules["Net.conv"] == (("Conv2d", "float32", 0), (40, 160, 40), 0)
    assert modules["Net.head"] == (("Linear", "bfloat16", 0), (15, 30, 0), 0)
    assert modules["Net.tail"][1] == (0, 0, 0)
    (site,) = [keys for table, _, keys, _ in rows if table == torch_modules.SITE]
    assert site[0] == torch_modules.SITE_MODEL
    assert site[1].endswith(here)
    assert "model = Net()" in Path(site[1]).read_text(encoding="utf-8").splitlines()[site[2] - 1]


@pytest.mark.usefixtures("recorded")
@watched
def test_rows_of_lazy_modules(rows: list[tuple[int, int, Any, Any]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are under development
        model = nn.Sequential(nn.Flatten(), nn.LazyLinear(CLASSES))
    optimizer = None
    for _ in range(5):
        x, y = batch()
        loss = F.cross_entropy(model(x), y)
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
        loss.backward()
        optimizer.step()
    lazy = [
        (keys[1:3], values[:3])
        for table, _, keys, values in rows
        if table == torch_modules.MODULE and keys[0] == "Sequential.1"
    ]
    assert lazy[0] == (("Linear", "float32"), (111, 444, 111))


@pytest.mark.usefixtures("recorded")
@watched
def test_where_an_optimizer_was_built(rows: list[tuple[int, int, Any, Any]]) -> None:
    def build() -> Any:
        return torch.optim.Adam(model.parameters())

    model = Net()
    train(model, build(), 1)
    (site,) = [
        (keys, values)
        for table, _, keys, values in rows
        if table == torch_modules.SITE and keys[0] == torch_modules.SITE_OPTIMIZER
    ]
    assert site[0][3] == "Adam"
    assert site[1][0].endswith("build")
    line = Path(site[0][1]).read_text(encoding="utf-8").splitlines()[site[0][2] - 1]
    assert "torch.optim.Adam" in line


@pytest.mark.usefixtures("recorded")
@watched
def test_backward_times_of_modules() -> None:
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 60)
    about = {row.name: row for row in torch_modules.known}
    root = about["Net"]
    # Steps 3 and 53.
    assert root.backward_calls == 2
    parts = [about[f"Net.{name}"] for name in ("conv", "tail", "head")]
    assert all(part.backward_calls == 2 and part.backward_ticks > 0 for part in parts)
    assert sum(part.backward_ticks for part in parts) <= root.backward_ticks
    assert about["Net.tail.1"].backward_ticks <= about["Net.tail"].backward_ticks


@pytest.mark.usefixtures("recorded")
@watched
def test_backward_times_are_rarer_where_steps_are_short() -> None:
    """To look at one takes a good part of such a step: that may be a thousandth of the time."""
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 460)
    root = next(row for row in torch_modules.known if row.name == "Net")
    assert 2 <= root.backward_calls < 8  # One in fifty would be ten.


@watched
def test_only_the_root_when_parts_are_not_wanted(
    recorded: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = _core.option
    monkeypatch.setattr(
        _core, "option", lambda name: "false" if name == "modules" else option(name)
    )
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    seen = paths(recorded)
    assert seen["Net"] == ("forward", 3)
    assert seen["CrossEntropyLoss"] == ("loss", 3)
    assert not [path for path in seen if path.startswith("Net/")]


@watched
def test_parts_that_are_called_by_themselves(recorded: Recording) -> None:
    model = Net()
    x, _ = batch()
    model(x)
    model.head(model.tail(model.conv(x)).mean((2, 3)))
    seen = paths(recorded)
    assert seen["Net/Net.conv"] == (None, 1)
    assert seen["Net.conv"] == ("forward", 1)
    assert seen["Net.tail/Net.tail.1"] == (None, 1)
    assert seen["Net.head"] == ("forward", 1)


@watched
def test_a_module_that_is_called_again_and_inside_itself(recorded: Recording) -> None:
    class Again(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.shared = nn.Linear(2, 2)
            self.same = self.shared

        def forward(self, x: Any, depth: int = 2) -> Any:
            x = self.same(self.shared(x))
            return self(x, depth - 1) if depth else x

    Again()(torch.randn(1, 2)).sum().backward()
    seen = paths(recorded)
    assert seen["Again/Again.shared"] == (None, 2)
    assert seen["Again/Again/Again/Again.shared"] == (None, 2)
    assert recorded.calls("Again") == 3


@watched
def test_modules_that_come_and_go(recorded: Recording) -> None:
    x = torch.randn(2, 2)
    for _ in range(300):
        nn.Linear(2, 2)(x)
        nn.MSELoss()(x, x)
        nn.Sequential(nn.Linear(2, 3), nn.Tanh())(x)
    gc.collect()
    assert _core.modules_count() < 50
    seen = paths(recorded)
    assert seen["Linear"] == ("forward", 300)
    assert seen["MSELoss"] == ("loss", 300)
    assert seen["Sequential"] == ("forward", 300)
    assert seen["Sequential/Sequential.1"] == (None, 300)


@watched
def test_modules_that_forward_makes(recorded: Recording) -> None:
    class Makes(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return nn.MSELoss()(nn.ReLU()(x), x)

    model = Makes()
    for _ in range(10):
        model(torch.randn(2))
    seen = paths(recorded)
    assert seen["Makes/ReLU"] == (None, 10)
    assert seen["Makes/MSELoss"] == ("loss", 10)


@watched
def test_an_exception_passes(recorded: Recording) -> None:
    class Fails(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.inner(x)

    model = Fails()
    error = RuntimeError("mine")

    def hook(*_: Any) -> None:
        raise error

    handle = model.inner.register_forward_hook(hook)
    with pytest.raises(RuntimeError) as caught:
        model(torch.zeros(1, 2))
    assert caught.value is error
    handle.remove()
    model(torch.zeros(1, 2)).sum().backward()
    y = model(torch.zeros(1, 2, requires_grad=True)).exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    assert recorded.errors("Fails") == 1
    assert recorded.errors("Fails.inner") == 1
    assert recorded.errors("backward") == 1
    seen = paths(recorded)
    assert seen["Fails"] == ("forward", 3)
    assert seen["Fails/Fails.inner"][1] == 3


@watched
def test_threads(recorded: Recording) -> None:
    model = Net().eval()
    x, _ = batch()

    def work() -> None:
        for _ in range(20):
            model(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorded.calls("Net") == 80
    assert recorded.calls("Net.conv") == 80


@watched
def test_wrapped_models(recorded: Recording) -> None:
    model = Net()
    wrapped = nn.DataParallel(model)
    x, _ = batch()
    wrapped(x).sum().backward()
    wrapped.eval()
    with torch.no_grad():
        model(x)  # validates what was trained
    seen = paths(recorded)
    assert seen["DataParallel"] == ("forward", 1)
    assert seen["DataParallel/Net/Net.conv"] == (None, 1)
    assert seen["validation/Net"][1] == 1


@watched
def test_scripts(recorded: Recording) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        scripted = torch.jit.script(Net())

        def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(x, y) + F.mse_loss(x, x)

        compute = torch.jit.script(loss)
        criterion = torch.jit.script(nn.CrossEntropyLoss())
        x, y = batch()
        output = scripted(x)
        assert torch.equal(compute(output, y), loss(output, y))
        criterion(output, y).backward()
        traced = torch.jit.trace(Net().eval(), x)
        traced(x)
    assert recorded.calls("backward") == 1


@watched
def test_checkpointed_activations(recorded: Recording) -> None:
    from torch.utils.checkpoint import checkpoint

    model, head = Net(), nn.Linear(CLASSES, 1)
    x = batch()[0].requires_grad_()
    head(checkpoint(model, x, use_reentrant=False)).sum().backward()
    seen = paths(recorded)
    assert seen["Net"] == ("forward", 1)
    assert seen["backward/Net"] == (None, 1)


@watched
def test_objects_stay_as_they_are(recorded: Recording) -> None:
    model = Net()
    before = list(model.__dict__)
    state = list(model.state_dict())
    model(batch()[0])
    assert list(model.__dict__) == before
    assert list(model.state_dict()) == state
    twin = copy.deepcopy(model)
    again = pickle.loads(pickle.dumps(model))
    stream = io.BytesIO()
    torch.save(model, stream)
    for other in (twin, again):
        assert list(other.__dict__) == before
        other(batch()[0])
    # They live side by side, so each has a name.
    assert [recorded.calls(f"{name}.conv") for name in ("Net", "Net 2", "Net 3")] == [1, 1, 1]


# --- The same results -------------------------------------------------------------------------


def plain(optimizer: Callable[[Any], Any]) -> Callable[[], list[Any]]:
    def program() -> list[Any]:
        model = Net()
        return [train(model, optimizer(model.parameters()), 8), *model.parameters()]

    return program


def lbfgs() -> list[Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x, y = torch.randn(16, 3), torch.randn(16, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    return [[float(optimizer.step(closure).detach()) for _ in range(5)], *model.parameters()]


def adversaries() -> list[Any]:
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
    critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(inplace=True), nn.Linear(8, 1))
    first = torch.optim.Adam(generator.parameters())
    second = torch.optim.RMSprop(critic.parameters())
    losses = []
    for _ in range(6):
        second.zero_grad()
        real, fake = torch.randn(4, 2), generator(torch.randn(4, 2)).detach()
        score = F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()
        score.backward()
        second.step()
        first.zero_grad()
        loss = F.softplus(-critic(generator(torch.randn(4, 2)))).mean()
        loss.backward()
        first.step()
        losses += [float(score.detach()), float(loss.detach())]
    return [losses, *generator.parameters(), *critic.parameters()]


def gradients() -> list[Any]:
    model = nn.Linear(3, 3)
    x = torch.randn(4, 3, requires_grad=True)
    out = []
    for _ in range(6):
        (first,) = torch.autograd.grad(model(x).pow(3).sum(), x, create_graph=True)
        loss = first.pow(2).sum()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
        out.append(float(loss.detach()))
    return [out, *model.parameters()]


PROGRAMS: dict[str, Callable[[], list[Any]]] = {
    "sgd": plain(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    "adam": plain(torch.optim.Adam),
    "adamw, for loop": plain(lambda p: torch.optim.AdamW(p, foreach=False)),
    "rmsprop": plain(torch.optim.RMSprop),
    "lbfgs": lbfgs,
    "adversaries": adversaries,
    "gradients": gradients,
}


@pytest.mark.usefixtures("no_recording")
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_results(name: str, tmp_path: Path) -> None:
    def run() -> list[Any]:
        torch.manual_seed(7)
        out = PROGRAMS[name]()
        return [*out, torch.get_rng_state()]

    bare = run()
    stepwatch.start(out=tmp_path / "run", quiet=True)
    with stepwatch_torch.auto():
        seen = run()
    assert seen[0] == bare[0]
    for one, other in zip(seen[1:], bare[1:]):
        assert torch.equal(one, other)


# --- When something goes wrong ------------------------------------------------------------------


def test_everything_is_put_back() -> None:
    owners = (
        nn.Module,
        torch.Tensor,
        torch.autograd,
        torch,
        F,
        torch.optim.Optimizer,
        torch.optim.lr_scheduler.LRScheduler,
        torch.amp.GradScaler,
        nn.utils,
    )
    optimizer = torch.optim.Rprop(
        Net().parameters()
    )  # Imports more of torch, where it is the first.
    before = [dict(vars(owner)) for owner in owners]
    step = type(optimizer).step
    inside = step.__closure__[step.__code__.co_freevars.index("func")].cell_contents
    with stepwatch_torch.auto():
        assert nn.Module.__init__ is not before[0]["__init__"]
        assert nn.Module.__init__.__name__ == before[0]["__init__"].__name__
        assert len(_patch._replaced) > 20
    after = [dict(vars(owner)) for owner in owners]
    assert after == before
    assert step.__closure__[step.__code__.co_freevars.index("func")].cell_contents is inside


def test_off_means_that_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWATCH_ENABLED", "0")
    init = nn.Module.__init__
    with stepwatch_torch.auto(Net()):
        assert nn.Module.__init__ is init


def test_wrong_arguments() -> None:
    init = nn.Module.__init__
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, not int"):
        stepwatch_torch.auto(3)
    assert nn.Module.__init__ is init


def test_one_adapter_that_fails(
    recorded: Recording, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from stepwatch.integrations import torch_checkpoint

    def install(_: Any) -> None:
        raise RuntimeError("broken here")

    monkeypatch.setattr(torch_checkpoint, "install", install)
    _notes._said.clear()
    with stepwatch_torch.auto():
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)
    assert capsys.readouterr().err.count("broken here") == 1
    assert recorded.calls("Net") == 2


@watched
def test_a_hook_that_fails(
    recorded: Recording,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def name_model(_: Any) -> None:
        raise RuntimeError("no name")

    monkeypatch.setattr(torch_modules, "name_model", name_model)
    _notes._said.clear()
    model = Net()
    losses = train(model, torch.optim.SGD(model.parameters(), lr=0.1), 5)
    assert len(losses) == 5
    said = capsys.readouterr().err
    assert said.count("calls of Net are not recorded: RuntimeError: no name") == 1
    assert recorded.calls("backward") == 5
    assert recorded.calls("Net") == 0


def test_sections_of_others() -> None:
    with pytest.raises(TypeError):
        _core.module_add(Net(), "no section", None, None, 0, 0)  # type: ignore[arg-type]


@pytest.mark.usefixtures("no_recording")
@watched
def test_two_recordings(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, 2)  # nothing is recorded yet
    for name in ("one", "two"):
        stepwatch.start(out=tmp_path / name, quiet=True)
        train(model, optimizer, 4)
        run = stepwatch.stop()
        assert run is not None
        calls = {row["name"]: row["calls"] for row in run.sections}
        assert (calls["Net"], calls["Net.conv"], calls["backward"]) == (4, 4, 4)


def test_hooks_of_others_stay(recorded: Recording) -> None:
    with stepwatch_torch.auto():  # as stepwatch run does
        with stepwatch_torch.auto():
            pass
        Net()(batch()[0])
    Net()(batch()[0])
    assert recorded.calls("Net") == 1


def test_removed_hooks_come_back(recorded: Recording) -> None:
    for _ in range(2):
        with stepwatch_torch.auto():
            assert torch_hooks._begun
            Net()(batch()[0])
        assert not torch_hooks._begun
    assert recorded.calls("Net") == 2
