"""Hooks in bytecode, for line profiling before Python 3.12.

A watched function tells the profiler when it begins and when it goes on after a yield: its
code gets ``+hook`` there, an expression whose value is thrown away.  Everything else stays:
arguments, lines, names, the order of instructions.

Where an exception may be thrown into a generator, the handlers that may catch it begin with
a hook too.
"""

from __future__ import annotations

import opcode
import sys

TYPE_CHECKING = False  # importing typing would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

_OP = opcode.opmap
_EXTENDED = _OP["EXTENDED_ARG"]
_V310 = sys.version_info >= (3, 10)
_V311 = sys.version_info >= (3, 11)
# Jumps count bytes in 3.9, code units since.
_SCALE = 1 if _V310 else 2
_CAN_SUSPEND = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


class _Instruction:
    """An instruction without its EXTENDED_ARGs, which are made anew.

    ``old`` is where it began, prefixes included; ``target`` the instruction it jumps to.
    """

    __slots__ = ("arg", "new", "old", "op", "prefixes", "target", "to_hook", "unit")

    def __init__(self, old: int, unit: int, op: int, arg: int) -> None:
        self.old = old  # offset of the first prefix, in units
        self.unit = unit  # offset of the instruction itself, in units
        self.op = op
        self.arg = arg
        self.prefixes = 0
        self.new = 0  # offset of the first prefix in the new code, in units
        self.target: _Instruction | None = None
        self.to_hook = False  # the jump goes to the hook before its target


class _Range:
    """A stretch of old code, in units, with what its line table says of it."""

    __slots__ = ("end", "start", "what")

    def __init__(self, start: int, end: int, what: bytes | int | None) -> None:
        self.start = start
        self.end = end
        self.what = what


def _decode(raw: bytes) -> list[_Instruction]:
    found = []
    extended, start = 0, None
    for unit in range(len(raw) // 2):
        op, arg = raw[2 * unit], raw[2 * unit + 1]
        if start is None:
            start = unit
        arg |= extended
        if op == _EXTENDED:
            extended = arg << 8
            continue
        found.append(_Instruction(start, unit, op, arg))
        extended, start = 0, None
    return found


def _is_backward(op: int) -> bool:
    return "JUMP_BACKWARD" in opcode.opname[op]


def _link(code: list[_Instruction]) -> dict[int, _Instruction]:
    """Tie jumps to the instructions they lead to."""
    at = {one.old: one for one in code}
    for one in code:
        if one.op in opcode.hasjabs:
            where = one.arg // _SCALE
        elif one.op in opcode.hasjrel:
            step = one.arg // _SCALE
            where = one.unit + 1 + (-step if _is_backward(one.op) else step)
        else:
            continue
        one.target = at[where]
    return at


def _varint(data: Iterator[int]) -> int:
    """Read a number of the exception table: six bits a byte, the highest first."""
    byte = next(data)
    value = byte & 63
    while byte & 64:
        byte = next(data)
        value = value << 6 | byte & 63
    return value


def _put_varint(value: int, first: int = 0) -> bytes:
    digits = [value & 63]
    while value > 63:
        value >>= 6
        digits.append(value & 63)
    digits.reverse()
    last = len(digits) - 1
    data = bytearray(digit | (64 if index < last else 0) for index, digit in enumerate(digits))
    data[0] |= first
    return bytes(data)


def _exceptions(table: bytes) -> list[tuple[int, int, int, int]]:
    """Return (start, end, target, depth and flag), offsets in units."""
    data = iter(table)
    found = []
    for byte in data:
        start = byte & 63
        while byte & 64:
            byte = next(data)
            start = start << 6 | byte & 63
        length = _varint(data)
        found.append((start, start + length, _varint(data), _varint(data)))
    return found


# --- line tables ---------------------------------------------------------------------


def _ranges(code: CodeType) -> Iterator[_Range]:
    """Yield the stretches of the line table: their line, from 3.11 on the raw entry."""
    if _V311:
        table = code.co_linetable
        at = start = 0
        while at < len(table):
            end = at + 1
            while end < len(table) and not table[end] & 0x80:
                end += 1
            units = (table[at] & 7) + 1
            yield _Range(start, start + units, table[at:end])
            start += units
            at = end
        return
    table = code.co_linetable if _V310 else code.co_lnotab
    start, line = 0, code.co_firstlineno
    if not _V310:
        begin = 0
        for step, delta in zip(table[::2], table[1::2]):
            start += step
            if delta:
                if start > begin:
                    yield _Range(begin // 2, start // 2, line)
                    begin = start
                line += delta - 256 if delta > 127 else delta
        yield _Range(begin // 2, len(code.co_code) // 2, line)
        return
    for step, delta in zip(table[::2], table[1::2]):
        none = delta == 128
        line += 0 if none else delta - 256 if delta > 127 else delta
        if step:
            yield _Range(start // 2, (start + step) // 2, None if none else line)
        start += step


def _line_bytes(pieces: list[tuple[int, int | None]], first: int) -> bytes:
    """Make the table of 3.10: (units, line) one after the other."""
    data, line = bytearray(), first
    for units, new in pieces:
        size = units * 2
        if new is None:
            while size > 0:
                data += bytes((min(size, 254), 128))
                size -= 254
            continue
        delta = new - line
        line = new
        while not -127 <= delta <= 127:
            step = 127 if delta > 0 else -127
            data += bytes((0, step & 255))
            delta -= step
        while size > 254:
            data += bytes((254, delta & 255))
            delta = 0
            size -= 254
        data += bytes((size, delta & 255))
    return bytes(data)


def _lnotab_bytes(pieces: list[tuple[int, int | None]], first: int) -> bytes:
    """Make the table of 3.9: steps of offset and line between the stretches."""
    data, line, size = bytearray(), first, 0
    for units, new in pieces:
        assert new is not None
        delta = new - line
        if delta:
            line = new
            while size > 255:
                data += b"\xff\x00"
                size -= 255
            while not -128 <= delta <= 127:
                step = 127 if delta > 0 else -128
                data += bytes((size, step & 255))
                size = 0
                delta -= step
            data += bytes((size, delta & 255))
            size = 0
        size += units * 2
    return bytes(data)


_NO_PLACE = b"\xf8"


def _same_place(entry: bytes) -> bytes:
    """Return an entry of 3.11 for the same place again: its line differs by 0."""
    kind = entry[0] >> 3 & 15
    if kind < 10 or kind == 15:
        return entry
    if kind <= 12:
        return bytes((0x80 | 10 << 3,)) + entry[1:]
    rest = 1
    while entry[rest] & 64:
        rest += 1
    return entry[:1] + b"\x00" + entry[rest + 1 :]


def _place_bytes(pieces: list[tuple[int, bytes]]) -> bytes:
    """Make the table of 3.11; an entry covers up to eight units."""
    data = bytearray()
    for units, entry in pieces:
        current = entry
        left = units
        while left > 0:
            size = min(left, 8)
            data.append(current[0] & 0xF8 | size - 1)
            data += current[1:]
            current = _same_place(entry)
            left -= size
    return bytes(data)


# --- the new code --------------------------------------------------------------------


_ALONE, _WITH_LAST, _WITH_NEXT = range(3)


class _Hook:
    """A hook before an instruction: its own instructions, and whose line it shares."""

    __slots__ = ("data", "line")

    def __init__(self, data: bytes, line: int) -> None:
        self.data = data
        self.line = line


def _hook_units(hook: _Hook) -> int:
    return len(hook.data) // 2


def _apply(constant: int) -> bytes:
    """Return the instructions of ``+constant``, whose value is thrown away."""
    load = _prefixes(constant) + bytes((_OP["LOAD_CONST"], constant & 255))
    return load + bytes((_OP["UNARY_POSITIVE"], 0, _OP["POP_TOP"], 0))


def _prefixes(arg: int) -> bytes:
    data = b""
    arg >>= 8
    while arg:
        data = bytes((_EXTENDED, arg & 255)) + data
        arg >>= 8
    return data


def _beginning(code: list[_Instruction]) -> int:
    """Index of the first instruction of the body."""
    for index, one in enumerate(code):
        if _V311 and one.op == _OP["RESUME"]:
            return index + 1
        if not _V311:
            return index + (opcode.opname[one.op] == "GEN_START")
    raise ValueError("code without a beginning")


def _after_yield(code: list[_Instruction]) -> Iterator[int]:
    """Yield the indexes of instructions that a resumed generator goes on with."""
    for index, one in enumerate(code[:-1]):
        name = opcode.opname[one.op]
        if (name == "RESUME" and one.arg != 0) if _V311 else name in ("YIELD_VALUE", "YIELD_FROM"):
            yield index + 1


def _layout(code: list[_Instruction], hooks: dict[int, _Hook]) -> int:
    """Give every instruction its new offset; returns the length in units."""
    while True:
        at = 0
        for one in code:
            if one.old in hooks:
                at += _hook_units(hooks[one.old])
            one.new = at
            at += one.prefixes + 1
        for one in code:
            if one.target is not None:
                goal = one.target.new
                if one.to_hook:
                    goal -= _hook_units(hooks[one.target.old])
                if one.op in opcode.hasjabs:
                    one.arg = goal * _SCALE
                else:
                    one.arg = abs(goal - (one.new + one.prefixes + 1)) * _SCALE
        grown = False
        for one in code:
            need = len(_prefixes(one.arg)) // 2 if one.arg > 255 else 0
            if need > one.prefixes:
                one.prefixes = need
                grown = True
        if not grown:
            return at


def _encode(code: list[_Instruction], hooks: dict[int, _Hook]) -> bytes:
    data = bytearray()
    for one in code:
        hook = hooks.get(one.old)
        if hook is not None:
            data += hook.data
        if one.prefixes == 0 and one.arg < 256:
            data.append(one.op)
            data.append(one.arg)
            continue
        prefixes = _prefixes(one.arg)
        # A jump that came nearer keeps the room it had.
        data += bytes((_EXTENDED, 0)) * (one.prefixes - len(prefixes) // 2)
        data += prefixes + bytes((one.op, one.arg & 255))
    return bytes(data)


def with_hooks(code: CodeType, make: Callable[[int, bool], object]) -> CodeType:
    """Return ``code`` with hooks; ``make(line, handler)`` gives one."""
    instructions = _decode(code.co_code)
    at = _link(instructions)
    lines = _unit_lines(code)
    exceptions = _exceptions(code.co_exceptiontable) if _V311 else []
    constants = list(code.co_consts)
    hooks: dict[int, _Hook] = {}

    def put(where: _Instruction, line: int, handler: bool, share: int) -> None:
        if where.old not in hooks:
            hooks[where.old] = _Hook(_apply(len(constants)), share)
            constants.append(make(line, handler))

    put(instructions[_beginning(instructions)], 0, False, _ALONE)
    if code.co_flags & _CAN_SUSPEND:
        for index in _after_yield(instructions):
            line = lines.get(instructions[index - 1].unit, 0)
            put(instructions[index], line, False, _WITH_LAST)
        for _start, _end, target, _depth in exceptions:
            put(at[target], lines.get(at[target].unit, 0), True, _WITH_NEXT)
        for one in instructions:
            if one.target is not None and opcode.opname[one.op].startswith("SETUP_"):
                put(one.target, lines.get(one.target.unit, 0), True, _WITH_NEXT)
                one.to_hook = True

    return _assemble(code, instructions, hooks, constants, 1)


def _assemble(
    code: CodeType,
    instructions: list[_Instruction],
    hooks: dict[int, _Hook],
    constants: list[object],
    stack: int,
) -> CodeType:
    """Return the code with these hooks before its instructions; they need ``stack`` places."""
    length = _layout(instructions, hooks)
    starts = {one.old: one.new for one in instructions}
    begins = {
        one.old: one.new - (_hook_units(hooks[one.old]) if one.old in hooks else 0)
        for one in instructions
    }
    old_length = len(code.co_code) // 2
    starts[old_length] = begins[old_length] = length
    changes: dict[str, object] = {
        "co_code": _encode(instructions, hooks),
        "co_consts": tuple(constants),
        "co_stacksize": code.co_stacksize + stack,
    }
    table = _new_table(code, list(_ranges(code)), hooks, starts, begins)
    changes["co_linetable" if _V310 else "co_lnotab"] = table
    if _V311:
        data = b""
        for start, end, target, depth in _exceptions(code.co_exceptiontable):
            begin = starts[start]
            data += _put_varint(begin, 128) + _put_varint(begins[end] - begin)
            data += _put_varint(begins[target]) + _put_varint(depth)
        changes["co_exceptiontable"] = data
    return code.replace(**changes)  # type: ignore[arg-type]


def _unit_lines(code: CodeType) -> dict[int, int]:
    """Return the line of every code unit that has one."""
    if not _V310:
        return {
            unit: one.what
            for one in _ranges(code)
            if isinstance(one.what, int)
            for unit in range(one.start, one.end)
        }
    return {
        offset // 2: line
        for start, end, line in code.co_lines()
        if line is not None
        for offset in range(start, end, 2)
    }


def _new_table(
    code: CodeType,
    ranges: list[_Range],
    hooks: dict[int, _Hook],
    starts: dict[int, int],
    begins: dict[int, int],
) -> bytes:
    """Stretch the line table over the new code.

    The hook at the beginning has no line (in 3.9 one that is none of the body's), so that
    the first line is still told as one; other hooks share the line of their neighbour.
    """
    pieces: list[tuple[int, bytes | int | None]] = []
    nowhere: bytes | int | None = _NO_PLACE if _V311 else None
    if not _V310:
        first = min(one.what for one in ranges if isinstance(one.what, int))
        nowhere = first - 1 if first <= code.co_firstlineno else code.co_firstlineno
    covered = 0
    for one in ranges:
        start, end, what = one.start, one.end, one.what
        # Ranges that begin within an instruction (at a prefix) do not occur.
        borders = [
            unit for unit in range(start, end) if unit in hooks and hooks[unit].line == _ALONE
        ]
        current, fresh = what, True
        for border in borders:
            before = begins[border] - covered
            if before > 0:
                pieces.append((before, current))
                fresh = False
            pieces.append((starts[border] - begins[border], nowhere))
            covered = starts[border]
        if _V311 and not fresh and isinstance(what, bytes):
            current = _same_place(what)
        goal = _end_of(end, starts, begins, hooks)
        if goal > covered:
            pieces.append((goal - covered, current))
            covered = goal
    if _V311:
        return _place_bytes([(units, what) for units, what in pieces if isinstance(what, bytes)])
    plain = [(units, what) for units, what in pieces if not isinstance(what, bytes)]
    return (_line_bytes if _V310 else _lnotab_bytes)(plain, code.co_firstlineno)


def _end_of(
    end: int, starts: dict[int, int], begins: dict[int, int], hooks: dict[int, _Hook]
) -> int:
    """Return where a stretch that ended before unit ``end`` ends now."""
    while end not in begins:
        end += 1
    return begins[end] if end in hooks and hooks[end].line != _WITH_LAST else starts[end]
