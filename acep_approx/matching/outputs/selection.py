"""Which matches are listed in view of those before: FIRST MATCH, AFTER MATCH SKIP, NON OVERLAP, CONSUME, EVERY.

Who asks gives the matches of all partitions in the order in which they are put out.

Oracle: ``tests/naive_selection.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.kernels.runs import selection as kernel
from acep_approx.matching.outputs.matches import CompletedMatches
from acep_approx.matching.outputs.recent import Recent
from acep_approx.query.syntax import Selection
from acep_approx.ranges import COUNT, TICK, Range, check_arrays

NEVER = -(2**62)
MARKED = ("slot", "row", "tick")


class MarkedEvents:
    """Events of listed matches, by slot and row, for as long as a match can still name them."""

    def __init__(self) -> None:
        self.slot, self.row, self.tick = (np.zeros(0, np.int64) for _ in range(3))

    def has(self, slot: Ints, row: Ints) -> Bools:
        """Which of some events are among them."""
        if not len(self.row):
            return np.zeros(len(row), np.bool_)
        rows = np.unique(self.row)
        place = np.searchsorted(rows, row)
        is_here = rows[np.minimum(place, len(rows) - 1)] == row
        mine = self.slot * len(rows) + np.searchsorted(rows, self.row)
        found: Bools = is_here & np.isin(slot * len(rows) + place, mine)
        return found

    def add(self, slot: Ints, row: Ints, tick: Ints) -> None:
        """Take in events; none of them leaves its window before ``tick`` does."""
        for name, more in zip(MARKED, (slot, row, tick), strict=True):
            setattr(self, name, np.concatenate((getattr(self, name), more)))

    def forget(self, floor: Ints | int) -> None:
        """Let go of events with ticks before ``floor`` (per slot, or for all)."""
        self.keep(self.tick >= (floor[self.slot] if isinstance(floor, np.ndarray) else floor))

    def keep(self, which: Bools) -> None:
        """Let go of all others."""
        if not which.all():
            self.slot, self.row, self.tick = self.slot[which], self.row[which], self.tick[which]


class ListedBefore:
    """What the clauses of a query need to know of the matches that were listed.

    Parameters
    ----------
    asked : Selection
    every : int
        The length of EVERY in ticks of time.
    labels : int64 array
        The variable of each arc.
    variables : sequence of str
        The variables, by these numbers.
    recent : Recent
        The events of matches; in windows of events it knows their times.

    Attributes
    ----------
    next_row : int64 array, shape (slots,)
        The first row at which the next match may start.
    last_time : int64 array, shape (slots,)
        When the match listed last ended; ``NEVER`` where none was.
    begins, used : MarkedEvents
        The events that listed matches begin with, and those that are in one.
    hidden : int or None
        The variable of events that are no part of the set of events of a match, unless they are its first or its last.
    """

    def __init__(
        self, asked: Selection, every: int, labels: Ints, variables: Sequence[str], recent: Recent
    ) -> None:
        self.asked = asked
        self.every = every
        self.hidden: int | None = None
        self._labels = labels
        self._recent = recent
        chosen = (asked.first, asked.skip is not None, asked.consume, asked.every is not None)
        bits = (kernel.FIRST, kernel.SKIP, kernel.CONSUME, kernel.EVERY)
        self._clauses = sum(bit for bit, is_asked in zip(bits, chosen, strict=True) if is_asked)
        named = None if asked.skip is None else asked.skip.variable
        self._variable = None if named is None else list(variables).index(named)
        self.next_row, self.last_time = np.full(1, NEVER), np.full(1, NEVER)
        self.begins, self.used = MarkedEvents(), MarkedEvents()

    @property
    def one_per_event(self) -> bool:
        """Whether no two matches that end with the same event are listed."""
        skip = self.asked.skip
        return self.asked.consume or (skip is not None and skip.to == "past last row")

    def events(self, found: CompletedMatches) -> tuple[Ints, Ints]:
        """The sets of events of matches: ``offset``, and rows, ascending for each match."""
        row = self._recent.rows_of(found.id)
        if self.hidden is None:
            return found.offset, row
        counts = self._labels[found.arc] != self.hidden
        counts[found.offset[:-1]] = True
        counts[found.offset[1:] - 1] = True
        return np.concatenate(([0], np.cumsum(counts)))[found.offset], row[counts]

    def chosen(self, found: CompletedMatches, *, is_count: bool) -> Ints:
        """Those of some matches that are listed: they count as listed from now on.

        Parameters
        ----------
        found : CompletedMatches
            In the order in which they are put out.
        is_count : bool
            Whether their ticks are numbers of events.
        """
        if not len(found):
            return np.zeros(0, np.int64)
        self._make_room(int(found.slot.max()) + 1)
        offset, row = self.events(found)
        slot, first_row = found.slot, row[offset[:-1]]
        event_slot = np.repeat(slot, np.diff(offset))
        none, never = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        first = event = none
        begins = is_used = never
        if self.asked.first:
            first, begins = self._marked(self.begins, slot, first_row)
        if self.asked.consume:
            event, is_used = self._marked(self.used, event_slot, row)
        time = none
        if self.asked.every is not None:
            recent = self._recent
            time = recent.ticks[recent.find(found.id[found.offset[1:] - 1])] if is_count else found.tick
        next_row = self._next_rows(found) if self.asked.skip is not None else none
        keep = np.zeros(len(found), np.bool_)
        kernel.allowed(
            self._clauses,
            self.every,
            kernel.Asked(slot, first_row, next_row, time, first, offset, event),
            kernel.Before(self.next_row, self.last_time, begins, is_used),
            keep,
        )
        if self.asked.first:
            self.begins.add(slot[keep], first_row[keep], found.start[keep])
        if self.asked.consume:
            length = np.diff(offset)
            mine = np.repeat(keep, length)
            self.used.add(event_slot[mine], row[mine], np.repeat(found.tick, length)[mine])
        return np.flatnonzero(keep)

    @staticmethod
    def _marked(events: MarkedEvents, slot: Ints, row: Ints) -> tuple[Ints, Bools]:
        """Numbers for some events, one for each event of each slot; and per number whether the event is marked."""
        order = np.lexsort((row, slot))
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = (np.diff(slot[order]) != 0) | (np.diff(row[order]) != 0)
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(is_new) - 1
        one = order[is_new]
        return number, events.has(slot[one], row[one])

    def _next_rows(self, found: CompletedMatches) -> Ints:
        """Per match the first row at which the one after it may start, were it listed."""
        skip = self.asked.skip
        assert skip is not None, "who asks knows"
        row = self._recent.rows_of(found.id)
        if skip.to == "past last row":
            return row[found.offset[1:] - 1] + 1
        after_first = row[found.offset[:-1]] + 1
        if self._variable is None:
            return after_first
        mine = np.flatnonzero(self._labels[found.arc] == self._variable)
        match = np.repeat(np.arange(len(found)), np.diff(found.offset))[mine]
        if skip.to == "first":  # what is written last stays
            mine, match = mine[::-1], match[::-1]
        after_first[match] = row[mine]
        return after_first

    # --- letting go -----------------------------------------------------------------------------------------

    def forget(self, floor: Ints | int) -> None:
        """Let go of events before ``floor`` (per slot, or for all)."""
        self.begins.forget(floor)
        self.used.forget(floor)

    def clear(self, slots: Ints) -> None:
        """Forget some slots: another key may get them."""
        known = slots[slots < len(self.next_row)]
        self.next_row[known] = self.last_time[known] = NEVER
        for events in (self.begins, self.used):
            events.keep(~np.isin(events.slot, slots))

    def in_force_until(self, slots: int) -> Ints:
        """Per slot the tick from which on a match may end again as far as EVERY is concerned."""
        self._make_room(slots)
        return self.last_time[:slots] + self.every

    def _make_room(self, slots: int) -> None:
        if len(self.next_row) < slots:
            self.next_row = extended(self.next_row, 2 * slots, NEVER)
            self.last_time = extended(self.last_time, 2 * slots, NEVER)

    # --- state ----------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Ints]:
        """The state as arrays."""
        marks = {"begins": self.begins, "used": self.used}
        found = {f"{name}_{column}": getattr(one, column) for name, one in marks.items() for column in MARKED}
        return {"next_row": self.next_row, "last_time": self.last_time, **found}

    def restore(self, arrays: dict[str, Any], slots: int) -> None:
        """Take over a state of so many slots.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """
        known = arrays["next_row"].size
        ranges = {"next_row": Range(known, NEVER, COUNT + 1), "last_time": Range(known, NEVER, TICK)}
        for name in ("begins", "used"):
            size = arrays[f"{name}_slot"].size
            ranges |= {f"{name}_{column}": Range(size, -COUNT, COUNT) for column in MARKED}
            ranges[f"{name}_slot"] = Range(size, 0, slots)
        check_arrays(arrays, ranges)
        self.take_over(arrays)

    def copied(self) -> dict[str, Ints]:
        """The state as arrays that do not change any more."""
        return {name: column.copy() for name, column in self.arrays().items()}

    def take_over(self, arrays: dict[str, Any]) -> None:
        """Stand where ``arrays`` were taken."""
        self.next_row, self.last_time = arrays["next_row"], arrays["last_time"]
        for name, one in (("begins", self.begins), ("used", self.used)):
            for column in MARKED:
                setattr(one, column, arrays[f"{name}_{column}"])
