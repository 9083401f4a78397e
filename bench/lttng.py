"""Run a program inside an LTTng-UST recording session that nobody else sees.

    python bench/lttng.py HOME EVENTS PROGRAM [ARGS…]

A session daemon of its own is started and stopped again, with everything it writes below HOME. The
daemon of the root user ignores LTTNG_HOME for its sockets, so root gets a mount namespace with an
empty /run/lttng first. Exit code 77 and one sentence on stderr: there is no LTTng here, or it
does not start.

The session is a snapshot session, LTTng's cheapest: events go to per-CPU ring buffers in shared
memory, the oldest are overwritten, and no daemon takes them out.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

UNAVAILABLE = 77
INSIDE = "BENCH_LTTNG_INSIDE"
SOCKETS = Path("/run/lttng")


class UnavailableError(Exception):
    """LTTng cannot be used here."""


def control(*words: str) -> None:
    """Run the lttng command."""
    done = subprocess.run(["lttng", "-n", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UnavailableError(f"lttng {words[0]}: {said[-1] if said else 'failed'}")


def hide_sockets() -> None:
    """Start this script again where /run/lttng is empty and private."""
    if not shutil.which("unshare"):
        raise UnavailableError("unshare is not installed, and root's LTTng needs it")
    SOCKETS.mkdir(mode=0o755, exist_ok=True)
    environment = dict(os.environ, **{INSIDE: "1"})
    mount = f'mount -t tmpfs tmpfs {SOCKETS} || exit {UNAVAILABLE}; exec "$@"'
    inner = ["sh", "-c", mount, "sh", sys.executable, *sys.argv]
    words = ["unshare", "--mount", "--propagation", "private", *inner]
    probe = subprocess.run([*words[:4], "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        raise UnavailableError("this root may not make a mount namespace")
    os.execvpe(words[0], words, environment)


def start_daemon(home: Path) -> int:
    """Start the session daemon and return its process id."""
    pid_file = home / "sessiond.pid"
    words = ["lttng-sessiond", "--no-kernel", "--background", "--pidfile", str(pid_file)]
    with (home / "sessiond.log").open("w") as log:
        done = subprocess.run(words, stdout=log, stderr=log, check=False)
    if done.returncode != 0 or not pid_file.exists():
        raise UnavailableError("lttng-sessiond does not start; see its log")
    return int(pid_file.read_text())


def stop_daemon(pid: int) -> None:
    """Stop the daemon and wait until it is gone."""
    os.kill(pid, signal.SIGTERM)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def run(home: Path, events: str, program: list[str]) -> int:
    """Run ``program`` while a session records ``events``; return its exit code."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ["LTTNG_HOME"] = str(home)
    # Wait at the program's start until the daemon knows it, however long that takes.
    os.environ["LTTNG_UST_REGISTER_TIMEOUT"] = "-1"
    pid = start_daemon(home)
    try:
        control("create", "bench", "--snapshot")
        control("enable-channel", "-u", "--overwrite", "--subbuf-size=1M", "--num-subbuf=4", "ring")
        control("enable-event", "-u", "-c", "ring", events)
        control("start")
        code = subprocess.run(program, check=False).returncode
        control("destroy", "bench")
        return code
    finally:
        stop_daemon(pid)


def main() -> int:
    """Run a program under LTTng."""
    if len(sys.argv) < 4:
        print((__doc__ or "").split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    try:
        for command in ("lttng", "lttng-sessiond"):
            if not shutil.which(command):
                raise UnavailableError(f"{command} is not installed (Debian: lttng-tools)")
        if os.geteuid() == 0 and INSIDE not in os.environ:
            hide_sockets()
        return run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
    except (UnavailableError, OSError) as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main())
