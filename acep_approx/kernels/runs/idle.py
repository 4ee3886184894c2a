"""Events that meet no run and begin none: all that is left of them is what is noted about their pools and guards."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import FRESH, IS_STALE, KEPT, LAST_PLACE, POOL, RUNS
from acep_approx.kernels.runs.records import Batch, Keys, Pools, Program


@inline
def note_guard(keys: Keys, shape: Ints, key: int, place: int, letter: int) -> None:
    """Note that an event of a guard letter came, and where the last one stood that came at an earlier place."""
    at_letter = (key * shape[at.GUARD_LETTERS] + letter) * at.GUARD
    if keys.guards[at_letter] != place:
        keys.guards[at_letter + 1] = keys.guards[at_letter]
        keys.guards[at_letter] = place


@inline
def note_guards(program: Program, keys: Keys, key: int, place: int, kind: int) -> None:
    """Note an event of class ``kind`` with all guard letters that hold on it."""
    tables, shape = program.tables, program.shape
    where = shape[at.GUARDS_FIRST] + kind
    for i in range(tables[where], tables[where + 1]):
        note_guard(keys, shape, key, place, tables[shape[at.GUARDS] + i])


@inline
def begins_none(program: Program, kind: int) -> bool:
    """Whether no event of class ``kind`` begins a run: the start is the first of the sources, if it is one."""
    tables, shape = program.tables, program.shape
    first, end = tables[shape[at.CLASS_FIRST] + kind], tables[shape[at.CLASS_FIRST] + kind + 1]
    return bool(first == end or tables[shape[at.SOURCES] + first * at.SOURCE_WORDS + at.SOURCE_POOL] > 0)


@inline
def meets_none(program: Program, pools: Pools, kind: int) -> bool:
    """Whether the pools that an event of class ``kind`` has to do with are empty, and nothing is left to do there."""
    tables, table = program.tables, pools.table
    where = program.shape[at.TARGETS_FIRST] + kind
    for i in range(tables[where], tables[where + 1]):
        p = tables[program.shape[at.TARGETS] + at.TARGET_WORDS * i] * POOL
        if table[p + RUNS] > 0 or table[p + IS_STALE]:
            return False
    return True


@inline
def note_passed(program: Program, pools: Pools, kind: int, place: int) -> None:
    """Note in empty pools what ``begin_pool`` notes: that they have no children yet, and which event came last.

    ``place``: of the last of some events of class ``kind``.
    """
    tables, table = program.tables, pools.table
    where = program.shape[at.TARGETS_FIRST] + kind
    for i in range(tables[where], tables[where + 1]):
        p = tables[program.shape[at.TARGETS] + at.TARGET_WORDS * i] * POOL
        table[p + FRESH] = 0
        table[p + KEPT] = 0
        table[p + LAST_PLACE] = place


@inline
def pass_idle(control: Ints, batch: Batch, program: Program, pools: Pools, keys: Keys) -> None:
    """Go on to the next event that is of another key, meets a run, or begins one."""
    first = e = control[at.EVENT]
    key, end, slot, cls, place = control[at.SLOT], len(batch.slot), batch.slot, batch.cls, batch.place
    while e < end and slot[e] == key:
        kind = cls[e]
        if not begins_none(program, kind) or not meets_none(program, pools, kind):
            break
        while e < end and slot[e] == key and cls[e] == kind:  # of which each finds what the one before it found
            note_guards(program, keys, key, place[e], kind)
            e += 1
        note_passed(program, pools, kind, place[e - 1])
    if e > first:
        control[at.STAMP] += e - first
        control[at.HASHED_NOW] = 0
        control[at.HITS_BEFORE] = control[at.HITS]
        control[at.EXPIRED] = batch.low[e - 1]
        control[at.EVENT] = e
