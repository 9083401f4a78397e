"""What the tests of guide 4 run in one program: switches and helpers, each in its own folder."""

SCENARIOS = """
import contextlib, io, json, logging, os, sys, time
from pathlib import Path
import stepwatch
import torch
from ml_ops import profile
from ml_ops.data import export_yolo_format
from ml_ops.model import PlateOCR
from ml_ops.profile import cprofile_context, profile_function, should_profile, torch_profiler
from ml_ops.train import main
from stepwatch.compat.ml_ops.profile import begin_here

results = {}
start = Path.cwd()


class Lines(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())


said = []
logging.getLogger("ml_ops").addHandler(Lines())
logging.getLogger("ml_ops").setLevel(logging.INFO)


@contextlib.contextmanager
def place(name, **env):
    folder = start / name
    folder.mkdir()
    (folder / "data").mkdir()
    os.chdir(folder)
    begin_here()
    before = dict(os.environ)
    os.environ.update(env)
    del said[:]
    try:
        yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        os.chdir(start)


def files(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*")
        if path.is_file() and "data" not in path.relative_to(folder).parts[0]
    )


def spans(path):
    document = json.loads(Path(path).read_text())
    return sorted({event["name"] for event in document["traceEvents"] if event["ph"] == "X"})


def counters(path):
    document = json.loads(Path(path).read_text())
    return sorted({event["name"] for event in document["traceEvents"] if event["ph"] == "C"})


def train(*words):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(["train-ocr", "data", "--max-images", "12", *words])
        except SystemExit as stop:
            code = stop.code
    return code, errors.getvalue()


ONE = ["-o", "training/ocr.max_epochs=1"]
YAML = "configs/training/ocr/default.yaml"

# Who switches: the environment's words, the file, what is typed.
results["switches"] = {}
for number, (word, file, typed) in enumerate([
    (None, None, None), ("true", None, None), ("1", None, None), ("ON", None, None),
    ("false", None, None), ("perhaps", None, None), (None, "true", None), (None, "false", None),
    ("true", "false", None), ("false", "true", None), ("true", None, "false"),
    (None, None, "true"), ("0", None, "true"),
]):
    env = {} if word is None else {"ENABLE_PROFILING": word}
    with place(f"switch{number}", **env) as folder:
        if file:
            Path(YAML).parent.mkdir(parents=True)
            Path(YAML).write_text(f"enable_profiling: {file}\\n")
        words = list(ONE)
        if typed:
            words += ["-o", f"training/ocr.enable_profiling={typed}"]
        code, text = train(*words)
        written = [name for name in files(folder) if name.endswith(".json")]
        results["switches"][f"{word} {file} {typed}"] = [code, written]

# Where files go.
with place("elsewhere", PROFILE_OUTPUT_DIR="there/traces", ENABLE_PROFILING="true") as folder:
    Path(YAML).parent.mkdir(parents=True)
    Path(YAML).write_text("profile_output_dir: configured\\n")
    train(*ONE)
    with cprofile_context(profile_name="loose", print_stats=0):
        pass
    with cprofile_context(output_dir="said", profile_name="loose", print_stats=0):
        pass
    results["elsewhere"] = files(folder)
with place("file_folder", ENABLE_PROFILING="true") as folder:
    Path(YAML).parent.mkdir(parents=True)
    Path(YAML).write_text("profile_output_dir: configured\\n")
    train(*ONE)
    results["file_folder"] = files(folder)

# The typed N, in both spellings, and wrong ones.
with place("typed", ENABLE_PROFILING="true") as folder:
    code, text = train(*ONE, "-o", "training.ocr.profile_every_n_steps=2", "-o",
                       "training/ocr/batch_size=2")
    results["typed"] = [code, files(folder)]
results["wrong"] = {}
for words in (["-o", "training/ocr.max_epoch=3"], ["-o", "training/ocr.max_epochs=many"],
              ["-o", "enable_profiling=true"], ["-o", "training/ocr.seed"],
              ["--max-images", "0"], ["-o", "training/ocr.trainer=magic"]):
    with place("wrong" + str(len(results["wrong"]))):
        code, text = train(*words)
        results["wrong"][" ".join(words)] = [code, text.strip().splitlines()[-1]]
with place("nowhere"):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        Path("file").write_text("")
        code = main(["train-ocr", "file"])
    results["nowhere"] = [code, errors.getvalue().strip()]
with place("odd_file", ENABLE_PROFILING="false") as folder:
    Path(YAML).parent.mkdir(parents=True)
    Path(YAML).write_text("max_epoch: 3\\nbatch_size: none of it\\nmax_epochs: 1\\n")
    results["odd_file"] = list(train())
with place("no_validation", ENABLE_PROFILING="true") as folder:
    code, text = train(*ONE, "-o", "training/ocr.val_split=0")
    results["no_validation"] = [code, files(folder)]

# A folder that cannot be written: the training goes on, and one sentence says so.
with place("unwritable", ENABLE_PROFILING="true", PROFILE_OUTPUT_DIR="/proc/no/folder") as folder:
    code, text = train("-o", "training/ocr.max_epochs=3")
    results["unwritable"] = [code, text, list(said)]

# A step without a loop, an inference, and what fails.
batch = torch.rand(2, 1, 24, 96), torch.ones(2, 7, dtype=torch.long)
with place("step_alone", ENABLE_PROFILING="true") as folder:
    loss = PlateOCR().training_step(batch, 0)
    results["step_alone"] = {
        "loss": float(loss), "spans": spans("runs/profiling/train_step_0.json")
    }
with place("inference", ENABLE_PROFILING="true") as folder:
    model = PlateOCR().eval()
    with torch.no_grad(), torch_profiler(trace_name="inference") as trace:
        texts = model.predict_step(batch)
    results["inference"] = {
        "texts": len(texts), "spans": spans("runs/profiling/inference.json"),
        "path": str(trace.path), "table": trace.table(), "said": list(said),
        "operators": [row["name"] for row in trace.operators()],
    }
with place("raises", ENABLE_PROFILING="true") as folder:
    class Broken(PlateOCR):
        def compute_loss(self, scores, targets):
            raise ArithmeticError("no loss today")

    results["raises"] = {}
    try:
        Broken().training_step(batch, 0)
    except ArithmeticError as error:
        results["raises"]["said"] = str(error)
    results["raises"]["spans"] = spans("runs/profiling/train_step_0.json")
    try:
        with cprofile_context(profile_name="failing", print_stats=0) as prof:
            sorted([3, 2, 1])
            raise ArithmeticError("no rows today")
    except ArithmeticError as error:
        results["raises"]["second"] = str(error)
    results["raises"]["running"] = prof.running
    results["raises"]["files"] = files(folder)

# The nine behaviours of the helpers.
nine = results["nine"] = {}
with place("nine_off") as folder:
    with torch_profiler(enabled=False) as one, cprofile_context(enabled=False) as other:
        nine["off by argument"] = [one is None, other is None]
    with torch_profiler() as one, cprofile_context() as other:
        nine["off by default"] = [one is None, other is None]
    os.environ["STEPWATCH_ENABLED"] = "0"
    with torch_profiler(enabled=True) as one:
        nine["off for all"] = one is None
    nine["off, no files"] = files(folder)
with place("nine_false", ENABLE_PROFILING="false") as folder:
    with torch_profiler(enabled=True) as one:
        nine["trace off by environment"] = one is None
    with cprofile_context(enabled=True) as other:
        nine["profile off by environment"] = other is None
    nine["false, no files"] = files(folder)
    nine["should not"] = [should_profile(0), should_profile(3, 3)]

    @profile_function
    def plain(a, b=2):
        "Adds."
        return a + b

    nine["transparent"] = [plain(1), plain.__name__, plain.__doc__, files(folder)]
with place("nine_on", ENABLE_PROFILING="true") as folder:
    out = io.StringIO()
    with torch_profiler(output_dir="here", trace_name="named") as one:
        torch.mm(torch.rand(8, 8), torch.rand(8, 8))
    nine["exported"] = [files(folder), spans("here/named.json"), list(said)]
    with contextlib.redirect_stdout(out):
        with cprofile_context(output_dir="here", profile_name="sums", sort_by="tottime") as two:
            sum(range(100))
    nine["printed"] = out.getvalue()
    nine["stats"] = files(folder)

    @profile_function
    def plain(a, b=2):
        return sorted([a, b])

    @profile_function("by name/../x")
    def other():
        return 7

    with contextlib.redirect_stdout(out):
        nine["decorated"] = [plain(3), plain(1), other()]
    nine["decorated files"] = files(folder)
    nine["should"] = [should_profile(0, 3), should_profile(1, 3), should_profile(3, 3)]
    nine["every"] = [should_profile(5), should_profile(0, 0)]
    nine["constants"] = [profile.PROFILING_ENABLED, str(profile.PROFILE_OUTPUT_DIR)]
    try:
        cprofile_context(sort_by="beauty")
    except ValueError as error:
        nine["sort"] = str(error)
    with torch_profiler(output_dir="lean", trace_name="a", record_shapes=False,
                        profile_memory=False) as lean:
        torch.mm(torch.rand(8, 8), torch.rand(8, 8))
    with torch_profiler(output_dir="lean", trace_name="b", activities=["cuda"]) as device:
        torch.mm(torch.rand(8, 8), torch.rand(8, 8))
    with torch_profiler(output_dir="lean", trace_name="d", activities=[]):
        with stepwatch.section("alone"):
            torch.mm(torch.rand(8, 8), torch.rand(8, 8))
    nine["lean"] = {
        "sections": spans("lean/d.json"),
        "shapes": sorted({row["shapes"] for row in lean.operators() if row["shapes"]}),
        "full shapes": sorted({row["shapes"] for row in one.operators() if row["shapes"]}),
        "counters": counters("lean/a.json"), "full counters": counters("here/named.json"),
        "allocated": sum(row["bytes"] for row in lean.operators()),
        "full allocated": sum(row["bytes"] for row in one.operators()),
        "device spans": spans("lean/b.json"),
    }
    real = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with torch_profiler(output_dir="lean", trace_name="c") as both, real:
        torch.mm(torch.rand(8, 8), torch.rand(8, 8))
    nine["their own"] = [
        any(event.key == "aten::mm" for event in real.key_averages()), spans("lean/c.json")
    ]
profile.PROFILING_ENABLED = True
profile.PROFILE_OUTPUT_DIR = start / "set"
with cprofile_context(profile_name="set", print_stats=0):
    pass
nine["set in the module"] = files(start / "set")
profile.PROFILING_ENABLED = False
with cprofile_context(enabled=True) as none:
    nine["unset in the module"] = none is None
del profile.PROFILING_ENABLED, profile.PROFILE_OUTPUT_DIR

# Steps that are not traced are not recorded.
with place("quiet_steps", ENABLE_PROFILING="true") as folder:
    class Watched(PlateOCR):
        def forward(self, pictures):
            recorded.append(stepwatch.is_recording())
            return super().forward(pictures)

    recorded = []
    model = Watched(profile_every_n_steps=2)
    optimizer = model.configure_optimizers()
    for number in range(5):
        model.on_train_batch_start(batch, number)
        model.backward(model.training_step(batch, number))
        model.update(optimizer)
        model.on_train_batch_end(None, batch, number)
    results["recorded"] = recorded

# Before and after an improvement.
with place("compare", ENABLE_PROFILING="true") as folder:
    def decode(seconds):
        time.sleep(seconds)

    for side, seconds in (("before", 0.2), ("after", 0.004)):
        with torch_profiler(output_dir=".", trace_name=side):
            with stepwatch.section("decoding"):
                decode(seconds)
        with cprofile_context(output_dir=".", profile_name=side, print_stats=0):
            decode(seconds)
        with stepwatch.record(out=side) as run:
            for number in range(12):
                with stepwatch.step(), stepwatch.section("decoding"):
                    decode(seconds / 4)
        run.report().save(f"{side}_report.json")

# The export's argument.
with place("argument", PROFILE_OUTPUT_DIR="p") as folder:
    (folder / "data" / "a.ppm").write_bytes(b"P6\\n1 1\\n255\\n   ")
    with contextlib.redirect_stdout(io.StringIO()):
        export_yolo_format("data", "data/none")
        first = files(folder)
        export_yolo_format("data", "data/yes", enable_profiling=True)
        os.environ["ENABLE_PROFILING"] = "true"
        second = files(folder)
        (folder / "p" / "export_yolo_format.stats").unlink()
        done = export_yolo_format("data", "data/no", max_images=1, enable_profiling=False)
    results["argument"] = [first, second, files(folder), list(done[:3])]
    (folder / "data" / "val.txt").write_text("a.ppm\\nmissing.ppm\\n")
    results["split"] = list(export_yolo_format("data", "data/s", "data/val.txt")[:3])
    results["signature"] = [repr(export_yolo_format.__defaults__),
                            repr(torch_profiler.__defaults__), repr(cprofile_context.__defaults__)]

Path("results.json").write_text(json.dumps(results))
"""
