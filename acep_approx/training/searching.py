"""What looking back costs: learned from the past, order by order, for each path of a query.

Source: ours. The order of joins decides; which one is cheap is found by trying all of them, as what is rare, and what
a threshold leaves, depends on the stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Any, NamedTuple, Self

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.paths import NoPathsError, Path, paths
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.engine import NO_WORDS
from acep_approx.engines.runs.end_search import EndSearch
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.searches import WITHOUT_LIMIT, Order, Searches, fit
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.planner import Plan
from acep_approx.ranges import check, finite
from acep_approx.training.past import Past

MOST_TRIES, LEAST_TRIES = 120, 6
"""Orders that are tried, of all paths together, and of each at least: all of a path of up to six events."""
MOST_EVENTS = 1 << 16
"""Events, at the end of the past, that they are tried on."""
LEAST_TESTS = 1 << 16
"""Tests after which a try is given up at the earliest: an order that costs so few is as good as any."""


class Rung(NamedTuple):
    """If no end is given more than ``most`` tests: what they take per event, and which share of points is found."""

    most: int
    tests: float
    found: float


@dataclass(frozen=True)
class SearchCost:
    """What searching the ends of matches took in the past.

    Attributes
    ----------
    orders : tuple of tuple of int
        Per path the positions but the last, in the order in which they are searched.
    ladder : tuple of Rung
        By how many tests an end is given, where any match of it will do; the last one: as many as it takes.
    whole : float
        Tests per event where the match with the latest start is wanted.
    """

    orders: tuple[Order, ...]
    ladder: tuple[Rung, ...]
    whole: float

    def best(self, rate: float, most: float) -> tuple[Rung, float]:
        """How many tests an end is best given, and which share of the match points is found so.

        Parameters
        ----------
        rate : float
            Tests that are granted per event.
        most : float
            Tests that can be saved up.

        Examples
        --------
        >>> cost = SearchCost((), (Rung(4, 2.0, 0.6), Rung(64, 10.0, 1.0)), 20.0)
        >>> cost.best(20.0, 100.0), cost.best(2.0, 100.0)
        ((Rung(most=64, tests=10.0, found=1.0), 1.0), (Rung(most=4, tests=2.0, found=0.6), 0.6))
        """
        rungs = [rung for rung in self.ladder if rung.most <= most]
        found = [(min(rate / max(rung.tests, 1e-9), 1.0) * rung.found, rung) for rung in rungs]
        share, rung = max(found, default=(0.0, self.ladder[0]))
        return rung, share

    def searches(self, automaton: RegisterAutomaton, most: int, *, is_whole: bool) -> Searches:
        """What an engine searches; ``is_whole``, ``most``: see ``Searches``."""
        return Searches(paths(automaton), self.orders, is_whole, most)

    def as_json(self) -> dict[str, Any]:
        """It as plain data."""
        return {"orders": self.orders, "ladder": self.ladder, "whole": self.whole}

    @classmethod
    def from_json(cls, saved: dict[str, Any], automaton: RegisterAutomaton) -> Self:
        """What ``as_json`` gave, of a query.

        Raises
        ------
        ValueError, TypeError, LookupError
            It cannot be that.
        """
        orders, ladder = tuple(map(tuple, saved["orders"])), tuple(Rung(*rung) for rung in saved["ladder"])
        finite("search", saved["whole"], *(number for rung in ladder for number in rung))
        check("search", good=bool(ladder) and saved["whole"] >= 0 and min(map(min, ladder)) >= 0)
        check("search", good=all(type(rung.most) is int and rung.found <= 1 for rung in ladder))
        known = _paths(automaton)
        check("search", good=bool(known) and fit(orders, known))
        return cls(orders, ladder, float(saved["whole"]))


def _paths(automaton: RegisterAutomaton) -> tuple[Path, ...]:
    try:
        return paths(automaton)
    except NoPathsError:
        return ()


def learn_search(plan: Plan, past: Past, usual: float) -> SearchCost | None:
    """Learn in which order the ends of matches are searched best, and what that costs.

    Parameters
    ----------
    plan : Plan
    past : Past
    usual : float
        Run-steps per event of the exact run: orders that cost more are not looked at any further.

    Returns
    -------
    SearchCost or None
        None: match points of the query cannot be found so, or it costs more than the exact run.

    Complexity: a run over the end of the past for each order, given up once it costs more than the best one so far.
    """
    assert plan.registers is not None
    known = _paths(plan.registers)
    if not known or not len(past):
        return None
    trial = _Trial(plan, past)
    most, chosen = max(usual * trial.events, LEAST_TESTS), list[Order]()
    for path in known:
        best, fewest = None, most
        for order in _orders(path, max(MOST_TRIES // len(known), LEAST_TRIES)):
            tests = trial.run(Searches((path,), (order,), is_whole=False), fewest).tests
            if tests < fewest or (best is None and tests <= fewest):
                best, fewest = order, tests
        if best is None:
            return None
        chosen.append(best)
    ways = [Searches(known, tuple(chosen), is_whole) for is_whole in (False, True)]
    some, whole = (trial.run(searches, len(known) * most) for searches in ways)
    if some.tests == math.inf:
        return None
    return SearchCost(tuple(chosen), some.ladder(trial.events), whole.tests / trial.events)


def _orders(path: Path, most: int) -> list[Order]:
    """The orders of a path that are tried: all, or each position first and the others behind, from either side."""
    others = range(len(path) - 1)
    every = list(islice(permutations(others), most + 1))
    if len(every) <= most:
        return every
    sides = [(first, [one for one in others if one != first]) for first in others]
    return [(first, *rest[::step]) for first, rest in sides for step in (-1, 1)][:most]


class _Tried(NamedTuple):
    """What came of a try: tests (infinity: more than were allowed), those of each end, and which end a match."""

    tests: float
    spent: Ints
    found: Bools

    def ladder(self, events: int) -> tuple[Rung, ...]:
        """What comes of each number of tests that an end is given."""
        spent, all_found = self.spent, max(int(self.found.sum()), 1)
        rungs = []
        for power in range(int(spent.max(initial=1)).bit_length() + 1):
            most = 1 << power
            tests = float(np.minimum(spent, most).sum()) / events
            rungs.append(Rung(most, tests, int(self.found[spent < most].sum()) / all_found))
        return (*rungs, Rung(WITHOUT_LIMIT, float(spent.sum()) / events, 1.0))


class _Trial:
    """The end of a past, on which searches are tried."""

    def __init__(self, plan: Plan, past: Past) -> None:
        self._plan, self._past = plan, past
        self._batches = list(past.batches(max(len(past) - MOST_EVENTS, past.cut()[0])))
        self.events = sum(map(len, self._batches))

    def run(self, searches: Searches, most: float) -> _Tried:
        """Search all ends, as far as so many tests reach."""
        load = _Noting(searches)
        matcher = Execution(self._plan, output=BARE, shedding=load)
        self._past.bind(matcher)
        assert matcher.pipeline is not None
        engine = matcher.pipeline.engine
        assert isinstance(engine, EndSearch), "it was asked for"
        load.arena.tokens, load.engine = most + 1, engine
        for batch in self._batches:
            for _ in matcher.run(batch):
                pass
            if load.arena.untested:
                return _Tried(math.inf, NO_WORDS, NO_WORDS > 0)
        spent, found = (np.concatenate([NO_WORDS, *parts]) for parts in zip(*load.seen, strict=True))
        return _Tried(matcher.progress.steps, spent, found > 0)


class _Noting(FixedLoad):
    """Grants nothing beyond what there is at the beginning; notes what came of each end."""

    engine: EndSearch

    def __init__(self, searches: Searches) -> None:
        super().__init__(Shedding(None, Allowance(rate=0.0)))
        self.searches = searches
        self.seen: list[tuple[Ints, Ints]] = []

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Note the tests of each end, and whether a match ends there."""
        found = np.zeros(len(events.row), np.int64)
        found[hits.event] = 1
        is_end = self.engine.spent >= 0
        self.seen.append((self.engine.spent[is_end], found[is_end]))
