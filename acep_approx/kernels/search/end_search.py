"""Searching backwards: whether a match ends at an event is looked for in the events of the window that are kept.

A search binds the positions of a path in some order, each to the newest event of its chain first (``kept``). Where none
is left it goes back to the last depth that is to blame: by what is bound there an event did not pass. Those in between
would bind older events, which leave no more events to choose from for the positions before them.

Source: conflict-directed backjumping (Prosser, Computational Intelligence 9, 1993); that events come in order, so that
an upper bound is never to blame, is ours. Oracle: ``tests/naive.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import apart, called, inline
from acep_approx.kernels.runs import layout as at
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.kernels.runs.records import Arena, Batch, Pools, Program
from acep_approx.kernels.runs.scores import GRANTED, MOST_LEFT, MOST_TOKENS, NO_NUMBER, RATE, TOKENS
from acep_approx.kernels.runs.vm import NULL, run_program
from acep_approx.kernels.search.kept import (
    BY_LETTER,
    BY_PROGRAM,
    BY_VALUE,
    CHECK,
    CHECK_BLAMED,
    CHECK_FLAGS,
    CHECK_JUMP,
    CHECK_KIND,
    CHECK_LEFT,
    CHECK_RIGHT,
    COPY,
    DEPTH,
    DEPTH_BANDED,
    DEPTH_BANDS,
    DEPTH_BEFORE,
    DEPTH_BLAMED,
    DEPTH_CHAIN,
    DEPTH_CHECKED,
    DEPTH_CHECKS,
    DEPTH_COPIED,
    DEPTH_COPIES,
    DEPTH_ENTRY,
    DEPTH_FLOOR,
    DEPTH_GUARDED,
    DEPTH_GUARDS,
    DEPTH_NEWER,
    DEPTH_NEWERS,
    DEPTH_NEXT,
    DEPTH_OLDER,
    DEPTH_OLDERS,
    DEPTH_POSITION,
    DEPTH_VALUED,
    DEPTH_VALUES,
    GUARD,
    GUARD_CHAIN,
    GUARD_LEFT,
    GUARD_RIGHT,
    LOOK,
    NODE,
    OF_DAY,
    OF_FLOATS,
    OF_GAP,
    PATH,
    PATH_ARCS,
    PATH_COPIED,
    PATH_COPIES,
    PATH_DEPTHS,
    PATH_ERRORS,
    PATH_FINAL,
    PATH_POSITIONS,
    Frame,
    Kept,
    Search,
    keep_event,
    newest_like,
    take_event,
)

DONE, FULL_OF_HITS, FULL_OF_LINKS, FULL_OF_EVENTS, SOME_LISTED = range(5)
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
AHEAD, LEAST_SCORE, PLENTY, FOR_OTHERS = range(4)
REAL = 4
"""Numbers of a call: tests that were granted ahead of their events; the least score of an end that is searched, unless
so many tests are left; tests that must be left for further matches of an end, beside the first one."""
PART_OF_LEFT = 0.25
"""An end may take so much of what is left, if that is more."""
ALL_BLAMED = -1
"""All depths, as bits."""


class Searcher(NamedTuple):
    """All that a search goes by: tables, programs, the events kept, the frame, what is bound, the words of a call."""

    search: Search
    program: Program
    kept: Kept
    frame: Pools
    at_work: Frame
    work: Ints


@inline
def bind(by: Searcher, first: int, many: int, event: int) -> None:
    """Copy the values of an event that checks ask for into the frame."""
    search, kept, frame, room = by.search, by.kept, by.frame, len(by.kept.tick)
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
def program_holds(by: Searcher, check_at: int) -> bool:
    """Whether a condition that computes something is TRUE."""
    mask = by.at_work.mask
    mask[0] = 1
    by.work[PASSED] |= run_program(by.program, by.frame, check_at, 0, 0, mask, 1) & mask[0]
    return bool(mask[0] == 1)


@inline
def failed_check(by: Searcher, depth: int) -> int:
    """Find the first check of a depth that its event fails; -1 where the event passes all checks."""
    search = by.search
    first = search.depths[depth + DEPTH_CHECKS]
    for number in range(first, first + search.depths[depth + DEPTH_CHECKED]):
        check = number * CHECK
        if search.checks[check + CHECK_KIND] == BY_PROGRAM:
            if not program_holds(by, search.checks[check + CHECK_LEFT]):
                return number
        elif not holds(search, by.frame, check):
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
def leads_to(search: Search, kept: Kept, first: int, many: int, event: int) -> int:
    """The newest event behind which some letters can follow in their order, up to an event; -1: there is none."""
    for i in range(first, first + many):
        if event >= 0:
            event = kept.before[search.between[i] * len(kept.tick) + event]
    return int(event)


@inline
def odd_chains(by: Searcher, depth: int) -> int:
    """How many chains behind its first one a depth goes through: by which of the bins that its bands want are odd."""
    odd, first = 0, by.search.depths[depth + DEPTH_BANDS]
    for i in range(by.search.depths[depth + DEPTH_BANDED]):
        odd += (by.frame.words[by.search.values[first + i]] & 1) << i
    return int(odd)


@inline
def chain_of(by: Searcher, depth: int) -> int:
    """The chain that a depth goes through."""
    return int(by.search.depths[depth + DEPTH_CHAIN] + odd_chains(by, depth))


@inline
def entered(by: Searcher, depth: int) -> int:
    """The first event that a position may be bound to; -1: there is none."""
    search, kept, bound = by.search, by.kept, by.at_work.bound
    chain, entry, room = chain_of(by, depth), search.depths[depth + DEPTH_ENTRY], len(kept.tick)
    following, newers = bound[search.depths[depth + DEPTH_NEXT]], search.depths[depth + DEPTH_NEWERS]
    event = leads_to(search, kept, search.depths[depth + DEPTH_NEWER], newers, following)
    if event < 0:
        return -1
    if entry == BY_LETTER:
        return int(kept.before[chain * room + event])
    last = event
    if entry == BY_VALUE:
        first, many = search.depths[depth + DEPTH_VALUES], search.depths[depth + DEPTH_VALUED]
        event = newest_like(search, kept, chain, by.frame, first, many, kept.slot[following])
    else:
        event = kept.entered[entry * room + bound[search.depths[depth + DEPTH_VALUES]]]
    while newers > 0 and event >= last:
        event = kept.before[chain * room + event]
    return int(event)


@inline
def are_apart(kept: Kept, before: int, event: int, after: int) -> bool:
    """Whether an event stands at another place than its neighbours, of which there may be none before it."""
    return bool(kept.place[event] < kept.place[after] and (before < 0 or kept.place[event] > kept.place[before]))


@called
def next_event(by: Searcher, depth: int, level: int, event: int, low: int) -> int:
    """Bind the position of a depth to ``event``, or to the next one of its chain that passes all checks.

    Returns it; -1: there is none, or no test is left. ``level``: which depth of its path that is.
    """
    search, kept, work, bound, room = by.search, by.kept, by.work, by.at_work.bound, len(by.kept.tick)
    blame = by.at_work.blame
    odd, position = odd_chains(by, depth), search.depths[depth + DEPTH_POSITION]
    chain = search.depths[depth + DEPTH_CHAIN] + odd
    after, before = bound[search.depths[depth + DEPTH_NEXT]], -1
    if search.depths[depth + DEPTH_BEFORE] >= 0:
        before = bound[search.depths[depth + DEPTH_BEFORE]]
    older, olders = search.depths[depth + DEPTH_OLDER], search.depths[depth + DEPTH_OLDERS]
    while event > before and kept.tick[event] >= low:
        if olders > 0:  # where there is no room for what must come before, there is none before older events
            first = leads_to(search, kept, older, olders, event)
            if first <= before or kept.tick[first] < low:
                break
        if work[LEFT] <= 0:
            return -1
        work[LEFT] -= 1
        following = kept.before[chain * room + event]
        if event < after and (not work[IS_APART] or are_apart(kept, before, event, after)):
            bind(by, search.depths[depth + DEPTH_COPIES], search.depths[depth + DEPTH_COPIED], event)
            failed = failed_check(by, depth)
            if failed < 0:
                bound[position] = event
                if not is_guarded(search, kept, bound, depth):
                    return int(event)
                blame[level] = ALL_BLAMED
            else:
                blame[level] |= search.checks[failed * CHECK + CHECK_BLAMED]
                if search.checks[failed * CHECK + CHECK_JUMP] >= 0:
                    following = kept.jumps[(search.checks[failed * CHECK + CHECK_JUMP] + odd) * room + event]
        event = following
    blame[level] |= search.depths[depth + DEPTH_FLOOR]
    return -1


@inline
def begin_depth(by: Searcher, depth: int, level: int) -> int:
    """Begin with the events of a depth: returns the first of them, or -1; nothing is to blame for what came of them."""
    by.at_work.blame[level] = by.search.depths[depth + DEPTH_BLAMED]
    return entered(by, depth)


@inline
def last_blamed(blame: Ints, level: int) -> int:
    """Find the last depth that is to blame where no event passed at ``level``; -1: there is none.

    It takes on the other blame, that of the depths in between as well: if what chose their events changed, they could
    bind newer ones.
    """
    last, blamed = level - 1, blame[level]
    while last >= 0 and not blamed >> last & 1:
        blamed |= blame[last]
        last -= 1
    if last >= 0:
        blame[last] |= blamed
    return last


@called
def search_path(by: Searcher, path: int, end: int, low: int, goes_on: bool) -> int:
    """The latest start of a match of a path that ends with an event, or of any; ``NEVER``: there is none.

    What is found is bound in ``at_work.best``. ``goes_on``: the next match is looked for, behind the one that the last
    call has found. Complexity: exponential in the positions at worst; each test is counted.
    """
    search, kept, at_work, work = by.search, by.kept, by.at_work, by.work
    p, bound, best = path * PATH, at_work.bound, NEVER
    positions, first = search.paths[p + PATH_POSITIONS], search.paths[p + PATH_DEPTHS]
    if goes_on:
        level = positions - 2
        if level < 0:
            return NEVER
        event = kept.before[chain_of(by, (first + level) * DEPTH) * len(kept.tick) + at_work.at[level]]
    else:
        bound[positions - 1] = end
        bind(by, search.paths[p + PATH_COPIES], search.paths[p + PATH_COPIED], end)
        if positions == 1:
            at_work.best[0] = end
            return int(kept.tick[end])
        level, event = 0, begin_depth(by, first * DEPTH, 0)
    while level >= 0:
        depth = (first + level) * DEPTH
        event = next_event(by, depth, level, event, low)
        if event < 0:
            if work[LEFT] <= 0:
                return int(best)
            level = last_blamed(at_work.blame, level)
        elif level == positions - 2:
            best = kept.tick[bound[0]]
            for position in range(positions):
                at_work.best[position] = bound[position]
            at_work.at[level] = event
            for above in range(level + 1):
                at_work.blame[above] = ALL_BLAMED
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
            event = begin_depth(by, (first + level) * DEPTH, level)
            continue
        if level >= 0:
            event = kept.before[chain_of(by, (first + level) * DEPTH) * len(kept.tick) + at_work.at[level]]
    return int(best)


@inline
def write_links(by: Searcher, path: int, links: Ints, first: int) -> int:
    """Write the links of a match that was found; returns the last one."""
    search, kept, at_work = by.search, by.kept, by.at_work
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
def write_hit(control: Ints, search: Search, path: int, number: int, start: int, link: int, hits: Ints) -> None:
    """Write what an event completes; another hit of it is written over."""
    hit = control[at.HITS] * at.HIT
    hits[hit + at.HIT_EVENT], hits[hit + at.HIT_FINAL] = number, search.paths[path * PATH + PATH_FINAL]
    hits[hit + at.HIT_ERRORS], hits[hit + at.HIT_LINK] = search.paths[path * PATH + PATH_ERRORS], link
    hits[hit + at.HIT_START], hits[hit + at.HIT_MARK], hits[hit + at.HIT_TIMES] = start, 0, 1


@called
def search_end(control: Ints, by: Searcher, end: int, number: int, low: int, hits: Ints, links: Ints) -> None:
    """Search for a match that an event ends, and write one down that has the fewest errors."""
    search, kept, work = by.search, by.kept, by.work
    paths, chosen, best = len(search.paths) // PATH, -1, low - 1
    for path in range(paths):
        if not search.ends[kept.cls[end] * paths + path]:
            continue
        if chosen >= 0:
            has_more = search.paths[path * PATH + PATH_ERRORS] > search.paths[chosen * PATH + PATH_ERRORS]
            if has_more or work[WANTED] == ANY:
                break
        start = search_path(by, path, end, best + 1, False)
        if start != NEVER:
            chosen, best, link = path, start, -1
            if work[LINKS_KEPT]:
                link = write_links(by, path, links, control[at.LINKS])
            write_hit(control, search, path, number, start, link, hits)
        if work[LEFT] <= 0:
            break
    if chosen >= 0:
        control[at.HITS] += 1
        if work[LINKS_KEPT]:
            control[at.LINKS] += search.paths[chosen * PATH + PATH_POSITIONS]


@inline
def room_for(control: Ints, hits: Ints, links: Ints, positions: int) -> int:
    """What is too small for one more match of so many events; ``DONE``: nothing."""
    if (control[at.HITS] + 1) * at.HIT > len(hits):
        return FULL_OF_HITS
    return FULL_OF_LINKS if (control[at.LINKS] + positions) * at.LINK > len(links) else DONE


@called
def list_end(
    control: Ints, by: Searcher, end: int, number: int, low: int, most: int, hits: Ints, links: Ints
) -> int:  # fmt: skip
    """Write down the matches that end with an event.

    After the first one no more than ``most`` tests are made in all. Returns ``DONE``, or ``SOME_LISTED`` where there
    may be more of them, or what was too small: then none is written.
    Each event of a match counts as a run that was made: where many are made, fewer events are run at once.
    """
    search, work, paths = by.search, by.work, len(by.search.paths) // PATH
    hits_before, links_before, left, held = control[at.HITS], control[at.LINKS], work[LEFT], 0
    for path in range(paths):
        if not search.ends[by.kept.cls[end] * paths + path]:
            continue
        positions = search.paths[path * PATH + PATH_POSITIONS]
        start = search_path(by, path, end, low, False)
        while start != NEVER:
            status = room_for(control, hits, links, positions)
            if status != DONE:
                control[at.HITS], control[at.LINKS], work[LEFT] = hits_before, links_before, left
                return status
            link = write_links(by, path, links, control[at.LINKS])
            write_hit(control, search, path, number, start, link, hits)
            control[at.HITS] += 1
            control[at.LINKS] += positions
            if control[at.HITS] == hits_before + 1:
                held = work[LEFT] - max(min(most - left + work[LEFT], work[LEFT]), 0)
                work[LEFT] -= held
            start = search_path(by, path, end, low, True) if work[LEFT] > 0 else NEVER
        if work[LEFT] <= 0:
            break
    control[at.MADE] += control[at.LINKS] - links_before
    status = SOME_LISTED if work[LEFT] <= 0 else DONE
    work[LEFT] += held
    return status


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
def gap_of(by: Searcher, end: int) -> int:
    """How long ago the newest event came that a search of an end would begin with; of several paths the latest."""
    search, kept, at_work = by.search, by.kept, by.at_work
    paths, gap = len(search.paths) // PATH, -NEVER
    for path in range(paths):
        p = path * PATH
        if search.ends[kept.cls[end] * paths + path] and search.paths[p + PATH_POSITIONS] > 1:
            at_work.bound[search.paths[p + PATH_POSITIONS] - 1] = end
            bind(by, search.paths[p + PATH_COPIES], search.paths[p + PATH_COPIED], end)
            first = entered(by, search.paths[p + PATH_DEPTHS] * DEPTH)
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
    control: Ints, by: Searcher, floats: Floats, batch: Batch, hits: Ints, links: Ints, shedding: Arena | None,
    spent: Ints, gaps: Ints, real: Floats,
) -> int:  # fmt: skip
    """Keep the events of a batch, and search those that can end a match.

    ``spent`` takes the tests of each event: -1 where no match can end, -2 and less where none was left for the rest;
    inside a budget ``gaps`` takes how long ago the first event came that is tested for each end; ``real``: see
    ``LEAST_SCORE``.
    Returns ``DONE``, or what there is no more room for: then it is called again.
    """
    search, kept, at_work, work = by.search, by.kept, by.at_work, by.work
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
            gaps[number] = gap_of(by, event)
            if len(search.nodes) > 0 and shedding.floats[TOKENS] < real[PLENTY]:
                if score_of_end(search, kept, floats, event, gaps[number]) < real[LEAST_SCORE]:
                    left, work[LEFT] = 0, 0
        if left > 0 and work[WANTED] == ALL:
            most = left
            if shedding is not None:
                most = int(min(max(shedding.floats[TOKENS] - real[FOR_OTHERS], 0.0), MOST_LEFT))
            status = list_end(control, by, event, number, batch.low[number], most, hits, links)
            if status != DONE and status != SOME_LISTED:
                work[IS_KEPT] = 1
                return status
        elif left > 0:
            search_end(control, by, event, number, batch.low[number], hits, links)
        tests = left - work[LEFT]
        control[at.DONE_STEPS] += tests
        if shedding is not None:
            shedding.floats[TOKENS] -= float(tests)
        is_known = work[LEFT] > 0 or control[at.HITS] > hits_before
        is_searched = is_known and status != SOME_LISTED
        work[ENDED] += 1
        work[SEARCHED] += is_searched
        spent[number] = tests if is_known else -2 - tests
        if not is_searched:
            work[LAST_UNSEARCHED] = batch.tick[number]
    control[at.EVENT] = len(batch.slot)
    return DONE


@kernel
def search_some(by: Searcher, ends: Ints, lows: Ints, is_point: Bools) -> int:
    """Search some of the kept events, and write down whether a match ends with each; returns how many were searched.

    ``lows``: the first tick of each window. It stops where no test is left (``work[LEFT]``); the event that it was at
    does not count.
    """
    search, kept, work = by.search, by.kept, by.work
    paths = len(search.paths) // PATH
    for number in range(len(ends)):
        end, path, is_point[number] = ends[number], 0, False
        while path < paths and not is_point[number] and work[LEFT] > 0:
            if search.ends[kept.cls[end] * paths + path]:
                start = search_path(by, path, end, lows[number], False)
                is_point[number] = start != NEVER
            path += 1
        if work[LEFT] <= 0 and not is_point[number]:
            return number
    return len(ends)
