"""Configuration: files, environment and command line, which one counts, and mistakes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def options(stepwatch: Run, *words: str, **more: Any) -> dict[str, dict[str, Any]]:
    """Return what doctor says about each option."""
    result = stepwatch("doctor", "--json", *words, **more)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return {option["option"]: option for option in json.loads(result.stdout)["options"]}


def in_force(folder: Path, name: str, value: str) -> bool:
    """Tell whether each trace of a run says that an option had this value."""
    wanted = f"config.{name}{value}".encode()
    traces = list(folder.glob("*.stepwatch"))
    assert traces
    return all(wanted in trace.read_bytes().replace(b"\0", b"") for trace in traces)


# --- which file ---


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("stepwatch.toml", "# ours\nmax_mb = 12\n", 2),
        ("pyproject.toml", "[project]\nname = 'x'\n[tool.stepwatch]\nmax_mb = 12\n", 4),
        ("stepwatch.yaml", "model: x\nprofiling:\n  max_mb: 12\n", 3),
        ("stepwatch.yml", "profiling: {max_mb: 12}\n", 1),
    ],
)
def test_files_that_are_found(
    stepwatch: Run, tmp_path: Path, name: str, text: str, line: int
) -> None:
    (tmp_path / name).write_text(text)
    found = options(stepwatch)["max_mb"]
    assert (found["value"], found["source"], found["where"]) == ("12", "file", f"{name}:{line}")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = options(stepwatch, cwd=below)["max_mb"]
    assert (found["value"], found["where"]) == ("12", f"{tmp_path / name}:{line}")


def test_the_nearest_file_counts_and_toml_comes_first(stepwatch: Run, tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "stepwatch.toml").write_text("max_mb = 3\nquiet = true")
    (below / "pyproject.toml").write_text("[tool.other]\nmax_mb = 4\n")
    assert options(stepwatch, cwd=below)["max_mb"]["value"] == "3"
    (below / "stepwatch.yml").write_text("profiling:\n  max_mb: 5\n")
    assert options(stepwatch, cwd=below)["max_mb"]["value"] == "5"
    (below / "stepwatch.yaml").write_text("profiling:\n  max_mb: 6\n")
    assert options(stepwatch, cwd=below)["max_mb"]["value"] == "6"
    (below / "pyproject.toml").write_text("[tool.stepwatch]\nmax_mb = 7\n")
    assert options(stepwatch, cwd=below)["max_mb"]["value"] == "7"
    (below / "stepwatch.toml").write_text("max_mb = 8\n")
    found = options(stepwatch, cwd=below)
    assert found["max_mb"]["value"] == "8"
    # Files are not joined: what the one above says is another project's business.
    assert found["quiet"]["source"] == "default"


def test_a_file_that_is_named(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "stepwatch.toml").write_text("max_mb = 3\n")
    (tmp_path / "other.toml").write_text("max_mb = 4\n")
    (tmp_path / "third.yaml").write_text("profiling: {max_mb: 5}\n")
    variable = {"STEPWATCH_CONFIG": "third.yaml"}
    assert options(stepwatch)["max_mb"]["value"] == "3"
    assert options(stepwatch, extra=variable)["max_mb"]["value"] == "5"
    found = options(stepwatch, "--config", "other.toml", extra=variable)["max_mb"]
    assert (found["value"], found["where"]) == ("4", "other.toml:1")
    for none in ({"STEPWATCH_CONFIG": "none"}, {}):
        words = () if none else ("--config", "none")
        assert options(stepwatch, *words, extra=none)["max_mb"]["source"] == "default"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_somebody_elses_file_above_does_not_count(stepwatch: Run, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "stepwatch.toml").write_text("max_mb = 3\n")
    below = tmp_path / "below"
    below.mkdir()
    os.chown(tmp_path / "stepwatch.toml", 12345, 12345)
    assert options(stepwatch, cwd=below)["max_mb"]["source"] == "default"
    # In the working directory it does, and where that is the same user's.
    assert options(stepwatch)["max_mb"]["value"] == "3"
    os.chown(below, 12345, 12345)
    assert options(stepwatch, cwd=below)["max_mb"]["value"] == "3"


# --- precedence ---


def test_precedence(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    (tmp_path / "stepwatch.toml").write_text(
        "policy = 'ring'\nmax_mb = 11\nkeep_last = 12\nquiet = true\n"
    )
    extra = {"STEPWATCH_MAX_MB": "21", "STEPWATCH_KEEP_LAST": "22"}
    words = ("--set", "keep_last=32", "--no-report")
    result = stepwatch("run", "-o", "out", *words, "--", program, "steps", "3", extra=extra)
    assert result.returncode == 0, result.stderr
    assert in_force(tmp_path / "out", "policy", "ring")
    assert in_force(tmp_path / "out", "max_mb", "21")
    assert in_force(tmp_path / "out", "keep_last", "32")
    shown = options(stepwatch, extra=extra)
    assert shown["max_mb"]["source"] == "environment"
    assert shown["max_mb"]["where"] == "STEPWATCH_MAX_MB"
    assert shown["policy"]["source"] == "file"
    assert shown["hot_dir"]["source"] == "default"
    assert shown["hot_dir"]["where"] is None


def test_the_file_does_not_look_like_the_environment(
    stepwatch: Run, stepwatch_cli: Path, tmp_path: Path
) -> None:
    (tmp_path / "stepwatch.toml").write_text("max_mb = 11\nname = 'a\\nb\\\\c'\n")
    words = (stepwatch_cli, "doctor", "--json")
    result = stepwatch("run", "--no-report", "--set", "keep_last=3", "--", *words)
    found = {one["option"]: one for one in json.loads(result.stdout)["options"]}
    assert found["max_mb"]["value"] == "11"
    assert found["max_mb"]["where"] == "stepwatch.toml:1"
    assert found["keep_last"]["source"] == "environment"


def test_the_file_is_read_once(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    """Neither the program nor its children warn again, or find another file elsewhere."""
    (tmp_path / "stepwatch.toml").write_text("max_bm = 3\npolicy = 'ring'\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "stepwatch.toml").write_text("policy = 'drop'\nmax_bn = 3\n")
    shell = f"cd other && {program} steps 3 && {program} steps 3"
    extra = {"STEPWATCH_POLCY": "x"}
    result = stepwatch("run", "-o", "out", "--no-report", "--", "sh", "-c", shell, extra=extra)
    lines = result.stderr.splitlines()
    assert [line for line in lines if "stepwatch.toml" in line] == [
        'stepwatch: stepwatch.toml:1: there is no option "max_bm"; did you mean max_mb?'
    ]
    assert len([line for line in lines if "STEPWATCH_POLCY" in line]) == 1
    assert in_force(tmp_path / "out", "policy", "ring")


def test_a_program_without_run_reads_it_too(
    program: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    (tmp_path / "stepwatch.toml").write_text("out = 'here'\nenabled = true\nmax_mb = lots\n")
    command = [str(program), "steps", "3"]
    result = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    assert result.stderr.count("stepwatch.toml:3") == 1
    assert in_force(tmp_path / "here", "max_mb", "256")


# --- what options do ---


def test_off_in_a_file(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    (tmp_path / "stepwatch.toml").write_text("\nenabled = false\n")
    result = stepwatch("run", "--", program, "print", "ran")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert len(result.stderr.splitlines()) == 1
    assert "stepwatch.toml:2 says enabled = false" in result.stderr
    assert not (tmp_path / "runs").exists()
    for words, extra in (
        (("--set", "enabled=true"), {}),
        ((), {"STEPWATCH_ENABLED": "1"}),
    ):
        result = stepwatch("run", *words, "--", program, "steps", "2", extra=extra)
        assert "says enabled" not in result.stderr
        assert (tmp_path / "runs").exists()
    before = len(list(tmp_path.glob("runs/profiling/*")))
    off = {"STEPWATCH_ENABLED": "0"}
    stepwatch("run", "--set", "enabled=true", "--", program, extra=off)
    assert len(list(tmp_path.glob("runs/profiling/*"))) == before


def test_folder_of_the_runs(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    (tmp_path / "stepwatch.toml").write_text("runs_dir = 'profiles/mine'\nname = 'cnn'\n")
    for _ in range(2):
        result = stepwatch("run", "--", program, "steps", "2")
        assert result.returncode == 0
    folders = list((tmp_path / "profiles" / "mine").glob("*Z-*"))
    assert len(folders) == 2
    assert all("-cnn" in folder.name for folder in folders)
    assert stat.S_IMODE(folders[0].stat().st_mode) == 0o700
    result = stepwatch("run", "-o", "named", "--", program, "steps", "2")
    assert (tmp_path / "named" / "report.json").exists()
    checks = json.loads(stepwatch("doctor", "--json").stdout)["checks"]
    assert any("profiles" in check["text"] for check in checks if check["check"] == "run folder")


def test_report_in_a_file(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    (tmp_path / "stepwatch.toml").write_text("report = false\n")
    result = stepwatch("run", "-o", "out", "--", program, "steps", "2")
    assert result.stderr == f"{tmp_path / 'out'}\n"
    result = stepwatch("run", "-o", "out2", "--set", "report=on", "--", program, "steps", "2")
    assert (tmp_path / "out2" / "report.json").exists()


@pytest.mark.usefixtures("python_env")
def test_profiles_in_a_file(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def step():\n    return 1\n\nstep()\n")
    (tmp_path / "stepwatch.yaml").write_text(
        "profiling:\n  functions: true\n  lines:\n    - train:step\n  sampler_hz: 0\n"
    )
    result = stepwatch("run", "-o", "out", "train.py")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "functions.stats").exists()
    assert "return 1" in (tmp_path / "out" / "lines.txt").read_text()
    samples = json.loads((tmp_path / "out" / "report.json").read_text()).get("samples", {})
    assert not samples.get("count")


@pytest.mark.usefixtures("python_env")
def test_options_of_python_reach_it(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from stepwatch import _core\n"
        "print(*(_core.option(n) for n in ('phases', 'modules', 'loader', 'operators',"
        " 'progress', 'schedule')))\n"
    )
    (tmp_path / "stepwatch.toml").write_text(
        "modules = false\nprogress = false\nschedule = {wait = 1, active = 2}\n"
    )
    words = ("--no-report", "--operators", "--set", "loader=off")
    result = stepwatch("run", *words, "train.py")
    assert result.stdout == "on off off on off wait=1,active=2\n"


# --- mistakes ---


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("max_bm = 1\n", '1: there is no option "max_bm"; did you mean max_mb?'),
        ("\nlearning_rate = 1\n", '2: there is no option "learning_rate"'),
        ("max_mb = 'lots'\n", '1: max_mb is "lots" but should be a number of MiB'),
        ("policy = 'best'\n", '1: policy is "best" but should be auto, stream, ring or drop'),
        ("monitor_interval_s = 0.001\n", "should be 0, or from 0.01 to 3600 seconds"),
        ("clock = 'tsc'\n", "1: clock can be given by its variable only"),
        ("policy = ['ring']\n", "1: policy takes one value, not a list"),
        ("[policy]\na = 1\nb = 2\n", "2: policy takes a value, not a table"),
        ("lines = ['train']\n", "should be MODULE:FUNCTION, separated by commas"),
        ("max_mb = 3\nmax_mb = 4\n", "2: max_mb was given before; this one counts"),
        ("max_mb = \nquiet = true\n", "1: a value is missing"),
        ("[tool.stepwatch]\nmax_mb = 3\n", 'there is no option "tool"'),
        ("max_mb = 3\nname = '\x1b[31m\nquiet = true", "2: a text in quotes does not end"),
    ],
)
def test_mistakes_in_a_file(
    stepwatch: Run, program: Path, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "stepwatch.toml").write_text(text)
    result = stepwatch("run", "--no-report", "--", program, "steps", "2", "print", "ran")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    warnings = [line for line in result.stderr.splitlines() if "stepwatch.toml" in line]
    assert len(warnings) == 1, result.stderr
    assert sentence in warnings[0]
    assert "\x1b" not in result.stderr
    checks = json.loads(stepwatch("doctor", "--json").stdout)["checks"]
    (check,) = [check for check in checks if check["check"] == "configuration"]
    assert check["status"] == "warn"
    assert sentence in check["text"]


def test_many_mistakes_are_counted(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    text = "".join(f"wrong_{number} = 1\n" for number in range(200))
    (tmp_path / "stepwatch.toml").write_text(text)
    result = stepwatch("run", "--no-report", "--", program, "steps", "2")
    assert result.returncode == 0
    assert len(result.stderr.splitlines()) < 30
    assert "176 more" in result.stderr


@pytest.mark.parametrize("name", ["stepwatch.toml", "stepwatch.yaml"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "long", "latin-1", "utf-16", "nul", "unlinked"])
def test_files_that_cannot_be_read(
    stepwatch: Run, program: Path, tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / name
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "unlinked":
        path.symlink_to(path)
    else:
        path.write_bytes(
            {
                "long": b"# " + b"x" * (1 << 20),
                "latin-1": b"# gr\xfc\xdfe\n",
                "utf-16": "max_mb = 3".encode("utf-16"),
                "nul": b"max_mb = 3\n\0",
            }[kind]
        )
    result = stepwatch("run", "--no-report", "--", program, "steps", "2", "print", "ran")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert len([line for line in result.stderr.splitlines() if name in line]) == 1, result.stderr
    named = stepwatch("run", "--config", name, "--", program, "print", "ran")
    assert (named.returncode, named.stdout) == (2, "")
    assert len(named.stderr.splitlines()) == 1
    assert name in named.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing.toml", "missing.toml cannot be read"),
        ("train.py", "its name should end with .toml, .yaml or .yml"),
        (".", "its name should end"),
        ("x" * 5000 + ".toml", "too long"),
    ],
)
def test_a_named_file_that_is_none(
    stepwatch: Run, program: Path, tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "train.py").write_text("")
    result = stepwatch("run", "--config", name, "--", program, "print", "ran")
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert sentence in result.stderr
    assert stepwatch("doctor", "--config", name).returncode == 2
    # By the environment it is no reason not to run.
    extra = {"STEPWATCH_CONFIG": name}
    result = stepwatch("run", "--no-report", "--", program, "print", "ran", extra=extra)
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert "STEPWATCH_CONFIG is ignored" in result.stderr


@pytest.mark.parametrize("name", ["conf.yaml", "sub/pyproject.toml"])
def test_a_named_file_without_our_part(
    stepwatch: Run, program: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    result = stepwatch("run", "--no-report", "--config", name, "--", program, "print", "ran")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert f"{name}: there is no " in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--set", "max_bm=3"), "unknown option 'max_bm' in --set; did you mean 'max_mb'?"),
        (("--set", "monitor=3"), "'monitor' in --set; did you mean 'monitor_interval_s'?"),
        (("--set", "xyzzy=3"), "unknown option 'xyzzy' in --set; did you mean '"),
        (("--set", "max_mb"), "--set takes KEY=VALUE"),
        (("--set", "=3"), "--set takes KEY=VALUE"),
        (("--set", "max_mb="), 'max_mb is ""'),
        (("--set", "max_mb=1"), 'max_mb is "1" but should be'),
        (("--set", "monitor_interval_s=5000"), "should be 0, or from 0.01 to 3600 seconds"),
        (("--set", "monitor_pss_s=1e3"), "should be 0, or from 0.01 to 3600 seconds"),
        (("--set", "progress=sometimes"), "auto, on or off"),
        (("--set", "lines=train"), "MODULE:FUNCTION"),
        (("--set", "lines=a:b,"), "MODULE:FUNCTION"),
        (("--out", "x" * 2000), "longer than 1023 bytes"),
        (("--cofnig", "x"), "did you mean '--config'?"),
        (("--config",), "needs a value"),
    ],
)
def test_mistakes_on_the_command_line(
    stepwatch: Run, program: Path, words: tuple[str, ...], sentence: str
) -> None:
    result = stepwatch("run", *words, *(() if len(words) == 1 else ("--", program, "print", "ran")))
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert sentence in result.stderr


def test_within_another_run(
    stepwatch: Run, stepwatch_cli: Path, program: Path, tmp_path: Path
) -> None:
    (tmp_path / "stepwatch.toml").write_text("policy = 'ring'\nwrong = 1\n")
    (tmp_path / "inner.toml").write_text("policy = 'drop'\nwrong = 2\n")
    inner = (stepwatch_cli, "run")
    for words, policy, warnings in (((), "ring", 1), (("--config", "inner.toml"), "drop", 2)):
        out = "inner" if words else "plain"
        command = (*inner, *words, "--", program, "steps", "2")
        result = stepwatch("run", "-o", out, "--no-report", "--", *command)
        assert result.returncode == 0
        assert result.stderr.count("there is no option") == warnings, result.stderr
        assert in_force(tmp_path / out, "policy", policy)


# --- the table ---

ROOT = Path(__file__).parents[2]


def test_documentation_has_every_option(stepwatch: Run) -> None:
    """The table of docs/configuration.md is the one in C, word for word."""
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `") and line.count("|") == 5]
    expected = []
    for option in options(stepwatch).values():
        default = f"`{option['default']}`" if option["default"] else ""
        cells = (f"`{option['option']}`", option["type"], default, option["help"])
        expected.append("| " + " | ".join(cells) + " |")
    assert rows == expected


def test_completion_has_every_option(stepwatch: Run) -> None:
    text = (ROOT / "completions" / "stepwatch.bash").read_text(encoding="utf-8")
    words = text.partition('compgen -S = -W "')[2].partition('"')[0].replace("\\", "").split()
    assert words == sorted(options(stepwatch))
