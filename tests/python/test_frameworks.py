"""Lightning, Hugging Face and Keras, unchanged and with their callbacks: the real ones."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import stepwatch

pytestmark = pytest.mark.once

QUIET = "import warnings\nwarnings.simplefilter('ignore')\n"

LIGHTNING = """
import logging
import torch
import lightning.pytorch as pl
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Endless(IterableDataset):
    def __iter__(self):
        for i in range(10):
            yield torch.full((8,), float(i)), torch.tensor(i % 2)


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
        self.head = torch.nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val", torch.nn.functional.cross_entropy(self(x), y))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loaders():
    generator = torch.Generator().manual_seed(3)
    data = TensorDataset(torch.randn(40, 8, generator=generator), torch.arange(40) % 2)
    return DataLoader(data, batch_size=4), DataLoader(data, batch_size=10)


def trainer(**options):
    return pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
                      enable_model_summary=False, **options)


torch.manual_seed(0)
"""

HF = """
import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, x=None, labels=None):
        out = self.layer(x)
        return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return {"x": torch.full((8,), i / 40), "labels": torch.tensor(i % 2)}


def trainer(out, callbacks=(), **options):
    arguments = TrainingArguments(output_dir=out, per_device_train_batch_size=4, report_to=[],
                                  num_train_epochs=2, save_strategy="no", use_cpu=True,
                                  disable_tqdm=True, logging_steps=5, **options)
    return Trainer(Net(), arguments, train_dataset=Data(), eval_dataset=Data(),
                   callbacks=list(callbacks))


torch.manual_seed(0)
"""

KERAS = """
import os
os.environ["KERAS_BACKEND"] = BACKEND
import numpy
import keras

keras.utils.set_random_seed(0)
x = numpy.random.default_rng(0).normal(size=(60, 8)).astype("float32")
y = numpy.arange(60) % 2
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4, activation="relu"),
                          keras.layers.Dense(2)])
model.compile("sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
"""

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path, build_dir: Path) -> Program:
    """Run a program, plain or below ``stepwatch run``."""

    def run(source: str, *, watched: bool) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "train.py"
        script.write_text(QUIET + textwrap.dedent(source))
        command = [sys.executable, str(script)]
        if watched:
            tool = build_dir / "src" / "cli" / "stepwatch"
            command = [str(tool), "run", "-o", "run", "--", *command]
        result = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert result.returncode == 0, result.stderr
        return result

    return run


def report_of(folder: Path) -> Any:
    return json.loads((folder / "report.json").read_text())


def phases_of(report: Any) -> dict[str, float]:
    return {row["phase"]: row["ms"] or 0 for row in report["steps"]["phases"]}


def check_parts(report: Any) -> None:
    """Shares add up, and the timeline is the run."""
    assert sum(row["share"] or 0 for row in report["steps"]["phases"]) == pytest.approx(1)
    parts = sum(row["s"] for row in report["timeline"])
    assert parts == pytest.approx(report["run"]["duration_s"])


def test_lightning_unchanged(python: Program, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    program = (
        LIGHTNING
        + """
net = Net()
trainer(enable_checkpointing=False).fit(net, *loaders())
print(sum(p.double().sum().item() for p in net.parameters()), torch.get_rng_state().sum().item())
"""
    )
    plain = python(program, watched=False)
    watched = python(program, watched=True)
    assert watched.stdout == plain.stdout
    report = report_of(tmp_path / "run")
    steps = report["steps"]
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (20, 0, 20)
    assert [row["steps"] for row in report["epochs"]] == [10, 10]
    phases = phases_of(report)
    assert phases["forward"] > 0
    assert phases["backward"] > 0
    assert phases["optimizer"] > 0
    assert phases["data_wait"] > 0
    # It comes after the last step of an epoch, and before the first.
    assert phases.get("validation", 0) == 0
    assert {row["part"]: row["s"] for row in report["timeline"]}["validation"] > 0
    check_parts(report)


def test_lightning_loggers_are_logging(python: Program, tmp_path: Path) -> None:
    """What the trainer hands to loggers, one of the program's own and Lightning's, as it says."""
    pytest.importorskip("lightning")
    program = (
        LIGHTNING.replace("logger=False, ", "")
        + """
import time
from lightning.pytorch.loggers import CSVLogger, Logger


class Own(Logger):
    name = version = "own"
    def log_metrics(self, metrics, step=None):
        time.sleep(0.01)
    def log_hyperparams(self, params, *args, **kwargs):
        pass


loggers = [Own(), CSVLogger("csv", flush_logs_every_n_steps=1)]
fit = trainer(enable_checkpointing=False, logger=loggers, log_every_n_steps=1).fit
fit(Net(), loaders()[0])
"""
    )
    python(program, watched=True)
    report = report_of(tmp_path / "run")
    assert phases_of(report)["logging"] > 9
    assert any(row["name"] == "csv" and row["calls"] >= 20 for row in report["sections"])


def test_lightning_without_a_length(python: Program, tmp_path: Path) -> None:
    """Lightning asks for a batch ahead where it does not know how many there are."""
    pytest.importorskip("lightning")
    program = (
        LIGHTNING
        + """
trainer(enable_checkpointing=False).fit(Net(), DataLoader(Endless(), batch_size=2))
"""
    )
    python(program, watched=True)
    steps = report_of(tmp_path / "run")["steps"]
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (10, 0, 10)


def test_lightning_profiler(python: Program, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    program = (
        LIGHTNING
        + """
import pickle, stepwatch
profiler = stepwatch.lightning.Profiler(dirpath=".", filename="times", out="own")
trainer(profiler=profiler, default_root_dir=".").fit(Net(), *loaders())
assert profiler.run is not None
assert not stepwatch.is_recording()
pickle.loads(pickle.dumps(profiler))
try:
    profiler.stop("nothing")
except ValueError as error:
    assert "never started" in str(error)
else:
    raise SystemExit("no error")

class Own(stepwatch.lightning.Profiler):
    def start(self, action_name):
        heard.append(action_name)
        super().start(action_name)

heard = []
own = pickle.loads(pickle.dumps(Own()))
for one in (own, pickle.loads(pickle.dumps(profiler))):
    with one.profile("outer"), one.profile("inner"), one.profile("outer"):
        pass
    one.start("inner")
    one.stop("inner")
assert heard == ["outer", "inner", "outer", "inner"], heard
"""
    )
    python(program, watched=False)
    run = stepwatch.open(tmp_path / "own")
    names = {row["name"] for row in run.sections}
    actions = {
        "run_training_epoch",
        "run_training_batch",
        "[_TrainingEpochLoop].train_dataloader_next",
        "[Strategy]SingleDeviceStrategy.training_step",
        "[Strategy]SingleDeviceStrategy.backward",
        "[LightningModule]Net.optimizer_step",
        "save_checkpoint",
    }
    assert actions <= names
    report = run.report().to_dict()
    assert report["steps"]["count"] == 20
    assert phases_of(report)["backward"] > 0
    (text,) = tmp_path.glob("fit-times*.txt")
    verdict, _, table = text.read_text(encoding="utf-8").partition("\nAction ")
    assert "20 steps" in verdict
    rows = {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}
    assert actions <= set(rows)
    assert rows["run_training_batch"][2] == "20"
    assert rows["run_training_batch"][4].endswith("%")


def test_lightning_callback(python: Program, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    program = (
        LIGHTNING
        + """
import stepwatch
callback = stepwatch.lightning.Callback(out="own")
trainer(callbacks=[callback], enable_checkpointing=False).fit(Net(), *loaders())
assert callback.run is not None
"""
    )
    python(program, watched=False)
    assert stepwatch.open(tmp_path / "own").report().to_dict()["steps"]["count"] == 20


@pytest.mark.parametrize("accumulated", [1, 4])
def test_trainer_unchanged(python: Program, tmp_path: Path, accumulated: int) -> None:
    pytest.importorskip("transformers")
    program = (
        HF
        + f"""
one = trainer("out", gradient_accumulation_steps={accumulated}, eval_strategy="epoch")
one.train()
weights = sum(p.double().sum().item() for p in one.model.parameters())
print(weights, torch.get_rng_state().sum().item())
"""
    )
    plain = python(program, watched=False)
    watched = python(program, watched=True)
    assert watched.stdout.splitlines()[-1] == plain.stdout.splitlines()[-1]
    report = report_of(tmp_path / "run")
    steps = report["steps"]
    updates = 20 if accumulated == 1 else 6
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (20, 0, updates)
    assert [row["steps"] for row in report["epochs"]] == [10, 10]
    phases = phases_of(report)
    assert phases["forward"] > 0
    assert phases["backward"] > 0
    assert phases["data_wait"] > 0
    check_parts(report)


def test_trainer_callback(python: Program, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    program = (
        HF
        + """
import stepwatch
callback = stepwatch.hf.Callback(out="own")
trainer("out", callbacks=[callback]).train()
assert callback.run is not None
"""
    )
    python(program, watched=False)
    assert stepwatch.open(tmp_path / "own").report().to_dict()["steps"]["count"] == 20


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras_unchanged(python: Program, tmp_path: Path, backend: str) -> None:
    if find_spec("keras") is None:
        pytest.skip("keras is not installed")
    pytest.importorskip(backend)
    program = (
        f"BACKEND = {backend!r}\n"
        + KERAS
        + """
model.fit(x, y, batch_size=6, epochs=2, validation_split=0.2, verbose=0)
print(sum(float(numpy.asarray(w, "float64").sum()) for w in model.get_weights()))
"""
    )
    plain = python(program, watched=False)
    watched = python(program, watched=True)
    assert watched.stdout == plain.stdout
    report = report_of(tmp_path / "run")
    steps = report["steps"]
    assert (steps["count"], steps["incomplete"], steps["updates"]) == (16, 0, 16)
    assert [row["steps"] for row in report["epochs"]] == [8, 8]
    assert phases_of(report)["forward"] > 0
    assert {row["part"]: row["s"] for row in report["timeline"]}["validation"] > 0
    check_parts(report)


def test_keras_on_jax_waits_for_its_batches(python: Program, tmp_path: Path) -> None:
    """Its compiled function takes the batch itself."""
    if find_spec("keras") is None:
        pytest.skip("keras is not installed")
    pytest.importorskip("jax")
    program = (
        "BACKEND = 'jax'\n"
        + KERAS
        + """
import time

class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 10
    def __getitem__(self, index):
        time.sleep(0.005)
        return x[6 * index : 6 * index + 6], y[6 * index : 6 * index + 6]

for _ in range(2):
    model.fit(Batches(), epochs=1, shuffle=False, verbose=0)
"""
    )
    python(program, watched=True)
    report = report_of(tmp_path / "run")
    assert phases_of(report)["data_wait"] >= 5
    # What is fitted again goes on with the next epoch.
    assert [row["steps"] for row in report["epochs"]] == [10, 10]


def test_keras_on_torch_with_a_step_of_its_own(python: Program, tmp_path: Path) -> None:
    """The update is no forward, and neither is what train_step does beside the model."""
    if find_spec("keras") is None:
        pytest.skip("keras is not installed")
    program = (
        "BACKEND = 'torch'\n"
        + KERAS
        + """
import torch

class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.one, self.two = keras.layers.Dense(4), keras.layers.Dense(2)

    def call(self, x):
        return self.two(self.one(x))

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        loss.backward()
        weights = list(self.trainable_weights)
        with torch.no_grad():
            self.optimizer.apply([v.value.grad for v in weights], weights)
        return {"loss": loss.item()}

model = Model()
model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=6, epochs=2, verbose=0)
"""
    )
    python(program, watched=True)
    report = report_of(tmp_path / "run")
    assert (report["steps"]["count"], report["steps"]["updates"]) == (20, 20)
    phases = phases_of(report)
    assert phases["optimizer"] > 0
    assert phases["backward"] > 0
    rows = {"/".join(row["path"]): row for row in report["sections"]}
    assert rows["train_function"]["phase"] == "other"
    assert rows["train_function/optimizer"]["calls"] == 20
    # The model in its steps, and nothing beside it.
    assert phases["forward"] * 20 <= rows["train_function/Model"]["total_ms"] * 1.01
    check_parts(report)


def test_keras_callback(python: Program, tmp_path: Path) -> None:
    if find_spec("keras") is None:
        pytest.skip("keras is not installed")
    program = (
        "BACKEND = 'torch'\n"
        + KERAS
        + """
import stepwatch
callback = stepwatch.keras.Callback(out="own")
model.fit(x, y, batch_size=6, epochs=1, verbose=0, callbacks=[callback])
assert callback.run is not None
"""
    )
    python(program, watched=False)
    assert stepwatch.open(tmp_path / "own").report().to_dict()["steps"]["count"] == 10


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lightning", "Profiler"),
        ("lightning", "Callback"),
        ("hf", "Callback"),
        ("keras", "Callback"),
    ],
)
def test_an_absent_framework_is_named(tmp_path: Path, name: str, kind: str) -> None:
    """Importing the face is no error; using it says what is missing."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "for name in ('lightning', 'pytorch_lightning', 'transformers', 'keras'):\n"
        "    sys.modules[name] = None\n"
    )
    script = f"import stepwatch\nstepwatch.{name}\nstepwatch.{name}.{kind}()\n"
    package = Path(stepwatch.__file__).parent.parent
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}:{package}"},
    )
    assert result.returncode == 1
    assert f"stepwatch.{name}.{kind} needs the package" in result.stderr
    assert "cannot be imported here" in result.stderr


@pytest.mark.parametrize(
    ("file", "options", "count"),
    [
        ("lightning_fit.py", [], 64),
        ("hf_trainer.py", [], 50),
        ("keras_fit.py", [], 80),
        ("accelerate_loop.py", [], 160),
    ],
)
def test_examples(
    tmp_path: Path, build_dir: Path, file: str, options: list[str], count: int
) -> None:
    for package in ("lightning", "transformers", "keras", "accelerate"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    example = Path(__file__).parents[2] / "examples" / "python" / file
    tool = build_dir / "src" / "cli" / "stepwatch"
    command = [str(tool), "run", "-o", "run", "--", sys.executable, "-W", "ignore", str(example)]
    result = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    steps = report_of(tmp_path / "run")["steps"]
    assert (steps["count"], steps["incomplete"]) == (count, 0)
    updates = count // 4 if file == "accelerate_loop.py" else count
    assert steps["updates"] == updates
