"""Maximal matches: those whose set of events is in no larger one, listed without the others.

A walk begins at one event and goes through the events of its window, in one direction of time. At each event it asks
what comes of binding it, and of passing it over. Three things are known of the events that were bound so far:

* ``own``: per gap (a state and what must not come before the next event) the least errors of a run that has bound
  exactly these events;
* ``more``: per gap and errors the best beginning of a run that has bound these events and others: the latest, seen in
  the direction of the walk, so that its window is the longest;
* ``far``: per gap and errors the nearest event at which a run can be complete, if it goes on from here.

A match is maximal if no run of ``more`` is or can be complete within its window, and no run of ``own`` can go on and
be complete. A gap of ``own`` is given up where no run can be complete from it, and where a run of ``more`` can do all
that it can do (``dominated_by``): whatever comes of it, something larger does, too. So a walk takes few branches that
lead to nothing, and what is not maximal costs no time, however much of it there is.

Source: the selection strategy MAX of Grez et al. (ACM TODS 46(4) 2021, section 4 and its compilation into automata in
section 5.3). Deviations: there it is decided at each position, for matches that end there, by an automaton whose states
are pairs of sets of states; here windows move, so that runs are compared with their beginnings, matches that end later
count, and dominance prunes. Oracle: ``tests/naive_selection.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline

NEVER, FAR = -(2**62), 2**62
"""No beginning, and no end."""
OUTSIDE = -1
"""What stands for a gap before the first event of a walk, and after the last."""
MOVE_FROM, MOVE_TO, MOVE_COST, MOVE_ARC, MOVE = 0, 1, 2, 3, 4
"""The columns of a move: the gap that it leaves, the gap that it leads to, its cost in errors, and its arc."""


class Gaps(NamedTuple):
    """An automaton in one direction of time.

    ``sizes``: gaps, numbers of errors, labels. ``first`` and ``moves``: per class of events the moves by which one can
    be bound, those of a first event in front; ``first_inner``: where the others begin. ``first_kill`` and ``kills``:
    per class the gaps that an event ends which is passed over. ``dominated_by``: per gap and errors, and per other gap,
    the most errors with which a run there can do all that one here can; -1 for none. ``lists``: per class whether
    matches are listed whose walk ends with such an event. ``label``: per arc.
    """

    sizes: Ints
    first: Ints
    first_inner: Ints
    moves: Ints
    first_kill: Ints
    kills: Ints
    dominated_by: Ints
    lists: Ints
    label: Ints


class Walked(NamedTuple):
    """Events in the direction of a walk, with ticks that grow in it.

    Between the events of two keys, and behind the last, stands one of class 0 at ``FAR``. ``asked``: whether a walk
    begins there. ``last``: the tick of the last event in the window that begins there with
    which a match can end that is listed.
    """

    tick: Ints
    cls: Ints
    asked: Ints
    last: Ints


class Walks(NamedTuple):
    """Where walks stand; all but ``header`` and ``before`` have room for each event that is bound.

    ``before``: what runs have reached that began before, if ``header`` says that these count, and room for as much.
    ``taken``: ``own`` when an event was bound. The others are about the ways to read a match: ``rest``, per gap the
    least errors from there on; ``arc`` and ``onward``, the arc and the gap behind it that lead to these; ``tried``,
    which label an event was bound to last.
    """

    header: Ints
    before: Ints
    own: Ints
    more: Ints
    taken: Ints
    path: Ints
    at: Ints
    rest: Ints
    arc: Ints
    onward: Ints
    tried: Ints


class Maximal(NamedTuple):
    """Matches as a walk writes them: ``event`` and ``arc`` of each that is bound, in the direction of the walk."""

    header: Ints
    errors: Ints
    offset: Ints
    event: Ints
    arc: Ints


BEGIN, WALKING, READING = 0, 1, 2
EVENT, PHASE, DEPTH, LEVEL, BEFORE, HEADER = 0, 1, 2, 3, 4, 5
MATCHES, BOUND = 0, 1
DONE, OUT_FULL, DEEPER = 0, 1, 2


@block_kernel
def reach(tick: Ints, cls: Ints, gaps: Gaps, ends: Ints, far: Ints) -> None:
    """Tell from where runs can be complete, and how soon.

    Parameters
    ----------
    tick, cls : int64
        Events in the direction of the walks.
    gaps : Gaps
    ends : int64
        Per class whether a run can be complete with such an event.
    far : int64, shape (events + 1, gaps, errors)
        Filled: the tick of the nearest event, of those from here on, with which a run at the gap can be complete that
        may make at most so many errors more.

    Complexity: O(events x (gaps x errors + moves x errors)).
    """
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    words = size * lanes
    for x in range(words):
        far[len(tick) * words + x] = FAR
    for i in range(len(tick) - 1, -1, -1):
        here, after, c = i * words, (i + 1) * words, cls[i]
        for x in range(words):
            far[here + x] = far[after + x] if tick[i] < FAR else FAR
        for x in range(gaps.first_kill[c], gaps.first_kill[c + 1]):
            for e in range(lanes):
                far[here + gaps.kills[x] * lanes + e] = FAR
        for m in range(gaps.first_inner[c] * MOVE, gaps.first[c + 1] * MOVE, MOVE):
            origin, target, cost = gaps.moves[m + MOVE_FROM], gaps.moves[m + MOVE_TO], gaps.moves[m + MOVE_COST]
            for e in range(cost, lanes):
                at = here + origin * lanes + e
                if target != OUTSIDE:
                    far[at] = min(far[at], far[after + target * lanes + e - cost])
                elif ends[c] > 0:
                    far[at] = min(far[at], tick[i])


@block_kernel
def last_ends(tick: Ints, cls: Ints, window: int, ends: Ints, last: Ints) -> None:
    """Fill ``last`` of ``Walked``; ``ends``: per class whether a listed match can end with such an event."""
    seen, end = -1, -1
    for i in range(len(tick)):
        limit = tick[i] + window if tick[i] < FAR else NEVER
        while seen + 1 < len(tick) and (seen < i or tick[seen + 1] <= limit):
            seen += 1
            if ends[cls[seen]] > 0:
                end = seen
        last[i] = tick[end] if end >= i else NEVER


@inline
def begin(gaps: Gaps, c: int, low: int, walks: Walks) -> tuple[bool, bool]:
    """Begin a walk: bind its first event, of class ``c``, and write the states that this leads to into frame 0.

    Returns whether it is a match by itself, and whether a run that has bound more is one.
    """
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    for g in range(size):
        walks.own[g] = lanes
    is_match = False
    for m in range(gaps.first[c] * MOVE, gaps.first_inner[c] * MOVE, MOVE):
        target, cost = gaps.moves[m + MOVE_TO], gaps.moves[m + MOVE_COST]
        if target == OUTSIDE:
            is_match = is_match or cost < lanes
        else:
            walks.own[target] = min(walks.own[target], cost)
    return is_match, bind_more(gaps, c, low, walks.before, 0, walks.more, 0)


@inline
def bind(gaps: Gaps, c: int, low: int, walks: Walks, frame: int) -> tuple[bool, bool]:
    """Bind one more event, of class ``c``: go on from the states of frame ``frame - 1``, and write them into ``frame``.

    Returns whether the events bound so far are a match, and whether a run that has bound more is one.
    """
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    own = frame * size
    for g in range(size):
        walks.own[own + g] = lanes
    is_match = False
    for m in range(gaps.first_inner[c] * MOVE, gaps.first[c + 1] * MOVE, MOVE):
        target = gaps.moves[m + MOVE_TO]
        errors = walks.own[own - size + gaps.moves[m + MOVE_FROM]] + gaps.moves[m + MOVE_COST]
        if errors < lanes:
            if target == OUTSIDE:
                is_match = True
            else:
                walks.own[own + target] = min(walks.own[own + target], errors)
    more = frame * size * lanes
    return is_match, bind_more(gaps, c, low, walks.more, more - size * lanes, walks.more, more)


@inline
def bind_more(gaps: Gaps, c: int, low: int, origins: Ints, first: int, more: Ints, to: int) -> bool:
    """Let the runs in ``origins``, which have bound more, bind this event; return whether one is complete."""
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    for x in range(to, to + size * lanes):
        more[x] = NEVER
    is_larger = False
    for m in range(gaps.first_inner[c] * MOVE, gaps.first[c + 1] * MOVE, MOVE):
        origin, target, cost = gaps.moves[m + MOVE_FROM], gaps.moves[m + MOVE_TO], gaps.moves[m + MOVE_COST]
        for e in range(cost, lanes):
            begun = origins[first + origin * lanes + e - cost]
            if begun >= low:
                if target == OUTSIDE:
                    is_larger = True
                else:
                    at = to + target * lanes + e
                    more[at] = max(more[at], begun)
    return is_larger


@inline
def pass_over(gaps: Gaps, c: int, start: int, walks: Walks, frame: int) -> None:
    """Pass an event over, in ``frame``; what came of binding it stands in the next frame."""
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    words = size * lanes
    own, more = frame * size, frame * words
    for x in range(gaps.first_kill[c], gaps.first_kill[c + 1]):
        g = gaps.kills[x]
        walks.own[own + g] = lanes
        for e in range(lanes):
            walks.more[more + g * lanes + e] = NEVER
    for g in range(size):
        least = walks.own[own + size + g]
        for e in range(lanes):
            at = more + g * lanes + e
            begun = start if least <= e else walks.more[at + words]
            walks.more[at] = max(walks.more[at], begun)


@inline
def give_up(gaps: Gaps, events: Walked, window: int, listed: Ints, walks: Walks, frame: int, at: int) -> bool:
    """Give up the gaps of ``own`` from which nothing maximal can come of events from ``at`` on; whether any is left."""
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    words = size * lanes
    own, more, first = frame * size, frame * words, walks.path[0]
    start, last = events.tick[first], events.last[first]
    is_any = False
    for g in range(size):
        errors = walks.own[own + g]
        if errors == lanes:
            continue
        is_left = listed[at * words + g * lanes + lanes - 1 - errors] <= last
        if not is_left:  # what it may lead to is larger than all that is listed from here on
            for e in range(errors, lanes):
                walks.more[more + g * lanes + e] = start
        if is_left:
            for other in range(size):
                e = gaps.dominated_by[(g * lanes + errors) * size + other]
                if e >= 0:
                    begun = walks.more[more + other * lanes + e]
                    if begun >= start or begun + window >= last:
                        is_left = False
                        break
        if is_left:
            is_any = True
        else:
            walks.own[own + g] = lanes
    return is_any


@inline
def is_contained(gaps: Gaps, window: int, limit: int, far: Ints, walks: Walks, frame: int, at: int) -> bool:
    """Whether a run that has bound what ``frame`` has, or more, can go on to a larger match, from ``at`` on."""
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    words = size * lanes
    own, more = frame * size, frame * words
    for g in range(size):
        errors = walks.own[own + g]
        if errors < lanes and far[at * words + g * lanes + lanes - 1 - errors] <= limit:
            return True
        for e in range(lanes):
            begun = walks.more[more + g * lanes + e]
            if begun > NEVER and far[at * words + g * lanes + lanes - 1 - e] <= begun + window:
                return True
    return False


@inline
def read_back(gaps: Gaps, events: Walked, walks: Walks, level: int, depth: int) -> bool:
    """Bind the event at ``level`` to the next label that a way to read the match has; whether there is one."""
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    c = events.cls[walks.path[level]]
    rest = level * size
    while walks.tried[level] < gaps.sizes[2]:
        walks.tried[level] += 1
        label = walks.tried[level]
        is_any = False
        for g in range(size):
            walks.rest[rest + g] = lanes
        for m in range(gaps.first[c] * MOVE, gaps.first[c + 1] * MOVE, MOVE):
            origin, target, arc = gaps.moves[m + MOVE_FROM], gaps.moves[m + MOVE_TO], gaps.moves[m + MOVE_ARC]
            if gaps.label[arc] != label or (origin == OUTSIDE) != (level == 0):
                continue
            if (target == OUTSIDE) != (level == depth):
                continue
            left = gaps.moves[m + MOVE_COST]
            if target != OUTSIDE:
                left += walks.rest[rest + size + target]
            spent = 0 if origin == OUTSIDE else walks.taken[rest + origin]
            to = 0 if origin == OUTSIDE else origin
            if spent + left < lanes and left < walks.rest[rest + to]:
                walks.rest[rest + to] = left
                walks.arc[rest + to] = arc
                walks.onward[rest + to] = target
                is_any = True
        if is_any:
            return True
    return False


@inline
def step(gaps: Gaps, c: int, tick: int, low: int, walks: Walks) -> None:
    """Let an event step what began before the next walk."""
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    fresh = size * lanes
    for x in range(fresh):
        walks.before[fresh + x] = NEVER
        if tick == FAR:
            walks.before[x] = NEVER
    for m in range(gaps.first[c] * MOVE, gaps.first[c + 1] * MOVE, MOVE):
        origin, target, cost = gaps.moves[m + MOVE_FROM], gaps.moves[m + MOVE_TO], gaps.moves[m + MOVE_COST]
        if target == OUTSIDE:
            continue
        for e in range(cost, lanes):
            begun = tick if origin == OUTSIDE else walks.before[origin * lanes + e - cost]
            at = fresh + target * lanes + e
            if begun >= low:
                walks.before[at] = max(walks.before[at], begun)
    for x in range(gaps.first_kill[c], gaps.first_kill[c + 1]):
        for e in range(lanes):
            walks.before[gaps.kills[x] * lanes + e] = NEVER
    for x in range(fresh):
        walks.before[x] = max(walks.before[x], walks.before[fresh + x])


@block_kernel
def walk(
    events: Walked, window: int, gaps: Gaps, far: Ints, listed: Ints, walks: Walks, found: Maximal,
) -> int:  # fmt: skip
    """List maximal matches from where ``walks`` stands.

    Parameters
    ----------
    events : Walked
    window : int
    gaps : Gaps
    far, listed : int64
        As ``reach`` fills them: for all matches, and for those that are listed.
    walks : Walks
    found : Maximal

    Returns
    -------
    int
        DONE, OUT_FULL (empty ``found``), or DEEPER (``walks`` must grow): then call again.

    Complexity: for each walk O(events of its window x (moves + gaps^2 x errors)) times the branches that it takes.
    """
    size = gaps.sizes[0]
    header = walks.header
    while header[EVENT] < len(events.tick):
        i = header[EVENT]
        if header[PHASE] == BEGIN:
            if events.asked[i] > 0 and events.last[i] >= events.tick[i]:
                header[DEPTH] = 0
                walks.path[0], walks.at[0] = i, i + 1
                is_match, is_larger = begin(gaps, events.cls[i], events.tick[i] - window, walks)
                limit = events.tick[i] + window
                is_listed = is_match and not is_larger and gaps.lists[events.cls[i]] > 0
                is_listed = is_listed and not is_contained(gaps, window, limit, far, walks, 0, i + 1)
                if not give_up(gaps, events, window, listed, walks, 0, i + 1):
                    walks.at[0] = len(events.tick)
                header[PHASE] = WALKING
                if is_listed:
                    header[PHASE], header[LEVEL], walks.tried[0] = READING, 0, -1
            else:
                header[PHASE], header[DEPTH] = WALKING, -1
        if header[PHASE] == READING:
            depth = header[DEPTH]
            level = header[LEVEL]
            while level <= depth:
                if not read_back(gaps, events, walks, level, depth):
                    level += 1
                    continue
                if level > 0:
                    level -= 1
                    walks.tried[level] = -1
                    continue
                at, match = found.header[BOUND], found.header[MATCHES]
                if match + 2 > len(found.offset) or at + depth + 1 > len(found.event):
                    walks.tried[0] -= 1
                    header[LEVEL] = 0
                    return OUT_FULL
                found.errors[match] = walks.rest[0]
                gap = 0
                for x in range(depth + 1):
                    found.event[at + x] = walks.path[x]
                    found.arc[at + x] = walks.arc[x * size + gap]
                    gap = walks.onward[x * size + gap]
                found.offset[match + 1] = at + depth + 1
                found.header[BOUND], found.header[MATCHES] = at + depth + 1, match + 1
            header[PHASE] = WALKING
        while header[DEPTH] >= 0:
            depth = header[DEPTH]
            first = walks.path[0]
            start = events.tick[first]
            limit = start + window
            j = walks.at[depth]
            if j >= len(events.tick) or events.tick[j] > events.last[first]:
                header[DEPTH] -= 1
                continue
            c = events.cls[j]
            if gaps.first[c] == gaps.first[c + 1] and gaps.first_kill[c] == gaps.first_kill[c + 1]:
                walks.at[depth] = j + 1
                continue
            if depth + 2 > len(walks.path):
                return DEEPER
            is_match, is_larger = bind(gaps, c, events.tick[j] - window, walks, depth + 1)
            for g in range(size):
                walks.taken[(depth + 1) * size + g] = walks.own[depth * size + g]
            pass_over(gaps, c, start, walks, depth)
            walks.at[depth] = j + 1
            if not give_up(gaps, events, window, listed, walks, depth, j + 1):
                walks.at[depth] = len(events.tick)
            walks.path[depth + 1], walks.at[depth + 1] = j, j + 1
            is_listed = is_match and not is_larger and gaps.lists[c] > 0
            is_listed = is_listed and not is_contained(gaps, window, limit, far, walks, depth + 1, j + 1)
            if give_up(gaps, events, window, listed, walks, depth + 1, j + 1):
                header[DEPTH] = depth + 1
            elif is_listed:
                walks.at[depth + 1] = len(events.tick)
                header[DEPTH] = depth + 1
            if is_listed:
                header[PHASE], header[LEVEL], walks.tried[depth + 1] = READING, depth + 1, -1
                break
        if header[PHASE] == READING:
            continue
        if header[BEFORE] > 0:
            step(gaps, events.cls[i], events.tick[i], events.tick[i] - window, walks)
        header[EVENT], header[PHASE] = i + 1, BEGIN
    return DONE
