"""What runs of ours between the program's own is not told to whoever profiles or traces it."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from stepwatch import _core

_MODULE = """
def spread(n):
    total = 0
    for i in range(n):
        total += i
    return total
"""
_PROGRAM = """
import json
import sys
import module


def train(n):
    done = 0
    while done < n:
        done += 1
        module.spread(n)
    return done


train(3)
with open(sys.argv[1], "w") as file:
    json.dump(sorted(sys.modules), file)
"""


def _run(
    build_dir: Path, folder: Path, *options: str
) -> list[tuple[tuple[str, int, str], int, int]]:
    (folder / "module.py").write_text(_MODULE, encoding="utf-8")
    (folder / "program.py").write_text(_PROGRAM, encoding="utf-8")
    command = [str(build_dir / "src/cli/stepwatch"), "run", "-o", "run", "--no-report"]
    subprocess.run(
        [*command, "--functions", *options, "program.py", "modules.json"],
        cwd=folder,
        env={**os.environ, "STEPWATCH_PYTHON": sys.executable},
        check=True,
        timeout=100,
    )
    import pstats

    stats = pstats.Stats(str(folder / "run/functions.stats")).stats  # type: ignore[attr-defined]
    return [(key, row[0], row[1]) for key, row in stats.items()]


@pytest.mark.parametrize("lines", [(), ("module:spread", "__main__:train")])
def test_nothing_of_ours_is_in_the_profile(
    build_dir: Path, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    options = [word for name in lines for word in ("--lines", name)]
    rows = _run(build_dir, tmp_path, *options)
    package = str(Path(_core.__file__).parent)
    ours = [key for key, _, _ in rows if key[0].startswith(package) or "stepwatch" in key[2]]
    assert not ours
    assert [(calls, primitive) for key, primitive, calls in rows if key[2] == "spread"] == [(3, 3)]
    if lines:
        text = (tmp_path / "run/lines.txt").read_text(encoding="utf-8")
        assert "Function: spread" in text
        assert "Function: train" in text


def test_what_stands_between_is_not_there() -> None:
    import stepwatch

    def inner() -> int:
        return 1

    @_core._between
    def between() -> int:
        return inner()

    def fails() -> None:
        raise KeyError

    @_core._between
    def between_failing() -> None:
        fails()

    def outer() -> None:
        between()
        with pytest.raises(KeyError):
            between_failing()
        inner()

    with stepwatch.functions() as profile:
        outer()
    rows = {row["name"]: row for row in profile.rows()}
    assert "between" not in rows
    assert "between_failing" not in rows
    assert rows["inner"]["calls"] == 2
    assert [caller["name"] for caller in rows["inner"]["callers"]] == ["outer"]
    assert [caller["name"] for caller in rows["fails"]["callers"]] == ["outer"]


def test_unseen() -> None:
    import stepwatch

    def work(*args: int, **kwargs: int) -> tuple[object, ...]:
        return args, sorted(kwargs)

    def fail() -> None:
        raise KeyError("of work")

    seen: list[str] = []

    def trace(frame: types.FrameType, event: str, argument: object) -> object:  # noqa: ARG001
        seen.append(frame.f_code.co_name)
        return trace

    hidden, failing = _core._unseen(work), _core._unseen(fail)
    with stepwatch.functions() as profile:
        before = sys.gettrace()
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            got = hidden(1, 2, a=3)
            with pytest.raises(KeyError, match="of work"):
                failing()
            _core._unseen(_core._unseen(work))()
            work()
        finally:
            sys.settrace(before)
    assert got == ((1, 2), ["a"])
    assert hidden.__wrapped__ is work
    assert (seen.count("work"), seen.count("fail")) == (2 + 1, 0)  # a call, its line and its end
    rows = {row["name"]: row for row in profile.rows()}
    assert rows["work"]["calls"] == 1
    assert "fail" not in rows


def test_wrong_arguments() -> None:
    for wrong in (len, 3, None):
        with pytest.raises(TypeError):
            _core._between(wrong)  # type: ignore[type-var]
    with pytest.raises(TypeError):
        _core._unseen()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        _core._unseen(3)()  # type: ignore[arg-type]


_OTHER_IMPORT = """
import builtins
import stepwatch


def broken(*args, **kwargs):
    raise ImportError("not today")


def target():
    return 1


def use():
    watched = stepwatch.Lines(target)
    with stepwatch.functions() as profile, watched:
        target()
    assert "Hits" in watched.text() and watched.to_json() and profile.rows() and profile.text()


use()
builtins.__import__, kept = broken, builtins.__import__
try:
    use()
finally:
    builtins.__import__ = kept
"""


def test_an_import_of_the_programs_own() -> None:
    command = [sys.executable, "-c", _OTHER_IMPORT]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
