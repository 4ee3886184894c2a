"""Writing rows of a table: the statements of rules, one write after the other, and the small programs of SET.

A table is flat: column ``c`` of row ``r`` stands at ``c * room + r`` of ``words``, floats as their bits, and
``ok`` says where it is not NULL. A row that is not ``present`` is absent, whatever stands in its columns.

A program is pairs of an instruction and its argument, for a stack: values of the write (``SLOT``) and of the row as it
was before (``OLD_VALUE``) are put on it, operators take theirs from it. What is left is what the column gets.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.jit.marks import apart, inline
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
        do, argument = program[2 * i], program[2 * i + 1]
        if do == SLOT:
            top += 1
            stack[top] = writes.slots[slot + argument]
            state = writes.slot_state[slot + argument]
            if state > VALUE:
                return int(state - VALUE)
            ok[top] = state == VALUE
        elif do == OLD_VALUE:
            top += 1
            at = rows.sizes[rows.at + WORDS] + argument * rows.sizes[rows.at + ROOM] + row
            default = rows.sizes[rows.at + DEFAULTS] + argument
            is_there = rows.present[rows.sizes[rows.at + ROWS] + row]
            stack[top] = rows.words[at] if is_there else rows.default_words[default]
            ok[top] = rows.ok[at] if is_there else rows.default_ok[default]
        elif do == AS_FLOAT:
            floats[top - argument] = float(stack[top - argument])
        elif do == AS_INT:
            x = floats[top]
            if ok[top]:
                if not -WHOLE_LIMIT <= x < WHOLE_LIMIT:
                    return PASSED
                if x != float(int(x)):
                    return NOT_WHOLE
                stack[top] = int(x)
        elif do == NEGATE:
            if ok[top]:
                if stack[top] == LOWEST:
                    return PASSED
                stack[top] = -stack[top]
        elif do == NEGATE + FLOAT:
            floats[top] = -floats[top]
        else:
            top -= 1
            ok[top] &= ok[top + 1]
            if not ok[top]:
                continue
            if do < FLOAT + ADD:
                a, b = stack[top], stack[top + 1]
                if do == MODULO:
                    ok[top] = b != 0
                    stack[top] = 0 if b == -1 or b == 0 else a % b
                elif do == MULTIPLY:
                    if product_passes(a, b):
                        return PASSED
                    stack[top] = a * b
                elif do == ADD:
                    if sum_passes(a, b):
                        return PASSED
                    stack[top] = a + b
                else:
                    if difference_passes(a, b):
                        return PASSED
                    stack[top] = a - b
            else:
                x, y = floats[top], floats[top + 1]
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
                ok[top] = z == z  # NaN is NULL
                floats[top] = z
    return DONE


@inline
def note(undo: Undo, place: int, word: int, ok: bool) -> None:
    """Note what stands somewhere, before it is changed."""
    n = undo.used[0]
    undo.place[n] = place
    undo.word[n] = word
    undo.ok[n] = ok
    undo.used[0] = n + 1


@inline
def write_row(
    i: int, writes: Writes, of: Statements, rows: Rows, wanted: Bools, undo: Undo, s: Scratch
) -> tuple[int, int]:
    """Do one write, of the wanted columns; gives whether it could be done, and what it did."""
    statement, row = writes.statement[i], writes.row[i]
    if row < 0:
        return NO_KEY if row == -1 else NO_VALUE, NOTHING
    kind = of.kind[statement]
    columns, room, is_total = (
        rows.sizes[rows.at + COLUMNS],
        rows.sizes[rows.at + ROOM],
        rows.sizes[rows.at + TOTAL],
    )
    there, default = rows.sizes[rows.at + ROWS] + row, rows.sizes[rows.at + DEFAULTS]
    is_there = rows.present[there]
    if not is_there and (kind == DELETE or (kind == UPDATE and is_total == 0)):
        return DONE, NOTHING
    if kind == DELETE:
        note(undo, -1 - there, 0, True)
        rows.present[there] = False
        return DONE, DELETED
    width = len(writes.slots) // len(writes.row)
    for a in range(of.first[statement], of.first[statement + 1]):
        c = of.column[a]
        if wanted[default + c]:
            first, last = of.code[a], of.code[a + 1]
            if last == first + 1 and of.program[2 * first] == SLOT:  # as most are; the call would cost 100 ns
                slot = i * width + of.program[2 * first + 1]
                state = writes.slot_state[slot]
                if state > VALUE:
                    return int(state - VALUE), NOTHING
                s.new[c] = writes.slots[slot]
                s.new_ok[c] = state == VALUE
                continue
            failed = run_program(first, last, of.program, rows, row, writes, i * width, s)
            if failed != DONE:
                return failed, NOTHING
            s.new[c] = s.stack[0]
            s.new_ok[c] = s.stack_ok[0]
    begin = rows.sizes[rows.at + WORDS] + row
    if not is_there:
        note(undo, -1 - there, 0, False)
        rows.present[there] = True
        for c in range(columns):
            if wanted[default + c]:
                at = begin + c * room
                note(undo, at, rows.words[at], rows.ok[at])
                rows.words[at] = rows.default_words[default + c]
                rows.ok[at] = rows.default_ok[default + c]
    for a in range(of.first[statement], of.first[statement + 1]):
        c = of.column[a]
        if wanted[default + c]:
            at = begin + c * room
            note(undo, at, rows.words[at], rows.ok[at])
            rows.words[at] = s.new[c] if s.new_ok[c] else 0
            rows.ok[at] = s.new_ok[c]
    return DONE, UPDATED if is_there else INSERTED


@inline
def undo_all(undo: Undo, rows: Rows) -> None:
    """Bring back what was noted, the last first."""
    n = undo.used[0]
    while n > 0:
        n -= 1
        place = undo.place[n]
        if place < 0:
            rows.present[-1 - place] = undo.ok[n]
        else:
            rows.words[place] = undo.word[n]
            rows.ok[place] = undo.ok[n]
    undo.used[0] = 0
