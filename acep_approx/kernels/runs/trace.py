"""Hindsight: from the links of an exact run back to what every run led to, in one pass from the last link to the first.

A link is where a run stands from one event until it binds the next (a *phase*; links of merged runs beside it are not).
Children have higher numbers than the run that they were made from, so a pass backwards has seen all children born after
a moment when it comes to that moment: what they reach together is what the run still reaches from then on.

A set of match points is a mask of 64 bits from some first point on. Points are numbered by slot, then by row, so that
those of other slots take no bits; what lies further ahead is cut off.

Source: Li and Ge, PVLDB 2016, Definition 4 and Example 5, say what a history holds; that it is filled from the links of
the runs engine, and how, is ours.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.arithmetic import part_of as part_of_window
from acep_approx.kernels.arithmetic import shifted
from acep_approx.kernels.runs.layout import (
    ARC_MASK,
    LINK,
    LINK_BEFORE,
    LINK_HERE,
    LINK_LATEST,
    LINK_OTHER,
    LINK_START,
)

(
    AT,
    BIRTH,
    RUN,
    GOES_ON,
    UNTIL,
    QUIT,
    CLOSES,
    FIRST,
    LAST,
    FRESH,
    BEFORE,
    PART,
    MASK,
    BASE,
    CHILD,
    CHILD_COST,
    COST,
) = range(17)
"""Words of a phase: place of its event among all events; its birth (-1: none), the birth of its run; the phase that it
goes on from (-1: none). The event before which its tests end, the last tick at which it may be seen, the event at which
its window has closed. Its first visit, its last one that is not written yet, whether the first is at its own event, and
the visit before; the next part of the window to be written. What it reaches, and from which match point on. The event
of the first child (-1: none), run-steps from there on, and run-steps from its own event on."""
PHASE = 17
VISIT = 7
"""Columns of visits: birth, remaining, since, parent, first point, mask, cost."""


class Forest(NamedTuple):
    """The links of an exact run, and the phase of each."""

    links: Ints
    phases: Ints


class Stream(NamedTuple):
    """All events, by slot, then by row: tick, end of the slot, match points before each; the points, and who hits.

    ``after``: the first event that sees what this one makes: the next one, or the first of a later time.
    """

    ticks: Ints
    slot_end: Ints
    after: Ints
    point_at: Ints
    points: Ints
    is_hit: Bools


class Arcs(NamedTuple):
    """Of each arc whether runs stay in their pool with it, cannot skip it, and end at the next event after it."""

    in_place: Bools
    leaves: Bools
    ends: Bools


class Span(NamedTuple):
    """The window: the least ticks that remain in each part, and window + 1; how many parts before each have any."""

    floors: Ints
    solid: Ints
    window: int


class Work(NamedTuple):
    """Per row of it, events before each place that runs of some pools are tested with; the row of each birth's pool."""

    tested: Ints
    rows: Ints


@inline
def first_after(ticks: Ints, low: int, high: int, tick: int) -> int:
    """The first of the events ``low .. high - 1`` that is later than ``tick``; ``high`` where there is none."""
    at, step = low, 1
    while at < high and ticks[at] <= tick:
        low = at + 1
        at += step
        step *= 2
    high = min(at, high)
    while low < high:
        middle = (low + high) // 2
        if ticks[middle] <= tick:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def part_of(floors: Ints, window: int, left: int) -> int:
    """Which part of the window ``left`` ticks are in."""
    return part_of_window(max(left, 0), window, len(floors) - 1)


@block_kernel
def mark_phases(forest: Forest, stream: Stream, arcs: Arcs, ends_all: int, window: int) -> None:
    """Find out which run each link belongs to, and how long it is one of its phases.

    Phases have AT and BIRTH already. ``ends_all``: a match ends all runs of its slot.
    """
    links, phases, ticks, point_at, points = forest.links, forest.phases, stream.ticks, stream.point_at, stream.points
    for link in range(len(phases) // PHASE):
        at, p = link * LINK, link * PHASE
        here, start = phases[p + AT], links[at + LINK_LATEST]
        before, after = links[at + LINK_BEFORE], links[at + LINK_OTHER]
        until = first_after(ticks, here, stream.slot_end[here], start + window)
        phases[p + CLOSES] = until
        quit_at = start + window
        arc = max(links[at + LINK_HERE], 0) & ARC_MASK
        seen_by = stream.after[here]
        if arcs.ends[arc] and seen_by < stream.slot_end[here]:
            quit_at = min(quit_at, ticks[seen_by])
            until = min(until, stream.after[seen_by])
        if ends_all and point_at[here] < len(points):
            end = points[point_at[here]]
            if end < until:
                quit_at = min(quit_at, ticks[end])
                until = end + 1
        phases[p + UNTIL] = until
        phases[p + QUIT] = quit_at
        phases[p + RUN] = phases[p + BIRTH]
        phases[p + GOES_ON] = -1
        if links[at + LINK_HERE] < 0:
            join_runs(forest, p, before, after, ticks[here], seen_by)
        elif before >= 0:
            q = before * PHASE
            if arcs.in_place[arc] and phases[p + BIRTH] < 0:
                phases[p + RUN] = phases[q + RUN]
                phases[p + GOES_ON] = before
                phases[q + QUIT] = ticks[here]
            elif arcs.leaves[arc]:
                phases[q + QUIT] = min(phases[q + QUIT], ticks[here])
                phases[q + UNTIL] = min(phases[q + UNTIL], seen_by)


@inline
def join_runs(forest: Forest, p: int, one: int, other: int, now: int, seen_by: int) -> None:
    """Two runs become one: it is that of the later start, the younger where they are equal; the other one ends.

    ``seen_by``: the first event that sees the one.
    """
    links, phases = forest.links, forest.phases
    kept = one
    if one < 0 or (other >= 0 and links[other * LINK + LINK_LATEST] > links[one * LINK + LINK_LATEST]):
        kept = other
    phases[p + RUN] = phases[kept * PHASE + RUN]
    phases[p + GOES_ON] = kept
    for side in range(2):
        link = other if side else one
        if link >= 0:
            q = link * PHASE
            phases[q + QUIT] = min(phases[q + QUIT], now)
            if link != kept:
                phases[q + UNTIL] = min(phases[q + UNTIL], seen_by)


@inline
def visit_at(forest: Forest, span: Span, link: int, now: int) -> int:
    """The visit in which a run is that stands at ``link``, when an event comes."""
    phases, floors, solid = forest.phases, span.floors, span.solid
    if link < 0:
        return -1
    p, end = link * PHASE, forest.links[link * LINK + LINK_LATEST] + span.window
    low = part_of(floors, span.window, end - phases[p + QUIT])
    later = max(solid[part_of(floors, span.window, end - now)] - solid[low], 0)
    visit = phases[p + LAST] - later
    return int(visit if visit >= phases[p + FIRST] else phases[p + BEFORE])


@inline
def youngest(links: Ints, link: int) -> int:
    """Of merged runs the one that started last."""
    best = link
    link = links[link * LINK + LINK_OTHER]
    while link >= 0:
        if links[link * LINK + LINK_START] > links[best * LINK + LINK_START]:
            best = link
        link = links[link * LINK + LINK_OTHER]
    return best


@block_kernel
def place_visits(forest: Forest, stream: Stream, span: Span, is_closed: Bools, ends: Ints, count: Ints) -> None:
    """Number the visits of the runs in question, phase by phase, and write who completed what.

    ``ends`` receives visit and match point of direct completions; ``count`` the numbers of visits and of completions.
    """
    links, phases, ticks, point_at = forest.links, forest.phases, stream.ticks, stream.point_at
    floors, solid, window = span.floors, span.solid, span.window
    visits, completed = 0, 0
    for link in range(len(phases) // PHASE):
        at, p = link * LINK, link * PHASE
        here, run, start = phases[p + AT], phases[p + RUN], links[at + LINK_LATEST]
        now = ticks[here]
        phases[p + FIRST] = visits
        phases[p + LAST] = visits - 1
        phases[p + BEFORE] = -1
        phases[p + FRESH] = 0
        if stream.is_hit[link] and point_at[here + 1] > point_at[here]:
            before = links[youngest(links, link) * LINK + LINK_BEFORE]
            if before >= 0 and is_closed[phases[before * PHASE + RUN]]:
                ends[2 * completed] = visit_at(forest, span, before, now)
                ends[2 * completed + 1] = point_at[here]
                completed += 1
        if run < 0 or not is_closed[run]:
            continue
        old = phases[p + GOES_ON]
        fresh = phases[p + BIRTH] >= 0 or stream.after[phases[old * PHASE + AT]] != stream.after[here]
        if old < 0:
            old = links[youngest(links, link) * LINK + LINK_BEFORE]
        phases[p + BEFORE] = visit_at(forest, span, old, now)
        low = part_of(floors, window, start + window - phases[p + QUIT])
        phases[p + FRESH] = fresh
        phases[p + PART] = low
        visits += fresh + max(solid[part_of(floors, window, start + window - now)] - solid[low], 0)
        phases[p + LAST] = visits - 1
    count[0] = visits
    count[1] = completed


@inline
def lowered(mask: int, by: int) -> int:
    """A mask that begins ``by`` points earlier."""
    return shifted(mask, by) if mask != 0 and by < 64 else 0


@inline
def cut_off(mask: int, points: int) -> int:
    """The first ``points`` of a mask."""
    if points <= 0:
        return 0
    return mask if points >= 64 else mask & ~(-1 << points)


@inline
def give(phases: Ints, q: int, mask: int, base: int) -> None:
    """A phase reaches what one of its children does; the children come in order, the last first."""
    phases[q + MASK] = lowered(phases[q + MASK], phases[q + BASE] - base) | mask
    phases[q + BASE] = base


@inline
def work_from(phases: Ints, p: int, tested: Ints, row: int, begin: int, after: Ints) -> int:
    """Run-steps from an event on: until the first child, then the child's; else until the end of the run."""
    child = phases[p + CHILD]
    if child < 0:
        return int(tested[row + phases[p + UNTIL]] - tested[row + begin])
    own = tested[row + after[child]] - tested[row + begin]
    if tested[row + child + 1] == tested[row + child]:
        own += 1  # an index led the event to this run
    return int(own + phases[p + CHILD_COST])


@inline
def write_visit(
    phases: Ints, p: int, out: Ints, visit: int, remaining: int, since: int, first_point: int, cost: int,
) -> None:  # fmt: skip
    """A visit of the run of a phase, with what the phase reaches by now."""
    many = len(out) // VISIT
    out[visit] = phases[p + RUN]
    out[many + visit] = remaining
    out[2 * many + visit] = since
    out[3 * many + visit] = visit - 1 if visit > phases[p + FIRST] else phases[p + BEFORE]
    out[4 * many + visit] = first_point
    out[5 * many + visit] = lowered(phases[p + MASK], phases[p + BASE] - first_point)
    out[6 * many + visit] = cost


@inline
def write_later(forest: Forest, stream: Stream, work: Work, span: Span, link: int, now: int, out: Ints) -> None:
    """Write the visits of a phase that are later than ``now``: its children after them have all been seen."""
    phases, ticks, floors = forest.phases, stream.ticks, span.floors
    p = link * PHASE
    end = forest.links[link * LINK + LINK_LATEST] + span.window
    while phases[p + LAST] >= phases[p + FIRST] + phases[p + FRESH]:
        part = phases[p + PART]
        remaining = floors[part + 1] - 1
        if remaining >= floors[part]:
            if end - remaining <= now:
                break
            here = phases[p + AT]
            begin = first_after(ticks, stream.after[here], phases[p + CLOSES], end - remaining - 1)
            cost = work_from(phases, p, work.tested, work.rows[phases[p + RUN]], begin, stream.after)
            since = end - remaining - ticks[here]
            write_visit(phases, p, out, phases[p + LAST], remaining, since, stream.point_at[begin], cost)
            phases[p + LAST] -= 1
        phases[p + PART] = part + 1


@block_kernel
def look_back(forest: Forest, stream: Stream, work: Work, span: Span, out: Ints) -> None:
    """From the last link to the first: what is reached from each, what it costs, and the visits."""
    links, phases, ticks, point_at, window = forest.links, forest.phases, stream.ticks, stream.point_at, span.window
    used = len(phases) // PHASE
    for back in range(used):
        link = used - 1 - back
        at, p = link * LINK, link * PHASE
        here = phases[p + AT]
        now, base = ticks[here], point_at[here]
        write_later(forest, stream, work, span, link, now, out)
        mask = lowered(phases[p + MASK], phases[p + BASE] - base)
        if stream.is_hit[link] and point_at[here + 1] > base:
            mask |= 1
        phases[p + MASK] = mask
        phases[p + BASE] = base
        if phases[p + RUN] >= 0:
            row, begin = work.rows[phases[p + RUN]], stream.after[here]
            cost = work_from(phases, p, work.tested, row, begin, stream.after)
            phases[p + COST] = cost
            if phases[p + FRESH]:
                remaining = links[at + LINK_LATEST] + window - now
                write_visit(phases, p, out, phases[p + FIRST], remaining, 0, base, cost)
        before, after = links[at + LINK_BEFORE], links[at + LINK_OTHER]
        is_union = links[at + LINK_HERE] < 0
        if before >= 0:
            q, closes = before * PHASE, phases[p + CLOSES]
            write_later(forest, stream, work, span, before, now, out)
            if is_union:
                closes = phases[q + CLOSES]
            elif links[at + LINK_START] != links[at + LINK_LATEST]:
                closes = first_after(ticks, here, stream.slot_end[here], links[at + LINK_START] + window)
            give(phases, q, cut_off(mask, point_at[closes] - base), base)
            if not is_union and phases[p + GOES_ON] < 0:
                phases[q + CHILD] = here
                phases[q + CHILD_COST] = phases[p + COST]
        if after >= 0:
            q = after * PHASE
            give(phases, q, cut_off(mask, point_at[phases[q + CLOSES]] - base), base)
            phases[q + COST] = phases[p + COST]
        if phases[p + GOES_ON] >= 0:
            q = phases[p + GOES_ON] * PHASE
            for word in (CHILD, CHILD_COST, UNTIL):
                phases[q + word] = phases[p + word]
