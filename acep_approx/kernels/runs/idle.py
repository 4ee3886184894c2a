"""Events that meet no run and begin none: all that is left of them is what is noted about their pools and guards."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import FRESH, IS_STALE, KEPT, LAST_PLACE, POOL, RUNS
from acep_approx.kernels.runs.records import Arena, Batch, Keys, Pools, Program
from acep_approx.kernels.runs.scores import BIRTH_TOKENS, ON_BIRTHS, PRICE_NOW, RATE, let_spend, pace_with


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
    """Whether no event of class ``kind`` begins a run: the start is the first or the last of the sources, if any."""
    tables, shape = program.tables, program.shape
    first, end = tables[shape[at.CLASS_FIRST] + kind], tables[shape[at.CLASS_FIRST] + kind + 1]
    if first == end:
        return True
    pools = shape[at.SOURCES] + at.SOURCE_POOL
    return bool(tables[pools + first * at.SOURCE_WORDS] > 0 and tables[pools + (end - 1) * at.SOURCE_WORDS] > 0)


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


@inline
def is_idle_pair(program: Program, pools: Pools, kind: int) -> bool:
    """Whether an event of class ``kind`` begins no run and tests none, and leaves all others where they are."""
    tables, shape, table = program.tables, program.shape, pools.table
    for s in range(tables[shape[at.CLASS_FIRST] + kind], tables[shape[at.CLASS_FIRST] + kind + 1]):
        pool = tables[shape[at.SOURCES] + s * at.SOURCE_WORDS + at.SOURCE_POOL]
        if pool == 0 or table[pool * POOL + RUNS] > 0:
            return False
    for i in range(tables[shape[at.TARGETS_FIRST] + kind], tables[shape[at.TARGETS_FIRST] + kind + 1]):
        target = shape[at.TARGETS] + at.TARGET_WORDS * i
        p = tables[target] * POOL
        stays = tables[target + at.TARGET_STAYS] == at.STAY and tables[target + at.TARGET_GAP] == 0
        if table[p + IS_STALE] or (table[p + RUNS] > 0 and not stays):
            return False
    return True


@inline
def pass_idle_pairs(control: Ints, batch: Batch, program: Program, pools: Pools, keys: Keys, shedding: Arena) -> None:
    """Go on to the next pair of an event and a query that is of another key, meets a run, or begins one.

    Those that are passed over are granted for, and their key gets its pace. The price waits for the next pair that is
    not.
    """
    first = e = control[at.EVENT]
    key, end, slot, steps = control[at.SLOT], len(batch.slot), batch.slot, 0.0
    while e < end and slot[e] == key and is_idle_pair(program, pools, batch.cls[e]):
        note_guards(program, keys, key, batch.place[e], batch.cls[e])
        pace_with(shedding.pace, key, batch.tick[e], batch.tick[e] - batch.low[e])
        shedding.prices[e] = shedding.floats[PRICE_NOW]
        steps += shedding.stands_for[e]
        e += 1
    if e > first:
        steps *= shedding.floats[RATE]
        let_spend(shedding.floats, steps)
        shedding.floats[BIRTH_TOKENS] += ON_BIRTHS * steps
        control[at.EXPIRED] = batch.low[e - 1]
        control[at.EVENT] = e
