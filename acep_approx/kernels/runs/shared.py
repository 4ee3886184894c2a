"""Sharing lineage with others: which links some hits reach, and how many matches they stand for.

A link is written as in ``kernel_lineage``. Source: the compressed output of Agrawal et al., SIGMOD 2008, section 2.
"""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
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
def count(
    hit: Ints, lows: Ints, links: Ints, first: int, asked: Ints, ways: Ints, waiting: Ints, total: Ints
) -> None:
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
