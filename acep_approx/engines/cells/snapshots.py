"""Snapshots of the engines of the cells: see ``engines.snapshots``."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints, places
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.snapshots import Slots
from acep_approx.kernels.cells.detect import NEVER
from acep_approx.kernels.cells.layout import ENTRY_PLACE


class CellsSnapshot:
    """The cells of all keys, or of ``slots``, as they are now."""

    def __init__(self, engine: Cells, slots: Ints | None = None) -> None:
        self._engine = engine
        self._slots = Slots(slots)
        table = engine.cells.reshape(engine.slots, engine.stride)
        self._cells = table[: engine.needed].copy() if slots is None else table[slots]

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return self._cells.size

    def bring_back(self, slots: Ints) -> None:
        """Let these keys of the engine stand where they stood; keys that had not come then hold nothing."""
        table, at = self._engine.cells.reshape(self._engine.slots, -1), self._slots.places(slots)
        known = at < len(self._cells)
        table[slots[known]] = self._cells[at[known]]
        table[slots[~known]] = NEVER

    def renew(self, slots: Ints) -> None:
        """Take over where these keys of the engine stand now."""
        more = self._engine.needed - len(self._cells)
        if more > 0:
            self._cells = np.concatenate((self._cells, np.full((more, self._engine.stride), NEVER)))
        self._cells[slots] = self._engine.cells.reshape(self._engine.slots, -1)[slots]


class LogsSnapshot:
    """The arc logs of all keys, or of ``slots``, as they are now.

    Parameters
    ----------
    engine : ArcLogs
    slots : int64 array, optional
    floors : int64 array, shape (slots of the engine,) or (1,)
        Entries that start before are left out: no match will ask for them.
    """

    def __init__(self, engine: ArcLogs, slots: Ints | None, floors: Ints) -> None:
        self._engine = engine
        self._slots = Slots(slots)
        which = np.arange(engine.needed) if slots is None else slots
        self._latest, self._lengths, entries = engine.logs_of(which, floors)
        self._begin = (np.cumsum(self._lengths.ravel()) - self._lengths.ravel()).reshape(self._lengths.shape)
        self._entries = entries
        self._floors = floors

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return self._entries.size + self._latest.size + self._lengths.size

    def bring_back(self, slots: Ints) -> None:
        """Let these keys of the engine stand where they stood; keys that had not come then hold nothing."""
        at = self._slots.places(slots)
        known = at < len(self._latest)
        self._engine.clear(slots)
        at, slots = at[known], slots[known]
        lengths = self._lengths[at]
        entries = self._entries[places(self._begin[at].ravel(), lengths.ravel())]
        self._engine.put_logs(slots, self._latest[at], lengths, entries)

    def renew(self, slots: Ints) -> None:
        """Take over where these keys of the engine stand now."""
        latest, lengths, entries = self._engine.logs_of(slots, self._floors)
        shape = max(self._engine.needed, len(self._latest)), latest.shape[1]
        self._latest = _wider(self._latest, shape, NEVER)
        shape = shape[0], lengths.shape[1]
        self._lengths, self._begin = _wider(self._lengths, shape, 0), _wider(self._begin, shape, 0)
        if len(self._entries) > 2 * int(self._lengths.sum()) + 1024:  # most of them are of keys that were renewed
            self._entries = self._entries[places(self._begin.ravel(), self._lengths.ravel())]
            self._begin = (np.cumsum(self._lengths.ravel()) - self._lengths.ravel()).reshape(shape)
        self._latest[slots], self._lengths[slots] = latest, lengths
        self._begin[slots] = len(self._entries) + (np.cumsum(lengths.ravel()) - lengths.ravel()).reshape(lengths.shape)
        self._entries = np.concatenate((self._entries, entries))

    def places_held(self) -> Ints:
        """The places of all events that its entries name."""
        return self._entries[:, ENTRY_PLACE]


def _wider(table: Ints, shape: tuple[int, int], fill: int) -> Ints:
    if table.shape == shape:
        return table
    wider = np.full(shape, fill, np.int64)
    wider[: table.shape[0], : table.shape[1]] = table
    return wider
