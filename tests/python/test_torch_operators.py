"""Operators on demand: torch's own profiler, open for a few steps, joined into the trace."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from .training_trace import OPERATOR, SPAN, Child, run

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = [pytest.mark.once, pytest.mark.slow]

FORWARD, BACKWARD, OPTIMIZER, ZERO_GRAD = 6, 8, 9, 10

TRAIN = """
    import torch
    from stepwatch import _core
    install("torch_operators")
    torch.manual_seed(0)
    device = os.environ.get("DEVICE", "cpu")
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    class Owner: pass
    owner = Owner()
    losses = []
    def step(number):
        if RECORDS:
            _core.train_step(4, owner)
        optimizer.zero_grad()
        loss = net(torch.ones(4, 8, device=device)).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
"""
LOOP = (
    TRAIN
    + """
    for number in range(12):
        step(number)
    if RECORDS:
        _core.train_step_end(4, owner)
    print(json.dumps(losses))
"""
)


def train(folder: Path, text: str = LOOP, **options: Any) -> Child:
    return run(folder, text, **{"STEPWATCH_OPERATORS": "1", **options})


def said(child: Child) -> list[str]:
    """Return what was said on stderr, but for what the configuration does not know yet."""
    return [line for line in child.err.splitlines() if "is not a known setting" not in line]


def test_three_steps_after_five(tmp_path: Path) -> None:
    bare = train(tmp_path, records=False)
    done = train(tmp_path)
    assert done.answer == bare.answer, "losses are the same to the last bit"
    assert said(done) == [], "the profiler's own lines are not the program's"
    seen = done.seen
    rows = {row.keys: row.values for row in seen.rows(OPERATOR)}
    forward = rows["aten::addmm", "[[16], [4, 8], [8, 16], [], []]", FORWARD, 0]
    calls, alone, whole, _, flops = forward
    assert calls == 3
    assert 0 < alone <= whole
    assert flops == 3 * 2 * 4 * 8 * 16
    phases = {name: phase for name, _, phase, _ in rows}
    assert phases["autograd::engine::evaluate_function: AddmmBackward0"] == BACKWARD
    assert phases["AddmmBackward0"] == BACKWARD
    assert phases["Optimizer.step#SGD.step"] == OPTIMIZER
    assert phases["Optimizer.zero_grad#SGD.zero_grad"] == ZERO_GRAD
    for calls, alone, whole, *_ in rows.values():
        assert calls % 3 == 0
        assert alone <= whole
    settings = seen.settings("operators")
    assert settings["steps"] == "5-7"
    assert 0 < settings["window_seconds"] < 60
    assert settings["overhead_seconds"] > 0
    assert settings["events"] >= sum(values[0] for values in rows.values())
    assert seen.sections()["stepwatch operators"] == 2


def test_spans_lie_in_their_steps(tmp_path: Path) -> None:
    text = (
        LOOP
        + """
    run = stepwatch.stop()
    steps = {step["step"]: step for step in run.steps}
    begin = steps[5]["begin_ns"]
    end = steps[7]["begin_ns"] + steps[7]["duration_ns"]
    spans = [span for span in run.spans if span["thread"].startswith("operators")]
    inside = [begin <= s["begin_ns"] and s["begin_ns"] + s["duration_ns"] <= end for s in spans]
    by_step = [sum(s["name"] == "aten::linear" and steps[n]["begin_ns"] <= s["begin_ns"]
                   < steps[n + 1]["begin_ns"] for s in spans) for n in range(12 - 1)]
    depths = {s["name"]: s["depth"] for s in spans}
    print(json.dumps([len(spans), all(inside), by_step, depths["aten::linear"],
                      depths["aten::addmm"]]))
"""
    )
    done = train(tmp_path, text)
    count, inside, by_step, linear, addmm = done.answer
    assert inside
    assert by_step == [0, 0, 0, 0, 0, 2, 2, 2, 0, 0, 0]
    assert addmm == linear + 1
    spans = [r for r in done.seen.records(SPAN) if done.seen.names[r.id].startswith("aten::")]
    assert 0 < len(spans) <= count
    ends = [record.end for record in spans]
    assert ends == sorted(ends)


def test_a_schedule_says_which_steps(tmp_path: Path) -> None:
    done = train(tmp_path, STEPWATCH_SCHEDULE="steps=2,3,9")
    rows = {row.keys[0]: row.values for row in done.seen.rows(OPERATOR)}
    assert rows["Optimizer.step#SGD.step"][0] == 3
    assert done.seen.settings("operators")["steps"] in ("2-3", "9")
    # They are told when their steps are over, and are there all the same.
    names = [done.seen.names[record.id] for record in done.seen.records(SPAN)]
    assert names.count("aten::linear") == 2 * 3


def test_what_a_closure_runs_is_no_update(tmp_path: Path) -> None:
    text = TRAIN.replace("optimizer.zero_grad()", "").replace(
        """        loss = net(torch.ones(4, 8, device=device)).sum()
        loss.backward()
        optimizer.step()
""",
        """        def closure():
            optimizer.zero_grad()
            loss = net(torch.ones(4, 8, device=device)).sum()
            loss.backward()
            return loss
        loss = optimizer.step(closure)
""",
    )
    assert "closure" in text
    done = train(tmp_path, text + "\n    for number in range(12):\n        step(number)\n")
    phases: dict[str, set[int]] = {}
    for row in done.seen.rows(OPERATOR):
        phases.setdefault(str(row.keys[0]), set()).add(int(row.keys[2]))
    assert phases["aten::linear"] == phases["aten::addmm"] == {FORWARD}
    assert phases["AddmmBackward0"] == {BACKWARD}
    assert phases["Optimizer.zero_grad#SGD.zero_grad"] == {ZERO_GRAD}
    assert phases["Optimizer.step#SGD.step"] == phases["aten::add_"] == {OPTIMIZER}


def test_off_by_default(tmp_path: Path) -> None:
    done = train(tmp_path, STEPWATCH_OPERATORS="")
    assert not done.seen.rows(OPERATOR)
    assert done.seen.settings("operators") == {}


def test_a_program_that_ends_within_the_window(tmp_path: Path) -> None:
    done = train(tmp_path, LOOP.replace("range(12)", "range(7)"))
    rows = {row.keys[0]: row.values for row in done.seen.rows(OPERATOR)}
    assert rows["Optimizer.step#SGD.step"][0] == 2
    assert said(done) == []


def test_a_program_that_ends_before_it_is_a_note(tmp_path: Path) -> None:
    done = train(tmp_path, LOOP.replace("range(12)", "range(3)"))
    assert not done.seen.rows(OPERATOR)
    (line,) = said(done)
    assert line.startswith("stepwatch: --operators saw no operators")


OWN_PROFILER = (
    TRAIN
    + """
    from torch.profiler import ProfilerActivity, profile, schedule
    import warnings
    warnings.simplefilter("ignore")
    first = int(os.environ["FIRST"])
    for number in range(first):
        step(number)
    with profile(activities=[ProfilerActivity.CPU],
                 schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as own:
        for number in range(first, first + 6):
            step(number)
            own.step()
    names = {event.key: event.count for event in own.key_averages()}
    print(json.dumps([losses, names["aten::linear"]]))
"""
)


@pytest.mark.parametrize("first", ["3", "6"])
def test_the_programs_own_profiler_comes_first(tmp_path: Path, first: str) -> None:
    """It begins before our window, or within."""
    bare = train(tmp_path, OWN_PROFILER, records=False, FIRST=first, KINETO_LOG_LEVEL="99")
    done = train(tmp_path, OWN_PROFILER, FIRST=first, KINETO_LOG_LEVEL="99")
    assert done.answer == bare.answer
    assert done.answer[1] == 4
    (line,) = said(done)
    assert line == (
        "stepwatch: --operators has no more operators: the program uses torch.profiler itself"
    )


ALONE = """
    import torch
    net = torch.nn.Linear(4, 4)
    with stepwatch.record("alone", out=OUT, operators=True, schedule=SCHEDULE) as run:
        LOOP
            net(torch.ones(2, 4)).sum().backward()
    rows = [[row["name"], row["calls"]] for row in run.operators if row["device"] == "cpu"]
    with stepwatch.record("later", out=OUT + "-later"):
        for _ in stepwatch.steps(range(9)):
            net(torch.ones(2, 4)).sum().backward()
    print(json.dumps([rows, stepwatch.open(OUT + "-later").operators[:]]))
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for _ in stepwatch.steps(range(9)):",
        "for _ in range(9):\n          with stepwatch.step():",
        "for _ in range(9):",
    ],
)
def test_a_recording_asks_for_operators(tmp_path: Path, loop: str) -> None:
    """Without hooks: steps of the program's own are enough, and without steps there is a note."""
    text = ALONE.replace("LOOP", loop).replace("OUT", repr(str(tmp_path / "alone")))
    done = run(tmp_path, text.replace("SCHEDULE", repr("steps=1,4")), records=False)
    rows, later = done.answer
    assert later == []
    calls = dict(rows)
    if loop == "for _ in range(9):":
        assert rows == []
        (line,) = said(done)
        assert line.startswith("stepwatch: operators=True saw no operators: there were no steps;")
    else:
        assert calls["aten::linear"] == calls["AddmmBackward0"] == 2
        assert said(done) == []


def test_numbers_and_inputs_of_operators(tmp_path: Path) -> None:
    """A forward and its backward have one number, in every window another."""
    done = train(tmp_path, STEPWATCH_SCHEDULE="steps=2,5,9")
    seen = done.seen
    spans = [(seen.names[r.id], r) for r in seen.records(SPAN) if r.flags & 0x0100]
    detail = {
        (name, record.ticks): struct.unpack_from("<QQIIII", record.body, 32)
        for name, record in spans
    }
    externals = [values[0] for values in detail.values()]
    assert len(set(externals)) == len(externals)
    forward = sorted(values[1] for (name, _), values in detail.items() if name == "aten::addmm")
    back = sorted(values[1] for (name, _), values in detail.items() if name == "AddmmBackward0")
    assert forward == back
    assert len(set(forward)) == 2 * 3
    shapes = {
        seen.names.get(values[4]) for (name, _), values in detail.items() if name == "aten::addmm"
    }
    assert shapes == {"[[16], [4, 8], [8, 16], [], []]", "[[1], [4, 16], [16, 1], [], []]"}
    assert all(r.flags & 0x0200 for name, r in spans if name == "AddmmBackward0")
    assert all(r.flags & 0x0400 for name, r in spans if name.startswith("Optimizer."))


FAILURES = {
    "disable": "RuntimeError: !stack.empty() INTERNAL ASSERT FAILED",
    "enable": "RuntimeError: Trace is already saved.",
    "events": "RuntimeError: Can't disable Kineto profiler when it's not running",
}


@pytest.mark.parametrize("where", FAILURES)
def test_a_profiler_that_fails_is_a_note(tmp_path: Path, where: str) -> None:
    text = FAILURES[where].split(": ", 1)[1]
    broken = LOOP.replace(
        "    losses = []",
        f"""
    import torch.autograd.profiler as profiler
    def fails(*_, **__):
        raise RuntimeError({text!r})
    class Result:
        events = fails
    if {where!r} == "events":
        disable = profiler._disable_profiler
        profiler._disable_profiler = lambda: (disable(), Result())[1]
    else:
        if {where!r} == "disable":
            import atexit
            atexit.register(profiler._disable_profiler)
        setattr(profiler, "_{where}_profiler", fails)
    losses = []""",
    )
    done = train(tmp_path, broken)
    assert len(done.answer) == 12
    lines = [line for line in said(done) if line.startswith("stepwatch: ")]
    assert lines == [f"stepwatch: --operators has no more operators: {FAILURES[where]}"]


def test_torch_compile_does_not_notice(tmp_path: Path) -> None:
    text = TRAIN.replace(
        "    losses = []",
        """
    graphs = []
    def backend(module, _):
        graphs.append(len(module.graph.nodes))
        return module.forward
    net = torch.compile(net, backend=backend)
    losses = []""",
    )
    text += """
    for number in range(12):
        step(number)
    stats = {key: dict(value) for key, value in torch._dynamo.utils.counters.items()}
    print(json.dumps([losses, graphs, stats]))
"""
    bare = train(tmp_path, text, records=False)
    done = train(tmp_path, text)
    assert done.answer == bare.answer


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_kernels_on_a_gpu(tmp_path: Path) -> None:
    bare = train(tmp_path, records=False, DEVICE="cuda")
    done = train(tmp_path, DEVICE="cuda")
    assert done.answer == bare.answer
    rows = done.seen.rows(OPERATOR)
    kernels = [row for row in rows if row.keys[3] == 1]
    assert kernels
    assert {row.keys[2] for row in kernels} >= {FORWARD, BACKWARD}
    assert all(row.values[0] > 0 and row.values[2] > 0 for row in kernels)
    work = done.seen.records(16)
    assert len(work) == sum(row.values[0] for row in kernels)
    assert said(done) == []
