"""Steps of programs that use no framework: the loop that takes most of the time gives them.

What counts as one, and how it is found, is in docs/loops.md. Here the search is begun: Python tells
of every module just before it runs, and the extension takes those of the user's own code.
"""

from __future__ import annotations

import os
import sys

from stepwatch import _core, _imports
from stepwatch.integrations import numpy_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

# Those who read bytecode themselves shall find what Python made of the source.
READERS = frozenset(("numba", "torch", "tensorflow", "triton", "taichi", "pyccel", "cinder"))

_hooked = False


def install(_module: object = None) -> None:
    """Look for the training loop, unless this is somebody's worker."""
    global _hooked
    if "--multiprocessing-fork" in sys.argv:
        return
    _core._loops_start()
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_core._loops_forked)
    _core._loops_listen()
    if sys.version_info >= (3, 12):
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            _core._loops_watch(frame.f_code)
            frame = frame.f_back
    else:
        for name in READERS:
            _imports.watch(name, _leave_code)
    numpy_arrays.watch()
    # torch says what trains, as soon as something does.
    _imports.watch("torch", lambda _module: _core._loops_patience(5.0))


def _leave_code(_module: object) -> None:
    # Nothing has hooks where it was not imported.
    rewriter = sys.modules.get("stepwatch._loop_code")
    if rewriter is not None:
        rewriter.restore()


def remove() -> None:
    """Look no more."""
    numpy_arrays.forget()
    _core._loops_stop()
