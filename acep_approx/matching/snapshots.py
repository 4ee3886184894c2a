"""Where a query stands with its keys at one moment: its engine, and what is kept beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.engines.engine import Slots, Snapshot
from acep_approx.matching.outputs.guard_log import LOGGED, GuardLog
from acep_approx.matching.outputs.known import KnownMatches
from acep_approx.matching.outputs.matches import CompletedMatches
from acep_approx.matching.outputs.selection import MARKED, MarkedEvents
from acep_approx.matching.outputs.selection import NEVER as NOT_LISTED
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.tick_places import NEVER, TickPlaces


class QuerySnapshot:
    """The state of all keys of a query, or of some, as it is now.

    Parameters
    ----------
    pipeline : Pipeline
    floors : int64 array, shape (slots,) or (1,)
        Starts from which on a match may still be asked for; see ``Pipeline.floors_after``.
    slots : int64 array, optional
        Ascending. Default: all keys.

    Complexity: O(state of these keys).
    """

    def __init__(self, pipeline: Pipeline, floors: Ints, slots: Ints | None = None) -> None:
        self._parts: list[Snapshot] = [pipeline.engine.snapshot(slots, floors)]
        output = pipeline.results
        self._counters = _ByKey(pipeline.preparer, "counters", 0, slots)
        self._parts.append(self._counters)
        if output.finder is not None:
            finder = output.finder
            self._parts.append(_Waiting(finder, "waiting", slots))
            if finder.log.letters:
                self._parts.append(_Log(finder.log, LOGGED, slots))
            if not finder.selection.is_all:
                before = finder.before
                self._parts += [_ByKey(before, name, NOT_LISTED, slots) for name in ("next_row", "last_time")]
                self._parts += [_Log(events, MARKED, slots) for events in (before.begins, before.used)]
                self._parts.append(_Waiting(finder, "held", slots))
        if output.tick_places is not None:
            self._parts += [_ByTick(output.tick_places, "number", -1, slots)]
            self._parts += [_ByTick(output.tick_places, "tick", NEVER, slots)]

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return sum(part.words for part in self._parts)

    @property
    def counters(self) -> Ints:
        """Per slot how many events had come, where they are counted."""
        return self._counters.values

    def events_held(self) -> Ints:
        """Events that it names itself, in windows of events; those of runs are named by the links of the engine."""
        return np.concatenate([part.events_held() for part in self._parts])

    def bring_back(self, slots: Ints) -> None:
        """Let these keys stand where they stood; keys that had not come then hold nothing."""
        for part in self._parts:
            part.bring_back(slots)

    def renew(self, slots: Ints) -> None:
        """Take over where these keys stand now."""
        for part in self._parts:
            part.renew(slots)


class _ByKey(Snapshot):
    """An array with one item for each slot."""

    def __init__(self, owner: Any, name: str, fill: int, slots: Ints | None) -> None:
        self._owner, self._name, self._fill = owner, name, fill
        self._slots = Slots(slots)
        now = getattr(owner, name)
        self.values: Ints = now.copy() if slots is None else _at(now, slots, fill)

    @property
    def words(self) -> int:
        return self.values.size

    def bring_back(self, slots: Ints) -> None:
        here = self._with_room(getattr(self._owner, self._name), slots)
        here[slots] = _at(self.values, self._slots.places(slots), self._fill)
        setattr(self._owner, self._name, here)

    def renew(self, slots: Ints) -> None:
        self.values = self._with_room(self.values, slots)
        self.values[slots] = _at(getattr(self._owner, self._name), slots, self._fill)

    def _with_room(self, values: Ints, slots: Ints) -> Ints:
        needed = int(slots.max(initial=-1)) + 1
        return values if needed <= values.size else extended(values, 2 * needed, self._fill)


class _ByTick(_ByKey):
    """An array of ``TickPlaces``: by slot, or one item for the whole stream."""

    def __init__(self, owner: TickPlaces, name: str, fill: int, slots: Ints | None) -> None:
        self._is_one = not owner.by_partition
        super().__init__(owner, name, fill, np.zeros(1, np.int64) if self._is_one else slots)

    def bring_back(self, slots: Ints) -> None:
        super().bring_back(np.zeros(1, np.int64) if self._is_one else slots)

    def renew(self, slots: Ints) -> None:
        super().renew(np.zeros(1, np.int64) if self._is_one else slots)


class _Waiting(Snapshot):
    """Matches that wait: an attribute of the finder."""

    def __init__(self, finder: KnownMatches, name: str, slots: Ints | None) -> None:
        self._finder, self._name = finder, name
        self.rows = self._now()
        if slots is not None:
            self.rows = self.rows.take(np.flatnonzero(_of(self.rows.slot, slots)))

    def _now(self) -> CompletedMatches:
        found: CompletedMatches = getattr(self._finder, self._name)
        return found

    @property
    def words(self) -> int:
        return 6 * len(self.rows) + 2 * self.rows.id.size

    def events_held(self) -> Ints:
        return self.rows.id

    def bring_back(self, slots: Ints) -> None:
        setattr(self._finder, self._name, self._mixed(self._now(), self.rows, slots))

    def renew(self, slots: Ints) -> None:
        self.rows = self._mixed(self.rows, self._now(), slots)

    @staticmethod
    def _mixed(to: CompletedMatches, source: CompletedMatches, slots: Ints) -> CompletedMatches:
        """``to``, but of some slots the rows of ``source``."""
        if not len(to) and not len(source):
            return to
        others, these = ~_of(to.slot, slots), _of(source.slot, slots)
        return CompletedMatches.joined([to.take(np.flatnonzero(others)), source.take(np.flatnonzero(these))])


class _Log(Snapshot):
    """Events by slot and row: those that negations at the borders of a pattern look for, or those of listed matches."""

    def __init__(self, log: GuardLog | MarkedEvents, names: tuple[str, ...], slots: Ints | None) -> None:
        self._log, self._names = log, names
        self.rows = self._now()
        if slots is not None:
            mine = _of(self.rows["slot"], slots)
            self.rows = {name: column[mine] for name, column in self.rows.items()}

    def _now(self) -> dict[str, Ints]:
        return {name: getattr(self._log, name) for name in self._names}

    @property
    def words(self) -> int:
        return len(self._names) * len(self.rows["slot"])

    def events_held(self) -> Ints:
        return self.rows["row"]

    def bring_back(self, slots: Ints) -> None:
        for name, column in self._mixed(self._now(), self.rows, slots).items():
            setattr(self._log, name, column)

    def renew(self, slots: Ints) -> None:
        self.rows = self._mixed(self.rows, self._now(), slots)

    @staticmethod
    def _mixed(to: dict[str, Ints], source: dict[str, Ints], slots: Ints) -> dict[str, Ints]:
        """``to``, but of some slots the rows of ``source``; sorted by slot, then by row."""
        others, these = ~_of(to["slot"], slots), _of(source["slot"], slots)
        mixed = {name: np.concatenate((to[name][others], source[name][these])) for name in to}
        order = np.lexsort((mixed["row"], mixed["slot"]))
        return {name: column[order] for name, column in mixed.items()}


def _of(slot: Ints, slots: Ints) -> Bools:
    """Which of the slots ``slot`` are among ``slots``."""
    if not len(slot) or not len(slots):
        return np.zeros(len(slot), np.bool_)
    mark = np.zeros(max(int(slot.max()), int(slots.max())) + 1, np.bool_)
    mark[slots] = True
    return mark[slot]


def _at(values: Ints, places: Ints, fill: int) -> Ints:
    """Items of an array; ``fill`` behind its end."""
    if not values.size:
        return np.full(len(places), fill)
    return np.where(places < values.size, values[np.minimum(places, values.size - 1)], fill)
