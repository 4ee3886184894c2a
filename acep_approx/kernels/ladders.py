"""Match points of many queries, event by event, where of all matches of a point only the latest start is asked for.

Then two runs in one state are told apart by their starts and by the one register that later tests read: a run that
started later and whose register is no worse can do all that the other can. What is left at a state is a *ladder*: the
later the start, the worse the register. An event takes the newest run that it passes, found by bisection, and puts one
run on the next ladder; pairs of events and queries are run as they are found, and never written down.

Source: dominance is ours (see ``automaton.dominance`` and ``kernels.runs.fronts``); pairs are found as in
``kernels.pairs``. Oracle: the runs engine, with which saved runs are shared, and each query alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acep_approx.arrays import ByKey, Floats, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.pairs import (
    ALL_LETTERS,
    BEGUN,
    CONTROL,
    DONE,
    GROUP_NEXT,
    LIVE_NEXT,
    OUT_FULL,
    SLOTS_FULL,
    USED,
    WANTED,
    Letters,
    Queries,
    Slots,
    begin_group,
    mask_of,
)
from acep_approx.kernels.runs.pools import COLUMNS, NEVER
from acep_approx.kernels.runs.saved import POOL_MASK, SAVED, SPAN
from acep_approx.kernels.runs.vm import NULL

STORED, LIVE, SEARCHED, MADE, MERGED, PEAK = range(CONTROL, CONTROL + 6)
LADDER_CONTROL = CONTROL + 6
"""Behind the words of ``pairs``: where saved runs end, how many live, and what was done: searches, runs made, those of
them that were merged, the most that lived."""
SPANS_FULL, LADDERS_FULL, STORE_FULL = range(3, 6)
"""More to make room for: keys of the store, runs of a ladder, words of the store (``control[WANTED]``)."""

STEP_LETTER, STEP_SOURCE, STEP_TARGET, STEP_ENDS, STEP_VALUE, STEP_TEST, STEP_TESTS = range(7)
STEP = 7
"""Words of a step: letter; pool of the runs that take it (0: it begins one); pool of what comes of it (-1: nothing is
kept); whether a match ends; the value that the register gets (-1: none); where its tests begin, and where they end."""
TEST_VALUE, TEST_OR_EQUAL = range(2)
TEST = 2
"""Words of a test, which wants the register below a value of the event: the value, whether it may equal it."""
NO_REGISTER, INT, FLOAT = range(3)
POOL_KIND, POOL_SIGN = range(2)
POOL = 2
"""Words of a pool: what its register is, and -1 where higher values are better: ladders hold them with that sign."""
VALUE_OP, VALUE_COLUMN, VALUE_PARAMETER = range(3)
VALUE = 3
"""Words of a value of an event: how it is made, of which column, and of which constant of the query."""
PLAIN, TIMES, PLUS, MINUS, MINUS_EVENT = range(5)
"""The column; beside the constant, both floats: times it, plus it, minus it, and it minus the column."""


class Moves(NamedTuple):
    """What the events do: steps, tests, pools and values, as the words above say."""

    steps: Ints
    tests: Ints
    pools: Ints
    values: Ints


class Given(NamedTuple):
    """What is read: columns of the events, in the order of their groups, and of constants, one after the other.

    ``columns`` says which of them are those that values name; ``tick``: of the events; ``window``: by row of the
    queries.
    """

    columns: Ints
    words: Ints
    floats: Floats
    parameters: Floats
    tick: Ints
    window: Ints


class Ladders(NamedTuple):
    """The runs of the current slot: ``room`` starts and registers for each pool, and how many there are (``size``).

    ``child``: the start of what each step makes of the current event.
    """

    room: int
    start: Ints
    word: Ints
    float_: Floats
    size: Ints
    child: Ints


class Store(NamedTuple):
    """The saved runs of all slots, as the runs engine has them (``kernels.runs.saved``); ``floats`` are ``stored``."""

    stored: Ints
    floats: Floats
    spans: Ints


class PointsFound(NamedTuple):
    """What is written out: the place of the event in the batch, the slot, the latest start."""

    at: Ints
    slot: Ints
    start: Ints


@inline
def float_of(moves: Moves, given: Given, room: int, value: int, at: int, query: int) -> float:
    """A value of an event that is a float; NaN for NULL."""
    how, column = moves.values[value + VALUE_OP], moves.values[value + VALUE_COLUMN]
    x: float = given.floats[given.columns[column] * len(given.tick) + at]
    if how == PLAIN:
        return x
    y: float = given.parameters[moves.values[value + VALUE_PARAMETER] * room + query]
    if how == TIMES:
        return x * y
    if how == PLUS:
        return x + y
    return x - y if how == MINUS else y - x


@inline
def is_superfluous(
    ladders: Ladders, registers: Ints | Floats, base: int, place: int, size: int, start: int, value: float
) -> bool:
    """Whether a run that would stand at a place is worse than the one above, or than one of its start."""
    if place < size and registers[base + place] <= value:
        return True
    if place == 0 or ladders.start[base + place - 1] != start:
        return False
    return bool(registers[base + place - 1] <= value)


@inline
def first_worse(registers: Ints | Floats, base: int, place: int, value: float) -> int:
    """Where the runs before a place begin whose registers are no better than a value."""
    while place > 0 and registers[base + place - 1] >= value:
        place -= 1
    return place


@inline
def count_below(registers: Ints | Floats, base: int, count: int, value: float, equal: bool) -> int:
    """How many of the first registers, which rise, are below a value, or equal it where that will do."""
    low = 0
    while low < count:
        middle = (low + count) // 2
        found = registers[base + middle]
        if found < value or (equal and found == value):
            low = middle + 1
        else:
            count = middle
    return count


@inline
def put(moves: Moves, ladders: Ladders, pool: int, start: int, word: int, x: float) -> int:
    """Put a run on a ladder, with the register ``word``, or ``x`` where it is a float; returns how many more there are.

    What it makes superfluous stands right before it, or is of its start.
    """
    kind, base, size = moves.pools[pool * POOL + POOL_KIND], pool * ladders.room, int(ladders.size[pool])
    if (kind == FLOAT and x != x) or (kind == INT and word == NULL):
        return 0  # no test lets it go on
    place, first = size, 0
    while place > 0 and ladders.start[base + place - 1] > start:
        place -= 1
    if kind == NO_REGISTER:
        if place < size:
            return 0
    elif kind == INT:
        if is_superfluous(ladders, ladders.word, base, place, size, start, word):
            return 0
        first = first_worse(ladders.word, base, place, word)
    else:
        if is_superfluous(ladders, ladders.float_, base, place, size, start, x):
            return 0
        first = first_worse(ladders.float_, base, place, x)
    if first == place:
        for run in range(size, place, -1):
            ladders.start[base + run] = ladders.start[base + run - 1]
            ladders.word[base + run] = ladders.word[base + run - 1]
    elif first + 1 < place:
        for run in range(place, size):
            ladders.start[base + run + first + 1 - place] = ladders.start[base + run]
            ladders.word[base + run + first + 1 - place] = ladders.word[base + run]
    ladders.start[base + first] = start
    if kind == FLOAT:
        ladders.float_[base + first] = x
    else:
        ladders.word[base + first] = word
    ladders.size[pool] = size + first + 1 - place
    return first + 1 - place


@inline
def passing(moves: Moves, given: Given, ladders: Ladders, room: int, step: int, at: int, query: int) -> int:
    """How many runs of the source of a step pass its tests: the first ones, whose registers are the best."""
    pool = moves.steps[step + STEP_SOURCE]
    kind, sign = moves.pools[pool * POOL + POOL_KIND], moves.pools[pool * POOL + POOL_SIGN]
    base, high = pool * ladders.room, ladders.size[pool]
    for test in range(moves.steps[step + STEP_TEST], moves.steps[step + STEP_TESTS], TEST):
        value, equal = moves.tests[test + TEST_VALUE], moves.tests[test + TEST_OR_EQUAL] > 0
        if kind == FLOAT:
            x = sign * float_of(moves, given, room, value, at, query)
            high = count_below(ladders.float_, base, high, x, equal)
        else:
            word = given.words[given.columns[moves.values[value + VALUE_COLUMN]] * len(given.tick) + at]
            if word == NULL:
                return 0
            high = count_below(ladders.word, base, high, sign * word, equal)
    return int(high)


@inline
def letters_asked(moves: Moves, ladders: Ladders) -> np.uint64:
    """The letters of the steps that some run can take, and of those that begin one."""
    asked = np.uint64(0)
    for step in range(0, len(moves.steps), STEP):
        source = moves.steps[step + STEP_SOURCE]
        if source == 0 or ladders.size[source] > 0:
            asked |= np.uint64(1) << np.uint64(moves.steps[step + STEP_LETTER])
    return asked


@inline
def climb(
    control: Ints,
    moves: Moves,
    given: Given,
    ladders: Ladders,
    room: int,
    at: int,
    query: int,
    mask: np.uint64,
) -> int:
    """Let the current runs take the steps that an event allows; returns the latest start of a match that ends."""
    now, best = given.tick[at], NEVER
    low = now - given.window[query]
    for step in range(0, len(moves.steps), STEP):  # all before any child is one of its pool's runs
        child = NEVER
        if (mask >> np.uint64(moves.steps[step + STEP_LETTER])) & np.uint64(1):
            source = moves.steps[step + STEP_SOURCE]
            if source == 0:
                child = now
            elif ladders.size[source] > 0:
                control[SEARCHED] += 1
                last = passing(moves, given, ladders, room, step, at, query) - 1
                if last >= 0 and ladders.start[source * ladders.room + last] >= low:
                    child = ladders.start[source * ladders.room + last]
            if child > NEVER and moves.steps[step + STEP_ENDS]:
                best = max(best, child)
        ladders.child[step // STEP] = child
    for step in range(0, len(moves.steps), STEP):
        child, pool = ladders.child[step // STEP], moves.steps[step + STEP_TARGET]
        if child > NEVER and pool >= 0:
            value, word, x = moves.steps[step + STEP_VALUE], 0, 0.0
            kind, sign = moves.pools[pool * POOL + POOL_KIND], moves.pools[pool * POOL + POOL_SIGN]
            if kind == FLOAT:
                x = sign * float_of(moves, given, room, value, at, query)
            elif kind == INT:
                column = given.columns[moves.values[value + VALUE_COLUMN]]
                word = given.words[column * len(given.tick) + at]
                word = word if word == NULL else sign * word
            more = put(moves, ladders, pool, child, word, x)
            control[MADE] += 1
            control[MERGED] += 1 - more
            control[LIVE] += more
    return int(best)


@inline
def load(control: Ints, moves: Moves, ladders: Ladders, store: Store, slot: int) -> None:
    """Put the saved runs of a slot on their ladders."""
    for pool in range(len(ladders.size)):
        ladders.size[pool] = 0
    at = store.spans[slot * SPAN]
    end = at + store.spans[slot * SPAN + 1]
    while at < end:
        pool, runs = store.stored[at] & POOL_MASK, store.stored[at + 1]
        kind, sign = moves.pools[pool * POOL + POOL_KIND], moves.pools[pool * POOL + POOL_SIGN]
        at += SAVED
        for run in range(runs):
            word, x = 0, 0.0
            if kind == INT:
                word = store.stored[at + COLUMNS * runs + run]
                word = word if word == NULL else sign * word
            elif kind == FLOAT:
                x = sign * store.floats[at + COLUMNS * runs + run]
            control[LIVE] += put(moves, ladders, pool, store.stored[at + run], word, x) - 1
        at += runs * (COLUMNS + np.int64(kind != NO_REGISTER))


@inline
def save(control: Ints, moves: Moves, ladders: Ladders, store: Store, slot: int, low: int) -> None:
    """Save the runs of a slot that started at ``low`` or later: where they were saved before, if they take no more."""
    stored, newest, words = store.stored, NEVER, 0
    for pool in range(1, len(ladders.size)):
        if ladders.size[pool] > 0:
            columns = COLUMNS + np.int64(moves.pools[pool * POOL + POOL_KIND] != NO_REGISTER)
            words += SAVED + columns * ladders.size[pool]
    begin = store.spans[slot * SPAN] if words <= store.spans[slot * SPAN + 1] else control[STORED]
    at = begin
    for pool in range(1, len(ladders.size)):
        kind, sign = moves.pools[pool * POOL + POOL_KIND], moves.pools[pool * POOL + POOL_SIGN]
        base, first, size = pool * ladders.room, 0, ladders.size[pool]
        while first < size and ladders.start[base + first] < low:
            first += 1
        control[LIVE] -= first
        runs = size - first
        if runs == 0:
            continue
        stored[at] = pool
        stored[at + 1] = runs
        stored[at + 2] = 0
        stored[at + 3] = ladders.start[base + first]
        at += SAVED
        newest = max(newest, ladders.start[base + size - 1])
        for run in range(runs):
            stored[at + run] = ladders.start[base + first + run]
            stored[at + runs + run] = -1  # no lineage
        at += COLUMNS * runs
        if kind == INT:
            for run in range(runs):
                stored[at + run] = sign * ladders.word[base + first + run]
            at += runs
        elif kind == FLOAT:
            for run in range(runs):
                store.floats[at + run] = sign * ladders.float_[base + first + run]
            at += runs
    store.spans[slot * SPAN] = begin
    store.spans[slot * SPAN + 1] = at - begin
    store.spans[slot * SPAN + 2] = newest
    control[STORED] = max(control[STORED], at)


@inline
def lacks_room(control: Ints, moves: Moves, ladders: Ladders, store: Store, out: PointsFound, slot: int, n: int) -> int:
    """What must grow before a slot is run for ``n`` events; DONE: nothing."""
    length, pools = store.spans[slot * SPAN + 1], len(ladders.size)
    most = length + n * (len(moves.steps) // STEP)
    if control[USED] + n > len(out.at):
        control[WANTED] = control[USED] + n
        return OUT_FULL
    if most > ladders.room:
        control[WANTED] = most
        return LADDERS_FULL
    if control[STORED] + pools * SAVED + (COLUMNS + 1) * most > len(store.stored):
        control[WANTED] = pools * SAVED + (COLUMNS + 1) * most
        return STORE_FULL
    return DONE


@kernel
def find_points(
    control: Ints,
    groups: ByKey,
    letters: Letters,
    queries: Queries,
    slots: Slots,
    moves: Moves,
    given: Given,
    ladders: Ladders,
    store: Store,
    out: PointsFound,
) -> int:
    """Write out the match points of a batch, from where ``control`` says, key by key and slot by slot.

    Returns
    -------
    int
        DONE; else what there is no room for, ``control[WANTED]`` of it: make room and call again.

    Complexity: O(pairs x steps x log runs), and what it takes to find the pairs.
    """
    while control[GROUP_NEXT] < len(groups.key):
        g = control[GROUP_NEXT]
        key, first, end = groups.key[g], groups.first[g], groups.first[g + 1]
        if not begin_group(control, letters, queries, slots, key, first, end):
            return SLOTS_FULL
        if slots.used[0] * SPAN > len(store.spans):
            control[WANTED] = slots.used[0]
            return SPANS_FULL
        while control[LIVE_NEXT] >= 0:
            slot = control[LIVE_NEXT]
            query, begin = slots.query[slot], max(first, slots.since[slot])
            status = lacks_room(control, moves, ladders, store, out, slot, end - begin)
            if status != DONE:
                return status
            is_loaded, asked = False, ALL_LETTERS
            if queries.is_there[query]:
                for at in range(begin, end):
                    mask = mask_of(letters, queries, at, query, asked)
                    if mask:
                        if not is_loaded:
                            load(control, moves, ladders, store, slot)
                            is_loaded = True
                        start = climb(control, moves, given, ladders, queries.room, at, query, mask)
                        asked = letters_asked(moves, ladders)
                        if start > NEVER:
                            out.at[control[USED]] = groups.order[at]
                            out.slot[control[USED]] = slot
                            out.start[control[USED]] = start
                            control[USED] += 1
            if is_loaded:
                control[PEAK] = max(control[PEAK], control[LIVE])
                save(control, moves, ladders, store, slot, given.tick[end - 1] - given.window[query])
            slots.since[slot] = 0
            control[LIVE_NEXT] = slots.next[slot]
        control[GROUP_NEXT] += 1
        control[BEGUN] = 0
    return DONE
