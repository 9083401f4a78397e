"""Programs of the tests of guide 2, which print what they found as JSON in their last line."""

# Lightning itself, with parts whose time is known.
FITS = """
import json, logging, os, resource, sys, time
import torch
import lightning.pytorch as pl
import stepwatch
from mlops_project.profiler import ProfilerCallback
from torch.utils.data import DataLoader, Dataset, TensorDataset

for name in ("lightning.pytorch", "pytorch_lightning"):
    logging.getLogger(name).setLevel(logging.ERROR)
torch.set_num_threads(1)
found = {}
MB = 1 << 20


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        time.sleep(0.012)
        return x * 1

    @staticmethod
    def backward(context, gradient):
        time.sleep(0.008)
        return gradient


class Sleep(torch.nn.Module):
    def forward(self, x):
        return Slow.apply(x)


class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep(0.006)
        return super().step(closure)


class Items(Dataset):
    def __init__(self, count, wait):
        self.count, self.wait = count, wait

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.wait)
        return torch.ones(4)


def make(base, slow=False, each=None):
    class Net(base.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)
            self.slow = Sleep() if slow else torch.nn.Identity()

        def training_step(self, batch, index):
            if each:
                each(index)
            return self.slow(self.layer(batch)).sum()

        def configure_optimizers(self):
            return (Optimizer if slow else torch.optim.SGD)(self.parameters(), lr=1e-3)

    return Net()


def fit(callback, count=20, slow=False, each=None, base=pl, **options):
    # ``callback`` may be None. Returns the steps that were trained.
    options = {"max_epochs": 1, "accelerator": "cpu", "logger": False, **options}
    for name in ("checkpointing", "progress_bar", "model_summary"):
        options["enable_" + name] = False
    trainer = base.Trainer(callbacks=[callback] if callback else [], **options)
    before = trainer.profiler
    trainer.fit(make(base, slow, each), DataLoader(Items(count, 0.02 if slow else 0)))
    assert trainer.profiler is before
    return trainer.global_step


def steps_of(path):
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    return sorted(int(e["name"].partition("#")[2]) for e in events
                  if e["name"].startswith("ProfilerStep#") and e["ph"] == "X")


def facts(callback, steps):
    return {
        "steps": steps,
        "traces": [steps_of(path) for path in callback.traces],
        "chrome": steps_of(callback.chrome_trace) if callback.chrome_trace else None,
        "summary": callback.summary.read_text() if callback.summary else None,
        "metrics": callback.metrics,
        "actions": callback.actions,
        "recording": stepwatch.is_recording(),
    }


def begin(name):
    sys.stdout.flush(); sys.stderr.flush()
    print(f"--- {name}", flush=True)
    print(f"--- {name}", file=sys.stderr, flush=True)


begin("slow")
callback = ProfilerCallback("slow", active_steps=2, repeat_cycles=1)
found["slow"] = facts(callback, fit(callback, 30, slow=True))

begin("sizes")
found["sizes"] = {}
for size in (1, 4, 16):
    callback = ProfilerCallback(f"sizes/{size}")
    trainer = pl.Trainer(callbacks=[callback], max_epochs=1, accelerator="cpu", logger=False,
                         enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False)
    trainer.fit(make(pl), DataLoader(TensorDataset(torch.ones(640, 4)[:, None].squeeze(1)),
                                     batch_size=size, collate_fn=lambda rows: torch.stack(
                                         [row[0] for row in rows])))
    found["sizes"][size] = callback.run.path

begin("stack")
# Of torch's two profilers the one that sees devices, too, is opened where there are any.
modules = [(torch.autograd.profiler, "_disable_profiler"),
           (torch._C._autograd, "_disable_profiler_legacy")]
originals = [getattr(*one) for one in modules]
def broken(original):
    def close(*args):
        original(*args)
        raise RuntimeError('!stack.empty() INTERNAL ASSERT FAILED at "profiler.cpp":1\\nmore')
    return close
for one, original in zip(modules, originals):
    setattr(*one, broken(original))
callback = ProfilerCallback("stack")
found["stack"] = facts(callback, fit(callback))
for one, original in zip(modules, originals):
    setattr(*one, original)

begin("hooks")
class Own(ProfilerCallback):
    heard = 0
    def on_train_batch_end(self, *args):
        super().on_train_batch_end(*args)
        Own.heard += 1
passed_by = []
callback = Own("hooks")
fit(callback, each=lambda index: passed_by.append(
    sorted(name for name in vars(callback) if name.startswith("on_"))))
found["hooks"] = {"first": passed_by[0], "last": passed_by[-1], "heard": Own.heard,
                  "after": [name for name in vars(callback) if name.startswith("on_")]}

begin("calls")
def calls(callback):
    # Functions of Python's that are called from the tenth step to the thirtieth.
    counted = [0]
    def count(frame, event, argument):
        counted[0] += event == "call"
    def each(index):
        if index in (10, 30):
            sys.setprofile(count if index == 10 else None)
    fit(callback, 40, each=each)
    return counted[0]
found["calls"] = {"without": calls(None), "idle": calls(ProfilerCallback("calls/idle")),
                  "active": calls(ProfilerCallback("calls/active", active_steps=36))}

begin("unwritable")
open("file", "w").close()
callback = ProfilerCallback("file/below")
found["unwritable"] = facts(callback, fit(callback))

begin("full")
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
callback = ProfilerCallback("full")
steps = fit(callback)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
found["full"] = {"steps": steps}

begin("wrong")
callback = ProfilerCallback("wrong", active_steps=0)
found["wrong"] = {"steps": fit(callback), "left": os.path.exists("wrong")}

begin("raises")
def stop(index):
    if index == 8:
        raise KeyError("the model's own")
callback = ProfilerCallback("raises")
try:
    fit(callback, each=stop)
    found["raises"] = "nothing"
except KeyError:
    found["raises"] = facts(callback, 8)

begin("joined")
with stepwatch.record("outer", out="outer") as outer:
    first, second = ProfilerCallback("first"), ProfilerCallback("second")
    found["joined"] = [facts(one, fit(one)) for one in (first, second)]
    found["joined_runs"] = [os.path.exists(f"{name}/runs") for name in ("first", "second")]
found["joined_steps"] = len(outer.steps)

begin("simple")
callback = ProfilerCallback("simple")
found["simple"] = facts(callback, fit(callback, profiler="simple"))

begin("ours")
inner = stepwatch.lightning.Profiler(out="ours_run")
callback = ProfilerCallback("ours", active_steps="3")
found["ours"] = facts(callback, fit(callback, profiler=inner))
found["ours_sections"] = {row["name"]: row["calls"] for row in inner.run.sections}

begin("switched")
os.environ["ENABLE_PROFILING"] = "false"
callback = ProfilerCallback("switched", enabled=True)
found["switched"] = {"steps": fit(callback), "left": os.path.exists("switched"),
                     "threads": len(os.listdir("/proc/self/task"))}
del os.environ["ENABLE_PROFILING"]

begin("leak")
kept = []
def leak(index):
    kept.append(torch.ones(MB // 4))
    time.sleep(0.011)
callback = ProfilerCallback("leak")
fit(callback, 120, each=leak)
found["leak"] = callback.run.report().to_dict()["findings"]
kept.clear()

begin("spike")
held = []
def spike(index):
    held.clear()
    if index == 60:
        held.append(torch.ones(1 << 28))
    time.sleep(0.011)
callback = ProfilerCallback("spike")
fit(callback, 100, each=spike)
found["spike"] = callback.run.report().to_dict()["notes"]

begin("older")
import pytorch_lightning
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
callback = ProfilerCallback("older")
found["older"] = facts(callback, fit(callback, base=pytorch_lightning))

begin("end")
print(json.dumps(found, default=str))
"""

# A loop of one's own that calls the hooks; Lightning and torch are not there.
HOOKS = """
import json, os, sys
for name in ("lightning", "lightning.pytorch", "pytorch_lightning", "torch"):
    sys.modules[name] = None
import stepwatch
from mlops_project.profiler import ProfilerCallback


def train(name, count, trainer=None, **settings):
    callback = ProfilerCallback(name, **settings)
    callback.on_train_start(trainer, None)
    for index in range(count):
        callback.on_train_batch_start(trainer, None, None, index)
        with stepwatch.section("forward"):
            pass
        callback.on_train_batch_end(trainer, None, None, None, index)
    callback.on_train_end(trainer, None)
    def steps_of(path):
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        return sorted(int(e["name"].partition("#")[2]) for e in events
                      if e["name"].startswith("ProfilerStep#") and e["ph"] == "X")
    return {"traces": [steps_of(path) for path in callback.traces],
            "names": [path.name for path in callback.traces],
            "chrome": str(callback.chrome_trace), "merged": steps_of(callback.chrome_trace),
            "summary": callback.summary.read_text(),
            "steps": len(callback.run.steps), "actions": callback.actions}


class Rank:
    global_rank = 1


found = {
    "default": train("default", 60),
    "wait": train("wait", 60, wait_steps=3),
    "warmup": train("warmup", 60, warmup_steps=4),
    "active": train("active", 60, active_steps=5),
    "every": train("every", 60, schedule_every_n_steps=20),
    "repeat": train("repeat", 60, schedule_every_n_steps=20, repeat_cycles=3),
    "endless": train("endless", 60, schedule_every_n_steps=10, repeat_cycles=0),
    "tight": train("tight", 60, schedule_every_n_steps=2, repeat_cycles=3),
    "cut": train("cut", 4),
    "none": train("none", 1),
}
print("--- rank")
found["rank"] = train("rank", 10, trainer=Rank())
print("--- end")
print(json.dumps(found))
"""
