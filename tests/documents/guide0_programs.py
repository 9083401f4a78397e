"""Programs that use the flexible profiler as guide 0 does, for test_guide0*.py to run."""

IMPORTS = """
from improved_profiler import auto_profile_blocks, profile_line_by_line, profile_methods, profiler
from profiler_config import ProfilerConfig, profiler_config
import contextlib, io, json, os, sys, threading, time
"""

QUIET = """
profiler_config.print_block_profile = profiler_config.print_overall_profile = False
profiler_config.print_save_info = False
"""

OFF = """
profiler_config.enabled = False
@profile_methods
class Trainer:
    @profile_line_by_line
    def train(self, number):
        for epoch in range(number):
            with profiler.profile_context(f"epoch_{epoch % 3}"):
                with profiler.profile_context("train_step"): pass
            profiler.step_profiler()
            profiler.start_block("hand"); profiler.end_block()
        return number
trainer = Trainer()
trainer.train(100)
before = sys.getallocatedblocks()
assert trainer.train(2000) == 2000
after = sys.getallocatedblocks()
profiler.save_block_profile(); profiler.save_overall_profile(); profiler.save_line_profile()
profiler.print_block_profile(); profiler.print_overall_profile(); profiler.print_line_profile()
said = [after - before, profiler.get_block_profile(), profiler.get_line_profile()]
print(json.dumps(said))
"""

FORMATS = """
@profile_methods
class Trainer:
    def fit(self): pass
Trainer().fit()
with profiler.profile_context("outer"):
    with profiler.profile_context("inner, quoted"): pass
profiler_config.output_dir = "out"
for kind in ("json", "txt", "csv"):
    profiler_config.save_format = kind
    profiler.save_block_profile(step=7)
    profiler.save_overall_profile(step=7)
profiler_config.autosave = False
"""

STEPS = """
profiler_config.output_dir = "out"
profiler_config.steps_to_save = [1, 10, 50, 100]
@profile_line_by_line
def work(number):
    return number + 1
for number in range(120):
    %s
    work(number)
    %s
profiler_config.autosave = False
"""

SWITCH = """
profiler_config.output_dir = "out"
profiler_config.%s = %s
@profile_line_by_line
def train(epochs):
    for epoch in range(epochs):
        with profiler.profile_context(f"epoch_{epoch}"): pass
        profiler.step_profiler()
train(2)
"""

COMBINATIONS = """
import itertools
names = ["print_block_profile", "print_overall_profile", "print_line_profile", "print_save_info",
         "save_line_profile", "save_block_profile", "save_overall_profile"]
@profile_line_by_line
def train(epochs):
    for epoch in range(epochs):
        with profiler.profile_context(f"epoch_{epoch}"): pass
        profiler.step_profiler()
wrong = []
count = 0
for values in itertools.product((False, True), repeat=len(names)):
    profiler.reset()
    setting = dict(zip(names, values))
    folder = f"out{count}"
    count += 1
    profiler_config.output_dir = folder
    for name, value in setting.items():
        setattr(profiler_config, name, value)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        train(1)
    text, made = said.getvalue(), os.listdir(folder) if os.path.isdir(folder) else []
    found = {
        "print_block_profile": "Block Profiling Report:" in text,
        "print_overall_profile": "Overall Profiling Report:" in text,
        "print_line_profile": "Line-by-Line Profiling Report:" in text,
        "save_line_profile": any("line" in name for name in made),
        "save_block_profile": any("block" in name for name in made),
        "save_overall_profile": any("overall" in name for name in made),
    }
    found["print_save_info"] = "Saved " in text if made else setting["print_save_info"]
    if found != setting:
        wrong.append([setting, found])
profiler_config.autosave = False
print(json.dumps([count, wrong[:3]]))
"""

METHODS = """
import asyncio, copy, inspect, pickle
def members():
    class Every:
        '''A class.'''
        def __init__(self, value=1):
            '''Keep it.'''
            self.value = value
        def plain(self, more: int = 1) -> int:
            '''Add.'''
            return self.value + more
        @staticmethod
        def static(value): return value
        @classmethod
        def made(cls): return cls(7)
        @property
        def twice(self): return 2 * self.value
        def numbers(self): yield from range(self.value)
        async def later(self): return self.value
        def __call__(self): return self.value
        def __len__(self): return self.value
        def fails(self): raise ValueError("as it was")
    Every.__qualname__ = "Every"
    return Every
Before, Every = members(), profile_methods(members())
Every = profile_methods(Every)
class Derived(Every):
    def own(self): return 1
every = Derived.made()
every.plain(); every.static(3); every.twice; list(every.numbers()); every(); len(every); every.own()
asyncio.run(every.later())
try:
    every.fails()
except ValueError as error:
    failure = [str(error), type(error.__context__).__name__]
class Other:
    def plain(self): pass
profile_methods(Other)
Other().plain(); Other().plain()
same = all(inspect.signature(getattr(Every, name)) == inspect.signature(getattr(Before, name))
           and getattr(Every, name).__doc__ == getattr(Before, name).__doc__
           for name in ("__init__", "plain", "static", "made", "numbers", "later", "__call__"))
overall = profiler.get_overall_profile()
functions = overall["functions"]
print(json.dumps({
    "calls": {name: entry["calls"] for name, entry in functions.items()},
    "errors": functions["Every.fails"]["errors"], "failure": failure,
    "same": same, "isinstance": isinstance(every, Every), "copied": copy.copy(every).value,
    "coroutine": inspect.iscoroutinefunction(Every.later),
    "generator": inspect.isgeneratorfunction(Every.numbers),
    "alias": [functions["numbers"]["calls"], "plain" in [e["alias"] for e in functions.values()]],
    "entry": functions["Every.plain"],
}))
"""

TREE = """
def leaf():
    with profiler.profile_context("leaf"): time.sleep(0.01)
for epoch in range(2):
    with profiler.profile_context(f"epoch_{epoch}"):
        with profiler.profile_context("train_epoch"):
            for _ in range(3):
                with profiler.profile_context("train_step"):
                    leaf()
            time.sleep(0.02)
        with profiler.profile_context("validate"):
            leaf()
def recurse(depth):
    with profiler.profile_context("recursive"):
        if depth: recurse(depth - 1)
        else: time.sleep(0.01)
recurse(4)
def thread(number):
    for _ in range(200):
        with profiler.profile_context("shared"):
            with profiler.profile_context(f"thread {number}"): pass
threads = [threading.Thread(target=thread, args=(n,)) for n in range(4)]
for each in threads: each.start()
for each in threads: each.join()
try:
    with profiler.profile_context("fails"):
        raise KeyError("as it was")
except KeyError as error:
    failure = repr(error)
profiler.start_block("by hand"); profiler.start_block("inner")
for _ in range(3): profiler.end_block()
print(json.dumps([profiler.get_block_profile(), failure]))
"""

MANY = """
import resource
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
profiler_config.output_dir = "out"
profiler_config.save_overall_profile = False
before = resident()
for epoch in range(10_000):
    with profiler.profile_context(f"epoch_{epoch}"):
        with profiler.profile_context("train_epoch"): pass
grown = resident() - before
said = io.StringIO()
with contextlib.redirect_stdout(said):
    profiler.print_block_profile()
profile = profiler.get_block_profile()
print(json.dumps([len(profile), grown, said.getvalue(), profile["epoch_9999"]["calls"]]))
"""

LINES = """
class Trainer:
    @profile_line_by_line
    def train(self, num_epochs):
        total = 0
        for epoch in range(num_epochs):
            time.sleep(0.02)
            total += self.other()
        time.sleep(0.01)
        return total
    def other(self):
        time.sleep(0.001)
        return 1
Trainer = profile_methods(Trainer)
assert Trainer().train(3) == 3
profiler.save_line_profile(step=0)
calls = profiler.get_overall_profile()["functions"]["train"]["calls"]
print(json.dumps([profiler.get_line_profile(), calls]))
"""

ENDS = """
@profile_methods
class Trainer:
    @profile_line_by_line
    def train(self, num_epochs):
        for epoch in range(num_epochs):
            with profiler.profile_context(f"epoch_{epoch}"):
                with profiler.profile_context("train_step"):
                    self.step(epoch)
    def step(self, epoch):
        %s
with contextlib.suppress(OSError):
    Trainer().train(3)
made = sorted(os.listdir("profiling_output"))
print(json.dumps(made))
with profiler.profile_context("afterwards"): pass
%s
"""

ADVICE = """
profiler_config.output_dir = "out"
for _ in range(3):
    with profiler.profile_context("data_loading"): time.sleep(0.03)
    with profiler.profile_context("train_step"): time.sleep(0.03)
    for number in range(4):
        with profiler.profile_context(f"small {number}"): pass
"""

HEALTHY = """
profiler_config.output_dir = "out"
for name in ("one", "two", "three", "four", "five"):
    profiler._blocks.add(name, 0.02)
profiler._blocks.add("data_loading", 0.001)
"""

SIZES = """
import json, stepwatch, torch
with stepwatch.record(out="run") as run:
    with stepwatch.step(): pass
checked = [entry["kind"] for entry in run.report().to_dict()["checked"]]
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
sweep = stepwatch.find_batch_size(torch.nn.Linear(4, 1), data, loss_fn=torch.nn.MSELoss(), start=8,
                                  max_batch_size=32, num_batches=2)
print(json.dumps([checked, sweep.rows], default=str))
"""

FIRST = """
profiler_config.steps_to_save = [2]
profiler_config.output_dir = "out"

@profiler.profile_function
def preprocess(value):
    return value + 1

@profiler.profile_methods
class Model:
    def forward(self, value):
        return preprocess(value)

@profiler.profile_line_by_line
def work():
    value = 0
    for _ in range(3):
        value = Model().forward(value)
    return value

@profiler.auto_profile_blocks
def epoch():
    profiler.start_block("inside")
    work()
    profiler.end_block()

for number in range(3):
    epoch()
    profiler.step_profiler()
profiler.save_block_profile(step=0)
profiler.save_overall_profile(step=0)
profiler.save_line_profile(step=0)
profiler.save_line_profile(filename="lines.txt")
profiler.save_overall_profile(filename="sub/overall.json")
profiler.save_block_profile(step="final")
said = []
for kind in ("line", "block", "overall"):
    call = getattr(profiler, f"print_{kind}_profile")
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        call()
    said.append(text.getvalue())
before = [sorted(profiler.get_overall_profile()), sorted(profiler.get_block_profile()),
          "value = Model().forward(value)" in profiler.get_line_profile()]
profiler.reset()
after = [profiler.get_block_profile(), profiler.get_line_profile(),
         profiler.get_overall_profile()["functions"]]
profiler.step_profiler()
print(json.dumps([said, before, after]))
"""

SECOND = """
from improved_profiler import profiler
from profiler_config import profiler_config
import time, json
profiler_config.autosave = False

class MyClass:
    def __init__(self):
        self.data = []
    def slow(self):
        with profiler.profile_context("outer"):
            with profiler.profile_context("inner"):
                time.sleep(0.001)
        return 1
MyClass = profiler.profile_methods(MyClass)

@profiler.profile_function("renamed")
def function():
    return MyClass().slow()

function()
function()
profiler.print_overall_profile()
print(json.dumps(profiler.get_overall_profile()))
"""
