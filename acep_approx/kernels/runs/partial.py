"""Partial matches as the links of the runs engine hold them: with no merging every link has one link before it.

So links are a forest: its roots are the events that began runs, and every link is a partial match.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
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
        word, before = links[at + LINK_HERE], links[at + LINK_BEFORE]
        cost = costs[word & ARC_MASK]
        has_left = links[at + LINK_START] < low[(word >> ARC_BITS) - first_row]
        if has_left or (before >= 0 and root[before] < 0):
            root[link] = -1
            depth[link] = 0
            continue
        if before < 0:
            root[link] = link
            depth[link] = 1
            errors[link] = cost
            follows_a_root = link > 0 and depth[link - 1] == 1
            if follows_a_root and links[at - LINK + LINK_HERE] >> ARC_BITS == word >> ARC_BITS:
                root[link] = root[link - 1]
        else:
            root[link] = root[before]
            depth[link] = depth[before] + 1
            errors[link] = errors[before] + cost
        top = root[link]
        if top == link:
            furthest[link] = link
            continue
        best = furthest[top]
        is_further = depth[link] > depth[best]
        if depth[link] == depth[best]:
            is_further = errors[link] < errors[best]
            if errors[link] == errors[best]:
                is_further = word >> ARC_BITS > links[best * LINK + LINK_HERE] >> ARC_BITS
        if is_further:
            furthest[top] = link


@block_kernel
def spell(links: Ints, chosen: Ints, offset: Ints, ids: Ints, arc: Ints) -> bool:
    """Write the events of the links ``chosen``, earliest first, to places ``offset[i] .. offset[i + 1] - 1``.

    Returns whether there are as many, which only the links of a state that was changed do not have.
    """
    for i in range(len(chosen)):
        link = chosen[i]
        for place in range(offset[i + 1] - 1, offset[i] - 1, -1):
            if link < 0:
                return False
            word = links[link * LINK + LINK_HERE]
            ids[place] = word >> ARC_BITS
            arc[place] = word & ARC_MASK
            link = links[link * LINK + LINK_BEFORE]
    return True
