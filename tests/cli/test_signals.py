"""Signals and job control under stepwatch run. Nothing here measures time; what does not come is
waited for until the test as a whole gives up."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE = 60.0


def descendants(pid: int) -> list[int]:
    """Return the children of a process and theirs, parents first."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = [int(child) for child in children]
    return found + [below for child in found for below in descendants(child)]


class Supervised:
    """A program under stepwatch run, with a terminal of its own if asked for."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path) -> None:
        self.output = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(command[0], command, env)

    def read_until(self, text: bytes) -> None:
        """Collect what the terminal shows until `text` is there."""
        self.read_until_count(text, 1)

    def read_until_count(self, text: bytes, count: int) -> None:
        while self.output.count(text) < count:
            assert self.read_some(), f"{text!r} did not come; the end was {self.output!r}"

    def wait_for_foreground(self, group: int) -> None:
        """Wait until the terminal belongs to a group that is not stopped."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            state = Path(f"/proc/{group}/stat").read_text().rpartition(")")[2].split()[0]
            if os.tcgetpgrp(self.terminal) == group and state != "T":
                return
            time.sleep(0.01)
        raise AssertionError("the job did not come to the foreground")

    def read_some(self) -> bytes:
        """Collect what is there; nothing at the end, which Linux calls EIO."""
        ready, _, _ = select.select([self.terminal], [], [], PATIENCE)
        assert ready, f"nothing more came after {self.output!r}"
        try:
            data = os.read(self.terminal, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""
        self.output += data
        return data

    def read_rest(self) -> bytes:
        """Collect everything up to the end."""
        while self.read_some():
            pass
        return self.output

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def wait(self, flags: int = 0) -> int:
        return os.waitpid(self.pid, flags)[1]

    def end(self) -> None:
        """End whatever is left of it, children first."""
        for pid in [*reversed(descendants(self.pid)), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.fixture
def waiting(
    stepwatch_cli: Path, program: Path, env: dict[str, str], tmp_path: Path
) -> Iterator[Supervised]:
    command = [str(stepwatch_cli), "run", "-o", "out", "--", str(program), "steps", "3", "wait"]
    supervised = Supervised(command, {**env, "TERM": "dumb"}, tmp_path)
    supervised.read_until(b"ready")
    yield supervised
    supervised.end()


def test_interrupt_from_the_terminal_comes_once(waiting: Supervised) -> None:
    waiting.type(b"\x03")
    waiting.read_until(b"signal 2\r\n")
    os.kill(waiting.pid, signal.SIGTERM)
    output = waiting.read_rest()
    assert output.count(b"signal 2\r\n") == 1
    assert output.count(b"signal 15\r\n") == 1
    assert os.waitstatus_to_exitcode(waiting.wait()) == 0


def test_a_second_interrupt_comes_too(waiting: Supervised) -> None:
    for count in (1, 2, 3):
        waiting.type(b"\x03")
        waiting.read_until_count(b"signal 2\r\n", count)
    os.kill(waiting.pid, signal.SIGTERM)
    assert waiting.read_rest().count(b"signal 2\r\n") == 3
    assert os.waitstatus_to_exitcode(waiting.wait()) == 0


@pytest.mark.parametrize("number", [1, 2, 3, 10, 12])
def test_signals_are_passed_on(waiting: Supervised, number: int) -> None:
    os.kill(waiting.pid, number)
    waiting.read_until(b"signal %d\r\n" % number)
    os.kill(waiting.pid, signal.SIGTERM)
    waiting.read_rest()
    assert os.waitstatus_to_exitcode(waiting.wait()) == 0


def test_stop_and_continue(waiting: Supervised) -> None:
    # A shell would give the terminal to the job's group; the session leader has it already, and an
    # orphaned group does not stop, so the stop is sent by hand to the program.
    (program,) = descendants(waiting.pid)
    os.kill(program, signal.SIGSTOP)
    assert os.WIFSTOPPED(waiting.wait(os.WUNTRACED))
    os.kill(waiting.pid, signal.SIGCONT)
    assert os.WIFCONTINUED(waiting.wait(os.WCONTINUED))
    os.kill(waiting.pid, signal.SIGUSR1)
    waiting.read_until(b"signal 10\r\n")
    os.kill(waiting.pid, signal.SIGTERM)
    waiting.read_rest()
    assert os.waitstatus_to_exitcode(waiting.wait()) == 0


def test_job_control_in_a_shell(
    stepwatch_cli: Path, program: Path, env: dict[str, str], tmp_path: Path
) -> None:
    bash = ["/bin/bash", "--norc", "--noprofile", "-i"]
    line = f"{stepwatch_cli} run -o out -- {program} steps 3 wait; echo code=$?\n"
    shell = Supervised(bash, {**env, "TERM": "dumb", "PS1": "$ "}, tmp_path)
    try:
        shell.type(b"stty -echo; echo begin$((40 + 2))\n")
        shell.read_until(b"begin42")
        shell.type(line.encode())
        shell.read_until(b"ready")
        job = os.tcgetpgrp(shell.terminal)
        shell.type(b"\x1a")
        shell.read_until(b"Stopped")
        shell.read_until(b"code=148")
        for interrupts in (1, 2):
            shell.type(b"fg\n")
            shell.wait_for_foreground(job)
            shell.type(b"\x03")
            shell.read_until_count(b"signal 2\r\n", interrupts)
            shell.type(b"\x1a")
            shell.read_until_count(b"Stopped", interrupts + 1)
        shell.type(b"kill %1\n")  # which also continues it
        shell.read_until(b"signal 15\r\n")
        shell.read_until(b"/out\r\n")
    finally:
        shell.end()


def test_terminate_without_a_terminal(
    stepwatch_cli: Path, program: Path, env: dict[str, str], tmp_path: Path
) -> None:
    command = [str(stepwatch_cli), "run", "-o", "out", "--", str(program), "wait"]
    with subprocess.Popen(
        command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.stdout.read() == b"signal 15\n"
        assert process.wait() == 0
