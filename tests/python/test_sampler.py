"""stepwatch.sample: stacks of running threads, looked at from outside.

Scripts run in processes of their own: a sampler that breaks the program it looks at must fail one
test, not the others.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stepwatch

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


# --- What is seen --------------------------------------------------------------------


@patient
def test_two_chains_do_not_mix() -> None:
    """A calls B calls C, A calls D calls E, in turn: nothing else may be seen (< 0.5 %)."""
    seen = answer(
        """
        def c(n):
            total = 0
            for i in range(n):
                total += i * i
            return total

        def e(n):
            total = 0
            for i in range(n):
                total -= i * i
            return total

        def b(n):
            return c(n)

        def d(n):
            return e(n)

        def a():
            calls = 0
            end = time.perf_counter() + 20
            while time.perf_counter() < end and s.stats()["kept"] < 2200:
                for _ in range(1000):
                    b(20)
                    d(20)
                calls += 2000
            return calls

        with stepwatch.sample(hz=1000) as s:
            calls = a()
        chain = {"a": [], "b": ["a"], "d": ["a"], "c": ["a", "b"], "e": ["a", "d"]}
        kept = wrong = alone = 0
        for stack in s.stacks():
            path = names(stack)
            if path == ["<module>"]:
                continue
            kept += total(stack)
            if len(path) == 1:  # the leaf only: it says nothing of its callers
                alone += total(stack)
                continue
            if path[0] != "<module>" or path[1:-1] != chain.get(path[-1]):
                wrong += total(stack)
        assert alone <= s.stats()["leaf_only"]
        print(json.dumps({"kept": kept, "wrong": wrong, "calls": calls, **s.stats()}))
        """
    )
    in_part = seen["leaf_only"] + seen["outer_only"]
    print(
        f"{seen['kept']} samples, {seen['calls']} calls: {seen['wrong']} impossible, "
        f"{in_part} in part, {seen['given_up']} given up, {seen['retries']} retries"
    )
    assert seen["kept"] >= 2000
    assert seen["wrong"] < 0.005 * seen["kept"]
    assert seen["given_up"] < 0.1 * seen["looks"]


@patient
def test_lines_and_files() -> None:
    seen = answer(
        """
        def work():
            end = time.perf_counter() + 0.4
            while time.perf_counter() < end:
                x = sum(range(20000))     # line marked

        with stepwatch.sample(hz=500) as s:
            work()
        best = max((t for t in s.stacks() if names(t)[-1] == "work"), key=total)
        print(json.dumps({"frame": best["frames"][-1], "first": work.__code__.co_firstlineno,
                          "file": work.__code__.co_filename, "in_call": best["in_call"],
                          "total": total(best)}))
        """
    )
    name, file, line = seen["frame"]
    assert (name, file) == ("work", seen["file"])
    assert line == seen["first"] + 3
    assert seen["in_call"] > 0.9 * seen["total"], "sum() is a C function"


def test_lines_of_every_instruction_agree_with_python() -> None:
    """A frame that waits is seen on the line that Python itself reports, wherever it waits."""
    seen = answer(
        """
        source = ["def f(wait):"]
        for i in range(300):
            source.append("    if wait.here(): wait.now()" if i % 3 == 0 else "")
        source.append("    return [wait.now()")
        source.append("            for _ in range(2)]")
        scope = {}
        exec(compile("\\n".join(source), "made.py", "exec"), scope)

        class Wait:
            expected = []
            calls = 0

            def here(self):
                self.calls += 1
                return self.calls % 20 == 0

            def now(self):
                frame = sys._getframe(1)
                while frame.f_code.co_name != "f":
                    frame = frame.f_back
                self.expected.append(frame.f_lineno)
                time.sleep(0.02)

        wait = Wait()
        with stepwatch.sample(hz=1000) as s:
            scope["f"](wait)
        lines = {f[2] for t in s.stacks() for f in t["frames"]
                 if f[0] == "f" and names(t)[-1] == "Wait.now" or
                 f[0] == "f" and names(t)[-1] == "now"}
        print(json.dumps({"missing": sorted(set(wait.expected) - lines),
                          "extra": sorted(lines - set(wait.expected)),
                          "count": len(set(wait.expected))}))
        """
    )
    assert seen["count"] >= 6
    assert (seen["missing"], seen["extra"]) == ([], [])


@patient
def test_waiting_and_running_are_told_apart() -> None:
    seen = answer(
        """
        def sleeper():
            time.sleep(0.5)

        with stepwatch.sample(hz=200) as s:
            t = threading.Thread(target=sleeper, name="sleeper")
            t.start()
            spin(0.5)
            t.join()
            time.sleep(0.1)
        out = {"sleep": [0, 0], "spin": [0, 0]}
        out["threads"] = sorted({t["thread"] for t in s.stacks()})
        for stack in s.stacks():
            for key in ("sleep", "spin"):
                if key in " ".join(names(stack)):
                    out[key][0] += stack["running"]
                    out[key][1] += stack["waiting"]
        print(json.dumps(out))
        """
    )
    running, waiting = seen["sleep"]
    assert waiting > 10
    assert running < 0.2 * waiting
    running, waiting = seen["spin"]
    assert running > 10
    assert waiting < 0.5 * running
    assert "MainThread" in seen["threads"]


@patient
def test_generators_and_coroutines() -> None:
    seen = answer(
        """
        import asyncio

        def inner():
            while True:
                spin(0.002)
                yield 1

        def outer():
            yield from inner()

        async def leaf():
            spin(0.002)

        async def middle():
            for _ in range(100):
                await leaf()

        with stepwatch.sample(hz=1000) as s:
            numbers = outer()
            for _ in range(100):
                next(numbers)
            asyncio.run(middle())
        paths = {" ".join(names(t)) for t in s.stacks()}
        print(json.dumps(sorted(paths)))
        """
    )
    assert any(path.endswith("outer inner spin") for path in seen)
    assert any(path.endswith("middle leaf spin") for path in seen)
    assert not any("inner outer" in path or "leaf middle" in path for path in seen)


@patient
def test_qualified_names() -> None:
    seen = answer(
        """
        class Model:
            def forward(self):
                def inside():
                    spin(0.3)
                inside()

        with stepwatch.sample(hz=500) as s:
            Model().forward()
        print(json.dumps(sorted({n for t in s.stacks() for n in names(t)})))
        """
    )
    expected = "Model.forward.<locals>.inside" if sys.version_info >= (3, 11) else "inside"
    assert expected in seen


@patient
def test_names_that_are_not_ascii() -> None:
    seen = answer(
        """
        scope = {"spin": spin}
        text = "def größe():\\n spin(.1)\\ndef 变():\\n spin(.1)"
        exec(compile(text, "dätei-变-😀.py", "exec"), scope)
        with stepwatch.sample(hz=500) as s:
            scope["größe"]()
            scope["变"]()
        print(json.dumps(sorted({f[0] + "|" + f[1] for t in s.stacks() for f in t["frames"]})))
        """
    )
    assert {"größe|dätei-变-😀.py", "变|dätei-变-😀.py"} <= set(seen)


# --- What must not break it ----------------------------------------------------------


@pytest.mark.parametrize("depth", [900, 100_000])
@patient
def test_deep_recursion(depth: int) -> None:
    if depth > 20_000 and sys.version_info < (3, 12):
        depth = 20_000
    seen = answer(
        f"""
        sys.setrecursionlimit({depth} + 1000)
        if sys.version_info < (3, 11):
            threading.stack_size(512 * 1024 * 1024)

        def down(n):
            if n == 0:
                spin(0.3)
            else:
                down(n - 1)

        def deep():
            down({depth})

        with stepwatch.sample(hz=500) as s:
            t = threading.Thread(target=deep)
            spin(0.01)
            t.start()
            t.join()
        deep = [t for t in s.stacks() if names(t)[-1] == "spin" and "down" in names(t)]
        longest = max(deep, key=lambda t: len(t["frames"]))
        print(json.dumps({{"names": sorted(set(names(longest))), "depth": len(longest["frames"]),
                          "samples": sum(map(total, deep)), "leaf": names(longest)[-2]}}))
        """
    )
    assert seen["samples"] > 5
    assert seen["leaf"] == "down"
    assert "(frames left out)" in seen["names"]
    assert 100 < seen["depth"] < 600


@patient
def test_threads_come_and_go() -> None:
    seen = answer(
        """
        def short():
            spin(0.002)

        with stepwatch.sample(hz=1000) as s:
            for _ in range(40):
                threads = [threading.Thread(target=short) for _ in range(10)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
        found = sum(total(t) for t in s.stacks() if "short" in names(t))
        print(json.dumps({"found": found, **s.stats()}))
        """
    )
    assert seen["found"] > 20
    assert seen["given_up"] < 0.1 * seen["looks"]
    assert seen["threads_left_out"] <= seen["rounds"]


def test_code_that_is_freed() -> None:
    """Functions made and freed, each in the place of the one before: none is taken for another."""
    seen = answer(
        """
        def use(scope, i):
            end = time.perf_counter() + 0.004
            scope[f"made_{i:04}"](end)

        with stepwatch.sample(hz=1000) as s:
            for i in range(200):
                scope = {"time": time}
                text = f"def made_{i:04}(end):\\n while time.perf_counter() < end: pass"
                exec(compile(text, f"file_{i:04}", "exec"), scope)
                use(scope, i)
                del scope
        wrong = [f for t in s.stacks() for f in t["frames"]
                 if f[0].startswith("made_") and f[1] != "file_" + f[0][-4:]]
        made = {n for t in s.stacks() for n in names(t) if n.startswith("made_")}
        most = max(total(t) for t in s.stacks() if names(t)[-1].startswith("made_"))
        print(json.dumps({"wrong": wrong, "made": len(made), "most": most, **s.stats()}))
        """
    )
    assert seen["wrong"] == []
    assert seen["made"] > 50, "the place of one freed function was taken for many"


@pytest.mark.parametrize("address", [2**64 - 1, 2**64 - 8, 8, 2**47])
def test_frames_that_point_nowhere(address: int) -> None:
    """Memory that is read while it is freed holds anything: here, a caller that is none."""
    seen = answer(
        f"""
        import ctypes, sys

        frame = sys._getframe()
        where = id(frame) + 24
        if sys.version_info >= (3, 11):
            where = ctypes.c_uint64.from_address(where).value
            where += 48 if sys.version_info < (3, 12) else 8
        caller = ctypes.c_uint64.from_address(where)
        with stepwatch.sample(hz=1000) as s:
            time.sleep(0.05)
            kept, caller.value = caller.value, {address}
            time.sleep(0.2)
            caller.value = kept
        print(json.dumps(s.stats()))
        """
    )
    assert seen["looks"] > 0


@patient
def test_tight_calls() -> None:
    """Calls that are shorter than a look: outer frames are kept, nothing is invented."""
    seen = answer(
        """
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        def main():
            end = time.perf_counter() + 1
            while time.perf_counter() < end:
                fib(15)

        with stepwatch.sample(hz=1000) as s:
            main()
        paths = {tuple(names(t)) for t in s.stacks()}
        whole = {p for p in paths if len(p) > 1 or p == ("<module>",)}
        odd = [p for p in whole
               if p[:2] not in (("<module>",), ("<module>", "main")) or set(p[2:]) - {"fib"}]
        alone = sum(total(t) for t in s.stacks() if tuple(names(t)) not in whole)
        assert alone <= s.stats()["leaf_only"]
        print(json.dumps({"odd": odd, "deepest": max(map(len, paths)), **s.stats()}))
        """
    )
    assert seen["odd"] == []
    assert 4 <= seen["deepest"] <= 17
    assert seen["kept"] > 100


@pytest.mark.parametrize("reader", ["mem", "gil"])
@patient
def test_fallbacks(reader: str) -> None:
    seen = answer(
        """
        with stepwatch.sample(hz=500) as s:
            spin(0.5)
        found = sum(total(t) for t in s.stacks() if names(t) == ["<module>", "spin"])
        print(json.dumps({"found": found, "notes": s.notes, **s.stats()}))
        """,
        _STEPWATCH_SAMPLER_READER=reader,
    )
    assert seen["reader"] == {"mem": "/proc/self/mem", "gil": "gil"}[reader]
    assert len(seen["notes"]) == 1
    assert seen["found"] > 20


FORK = """
import os

def busy():
    spin(0.15)

before = len(os.listdir("/proc/self/task"))
with stepwatch.sample(hz=500) as s:
    results = []
    for _ in range(4):
        spin(0.02)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            busy()
            found = sum(total(t) for t in s.stacks() if "busy" in names(t))
            other = sum(total(t) for t in s.stacks() if "parent_only" in names(t))
            os.write(write, json.dumps([found, other]).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            results.append(json.loads(pipe.read()))
        assert os.waitpid(pid, 0)[1] == 0

    def parent_only():
        spin(0.2)

    parent_only()
mine = sum(total(t) for t in s.stacks() if "parent_only" in names(t))
child = sum(total(t) for t in s.stacks() if "busy" in names(t))
print(json.dumps({"children": results, "mine": mine, "child": child,
                  "after": len(os.listdir("/proc/self/task")) - before}))
"""


@pytest.mark.parametrize("reader", ["vm", "gil"])
@patient
def test_fork(reader: str) -> None:
    seen = answer(FORK, "-W", "error", _STEPWATCH_SAMPLER_READER=reader)
    assert all(found > 5 for found, _ in seen["children"]), "children are sampled"
    assert all(other == 0 for _, other in seen["children"])
    assert seen["mine"] > 5, "the parent's sampler came back"
    assert seen["child"] == 0
    assert seen["after"] == 0, "no thread is left"


@patient
def test_multiprocessing() -> None:
    seen = answer(
        """
        import multiprocessing

        def work(seconds):
            spin(seconds)
            return stepwatch._core.sampler_stats()["kept"]

        assert stepwatch._core.sampler_start(500) is None
        with multiprocessing.get_context("fork").Pool(2) as pool:
            kept = pool.map(work, [0.2, 0.2])
        stepwatch._core.sampler_stop()
        print(json.dumps(kept))
        """,
        *(["-W", "error"] if sys.version_info < (3, 12) else []),
    )
    assert min(seen) > 5


@pytest.mark.parametrize(
    "end",
    ["pass", "sys.exit(0)", "os._exit(0)", "os.execv(sys.executable, [sys.executable, '-c', ''])"],
)
def test_ends(end: str) -> None:
    """The interpreter ends while the sampler looks, with threads that run on."""
    script = f"""
    import os, random
    assert stepwatch._core.sampler_start(1000) is None
    for _ in range(3):
        threading.Thread(target=spin, args=(100,), daemon=True).start()
    time.sleep(random.random() * 0.02)
    {end}
    """
    for _ in range(8):
        run(script)


def test_keyboard_interrupt() -> None:
    script = """
    import os, signal
    def stop():
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=stop).start()
    try:
        with stepwatch.sample(hz=1000) as s:
            spin(10)
    except KeyboardInterrupt:
        print(json.dumps(s.stats()["kept"]))
    """
    assert answer(script) > 5


def test_program_that_closes_all_descriptors() -> None:
    seen = answer(
        """
        import os
        with stepwatch.sample(hz=500) as s:
            spin(0.1)
            os.closerange(3, 256)
            files = [open("/dev/null") for _ in range(20)]
            spin(0.1)
        for file in files:
            file.close()
        print(json.dumps(s.stats()["kept"]))
        """
    )
    assert seen > 20


# --- The object ----------------------------------------------------------------------


@patient
def test_view_of_a_running_sampler() -> None:
    seen = answer(
        """
        def early():
            spin(0.2)

        def late():
            spin(0.2)

        with stepwatch.sample(hz=500) as outer:
            early()
            with stepwatch.sample(hz=100) as inner:
                late()
            kept = inner.stats()["kept"]
            early()
        assert inner.stats()["kept"] == kept
        print(json.dumps({
            "inner": sorted({n for t in inner.stacks() for n in names(t)}),
            "outer": sorted({n for t in outer.stacks() for n in names(t)}),
            "notes": [outer.notes, inner.notes],
            "counts": [sum(map(total, v.stacks())) for v in (outer, inner)],
            "kept": [v.stats()["kept"] for v in (outer, inner)],
        }))
        """
    )
    assert "early" not in seen["inner"]
    assert "late" in seen["inner"]
    assert {"early", "late"} <= set(seen["outer"])
    assert seen["notes"][0] == []
    assert "runs already, at 500 Hz" in seen["notes"][1][0]
    assert seen["counts"] == seen["kept"]


def test_counts_add_up() -> None:
    with stepwatch.sample(hz=1000) as s:
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            pass
    stats = s.stats()
    assert stats["looks"] == stats["kept"] + stats["given_up"] + stats["empty"]
    assert sum(t["running"] + t["waiting"] for t in s.stacks()) == stats["kept"]
    assert stats["period_s"] == 0.001
    assert stats["cpu_s"] > 0
    assert stats["duration_s"] >= 0.2
    assert repr(s) == "stepwatch.sample(hz=1000)"
    counts = [t["running"] + t["waiting"] for t in s.stacks()]
    assert counts == sorted(counts, reverse=True)


def test_collapsed_and_speedscope(tmp_path: Path) -> None:
    def work() -> None:
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            pass

    with stepwatch.sample(hz=500) as s:
        work()
    lines = s.collapsed(waiting=True).splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == s.stats()["kept"]
    assert any("work (" in line.split(";")[-1] for line in lines)
    s.save(tmp_path / "a.collapsed", waiting=True, threads=True)
    saved = (tmp_path / "a.collapsed").read_text().splitlines()
    assert any("MainThread" in line.split(";")[0] for line in saved)
    assert sum(int(line.rpartition(" ")[2]) for line in saved) == s.stats()["kept"]
    s.save(tmp_path / "a.speedscope.json", lines=True)
    document = json.loads((tmp_path / "a.speedscope.json").read_text())
    assert document["profiles"][0]["type"] == "sampled"
    assert any("work" in frame["name"] for frame in document["shared"]["frames"])
    weights = sum(sum(profile["weights"]) for profile in document["profiles"])
    running = sum(stack["running"] for stack in s.stacks())
    assert weights == pytest.approx(running * s.stats()["period_s"])
    with pytest.raises(ValueError, match="file name ends otherwise"):
        s.save(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError):
        s.save(tmp_path / "none" / "a.collapsed")


@pytest.mark.parametrize("hz", [0, -1, 1001, float("nan"), float("inf")])
def test_wrong_rates(hz: float) -> None:
    with pytest.raises(ValueError, match="hz must be from 1 to 1000"):
        stepwatch.sample(hz=hz)
    with pytest.raises(ValueError, match="hz must be from 1 to 1000"):
        stepwatch._core.sampler_start(hz)


def test_serves_one_block() -> None:
    s = stepwatch.sample()
    assert s.stacks() == []
    with s:
        pass
    with pytest.raises(RuntimeError, match="one with statement"), s:
        pass


def test_subinterpreters() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("interpreters share the module's state before 3.12")
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    seen = answer(
        f"""
        import {module} as interpreters
        with stepwatch.sample(hz=500) as s:
            other = interpreters.create()
            interpreters.run_string(other, '''
        import stepwatch
        with stepwatch.sample() as s:
            pass
        assert s.stacks() == []
        assert s.notes == ["no samples: the sampler looks at another interpreter of this process"]
        ''')
            interpreters.destroy(other)
            spin(0.1)
        print(json.dumps(s.stats()["kept"]))
        """
    )
    assert seen > 5


# --- The trace -----------------------------------------------------------------------


class Row(ctypes.Structure):
    _fields_ = (
        ("table", ctypes.c_uint16),
        ("flags", ctypes.c_uint16),
        ("index", ctypes.c_uint32),
        ("key", ctypes.c_uint32 * 4),
        ("value", ctypes.c_uint64 * 5),
    )


class Name(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("length", ctypes.c_uint32))


class Sample(ctypes.Structure):
    """sw_record_sample."""

    _fields_ = (
        ("kind", ctypes.c_uint8),
        ("units", ctypes.c_uint8),
        ("flags", ctypes.c_uint16),
        ("id", ctypes.c_uint32),
        ("ticks", ctypes.c_uint64),
        ("thread", ctypes.c_uint32),
        ("node", ctypes.c_uint32),
        ("phase", ctypes.c_uint8),
        ("state", ctypes.c_uint8),
        ("in_call", ctypes.c_uint8),
        ("leaf_only", ctypes.c_uint8),
        ("depth", ctypes.c_uint16),
        ("domain", ctypes.c_uint16),
    )


class Event(ctypes.Structure):
    _fields_ = (
        ("record", ctypes.POINTER(Sample)),
        ("begin_ns", ctypes.c_uint64),
        ("end_ns", ctypes.c_uint64),
        ("trace", ctypes.c_uint32),
        ("thread", ctypes.c_uint32),
    )


class Filter(ctypes.Structure):
    _fields_ = (
        ("kinds", ctypes.c_uint32),
        ("steps", ctypes.c_bool),
        ("one_thread", ctypes.c_bool),
        ("thread", ctypes.c_uint32),
        ("from_ns", ctypes.c_uint64),
        ("to_ns", ctypes.c_uint64),
    )


CODE, CONTEXT, STACK, SAMPLER = 0, 4, 5, 6


class Trace:
    """A trace file, read with the library."""

    def __init__(self, build: Path, path: Path) -> None:
        self.lib = ctypes.CDLL(str(build / "src" / "libstepwatch.so"))
        self.lib.sw_trace_get_row.restype = ctypes.POINTER(Row)
        self.lib.sw_trace_row_count.restype = ctypes.c_size_t
        self.lib.sw_trace_get_name.restype = ctypes.POINTER(Name)
        self.handle = ctypes.c_void_p()
        assert self.lib.sw_trace_open(ctypes.byref(self.handle), bytes(path), None) == 0

    def rows(self, table: int) -> list[Row]:
        """Return the rows of a table."""
        count = self.lib.sw_trace_row_count(self.handle, table)
        found = []
        for i in range(count):
            row = self.lib.sw_trace_get_row(self.handle, table, ctypes.c_size_t(i))
            assert row, "rows are all there"
            found.append(row.contents)
        return found

    def name(self, number: int) -> str:
        """Return a name of the trace."""
        found = self.lib.sw_trace_get_name(self.handle, number)
        text: bytes = found.contents.text if found else b""
        return text.decode()

    def samples(self) -> list[tuple[Sample, list[tuple[int, int]]]]:
        """Return the SAMPLE records with their frames."""
        cursor = ctypes.c_void_p()
        wanted = Filter(kinds=1 << 7)
        handles = (ctypes.c_void_p * 1)(self.handle)
        opened = self.lib.sw_cursor_open(
            ctypes.byref(cursor), handles, ctypes.c_size_t(1), ctypes.byref(wanted), None
        )
        assert opened == 0
        event = Event()
        found = []
        while self.lib.sw_cursor_next(cursor, ctypes.byref(event)) == 0:
            at = ctypes.addressof(event.record.contents)
            sample = Sample.from_buffer_copy(ctypes.string_at(at, 32))
            frames = (ctypes.c_uint32 * (2 * sample.depth)).from_address(at + 32)
            pairs = [(frames[2 * i], frames[2 * i + 1]) for i in range(sample.depth)]
            found.append((sample, pairs))
        self.lib.sw_cursor_free(cursor)
        return found


def test_samples_in_the_trace(build_dir: Path, tmp_path: Path) -> None:
    """Rows and records say the same as the object; sections, phases and steps are told."""
    stats = answer(
        f"""
        def layer():
            spin(0.1)

        with stepwatch.sample(hz=500) as s:
            spin(0.1)
            stepwatch.start(out={str(tmp_path / "run")!r}, policy="stream")
            for _ in range(3):
                stepwatch.step_begin()
                with stepwatch.section("forward"):
                    layer()
                with stepwatch.section("checkup"):
                    spin(0.05)
                stepwatch.step_end()
            with stepwatch.section("validate"):
                spin(0.1)
            seen = {{}}
            for t in s.stacks():
                if "spin" in names(t):
                    tag = (str(t["section"]), str(t["phase"]))
                    seen[tag] = seen.get(tag, 0) + t["running"] + t["waiting"]
            # Stack and section are read one after the other: a thread that was held up between
            # two sections may show one stray sample.
            tags = sorted(tag for tag, count in seen.items() if count > 2)
            stepwatch._core.stop()
        print(json.dumps({{"tags": tags, **s.stats()}}))
        """
    )
    assert stats["tags"][:3] == [["None", "None"], ["checkup", "other"], ["forward", "forward"]]
    assert stats["tags"][3][0] == "validate"
    (file,) = (tmp_path / "run").glob("*.stepwatch")
    trace = Trace(build_dir, file)
    code, contexts, stacks = trace.rows(CODE), trace.rows(CONTEXT), trace.rows(STACK)
    (sampler,) = trace.rows(SAMPLER)
    by_section: dict[str, int] = {}
    for row in contexts:
        section = trace.name(row.key[1])
        by_section[section] = by_section.get(section, 0) + row.value[0] + row.value[1]
    assert by_section["forward"] > by_section["checkup"] > 0
    assert sum(row.value[0] + row.value[1] for row in stacks) == sum(by_section.values())
    assert sampler.key[0] == 500
    looks, kept, _, given_up, cpu = sampler.value
    assert looks == kept + given_up
    assert sum(by_section.values()) <= kept < stats["kept"], "samples before the start are not here"
    assert cpu > 0

    def path(row: Row) -> list[str]:
        own = trace.name(code[row.key[1]].key[1])
        if row.flags & 1:
            assert row.key[0] < len(contexts)
            return [own]
        assert row.key[0] < row.index, "parents come first"
        return [*path(stacks[row.key[0]]), own]

    paths = {tuple(path(row)) for row in stacks if row.value[0] + row.value[1]}
    assert ("<module>", "layer", "spin") in paths
    samples = trace.samples()
    assert len(samples) == sum(by_section.values())
    phases = {sample.phase for sample, _ in samples}
    assert 6 in phases, "forward"
    assert {sample.state for sample, _ in samples} & {ord("R"), ord("S")}
    leaves = {trace.name(code[frames[0][0]].key[3]) for _, frames in samples}
    assert "spin" in leaves
    outermost = {trace.name(code[frames[-1][0]].key[3]) for _, frames in samples}
    assert "<module>" in outermost


def test_killed_program_keeps_its_samples(build_dir: Path, tmp_path: Path) -> None:
    run(
        f"""
        import os, signal
        stepwatch.start(out={str(tmp_path / "run")!r})
        stepwatch._core.sampler_start(500)
        with stepwatch.section("forward"):
            spin(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        expect=-9,
    )
    (file,) = (tmp_path / "run").glob("*.stepwatch")
    trace = Trace(build_dir, file)
    assert sum(row.value[0] + row.value[1] for row in trace.rows(STACK)) > 10


def test_children_record_their_samples(build_dir: Path, tmp_path: Path) -> None:
    run(
        f"""
        import os
        stepwatch.start(out={str(tmp_path / "run")!r})
        stepwatch._core.sampler_start(500)

        def child_work():
            spin(0.2)

        with stepwatch.section("forward"):
            spin(0.1)
        if os.fork() == 0:
            with stepwatch.section("work"):
                child_work()
            stepwatch.stop()
            os._exit(0)
        assert os.wait()[1] == 0
        spin(0.1)
        """,
        "-W",
        "error",
    )
    files = sorted((tmp_path / "run").glob("*.stepwatch"))
    assert len(files) == 2
    found = []
    for file in files:
        trace = Trace(build_dir, file)
        found.append({trace.name(row.key[1]) for row in trace.rows(CODE)})
        assert len(trace.rows(SAMPLER)) == 1
    assert sorted("child_work" in names for names in found) == [False, True]
