"""Reading a table as of each event, and doing the writes of a batch for good; both in the order of the stream.

A read as of an event sees the writes of all transactions before that of the event, and none of its own. So a sweep goes
through reads and writes side by side, and takes its writes back at the end: who comes later sweeps again.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.rules.rows import (
    COLUMNS,
    DELETED,
    DONE,
    NOTHING,
    ROOM,
    TOTAL,
    Rows,
    Scratch,
    Statements,
    Undo,
    Writes,
    undo_all,
    write_row,
)

EXISTS = -1
"""In the place of a column: whether there is a row."""


class Reads(NamedTuple):
    """Reads in the order of their transactions, compared as those of ``Writes``; ``row`` is -1 where a key is NULL."""

    place: Ints
    tick: Ints
    start: Ints
    row: Ints


class Values(NamedTuple):
    """What was read."""

    words: Ints
    ok: Bools


class Done(NamedTuple):
    """What writes did: per write the effect and, column by column, the row afterwards; ``conflicts[0]`` is counted.

    ``stamp`` has for each place of the table the number of the last transaction that set it, ``set_words`` and
    ``set_ok`` what it was set to last. ``before``, if there is room, gets what stood in each row before: whether there
    was one, then words, then where they are not NULL.
    """

    effect: Ints
    words: Ints
    ok: Bools
    transaction: Ints
    stamp: Ints
    set_words: Ints
    set_ok: Bools
    conflicts: Ints
    before: Ints


@kernel
def sweep(
    reads: Reads,
    column: int,
    writes: Writes,
    of: Statements,
    rows: Rows,
    wanted: Bools,
    undo: Undo,
    scratch: Scratch,
    out: Values,
) -> None:
    """Read a column of a table, or whether rows exist; the table is afterwards what it was before.

    ``wanted`` says which columns the writes must be done in: the one that is read and those that it is computed from.
    A write that cannot be done does nothing here: ``fold`` tells of it.

    Complexity: O(reads + writes).
    """
    room, is_total = rows.sizes[ROOM], rows.sizes[TOTAL]
    writes_left, at = len(writes.row), 0
    for i in range(len(reads.row)):
        place = reads.place[i]
        while at < writes_left and writes.place[at] <= place:
            if writes.place[at] == place:
                tick, start = writes.tick[at], writes.start[at]
                if tick > reads.tick[i] or (tick == reads.tick[i] and start >= reads.start[i]):
                    break
            write_row(at, writes, of, rows, wanted, undo, scratch)
            at += 1
        row = reads.row[i]
        if row < 0:
            out.words[i] = 0
            out.ok[i] = column == EXISTS
        elif column == EXISTS:
            out.words[i] = int(rows.present[row])
            out.ok[i] = True
        elif rows.present[row]:
            out.words[i] = rows.words[column * room + row]
            out.ok[i] = rows.ok[column * room + row]
        else:
            out.words[i] = rows.default_words[column]
            out.ok[i] = is_total != 0 and rows.default_ok[column]
    undo_all(undo, rows)


@kernel
def perform(writes: Writes, of: Statements, rows: Rows, wanted: Bools, undo: Undo, scratch: Scratch) -> None:
    """Do writes in the wanted columns, so that they can be taken back; those that cannot be done as in ``sweep``.

    Complexity: O(writes).
    """
    for i in range(len(writes.row)):
        write_row(i, writes, of, rows, wanted, undo, scratch)


@kernel
def take_back(undo: Undo, rows: Rows) -> None:
    """Take back what ``perform`` did. Complexity: O(what it changed)."""
    undo_all(undo, rows)


@inline
def _keep(at: int, row: int, rows: Rows, before: Ints) -> None:
    """Write down what stands in a row."""
    columns, room = rows.sizes[COLUMNS], rows.sizes[ROOM]
    before[at] = int(rows.present[row])
    for c in range(columns):
        before[at + 1 + c] = rows.words[c * room + row]
        before[at + 1 + columns + c] = int(rows.ok[c * room + row])


@kernel
def fold(
    writes: Writes, of: Statements, rows: Rows, wanted: Bools, undo: Undo, scratch: Scratch, done: Done, failed: Ints
) -> int:
    """Do writes in all columns, and say what they did; where one fails, all are taken back.

    Returns
    -------
    int
        The first write that could not be done, ``failed[0]`` says why; -1: all could.

    Complexity: O(writes x columns).
    """
    columns, room = rows.sizes[COLUMNS], rows.sizes[ROOM]
    keeps = len(done.before) > 0
    for i in range(len(writes.row)):
        if keeps and writes.row[i] >= 0:
            _keep(i * (2 * columns + 1), writes.row[i], rows, done.before)
        how, effect = write_row(i, writes, of, rows, wanted, undo, scratch)
        if how != DONE:
            failed[0] = how
            undo_all(undo, rows)
            return i
        done.effect[i] = effect
        if effect == NOTHING or effect == DELETED:
            continue
        row, statement, now = writes.row[i], writes.statement[i], done.transaction[i]
        for a in range(of.first[statement], of.first[statement + 1]):
            place = of.column[a] * room + row
            word, is_ok = rows.words[place], rows.ok[place]
            if done.stamp[place] == now:  # set by this transaction before
                is_same = done.set_ok[place] == is_ok and (not is_ok or done.set_words[place] == word)
                done.conflicts[0] += int(not is_same)
            done.set_words[place] = word
            done.set_ok[place] = is_ok
            done.stamp[place] = now
        for c in range(columns):
            done.words[i * columns + c] = rows.words[c * room + row]
            done.ok[i * columns + c] = rows.ok[c * room + row]
    return -1
