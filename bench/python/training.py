"""What watching a training costs: on and off in turn, in one process.

training.py RUN PROGRAM TOOL PAIRS STEPS

PROGRAM is one of cnn, cnn-every, ocr, ocr-photos, baseline, baseline-photos, baseline-small,
lightning, lightning-small, hf, jax. A pair is STEPS steps with the tool and as many without, the
first of the two changing places; beginning and ending the tool is not timed, for it happens once a
run. The figures go to RUN.json, for some tools print a lot.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from pathlib import Path
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Any, Callable

warnings.simplefilter("ignore")

# Steps from one that is profiled to the next.
EVERY = 100
GUIDE_2 = Path(__file__).parents[2] / "examples" / "lightning_guide"
# Of a training that guide 2's callback profiles: a cycle begins every so many steps, and these of
# it are recorded. Torch's profiler begins before them; after the last it is read, and the trace is
# written.
CYCLE, FIRST, LAST = 40, 11, 30

Work = Callable[[int], None]
Tool = Callable[[], "AbstractContextManager[object]"]


class AbsentError(Exception):
    """Something that is measured is not installed."""


# --- Programs -------------------------------------------------------------------------


def cnn_parts(rows: int = 4096) -> tuple[Any, Any, Any, Any]:
    """Return model, loss, optimizer and data of the CNN: eight modules, about 1.3 ms a step."""
    import torch
    from torch import nn
    from torch.utils.data import TensorDataset

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = TensorDataset(torch.randn(rows, 1, 28, 28), torch.randint(0, 10, (rows,)))
    return model, nn.CrossEntropyLoss(), optimizer, data


def cnn() -> Work:
    """A plain loop over a loader."""
    from torch.utils.data import DataLoader

    model, criterion, optimizer, data = cnn_parts()
    step: Any = nullcontext
    if "traceml_ai" in sys.modules:  # It wants to be told what a step is.
        import traceml_ai

        step = functools.partial(traceml_ai.trace_step, model)

    def work(steps: int) -> None:
        done = 0
        while done < steps:
            for images, labels in DataLoader(data, batch_size=16, shuffle=True):
                with step():
                    optimizer.zero_grad()
                    loss = criterion(model(images), labels)
                    loss.backward()
                    optimizer.step()
                done += 1
                if done == steps:
                    break

    return work


def cnn_every() -> Work:
    """The same network without a loader; what is around a step is given from outside."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten()
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    images = torch.randn(64, 1, 28, 28)

    def work(steps: int) -> None:
        for number in range(steps):
            work.starts.append(process_time_ns())  # type: ignore[attr-defined]
            with work.around(number):  # type: ignore[attr-defined]
                optimizer.zero_grad()
                model(images).square().mean().backward()
                optimizer.step()

    work.around = lambda _: nullcontext()  # type: ignore[attr-defined]
    work.starts = []  # type: ignore[attr-defined]
    work.kind = one_in_so_many(EVERY)  # type: ignore[attr-defined]
    return work


def ocr(photos: bool = False) -> Work:
    """The training of guide 4, its own loop: batches of 16 pictures that are read from files.

    What ``python -m ml_ops.train train-ocr`` does with the settings of examples/ml_ops, on as many
    batches as there are steps, without validation. Its pictures are those that examples/ml_ops
    draws, or ``photos`` of the size that CCPD has, whose names the guide's files bear: there every
    tenth step is traced, for steps are long.
    """
    import logging

    import torch
    from stepwatch.compat.ml_ops import images, train
    from stepwatch.compat.ml_ops.model import PlateOCR
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    kept = tempfile.TemporaryDirectory()
    for number in range(60):
        text = images.plate_text(number)
        picture, box = images.draw_plate(text)
        if photos:
            picture, box = as_photo(picture, box)
        name = images.format_name(number, box, text)
        images.save_image(picture, Path(kept.name) / f"{name}.{'jpg' if photos else 'png'}")
    plates = train.find_plates(Path(kept.name), None).items
    every = 10 if photos else EVERY
    model = PlateOCR(0.004, False, every, kept.name)
    starts: list[int] = []
    ends: list[int] = []
    begin, end = model.on_train_batch_start, model.on_train_batch_end

    def begins(*arguments: Any) -> None:
        starts.append(process_time_ns())
        begin(*arguments)

    def ended(*arguments: Any) -> None:
        end(*arguments)
        ends.append(process_time_ns())

    model.on_train_batch_start = begins  # type: ignore[method-assign]
    model.on_train_batch_end = ended  # type: ignore[method-assign]

    def work(steps: int) -> None:
        count = steps * 16
        items = (plates * (count // len(plates) + 1))[:count]
        train.fit(model, DataLoader(train.Plates(items), batch_size=16), [], 1)

    work.model = model  # type: ignore[attr-defined]
    work.kept = kept  # type: ignore[attr-defined]
    work.ends = ends  # type: ignore[attr-defined]
    work.starts, work.kind = starts, one_in_so_many(every)  # type: ignore[attr-defined]
    return work


def as_photo(picture: Any, box: list[int]) -> tuple[Any, list[int]]:
    """Return a picture of 720 x 1160 with the plate in it, three times as large."""
    from PIL import Image
    from stepwatch.compat.ml_ops.images import Picture

    coarse = bytes((31 * place + place // 7) % 251 for place in range(90 * 145 * 3))
    photo = Image.frombytes("RGB", (90, 145), coarse).resize((720, 1160))
    plate = Image.frombytes("RGB", (picture.width, picture.height), picture.data)
    photo.paste(plate.resize((picture.width * 3, picture.height * 3)), (200, 600))
    left, top, right, bottom = (3 * one for one in box)
    place = [200 + left, 600 + top, 200 + right, 600 + bottom]
    return Picture(720, 1160, photo.tobytes()), place


def lightning(small: bool = False) -> Work:
    """A fit of Lightning's: of the CNN above, or of a net that takes a third of a millisecond."""
    import logging

    import lightning.pytorch as pl
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    body, _, _, data = cnn_parts(16000)
    if small:
        data = TensorDataset(torch.randn(16000, 64), torch.randint(0, 10, (16000,)))
        body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    class Net(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.body = body

        def training_step(self, batch: Any, _: int) -> Any:
            return nn.functional.cross_entropy(self.body(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    net = Net()
    profiler: list[Any] = [None]

    def work(steps: int) -> None:
        trainer = pl.Trainer(
            max_steps=steps,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            profiler=profiler[0],
        )
        trainer.fit(net, DataLoader(data, batch_size=16))

    work.profiler = profiler  # type: ignore[attr-defined]
    return work


def baseline(**data: int) -> Work:
    """The training of guide 2's example, in Lightning: its BaselineCNN, its data, its settings.

    ``data``: of those of the data, the ones that are to be others.
    """
    import logging

    import lightning.pytorch as pl
    import torch

    sys.path.insert(0, str(GUIDE_2 / "src"))
    from mlops_project.data import Images
    from mlops_project.model import BaselineCNN
    from mlops_project.settings import load

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    config = load(GUIDE_2 / "configs", [])
    torch.set_num_threads(config["training"]["threads"])
    pl.seed_everything(config["seed"], verbose=False)
    pictures = Images(**{**config["data"], **data})
    model = BaselineCNN(classes=pictures.classes)
    starts: list[int] = []

    class Starts(pl.Callback):
        def on_train_batch_start(self, *_: Any) -> None:
            starts.append(process_time_ns())

    def work(steps: int) -> None:
        trainer = pl.Trainer(
            max_steps=steps,
            max_epochs=-1,
            limit_val_batches=0,
            callbacks=[Starts(), *work.callbacks],  # type: ignore[attr-defined]
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, pictures)

    work.starts, work.callbacks = starts, []  # type: ignore[attr-defined]
    work.kind = of_a_cycle  # type: ignore[attr-defined]
    return work


def hf() -> Work:
    """A training of the Trainer's."""
    import torch
    from torch import nn
    from transformers import Trainer, TrainingArguments

    torch.set_num_threads(1)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

        def forward(self, x: Any = None, labels: Any = None) -> Any:
            out = self.body(x)
            return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}

    class Data(torch.utils.data.Dataset[Any]):
        rows = torch.randn(16000, 64)

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, index: int) -> Any:
            return {"x": self.rows[index], "labels": index % 10}

    net = Net()

    def work(steps: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                max_steps=steps,
                per_device_train_batch_size=16,
                report_to=[],
                save_strategy="no",
                logging_strategy="no",
                use_cpu=True,
                disable_tqdm=True,
            )
            Trainer(net, arguments, train_dataset=Data()).train()

    return work


def jax() -> Work:
    """A loop over a compiled update, about 1 ms a step."""
    import jax
    import jax.numpy as jnp
    import numpy

    random = numpy.random.default_rng(0)
    x = random.standard_normal((256, 1024), dtype="float32")
    y = random.standard_normal((256, 16), dtype="float32")

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ parameters[0]) @ parameters[1] - y) ** 2)

    # Functions are seen that are compiled while somebody watches.
    from stepwatch import integrations

    integrations.install()

    @jax.jit
    def update(parameters: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(parameters, x, y)
        return [p - 0.01 * g for p, g in zip(parameters, grads)], value

    integrations.remove()
    state = [jnp.ones((1024, 256)) * 0.01, jnp.ones((256, 16)) * 0.01]

    def work(steps: int) -> None:
        nonlocal state
        for _ in range(steps):
            state, value = update(state, x, y)
            float(value)

    return work


PROGRAMS: dict[str, Callable[[], Work]] = {
    "cnn": cnn,
    "cnn-every": cnn_every,
    "ocr": ocr,
    "ocr-photos": lambda: ocr(photos=True),
    "baseline": baseline,
    "baseline-photos": lambda: baseline(size=224, images=320),
    "baseline-small": lambda: baseline(size=16, batch_size=4, images=1200),
    "lightning": lightning,
    "lightning-small": lambda: lightning(small=True),
    "hf": hf,
    "jax": jax,
}

# --- Tools ----------------------------------------------------------------------------


@contextmanager
def ours(**config: Any) -> Iterator[None]:
    import stepwatch
    from stepwatch import integrations

    with tempfile.TemporaryDirectory() as folder:
        stepwatch.start(out=f"{folder}/run", quiet=True, **config)
        if not stepwatch.is_recording():
            raise SystemExit("stepwatch does not record")
        integrations.install()
        try:
            yield
        finally:
            stepwatch.stop()
            integrations.remove()


@contextmanager
def torch_profiler(**config: Any) -> Iterator[None]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], **config):
        yield


@contextmanager
def c_profile() -> Iterator[None]:
    import cProfile

    with cProfile.Profile():
        yield


@contextmanager
def allocations(sample_kb: int) -> Iterator[None]:
    import stepwatch

    with stepwatch.memory(sample_kb=sample_kb):
        yield


@contextmanager
def memray() -> Iterator[None]:
    import memray as rival

    with tempfile.TemporaryDirectory() as folder, rival.Tracker(f"{folder}/memray.bin"):
        yield


@contextmanager
def tracemalloc() -> Iterator[None]:
    import tracemalloc as rival

    rival.start()
    try:
        yield
    finally:
        rival.stop()


@contextmanager
def nothing() -> Iterator[None]:
    yield


PARTS = ("phases", "modules", "loader")


def parts(*wanted: str, **config: Any) -> Tool:
    """Return a tool that has some of what is watched, and statistics alone."""
    chosen = {part: part in wanted for part in PARTS}
    return lambda: ours(sampler_hz=0, events=False, **chosen, **config)


@contextmanager
def thread() -> Iterator[None]:
    """A second thread, which sleeps."""
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        yield
    finally:
        done.set()
        other.join()


TOOLS: dict[str, Tool] = {
    "nothing": nothing,
    "thread": thread,
    "bare": parts(),
    "phases": parts("phases"),
    "modules": parts("phases", "modules"),
    "loader": parts("phases", "loader"),
    "no-usage": parts(*PARTS, step_usage=False),
    "stepwatch": lambda: ours(sampler_hz=100),
    "statistics": lambda: ours(sampler_hz=0, events=False),
    "looked": lambda: ours(sampler_hz=0, events=False, brief=False),
    "torch.profiler": torch_profiler,
    "torch.profiler-all": lambda: torch_profiler(
        record_shapes=True, profile_memory=True, with_stack=True
    ),
    "cProfile": c_profile,
    "memory": lambda: allocations(512),
    "counters": lambda: allocations(0),
    "memory-run": lambda: ours(sampler_hz=0, memory=True),
    "memray": memray,
    "tracemalloc": tracemalloc,
}


def lightning_simple(work: Any) -> Tool:
    @contextmanager
    def tool() -> Iterator[None]:
        from lightning.pytorch.profilers import SimpleProfiler

        work.profiler[0] = SimpleProfiler()
        try:
            yield
        finally:
            work.profiler[0] = None

    return tool


# Of a callback: steps from one cycle to the next, those that it waits, and active ones.
SCHEDULE = (CYCLE, FIRST - 1, LAST - FIRST + 1)


def callback(work: Any, operators: bool, schedule: tuple[int, int, int] = SCHEDULE) -> Tool:
    """Return a tool that is guide 2's callback, with torch's operators or our recording alone."""
    every, wait, active = schedule

    @contextmanager
    def tool() -> Iterator[None]:
        from stepwatch.compat.lightning_guide import ProfilerCallback
        from stepwatch.integrations import torch_operators

        before = torch_operators.open_for
        if not operators:
            torch_operators.open_for = lambda *_, **__: None
        with tempfile.TemporaryDirectory() as folder:
            work.callbacks[:] = [ProfilerCallback(folder, every, wait, 1, active, 0)]
            try:
                yield
            finally:
                work.callbacks.clear()
                torch_operators.open_for = before

    return tool


def every(work: Any, profiled: Callable[[str], Any]) -> Tool:
    """Return a tool that profiles one step in a hundred, into a file each."""

    @contextmanager
    def tool() -> Iterator[None]:
        before = work.around
        with tempfile.TemporaryDirectory() as folder:
            work.around = lambda number: (
                profiled(f"{folder}/{number}") if number % EVERY == 0 else nullcontext()
            )
            try:
                yield
            finally:
                work.around = before

    return tool


def every_of_guide(work: Any, profiled: Callable[[str], Any] | None) -> Tool:
    """Return a tool that switches guide 4's own profiling on, with somebody else's or as it is."""

    @contextmanager
    def tool() -> Iterator[None]:
        from stepwatch.compat.ml_ops import profile

        before = profile.torch_profiler
        if profiled is not None:
            profile.torch_profiler = lambda **options: profiled(
                f"{options['output_dir']}/{options['trace_name']}"
            )
        work.model.enable_profiling = True
        try:
            yield
        finally:
            work.model.enable_profiling = False
            profile.torch_profiler = before

    return tool


def guide_ours(path: str) -> Any:
    from stepwatch.compat.ml_ops.profile import torch_profiler as profiled

    return profiled(enabled=True, output_dir=str(Path(path).parent), trace_name=Path(path).name)


@contextmanager
def guide_torch(path: str) -> Iterator[None]:
    from torch.profiler import ProfilerActivity, profile

    with profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True
    ) as found:
        yield
    found.export_chrome_trace(f"{path}.json")


AROUND: dict[str, Callable[[str], Any]] = {"every-ours": guide_ours, "every-torch": guide_torch}


# --- Measuring ------------------------------------------------------------------------


def timed(work: Work, steps: int) -> int:
    gc.collect()
    getattr(work, "starts", []).clear()
    getattr(work, "ends", []).clear()
    begin = perf_counter_ns()
    work(steps)
    return perf_counter_ns() - begin


def one_in_so_many(every: int) -> Callable[[int], str]:
    """Return who tells steps that are traced from others: one in so many is."""
    return lambda number: "others" if number % every else "traced"


def of_a_cycle(number: int) -> str:
    """Tell recorded steps of a cycle from idle ones, and from those that have what is around it."""
    place = number % CYCLE
    if FIRST <= place < LAST:
        return "traced"
    return "around" if FIRST - 3 < place < LAST + 2 else "others"


def usual(work: Any, took: list[int]) -> float:
    """Return what a step takes: the median, or of many short ones that which is reached by a tenth.

    Whoever else works on the machine only adds to a step, and to some more than to others.
    """
    return sorted(took)[len(took) // 10] if work.kind is of_a_cycle else median(took)


def traced(work: Any) -> dict[str, Any] | None:
    """Return what CPU time traced steps took and others, in the block that was timed last.

    ``around``: what a recorded step costs before the first of its cycle and after the last.
    ``own``: by how much the own part of each traced step is longer than that of others, from when
    its batch is there until it has been learnt from. All that tracing does happens in it, and
    making a batch does not: that differs by more from step to step than tracing takes.
    """
    starts = getattr(work, "starts", [])
    took: dict[str, list[int]] = {}
    for number, (before, after) in enumerate(zip(starts, starts[1:])):
        took.setdefault(work.kind(number), []).append(after - before)
    if not took.get("traced") or not took.get("others"):
        return None
    found: dict[str, Any] = {name: usual(work, took[name]) for name in ("traced", "others")}
    if "around" in took:
        more = sum(one - found["others"] for one in took["around"])
        cycles = len(took["traced"]) / (LAST - FIRST)
        found["around"] = more / cycles / (LAST - FIRST + 1)
    if getattr(work, "ends", None):
        parts: dict[str, list[int]] = {}
        for number, (before, after) in enumerate(zip(starts, work.ends)):
            parts.setdefault(work.kind(number), []).append(after - before)
        middle = median(parts["others"])
        found["own"] = [one - middle for one in parts["traced"]]
    return found


def plain(work: Any) -> float | None:
    """Return what CPU time a step took in the block that was timed last, nothing being traced."""
    starts = getattr(work, "starts", [])
    took = [after - before for before, after in zip(starts, starts[1:])]
    return usual(work, took) if took else None


def alone(program: str, blocks: int, steps: int) -> dict[str, Any]:
    """Time blocks of steps after a warm-up."""
    work = PROGRAMS[program]()
    work(steps)
    return {"blocks": [timed(work, steps) for _ in range(blocks)], "steps": steps}


def main() -> None:
    run, program, name, pairs, steps = sys.argv[1:6]
    if name == "alone":
        found = alone(program, int(pairs), int(steps))
        Path(f"{run}.json").write_text(json.dumps(found), encoding="utf-8")
        return
    result: dict[str, Any] = {}
    with Path(os.devnull).open("w") as sink, redirect_stdout(sink), redirect_stderr(sink):
        try:
            work = PROGRAMS[program]()
        except ImportError as error:
            result["absent"] = str(error)
        else:
            if name == "simple":
                tool = lightning_simple(work)
            elif name.startswith("callback"):
                tool = callback(work, operators=name == "callback")
            elif name in AROUND and program.startswith("ocr"):
                tool = every_of_guide(work, None if name == "every-ours" else AROUND[name])
            elif name in AROUND:
                tool = every(work, AROUND[name])
            else:
                tool = TOOLS[name]
            # Whatever happens once, happens now: with the tool and without.
            try:
                with tool():
                    work(max(20, int(steps) // 10))
            except ImportError as error:
                result["absent"] = str(error)
                Path(f"{run}.json").write_text(json.dumps(result), encoding="utf-8")
                return
            work(max(20, int(steps) // 10))
            found = []
            for pair in range(int(pairs)):
                figures: dict[str, Any] = {}
                for on in (True, False) if pair % 2 else (False, True):
                    if on:
                        with tool():
                            figures["on"] = timed(work, int(steps))
                            figures["steps"] = traced(work)
                    else:
                        figures["off"] = timed(work, int(steps))
                        figures["off_step"] = plain(work)
                found.append(figures)
            result = {"pairs": found, "steps": int(steps)}
    Path(f"{run}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
