"""The best match of a match point: of those that its event completes, the first in the order of matches.

It has the fewest errors, and the latest start at that. Both are known; what is left is which events it binds: the
latest ones, compared one by one from the last one back. So a walk goes back from the event, and binds each event with
which a match of these errors and this start can still begin. ``kernels.maximal.reach`` has told for every event where
that is so; nothing is tried in vain, and nothing branches.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.maximal import MOVE, MOVE_ARC, MOVE_COST, MOVE_FROM, MOVE_TO, OUTSIDE, Gaps


class Ends(NamedTuple):
    """Match points: the place of each event among those walked, the errors, and the tick of the start."""

    at: Ints
    errors: Ints
    start: Ints


class Best(NamedTuple):
    """Matches as they are written: ``event`` and ``label`` of each that is bound, in the direction of the walk.

    ``header``: match points that are done, and events that are bound.
    """

    header: Ints
    offset: Ints
    event: Ints
    label: Ints


POINTS, BOUND = 0, 1
DONE, OUT_FULL, NONE = 0, 1, 2


@block_kernel
def last_places(tick: Ints, ends: Ends, furthest: Ints) -> None:
    """Fill in how far the walks of match points go, in their order, and those before them: behind which event."""
    most = 0
    for p in range(len(ends.at)):
        i = ends.at[p]
        while i < len(tick) and tick[i] <= ends.start[p]:
            i += 1
        most = max(most, i)
        furthest[p] = most


@inline
def leads(gaps: Gaps, far: Ints, own: Ints, m: int, tick: int, after: int, errors: int, start: int) -> bool:
    """Whether a match can begin at ``start`` if move ``m`` binds an event at ``tick``; ``own``: errors so far."""
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    origin, target = gaps.moves[m + MOVE_FROM], gaps.moves[m + MOVE_TO]
    spent = gaps.moves[m + MOVE_COST] + (0 if origin == OUTSIDE else own[origin])
    if spent > errors:
        return False
    if target == OUTSIDE:
        return tick == start
    begins: int = far[(after * size + target) * lanes + errors - spent]
    return begins == start


@block_kernel
def walk_back(tick: Ints, cls: Ints, gaps: Gaps, far: Ints, ends: Ends, own: Ints, found: Best) -> int:
    """Write the best match of match points, from where ``found`` stands.

    Parameters
    ----------
    tick, cls : int64
        Events, latest first, with ticks that grow in this direction.
    gaps : Gaps
        Of the automaton turned round.
    far : int64
        As ``kernels.maximal.reach`` fills it.
    ends : Ends
    own : int64, shape (2 * gaps,)
        Room for the least errors at each gap.
    found : Best

    Returns
    -------
    int
        DONE, or OUT_FULL (``found`` must grow): then call again. NONE: there is no such match, as only a state that
        was changed leads to.

    Complexity: for each match point O(events since its start x moves).
    """
    size, lanes = gaps.sizes[0], gaps.sizes[1]
    while found.header[POINTS] < len(ends.at):
        point, bound = found.header[POINTS], found.header[BOUND]
        i, errors, start = ends.at[point], ends.errors[point], ends.start[point]
        is_first, is_whole = True, False
        while not is_whole and i < len(tick) and tick[i] <= start:
            c = cls[i]
            label = gaps.sizes[2]
            for m in range(gaps.first[c] * MOVE, gaps.first[c + 1] * MOVE, MOVE):
                mine = gaps.label[gaps.moves[m + MOVE_ARC]]
                if mine < label and (gaps.moves[m + MOVE_FROM] == OUTSIDE) == is_first:
                    if leads(gaps, far, own, m, tick[i], i + 1, errors, start):
                        label = mine
            if label == gaps.sizes[2]:
                if is_first:
                    break
                for x in range(gaps.first_kill[c], gaps.first_kill[c + 1]):
                    own[gaps.kills[x]] = lanes
                i += 1
                continue
            if bound == len(found.event):
                return OUT_FULL
            for g in range(size):
                own[size + g] = lanes
            for m in range(gaps.first[c] * MOVE, gaps.first[c + 1] * MOVE, MOVE):
                origin, target, cost = gaps.moves[m + MOVE_FROM], gaps.moves[m + MOVE_TO], gaps.moves[m + MOVE_COST]
                if gaps.label[gaps.moves[m + MOVE_ARC]] != label or (origin == OUTSIDE) != is_first:
                    continue
                spent = cost if origin == OUTSIDE else own[origin] + cost
                if target != OUTSIDE:
                    own[size + target] = min(own[size + target], spent)
                elif spent <= errors and tick[i] == start:
                    is_whole = True
            for g in range(size):
                own[g] = own[size + g]
            found.event[bound] = i
            found.label[bound] = label
            bound += 1
            is_first = False
            i += 1
        if not is_whole:
            return NONE
        found.offset[point + 1] = bound
        found.header[POINTS], found.header[BOUND] = point + 1, bound
    return DONE
