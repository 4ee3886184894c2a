"""Searching backwards: whether a match ends at an event is looked for in the events of the window that are kept.

Events are kept as they came. Each points to the one before it in its chains: the events of its key with a letter, or
those of them that have the same values, too, which later conditions ask for. Of some chains it points as well to the
last event before it that has a higher value, or a lower one: where a threshold is not passed, all between fail with it.
A search binds the positions of a path in some order, each to the newest event first, and goes back where none is left.

Source: ours. An index by value is that of hash joins; the pointers are those of the "all nearest smaller values"
problem (Berkman, Schieber, Vishkin, J. Algorithms 14, 1993). Oracle: ``tests/naive.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import apart, called, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import NEVER, hash_word
from acep_approx.kernels.runs.records import Arena, Batch, Pools, Program
from acep_approx.kernels.runs.scores import GRANTED, MOST_LEFT, MOST_TOKENS, NO_NUMBER, RATE, TOKENS
from acep_approx.kernels.runs.vm import NULL, run_program

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
    DEPTH_COPIES,
    DEPTH_COPIED,
    DEPTH_CHECKS,
    DEPTH_CHECKED,
    DEPTH_GUARDS,
    DEPTH_GUARDED,
) = range(13)
DEPTH = 13
"""Words of a depth of a search: the position that is bound there; the chain that it is looked for in; how that is
entered (an entry of an event that is bound, or ``BY_LETTER``, ``BY_VALUE``); (begin, number of) values in the frame by
which, or the position of that event; the nearest positions behind and before it that are bound (-1: none); (begin,
number of) copies, checks and guards."""
LOOK, OF_DAY, OF_GAP = 2, -1, -2
"""Words of what trees look at: a column of the event, or its time of day, or how long ago the first event came that its
search would test; then whether that is a floating point number, or the ticks of a day."""
NODE = 4
"""Words of a node: what is looked at (-1: it is a leaf), the nodes to the left and to the right, where its tree goes on
(behind its root, to the next root; else -1); beside it the number that is compared, or the leaf's."""
BY_LETTER, BY_VALUE = -1, -2
CHECK_KIND, CHECK_FLAGS, CHECK_LEFT, CHECK_RIGHT, CHECK_JUMP = range(5)
CHECK = 5
"""Words of a check: kind; which outcomes hold, and where both values stand in the frame; or the place of its program;
the jump that is made where it fails (-1: none)."""
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
ENTRY_CHAIN, ENTRY_VALUES, ENTRY_VALUED = range(3)
ENTRY = 3
"""Words of an entry: the chain, and (begin, number of) columns of the event that stands behind it."""


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
    values: Ints
    columns: Ints
    chains: Ints
    jumps: Ints
    entries: Ints
    ends: Ints
    members: Ints
    enters: Ints
    looks: Ints
    nodes: Ints
    leaves: Floats


class Kept(NamedTuple):
    """Events that are kept, as they came, column by column, with room for as many as ``tick`` has words.

    ``words``: the values of each; ``before``: of each chain the event before; ``keys`` and ``jumps``: of each jump the
    value that is compared, and where it leads to; ``entered``: of each entry the newest event of its chain then.
    ``heads``: of each chain without values, per key, its newest event; ``table`` and ``whose``: those of the others, by
    a hash, and their chains. ``used``: how many events there are.
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
    depth has come to; ``mask``: scratch words of the programs of checks.
    """

    bound: Ints
    best: Ints
    at: Ints
    mask: Ints


DONE, FULL_OF_HITS, FULL_OF_LINKS, FULL_OF_EVENTS = range(4)
(
    LEFT,
    WANTED,
    LINKS_KEPT,
    PASSED,
    MOST,
    HAS_BEGUN,
    KEEPS_ONLY,
    IS_APART,
    ENDED,
    SEARCHED,
    LAST_UNSEARCHED,
    IS_KEPT,
) = range(12)
WORK = 12
"""Words of a call: tests that may still be made; which matches of an end are wanted; whether links are written; whether
a whole number passed 64 bits; how many tests one end is worth, whatever is left; whether a stream has begun; whether
events are kept and no end is searched; whether events of one place cannot follow one another; events that can end a
match, those that were searched to the end, and the tick of the last one that was not; whether the event that a call
begins with is kept already."""
ANY, LATEST, ALL = range(3)
"""Which matches of an end are wanted: one, one with the fewest errors and the latest start, or each."""
AHEAD, LEAST_SCORE, PLENTY = range(3)
"""Numbers of a call: tests that were granted ahead of their events; the least score of an end that is searched, unless
so many tests are left."""
PART_OF_LEFT = 0.25
"""An end may take so much of what is left, if that is more."""
LOWEST = -(2**63) + 1


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
    """The newest event of a chain with values that stand in the frame; -1: there is none."""
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


@called
def keep_event(search: Search, kept: Kept, floats: Floats, event: int) -> None:
    """Put an event, whose columns are written, into its chains; there is room in the table.

    Complexity: O(chains + jumps), all in all.
    """
    room, chains, entries = len(kept.tick), len(search.chains) // CHAIN, len(search.entries) // ENTRY
    keys, slot, kind = len(kept.heads) // max(chains, 1), kept.slot[event], kept.cls[event]
    for entry in range(entries):
        newest, e = -1, entry * ENTRY
        if search.enters[kind * entries + entry]:
            chain, first = search.entries[e + ENTRY_CHAIN], search.entries[e + ENTRY_VALUES]
            where = place_of(search, kept, chain, first, search.entries[e + ENTRY_VALUED], event)
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


@kernel
def keep_again(search: Search, kept: Kept, floats: Floats) -> None:
    """Put all events into their chains, which are empty."""
    for event in range(kept.used[0]):
        keep_event(search, kept, floats, event)


# --- searching ------------------------------------------------------------------------------------------------


@inline
def bind(search: Search, kept: Kept, frame: Pools, first: int, many: int, event: int) -> None:
    """Copy the values of an event that checks ask for into the frame."""
    room = len(kept.tick)
    for i in range(first, first + many):
        frame.words[search.copies[i * COPY + 1]] = kept.words[search.copies[i * COPY] * room + event]


@inline
def holds(search: Search, frame: Pools, check: int) -> bool:
    """Whether a comparison of two values in the frame is TRUE."""
    flags = search.checks[check + CHECK_FLAGS]
    left, right = search.checks[check + CHECK_LEFT], search.checks[check + CHECK_RIGHT]
    if search.checks[check + CHECK_KIND] == OF_FLOATS:
        x, y = frame.floats[left], frame.floats[right]
        return bool(((x < y) & (flags & 1)) | ((x == y) & ((flags >> 1) & 1)) | ((x > y) & ((flags >> 2) & 1)))
    v, z = frame.words[left], frame.words[right]
    if v == NULL or z == NULL:
        return False
    return bool(((v < z) & (flags & 1)) | ((v == z) & ((flags >> 1) & 1)) | ((v > z) & ((flags >> 2) & 1)))


@apart
def program_holds(program: Program, frame: Pools, check_at: int, mask: Ints, work: Ints) -> bool:
    """Whether a condition that computes something is TRUE."""
    mask[0] = 1
    work[PASSED] |= run_program(program, frame, check_at, 0, 0, mask, 1) & mask[0]
    return bool(mask[0] == 1)


@inline
def failed_check(search: Search, program: Program, frame: Pools, depth: int, mask: Ints, work: Ints) -> int:
    """Find the first check of a depth that its event fails; -1 where the event passes all checks."""
    first = search.depths[depth + DEPTH_CHECKS]
    for number in range(first, first + search.depths[depth + DEPTH_CHECKED]):
        check = number * CHECK
        if search.checks[check + CHECK_KIND] == BY_PROGRAM:
            if not program_holds(program, frame, search.checks[check + CHECK_LEFT], mask, work):
                return number
        elif not holds(search, frame, check):
            return number
    return -1


@inline
def is_guarded(search: Search, kept: Kept, bound: Ints, depth: int) -> bool:
    """Whether an event lies between two that are bound, of a letter that may not."""
    first, room = search.depths[depth + DEPTH_GUARDS], len(kept.tick)
    for number in range(first, first + search.depths[depth + DEPTH_GUARDED]):
        guard = number * GUARD
        left, right = bound[search.guards[guard + GUARD_LEFT]], bound[search.guards[guard + GUARD_RIGHT]]
        last = kept.before[search.guards[guard + GUARD_CHAIN] * room + right]
        if last > left:
            return True
    return False


@inline
def entered(search: Search, kept: Kept, frame: Pools, bound: Ints, depth: int) -> int:
    """The first event that a position may be bound to; -1: there is none."""
    chain, entry, room = search.depths[depth + DEPTH_CHAIN], search.depths[depth + DEPTH_ENTRY], len(kept.tick)
    following = bound[search.depths[depth + DEPTH_NEXT]]
    if entry == BY_LETTER:
        return int(kept.before[chain * room + following])
    if entry == BY_VALUE:
        first, many = search.depths[depth + DEPTH_VALUES], search.depths[depth + DEPTH_VALUED]
        return int(newest_like(search, kept, chain, frame, first, many, kept.slot[following]))
    return int(kept.entered[entry * room + bound[search.depths[depth + DEPTH_VALUES]]])


@inline
def are_apart(kept: Kept, before: int, event: int, after: int) -> bool:
    """Whether an event stands at another place than its neighbours, of which there may be none before it."""
    return bool(kept.place[event] < kept.place[after] and (before < 0 or kept.place[event] > kept.place[before]))


@called
def next_event(
    search: Search, program: Program, kept: Kept, frame: Pools, at_work: Frame, depth: int, event: int, low: int,
    work: Ints,
) -> int:  # fmt: skip
    """Bind the position of a depth to ``event``, or to the next one of its chain that passes all checks.

    Returns it; -1: there is none, or no test is left.
    """
    room, bound = len(kept.tick), at_work.bound
    chain, position = search.depths[depth + DEPTH_CHAIN], search.depths[depth + DEPTH_POSITION]
    after, before = bound[search.depths[depth + DEPTH_NEXT]], -1
    if search.depths[depth + DEPTH_BEFORE] >= 0:
        before = bound[search.depths[depth + DEPTH_BEFORE]]
    while event > before and kept.tick[event] >= low:
        if work[LEFT] <= 0:
            return -1
        work[LEFT] -= 1
        following = kept.before[chain * room + event]
        if event < after and (not work[IS_APART] or are_apart(kept, before, event, after)):
            bind(search, kept, frame, search.depths[depth + DEPTH_COPIES], search.depths[depth + DEPTH_COPIED], event)
            failed = failed_check(search, program, frame, depth, at_work.mask, work)
            if failed < 0:
                bound[position] = event
                if not is_guarded(search, kept, bound, depth):
                    return int(event)
            elif search.checks[failed * CHECK + CHECK_JUMP] >= 0:
                following = kept.jumps[search.checks[failed * CHECK + CHECK_JUMP] * room + event]
        event = following
    return -1


@called
def search_path(
    search: Search, program: Program, kept: Kept, frame: Pools, at_work: Frame, path: int, end: int, low: int,
    work: Ints, goes_on: bool,
) -> int:  # fmt: skip
    """The latest start of a match of a path that ends with an event, or of any; ``NEVER``: there is none.

    What is found is bound in ``at_work.best``. ``goes_on``: the next match is looked for, behind the one that the last
    call has found. Complexity: exponential in the positions at worst; each test is counted.
    """
    p, bound, best = path * PATH, at_work.bound, NEVER
    positions, first = search.paths[p + PATH_POSITIONS], search.paths[p + PATH_DEPTHS]
    if goes_on:
        level = positions - 2
        if level < 0:
            return NEVER
        chain = search.depths[(first + level) * DEPTH + DEPTH_CHAIN]
        event = kept.before[chain * len(kept.tick) + at_work.at[level]]
    else:
        bound[positions - 1] = end
        bind(search, kept, frame, search.paths[p + PATH_COPIES], search.paths[p + PATH_COPIED], end)
        if positions == 1:
            at_work.best[0] = end
            return int(kept.tick[end])
        level, event = 0, entered(search, kept, frame, bound, first * DEPTH)
    while level >= 0:
        depth = (first + level) * DEPTH
        event = next_event(search, program, kept, frame, at_work, depth, event, low, work)
        if event < 0:
            if work[LEFT] <= 0:
                return int(best)
            level -= 1
        elif level == positions - 2:
            best = kept.tick[bound[0]]
            for position in range(positions):
                at_work.best[position] = bound[position]
            at_work.at[level] = event
            if work[WANTED] != LATEST:
                return int(best)
            low = best + 1
            for above in range(level + 1):  # what starts no later cannot be part of a better one
                if kept.tick[at_work.at[above]] < low:
                    level = above
                    break
        else:
            at_work.at[level] = event
            level += 1
            event = entered(search, kept, frame, bound, (first + level) * DEPTH)
            continue
        if level >= 0:
            depth = (first + level) * DEPTH
            event = kept.before[search.depths[depth + DEPTH_CHAIN] * len(kept.tick) + at_work.at[level]]
    return int(best)


@inline
def write_links(search: Search, kept: Kept, at_work: Frame, path: int, links: Ints, first: int) -> int:
    """Write the links of a match that was found; returns the last one."""
    p, before, start = path * PATH, -1, kept.tick[at_work.best[0]]
    for position in range(search.paths[p + PATH_POSITIONS]):
        new = (first + position) * at.LINK
        arc = search.arcs[search.paths[p + PATH_ARCS] + position]
        links[new + at.LINK_HERE] = (kept.id[at_work.best[position]] << at.ARC_BITS) | arc
        links[new + at.LINK_BEFORE], links[new + at.LINK_OTHER] = before, -1
        links[new + at.LINK_START] = links[new + at.LINK_LATEST] = start
        before = first + position
    return int(before)


@inline
def take_event(kept: Kept, batch: Batch, number: int, event: int) -> None:
    """Write the columns of an event of the batch."""
    kept.tick[event], kept.place[event], kept.slot[event] = batch.tick[number], batch.place[number], batch.slot[number]
    kept.cls[event], kept.id[event] = batch.cls[number], batch.id[number]
    room, events = len(kept.tick), len(batch.slot)
    for column in range(len(kept.words) // room):
        kept.words[column * room + event] = batch.columns[column * events + number]


@inline
def write_hit(control: Ints, search: Search, path: int, number: int, start: int, link: int, hits: Ints) -> None:
    """Write what an event completes; another hit of it is written over."""
    hit = control[at.HITS] * at.HIT
    hits[hit + at.HIT_EVENT], hits[hit + at.HIT_FINAL] = number, search.paths[path * PATH + PATH_FINAL]
    hits[hit + at.HIT_ERRORS], hits[hit + at.HIT_LINK] = search.paths[path * PATH + PATH_ERRORS], link
    hits[hit + at.HIT_START], hits[hit + at.HIT_MARK], hits[hit + at.HIT_TIMES] = start, 0, 1


@called
def search_end(
    control: Ints, search: Search, program: Program, kept: Kept, frame: Pools, at_work: Frame, end: int, number: int,
    low: int, work: Ints, hits: Ints, links: Ints,
) -> None:  # fmt: skip
    """Search for a match that an event ends, and write one down that has the fewest errors."""
    paths, chosen, best = len(search.paths) // PATH, -1, low - 1
    for path in range(paths):
        if not search.ends[kept.cls[end] * paths + path]:
            continue
        if chosen >= 0:
            has_more = search.paths[path * PATH + PATH_ERRORS] > search.paths[chosen * PATH + PATH_ERRORS]
            if has_more or work[WANTED] == ANY:
                break
        start = search_path(search, program, kept, frame, at_work, path, end, best + 1, work, False)
        if start != NEVER:
            chosen, best, link = path, start, -1
            if work[LINKS_KEPT]:
                link = write_links(search, kept, at_work, path, links, control[at.LINKS])
            write_hit(control, search, path, number, start, link, hits)
        if work[LEFT] <= 0:
            break
    if chosen >= 0:
        control[at.HITS] += 1
        if work[LINKS_KEPT]:
            control[at.LINKS] += search.paths[chosen * PATH + PATH_POSITIONS]


@inline
def room_for(control: Ints, hits: Ints, links: Ints, positions: int) -> int:
    """What there is no more room for, if one more match of so many events is written down; or ``DONE``."""
    if (control[at.HITS] + 1) * at.HIT > len(hits):
        return FULL_OF_HITS
    return FULL_OF_LINKS if (control[at.LINKS] + positions) * at.LINK > len(links) else DONE


@called
def list_end(
    control: Ints, search: Search, program: Program, kept: Kept, frame: Pools, at_work: Frame, end: int, number: int,
    low: int, work: Ints, hits: Ints, links: Ints,
) -> int:  # fmt: skip
    """Write down all matches that an event ends; where there is no room for all, none is, and it says for what."""
    before, left = (control[at.HITS], control[at.LINKS]), work[LEFT]
    for path in range(len(search.paths) // PATH):
        if not search.ends[kept.cls[end] * (len(search.paths) // PATH) + path]:
            continue
        positions, goes_on = search.paths[path * PATH + PATH_POSITIONS], False
        start = search_path(search, program, kept, frame, at_work, path, end, low, work, goes_on)
        while start != NEVER:
            status = room_for(control, hits, links, positions)
            if status != DONE:
                control[at.HITS], control[at.LINKS], work[LEFT] = before[0], before[1], left
                return status
            link = write_links(search, kept, at_work, path, links, control[at.LINKS])
            write_hit(control, search, path, number, start, link, hits)
            control[at.HITS] += 1
            control[at.LINKS] += positions
            start = search_path(search, program, kept, frame, at_work, path, end, low, work, True)
    return DONE


@inline
def ends_any(search: Search, kind: int) -> bool:
    """Whether an event of class ``kind`` can end a match."""
    paths = len(search.paths) // PATH
    for path in range(paths):
        if search.ends[kind * paths + path]:
            return True
    return False


@inline
def grant(shedding: Arena, number: int, work: Ints, real: Floats) -> None:
    """Grant what an event stands for, unless that was granted ahead; and say how many tests its search may take."""
    floats = shedding.floats
    granted = floats[RATE] * shedding.stands_for[number]
    before = min(granted, real[AHEAD])
    real[AHEAD] -= before
    floats[GRANTED] += granted - before
    floats[TOKENS] = min(floats[TOKENS] + granted - before, floats[MOST_TOKENS])
    left = min(max(floats[TOKENS], 0.0), MOST_LEFT)
    work[LEFT] = min(int(left), max(work[MOST], int(left * PART_OF_LEFT)))


@inline
def gap_of(search: Search, kept: Kept, frame: Pools, at_work: Frame, end: int) -> int:
    """How long ago the newest event came that a search of an end would begin with; of several paths the latest."""
    paths, gap = len(search.paths) // PATH, -NEVER
    for path in range(paths):
        p = path * PATH
        if search.ends[kept.cls[end] * paths + path] and search.paths[p + PATH_POSITIONS] > 1:
            at_work.bound[search.paths[p + PATH_POSITIONS] - 1] = end
            bind(search, kept, frame, search.paths[p + PATH_COPIES], search.paths[p + PATH_COPIED], end)
            first = entered(search, kept, frame, at_work.bound, search.paths[p + PATH_DEPTHS] * DEPTH)
            if first >= 0:
                gap = min(gap, kept.tick[end] - kept.tick[first])
    return int(gap)


@inline
def looked_at(search: Search, kept: Kept, floats: Floats, event: int, gap: int, what: int) -> float:
    """What a node looks at."""
    column, kind = search.looks[what * LOOK], search.looks[what * LOOK + 1]
    if column == OF_DAY:
        return float(kept.tick[event] % kind) / float(kind) if kind > 0 else 0.0
    if column == OF_GAP:
        return float(gap)
    at_ = column * len(kept.tick) + event
    if kind:
        return floats[at_] if floats[at_] == floats[at_] else NO_NUMBER
    return float(kept.words[at_]) if kept.words[at_] != NULL else NO_NUMBER


@called
def score_of_end(search: Search, kept: Kept, floats: Floats, event: int, gap: int) -> float:
    """How likely an end is a match point, as the trees say: on a scale of logarithms."""
    root, score = 0, 0.0
    while root >= 0:
        node, following = root, search.nodes[root * NODE + 3]
        while search.nodes[node * NODE] >= 0:
            value = looked_at(search, kept, floats, event, gap, search.nodes[node * NODE])
            side = 1 if value <= search.leaves[node] else 2
            node = search.nodes[node * NODE + side]
        score += search.leaves[node]
        root = following
    return score


@kernel
def search_batch(
    control: Ints, search: Search, program: Program, kept: Kept, floats: Floats, frame: Pools, at_work: Frame,
    batch: Batch, work: Ints, hits: Ints, links: Ints, shedding: Arena | None, spent: Ints, gaps: Ints, real: Floats,
) -> int:  # fmt: skip
    """Keep the events of a batch, and search those that can end a match.

    ``spent`` takes the tests of each event: -1 where no match can end, -2 and less where none was left for the rest;
    inside a budget ``gaps`` takes how long ago the first event came that is tested for each end; ``real``: see
    ``LEAST_SCORE``.
    Returns ``DONE``, or what there is no more room for: then it is called again.
    """
    for number in range(control[at.EVENT], len(batch.slot)):
        control[at.EVENT] = number
        status = room_for(control, hits, links, len(at_work.bound))
        if status != DONE:
            return status
        event = kept.used[0] - work[IS_KEPT]
        if not work[IS_KEPT]:
            if event >= len(kept.tick):
                return FULL_OF_EVENTS
            take_event(kept, batch, number, event)
            kept.used[0] += 1
            keep_event(search, kept, floats, event)
            if shedding is not None:
                grant(shedding, number, work, real)
        work[IS_KEPT] = 0
        spent[number] = -1
        if work[KEEPS_ONLY] or not ends_any(search, batch.cls[number]):
            continue
        left, hits_before = work[LEFT], control[at.HITS]
        if shedding is not None:
            gaps[number] = gap_of(search, kept, frame, at_work, event)
            if len(search.nodes) > 0 and shedding.floats[TOKENS] < real[PLENTY]:
                if score_of_end(search, kept, floats, event, gaps[number]) < real[LEAST_SCORE]:
                    left, work[LEFT] = 0, 0
        if left > 0 and work[WANTED] == ALL:
            status = list_end(
                control, search, program, kept, frame, at_work, event, number, batch.low[number], work, hits, links
            )
            if status != DONE:
                work[IS_KEPT] = 1
                return status
        elif left > 0:
            search_end(
                control, search, program, kept, frame, at_work, event, number, batch.low[number], work, hits, links
            )
        tests = left - work[LEFT]
        control[at.DONE_STEPS] += tests
        if shedding is not None:
            shedding.floats[TOKENS] -= float(tests)
        is_searched = work[LEFT] > 0 or control[at.HITS] > hits_before
        work[ENDED] += 1
        work[SEARCHED] += is_searched
        spent[number] = tests if is_searched else -2 - tests
        if not is_searched:
            work[LAST_UNSEARCHED] = batch.tick[number]
    control[at.EVENT] = len(batch.slot)
    return DONE


@kernel
def search_some(
    search: Search, program: Program, kept: Kept, frame: Pools, at_work: Frame, ends: Ints, lows: Ints, work: Ints,
    is_point: Bools,
) -> int:  # fmt: skip
    """Search some of the events that are kept, and write down which of them end a match; returns how many were.

    ``lows``: the first tick of each window. It ends where no test is left (``work[LEFT]``): what has begun then is
    not known.
    """
    paths = len(search.paths) // PATH
    for number in range(len(ends)):
        end, path, is_point[number] = ends[number], 0, False
        while path < paths and not is_point[number] and work[LEFT] > 0:
            if search.ends[kept.cls[end] * paths + path]:
                start = search_path(search, program, kept, frame, at_work, path, end, lows[number], work, False)
                is_point[number] = start != NEVER
            path += 1
        if work[LEFT] <= 0 and not is_point[number]:
            return number
    return len(ends)
