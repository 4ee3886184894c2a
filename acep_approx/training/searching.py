"""What searching backwards costs: learned from the past, order by order, for each path of a query.

Source: ours. The order of joins decides; which one is cheap is found by trying all of them, as what is rare, and what
a threshold leaves, depends on the stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Any, NamedTuple, Self

import numpy as np

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.automaton.paths import Path
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.engine import NO_WORDS
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad, Results
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.engines.search.end_search import EndSearch
from acep_approx.engines.search.searches import DAY, GAP, WITHOUT_LIMIT, Order, Searches, end_inputs, fit
from acep_approx.kernels.runs.vm import NULL
from acep_approx.kernels.search.end_search import ANY, LATEST
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.planner import Plan
from acep_approx.query.printer import to_text
from acep_approx.ranges import check, finite
from acep_approx.training.past import Past
from history.trees import Trees, fit_trees

MOST_TRIES, LEAST_TRIES = 120, 6
"""Orders that are tried, of all paths together, and of each at least: all of a path of up to six events."""
MOST_EVENTS, MORE_EVENTS = 1 << 16, 1 << 18
"""Events, at the end of the past, that they are tried on; and those on which it is seen what the best ones take."""
ANY_SCORE = -1e300
LEARNED_FROM = 0.6
"""Share of the ends from which it is learned which of them are likely match points; the others judge it."""
SEARCHED = (0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05, 0.03, 0.02)
"""Shares of the ends that are searched, those that are most likely."""
MOST_TIMES = 4.0
"""An order is given up once it takes this many times the run-steps of the exact run."""
LEAST_TESTS = 1 << 16
"""Tests after which a try is given up at the earliest: an order that costs so few is as good as any."""


class Rung(NamedTuple):
    """If no end is given more than ``most`` tests: what they take per event, and which share of points is found.

    ``least``: the score below which ends are not searched at all.
    """

    most: int
    tests: float
    found: float
    least: float = ANY_SCORE


@dataclass(frozen=True)
class SearchCost:
    """What searching the ends of matches took in the past.

    Attributes
    ----------
    orders : tuple of tuple of int
        Per path the positions but the last, in the order in which they are searched.
    ladder : tuple of Rung
        What each limit of tests per end finds, where any match of an end will do; the cheapest first.
    whole : float
        Tests per event where the match with the latest start is wanted.
    trees : Trees or None
        How likely an end is a match point.
    """

    orders: tuple[Order, ...]
    ladder: tuple[Rung, ...]
    whole: float
    trees: Trees | None = None

    @property
    def all_tests(self) -> float:
        """Tests per event of finding all match points."""
        most = max(rung.found for rung in self.ladder)
        return min(rung.tests for rung in self.ladder if rung.found == most)

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
        >>> [(rung.most, share) for rung, share in (cost.best(20.0, 100.0), cost.best(2.0, 100.0))]
        [(64, 1.0), (4, 0.6)]
        """
        rungs = [rung for rung in self.ladder if rung.most <= most]
        found = [(min(rate / max(rung.tests, 1e-9), 1.0) * rung.found, rung) for rung in rungs]
        share, rung = max(found, default=(0.0, self.ladder[0]))
        return rung, share

    def searches(self, known: tuple[Path, ...], rung: Rung, wanted: int) -> Searches:
        """What an engine searches, with as many tests for an end as a rung says; ``wanted``: see ``Searches``."""
        return Searches(known, self.orders, wanted, rung.most, self.trees, rung.least, self.all_tests)

    def as_json(self) -> dict[str, Any]:
        """It as plain data."""
        trees = None if self.trees is None else self.trees.to_json()
        return {"orders": self.orders, "ladder": self.ladder, "whole": self.whole, "trees": trees}

    @classmethod
    def from_json(cls, saved: dict[str, Any], known: tuple[Path, ...]) -> Self:
        """What ``as_json`` gave, of a query with these paths.

        Raises
        ------
        ValueError, TypeError, LookupError
            It cannot be that.
        """
        orders, ladder = tuple(map(tuple, saved["orders"])), tuple(Rung(*rung) for rung in saved["ladder"])
        finite("search", saved["whole"], *(number for rung in ladder for number in rung))
        check("search", good=bool(ladder) and saved["whole"] >= 0 and min(min(rung[:3]) for rung in ladder) >= 0)
        check("search", good=all(type(rung.most) is int and rung.found <= 1 for rung in ladder))
        trees = None if saved["trees"] is None else Trees.from_json(saved["trees"])
        check("search", good=bool(known) and fit(orders, known))
        known_inputs = {GAP, *(to_text(value.value) for path in known for value in path.values)}
        check("search", good=trees is None or known_inputs >= set(trees.inputs[1:]))
        return cls(orders, ladder, float(saved["whole"]), trees)


def learn_search(plan: Plan, past: Past, usual: float) -> SearchCost | None:
    """Learn in which order the ends of matches are searched best, and what that costs.

    Parameters
    ----------
    plan : Plan
    past : Past
    usual : float
        Run-steps per event of the exact run: orders that cost many times as much are not looked at any further.

    Returns
    -------
    SearchCost or None
        None: match points of the query cannot be found so, or it costs far more than the exact run.

    Complexity: a run over the end of the past for each order, given up once it costs more than the best one so far.
    """
    known = plan.paths
    if not known or not len(past):
        return None
    trial = _Trial(plan, past, MOST_EVENTS)
    most, chosen = max(MOST_TIMES * usual * trial.events, LEAST_TESTS), list[Order]()
    for path in known:
        best, fewest = None, most
        for order in _orders(path, max(MOST_TRIES // len(known), LEAST_TRIES)):
            tests = trial.run(Searches((path,), (order,), ANY), fewest).tests
            if tests < fewest or (best is None and tests <= fewest):
                best, fewest = order, tests
        if best is None:
            return None
        chosen.append(best)
    ways = [Searches(known, tuple(chosen), wanted) for wanted in (ANY, LATEST)]
    most *= len(known) * MORE_EVENTS / MOST_EVENTS
    trial = _Trial(plan, past, MORE_EVENTS)
    some, whole = (trial.run(searches, most) for searches in ways)
    if some.tests == math.inf:
        return None
    ladder, trees = trial.ladder(some)
    return SearchCost(tuple(chosen), ladder, whole.tests / trial.events, trees)


def _orders(path: Path, most: int) -> list[Order]:
    """The orders of a path that are tried: all, or each position first and the others behind, from either side."""
    others = range(len(path) - 1)
    every = list(islice(permutations(others), most + 1))
    if len(every) <= most:
        return every
    sides = [(first, [one for one in others if one != first]) for first in others]
    return [(first, *rest[::step]) for first, rest in sides for step in (-1, 1)][:most]


class _Tried(NamedTuple):
    """What came of a try: tests (infinity: more than were allowed), those of each end, and which end a match.

    ``inputs``: of each end what trees may look at, one row after the other.
    """

    tests: float
    spent: Ints
    found: Bools
    inputs: Floats

    def rungs(self, events: float, least: float, is_searched: Bools) -> Iterator[Rung]:
        """What comes of each number of tests that an end is given, of those that are searched."""
        spent, all_found = self.spent[is_searched], max(int(self.found.sum()), 1)
        found = self.found[is_searched]
        for power in range(int(spent.max(initial=1)).bit_length() + 1):
            tests = float(np.minimum(spent, 1 << power).sum()) / events
            yield Rung(1 << power, tests, int(found[spent < 1 << power].sum()) / all_found, least)
        whole = int(found.sum()) / all_found if len(found) < len(self.found) else 1.0  # though there were none
        yield Rung(WITHOUT_LIMIT, float(spent.sum()) / events, whole, least)


def _useful(rungs: Iterable[Rung]) -> tuple[Rung, ...]:
    """Drop each rung that another one makes needless: it finds as much, with no more tests for an end and in all."""
    found: list[Rung] = []
    for one in sorted(set(rungs), key=lambda rung: (rung.tests, -rung.found, rung.most)):
        if one.found > 0 and not any(other.found >= one.found and other.most <= one.most for other in found):
            found.append(one)
    return tuple(found) or (Rung(WITHOUT_LIMIT, 0.0, 0.0),)


class _Trial:
    """The end of a past, on which searches are tried."""

    def __init__(self, plan: Plan, past: Past, events: int) -> None:
        self._plan, self._past = plan, past
        self._names: list[str] = []
        self._has_times = False
        self._batches = list(past.batches(max(len(past) - events, past.cut()[0])))
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
                return _Tried(math.inf, NO_WORDS, NO_WORDS > 0, np.zeros((0, 0)))
        self._names, self._has_times = load.names, matcher.pipeline.is_time
        parts = [*zip(*load.seen, strict=True)] or [(NO_WORDS,), (NO_WORDS,), (np.zeros((0, 2)),)]
        spent, found, inputs = (np.concatenate(some) for some in parts)
        return _Tried(matcher.progress.steps, spent, found > 0, inputs)

    def ladder(self, tried: _Tried) -> tuple[tuple[Rung, ...], Trees | None]:
        """What comes of it to search some of the ends, and to give them some tests; and what tells which ends.

        What is likely a match point is learned from the first part of the ends, and judged on the rest.
        """
        every = np.ones(len(tried.spent), np.bool_)
        plain = tuple(tried.rungs(self.events, ANY_SCORE, every))
        cut = int(LEARNED_FROM * len(tried.spent))
        inputs, nothing = [*tried.inputs.T], np.zeros(cut, np.int64)
        names, day = ["tick", *self._names], DAY if self._has_times else 0
        trees = fit_trees(names, [column[:cut] for column in inputs], day, nothing, tried.found[:cut])
        rest = _Tried(tried.tests, tried.spent[cut:], tried.found[cut:], tried.inputs[cut:])
        if trees is None or not rest.found.any():
            return _useful(plain), None
        scores = trees.values([column[cut:] for column in inputs])
        events, rungs = self.events * (1 - LEARNED_FROM), list(plain)
        for share in SEARCHED:
            least = float(np.quantile(scores, 1 - share))
            rungs += rest.rungs(events, least, scores >= least)
        return _useful(rungs), trees


class _Noting(FixedLoad):
    """Grants nothing beyond what there is at the beginning; notes what came of each end."""

    engine: EndSearch

    def __init__(self, searches: Searches) -> None:
        super().__init__(Shedding(None, Allowance(rate=0.0)))
        self._searches = searches
        self.seen: list[tuple[Ints, Ints, Floats]] = []
        self.names: list[str] = []

    def search_for(self, results: Results) -> Searches:  # noqa: ARG002
        """How ends are searched: what else would be learned."""
        return self._searches

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Note the tests of each end, and whether a match ends there."""
        found = np.zeros(len(events.row), np.int64)
        found[hits.event] = 1
        columns, is_end = self.engine.columns, np.flatnonzero(self.engine.spent >= 0)
        known = end_inputs(self.engine.searches.paths, columns)
        self.names = [GAP, *known]
        inputs = [events.tick[is_end].astype(np.float64), self.engine.gaps[is_end].astype(np.float64)]
        for one in known.values():
            words = events.columns[columns.place(one)][is_end]
            is_null = words == NULL
            inputs.append(words.view(np.float64) if columns.kind(one) == "float" else np.where(is_null, np.nan, words))
        self.seen.append((self.engine.spent[is_end], found[is_end], np.stack(inputs, axis=1)))
