"""What the kernels of the arc logs share with ``engines/cells/arclogs.py``: records of arrays, and their columns."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints


class EventArrays(NamedTuple):
    """Events of a batch, grouped by key slot, ordered inside: key slot, tick, class and place of each."""

    slot: Ints
    tick: Ints
    cls: Ints
    place: Ints


class Tables(NamedTuple):
    """The determinised automaton: its parts one after the other in ``words``; ``offsets`` says where each begins."""

    words: Ints
    offsets: Ints


# offsets: per class its sources and passes, per source its moves; per arc; per state the arcs into it, and its reset
# log; then what there is room for in each slot: states and logs
SOURCES, SOURCE, MOVE, PASSES, PASS, ARC, INTO, INTO_ARC, RESET, STATES, LOGS = range(11)

# a source: its state, its first move, and how many moves it has
SOURCE_STATE, FIRST_MOVE, MOVES, SOURCE_COLUMNS = 0, 1, 2, 3
NOT_MADE = -1
"""For the number of moves: nobody has asked for them yet."""

# a pass, of an event that breaks a guard of a state: the state, the arc to the state without the guard, the reset log
PASS_STATE, PASS_ARC, PASS_RESET, PASS_COLUMNS = 0, 1, 2, 3

# an arc: source, target, label, errors of a match that it completes (-1: it completes none), whether it keeps a log
ARC_SOURCE, ARC_TARGET, ARC_LABEL, ARC_ERR, ARC_KEEPS, ARC_COLUMNS = 0, 1, 2, 3, 4, 5


class Logs(NamedTuple):
    """All logs: per slot and log its head, and in the arena (place, latest start of a run that goes on there)."""

    heads: Ints
    arena: Ints


# a head: where the log's room in the arena begins, its first entry and its end there, and its room, all in entries
OFFSET, FIRST, END, ROOM, HEAD_COLUMNS = 0, 1, 2, 3, 4
ENTRY_PLACE, ENTRY_START, ENTRY_COLUMNS = 0, 1, 2
NOWHERE = -(2**62)
"""Before all places."""


class Update(NamedTuple):
    """How far a batch is: the header, (target, start) of runs to be entered, and (event index, arc) of the hits."""

    header: Ints
    pending: Ints
    hits: Ints


# header of an update: next event, entries used in the arena, hits, slot at hand, its floor, and what is asked for
NEXT, USED, HITS, SLOT, FLOOR, ASK, ASK_CLASS, UPDATE_HEADER = 0, 1, 2, 3, 4, 5, 6, 7


# of a log the entries that lie before an event, in its window: which event that is, its key slot, the first, the end
RANGE_OF, RANGE_SLOT, RANGE_FIRST, RANGE_END, RANGE = 0, 1, 2, 3, 4

# a cursor in a log: its arc, what that binds an event to, and the entries that are left, the first and the end; they
# are taken from the end
CURSOR_ARC, BINDS, LOW, HIGH, CURSOR = 0, 1, 2, 3, 4
BEGINS, SILENT = -2, -1
"""In the place of what it binds to: the entries are first events; the arc binds nothing."""


class Walk(NamedTuple):
    """Where a walk back through the logs stands: hits, header, frames, cursors, ranges of the logs, and the path.

    The path is (place, label) of the events so far, latest first.
    """

    hits: Ints
    header: Ints
    frames: Ints
    cursors: Ints
    ranges: Ints
    path: Ints


# header of a walk: first of the current hits, which are of one event with as many errors, and the first of the next
# ones; their number, from 1, and the label that the event is bound to; depth of the stack, cursors in use; matches that
# were found and not put out, and their events; events that were put out; whether two first events had one time
HIT, NEXT_HIT, GROUP, LABEL, DEPTH, CURSORS, MATCHES, WRITTEN_EVENTS, EVENTS_OUT, HAS_TIES, WALK_HEADER = range(11)

# a frame: its first cursor, and how many events come later
FIRST_CURSOR, LENGTH, FRAME = 0, 1, 2


class Count(NamedTuple):
    """Scratch of counting: header, cursors, ranges of the logs; per state ways to the end, ways to add, marks.

    ``seen`` are the states whose logs are looked at, ``changed`` those that the current event changes.
    """

    header: Ints
    cursors: Ints
    ranges: Ints
    ways: Ints
    added: Ints
    marks: Ints
    seen: Ints
    changed: Ints


# header of a count: cursors in use, states that are seen, and changed; matches so far
IN_USE, SEEN, CHANGED, TOTAL, COUNT_HEADER = 0, 1, 2, 3, 4
