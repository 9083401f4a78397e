"""stepwatch run SCRIPT, -m MODULE and -- python: the program sees what it would see without us."""

from __future__ import annotations

import json
import os
import pstats
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Callable

import pytest

stepwatch_package: Any = pytest.importorskip("stepwatch", reason="there is no package here")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.usefixtures("python_env")

STEPS = """
import stepwatch
for number in range(12):
    stepwatch.step_begin()
    with stepwatch.section("forward"):
        pass
    stepwatch.step_end()
"""

# What a program can see of how it was started.
ABOUT = """
import os, sys
import __main__
spec = __main__.__spec__ and (__main__.__spec__.name, __main__.__spec__.origin)
print(sys.argv, os.getcwd(), __name__, __file__, spec, __package__)
print(sys.path, sys.flags, sys.warnoptions, sys.executable, sys.orig_argv[1:])
print(sorted(vars(__main__)))
"""


@pytest.fixture
def plain(tmp_path: Path, env: dict[str, str]) -> Run:
    """Return a function that runs Python as it is."""

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *(str(argument) for argument in arguments)]
        settings = {"cwd": tmp_path, "capture_output": True, "text": True, **options}
        return subprocess.run(command, env=env, check=False, **settings)

    return run


def script(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_by_python(plain: Run, env: dict[str, str], tmp_path: Path) -> None:
    """`python -m stepwatch run` is the command, with that Python."""
    env["PYTHONPATH"] = str(Path(stepwatch_package.__file__).parents[1])
    env.pop("STEPWATCH_PYTHON", None)
    program = script(tmp_path, "import sys\nprint(sys.argv[1:], sys.executable)\nsys.exit(3)\n")
    run = plain("-m", "stepwatch", "run", "-o", tmp_path / "run", program, "-x", "y")
    assert run.returncode == 3, run.stderr
    assert run.stdout == f"{['-x', 'y']} {sys.executable}\n"
    assert (tmp_path / "run" / "report.json").is_file()
    wrong = plain("-m", "stepwatch", "reporx")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "stepwatch: unknown command 'reporx'; did you mean 'report'?\n"


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def traces(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.stepwatch"))


def test_steps_of_a_script(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, STEPS)
    result = stepwatch("run", "-o", "out", "train.py", "--epochs", "3")
    assert (result.returncode, result.stdout) == (0, "")
    report = report_of(tmp_path / "out")
    assert report["run"]["name"] == "train"
    assert report["run"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert report["run"]["complete"] is True
    assert report["steps"]["count"] == 12
    command = json.loads((tmp_path / "out" / "run.json").read_text())["command"]
    assert command == [sys.executable, "train.py", "--epochs", "3"]


def test_the_example(stepwatch: Run, tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "python" / "train.py"
    result = stepwatch("run", "-o", "out", example, "--epochs", "2")
    assert result.returncode == 0
    epochs = [line.rpartition(" ")[0] for line in result.stdout.splitlines()]
    assert epochs == ["epoch 0: loss", "epoch 1: loss"]
    report = report_of(tmp_path / "out")
    assert report["steps"]["count"] == 60
    # Recording does not change what it computes.
    again = stepwatch("run", "-o", "again", "--set", "sampler_hz=0", example, "--epochs", "2")
    assert again.stdout == result.stdout


def test_frameworks_are_named(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "__version__ = '1.2.3'\n", "numpy.py")
    script(tmp_path, "import numpy\n")
    assert stepwatch("run", "-o", "out", "train.py").returncode == 0
    assert report_of(tmp_path / "out")["run"]["frameworks"] == {"numpy": "1.2.3"}


@pytest.mark.skipif(sys.version_info < (3, 10), reason="sys.orig_argv came with Python 3.10")
@pytest.mark.parametrize(
    "words",
    [
        ("train.py",),
        ("train.py", "--help", "-o", "x", "--", "-m"),
        ("./train.py", "--set", "a=b"),
        ("below/train.py", "a b", ""),
        ("-m", "train", "--name", "x"),
        ("-m", "package", "-h"),
        ("-m", "package.inner.train"),
        ("folder", "x"),
        ("archive.pyz",),
    ],
)
def test_a_script_sees_what_it_always_sees(
    stepwatch: Run, plain: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name in ("train.py", "below/train.py", "package/__main__.py", "folder/__main__.py"):
        script(tmp_path, ABOUT, name)
    script(tmp_path, "", "package/inner/__init__.py")
    script(tmp_path, "from ..sibling import name\nprint(name)\n" + ABOUT, "package/inner/train.py")
    script(tmp_path, "name = 'sibling'\n", "package/sibling.py")
    with zipfile.ZipFile(tmp_path / "archive.pyz", "w") as archive:
        archive.writestr("__main__.py", ABOUT)
    expected = plain(*words)
    assert expected.returncode == 0, expected.stderr
    result = stepwatch("run", "-o", "out", *words)
    assert (result.returncode, result.stdout) == (0, expected.stdout)
    assert len(traces(tmp_path / "out")) == 1
    direct = stepwatch("run", "-o", "direct", "--", sys.executable, *words)
    assert (direct.returncode, direct.stdout) == (0, expected.stdout)
    name = report_of(tmp_path / "out")["run"]["name"]
    assert report_of(tmp_path / "direct")["run"]["name"] == name


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("below/train.py",), "train"),
        (("-m", "package.train"), "package.train"),
        (("-mpackage.train",), "package.train"),
        (("package",), "package"),
        (("package/",), "package"),
        (("-",), "stdin"),
        (("--name", "mine", "below/train.py"), "mine"),
        (("--", sys.executable, "-u", "-W", "error", "below/train.py"), "train"),
        (("--", sys.executable, "-c", "pass"), Path(sys.executable).name),
    ],
)
def test_name_of_the_run(stepwatch: Run, tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    for file in ("below/train.py", "package/train.py", "package/__main__.py"):
        script(tmp_path, "", file)
    result = stepwatch("run", *words, input="")
    assert result.returncode == 0, result.stderr
    (folder,) = tmp_path.glob("runs/profiling/*Z-*")
    assert folder.name.endswith("Z-" + name)
    assert report_of(folder)["run"]["name"] == name


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(3)",
        "sys.exit('the end')",
        "def f(): raise KeyError('mine')\nf()",
        "raise SystemExit",
        "os._exit(5)",
        "import threading; threading.Thread(target=lambda: 1 / 0).start()",
        "import nowhere",
        "x = (",
        "import atexit; atexit.register(lambda: print('at the end'))",
        "os.abort()",
        "import signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    ],
)
def test_endings_are_the_programs_own(
    stepwatch: Run, plain: Run, tmp_path: Path, ending: str
) -> None:
    script(tmp_path, f"import os, sys\nprint('begun', flush=True)\n{ending}\n")
    expected = plain("train.py")
    result = stepwatch("run", "-o", "out", "train.py")
    code = expected.returncode
    assert result.returncode == (code if code >= 0 else 128 - code)
    assert result.stdout == expected.stdout
    # Names of threads and the like are equal too: nothing of ours is in there.
    assert result.stderr.startswith(expected.stderr)
    assert "stepwatch: " not in result.stderr
    report = report_of(tmp_path / "out")
    assert report["run"]["exit"] == {
        "code": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
    }
    in_time = code >= 0 and "_exit" not in ending
    assert report["run"]["complete"] is (in_time or "SIGINT" in ending)


def test_standard_input(stepwatch: Run, plain: Run, tmp_path: Path) -> None:
    script(tmp_path, "import sys\nprint(sys.stdin.read().upper())\n")
    result = stepwatch("run", "-o", "out", "train.py", input="from a pipe")
    assert result.stdout == "FROM A PIPE\n"
    text = "import sys; print(sys.argv, __name__)"
    result = stepwatch("run", "-o", "stdin", "-", "a", input=text)
    assert result.stdout == plain("-", "a", input=text).stdout
    assert len(traces(tmp_path / "stdin")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_from_outside(
    stepwatch_cli: Path, env: dict[str, str], tmp_path: Path, number: int
) -> None:
    ready = "print('ready', flush=True)\nimport time\nwhile True: time.sleep(1)\n"
    script(tmp_path, STEPS + ready)
    command = [str(stepwatch_cli), "run", "-o", "out", "train.py"]
    with subprocess.Popen(
        command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "ready\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        # Nothing passes on SIGKILL: it is the program that is killed.
        os.kill(int(children[0]) if number == signal.SIGKILL else process.pid, number)
        stderr = process.stderr.read()
        assert process.wait() == 128 + number
    assert ("KeyboardInterrupt" in stderr) == (number == signal.SIGINT)
    assert report_of(tmp_path / "out")["steps"]["count"] == 12


def test_programs_by_another_program(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, STEPS)
    code = f"{sys.executable} train.py; {sys.executable} train.py; exit 4"
    result = stepwatch("run", "-o", "out", "--", "sh", "-c", code)
    assert result.returncode == 4
    assert report_of(tmp_path / "out")["run"]["processes"] == 2


def test_children_by_subprocess(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, STEPS, "child.py")
    code = "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n"
    script(tmp_path, code)
    assert stepwatch("run", "-o", "out", "train.py").returncode == 0
    assert report_of(tmp_path / "out")["run"]["processes"] == 2
    assert report_of(tmp_path / "out")["steps"]["count"] == 12


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_by_multiprocessing(stepwatch: Run, tmp_path: Path, method: str) -> None:
    code = f"""
import multiprocessing, os

def work(number):
    print("worker", number, flush=True)

if __name__ == "__main__":
    multiprocessing.set_start_method("{method}")
    workers = [multiprocessing.Process(target=work, args=(i,)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
"""
    script(tmp_path, code)
    result = stepwatch("run", "-o", "out", "--", sys.executable, "-W", "error", "train.py")
    assert result.returncode == 0
    assert sorted(result.stdout.splitlines()) == ["[0, 0]", "worker 0", "worker 1"]
    assert "Warning" not in result.stderr
    # One each, and none of the servants that multiprocessing has.
    assert len(traces(tmp_path / "out")) == 3
    report = report_of(tmp_path / "out")
    assert report["run"]["processes"] == 3
    assert report["run"]["complete"] is True


@pytest.mark.parametrize("code", [0, 1])
def test_workers_that_a_pool_ends(stepwatch: Run, tmp_path: Path, code: int) -> None:
    """It does away with them by a signal; nothing is wrong, unless the program ends so."""
    script(
        tmp_path,
        f"""
import multiprocessing, sys

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(abs, [-1, 2]))
    sys.exit({code})
""",
    )
    result = stepwatch("run", "-o", "out", "--", sys.executable, "train.py")
    assert result.returncode == code
    report = report_of(tmp_path / "out")
    if code == 0:
        assert report["run"]["complete"] is True
        assert not any("killed" in note for note in report["notes"])


def test_a_fork_that_becomes_another_program_leaves_nothing(stepwatch: Run, tmp_path: Path) -> None:
    code = """
import multiprocessing.util, os
pid = os.fork()
if pid == 0:
    os.execvp("true", ["true"])
print(os.waitpid(pid, 0)[1])
"""
    script(tmp_path, code)
    result = stepwatch("run", "-o", "out", "train.py")
    assert result.stdout == "0\n"
    assert len(traces(tmp_path / "out")) == 1


def test_a_program_may_record_by_itself(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "import stepwatch\nstepwatch.start(name='own', out='own')\n" + STEPS)
    result = stepwatch("run", "-o", "out", "train.py")
    assert result.returncode == 0
    assert "stepwatch: " not in result.stderr
    assert not (tmp_path / "own").exists()
    assert report_of(tmp_path / "out")["steps"]["count"] == 12


def test_switched_off(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "import os, sys\nprint(os.environ.get('PYTHONPATH'), sys.modules.keys())\n")
    for words, extra in (
        (("--set", "enabled=false"), {}),
        ((), {"STEPWATCH_ENABLED": "0"}),
    ):
        result = stepwatch("run", *words, "train.py", extra=extra)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("None ")
        assert "stepwatch" not in result.stdout
        assert not (tmp_path / "runs").exists()


def test_within_another_run(stepwatch: Run, stepwatch_cli: Path, tmp_path: Path) -> None:
    script(tmp_path, STEPS + "import sys; sys.exit(6)\n")
    result = stepwatch("run", "-o", "out", "--", stepwatch_cli, "run", "train.py")
    assert result.returncode == 6
    assert result.stderr.count("Sections") == 1
    assert report_of(tmp_path / "out")["run"]["processes"] == 1


@pytest.mark.parametrize(
    ("hertz", "extra", "expected"),
    [
        ((), {}, "100"),
        (("--set", "sampler_hz=0"), {}, "0"),
        (("--set", "sampler_hz=12.5"), {}, "12.5"),
        ((), {"STEPWATCH_SAMPLER_HZ": "50"}, "50"),
    ],
)
def test_rate_of_the_sampler(
    stepwatch: Run, tmp_path: Path, hertz: tuple[str, ...], extra: dict[str, str], expected: str
) -> None:
    script(tmp_path, "import os\nprint(os.environ['STEPWATCH_SAMPLER_HZ'])\n")
    result = stepwatch("run", "-o", "out", *hertz, "train.py", extra=extra)
    assert result.stdout == expected + "\n"
    assert "stepwatch: " not in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("trian.py",), "did you mean 'train.py'?"),
        (("below/trian.py",), "did you mean 'below/train.py'?"),
        (("zzz",), "there is no script 'zzz'"),
        (("empty",), "'empty' is a folder without a __main__.py"),
        (("./tool",), "stepwatch run -- ./tool"),
        (("binary",), "stepwatch run -- binary"),
        (("sh", "-c", "true"), "stepwatch run -- sh"),
        (("-m",), "needs a value"),
        (("-m", ""), "which module?"),
        (("--lines", "step", "train.py"), "MODULE:FUNCTION, not 'step'"),
        (("--lines", ":step", "train.py"), "MODULE:FUNCTION"),
        (("--lines", "train:", "train.py"), "MODULE:FUNCTION"),
        (("--set", "sampler_hz=1001", "train.py"), "a number from 0 to 1000"),
        (("--set", "sampler_hz=-1", "train.py"), "a number from 0 to 1000"),
        (("--config", "x.toml", "train.py"), "x.toml cannot be read"),
    ],
)
def test_wrong_usage(stepwatch: Run, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    for name in ("train.py", "below/train.py", "empty/train.py"):
        script(tmp_path, "print('started')\n", name)
    script(tmp_path, "#!/bin/sh\n", "tool").chmod(0o755)
    (tmp_path / "binary").write_bytes(b"\x7fELF\x02")
    result = stepwatch("run", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert sentence in result.stderr
    assert not (tmp_path / "runs").exists()


def test_files_whose_name_does_not_say(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "print('plain')\n", "plain")
    script(tmp_path, "#!/usr/bin/env python3\nprint('tool')\n", "tool").chmod(0o755)
    for name in ("plain", "tool"):
        result = stepwatch("run", "-o", name + ".out", name)
        assert (result.returncode, result.stdout) == (0, name + "\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_script_that_cannot_be_read(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "").chmod(0)
    result = stepwatch("run", "train.py")
    assert result.returncode == 2
    assert "cannot be read" in result.stderr


def test_a_script_after_dashes_is_no_program(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "print('started')\n")
    result = stepwatch("run", "--", "train.py")
    assert result.returncode in (126, 127)
    assert "stepwatch run train.py" in result.stderr


def test_a_python_that_is_not_there(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "")
    result = stepwatch("run", "train.py", extra={"STEPWATCH_PYTHON": "/nowhere/python3"})
    assert result.returncode == 127
    assert "/nowhere/python3" in result.stderr
    assert list(tmp_path.glob("runs/profiling/*")) == []


def test_an_unwritable_place(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "print('started')\n")
    result = stepwatch("run", "-o", "/proc/nowhere", "train.py")
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1


def test_a_place_that_vanishes(stepwatch: Run, tmp_path: Path) -> None:
    code = "import os, shutil\nshutil.rmtree(os.environ['STEPWATCH_OUT'])\nprint('done')\n"
    script(tmp_path, code)
    result = stepwatch("run", "-o", "out", "train.py")
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert "Traceback" not in result.stderr


def test_constants_of_a_copy() -> None:
    core = stepwatch_package._core
    one = compile("x = 1", "one", "exec")
    core._take_constants(one, one.replace(co_consts=(2, *one.co_consts[1:])))
    space: dict[str, int] = {}
    exec(one, space)
    assert space["x"] == 2
    with pytest.raises(ValueError, match="copies"):
        core._take_constants(one, one.replace(co_consts=()))
    with pytest.raises(TypeError):
        core._take_constants(one, 1)


WORK = """
import sys

def work(count):
    total = 0
    for number in range(count):
        total += number
    return total

class Model:
    def forward(self):
        return work(1)

if __name__ == "__main__":
    for _ in range(3):
        work(4)
    Model().forward()
    if "child" in sys.argv:
        import subprocess
        subprocess.run([sys.executable, "train.py"], check=True)
"""


@pytest.mark.skipif(
    not hasattr(stepwatch_package, "functions"), reason="there is no function profiler here"
)
def test_functions(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, WORK)
    result = stepwatch("run", "-o", "out", "--functions", "train.py", "child")
    assert (result.returncode, result.stdout) == (0, "")
    assert "function calls" in result.stderr
    assert "(work)" in (tmp_path / "out" / "functions.txt").read_text()
    assert "stepwatch: " not in result.stderr
    profiles = sorted((tmp_path / "out").glob("functions*.stats"))
    assert len(profiles) == 2
    assert (tmp_path / "out" / "functions.stats") in profiles
    for profile in profiles:
        stats: Any = pstats.Stats(str(profile)).stats  # type: ignore[attr-defined]
        (calls,) = [row[1] for key, row in stats.items() if key[2] == "work"]
        assert calls == 4
        assert not [key for key in stats if key[0].endswith("_startup.py")]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "out").iterdir())


@pytest.mark.skipif(
    not hasattr(stepwatch_package, "lines"), reason="there is no line profiler here"
)
@pytest.mark.parametrize(
    "words",
    [
        ("--lines", "train:work", "--lines", "train:Model.forward", "train.py"),
        ("--lines", "train.py:work", "--lines", "__main__:Model.forward", "./train.py"),
        ("--lines", "train:work", "--lines", "train:Model.forward", "-m", "train"),
        ("--lines", "train:work", "--lines", "train:Model.forward", "importer.py"),
    ],
)
def test_lines(stepwatch: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    script(tmp_path, WORK)
    code = "import train\nfor _ in range(3): train.work(4)\ntrain.Model().forward()\n"
    script(tmp_path, code, "importer.py")
    result = stepwatch("run", "-o", "out", *words)
    assert (result.returncode, result.stdout) == (0, "")
    assert "stepwatch: " not in result.stderr
    assert "total += number" in result.stderr
    document = json.loads((tmp_path / "out" / "lines.json").read_text())
    hits = {
        (function["name"], line["line"]): line["hits"]
        for function in document["functions"]
        for line in function["lines"]
    }
    assert hits[("work", 5)] == 4
    assert hits[("work", 7)] == 3 * 4 + 1
    assert hits[("Model.forward", 12)] == 1


@pytest.mark.parametrize("first", [0, 3])
def test_closed_descriptors(stepwatch: Run, tmp_path: Path, first: int) -> None:
    """Programs that become daemons close all descriptors, and ours have numbers like any other."""
    code = f"""
import os, stepwatch
with stepwatch.section("before"):
    os.closerange({first}, 4096)
files = [os.open("/dev/null", os.O_RDWR) for _ in range(300)]
for _ in stepwatch.steps(range(3)):
    with stepwatch.section("after"):
        pass
for file in files:
    os.close(file)
"""
    script(tmp_path, code)
    result = stepwatch("run", "-o", "out", "--no-report", "train.py")
    assert (result.returncode, result.stdout) == (0, "")
    assert "stepwatch: " not in result.stderr
    report = json.loads(stepwatch("report", "out", "--json").stdout)
    calls = {row["name"]: row["calls"] for row in report["sections"]}
    assert (calls["before"], calls["after"], report["steps"]["count"]) == (1, 3, 3)
    assert report["run"]["complete"] is True


def test_lines_in_a_locale_without_unicode(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, "def work():\n    return 'ä€'\nwork()\n")
    result = stepwatch(
        "run", "-o", "out", "--lines", "__main__:work", "train.py", extra={"LC_ALL": "C"}
    )
    assert result.returncode == 0
    assert "us (1e-06 s)" in result.stderr
    assert "return '??'" in result.stderr
    assert result.stderr.isascii()


# --- exact profiles in what is left ---


def profiled(folder: Path, what: str) -> list[dict[str, Any]]:
    return [row for row in report_of(folder)[what] if row["source"] == "profile"]


def calls_of(folder: Path, name: str, file: str = "train.py") -> int:
    """Return the calls of a function of the program, over all processes."""
    rows = [row for row in profiled(folder, "functions") if row["name"] == name]
    (row,) = [row for row in rows if row["file"] and row["file"].endswith(file)]
    calls: int = row["calls"]
    return calls


def hits_of(folder: Path) -> dict[tuple[str, int], int]:
    return {(row["name"], row["line"]): row["hits"] for row in profiled(folder, "lines")}


def test_export_pstats(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, WORK)
    stepwatch("run", "-o", "out", "--functions", "--set", "sampler_hz=0", "train.py")
    result = stepwatch("export", "out", "--to", "pstats", "-o", "exported.stats")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    exported = pstats.Stats(str(tmp_path / "exported.stats"))
    saved = pstats.Stats(str(tmp_path / "out" / "functions.stats"))
    tables: list[Any] = [exported.stats, saved.stats]  # type: ignore[attr-defined]

    def counts(table: Any) -> Any:
        return {
            key: (row[:2], {caller: call[:2] for caller, call in row[4].items()})
            for key, row in table.items()
        }

    assert counts(tables[0]) == counts(tables[1])
    (work,) = [row for key, row in tables[0].items() if key[2] == "work"]
    assert work[:2] == (4, 4)
    text = (tmp_path / "exported.stats").read_bytes().decode("utf-8", "replace")
    assert "function calls" in text
    assert "(work)" in text
    browser = subprocess.run(
        [sys.executable, "-m", "pstats", str(tmp_path / "exported.stats")],
        input="stats work\nquit\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "(work)" in browser.stdout


def test_export_pstats_without_a_profile(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, WORK)
    stepwatch("run", "-o", "out", "train.py")
    result = stepwatch("export", "out", "--to", "pstats", "-o", "exported.stats")
    assert (result.returncode, result.stdout) == (3, "")
    assert "holds no function profile; record one with 'stepwatch run --functions'" in result.stderr
    assert not (tmp_path / "exported.stats").exists()


def test_profiles_in_the_report(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, WORK)
    words = ("--functions", "--lines", "train:work", "train.py")
    stepwatch("run", "-o", "out", "--set", "sampler_hz=0", *words)
    report = report_of(tmp_path / "out")
    assert {row["source"] for row in report["functions"] + report["lines"]} == {"profile"}
    functions = report["functions"]
    assert [row["self_ms"] for row in functions] == sorted(
        (row["self_ms"] for row in functions), reverse=True
    )
    (work,) = [row for row in functions if row["name"] == "work"]
    assert work["file"] == str(tmp_path / "train.py")
    assert (work["line"], work["native"], work["errors"]) == (4, False, 0)
    assert (work["calls"], work["primitive_calls"]) == (4, 4)
    assert 0 < work["self_ms"] <= work["total_ms"]
    native = [row for row in functions if row["native"]]
    assert native
    assert all(row["file"] is None and row["line"] is None for row in native)
    lines = report["lines"]
    assert hits_of(tmp_path / "out") == {
        ("work", 5): 4,
        ("work", 6): 4 * 4 + 1,
        ("work", 7): 3 * 4 + 1,
        ("work", 8): 4,
    }
    assert sum(row["share"] for row in lines) == pytest.approx(1)
    assert all(row["first_line"] == 4 for row in lines)
    for row in lines:
        assert row["per_hit_us"] * row["hits"] == pytest.approx(row["time_ms"] * 1e3)


def test_only_what_ran_is_in_the_report(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, WORK)
    stepwatch("run", "-o", "none", "--set", "sampler_hz=0", "train.py")
    report = report_of(tmp_path / "none")
    assert report["functions"]["recorded"] is False
    assert report["lines"]["recorded"] is False
    text = stepwatch("report", "none").stdout
    assert "(exact)" not in text
    stepwatch("run", "-o", "lines", "--set", "sampler_hz=0", "--lines", "train:work", "train.py")
    report = report_of(tmp_path / "lines")
    assert report["functions"]["recorded"] is False
    assert len(report["lines"]) == 4


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("look", ["--ascii", "--unicode"])
def test_profiles_on_the_page(stepwatch: Run, tmp_path: Path, width: int, look: str) -> None:
    wide = '"漢字" + ' * 40
    body = "".join(f"    größe_{n} = {wide}str({n})\n" for n in range(8))
    name = "a_function_whose_name_is_longer_than_any_page_" * 4
    source = f"def {name}():\n\n{body}\ndef work():\n    return 1\n{name}()\nwork()\n"
    script(tmp_path, source)
    words = ("--functions", "--lines", f"train:{name}", "--lines", "train:work", "train.py")
    stepwatch("run", "-o", "out", *words)
    result = stepwatch("report", "out", look, "--width", str(width))
    assert result.returncode == 0
    text = result.stdout
    assert "Functions by self time (exact)" in text
    assert "Lines by time (exact)" in text
    assert text.count("\nsource ") == 2
    assert all(columns(line) <= width for line in text.splitlines())
    assert text.isascii() == (look == "--ascii")
    assert "\033" not in text
    block = text[text.index("Lines by time") : text.index("work (train.py")]
    rows = [line for line in block.splitlines() if re.match("gr.*e_[0-9] = ", line)]
    assert len(rows) == 5
    coloured = stepwatch("report", "out", look, "--width", str(width), "--color=always").stdout
    assert re.sub("\033\\[[0-9]*m", "", coloured) == text


def columns(line: str) -> int:
    """Return how many columns a line takes; the wide characters are those of this file."""
    return sum(2 if "\u4e00" <= character <= "\u9fff" else 1 for character in line)


PROCESSES = """
import multiprocessing
import os
import sys
import threading
import time

def work(count):
    total = 0
    for number in range(count):
        total += number
    return total

def repeat(times):
    for _ in range(times):
        work(3)

def main(how):
    threads = [threading.Thread(target=repeat, args=(2,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if how == "raise":
        raise ValueError("at the end")
    if how == "interrupt":
        print("ready", flush=True)
        while True:
            time.sleep(0.01)
    if how == "kill":
        import stepwatch
        kept = False
        while not kept:
            for _ in range(100):
                work(3)
            with stepwatch.open(os.environ["STEPWATCH_OUT"]) as run:
                kept = len(run.lines) > 0 and "work" in [row["name"] for row in run.functions]
        os.kill(os.getpid(), 9)
    if how != "plain":
        context = multiprocessing.get_context(how)
        workers = [context.Process(target=repeat, args=(5,)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

if __name__ == "__main__":
    main(sys.argv[1])
"""
PROFILED = ("--functions", "--lines", "train:work", "--lines", "train:repeat", "train.py")


def mentions(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if re.match("(Function|Line) profile: ", line)]


def test_profiles_of_threads(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, PROCESSES)
    result = stepwatch("run", "-o", "out", *PROFILED, "plain")
    assert result.returncode == 0
    assert calls_of(tmp_path / "out", "work") == 4
    assert hits_of(tmp_path / "out")[("work", 11)] == 4 * 3
    assert mentions(result.stderr) == [
        "Function profile: functions.stats, functions.txt",
        "Line profile: lines.json, lines.txt",
    ]
    assert result.stderr.splitlines()[-1] == str(tmp_path / "out")


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_profiles_of_workers(stepwatch: Run, tmp_path: Path, how: str) -> None:
    script(tmp_path, PROCESSES)
    result = stepwatch("run", "-o", "out", *PROFILED, how)
    assert (result.returncode, result.stdout) == (0, "")
    assert "stepwatch: " not in result.stderr
    out = tmp_path / "out"
    assert calls_of(out, "work") == 4 + 2 * 5
    assert hits_of(out)[("work", 11)] == (4 + 2 * 5) * 3
    assert hits_of(out)[("repeat", 16)] == 4 + 2 * 5
    assert mentions(result.stderr) == [
        "Function profile: functions.stats, functions.txt; functions-PID.stats,"
        " functions-PID.txt of 2 child processes",
        "Line profile: lines.json, lines.txt; lines-PID.json, lines-PID.txt of 2 child processes",
    ]
    workers = sorted(out.glob("functions-*.stats"))
    assert len(workers) == 2
    for path in workers:
        stats: Any = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]
        assert [row[1] for key, row in stats.items() if key[2] == "work"] == [5]


def test_profiles_of_a_program_that_raises(stepwatch: Run, tmp_path: Path) -> None:
    script(tmp_path, PROCESSES)
    result = stepwatch("run", "-o", "out", *PROFILED, "raise")
    assert result.returncode == 1
    assert "ValueError: at the end" in result.stderr
    assert calls_of(tmp_path / "out", "work") == 4
    (main,) = [row for row in profiled(tmp_path / "out", "functions") if row["name"] == "main"]
    assert main["errors"] == 1
    assert len(mentions(result.stderr)) == 2


def test_profiles_of_a_program_that_is_interrupted(
    stepwatch_cli: Path, env: dict[str, str], tmp_path: Path
) -> None:
    script(tmp_path, PROCESSES)
    command = [str(stepwatch_cli), "run", "-o", "out", *PROFILED, "interrupt"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "KeyboardInterrupt" in stderr
    assert calls_of(tmp_path / "out", "work") == 4
    assert hits_of(tmp_path / "out")[("work", 11)] == 4 * 3
    assert len(mentions(stderr)) == 2


def test_profiles_of_a_program_that_is_killed(stepwatch: Run, tmp_path: Path) -> None:
    """The counts go into the trace from time to time; what was there at the last is reported."""
    script(tmp_path, PROCESSES)
    result = stepwatch("run", "-o", "out", *PROFILED, "kill")
    assert result.returncode == 128 + signal.SIGKILL
    calls = calls_of(tmp_path / "out", "work")
    assert calls >= 4
    hits = hits_of(tmp_path / "out")
    assert hits[("work", 9)] >= 4
    assert mentions(result.stderr) == []
    assert "no functions.stats was written; 'stepwatch export" in result.stderr
    exported = stepwatch("export", "out", "--to", "pstats", "-o", "kept.stats")
    assert exported.returncode == 0
    stats: Any = pstats.Stats(str(tmp_path / "kept.stats")).stats  # type: ignore[attr-defined]
    assert [row[1] for key, row in stats.items() if key[2] == "work"] == [calls]


def test_line_profiles_import_nothing(stepwatch: Run, plain: Run, tmp_path: Path) -> None:
    """The program finds no module that it has not imported, but for the package itself."""
    source = "import sys\ndef work():\n    return 1\nwork()\nprint(*sorted(sys.modules))\n"
    script(tmp_path, source)
    before = set(plain("train.py").stdout.split())
    result = stepwatch("run", "-o", "out", "--lines", "train:work", "--lines", "a:b", "train.py")
    assert hits_of(tmp_path / "out") == {("work", 3): 1}
    more = set(result.stdout.split()) - before
    more = {name for name in more if name.partition(".")[0] != "stepwatch"}
    usual = {"atexit", "gc", "opcode", "_opcode", "_opcode_metadata", "types", "__future__"}
    assert more <= usual


def test_names_that_a_child_does_not_have(stepwatch: Run, tmp_path: Path) -> None:
    """A child's stderr may be read by the program, so that the sentence is in the notes only."""
    script(tmp_path, "def absent():\n    pass\n", "helper.py")
    source = (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'import helper'],"
        " stderr=subprocess.PIPE, check=True).stderr)\n"
        "subprocess.run([sys.executable, '-c', ''], check=True)\n"
    )
    script(tmp_path, source)
    result = stepwatch("run", "-o", "out", "--lines", "helper:absent_one", "train.py")
    assert result.stdout == "b''\n"
    assert "lines of helper:absent_one were not recorded: module helper was not" in result.stderr
    notes = (tmp_path / "out" / "notes.txt").read_text().splitlines()
    assert sorted(notes) == [
        "lines of helper:absent_one were not recorded: helper has no function absent_one;"
        " did you mean absent?",
        "lines of helper:absent_one were not recorded: module helper was not imported",
    ]
    report = report_of(tmp_path / "out")
    assert set(notes) <= set(report["notes"])
