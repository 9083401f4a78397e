"""Keras 3, whatever its backend: its list of callbacks tells when batches begin and end.

The time between the end of a batch and the beginning of the next is waiting for data; the batch
itself is one call of a compiled function, unless the backend is torch, whose own hooks see inside:
there only what they see is forward, and Keras' own optimizers are told to the recorder here.
"""

from __future__ import annotations

import sys

from stepwatch import _core, data, section
from stepwatch.integrations import _notes, _patch
from stepwatch.integrations._framework import FRAMEWORK
from stepwatch.integrations._timed import timed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_compiled = section("train_function", phase="forward")
_eager = section("train_function", phase="other")
_validation = section("validation", phase="validation")


class _Open:
    """The sections that are open, the newest last; whether a batch is waited for.

    Keras trains on one thread.
    """

    def __init__(self) -> None:
        self._sections: list[section] = []
        self.waits = False
        self.batch = _compiled

    def enter(self, one: section) -> None:
        one.__enter__()
        self._sections.append(one)

    def leave(self, one: section) -> None:
        """Leave the section; what was opened in it and left by an exception goes with it."""
        while one in self._sections:
            newest = self._sections.pop()
            newest.__exit__(None, None, None)
            if newest is one:
                break


_open = _Open()


def install(module: Any) -> None:
    """Watch the list of callbacks of this Keras."""
    callbacks = getattr(getattr(module, "callbacks", None), "CallbackList", None)
    if callbacks is None:
        _notes.note_once("this version of keras has no CallbackList: its steps are not seen")
        return
    torch = sys.modules.get("torch") if module.backend.backend() == "torch" else None
    _open.batch = _compiled if torch is None else _eager
    if torch is not None:
        around = timed(section("optimizer", phase="optimizer"), torch)
        _patch.replace(module.optimizers.Optimizer, "apply", around)
    iterator = getattr(sys.modules.get("keras.src.backend.jax.trainer"), "JAXEpochIterator", None)
    if iterator is not None:
        # Its compiled function is given what to take the batch from, and takes it itself.
        _patch.replace(iterator, "_get_iterator", _waiting)
    for name, before, after in (
        ("on_epoch_begin", None, _epoch_began),
        ("on_train_batch_begin", _batch_begins, None),
        ("on_train_batch_end", _batch_ended, _ask),
        ("on_test_begin", _test_begins, None),
        ("on_test_end", None, _test_ended),
        ("on_epoch_end", _forget, None),
        ("on_train_end", None, _train_ended),
    ):
        _patch.replace(callbacks, name, _around(before, after))


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    def _get_iterator(self: Any) -> Any:
        return data(original(self))

    return _get_iterator


def _around(
    before: Callable[[Any], None] | None, after: Callable[[Any], None] | None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
            if before is not None and _core.is_recording():
                before(self)
            result = original(self, *args, **kwargs)
            if after is not None and _core.is_recording():
                after(self)
            return result

        return hook

    return make


def _epoch_began(callbacks: Any) -> None:
    _open.leave(_open.batch)  # A fit before was left by an exception.
    _core.train_epoch(callbacks)
    _ask(callbacks)


def _ask(callbacks: Any) -> None:
    """Keras asks for the next batch."""
    _forget(callbacks)
    _core.train_wait(FRAMEWORK, callbacks, callbacks)
    _open.waits = True


def _batch_begins(callbacks: Any) -> None:
    if _open.waits:
        _open.waits = False
        _core.train_got(callbacks)
    _open.enter(_open.batch)
    _core.train_works(False)


def _batch_ended(callbacks: Any) -> None:
    _open.leave(_open.batch)
    _core.train_update(callbacks)


def _forget(callbacks: Any) -> None:
    """There was no further batch."""
    if _open.waits:
        _open.waits = False
        _core.train_end(callbacks)


def _test_begins(callbacks: Any) -> None:
    _forget(callbacks)
    _open.enter(_validation)


def _test_ended(_: Any) -> None:
    _open.leave(_validation)


def _train_ended(callbacks: Any) -> None:
    _forget(callbacks)
    _core.train_release(callbacks)
