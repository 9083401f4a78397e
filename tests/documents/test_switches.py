"""Who decides whether a guide's profiling is on, and where its files go."""

from __future__ import annotations

import pytest
from stepwatch.compat import _switches

pytestmark = pytest.mark.once


@pytest.mark.parametrize("text", ["true", "1", "yes", "on", "TRUE", " Yes "])
def test_words_for_yes(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("ENABLE_PROFILING", text)
    assert _switches.environment() is True


@pytest.mark.parametrize("text", ["false", "0", "no", "off", "Off"])
def test_words_for_no(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("ENABLE_PROFILING", text)
    assert _switches.environment() is False
    assert not _switches.enabled(argument=True, override=True, configured=True, default=True)


def test_other_words_are_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STEPWATCH_RUN_ID", raising=False)
    monkeypatch.setenv("ENABLE_PROFILING", "perhaps")
    assert _switches.environment() is None
    assert _switches.environment() is None
    said = capsys.readouterr().err
    assert said.count("ENABLE_PROFILING='perhaps' is neither true nor false") == 1


@pytest.mark.parametrize(
    ("outside", "argument", "override", "configured", "default", "result"),
    [
        (None, None, None, None, False, False),
        (None, None, None, None, True, True),
        (None, None, None, True, False, True),
        (None, None, None, False, True, False),
        ("true", None, None, False, False, True),
        ("true", None, False, True, False, False),
        ("true", False, True, True, True, False),
        (None, True, False, False, False, True),
        ("false", True, True, True, True, False),
    ],
)
def test_who_is_heard_first(
    monkeypatch: pytest.MonkeyPatch,
    outside: str | None,
    argument: bool | None,
    override: bool | None,
    configured: bool | None,
    default: bool,
    result: bool,
) -> None:
    monkeypatch.delenv("ENABLE_PROFILING", raising=False)
    if outside is not None:
        monkeypatch.setenv("ENABLE_PROFILING", outside)
    said = _switches.enabled(
        argument=argument, override=override, configured=configured, default=default
    )
    assert said is result


def test_where_files_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROFILE_OUTPUT_DIR", raising=False)
    assert _switches.output_dir(default="runs/profiling") == "runs/profiling"
    assert _switches.output_dir(configured="here", default="there") == "here"
    monkeypatch.setenv("PROFILE_OUTPUT_DIR", "outside")
    assert _switches.output_dir(configured="here", default="there") == "outside"
    assert _switches.output_dir("said", "here", default="there") == "said"
