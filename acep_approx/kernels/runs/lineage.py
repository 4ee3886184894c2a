"""Lineage: which runs led to which. Links are only ever appended; from a hit back to the start they spell its matches.

A link says: this event was bound by this arc, to a run whose own links are these. Links of merged runs are alternatives
of each other, in a chain; each carries its start and the latest start from here to the end of its chain. A match is
inside the window when its start is not before ``low``, so a walk that never follows a chain or a link with an earlier
start reaches a match with every branch it takes: what it costs is what it writes, times the dead alternatives between
live ones (none where younger runs come later, as they nearly always do).

Source: the shared versioned buffer of Agrawal et al., SIGMOD 2008, section 5.1. Deviation: the starts do what version
numbers do there, because a link belongs to one run and not to one event.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel, kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.arithmetic import added_up
from acep_approx.kernels.columns import Columns
from acep_approx.kernels.listing import COLUMNS_FULL, DEEPER, DONE, OUT_FULL, Listing, has_room_for, put_in_order
from acep_approx.kernels.order import Found, Limits
from acep_approx.kernels.runs.layout import (
    ARC_BITS,
    ARC_MASK,
    HIT,
    HIT_ERRORS,
    HIT_EVENT,
    HIT_LINK,
    HIT_START,
    LINK,
    LINK_BEFORE,
    LINK_HERE,
    LINK_LATEST,
    LINK_OTHER,
    LINK_START,
)
from acep_approx.kernels.runs.pools import BASE, COLUMNS, FIELDS, POOL, ROOM, RUNS
from acep_approx.kernels.runs.saved import POOL_MASK, SAVED, SPAN

# header of a walk: the hit that it is at, and how many links wait in the stack; matches that were found and not put
# out, and their events; events that were put out
AT, DEPTH, MATCHES, BOUND, EVENTS_OUT = range(5)
WALK = 5


class Way(NamedTuple):
    """From where a walk goes, and how it got there.

    Link and earliest start per hit; all links; links that wait, each with the number of events that come later; and
    the words of these events, latest first.
    """

    heads: Ints
    lows: Ints
    links: Ints
    stack: Ints
    path: Ints


@inline
def _write(header: Ints, found: Found, word: int, start: int, path: Ints, depth: int) -> None:
    """Write the match that begins with the event of a word and goes on with the path."""
    m, bound = header[MATCHES], header[BOUND]
    found.hit[m], found.start[m] = header[AT], start
    found.id[bound], found.bound_by[bound] = word >> ARC_BITS, word & ARC_MASK
    for i in range(1, depth + 1):
        later = path[depth - i]
        found.id[bound + i] = later >> ARC_BITS
        found.bound_by[bound + i] = later & ARC_MASK
    header[MATCHES], header[BOUND] = m + 1, bound + depth + 1
    found.begin[m + 1] = bound + depth + 1


@inline
def _follow(header: Ints, way: Way, low: int, found: Found) -> int:
    """Find the matches of a hit: go back from a link, and then along its alternatives."""
    links, stack, path = way.links, way.stack, way.path
    waiting = header[DEPTH] - 1
    link, depth = stack[2 * waiting], stack[2 * waiting + 1]
    status = DONE
    while True:
        at = link * LINK
        if links[at + LINK_LATEST] >= low:
            word, before, start = links[at + LINK_HERE], links[at + LINK_BEFORE], links[at + LINK_START]
            link = links[at + LINK_OTHER]
            if word < 0 or start >= low:
                if before >= 0:
                    if 2 * waiting + 4 > len(stack) or depth + 2 > len(path):
                        status, link = DEEPER, at // LINK
                        break
                    if link >= 0:
                        stack[2 * waiting], stack[2 * waiting + 1] = link, depth
                        waiting += 1
                    link = before
                    if word >= 0:
                        path[depth] = word
                        depth += 1
                    continue
                if word >= 0:
                    if header[MATCHES] == len(found.hit) or header[BOUND] + depth + 1 > len(found.id):
                        status, link = OUT_FULL, at // LINK
                        break
                    _write(header, found, word, start, path, depth)
            if link >= 0:
                continue
        if waiting == 0:
            break
        waiting -= 1
        link, depth = stack[2 * waiting], stack[2 * waiting + 1]
    if status != DONE:
        stack[2 * waiting], stack[2 * waiting + 1] = link, depth
        waiting += 1
    header[DEPTH] = waiting
    return status


@inline
def _walk_on(header: Ints, way: Way, found: Found) -> int:
    """Go on with a walk where its header says it stands; returns ``DONE``, ``OUT_FULL`` or ``DEEPER``."""
    status = DONE
    while header[AT] < len(way.heads):
        h = header[AT]
        if header[DEPTH] == 0 and way.heads[h] >= 0:  # it is below 0 for a run that has left the window
            way.stack[0], way.stack[1] = way.heads[h], 0
            header[DEPTH] = 1
        if header[DEPTH] > 0:
            status = _follow(header, way, way.lows[h], found)
            if status != DONE:
                break
        header[AT] += 1
    return status


@kernel
def list_matches(header: Ints, way: Way, found: Found, at: Listing, out: Columns) -> int:
    """List the matches of hits in order, from where ``header`` says.

    Parameters
    ----------
    header : int64
    way : Way
    found : Found
        Scratch, small enough to stay in cache. What bound an event is its arc.
    at : Listing
    out : Columns
        Gets the matches. Has room for all that ``found`` has room for.

    Returns
    -------
    int
        ``DONE``, or why the walk has stopped, see ``kernels.listing``: then call again.
    """
    while True:
        if not has_room_for(found, out):
            return COLUMNS_FULL
        status = _walk_on(header, way, found)
        if status == DEEPER:
            return DEEPER
        matches, bound = header[MATCHES], header[BOUND]
        left = matches - put_in_order(found, matches, at, Limits(at.most, 1 if status == DONE else 0, 0), out)
        header[MATCHES], header[BOUND] = left, found.begin[left]
        header[EVENTS_OUT] += bound - found.begin[left]
        if status == DONE or left == matches:
            return status


@block_kernel
def mark(links: Ints, needed: Ints) -> None:
    """Mark what the links lead to that are marked in ``needed``, which has a word per link."""
    for i in range(len(needed)):
        link = len(needed) - 1 - i  # links point to lower numbers
        if needed[link]:
            for word in (LINK_BEFORE, LINK_OTHER):
                to = links[link * LINK + word]
                if to >= 0:
                    needed[to] = 1


@block_kernel
def compact(links: Ints, used: int, floors: Ints, owner: Ints, is_owned: int, needed: Ints, number: Ints) -> int:
    """Move the links that can still be part of a match to the front; returns how many there are.

    ``floors[key]`` is the earliest start that counts; ``owner`` tells the key of a link where ``is_owned``, else there
    is one floor. ``needed`` marks links that stay whatever their start; it is empty where none do. ``number`` receives
    the new number of each link, -1 for those left behind.
    """
    kept = 0
    for link in range(used):
        at = link * LINK
        floor = floors[owner[link]] if is_owned else floors[0]
        if links[at + LINK_LATEST] < floor and (len(needed) == 0 or not needed[link]):
            number[link] = -1
            continue
        number[link] = kept
        to = kept * LINK
        before, after = links[at + LINK_BEFORE], links[at + LINK_OTHER]
        links[to + LINK_HERE] = links[at + LINK_HERE]
        # -2: a dead link among live alternatives; what was before it is gone
        links[to + LINK_BEFORE] = before if before < 0 else (number[before] if number[before] >= 0 else -2)
        links[to + LINK_OTHER] = number[after] if after >= 0 else -1
        links[to + LINK_START] = links[at + LINK_START]
        links[to + LINK_LATEST] = links[at + LINK_LATEST]
        if is_owned:
            owner[kept] = owner[link]
        kept += 1
    return kept


@inline
def point(words: Ints, first: int, last: int, number: Ints) -> None:
    """Give links in ``words[first:last]`` their new numbers; those below 0 are none."""
    for at in range(first, last):
        if words[at] >= 0:
            words[at] = number[words[at]]


@block_kernel
def renumber(number: Ints, pools: Ints, words: Ints, spans: Ints, stored: Ints, hits: Ints) -> None:
    """Point all runs, at hand and saved, and all hits to the new numbers of their links."""
    for pool in range(1, len(pools) // POOL):
        column = pools[pool * POOL + BASE] + pools[pool * POOL + ROOM]
        point(words, column, column + pools[pool * POOL + RUNS], number)
    for key in range(len(spans) // SPAN):
        at = spans[key * SPAN]
        end = at + spans[key * SPAN + 1]
        while at < end:
            pool, runs = stored[at] & POOL_MASK, stored[at + 1]
            point(stored, at + SAVED + runs, at + SAVED + 2 * runs, number)
            at += SAVED + runs * (COLUMNS + pools[pool * POOL + FIELDS])
    for hit in range(len(hits) // HIT):
        point(hits, hit * HIT + HIT_LINK, hit * HIT + HIT_START, number)


@block_kernel
def distinct(order: Ints, offset: Ints, ids: Ints, label: Ints, table: Ints, leader: Ints) -> None:
    """Find for each match the first of those that equal it, in ``order``.

    ``table``, all -1, has a power of two of spans, at least twice as many as there are matches.
    """
    size = len(table)
    for i in range(len(order)):
        m = order[i]
        first, last = offset[m], offset[m + 1]
        h = last - first
        for j in range(first, last):
            h = ((h ^ (ids[j] & 0x7FFFFFFF)) * 1640531527) & 0x7FFFFFFF
            h = ((h ^ (h >> 15) ^ label[j]) * 1640531527) & 0x7FFFFFFF
        place = (h ^ (h >> 13)) & (size - 1)
        found = False
        while table[place] >= 0:
            other = table[place]
            begin = offset[other]
            found = offset[other + 1] - begin == last - first
            for j in range(last - first if found else 0):
                found &= ids[first + j] == ids[begin + j] and label[first + j] == label[begin + j]
            if found:
                break
            place = (place + 1) & (size - 1)
        if not found:
            table[place] = m
        leader[m] = table[place]


class Chosen(NamedTuple):
    """The hits of events: ``first[m]`` to ``first[m + 1]`` are of event ``m``, of which the latest start is ``low[m]``.

    ``link`` of each, and ``is_best``: whether it has the fewest errors and that start.
    """

    first: Ints
    low: Ints
    link: Ints
    is_best: Ints


class Walking(NamedTuple):
    """Room for walks along links: in each array for all of them, in ``stack`` four times as much."""

    heads: Ints
    waiting: Ints
    path: Ints
    stack: Ints


@inline
def latest(
    links: Ints, heads: Ints, count: int, low: int, labels: Ints, waiting: Ints, path: Ints,
) -> int:  # fmt: skip
    """Of the matches of some hits that start at ``low`` or later the first in the order of ``kernel_order.is_before``.

    ``low`` is the latest start that there is. However runs were merged, it is the same match. ``heads`` holds ``count``
    links, and is used up; all three arrays need room for all links. Returns its number of events; ``path`` has their
    ids and arcs, the last event first. 0: there is none, which links of a state that was changed may say.
    """
    depth = 0
    while True:
        best, found, left, is_begin = -1, 0, count, False
        for i in range(count):
            waiting[i] = heads[i]
        while left > 0:
            left -= 1
            at = waiting[left] * LINK
            if at < 0 or links[at + LINK_LATEST] < low:
                continue
            if left + 2 > len(waiting) or found == len(heads):
                return 0
            if links[at + LINK_OTHER] >= 0:
                waiting[left] = links[at + LINK_OTHER]
                left += 1
            word = links[at + LINK_HERE]
            if word < 0:
                waiting[left] = links[at + LINK_BEFORE]
                left += links[at + LINK_BEFORE] >= 0
                continue
            if links[at + LINK_START] < low:
                continue
            is_later = best < 0 or word >> ARC_BITS > best >> ARC_BITS
            if not is_later and word >> ARC_BITS == best >> ARC_BITS:
                mine, other = labels[word & ARC_MASK], labels[best & ARC_MASK]
                if mine > other:
                    continue
                is_later = mine < other
            elif not is_later:
                continue
            if is_later:
                best, found, is_begin = word, 0, False
            heads[found] = links[at + LINK_BEFORE]
            found += 1
            is_begin = is_begin or links[at + LINK_BEFORE] == -1
        if found == 0 or depth == len(path):
            return 0
        path[depth] = best
        depth += 1
        if is_begin:
            return depth
        count = found


@inline
def take_best(hits: Chosen, m: int, heads: Ints) -> int:
    """Put the links of the best hits of an event into ``heads``; returns how many there are."""
    count = 0
    for h in range(hits.first[m], hits.first[m + 1]):
        if hits.is_best[h] > 0:
            heads[count] = hits.link[h]
            count += 1
    return count


@inline
def spell(links: Ints, heads: Ints, count: int, low: int, labels: Ints, stack: Ints, path: Ints, depth: int) -> bool:
    """Put the arcs of one way into ``path`` that binds its events to its labels; whether there is one.

    ``latest`` follows all such ways at once, and its arcs may be of several. This one is the first that ``walk`` finds.
    """
    top = 0
    for i in range(count):
        stack[2 * top], stack[2 * top + 1] = heads[count - 1 - i], 0
        top += 1
    while top > 0:
        top -= 1
        link, level = stack[2 * top], stack[2 * top + 1]
        at = link * LINK
        if link < 0 or links[at + LINK_LATEST] < low:
            continue
        if 2 * top + 4 > len(stack):
            return False
        if links[at + LINK_OTHER] >= 0:
            stack[2 * top], stack[2 * top + 1] = links[at + LINK_OTHER], level
            top += 1
        word, before = links[at + LINK_HERE], links[at + LINK_BEFORE]
        if word < 0:
            stack[2 * top], stack[2 * top + 1] = before, level
            top += 1
            continue
        known = path[level]
        if word >> ARC_BITS != known >> ARC_BITS or labels[word & ARC_MASK] != labels[known & ARC_MASK]:
            continue
        if links[at + LINK_START] < low:
            continue
        path[level] = word
        if level < depth - 1:
            stack[2 * top], stack[2 * top + 1] = before, level + 1
            top += 1
        elif before == -1:
            return True
    return False


@block_kernel
def latest_of_each(
    links: Ints, hits: Chosen, labels: Ints, spells: int, room: Walking, offset: Ints, words: Ints, begun: int
) -> int:
    """Write the matches that ``latest`` finds for each event, from number ``begun`` on.

    ``words`` has the ids and arcs of match ``m``, the last event first, from ``offset[m]`` on. ``spells``: whether it
    matters which arcs took the events, if their labels are the same.

    Returns
    -------
    int
        How many are done: fewer than there are where ``words`` must grow. -1: there is none for an event.
    """
    for m in range(begun, len(hits.low)):
        count = take_best(hits, m, room.heads)
        depth = latest(links, room.heads, count, hits.low[m], labels, room.waiting, room.path)
        if depth == 0:
            return -1
        if spells > 0:
            count = take_best(hits, m, room.heads)
            if not spell(links, room.heads, count, hits.low[m], labels, room.stack, room.path, depth):
                return -1
        if offset[m] + depth > len(words):
            return m
        for i in range(depth):
            words[offset[m] + i] = room.path[i]
        offset[m + 1] = offset[m] + depth
    return len(hits.low)


NOBODY = 1 << 62


@block_kernel
def reach(hit: Ints, lows: Ints, links: Ints, shared: Ints, need: Ints) -> None:
    """Note per link in ``need`` (all ``NOBODY``) the earliest start that a hit looks for through it.

    ``hit`` and ``lows``: link and earliest start per hit. What lies behind a link with a number in ``shared`` is not
    gone through: it was reached before, by hits with starts no later.
    """
    for h in range(len(hit)):
        need[hit[h]] = min(need[hit[h]], lows[h])
    for i in range(len(need)):
        link = len(need) - 1 - i  # links point to lower numbers
        low, at = need[link], link * LINK
        if low == NOBODY or shared[link] >= 0:
            continue
        if links[at + LINK_LATEST] < low:
            need[link] = NOBODY
            continue
        before, other = links[at + LINK_BEFORE], links[at + LINK_OTHER]
        if other >= 0:
            need[other] = min(need[other], low)
        if before >= 0 and (links[at + LINK_HERE] < 0 or links[at + LINK_START] >= low):
            need[before] = min(need[before], low)


@block_kernel
def count(hit: Ints, lows: Ints, links: Ints, first: int, asked: Ints, ways: Ints, waiting: Ints, total: Ints) -> None:
    """Number of matches per hit into ``total``; hits with the same earliest start that follow one another share work.

    ``asked``, ``ways`` have a word per link, ``waiting`` two and two more. What ``asked`` holds is below ``first``, and
    then below ``first + len(hit)``.
    """
    mark = first
    for h in range(len(hit)):
        low = lows[h]
        if h > 0 and low != lows[h - 1]:
            mark = first + h
        waiting[0], depth = hit[h], 1
        while depth > 0:
            link = waiting[depth - 1]
            if asked[link] == mark:
                depth -= 1
                continue
            at, n, top = link * LINK, 0, depth
            if links[at + LINK_LATEST] >= low:
                before, other = links[at + LINK_BEFORE], links[at + LINK_OTHER]
                if other >= 0:
                    if asked[other] == mark:
                        n = added_up(n, ways[other])
                    else:
                        waiting[depth] = other
                        depth += 1
                if links[at + LINK_HERE] < 0 or links[at + LINK_START] >= low:
                    if before >= 0:
                        if asked[before] == mark:
                            n = added_up(n, ways[before])
                        else:
                            waiting[depth] = before
                            depth += 1
                    elif links[at + LINK_HERE] >= 0:
                        n = added_up(n, 1)
            if depth == top:  # all that it leads to was counted
                asked[link] = mark
                ways[link] = n
                depth -= 1
        total[h] = ways[hit[h]]


@kernel
def best_hits(hits: Ints, count: int, event: Ints, errors: Ints, start: Ints) -> int:
    """Write the best hit of each event; those of an event follow each other, as the engine runs events one by one.

    Returns
    -------
    int
        How many events complete something.
    """
    used = 0
    for hit in range(0, count * HIT, HIT):
        e, k, t = hits[hit + HIT_EVENT], hits[hit + HIT_ERRORS], hits[hit + HIT_START]
        last = used - 1
        if used == 0 or event[last] != e:
            event[used] = e
            errors[used] = k
            start[used] = t
            used += 1
        elif k < errors[last] or (k == errors[last] and t > start[last]):
            errors[last] = k
            start[last] = t
    return used
