"""Which values of a table may not be those of the exact run: kept value by value, in the order of the stream.

Inside a load budget a match may be missed, or be one that the exact run has not, as what it read was in doubt. What
such a match writes is in doubt from then on, until a match that is certain writes it. All that a table has is one flat
array: for each column its *level* and the tick until which all of it is in doubt; then for each row and column a
*stamp*. A value is in doubt where its stamp is below the level of its column. So one step puts a whole column in doubt.
The last "column" says whether there is a row.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.rules.rows import DELETE, UPDATE, UPSERT

MAY_WRITE, MAY_WRITE_UNTIL, WRITES = 0, 1, 2
"""What happens: a statement may have been run, or not, by the exact run alone or here alone; the same, of any row, at
any time up to a tick; it was run by both."""
ANY_ROW = -3
"""In the place of a row: nobody knows which."""
DOUBTED = -1
"""A stamp below all levels."""


class Marks(NamedTuple):
    """What happened, in order; ``time`` is the tick of the transaction, ``until`` that of ``MAY_WRITE_UNTIL``."""

    place: Ints
    tick: Ints
    start: Ints
    time: Ints
    row: Ints
    statement: Ints
    what: Ints
    until: Ints


class Effects(NamedTuple):
    """What the statements of a table do; ``columns`` without that of the rows, ``total`` as the table is.

    ``sets[s * columns + c]``: statement ``s`` sets a column; ``of[(s * columns + c) * columns + o]``: to what it
    computes from another column.
    """

    columns: int
    total: int
    kind: Ints
    sets: Ints
    of: Ints


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
    return 2 * (of.columns + 1) + row * (of.columns + 1) + column


@inline
def _is_doubted(words: Ints, of: Effects, row: int, column: int, time: int) -> bool:
    """Whether a value is in doubt, apart from whether there is a row."""
    is_below = words[_stamp_at(of, row, column)] < words[column]
    return bool(is_below or time <= words[of.columns + 1 + column])


@inline
def _lacks_row(words: Ints, of: Effects, row: int, time: int) -> bool:
    """Whether values are in doubt since there may be no row; in a total table there is one, with defaults."""
    return bool(of.total == 0 and _is_doubted(words, of, row, of.columns, time))


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
def _may_write(words: Ints, of: Effects, marks: Marks, i: int, before: Before) -> None:
    statement, row = marks.statement[i], marks.row[i]
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
            _put(words, _stamp_at(of, row, c), DOUBTED, before)


@inline
def _writes(words: Ints, of: Effects, marks: Marks, i: int, before: Before, new: Ints) -> None:
    """Both runs have done a statement: what it sets is certain, unless that was computed from what is in doubt."""
    statement, row, time, columns = marks.statement[i], marks.row[i], marks.time[i], of.columns
    kind, lacks = of.kind[statement], _lacks_row(words, of, row, time)
    for c in range(columns + 1):  # all of it sees the row as it was
        is_doubted = words[_stamp_at(of, row, c)] < words[c]
        if kind == DELETE:
            is_doubted = False
        elif c == columns:
            is_doubted = is_doubted and not _is_touched(of, statement, c)
        elif of.sets[statement * columns + c]:
            is_doubted = lacks and kind == UPDATE
            for o in range(columns):
                if of.of[(statement * columns + c) * columns + o]:
                    is_doubted = is_doubted or lacks or _is_doubted(words, of, row, o, time)
        elif kind == UPSERT:
            is_doubted = is_doubted or lacks
        new[c] = DOUBTED if is_doubted or time <= words[columns + 1 + c] else words[c]
    for c in range(columns + 1):
        _put(words, _stamp_at(of, row, c), new[c], before)


@inline
def _happens(words: Ints, of: Effects, marks: Marks, i: int, before: Before, new: Ints) -> None:
    if marks.what[i] != WRITES:
        _may_write(words, of, marks, i, before)
    elif marks.row[i] >= 0:
        _writes(words, of, marks, i, before, new)


@inline
def _bring_back(words: Ints, before: Before) -> None:
    n = before.used[0]
    while n > 0:
        n -= 1
        words[before.place[n]] = before.word[n]
    before.used[0] = 0


@kernel
def doubted(asked: Asked, marks: Marks, of: Effects, words: Ints, before: Before, new: Ints, out: Bools) -> None:
    """Whether what is read is in doubt, by what happened before; the table is afterwards what it was before.

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
        out[i] = row >= 0 and (_lacks_row(words, of, row, time) or _is_doubted(words, of, row, column, time))
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
