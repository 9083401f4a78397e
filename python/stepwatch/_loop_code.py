"""The loops of a code object, read from its bytecode.

A loop is what compilers call one: an edge that leads back to an instruction which everything in
the loop has to pass, and all instructions from which that edge is reached. That a jump goes
backward says nothing: Python puts handlers of exceptions at the end of the code, and they jump
back to where the program goes on.

Up to Python 3.11 loops cannot be watched from outside. There the code gets hooks: an iterable goes
through ``hook(iterable)`` before a ``for`` loop takes its iterator, and a ``while`` loop applies
``+hook`` in each iteration and where it is left. Lines, names, and the order of instructions stay.
"""

from __future__ import annotations

import gc
import opcode
import sys
import time

from stepwatch import _core, _line_hooks

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    Instruction = _line_hooks._Instruction

# Instructions that every loop has one of.
_BACK = frozenset(
    number
    for name, number in opcode.opmap.items()
    if name in ("JUMP_ABSOLUTE", "FOR_ITER") or ("JUMP" in name and "BACKWARD" in name)
) | frozenset(number for number in opcode.hasjabs)
_Function = type(lambda: None)
# Code longer than this is no loop of a training program, and would take long to look at.
_LONGEST = 60_000
_ENDS = frozenset(
    number
    for name, number in opcode.opmap.items()
    if name.startswith(("RETURN_VALUE", "RETURN_CONST", "RAISE", "RERAISE"))
)
_JUMPS = frozenset(
    number
    for name, number in opcode.opmap.items()
    if name.startswith(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"))
)
_FOR = opcode.opmap["FOR_ITER"]
_GET = opcode.opmap["GET_ITER"]
_PREFIX = opcode.EXTENDED_ARG
_UNPACK = frozenset(opcode.opmap[name] for name in ("UNPACK_SEQUENCE", "UNPACK_EX"))
# What one calls an item of a loop that takes one batch after another; not what one calls an epoch.
_STEPS = frozenset(("step", "iteration", "iter", "it", "batch", "minibatch", "update"))
# What a comprehension does with each item; the argument says how many loops it has, plus 1.
_ADDS = frozenset(opcode.opmap[name] for name in ("LIST_APPEND", "SET_ADD", "MAP_ADD"))


class Loop:
    """A loop: where it is, and all of its instructions, by their offsets in units of two bytes."""

    __slots__ = ("body", "exits", "heads", "is_for", "line", "outer", "steps", "units")

    def __init__(self, line: int, is_for: bool, heads: set[int], units: set[int]) -> None:
        self.line = line
        self.is_for = is_for
        self.heads = heads  # where an iteration begins; a while loop may have two places
        self.units = units
        self.body = max(heads)  # all ways into an iteration lead through this place
        self.exits: set[int] = set()  # branches that may lead out, other than that of the for
        self.outer = -1  # index of the loop around it
        self.steps = False  # its item is called a step, a batch …


class _Block:
    __slots__ = ("first", "instructions", "next", "past")

    def __init__(self, first: int) -> None:
        self.first = first
        self.instructions: list[Instruction] = []
        self.next: list[int] = []  # indexes of the blocks that may follow
        self.past = 0  # unit behind it


def _decode(code: CodeType) -> tuple[list[Instruction], list[Instruction]]:
    """Return the instructions of the code, with jumps tied to where they lead; and those together
    with the caches between them."""
    everything = _line_hooks._decode(code.co_code)
    found = [one for one in everything if one.op != 0]
    at = {one.old: one for one in found}
    end = found[-1].unit + 1 if found else 0
    for index, one in enumerate(found):
        if one.op in opcode.hasjabs:
            where = one.arg // _line_hooks._SCALE
        elif one.op in opcode.hasjrel:
            # What lies between two instructions are caches; jumps count from behind them.
            after = found[index + 1].old if index + 1 < len(found) else end
            step = one.arg // _line_hooks._SCALE
            where = after + (-step if _line_hooks._is_backward(one.op) else step)
        else:
            continue
        one.target = at[where]
    return found, everything


def _blocks(code: CodeType, instructions: list[Instruction]) -> list[_Block]:
    exceptions = _line_hooks._exceptions(code.co_exceptiontable) if _line_hooks._V311 else []
    leaders = {instructions[0].old}
    for one, after in zip(instructions, [*instructions[1:], instructions[-1]]):
        if one.target is not None:
            leaders.add(one.target.old)
        if one.target is not None or one.op in _ENDS:
            leaders.add(after.old)
    for start, end, target, _depth in exceptions:
        leaders.update((start, end, target))
    blocks: list[_Block] = []
    for one in instructions:
        if one.old in leaders:
            blocks.append(_Block(one.old))
        blocks[-1].instructions.append(one)
    index_of = {block.first: index for index, block in enumerate(blocks)}
    for index, block in enumerate(blocks):
        last = block.instructions[-1]
        block.past = blocks[index + 1].first if index + 1 < len(blocks) else last.unit + 1
        if last.target is not None:
            block.next.append(index_of[last.target.old])
        if last.op not in _ENDS and last.op not in _JUMPS and index + 1 < len(blocks):
            block.next.append(index + 1)
        for start, end, target, _depth in exceptions:
            if start <= block.first < end:
                block.next.append(index_of[target])
    return blocks


def _dominators(blocks: list[_Block]) -> tuple[list[int], list[list[int]]]:
    """Return for each block the set (of bits) of those that all ways to it pass, 0 where there is
    no way; and the blocks before it."""
    before: list[list[int]] = [[] for _ in blocks]
    order: list[int] = []
    seen = {0}
    stack = [(0, iter(blocks[0].next))]
    while stack:
        index, following = stack[-1]
        for other in following:
            before[other].append(index)
            if other not in seen:
                seen.add(other)
                stack.append((other, iter(blocks[other].next)))
                break
        else:
            order.append(index)
            stack.pop()
    order.reverse()
    everything = (1 << len(blocks)) - 1
    found = [everything if index in seen else 0 for index in range(len(blocks))]
    found[0] = 1
    changed = True
    while changed:
        changed = False
        for index in order[1:]:
            common = everything
            for other in before[index]:
                common &= found[other]
            common |= 1 << index
            if common != found[index]:
                found[index] = common
                changed = True
    return found, before


def find(code: CodeType) -> list[Loop]:
    """Return the loops of the code, outer ones before inner ones."""
    return _find(code)[0]


def _find(code: CodeType) -> tuple[list[Loop], list[Instruction], list[_Block]]:
    """Return the loops, all instructions and caches, and the blocks they form."""
    if (
        len(code.co_code) > _LONGEST
        or _BACK.isdisjoint(code.co_code[::2])
        or code.co_name == "<genexpr>"
    ):
        return [], [], []
    instructions, everything = _decode(code)
    if not any(one.target is not None and one.target.old <= one.old for one in instructions):
        return [], everything, []
    blocks = _blocks(code, instructions)
    dominators, before = _dominators(blocks)
    lines = _line_hooks._unit_lines(code)
    members: dict[int, set[int]] = {}  # blocks of a loop, by the block it begins with
    line_of: dict[int, int] = {}
    for index, block in enumerate(blocks):
        for head in block.next:
            if not dominators[index] >> head & 1:
                continue
            last = block.instructions[-1]
            if last.target is None or last.target.old != blocks[head].first:
                continue  # An exception, or a block that falls into the next one.
            if "NO_INTERRUPT" in opcode.opname[last.op] or opcode.opname[last.op] == "SEND":
                continue  # The waiting of an await.
            inside = members.setdefault(head, {head})
            todo = [index]
            while todo:
                one = todo.pop()
                if one not in inside:
                    inside.add(one)
                    todo.extend(before[one])
            known = [
                line
                for line in (lines.get(last.unit), lines.get(blocks[head].instructions[0].unit))
                if line is not None
            ]
            if known:
                line_of[head] = min([line_of.get(head, known[0]), *known])
    merged: dict[object, tuple[set[int], set[int]]] = {}
    for head, inside in members.items():
        is_for = blocks[head].instructions[0].op == _FOR
        line = line_of.get(head, 0)
        # The two beginnings of a while loop lie on one line: that of the `while`.
        heads, units = merged.setdefault(
            ("for", head) if is_for else ("while", line), (set(), set())
        )
        heads.add(head)
        units.update(inside)
    loops = []
    for heads, inside in merged.values():
        first = min(heads)
        is_for = blocks[first].instructions[0].op == _FOR
        loop = Loop(
            min(line_of.get(head, 0) for head in heads),
            is_for,
            {blocks[head].first for head in heads},
            {unit for one in inside for unit in range(blocks[one].first, blocks[one].past)},
        )
        loop.steps = is_for and _counts_steps(code, blocks, first)
        if not is_for:
            loop.body = _body(loop, heads, inside, blocks, dominators, lines)
        for one in inside:
            last = blocks[one].instructions[-1]
            leaves = any(blocks[other].first not in loop.units for other in blocks[one].next)
            if last.target is not None and leaves and not (is_for and one == first):
                loop.exits.add(last.unit)
        loops.append(loop)
    loops.sort(key=lambda one: (-len(one.units), min(one.heads)))
    loops = _statements(loops, instructions)
    for index, loop in enumerate(loops):
        for outer in range(index - 1, -1, -1):
            if loop.units < loops[outer].units:
                loop.outer = outer
                break
    return loops, everything, blocks


def _counts_steps(code: CodeType, blocks: list[_Block], head: int) -> bool:
    """Tell whether what a for loop goes through is called a step, or something like it."""
    after = blocks[head].instructions[1:] or (blocks[head + 1 :] or blocks[:1])[0].instructions
    names = []
    for one in after[:4]:
        name = opcode.opname[one.op]
        if name in ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"):
            places = [one.arg >> 4, one.arg & 15][: 2 if name.endswith("STORE_FAST") else 1]
            names += [code.co_varnames[place] for place in places if place < len(code.co_varnames)]
        elif name == "STORE_FAST":
            names += code.co_varnames[one.arg : one.arg + 1]
        elif name in ("STORE_NAME", "STORE_GLOBAL"):
            names += code.co_names[one.arg : one.arg + 1]
        elif one.op not in _UNPACK and one.op != _PREFIX:
            break
    words = {word.rstrip("0123456789") for name in names for word in name.lower().split("_")}
    return not _STEPS.isdisjoint(word[:-1] if word[-1:] == "s" else word for word in words)


def _statements(loops: list[Loop], instructions: list[Instruction]) -> list[Loop]:
    """Return those that are no part of a comprehension: nobody trains in one."""
    parts: set[int] = set()
    for one in instructions:
        if one.op in _ADDS and one.arg > 1:
            around = [index for index, loop in enumerate(loops) if one.unit in loop.units]
            parts.update(around[1 - one.arg :])
    return [loop for index, loop in enumerate(loops) if index not in parts]


def _body(
    loop: Loop,
    heads: set[int],
    inside: set[int],
    blocks: list[_Block],
    dominators: list[int],
    lines: dict[int, int],
) -> int:
    """Return where the body of a while loop begins: behind the test, if it is at the beginning."""
    head = max(heads)
    if lines.get(blocks[head].first) != loop.line:
        return blocks[head].first
    ends = [one for one in inside if not heads.isdisjoint(blocks[one].next)]
    for one in sorted(inside):
        other_line = lines.get(blocks[one].first, loop.line) != loop.line
        if other_line and all(dominators[end] >> one & 1 for end in ends):
            return blocks[one].first
    return blocks[head].first


def table(
    code: CodeType,
) -> list[tuple[int, bool, int, tuple[int, ...], tuple[int, ...], bytes, bool]]:
    """Return the loops as the extension takes them: line, is it a for, index of the loop around
    it, beginnings, exits, a byte for each unit that says whether it belongs to the loop, and
    whether its item is called a step."""
    length = len(code.co_code) // 2
    result = []
    for loop in find(code):
        inside = bytearray(length)
        for unit in loop.units:
            inside[unit] = 1
        heads = set(loop.heads)
        if loop.is_for:
            # Jumps lead to the prefixes of a FOR_ITER that goes far; the branch is its own.
            unit = min(heads)
            while code.co_code[2 * unit] == _PREFIX:
                unit += 1
            heads.add(unit)
        result.append(
            (
                loop.line,
                loop.is_for,
                loop.outer,
                tuple(sorted(heads)),
                tuple(sorted(loop.exits)),
                bytes(inside),
                loop.steps,
            )
        )
    return result


# --- hooks, up to Python 3.11 ----------------------------------------------------------


def _call(constant: int) -> bytes:
    """Return the instructions that put ``constant(value)`` in the place of a value on the stack."""
    op = opcode.opmap
    data = _line_hooks._prefixes(constant) + bytes((op["LOAD_CONST"], constant & 255))
    if _line_hooks._V311:
        data += bytes((op["PUSH_NULL"], 0, op["SWAP"], 3))
        data += bytes((op["PRECALL"], 1)) + bytes(2) + bytes((op["CALL"], 1)) + bytes(8)
    else:
        data += bytes((op["ROT_TWO"], 0, op["CALL_FUNCTION"], 1))
    return data


# Seconds that hooks may cost a program with very many modules; its script comes first.
_MOST = 1.0
_spent = 0.0
# (code with hooks, the original) of what was made here; and of what keeps its hooks.
_made: list[tuple[CodeType, CodeType]] = []
_kept: list[tuple[CodeType, CodeType]] = []
# torch.compile reads the code of models and of what they call. It has no use for a loop that
# trains, which is known by what it calls, or by the name of its function.
_TRAINING = frozenset(("backward", "step", "zero_grad"))
_TRAINER = ("main", "train", "fit", "learn", "run", "epoch", "loop")
_ATTRIBUTES = frozenset(opcode.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD"))
_GENERATORS = 0x20 | 0x200  # CO_GENERATOR, CO_ASYNC_GENERATOR


def prepare(
    code: CodeType, make: Callable[[CodeType, int, bool, bool], tuple[object, ...]]
) -> CodeType:
    """Return the code of a module with hooks, unless it has to do with readers of bytecode."""
    from stepwatch.integrations.loops import READERS

    global _spent
    others = READERS - {"torch"}
    if _spent > _MOST or not others.isdisjoint(sys.modules) or _names(code, others):
        return code
    torch = "torch" in sys.modules or _names(code, frozenset(("torch",)))
    if torch and _names(code, frozenset(("compile", "dynamo", "_dynamo"))):
        return code
    begin = time.perf_counter()
    new = with_hooks(code, make, torch)
    _spent += time.perf_counter() - begin
    return new


def _names(code: CodeType, names: frozenset[str]) -> bool:
    """Tell whether the code, or code within it, uses one of the names."""
    return any(name.partition(".")[0] in names for name in code.co_names) or any(
        _names(constant, names) for constant in code.co_consts if isinstance(constant, type(code))
    )


def restore() -> None:
    """Give functions the code back that they were written with."""
    originals = {id(new): old for new, old in _made}
    for new, _old in _made:
        _core._loops_restore(new.co_consts, originals)
    for one in gc.get_objects():
        if type(one) is _Function and id(one.__code__) in originals:
            one.__code__ = originals[id(one.__code__)]
    # Frames still run with hooks, and their code may not be freed under another's number.


def _trains(code: CodeType, loop: Loop, instructions: list[Instruction]) -> bool:
    """Tell whether a loop of a program that uses torch looks as if it trained."""
    if not loop.is_for or code.co_flags & _GENERATORS:
        return False
    return (
        code.co_name == "<module>"
        or any(word in code.co_name.lower() for word in _TRAINER)
        or any(
            one.op in _ATTRIBUTES and one.unit in loop.units and code.co_names[one.arg] in _TRAINING
            for one in instructions
        )
    )


def with_hooks(
    code: CodeType,
    make: Callable[[CodeType, int, bool, bool], tuple[object, ...]],
    torch: bool = False,
) -> CodeType:
    """Return the code, and the code of the functions in it, with hooks in their loops.

    ``make(code, line, is_for, steps)`` gives those of one loop: one to go through in each pass of a
    for loop; or one to apply in each iteration of a while loop, one where it is left, and one where
    it is left by an exception. ``torch``: only in those that look as if they trained.
    """
    made = _kept if torch else _made
    constants: list[object] = list(code.co_consts)
    changed = False
    for index, constant in enumerate(constants):
        if isinstance(constant, type(code)):
            new = with_hooks(constant, make, torch)
            if new is not constant:
                constants[index] = new
                changed = True
    loops, instructions, blocks = _find(code)
    before: dict[int, list[bytes]] = {}
    if loops:
        previous = {two.old: one for one, two in zip(instructions, instructions[1:])}
        table = _line_hooks._exceptions(code.co_exceptiontable) if _line_hooks._V311 else []
        guarded = {start for start, _end, _target, _depth in table}
        for loop in loops:
            if torch and not _trains(code, loop, instructions):
                continue
            if loop.is_for:
                get = previous.get(min(loop.heads))
                if get is None or get.op != _GET or get.old in guarded:
                    continue  # The iterator came from elsewhere, as in a comprehension.
                constants.extend(make(code, loop.line, True, loop.steps))
                before.setdefault(get.old, []).append(_call(len(constants) - 1))
                continue
            constants.extend(make(code, loop.line, False, False))
            iterates, leaves, fails = (
                _line_hooks._apply(len(constants) - index) for index in (3, 2, 1)
            )
            before.setdefault(loop.body, []).append(iterates)
            for target, caught in _targets(loop, blocks).items():
                before.setdefault(target, []).insert(0, fails if caught else leaves)
    if not before:
        if not changed:
            return code
        new = code.replace(co_consts=tuple(constants))
        made.append((new, code))
        return new
    hooks = {
        unit: _line_hooks._Hook(b"".join(data), _line_hooks._WITH_NEXT)
        for unit, data in before.items()
    }
    for one in instructions:
        if one.target is not None and one.target.old in hooks:
            one.to_hook = True
    new = _line_hooks._assemble(code, instructions, hooks, constants, 2)
    made.append((new, code))
    return new


def _targets(loop: Loop, blocks: list[_Block]) -> dict[int, bool]:
    """Return where the program goes on when it leaves the loop, and if an exception leads there."""
    found: dict[int, bool] = {}
    for index, block in enumerate(blocks):
        if block.first not in loop.units:
            continue
        last = block.instructions[-1]
        usual = {last.target.old} if last.target is not None else set()
        if opcode.opname[last.op].startswith("SETUP_"):
            usual = set()
        usual.add(blocks[index + 1].first if index + 1 < len(blocks) else -1)
        for other in block.next:
            first = blocks[other].first
            if first not in loop.units:
                found[first] = found.get(first, True) and first not in usual
    return found
