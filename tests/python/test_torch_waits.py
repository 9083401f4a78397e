"""torch: waits for a device, transfers, compilations, collectives.

There is no device where these tests usually run. What tells a tensor in host memory from others is
an attribute of tensors; with another one in its place, all tensors count as elsewhere.
"""

from __future__ import annotations

import concurrent.futures
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from .training_trace import COLLECTIVE, COMPILE, COMPILED, SYNC, WAIT, XFER, Child, run

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = [pytest.mark.once, pytest.mark.slow]

SYNCS, TO_DEVICE, FROM_DEVICE = 1, 2, 3

# A torch whose tensors all lie on a device, as far as the adapter can tell.
ELSEWHERE = """
    import torch
    from stepwatch import _core
    from stepwatch.integrations import torch_transfer
    BARE = {name: getattr(torch.Tensor, name) for name in dir(torch.Tensor)}
    def elsewhere():
        if RECORDS:
            base = torch._C.TensorBase
            made = _core.tensor_calls(base, torch.device, torch._C._has_torch_function_unary,
                                      base.is_quantized, base.is_meta)
            for name, descriptor in made.items():
                setattr(torch.Tensor, name, descriptor)
            torch_transfer._tell_torch(torch, {name: BARE[name] for name in made}, made)
"""


def test_nothing_is_replaced_without_an_accelerator(tmp_path: Path) -> None:
    text = """
        import torch
        before = dict(vars(torch.Tensor)), torch.cuda.synchronize
        install("torch_transfer")
        from stepwatch.integrations import torch_transfer
        expected = torch_transfer.has_accelerator(torch)
        same = (dict(vars(torch.Tensor)), torch.cuda.synchronize) == before
        print(json.dumps([same, expected, torch.ones(()).item()]))
    """
    same, accelerator, value = run(tmp_path, text).answer
    assert same != accelerator
    assert value == 1


WAITS = (
    ELSEWHERE
    + """
    elsewhere()
    def step(x):
        x.sum().item()  # line A
        bool(x.sum() > 0)  # line B
        float(x.sum()), int(x.sum()), x.tolist()  # line C
        x.cpu(), x.to("cpu"), x.to(device=torch.device("cpu"))
        x.numpy()
        x.to(torch.float64), x.to("meta"), x.to(dtype=torch.int64), x.double()  # none of these
        torch.ones(3, device="meta").to("meta")
    x = torch.ones(10)
    for _ in range(3):
        stepwatch.step_begin()
        step(x)
        stepwatch.step_end()
    try:
        x.to("cpu", torch.float32, False, False, 1)
    except TypeError as error:
        print(type(error).__name__)
    run = stepwatch.stop() if RECORDS else None
    print(json.dumps([step["sync_ns"] > 0 for step in run.steps]))
"""
)


def test_waits_by_line(tmp_path: Path) -> None:
    done = run(tmp_path, WAITS)
    assert done.answer == [True] * 3
    seen = done.seen
    lines = (tmp_path / "program.py").read_text(encoding="utf-8").splitlines()
    by_call: dict[tuple[str, int], Any] = {}
    for row in seen.rows(WAIT):
        call, file, line, kind = row.keys
        assert Path(file).name == "program.py"
        by_call[call, kind] = row, lines[line - 1]
    item, line = by_call["Tensor.item", SYNCS]
    assert item.values[0] == 3
    assert item.values[2] == 3 * 4
    assert item.values[3] <= item.values[1]
    assert "line A" in line
    assert "line B" in by_call["Tensor.__bool__", SYNCS][1]
    assert "line C" in by_call["Tensor.__float__", SYNCS][1]
    assert "line C" in by_call["Tensor.__int__", SYNCS][1]
    assert by_call["Tensor.tolist", FROM_DEVICE][0].values[:1] == (3,)
    assert by_call["Tensor.cpu", FROM_DEVICE][0].values[2] == 3 * 40
    assert by_call["Tensor.to", FROM_DEVICE][0].values[0] == 3 * 2
    assert by_call["Tensor.numpy", FROM_DEVICE][0].values[0] == 3
    assert len(by_call) == 8
    assert len(seen.records(SYNC)) == 3 * 4
    transfers = seen.records(XFER)
    assert len(transfers) == 3 * 5
    directions = {struct.unpack_from("<I", record.body, 32)[0] for record in transfers}
    assert directions == {2}
    assert seen.sections()["sync"] == 3 * 9 + 1, "the call that failed is one, too"


MANNERS = (
    ELSEWHERE
    + """
    import copy, pickle
    from torch.overrides import TorchFunctionMode, resolve_name, is_tensor_method_or_property
    elsewhere()
    say = []
    for name in ("item", "cpu", "to", "tolist", "numpy", "cuda", "__bool__", "__index__"):
        method = getattr(torch.Tensor, name)
        say.append([repr(method), type(method).__name__, method.__doc__, method.__qualname__,
                    resolve_name(method), is_tensor_method_or_property(method)])
        say.append(repr(pickle.loads(pickle.dumps(method))))
    x = torch.arange(3.0)
    bound = x.sum().item
    say += [bound(), repr(type(bound)), list(map(torch.Tensor.tolist, [x, x + 1]))]
    def attempt(function):
        try:
            return str(function())
        except Exception as error:
            return type(error).__name__ + ": " + str(error)
    say += [attempt(lambda: x.item()), attempt(lambda: x.sum().item(1)), attempt(lambda: x.to()),
            attempt(lambda: x.to("nowhere")), attempt(lambda: torch.Tensor.item(3)),
            attempt(lambda: torch.Tensor.item()), attempt(lambda: bool(x)),
            attempt(lambda: x.to(x, wrong=1)), attempt(lambda: x.cpu(memory_format=3)),
            attempt(lambda: range(10)[torch.tensor(4)]), attempt(lambda: x.cuda())]
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            say.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))
    with Mode():
        x.sum().item(), x.cpu(), x.to("cpu"), bool(x.sum())
    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            say.append([function.__name__, function is getattr(torch.Tensor, function.__name__, 0)])
            return super().__torch_function__(function, types, args, kwargs or {})
    y = torch.ones(()).as_subclass(Sub)
    say += [y.item(), type(y.cpu()).__name__, type(y.to("cpu")).__name__]
    lazy = torch.nn.LazyLinear(3).cpu().to("cpu")
    say += [type(lazy.weight).__name__, lazy(torch.ones(1, 2)).shape]
    traced = torch.fx.symbolic_trace(lambda a: a.cpu().to(torch.float64) + 1)
    say.append(str(traced.graph))
    import warnings
    def scripted(a):
        return a.sum().item()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        say.append(torch.jit.script(scripted)(torch.ones(3)))
    say.append(torch.func.vmap(lambda a: a.to(torch.float64).cpu())(torch.ones(2, 3)).tolist())
    print(json.dumps(say))
"""
)


def test_methods_of_tensors_behave_as_before(tmp_path: Path) -> None:
    bare = run(tmp_path, MANNERS, records=False)
    done = run(tmp_path, MANNERS)
    assert done.answer == bare.answer
    assert done.err == bare.err
    # Under a mode and in a subclass calls are counted, once each.
    assert sum(row.values[0] for row in done.seen.rows(WAIT) if row.keys[0] == "Tensor.item") >= 3


COMPILES = (
    ELSEWHERE
    + """
    import logging, re, warnings
    warnings.filterwarnings("ignore", ".*deprecated", DeprecationWarning)  # torch's own
    if os.environ["ORDER"] == "after":
        import torch._dynamo
        torch._dynamo.trace_rules.get_tensor_method()
    elsewhere()
    install("torch_compile_watch", "torch_distributed", "torch_transfer")
    import torch._dynamo
    graphs = []
    def backend(module, _):
        graphs.append([(node.op, re.sub("0x[0-9a-f]+", "", str(node.target)))
                       for node in module.graph.nodes])
        return module.forward
    def to(x): return x.to(torch.float64).cpu() + 1
    def to_by_class(x): return torch.Tensor.to(x, torch.float64) + 1
    def item(x): return x * x.sum().item()
    def branch(x): return x + 1 if x.sum() > 0 else x - 1
    def number(x): return x * float(x.sum())
    def several(x): return [torch.Tensor.item(x.sum()), x.tolist()]
    def numpy(x): return x.numpy() + 1
    def index(x): return x[:int(x.sum() > 0)]
    def mapped(x): return list(map(torch.Tensor.cpu, [x, x + 1]))
    def synchronised(x):
        y = x + 1
        torch.cuda.is_available() and torch.cuda.synchronize()
        return y * 2
    for capture in (False, True):
        torch._dynamo.config.capture_scalar_outputs = capture
        for fullgraph in (False, True):
            for function in (to, to_by_class, item, branch, number, several, numpy, index, mapped,
                             synchronised):
                torch._dynamo.reset()
                torch._dynamo.utils.counters.clear()
                graphs.clear()
                compiled = torch.compile(function, backend=backend, fullgraph=fullgraph)
                try:
                    result = str(compiled(torch.ones(3)))
                except Exception as error:
                    result = type(error).__name__ + str(error)
                    if function is synchronised:
                        # Where dynamo refuses it, the stack that it names has our function, too.
                        result = result.splitlines()[0]
                counters = {key: value for key, value in torch._dynamo.utils.counters.items()}
                print(capture, fullgraph, function.__name__, result, graphs, counters)
"""
)


@pytest.mark.parametrize("order", ["before", "after"])
def test_torch_compile_does_not_notice(tmp_path: Path, order: str) -> None:
    bare = run(tmp_path, COMPILES, records=False, ORDER=order)
    done = run(tmp_path, COMPILES, ORDER=order)
    assert len(bare.out.splitlines()) >= 40
    assert done.out == bare.out
    assert lines_without_times(done) == lines_without_times(bare)
    assert len(done.seen.rows(COMPILED)) >= 10


def lines_without_times(child: Child) -> list[str]:
    """Return what was said on stderr, without moments and process ids."""
    return [line.split("] ", 1)[-1] for line in child.err.splitlines()]


RECOMPILES = """
    import warnings
    import torch
    warnings.filterwarnings("ignore", ".*deprecated", DeprecationWarning)  # torch's own
    install("torch_compile_watch")
    @torch.compile(backend="eager")
    def scale(x, n):
        y = x * n
        torch._dynamo.graph_break()
        return y.sum()
    class Net(torch.nn.Module):
        def forward(self, x):
            return x.sin().sum()
    stepwatch.step_begin()
    scale(torch.ones(3), 2)
    scale(torch.ones(3), 3)
    scale(torch.ones(3, dtype=torch.float64), 3)
    stepwatch.step_end()
    torch._dynamo.reset()
    net = torch.compile(Net(), backend="aot_eager")
    x = torch.ones(3, requires_grad=True)
    net(x).backward()
    def refuses(module, _):
        raise ValueError("no back end")
    try:
        torch.compile(lambda x: x + 1, backend=refuses)(torch.ones(2))
    except Exception as error:
        print(type(error).__name__, "no back end" in str(error))
    run = stepwatch.stop()
    (step,) = run.steps
    print(json.dumps([step["compile_ns"] > 0, step["compile_ns"] <= step["duration_ns"]]))
"""


def test_compilations_have_a_function_and_a_reason(tmp_path: Path) -> None:
    done = run(tmp_path, RECOMPILES)
    assert done.out.startswith("BackendCompilerFailed True")
    assert done.answer == [True, True]
    lines = (tmp_path / "program.py").read_text(encoding="utf-8").splitlines()
    rows = {row.keys[:2]: row for row in done.seen.rows(COMPILED)}
    first = rows["scale", ""]
    assert first.flags == 0
    assert "@torch.compile" in lines[first.keys[3] - 1]
    again = rows["scale", "guard failed: n == 2"]
    assert again.flags == 1
    assert again.values[0] == 1
    assert sum(again.values[2:]) == again.values[1]
    assert any("dtype mismatch" in reason for name, reason in rows if name == "scale")
    assert any(name.startswith("scale (resumed at line") for name, _ in rows)
    assert ("forward", "") in rows
    assert ("forward (backward)", "") in rows
    assert any(reason.startswith("failed: ") for _, reason in rows)
    counts = [
        struct.unpack_from("<Q", record.body, 32)[0]
        for record in done.seen.records(COMPILE)
        if done.seen.names[record.id] == "scale"
    ]
    assert counts == [1, 2, 3]
    assert done.seen.sections()["compile"] == len(done.seen.records(COMPILE))


def test_compiled_modules_of_torch_are_named(tmp_path: Path) -> None:
    """Dynamo compiles them through a function of its own, which says nothing to anybody."""
    text = """
        import torch
        install("torch_compile_watch")
        layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        net = torch.compile(layers, backend="eager")
        for number in (2, 3):
            net(torch.ones(number, 3))  # the place
        stepwatch.stop()
        print("on")
    """
    done = run(tmp_path, text)
    lines = (tmp_path / "program.py").read_text(encoding="utf-8").splitlines()
    rows = done.seen.rows(COMPILED)
    assert {row.keys[0] for row in rows} == {"Sequential"}
    assert sorted(row.flags for row in rows) == [0, 1]
    for row in rows:
        assert Path(row.keys[2]).name == "program.py"
        assert lines[row.keys[3] - 1].endswith("# the place")


def test_a_dynamo_without_what_we_use_is_a_note(tmp_path: Path) -> None:
    text = """
        import torch, torch._dynamo
        if RECORDS:
            del torch._dynamo.callback_handler, torch._dynamo.utils.record_compilation_metrics
        install("torch_compile_watch")
        print("on")
    """
    done = run(tmp_path, text)
    assert done.out == "on\n"
    assert done.err.count("stepwatch: ") == 2
    assert "not recorded with this torch" in done.err


RANKS = """
    import torch
    import torch.distributed as dist
    install("torch_compile_watch", "torch_distributed")
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(12):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8) * (rank + 1)).sum()
        loss.backward()
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        print(step, total.item())
    dist.barrier()
    gathered = [None, None]
    dist.all_gather_object(gathered, rank)
    work = dist.all_reduce(torch.ones(3), async_op=True)
    work.wait()
    try:
        dist.all_reduce("nothing")
    except Exception as error:
        print(type(error).__name__, error)
    graphs = []
    def backend(module, _):
        graphs.append([(node.op, str(node.target)) for node in module.graph.nodes])
        return module.forward
    @torch.compile(backend=backend, fullgraph=True)
    def reduced(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1
    @torch.compile(backend=backend)
    def broken(x):
        y = x * 2
        torch._dynamo.graph_break()
        dist.all_reduce(y)
        dist.barrier()
        return y + 1
    print(reduced(torch.ones(2)).tolist(), broken(torch.ones(2)).tolist())
    torch.compile(model, backend=backend)(torch.ones(4, 8)).sum().backward()
    counters = torch._dynamo.utils.counters
    print(gathered, graphs, dict(counters["stats"]), dict(counters["frames"]))
    print([p.sum().item() for p in model.parameters()])
    dist.barrier()
    dist.destroy_process_group()
    # torch's own threads can end the process with std::terminate while it takes itself down.
    if RECORDS:
        stepwatch.stop()
    sys.stdout.flush()
    os._exit(0)
"""


def ranks(folder: Path, records: bool) -> list[Child]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done: dict[int, Child] = {}

    def one(rank: int) -> None:
        done[rank] = run(
            folder / f"rank{rank}",
            # The warnings of others are not at issue here.
            "import warnings; warnings.simplefilter('ignore')\n" + dedented(RANKS),
            records=records,
            RANK=str(rank),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
        )

    with concurrent.futures.ThreadPoolExecutor(2) as both:
        list(both.map(one, range(2)))
    return [done[0], done[1]]


def dedented(text: str) -> str:
    return "\n".join(line[4:] for line in text.splitlines())


def test_two_ranks(tmp_path: Path) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    for left in (2, 1, 0):
        try:
            bare = ranks(tmp_path, records=False)
            break
        except AssertionError:  # torch alone; it is not what is asked here
            if not left:
                raise
    done = ranks(tmp_path, records=True)
    assert [child.out for child in done] == [child.out for child in bare]
    for rank, child in enumerate(done):
        seen = child.seen
        settings = seen.settings("distributed")
        assert settings["rank"] == rank
        assert settings["world_size"] == 2
        assert settings["backend"] == "gloo"
        assert seen.facts["rank"] == str(rank)
        ddp = seen.settings("ddp")
        assert ddp["module"] == "Sequential"
        assert ddp["iteration"] >= 10
        assert ddp["avg_backward_comm_time"] > 0
        records = seen.records(COLLECTIVE)
        names = [seen.names[record.id] for record in records]
        assert names.count("all_reduce") >= 13
        assert names.count("barrier") >= 1
        assert names.count("all_gather_object") == 1
        assert "all_gather" not in names, "it is part of all_gather_object"
        first = next(r for r in records if seen.names[r.id] == "all_reduce")
        size, sequence = struct.unpack_from("<QQ", first.body, 32)
        assert size == 4
        assert sequence == 0
        assert struct.unpack_from("<I", first.body, 52)[0] == 2
        assert seen.sections()["communication"] >= len(records)


def test_data_parallel_is_noted(tmp_path: Path) -> None:
    text = """
        import torch
        install("torch_distributed")
        torch.nn.DataParallel(torch.nn.Linear(1, 1))
    """
    assert run(tmp_path, text).seen.settings("data_parallel") == {
        "devices": float(torch.cuda.device_count())
    }


# --- With a GPU ------------------------------------------------------------------------------

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

ON_GPU = """
    import torch
    install("torch_transfer", "torch_compile_watch")
    x = torch.ones(1000, 1000)
    pinned = x.pin_memory()
    stepwatch.step_begin()
    a = x.to("cuda")  # plain
    b = pinned.to("cuda", non_blocking=True)  # pinned
    c = x.cuda()  # cuda
    d = (a @ b).sum()
    d.item()  # item
    if d > 0:  # bool
        d.cpu()  # cpu
    torch.cuda.synchronize()  # synchronize
    model = torch.nn.Linear(10, 10).to("cuda")  # model
    a.to("cuda"), a.to(torch.float64), a.to(0)  # none
    stepwatch.step_end()
    run = stepwatch.stop()
    (step,) = run.steps
    print(json.dumps([step["sync_ns"] > 0, step["h2d_ns"] > 0]))
"""


@needs_cuda
def test_waits_on_a_gpu(tmp_path: Path) -> None:
    done = run(tmp_path, ON_GPU)
    assert done.answer == [True, True]
    lines = (tmp_path / "program.py").read_text(encoding="utf-8").splitlines()
    rows = {}
    for row in done.seen.rows(WAIT):
        rows[lines[row.keys[2] - 1].split("# ")[-1], row.keys[0], row.keys[3]] = row
    assert rows["plain", "Tensor.to", TO_DEVICE].values[2] == 4_000_000
    assert rows["plain", "Tensor.to", TO_DEVICE].values[4] == 0
    assert rows["pinned", "Tensor.to", TO_DEVICE].values[4] == 1
    assert rows["pinned", "Tensor.to", TO_DEVICE].flags == 1
    assert rows["cuda", "Tensor.cuda", TO_DEVICE].values[0] == 1
    assert rows["item", "Tensor.item", SYNCS].values[0] == 1
    assert rows["bool", "Tensor.__bool__", SYNCS].values[0] == 1
    assert rows["cpu", "Tensor.cpu", FROM_DEVICE].values[0] == 1
    assert rows["synchronize", "torch.cuda.synchronize", SYNCS].values[0] == 1
    assert rows["model", "Tensor.to", TO_DEVICE].values[0] == 2
    assert len(rows) == 8


@needs_cuda
def test_torch_compile_does_not_notice_on_a_gpu(tmp_path: Path) -> None:
    text = """
        import torch
        install("torch_transfer", "torch_compile_watch")
        import torch._dynamo
        graphs = []
        def backend(module, _):
            graphs.append([(node.op, str(node.target)) for node in module.graph.nodes])
            return module.forward
        def function(x):
            y = x.to("cuda") * 2
            torch.cuda.synchronize()
            if y.sum() > 0:
                y = y.cpu().to("cuda")
            return y.sum().item()
        print(torch.compile(function, backend=backend)(torch.ones(3)))
        print(graphs, dict(torch._dynamo.utils.counters))
    """
    bare = run(tmp_path, text, records=False)
    done = run(tmp_path, text)
    assert done.out == bare.out
    assert lines_without_times(done) == lines_without_times(bare)
