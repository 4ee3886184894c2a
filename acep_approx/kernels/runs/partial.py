"""Partial matches as the links of the runs engine hold them: with no merging every link has one link before it.

So links are a forest: its roots are the events that began runs, and every link is a partial match.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import ix
from acep_approx.kernels.runs.layout import ARC_BITS, ARC_MASK, LINK, LINK_BEFORE, LINK_HERE, LINK_START


class Roots(NamedTuple):
    """Of each link its root, events and errors; of each root its furthest link."""

    root: Ints
    depth: Ints
    errors: Ints
    furthest: Ints


@block_kernel
def trace(links: Ints, first: int, used: int, first_row: int, low: Ints, costs: Ints, traced: Roots) -> None:
    """Go on with what is known of links and roots: links ``first .. used - 1``.

    An event may begin runs by several arcs, one link after the other; the first of these stands for all. Furthest is
    the link of most events, then of fewest errors, then of the latest event, then the first. ``low`` has the earliest
    start inside the window of each row from ``first_row`` on: runs that have left it may still make links, and get the
    root -1, as all links behind them.
    """
    root, depth, errors, furthest = traced
    for link in range(first, used):
        at = link * LINK
        word, before = links[ix(at + LINK_HERE)], links[ix(at + LINK_BEFORE)]
        cost = costs[ix(word & ARC_MASK)]
        has_left = links[ix(at + LINK_START)] < low[ix((word >> ARC_BITS) - first_row)]
        if has_left or (before >= 0 and root[ix(before)] < 0):
            root[ix(link)] = -1
            depth[ix(link)] = 0
            continue
        if before < 0:
            root[ix(link)] = link
            depth[ix(link)] = 1
            errors[ix(link)] = cost
            follows_a_root = link > 0 and depth[ix(link - 1)] == 1
            if follows_a_root and links[ix(at - LINK + LINK_HERE)] >> ARC_BITS == word >> ARC_BITS:
                root[ix(link)] = root[ix(link - 1)]
        else:
            root[ix(link)] = root[ix(before)]
            depth[ix(link)] = depth[ix(before)] + 1
            errors[ix(link)] = errors[ix(before)] + cost
        top = root[ix(link)]
        if top == link:
            furthest[ix(link)] = link
            continue
        best = furthest[ix(top)]
        is_further = depth[ix(link)] > depth[ix(best)]
        if depth[ix(link)] == depth[ix(best)]:
            is_further = errors[ix(link)] < errors[ix(best)]
            if errors[ix(link)] == errors[ix(best)]:
                is_further = word >> ARC_BITS > links[ix(best * LINK + LINK_HERE)] >> ARC_BITS
        if is_further:
            furthest[ix(top)] = link


@block_kernel
def spell(links: Ints, chosen: Ints, offset: Ints, ids: Ints, arc: Ints) -> bool:
    """Write the events of the links ``chosen``, earliest first, to places ``offset[i] .. offset[i + 1] - 1``.

    Returns whether there are as many, which only the links of a state that was changed do not have.
    """
    for i in range(len(chosen)):
        link = chosen[ix(i)]
        for place in range(offset[ix(i + 1)] - 1, offset[ix(i)] - 1, -1):
            if link < 0:
                return False
            word = links[ix(link * LINK + LINK_HERE)]
            ids[ix(place)] = word >> ARC_BITS
            arc[ix(place)] = word & ARC_MASK
            link = links[ix(link * LINK + LINK_BEFORE)]
    return True
