"""Without a budget: match points, or matches, by following runs, or by searching backwards, whichever takes less now.

Both give the same. Runs are followed at first. Where an event is tested with many, the events of a window are kept, and
then both are done for a while: if searching takes less, it goes on alone, else it is given up, and tried again later.

Source: ours. To go by what both cost on the same events, and not by a model, is what eddies do (Avnur and Hellerstein,
SIGMOD 2000).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.automaton.paths import Path
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.search.end_search import EndSearch
from acep_approx.engines.search.searches import WITHOUT_LIMIT, Order, Searches, fit, ranked_orders
from acep_approx.kernels.runs import layout
from acep_approx.kernels.search import end_search as kernel
from acep_approx.ranges import check, finite, number_in

LEAST_STEPS = 24.0
"""With fewer run-steps per event nothing else is tried, as a try costs as much; nor with fewer than it would take to
keep an event twice."""
TRIED_EVENTS = 1024
"""Events on which both are done; and as many are run at once as long as it may change over."""
MOST_AT_ONCE = 1 << 14
"""Most events that are run at once. Their number doubles each time it turns out that nothing else is worth a try."""
TEST_PRICE, CHAIN_PRICE = 4.0, 2.0
"""What a test of a search costs, and to put an event into a chain by its values, in run-steps of pools that are large
(measured: docs/how-it-works/look-back.md)."""
MATCH_PRICE = 16.0
"""Tests that a match counts for which a search writes down: runs share what their matches have in common."""
MOST_ORDERS = 3
"""Orders that are tried, one after the other."""
FIRST_REST, MOST_REST = 4, 1 << 10
"""Windows after which it is tried again; each time it was given up, four times as many."""
FOLLOWS, GETS_READY, TRIES, SEARCHES, LEAVES = range(5)
FAR = 2**62


class ExactSearch(EndSearch):
    """Follows runs, or searches; takes what ``Runs`` does, and the paths of the query.

    Parameters
    ----------
    paths : tuple of Path
    wanted : int
        Of the matches of an end the one with the latest start, or all; see ``Searches``.
    *args, **options
        As for ``Runs``.
    """

    def __init__(self, paths: tuple[Path, ...], wanted: int, *args: Any, **options: Any) -> None:
        self.doing, self._until, self._rest = FOLLOWS, 0, FIRST_REST
        self._seen = np.zeros(3)  # events, run-steps, tests since it was looked last
        self._at_once = TRIED_EVENTS
        self._is_cut = False  # whether ends were left out in a try
        self._usual = 0.0  # run-steps per event where searching began
        self._to_try: list[tuple[Order, ...]] = []
        first = tuple(tuple(range(len(path) - 1)) for path in paths)
        super().__init__(Searches(paths, first, wanted), *args, **options)

    @property
    def most_events(self) -> int:
        """Events that may be run before it is looked again."""
        return TRIED_EVENTS if self.doing in (GETS_READY, TRIES) else self._at_once

    @property
    def _ways(self) -> tuple[bool, bool]:
        return self.doing in (SEARCHES, LEAVES), self.doing in (GETS_READY, TRIES, LEAVES)

    def advance(self, events: RunEvents, floors: Ints, deadline: float | None = None) -> bool:
        """Run a batch in the way that is taken now, and look whether to take another one; see ``Runs.advance``."""
        before, self.tries = int(self.control[layout.DONE_STEPS]), self.doing == TRIES
        self.most_tests = WITHOUT_LIMIT
        if self.tries:  # a search may take any number of them
            self.most_tests = int(max(self._usual, LEAST_STEPS) * len(events.row))
        is_done = super().advance(events, floors, deadline)
        if is_done and len(events.row):
            done = int(self.control[layout.DONE_STEPS]) - before
            tests, self._is_cut = self.tests, self.tries and bool(self._search[kernel.LEFT] <= 0)
            written = self.found if self.searches.wanted == kernel.ALL else 0
            self._seen += len(events.row), done - tests, tests + MATCH_PRICE * written
            self._look(int(events.tick.max()))
        return is_done

    def _look(self, tick: int) -> None:
        events, steps, tests = self._seen.tolist()
        is_worth_it = steps >= max(LEAST_STEPS * events, 2 * self._price(events, 0))
        if not is_worth_it or self.doing == SEARCHES:
            self._at_once = min(2 * self._at_once, MOST_AT_ONCE)
        if self.doing == FOLLOWS and events >= TRIED_EVENTS and tick > self._until:
            if is_worth_it:
                self._usual = steps / events
                self._do(GETS_READY, tick + self.window)
            self._seen[:] = 0
        elif self.doing == GETS_READY and tick > self._until:
            self._to_try = self._promising()
            self._try_next(tick)
        elif self.doing == TRIES and (events >= TRIED_EVENTS or self._is_cut):
            if self._price(events, tests) < steps and not self._is_cut:
                self._usual = steps / events
                self._do(SEARCHES)
            else:
                self._try_next(tick)
        elif self.doing == SEARCHES and events >= TRIED_EVENTS:
            if self._price(events, tests) > 2 * self._usual * events:
                self._do(LEAVES, tick + self.window)
            self._seen[:] = 0
        elif self.doing == LEAVES and tick > self._until:
            self._give_up(tick)

    def _price(self, events: float, tests: float) -> float:
        """What a search costs, in run-steps."""
        return TEST_PRICE * tests + CHAIN_PRICE * self._valued_chains() * events

    def _do(self, what: int, until: int = 0) -> None:
        self.doing, self._until = what, until
        self._seen[:] = 0

    def _give_up(self, tick: int) -> None:
        self._do(FOLLOWS, min(tick + self._rest * self.window, FAR - 1))
        self._rest = min(4 * self._rest, MOST_REST)

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        ways = {"doing": [self.doing, self._until, self._rest], "usual": self._usual, "orders": self.searches.orders}
        return super().header() | {"ways": ways}

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state; see ``Runs.restore``."""
        if "ways" in header:
            ways = header["ways"]
            doing, until, rest = (number_in("ways", number, -FAR, FAR) for number in ways["doing"])
            self._rest, self._usual = rest, ways["usual"]
            finite("ways", self._usual)
            orders = tuple(map(tuple, ways["orders"]))
            check("ways", good=doing in range(LEAVES + 1) and fit(orders, self.searches.paths))
            self._search_by(orders)
        super().restore(header, arrays, classes)
        if "ways" in header:
            self._do(GETS_READY if doing == TRIES else doing, until)

    # --- orders ---------------------------------------------------------------------------------------------

    def _promising(self) -> list[tuple[Order, ...]]:
        """Orders that should take few tests, by how many events each letter holds on in a window; the last is best."""
        kept, classes = self._columns()["cls"], self.tables.classes
        counts = np.bincount(kept, minlength=len(classes))
        letters = max(max(path.letters) for path in self.searches.paths) + 1
        held = [sum(int(n) for n, mask in zip(counts, classes, strict=False) if mask >> j & 1) for j in range(letters)]
        keys = max(len(np.unique(self._columns()["slot"])), 1)
        ranked = [ranked_orders(path, [n / keys for n in held]) for path in self.searches.paths]
        most = min(MOST_ORDERS, max(map(len, ranked)))
        return [tuple(orders[min(number, len(orders) - 1)] for orders in ranked) for number in reversed(range(most))]

    def _try_next(self, tick: int) -> None:
        """Try the next order; give up where there is none."""
        if not self._to_try:
            self._give_up(tick)
            return
        events = self._columns()
        self._search_by(self._to_try.pop())
        self._put(events)
        self._do(TRIES)

    def _search_by(self, orders: tuple[Order, ...]) -> None:
        """Forget all kept events, and search in these orders from now on."""
        self.searches = replace(self.searches, orders=orders)
        self._make_search_tables(self.columns)
        self.search_tables.set_classes(self.tables.classes or (0,))
        self.kept = self._room(len(self.kept.tick))
