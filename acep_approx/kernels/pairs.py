"""Which events matter to which of many queries that differ in constants: pairs of both, grouped by query and key.

Events come grouped by key. An event that can begin a run for a query makes the query *live* for its key; from then on
the events of the key are tried for it. A pair is written out if a letter holds on it, with the letters as a mask.

Source: Demers et al., CIDR 2007, section 4.3.3 (static predicates are indexed, one index for all queries). Deviations:
the batch is grouped by key before the index is asked, and a query that has not begun is not looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Floats, Ints
from acep_approx.kernels.jit import inline, ix, kernel
from acep_approx.kernels.runs.vm import NULL

Masks = npt.NDArray[np.uint64]

LESS, EQUAL, GREATER = 1, 2, 4
TEST_COLUMN, TEST_PARAMETER, TEST_FLAGS, TEST_IS_FLOAT = range(4)
TEST = 4
"""Words of a test: column of the events, column of the constants, which order is asked for, whether floats."""

PATH_LETTER, PATH_COLUMN, PATH_HASH, PATH_HASH_SIZE, PATH_ENTRIES, PATH_COUNT = range(6)
PATH = 6
"""Words of a path from an event to the queries that it may begin a run of: the letter; the column that is looked up
(below 0: all entries are tried); where its hash table begins, and its size; where the entries begin; how many."""
HASH_ENTRY = 3
"""Words of an entry of a hash table: the value, the first of its queries, the end of these (0: it is empty)."""

GROUP_NEXT, BEGUN, LIVE_NEXT, USED, WANTED, LIVE = range(6)
CONTROL = 6
"""Where it stands: the group at hand, whether its beginnings have been looked for, the live slot to go on with, pairs
written so far, how many there must be room for, and how many slots the group has."""

DONE, OUT_FULL, SLOTS_FULL = range(3)
MIX = np.uint64(0x9E3779B97F4A7C15)


class Groups(NamedTuple):
    """Events grouped by key: ``order`` has their places in the batch, ``first`` where each group begins and ends."""

    key: Ints
    first: Ints
    order: Ints


class Letters(NamedTuple):
    """What is asked of events: ``literal`` per event the letters whose parts without constants of queries hold.

    ``tests`` of letter j stand from ``first[j]`` to ``first[j + 1]``. ``words`` are the values of events, one column
    after the other, ``floats`` the same bits.
    """

    literal: Masks
    first: Ints
    tests: Ints
    words: Ints
    floats: Floats
    begins: np.uint64


class Queries(NamedTuple):
    """The constants of the queries, one column of ``room`` words after the other; who is there; the paths to them."""

    words: Ints
    floats: Floats
    room: int
    is_there: npt.NDArray[np.bool_]
    paths: Ints
    entries: Ints


class Slots(NamedTuple):
    """A slot for each query and key that have begun; ``table`` finds them, ``head`` and ``next`` list those of a key.

    ``used``: slots so far, and those of them that are free, which ``free`` has; ``since``: the first event that
    counts.
    """

    query: Ints
    key: Ints
    next: Ints
    since: Ints
    table: Ints
    head: Ints
    free: Ints
    used: Ints


class Pairs(NamedTuple):
    """What is written out: per pair the place of the event in the batch, the slot, and the letters that hold."""

    at: Ints
    slot: Ints
    mask: Masks


@inline
def place_of(query: int, key: int, size: int) -> int:
    """Where the search for a slot begins."""
    mixed = (np.uint64(query) * np.uint64(0x100000001B3) + np.uint64(key)) * MIX
    place: int = np.int64(mixed >> np.uint64(20)) & (size - 1)  # type: ignore[assignment]
    return place


@inline
def find_slot(slots: Slots, query: int, key: int) -> int:
    """The place in the table of the slot of a query and key, or an empty one."""
    size = slots.table.size
    place = place_of(query, key, size)
    while True:
        slot = slots.table[ix(place)]
        if slot < 0 or (slots.query[ix(slot)] == query and slots.key[ix(slot)] == key):
            return place
        place = (place + 1) & (size - 1)


@inline
def holds(letters: Letters, queries: Queries, rows: int, at: int, query: int, test: int) -> bool:
    """Whether a test holds of an event and the constants of a query."""
    word = letters.tests[ix(test + TEST_COLUMN)] * rows + at
    constant = letters.tests[ix(test + TEST_PARAMETER)] * queries.room + query
    flags = letters.tests[ix(test + TEST_FLAGS)]
    if letters.tests[ix(test + TEST_IS_FLOAT)]:
        x, y = letters.floats[ix(word)], queries.floats[ix(constant)]
        return bool((x < y and flags & LESS) or (x == y and flags & EQUAL) or (x > y and flags & GREATER))
    v, z = letters.words[ix(word)], queries.words[ix(constant)]
    if v == NULL or z == NULL:
        return False
    return bool((v < z and flags & LESS) or (v == z and flags & EQUAL) or (v > z and flags & GREATER))


@inline
def mask_of(letters: Letters, queries: Queries, at: int, query: int) -> np.uint64:
    """The letters that hold on an event for a query."""
    mask: np.uint64 = letters.literal[ix(at)]
    left, rows = mask, letters.literal.size
    letter = 0
    while left:
        if left & np.uint64(1):
            for t in range(letters.first[ix(letter)], letters.first[ix(letter + 1)]):
                if not holds(letters, queries, rows, at, query, t * TEST):
                    mask &= ~(np.uint64(1) << np.uint64(letter))
                    break
        left >>= np.uint64(1)
        letter += 1
    return mask


@inline
def entries_of(letters: Letters, queries: Queries, path: int, at: int) -> tuple[int, int]:
    """The queries that an event may begin a run of by one path: from where to where they stand in the index."""
    paths, index = queries.paths, queries.entries
    column, entries = paths[ix(path + PATH_COLUMN)], paths[ix(path + PATH_ENTRIES)]
    if column < 0:
        return entries, entries + paths[ix(path + PATH_COUNT)]
    value = letters.words[ix(column * letters.literal.size + at)]
    size = paths[ix(path + PATH_HASH_SIZE)]
    place = np.int64((np.uint64(value) * MIX) >> np.uint64(20)) & (size - 1)
    while True:
        entry = paths[ix(path + PATH_HASH)] + place * HASH_ENTRY
        if index[ix(entry + 2)] == 0:
            return entries, entries
        if index[ix(entry)] == value:
            return entries + index[ix(entry + 1)], entries + index[ix(entry + 2)]
        place = (place + 1) & (size - 1)


@inline
def begin_slots(letters: Letters, queries: Queries, slots: Slots, key: int, at: int, order: int) -> bool:
    """Make live whatever an event begins; False where there is no room for more slots."""
    for path in range(0, queries.paths.size, PATH):
        if not (letters.literal[ix(at)] >> np.uint64(queries.paths[ix(path + PATH_LETTER)])) & np.uint64(1):
            continue
        first, end = entries_of(letters, queries, path, at)
        for entry in range(first, end):
            query = queries.entries[ix(entry)]
            if not queries.is_there[ix(query)]:
                continue
            if not mask_of(letters, queries, at, query) & letters.begins:
                continue
            place = find_slot(slots, query, key)
            if slots.table[ix(place)] >= 0:
                continue
            if slots.used[1] > 0:
                slots.used[1] -= 1
                slot = slots.free[ix(slots.used[1])]
            else:
                slot = slots.used[0]
                if 2 * (slot + 1) > slots.table.size or slot >= slots.query.size:
                    return False
                slots.used[0] += 1
            slots.table[ix(place)] = slot
            slots.query[ix(slot)] = query
            slots.key[ix(slot)] = key
            slots.since[ix(slot)] = order
            slots.next[ix(slot)] = slots.head[ix(key)]
            slots.head[ix(key)] = slot
    return True


@kernel
def pair(control: Ints, groups: Groups, letters: Letters, queries: Queries, slots: Slots, pairs: Pairs) -> int:
    """Write out the pairs of a batch, from where ``control`` says, key by key and slot by slot, each in order of time.

    Returns
    -------
    int
        DONE; OUT_FULL: take the pairs and call again, with room for ``control[WANTED]``; SLOTS_FULL: make room for more
        slots and call again.

    Complexity: O(events x entries that the index gives + events of a key x its live slots).
    """
    while control[GROUP_NEXT] < groups.key.size:
        g = control[GROUP_NEXT]
        key, first, end = groups.key[ix(g)], groups.first[ix(g)], groups.first[ix(g + 1)]
        if not control[BEGUN]:
            for order in range(first, end):
                if not begin_slots(letters, queries, slots, key, groups.order[ix(order)], order):
                    return SLOTS_FULL
            control[BEGUN] = 1
            control[LIVE_NEXT] = slots.head[ix(key)]
        while control[LIVE_NEXT] >= 0:
            slot = control[LIVE_NEXT]
            begin = max(first, slots.since[ix(slot)])
            used = control[USED]
            if used + end - begin > pairs.at.size:
                control[WANTED] = end - begin
                return OUT_FULL
            query = slots.query[ix(slot)]
            if queries.is_there[ix(query)]:
                for order in range(begin, end):
                    at = groups.order[ix(order)]
                    mask = mask_of(letters, queries, at, query)
                    pairs.at[ix(used)] = at
                    pairs.slot[ix(used)] = slot
                    pairs.mask[ix(used)] = mask
                    used += np.int64(mask != np.uint64(0))
            slots.since[ix(slot)] = 0
            control[USED] = used
            control[LIVE_NEXT] = slots.next[ix(slot)]
        control[GROUP_NEXT] += 1
        control[BEGUN] = 0
    return DONE


@kernel
def rebuild(slots: Slots, keeps: npt.NDArray[np.bool_]) -> int:
    """List and find only the slots that are kept; the others are free. Returns how many are kept."""
    slots.head[:] = -1
    slots.table[:] = -1
    free = kept = 0
    for slot in range(slots.used[0] - 1, -1, -1):
        if not keeps[ix(slot)]:
            slots.query[ix(slot)] = -1
            slots.free[ix(free)] = slot
            free += 1
            continue
        kept += 1
        key = slots.key[ix(slot)]
        slots.table[ix(find_slot(slots, slots.query[ix(slot)], key))] = slot
        slots.next[ix(slot)] = slots.head[ix(key)]
        slots.head[ix(key)] = slot
    slots.used[1] = free
    return kept
