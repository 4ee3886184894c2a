"""At which price the events of the tail of a stream were run, by their places: a replay sheds the same runs."""

from __future__ import annotations

import numpy as np

from acep_approx.archive import Scope
from acep_approx.arrays import Floats, Ints
from acep_approx.ranges import check, finite


class PriceLog:
    """The prices of a load budget along a stream.

    An event that comes late meets the price of the event before it.

    Examples
    --------
    >>> log = PriceLog()
    >>> log.note(np.array([0, 256, 512]), np.array([1.0, np.nan, 3.0]))
    >>> log.at(np.array([0, 100, 256, 512, 600]), 0.5).tolist()
    [1.0, 1.0, 1.0, 3.0, 3.0]
    """

    def __init__(self) -> None:
        self._places: list[Ints] = [np.zeros(0, np.int64)]
        self._prices: list[Floats] = [np.zeros(0)]

    def note(self, places: Ints, prices: Floats) -> None:
        """Take in the prices at events behind all others; NaN: nothing was tested there."""
        known = ~np.isnan(prices)
        self._places.append(places[known])
        self._prices.append(prices[known])

    def _joined(self) -> tuple[Ints, Floats]:
        if len(self._places) > 1:
            self._places, self._prices = [np.concatenate(self._places)], [np.concatenate(self._prices)]
        return self._places[0], self._prices[0]

    def at(self, places: Ints, otherwise: float) -> Floats:
        """The price at each of some places; before the first that is known that one, without any ``otherwise``."""
        known, prices = self._joined()
        if not len(known):
            return np.full(len(places), otherwise)
        found: Floats = prices[np.maximum(np.searchsorted(known, places, side="right") - 1, 0)]
        return found

    def move(self, before: Ints, after: Ints) -> None:
        """Events have got other places, behind all others; both ascend."""
        if not len(before):
            return
        known, prices = self._joined()
        moved = self.at(before, np.nan)
        others = (known < before[0]) | (known > before[-1])
        self._places, self._prices = [known[others]], [prices[others]]
        self.note(after, moved)

    def forget(self, place: int) -> None:
        """No event before ``place`` will be asked for; the last price before it is that of late ones."""
        known, prices = self._joined()
        first = max(int(np.searchsorted(known, place)) - 1, 0)
        self._places, self._prices = [known[first:]], [prices[first:]]

    def save(self, scope: Scope) -> None:
        """Keep it."""
        known, prices = self._joined()
        scope.arrays |= {"price_at": known, "price": prices.view(np.int64)}

    def load(self, scope: Scope) -> None:
        """Take over what ``save`` saved."""
        known, prices = scope.array("price_at"), scope.array("price").view(np.float64)
        check("price", good=len(known) == len(prices) and bool((known[1:] > known[:-1]).all()))
        finite("price", *prices.tolist())
        self._places, self._prices = [known], [prices.copy()]
