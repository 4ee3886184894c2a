"""Cells, and the events that walks go through: what is held of them, copied, saved and brought back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.automaton.automaton import Automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.engine import NO_WORDS, Engine, Slots, Snapshot, does_not_fit
from acep_approx.kernels.maximal import FAR, Gaps, reach
from acep_approx.ranges import COUNT, Range, check, check_arrays

HELD = "slot", "tick", "cls", "row", "id"
"""What is held of each event."""
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
class Ways:
    """Events in the direction of walks, with ticks that grow in it.

    Between the events of two keys, and behind the last, stands one of class 0 at ``FAR``. ``place``: where an event
    stands among those held, -1 for these.
    """

    place: Ints
    tick: Ints
    cls: Ints

    @classmethod
    def through(cls, events: Held, *, is_backward: bool) -> Ways:
        """The ways through events that are held, in one direction of time."""
        order = np.arange(len(events))[:: -1 if is_backward else 1]
        breaks = np.append(np.flatnonzero(np.diff(events.slot[order])) + 1, len(order))
        place = np.insert(order, breaks, -1)
        tick = np.where(place < 0, FAR, (-events.tick if is_backward else events.tick)[place])
        return cls(place, tick, np.where(place < 0, 0, events.cls[place]))


def far_ends(tick: Ints, cls: Ints, gaps: Gaps, ends: Ints) -> Ints:
    """From where runs can be complete, and how soon: see ``kernels.maximal.reach``."""
    far = np.empty((len(tick) + 1) * int(gaps.sizes[0] * gaps.sizes[1]), np.int64)
    reach(tick, cls, gaps, ends, far)
    return far


@dataclass(frozen=True)
class CopyOfKey:
    """A copy of what is held of one key; ``HoldingCells.fork`` makes it, ``HoldingCells.put`` brings it back."""

    cells: Ints
    events: Held
    classes: tuple[int, ...]
    marks: tuple[int, ...]


class HoldingCells(Engine):
    """Detects as the cells do, and holds the events of windows; the base of engines that walk through these.

    Parameters
    ----------
    automaton : Automaton
        Without guards at the start or at the end.
    window : int
        In ticks, or in events for a count window.
    """

    MARKS: tuple[str, ...] = ()
    """Names of arrays that have a tick for each key slot, ``LONG_AGO`` at first."""

    def __init__(self, automaton: Automaton, window: int) -> None:
        self.cells = Cells(automaton, window)
        self.automaton, self.window = automaton, window
        self.classes: list[int] = []
        self.held = Held.none()
        for name in self.MARKS:
            setattr(self, name, np.zeros(0, np.int64))

    def set_classes(self, classes: list[int]) -> None:
        """Make the tables for event classes (letter masks); what is held stays as it is."""
        self.classes = list(classes)
        self.cells.set_classes(classes)

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        self.cells.reserve(slots)
        self.slots = self.cells.slots
        for name, marks in self._marks().items():
            if marks.size < self.slots:
                setattr(self, name, extended(marks, self.slots, LONG_AGO))

    def _marks(self) -> dict[str, Ints]:
        return {name: getattr(self, name) for name in self.MARKS}

    def _by_slot(self, ticks: Ints | int) -> Ints:
        if not isinstance(ticks, np.ndarray):
            return np.full(self.slots, ticks)
        return extended(ticks, max(self.slots, ticks.size), LONG_AGO)[: self.slots]  # of slots without events

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        self.cells.clear(slots)
        self.forget_events(slots)

    def forget_events(self, slots: Ints) -> None:
        """Forget the events of some key slots."""
        gone = np.zeros(self.slots, np.bool_)
        gone[slots] = True
        self.held = self.held.take(~gone[self.held.slot])
        for marks in self._marks().values():
            marks[slots] = LONG_AGO

    def hold(self, events: Grouped) -> None:
        """Hold the events of a batch, grouped by slot."""
        if len(events.slot):
            self.held = Held.of([self.held, events])

    def drop_before(self, floors: Ints | int) -> None:
        """Let go of events before ``floors`` (per slot, or for all)."""
        keep = self.held.tick >= self._by_slot(floors)[self.held.slot]
        if not keep.all():
            self.held = self.held.take(keep)

    def live_places(self, floors: Ints) -> Ints:  # noqa: ARG002  (what has left the windows is gone)
        """Places of all events that are held."""
        return self.held.id

    # --- copies of keys -------------------------------------------------------------------------------------

    def fork(self, slot: int) -> CopyOfKey:
        """A copy of what is held of a key. Complexity: O(held events)."""
        events = self.held.take(self.held.slot == slot)
        marks = tuple(int(marks[slot]) for marks in self._marks().values())
        return CopyOfKey(self.cells.fork(slot), events, tuple(self.classes), marks)

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
        for marks, mark in zip(self._marks().values(), copy.marks, strict=True):
            marks[slot] = mark

    def snapshot(self, slots: Ints | None, floors: Ints) -> HeldSnapshot:  # noqa: ARG002
        """Where keys stand now."""
        return HeldSnapshot(self, slots)

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        return self.cells.header()

    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays."""
        held = {f"held_{name}": getattr(self.held, name) for name in HELD}
        marks = {name: marks[: self.cells.needed] for name, marks in self._marks().items()}
        return {**self.cells.arrays(floors), **held, **marks}

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state and make the tables for its event classes."""
        own = {*(f"held_{name}" for name in HELD), *self.MARKS}
        self.cells.restore(header, {name: array for name, array in arrays.items() if name not in own}, classes)
        self.slots = self.cells.slots
        count, slots = arrays["held_slot"].size, self.slots
        ranges = {f"held_{name}": Range(count) for name in HELD} | {
            "held_slot": Range(count, 0, slots),
            "held_cls": Range(count, 0, len(classes)),
            "held_row": Range(count, 0, COUNT),
            "held_id": Range(count, 0, COUNT),
        }
        ranges |= dict.fromkeys(self.MARKS, Range(slots))
        check_arrays({name: arrays[name] for name in own}, ranges)
        slot = arrays["held_slot"]
        check("held_slot", good=bool((slot[1:] >= slot[:-1]).all()))
        self.held = Held(*(arrays[f"held_{name}"] for name in HELD))
        for name in self.MARKS:
            setattr(self, name, arrays[name])
        self.set_classes(classes)


class HeldSnapshot(Snapshot):
    """What is held of all keys, or of ``slots``, as it is now."""

    def __init__(self, engine: HoldingCells, slots: Ints | None = None) -> None:
        self._engine = engine
        self._slots = Slots(slots)
        self._cells = engine.cells.snapshot(slots, NO_WORDS)
        now = {name: getattr(engine, name) for name in engine.MARKS}
        self._marks = {name: marks.copy() if slots is None else marks[slots] for name, marks in now.items()}
        self._size = engine.slots if slots is None else len(slots)
        self._events = engine.held if slots is None else engine.held.take(np.isin(engine.held.slot, slots))

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return self._cells.words + len(HELD) * len(self._events) + len(self._marks) * self._size

    def events_held(self) -> Ints:
        """The events that it holds."""
        return self._events.id

    def bring_back(self, slots: Ints) -> None:
        """Let these keys stand where they stood."""
        engine = self._engine
        self._cells.bring_back(slots)
        engine.forget_events(slots)
        at = self._slots.places(slots)
        known = at < self._size
        for name, marks in self._marks.items():
            getattr(engine, name)[slots[known]] = marks[at[known]]
        engine.held = Held.of([engine.held, self._events.take(np.isin(self._events.slot, slots))])

    def renew(self, slots: Ints) -> None:
        """Take over where these keys stand now."""
        engine = self._engine
        self._cells.renew(slots)
        self._size = max(self._size, engine.slots)
        for name, marks in self._marks.items():
            known = extended(marks, self._size, LONG_AGO) if len(marks) < self._size else marks
            known[slots] = getattr(engine, name)[slots]
            self._marks[name] = known
        rest = self._events.take(~np.isin(self._events.slot, slots))
        self._events = Held.of([rest, engine.held.take(np.isin(engine.held.slot, slots))])
