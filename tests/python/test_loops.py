"""Steps from plain loops: which one is chosen, that each iteration counts, and that programs do
not notice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _loop_code

# What a program of these tests begins with. `work` takes long enough for a step.
HEAD = """\
import sys, time
def work(x=0):
    time.sleep(0.0003)
    return x
"""
# And ends with.
TAIL = """
import json, stepwatch._core
sys.stderr.write("CHOSEN " + json.dumps(stepwatch._core._loops_now()) + "\\n")
"""


# Up to 3.9 no instruction stands for `while True`: the loop begins with the line after it.
OLD = sys.version_info < (3, 10)


ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(stepwatch.__file__).parents[1]),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Outcome:
    """What a program said and what was recorded of it."""

    def __init__(self, done: subprocess.CompletedProcess[str], run: stepwatch.Run, text: str):
        self.output = done.stdout
        self.errors = done.stderr
        self.code = done.returncode
        self.steps: list[dict[str, Any]] = list(run.steps)
        self.run = run
        found = [line[7:] for line in done.stderr.splitlines() if line.startswith("CHOSEN ")]
        self.chosen: dict[str, Any] = json.loads(found[0]) if found else {}
        self.line = self.chosen.get("line")
        lines = text.splitlines()
        self.marked = next((i + 1 for i, one in enumerate(lines) if "# STEP" in one), None)
        if self.marked and OLD and "while True" in lines[self.marked - 1]:
            self.marked += 1

    @property
    def iterations(self) -> int:
        """Return how many iterations were seen: steps, and those before the choice."""
        return len(self.steps) + int(self.chosen["skipped"])


class Runner:
    """Runs programs under the recorder."""

    def __init__(self, folder: Path, cli: Path) -> None:
        self.folder = folder
        self.cli = cli

    def __call__(
        self,
        text: str,
        *words: str,
        name: str = "program.py",
        modules: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
        head: str = HEAD,
        tail: str = TAIL,
    ) -> Outcome:
        text = head + textwrap.dedent(text) + tail
        path = self.folder / name
        path.write_text(text)
        for module, source in (modules or {}).items():
            (self.folder / module).write_text(HEAD + textwrap.dedent(source))
        out = self.folder / "out"
        command = [self.cli, "run", "--no-report", "--set", "sampler_hz=0", *options]
        command += ["--out", out, "--"]
        done = subprocess.run(
            [*map(str, command), sys.executable, *(words or (str(path),))],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=ENVIRONMENT,
        )
        marked = next((s for s in (modules or {}).values() if "# STEP" in s), None)
        source = HEAD + textwrap.dedent(marked) if marked else text
        return Outcome(done, stepwatch.open(out), source)


@pytest.fixture
def run(tmp_path: Path, stepwatch_cli: Path) -> Runner:
    return Runner(tmp_path, stepwatch_cli)


def complete(outcome: Outcome) -> list[dict[str, Any]]:
    return [step for step in outcome.steps if not step["incomplete"]]


def test_epochs_and_batches(run: Runner) -> None:
    outcome = run("""
        def train():
            for epoch in range(3):
                for batch in range(90):  # STEP
                    work(batch)
        train()
        """)
    assert outcome.code == 0, outcome.errors
    assert (outcome.chosen["kind"], outcome.line) == ("for", outcome.marked)
    assert outcome.iterations == 270
    # Those before the choice are steps, too; from 3.12 on the first may have no known beginning.
    assert outcome.chosen["skipped"] <= (1 if sys.version_info >= (3, 12) else 0)
    assert all(step["unit"] == "loop" for step in outcome.steps)
    assert not any(step["incomplete"] for step in outcome.steps)
    epochs = [step["epoch"] for step in outcome.steps]
    assert epochs.count(1) == 90
    assert epochs.count(2) == 90
    assert epochs[0] == 0
    (site,) = [one for one in outcome.run.sites if one["what"] == "loop"]
    assert (site["class"], site["line"], site["function"]) == ("for", outcome.marked, "train")
    assert site["file"].endswith("/program.py")
    settings = {one["what"]: one["number"] for one in outcome.run.settings}
    assert settings["loop.skipped"] == outcome.chosen["skipped"]
    assert 0 < settings["loop.share"] <= 1


def test_few_batches_an_epoch(run: Runner) -> None:
    outcome = run("""
        for epoch in range(30):
            for batch in range(6):  # STEP
                work(batch)
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 180
    assert outcome.steps[-1]["epoch"] == 29
    assert len({step["epoch"] for step in outcome.steps}) >= 20


def test_moves_of_an_episode_are_no_steps(run: Runner) -> None:
    """Few moves, each of few smaller ones, in a loop of many episodes."""
    outcome = run("""
        def advance():
            for part in range(4):
                work()
        def episode():
            for move in range(7):
                advance()
        for generation in range(45):  # STEP
            episode()
            work()
        """)
    assert outcome.line == outcome.marked
    # Steps that were given up are in the file, and are none of the report's.
    steps = outcome.run.report().steps
    assert (steps["count"], steps["incomplete"]) == (45, 0)


def test_layers_are_no_steps(run: Runner) -> None:
    outcome = run("""
        layers = [1, 2, 3, 4]
        def forward(x):
            for layer in layers:
                x = work(x)
            return x
        def backward(x):
            for layer in reversed(layers):
                x = work(x)
            return x
        for batch in range(60):  # STEP
            backward(forward(batch))
            work()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 60


def test_many_layers_are_no_steps(run: Runner) -> None:
    outcome = run("""
        def forward(x):
            for layer in range(30):
                work()
        for batch in range(60):  # STEP
            forward(batch)
            tuple(map(work, range(90)))  # a loop that is not Python's
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 60


def test_parameters_of_layers_are_no_steps(run: Runner) -> None:
    outcome = run("""
        layers = [1, 2, 3]
        def forward(x):
            for layer in layers:
                work()
        def update():
            for layer in layers:
                for parameter in ("weight", "bias"):
                    work()
        for epoch in range(6):
            for batch in range(16):  # STEP
                forward(batch)
                update()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 96


def test_while_true(run: Runner) -> None:
    outcome = run("""
        def train():
            step = 0
            while True:  # STEP
                work()
                step += 1
                if step == 150:
                    break
            work()
            return step
        print(train())
        """)
    assert outcome.output == "150\n"
    assert (outcome.chosen["kind"], outcome.line) == ("while", outcome.marked)
    # Where a while loop begins cannot always be seen: the first iteration may be missing.
    assert outcome.iterations in (149, 150)
    assert not any(step["incomplete"] for step in outcome.steps)


def test_while_with_a_test(run: Runner) -> None:
    outcome = run("""
        step = 0
        while step < 100 and step >= 0:  # STEP
            step += 1
            work()
            if step % 3 == 0:
                continue
            work()
        work()
        """)
    assert (outcome.chosen["kind"], outcome.line) == ("while", outcome.marked)
    assert outcome.iterations in (99, 100)


def test_continue(run: Runner) -> None:
    outcome = run("""
        for batch in range(120):  # STEP
            work()
            if batch % 2:
                continue
            work()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 120


def test_break_makes_an_incomplete_step(run: Runner) -> None:
    outcome = run("""
        def train():
            for epoch in range(3):
                for batch in range(1000):  # STEP
                    work()
                    if batch == 79:
                        break
                time.sleep(0.01)
        train()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 240
    incomplete = [step for step in outcome.steps if step["incomplete"]]
    assert len(incomplete) == 3
    # What follows the loop is none of its last step.
    assert all(step["duration_ns"] < 9e6 for step in incomplete)


def test_waiting_for_a_generator(run: Runner) -> None:
    outcome = run("""
        def batches():
            for i in range(100):
                time.sleep(0.002)
                yield i
        for batch in batches():  # STEP
            work()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 100
    # From 3.12 on nothing tells of the first wait before the choice.
    told = outcome.steps[int(sys.version_info >= (3, 12)) :]
    assert all(step["data_wait_ns"] >= 2e6 for step in told)


def test_first_wait_of_a_pass(run: Runner) -> None:
    outcome = run("""
        class Loader:
            def __iter__(self):
                time.sleep(0.02)
                return iter(range(80))
        loader = Loader()
        for epoch in range(3):
            for batch in loader:  # STEP
                work()
        """)
    assert outcome.iterations == 240
    waits = [step for step in outcome.steps if step["data_wait_ns"] >= 20e6]
    assert len(waits) == (2 if sys.version_info >= (3, 12) else 3)
    assert [step["epoch"] for step in waits] == [0, 1, 2][-len(waits) :]


def test_short_inner_loops(run: Runner) -> None:
    outcome = run("""
        def inner():
            total = 0
            for i in range(20000):
                total += i
            while total > 0:
                total -= 100000
        for batch in range(80):  # STEP
            inner()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 80


def test_no_training_loop(run: Runner) -> None:
    outcome = run("""
        total = 0
        for i in range(300000):
            total += i
        for i in range(5):
            time.sleep(0.01)
        """)
    assert outcome.steps == []
    assert outcome.chosen == {"on": True, "listens": True, "file": None}


def test_loop_of_a_module(run: Runner) -> None:
    module = """
        def fit(n):
            for epoch in range(2):
                for batch in range(n):  # STEP
                    work()
        """
    outcome = run("import training\ntraining.fit(100)\n", modules={"training.py": module})
    assert outcome.chosen["file"].endswith("/training.py")
    assert outcome.line == outcome.marked
    assert outcome.iterations == 200


def test_run_as_a_module(run: Runner) -> None:
    outcome = run(
        """
        for batch in range(100):  # STEP
            work()
        """,
        "-m",
        "program",
    )
    assert outcome.code == 0, outcome.errors
    assert outcome.line == outcome.marked
    assert outcome.iterations == 100


def test_loop_of_exec(run: Runner) -> None:
    outcome = run('exec("for batch in range(100):\\n    work()\\n")\n')
    assert (outcome.chosen["file"], outcome.line) == ("<string>", 1)
    assert outcome.iterations == 100


def test_code_that_the_program_holds_stays_its_own(run: Runner) -> None:
    outcome = run("""
        import marshal
        code = compile("for i in range(3):\\n    pass\\n", "some.py", "exec")
        before = marshal.dumps(code)
        exec(code)
        assert marshal.dumps(code) == before
        """)
    assert outcome.code == 0, outcome.errors


def test_installed_code_is_not_looked_at(run: Runner) -> None:
    (run.folder / "site-packages").mkdir()
    (run.folder / "site-packages" / "library.py").write_text(
        HEAD + "def fit():\n    for batch in range(200):\n        work()\n"
    )
    outcome = run("sys.path.insert(0, 'site-packages')\nimport library\nlibrary.fit()\n")
    assert outcome.code == 0, outcome.errors
    assert outcome.steps == []


def test_recursion(run: Runner) -> None:
    outcome = run("""
        def visit(depth):
            for child in range(100 if depth == 0 else 2):  # STEP
                work()
                if depth < 2:
                    visit(depth + 1)
        visit(0)
        """)
    assert outcome.code == 0, outcome.errors
    assert outcome.line == outcome.marked
    # Passes within each other: what is counted is not known before, but the program works.
    assert outcome.steps


def test_other_threads_give_no_steps(run: Runner) -> None:
    outcome = run("""
        import threading
        def other():
            for i in range(200):
                work()
        thread = threading.Thread(target=other)
        thread.start()
        for batch in range(150):  # STEP
            work()
        thread.join()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 150


def test_left_by_an_exception(run: Runner) -> None:
    outcome = run("""
        def train():
            for batch in range(1000):  # STEP
                work()
                if batch == 99:
                    raise ValueError("enough")
        try:
            train()
        except ValueError:
            time.sleep(0.05)
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations == 100
    assert [step["incomplete"] for step in outcome.steps[-2:]] == [False, True]
    assert outcome.steps[-1]["duration_ns"] < 40e6


def test_exception_caught_around_the_loop(run: Runner) -> None:
    outcome = run("""
        def train():
            source = iter(range(100))
            while True:  # STEP
                try:
                    next(source)
                except StopIteration:
                    break
                work()
            time.sleep(0.05)
        train()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations in (100, 101)
    assert outcome.steps[-1]["duration_ns"] < 40e6


def test_uncaught_exception_looks_the_same(run: Runner) -> None:
    text = """
        def train():
            for batch in range(1000):
                work()
                if batch == 60:
                    raise ValueError("enough")
        for epoch in range(2):
            train()
        """
    outcome = run(text, tail="")
    bare = subprocess.run(
        [sys.executable, run.folder / "program.py"], capture_output=True, text=True, check=False
    )
    assert outcome.code == bare.returncode == 1
    assert bare.stderr in outcome.errors
    assert bare.stderr.count("<module>") == 1


def test_interrupt_ends_the_program_as_ever(run: Runner) -> None:
    text = """
        import os, signal
        for batch in range(1000):
            work()
            if batch == 60:
                os.kill(os.getpid(), signal.SIGINT)
        """
    outcome = run(text, tail="")
    assert outcome.code == 130
    assert outcome.errors.count("in <module>") == 1


def test_the_longer_loop_wins(run: Runner) -> None:
    outcome = run("""
        def load():
            for file in range(80):
                work()
        def train():
            for batch in range(400):  # STEP
                work()
        load()
        train()
        """)
    assert outcome.line == outcome.marked
    assert outcome.chosen["abandoned"] > 0
    assert outcome.chosen["abandoned"] + 300 >= len(outcome.steps) - 100
    assert len(outcome.steps) > 200


def test_explicit_steps_win(run: Runner) -> None:
    outcome = run("""
        import stepwatch
        for batch in range(100):
            with stepwatch.step():
                work()
                work()
        """)
    assert len(outcome.steps) == 100
    assert {step["unit"] for step in outcome.steps} == {"manual"}
    assert outcome.chosen["on"] is False


def test_epochs_are_not_told_of_explicit_steps(run: Runner) -> None:
    outcome = run("""
        import stepwatch
        for epoch in range(3):
            for batch in range(60):
                with stepwatch.step():
                    work()
                    work()
        """)
    assert [step["epoch"] for step in outcome.steps] == [None] * 180


def test_explicit_steps_win_later(run: Runner) -> None:
    outcome = run("""
        import stepwatch
        for batch in range(100):
            work()
        for batch in stepwatch.steps(range(500)):
            work()
        """)
    assert sum(step["unit"] == "batch" for step in outcome.steps) == 500
    assert outcome.steps[-1]["unit"] == "batch"


def test_disabled(run: Runner, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "for batch in range(60):\n    work()\n"
        "module = sys.modules.get('stepwatch._core')\n"
        "print(module._loops_now() if module else None)\n"
    )
    done = subprocess.run(
        [run.cli, "run", "--set", "enabled=false", "--", sys.executable, program],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert done.stdout.strip() in ("None", "{'on': False, 'file': None}")


def test_forked_workers_give_no_steps(run: Runner) -> None:
    outcome = run("""
        import os
        pid = os.fork()
        if pid == 0:
            for i in range(60):
                work()
            import stepwatch._core
            os._exit(stepwatch._core._loops_now()["on"])
        assert os.waitpid(pid, 0)[1] == 0
        for batch in range(60):  # STEP
            work()
        """)
    assert outcome.code == 0, outcome.errors
    assert outcome.line == outcome.marked


TRACED = """
import linecache
events = []
def tracer(frame, event, arg):
    if frame.f_code.co_filename == __file__ and frame.f_code.co_name in ("train", "helper"):
        events.append((frame.f_code.co_name, event, frame.f_lineno))
    return tracer
def helper(n):
    while n:
        n -= 1
        if n == 7: continue
    else:
        n = 5
    return n
def train():
    total = 0
    for epoch in range(3):
        for batch in (1, 2, 3) if epoch else [4, 5]:
            try:
                total += helper(batch)
                if batch == 2: raise KeyError
            except KeyError:
                continue
            finally:
                total += 1
        while True:
            total += 1
            if total % 5 == 0: break
            try:
                with open(__file__) as file:
                    for line in file:
                        if total > 3:
                            break
                        return total
            except OSError:
                break
    return [x for x in range(total) if x % 2]
sys.settrace(tracer)
result = train()
sys.settrace(None)
print(result, events)
"""


def test_tracing_sees_the_same(run: Runner) -> None:
    outcome = run(TRACED, tail="")
    bare = subprocess.run(
        [sys.executable, run.folder / "program.py"], capture_output=True, text=True, check=False
    )
    assert outcome.output == bare.stdout
    assert "helper" in bare.stdout
    assert outcome.errors == bare.stderr + f"{run.folder / 'out'}\n"


def test_results_are_the_same(run: Runner) -> None:
    text = """
        import random, hashlib
        random.seed(3)
        weights = [random.random() for _ in range(20)]
        def batches(n):
            for _ in range(n):
                yield [random.random() for _ in range(20)]
        losses = []
        for epoch in range(3):
            for batch in batches(70):
                time.sleep(0.0002)
                error = sum(w * x for w, x in zip(weights, batch)) - 1.0
                losses.append(error * error)
                weights = [w - 0.01 * error * x for w, x in zip(weights, batch)]
        print(hashlib.sha256(repr((losses, weights, random.getstate())).encode()).hexdigest())
        import inspect
        print(inspect.getsource(batches), batches.__code__.co_firstlineno)
        """
    outcome = run(text)
    bare = subprocess.run(
        [sys.executable, run.folder / "program.py"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert outcome.output == bare.stdout
    assert len(outcome.output) > 64
    assert outcome.iterations == 210


@pytest.mark.skipif(sys.version_info < (3, 12), reason="code that a program holds is left alone")
def test_cells_of_a_notebook(run: Runner) -> None:
    outcome = run("""
        namespace = {"work": work}
        def cell(number, text):
            exec(compile(text, f"<ipython-input-{number}>", "exec"), namespace)
        cell(1, "def train():\\n    for batch in range(300):\\n        work()\\n")
        cell(2, "train()\\n")
        cell(3, "for batch in range(150):\\n    work()\\n")
        """)
    assert outcome.code == 0, outcome.errors
    assert outcome.chosen["file"] == "<ipython-input-3>"
    assert outcome.chosen["abandoned"] == 0
    assert len(outcome.steps) > 250


@pytest.mark.once
def test_ipython(run: Runner) -> None:
    pytest.importorskip("IPython")
    outcome = run("""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_cell("import time")
        shell.run_cell("for batch in range(1500):\\n    time.sleep(0.0004)")
        """)
    assert outcome.code == 0, outcome.errors
    assert outcome.iterations == 1500
    assert "ipython-input" in outcome.chosen["file"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="code is not changed from 3.12 on")
def test_readers_of_bytecode_find_the_original(run: Runner) -> None:
    module = "def fit():\n    for i in range(3):\n        pass\n    while i:\n        i -= 1\n"
    outcome = run(
        """
        import training, dis
        def names(code):
            return [one.opname for one in dis.get_instructions(code)]
        hooked = names(training.fit.__code__)
        import numba
        again = names(training.fit.__code__)
        def fit_of(code):
            return next(one for one in code.co_consts if getattr(one, "co_name", "") == "fit")
        source = compile(open("training.py").read(), "training.py", "exec")
        print(hooked == again, names(fit_of(source)) == again, training.fit())
        """.replace("import numba", "__import__('num' + 'ba')"),
        modules={"training.py": module, "numba.py": ""},
    )
    assert outcome.code == 0, outcome.errors
    assert outcome.output == "False True None\n"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="code is not changed from 3.12 on")
def test_code_that_is_sent_elsewhere_works_without_us(run: Runner) -> None:
    outcome = run("""
        import pickle
        def fit():
            total = 0
            for i in range(3):
                total += i
            while total < 10:
                total += 1
            return total
        hooks = [one for one in fit.__code__.co_consts if "hook" in repr(one)]
        copies = [pickle.loads(pickle.dumps(one)) for one in fit.__code__.co_consts]
        assert len(hooks) == 4
        print(iter in copies, sum(one == 0 for one in copies))
        fit.__code__ = fit.__code__.replace(co_consts=tuple(copies))
        print(fit())
        """)
    assert outcome.code == 0, outcome.errors
    assert outcome.output == "True 4\n10\n"


def test_with_a_line_profile(run: Runner) -> None:
    text = """
        def train(n):
            for i in range(n):  # STEP
                work()
            while n < 123:
                n += 1
        train(120)
        """
    outcome = run(text, options=("--lines", "__main__:train"))
    assert outcome.iterations == 120
    assert outcome.line == outcome.marked
    hits = {row["line"] - outcome.line: row["hits"] for row in outcome.run.lines}
    assert hits == {0: 121, 1: 120, 2: 4, 3: 3}


def test_numpy(run: Runner) -> None:
    pytest.importorskip("numpy")
    text = """
        import hashlib
        import numpy as np
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(2560, 64)), rng.normal(size=(2560, 8))
        sizes = [64, 128, 128, 8]
        weights = [rng.normal(size=s) * 0.05 for s in zip(sizes, sizes[1:])]
        def forward(x):
            outputs = [x]
            for w in weights:
                x = np.tanh(x @ w)
                outputs.append(x)
            return outputs
        def backward(outputs, y):
            delta = outputs[-1] - y
            for i in reversed(range(len(weights))):
                delta = delta * (1 - outputs[i + 1] ** 2)
                gradient = outputs[i].T @ delta
                delta = delta @ weights[i].T
                weights[i] -= 1e-4 * gradient
        def train():
            for epoch in range(4):
                order = rng.permutation(len(X))
                for start in range(0, len(X), 32):  # STEP
                    chosen = order[start : start + 32]
                    backward(forward(X[chosen]), Y[chosen])
        train()
        print(hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest())
        """
    outcome = run(text)
    bare = subprocess.run(
        [sys.executable, run.folder / "program.py"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert outcome.output == bare.stdout
    assert outcome.line == outcome.marked
    assert outcome.iterations == 320
    assert outcome.steps[-1]["epoch"] == 3


def test_programs_with_readers_keep_their_code(run: Runner) -> None:
    outcome = run(
        """
        import numba
        def fit():
            for i in range(3):
                pass
        print(any("hook" in repr(one) for one in fit.__code__.co_consts))
        """,
        modules={"numba.py": ""},
    )
    assert outcome.output == "False\n"


# --- the loops of a code object -----------------------------------------------------------


def sample(n: int, source: Any) -> Any:
    i = 0
    while i < n:
        if source:
            i += 1
            continue
        try:
            next(source)
        except StopIteration:
            break
    while True:
        i += 2
        if i > 5:
            break
    for x in source:
        for y in source:
            if x > y:
                continue
            if x > 7:
                return x
            if x > 6:
                break
        else:
            break
        try:
            print(x)
        except ValueError:
            i = 3
    return i


def test_loops_of_code() -> None:
    first = sample.__code__.co_firstlineno
    found = {
        (loop.line - first, loop.is_for, loops[loop.outer].line - first if loop.outer >= 0 else 0)
        for loops in [_loop_code.find(sample.__code__)]
        for loop in loops
    }
    assert found == {(2, False, 0), (11 if OLD else 10, False, 0), (14, True, 0), (15, True, 14)}


def test_code_without_loops() -> None:
    assert _loop_code.find(complete.__code__) == []
    assert _loop_code.find(test_code_without_loops.__code__) == []


def with_comprehensions(rows: list[list[int]]) -> list[int]:
    total = []
    for row in rows:
        total += [x + y for x in row for y in row if y]
        total = [*total, len({x: x for x in row})]
    return total


def test_comprehensions_are_no_loops() -> None:
    first = with_comprehensions.__code__.co_firstlineno
    (loop,) = _loop_code.find(with_comprehensions.__code__)
    assert (loop.line - first, loop.is_for, loop.outer) == (2, True, -1)


def test_samples_within_batches_are_no_steps(run: Runner) -> None:
    outcome = run("""
        def features(samples):
            out = []
            for sample in samples:
                out.append(work(sample))
            return out
        for epoch in range(3):
            for batch in range(40):  # STEP
                features(range(32))
                tuple(map(work, range(16)))  # the update
        """)
    assert outcome.line == outcome.marked
    assert outcome.chosen["abandoned"] > 0


def test_preparing_data_is_no_step(run: Runner) -> None:
    """The report leaves out steps of a loop that another one has overtaken."""
    outcome = run("""
        def load():
            for file in range(200):
                work()
        def train():
            for epoch in range(2):
                for batch in range(400):  # STEP
                    work()
        load()
        train()
        """)
    report = outcome.run.report().to_dict()
    assert outcome.line == outcome.marked
    chosen = outcome.chosen
    assert chosen["abandoned"] > 0
    assert len(outcome.steps) == chosen["abandoned"] + chosen["steps"]
    assert report["steps"]["count"] == chosen["steps"]
    assert chosen["steps"] + chosen["skipped"] == 800


def test_long_bodies(run: Runner) -> None:
    """Jumps over many instructions have prefixes."""
    lines = "\n".join(f"    values.append(batch * {n} + {n})" for n in range(400))
    outcome = run(
        "values = []\nfor batch in range(120):  # STEP\n    work()\n"
        + lines
        + "\n    values.clear()\n"
    )
    assert outcome.line == outcome.marked
    assert outcome.iterations == 120
    report = outcome.run.report().to_dict()
    shares = {one["phase"]: one["share"] for one in report["steps"]["phases"]}
    assert shares["data_wait"] < 0.5 < shares["other"]


def test_a_validation_is_no_training(run: Runner) -> None:
    """A loop that runs now and then is no step loop, however long it takes."""
    outcome = run("""
        def validate():
            for batch in range(60):
                work(batch)
        for batch in range(100):  # STEP
            tuple(map(work, range(4)))
            if batch % 5 == 4:
                validate()
        """)
    assert outcome.line == outcome.marked


def test_a_loop_of_the_forward_is_part_of_the_step(run: Runner) -> None:
    """Nobody trains within a forward, however much of the time its loops take."""
    outcome = run("""
        def patches(images):
            for image in images:
                work(image)
        class Network:
            def forward(self, images):
                patches(images)
        network = Network()
        for i in range(60):  # STEP
            network.forward(range(60))
            tuple(map(work, range(10)))
        """)
    assert outcome.line == outcome.marked
    assert (outcome.iterations, outcome.chosen["abandoned"]) == (60, 0)


@pytest.mark.parametrize("item", ["step", "i, batch_of"])
def test_a_loop_whose_items_are_called_steps(run: Runner, item: str) -> None:
    """The program says what its steps are; the loop within it has no such name."""
    outcome = run(f"""
        def simulate(count):
            for one in range(count):
                work(one)
        def main():
            for {item} in {"range(60)" if item == "step" else "enumerate(range(60))"}:  # STEP
                simulate(60)
                tuple(map(work, range(10)))
        main()
        """)
    assert outcome.line == outcome.marked
    assert outcome.iterations - outcome.chosen["abandoned"] == 60
    assert outcome.run.report().to_dict()["steps"]["count"] == 60


def counts_steps(rows: Any) -> None:
    for step in rows:
        print(step)
    for _epoch, (mini_batch2, _) in rows:
        print(mini_batch2)
    for epoch in rows:
        print(epoch)
    for x, y in rows:
        print(x, y)
    for steps_left, _y in rows:
        print(steps_left)


def test_what_items_are_called() -> None:
    loops = sorted(_loop_code.find(counts_steps.__code__), key=lambda one: one.line)
    assert [loop.steps for loop in loops] == [True, True, False, False, True]


# What integrations say: a forward, a backward, and an update for several of them.
GATHERS = """
from stepwatch import _core

class Optimizer:
    pass

optimizer = Optimizer()
_core.train_optimizer()

def compute():
    _core.train_works(False)
    work()
    _core.train_works(True)

def train():
    for i in range(22):  # STEP
        compute()
        if i % 4 == 3:
            _core.train_update(optimizer)

train()
"""


def test_several_iterations_lead_to_an_update(run: Runner) -> None:
    outcome = run(GATHERS)
    assert outcome.line == outcome.marked
    # From 3.12 on the first may have no known beginning.
    assert len(outcome.steps) in ((21, 22) if sys.version_info >= (3, 12) else (22,))
    assert {step["unit"] for step in outcome.steps} == {"batch"}
    assert outcome.run.report().to_dict()["steps"]["updates"] == 5


def test_a_loop_that_is_left_after_its_first_update(run: Runner) -> None:
    """Its iterations are one step, as what leads to an update is."""
    outcome = run(
        GATHERS.replace("optimizer)\n\ntrain()", "optimizer)\n            break\n\ntrain()")
        + """
for _ in range(6):
    compute()
    _core.train_update(optimizer)
"""
    )
    assert len(outcome.steps) == 7
    assert {step["unit"] for step in outcome.steps} == {"update"}


UPDATES = """
from stepwatch import _core

class Optimizer: pass

def update(optimizer):
    _core.train_works(False)
    _core.train_works(True)
    work()
    _core.train_update(optimizer)

optimizer = Optimizer()
"""


def test_passes_over_the_loop_of_the_updates_are_epochs(run: Runner) -> None:
    outcome = run(
        UPDATES
        + """
for epoch in range(3):
    work()
    for i in range(0, 40, 4):
        update(optimizer)
"""
    )
    assert {step["unit"] for step in outcome.steps} == {"update"}
    # From 3.12 on the first iterations may be seen by nobody.
    epochs = [step["epoch"] for step in outcome.steps]
    assert epochs[-20:] == [1] * 10 + [2] * 10
    assert len(epochs) == 30
    if sys.version_info < (3, 12):
        assert epochs[:10] == [0] * 10


def test_a_loop_with_one_update_in_each_pass_has_no_epochs(run: Runner) -> None:
    outcome = run(
        UPDATES
        + """
for batch in range(30):
    for one in [optimizer]:
        update(one)
"""
    )
    assert len(outcome.steps) == 30
    assert {step["epoch"] for step in outcome.steps[1:]} <= {None}
