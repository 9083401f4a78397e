"""Calls of torch modules: names, phases, what a model consists of and where it was built."""

from __future__ import annotations

import math
import weakref

from stepwatch import _core
from stepwatch.integrations import _dynamo, _notes, _patch
from stepwatch.integrations._settings import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SITE, MODULE, SETTING = 8, 9, 14
SITE_OPTIMIZER, SITE_MODEL = 2, 3
# As in python/ext/modules.h. The first two are also those of MODULE rows.
ROOT, LOSS, TRAINED, ONCE, PART = 1, 2, 4, 8, 16

_torch: Any = None


class Known:
    """What is known of a module, by the name of its section."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.flags = 0
        self.row = 0  # its handle
        self.recording = 0
        self.keys: tuple[int | str, ...] = ()
        self.counts = (0, 0, 0)
        self.backward_ticks = 0
        self.backward_calls = 0

    def put(self) -> None:
        """Put what is known into the trace."""
        recording = _core.recording_number()
        if recording != self.recording:
            self.recording = recording
            self.row = self.backward_ticks = self.backward_calls = 0
        values = (*self.counts, self.backward_ticks, self.backward_calls)
        self.row, _ = _core.put_row(self.row, MODULE, self.flags & 3, self.keys, values)


# By number. Number 0 is nobody.
known: list[Known] = [Known("", 0)]
_by_name: dict[str, Known] = {}
# Modules whose parameters have no size yet.
_lazy: list[weakref.ref[Any]] = []
# Models that have a name, by that name.
roots: dict[str, weakref.ref[Any]] = {}


def _named(name: str) -> Known:
    found = _by_name.get(name)
    if found is None:
        found = _by_name[name] = Known(name, len(known))
        known.append(found)
    return found


# --- What a module is ---------------------------------------------------------------------


def _is_loss(module: Any) -> bool:
    """Tell whether calls of the module compute a loss.

    Those that torch has are known by their base class, others by their name, unless they have
    something to train: then they are part of a model.
    """
    if isinstance(module, _torch.nn.modules.loss._Loss):
        return True
    name = type(module).__name__
    return (
        name.endswith(("Loss", "Criterion"))
        and not name.endswith("WithLoss")
        and not any(parameter.requires_grad for parameter in module.parameters())
    )


def _inside(module: Any) -> Any:
    """Return what a wrapper wraps (DDP, DataParallel, torch.compile), else None."""
    kind = type(module)
    if kind.__name__ == "OptimizedModule":
        return getattr(module, "_orig_mod", None)
    if kind.__module__.startswith("torch.") and kind.__name__ in (
        "DistributedDataParallel",
        "FullyShardedDataParallel",
        "DataParallel",
    ):
        return getattr(module, "module", None)
    return None


def _is_lazy(module: Any) -> bool:
    """Tell whether its parameters get their sizes with the first batch only."""
    is_lazy = _torch.nn.parameter.is_lazy
    return any(is_lazy(parameter) for parameter in module._parameters.values())


def _census(module: Any) -> tuple[tuple[int, int, int], str]:
    """Return (elements, bytes, elements that are trained) of its own parameters, and their type."""
    elements = size = trained = 0
    kinds = set()
    for parameter in module._parameters.values():
        if parameter is None:
            continue
        count = parameter.numel()
        elements += count
        size += count * parameter.element_size()
        trained += count if parameter.requires_grad else 0
        kinds.add(str(parameter.dtype).rpartition(".")[2])
    return (elements, size, trained), ",".join(sorted(kinds))


def count_lazy() -> None:
    """Put the rows of lazy modules, which have their parameters by now."""
    modules = [module for holder in _lazy if (module := holder()) is not None]
    _lazy.clear()
    for module in modules:
        before = _core.module_known(module)
        if before is not None and not _is_lazy(module):
            _count(module, known[before[0]])


def _count(module: Any, about: Known, site: int = 0) -> None:
    about.counts, kind = _census(module)
    about.keys = (about.name, type(module).__name__, kind, site)
    about.put()
    kernel = getattr(module, "kernel_size", None)
    if isinstance(kernel, tuple) and about.counts[0]:
        setting("kernel", about.name, math.prod(kernel))


def site_row(what: int, place: tuple[str, int, str] | None, kind: str) -> int:
    """Put where something was built into the trace; return the row's index + 1, 0 if unknown."""
    if place is None:
        return 0
    file, line, function = place
    handle, index = _core.put_row(0, SITE, 0, (what, file, line, kind), (function,))
    return index + 1 if handle else 0


# --- Names --------------------------------------------------------------------------------


def _root_name(module: Any) -> str:
    """Return a name for a model: that of its class, numbered while others of it live."""
    base = type(module).__name__
    name, number = base, 1
    while True:
        holder = roots.get(name)
        other = holder() if holder is not None else None
        if other is None or other is module:
            break
        number += 1
        name = f"{base} {number}"
    roots[name] = weakref.ref(module)
    return name


def _add(module: Any, name: str, flags: int, site: int = 0) -> None:
    """Time calls of the module under this name, and put its row."""
    about = _named(name)
    about.flags = flags
    if _is_lazy(module):
        _lazy.append(weakref.ref(module))
    else:
        _count(module, about, site)
    if flags & LOSS:
        section = _core.section(name, "loss")
        _core.module_add(module, section, None, None, about.number, flags)
    elif flags & PART:
        _core.module_add(module, _core.section(name), None, None, about.number, flags)
    else:
        _core.module_add(
            module,
            _core.section(name),
            _core.section(name, "forward"),
            _core.section(name, "validation"),
            about.number,
            flags,
        )


def name_model(module: Any) -> None:
    """Name a module that is called from outside of any other, and all its parts."""
    _core.module_parts(_core.option("modules") not in ("false", "off", "0"))
    before = _core.module_known(module)
    if before is not None and before[1] & PART and before[2]:
        # A part that is called by itself needs a phase.
        about = known[before[0]]
        _add(module, about.name, about.flags & ~PART, _site_of(about))
        return
    inner, wrappers = module, []
    while (next_inner := _inside(inner)) is not None:
        wrappers.append(inner)
        inner = next_inner
    for wrapper in wrappers:
        _add(wrapper, type(wrapper).__name__, 0)
    if _is_loss(inner):
        _add(inner, type(inner).__name__, LOSS)
        return
    before = _core.module_known(inner)
    root = known[before[0]].name if before is not None else _root_name(inner)
    site = site_row(SITE_MODEL, _core.module_site(inner), type(inner).__name__)
    stateless = not inner._modules and not inner._parameters
    _add(inner, root, 0 if stateless else ROOT, site)
    for path, part in inner.named_modules():
        if part is inner:
            continue
        before = _core.module_known(part)
        if before is None:
            _add(part, f"{root}.{path}", LOSS if _is_loss(part) else PART)
        elif not before[2]:
            about = known[before[0]]
            _add(part, about.name, about.flags, _site_of(about))
    _put_still(inner, root)


def _draws(module: Any, modes: bool) -> bool | None:
    """Tell whether a module may give something else each time it is given the same.

    None: it never does, whatever its mode. Its parts are not meant; without `modes` their mode may
    be another one soon.
    """
    kind = type(module).__name__
    chances: list[Any] = []
    for key, value in vars(module).items():
        if "drop" in key and isinstance(value, float):
            chances.append(value)
    if "Drop" in kind or "StochasticDepth" in kind:
        chances.append(getattr(module, "p", getattr(module, "drop_prob", None)))
    elif "BatchNorm" in kind:
        chances.append(None)
        if getattr(module, "running_mean", None) is None:
            return True
    if not chances:
        return None
    return any(chance != 0 for chance in chances) and (module.training or not modes)


def _look_still(
    module: Any, name: str, modes: bool, seen: dict[int, tuple[bool, bool, bool]]
) -> tuple[bool, bool, bool, list[str]]:
    """Look for frozen parts that could drop out or go by their batch, and do neither.

    Return whether the module is one that does neither, whether it could, whether it has parameters,
    and names of the largest of its parts that have them.
    """
    if id(module) in seen:
        return (*seen[id(module)], [])
    seen[id(module)] = (False, False, False)  # while it is being looked at
    own = _draws(module, modes)
    parameters = [p for p in module._parameters.values() if p is not None]
    still = not own and not any(parameter.requires_grad for parameter in parameters)
    could, has = own is not None, bool(parameters)
    kept = []
    for child, part in module._modules.items():
        if part is not None:
            below = _look_still(part, f"{name}.{child}", modes, seen)
            still, could, has = still and below[0], could or below[1], has or below[2]
            kept += below[3]
    if still and could and has:
        kept = [name]
    seen[id(module)] = (still, could, has)
    return still, could, has, kept


def _put_still(root: Any, name: str) -> None:
    """Put the frozen parts of a model that could drop out or go by their batch, and do neither.

    In a validation modes say nothing of the training, unless nothing of the model learns.
    """
    modes = root.training or not any(parameter.requires_grad for parameter in root.parameters())
    for still in _look_still(root, name, modes, {})[3]:
        setting("still", still, 1)


def _site_of(about: Known) -> int:
    return int(about.keys[3]) if len(about.keys) > 3 else 0


def _name_kind(kind: type) -> None:
    """Name modules that are no part of the model that calls them: by their class."""
    graph_module = getattr(getattr(_torch, "fx", None), "GraphModule", ())
    if issubclass(kind, graph_module):
        _core.module_add(kind, None, None, None, 0, ONCE)
        return
    about = _named(kind.__name__)
    loss = issubclass(kind, _torch.nn.modules.loss._Loss)
    section = _core.section(kind.__name__, "loss") if loss else _core.section(kind.__name__)
    _core.module_add(kind, section, None, None, about.number, ONCE | (LOSS if loss else 0))


# --- What the extension asks for ----------------------------------------------------------

# Those that name other objects than modules: (type, function).
_others: list[tuple[type, Callable[[Any], None]]] = []


def names(kind: type, function: Callable[[Any], None]) -> None:
    """Have objects of this type named by this function."""
    _others.append((kind, function))


def _sight(module: Any, outermost: bool) -> None:
    """Name what is called for the first time in this recording."""
    try:
        if _torch._C._get_tracing_state() is not None:
            return  # What is looked at would be part of the trace.
        for kind, function in _others:
            if isinstance(module, kind):
                function(module)
                return
        if not outermost or getattr(module, "_is_replica", False):
            _name_kind(type(module))
        else:
            # Modes of the program must not see what is looked at.
            with _torch._C.DisableTorchFunction():
                name_model(module)
    except Exception as error:
        _failed(module, error)


def _failed(module: Any, error: Exception) -> None:
    what = type(module).__name__
    _notes.note_once(f"calls of {what} are not recorded: {type(error).__name__}: {error}")
    try:
        _core.module_add(module, None, None, None, 0, 0)
    except Exception as again:
        _notes.note_once(f"{what} cannot be watched: {type(again).__name__}: {again}")


def _trained(module: Any) -> None:
    """Mark a module that is being trained, and its parts that are."""
    try:
        _core.module_trained([part for part in module.modules() if part.training])
    except Exception as error:
        _notes.note_once(f"training is not told from validation: {error}")


def _asks(module: Any) -> bool:
    """Tell whether a part of the module was trained."""
    try:
        for part in module.modules():
            about = _core.module_known(part)
            if about is not None and about[1] & TRAINED:
                return True
    except Exception as error:
        _notes.note_once(f"training is not told from validation: {error}")
    return False


# --- What stands in for torch's functions -------------------------------------------------


def _make_init(init: Any) -> Callable[..., Any]:
    built = _core.module_built
    traces, compiler = _dynamo.compiling(_torch)

    def module_init(self: Any, *args: Any, **kwargs: Any) -> None:
        if not (traces() or compiler._is_compiling_flag):
            built(self)
        init(self, *args, **kwargs)

    return module_init


def install(torch: Any) -> None:
    """Watch calls of modules."""
    global _torch
    _torch = torch
    _core.module_hooks(
        sight=_sight,
        trained=_trained,
        asks=_asks,
        grad=torch.is_grad_enabled,
        task=getattr(torch._C, "_current_graph_task_id", None),
        sequence=getattr(torch.autograd, "_get_sequence_nr", None),
    )
    _dynamo.keep_out(torch, _sight, _trained, _asks)
    module = torch.nn.Module
    _core.module_slots(module, torch.compiler)
    if _patch.replace(module, "__init__", _make_init):
        _dynamo.skip(torch, module.__init__)


def remove() -> None:
    """Watch them no more; what was replaced is put back by _patch."""
    _core.module_slots_back()
    _core.module_hooks()
    _core.modules_forget()
    _others.clear()
    roots.clear()
