"""Detect now, list later: arc logs see the events of a key when the key completes a match, and not before."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells


class HeldEvents:
    """Events of the window that arc logs have not seen, of all keys that have completed nothing since.

    Parameters
    ----------
    cells : Cells
        Detects.
    logs : ArcLogs
        Lists, for the same automaton and window.
    """

    def __init__(self, cells: Cells, logs: ArcLogs) -> None:
        self._cells = cells
        self._logs = logs
        self._held = Grouped.none()

    def due(self, events: Grouped, floors: Ints) -> Grouped:
        """Detect over a batch; gives the events to be listed, in their order: all that is held of keys with points.

        Parameters
        ----------
        events : Grouped
        floors : int64, shape (slots,) or (1,)
            Earliest ticks that a match of this batch may bind.
        """
        if len(self._cells.classes) < len(self._logs.determinised.classes):
            self._cells.set_classes(self._logs.determinised.classes)
        self._cells.reserve(self._logs.needed)
        points = self._cells.detect(events.slot, events.tick, events.cls)
        slots = np.zeros(self._logs.slots, np.bool_)
        slots[events.slot[points[:, 0]]] = True
        waiting = _taken(self._held, self._held.tick >= np.broadcast_to(floors, self._logs.slots)[self._held.slot])
        whole = Grouped(*(np.concatenate((getattr(waiting, f.name), getattr(events, f.name))) for f in fields(Grouped)))
        self._held = _taken(whole, ~slots[whole.slot])
        due = _taken(whole, slots[whole.slot])
        order = np.argsort(due.slot, kind="stable")
        return _taken(due, order)


def _taken(events: Grouped, which: Ints | Bools) -> Grouped:
    return Grouped(*(getattr(events, f.name)[which] for f in fields(Grouped)))
