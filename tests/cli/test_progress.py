"""The line of progress: in the last row of a terminal, out of the way, and gone at the end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

pyte: Any = pytest.importorskip("pyte", reason="the emulated terminal is not installed")
pytestmark = pytest.mark.usefixtures("python_env")
PATIENCE = 60.0

# Steps, with lines in between, until the file "stop" is there.
STEPS = """
import os, sys, time, stepwatch
number = 0
while not os.path.exists("stop"):
    with stepwatch.step():
        with stepwatch.section("data_wait"):
            time.sleep(0.02)
    number += 1
    if number <= 40:
        print("line", number, flush=True)
print("the end", flush=True)
"""


class Terminal:
    """A program in an emulated terminal."""

    def __init__(
        self, command: list[str], env: dict[str, str], cwd: Path, rows: int = 12, columns: int = 80
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=10000)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(cwd)
            os.execve(command[0], command, env)

    def resize(self, rows: int, columns: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_some(self, patience: float = PATIENCE) -> bytes:
        """Take in what is there; nothing at the end, which Linux calls EIO."""
        ready, _, _ = select.select([self.terminal], [], [], patience)
        if not ready:
            return b""
        try:
            data = os.read(self.terminal, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""
        self.output += data
        self.stream.feed(data)
        return data

    def read_until(self, what: Callable[[], object]) -> None:
        while not what():
            assert self.read_some(), f"it did not come; the end was {self.output[-2000:]!r}"

    def read_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read_some(left)

    def read_rest(self) -> None:
        while self.read_some():
            pass

    def wait(self) -> int:
        self.read_rest()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    @property
    def last_row(self) -> str:
        row: str = self.screen.display[-1].rstrip()
        return row

    def lines(self) -> list[str]:
        """All lines, also those that have left the screen."""
        above = [
            "".join(line[x].data for x in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return above + [line.rstrip() for line in self.screen.display]

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)  # the program goes with it
            os.waitpid(self.pid, 0)
        os.close(self.terminal)


Start = Callable[..., Terminal]


@pytest.fixture
def start(stepwatch_cli: Path, env: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    begun: list[Terminal] = []

    def run(
        text: str = STEPS, *, extra: dict[str, str | None] | None = None, **size: int
    ) -> Terminal:
        if not begun:
            (tmp_path / "train.py").write_text(text)
        out = f"out{len(begun)}"
        command = [str(stepwatch_cli), "run", "--no-report", "-o", out, "train.py"]
        settings = {**env, "TERM": "xterm-256color", **(extra or {})}
        known = {key: value for key, value in settings.items() if value is not None}
        terminal = Terminal(command, known, tmp_path, **size)
        begun.append(terminal)
        return terminal

    yield run
    for terminal in begun:
        terminal.end()


def is_drawn(terminal: Terminal) -> bool:
    return (
        re.search(r"step [1-9][\d,]* . \d.* steps/s . waiting \d+ %$", terminal.last_row)
        is not None
    )


def stop(folder: Path) -> None:
    (folder / "stop").touch()


def test_the_programs_lines_are_its_own(start: Start, tmp_path: Path) -> None:
    terminal = start()
    terminal.read_until(lambda: is_drawn(terminal) and b"line 40" in terminal.output)
    assert terminal.screen.margins == (0, 10)  # the rows that scroll
    stop(tmp_path)
    assert terminal.wait() == 0
    expected = [f"line {number}" for number in range(1, 41)] + ["the end", str(tmp_path / "out0")]
    assert [line for line in terminal.lines() if line] == expected
    assert terminal.last_row == ""
    assert terminal.screen.margins is None or terminal.screen.margins == (0, 11)


def test_an_unfinished_line_stays_whole(start: Start, tmp_path: Path) -> None:
    text = STEPS.replace('print("the end"', 'print(" to the end"').replace(
        'print("line", number, flush=True)',
        'print(f"\\r\\033[32mbar {number}", end="", flush=True)',
    )
    terminal = start(text)
    terminal.read_until(lambda: is_drawn(terminal) and b"bar 40" in terminal.output)
    stop(tmp_path)
    assert terminal.wait() == 0
    lines = [line for line in terminal.lines() if line]
    assert lines == ["bar 40 to the end", str(tmp_path / "out0")]
    # The colour that the program had set when the line was drawn is still in force.
    place = next(y for y, line in enumerate(terminal.screen.display) if line.startswith("bar"))
    assert terminal.screen.buffer[place][len("bar 40 to")].fg == "green"


def test_never_where_it_is_not_wanted(start: Start, tmp_path: Path, build_dir: Path) -> None:
    settings: list[tuple[dict[str, str | None], dict[str, int]]] = [
        ({"TERM": "dumb"}, {}),
        ({"TERM": None}, {}),
        ({"STEPWATCH_PROGRESS": "off"}, {}),
        ({"STEPWATCH_ENABLED": "0", "PYTHONPATH": str(build_dir / "python")}, {}),
        ({}, {"columns": 19}),
        ({}, {"rows": 3}),
    ]
    terminals = [start(extra=extra, **size) for extra, size in settings]
    usual = start()
    usual.read_until(lambda: is_drawn(usual))
    for terminal in terminals:
        terminal.read_until(lambda: b"line 40" in terminal.output)  # noqa: B023
        terminal.read_for(0.5)
    usual.read_for(2.0)
    stop(tmp_path)
    for terminal in terminals:
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.output
        assert b"waiting" not in terminal.output


def test_not_when_stderr_is_no_terminal(
    stepwatch_cli: Path, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(STEPS)
    line = f"{stepwatch_cli} run --no-report -o out train.py 2>errors"
    terminal = Terminal(["/bin/sh", "-c", line], {**env, "TERM": "xterm"}, tmp_path)
    try:
        terminal.read_until(lambda: b"line 40" in terminal.output)
        terminal.read_for(2.5)
        stop(tmp_path)
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.output
        assert (tmp_path / "errors").read_text() == f"{tmp_path / 'out'}\n"
    finally:
        terminal.end()


@pytest.mark.parametrize(
    ("columns", "extra", "shape"),
    [
        (20, {}, r"^step \d+  \S+/s$"),
        (30, {}, r"^step \d+  \S+/s  wait \d+%$"),
        (80, {}, r"^stepwatch  step \d+ · \S+ steps/s · waiting \d+ %$"),
        (80, {"LC_ALL": "C"}, r"^stepwatch  step \d+ \| \S+ steps/s \| waiting \d+ %$"),
        (80, {"NO_COLOR": "1"}, r"^stepwatch  step \d+ · \S+ steps/s · waiting \d+ %$"),
    ],
)
def test_widths_and_characters(
    start: Start, tmp_path: Path, columns: int, extra: dict[str, str | None], shape: str
) -> None:
    terminal = start(columns=columns, extra=extra)
    terminal.read_until(lambda: re.search(shape, terminal.last_row))
    coloured = any(cell.fg != "default" for cell in terminal.screen.buffer[11].values())
    assert coloured is ("NO_COLOR" not in extra)  # nearly all of a step is waiting
    stop(tmp_path)
    assert terminal.wait() == 0
    assert terminal.last_row == ""


def test_another_size(start: Start, tmp_path: Path) -> None:
    terminal = start()
    terminal.read_until(lambda: is_drawn(terminal))
    terminal.resize(20, 60)
    terminal.read_until(lambda: b"\x1b[1;19r" in terminal.output and is_drawn(terminal))
    assert terminal.screen.margins == (0, 18)
    terminal.resize(8, 60)
    terminal.read_until(lambda: b"\x1b[1;7r" in terminal.output and is_drawn(terminal))
    stop(tmp_path)
    assert terminal.wait() == 0
    assert terminal.last_row == ""
    assert not any("waiting" in line for line in terminal.screen.display)
    assert [line for line in terminal.lines() if line][-2:] == ["the end", str(tmp_path / "out0")]


def test_stop_and_continue(stepwatch_cli: Path, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEPS)
    bash = ["/bin/bash", "--norc", "--noprofile", "-i"]
    shell = Terminal(bash, {**env, "TERM": "xterm", "PS1": "$ "}, tmp_path)
    try:
        os.write(shell.terminal, b"bind 'set enable-bracketed-paste off'; echo begin$((40 + 2))\n")
        shell.read_until(lambda: b"begin42" in shell.output)
        line = f"{stepwatch_cli} run --no-report -o out train.py; echo code=$?\n"
        os.write(shell.terminal, line.encode())
        for times in (1, 2):
            shell.read_until(lambda: is_drawn(shell))
            before = len(shell.output)
            os.write(shell.terminal, b"\x1a")
            shell.read_until(lambda: shell.output.count(b"Stopped") == times)  # noqa: B023
            stopped = shell.output[before:]
            # The terminal is as it was before the shell says anything.
            assert b"\x1b[r" in stopped[: stopped.index(b"Stopped")]
            assert b"\x1b[1;" not in stopped
            assert shell.last_row == "" or "waiting" not in shell.last_row
            os.write(shell.terminal, b"fg\n")
        shell.read_until(lambda: is_drawn(shell))
        os.write(shell.terminal, b"\x03")
        shell.read_until(lambda: str(tmp_path / "out").encode() + b"\r\n" in shell.output)
        assert shell.output.rindex(b"\x1b[r") > shell.output.rindex(b"\x1b[1;11r")
    finally:
        for pid in subprocess.run(
            ["pgrep", "-P", str(shell.pid)], capture_output=True, text=True, check=False
        ).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        shell.end()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, 137)]
)
def test_after_a_signal(start: Start, number: signal.Signals, code: int) -> None:
    terminal = start()
    terminal.read_until(lambda: is_drawn(terminal))
    if number == signal.SIGINT:
        os.write(terminal.terminal, b"\x03")
    elif number == signal.SIGTERM:
        os.kill(terminal.pid, number)
    else:
        children = Path(f"/proc/{terminal.pid}/task/{terminal.pid}/children").read_text()
        os.kill(int(children), number)
    assert terminal.wait() == code
    assert terminal.last_row == ""
    assert terminal.output.rindex(b"\x1b[r") > terminal.output.rindex(b"\x1b[1;11r")
    assert not any("waiting" in line for line in terminal.lines())


def test_a_program_that_takes_the_screen(start: Start, tmp_path: Path) -> None:
    """While keys are read one by one, as full-screen programs do, nothing is drawn."""
    text = STEPS.replace(
        "number += 1\n",
        """number += 1
    if os.path.exists("take"):
        os.remove("take")
        import termios, tty
        mode = termios.tcgetattr(0)
        tty.setcbreak(0)
        print("taken", flush=True)
        while not os.path.exists("give"):
            with stepwatch.step():
                time.sleep(0.02)
        print("given", flush=True)
        termios.tcsetattr(0, termios.TCSANOW, mode)
""",
    )
    terminal = start(text)
    terminal.read_until(lambda: is_drawn(terminal))
    (tmp_path / "take").touch()
    terminal.read_until(lambda: b"taken" in terminal.output)
    terminal.read_for(0.5)
    before = len(terminal.output)
    terminal.read_for(2.5)
    assert terminal.output[before:] == b""
    (tmp_path / "give").touch()
    terminal.read_until(lambda: b"given" in terminal.output)
    after = len(terminal.output)
    terminal.read_until(lambda: b"waiting" in terminal.output[after:])
    stop(tmp_path)
    assert terminal.wait() == 0
    assert terminal.last_row == ""
    assert [line for line in terminal.lines() if line][-2:] == ["the end", str(tmp_path / "out0")]


def test_the_program_goes_with_a_killed_supervisor(start: Start) -> None:
    """SIGKILL is meant for the program and cannot be passed on."""
    terminal = start("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    terminal.read_until(lambda: b"\n" in terminal.output)
    program = int(terminal.output)
    os.kill(terminal.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.02)
    raise AssertionError("the program runs on")


def test_no_line_of_the_report_is_wider(
    stepwatch_cli: Path, env: dict[str, str], tmp_path: Path
) -> None:
    """Nor of what comes after it: the files, and how the run before compares."""
    (tmp_path / "train.py").write_text(STEPS.replace('not os.path.exists("stop")', "number < 60"))
    command = [str(stepwatch_cli), "run", "--name", "n" * 30, "train.py"]
    settings = {**env, "TERM": "xterm-256color", "NO_COLOR": "1", "STEPWATCH_PROGRESS": "off"}
    for run in range(2):
        terminal = Terminal(command, settings, tmp_path, columns=60)
        assert terminal.wait() == 0
        os.close(terminal.terminal)
        lines = terminal.output.decode().split("\r\n")
        report = lines[lines.index("the end") : -2]  # the last is the path of the run
        assert max(map(len, report)) <= 60, report
        assert any(line.startswith("Report: ") for line in report)
        assert any(line.startswith("Against the previous run") for line in report) == (run == 1)
