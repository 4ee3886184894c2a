"""What is noted of a batch, so that its events can be run once more: the same runs go, and nothing is counted twice.

Late events, and events that are taken back, make others run again (``revisions``). Were the price another one then,
runs would come and go that the change has nothing to do with.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from acep_approx.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from acep_approx.engines.runs.worth import Worth


class PriceNotes:
    """The price of each event of the batch at hand, what runs were worth then, and which events complete a match.

    Attributes
    ----------
    keeps : bool
        Whether anything is noted: where no event is run once more nobody asks.
    is_begun : bool
        Whether a batch has begun that is run in several: of a budget of time these get one share.
    again : float64 array or None
        Of a batch that is run once more the price of each event; None: events are run for the first time.
    is_new : bool array
        Which events of such a batch have completed no match so far.
    of_batch : float64 array
        Of the last batch that was run for the first time: the price at each event, NaN where no letter holds on it.
    of_piece : float64 array
        Those of the events of a piece that the kernel gets, in its order.
    version : int
        How often runs were scored otherwise by now.
    worths : dict of int to Worth or None
        What they were worth, by version, as long as events are kept that met it.
    versions : int64 array
        Of the last batch that was run for the first time: the version that each event met.
    """

    def __init__(self) -> None:
        self.keeps = self.is_begun = False
        self.version = 0
        self.worths: dict[int, Worth | None] = {}
        self.versions: Ints = np.zeros(0, np.int64)
        self.again: Floats | None = None
        self.is_new: Bools = np.zeros(0, np.bool_)
        self.of_batch: Floats = np.zeros(0)
        self.of_piece: Floats = np.zeros(1)
        self._completed: list[Ints] = []  # row numbers of events that complete a match for the first time
        self._first = 0  # event of the batch at which the piece begins
        self._at: Ints = np.zeros(0, np.int64)

    def keep(self, worth: Worth | None) -> None:
        """From here on note what comes; ``worth``: what runs are worth now."""
        self.keeps = True
        self.worths.setdefault(self.version, worth)

    def rescored(self, worth: Worth | None) -> None:
        """From here on runs are worth something else."""
        if self.keeps:
            self.version += 1
            self.worths[self.version] = worth

    def forget(self, versions: Ints) -> None:
        """No event is kept that met other versions than these, but for the latest."""
        kept = {self.version, *versions.tolist()}
        self.worths = {version: worth for version, worth in self.worths.items() if version in kept}

    def room_for(self, events: int) -> Floats:
        """``of_piece``, for so many events at least."""
        if self.of_piece.size < events:
            self.of_piece = np.zeros(events)
        return self.of_piece

    def begin_batch(self, events: int) -> None:
        """A batch of so many events comes."""
        self._first = 0
        if self.keeps and self.again is None:
            self.of_batch = np.full(events, math.nan)
            self.versions = np.full(events, self.version)

    def begin_piece(self, events: int, places: Ints) -> None:
        """A piece of so many events comes, of which the kernel gets those at ``places``, in this order."""
        self._at = self._first + places
        self._first += events
        if self.again is not None:
            self.of_piece = self.again[self._at]

    def first_completed(self, events: Ints, rows: Ints) -> Bools:
        """Which of some events of a piece, as the kernel has numbered them, complete a match for the first time."""
        is_new = np.ones(len(events), np.bool_) if self.again is None else self.is_new[self._at[events]]
        if self.keeps:
            self._completed.append(rows[events[is_new]])
        return is_new

    def take_completed(self) -> Ints:
        """The row numbers of events that have completed a match for the first time since the last call, ascending."""
        taken, self._completed = self._completed, []
        return np.unique(np.concatenate([np.zeros(0, np.int64), *taken]))

    def end_piece(self) -> None:
        """The piece is done."""
        if self.keeps and self.again is None:
            self.of_batch[self._at] = self.room_for(len(self._at))[: len(self._at)]
            self.versions[self._at] = self.version
