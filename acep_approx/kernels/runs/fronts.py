"""Which children become runs: those that no better run stands beside and, inside a budget, that are worth the price.

A run that dominates another can do all that it can. Where nothing is shed and nothing listed, the other is dropped.

Inside a budget ``admit`` decides what becomes of them. Source: dominance is ours (see ``automaton.dominance``).
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.marks import called, compact, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import (
    ALIKE,
    BASE,
    COLUMNS,
    FRESH,
    HEAD,
    INDEX,
    INDEX_SIZE,
    IS_STALE,
    NEVER,
    OLDEST,
    POOL,
    ROOM,
    RUNS,
    agree,
    copy_run,
    head_of,
    same_registers,
)
from acep_approx.kernels.runs.records import Arena, Event, Front, Pools, Program
from acep_approx.kernels.runs.scores import (
    ADMITTED,
    AUDITED,
    BIRTH_TOKENS,
    BORN,
    BORN_FROM,
    BORN_IN,
    DOMINATED,
    DOMINATED_SHARE,
    JOINS,
    LOG_BIRTHS,
    LOGS,
    LOW_PRICE,
    MOST,
    MOST_RUNS,
    NORMAL,
    PASSES,
    PRICE,
    PRICE_NOW,
    TOKENS,
    WOULD_GO,
    known_group,
    left,
    log_score,
    mark_at,
    note,
    refuse,
)
from acep_approx.kernels.runs.vm import BLOCK, NULL
from acep_approx.kernels.runs.weighing import needed_score, note_agreed, note_kept, score_of

EQUAL, LOW_INT, HIGH_INT, LOW_FLOAT, HIGH_FLOAT = range(5)
"""Which values of a register are the better ones; EQUAL: none are."""

LARGE_FRONT = 256
"""Runs in a pool beyond which no dominated ones are looked for, where nothing is shed."""
UNRELATED, BETTER, WORSE, SAME = range(4)
"""What a run is beside a child."""


@inline
def front_of(program: Program, table: Ints, pool: int, fields: int) -> Front:
    """Where the runs of a pool stand, of which the first ``fields`` are compared: looked up once for all of them."""
    p, front = pool * POOL, program.tables[program.shape[at.STATES] + pool * at.STATE + at.STATE_FRONT]
    return Front(
        pool, table[p + BASE], table[p + ROOM], mark_at(table, p, 0), program.shape[at.FRONTS] + front, int(fields)
    )


@inline
def is_as_good(pools: Pools, how: int, one: int, other: int) -> bool:
    """Whether a run with the register at ``one`` can do all that it could with that at ``other``."""
    v, z = pools.words[one], pools.words[other]
    if how == LOW_INT:
        good = (v <= z) & (v != NULL)
    elif how == HIGH_INT:
        good = (v >= z) & (z != NULL)  # NULL can become better than any value, by an aggregate that skips it
    elif how == LOW_FLOAT:
        good = pools.floats[one] <= pools.floats[other]
    elif how == HIGH_FLOAT:
        good = pools.floats[one] >= pools.floats[other]
    else:
        good = False
    return bool(good | (v == z))


@inline
def dominates(program: Program, pools: Pools, front: Front, one: int, other: int) -> bool:
    """Whether run ``one`` can do all that ``other`` can: it started no earlier, and no register stands in its way."""
    base, room = front.base, front.room
    if pools.words[base + one] < pools.words[base + other]:
        return False
    for f in range(front.fields):
        column = base + (COLUMNS + f) * room
        if not is_as_good(pools, program.tables[front.directions + f], column + one, column + other):
            return False
    return True


@inline
def next_to_agree_in(program: Program, front: Front, f: int) -> int:
    """The first field, from ``f`` on, in which a run must equal those that it dominates; ``fields`` if none is."""
    while f < front.fields and program.tables[front.directions + f] != EQUAL:
        f += 1
    return f


@inline
def that_agree(program: Program, pools: Pools, front: Front, child: int, begin: int, end: int) -> int:
    """Write down which of at most BLOCK runs equal a child in all fields where they must; returns how many do.

    The first two fields are compared together, as one alone may have few values.
    """
    words, chosen, m = pools.words, program.shape[at.SCRATCH], end - begin
    first = next_to_agree_in(program, front, 0)
    if first == front.fields:
        for q in range(m):
            words[chosen + q] = begin + q
        return int(m)
    second = next_to_agree_in(program, front, first + 1)
    if second == front.fields:
        second = first
    one, other, kept = front.base + (COLUMNS + first) * front.room, front.base + (COLUMNS + second) * front.room, 0
    v, z = words[one + child], words[other + child]
    for run in range(begin, end):
        words[chosen + kept] = run
        kept += (words[one + run] == v) & (words[other + run] == z)
    f = next_to_agree_in(program, front, second + 1)
    while f < front.fields:
        column, m, kept = front.base + (COLUMNS + f) * front.room, kept, 0
        v = words[column + child]
        for q in range(m):
            run = words[chosen + q]
            words[chosen + kept] = run
            kept += words[column + run] == v
        f = next_to_agree_in(program, front, f + 1)
    return int(kept)


@inline
def of_those(program: Program, pools: Pools, front: Front, child: int, m: int, dominate: bool) -> int:
    """Write down which of the ``m`` runs of ``that_agree`` dominate a child, or are dominated by it; behind those runs.

    Returns how many do. What a comparison gives is added up, and not branched on: the processor could not predict it.
    """
    words, source = pools.words, program.shape[at.SCRATCH]
    chosen, kept, start = source + BLOCK, 0, words[front.base + child]
    for q in range(m):
        run = words[source + q]
        words[chosen + kept] = run
        began = words[front.base + run]
        kept += began >= start if dominate else began <= start
    m = kept
    for f in range(front.fields):
        how = program.tables[front.directions + f]
        if how != EQUAL:
            column, kept = front.base + (COLUMNS + f) * front.room, 0
            for q in range(m):
                run = words[chosen + q]
                words[chosen + kept] = run
                one, other = (run, child) if dominate else (child, run)
                kept += is_as_good(pools, how, column + one, column + other)
            m = kept
    return int(m)


@inline
def none_dominates(program: Program, pools: Pools, front: Front, child: int, head: int, end: int) -> bool:
    """Whether no run ``head .. end - 1`` dominates a child. If so, runs that it dominates get the start NEVER."""
    words = pools.words
    while end > head:
        begin = max(end - BLOCK, head)
        m = that_agree(program, pools, front, child, begin, end)
        if of_those(program, pools, front, child, m, True) > 0:
            return False
        for q in range(of_those(program, pools, front, child, m, False)):
            words[front.base + words[program.shape[at.SCRATCH] + BLOCK + q]] = NEVER
        end = begin
    return True


@compact
def keep_front(program: Program, pools: Pools, pool: int, children: int, runs: int) -> int:
    """Of runs and children of a pool keep those that no other dominates; returns where they end.

    Only where nothing is listed: the lineage of the others is lost. Where many runs are left that do not dominate each
    other, looking for more that do would cost more than it saves. Those before the head stay where they are: were they
    taken out, the head would pass over live ones.
    """
    words, p, end = pools.words, pool * POOL, children
    head, front = pools.table[p + HEAD], front_of(program, pools.table, pool, pools.table[p + ALIKE])
    if children - head > LARGE_FRONT:
        return runs
    for child in range(children, runs):
        if none_dominates(program, pools, front, child, head, end):
            copy_run(pools, p, end, child)
            end += 1
    kept = head
    for run in range(head, end):
        if words[front.base + run] != NEVER:
            copy_run(pools, p, kept, run)
            kept += 1
    return int(kept)


@inline
def flag_at(program: Program, table: Ints, p: int, run: int) -> int:
    """Where stands whether a run is dominated."""
    behind = COLUMNS + table[p + ALIKE] + program.shape[at.DOMINATED]
    return int(table[p + BASE] + behind * table[p + ROOM] + run)


@inline
def compared(program: Program, pools: Pools, front: Front, run: int, child: int, merges: bool) -> int:
    """What a run is beside a child of its pool: SAME where the two will be merged.

    A run that only the audit keeps is better than none. ``merges``: the other one will be lost: where the audit
    protects it, only one that is protected, too, is better.
    """
    table, words, p = pools.table, pools.words, front.pool * POOL
    one, other, what = run, child, BETTER
    if words[front.base + run] < words[front.base + child]:
        one, other, what = child, run, WORSE
    if not dominates(program, pools, front, one, other):
        return UNRELATED
    mark = words[front.marks + one]
    if mark == WOULD_GO or (merges and mark == NORMAL and words[front.marks + other] != NORMAL):
        return UNRELATED
    is_indexed = table[p + INDEX_SIZE] > 0 and not table[p + IS_STALE]
    if is_indexed and same_registers(pools, p, table[p + ALIKE], run, child):
        return SAME
    return what


MOST_LOOKS, MOST_PASSED = 64, 256
"""Runs that a child is compared with at most, the last ones made; and dominated ones that are passed over: what such a
one is better than, the one that dominates it is better than, too."""
LOOK = 0.25
"""What a comparison costs, in run-steps; a convention."""


@called
def dominate(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, run: int) -> bool:
    """Note that a run is dominated; returns whether it is not worth the price any more, and is counted as shed."""
    words, p = pools.words, pool * POOL
    flag, mark = flag_at(program, pools.table, p, run), mark_at(pools.table, p, run)
    if words[flag] or words[mark] == WOULD_GO:
        return False
    words[flag] = 1
    if shedding.floats[DOMINATED_SHARE] == 0.0:
        control[at.MERGED] += 1
        return True
    price = shedding.floats[PRICE_NOW]
    score, covered, _ = score_of(program, pools, shedding, event, pool, run, 0, needed_score(shedding.words, price))
    if score >= price:
        return False
    if words[mark] != NORMAL:
        words[mark] = WOULD_GO
        return False
    entry = refuse(control, pools, shedding, event, pool, run, DOMINATED)
    if entry >= 0:
        log_score(shedding, entry, score, price, covered)
    return True


@inline
def meet(
    control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, front: Front, run: int, child: int
) -> bool:
    """Whether a run dominates a child; where it is the other way round, the run goes if it is not worth the price."""
    what = compared(program, pools, front, run, child, shedding.floats[DOMINATED_SHARE] == 0.0)
    if what == WORSE and dominate(control, program, pools, shedding, event, front.pool, run):
        pools.words[front.base + run] = NEVER  # it leaves with those that are too old
        pools.table[front.pool * POOL + OLDEST] = NEVER
    return what == BETTER


@inline
def is_dominated(
    control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int, child: int
) -> bool:
    """Whether a run of its pool dominates a child, as far as the budget lets us look: at the last runs made first."""
    table, words, worth, p = pools.table, pools.words, shedding.floats, pool * POOL
    front, head, fresh = front_of(program, table, pool, table[p + ALIKE] - 1), table[p + HEAD], table[p + FRESH]
    base, flags = front.base, flag_at(program, table, p, 0)
    in_chain = program.tables[program.shape[at.STATES] + pool * at.STATE + at.STATE_IN_CHAIN]
    most, looks, passed, found, run = min(MOST_LOOKS, int(left(worth) / LOOK)), 0, 0, False, child - 1
    while run >= (fresh if in_chain else head) and looks < most and passed < MOST_PASSED and not found:
        if words[flags + run]:
            passed += words[base + run] >= event.low
        elif words[base + run] >= event.low:
            looks += 1
            found = meet(control, program, pools, shedding, event, front, run, child)
        run -= 1
    if in_chain:
        links, run = table[p + INDEX] + table[p + INDEX_SIZE], pools.chains[head_of(pools, p, child)] - 1
        while run >= head and looks < most and passed < MOST_PASSED and not found:
            if words[base + run] < event.low or not agree(pools, p, run, child):
                pass
            elif words[flags + run]:
                passed += 1
            else:
                looks += 1
                found = meet(control, program, pools, shedding, event, front, run, child)
            run = pools.chains[links + run] - 1
    worth[TOKENS] -= LOOK * looks
    worth[PASSES] += LOOK * looks
    return found


@inline
def looks_for_dominated(program: Program, shedding: Arena, pool: int) -> bool:
    """Whether runs of a pool may dominate one another, and go for it."""
    shed, share = shedding.words, shedding.floats[DOMINATED_SHARE]
    front = program.tables[program.shape[at.STATES] + pool * at.STATE + at.STATE_FRONT]
    if program.shape[at.DOMINATED] < 0 or front < 0 or share == 1.0:
        return False
    return bool(share == 0.0 or shedding.floats[PRICE_NOW] > 0.0 or shed[MOST_RUNS] >= 0)


@inline
def pay_back(control: Ints, shedding: Arena) -> None:
    """A birth that was a run-step is refused: it was no more than a look."""
    worth = shedding.floats
    control[at.DONE_STEPS] -= 1
    worth[TOKENS] += 1.0 - LOOK
    worth[BIRTH_TOKENS] += 1.0 - LOOK
    worth[PASSES] += LOOK


@called
def admit(control: Ints, program: Program, pools: Pools, shedding: Arena, event: Event, pool: int) -> int:
    """Shed children that are not worth the price, alone or beside a better run; returns where the others end."""
    shed, table, words, p = shedding.words, pools.table, pools.words, pool * POOL
    base, children, runs = table[p + BASE], table[p + FRESH], table[p + RUNS]
    end, price, live = children, shedding.floats[PRICE_NOW], control[at.LIVE]
    has_price = shedding.floats[PRICE] > 0.0 or shed[MOST_RUNS] >= 0
    looks = looks_for_dominated(program, shedding, pool)
    needed = needed_score(shed, price)
    for child in range(children, runs):
        if shed[LOGS] & LOG_BIRTHS:
            note(control, pools, shedding, event, pool, child, BORN)
        copy_run(pools, p, end, child)
        mark, group = mark_at(table, p, end), 0
        if has_price:
            score, covered, group = price, 0.0, known_group(pools, shedding, pool, end, event.key)
            if price > 0.0:
                score, covered, group = score_of(program, pools, shedding, event, pool, end, 0, needed)
            is_full = shed[MOST_RUNS] >= 0 and live + end - children >= shed[MOST_RUNS]
            if is_full or (score < price and words[mark] == NORMAL):
                entry = refuse(control, pools, shedding, event, pool, end, MOST if is_full else LOW_PRICE)
                if pool == shed[BORN_IN] and child >= shed[BORN_FROM]:
                    pay_back(control, shedding)
                if entry >= 0:
                    log_score(shedding, entry, score, price, covered)
                continue
            if score < price and words[mark] == AUDITED:
                words[mark] = WOULD_GO
        if looks and words[mark] != WOULD_GO and is_dominated(control, program, pools, shedding, event, pool, end):
            if dominate(control, program, pools, shedding, event, pool, end):
                continue
        if has_price and words[mark] != WOULD_GO:  # what the policy would have shed covers nothing
            start = words[base + end]
            note_kept(shed, pool, group, start)
            if shed[JOINS] > 0:
                note_agreed(pools, shed, pool, end, event.key, start)
            shed[ADMITTED] = max(shed[ADMITTED], start)
        end += 1
    return int(end)
