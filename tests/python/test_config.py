"""Options as keywords of start, and config= with files, mappings and the objects of others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _config

# What a child prints: the value in force of each named option.
SHOW = """
import stepwatch
from stepwatch import _core
def show(*names, out="run", **config):
    stepwatch.start(out=out, **config)
    print(*(_core.option(name) or "-" for name in names))
    stepwatch.stop()
"""


def child(folder: Path, code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, in that folder."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("STEPWATCH")}
    return subprocess.run(
        [sys.executable, "-c", SHOW + code],
        cwd=folder,
        env={**kept, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def shown(folder: Path, code: str, **env: str) -> str:
    """Return what a child prints, that must not complain."""
    result = child(folder, code, **env)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.strip()


def test_every_option_is_a_keyword(tmp_path: Path) -> None:
    given = {
        "enabled": "True",
        "name": "'x'",
        "runs_dir": "pathlib.Path('runs')",
        "policy": "'ring'",
        "max_mb": "2.5",
        "events": "False",
        "schedule": "'every=3'",
        "keep_first": "0",
        "keep_last": "1",
        "keep_worst": "2",
        "step_usage": "False",
        "phases": "False",
        "modules": "0",
        "loader": "'no'",
        "brief": "False",
        "operators": "True",
        "functions": "False",
        "lines": "['json:dumps', 'json:loads']",
        "memory": "True",
        "memory_sample_kb": "256",
        "memory_native": "True",
        "sampler_hz": "0",
        "monitor_interval_s": "0.25",
        "monitor_pss_s": "0",
        "io": "True",
        "gpu": "'off'",
        "nvml": "'/nowhere/libnvidia-ml.so.1'",
        "progress": "'off'",
        "report": "False",
        "history": "False",
        "hot_dir": "b'/dev/shm'",
        "quiet": "True",
    }
    known = {name for name, *_ in stepwatch._core._options()}
    assert known - set(given) == {"out", "clock"}
    words = ", ".join(f"{name}={value}" for name, value in given.items())
    names = [name for name in given if name != "hot_dir"]
    line = shown(tmp_path, f"import json, pathlib\nshow(*{names!r}, {words})")
    assert line.split() == [
        *("on", "x", "runs", "ring", "2.5", "off", "every=3", "0", "1", "2", "off", "off"),
        *(
            "off",
            "off",
            "off",
            "on",
            "off",
            "json:dumps,json:loads",
            "on",
            "256",
            "on",
            "0",
            "0.25",
            "0",
            "on",
            "off",
            "/nowhere/libnvidia-ml.so.1",
            "off",
            "off",
            "off",
            "on",
        ),
    ]


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ({"polcy": "ring"}, TypeError, "did you mean 'policy'"),
        ({"learning_rate": 1}, TypeError, "no option 'learning_rate'"),
        ({"clock": "tsc"}, TypeError, "by its variable only"),
        ({"phases": "perhaps"}, ValueError, "phases is"),
        ({"progress": "sometimes"}, ValueError, "auto, on or off"),
        ({"progress": 3}, TypeError, "progress"),
        ({"monitor_interval_s": 0.001}, ValueError, "0, or from 0.01 to 3600 seconds"),
        ({"monitor_interval_s": -1}, ValueError, "0, or from 0.01"),
        ({"monitor_interval_s": "often"}, TypeError, "monitor_interval_s: "),
        ({"monitor_interval_s": float("nan")}, ValueError, "finite"),
        ({"monitor_pss_s": 4000}, ValueError, "0, or from 0.01"),
        ({"memory_sample_kb": -1}, ValueError, "memory_sample_kb"),
        ({"memory_sample_kb": "often"}, TypeError, "memory_sample_kb: "),
        ({"lines": 3}, TypeError, "lines: "),
        ({"lines": ["train"]}, ValueError, "MODULE:FUNCTION"),
        ({"lines": [3]}, TypeError, "lines: "),
        ({"keep_first": -1}, ValueError, "keep_first"),
        ({"keep_first": 1.5}, TypeError, "keep_first: "),
        ({"keep_first": 10**30}, ValueError, "keep_first"),
        ({"max_mb": 1e300}, ValueError, "max_mb"),
        ({"out": "x" * 2000}, ValueError, "longer than 1023"),
        ({"runs_dir": 3}, TypeError, "runs_dir: "),
        ({"config": 3}, TypeError, "a path, a mapping or a dataclass, not int"),
        ({"config": {"profiling": 3}}, TypeError, "profiling should be a mapping"),
        ({"config": ["max_mb"]}, TypeError, "not list"),
        ({"config": "a\0b"}, ValueError, "null"),
        ({"config": {"name": "a\0b"}}, ValueError, "null"),
    ],
)
def test_mistakes(config: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        stepwatch.start(**config)
    assert not stepwatch.is_recording()


def test_nothing_given(tmp_path: Path) -> None:
    names = "'max_mb', 'policy', 'lines'"
    code = f"show({names}, config=None, max_mb=None, policy='', lines=[])"
    assert shown(tmp_path, code, STEPWATCH_MAX_MB="7") == "7 auto -"


def test_precedence(tmp_path: Path) -> None:
    (tmp_path / "stepwatch.toml").write_text("max_mb = 3\nkeep_last = 3\nkeep_first = 3\n")
    env = {"STEPWATCH_MAX_MB": "4", "STEPWATCH_KEEP_LAST": "4"}
    names = "'max_mb', 'keep_last', 'keep_first', 'keep_worst'"
    assert shown(tmp_path, f"show({names}, max_mb=5)", **env) == "5 4 3 20"
    # What is handed over takes the place of the file.
    config = "{'max_mb': 6, 'keep_last': 6, 'keep_worst': 6}"
    assert shown(tmp_path, f"show({names}, max_mb=5, config={config})", **env) == "5 4 50 6"
    (tmp_path / "other.yaml").write_text("profiling: {keep_worst: 8}")
    code = f"import pathlib\nshow({names}, config=pathlib.Path('other.yaml'))"
    assert shown(tmp_path, code, **env) == "4 4 50 8"
    assert shown(tmp_path, f"show({names}, config='none')") == "256 50 50 20"


def test_off(tmp_path: Path) -> None:
    for config in ("enabled=False", "config={'enabled': False}", "config={'profiling': None}"):
        stopped = shown(tmp_path, f"show('max_mb', {config})", STEPWATCH_MAX_MB="9")
        assert stopped == ("9" if "None" in config else "-")
    (tmp_path / "stepwatch.toml").write_text("enabled = false\n")
    assert shown(tmp_path, "show('max_mb')") == "-"
    assert shown(tmp_path, "show('max_mb', enabled=True)") == "256"
    assert shown(tmp_path, "show('max_mb', enabled=True)", STEPWATCH_ENABLED="0") == "-"


@pytest.mark.parametrize("said", ["0", "Off"])
def test_off_hooks_nothing(tmp_path: Path, said: str) -> None:
    """Tools that need no recording count nothing either; the program runs on."""
    code = """
import os, sys
def busy():
    return sum(range(10))
timed = stepwatch.lines(busy)
with stepwatch.functions() as functions, stepwatch.memory() as memory, stepwatch.sample(100):
    kept = bytearray(1 << 20)
    before = memory.snapshot()
    print(busy(), timed(), sys.getprofile(), sys.gettrace(), len(os.listdir("/proc/self/task")))
print(functions.rows(), stepwatch.lines.rows())
print(memory.peak, memory.allocated, memory.top(), (memory.snapshot() - before).top())
memory.start()
memory.stop()
"""
    assert shown(tmp_path, code, STEPWATCH_ENABLED=said).splitlines() == [
        "45 45 None None 1",
        "[] []",
        "0 0 [] []",
    ]


def test_mistakes_in_what_counts_as_a_file(tmp_path: Path) -> None:
    config = {"max_bm": 3, "policy": "best", "trainer": {"a": 1, "b": 2}, "lines": ["x"]}
    result = child(tmp_path, f"show('policy', config={config!r})")
    assert (result.returncode, result.stdout) == (0, "auto\n")
    assert result.stderr.splitlines() == [
        'stepwatch: config: there is no option "max_bm"; did you mean max_mb?',
        'stepwatch: config: there is no option "trainer"; did you mean loader?',
        'stepwatch: config: policy is "best" but should be auto, stream, ring or drop;'
        " it is ignored",
        'stepwatch: config: lines is "x" but should be MODULE:FUNCTION, separated by commas;'
        " it is ignored",
    ]
    result = child(tmp_path, "show('policy', config='missing.toml')")
    assert (result.returncode, result.stdout) == (0, "auto\n")
    assert len(result.stderr.splitlines()) == 1
    assert "missing.toml cannot be read" in result.stderr


def test_record_takes_it_too(tmp_path: Path) -> None:
    code = """
with stepwatch.record("block", config={"profiling": {"runs_dir": "mine"}}) as run:
    pass
print(run.path)
"""
    path = Path(shown(tmp_path, code))
    assert path.parent == tmp_path / "mine"
    assert path.name.endswith("-block")


def test_pairs() -> None:
    class Plain:
        def __init__(self, **entries: Any) -> None:
            self.entries = entries

        def keys(self) -> list[str]:
            return list(self.entries)

        def __getitem__(self, name: str) -> Any:
            return self.entries[name]

    pairs = _config.pairs_of
    assert pairs({}) == []
    assert pairs({"profiling": {}, "max_mb": 3}) == []
    assert pairs({"a": None, "b": "???", "c": True, "d": False}) == ["c=on", "d=off"]
    assert pairs({"a": 1, "b": 1.5, "c": 1e-7, "d": 1e22}) == [
        *("a=1", "b=1.5", "c=0.000000", "d=10000000000000000000000.000000")
    ]
    assert pairs({"a": ["x", "y"], "b": (1, 2), "c": Path("x/y")}) == ["a=x,y", "b=1,2", "c=x/y"]
    assert pairs(Plain(schedule=Plain(wait=1, active=2))) == [
        "schedule.wait=1",
        "schedule.active=2",
    ]


@pytest.mark.once
def test_dataclass(tmp_path: Path) -> None:
    code = """
import dataclasses
@dataclasses.dataclass
class Schedule:
    wait: int = 1
    active: int = 2
@dataclasses.dataclass
class Config:
    max_mb: float = 12
    schedule: Schedule = dataclasses.field(default_factory=Schedule)
    name: str = None
show("max_mb", "schedule", config=Config())
"""
    assert shown(tmp_path, code) == "12 wait=1,active=2"


@pytest.mark.once
def test_omegaconf(tmp_path: Path) -> None:
    pytest.importorskip("omegaconf")
    code = """
import json
from omegaconf import OmegaConf
text = '''
size: 12
model:
  width: ???
  depth: ${nowhere}
profiling:
  max_mb: ${size}
  name: ???
  progress: off
  lines: [json:dumps]
  schedule: {wait: 1, active: 2}
'''
config = OmegaConf.create(text)
show("max_mb", "schedule", "progress", "lines", config=config)
show("max_mb", "schedule", "lines", out="run2", config=OmegaConf.create({"max_mb": 3}))
"""
    result = child(tmp_path, code)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "12 wait=1,active=2 off json:dumps",
        "3 always -",
    ]


@pytest.mark.once
def test_hydra(tmp_path: Path) -> None:
    pytest.importorskip("hydra")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text(
        "defaults:\n  - stepwatch@profiling: default\n  - _self_\n"
        "profiling:\n  max_mb: 12\n  policy: ring\n"
    )
    (tmp_path / "train.py").write_text(
        "import hydra, stepwatch, stepwatch.hydra\n"
        "from stepwatch import _core\n"
        "@hydra.main(version_base=None, config_path='conf', config_name='config')\n"
        "def main(cfg):\n"
        "    with stepwatch.record(config=cfg):\n"
        "        print(_core.option('max_mb'), _core.option('policy'), _core.option('events'))\n"
        "main()\n"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "train.py", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    result = run("profiling.max_mb=13", "profiling.events=false")
    assert (result.returncode, result.stdout) == (0, "13 ring off\n"), result.stderr
    wrong = run("profiling.max_bm=13")
    assert wrong.returncode != 0
    assert "max_bm" in wrong.stderr


def test_profiles_that_options_ask_for(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def step():\n    return sum(range(10))\n")
    (tmp_path / "stepwatch.toml").write_text("lines = ['work:step']\n")
    code = """
import work
stepwatch.start(out="run", functions=True)
for _ in range(3):
    work.step()
run = stepwatch.stop()
work.step()
print(*(row["calls"] for row in run.functions if row["name"] == "step"))
print(*(row["hits"] for row in run.lines if row["line"] == 2))
"""
    assert shown(tmp_path, code) == "3\n3"


def test_a_profile_that_cannot_begin(tmp_path: Path) -> None:
    code = """
stepwatch.start(out="run", lines="no.such.module:function")
with stepwatch.section("x"):
    pass
print(len(stepwatch.stop().sections))
"""
    result = child(tmp_path, code)
    assert (result.returncode, result.stdout) == (0, "1\n")
    assert len(result.stderr.splitlines()) == 1
    assert "no.such.module" in result.stderr
