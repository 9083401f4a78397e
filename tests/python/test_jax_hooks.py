"""Real JAX programs under ``stepwatch run``: steps, compilations, waits, and nothing changed."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ..conftest import needs
from .conftest import load

pytestmark = pytest.mark.once
if importlib.util.find_spec("jax") is None:  # It is for the children: here it would mind forks.
    pytest.skip("jax is not installed", allow_module_level=True)

COMPILED, WAIT = 12, 13


Trace = load("test_format_spec").Trace

# A model of two layers, data, and what most programs below use.
MODEL = """
    import warnings
    warnings.simplefilter("ignore")
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)
    params = {
        "w1": jnp.asarray(rng.normal(size=(10, 32)), jnp.float32),
        "w2": jnp.asarray(rng.normal(size=(32, 1)), jnp.float32),
    }

    def batch(n=32):
        x = rng.normal(size=(n, 10)).astype(np.float32)
        return x, x[:, :1]

    def loss_of(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)

    def updated(params, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), loss
"""


class Wait(NamedTuple):
    call: str
    line: int
    kind: int
    calls: int
    ticks: int


class Compiled(NamedTuple):
    function: str
    reason: str
    again: bool
    file: str
    line: int
    compilations: int
    ticks: tuple[int, ...]


class Recorded:
    """What a program printed, and what was recorded of it."""

    def __init__(self, done: subprocess.CompletedProcess[str], folder: Path, cli: Path) -> None:
        self.stdout = done.stdout
        self.stderr = done.stderr
        shown = subprocess.run(
            [cli, "report", folder, "--json"], capture_output=True, text=True, check=True
        )
        self.report: dict[str, Any] = json.loads(shown.stdout)
        self.notes = (folder / "notes.txt").read_text() if (folder / "notes.txt").exists() else ""
        (file,) = folder.glob("*.stepwatch")
        trace = Trace(file.read_bytes())
        names, facts = trace.names()
        self.facts = {key: value.rstrip("\0") for key, value in facts.items()}
        self.waits = [
            Wait(names[r.key[0]], r.key[2], r.key[3], r.value[0], r.value[1])
            for r in trace.rows(WAIT).values()
            if Path(names.get(r.key[1], "")).name == "program.py"
        ]
        self.compiled = [
            Compiled(
                names[r.key[0]],
                names[r.key[1]],
                bool(r.flags & 1),
                Path(names.get(r.key[2], "")).name,
                r.key[3],
                r.value[0],
                r.value[1:],
            )
            for r in trace.rows(COMPILED).values()
        ]

    @property
    def steps(self) -> int:
        return int((self.report["steps"] or {}).get("count", 0))

    def section(self, name: str) -> dict[str, Any]:
        """Add up the rows of a section, wherever it was called."""
        rows = [row for row in self.report["sections"] if row["name"] == name]
        return {key: sum(row[key] for row in rows) for key in ("calls", "errors", "total_ms")}

    def phase_ms(self, name: str) -> float:
        """Return the time of a phase in all steps."""
        phases = {p["phase"]: p for p in self.report["steps"]["phases"]}
        return float(phases[name]["ms"] or 0) * int(self.report["steps"]["counted"])

    def of(self, function: str) -> list[Compiled]:
        return [row for row in self.compiled if row.function == function]


Runner = Callable[..., Recorded]


def write(folder: Path, program: str, model: bool) -> Path:
    path = folder / "program.py"
    text = textwrap.dedent(program)
    path.write_text((textwrap.dedent(MODEL) if model else "") + text, encoding="utf-8")
    return path


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "JAX_PLATFORMS": "cpu", **more}


@pytest.fixture
def run(tmp_path: Path, stepwatch_cli: Path) -> Runner:
    """Return a function that runs a program under ``stepwatch run``."""

    def one(program: str, *, model: bool = True, code: int = 0, **more: str) -> Recorded:
        path = write(tmp_path, program, model)
        done = subprocess.run(
            [stepwatch_cli, "run", "--out", tmp_path / "run", "--", sys.executable, path],
            capture_output=True,
            text=True,
            check=False,
            env=environment(**more),
            cwd=tmp_path,
        )
        assert done.returncode == code, done.stderr
        return Recorded(done, tmp_path / "run", stepwatch_cli)

    return one


# Steps -------------------------------------------------------------------------------------------


def test_one_compiled_update(run: Runner) -> None:
    """A step for each iteration of the loop around it; compiling apart; evaluation no steps."""
    result = run("""
        train_step = jax.jit(updated)

        @jax.jit
        def measure(params, x, y):
            return loss_of(params, x, y)

        for epoch in range(3):
            for i in range(20):
                params, loss = train_step(params, *batch())
            for i in range(5):
                float(measure(params, *batch()))
        """)
    assert result.steps == 60
    assert [row["steps"] for row in result.report["epochs"]] == [20, 20, 20]
    assert result.section("updated")["calls"] == 60
    assert result.section("measure")["calls"] == 15
    assert result.section("validation")["calls"] == 3
    assert result.report["steps"]["updates"] == 60
    (row,) = result.of("updated")
    assert (row.reason, row.again, row.compilations) == ("the first call", False, 1)
    assert row.file == "program.py"
    assert row.ticks[0] == sum(row.ticks[1:])
    assert all(row.ticks)
    assert result.facts["jax_backend"] == "cpu"
    assert result.facts["jax_devices"] == "1 x cpu"


def test_waiting_for_the_programs_own_batches(run: Runner) -> None:
    """The loop around the update asks for them."""
    result = run("""
        import time
        def batches(count):
            for i in range(count):
                time.sleep(0.01)
                yield batch()
        train_step = jax.jit(updated)
        for epoch in range(2):
            for x, y in batches(10):
                params, loss = train_step(params, x, y)
        """)
    assert result.steps == 20
    assert [row["steps"] for row in result.report["epochs"]] == [10, 10]
    phases = {row["phase"]: row["ms"] for row in result.report["steps"]["phases"]}
    assert phases["data_wait"] >= 10


def test_gradients_then_apply(run: Runner) -> None:
    """Two compiled functions in each round are one step, from the first of them."""
    result = run("""
        gradients = jax.jit(jax.grad(loss_of))

        @jax.jit
        def apply(params, grads):
            return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads)

        init = jax.jit(lambda p: p)
        params = init(params)
        for i in range(30):
            params = apply(params, gradients(params, *batch()))
        """)
    assert result.steps == 30
    assert result.section("apply")["calls"] == 30
    assert result.section("validation")["calls"] == 0


def test_update_and_metrics(run: Runner) -> None:
    """What is called once in each round besides is no boundary, nor an evaluation."""
    result = run("""
        train_step = jax.jit(updated)
        metrics = jax.jit(loss_of)
        for i in range(30):
            x, y = batch()
            params, loss = train_step(params, x, y)
            metrics(params, x, y)
        """)
    assert result.steps == 30
    assert result.section("validation")["calls"] == 0


def test_accumulated_gradients(run: Runner) -> None:
    """A step is an update, however many gradients it takes."""
    result = run("""
        gradients = jax.jit(jax.grad(loss_of))

        @jax.jit
        def apply(params, grads):
            return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads)

        add = lambda a, b: jax.tree_util.tree_map(jnp.add, a, b)
        for i in range(12):
            sums = gradients(params, *batch())
            for k in range(3):
                sums = add(sums, gradients(params, *batch()))
            params = apply(params, sums)
        """)
    assert result.steps == 12
    assert result.section("validation")["calls"] == 0


def test_optax_outside_jit(run: Runner) -> None:
    """Only the gradients are compiled: they are the boundary."""
    needs("optax")
    result = run("""
        import optax
        optimizer = optax.adam(1e-2)
        state = optimizer.init(params)
        value_and_grad = jax.jit(jax.value_and_grad(loss_of))
        for i in range(20):
            loss, grads = value_and_grad(params, *batch())
            updates, state = optimizer.update(grads, state)
            params = optax.apply_updates(params, updates)
        """)
    assert result.steps == 20


def test_what_a_library_calls_twice_in_a_step(run: Runner) -> None:
    """Another compiled function is called twice in an iteration, the update once."""
    result = run("""
        scale = jax.jit(lambda tree, by: jax.tree_util.tree_map(lambda one: by * one, tree))
        update = jax.jit(updated)
        for i in range(60):
            params, loss = update(params, *batch())
            scale({"loss": loss}, 0.5), scale({"loss": loss}, 2.0)
        """)
    assert result.steps == 60


def test_equinox(run: Runner) -> None:
    needs("equinox")
    needs("optax")
    result = run("""
        import equinox as eqx
        import optax

        model = eqx.nn.MLP(10, 1, 32, 2, key=jax.random.PRNGKey(0))
        optimizer = optax.adam(1e-2)
        state = optimizer.init(eqx.filter(model, eqx.is_array))

        @eqx.filter_value_and_grad
        def loss_fn(model, x, y):
            return jnp.mean((jax.vmap(model)(x) - y) ** 2)

        @eqx.filter_jit
        def make_step(model, state, x, y):
            loss, grads = loss_fn(model, x, y)
            updates, state = optimizer.update(grads, state, model)
            return eqx.apply_updates(model, updates), state, loss

        @eqx.filter_jit
        def evaluate(model, x, y):
            return jnp.mean((jax.vmap(model)(x) - y) ** 2)

        for epoch in range(2):
            for i in range(15):
                model, state, loss = make_step(model, state, *batch(32 if i < 14 else 9))
            for i in range(4):
                evaluate(model, *batch())
        """)
    assert result.steps == 30
    assert result.section("make_step")["calls"] == 30
    assert result.section("validation")["calls"] == 2
    first, again = result.of("make_step")
    assert "float32[32,10] → float32[9,10]" in again.reason
    assert again.again
    assert not first.again
    # Equinox itself waits in each call: that is the call, not a wait of the program's.
    assert [w.call for w in result.waits] == []


def test_flax(run: Runner) -> None:
    """Linen with a TrainState, and NNX, whose models are changed in place."""
    needs("flax")
    needs("optax")
    result = run("""
        from flax import linen, nnx
        from flax.training import train_state
        import optax

        class Net(linen.Module):
            @linen.compact
            def __call__(self, x):
                return linen.Dense(1)(linen.tanh(linen.Dense(32)(x)))

        net = Net()
        state = train_state.TrainState.create(
            apply_fn=net.apply, params=net.init(jax.random.PRNGKey(0), batch()[0]),
            tx=optax.adam(1e-2))

        @jax.jit
        def linen_step(state, x, y):
            loss, grads = jax.value_and_grad(
                lambda p: jnp.mean((state.apply_fn(p, x) - y) ** 2))(state.params)
            return state.apply_gradients(grads=grads), loss

        for i in range(20):
            state, loss = linen_step(state, *batch())

        class Model(nnx.Module):
            def __init__(self, rngs):
                self.a, self.b = nnx.Linear(10, 32, rngs=rngs), nnx.Linear(32, 1, rngs=rngs)
            def __call__(self, x):
                return self.b(jnp.tanh(self.a(x)))

        model = Model(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
        metric = nnx.metrics.Average()

        @nnx.jit
        def nnx_step(model, optimizer, x, y):
            loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
            optimizer.update(model, grads)
            return loss

        @nnx.jit
        def nnx_eval(model, metric, x, y):
            metric.update(values=jnp.mean((model(x) - y) ** 2))

        for epoch in range(2):
            for i in range(20):
                nnx_step(model, optimizer, *batch())
            for i in range(6):
                nnx_eval(model, metric, *batch())
        """)
    assert result.section("linen_step")["calls"] == 20
    assert result.section("nnx_step")["calls"] == 40
    # 18 of the first loop and what was open; the second loop is known as one at its third call.
    assert result.steps == 20 + 40
    assert result.section("validation")["calls"] == 2


def test_the_program_s_own_steps(run: Runner) -> None:
    """They go before; calls of the update count as updates."""
    result = run("""
        import stepwatch
        train_step = jax.jit(updated)
        for i in stepwatch.steps(range(20)):
            params, loss = train_step(params, *batch())
        """)
    assert result.steps == 20
    assert (result.report["steps"]["unit"], result.report["steps"]["updates"]) == ("batch", 20)


def test_programs_without_training_have_no_steps_of_ours(run: Runner) -> None:
    """A model that stays the same is evaluated, and data that is prepared is not trained on."""
    result = run("""
        predict = jax.jit(loss_of)
        total = jax.jit(lambda carried, params, x, y: carried + loss_of(params, x, y))
        carried = jnp.zeros(())
        for i in range(7):
            predict(params, *batch())
            carried = total(carried, params, *batch())
        """)
    assert (result.report["steps"] or {}).get("unit") != "update"


def test_ahead_of_time_and_made_anew(run: Runner) -> None:
    """Compiled by hand, and jitted again for each epoch: the same function all the same."""
    result = run("""
        train_step = jax.jit(updated).lower(params, *batch()).compile()
        for i in range(10):
            params, loss = train_step(params, *batch())
        for epoch in range(3):
            again = jax.jit(lambda p, x, y: updated(p, x, y))
            for i in range(10):
                params, loss = again(params, *batch())
        """)
    assert result.section("updated")["calls"] == 10
    assert result.section("<lambda>")["calls"] == 30
    assert [row.reason for row in result.of("updated")] == ["compiled ahead of time"]
    first, anew = result.of("<lambda>")
    assert first.compilations == 1
    assert "new function object" in anew.reason
    assert (anew.again, anew.compilations) == (True, 2)
    assert result.steps == 40


def test_calls_that_are_traced_do_not_count(run: Runner) -> None:
    """Within jit, grad, scan, lower and eval_shape of something compiled nothing runs."""
    result = run("""
        calls = []
        @jax.jit
        def inner(x):
            calls.append(1)
            return jnp.sin(x) * 2

        @jax.jit
        def outer(x):
            return inner(x) + inner(x)

        x = jnp.ones(3)
        outer(x)
        outer(x)
        jax.lax.scan(lambda c, v: (c + inner(v), None), 0.0, x)
        jax.eval_shape(inner, x)
        jax.make_jaxpr(inner)(x)
        inner.lower(jnp.ones(5))
        jax.vmap(inner)(x)
        jax.grad(lambda v: inner(v).sum())(x)
        inner(x)
        """)
    assert result.section("outer")["calls"] == 2
    # The derivative, the mapped one and the last one are computed.
    assert result.section("inner")["calls"] == 3


def test_sections_within_compiled_functions(run: Runner) -> None:
    """They are entered while the function is traced only, and that is compiling."""
    result = run("""
        import time
        import stepwatch

        @jax.jit
        def train_step(params, x, y):
            with stepwatch.section("loss_fn"):
                time.sleep(0.2)
                return updated(params, x, y)

        for i in range(6):
            params, loss = train_step(params, *batch(32 if i < 3 else 16))
        """)
    assert result.section("loss_fn")["calls"] == 2
    assert result.phase_ms("loss") == 0
    assert result.phase_ms("compile") > 200


# Compilations and waits --------------------------------------------------------------------------


def test_reasons(run: Runner) -> None:
    result = run("""
        import functools

        @functools.partial(jax.jit, static_argnums=2, static_argnames="mode")
        def compute(params, batch, power, mode="a"):
            return (batch @ params["w1"]).sum() ** power

        x = np.ones((32, 10), np.float32)
        compute(params, x, 2)
        compute(params, x[:17], 2)
        compute(params, x[:17], 3)
        compute(params, x[:17], 3, mode="b")
        compute(dict(params, b=x), x[:17], 3, mode="b")
        compute(params, jnp.asarray(x[:17], jnp.bfloat16), 3, mode="b")
        jax.clear_caches()
        compute(params, jnp.asarray(x[:17], jnp.bfloat16), 3, mode="b")
        """)
    assert [row.reason for row in result.of("compute")] == [
        "the first call",
        "argument 1 ('batch'): float32[32,10] → float32[17,10]",
        "argument 2 ('power'): static 2 → static 3",
        "argument 'mode': new, static 'b'",
        "argument 0 ('params')['b']: new, float32[32,10]",
        "argument 1 ('batch'): float32[17,10] → bfloat16[17,10]",
        "the same arguments as before: jax's cache was cleared, or a setting has changed",
    ]
    assert sum(row.compilations for row in result.of("compute")) == 7


def test_persistent_cache(run: Runner, tmp_path: Path) -> None:
    program = f"""
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path / "cache")!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        train_step = jax.jit(updated)
        train_step(params, *batch())
        """
    path = write(tmp_path, program, model=True)
    subprocess.run([sys.executable, path], check=True, env=environment(), capture_output=True)
    (row,) = run(program).of("updated")
    assert row.reason == "the first call (from the persistent cache)"


def test_where_it_waits(run: Runner, tmp_path: Path) -> None:
    """Each way to need a value is one wait, in the line that needs it."""
    result = run("""
        slow = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda i, a: jnp.tanh(a @ a), x).sum())
        x = jnp.ones((200, 200))
        def fresh():
            return slow(x)
        lines = {}
        fresh()
        float(fresh())  # float(Array)
        int(fresh())  # int(Array)
        bool(fresh())  # bool(Array)
        fresh().item()  # Array.item
        fresh().tolist()  # Array.tolist
        np.asarray(fresh())  # numpy.asarray(Array)
        fresh().block_until_ready()  # Array.block_until_ready
        jax.block_until_ready((fresh(), fresh()))  # jax.block_until_ready
        jax.device_get([fresh()])  # jax.device_get
        f"{fresh():.3f}"  # format(Array)
        str(fresh())  # str(Array)
        jax.device_put({"a": np.ones((4, 4), np.float32)})  # jax.device_put
        """)
    text = (tmp_path / "program.py").read_text(encoding="utf-8").splitlines()
    expected = {
        (line.split("# ")[1], number) for number, line in enumerate(text, 1) if ")  # " in line
    } | {(line.split("# ")[1], number) for number, line in enumerate(text, 1) if '"  # ' in line}
    assert len(expected) == 12
    assert {(w.call, w.line) for w in result.waits} == expected
    assert all(w.calls == 1 and w.ticks > 0 for w in result.waits)
    assert {w.call for w in result.waits if w.kind == 2} == {"jax.device_put"}


# Nothing is changed ------------------------------------------------------------------------------

UNCHANGED = """
    import hashlib, pickle, weakref, inspect, copy, functools, threading
    import jax.monitoring
    compilations = []
    def listen(event, duration, **details):
        if event.endswith("backend_compile_duration"):
            compilations.append(details["fun_name"])
    jax.monitoring.register_event_duration_secs_listener(listen)

    train_step = jax.jit(updated, donate_argnums=0)
    for i in range(30):
        params, loss = train_step(params, *batch(32 if i % 10 else 16))
    print(hashlib.sha256(b"".join(np.asarray(p).tobytes() for p in params.values())).hexdigest())
    print(float(loss), rng.bit_generator.state["state"]["state"])
    print(type(train_step), train_step.__name__, train_step.__wrapped__ is updated)
    print(inspect.signature(train_step), inspect.signature(jax.jit), jax.jit.__module__)
    print(sorted(train_step.__dict__), train_step._cache_size())
    print(jax.jit(train_step) is train_step, weakref.ref(train_step)() is train_step)
    print(train_step.lower(params, *batch()).as_text()[:200])
    print(pickle.loads(pickle.dumps(jax.device_put)) is jax.device_put)
    print(pickle.loads(pickle.dumps(functools.partial(jax.jit, static_argnums=1))).func is jax.jit)
    print(jax.pmap(lambda x: x + 1)(jnp.ones((1, 3))))

    class Layer:
        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x):
            return x * 2
        @jax.jit
        def unbound(x):
            return x + 1
    print(Layer()(jnp.ones(2)), Layer.unbound(jnp.ones(2)))

    @jax.jit
    def fails(x):
        raise ValueError("mine")
    try:
        fails(1)
    except ValueError as error:
        print(repr(error), error.__cause__, [f.name for f in __import__("traceback").extract_tb(
            error.__traceback__) if "program.py" in f.filename])
    try:
        train_step(params)
    except TypeError as error:
        print(error)
    results = []
    threads = [threading.Thread(target=lambda: results.append(float(Layer.unbound(jnp.ones(())))))
               for _ in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(results)
    def recursive(n, x):
        return x if n == 0 else jax.jit(recursive, static_argnums=0)(n - 1, x + 1)
    print(recursive(3, jnp.zeros(())))
    with jax.disable_jit():
        print(Layer.unbound(jnp.ones(2)))
    print(jax.config.jax_explain_cache_misses, jax.config.jax_log_compiles)
    print(compilations)
"""


def test_nothing_is_changed(run: Runner, tmp_path: Path) -> None:
    path = write(tmp_path, UNCHANGED, model=True)
    alone = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=True, env=environment()
    )
    result = run(UNCHANGED)
    assert result.stdout == alone.stdout
    assert alone.stderr == ""
    assert result.section("fails")["errors"] == 1
    assert result.section("updated")["errors"] == 1
    # A call that fails is one, too.
    assert result.steps == 30
    assert result.notes == ""


def test_off_means_nothing_is_patched(tmp_path: Path, stepwatch_cli: Path) -> None:
    path = write(
        tmp_path,
        """
        from jax._src import pjit, array
        f = jax.jit(lambda x: x)
        ours = "__stepwatch__"
        print(hasattr(array.ArrayImpl.item, ours), hasattr(pjit._cpp_pjit, ours))
        import sys
        print([name for name in sys.modules if "jax_hooks" in name])
        """,
        model=True,
    )
    done = subprocess.run(
        [stepwatch_cli, "run", "--out", tmp_path / "run", "--", sys.executable, path],
        capture_output=True,
        text=True,
        check=True,
        env=environment(STEPWATCH_ENABLED="0"),
    )
    assert done.stdout == "False False\n[]\n"


def test_everything_can_be_put_back(tmp_path: Path) -> None:
    """Attributes, listeners, pointers; and what was watched is watched again afterwards."""
    path = write(
        tmp_path,
        """
        import sys
        from jax._src import array, monitoring, pjit
        import stepwatch
        from stepwatch import _core, integrations

        def state():
            return (
                [vars(array.ArrayImpl).get(n) for n in ("item", "__float__", "block_until_ready")],
                pjit._cpp_pjit, jax.device_put, jax.jit,
                len(monitoring.get_event_duration_listeners()), len(monitoring._scalar_listeners),
            )

        before = state()
        stepwatch.start(out=sys.argv[1], quiet=True)
        integrations.install()
        assert state() != before
        step = jax.jit(updated)
        params, loss = step(params, *batch())
        number = _core.jit_watched(step)
        assert number
        for _ in range(2):
            integrations.remove()
            assert state() == before
            assert _core.jit_watched(step) == 0
            params, loss = step(params, *batch())
            float(loss)
        integrations.install()
        assert _core.jit_watched(step) == number
        params, loss = step(params, *batch())
        print(_core.jit_state(number)[1])
        """,
        model=True,
    )
    done = subprocess.run(
        [sys.executable, path, tmp_path / "run"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_half_installed(run: Runner, tmp_path: Path) -> None:
    """A package of that name without anything in it: one note, and the program goes on."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("")
    result = run("import jax\nprint('went on')\n", model=False)
    assert result.stdout == "went on\n"
    assert result.notes.count("\n") == 1
    assert "half installed" in result.notes


def test_hooks_that_fail(run: Runner) -> None:
    """What goes wrong in the hooks is a note; the program does not see it."""
    result = run("""
        from stepwatch import _core
        from stepwatch.integrations import jax_compiles, jax_steps
        def broken(*args):
            raise RuntimeError("ours")
        jax_steps._look = jax_compiles._reason = broken
        train_step = jax.jit(updated)
        for i in range(5):
            params, loss = train_step(params, *batch())
        print("went on")
        """)
    assert result.stdout == "went on\n"
    assert result.notes.count("RuntimeError: ours") == 2
    assert result.section("updated")["calls"] == 5


# stepwatch.jax.profile ---------------------------------------------------------------------------


def test_profile_again() -> None:
    """What is asked for later holds, in the wrapper that there is."""
    import stepwatch.jax

    def loss(x: float) -> float:
        return x

    wrapped = stepwatch.jax.profile(loss)
    settings = wrapped.__stepwatch_settings__  # type: ignore[attr-defined]
    assert stepwatch.jax.profile(loss, name="named", sync=True) is wrapped
    assert (settings.section.name, settings.sync) == ("named", True)
    assert stepwatch.jax.profile(wrapped) is wrapped
    assert (settings.section.name, settings.sync) == ("named", True)


def test_profile(tmp_path: Path, stepwatch_cli: Path) -> None:
    """Functions keep their identity; what was compiled before is found; sync waits."""
    path = write(
        tmp_path,
        """
        import sys, functools
        traces = []
        def loss_fn(params, x, y):
            traces.append(1)
            return loss_of(params, x, y)
        early = jax.jit(updated)
        params, _ = early(params, *batch())
        late = jax.jit(loss_fn)
        late(params, *batch())

        import stepwatch, stepwatch.jax
        stepwatch.start(out=sys.argv[1], quiet=True)
        profile = stepwatch.jax.profile
        assert profile(early) is early
        wrapped = profile(loss_fn)
        assert profile(loss_fn) is wrapped and profile(wrapped) is wrapped
        for i in range(10):
            params, _ = early(params, *batch())
            jax.jit(profile(loss_fn))(params, *batch())
            profile(jax.jit(updated), name="named", sync=True)(params, *batch())
        late(params, *batch())
        wrapped(params, *batch())
        print(len(traces))
        class Odd:
            def __call__(self, x):
                return x
            __hash__ = None
            __slots__ = ()
        assert profile(Odd())(3) == 3
        @functools.wraps(wrapped)
        def other(x):
            return x
        assert profile(other)(4) == 4
        try:
            profile(3)
        except TypeError as error:
            print(error)
        run = stepwatch.stop()
        calls = {}
        for row in run.sections:
            calls[row["name"]] = calls.get(row["name"], 0) + row["calls"]
        print(calls)
        """,
        model=True,
    )
    done = subprocess.run(
        [sys.executable, path, tmp_path / "run"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    lines = done.stdout.splitlines()
    # Once for `late`, once for the wrapper, once when it was called by itself.
    assert lines[:2] == ["3", "stepwatch.jax.profile takes a function, not 'int'"]
    calls = ast.literal_eval(lines[2])
    assert calls["updated"] == 10
    assert calls["named"] == 10
    assert calls["loss_fn"] == 10 + 1 + 1 + 1  # jitted again and again, `late`, by itself, `other`
    assert done.stderr == ""
    assert stepwatch_cli.exists()
