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
from acep_approx.jit.marks import inline, ix
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
    while at < high and ticks[ix(at)] <= tick:
        low = at + 1
        at += step
        step *= 2
    high = min(at, high)
    while low < high:
        middle = (low + high) // 2
        if ticks[ix(middle)] <= tick:
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
        here, start = phases[ix(p + AT)], links[ix(at + LINK_LATEST)]
        before, after = links[ix(at + LINK_BEFORE)], links[ix(at + LINK_OTHER)]
        until = first_after(ticks, here, stream.slot_end[ix(here)], start + window)
        phases[ix(p + CLOSES)] = until
        quit_at = start + window
        arc = max(links[ix(at + LINK_HERE)], 0) & ARC_MASK
        seen_by = stream.after[ix(here)]
        if arcs.ends[ix(arc)] and seen_by < stream.slot_end[ix(here)]:
            quit_at = min(quit_at, ticks[ix(seen_by)])
            until = min(until, stream.after[ix(seen_by)])
        if ends_all and point_at[ix(here)] < len(points):
            end = points[ix(point_at[ix(here)])]
            if end < until:
                quit_at = min(quit_at, ticks[ix(end)])
                until = end + 1
        phases[ix(p + UNTIL)] = until
        phases[ix(p + QUIT)] = quit_at
        phases[ix(p + RUN)] = phases[ix(p + BIRTH)]
        phases[ix(p + GOES_ON)] = -1
        if links[ix(at + LINK_HERE)] < 0:
            join_runs(forest, p, before, after, ticks[ix(here)], seen_by)
        elif before >= 0:
            q = before * PHASE
            if arcs.in_place[ix(arc)] and phases[ix(p + BIRTH)] < 0:
                phases[ix(p + RUN)] = phases[ix(q + RUN)]
                phases[ix(p + GOES_ON)] = before
                phases[ix(q + QUIT)] = ticks[ix(here)]
            elif arcs.leaves[ix(arc)]:
                phases[ix(q + QUIT)] = min(phases[ix(q + QUIT)], ticks[ix(here)])
                phases[ix(q + UNTIL)] = min(phases[ix(q + UNTIL)], seen_by)


@inline
def join_runs(forest: Forest, p: int, one: int, other: int, now: int, seen_by: int) -> None:
    """Two runs become one: it is that of the later start, the younger where they are equal; the other one ends.

    ``seen_by``: the first event that sees the one.
    """
    links, phases = forest.links, forest.phases
    kept = one
    if one < 0 or (other >= 0 and links[ix(other * LINK + LINK_LATEST)] > links[ix(one * LINK + LINK_LATEST)]):
        kept = other
    phases[ix(p + RUN)] = phases[ix(kept * PHASE + RUN)]
    phases[ix(p + GOES_ON)] = kept
    for side in range(2):
        link = other if side else one
        if link >= 0:
            q = link * PHASE
            phases[ix(q + QUIT)] = min(phases[ix(q + QUIT)], now)
            if link != kept:
                phases[ix(q + UNTIL)] = min(phases[ix(q + UNTIL)], seen_by)


@inline
def visit_at(forest: Forest, span: Span, link: int, now: int) -> int:
    """The visit in which a run is that stands at ``link``, when an event comes."""
    phases, floors, solid = forest.phases, span.floors, span.solid
    if link < 0:
        return -1
    p, end = link * PHASE, forest.links[ix(link * LINK + LINK_LATEST)] + span.window
    low = part_of(floors, span.window, end - phases[ix(p + QUIT)])
    later = max(solid[ix(part_of(floors, span.window, end - now))] - solid[ix(low)], 0)
    visit = phases[ix(p + LAST)] - later
    return int(visit if visit >= phases[ix(p + FIRST)] else phases[ix(p + BEFORE)])


@inline
def youngest(links: Ints, link: int) -> int:
    """Of merged runs the one that started last."""
    best = link
    link = links[ix(link * LINK + LINK_OTHER)]
    while link >= 0:
        if links[ix(link * LINK + LINK_START)] > links[ix(best * LINK + LINK_START)]:
            best = link
        link = links[ix(link * LINK + LINK_OTHER)]
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
        here, run, start = phases[ix(p + AT)], phases[ix(p + RUN)], links[ix(at + LINK_LATEST)]
        now = ticks[ix(here)]
        phases[ix(p + FIRST)] = visits
        phases[ix(p + LAST)] = visits - 1
        phases[ix(p + BEFORE)] = -1
        phases[ix(p + FRESH)] = 0
        if stream.is_hit[ix(link)] and point_at[ix(here + 1)] > point_at[ix(here)]:
            before = links[ix(youngest(links, link) * LINK + LINK_BEFORE)]
            if before >= 0 and is_closed[ix(phases[ix(before * PHASE + RUN)])]:
                ends[ix(2 * completed)] = visit_at(forest, span, before, now)
                ends[ix(2 * completed + 1)] = point_at[ix(here)]
                completed += 1
        if run < 0 or not is_closed[ix(run)]:
            continue
        old = phases[ix(p + GOES_ON)]
        fresh = phases[ix(p + BIRTH)] >= 0 or stream.after[ix(phases[ix(old * PHASE + AT)])] != stream.after[ix(here)]
        if old < 0:
            old = links[ix(youngest(links, link) * LINK + LINK_BEFORE)]
        phases[ix(p + BEFORE)] = visit_at(forest, span, old, now)
        low = part_of(floors, window, start + window - phases[ix(p + QUIT)])
        phases[ix(p + FRESH)] = fresh
        phases[ix(p + PART)] = low
        visits += fresh + max(solid[ix(part_of(floors, window, start + window - now))] - solid[ix(low)], 0)
        phases[ix(p + LAST)] = visits - 1
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
    phases[ix(q + MASK)] = lowered(phases[ix(q + MASK)], phases[ix(q + BASE)] - base) | mask
    phases[ix(q + BASE)] = base


@inline
def work_from(phases: Ints, p: int, tested: Ints, row: int, begin: int, after: Ints) -> int:
    """Run-steps from an event on: until the first child, then the child's; else until the end of the run."""
    child = phases[ix(p + CHILD)]
    if child < 0:
        return int(tested[ix(row + phases[ix(p + UNTIL)])] - tested[ix(row + begin)])
    own = tested[ix(row + after[ix(child)])] - tested[ix(row + begin)]
    if tested[ix(row + child + 1)] == tested[ix(row + child)]:
        own += 1  # an index led the event to this run
    return int(own + phases[ix(p + CHILD_COST)])


@inline
def write_visit(
    phases: Ints, p: int, out: Ints, visit: int, remaining: int, since: int, first_point: int, cost: int,
) -> None:  # fmt: skip
    """A visit of the run of a phase, with what the phase reaches by now."""
    many = len(out) // VISIT
    out[ix(visit)] = phases[ix(p + RUN)]
    out[ix(many + visit)] = remaining
    out[ix(2 * many + visit)] = since
    out[ix(3 * many + visit)] = visit - 1 if visit > phases[ix(p + FIRST)] else phases[ix(p + BEFORE)]
    out[ix(4 * many + visit)] = first_point
    out[ix(5 * many + visit)] = lowered(phases[ix(p + MASK)], phases[ix(p + BASE)] - first_point)
    out[ix(6 * many + visit)] = cost


@inline
def write_later(forest: Forest, stream: Stream, work: Work, span: Span, link: int, now: int, out: Ints) -> None:
    """Write the visits of a phase that are later than ``now``: its children after them have all been seen."""
    phases, ticks, floors = forest.phases, stream.ticks, span.floors
    p = link * PHASE
    end = forest.links[ix(link * LINK + LINK_LATEST)] + span.window
    while phases[ix(p + LAST)] >= phases[ix(p + FIRST)] + phases[ix(p + FRESH)]:
        part = phases[ix(p + PART)]
        remaining = floors[ix(part + 1)] - 1
        if remaining >= floors[ix(part)]:
            if end - remaining <= now:
                break
            here = phases[ix(p + AT)]
            begin = first_after(ticks, stream.after[ix(here)], phases[ix(p + CLOSES)], end - remaining - 1)
            cost = work_from(phases, p, work.tested, work.rows[ix(phases[ix(p + RUN)])], begin, stream.after)
            since = end - remaining - ticks[ix(here)]
            write_visit(phases, p, out, phases[ix(p + LAST)], remaining, since, stream.point_at[ix(begin)], cost)
            phases[ix(p + LAST)] -= 1
        phases[ix(p + PART)] = part + 1


@block_kernel
def look_back(forest: Forest, stream: Stream, work: Work, span: Span, out: Ints) -> None:
    """From the last link to the first: what is reached from each, what it costs, and the visits."""
    links, phases, ticks, point_at, window = forest.links, forest.phases, stream.ticks, stream.point_at, span.window
    used = len(phases) // PHASE
    for back in range(used):
        link = used - 1 - back
        at, p = link * LINK, link * PHASE
        here = phases[ix(p + AT)]
        now, base = ticks[ix(here)], point_at[ix(here)]
        write_later(forest, stream, work, span, link, now, out)
        mask = lowered(phases[ix(p + MASK)], phases[ix(p + BASE)] - base)
        if stream.is_hit[ix(link)] and point_at[ix(here + 1)] > base:
            mask |= 1
        phases[ix(p + MASK)] = mask
        phases[ix(p + BASE)] = base
        if phases[ix(p + RUN)] >= 0:
            row, begin = work.rows[ix(phases[ix(p + RUN)])], stream.after[ix(here)]
            cost = work_from(phases, p, work.tested, row, begin, stream.after)
            phases[ix(p + COST)] = cost
            if phases[ix(p + FRESH)]:
                remaining = links[ix(at + LINK_LATEST)] + window - now
                write_visit(phases, p, out, phases[ix(p + FIRST)], remaining, 0, base, cost)
        before, after = links[ix(at + LINK_BEFORE)], links[ix(at + LINK_OTHER)]
        is_union = links[ix(at + LINK_HERE)] < 0
        if before >= 0:
            q, closes = before * PHASE, phases[ix(p + CLOSES)]
            write_later(forest, stream, work, span, before, now, out)
            if is_union:
                closes = phases[ix(q + CLOSES)]
            elif links[ix(at + LINK_START)] != links[ix(at + LINK_LATEST)]:
                closes = first_after(ticks, here, stream.slot_end[ix(here)], links[ix(at + LINK_START)] + window)
            give(phases, q, cut_off(mask, point_at[ix(closes)] - base), base)
            if not is_union and phases[ix(p + GOES_ON)] < 0:
                phases[ix(q + CHILD)] = here
                phases[ix(q + CHILD_COST)] = phases[ix(p + COST)]
        if after >= 0:
            q = after * PHASE
            give(phases, q, cut_off(mask, point_at[ix(phases[ix(q + CLOSES)])] - base), base)
            phases[ix(q + COST)] = phases[ix(p + COST)]
        if phases[ix(p + GOES_ON)] >= 0:
            q = phases[ix(p + GOES_ON)] * PHASE
            for word in (CHILD, CHILD_COST, UNTIL):
                phases[ix(q + word)] = phases[ix(p + word)]
