"""Programs that are sampled, in processes of their own.

A sampler that breaks the program it looks at must fail one test, not the others.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

PRELUDE = """
import json, sys, threading, time
import stepwatch

def spin(seconds):
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        count += 1
    return count

def names(stack):
    return [frame[0] for frame in stack["frames"]]

def total(stack):
    return stack["running"] + stack["waiting"]
"""


def run(
    script: str, *options: str, expect: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter, with the helpers of the prelude."""
    result = subprocess.run(
        [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(script)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (result.returncode, result.stderr) == (expect, ""), result.stderr
    return result


def answer(script: str, *options: str, **environment: str) -> Any:
    """Run a script and return the last line of its output as JSON."""
    result = run(script, *options, expect=0, **environment)
    return json.loads(result.stdout.splitlines()[-1])


def patient(test: Callable[..., None]) -> Callable[..., None]:
    """Let a test try again: on a busy machine a program may get no time while it is looked at."""

    @functools.wraps(test)
    def attempt(*args: Any, **kwargs: Any) -> None:
        for _ in range(2):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                time.sleep(0.5)
        return test(*args, **kwargs)

    return attempt
