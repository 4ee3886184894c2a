"""One budget for many shards: more of it for those where a run-step finds more, and never more than all of it.

Each shard sheds the runs whose score, in match points per run-step, lies below its price. Where prices differ, a
run-step is worth more in the dearer shard; most is found when all are the same (Lagrange). So after each batch weights
move towards that. A shard's weight is a multiple of what its own events are entitled to.

Weights are chosen before it is known how many events each shard will get. So nobody is given on credit: what shards of
small weight have given up is saved, and shards of large weight get their surplus out of these savings. Ours.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.budget.budget import Budget
from history.files import JsonFile

LEAST = 0.25
"""Weight that every shard has in any case."""
PACE, MOST_CHANGE = 0.5, 2.0
"""Weights change with this power of the price, and in one step by such a factor at most."""
ROOM = 1.5
"""A shard that sheds nothing keeps so many times what it has used."""
HALVINGS = 24
ALMOST_ALL = 99.9
"""Percent: from 100 on nothing at all is shed, whatever the work turns out to be."""


@dataclass(frozen=True)
class Need:
    """What came of a batch in one shard.

    Attributes
    ----------
    events : float
        Of the batch; or how much it counts for another reason.
    weight : float
        By which the shard's part was taken, see ``Split.weight``.
    steps, bound : float
        Run-steps done and granted.
    price : float
        Least score of a run that was kept, at the end; 0 where nothing was shed.
    """

    events: float
    weight: float
    steps: float
    bound: float
    price: float


@dataclass(frozen=True)
class Split(JsonFile):
    """How a budget is split over shards.

    Attributes
    ----------
    weights : tuple of float
        One for each shard.
    surplus : tuple of float
        How many events' worth each shard may be given beyond what its own are entitled to in the next batch.
    saved : float
        How many events' worth nobody was given so far; never below 0.
    batch : int
        The last one that it knows of; -1: none.
    before : Split or None
        That by which this batch was done: should it be done again, it counts as it was done at last.
    """

    FILE = "weights.json"
    weights: tuple[float, ...]
    surplus: tuple[float, ...]
    saved: float = 0.0
    batch: int = -1
    before: Self | None = None

    @classmethod
    def even(cls, shards: int) -> Self:
        """All alike."""
        return cls((1.0,) * shards, (0.0,) * shards)

    def weight(self, shard: int, events: int, batch: int | None = None) -> float:
        """By what the part of a shard is multiplied in a batch in which it gets so many events.

        The surplus is there for the next ``batch`` only: who finds an older file, or does a batch again, has none. Else
        it would be given twice.

        Examples
        --------
        >>> some = Split((0.5, 1.5), (0.0, 10.0), saved=10.0, batch=6)
        >>> some.weight(0, 100), some.weight(1, 10), some.weight(1, 100)
        (0.5, 1.5, 1.1)
        >>> some.weight(1, 100, batch=7), some.weight(1, 100, batch=8)
        (1.1, 1.0)
        """
        surplus = self.surplus[shard] if batch in (None, self.batch + 1) else 0.0
        return min(self.weights[shard], 1 + surplus / max(events, 1))

    @classmethod
    def load(cls, folder: str | os.PathLike[str], shards: int) -> Self:
        """What ``save`` wrote; all alike where there is none, or it is not whole or of another number of shards."""
        made = cls.read(folder, cls._of)
        is_whole = made is not None and all(one is None or one._is_of(shards) for one in (made, made.before))
        return made if made is not None and is_whole else cls.even(shards)

    @classmethod
    def _of(cls, found: Any) -> Self:
        weights, surplus = (tuple(map(float, found[name])) for name in ("weights", "surplus"))
        before = found.get("before")  # an older version does not know it
        known = None if before is None else cls._of({**before, "before": None})
        return cls(weights, surplus, float(found["saved"]), int(found["batch"]), known)

    def _is_of(self, shards: int) -> bool:
        are_weights = all(0 < weight < math.inf for weight in self.weights)
        can_be = are_weights and all(more >= 0 for more in self.surplus) and 0 <= self.saved < math.inf
        return can_be and len(self.weights) == len(self.surplus) == shards


def split(before: Split, needs: Sequence[Need], batch: int, *, by_events: bool = True) -> Split:
    """Split anew after a batch.

    Parameters
    ----------
    before : Split
        By which the batch was done.
    needs : sequence of Need
        One for each shard; without events where it got none.
    batch : int
        Its number. The last one again counts in the place of what was said of it; an older one changes nothing.
    by_events : bool, default True
        Whether each event brings a part of the budget. False: it is of the whole job at any time, as a number of runs
        is, so that the mean over shards is 1 whatever their events.

    Returns
    -------
    Split
        Weights have a mean of 1, over events or shards. Shards without events keep theirs.

    Notes
    -----
    A weight is multiplied by the root of price / mean price, by 2 at most or 1/2 at least; that of a shard which sheds
    nothing falls to 1.5 times what it needs. Complexity: O(shards).
    """
    if batch == before.batch and before.before is not None:
        before = before.before
    if batch <= before.batch:
        return before
    last = replace(before, before=None)
    events = np.array([need.events for need in needs], np.float64)
    if not events.any():
        return replace(before, batch=batch, before=last)
    weights = towards_one_price(before.weights, needs, events if by_events else np.ones(len(needs)))
    if not by_events:
        return Split(tuple(weights.tolist()), tuple(np.inf for _ in needs), 0.0, batch, last)
    given = np.array([need.weight for need in needs])
    saved = max(before.saved + float(((1 - given) * events).sum()), 0.0)
    surplus = np.maximum(weights - 1, 0.0) * events
    surplus *= min(1.0, saved / max(float(surplus.sum()), 1e-300))
    return Split(tuple(weights.tolist()), tuple(surplus.tolist()), saved, batch, last)


def towards_one_price(
    weights: Sequence[float], needs: Sequence[Need], size: Floats, least: float = LEAST
) -> Floats:
    """Move weights a step towards one price: see ``split``; their mean is 1, where each counts by its ``size``.

    None is below ``least``.

    Examples
    --------
    >>> needs = [Need(10, 1.0, 80, 80, price) for price in (0.1, 0.4)]
    >>> towards_one_price((1.0, 1.0), needs, np.ones(2)).round(2).tolist()
    [0.67, 1.33]
    """
    return _with_mean_one(np.array(weights) * _changes(needs), size, least)


def _changes(needs: Sequence[Need]) -> Floats:
    events, parts, price = (
        np.array([getattr(need, of) for need in needs], np.float64) for of in ("events", "weight", "price")
    )
    sheds = (price > 0) & (events > 0)
    changes = np.ones(len(needs))
    if sheds.any():
        changes[sheds] = np.exp(_around_centre(PACE * np.log(price[sheds]), (events * parts)[sheds]))
    for number, need in enumerate(needs):
        if need.events and not sheds[number]:
            changes[number] = min(ROOM * need.steps / max(need.bound, 1), 1.0)
    return np.clip(changes, 1 / MOST_CHANGE, MOST_CHANGE)


def _around_centre(wanted: Floats, weights: Floats) -> Floats:
    """Logarithms of changes around the centre from which as much goes up as down, each by ``MOST_CHANGE`` at most.

    So one price that is far from all others does not hide how these differ.
    """
    most = np.log(MOST_CHANGE)
    low, high = float(wanted.min()), float(wanted.max())
    for _ in range(HALVINGS):
        centre = (low + high) / 2
        if float(weights @ np.minimum(np.maximum(wanted - centre, -most), most)) > 0:  # np.clip takes ten times as long
            low = centre
        else:
            high = centre
    return np.clip(wanted - (low + high) / 2, -most, most)


def _with_mean_one(wanted: Floats, size: Floats, least: float) -> Floats:
    """Weights in these proportions, none below ``least``, with a mean of 1."""
    weights = np.maximum(wanted, 1e-9)
    is_least = np.zeros(len(weights), np.bool_)
    while True:
        rest = float(size.sum() - least * size[is_least].sum())
        factor = rest / max(float((size * weights)[~is_least].sum()), 1e-300)
        below = ~is_least & (factor * weights < least)
        if not below.any():
            return np.where(is_least, least, factor * weights)
        is_least |= below


def shard_budget(budget: Budget, weight: float, shards: int, cores: int = 1) -> Budget:
    """The part of a job's budget that one shard has.

    Parameters
    ----------
    budget : Budget
        Of the whole job.
    weight : float
        See ``Split.weight``.
    shards : int
    cores : int, default 1
        On how many shards are matched at the same time.

    Returns
    -------
    Budget
        Percent and run-steps per event: so many times as much for its own events. Runs: its part of them, one at
        least. Milliseconds per batch: its part of those of all cores, and not more than one core has. Events per
        second: the job keeps up with them if an event takes 1 / amount seconds of all cores; dear events of one shard
        take longer, those of others less.

    Examples
    --------
    >>> str(shard_budget(Budget.parse("20%"), 1.5, 8)), str(shard_budget(Budget.parse("80%"), 2.0, 8))
    ('30%', '99.9%')
    >>> str(shard_budget(Budget.parse("400 runs"), 0.5, 8)), str(shard_budget(Budget.parse("80 ms/batch"), 1.0, 8, 2))
    ('25 runs', '20 ms/batch')
    >>> str(shard_budget(Budget.parse("100k events/s"), 1.0, 8, 4))
    '25000 events/s'
    """
    if budget.is_unlimited:
        return budget
    at_once = min(cores, shards)
    amounts = {
        "%": min(budget.amount * weight, ALMOST_ALL),
        "steps/event": budget.amount * weight,
        "runs": max(budget.amount * weight // shards, 1.0),
        "ms/batch": budget.amount * min(weight * at_once / shards, 1.0),
        "events/s": budget.amount / (weight * at_once),
    }
    return replace(budget, amount=amounts[budget.unit])
