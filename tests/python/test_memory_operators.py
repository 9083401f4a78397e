"""Blocks of C++: operator new and delete, which hooks stand in for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = "libstdc++.so.6"

ASK = f"""
import ctypes, gc, stepwatch
gc.disable()
SIZE = 20_000_000

def function(name, *arguments):
    found = ctypes.CDLL("{LIBRARY}")[name]
    found.restype, found.argtypes = ctypes.c_void_p, arguments
    return found

def place(name):
    return ctypes.cast(function(name), ctypes.c_void_p).value

def make_and_free():
    new = function("_Znwm", ctypes.c_size_t)
    array = function("_Znam", ctypes.c_size_t)
    function("_ZdlPv", ctypes.c_void_p)(new(SIZE))
    function("_ZdlPvm", ctypes.c_void_p, ctypes.c_size_t)(new(SIZE), SIZE)
    function("_ZdaPv", ctypes.c_void_p)(array(SIZE))

def counted(mem):
    native = mem.parts["native"]
    return [round(native[key] / SIZE, 2) for key in ("allocated", "freed")]
"""


def child(script: str, preload: Path | None = None) -> list[str]:
    """Run a script in a Python of its own, and return the lines that it printed."""
    if sys.platform != "linux" or "LD_PRELOAD" in os.environ:
        pytest.skip("another malloc is in force")
    env = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})}
    words = [sys.executable, "-c", ASK + script]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=env, check=False)
    if LIBRARY in done.stderr:
        pytest.skip(f"{LIBRARY} is not here")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.usefixtures("plain_memory")
def test_hooks_stand_in_for_the_operators() -> None:
    script = """
names = ("_Znwm", "_ZdlPv", "_ZdlPvm")
before = [place(name) for name in names]
for _ in range(2):
    with stepwatch.memory(sample_kb=0) as mem:
        print(all(place(name) != one for name, one in zip(names, before)))
        make_and_free()
    print(*counted(mem))
    print([place(name) for name in names] == before)
"""
    assert child(script) == ["True", "3.0 3.0", "True"] * 2


@pytest.mark.usefixtures("plain_memory")
def test_a_library_that_comes_later_is_counted_once() -> None:
    script = """
with stepwatch.memory(sample_kb=0) as mem:
    make_and_free()
print(*counted(mem))
with stepwatch.memory(sample_kb=0) as mem:
    make_and_free()
print(*counted(mem))
"""
    assert child(script) == ["3.0 3.0"] * 2


CALLER = """
#include <stddef.h>
extern void *_Znwm(size_t size);
extern void _ZdlPv(void *block);
void *make(size_t size) { return _Znwm(size); }
void drop(void *block) { _ZdlPv(block); }
void *where(void) { return (void *)_Znwm; }
"""


@pytest.mark.usefixtures("plain_memory")
@pytest.mark.parametrize("first", [False, True])
def test_operators_of_a_library_that_comes_later(tmp_path: Path, first: bool) -> None:
    """As when a framework is imported while a whole program is watched."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler")
    source, library = tmp_path / "caller.c", tmp_path / "libcaller.so"
    source.write_text(CALLER)
    words = [compiler, "-O1", "-shared", "-fPIC", str(source), "-o", str(library)]
    linked = subprocess.run([*words, f"-l:{LIBRARY}"], timeout=60, check=False)
    if linked.returncode != 0:
        pytest.skip(f"{LIBRARY} cannot be linked with")
    # A stretch before it was loaded, or none.
    script = f"""
if {first}:
    with stepwatch.memory(sample_kb=0) as mem:
        bytearray(1)
assert "libstdc++" not in open("/proc/self/maps").read()
with stepwatch.memory(sample_kb=0) as mem:
    caller = ctypes.CDLL({str(library)!r})
    caller.where.restype = caller.make.restype = ctypes.c_void_p
    caller.make.argtypes, caller.drop.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
    during, asked = caller.where(), place("_Znwm")
    caller.drop(caller.make(SIZE))
print(during == asked, caller.where() == place("_Znwm") != during)
print(*counted(mem))
with stepwatch.memory(sample_kb=0) as mem:
    print(caller.where() == during)
"""
    assert child(script) == ["True True", "1.0 1.0", "True"]


@pytest.mark.usefixtures("plain_memory")
def test_no_memory_is_the_matter_of_the_operator() -> None:
    """It calls the handler of the program and throws; the form that throws nothing catches that."""
    script = """
function("_Znwm")
called = []

@ctypes.CFUNCTYPE(None)
def handler():
    called.append(1)
    if len(called) == 3:
        set_handler(None)

set_handler = function("_ZSt15set_new_handlerPFvvE", ctypes.c_void_p)
with stepwatch.memory(sample_kb=0) as mem:
    set_handler(ctypes.cast(handler, ctypes.c_void_p))
    new = function("_ZnwmRKSt9nothrow_t", ctypes.c_size_t, ctypes.c_void_p)
    print(new(1 << 62, place("_ZSt7nothrow")), len(called))
print(*counted(mem))
"""
    assert child(script) == ["None 3", "0.0 0.0"]


OWN = """
#include <stdlib.h>
size_t news, deletes;
void *_Znwm(size_t size) { news++; return malloc(size); }
void _ZdlPv(void *block) { deletes++; free(block); }
"""


@pytest.mark.usefixtures("plain_memory")
@pytest.mark.parametrize("only", [False, True])
def test_operators_of_the_program_stay(tmp_path: Path, only: bool) -> None:
    """Also where it has but one of them, which the library's others then call."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler")
    source, library = tmp_path / "own.c", tmp_path / "libown.so"
    source.write_text(OWN.replace("_Znwm", "another") if only else OWN)
    words = [compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(words, check=True, timeout=60)
    script = """
own = ctypes.CDLL(None)
function("_Znwm")
with stepwatch.memory(sample_kb=0) as mem:
    before = [ctypes.c_size_t.in_dll(own, name).value for name in ("news", "deletes")]
    make_and_free()
    after = [ctypes.c_size_t.in_dll(own, name).value for name in ("news", "deletes")]
print(*(b - a for a, b in zip(before, after)))
print(*counted(mem))
"""
    # The library's _Znam calls the program's _Znwm; _ZdlPvm and _ZdaPv its _ZdlPv.
    assert child(script, library) == ["0 2" if only else "1 2", "3.0 3.0"]
