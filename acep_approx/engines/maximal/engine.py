"""Finds maximal matches: detects as the cells do, holds the events of two windows, and walks where a match ends.

A match whose last event no other can follow is known at that event: a walk from there, back in time, lists it. Any
other waits until its window has closed; then a walk from its first event lists it, and all that could contain it has
come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints, Ragged, extended
from acep_approx.automaton.automaton import Automaton
from acep_approx.automaton.lengths import followed
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.engine import NO_WORDS, Engine, Slots, Snapshot, does_not_fit
from acep_approx.engines.maximal.gaps import GapAutomaton
from acep_approx.kernels import maximal as kernel
from acep_approx.ranges import COUNT, Range, check, check_arrays

HELD = "slot", "tick", "cls", "row", "id"
"""What is held of each event."""
ROOM = 1 << 12
"""Bound events that there is room for at first, in what a walk writes."""
LONG_AGO = -(2**62)


@dataclass(frozen=True)
class Held:
    """Events by slot, and in order within: parallel int64 columns."""

    slot: Ints
    tick: Ints
    cls: Ints
    row: Ints
    id: Ints

    @classmethod
    def of(cls, parts: list[Any]) -> Held:
        """The events of several parts, each of which comes after those before it."""
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in HELD]
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))

    @classmethod
    def none(cls) -> Held:
        """No events."""
        return cls(*(np.zeros(0, np.int64) for _ in HELD))

    def take(self, which: Ints | Bools) -> Held:
        """Some of them."""
        return Held(*(getattr(self, name)[which] for name in HELD))

    def __len__(self) -> int:
        return len(self.slot)


@dataclass(frozen=True)
class MaximalMatches(Ragged):
    """Matches as columns: match ``m`` binds the held events ``id[offset[m] : offset[m + 1]]`` by the arcs ``arc``."""

    errors: Ints
    offset: Ints
    id: Ints
    arc: Ints


@dataclass(frozen=True)
class CopyOfKey:
    """A copy of what is held of one key; ``MaximalCells.fork`` makes it, ``MaximalCells.put`` brings it back."""

    cells: Ints
    events: Held
    classes: tuple[int, ...]
    last_followed: int
    done: int


class MaximalCells(Engine):
    """Lists the matches that are in no larger one.

    Parameters
    ----------
    automaton : Automaton
        Without guards at the start or at the end.
    window : int
        In ticks, or in events for a count window.
    is_count : bool
        Whether the window counts events.

    Notes
    -----
    State is that of ``Cells``, and the events of the last two windows on which a letter holds: those with which a
    match can begin that is not known yet, and those with which a larger one can. Per slot, ``done`` is the first tick
    of which the matches that wait have not been listed, ``last_followed`` that of the last match point which can be
    followed.
    """

    def __init__(self, automaton: Automaton, window: int, *, is_count: bool) -> None:
        self.cells = Cells(automaton, window)
        self.automaton, self.window, self.is_count = automaton, window, is_count
        self.forward = GapAutomaton(automaton, is_backward=False)
        self.backward = GapAutomaton(automaton, is_backward=True)
        self.classes: list[int] = []
        self.held = Held.none()
        self.done = np.zeros(0, np.int64)
        self.last_followed = np.zeros(0, np.int64)
        self._ends: Ints = np.zeros(0, np.int64)

    def set_classes(self, classes: list[int]) -> None:
        """Make the tables for event classes (letter masks); what is held stays as it is."""
        self.classes = list(classes)
        self.cells.set_classes(classes)
        self.is_followed = followed(self.automaton, classes)
        every = np.ones(len(classes), np.int64)
        self._tables = (
            self.forward.tables(classes, self.is_followed.astype(np.int64)),
            self.backward.tables(classes, every),
        )
        origins = _moves(self._tables[0], kernel.MOVE_FROM)
        self._begins = np.array([(some == kernel.OUTSIDE).any() for some in origins], np.bool_)

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        self.cells.reserve(slots)
        self.slots = self.cells.slots
        if self.done.size < self.slots:
            self.done = extended(self.done, self.slots, LONG_AGO)
            self.last_followed = extended(self.last_followed, self.slots, LONG_AGO)

    @property
    def keeps_lineage(self) -> bool:
        """Whether matches can be listed: always."""
        return True

    def ids(self) -> Ints:
        """The events that are held."""
        return self.held.id

    # --- matches --------------------------------------------------------------------------------------------

    def add(self, events: Grouped) -> None:
        """Take in a batch, grouped by slot."""
        points = self.cells.detect(events.slot, events.tick, events.cls)[:, 0]
        waits = self.is_followed[events.cls[points]]
        slot = events.slot[points[waits]]
        np.maximum.at(self.last_followed, slot, events.tick[points[waits]])
        self._ends = np.sort(events.row[points[~waits]])
        if len(events.slot):
            self.held = Held.of([self.held, events])

    def at_once(self) -> tuple[Held, MaximalMatches]:
        """The matches of the last batch that nothing can contain which comes later, with the events that they name.

        Complexity: of the walks; see ``kernels.maximal``.
        """
        ends, self._ends = self._ends, np.zeros(0, np.int64)
        if not len(ends):
            return self._nothing()
        is_end = np.isin(self.held.row, ends)
        low = np.full(self.slots, 2**62)
        np.minimum.at(low, self.held.slot[is_end], self.held.tick[is_end] - self.window)
        some = np.flatnonzero(self.held.tick >= low[self.held.slot])
        events, asked = self.held.take(some), is_end[some]
        return events, self._walked(events, asked, is_backward=True)

    def closed(self, limit: Ints | int, *, keeps: bool = True) -> tuple[Held, MaximalMatches]:
        """The matches that waited, and whose window ends before ``limit`` (per slot, or for all).

        ``keeps``: whether it is noted that they were given.
        """
        limits = self._by_slot(limit)
        first, last = self.done, limits - self.window  # starts from ``first`` on and before ``last``
        is_due = (self.last_followed >= first) & (last > first)  # a match that waits may have begun by its last event
        if keeps:
            self.done = np.maximum(first, last)
        if not is_due.any():
            return self._nothing()
        slot, tick = self.held.slot, self.held.tick
        asked = is_due[slot] & (tick >= first[slot]) & (tick < last[slot]) & self._begins[self.held.cls]
        asked &= tick <= self.last_followed[slot]
        if not asked.any():
            return self._nothing()
        low, high = np.full(self.slots, 2**62), np.full(self.slots, LONG_AGO)
        np.minimum.at(low, slot[asked], tick[asked] - self.window)
        np.maximum.at(high, slot[asked], tick[asked] + self.window)
        some = np.flatnonzero((tick >= low[slot]) & (tick <= high[slot]))
        events = self.held.take(some)
        return events, self._walked(events, asked[some], is_backward=False)

    def first_pending(self) -> int | None:
        """The earliest start of a match that may wait; None where none does."""
        pending = self.held.tick[self._pending()]
        return int(pending.min()) if len(pending) else None

    def pending_slots(self) -> Ints:
        """The slots in which matches may wait."""
        return np.unique(self.held.slot[self._pending()])

    def _pending(self) -> Bools:
        """The held events with which matches may begin that wait."""
        slot, tick = self.held.slot, self.held.tick
        is_pending: Bools = (tick >= self.done[slot]) & (tick <= self.last_followed[slot]) & self._begins[self.held.cls]
        return is_pending

    def _by_slot(self, ticks: Ints | int) -> Ints:
        return ticks[: self.slots] if isinstance(ticks, np.ndarray) else np.full(self.slots, ticks)

    def _nothing(self) -> tuple[Held, MaximalMatches]:
        return Held.none(), MaximalMatches.joined([])

    def _walked(self, events: Held, asked: Bools, *, is_backward: bool) -> MaximalMatches:
        """The matches of walks from the events that are ``asked``, each earliest event first."""
        gaps = self._tables[is_backward]
        order = np.arange(len(events))[:: -1 if is_backward else 1]
        breaks = np.append(np.flatnonzero(np.diff(events.slot[order])) + 1, len(order))
        place = np.insert(order, breaks, -1)  # between the events of two keys, and at the end
        tick = np.where(place < 0, kernel.FAR, (-events.tick if is_backward else events.tick)[place])
        cls = np.where(place < 0, 0, events.cls[place])
        last = np.empty(len(tick), np.int64)
        kernel.last_ends(tick, cls, self.window, gaps.lists * _can_end(gaps), last)
        walked = kernel.Walked(tick, cls, ((place >= 0) & asked[place]).astype(np.int64), last)
        far = self._far(tick, cls, gaps, np.ones(len(gaps.lists), np.int64))
        listed = far if gaps.lists.all() else self._far(tick, cls, gaps, gaps.lists)
        found = _walk_all(walked, self.window, gaps, far, listed, begins_count=not is_backward)
        if is_backward:
            offset = found.offset[-1] - found.offset[::-1]
            found = MaximalMatches(found.errors[::-1], offset, found.id[::-1], found.arc[::-1])
        return replace(found, id=place[found.id])

    @staticmethod
    def _far(tick: Ints, cls: Ints, gaps: kernel.Gaps, ends: Ints) -> Ints:
        far = np.empty((len(tick) + 1) * int(gaps.sizes[0] * gaps.sizes[1]), np.int64)
        kernel.reach(tick, cls, gaps, ends, far)
        return far

    # --- copies of keys -------------------------------------------------------------------------------------

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        self.cells.clear(slots)
        self.forget_events(slots)

    def forget_events(self, slots: Ints) -> None:
        """Forget the events of some key slots."""
        gone = np.zeros(self.slots, np.bool_)
        gone[slots] = True
        self.held = self.held.take(~gone[self.held.slot])
        self.done[slots] = self.last_followed[slots] = LONG_AGO

    def newest(self) -> Ints:
        """Per key slot the latest event that is held; below every tick where there is none."""
        newest = np.full(self.slots, LONG_AGO)
        np.maximum.at(newest, self.held.slot, self.held.tick)
        return newest

    def drop_before(self, floors: Ints | int) -> None:
        """Let go of events before ``floors`` (per slot, or for all)."""
        keep = self.held.tick >= self._by_slot(floors)[self.held.slot]
        if not keep.all():
            self.held = self.held.take(keep)

    def live_places(self, floors: Ints) -> Ints:  # noqa: ARG002  (what has left the windows is gone)
        """Places of all events that are held."""
        return self.held.id

    def fork(self, slot: int) -> CopyOfKey:
        """A copy of what is held of a key. Complexity: O(held events)."""
        events = self.held.take(self.held.slot == slot)
        done, last = int(self.done[slot]), int(self.last_followed[slot])
        return CopyOfKey(self.cells.fork(slot), events, tuple(self.classes), last, done)

    def put(self, slot: int, copy: CopyOfKey) -> None:
        """Bring a key back to where it stood when ``copy`` was made, here or in another engine of the same query.

        Raises
        ------
        DataError
            ``ACEP-D047``: the copy does not fit this engine.
        """
        if not isinstance(copy, CopyOfKey) or any(mask not in self.classes for mask in copy.classes):
            raise does_not_fit("events")
        self.cells.put(slot, copy.cells)
        self.forget_events(np.array([slot]))
        number = np.array([self.classes.index(mask) for mask in copy.classes], np.int64)
        events = replace(copy.events, slot=np.full(len(copy.events), slot), cls=number[copy.events.cls])
        self.held = Held.of([self.held, events])
        self.done[slot], self.last_followed[slot] = copy.done, copy.last_followed

    def snapshot(self, slots: Ints | None, floors: Ints) -> MaximalSnapshot:  # noqa: ARG002
        """Where keys stand now."""
        return MaximalSnapshot(self, slots)

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        return self.cells.header()

    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays."""
        held = {f"held_{name}": getattr(self.held, name) for name in HELD}
        slots = {"done": self.done[: self.cells.needed], "last_followed": self.last_followed[: self.cells.needed]}
        return {**self.cells.arrays(floors), **held, **slots}

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state and make the tables for its event classes."""
        own = {*(f"held_{name}" for name in HELD), "done", "last_followed"}
        self.cells.restore(header, {name: array for name, array in arrays.items() if name not in own}, classes)
        self.slots = self.cells.slots
        self.set_classes(classes)
        count, slots = arrays["held_slot"].size, self.slots
        ranges = {f"held_{name}": Range(count) for name in HELD} | {
            "held_slot": Range(count, 0, slots),
            "held_cls": Range(count, 0, len(classes)),
            "held_row": Range(count, 0, COUNT),
            "held_id": Range(count, 0, COUNT),
        }
        ranges |= {"done": Range(slots), "last_followed": Range(slots)}
        check_arrays({name: arrays[name] for name in own}, ranges)
        slot = arrays["held_slot"]
        check("held_slot", good=bool((slot[1:] >= slot[:-1]).all()))
        self.held = Held(*(arrays[f"held_{name}"] for name in HELD))
        self.done, self.last_followed = arrays["done"], arrays["last_followed"]


class MaximalSnapshot(Snapshot):
    """What is held of all keys, or of ``slots``, as it is now."""

    def __init__(self, engine: MaximalCells, slots: Ints | None = None) -> None:
        self._engine = engine
        self._slots = Slots(slots)
        self._cells = engine.cells.snapshot(slots, NO_WORDS)
        self._done, self._last = (
            (array.copy() if slots is None else array[slots]) for array in (engine.done, engine.last_followed)
        )
        self._events = engine.held if slots is None else engine.held.take(np.isin(engine.held.slot, slots))

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return self._cells.words + len(HELD) * len(self._events) + 2 * len(self._done)

    def events_held(self) -> Ints:
        """The events that it holds."""
        return self._events.id

    def bring_back(self, slots: Ints) -> None:
        """Let these keys stand where they stood."""
        engine = self._engine
        self._cells.bring_back(slots)
        engine.forget_events(slots)
        at = self._slots.places(slots)
        known = at < len(self._done)
        engine.done[slots[known]], engine.last_followed[slots[known]] = self._done[at[known]], self._last[at[known]]
        engine.held = Held.of([engine.held, self._events.take(np.isin(self._events.slot, slots))])

    def renew(self, slots: Ints) -> None:
        """Take over where these keys stand now."""
        engine = self._engine
        self._cells.renew(slots)
        if (more := engine.slots - len(self._done)) > 0:
            none = np.full(more, LONG_AGO)
            self._done, self._last = np.concatenate((self._done, none)), np.concatenate((self._last, none))
        self._done[slots], self._last[slots] = engine.done[slots], engine.last_followed[slots]
        rest = self._events.take(~np.isin(self._events.slot, slots))
        self._events = Held.of([rest, engine.held.take(np.isin(engine.held.slot, slots))])


def _moves(gaps: kernel.Gaps, column: int) -> list[Ints]:
    """A column of the moves of each class."""
    values = gaps.moves[column :: kernel.MOVE]
    return [values[a:b] for a, b in pairwise(gaps.first.tolist())]


def _can_end(gaps: kernel.Gaps) -> Ints:
    """Per class whether a walk can end with an event of it."""
    return np.array([(some == kernel.OUTSIDE).any() for some in _moves(gaps, kernel.MOVE_TO)], np.int64)


def _walk_all(
    events: kernel.Walked, window: int, gaps: kernel.Gaps, far: Ints, listed: Ints, *, begins_count: bool
) -> MaximalMatches:
    """The matches of all walks, with their events in the direction of these."""
    size, lanes = int(gaps.sizes[0]), int(gaps.sizes[1])
    walks, room, parts = _walks(64, size, lanes, begins_count=begins_count), ROOM, []
    status = kernel.OUT_FULL
    while status != kernel.DONE:
        found = kernel.Maximal(*(np.zeros(n, np.int64) for n in (2, room, room + 1, room, room)))
        while (status := kernel.walk(events, window, gaps, far, listed, walks, found)) == kernel.DEEPER:
            walks = _deeper(walks)
        matches, bound = found.header.tolist()
        if matches:
            columns = found.errors[:matches], found.offset[: matches + 1], found.event[:bound], found.arc[:bound]
            parts.append(MaximalMatches(*columns))
        room *= 2
    return MaximalMatches.joined(parts)


def _walks(depth: int, size: int, lanes: int, *, begins_count: bool) -> kernel.Walks:
    header = np.zeros(kernel.HEADER, np.int64)
    header[kernel.BEFORE] = begins_count
    by_gap, words = max(size, 1) * depth, size * lanes
    return kernel.Walks(
        header=header,
        before=np.full(2 * words, kernel.NEVER),
        own=np.zeros(by_gap, np.int64),
        more=np.zeros(words * depth, np.int64),
        taken=np.zeros(by_gap, np.int64),
        path=np.zeros(depth, np.int64),
        at=np.zeros(depth, np.int64),
        rest=np.zeros(by_gap, np.int64),
        arc=np.zeros(by_gap, np.int64),
        onward=np.zeros(by_gap, np.int64),
        tried=np.zeros(depth, np.int64),
    )


def _deeper(walks: kernel.Walks) -> kernel.Walks:
    grown = {name: extended(array, 2 * array.size, 0) for name, array in walks._asdict().items()}
    return kernel.Walks(**{**grown, "header": walks.header, "before": walks.before})
