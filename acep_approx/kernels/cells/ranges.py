"""Where to look in the logs of a key for what leads to one event: helpers of the kernels that walk them backwards."""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Ints
from acep_approx.jit.marks import inline
from acep_approx.kernels.cells.layout import (
    END,
    ENTRY_COLUMNS,
    ENTRY_PLACE,
    ENTRY_START,
    FIRST,
    HEAD_COLUMNS,
    OFFSET,
    RANGE,
    RANGE_END,
    RANGE_FIRST,
    RANGE_OF,
    RANGE_SLOT,
    Logs,
)


class Origin(NamedTuple):
    """The event that a walk starts from: its number, from 1, its key slot, the first log of that; place, and window.

    ``low`` is the earliest start in the window.
    """

    number: int
    slot: int
    base: int
    place: int
    low: int


@inline
def first_with(arena: Ints, low: int, high: int, column: int, value: int) -> int:
    """First entry in ``low .. high`` whose column is not below ``value``."""
    while low < high:
        middle = (low + high) // 2
        if arena[ENTRY_COLUMNS * middle + column] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _next_with(arena: Ints, low: int, high: int, column: int, value: int) -> int:
    """The same, faster where it is near ``low``."""
    step = 1
    while low + step <= high and arena[ENTRY_COLUMNS * (low + step - 1) + column] < value:
        low += step
        step *= 2
    return first_with(arena, low, min(low + step - 1, high), column, value)


@inline
def entries_of(log: int, origin: Origin, ranges: Ints, logs: Logs) -> tuple[int, int]:
    """The entries of a log that lie before the event, in its window: the first, and the end.

    They are looked for once per event, from where those of the event before were: events of a key come in order.
    """
    at = RANGE * log
    if ranges[at + RANGE_OF] != origin.number:
        head = (origin.base + log) * HEAD_COLUMNS
        first = logs.heads[head + OFFSET] + logs.heads[head + FIRST]
        end, last = first, logs.heads[head + OFFSET] + logs.heads[head + END]
        if ranges[at + RANGE_OF] > 0 and ranges[at + RANGE_SLOT] == origin.slot:
            first, end = ranges[at + RANGE_FIRST], ranges[at + RANGE_END]
        end = _next_with(logs.arena, end, last, ENTRY_PLACE, origin.place)
        ranges[at + RANGE_FIRST] = _next_with(logs.arena, first, end, ENTRY_START, origin.low)
        ranges[at + RANGE_OF], ranges[at + RANGE_SLOT] = origin.number, origin.slot
        ranges[at + RANGE_END] = end
    return ranges[at + RANGE_FIRST], ranges[at + RANGE_END]


@inline
def unbroken(reset: int, origin: Origin, first: int, end: int, bound: int, logs: Logs) -> int:
    """First of the entries ``first .. end`` into a state since it was last reset before ``bound``."""
    head = (origin.base + reset) * HEAD_COLUMNS
    oldest = logs.heads[head + OFFSET] + logs.heads[head + FIRST]
    newest = logs.heads[head + OFFSET] + logs.heads[head + END]
    after = first_with(logs.arena, oldest, newest, ENTRY_PLACE, bound)
    if after > oldest:
        first = first_with(logs.arena, first, end, ENTRY_PLACE, logs.arena[ENTRY_COLUMNS * (after - 1)])
    return first
