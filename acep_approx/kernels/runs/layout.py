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
    HIDDEN,
    SHOWN,
) = range(14)
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
    SIMULTANEOUS,
    GONE,
    TIMES,
    DOMINATED,
    SHOWN_WORDS,
) = range(14, 30)
SHAPE = 30

(
    SOURCE_POOL,
    SOURCE_FIRST,
    SOURCE_COUNT,
    SOURCE_PROBE,
    SOURCE_REMOVES,
    SOURCE_CHARGED,
    SOURCE_CALLS,
    SOURCE_STAYS,
    SOURCE_IGNORE,
    SOURCE_IGNORE_LENGTH,
    SOURCE_IS_PLAIN,
    SOURCE_SCALAR,
    SOURCE_PASSES,
) = range(13)
SOURCE_WORDS = 13
"""Words of a source: pool, first step, steps, where the scalars for its index stand (-1: it is gone through), whether
runs are taken away, whether its tests are run-steps, how many functions are called before each block, which runs stay
if no step inhibits, (begin, length) of what those test that may stay, and
whether it is plain: it has no index, and its programs do nothing but compare registers with scalars, where the scalar
stands that all its steps want beyond the thresholds of runs (-1: none), and how it passes them
(``waiting``)."""
LEAVE, STAY, MAY_STAY = range(3)
"""What an event does to the runs of a pool if no step inhibits: they end, stay, or stay where a program says so."""
TARGET_POOL, TARGET_GAP, TARGET_STAYS = range(3)
TARGET_WORDS = 3
"""Words of a pool that an event has to do with: the pool, whether its runs end where events have come between, which
runs stay if no step inhibits."""
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
    STEP_FROM,
    STEP_UNTIL,
) = range(14)
STEP = 14
"""Words of a step: target pool (-1: it only takes runs away), arc, (begin, length) of checks, guards and updates,
moves, their number, inhibits, in place, the first tick it is open at, and the first at which it is no more."""
(
    STATE_STAYS,
    STATE_ENDS_FIRST,
    STATE_ENDS,
    STATE_CHECKS,
    STATE_CHECKS_LENGTH,
    STATE_FRONT,
    STATE_IN_CHAIN,
) = range(7)
STATE = 7
"""Words per pool: keeps runs, ends begin, ends, (begin, length) of the final checks, its front (-1: none), and
whether runs that may dominate one another stand in one chain of its index."""

# header: where the kernel is, and what it counts; LIMIT: run-steps, counted from the beginning, of which none is passed
# (-1: as many as there are; -2 - n: it stops before the first block that begins when n are done, which changes nothing)
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
    CALLED,
) = range(22)
HEADER = 22

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
    CALL,
) = range(11)

HIT_EVENT, HIT_FINAL, HIT_ERRORS, HIT_LINK, HIT_START, HIT_MARK, HIT_TIMES = range(7)
HIT = 7
"""Words of a hit: event, final, errors, link, start, mark of the run (0 where nothing is shed), and how many runs it
stands for (1 where they are not counted). Beside it, in an array of their own, stand the SHOWN_WORDS registers of the
run that results show: the part SHOWN has their columns, pool by pool."""
NOT_HIDDEN = -1
"""In the place of a hidden column that runs do not have."""
LINK_HERE, LINK_BEFORE, LINK_OTHER, LINK_START, LINK_LATEST = range(5)
LINK = 5
"""Words of a link: id and arc, the link before, the next alternative, its start, the latest start from here on.

A link of id and arc -1 binds nothing: the two links it names are alternatives.
"""
GUARD = 2
"""Words of a guard letter: the places of its last event, and of the last one before that place."""
ARC_BITS = 18
ARC_MASK = (1 << ARC_BITS) - 1
NO_LINEAGE, WITHOUT_OWNER, WITH_OWNER = 0, 1, 2
"""Whether links are kept, and for each its key."""
