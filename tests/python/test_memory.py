"""Allocations: counters, peaks and sites of programs that allocate known amounts; stress."""

from __future__ import annotations

import gc
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import stepwatch

MB = 1_000_000
HERE = Path(__file__).name


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Let what other tests have left go before anything is counted."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def near(value: float, truth: float, share: float = 0.05) -> bool:
    return abs(value - truth) <= share * abs(truth)


def child(script: str, *, env: dict[str, str] | None = None, args: tuple[str, ...] = ()) -> str:
    """Run a script in a Python of its own, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *args, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_peak_and_totals() -> None:
    with stepwatch.memory() as mem:
        kept = bytearray(10 * MB)
        for _ in range(5):
            bytearray(30 * MB)
    assert near(mem.peak, 40 * MB)
    assert near(mem.in_use, 10 * MB)
    assert near(mem.allocated, 160 * MB)
    assert near(mem.freed, 150 * MB)
    assert len(kept) == 10 * MB
    assert not mem.running


@pytest.mark.usefixtures("plain_memory")
def test_small_objects() -> None:
    """Python's own allocator gives these out; malloc does not see them."""
    with stepwatch.memory(sample_kb=0) as mem:
        kept = [bytes(87) for _ in range(50_000)]  # 120 bytes each with the head: 128
    objects = mem.parts["python_obj"]
    assert objects["allocated"] - objects["freed"] >= 50_000 * 128
    assert near(mem.in_use, 50_000 * 128 + sys.getsizeof(kept), 0.03)
    with stepwatch.memory(sample_kb=0) as mem:
        del kept
    assert near(-mem.in_use, 50_000 * 128, 0.1)
    assert mem.blocks_freed >= 50_000


def test_parts_add_up() -> None:
    with stepwatch.memory() as mem:
        kept = [bytearray(100_000) for _ in range(100)]
    assert sum(part["allocated"] for part in mem.parts.values()) == mem.allocated
    assert sum(part["blocks_freed"] for part in mem.parts.values()) == mem.blocks_freed
    assert set(mem.parts) == {"python_obj", "python_mem", "python_raw", "native", "mmap"}
    assert kept


def test_mmap() -> None:
    import mmap

    with stepwatch.memory() as mem:
        first = mmap.mmap(-1, 8 * MB)
        second = mmap.mmap(-1, 4 * MB)
        first.close()
    assert near(mem.parts["mmap"]["allocated"], 12 * MB)
    assert near(mem.parts["mmap"]["freed"], 8 * MB)
    assert near(mem.peak, 12 * MB)
    second.close()


def test_numpy_is_native_or_raw() -> None:
    numpy = pytest.importorskip("numpy")
    with stepwatch.memory() as mem:
        kept = numpy.ones(4 * MB)
    assert near(mem.in_use, 32 * MB)
    del kept


def test_sites_within_five_percent() -> None:
    def leak() -> list[bytearray]:
        return [bytearray(2 * MB) for _ in range(50)]

    def churn() -> None:
        for _ in range(25):
            bytearray(2 * MB)

    with stepwatch.memory(sample_kb=64) as mem:  # so that chance leaves out none of them
        kept = leak()
        churn()
    live = mem.top(1, by="live")[0]
    assert Path(live["file"]).name == HERE
    assert "leak" in live["function"] or live["function"] == "<listcomp>"  # before 3.11
    assert near(live["live"], 100 * MB)
    sites = {row["function"].rpartition(".")[2]: row for row in mem.top(10)}
    assert near(sites["churn"]["allocated"], 50 * MB)
    assert sites["churn"]["live"] == 0
    assert len(kept) == 50


def test_peak_view() -> None:
    def spike() -> int:
        return len(bytearray(60 * MB))

    with stepwatch.memory(sample_kb=64) as mem:
        first = bytearray(20 * MB)
        spike()
        second = bytearray(5 * MB)
    peak = {row["line"]: row["peak"] for row in mem.top(10, by="peak")}
    assert near(sum(peak.values()), 80 * MB)
    assert "spike" in mem.snapshot().collapsed()
    assert "spike" not in mem.snapshot().collapsed(by="live")
    assert first
    assert second


def test_snapshots_and_differences() -> None:
    with stepwatch.memory(sample_kb=64) as mem:
        kept = bytearray(5 * MB)
        before = mem.snapshot()
        more = [bytearray(1 * MB) for _ in range(10)]
        del kept
        after = mem.snapshot()
    between = after - before
    assert near(between.allocated, 10 * MB)
    assert near(between.freed, 5 * MB)
    assert near(between.in_use, 5 * MB)
    taken, given = between.top(2, by="live")
    assert near(taken["live"], 10 * MB)
    assert near(given["live"], -5 * MB)
    assert [row["line"] for row in between.top(9)] == [taken["line"]]
    assert all(row["live"] > 0 for row in after.top(9, by="live"))
    with pytest.raises(TypeError):
        _ = after - 1  # type: ignore[operator]
    assert more


@pytest.mark.usefixtures("plain_memory", "no_recording")
def test_an_estimate_is_no_more_than_all(tmp_path: Path, stepwatch_cli: Path) -> None:
    """One small block in use stands for half a megabyte where it was sampled."""
    stepwatch.start(out=tmp_path / "run", quiet=True, memory=True, memory_sample_kb=4096)
    for _ in range(20_000):
        bytearray(4000)
    stepwatch.stop()
    words = [str(stepwatch_cli), "report", str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    text = " ".join(done.stdout.split())
    found = re.search(r"allocations (\S+ \S+) at most, (\S+ \S+) of it in test_memory", text)
    assert found is not None, text
    assert found[1] == found[2]


@pytest.mark.usefixtures("plain_memory", "no_recording")
def test_parts_of_sections(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True, memory=True)
    with stepwatch.section("outer"):
        with stepwatch.section("objects"):
            kept = [[number] for number in range(1000)]
        with stepwatch.section("mapped"):
            mmap.mmap(-1, 8 << 20).close()
    run = stepwatch.stop()
    assert run is not None
    rows = run.report().to_dict()["memory"]["allocations"]["sections"]
    parts = {"/".join(row["path"]): row["parts"] for row in rows}
    for row in rows:
        for key in ("allocated_bytes", "blocks", "freed_bytes", "blocks_freed"):
            assert sum(part[key] for part in row["parts"].values()) == row[key]
    assert 1000 <= parts["outer/objects"]["python_obj"]["blocks"] < 2100
    assert parts["outer/objects"]["mmap"]["blocks"] == 0
    mapped = parts["outer/mapped"]["mmap"]
    assert mapped == {
        "allocated_bytes": 8 << 20,
        "blocks": 1,
        "freed_bytes": 8 << 20,
        "blocks_freed": 1,
    }
    assert parts["outer"]["mmap"] == mapped
    assert len(kept) == 1000


@pytest.mark.usefixtures("plain_memory", "no_recording")
def test_a_place_that_was_given_back_meanwhile(tmp_path: Path) -> None:
    """It counts once when it is mapped and given back again, though nobody saw it go at first."""
    stepwatch.start(out=tmp_path / "before", quiet=True, memory=True)
    block = mmap.mmap(-1, 8 << 20)
    stepwatch.stop()
    block.close()
    stepwatch.start(out=tmp_path / "run", quiet=True, memory=True)
    with stepwatch.section("mapped"):
        mmap.mmap(-1, 8 << 20).close()
    rows = stepwatch.stop().report().to_dict()["memory"]["allocations"]["sections"]
    (row,) = [row for row in rows if row["path"] == ["mapped"]]
    assert row["parts"]["mmap"]["freed_bytes"] == 8 << 20


@pytest.mark.usefixtures("plain_memory", "no_recording")
def test_growth_from_few_samples_is_known_badly(tmp_path: Path) -> None:
    """Its interval is no narrower than what the number of samples allows."""
    stepwatch.start(out=tmp_path / "run", quiet=True, memory=True)
    kept = []
    for _ in stepwatch.steps(range(150)):
        kept.append(b"x" * 200_000)
        time.sleep(0.006)
    run = stepwatch.stop()
    assert run is not None
    sites = run.report().to_dict()["memory"]["allocations"]["sites"]
    site = max(sites, key=lambda row: row["live_bytes"] if Path(row["file"]).name == HERE else 0)
    growth = site["growth"]
    assert growth["low"] < growth["bytes_per_step"] < growth["high"]
    chance = site["samples"] / site["blocks"]
    error = 1.96 * ((1 - chance) / site["samples"]) ** 0.5
    assert 0.2 < chance < 0.5
    assert growth["high"] - growth["low"] > 2 * error * growth["bytes_per_step"]
    findings = run.report().to_dict()["findings"]
    told = [f["evidence"] for f in findings if f["kind"] == "memory_growth" and growth["grows"]]
    for evidence in told:  # Chance may leave too little for it to be significant.
        assert evidence["site_mb_per_step_low"] == pytest.approx(growth["low"] / 1e6)
        assert evidence["site_mb_per_step_high"] == pytest.approx(growth["high"] / 1e6)
    assert len(kept) == 150


@pytest.mark.usefixtures("plain_memory")
def test_growth_of_a_short_run(tmp_path: Path) -> None:
    """A hundred milliseconds of short steps are enough to see what grows."""
    told = child(
        f"""
import stepwatch, time
stepwatch.start(out={str(tmp_path / "run")!r}, quiet=True)
kept = []
for _ in stepwatch.steps(range(250)):
    kept.append(b"x" * 300_000)
    time.sleep(0.0002)
for finding in stepwatch.stop().report().to_dict()["findings"]:
    if finding["kind"] == "memory_growth":
        print(finding["evidence"]["mb_per_step"])
"""
    )
    assert near(float(told), 0.3)


@pytest.mark.usefixtures("plain_memory", "no_recording")
def test_samples_of_steps_do_not_suffer_from_what_came_before(tmp_path: Path) -> None:
    """Imports allocate so much that samples become few; with the first step they are many again."""
    stepwatch.start(out=tmp_path / "run", quiet=True, memory=True)
    for _ in range(2_000):
        bytearray(200_000)
    kept = []
    for _ in stepwatch.steps(range(400)):
        kept.append(b"x" * MB)
        time.sleep(0.0005)
    sites = stepwatch.stop().report().to_dict()["memory"]["allocations"]["sites"]
    site = max(sites, key=lambda row: row["live_bytes"] if Path(row["file"]).name == HERE else 0)
    assert site["samples"] > 110  # The first 128 are taken whatever they cost.
    assert len(kept) == 400


def test_differences_of_other_stretches_are_refused() -> None:
    with stepwatch.memory() as first:
        kept = [bytearray(1 * MB) for _ in range(20)]
    old = first.snapshot()
    with stepwatch.memory() as second:
        pass
    with pytest.raises(ValueError, match="stretch"):
        _ = second.snapshot() - old
    assert kept


def test_native_leaves() -> None:
    numpy = pytest.importorskip("numpy")
    with stepwatch.memory(native=True, sample_kb=64) as mem:
        kept = [numpy.empty(MB) for _ in range(4)]
    leaves = " ".join(row["leaf"] for row in mem.top(5))
    assert ".so" in leaves
    assert kept


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="sample_kb"):
        stepwatch.memory(sample_kb=-1)
    mem = stepwatch.memory()
    with pytest.raises(RuntimeError, match="not run yet"):
        mem.snapshot()
    mem.stop()
    with mem:
        with pytest.raises(RuntimeError, match="already"):
            mem.start()
        with pytest.raises(ValueError, match="by must be"):
            mem.top(by="size")  # type: ignore[arg-type]
    assert mem.peak >= 0


def test_nested_and_again() -> None:
    outer, inner = stepwatch.memory(), stepwatch.memory()
    with outer:
        one = bytearray(10 * MB)
        with inner:
            two = bytearray(20 * MB)
        del one
    assert near(outer.peak, 30 * MB)
    assert near(inner.peak, 20 * MB)
    with inner:
        bytearray(50 * MB)
    assert near(inner.peak, 50 * MB)
    assert near(inner.allocated, 70 * MB)  # both stretches
    assert two


def test_threads() -> None:
    """What threads allocate counts, also when they end and when others free it."""
    kept: list[bytearray] = []

    def work() -> None:
        for _ in range(10):
            kept.append(bytearray(1 * MB))

    with stepwatch.memory() as mem:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept.clear()
    assert near(mem.allocated, 80 * MB)
    assert near(mem.peak, 80 * MB)
    assert abs(mem.in_use) < 2 * MB


def test_sections(tmp_path: Path) -> None:
    """A section's peak and its totals are exact, with what lies inside it, for every call."""
    stepwatch.start(out=tmp_path / "run", memory=True, quiet=True)
    kept = []
    for _ in range(4):
        with stepwatch.section("outer"):
            kept.append(bytearray(2 * MB))
            with stepwatch.section("inner"):
                bytearray(16 * MB)
            with stepwatch.section("nothing"):
                pass
    run = stepwatch.stop()
    assert run is not None
    memory = run.report().to_dict()["memory"]
    sections = {"/".join(row["path"]): row for row in memory["allocations"]["sections"]}
    assert near(sections["outer"]["peak_bytes"], 18 * MB)
    assert near(sections["outer"]["delta_bytes"], 8 * MB)
    assert near(sections["outer"]["allocated_bytes"], 72 * MB)
    assert near(sections["outer/inner"]["peak_bytes"], 16 * MB)
    assert near(sections["outer/inner"]["freed_bytes"], 64 * MB)
    assert sections["outer"]["calls"] == 4
    assert memory["resident_peak_bytes"] >= memory["resident_start_bytes"] > 0
    assert near(memory["allocations"]["peak_bytes"], 24 * MB, 0.1)


RESIDENT = """
import mmap, stepwatch
MB = 1_000_000
def take(size):
    pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, 4096):
        pages[at] = 1
    return pages
stepwatch.start(out=OUT, memory=True, quiet=True)
kept = []
for times in range(3):
    with stepwatch.section("outer"):
        with stepwatch.section("grows"):
            kept.append(take((16 + 32 * (times == 1)) * MB))
        with stepwatch.section("comes and goes"):
            take(24 * MB).close()
with stepwatch.section("gives back"):
    kept[1].close()
run = stepwatch.stop()
"""


def test_resident_memory_of_sections(tmp_path: Path) -> None:
    """By how much the process had more at the end of a call: sum, mean, most and least."""
    child(RESIDENT.replace("OUT", repr(str(tmp_path / "run"))))
    run = stepwatch.open(tmp_path / "run")
    memory = run.report().to_dict()["memory"]
    sections = {"/".join(row["path"]): row for row in memory["sections"]}
    grows = sections["outer/grows"]
    assert (grows["calls"], grows["calls_read"]) == (3, 3)
    assert near(grows["rss_delta_bytes"], 80 * MB)
    assert grows["rss_delta_mean_bytes"] == pytest.approx(grows["rss_delta_bytes"] / 3)
    assert near(grows["rss_delta_max_bytes"], 48 * MB)
    assert near(grows["rss_delta_min_bytes"], 16 * MB, 0.2)
    goes = sections["outer/comes and goes"]
    assert abs(goes["rss_delta_bytes"]) < 4 * MB
    assert near(sections["gives back"]["rss_delta_bytes"], -48 * MB)
    # What its thread had at most is exact; what the process had was only looked at now and then.
    assert near(goes["peak_bytes"], 24 * MB)
    assert goes["peak_how"] == "exact"
    assert goes["rss_peak_how"] == "sampled"
    assert sections["outer"]["rss_peak_bytes"] >= grows["rss_peak_bytes"] > 80 * MB
    rows = {"/".join(row["path"]): row for row in run.memory}
    assert set(rows) == set(sections)
    assert rows["outer/grows"]["rss_delta_max_bytes"] == grows["rss_delta_max_bytes"]
    assert rows["outer/grows"]["name"] == "grows"
    assert rows["gives back"]["rss_delta_bytes"] < 0
    assert near(rows["outer/comes and goes"]["allocated_bytes"], 72 * MB)
    assert sum(row["allocated_bytes"] for row in run.allocations) > 70 * MB


def test_resident_memory_where_the_monitor_looks(tmp_path: Path) -> None:
    """Without counting, a section has what the monitor saw while it was open, and says so."""
    stepwatch.start(out=tmp_path / "run", quiet=True, monitor_interval_s=0.01)
    with stepwatch.section("open"):
        for _ in range(20):
            time.sleep(0.01)
    run = stepwatch.stop()
    assert run is not None
    (row,) = run.report().to_dict()["memory"]["sections"]
    assert row["path"] == ["open"]
    assert row["rss_peak_bytes"] > MB
    assert row["rss_peak_how"] == "sampled"
    assert (row["calls_read"], row["rss_delta_bytes"], row["peak_bytes"]) == (0, None, None)
    (same,) = run.memory
    assert same["rss_delta_bytes"] is None
    assert same["allocated_bytes"] is None


def test_not_counted(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    with stepwatch.section("one"):
        pass
    run = stepwatch.stop()
    assert run is not None
    memory = run.report().to_dict()["memory"]
    assert memory["recorded"] is True
    assert memory["resident_end_bytes"] > 0
    assert memory["allocations"]["recorded"] is False
    assert "--memory" in memory["allocations"]["why"]


STRESS = """
import os, signal, stepwatch, sys, threading
def churn(times):
    for _ in range(times):
        [bytearray(i * 97 % 5000) for i in range(60)]
mem = stepwatch.memory(sample_kb=4, native=True)
mem.start()
signal.signal(signal.SIGALRM, lambda *_: bytearray(100_000))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
threads = [threading.Thread(target=churn, args=(150,)) for _ in range(6)]
for thread in threads:
    thread.start()
for number in range(15):
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
        churn(5)
        os._exit(0 if mem.allocated > 0 and mem.top(3) else 1)
    while True:
        try:
            assert os.waitpid(pid, 0)[1] == 0
            break
        except InterruptedError:
            pass
    threading.Thread(target=churn, args=(1,)).start()
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
mem.stop()
print(mem.allocated > 0, len(mem.top(5)) > 0)
"""


def test_signals_threads_and_forks_together() -> None:
    assert child(STRESS) == "True True\n"


LAST_MOMENTS = """
import atexit, stepwatch
class Late:
    def __del__(self):
        bytearray(100_000)
atexit.register(lambda: print(len([bytearray(10_000) for _ in range(100)])))
late = Late()
mem = stepwatch.memory(sample_kb=1)
mem.start()
import json, decimal
"""


def test_allocation_at_exit_and_in_the_last_moments() -> None:
    """A tracker that is never stopped lives to the very end of the interpreter."""
    assert child(LAST_MOMENTS) == "100\n"


@pytest.mark.parametrize("allocator", ["malloc", "pymalloc", "debug", "malloc_debug"])
def test_other_allocators_of_python(allocator: str) -> None:
    script = """
import stepwatch
with stepwatch.memory() as mem:
    kept = [bytearray(1_000_000) for _ in range(20)]
    small = [bytes(200) for _ in range(1000)]
print(19_000_000 < mem.peak < 22_000_000)
"""
    assert child(script, env={"PYTHONMALLOC": allocator}) == "True\n"


def test_beside_tracemalloc() -> None:
    """Either may come first, and either may end first."""
    script = """
import stepwatch, tracemalloc
tracemalloc.start()
mem = stepwatch.memory()
mem.start()
kept = [bytearray(1_000_000) for _ in range(10)]
print(9_000_000 < tracemalloc.get_traced_memory()[0], 9_000_000 < mem.peak < 30_000_000)
tracemalloc.stop()
mem.stop()
mem.start()
tracemalloc.start()
mem.stop()
more = bytearray(1_000_000)
print(tracemalloc.get_traced_memory()[0] > 900_000)
"""
    assert child(script) == "True True\nTrue\n"


def test_libraries_that_come_later_are_seen() -> None:
    script = """
import stepwatch
with stepwatch.memory() as mem:
    import ctypes, zlib
    decompressor = [zlib.compressobj() for _ in range(40)]  # 268 kB each, by malloc
print(mem.parts["native"]["allocated"] + mem.parts["python_raw"]["allocated"]
      + mem.parts["python_obj"]["allocated"] > 8_000_000)
"""
    assert child(script) == "True\n"


@pytest.mark.usefixtures("plain_memory")
def test_blocks_of_no_bytes() -> None:
    """Python has malloc make them: they are no small blocks, and their neighbours neither."""
    script = """
import ctypes, gc, stepwatch
gc.disable()
api = ctypes.PyDLL(None)
make, resize, free = api.PyObject_Malloc, api.PyObject_Realloc, api.PyObject_Free
make.restype = resize.restype = ctypes.c_void_p
make.argtypes, free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
resize.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
large = [make(1000) for _ in range(2000)]
for block in large[::2]:
    free(block)  # Gaps for those of no bytes.
with stepwatch.memory(sample_kb=0) as mem:
    none = [make(0) for _ in range(2000)] + [resize(make(100), 0) for _ in range(1000)]
    freed = mem.parts["python_obj"]["freed"]
    for block in large[1::2]:
        free(block)
    print(mem.parts["python_obj"]["freed"] - freed > 1_000_000)
    for block in none:
        free(block)
    del none
    print(mem.parts["python_raw"]["blocks"] < 100, abs(mem.in_use + 1_008_000) < 20_000)
"""
    assert child(script) == "True\nTrue True\n"


@pytest.mark.usefixtures("plain_memory")
def test_functions_that_ctypes_asks_for() -> None:
    script = """
import ctypes, stepwatch
with stepwatch.memory() as mem:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    block = libc.realloc(libc.malloc(20_000_000), 30_000_000)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(block)
native = mem.parts["native"]
print(round(native["allocated"], -6), round(native["freed"], -6), round(mem.peak, -6))
block = libc.malloc(1000)  # Nothing counts any more.
libc.free(block)
"""
    assert child(script) == "50000000 50000000 30000000\n"


MALLOCS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"]


def preload(name: str) -> dict[str, str]:
    """Return the environment with another malloc; skip where there is none of that name."""
    env = {"LD_PRELOAD": name}
    # Loading it later says nothing: it may want its place from the start.
    done = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True, check=False)
    if done.stderr:
        pytest.skip(f"{name} is not here")
    return env


@pytest.mark.parametrize("name", MALLOCS)
@pytest.mark.usefixtures("plain_memory")
def test_another_malloc(name: str) -> None:
    script = """
import mmap, stepwatch
with stepwatch.memory(sample_kb=16) as mem:
    kept = [bytearray(1_000_000) for _ in range(20)]
    own = mmap.mmap(-1, 8_000_000)
# What it maps for them is not counted once more; sizes are in its own steps.
print(27_000_000 < mem.peak < 35_000_000, mem.parts["mmap"]["allocated"] < 9_000_000)
site = max(mem.top(9), key=lambda row: row["live"])
print(site["line"], 15_000_000 < site["live"] < 30_000_000)
"""
    assert child(script, env=preload(name)) == "True True\n4 True\n"


@pytest.mark.parametrize("name", MALLOCS)
@pytest.mark.usefixtures("plain_memory")
def test_another_malloc_under_stress(name: str) -> None:
    assert child(STRESS, env=preload(name)) == "True True\n"
    assert child(LAST_MOMENTS, env=preload(name)) == "100\n"


# A malloc that is not the C library's: blocks with a head of their own.
OTHER_MALLOC = r"""
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
static char *next, *end;
static volatile int lock;
struct head { size_t size, pad; };
static void *take(size_t align, size_t size)
{
    while (__sync_lock_test_and_set(&lock, 1)) { }
    align = align < 16 ? 16 : align;
    uintptr_t at = ((uintptr_t)next + sizeof(struct head) + align - 1) / align * align;
    if (!next || at + size > (uintptr_t)end) {
        size_t room = (size + align + (64u << 20)) & ~4095ul;
        next = mmap(0, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + room;
        at = ((uintptr_t)next + sizeof(struct head) + align - 1) / align * align;
    }
    next = (char *)at + size;
    __sync_lock_release(&lock);
    ((struct head *)at)[-1].size = size;
    return (void *)at;
}
size_t malloc_usable_size(void *p) { return p ? ((struct head *)p)[-1].size : 0; }
void *malloc(size_t n) { return take(16, n); }
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return take(16, a * b); }
void *realloc(void *p, size_t n)
{
    void *q = take(16, n);
    if (p) memcpy(q, p, malloc_usable_size(p) < n ? malloc_usable_size(p) : n);
    return q;
}
void *memalign(size_t a, size_t n) { return take(a, n); }
void *aligned_alloc(size_t a, size_t n) { return take(a, n); }
int posix_memalign(void **out, size_t a, size_t n) { *out = take(a, n); return 0; }
"""


@pytest.mark.usefixtures("plain_memory")
def test_a_malloc_of_the_program(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler")
    source, library = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text(OTHER_MALLOC)
    words = [compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(words, check=True, timeout=60)
    script = """
import stepwatch, threading
with stepwatch.memory(sample_kb=16) as mem:
    kept = [bytearray(1_000_000) for _ in range(20)]
    threads = [threading.Thread(target=lambda: bytearray(100_000)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(19_000_000 < mem.peak < 22_000_000, len(mem.top(3)) > 0)
"""
    assert child(script, env={"LD_PRELOAD": str(library)}) == "True True\n"


def test_subprocesses_and_exec() -> None:
    with stepwatch.memory():
        assert child("print(1)") == "1\n"
        pid = os.fork()
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-c", "pass"])
        assert os.waitpid(pid, 0)[1] == 0


def test_a_killed_program_leaves_its_memory(tmp_path: Path) -> None:
    """What the kernel says of the process is there also when it was killed."""
    script = f"""
import os, signal, stepwatch, time
stepwatch.start(out={str(tmp_path / "run")!r}, memory=True, quiet=True)
with stepwatch.section("one"):
    kept = bytearray(50_000_000)
time.sleep(0.4)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    memory = stepwatch.open(tmp_path / "run").report().to_dict()["memory"]
    assert memory["resident_peak_bytes"] > 50_000_000


KILLED = """
import os, signal, stepwatch, sys, time
stepwatch.start(out=OUT, memory=True, memory_sample_kb=64, quiet=True, sampler_hz=HZ)
kept = []
def make():
    kept.append(bytearray(1_000_000))
def more():
    kept.append(bytearray(2_000_000))
for step in range(40):
    BODY
# What came last is written some time later, by whoever is next.
written = time.monotonic() + 1.5
while time.monotonic() < written:
    PAUSE
os.kill(os.getpid(), signal.SIGKILL)
"""
STEPS = "with stepwatch.step(): make(); more()"


@pytest.mark.parametrize(
    ("hertz", "body", "pause"),
    [("0", STEPS, "with stepwatch.step(): time.sleep(0.01)"), ("100", "make(); more()", "pass")],
    ids=["steps", "sampler"],
)
def test_a_killed_program_leaves_its_sites(
    tmp_path: Path, hertz: str, body: str, pause: str
) -> None:
    """What was sampled is written while the program runs: at steps, and by the sampler's thread."""
    script = KILLED.replace("OUT", repr(str(tmp_path / "run"))).replace("HZ", hertz)
    script = script.replace("BODY", body).replace("PAUSE", pause)
    done = subprocess.run([sys.executable, "-c", script], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    run = stepwatch.open(tmp_path / "run")
    memory = run.report().to_dict()["memory"]["allocations"]
    assert memory["recorded"] is True
    assert near(memory["peak_bytes"], 120 * MB, 0.1)
    sites = {row["function"]: row for row in run.allocations}
    assert near(sites["make"]["live_bytes"], 40 * MB, 0.1)
    assert near(sites["more"]["peak_bytes"], 80 * MB, 0.1)


def test_sites_are_written_once(tmp_path: Path) -> None:
    """Rows that were written while it ran are changed, not told again; new lines come to them."""
    script = KILLED.replace("OUT", repr(str(tmp_path / "run"))).replace("HZ", "0")
    script = script.replace("BODY", STEPS).replace("PAUSE", "with stepwatch.step(): pass")
    script = script.replace(
        "os.kill(os.getpid(), signal.SIGKILL)",
        "late = [bytearray(30_000_000)]\nstepwatch.stop()",
    )
    child(script)
    run = stepwatch.open(tmp_path / "run")
    functions = [row["function"] for row in run.allocations]
    assert sorted(name for name in functions if name in ("make", "more")) == ["make", "more"]
    sites = {row["function"]: row for row in run.allocations}
    assert near(sites["make"]["allocated_bytes"], 40 * MB, 0.1)
    assert near(sum(row["peak_bytes"] for row in run.allocations), 150 * MB, 0.1)
    allocations = run.report().to_dict()["memory"]["allocations"]
    assert near(allocations["peak_bytes"], 150 * MB, 0.1)
    in_use = allocations["allocated_bytes"] - allocations["freed_bytes"]
    assert near(in_use, 150 * MB, 0.1)
