"""At which price the events of the tail of a stream were run, by their places, by which worth, and what they took.

A replay of them sheds the same runs, and is known beforehand to cost about as much.
"""

from __future__ import annotations

import numpy as np

from acep_approx.archive import Scope
from acep_approx.arrays import Floats, Ints
from acep_approx.ranges import check

COLUMNS = ("price_at", "price", "steps", "version")
"""Names of its arrays in a state."""


class PriceLog:
    """The prices of a load budget along a stream, how often runs had been scored otherwise by then, and the run-steps.

    An event that comes late meets the price of the event before it.

    Examples
    --------
    >>> log = PriceLog()
    >>> log.note(np.array([0, 256, 512]), np.array([1.0, np.nan, 3.0]), np.array([0, 0, 1]), 40.0)
    >>> log.prices(np.array([0, 100, 256, 512, 600]), 0.5).tolist()
    [1.0, 1.0, 1.0, 3.0, 3.0]
    >>> log.steps(np.array([0, 512])).tolist()
    [20.0, 20.0]
    >>> log.versions(np.array([300, 600])).tolist()
    [0, 1]
    """

    def __init__(self) -> None:
        none, whole = np.zeros(0), np.zeros(0, np.int64)
        self._parts: list[tuple[Ints, Floats, Floats, Ints]] = [(whole, none, none, whole)]

    def note(self, places: Ints, prices: Floats, versions: Ints, steps: float) -> None:
        """Take in events behind all others.

        Parameters
        ----------
        places : int64 array
        prices : float64 array
            NaN where nothing was tested.
        versions : int64 array
            How often runs had been scored otherwise.
        steps : float
            What all of them took.
        """
        known = np.flatnonzero(~np.isnan(prices))
        each = np.full(len(known), steps / max(len(known), 1))
        self._parts.append((places[known], prices[known], each, versions[known]))

    def _joined(self) -> tuple[Ints, Floats, Floats, Ints]:
        if len(self._parts) > 1:
            places, prices, steps, versions = (np.concatenate(column) for column in zip(*self._parts, strict=True))
            self._parts = [(places, prices, steps, versions)]
        return self._parts[0]

    def _at(self, places: Ints) -> Ints:
        return np.maximum(np.searchsorted(self._joined()[0], places, side="right") - 1, 0)

    def prices(self, places: Ints, otherwise: float) -> Floats:
        """The price at each of some places; before the first that is known that one, without any ``otherwise``."""
        prices = self._joined()[1]
        return prices[self._at(places)] if len(prices) else np.full(len(places), otherwise)

    def steps(self, places: Ints) -> Floats:
        """About how many run-steps the event at each of some places took, or would take."""
        steps = self._joined()[2]
        return steps[self._at(places)] if len(steps) else np.zeros(len(places))

    def versions(self, places: Ints, otherwise: int = 0) -> Ints:
        """How often runs had been scored otherwise by each of some places; without any ``otherwise``."""
        versions = self._joined()[3]
        return versions[self._at(places)] if len(versions) else np.full(len(places), otherwise)

    @property
    def versions_met(self) -> Ints:
        """Those that any event has met."""
        met: Ints = np.unique(self._joined()[3])
        return met

    def move(self, before: Ints, after: Ints) -> None:
        """Events have got other places, behind all others; both ascend."""
        if not len(before):
            return
        moved = after, self.prices(before, np.nan), self.steps(before), self.versions(before)
        known = self._joined()[0]
        others = (known < before[0]) | (known > before[-1])
        rest = self._cut(np.flatnonzero(others))
        self._parts = [rest, moved] if len(known) else [rest]

    def _cut(self, which: Ints | slice) -> tuple[Ints, Floats, Floats, Ints]:
        places, prices, steps, versions = self._joined()
        return places[which], prices[which], steps[which], versions[which]

    def forget(self, place: int) -> None:
        """No event before ``place`` will be asked for; the last price before it is that of late ones."""
        first = int(np.searchsorted(self._joined()[0], place)) - 1
        if first > 0:
            self._parts = [self._cut(slice(first, None))]

    def save(self, scope: Scope) -> None:
        """Keep it."""
        places, prices, steps, versions = self._joined()
        words = (places, prices.view(np.int64), steps.view(np.int64), versions)
        scope.arrays |= dict(zip(COLUMNS, words, strict=True))

    def load(self, scope: Scope) -> None:
        """Take over what ``save`` saved."""
        places, *others = (scope.array(name) for name in COLUMNS[:3])
        prices, steps = (words.view(np.float64).copy() for words in others)
        is_of_before = COLUMNS[3] not in scope.arrays  # states of before have none
        versions = np.zeros(len(places), np.int64) if is_of_before else scope.array(COLUMNS[3])
        check("price", good=len(places) == len(prices) == len(steps) == len(versions))
        check("price", good=bool((places[1:] > places[:-1]).all()))
        check("price", good=bool(np.isfinite(prices).all() and np.isfinite(steps).all()))
        self._parts = [(places, prices, steps, versions)]
