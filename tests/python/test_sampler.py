"""stepwatch.sample: stacks of running threads, looked at from outside."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
import stepwatch

from .sampler_programs import answer, patient

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
