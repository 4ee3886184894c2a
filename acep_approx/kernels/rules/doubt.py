"""Which values the tables of the exact run may have: kept value by value, in the order of the stream.

Inside a load budget a match may be missed, or be one that the exact run has not, as what it read was in doubt. What
such a match writes may stand in the table of the exact run, or not, until a match that is certain writes there. All
that a table has is one flat array: for each column its *level* and the tick until which all of it is in doubt; then for
each row the *stamps* of its columns, and the *worlds* of its columns. The worlds of a value are those that the exact
run may have, as bits (``rules.domains``); 0: it has what stands here. Where the stamp is below the level of the column
anything may stand there. So one step puts a whole column in doubt. The last "column" says whether there is a row.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.rules.rows import DELETE, UPDATE, UPSERT

MAY_WRITE, MAY_WRITE_UNTIL, WRITES, MAY_WRITE_LATER, WRITES_IF = range(5)
"""What happens: a statement may have been run, or not, by the exact run alone or here alone; the same, of any row, at
any time up to a tick; it was run by both; it may have been run, behind what was run for sure in the same transaction;
it was run just where a value of the row was one of some."""
ANY_ROW = -3
"""In the place of a row: nobody knows which."""
DOUBTED = -1
"""A stamp below all levels."""
ANYTHING = -1
"""In the place of worlds."""
PRESENT = 2
"""The world of the last "column" in which there is a row."""
CONSTANT, SHIFT = 1, 2
"""What a statement does to a column whose worlds are known; else nothing, or anything."""


class Marks(NamedTuple):
    """What happened, in order; ``time`` is the tick of the transaction, ``until`` that of ``MAY_WRITE_UNTIL``.

    Of ``WRITES_IF`` ``guard`` are the worlds of the column ``asked`` in which it was run. ``before``: what stood here
    before the transaction, as bits, for each column of each mark; 0 where that is none of the values that have bits.
    ``is_first``, ``is_last``: no other mark of the transaction and row comes before, or behind.
    """

    place: Ints
    tick: Ints
    start: Ints
    time: Ints
    row: Ints
    statement: Ints
    what: Ints
    until: Ints
    asked: Ints
    guard: Ints
    is_first: Ints
    is_last: Ints
    before: Ints


class Effects(NamedTuple):
    """What the statements of a table do; ``columns`` without that of the rows, ``total`` as the table is.

    ``sets[s * columns + c]``: statement ``s`` sets a column; ``of[(s * columns + c) * columns + o]``: to what it
    computes from another column. ``how[s * (columns + 1) + c]`` and ``by``: what it does to worlds, with the bit of
    the constant, or the number that it adds; ``once[s]``: no event runs it twice. ``values[c]``: how many values of a
    column have a bit each, of which the first is NULL and the others are whole numbers in a row; behind them are the
    bits of what is below, and above.
    """

    columns: int
    total: int
    kind: Ints
    sets: Ints
    of: Ints
    how: Ints
    by: Ints
    once: Ints
    values: Ints


class Asked(NamedTuple):
    """Reads in order; ``column`` may be that of the rows, ``row`` is below 0 where a key is NULL."""

    place: Ints
    tick: Ints
    start: Ints
    time: Ints
    row: Ints
    column: Ints


class Before(NamedTuple):
    """What stood where before, to bring it back."""

    used: Ints
    place: Ints
    word: Ints


@inline
def _put(words: Ints, at: int, word: int, before: Before) -> None:
    n = before.used[0]
    before.place[n] = at
    before.word[n] = words[at]
    before.used[0] = n + 1
    words[at] = word


@inline
def _stamp_at(of: Effects, row: int, column: int) -> int:
    return 2 * (of.columns + 1) * (row + 1) + column


@inline
def _worlds_at(of: Effects, row: int, column: int) -> int:
    return _stamp_at(of, row, column) + of.columns + 1


@inline
def _worlds(words: Ints, of: Effects, row: int, column: int, time: int) -> int:
    """What the exact run may have, apart from whether there is a row; 0: what stands here."""
    is_below = words[_stamp_at(of, row, column)] < words[column]
    return ANYTHING if is_below or time <= words[of.columns + 1 + column] else words[_worlds_at(of, row, column)]


@inline
def _lacks_row(words: Ints, of: Effects, row: int, time: int) -> bool:
    """Whether values are in doubt since there may be no row; in a total table there is one, with defaults."""
    there = _worlds(words, of, row, of.columns, time)
    return bool(of.total == 0 and there != 0 and there != PRESENT)


@inline
def _is_touched(of: Effects, statement: int, column: int) -> bool:
    """Whether a statement may change a column, or, of the last one, whether there is a row."""
    kind = of.kind[statement]
    if kind == DELETE:
        return True
    if column == of.columns:
        return bool(kind == UPSERT or of.total != 0)
    return bool(of.sets[statement * of.columns + column] != 0)


@inline
def _shifted(worlds: int, by: int, values: int) -> int:
    """The worlds of whole numbers to which a number was added; from beyond an end they may come to any place."""
    below, above = 1 << values, 2 << values
    moved = worlds & 1
    for n in range(1, values):
        if worlds & 1 << n:
            if n + by < 1:
                moved |= below
            elif n + by >= values:
                moved |= above
            else:
                moved |= 1 << (n + by)
    if worlds & below:
        moved |= below
        for n in range(1, min(by, values - 1) + 1):
            moved |= 1 << n
        if by >= values:
            moved |= above
    if worlds & above:
        moved |= above
        for n in range(max(values + by, 1), values):
            moved |= 1 << n
        if -by >= values:
            moved |= below
    return moved


@inline
def _moved(worlds: int, of: Effects, statement: int, column: int) -> int:
    """What a statement makes of known worlds, if it is run once."""
    at = statement * (of.columns + 1) + column
    if of.how[at] == CONSTANT:
        return int(of.by[at])
    return _shifted(worlds, of.by[at], of.values[column]) if of.how[at] == SHIFT else ANYTHING


@inline
def _may_move(words: Ints, of: Effects, marks: Marks, i: int, c: int, lacks: bool, before: Before) -> None:
    """A statement may have been run for a row, or not: of one of its columns."""
    row, statement = marks.row[i], marks.statement[i]
    worlds = _worlds(words, of, row, c, marks.time[i])
    if worlds == 0 and marks.what[i] != MAY_WRITE_LATER:
        known = marks.before[i * (of.columns + 1) + c]
        worlds = known if known != 0 else ANYTHING
    if worlds <= 0 or (lacks and c < of.columns):  # what came before in the same transaction is not told
        _put(words, _stamp_at(of, row, c), DOUBTED, before)
        return
    reached = worlds
    while True:
        more = _moved(reached, of, statement, c)
        if more == ANYTHING:
            _put(words, _stamp_at(of, row, c), DOUBTED, before)
            return
        if more | reached == reached:
            break
        reached |= more
        if of.once[statement]:
            break
    _put(words, _worlds_at(of, row, c), reached, before)


@inline
def _may_write(words: Ints, of: Effects, marks: Marks, i: int, before: Before) -> None:
    statement, row = marks.statement[i], marks.row[i]
    lacks = row >= 0 and _lacks_row(words, of, row, marks.time[i])
    for c in range(of.columns + 1):
        if not _is_touched(of, statement, c):
            continue
        if marks.what[i] == MAY_WRITE_UNTIL:
            _put(words, c, words[c] + 1, before)
            until = of.columns + 1 + c
            _put(words, until, max(words[until], marks.until[i]), before)
        elif row == ANY_ROW:
            _put(words, c, words[c] + 1, before)
        elif row >= 0:
            _may_move(words, of, marks, i, c, lacks, before)


@inline
def _writes_if(words: Ints, of: Effects, marks: Marks, i: int, before: Before) -> None:
    """A statement was run in some worlds of a value, and in no other: what it sets there is known."""
    statement, row, time, asked = marks.statement[i], marks.row[i], marks.time[i], marks.asked[i]
    lacks = _lacks_row(words, of, row, time)
    for c in range(of.columns + 1):
        worlds = _worlds(words, of, row, c, time)
        at = statement * (of.columns + 1) + c
        if c == asked and worlds > 0 and of.how[at] == CONSTANT and not (lacks and c < of.columns):
            _put(words, _worlds_at(of, row, c), (worlds & ~marks.guard[i]) | of.by[at], before)
        elif _is_touched(of, statement, c):
            _may_move(words, of, marks, i, c, lacks, before)
        elif lacks:
            _put(words, _stamp_at(of, row, c), DOUBTED, before)


@inline
def _writes(words: Ints, of: Effects, marks: Marks, i: int, before: Before, new: Ints) -> None:
    """Both runs have done a statement: what it sets is certain, unless that was computed from what is in doubt."""
    statement, row, time, columns = marks.statement[i], marks.row[i], marks.time[i], of.columns
    kind, lacks = of.kind[statement], _lacks_row(words, of, row, time)
    for c in range(columns + 1):  # all of it sees the row as it was
        worlds, at = _worlds(words, of, row, c, time), statement * (columns + 1) + c
        if not _is_touched(of, statement, c):
            if kind == UPSERT and c < columns and lacks:
                worlds = ANYTHING
        elif of.how[at] == CONSTANT:
            is_here = worlds == 0 or marks.is_last[i] != 0  # behind it nothing else may stand here
            worlds = ANYTHING if lacks and kind == UPDATE else 0 if is_here else of.by[at]
        elif of.how[at] == SHIFT:
            worlds = ANYTHING if lacks or worlds < 0 else _shifted(worlds, of.by[at], of.values[c])
        elif kind == DELETE:
            worlds = 0
        else:
            worlds = ANYTHING if lacks and kind == UPDATE else 0
            for o in range(columns):
                if of.of[(statement * columns + c) * columns + o]:
                    worlds = ANYTHING if lacks or _worlds(words, of, row, o, time) != 0 else worlds
        is_doubted = worlds < 0 or time <= words[columns + 1 + c]
        new[c] = DOUBTED if is_doubted else words[c]
        new[columns + 1 + c] = 0 if is_doubted else worlds
    for c in range(columns + 1):
        _put(words, _stamp_at(of, row, c), new[c], before)
        _put(words, _worlds_at(of, row, c), new[columns + 1 + c], before)


@inline
def _compare(words: Ints, of: Effects, marks: Marks, i: int, before: Before) -> None:
    """Where the exact run has what stands here, and nothing else, nothing is in doubt."""
    for c in range(of.columns + 1):
        at, known = _worlds_at(of, marks.row[i], c), marks.before[i * (of.columns + 1) + c]
        if words[at] != 0 and words[at] == known and known >> of.values[c] == 0:
            _put(words, at, 0, before)


@inline
def _happens(words: Ints, of: Effects, marks: Marks, i: int, before: Before, new: Ints) -> None:
    what = marks.what[i]
    if marks.is_first[i] != 0 and marks.row[i] >= 0:
        _compare(words, of, marks, i, before)
    if what != WRITES and what != WRITES_IF:
        _may_write(words, of, marks, i, before)
    elif marks.row[i] >= 0:
        if what == WRITES:
            _writes(words, of, marks, i, before, new)
        else:
            _writes_if(words, of, marks, i, before)


@inline
def _bring_back(words: Ints, before: Before) -> None:
    n = before.used[0]
    while n > 0:
        n -= 1
        words[before.place[n]] = before.word[n]
    before.used[0] = 0


@kernel
def possible(asked: Asked, marks: Marks, of: Effects, words: Ints, before: Before, new: Ints, out: Ints) -> None:
    """The worlds of what is read, by what happened before; the table is afterwards what it was before.

    Complexity: O((reads + marks) * columns).
    """
    left, at = len(marks.row), 0
    for i in range(len(asked.row)):
        while at < left and marks.place[at] <= asked.place[i]:
            if marks.place[at] == asked.place[i]:
                tick, start = marks.tick[at], marks.start[at]
                if tick > asked.tick[i] or (tick == asked.tick[i] and start >= asked.start[i]):
                    break
            _happens(words, of, marks, at, before, new)
            at += 1
        row, column, time = asked.row[i], asked.column[i], asked.time[i]
        out[i] = 0
        if row >= 0:
            lacks = column < of.columns and _lacks_row(words, of, row, time)
            out[i] = ANYTHING if lacks else _worlds(words, of, row, column, time)
    _bring_back(words, before)


@kernel
def happen(marks: Marks, of: Effects, words: Ints, before: Before, new: Ints) -> None:
    """Note what happened, so that it can be taken back. Complexity: O(marks * columns)."""
    for i in range(len(marks.row)):
        _happens(words, of, marks, i, before, new)


@kernel
def take_back(words: Ints, before: Before) -> None:
    """Take back what ``happen`` did. Complexity: O(what it changed)."""
    _bring_back(words, before)


class Seen(NamedTuple):
    """Events of a stream in order, as one rule sees them: key slot (below 0: none), tick, row number.

    ``lost``: the latest start of a run that was lost at each; ``is_unsure``: what it read is in doubt; ``ends``: it
    ends all runs that have begun before, whatever they are.
    """

    slot: Ints
    tick: Ints
    row: Ints
    lost: Ints
    is_unsure: Bools
    ends: Bools


@kernel
def follow(seen: Seen, window: int, never: int, shadow: Ints, first: Ints, is_open: Bools) -> None:
    """Keep for each key slot the latest start of a run that the exact run may have, and this one has not.

    ``shadow`` has that start, ``never`` where there is none, ``first`` the row of the event since when there is one.
    ``is_open``: whether such a run may still be in its window at each event; with ``window`` below 0 it always is.

    Complexity: O(events).
    """
    for i in range(len(seen.slot)):
        slot, tick = seen.slot[i], seen.tick[i]
        is_open[i] = False
        if slot < 0:
            continue
        if seen.ends[i]:
            shadow[slot] = never
        start = max(seen.lost[i], tick) if seen.is_unsure[i] else seen.lost[i]
        if start > never:
            shadow[slot] = max(shadow[slot], start)
            first[slot] = min(first[slot], seen.row[i])
        is_open[i] = shadow[slot] > never and (window < 0 or shadow[slot] >= tick - window)
