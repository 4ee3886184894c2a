"""Snapshots of the runs engine: see ``engines.snapshots``."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.snapshots import Slots
from acep_approx.kernels.runs import layout
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs import pools as kp


class RunsSnapshot:
    """The runs of all keys, or of ``slots``, as they are now, with their guards and their pace.

    Its links are those of the engine, which gives them new numbers here, too. They stay as long as the floors that the
    engine is given keep them.
    """

    def __init__(self, engine: Runs, slots: Ints | None = None) -> None:
        engine.put_away()
        self._engine = engine
        self._slots = Slots(slots)
        self.store = engine.store.copied(int(engine.control[layout.STORED]), slots)
        self._control = np.zeros(layout.HEADER, np.int64)
        self._control[layout.SLOT], self._control[layout.STORED] = -1, self.store.stored.size
        engine.keep(self)

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return int(self._control[layout.STORED]) + self.store.spans.size + self.store.guards.size

    def bring_back(self, slots: Ints) -> None:
        """Let these keys of the engine stand where they stood; keys that had not come then hold nothing."""
        engine, at = self._engine, self._slots.places(slots)
        engine.put_away()
        self._reserve(int(at.max(initial=-1)) + 1)
        before = engine.runs_saved(slots)
        engine.store.take(slots, self.store, at, engine.control)
        engine.control[layout.LIVE] += engine.runs_saved(slots) - before

    def renew(self, slots: Ints) -> None:
        """Take over where these keys of the engine stand now."""
        self._engine.put_away()
        self._reserve(self._engine.store.needed)
        self.store.take(slots, self._engine.store, slots, self._control)

    def renumber(self, number: Ints, pools: Ints) -> None:
        """Links have got new numbers; ``pools``: the words of all pools of the engine."""
        none = np.zeros(0, np.int64)
        empty = pools.copy()
        empty.reshape(-1, kp.POOL)[:, kp.RUNS] = 0
        kernel_lineage.renumber(number, empty, none, self.store.spans, self.store.stored, none)

    def _reserve(self, slots: int) -> None:
        """Make room for keys that came later."""
        if slots > self.store.slots:
            self.store.reserve(slots)
