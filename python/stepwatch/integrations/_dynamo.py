"""Keep torch.compile from noticing the functions that stand in for torch's own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_functions: list[Any] = []


def skip(torch: Any, function: Callable[..., Any]) -> None:
    """Have dynamo run calls of this function as they are, and look only at what they call.

    Where a compiled program breaks off, dynamo compiles the functions that are called there, one
    by one. Those of torch that ours stand in for it leaves alone, and so it must ours.
    """
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    code = function.__code__
    if hasattr(frames, "skip_code"):  # up to torch 2.6
        frames.skip_code(code)
    elif hasattr(frames, "set_code_exec_strategy"):
        action = frames._FrameAction
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))


def see_through(function: Callable[..., Any], original: Callable[..., Any]) -> None:
    """Have dynamo take the original wherever it meets this function.

    It knows many of torch's functions by identity and puts them into its graphs as they are.
    """
    function._torchdynamo_inline = original  # type: ignore[attr-defined]
