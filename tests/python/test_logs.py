"""Output is timed and stays what it was."""

from __future__ import annotations

import builtins
import contextlib
import copy
import inspect
import io
import logging
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch.integrations import _patch, logs

from .training_trace import Seen, run

ORIGINAL = builtins.print


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    stepwatch.stop()
    stepwatch.start(out=tmp_path / "run", quiet=True, policy="stream")
    logs.install()
    yield tmp_path / "run"
    _patch.restore()
    stepwatch.stop()
    assert builtins.print is ORIGINAL


def seen(folder: Path) -> Seen:
    stepwatch.stop()
    (path,) = folder.glob("*.stepwatch")
    return Seen(path)


class Stream:
    """Looks for who writes to it."""

    def __init__(self) -> None:
        self.text = ""
        self.callers: list[str] = []

    def write(self, text: str) -> None:
        self.text += text
        self.callers.append(sys._getframe(1).f_code.co_name)

    def flush(self) -> None:
        raise OSError("cannot be flushed")


def test_print_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print("a", 1, sep="-", end="!\n")
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        print("elsewhere")
    stream = Stream()
    print("x", file=stream)
    with pytest.raises(OSError, match="cannot be flushed"):
        print("y", file=stream, flush=True)
    with pytest.raises(TypeError, match="wrong"):
        print(wrong=1)  # type: ignore[call-overload]
    assert capsys.readouterr().out == "a-1!\n"
    assert buffer.getvalue() == "elsewhere\n"
    assert stream.text == "x\ny\n"
    assert set(stream.callers) == {"test_print_prints"}
    assert seen(folder).sections()["print"] == 5


def test_print_looks_as_it_did(folder: Path) -> None:
    del folder
    assert builtins.print is not ORIGINAL
    assert print is builtins.print
    assert repr(print) == repr(ORIGINAL)
    assert type(print) is type(ORIGINAL)
    assert inspect.isbuiltin(print)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__self__"):
        assert getattr(print, name) == getattr(ORIGINAL, name)
    # Before 3.11 there is none.
    assert getattr(print, "__text_signature__", 1) == getattr(ORIGINAL, "__text_signature__", 1)
    assert pickle.loads(pickle.dumps(print)) is print
    assert copy.deepcopy(print) is print


def test_print_of_the_program_is_left_alone(tmp_path: Path, monkeypatch: Any) -> None:
    said: list[object] = []
    stepwatch.start(out=tmp_path / "run", quiet=True)

    def own(*arguments: object) -> None:
        said.append(arguments)

    monkeypatch.setattr(builtins, "print", own)
    logs.install()
    assert builtins.print is own
    print(1)
    _patch.restore()
    assert builtins.print is own
    assert said == [(1,)]
    stepwatch.stop()


def test_a_print_on_top_of_ours_stays(folder: Path) -> None:
    del folder
    ours = builtins.print

    def loud(*arguments: object) -> None:
        ours(*(str(a).upper() for a in arguments))

    builtins.print = loud  # type: ignore[assignment]
    try:
        _patch.restore()
        assert builtins.print is loud
    finally:
        builtins.print = ORIGINAL


def test_numba_before_us_keeps_its_print(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "numba", sys)
    stepwatch.start(out=tmp_path / "run", quiet=True)
    logs.install()
    assert builtins.print is ORIGINAL
    _patch.restore()
    stepwatch.stop()
    assert capsys.readouterr().err.count("numba") == 1


def test_logging_names_its_caller(folder: Path) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(funcName)s %(message)s"))
    logger = logging.getLogger("stepwatch.test")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False

    def user() -> None:
        logger.info("hello %d", 1)
        logger.warning("outer", stacklevel=2)
        logger.debug("not at this level")
        logging.LoggerAdapter(logger, {}).info("adapted")
        try:
            raise ValueError("x")
        except ValueError:
            logger.exception("failed")

    user()
    lines = [line for line in stream.getvalue().splitlines() if "(" not in line]
    assert lines[:4] == [
        "user hello 1",
        "test_logging_names_its_caller outer",
        "user adapted",
        "user failed",
    ]
    assert seen(folder).sections()["logging"] == 4


def test_a_handler_that_looks_at_frames(folder: Path) -> None:
    """As handlers do that hand records on to other libraries of logging."""
    del folder
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            frame = sys._getframe(1)
            while frame.f_code.co_filename == logging.__file__:
                assert frame.f_back is not None
                frame = frame.f_back
            found.append(frame.f_code.co_name)

    logger = logging.getLogger("stepwatch.frames")
    logger.addHandler(Handler())
    logger.propagate = False
    logger.error("x")
    assert found == ["test_a_handler_that_looks_at_frames"]


def test_a_handler_that_raises(folder: Path) -> None:
    class Handler(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            raise ZeroDivisionError

    logger = logging.getLogger("stepwatch.raises")
    logger.addHandler(Handler())
    logger.propagate = False
    with pytest.raises(ZeroDivisionError):
        logger.error("x")
    assert seen(folder).sections()["logging"] == 1


def test_restored(folder: Path) -> None:
    del folder
    before = logging.Logger.__dict__["_log"]
    logs.install()
    assert logging.Logger.__dict__["_log"] is before, "twice is once"
    _patch.restore()
    assert inspect.isfunction(logging.Logger.__dict__["_log"])
    assert type(logging.Logger.__dict__["_log"]).__name__ == "function"


TQDM = """
    install("logs")
    import io
    from tqdm import tqdm
    stream = io.StringIO()
    bar = tqdm(range(100), file=stream, mininterval=0)
    print(list(bar) == list(range(100)), type(bar).__name__)
    with tqdm(total=3, file=stream, ascii=True) as bar:
        bar.set_postfix(loss=1)
        bar.update(3)
    tqdm.write("text", file=stream)
    print("100/100" in stream.getvalue(), "text" in stream.getvalue(), bar.n)
"""


@pytest.mark.once
def test_tqdm(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    bare = run(tmp_path, TQDM, records=False)
    done = run(tmp_path, TQDM)
    assert (done.out, done.err) == (bare.out, bare.err)
    assert done.seen.sections()["tqdm"] > 100


WANDB = """
    import os
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=os.getcwd())
    install("logs")
    import warnings
    warnings.simplefilter("ignore")
    import wandb
    run = wandb.init(project="x")
    for step in range(3):
        wandb.log({"loss": step})
    run.log({"loss": 3})
    print(run.summary["loss"])
    wandb.finish()
"""


@pytest.mark.slow
@pytest.mark.once
def test_wandb(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    done = run(tmp_path, WANDB)
    assert done.out.splitlines()[-1] == "3"
    assert done.seen.sections()["wandb"] == 5


TENSORBOARD = """
    install("logs")
    import warnings
    warnings.simplefilter("ignore")
    import torch
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter("boards") as writer:
        for step in range(3):
            writer.add_scalar("loss", 1 / (step + 1), step)
        writer.add_histogram("weights", torch.arange(10.0), 0)
        writer.flush()
    print(len(os.listdir("boards")))
"""


@pytest.mark.slow
@pytest.mark.once
def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    done = run(tmp_path, TENSORBOARD)
    assert done.out == "1\n"
    assert done.seen.sections()["tensorboard"] >= 6


MLFLOW = """
    install("logs")
    import warnings
    warnings.simplefilter("ignore")
    import mlflow
    mlflow.set_tracking_uri("file:" + os.getcwd() + "/mlruns")
    with mlflow.start_run():
        mlflow.log_param("lr", 0.1)
        for step in range(3):
            mlflow.log_metric("loss", step, step=step)
        mlflow.log_metrics({"a": 1, "b": 2})
    print("done")
"""


@pytest.mark.slow
@pytest.mark.once
def test_mlflow(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    done = run(tmp_path, MLFLOW, MLFLOW_ALLOW_FILE_STORE="true")
    assert done.out.splitlines()[-1] == "done"
    assert done.seen.sections()["mlflow"] >= 5


COMPILED_PRINT = """
    import logging
    import torch
    import torch._dynamo
    if os.environ["ORDER"] == "after":
        torch._dynamo.trace_rules._builtin_function_ids()
    install("logs")
    graphs = []
    def backend(module, _):
        graphs.append([(node.op, str(node.target)) for node in module.graph.nodes])
        return module.forward
    logger = logging.getLogger("x")
    def printing(x):
        y = x + 1
        print("in between", x.shape)
        return y * 2
    def logged(x):
        y = x + 1
        logger.warning("in between")
        return y * 2
    def attempt(function, **options):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        graphs.clear()
        try:
            result = torch.compile(function, backend=backend, **options)(torch.ones(2)).tolist()
        except Exception as error:
            result = type(error).__name__ + str(error)
        print(result, graphs, dict(torch._dynamo.utils.counters["graph_break"]))
    attempt(printing)
    attempt(printing, fullgraph=True)
    attempt(logged)
    attempt(logged, fullgraph=True)
    torch._dynamo.config.reorderable_logging_functions.add(print)
    attempt(printing, fullgraph=True)
    exported = torch.export.export(type("M", (torch.nn.Module,), {
        "forward": lambda self, x: printing(x)})(), (torch.ones(2),))
    print(exported.graph)
"""


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("order", ["before", "after"])
def test_torch_compile_takes_print_for_print(tmp_path: Path, order: str) -> None:
    pytest.importorskip("torch")
    bare = run(tmp_path, COMPILED_PRINT, records=False, ORDER=order)
    done = run(tmp_path, COMPILED_PRINT, ORDER=order)
    assert "in between" in bare.out
    assert done.out == bare.out
    assert done.err.count("\n") == bare.err.count("\n")
    assert done.seen.sections()["print"] > 5
