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


class Update(NamedTuple):
    """How far a batch is: the header, (target, start) of runs to be entered, and (event index, arc) of the hits."""

    header: Ints
    pending: Ints
    hits: Ints


# header of an update: next event, entries used in the arena, hits, slot at hand, its floor, and what is asked for
NEXT, USED, HITS, SLOT, FLOOR, ASK, ASK_CLASS, UPDATE_HEADER = 0, 1, 2, 3, 4, 5, 6, 7


class Walk(NamedTuple):
    """Where a walk back through the logs stands: hits, header, frames, and (place, label) of the path, latest first."""

    hits: Ints
    header: Ints
    stack: Ints
    path: Ints


# header of a walk: hit at hand, depth of the stack, matches and events written; matches and steps of the hit at hand
HIT, DEPTH, MATCHES, WRITTEN, TOTAL, STEPS, WALK_HEADER = 0, 1, 2, 3, 4, 5, 6

# a frame: next arc into the state, end of the arcs, arc at hand, next entry, end of the entries, events so far, place
NEXT_ARC, END_ARC, AT_ARC, ENTRY, END_ENTRY, LENGTH, BOUND, FRAME = 0, 1, 2, 3, 4, 5, 6, 7


class CountScratch(NamedTuple):
    """Scratch of a count: per log the next entry and the runs that an entry adds, per state its runs."""

    place: Ints
    fresh: Ints
    runs: Ints
