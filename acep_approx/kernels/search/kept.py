"""The events of the window that a search goes through: kept as they came, and how each points to others.

Each points to the one before it in its chains: the events of its key with a letter, or those of them that have the same
values, too, which later conditions ask for. Of some chains it points as well to the last event before it that has a
higher value, or a lower one: where a threshold is not passed, all between fail with it.

Source: ours. An index by value is that of hash joins; the pointers are those of the "all nearest smaller values"
problem (Berkman, Schieber, Vishkin, J. Algorithms 14, 1993).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from acep_approx.arrays import Floats, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import apart, called, inline
from acep_approx.kernels.runs.pools import hash_word
from acep_approx.kernels.runs.records import Batch, Pools
from acep_approx.kernels.runs.vm import NULL

PATH_POSITIONS, PATH_ERRORS, PATH_FINAL, PATH_DEPTHS, PATH_ARCS, PATH_COPIES, PATH_COPIED = range(7)
PATH = 7
"""Words of a path: events, errors, final, first depth and first arc, and (begin, number of) copies of its end."""
(
    DEPTH_POSITION,
    DEPTH_CHAIN,
    DEPTH_ENTRY,
    DEPTH_VALUES,
    DEPTH_VALUED,
    DEPTH_NEXT,
    DEPTH_BEFORE,
    DEPTH_BANDS,
    DEPTH_BANDED,
    DEPTH_COPIES,
    DEPTH_COPIED,
    DEPTH_CHECKS,
    DEPTH_CHECKED,
    DEPTH_GUARDS,
    DEPTH_GUARDED,
    DEPTH_OLDER,
    DEPTH_OLDERS,
    DEPTH_NEWER,
    DEPTH_NEWERS,
    DEPTH_BLAMED,
    DEPTH_FLOOR,
) = range(21)
DEPTH = 21
"""Words of a depth of a search: the position that is bound there; the chain that it is looked for in; how that is
entered (an entry of an event that is bound, or ``BY_LETTER``, ``BY_VALUE``); (begin, number of) values in the frame by
which, or the position of that event; the nearest positions behind and before it that are bound (-1: none); (begin,
number of) the bins in the frame that bands want; (begin, number of) copies, checks and guards; (begin, number of) the
chains of the letters that must still follow between it and the position before, the last one first, and of those
between it and the position behind; and, as bits, the depths that say which chain that is, and that of the position
before it."""
LOOK, OF_DAY, OF_GAP = 2, -1, -2
"""Words of what trees look at: a column of the event, or its time of day, or how long ago the first event came that its
search would test; then whether that is a floating point number, or the ticks of a day."""
NODE = 4
"""Words of a node: what is looked at (-1: it is a leaf), the nodes to the left and to the right, where its tree goes on
(behind its root, to the next root; else -1); beside it the number that is compared, or the leaf's."""
BY_LETTER, BY_VALUE = -1, -2
CHECK_KIND, CHECK_FLAGS, CHECK_LEFT, CHECK_RIGHT, CHECK_JUMP, CHECK_BLAMED = range(6)
CHECK = 6
"""Words of a check: kind; which outcomes hold, and where both values stand in the frame; or the place of its program;
the jump that is made where it fails (-1: none); and, as bits, the depths at which others of its events are bound."""
OF_WHOLE, OF_FLOATS, BY_PROGRAM = range(3)
COPY = 2
"""Words of a copy: column of the event, place in the frame."""
GUARD_CHAIN, GUARD_LEFT, GUARD_RIGHT = range(3)
GUARD = 3
"""Words of a guard: the chain of its letter, and the positions between which none of its events may lie."""
CHAIN_VALUES, CHAIN_VALUED, CHAIN_PLAIN = range(3)
CHAIN = 3
"""Words of a chain: (begin, number of) columns in which its events agree; its number among those without any, or -1."""
JUMP_CHAIN, JUMP_COLUMN, JUMP_IS_FLOAT, JUMP_IS_UP = range(4)
JUMP = 4
"""Words of a jump: its chain, the column, whether that is of floats, and whether it goes to higher values."""
ENTRY_CHAIN, ENTRY_VALUES, ENTRY_VALUED, ENTRY_BANDED = range(4)
ENTRY = 4
"""Words of an entry: the chain, and (begin, number of) columns of the event that stands behind it, of which so many,
the last ones, are bins that bands want."""
BIN_COLUMN, BIN_IS_FLOAT, BIN_WHICH = range(3)
BIN = 3
"""Words of a column of bins: the column of the values, whether that is of floats, and which bins. Each is two steps
wide and overlaps half of the next one. So a value is in two of them, ``EVEN`` and ``ODD``, by the step that it is in;
``WANTED`` is the one that begins with that step. Beside them: how wide a step is, and by how many of them they are
shifted."""
EVEN, ODD, WANTED = range(3)
MOST_STEPS = float(1 << 45)
"""Bins further off are one."""
LOWEST = -(2**63) + 1
"""The order of NULL, or its opposite: the end of the order that passes no threshold."""


class Search(NamedTuple):
    """What is searched for: see the words above; ``columns`` and ``values`` are what several of them begin in.

    ``ends``, ``members`` and ``enters`` say per class of events which paths end with it, which chains it is in, and
    which entries it makes. ``nodes`` and ``leaves`` are of the trees that say how likely an end is a match point, and
    ``looks`` says what they look at (``LOOK``).
    """

    paths: Ints
    arcs: Ints
    depths: Ints
    checks: Ints
    copies: Ints
    guards: Ints
    between: Ints
    values: Ints
    columns: Ints
    chains: Ints
    jumps: Ints
    entries: Ints
    bins: Ints
    steps: Floats
    ends: Ints
    members: Ints
    enters: Ints
    looks: Ints
    nodes: Ints
    leaves: Floats


class Kept(NamedTuple):
    """Events that are kept, as they came, column by column, with room for as many as ``tick`` has words.

    ``words``: the values of each, and their bins; ``before``: of each chain the event before; ``keys`` and ``jumps``:
    of each jump the value that is compared, and where it leads to; ``entered``: of each entry the newest event of its
    chain then. ``heads``: of each chain without values, per key, its newest event; ``table`` and ``whose``: those of
    the others, by a hash, and their chains. ``used``: how many events there are.
    """

    tick: Ints
    place: Ints
    slot: Ints
    cls: Ints
    id: Ints
    words: Ints
    before: Ints
    keys: Ints
    jumps: Ints
    entered: Ints
    heads: Ints
    table: Ints
    whose: Ints
    used: Ints


class Frame(NamedTuple):
    """A search at work: what is bound, and how far it has come.

    ``bound``: the event at each position; ``best``: the same of the best match so far; ``at``: the event that each
    depth has come to; ``blame``: the depths, as bits, by which its events did not pass so far; ``mask``: scratch words
    of the programs of checks.
    """

    bound: Ints
    best: Ints
    at: Ints
    blame: Ints
    mask: Ints


@inline
def order_key(words: Ints, floats: Floats, where: int, is_float: int, is_up: int) -> int:
    """A whole number that orders the values of a column; NULL passes no threshold, so it comes where none is."""
    word = words[where]
    is_null = floats[where] != floats[where] if is_float else word == NULL
    if is_null:
        return LOWEST if is_up else -LOWEST
    return int(word ^ 0x7FFFFFFFFFFFFFFF if is_float and word < 0 else word)


@inline
def hash_values(chain: int, slot: int, kept: Kept, columns: Ints, first: int, many: int, event: int) -> int:
    """A hash of the values that an event has in some columns; -1 where one of them is NULL."""
    room, h = len(kept.tick), hash_word(hash_word(17, chain), slot)
    for i in range(first, first + many):
        word = kept.words[columns[i] * room + event]
        if word == NULL:
            return -1
        h = hash_word(h, word)
    return h


@inline
def is_of_chain(search: Search, kept: Kept, chain: int, other: int, first: int, many: int, event: int) -> bool:
    """Whether an event has, in the columns of a chain, the values that another has in its columns; and its key."""
    room, words, mine = len(kept.tick), kept.words, search.chains[chain * CHAIN + CHAIN_VALUES]
    columns = search.columns
    if kept.slot[other] != kept.slot[event]:
        return False
    for i in range(many):
        if words[columns[mine + i] * room + other] != words[columns[first + i] * room + event]:
            return False
    return True


@called
def place_of(search: Search, kept: Kept, chain: int, first: int, many: int, event: int) -> int:
    """Where the newest event of a chain stands in the table, or is to stand; -1 where a value is NULL."""
    h = hash_values(chain, kept.slot[event], kept, search.columns, first, many, event)
    if h < 0:
        return -1
    at_, most = h & (len(kept.table) - 1), len(kept.table) - 1
    while kept.table[at_] >= 0:
        if kept.whose[at_] == chain and is_of_chain(search, kept, chain, kept.table[at_], first, many, event):
            break
        at_ = (at_ + 1) & most
    return int(at_)


@inline
def newest_like(search: Search, kept: Kept, chain: int, frame: Pools, first: int, many: int, slot: int) -> int:
    """The newest event of a chain with values that stand in the frame; -1: there is none.

    It probes as ``place_of`` does. With one loop for both, exact points took a quarter longer.
    """
    room, h = len(kept.tick), hash_word(hash_word(17, chain), slot)
    for i in range(first, first + many):
        word = frame.words[search.values[i]]
        if word == NULL:
            return -1
        h = hash_word(h, word)
    at_, most, mine = h & (len(kept.table) - 1), len(kept.table) - 1, search.chains[chain * CHAIN + CHAIN_VALUES]
    while kept.table[at_] >= 0:
        other = kept.table[at_]
        if kept.whose[at_] == chain and kept.slot[other] == slot:
            same = True
            for i in range(many):
                if kept.words[search.columns[mine + i] * room + other] != frame.words[search.values[first + i]]:
                    same = False
            if same:
                return int(other)
        at_ = (at_ + 1) & most
    return -1


@inline
def bin_of(search: Search, kept: Kept, floats: Floats, number: int, event: int) -> int:
    """The bin of a value of an event; NULL where that is."""
    row, where = number * BIN, search.bins[number * BIN + BIN_COLUMN] * len(kept.tick) + event
    if search.bins[row + BIN_IS_FLOAT]:
        value = floats[where]
        if value != value:
            return NULL
    else:
        if kept.words[where] == NULL:
            return NULL
        value = float(kept.words[where])
    steps, which = value / search.steps[2 * number] + search.steps[2 * number + 1], search.bins[row + BIN_WHICH]
    step = math.floor(min(max(steps, -MOST_STEPS), MOST_STEPS))
    return int(step if which == WANTED else step - ((step & 1) ^ which))


@apart
def write_bins(search: Search, kept: Kept, floats: Floats, event: int) -> None:
    """Write the bins of an event, behind its values."""
    bins, room = len(search.bins) // BIN, len(kept.tick)
    for number in range(bins):
        kept.words[len(kept.words) - (bins - number) * room + event] = bin_of(search, kept, floats, number, event)


@inline
def odd_bins(search: Search, kept: Kept, first: int, many: int, event: int) -> int:
    """Which of the bins that bands want, by an event, are odd: so many chains further on they are looked for."""
    odd = 0
    for i in range(many):
        odd += (kept.words[search.columns[first + i] * len(kept.tick) + event] & 1) << i
    return int(odd)


@inline
def link_jumps(search: Search, kept: Kept, floats: Floats, chain: int, event: int, before: int) -> None:
    """Let the jumps of a chain lead from its newest event to the last one before it that passes more."""
    room = len(kept.tick)
    for jump in range(len(search.jumps) // JUMP):
        if search.jumps[jump * JUMP + JUMP_CHAIN] != chain:
            continue
        column, is_up = search.jumps[jump * JUMP + JUMP_COLUMN], search.jumps[jump * JUMP + JUMP_IS_UP]
        is_float, first = search.jumps[jump * JUMP + JUMP_IS_FLOAT], jump * room
        key = order_key(kept.words, floats, column * room + event, is_float, is_up)
        kept.keys[first + event] = key
        other = before
        while other >= 0 and (kept.keys[first + other] <= key if is_up else kept.keys[first + other] >= key):
            other = kept.jumps[first + other]
        kept.jumps[first + event] = other


@inline
def keep_event(search: Search, kept: Kept, floats: Floats, event: int) -> None:
    """Put an event, whose columns are written, into its chains; there is room in the table.

    As a function of its own it took twice the time.

    Complexity: O(chains + jumps + bins), all in all.
    """
    room, chains, entries = len(kept.tick), len(search.chains) // CHAIN, len(search.entries) // ENTRY
    keys, slot, kind = len(kept.heads) // max(chains, 1), kept.slot[event], kept.cls[event]
    if len(search.bins) > 0:
        write_bins(search, kept, floats, event)
    for entry in range(entries):
        newest, e = -1, entry * ENTRY
        if search.enters[kind * entries + entry]:
            chain, first = search.entries[e + ENTRY_CHAIN], search.entries[e + ENTRY_VALUES]
            valued, banded = search.entries[e + ENTRY_VALUED], search.entries[e + ENTRY_BANDED]
            chain += odd_bins(search, kept, first + valued - banded, banded, event)
            where = place_of(search, kept, chain, first, valued, event)
            if where >= 0:
                newest = kept.table[where]
        kept.entered[entry * room + event] = newest
    for chain in range(chains):
        plain, is_member = search.chains[chain * CHAIN + CHAIN_PLAIN], search.members[kind * chains + chain]
        before = -1
        if plain >= 0:
            before = kept.heads[plain * keys + slot]
            if is_member:
                kept.heads[plain * keys + slot] = event
        elif is_member:
            first = search.chains[chain * CHAIN + CHAIN_VALUES]
            where = place_of(search, kept, chain, first, search.chains[chain * CHAIN + CHAIN_VALUED], event)
            is_member = where >= 0
            if is_member:
                before = kept.table[where]
                kept.table[where], kept.whose[where] = event, chain
        kept.before[chain * room + event] = before
        if is_member:
            link_jumps(search, kept, floats, chain, event, before)


@inline
def take_event(kept: Kept, batch: Batch, number: int, event: int) -> None:
    """Write the columns of an event of the batch."""
    kept.tick[event], kept.place[event], kept.slot[event] = batch.tick[number], batch.place[number], batch.slot[number]
    kept.cls[event], kept.id[event] = batch.cls[number], batch.id[number]
    room, events = len(kept.tick), len(batch.slot)
    for column in range(len(batch.columns) // events):
        kept.words[column * room + event] = batch.columns[column * events + number]


@kernel
def keep_again(search: Search, kept: Kept, floats: Floats) -> None:
    """Put all events into their chains, which are empty."""
    for event in range(kept.used[0]):
        keep_event(search, kept, floats, event)
