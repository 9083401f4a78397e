"""torch.compile does not notice sections and decorated functions: same graphs, same results."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

SECTION = stepwatch.section("kept")


def plain(x: Any) -> Any:
    return (x.sin() + 1).cos()


def kept(x: Any) -> Any:
    with SECTION:
        y = x.sin()
    with SECTION as same:
        y = y + 1
    assert same is not None
    return y.cos()


def by_name(x: Any) -> Any:
    with stepwatch.section("a"):
        y = x.sin()
    with stepwatch.section("b", phase="forward"), SECTION:
        y = y + 1
    return y.cos()


def by_hand(x: Any) -> Any:
    SECTION.__enter__()
    y = x.sin() + 1
    SECTION.__exit__(None, None, None)
    return y.cos()


def with_error(x: Any) -> Any:
    y = x.sin()
    try:
        with SECTION:
            raise ValueError("x")
    except ValueError:
        y = y + 1
    return y.cos()


@stepwatch.profile
def sine(x: Any, *, sign: int = 1) -> Any:
    return x.sin() if sign > 0 else -x.sin()


@stepwatch.section("decorated")
def plus_one(x: Any) -> Any:
    return x + 1


def calls(x: Any) -> Any:
    return plus_one(sine(x, sign=1)).cos()


@stepwatch.profile
def direct(x: Any) -> Any:
    with SECTION:
        y = x.sin()
    return (y + 1).cos()


@stepwatch.profile("twice")
@stepwatch.profile
def stacked(x: Any) -> Any:
    return plain(x)


def local(x: Any) -> Any:
    @stepwatch.section("local")
    def inner(z: Any) -> Any:
        return z.sin()

    return (inner(x) + 1).cos()


@stepwatch.profile
def both(x: Any) -> Iterator[Any]:
    yield x.sin()
    yield 1


def generated(x: Any) -> Any:
    first, second = both(x)
    return (first + second).cos()


class Members:
    @stepwatch.profile
    def method(self, x: Any) -> Any:
        return x.sin()

    @staticmethod
    @stepwatch.profile
    def static(x: Any) -> Any:
        return x + 1

    @classmethod
    @stepwatch.profile
    def of_class(cls, x: Any) -> Any:
        return x.cos()

    @stepwatch.profile
    @staticmethod
    def static_above(x: Any) -> Any:
        return x.cos()

    @stepwatch.profile
    @classmethod
    def class_above(cls, x: Any) -> Any:
        return x + 1


MEMBERS = Members()


def methods(x: Any) -> Any:
    return MEMBERS.of_class(MEMBERS.static(MEMBERS.method(x)))


def methods_of_the_class(x: Any) -> Any:
    return Members.static_above(Members.class_above(Members.method(MEMBERS, x)))


@stepwatch.methods
class Module(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, x: Any) -> Any:
        return self.tail(x.sin())

    def tail(self, x: Any) -> Any:
        with stepwatch.section("loss"):
            y = x + self.one
        return y.cos()

    @property
    def one(self) -> int:
        return 1


class Outer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = Module()

    def forward(self, x: Any) -> Any:
        with SECTION:
            return self.inner(x)


@stepwatch.methods
class Defaults(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any, one: int = 1, *, sign: int = 1) -> Any:
        return (x.sin() * sign if sign != 1 else x.sin()) + one

    @staticmethod
    def cosine(x: Any, *, sign: int = 1) -> Any:
        return x.cos() if sign == 1 else -x.cos()

    @classmethod
    def through(cls, x: Any, *, sign: int = 1) -> Any:
        return cls.cosine(x, sign=sign)


DEFAULTS = Defaults()


def defaults(x: Any) -> Any:
    return DEFAULTS.through(DEFAULTS(x))


PROFILER = stepwatch.Profiler()
PROFILED = PROFILER.section("profiled")


def profiled(x: Any) -> Any:
    with PROFILED:
        y = x.sin()
    with PROFILER.section("by name", category="math"), PROFILED as same:
        y = y + 1
    assert same is not None
    return y.cos()


@PROFILER.profile
def profiled_function(x: Any) -> Any:
    first, second = profiled_generator(x)
    return (first + second).cos()


@PROFILER.profile
def profiled_generator(x: Any) -> Iterator[Any]:
    yield x.sin()
    yield 1


def told(x: Any) -> Any:
    stepwatch.mark("begin")
    with stepwatch.step() as one:
        y = x.sin()
        stepwatch.counter("sines", y)
    assert one is not None
    if stepwatch.is_recording():
        stepwatch.mark("recorded")
    stepwatch.step_begin()
    with PROFILER.step():
        PROFILER.counter("mean", 1.0)
        PROFILER.mark("profiled")
        y = y + 1
    stepwatch.step_end()
    return y.cos()


def looped(x: Any) -> Any:
    y = x
    for _ in stepwatch.steps(range(1)):
        y = y.sin()
    for one in stepwatch.data([1]):
        y = y + one
    for _ in PROFILER.steps((1,)):
        y = y.cos()
    (z,) = PROFILER.data([y])
    return z


CASES = {
    "told": told,
    "looped": looped,
    "profiled": profiled,
    "profiled_function": profiled_function,
    "kept": kept,
    "defaults": defaults,
    "by_name": by_name,
    "by_hand": by_hand,
    "with_error": with_error,
    "calls": calls,
    "direct": direct,
    "stacked": stacked,
    "local": local,
    "generated": generated,
    "methods": methods,
    "methods_of_the_class": methods_of_the_class,
    "module": Module(),
    "outer": Outer(),
}


class Graphs:
    """A back end that keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[list[tuple[str, str]]] = []

    def __call__(self, module: Any, _: Any) -> Any:
        self.seen.append(
            [
                (node.op, str(node.target))
                for node in module.graph.nodes
                if node.op not in ("placeholder", "output")
            ]
        )
        return module.forward


def compiled(function: Any, x: Any, *, fullgraph: bool = True) -> tuple[Any, Graphs]:
    torch._dynamo.reset()
    graphs = Graphs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = torch.compile(function, backend=graphs, fullgraph=fullgraph)(x)
    return result, graphs


@pytest.fixture(autouse=True)
def _recording(tmp_path: Path) -> Iterator[None]:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    yield
    stepwatch.stop()


@pytest.mark.parametrize("name", CASES)
def test_same_graph_and_result(name: str) -> None:
    x = torch.randn(4)
    expected, graphs = compiled(plain, x)
    result, seen = compiled(CASES[name], x)
    assert torch.equal(result, expected)
    assert seen.seen == graphs.seen
    assert len(seen.seen) == 1


@pytest.mark.parametrize("name", ["by_name", "methods"])
def test_same_when_nothing_is_recorded(name: str) -> None:
    stepwatch.stop()
    test_same_graph_and_result(name)


def test_compiled_under_a_decorator() -> None:
    x = torch.randn(4)
    graphs = Graphs()
    torch._dynamo.reset()
    function = stepwatch.profile("above")(torch.compile(plain, backend=graphs, fullgraph=True))
    assert torch.equal(function(x), plain(x))
    assert len(graphs.seen) == 1


def test_a_break_of_the_program_stays_one_break() -> None:
    def broken(x: Any) -> Any:
        y = x.sin()
        torch._dynamo.graph_break()
        return (y + 1).cos()

    def broken_inside(x: Any) -> Any:
        with SECTION:
            y = x.sin()
            torch._dynamo.graph_break()
            y = y + 1
        return y.cos()

    x = torch.randn(4)
    expected, graphs = compiled(broken, x, fullgraph=False)
    result, seen = compiled(broken_inside, x, fullgraph=False)
    assert torch.equal(result, expected)
    assert seen.seen == graphs.seen


def test_many_decorated_functions_have_caches_of_their_own() -> None:
    x = torch.randn(4)
    torch._dynamo.reset()
    graphs = Graphs()
    for number in range(12):
        names: dict[str, Any] = {}
        exec(f"def function(x): return x + {number}", names)
        timed = stepwatch.profile(f"function {number}")(names["function"])
        assert torch.equal(torch.compile(timed, backend=graphs, fullgraph=True)(x), x + number)
    assert len(graphs.seen) == 12


def test_training_is_the_same() -> None:
    def train(forward: Any) -> list[Any]:
        torch.manual_seed(0)
        torch._dynamo.reset()
        layer = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        step = torch.compile(lambda x: forward(layer, x), backend="eager", fullgraph=True)
        for _ in range(3):
            optimizer.zero_grad()
            step(torch.ones(2, 4)).backward()
            optimizer.step()
        return [parameter.detach().clone() for parameter in layer.parameters()]

    def bare(layer: Any, x: Any) -> Any:
        y = layer(x).relu_()
        return y.sum()

    @stepwatch.profile
    def timed(layer: Any, x: Any) -> Any:
        with stepwatch.section("forward"):
            y = layer(x).relu_()
        with stepwatch.section("loss"):
            return y.sum()

    for one, other in zip(train(bare), train(timed)):
        assert torch.equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["stepwatch first", "torch first", "dynamo first"])
def test_order_of_imports(order: str) -> None:
    imports = {
        "stepwatch first": "import stepwatch; assert 'torch' not in sys.modules; import torch",
        "torch first": "import torch, stepwatch",
        "dynamo first": "import torch, torch._dynamo, stepwatch",
    }
    text = f"""
        import sys
        {imports[order]}
        @stepwatch.profile
        def function(x):
            with stepwatch.section("x"):
                return x + 1
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        assert compiled(torch.ones(2)).tolist() == [2, 2]
        assert not [f for f in sys.meta_path if type(f).__module__.startswith("stepwatch")]
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_torch_that_cannot_be_told_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    from stepwatch import _torch_compile

    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("torch._dynamo.variables.builder.VariableBuilder._id_dispatch")
        _torch_compile.register()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("stepwatch: this torch.compile cannot be told about sections")
    assert said.err.count("\n") == 1
    _torch_compile.register()
    assert torch.equal(compiled(kept, torch.ones(2))[0], plain(torch.ones(2)))
