"""Sharing lineage with others: which links some hits reach, and how many matches they stand for.

A link is written as in ``kernel_lineage``. Source: the compressed output of Agrawal et al., SIGMOD 2008, section 2.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import ix
from acep_approx.kernels.counts import added_up
from acep_approx.kernels.runs.layout import LINK, LINK_BEFORE, LINK_HERE, LINK_LATEST, LINK_OTHER, LINK_START

NOBODY = 1 << 62


@block_kernel
def reach(hit: Ints, lows: Ints, links: Ints, shared: Ints, need: Ints) -> None:
    """Note per link in ``need`` (all ``NOBODY``) the earliest start that a hit looks for through it.

    ``hit`` and ``lows``: link and earliest start per hit. What lies behind a link with a number in ``shared`` is not
    gone through: it was reached before, by hits with starts no later.
    """
    for h in range(len(hit)):
        need[ix(hit[ix(h)])] = min(need[ix(hit[ix(h)])], lows[ix(h)])
    for i in range(len(need)):
        link = len(need) - 1 - i  # links point to lower numbers
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
def count(
    hit: Ints, lows: Ints, links: Ints, first: int, asked: Ints, ways: Ints, waiting: Ints, total: Ints
) -> None:
    """Number of matches per hit into ``total``; hits with the same earliest start that follow one another share work.

    ``asked``, ``ways`` have a word per link, ``waiting`` two and two more. What ``asked`` holds is below ``first``, and
    then below ``first + len(hit)``.
    """
    mark = first
    for h in range(len(hit)):
        low = lows[ix(h)]
        if h > 0 and low != lows[ix(h - 1)]:
            mark = first + h
        waiting[0], depth = hit[ix(h)], 1
        while depth > 0:
            link = waiting[ix(depth - 1)]
            if asked[ix(link)] == mark:
                depth -= 1
                continue
            at, n, top = link * LINK, 0, depth
            if links[ix(at + LINK_LATEST)] >= low:
                before, other = links[ix(at + LINK_BEFORE)], links[ix(at + LINK_OTHER)]
                if other >= 0:
                    if asked[ix(other)] == mark:
                        n = added_up(n, ways[ix(other)])
                    else:
                        waiting[ix(depth)] = other
                        depth += 1
                if links[ix(at + LINK_HERE)] < 0 or links[ix(at + LINK_START)] >= low:
                    if before >= 0:
                        if asked[ix(before)] == mark:
                            n = added_up(n, ways[ix(before)])
                        else:
                            waiting[ix(depth)] = before
                            depth += 1
                    elif links[ix(at + LINK_HERE)] >= 0:
                        n = added_up(n, 1)
            if depth == top:  # all that it leads to was counted
                asked[ix(link)] = mark
                ways[ix(link)] = n
                depth -= 1
        total[ix(h)] = ways[ix(hit[ix(h)])]
