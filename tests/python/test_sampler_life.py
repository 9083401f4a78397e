"""stepwatch.sample and what must not break it: freed code, forks, ends, closed descriptors."""

from __future__ import annotations

import sys

import pytest

from .sampler_programs import answer, patient, run


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
