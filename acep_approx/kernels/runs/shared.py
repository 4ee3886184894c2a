"""Sharing lineage with others: which links some hits reach, and how many matches they stand for.

A link is written as in ``kernel_lineage``. Source: the compressed output of Agrawal et al., SIGMOD 2008, section 2.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.kernels.jit import block_kernel, ix
from acep_approx.kernels.runs.layout import LINK, LINK_BEFORE, LINK_HERE, LINK_LATEST, LINK_OTHER, LINK_START

MOST = 1 << 61
"""Counts stop growing here."""
NOBODY = 1 << 62


@block_kernel
def reach(hit: Ints, lows: Ints, links: Ints, shared: Ints, need: Ints) -> None:
    """Note per link in ``need`` (all ``NOBODY``) the earliest start that a hit looks for through it.

    ``hit`` and ``lows``: link and earliest start per hit. What lies behind a link with a number in ``shared`` is not
    gone through: it was reached before, by hits with starts no later.
    """
    for h in range(hit.size):
        need[ix(hit[ix(h)])] = min(need[ix(hit[ix(h)])], lows[ix(h)])
    for i in range(need.size):
        link = need.size - 1 - i  # links point to lower numbers
        low, at = need[ix(link)], link * LINK
        if low == NOBODY or shared[ix(link)] >= 0:
            continue
        if links[ix(at + LINK_LATEST)] < low:
            need[ix(link)] = NOBODY
            continue
        before, other = links[ix(at + LINK_BEFORE)], links[ix(at + LINK_OTHER)]
        if other >= 0:
            need[ix(other)] = min(need[ix(other)], low)
        if before >= 0 and (links[ix(at + LINK_HERE)] < 0 or links[ix(at + LINK_START)] >= low):
            need[ix(before)] = min(need[ix(before)], low)


@block_kernel
def count(hit: Ints, lows: Ints, links: Ints, asked: Ints, ways: Ints, total: Ints) -> None:
    """Number of matches per hit into ``total``; ``asked`` (all -1) and ``ways`` are work space, a word per link."""
    for h in range(hit.size):
        low, root = lows[ix(h)], hit[ix(h)]
        lowest = root
        asked[ix(root)] = h
        for i in range(root + 1):
            link = root - i
            if link < lowest:
                break
            at = link * LINK
            if asked[ix(link)] != h or links[ix(at + LINK_LATEST)] < low:
                continue
            before, other = links[ix(at + LINK_BEFORE)], links[ix(at + LINK_OTHER)]
            if other >= 0:
                asked[ix(other)] = h
                lowest = min(lowest, other)
            if before >= 0 and (links[ix(at + LINK_HERE)] < 0 or links[ix(at + LINK_START)] >= low):
                asked[ix(before)] = h
                lowest = min(lowest, before)
        for link in range(lowest, root + 1):
            if asked[ix(link)] != h:
                continue
            at = link * LINK
            n = 0
            if links[ix(at + LINK_LATEST)] >= low:
                before, other = links[ix(at + LINK_BEFORE)], links[ix(at + LINK_OTHER)]
                if other >= 0:
                    n += ways[ix(other)]
                if links[ix(at + LINK_HERE)] < 0 or links[ix(at + LINK_START)] >= low:
                    if before >= 0:
                        n += ways[ix(before)]
                    elif links[ix(at + LINK_HERE)] >= 0:
                        n += 1
            ways[ix(link)] = min(n, MOST)
        total[ix(h)] = ways[ix(root)]
