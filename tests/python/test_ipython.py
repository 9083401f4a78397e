"""The magics, in a real IPython shell."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("IPython", reason="IPython is not installed")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    from IPython.core.interactiveshell import (  # type: ignore[import-not-found,unused-ignore]
        InteractiveShell,
    )
    from traitlets.config import Config  # type: ignore[import-not-found,unused-ignore]

    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=config)
    made.run_line_magic("load_ext", "stepwatch")
    yield made
    InteractiveShell.clear_instance()


def run(shell: Any, cell: str) -> Any:
    result = shell.run_cell(textwrap.dedent(cell))
    result.raise_error()
    return result


def test_importing_stepwatch_does_not_import_ipython() -> None:
    code = "import stepwatch, sys; print('IPython' in sys.modules, 'asyncio' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False False\n"


def test_swlines(shell: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(
        shell,
        """
        def work(count):
            total = 0
            for index in range(count):
                total += index
            return total
        """,
    )
    capsys.readouterr()
    run(shell, "%swlines -f work kept = work(4)")
    out = capsys.readouterr().out
    assert "Function: work" in out
    assert "total += index" in out
    assert shell.user_ns["kept"] == 6

    saved = tmp_path / "lines.json"
    run(shell, f"profile = %swlines -r -T {saved} -f work work(2)")
    profile = shell.user_ns["profile"]
    assert isinstance(profile, stepwatch.Lines)
    assert not profile.enabled
    assert [row["hits"] for row in profile.rows()] == [1, 3, 2, 1]
    assert saved.exists()


def test_swlines_of_what_is_not_there(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for line, text in (
        ("%swlines -f nothing 1", "nothing is no function to watch"),
        ("%swlines 1", "say which functions"),
        ("%swlines -f print 1 1", "written in Python"),
    ):
        result = shell.run_cell(line)
        assert result.error_in_exec is not None
        printed = capsys.readouterr()
        assert text in printed.out + printed.err + str(result.error_in_exec)


def test_the_cell_runs_as_it_would(
    shell: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "cell"
    result = run(
        shell,
        f"""\
        %%stepwatch --out {out}
        import stepwatch
        with stepwatch.section("forward"):
            value = sum(range(10))
        print("said")
        value + 1
        """,
    )
    printed = capsys.readouterr().out
    assert "said" in printed
    assert "46" in printed
    assert shell.user_ns["value"] == 45
    assert result.success
    assert list(out.glob("*.stepwatch"))
    assert not stepwatch.is_recording()
    assert str(out) in printed or "forward" in printed


def test_frameworks_are_watched_while_the_cell_runs(shell: Any) -> None:
    from stepwatch import integrations

    run(
        shell,
        """\
        %%stepwatch
        from stepwatch import integrations
        watched = integrations.is_installed()
        """,
    )
    assert shell.user_ns["watched"]
    assert not integrations.is_installed()
    with pytest.raises(ZeroDivisionError):
        run(shell, "%%stepwatch\n1 / 0")
    assert not integrations.is_installed()


def test_lines_of_a_cell(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "def work():\n    return 1\n")
    run(shell, "%%stepwatch --lines work --lines textwrap:nothing_there\nwork()\nwork()")
    printed = capsys.readouterr().out
    assert "Function: work" in printed
    assert "return 1" in printed
    from stepwatch import _line_targets

    assert "textwrap:nothing_there" in _line_targets.missing()
    _line_targets._waiting.clear()


def test_an_error_in_the_cell_is_the_cells(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("%%stepwatch\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    printed = capsys.readouterr().out
    assert printed.count(": division by zero") == 1
    assert not stepwatch.is_recording()
    # Errors of later cells are shown as ever.
    shell.run_cell("undefined_name")
    assert "NameError" in capsys.readouterr().out


def test_a_recording_that_is_on_goes_on(
    shell: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stepwatch.start(out=tmp_path / "own")
    try:
        run(shell, "%%stepwatch\nx = 1")
        assert "is on already" in capsys.readouterr().out
        assert stepwatch.is_recording()
        result = shell.run_cell(f"%%stepwatch --out {tmp_path / 'other'}\nx = 2")
        assert not result.success
        assert shell.user_ns["x"] == 1
    finally:
        stepwatch.stop()


def test_words_that_mean_nothing(shell: Any) -> None:
    result = shell.run_cell("%%stepwatch whatever\nx = 5")
    assert not result.success
    assert "x" not in shell.user_ns
