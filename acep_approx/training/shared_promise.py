"""What many queries, or rules, inside one budget are promised to find: all together, by weight, and each; plain data.

They are run as users run them over the end of a past that nothing was learned from, and held against an exact run. A
match point is here a key and a time at which a match ends. Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.budget.budget import Budget
from acep_approx.events.keys import KeyCodes
from acep_approx.ranges import COUNT, check, finite, number_in
from acep_approx.training.promise import STRETCHES, Truth, intervals

BEHIND_KEYS = ("errors", "start", "end")
"""Columns of results; the first of these that there is comes behind those of the key."""
WORST = 5
"""Queries that are named, those with the least recall first."""


class Found(NamedTuple):
    """A share of the match points, and where that of a stretch as long lies, in 95 of 100 cases."""

    recall: float
    low: float
    high: float

    def __str__(self) -> str:
        ends = f" ({100 * self.low:.0f} to {self.high:.0%})" if self.low < self.high else ""
        return f"{self.recall:.0%}{ends}"


@dataclass(frozen=True)
class SharedPromise:
    """What a run inside a budget is promised to find.

    Attributes
    ----------
    budget : str
        As for ``match_within``.
    steps : float
        Run-steps per event that it took.
    total, weighted : Found
        Of all match points; of what they count for.
    parts : tuple of Found
        Of each query or rule that has match points, in the order of ``SharedPromises.names``.
    """

    budget: str
    steps: float
    total: Found
    weighted: Found
    parts: tuple[Found, ...]


@dataclass(frozen=True)
class SharedPromises:
    """Promises for many queries, or rules, and what they were measured on.

    Attributes
    ----------
    trained, measured : int
        Events that were learned from, and the events behind them that recall was measured on.
    exact : float
        Run-steps per event of the exact run over the latter.
    names : tuple of str
        The queries or rules that have match points there.
    weights : tuple of float
        What a match point of each counts for.
    points : tuple of int
        Match points of each.
    rows : tuple of SharedPromise
        By budget.
    """

    trained: int
    measured: int
    exact: float
    names: tuple[str, ...]
    weights: tuple[float, ...]
    points: tuple[int, ...]
    rows: tuple[SharedPromise, ...]

    @property
    def total(self) -> int:
        """Match points of all."""
        return sum(self.points)

    @property
    def is_weighted(self) -> bool:
        """Whether match points of some count for more than those of others."""
        return len(set(self.weights)) > 1

    def worst(self, most: int = WORST) -> list[str]:
        """The queries or rules that miss most inside the budgets, on average."""
        mean = np.array([[one.recall for one in row.parts] for row in self.rows]).mean(axis=0) if self.rows else []
        order = sorted(range(len(mean)), key=lambda at: (mean[at], self.names[at]))
        return [self.names[at] for at in order[:most] if mean[at] < 1]

    def part(self, name: str, row: SharedPromise) -> Found:
        """What a budget is promised to find of a query or rule."""
        return row.parts[self.names.index(name)]

    def as_json(self) -> dict[str, Any]:
        """As it is kept beside histories."""
        rows = [[row.budget, row.steps, row.total, row.weighted, row.parts] for row in self.rows]
        return {**vars(self), "rows": rows}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """What ``as_json`` gave.

        Raises
        ------
        ValueError, LookupError, TypeError
            It is not that.
        """
        trained, measured = (number_in(name, kept[name], 0, COUNT) for name in ("trained", "measured"))
        names = tuple(map(str, kept["names"]))
        points = tuple(number_in("points", number, 0, COUNT) for number in kept["points"])
        weights = tuple(kept["weights"])
        check("names", good=len(names) == len(points) == len(weights))
        finite("promises", kept["exact"], *weights)
        rows = []
        for budget, steps, total, weighted, parts in kept["rows"]:
            own = tuple(Found(*one) for one in parts)
            row = SharedPromise(str(budget), steps, Found(*total), Found(*weighted), own)
            finite("promise", steps, *row.total, *row.weighted, *(number for one in row.parts for number in one))
            check("parts", good=len(row.parts) == len(names))
            rows.append(row)
        return cls(trained, measured, kept["exact"], names, weights, points, tuple(rows))


# --- held against the exact run -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """What came of a run.

    Attributes
    ----------
    tables : mapping of str to pyarrow.Table
        The results of each query or rule.
    windows : mapping of str to int
        In ticks.
    work : int
        Run-steps.
    """

    tables: Mapping[str, pa.Table]
    windows: Mapping[str, int]
    work: int


class Exact:
    """The match points of one query or rule in an exact run.

    Parameters
    ----------
    table : pyarrow.Table
        Its results.
    window : int
    ticks : int64 array
        Of the events.
    """

    def __init__(self, table: pa.Table, window: int, ticks: Ints) -> None:
        self._codes = KeyCodes()
        keys, ends = _keys_and_ends(table)
        points = self._codes.encode([*keys, pa.array(ends)])
        _, first = np.unique(points, return_index=True)  # in the order of their codes, which are 0, 1, 2, ...
        key = KeyCodes().encode([one.take(pa.array(first)) for one in keys]) if keys else np.zeros_like(first)
        ends = ends[first]
        cells = np.unique(np.stack([key, ends // (window + 1)]), axis=1, return_inverse=True)[1].reshape(-1)
        stretches = np.searchsorted(ticks, ends) * STRETCHES // max(len(ticks), 1)
        self.truth = Truth(np.arange(len(first)), cells, stretches)

    def found(self, table: pa.Table | None) -> Bools:
        """Which of them are among other results, if there are any."""
        if table is None:
            return np.zeros(len(self.truth), np.bool_)
        keys, ends = _keys_and_ends(table)
        return self.truth.found(self._codes.encode([*keys, pa.array(ends)]))


def ends_in(table: pa.Table) -> pa.Table:
    """What tells of the match points that results end at: the columns of the key, and the time."""
    return table.select([*_keys(table), "end"])


def _keys(table: pa.Table) -> list[str]:
    behind = min(table.column_names.index(name) for name in BEHIND_KEYS if name in table.column_names)
    return [name for name in table.column_names[:behind] if name != "query"]


def _keys_and_ends(table: pa.Table) -> tuple[list[pa.Array], Ints]:
    ends: Ints = table.column("end").combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    return [_one(table.column(name)) for name in _keys(table)], ends


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.cast(whole.type.value_type) if pa.types.is_dictionary(whole.type) else whole


def held_against(
    exact: Ran, inside: Sequence[tuple[Budget, Ran]], weights: Mapping[str, float], ticks: Ints, trained: int
) -> SharedPromises:
    """Hold what was found inside budgets against an exact run.

    Parameters
    ----------
    exact : Ran
    inside : sequence of (Budget, Ran)
    weights : mapping of str to float
        What a match point of each query or rule counts for; 1 where nothing is said.
    ticks : int64 array
        Of the events that were run.
    trained : int
        Events before these that were learned from.

    Returns
    -------
    SharedPromises
        Complexity: linear in the results.
    """
    known = {name: Exact(table, exact.windows[name], ticks) for name, table in exact.tables.items() if table.num_rows}
    names = tuple(known)
    budgets = [budget for budget, _ in inside]
    found = [np.array([one.found(ran.tables.get(name)) for _, ran in inside]) for name, one in known.items()]
    own = [_found(one, known[name].truth, budgets) for name, one in zip(names, found, strict=True)]
    counts = tuple(float(weights.get(name, 1.0)) for name in names)
    truth = _joined([known[name].truth for name in names])
    every = np.concatenate([*found, np.zeros((len(inside), 0), np.bool_)], axis=1)
    weight = np.repeat(counts, [len(known[name].truth) for name in names])
    total, weighted = _found(every, truth, budgets), _found(every, truth, budgets, weight)
    events = max(len(ticks), 1)
    rows = tuple(
        SharedPromise(str(budget), ran.work / events, total[at], weighted[at], tuple(one[at] for one in own))
        for at, (budget, ran) in enumerate(inside)
    )
    points = tuple(len(known[name].truth) for name in names)
    return SharedPromises(trained, len(ticks), exact.work / events, names, counts, points, rows)


def _joined(truths: Sequence[Truth]) -> Truth:
    """The match points of many as those of one: what befalls a cell befalls it in each by itself."""
    none = np.zeros(0, np.int64)
    firsts = np.cumsum([0, *(int(one.cells.max(initial=-1)) + 1 for one in truths)])
    cells = [one.cells + first for one, first in zip(truths, firsts.tolist(), strict=False)]
    stretches = np.concatenate([none, *(one.stretches for one in truths)])
    return Truth(np.arange(len(stretches)), np.concatenate([none, *cells]), stretches)


def _found(found: Bools, truth: Truth, budgets: Sequence[Budget], weight: Floats | None = None) -> list[Found]:
    if not len(truth):
        return [Found(1.0, 0.0, 1.0)] * len(found)
    recalls = np.average(found, axis=1, weights=weight).tolist()
    ends = intervals(found, truth, weight)
    whole = zip(budgets, recalls, ends, strict=True)
    return [Found(recall, *((1.0, 1.0) if budget.is_unlimited else end)) for budget, recall, end in whole]
