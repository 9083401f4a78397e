"""Losses and backward passes of torch; on some steps, how long the backward of each module took."""

from __future__ import annotations

import sys
from bisect import bisect_right
from types import FunctionType

from stepwatch import _core
from stepwatch.integrations import _dynamo, _notes, _patch, torch_modules
from stepwatch.integrations._settings import setting
from stepwatch.integrations._stand_in import Hooks, stand_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Functions of torch.nn.functional that compute a loss.
LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)

# A graph with more nodes than this is not looked at.
MOST_NODES = 50_000

_torch: Any = None


# --- The backward of modules --------------------------------------------------------------


class _Nodes:
    """Looks at one backward: when autograd begins each node, and so how long each took.

    Autograd numbers nodes as the forward makes them, so the number tells in which call of which
    module a node was made. Nothing but the time is looked at, and nothing is given back.
    """

    def __init__(self, calls: list[tuple[int, int, int, int]], tensors: Iterable[Any]) -> None:
        self._calls = calls
        self._began: list[tuple[int, int]] = []
        self._hooks: list[Any] = []
        began, now = self._began.append, _core.now

        def hook_of(number: int) -> Callable[[Any], None]:
            def hook(_: Any) -> None:
                began((now(), number))

            return hook

        _dynamo.keep_out(_torch, hook_of(0))  # They all have the same code.

        names = set()
        waiting = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        seen = set(waiting)
        while waiting and len(seen) < MOST_NODES:
            node = waiting.pop()
            following = node.next_functions
            # Where a gradient ends up is the last thing in a module; such nodes have no number.
            if following:
                names.add(node.name())
                self._hooks.append(node.register_prehook(hook_of(node._sequence_nr())))
            for other, _ in following:
                if other is not None and other not in seen:
                    seen.add(other)
                    waiting.append(other)

        self._names = len(names)

    def end(self) -> None:
        """Take the hooks away and add up."""
        end = _core.now()
        for hook in self._hooks:
            hook.remove()
        setting("autograd", "nodes", len(self._began))
        setting("autograd", "functions", self._names)
        firsts = [call[2] for call in self._calls]
        spent: dict[int, int] = {}
        ends = [*(began for began, _ in self._began[1:]), end]
        for (began, number), until in zip(self._began, ends):
            at = bisect_right(firsts, number) - 1
            counted = set()
            while at >= 0:
                module, parent, _, last = self._calls[at]
                if number < last and module not in counted:
                    counted.add(module)
                    spent[module] = spent.get(module, 0) + until - began
                at = parent
        for module, ticks in spent.items():
            about = torch_modules.known[module]
            if about.keys:
                about.backward_ticks += ticks
                about.backward_calls += 1
                about.put()


def _look(calls: list[tuple[int, int, int, int]], tensors: Any) -> _Nodes | None:
    """Look at the backward of these tensors, after these calls of modules."""
    try:
        compiled = sys.modules.get("torch._dynamo.compiled_autograd")
        if getattr(compiled, "compiled_autograd_enabled", False):
            return None  # It would compile the hooks.
        if isinstance(tensors, _torch.Tensor):
            tensors = (tensors,)
        return _Nodes(calls, (t for t in tensors if isinstance(t, _torch.Tensor)))
    except Exception as error:
        _notes.note_once(f"there are no backward times of modules: {error}")
        return None


def _looked(nodes: _Nodes) -> None:
    try:
        nodes.end()
    except Exception as error:
        _notes.note_once(f"there are no backward times of modules: {error}")


# --- What stands in for torch's functions -------------------------------------------------


def _tracing() -> bool:
    """Tell whether a compiler is tracing: then nothing is computed."""
    context: Any = getattr(getattr(_torch, "_guards", None), "TracingContext", None)
    return context is not None and context.try_get() is not None


def _make_loss(name: str, namespace: dict[str, Any]) -> Callable[[Any], Callable[..., Any]]:
    section = _core.section(name, "loss")
    hooks = Hooks(_core.loss_enter, _core.loss_leave, _core.loss_failed, section, rests=True)
    # torch.jit.script compiles the source of what it finds here, which is that of the original,
    # with the names that the function knows.
    return lambda original: stand_in(original, hooks, _torch, namespace)


def install(torch: Any) -> None:
    """Watch losses and backward passes."""
    global _torch
    _torch = torch
    _dynamo.keep_out(torch, _look, _looked, _tracing)
    dispatch = sys.modules.get("torch.utils._python_dispatch")
    _core.module_backward(
        modes=getattr(torch._C, "_len_torch_dispatch_stack", None),
        flags=vars(dispatch) if dispatch is not None else {},
        tracing=_tracing,
        look=_look,
        looked=_looked,
    )
    around = _core.backward_enter, _core.backward_leave, _core.backward_failed
    backward = Hooks(*around, rests=True, backward=True)
    # A tensor's backward() calls torch.autograd's, which is enough, where it is as expected.
    code = getattr(torch.Tensor.backward, "__code__", None)
    called = getattr(code, "co_names", ())
    through = "autograd" in called and "backward" in called
    for owner, name in (
        *(() if through else ((torch.Tensor, "backward"),)),
        (torch.autograd, "backward"),
        (torch.autograd, "grad"),
    ):
        _patch.replace(owner, name, lambda original: stand_in(original, backward, torch))
    functional = torch.nn.functional
    for name in LOSSES:
        original = getattr(functional, name, None)
        # One that is not Python is known to torch.jit by what it is.
        if not isinstance(original, FunctionType):
            continue
        _patch.replace(functional, name, _make_loss(name, vars(functional)))


def remove() -> None:
    """What was replaced is put back by _patch."""
    _core.module_backward()
