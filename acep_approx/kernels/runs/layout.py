"""Where the kernel of the runs engine finds things: the parts of its tables, and the words of its records."""

from __future__ import annotations

# where the parts of the tables begin
(
    CLASS_FIRST,
    SOURCES,
    TARGETS_FIRST,
    TARGETS,
    STEPS,
    STATES,
    ENDS,
    MOVES,
    GUARDS_FIRST,
    GUARDS,
    PROBES,
    FRONTS,
) = range(12)
# other numbers of one query
(
    WINDOW,
    EVENT_COLUMNS,
    COLUMNS_AT,
    GUARD_LETTERS,
    KEEPS_LINEAGE,
    TEMPORARIES,
    SCRATCH,
    POOLS,
    NON_OVERLAP,
    SHEDS,
    NOW_AT,
) = range(12, 23)
SHAPE = 23

(
    SOURCE_POOL,
    SOURCE_FIRST,
    SOURCE_COUNT,
    SOURCE_PROBE,
    SOURCE_REMOVES,
    SOURCE_STAYS,
    SOURCE_IGNORE,
    SOURCE_IGNORE_LENGTH,
) = range(8)
SOURCE_WORDS = 8
"""Words of a source: pool, first step, steps, where the scalars for its index stand (-1: it is gone through), whether
runs are taken away, which do if no step inhibits, (begin, length) of what those test that may stay."""
LEAVE, STAY, MAY_STAY = range(3)
"""What an event does to the runs of a source: they end, they stay, or they stay where a program says so."""
TARGET_POOL, TARGET_GAP, TARGET_KEEPS = range(3)
TARGET_WORDS = 3
"""Words of a pool that an event has to do with: the pool, whether its runs end where events have come between, whether
those stay that nothing takes away."""
(
    STEP_TARGET,
    STEP_ARC,
    STEP_CHECKS,
    STEP_CHECKS_LENGTH,
    STEP_GUARDS,
    STEP_GUARDS_LENGTH,
    STEP_UPDATES,
    STEP_UPDATES_LENGTH,
    STEP_MOVES,
    STEP_FIELDS,
    STEP_INHIBITS,
    STEP_IN_PLACE,
) = range(12)
STEP = 12
"""Words of a step: target pool (-1: it only takes runs away), arc, (begin, length) of checks, guards and updates,
moves, their number, inhibits, in place."""
STATE_STAYS, STATE_ENDS_FIRST, STATE_ENDS, STATE_CHECKS, STATE_CHECKS_LENGTH, STATE_FRONT = range(6)
STATE = 6
"""Words per pool: keeps runs, ends begin, ends, (begin, length) of the final checks, its front (-1: none)."""

# header: where the kernel is, and what it counts
(
    EVENT,
    PHASE,
    SOURCE,
    OFFSET,
    SLOT,
    LINKS,
    HITS,
    DONE_STEPS,
    LIMIT,
    MADE,
    MERGED,
    LIVE,
    PEAK,
    ASK,
    STAMP,
    STORED,
    HASHED_NOW,
    EXPIRED,
    HITS_BEFORE,
    SHED,
    LOGGED,
) = range(21)
HEADER = 21

(
    DONE,
    GROW_POOL,
    GROW_LINKS,
    GROW_HITS,
    GROW_STORE,
    GROW_BUCKETS,
    STOPPED,
    TOO_LARGE,
    LOG_FULL,
    SAMPLE_FULL,
) = range(10)

HIT_EVENT, HIT_FINAL, HIT_ERRORS, HIT_LINK, HIT_START, HIT_MARK = range(6)
HIT = 6
"""Words of a hit: event, final, errors, link, start, mark of the run (0 where nothing is shed)."""
LINK_HERE, LINK_BEFORE, LINK_OTHER, LINK_START, LINK_LATEST = range(5)
LINK = 5
"""Words of a link: row and arc, the link before, the next alternative, its start, the latest start from here on.

A link of row and arc -1 binds nothing: the two links it names are alternatives.
"""
ARC_BITS = 18
ARC_MASK = (1 << ARC_BITS) - 1
NO_LINEAGE, WITHOUT_OWNER, WITH_OWNER = 0, 1, 2
"""Whether links are kept, and for each its key."""
