"""Loops and ``with`` statements of a function as blocks of their own.

The function is compiled again from its source, with each outermost loop and ``with`` statement in a
block. Everything else stays: lines, names, defaults, and the variables that it shares.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
from types import CellType, CodeType, FunctionType

from stepwatch.integrations._notes import note_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BLOCK = "__stepwatch_block__"
_LONGEST = 48
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WITHS = (ast.With, ast.AsyncWith)


def with_inner_blocks(function: Any, section: Callable[[str], Any]) -> Any:
    """Return the function with blocks inside; as it is, and a note, where that cannot be."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(with_inner_blocks(function.__func__, section))
    try:
        if type(function) is not FunctionType or hasattr(function, "__wrapped__"):
            raise ValueError("another decorator is inside")
        return _compiled(function, section)
    except (OSError, SyntaxError, TypeError, ValueError) as error:
        name = getattr(function, "__qualname__", repr(function))
        note_once(f"{name} has no inner blocks: {str(error).rstrip('.')}.")
        return function


def _compiled(function: FunctionType, section: Callable[[str], Any]) -> FunctionType:
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    made = tree.body[0]
    if not isinstance(made, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise ValueError("it is no def statement")
    ast.increment_lineno(tree, first - 1)
    made.decorator_list = []
    made.body = [_Wrapper().visit(statement) for statement in made.body]
    code = _code_of(function, made)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[_BLOCK] = CellType(section)
    closure = tuple(cells[name] for name in code.co_freevars)
    again = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    again.__kwdefaults__ = function.__kwdefaults__
    again.__qualname__, again.__module__ = function.__qualname__, function.__module__
    again.__doc__, again.__annotations__ = function.__doc__, function.__annotations__
    again.__dict__.update(function.__dict__)
    return again


def _code_of(function: FunctionType, made: ast.FunctionDef | ast.AsyncFunctionDef) -> CodeType:
    """Compile the function where it sees the variables that it shares, and its class."""
    shared = [name for name in function.__code__.co_freevars if name != "__class__"]
    place = function.__qualname__.split(".")[-2:-1]
    inside: Any = made
    if place and place[0].isidentifier():  # Private names are those of the class.
        inside = ast.ClassDef(place[0], [], [], [made], [])
        inside.type_params = []
    around = ast.parse(f"def around({', '.join([*shared, _BLOCK])}): pass")
    outer: Any = around.body[0]
    outer.body = [inside]
    ast.fix_missing_locations(around)
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    code = compile(around, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    found = _search(code, function.__name__)
    if found is None:
        raise ValueError("its code was not found again")
    return found


def _search(code: CodeType, name: str) -> CodeType | None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == name:
                return constant
            found = _search(constant, name)
            if found is not None:
                return found
    return None


class _Wrapper(ast.NodeTransformer):
    """Puts the outermost loops and ``with`` statements into blocks."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (*_LOOPS, *_WITHS)):
            return _in_block(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return node  # It runs when it is called.
        return self.generic_visit(node)


def _in_block(statement: Any) -> ast.stmt:
    call = ast.Call(ast.Name(_BLOCK, ast.Load()), [ast.Constant(_title(statement))], [])
    around = ast.With([ast.withitem(call)], [statement])
    for node in (around, call, call.func, call.args[0]):
        ast.copy_location(node, statement)
    return around


def _title(statement: Any) -> str:
    """Return what the statement says, and in which line: two that are alike stay apart."""
    if isinstance(statement, ast.While):
        text = f"while {ast.unparse(statement.test)}"
    elif isinstance(statement, _LOOPS):
        text = f"for {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}"
    else:
        text = "with " + ", ".join(ast.unparse(item.context_expr) for item in statement.items)
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return f"{text} (line {statement.lineno})"
