"""Which calls of compiled functions are the steps of a JAX program.

JAX has no optimizer object and no training mode: a loop calls compiled functions. What makes one
of them the update is what flows: arrays that it made come back to it, directly or through other
compiled functions, while the model of an evaluation is the same in each call. So the first few
calls of each function are looked at: which of the arrays that come in were made by which function,
and which were there in its last call. Only weak references are kept. Once it is clear who draws
the boundaries, calls cost numbers only (``python/ext/jit_calls.c``).
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections import deque

from stepwatch import _core
from stepwatch.integrations import _notes
from stepwatch.integrations._settings import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# As in python/ext/jit_calls.c.
UNDECIDED, OWNER, MEMBER, EVALUATES, QUIET = range(5)
# How sure it is that the owner is the update.
_CHANGING, _DOUBTFUL, _SURE = range(3)
# Where names have to decide: what evaluates, and what trains.
_EVALUATION = re.compile(r"eval|valid|(^|_)(val|test|predict|infer|metrics?|accuracy|score|sample)")
_TRAINING = re.compile(r"train|(^|_)(step|update|fit|optimi[sz]e|learn|grads?)")
# So many calls of one function are looked at before it is let be.
_PATIENCE = 64


class _Function:
    """What is known of one compiled function of the program."""

    def __init__(self, number: int, name: str, foreign: bool) -> None:
        self.number = number
        self.foreign = foreign  # compiled by a library for itself
        self.evaluates = _EVALUATION.search(name.lower()) is not None
        self.trains = not self.evaluates and _TRAINING.search(name.lower()) is not None
        self.calls = 0
        self.first = 0  # order of the first call among all
        self.stretches = 0  # counted by the recorder when the owner was chosen
        self.row = 0  # the most calls since then without one of the owner's between
        self.fed_by: set[_Function] = set()
        self.last: dict[int, weakref.ref[Any]] = {}  # arrays of its last call
        self.made: list[int] = []  # keys in _made
        self.shapes: set[tuple[object, object]] = set()  # of the arrays of its last call
        self.like = 0  # how many results looked like arguments
        self.changed = 0  # calls in which most arrays were not those of the call before
        # Of the arrays of this call: made by compiled functions, there last time, all.
        self.fed = self.same = self.all = 0

    def forget(self) -> None:
        self.last = {}
        for key in self.made:
            _made.pop(key, None)
        self.made = []


_functions: dict[int, _Function] = {}
# Arrays that compiled functions have made, by address.
_made: dict[int, tuple[weakref.ref[Any], _Function]] = {}
_log: deque[int] = deque(maxlen=256)
_order = itertools.count()
_owner: _Function | None = None
_sure = _CHANGING
_since = 0  # calls of owners when this one was chosen
_array: Any = None
_leaves: Callable[[Any], list[Any]] | None = None


def prepare(module: Any) -> None:
    """Take from jax what is needed to look at arguments."""
    global _array, _leaves
    _array = module.Array
    _leaves = module.tree_util.tree_leaves


def learn(number: int, name: str, foreign: bool) -> None:
    """There is a function of this number."""
    _functions[number] = _Function(number, name, foreign)


def before(number: int, args: Any, kwargs: Any) -> int:
    """Tell what a call is; called for those that are not decided, outside any other call."""
    try:
        return _before(_functions[number], (args, kwargs))
    except Exception as error:
        _give_up(number, error)
        return QUIET


def after(number: int, result: Any) -> None:
    """Remember what such a call has made."""
    try:
        _after(_functions[number], result)
    except Exception as error:
        _give_up(number, error)


def _give_up(number: int, error: Exception) -> None:
    _core.jit_role(number, QUIET)
    _notes.note_once(
        f"calls of a compiled function are not looked at for steps: {type(error).__name__}: {error}"
    )


def _arrays(tree: Any) -> list[Any]:
    if _leaves is None:
        return []
    return [leaf for leaf in _leaves(tree) if type(leaf).__name__ == "ArrayImpl"]


def _before(function: _Function, arguments: Any) -> int:
    if not function.calls:
        function.first = next(_order)
    function.calls += 1
    _log.append(function.number)
    _look(function, _arrays(arguments))
    source, is_open, _ = _core.train_now()
    if is_open and source == 3 and not function.evaluates:
        _core.train_works(False)  # A loader's batch is used: that is a step, whoever updates.
    return _without_owner(function) if _owner is None else _beside_owner(function)


def _look(function: _Function, arrays: list[Any]) -> None:
    function.fed = function.same = 0
    function.all = len(arrays)
    function.shapes = {(array.shape, array.dtype) for array in arrays[:256]}
    last = function.last
    function.last = {}
    for array in arrays:
        key = id(array)
        function.last[key] = weakref.ref(array)
        before = last.get(key)
        if before is not None and before() is array:
            function.same += 1
            continue
        made = _made.get(key)
        if made is not None and made[0]() is array:
            function.fed += 1
            function.fed_by.add(made[1])
    if last and function.same * 2 <= function.all:
        function.changed += 1


def _after(function: _Function, result: Any) -> None:
    for key in function.made:
        _made.pop(key, None)
    arrays = _arrays(result)
    function.made = [id(array) for array in arrays]
    for array in arrays:
        _made[id(array)] = (weakref.ref(array), function)
    function.like = sum((array.shape, array.dtype) in function.shapes for array in arrays[:256])


def _feeds_itself(function: _Function) -> bool:
    """Tell whether what it made comes back to it, perhaps through others."""
    seen: set[_Function] = set()
    todo = list(function.fed_by)
    while todo:
        other = todo.pop()
        if other is function:
            return True
        if other not in seen:
            seen.add(other)
            todo.extend(other.fed_by)
    return False


def _is_update(function: _Function) -> int | None:
    """Tell how sure it is that the function trains; None: it does not seem to, so far."""
    if function.evaluates or function.calls < 2:
        return None
    if function.foreign:
        # Such as the moments of an optimizer; unless the program has nothing else.
        alone = all(other.foreign for other in list(_functions.values()) if other.calls)
        loops = alone and function.calls >= 8 and _feeds_itself(function)
        return _DOUBTFUL if loops else None
    if _feeds_itself(function):
        if function.fed > function.same:
            return _SURE
        # Most of what it gets is the same each time: the whole data set, or a model that is
        # evaluated while some sums are carried along.
        return _DOUBTFUL if function.calls >= (3 if function.trains else 8) else None
    # The update itself is not compiled: what comes in is new each time, or at least again and
    # again, and gradients that look like it go out.
    if not function.like or not function.changed:
        return None
    if function.changed == function.calls - 1:
        return _CHANGING if function.calls >= (3 if function.like > 1 else 8) else None
    return _CHANGING if function.calls >= 16 and function.changed >= 3 else None


def _without_owner(function: _Function) -> int:
    sure = _is_update(function)
    if sure is not None:
        return _choose(function, sure)
    if function.calls >= _PATIENCE:
        # Looked at again when an owner has come, or after as many calls again.
        _core.jit_role(function.number, MEMBER, 2 * _core.jit_state(function.number)[3])
        function.forget()
        return MEMBER
    return UNDECIDED


def _beside_owner(function: _Function) -> int:
    if function.foreign:
        _core.jit_role(function.number, QUIET)
        function.forget()
        return QUIET
    role, _, stretches, row, owner_calls, _ = _core.jit_state(function.number)
    sure = _is_update(function)
    if sure == _SURE and (_sure < _SURE or row >= 3):
        return _choose(function, sure)  # The one before was a guess, or has had its time.
    if sure == _DOUBTFUL and row >= 3 and function.trains:
        return _choose(function, sure)
    steps, times = owner_calls - _since, stretches - function.stretches
    if role == MEMBER and times * 2 >= steps:
        return EVALUATES  # More calls in a row than usual: it serves for evaluation, too.
    function.row = max(row, function.row)
    if steps < 3:
        return UNDECIDED
    if times * 2 >= steps:  # It is part of the loop.
        _core.jit_role(function.number, MEMBER, max(2, 2 * function.row))
        function.forget()
        return MEMBER
    if (row >= 2 and sure is None) or (function.evaluates and times * 4 < steps):
        _core.jit_role(function.number, EVALUATES)
        function.forget()
        return EVALUATES
    if function.calls >= _PATIENCE:
        _core.jit_role(function.number, MEMBER, 2)
        function.forget()
        return MEMBER
    return UNDECIDED


def _choose(update: _Function, sure: int) -> int:
    """Let the first function of the cycle that the update belongs to draw the boundaries."""
    global _owner, _sure, _since
    if _owner is not None:
        _core.train_release(_core.jit_state(_owner.number)[5])
    _owner, _sure = _first_of_cycle(update), sure
    _note_types(update)
    _since = _core.jit_state(update.number)[4]
    for function in list(_functions.values()):  # Other threads may compile meanwhile.
        function.stretches, function.row = _core.jit_state(function.number)[2], 0
        if _core.jit_state(function.number)[0] != QUIET:
            _core.jit_role(function.number, OWNER if function is _owner else UNDECIDED)
    _owner.forget()
    _core.jit_updated(_owner.calls - (_owner is update))
    return OWNER if _owner is update else UNDECIDED


def _note_types(update: _Function) -> None:
    """Say what numbers the update is given: parameters, and the state of the optimizer."""
    elements = {"float64": 0, "float32": 0}
    for reference in update.last.values():
        array = reference()
        kind = str(getattr(array, "dtype", ""))
        if kind in elements:
            elements[kind] += int(array.size)  # type: ignore[union-attr]
    for kind, count in elements.items():
        setting("jax", f"{kind}_elements", float(count))


def _first_of_cycle(update: _Function) -> _Function:
    """Of what is called once in each round, take what came first in the program."""
    log = list(_log)
    at = [i for i, number in enumerate(log) if number == update.number]
    if len(at) < 2:
        return update
    this = log[at[-2] + 1 : -1]
    before = log[at[-3] + 1 if len(at) > 2 else 0 : at[-2]]
    once = [_functions[n] for n in set(this) if this.count(n) == 1 and before.count(n) == 1]
    earlier = [f for f in once if f.first < update.first and not f.evaluates and not f.foreign]
    return min(earlier, key=lambda f: f.first, default=update)
