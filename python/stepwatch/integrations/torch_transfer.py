"""torch: where the program waits for a device, and copies to it and from it.

The methods of tensors are C's, and what stands in for them is too (python/ext/tensor_calls.c): a
Python function in their place is code that torch.compile sees, compiles and warns about. Without
an accelerator there is nothing to wait for, and nothing is replaced.
"""

from __future__ import annotations

import os
import sys

from stepwatch import _core
from stepwatch.integrations import _dynamo, _notes, _patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SYNC = _core.section("sync", "sync")
_VALUE = 1  # the kind of a wait: the host asks for a value

# Device nodes of accelerators, by the attribute of torch.version that says torch could use them.
_NODES = {
    "cuda": ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"),
    "hip": ("/dev/kfd", "/dev/dxg"),
    "xpu": ("/dev/dri",),
}


def install(torch: Any, at_once: bool = False) -> None:
    """Watch what may wait; ``at_once``: whether or not there is an accelerator."""
    if at_once or has_accelerator(torch):
        _watch_tensors(torch)
        _watch_synchronize(torch)


def remove() -> None:
    """Forget nothing: what was put in place is taken back by ``_patch``."""


def has_accelerator(torch: Any) -> bool:
    """Tell whether tensors may lie elsewhere than in host memory, without starting a driver.

    To ask torch would initialise CUDA, which a program that forks must not find done.
    """
    version = torch.version
    if sys.platform == "darwin":
        return True
    return any(
        getattr(version, name, None) and any(map(os.path.exists, nodes))
        for name, nodes in _NODES.items()
    )


def _watch_tensors(torch: Any) -> None:
    base = torch._C.TensorBase
    try:
        made = _core.tensor_calls(
            base,
            torch.device,
            torch._C._has_torch_function_unary,
            base.is_cpu,
            base.is_meta,
        )
    except (AttributeError, TypeError) as error:
        _notes.note_once(f"waits for the device are not recorded with this torch: {error}")
        return
    before = {name: getattr(torch.Tensor, name) for name in made}
    for name, descriptor in made.items():
        # Somebody else's, or a torch that has it in Python, stays as it is.
        if type(before[name]) is type(descriptor):
            _patch.put(torch.Tensor, name, descriptor)
    _tell_torch(torch, before, made)


def _tell_torch(torch: Any, before: dict[str, Any], made: dict[str, Any]) -> None:
    """Let torch know the new descriptors where it knew the old ones."""
    # Parameters without a shape yet allow a list of methods.
    mixin = getattr(sys.modules.get("torch.nn.parameter"), "UninitializedTensorMixin", None)
    allowed = getattr(mixin, "_allowed_methods", None)
    if isinstance(allowed, list):
        allowed.extend(made[name] for name in made if before[name] in allowed)
    # Tables of methods that are made once, when first asked for.
    tables = [
        (torch.overrides, "get_ignored_functions"),
        (torch.overrides, "get_testing_overrides"),
        (torch.overrides, "_get_overridable_functions"),
        (torch.overrides, "get_tensor_methods"),
        (sys.modules.get("torch._dynamo.trace_rules"), "get_tensor_method"),
    ]
    for module, name in tables:
        clear = getattr(getattr(module, name, None), "cache_clear", None)
        if clear is not None:
            clear()


def _watch_synchronize(torch: Any) -> None:
    is_compiling = torch.compiler.is_dynamo_compiling

    def timed(name: str) -> Callable[[Any], Callable[..., Any]]:
        def make(original: Any) -> Callable[..., Any]:
            def synchronize(*args: Any, **kwargs: Any) -> Any:
                if is_compiling():
                    return original(*args, **kwargs)
                begin = _core.now()
                with _SYNC:
                    result = original(*args, **kwargs)
                _core.waited(name, _VALUE, begin)
                return result

            _dynamo.skip(torch, synchronize)
            return synchronize

        return make

    for place in ("cuda", "xpu", "mps", "accelerator"):
        module = getattr(torch, place, None)
        if module is not None:
            _patch.replace(module, "synchronize", timed(f"torch.{place}.synchronize"))
            for kind in ("Stream", "Event"):
                owner = vars(module).get(kind)
                if isinstance(owner, type) and "synchronize" in vars(owner):
                    _patch.replace(owner, "synchronize", timed(f"{kind}.synchronize"))
