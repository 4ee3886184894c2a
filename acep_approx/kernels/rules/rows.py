"""Writing rows of a table: the statements of rules, one write after the other, and the small programs of SET.

A table is flat: column ``c`` of row ``r`` stands at ``c * room + r`` of ``words``, floats as their bits, and
``ok`` says where it is not NULL. A row that is not ``present`` is absent, whatever stands in its columns.

A program is pairs of an instruction and its argument, for a stack: values of the write (``SLOT``) and of the row as it
was before (``OLD_VALUE``) are put on it, operators take theirs from it. What is left is what the column gets.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.jit.marks import apart, inline, ix
from acep_approx.kernels.arithmetic import LOWEST, difference_passes, product_passes, sum_passes

SLOT, OLD_VALUE, AS_FLOAT, AS_INT = 0, 1, 2, 3
ADD, SUBTRACT, MULTIPLY, MODULO, NEGATE = 10, 11, 12, 13, 14
FLOAT = 10
"""So much further the same is done with floats."""
DIVIDE_FLOATS = 25
DEPTH = 64
"""Values that a program may have on its stack."""

UPDATE, UPSERT, DELETE = 0, 1, 2
NOTHING, UPDATED, INSERTED, DELETED = 0, 1, 2, 3
"""What a write did to its row."""
DONE, PASSED, NOT_WHOLE, NO_KEY, NO_VALUE = 0, 1, 2, 3, 4
"""Whether a write could be done, or why not: a whole number passed 64 bits, a fraction would become a whole number,
the key is NULL, an expression of it could not be computed."""

VALUE = 1
"""State of a slot that is not NULL."""
WHOLE_LIMIT = 9.2233720368547758e18


class Rows(NamedTuple):
    """A table: its values, where they are not NULL, and which rows there are.

    Several tables may lie one after the other in the same arrays: ``sizes`` has ``SIZES`` numbers for each, and those
    of this one begin at ``at``: columns, room, whether it is total, and where its part of ``words``, of ``present``,
    and of the defaults (and of what is by column) begins.
    """

    words: Ints
    ok: Bools
    present: Bools
    sizes: Ints
    default_words: Ints
    default_ok: Bools
    at: int = 0


COLUMNS, ROOM, TOTAL, WORDS, ROWS, DEFAULTS, SIZES = range(7)


class Statements(NamedTuple):
    """The statements that write a table.

    Statement ``s`` has ``kind[s]`` and the assignments ``first[s] : first[s + 1]``; assignment ``a`` sets
    ``column[a]`` to what the instructions ``code[a] : code[a + 1]`` of ``program`` leave.
    """

    kind: Ints
    first: Ints
    column: Ints
    code: Ints
    program: Ints


class Writes(NamedTuple):
    """Writes in the order in which they are done.

    ``place``, ``tick``, ``start`` say which transaction it is of: later ones are greater, compared one after the other.
    ``row`` is -1 where the key is NULL, -2 where it could not be computed. The values of a write stand side by side in
    ``slots``; ``slot_state`` is 0 for NULL, ``VALUE``, or so much more than that as says why there is no value.
    """

    place: Ints
    tick: Ints
    start: Ints
    row: Ints
    statement: Ints
    slots: Ints
    slot_state: Ints


class Scratch(NamedTuple):
    """Room for the stack of programs, and for what a statement is about to set."""

    stack: Ints
    stack_floats: Floats
    stack_ok: Bools
    new: Ints
    new_ok: Bools


class Undo(NamedTuple):
    """What stood where before, to bring it back: places in ``words``; rows as -1, -2, and so on."""

    used: Ints  # how many
    place: Ints
    word: Ints
    ok: Bools


@apart
def run_program(
    first: int, last: int, program: Ints, rows: Rows, row: int, writes: Writes, slot: int, s: Scratch
) -> int:
    """Run the instructions ``first : last``; what they leave stands at the bottom of the stack. Gives whether it could.

    Complexity: O(last - first).
    """
    stack, floats, ok = s.stack, s.stack_floats, s.stack_ok
    top = -1
    for i in range(first, last):
        do, argument = program[ix(2 * i)], program[ix(2 * i + 1)]
        if do == SLOT:
            top += 1
            stack[ix(top)] = writes.slots[ix(slot + argument)]
            state = writes.slot_state[ix(slot + argument)]
            if state > VALUE:
                return int(state - VALUE)
            ok[ix(top)] = state == VALUE
        elif do == OLD_VALUE:
            top += 1
            at = rows.sizes[ix(rows.at + WORDS)] + argument * rows.sizes[ix(rows.at + ROOM)] + row
            default = rows.sizes[ix(rows.at + DEFAULTS)] + argument
            is_there = rows.present[ix(rows.sizes[ix(rows.at + ROWS)] + row)]
            stack[ix(top)] = rows.words[ix(at)] if is_there else rows.default_words[ix(default)]
            ok[ix(top)] = rows.ok[ix(at)] if is_there else rows.default_ok[ix(default)]
        elif do == AS_FLOAT:
            floats[ix(top - argument)] = float(stack[ix(top - argument)])
        elif do == AS_INT:
            x = floats[ix(top)]
            if ok[ix(top)]:
                if not -WHOLE_LIMIT <= x < WHOLE_LIMIT:
                    return PASSED
                if x != float(int(x)):
                    return NOT_WHOLE
                stack[ix(top)] = int(x)
        elif do == NEGATE:
            if ok[ix(top)]:
                if stack[ix(top)] == LOWEST:
                    return PASSED
                stack[ix(top)] = -stack[ix(top)]
        elif do == NEGATE + FLOAT:
            floats[ix(top)] = -floats[ix(top)]
        else:
            top -= 1
            ok[ix(top)] &= ok[ix(top + 1)]
            if not ok[ix(top)]:
                continue
            if do < FLOAT + ADD:
                a, b = stack[ix(top)], stack[ix(top + 1)]
                if do == MODULO:
                    ok[ix(top)] = b != 0
                    stack[ix(top)] = 0 if b == -1 or b == 0 else a % b
                elif do == MULTIPLY:
                    if product_passes(a, b):
                        return PASSED
                    stack[ix(top)] = a * b
                elif do == ADD:
                    if sum_passes(a, b):
                        return PASSED
                    stack[ix(top)] = a + b
                else:
                    if difference_passes(a, b):
                        return PASSED
                    stack[ix(top)] = a - b
            else:
                x, y = floats[ix(top)], floats[ix(top + 1)]
                if do == ADD + FLOAT:
                    z = x + y
                elif do == SUBTRACT + FLOAT:
                    z = x - y
                elif do == MULTIPLY + FLOAT:
                    z = x * y
                elif y == 0.0:
                    z = float("nan")
                elif do == DIVIDE_FLOATS:
                    z = x / y
                else:
                    z = x % y
                ok[ix(top)] = z == z  # NaN is NULL
                floats[ix(top)] = z
    return DONE


@inline
def note(undo: Undo, place: int, word: int, ok: bool) -> None:
    """Note what stands somewhere, before it is changed."""
    n = undo.used[ix(0)]
    undo.place[ix(n)] = place
    undo.word[ix(n)] = word
    undo.ok[ix(n)] = ok
    undo.used[ix(0)] = n + 1


@inline
def write_row(
    i: int, writes: Writes, of: Statements, rows: Rows, wanted: Bools, undo: Undo, s: Scratch
) -> tuple[int, int]:
    """Do one write, of the wanted columns; gives whether it could be done, and what it did."""
    statement, row = writes.statement[ix(i)], writes.row[ix(i)]
    if row < 0:
        return NO_KEY if row == -1 else NO_VALUE, NOTHING
    kind = of.kind[ix(statement)]
    columns, room, is_total = (
        rows.sizes[ix(rows.at + COLUMNS)],
        rows.sizes[ix(rows.at + ROOM)],
        rows.sizes[ix(rows.at + TOTAL)],
    )
    there, default = rows.sizes[ix(rows.at + ROWS)] + row, rows.sizes[ix(rows.at + DEFAULTS)]
    is_there = rows.present[ix(there)]
    if not is_there and (kind == DELETE or (kind == UPDATE and is_total == 0)):
        return DONE, NOTHING
    if kind == DELETE:
        note(undo, -1 - there, 0, True)
        rows.present[ix(there)] = False
        return DONE, DELETED
    width = len(writes.slots) // len(writes.row)
    for a in range(of.first[ix(statement)], of.first[ix(statement + 1)]):
        c = of.column[ix(a)]
        if wanted[ix(default + c)]:
            first, last = of.code[ix(a)], of.code[ix(a + 1)]
            if last == first + 1 and of.program[ix(2 * first)] == SLOT:  # as most are; the call would cost 100 ns
                slot = i * width + of.program[ix(2 * first + 1)]
                state = writes.slot_state[ix(slot)]
                if state > VALUE:
                    return int(state - VALUE), NOTHING
                s.new[ix(c)] = writes.slots[ix(slot)]
                s.new_ok[ix(c)] = state == VALUE
                continue
            failed = run_program(first, last, of.program, rows, row, writes, i * width, s)
            if failed != DONE:
                return failed, NOTHING
            s.new[ix(c)] = s.stack[ix(0)]
            s.new_ok[ix(c)] = s.stack_ok[ix(0)]
    begin = rows.sizes[ix(rows.at + WORDS)] + row
    if not is_there:
        note(undo, -1 - there, 0, False)
        rows.present[ix(there)] = True
        for c in range(columns):
            if wanted[ix(default + c)]:
                at = begin + c * room
                note(undo, at, rows.words[ix(at)], rows.ok[ix(at)])
                rows.words[ix(at)] = rows.default_words[ix(default + c)]
                rows.ok[ix(at)] = rows.default_ok[ix(default + c)]
    for a in range(of.first[ix(statement)], of.first[ix(statement + 1)]):
        c = of.column[ix(a)]
        if wanted[ix(default + c)]:
            at = begin + c * room
            note(undo, at, rows.words[ix(at)], rows.ok[ix(at)])
            rows.words[ix(at)] = s.new[ix(c)] if s.new_ok[ix(c)] else 0
            rows.ok[ix(at)] = s.new_ok[ix(c)]
    return DONE, UPDATED if is_there else INSERTED


@inline
def undo_all(undo: Undo, rows: Rows) -> None:
    """Bring back what was noted, the last first."""
    n = undo.used[ix(0)]
    while n > 0:
        n -= 1
        place = undo.place[ix(n)]
        if place < 0:
            rows.present[ix(-1 - place)] = undo.ok[ix(n)]
        else:
            rows.words[ix(place)] = undo.word[ix(n)]
            rows.ok[ix(place)] = undo.ok[ix(n)]
    undo.used[ix(0)] = 0
