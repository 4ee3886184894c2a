"""What one budget finds for a set of queries, against equal shares of the same run-steps and against chance.

A set learns from events before the middle of a stream and runs on those behind it, through the users' door:
``desk.train(past)``, then ``desk.match_within(now, "10%", history=known)`` with the default audit. The load of the
present is not said. The others do as many run-steps as that run, but for two of 100, and their audit is the same:

* *by query*: each query has an equal part, a template those of its queries; *by engine*: each template, and each query
  by itself, has an equal part. What is more than an engine can use goes to the others. Histories are the same.
* *alike*: each engine has the same share of its own exact run, which is a tenth at 10%. Histories are the same.
* *by chance*: one price for all, but nothing was learned, and runs are kept at random.

Recall is that of match points of the queries that shed, by weight; that all of them are in the exact answer, and that
no more was spent than was allowed, is checked. See ``set_workloads`` for the sets.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from acep_approx import Histories, QuerySet
from acep_approx.arrays import Floats
from acep_approx.budget.budget import Budget
from acep_approx.budget.set_ledger import SetRecord
from acep_approx.results.budgeted_set import BudgetedFound
from acep_approx.shedding.accounts import Account
from acep_approx.shedding.load import Load
from acep_approx.shedding.purse import Purse, at_most
from acep_approx.shedding.splitting import ALMOST_ALL, Need
from experiments.shedding.set_workloads import SetWorkload

BUDGETS = (5, 10, 20)
OURS, BY_QUERY, BY_ENGINE, ALIKE, BY_CHANCE = "one budget", "by query", "by engine", "alike", "by chance"
TRIES, CLOSE = 3, 0.02
"""The others are granted more or less until they have done as many run-steps, but for two of 100."""
OTHERS = (BY_QUERY, BY_ENGINE, ALIKE, BY_CHANCE)


@dataclass(frozen=True)
class SetResult:
    """What one run of a set found, and what it took.

    Attributes
    ----------
    recall : float
        Of match points, by weight.
    spent : float
        Run-steps, as a share of what was allowed.
    of_exact : float
        Run-steps, as a share of the budget's share of the true exact run.
    seconds, exact_seconds : float
        CPU time.
    low, estimate, high : float or None
        Recall as the run itself estimates it, without weights, and the truth of that.
    own : int
        Queries that got an estimate of their own.
    """

    workload: str
    queries: int
    is_weighted: bool
    way: str
    percent: int
    recall: float
    spent: float
    of_exact: float
    seconds: float
    exact_seconds: float
    low: float | None
    estimate: float | None
    high: float | None
    plain: float
    own: int


class SharingOtherwise(QuerySet):
    """A set whose budget is shared by another purse."""

    def match_by(self, purse: Purse, events: Any) -> BudgetedFound:
        """As ``match_within``, with this purse."""
        return self._within(self._running.fresh(lambda: purse), events, {})

    def exact(self, events: Any) -> tuple[SetRecord, int]:
        """What the exact run does, and its run-steps: births of templates, but no looks at what dominates what."""
        purse = Purse(Load(Budget(100.0, "%"), audit=0.0))
        record = self.match_by(purse, events).record()
        return record, record.work - sum(int(one.arena.on_passes) for one in purse.accounts)


class EqualPurse(Purse):
    """Gives all engines equal parts, or parts in proportion to numbers, of the same run-steps; they do not move.

    Parameters
    ----------
    load, histories
        As for ``Purse``.
    way : str
        ``BY_QUERY``, ``BY_ENGINE`` or ``ALIKE``.
    queries : dict of str to int
        How many queries each engine has, by its name; 1 where it is not named.
    """

    def __init__(self, load: Load, histories: Histories, way: str, queries: dict[str, int]) -> None:
        super().__init__(load, histories)
        self._way, self._queries = way, queries

    def _foresee(self) -> None:
        accounts = self._in_order()
        for one, part in zip(accounts, self._parts(accounts).tolist(), strict=True):
            one.part = one.shedder.part = part

    def _move(self, accounts: Sequence[Account], needs: Sequence[Need]) -> None:
        """Parts stay."""

    def _share_tokens(self, accounts: Sequence[Account]) -> None:
        """What an engine has saved up is its own."""

    def _parts(self, accounts: Sequence[Account]) -> Floats:
        if self._way == ALIKE:
            return np.ones(len(accounts))
        size = np.array([one.size for one in accounts])
        number = np.array([self._queries.get(one.name, 1) if self._way == BY_QUERY else 1 for one in accounts], float)
        parts = number / number.sum() * size.sum() / size
        assert self._share is not None, "all have histories"
        return at_most(ALMOST_ALL / 100 / self._share, parts, size)


class Measured:
    """A set with its exact answer and its histories.

    Parameters
    ----------
    workload : SetWorkload
    queries : int
    is_weighted : bool
    known : Histories, optional
        Of the same queries; histories know nothing of weights. Default: the set learns them.
    """

    def __init__(
        self, workload: SetWorkload, queries: int, *, is_weighted: bool, known: Histories | None = None
    ) -> None:
        self.workload, self.queries, self.is_weighted = workload, queries, is_weighted
        self.desk: SharingOtherwise = workload.filled(
            workload.desk(SharingOtherwise), queries, is_weighted=is_weighted
        )
        self.desk.match(workload.now)  # kernels are loaded
        begun = time.process_time()
        found = self.desk.match(workload.now)
        self.exact_seconds = time.process_time() - begun
        whole, self.exact_steps = self.desk.exact(workload.now)
        self.weights = {query.id: query.weight for query in whole.queries if query.part is not None}
        parts = pd.Series([query.part for query in whole.queries if query.part is not None])
        self.sizes = {str(name): int(number) for name, number in parts.value_counts().items()}
        self.points = _points(found, self.weights)
        self.known = known or self.desk.train(workload.past)

    @property
    def steps_per_event(self) -> float:
        """Of the exact run."""
        return float(self.exact_steps / len(self.workload.now))

    def run(self, percents: Iterable[int], ways: Sequence[str] = OTHERS) -> Iterator[SetResult]:
        """Run the set inside each budget, and the others with as many run-steps."""
        for percent in percents:
            begun = time.process_time()
            some = self.desk.match_within(self.workload.now, f"{percent}%", history=self.known)
            seconds = time.process_time() - begun
            record = some.record()
            yield self._judged(OURS, percent, some, record, seconds)
            for way in ways:
                begun = time.process_time()
                some = self._otherwise(way, percent, record)
                seconds = time.process_time() - begun
                yield self._judged(way, percent, some, some.record(), seconds)

    def _otherwise(self, way: str, percent: float, ours: SetRecord) -> BudgetedFound:
        if way == BY_CHANCE:
            granted = ours.allowed / (percent / 100) / len(self.workload.now)
            how: dict[str, Any] = {"full_work": max(granted, 1e-9), "policy": "random"}
            return self.desk.match_within(self.workload.now, f"{percent}%", **how)
        some = self._equal(way, float(percent))
        for _ in range(TRIES):  # what engines expect of themselves is off by different factors
            times = ours.work / max(some.record().work, 1)
            if abs(times - 1) < CLOSE:
                break
            percent = min(percent * times, 99.0)
            some = self._equal(way, percent)
        return some

    def _equal(self, way: str, percent: float) -> BudgetedFound:
        load = Load(Budget(percent, "%"))
        return self.desk.match_by(EqualPurse(load, self.known, way, self.sizes), self.workload.now)

    def _judged(self, way: str, percent: int, some: BudgetedFound, record: SetRecord, seconds: float) -> SetResult:
        found = _points(some, self.weights)
        assert found.index.isin(self.points.index).all(), "a match point that is none"
        assert record.work <= record.allowed, "the bound was passed"
        estimate, low, high = record.recall
        return SetResult(
            self.workload.name,
            self.queries,
            self.is_weighted,
            way,
            percent,
            recall=found.sum() / max(self.points.sum(), 1e-9),
            spent=record.work / max(record.allowed, 1),
            of_exact=record.work / max(percent / 100 * self.exact_steps, 1),
            seconds=seconds,
            exact_seconds=self.exact_seconds,
            low=low,
            estimate=estimate,
            high=high,
            plain=len(found) / max(len(self.points), 1),
            own=sum(one.recall is not None and one.recall.recall is not None for one in record.queries),
        )


def _points(found: Any, weights: dict[str, float]) -> pd.Series:
    """What match points count for, by query and what tells them apart; of those that are shed alone."""
    table = found.to_arrow().select(["query", "end", "values"]).to_pandas()
    table = table[table["query"].isin(weights)]
    index = pd.MultiIndex.from_frame(table)
    assert index.is_unique, "each match point is told once"
    return pd.Series(table["query"].map(weights).to_numpy(np.float64), index=index)
