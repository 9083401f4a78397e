"""Optimizers of torch and what goes with them: schedulers, scaling and clipping, autocast."""

from __future__ import annotations

import functools
import math
import weakref
from types import FunctionType, MethodType

from stepwatch import _core
from stepwatch.integrations import _dynamo, _notes, _patch, _steps, torch_modules
from stepwatch.integrations._stand_in import Hooks, stand_in
from stepwatch.integrations._timed import timed, timed_after_validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_torch: Any = None
# Optimizers that were built since we are here and have not stepped yet.
_fresh: weakref.WeakSet[Any] = weakref.WeakSet()
# Those that were there together when the first of them stepped.
_several: weakref.WeakSet[Any] = weakref.WeakSet()
# Names of optimizers.
_names: dict[str, weakref.ref[Any]] = {}
# By then the program has built what it trains with.
_STEPS_UNTIL_OWNERS = 8
# Cells of torch's functions that hold ours instead: (cell, what it held).
_cells: list[tuple[Any, Any]] = []


# --- Optimizers ---------------------------------------------------------------------------


def _name_of(optimizer: Any) -> str:
    """Return "optimizer" for the only one; of several side by side each has its own name."""
    for name, holder in list(_names.items()):
        other = holder()
        if other is optimizer:
            return name
        if other is None:
            del _names[name]
    _fresh.add(optimizer)
    if len(_fresh) > 1:
        _several.update(_fresh)
    _fresh.discard(optimizer)
    name = "optimizer"
    if optimizer in _several:
        base = name = f"optimizer: {type(optimizer).__name__}"
        number = 1
        while name in _names:
            number += 1
            name = f"{base} {number}"
    _names[name] = weakref.ref(optimizer)
    return name


def _sight(optimizer: Any) -> None:
    """Name an optimizer that steps for the first time in this recording, and put what it is."""
    torch_modules.count_lazy()
    name, kind = _name_of(optimizer), type(optimizer).__name__
    torch_modules.site_row(torch_modules.SITE_OPTIMIZER, _core.module_site(optimizer), kind)
    section = _core.section(name, "optimizer")
    _core.module_add(optimizer, section, None, None, 0, 0)
    defaults = getattr(optimizer, "defaults", None) or {}
    setting(name, "class", kind)
    for key in ("foreach", "fused", "capturable", "differentiable"):
        if key in defaults:
            setting(name, key, str(defaults[key]))
    groups = getattr(optimizer, "param_groups", ())
    setting(name, "tensors", "", float(sum(len(group["params"]) for group in groups)))
    _steps.watch(_look_at_owners, _STEPS_UNTIL_OWNERS)
    _put_threads()


def _put_threads(_: int = 0) -> None:
    """Put how many threads compute, when training begins: a program may have set it by then."""
    _steps.forget(_put_threads)
    setting("threads", "intraop", "", float(_torch.get_num_threads()))
    setting("threads", "cores", "", _core.cpus_usable())


def _look_at_owners(_: int) -> None:
    """Put parts of models that want gradients, and of which no optimizer has a parameter."""
    _steps.forget(_look_at_owners)
    optimizers = [found for holder in list(_names.values()) if (found := holder()) is not None]
    owned = {
        id(parameter)
        for optimizer in optimizers
        for group in getattr(optimizer, "param_groups", ())
        for parameter in group["params"]
    }
    for name, holder in list(torch_modules.roots.items()):
        root = holder()
        if root is not None and owned:
            _put_unowned(root, name, owned)


def _put_unowned(module: Any, name: str, owned: set[int]) -> None:
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    strangers = [parameter for parameter in trained if id(parameter) not in owned]
    if not strangers:
        return
    children = list(module.named_children())
    alone = len(children) == 1 and not module._parameters  # What is around it has none to train.
    if len(strangers) == len(trained) and not alone:
        setting("unowned", name, "", float(sum(parameter.numel() for parameter in strangers)))
        return
    for child, part in children:
        _put_unowned(part, f"{name}.{child}", owned)


def setting(what: str, name: str, text: str, number: float = math.nan) -> None:
    """Put a setting into the trace."""
    _core.put_row(0, torch_modules.SETTING, 0, (what, name, text), (number,))


def _apart(*given: Any) -> Any:
    """Put what the optimizer is given to compute with into a section: its work is no update.

    It is given the closure, or all arguments where it is not known which one that is.
    """
    if len(given) == 1:
        return _closure(given[0]) if callable(given[0]) else given[0]
    args, kwargs = given
    if len(args) > 1 and callable(args[1]):
        args = (args[0], _closure(args[1]), *args[2:])
    elif callable(kwargs.get("closure")):
        kwargs = {**kwargs, "closure": _closure(kwargs["closure"])}
    return args, kwargs


_CLOSURE = _core.section("closure", "other")
_PLAIN = (FunctionType, MethodType, functools.partial)


def _closure(function: Any) -> Any:
    """Put one closure into its section.

    Every step may have a new one, and making it look like what it stands for takes longer than all
    else that is recorded of a step. Of these kinds it answers what it is asked without that.
    """
    if type(function) in _PLAIN:
        return _core.decorated(_CLOSURE, function)
    return _CLOSURE(function)


_STEP = Hooks(_core.optimizer_enter, _core.optimizer_leave, _core.optimizer_failed, apart=_apart)


def _make_step(original: Any) -> Callable[..., Any]:
    step: Any = stand_in(original, _STEP, _torch)
    functools.update_wrapper(step, original)
    step.__stepwatch__ = True
    return step  # type: ignore[no-any-return]


def _rest(cell: Any, original: Any) -> None:
    """Have what is in the cell, which stands for this step, only count while it rests."""
    _core.rest_cell(cell, _core.stepped(original))


def _make_hook(original: Any) -> Callable[..., Any]:
    """torch puts its own function around step() of every class of which there is an instance.

    Ours goes inside: what torch or the program make of that function later, they make of both.
    """

    def profile_hook_step(function: Any) -> Any:
        try:
            step = _make_step(function)
        except Exception as error:
            _notes.note_once(f"an optimizer is not watched: {type(error).__name__}: {error}")
            return original(function)
        made = original(step)
        for cell in getattr(made, "__closure__", None) or ():
            if cell.cell_contents is step:
                _rest(cell, function)
        return made

    return profile_hook_step


def _subclasses(kind: type) -> Iterator[type]:
    below: type
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def _put_inside(kind: type) -> None:
    """Watch steps of a class that had an instance before we came."""
    step = vars(kind).get("step")
    while step is not None and not getattr(step, "__stepwatch__", False):
        names = getattr(getattr(step, "__code__", None), "co_freevars", ())
        if "func" in names and getattr(step, "hooked", False):
            _core.train_optimizer()
            cell = step.__closure__[names.index("func")]
            if not getattr(cell.cell_contents, "__stepwatch__", False):
                _cells.append((cell, cell.cell_contents))
                cell.cell_contents = _make_step(cell.cell_contents)
                _rest(cell, _cells[-1][1])
            return
        step = getattr(step, "__wrapped__", None)


def watch(optimizer: Any) -> None:
    """Watch steps of an optimizer that somebody built without torch's knowledge."""
    kind = type(optimizer)
    _core.train_optimizer()
    if isinstance(optimizer, _torch.optim.Optimizer):
        _fresh.add(optimizer)
        for base in kind.__mro__:
            _put_inside(base)
    elif "step" in vars(kind):
        torch_modules.names(kind, _sight)
        _patch.replace(kind, "step", _make_step)


def _make_init(original: Any) -> Callable[..., Any]:
    built, aside = _core.module_built, _core.train_aside
    traces, compiler = _dynamo.compiling(_torch)

    def optimizer_init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not (traces() or compiler._is_compiling_flag) and not aside():
            built(self)
            _core.train_optimizer()
            _fresh.add(self)

    return optimizer_init


# --- Autocast and gradient scaling -----------------------------------------------------------

# What has been put: (what, device, type, number of the recording).
_put: set[tuple[Any, ...]] = set()


def _make_autocast_enter(original: Any) -> Callable[..., Any]:
    traces, compiler = _dynamo.compiling(_torch)
    recording = _core.recording_number

    def autocast_enter(self: Any) -> Any:
        result = original(self)
        if not (traces() or compiler._is_compiling_flag):
            key = (self.device, self.fast_dtype, self._enabled, recording())
            if key not in _put and key[3]:
                _put.add(key)
                kind = str(self.fast_dtype).rpartition(".")[2] if self._enabled else "off"
                setting("amp", str(self.device), kind)
        return result

    return autocast_enter


def _make_scaler_step(around: Any) -> Callable[[Any], Callable[..., Any]]:
    make = timed(around, _torch)
    recording = _core.recording_number

    def make_step(original: Any) -> Callable[..., Any]:
        inner = make(original)

        def scaler_step(self: Any, *args: Any, **kwargs: Any) -> Any:
            key = ("grad_scaler", recording())
            if key not in _put and key[1]:
                _put.add(key)
                setting("grad_scaler", "enabled", str(getattr(self, "_enabled", "")))
            return inner(self, *args, **kwargs)

        return scaler_step

    return make_step


# --- Installing ------------------------------------------------------------------------------


def _install_optimizers(torch: Any) -> None:
    optimizer = torch.optim.Optimizer
    torch_modules.names(optimizer, _sight)
    hook = "profile_hook_step"
    if not _patch.replace(optimizer, hook, _make_hook):
        _notes.note_once(
            "steps of optimizers are not recorded: this torch has no Optimizer." + hook
        )
    for kind in _subclasses(optimizer):
        _put_inside(kind)
    _replace(torch, optimizer, "__init__", _make_init)
    around = _core.section("zero_grad", "zero_grad")
    zero_grad = timed_after_validation(around, torch)
    _replace(torch, optimizer, "zero_grad", zero_grad)
    _replace(torch, torch.nn.Module, "zero_grad", zero_grad)


def _install_others(torch: Any) -> None:
    scheduler = timed(_core.section("lr_scheduler", "optimizer"), torch)
    base = torch.optim.lr_scheduler.LRScheduler
    for kind in (base, *_subclasses(base)):
        if "step" in vars(kind):
            _replace(torch, kind, "step", scheduler)
    around = _core.section("grad_scaler", "optimizer")
    scaler = torch.amp.GradScaler
    for name in ("scale", "unscale_", "update"):
        _replace(torch, scaler, name, timed(around, torch))
    _replace(torch, scaler, "step", _make_scaler_step(around))
    clip = timed(_core.section("clip_grad", "optimizer"), torch)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        for owner in (torch.nn.utils.clip_grad, torch.nn.utils):
            original: Any = getattr(owner, name, None)
            if getattr(original, "__stepwatch__", False):
                continue
            if _replace(torch, owner, name, clip):
                _dynamo.see_through(getattr(owner, name), original)
    _replace(torch, torch.amp.autocast_mode.autocast, "__enter__", _make_autocast_enter)


def _replace(torch: Any, owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> bool:
    if not _patch.replace(owner, name, make):
        return False
    _dynamo.skip(torch, getattr(owner, name))
    return True


def install(torch: Any) -> None:
    """Watch optimizers, and what goes with them."""
    global _torch
    _torch = torch
    _dynamo.keep_out(torch, setting)
    _steps.watch(_put_threads, _STEPS_UNTIL_OWNERS)
    _install_optimizers(torch)
    try:
        _install_others(torch)
    except Exception as error:
        _notes.note_once(
            f"part of the optimizer's work is not seen: {type(error).__name__}: {error}"
        )


def remove() -> None:
    """Put torch's cells back; what was replaced is put back by _patch."""
    while _cells:
        cell, before = _cells.pop()
        cell.cell_contents = before
    for known in (_names, _fresh, _several, _put):
        known.clear()
