"""The line profiler: functions by name, what it shows, and what is in a recording."""

from __future__ import annotations

import ctypes
import io
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

from .line_profiles import plain, run_python

if TYPE_CHECKING:
    from collections.abc import Iterator

# --- names ---------------------------------------------------------------------------


MODULE = """
import functools

def quick(value):
    return value + 1

class Model:
    def forward(self, value):
        value = quick(value)
        return value
"""


def test_by_name_before_the_import(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "named.py").write_text(MODULE)
    result = run_python(
        """
        import sys, stepwatch
        stepwatch.lines.add_by_name("package.named:Model.forward")
        stepwatch.lines.add_by_name("package.named:quick")
        assert "package" not in sys.modules
        from package.named import Model, quick
        import package.named
        assert type(package.named.__loader__).__name__ == "SourceFileLoader"
        assert package.named.__spec__.loader is package.named.__loader__
        Model().forward(1)
        quick(1)
        print([(row["function"], row["line"], row["hits"]) for row in stepwatch.lines.rows()])
        """,
        cwd=tmp_path,
    )
    assert result.stderr == ""
    rows = sorted(eval(result.stdout))
    assert rows == [("Model.forward", 9, 1), ("Model.forward", 10, 1), ("quick", 5, 2)]


def test_names_that_are_nowhere(tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text(MODULE)
    result = run_python(
        """
        import stepwatch
        stepwatch.lines.add_by_name("named:Model.forwar")
        stepwatch.lines.add_by_name("namde:quick")
        import named
        """,
        cwd=tmp_path,
    )
    assert result.returncode == 0
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "stepwatch: lines of named:Model.forwar were not recorded: named has no function"
        " Model.forwar; did you mean Model.forward?",
        "stepwatch: lines of namde:quick were not recorded: module namde was not imported;"
        " did you mean named:quick?",
    ]


LATE = """
    import stepwatch
    stepwatch.start(out=OUT, lines=["__main__:late"], quiet=True)
    def late():
        return 3
    STEPS
        late()
    print(sum(row["hits"] for row in stepwatch.stop().lines))
"""


@pytest.mark.parametrize(
    ("steps", "hits"), [("for _ in stepwatch.steps(range(4)):", 4), ("for _ in range(4):", 0)]
)
def test_functions_that_are_defined_later(tmp_path: Path, steps: str, hits: int) -> None:
    """They are there when steps begin; where there are none, that is said."""
    text = LATE.replace("OUT", repr(str(tmp_path / "run"))).replace("STEPS", steps)
    result = run_python(text, cwd=tmp_path)
    assert result.stdout == f"{hits}\n"
    assert ("it was defined after that was asked for" in result.stderr) == (hits == 0)


@pytest.mark.parametrize("name", ["quick", ":quick", "named:", "named:a..b", ".a:b"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        stepwatch.Lines().add_by_name(name)


def test_functions_of_a_script_by_name() -> None:
    from stepwatch import _line_targets

    profile = stepwatch.Lines()
    for name in ("quick", "Model.forward", "outer.<locals>.inner"):
        assert profile.add_by_name(f"no_such_script:{name}") is False
    source = MODULE + (
        "def outer():\n    def inner():\n        return 7\n    return inner()\n"
        "Model().forward(1)\nouter()\n"
    )
    code = compile(source, "<script>", "exec")
    prepared = _line_targets.prepare(code, "no_such_script")
    exec(prepared, {"__name__": "no_such_script"})
    assert sorted((row["function"], row["hits"]) for row in profile.rows()) == [
        ("Model.forward", 1),
        ("Model.forward", 1),
        ("outer.<locals>.inner", 1),
        ("quick", 1),
    ]
    assert _line_targets.missing() == []


# --- what it shows -------------------------------------------------------------------


WHERE = str(Path(__file__).with_name("line_profiles.py"))  # of plain


@pytest.fixture
def profile() -> Iterator[stepwatch.Lines]:
    made = stepwatch.Lines(plain)
    plain(3)
    made.disable()
    yield made
    made.remove(plain)


def test_text(profile: stepwatch.Lines) -> None:
    text = profile.text()
    first = plain.__code__.co_firstlineno
    lines = text.splitlines()
    assert lines[0] == "Function: plain"
    assert lines[1] == f"File: {WHERE}:{first}"
    assert lines[2].startswith("Total time: ")
    assert lines[3] == "Unit of Time and Per Hit: µs (1e-06 s)"
    assert lines[5].split() == [
        *("Line", "#", "Hits", "Time", "Per", "Hit", "%", "Time", "Line", "Contents")
    ]
    table = {int(line.split()[0]): line for line in lines[7:]}
    assert list(table) == list(range(first, first + 5))
    assert table[first].endswith("def plain(count: int, *, scale: float = 2.0) -> float:")
    assert table[first + 3].split()[1] == "3"
    assert table[first + 3].endswith("        total += scale")
    narrow = profile.text(columns=70).splitlines()
    assert max(map(len, narrow[7:])) <= 70
    with pytest.raises(ValueError, match="negative"):
        profile.text(-1)


def test_json(profile: stepwatch.Lines) -> None:
    document = json.loads(profile.to_json())
    assert document == profile.to_dict()
    assert document["schema"] == "stepwatch.lines/1"
    assert document["unit"] == "ns"
    (function,) = document["functions"]
    first = plain.__code__.co_firstlineno
    assert (function["file"], function["name"], function["line"]) == (WHERE, "plain", first)
    line = function["lines"][2]
    assert (line["line"], line["hits"], line["source"]) == (first + 3, 3, "        total += scale")
    assert line["per_hit_ns"] == pytest.approx(line["time_ns"] / 3)


def test_saving(profile: stepwatch.Lines, tmp_path: Path) -> None:
    profile.save(tmp_path / "lines.json")
    profile.save(str(tmp_path / "lines.txt"))
    assert json.loads((tmp_path / "lines.json").read_text()) == profile.to_dict()
    assert (tmp_path / "lines.txt").read_text(encoding="utf-8") == profile.text()
    with pytest.raises(ValueError, match=r"\.json or \.txt"):
        profile.save(tmp_path / "lines.lprof")
    with pytest.raises(FileNotFoundError):
        profile.save(tmp_path / "missing" / "lines.txt")


def test_printing(profile: stepwatch.Lines, capsys: pytest.CaptureFixture[str]) -> None:
    profile.print()
    assert capsys.readouterr().out == profile.text()
    stream = io.StringIO()
    profile.print(file=stream)
    assert stream.getvalue() == profile.text()
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    profile.print(narrow)
    narrow.seek(0)
    assert "us (1e-06 s)" in narrow.read()


def test_code_without_source() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def made():\n    return 1\n", "<nowhere>", "exec"), namespace)
    profile = stepwatch.Lines(namespace["made"])
    namespace["made"]()
    assert "(the source is not there: <nowhere>)" in profile.text()
    assert profile.to_dict()["functions"][0]["lines"][0]["source"] is None


def test_lines_out_of_any_range() -> None:
    import ast

    tree = ast.parse("def far():\n    x = 1\n    return x\n")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    ast.increment_lineno(function.body[1], 2**29)
    namespace: dict[str, Any] = {}
    exec(compile(tree, "<far>", "exec"), namespace)
    profile = stepwatch.Lines(namespace["far"])
    assert namespace["far"]() == 1
    assert [row["hits"] for row in profile.rows()] == [1]
    assert profile.text()


# --- recordings ----------------------------------------------------------------------


def lines_of_run(build_dir: Path, path: Path) -> dict[str, Any]:
    """Return the line profile that a recording holds, read by the library."""
    library = ctypes.CDLL(str(build_dir / "src" / "libstepwatch.so"))
    run, lines = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.sw_run_open(ctypes.byref(run), os.fsencode(path), None) == 0
    assert library.sw_lines_of_run(ctypes.byref(lines), run, None) == 0
    library.sw_writer_to_memory.restype = ctypes.c_void_p
    library.sw_writer_text.restype = ctypes.c_char_p
    writer = ctypes.c_void_p(library.sw_writer_to_memory())
    library.sw_export_lines_json(writer, lines)
    document: dict[str, Any] = json.loads(library.sw_writer_text(writer, None))
    library.sw_writer_close(writer, None)
    library.sw_lines_free(lines)
    library.sw_run_free(run)
    return document


def test_totals_are_in_the_recording(build_dir: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            import stepwatch

            @stepwatch.lines
            def work(count):
                for _ in range(count):
                    time.sleep(0.01)

            work(5)
            stepwatch.start(out=sys.argv[1])
            work(2)
            stepwatch.stop()
            work(1)
            stepwatch.start(out=sys.argv[2])
            work(3)
            """
        )
    )
    outs = [tmp_path / "first", tmp_path / "second"]
    result = subprocess.run(
        [sys.executable, str(script), *map(str, outs)], capture_output=True, text=True, check=True
    )
    assert result.stdout == ""
    for out, count in zip(outs, (2, 3)):
        (function,) = lines_of_run(build_dir, out)["functions"]
        assert (function["name"], function["file"]) == ("work", str(script))
        got = {line["line"] - function["line"]: line for line in function["lines"]}
        assert {number: line["hits"] for number, line in got.items()} == {2: count + 1, 3: count}
        assert got[3]["time_ns"] >= count * 10_000_000
        assert got[3]["source"] == "        time.sleep(0.01)"
