"""Keep torch.compile from noticing the functions that stand in for torch's own."""

from __future__ import annotations

import sys
from types import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


_kept_out: set[CodeType] = set()


def _strategy(torch: Any, code: CodeType, below: bool) -> None:
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        action = frames._FrameAction
        inside = action.DEFAULT if below else action.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, inside))
    elif hasattr(frames, "skip_code"):
        frames.skip_code(code)


def skip(torch: Any, function: Callable[..., Any]) -> None:
    """Have dynamo run calls of this function as they are, and look only at what they call.

    Where a compiled program breaks off, dynamo compiles the functions that are called there, one
    by one. Those of torch that ours stand in for it leaves alone, and so it must ours.
    """
    _strategy(torch, function.__code__, below=True)


def keep_out(torch: Any, *functions: Callable[..., Any]) -> None:
    """Have dynamo look neither at these functions nor at what they call."""
    for function in functions:
        _kept_out.add(function.__code__)
        _strategy(torch, function.__code__, below=False)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def skip_all(torch: Any) -> None:
    """Skip every function of the adapters: any of them may be called between compiled code."""
    package = __package__ + "."
    for module in [m for name, m in list(sys.modules.items()) if name.startswith(package)]:
        for value in list(vars(module).values()):
            members = vars(value).values() if isinstance(value, type) else (value,)
            for function in members:
                function = getattr(function, "__func__", function)
                # What others have made of a function bears its name, and has code of theirs.
                if (
                    isinstance(function, FunctionType)
                    and function.__code__.co_filename == module.__file__
                ):
                    for code in _codes(function.__code__):
                        if code not in _kept_out:
                            _strategy(torch, code, below=True)


def settle() -> None:
    """Have dynamo look up now what it knows by identity, where it is there before us.

    It does so in parts, some when it is imported and some when it first compiles; both shall find
    the same functions.
    """
    variables = sys.modules.get("torch._dynamo.variables.torch")
    rules = sys.modules.get("torch._dynamo.trace_rules")
    kind = getattr(variables, "TorchInGraphFunctionVariable", None)
    for find in (
        getattr(rules, "get_torch_obj_rule_map", None),
        getattr(kind, "_get_handlers", None),
    ):
        if find is not None:
            find()


def is_told(torch: Any) -> bool:
    """Tell whether this dynamo knows what the functions are that stand-ins ask first.

    It is told when it is imported, see :mod:`stepwatch._torch_compile`.
    """
    return hasattr(torch.compiler, "substitute_in_graph")  # There since the tables are as they are.


class _Never:
    _is_compiling_flag = False


def compiling(torch: Any) -> tuple[Callable[[], bool], Any]:
    """Return what tells that dynamo traces, and where torch keeps that something compiles.

    Together they are ``torch.compiler.is_compiling``, which takes three calls to say so. Dynamo
    knows the first by identity, and in its eyes the second is never looked at.
    """
    traces = getattr(torch.compiler, "is_dynamo_compiling", None)
    if traces is None or not hasattr(torch.compiler, "_is_compiling_flag"):
        return torch.compiler.is_compiling, _Never
    return traces, torch.compiler


def see_through(function: Callable[..., Any], original: Callable[..., Any]) -> None:
    """Have dynamo take the original wherever it meets this function.

    It knows many of torch's functions by identity and puts them into its graphs as they are.
    """
    function._torchdynamo_inline = original  # type: ignore[attr-defined]
