"""Which complete matches are listed: those that no other one contains, and those that the ones listed before allow."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Ints
from acep_approx.jit.kernel import block_kernel

FIRST, SKIP, CONSUME, EVERY = 1, 2, 4, 8
"""Bits of the clauses that a query has."""


class Asked(NamedTuple):
    """Of each match, in order, what the clauses ask for; columns of clauses that a query has not are empty.

    ``first_row`` is that of its first event, ``next_row`` the first at which the match after it may start, ``time``
    that of its end. ``first`` and ``event`` are numbers of its first and of all its events (``offset``), one for each
    event of each slot.
    """

    slot: Ints
    first_row: Ints
    next_row: Ints
    time: Ints
    first: Ints
    offset: Ints
    event: Ints


class Before(NamedTuple):
    """What is known of the matches listed so far.

    Per slot the first row at which the next match may start, and the time at which the last one ended; per number of an
    event whether a match begins with it, and whether it is in a match.
    """

    next_row: Ints
    last_time: Ints
    begins: Bools
    is_used: Bools


@block_kernel
def allowed(clauses: int, every: int, asked: Asked, before: Before, keep: Bools) -> None:
    """Keep the matches that all ``clauses`` allow; each counts as listed for those behind it."""
    for m in range(len(asked.slot)):
        slot = asked.slot[m]
        good = True
        if clauses & SKIP:
            good = asked.first_row[m] >= before.next_row[slot]
        if good and clauses & EVERY:
            good = asked.time[m] - before.last_time[slot] >= every
        if good and clauses & FIRST:
            good = not before.begins[asked.first[m]]
        if good and clauses & CONSUME:
            for j in range(asked.offset[m], asked.offset[m + 1]):
                good = good and not before.is_used[asked.event[j]]
        if not good:
            continue
        keep[m] = True
        if clauses & SKIP:
            before.next_row[slot] = asked.next_row[m]
        if clauses & EVERY:
            before.last_time[slot] = asked.time[m]
        if clauses & FIRST:
            before.begins[asked.first[m]] = True
        if clauses & CONSUME:
            for j in range(asked.offset[m], asked.offset[m + 1]):
                before.is_used[asked.event[j]] = True


@block_kernel
def contained(which: Ints, slot: Ints, last: Ints, order: Ints, offset: Ints, row: Ints, found: Bools) -> None:
    """Mark the matches whose events are a proper part of those of one of ``which``, in the same slot.

    Match ``m`` has the events ``row[offset[m] : offset[m + 1]]``, ascending; ``last`` is the last of them. ``order``
    sorts all matches by slot, then by ``last``.
    """
    for i in range(len(which)):
        whole = which[i]
        begin, end = offset[whole], offset[whole + 1]
        for j in range(begin, end):
            low, high = 0, len(order)
            while low < high:
                middle = (low + high) // 2
                m = order[middle]
                if slot[m] < slot[whole] or (slot[m] == slot[whole] and last[m] < row[j]):
                    low = middle + 1
                else:
                    high = middle
            while low < len(order):
                m = order[low]
                low += 1
                if slot[m] != slot[whole] or last[m] != row[j]:
                    break
                if found[m] or offset[m + 1] - offset[m] >= end - begin:
                    continue
                at, is_part = begin, True
                for k in range(offset[m], offset[m + 1]):
                    while at < end and row[at] < row[k]:
                        at += 1
                    is_part = is_part and at < end and row[at] == row[k]
                found[m] = is_part
