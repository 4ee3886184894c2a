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

from acep_approx.arrays import ByKey, Floats, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.arithmetic import MIX, hashed
from acep_approx.kernels.runs.vm import NULL

Masks = npt.NDArray[np.uint64]

LESS, EQUAL, GREATER = 1, 2, 4
TEST_COLUMN, TEST_PARAMETER, TEST_FLAGS, TEST_IS_FLOAT = range(4)
TEST = 4
"""Words of a test: column of the events, column of the constants, which order is asked for, whether floats."""

PATH_LETTER, PATH_COLUMN, PATH_KIND, PATH_TABLE, PATH_SIZE, PATH_ENTRIES, PATH_COUNT = range(7)
PATH = 7
"""Words of a path from an event to the queries that it may begin a run of: the letter; the column that is looked up;
how; where its table begins, and its size; where the entries begin; how many. Of the paths of a letter, which follow
each other, the one with the fewest entries is taken."""
IS_ANY, IS_EQUAL, IS_BELOW, IS_ABOVE = 0, 1, 2, 4
IS_FLOAT = 8
"""How: all entries are tried; those of the same value, found in a hash table; those of thresholds that the value of the
event is below, or above; these are floats."""
HASH_ENTRY = 3
"""Words of an entry of a hash table: the value, the first of its queries, the end of these (0: it is empty)."""

GROUP_NEXT, BEGUN, LIVE_NEXT, USED, WANTED, LIVE = range(6)
CONTROL = 6
"""Where it stands: the current group, whether its beginnings have been looked for, the live slot to go on with, pairs
written so far, how many there must be room for, and how many slots the group has."""

DONE, OUT_FULL, SLOTS_FULL = range(3)


ALL_LETTERS = np.uint64(2**64 - 1)


class Letters(NamedTuple):
    """What is asked of events: ``literal`` per event the letters whose parts without constants of queries hold.

    The events stand in the order of their groups. ``tests`` of letter j stand from ``first[j]`` to ``first[j + 1]``.
    ``words`` are the values of events, one column after the other, ``floats`` the same bits; ``columns`` says which of
    them are those that tests and paths name. ``by_key``: whether all paths are equalities that the events of a key pass
    alike.
    """

    literal: Masks
    first: Ints
    tests: Ints
    columns: Ints
    words: Ints
    floats: Floats
    begins: np.uint64
    by_key: bool


class Queries(NamedTuple):
    """The constants of the queries, one column of ``room`` words after the other; who is there; the paths to them.

    ``late`` are those that have come since the index was made; some may be in it with constants of others before them.
    """

    words: Ints
    floats: Floats
    room: int
    is_there: npt.NDArray[np.bool_]
    paths: Ints
    entries: Ints
    thresholds: Floats
    late: Ints


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
    size = len(slots.table)
    place = place_of(query, key, size)
    while True:
        slot = slots.table[place]
        if slot < 0 or (slots.query[slot] == query and slots.key[slot] == key):
            return place
        place = (place + 1) & (size - 1)


@inline
def holds(letters: Letters, queries: Queries, rows: int, at: int, query: int, test: int) -> bool:
    """Whether a test holds of an event and the constants of a query."""
    word = letters.columns[letters.tests[test + TEST_COLUMN]] * rows + at
    constant = letters.tests[test + TEST_PARAMETER] * queries.room + query
    flags = letters.tests[test + TEST_FLAGS]
    if letters.tests[test + TEST_IS_FLOAT]:
        x, y = letters.floats[word], queries.floats[constant]
        return bool((x < y and flags & LESS) or (x == y and flags & EQUAL) or (x > y and flags & GREATER))
    v, z = letters.words[word], queries.words[constant]
    if v == NULL or z == NULL:
        return False
    return bool((v < z and flags & LESS) or (v == z and flags & EQUAL) or (v > z and flags & GREATER))


@inline
def mask_of(letters: Letters, queries: Queries, at: int, query: int, asked: np.uint64) -> np.uint64:
    """The letters of those asked for that hold on an event for a query."""
    mask: np.uint64 = letters.literal[at] & asked
    left, rows = mask, len(letters.literal)
    letter = 0
    while left:
        if left & np.uint64(1):
            for t in range(letters.first[letter], letters.first[letter + 1]):
                if not holds(letters, queries, rows, at, query, t * TEST):
                    mask &= ~(np.uint64(1) << np.uint64(letter))
                    break
        left >>= np.uint64(1)
        letter += 1
    return mask


@inline
def same(letters: Letters, queries: Queries, path: int, at: int) -> tuple[int, int]:
    """The entries that a hash table has for the value of an event."""
    paths, index = queries.paths, queries.entries
    value = letters.words[letters.columns[paths[path + PATH_COLUMN]] * len(letters.literal) + at]
    size = paths[path + PATH_SIZE]
    place = hashed(value, size)
    while True:
        entry = paths[path + PATH_TABLE] + place * HASH_ENTRY
        if index[entry + 2] == 0:
            return 0, 0
        if index[entry] == value:
            return index[entry + 1], index[entry + 2]
        place = (place + 1) & (size - 1)


@inline
def beyond(letters: Letters, queries: Queries, path: int, at: int) -> tuple[int, int]:
    """The entries of thresholds that the value of an event is below, or above; those that equal it are among them."""
    paths, index, floats = queries.paths, queries.entries, queries.thresholds
    word = letters.columns[paths[path + PATH_COLUMN]] * len(letters.literal) + at
    kind = paths[path + PATH_KIND]
    table, count = paths[path + PATH_TABLE], paths[path + PATH_COUNT]
    low, high = 0, count
    x, v = letters.floats[word], letters.words[word]
    if (kind & IS_FLOAT and x != x) or (not kind & IS_FLOAT and v == NULL):
        return 0, 0
    while low < high:
        middle = (low + high) // 2
        if kind & IS_FLOAT:
            y = floats[table + middle]
            is_before = y < x or (y == x and kind & IS_ABOVE > 0)
        else:
            z = index[table + middle]
            is_before = z < v or (z == v and kind & IS_ABOVE > 0)
        if is_before:
            low = middle + 1
        else:
            high = middle
    return (0, low) if kind & IS_ABOVE else (low, count)


@inline
def entries_of(letters: Letters, queries: Queries, path: int, at: int) -> tuple[int, int]:
    """The queries that an event may begin a run of by one path: from where to where they stand in the index."""
    kind, entries = queries.paths[path + PATH_KIND], queries.paths[path + PATH_ENTRIES]
    if kind == IS_ANY:
        return entries, entries + queries.paths[path + PATH_COUNT]
    if kind == IS_EQUAL:
        first, end = same(letters, queries, path, at)
    else:
        first, end = beyond(letters, queries, path, at)
    return entries + first, entries + end


@inline
def begin_slot(slots: Slots, query: int, key: int, at: int) -> bool:
    """Make a query live for a key, if it is not; False where there is no room for one more slot."""
    place = find_slot(slots, query, key)
    if slots.table[place] >= 0:
        return True
    if slots.used[1] > 0:
        slots.used[1] -= 1
        slot = slots.free[slots.used[1]]
    else:
        slot = slots.used[0]
        if 2 * (slot + 1) > len(slots.table) or slot >= len(slots.query):
            return False
        slots.used[0] += 1
    slots.table[place] = slot
    slots.query[slot] = query
    slots.key[slot] = key
    slots.since[slot] = at
    slots.next[slot] = slots.head[key]
    slots.head[key] = slot
    return True


@inline
def begin_slots(letters: Letters, queries: Queries, slots: Slots, key: int, at: int) -> bool:
    """Make live whatever an event begins; False where there is no room for more slots."""
    paths, path = queries.paths, 0
    while path < len(paths):
        letter = paths[path + PATH_LETTER]
        holds_it = (letters.literal[at] >> np.uint64(letter)) & np.uint64(1)
        first, end = 0, NULL
        while path < len(paths) and paths[path + PATH_LETTER] == letter:
            if holds_it:
                begin, stop = entries_of(letters, queries, path, at)
                if end == NULL or stop - begin < end - first:
                    first, end = begin, stop
            path += PATH
        for entry in range(first, end):
            query = queries.entries[entry]
            if queries.is_there[query] and mask_of(letters, queries, at, query, letters.begins):
                if not begin_slot(slots, query, key, at):
                    return False
    for place in range(len(queries.late)):
        query = queries.late[place]
        if queries.is_there[query] and mask_of(letters, queries, at, query, letters.begins):
            if not begin_slot(slots, query, key, at):
                return False
    return True


@inline
def matters(letters: Letters, queries: Queries, slots: Slots, key: int, at: int) -> bool:
    """Whether a query is live for a key, or may begin with one of its events, of which ``at`` is the first."""
    if not letters.by_key or len(queries.late) > 0 or slots.head[key] >= 0:
        return True
    for path in range(0, len(queries.paths), PATH):
        first, end = entries_of(letters, queries, path, at)
        if first < end:
            return True
    return False


@inline
def begin_group(
    control: Ints, letters: Letters, queries: Queries, slots: Slots, key: int, first: int, end: int
) -> bool:
    """Make live what the events of a key begin, and go to its first live slot; False where there is no room."""
    if not control[BEGUN]:
        control[LIVE_NEXT] = -1
        if first < end and matters(letters, queries, slots, key, first):
            for at in range(first, end):
                if not begin_slots(letters, queries, slots, key, at):
                    return False
            control[LIVE_NEXT] = slots.head[key]
        control[BEGUN] = 1
    return True


@kernel
def fill_hash(table: Ints, values: Ints, first: Ints, end: Ints) -> None:
    """Write distinct values and where their entries stand into a hash table of zeros."""
    size = len(table) // HASH_ENTRY
    for i in range(len(values)):
        place = hashed(values[i], size)
        while table[place * HASH_ENTRY + 2] != 0:
            place = (place + 1) & (size - 1)
        table[place * HASH_ENTRY] = values[i]
        table[place * HASH_ENTRY + 1] = first[i]
        table[place * HASH_ENTRY + 2] = end[i]


@kernel
def pair(control: Ints, groups: ByKey, letters: Letters, queries: Queries, slots: Slots, pairs: Pairs) -> int:
    """Write out the pairs of a batch, from where ``control`` says, key by key and slot by slot, each in order of time.

    Returns
    -------
    int
        DONE; OUT_FULL: take the pairs and call again, with room for ``control[WANTED]``; SLOTS_FULL: make room for more
        slots and call again.

    Complexity: O(events x entries that the index gives + events of a key x its live slots).
    """
    while control[GROUP_NEXT] < len(groups.key):
        g = control[GROUP_NEXT]
        key, first, end = groups.key[g], groups.first[g], groups.first[g + 1]
        if not begin_group(control, letters, queries, slots, key, first, end):
            return SLOTS_FULL
        while control[LIVE_NEXT] >= 0:
            slot = control[LIVE_NEXT]
            begin = max(first, slots.since[slot])
            used = control[USED]
            if used + end - begin > len(pairs.at):
                control[WANTED] = end - begin
                return OUT_FULL
            query = slots.query[slot]
            if queries.is_there[query]:
                for at in range(begin, end):
                    mask = mask_of(letters, queries, at, query, ALL_LETTERS)
                    pairs.at[used] = groups.order[at]
                    pairs.slot[used] = slot
                    pairs.mask[used] = mask
                    used += np.int64(mask != np.uint64(0))
            slots.since[slot] = 0
            control[USED] = used
            control[LIVE_NEXT] = slots.next[slot]
        control[GROUP_NEXT] += 1
        control[BEGUN] = 0
    return DONE


@kernel
def rebuild(slots: Slots, keeps: npt.NDArray[np.bool_]) -> int:
    """List and find only the slots that are kept; the others are free. Returns how many are kept."""
    for key in range(len(slots.head)):
        slots.head[key] = -1
    for place in range(len(slots.table)):
        slots.table[place] = -1
    free = kept = 0
    for slot in range(slots.used[0] - 1, -1, -1):
        if not keeps[slot]:
            slots.query[slot] = -1
            slots.free[free] = slot
            free += 1
            continue
        kept += 1
        key = slots.key[slot]
        slots.table[find_slot(slots, slots.query[slot], key)] = slot
        slots.next[slot] = slots.head[key]
        slots.head[key] = slot
    slots.used[1] = free
    return kept
