"""The price of a budget, learned by running the past again: what share of the work a price leaves, and what recall.

Ours: with a price per run-step, one number shares a budget over all keys, states and moments by marginal gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance, Worth
from acep_approx.events.stream import EventBatch
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.planner import MERGING, Plan
from history.arrays import no_ints

LISTED, POINTED = "equal,chain", ",".join(MERGING)
"""How runs are merged without loss where all matches are listed, as runs that another dominates have matches, too; and
where only match points are asked for. Replays find points with the work that listing matches takes."""
LEAST_SHARE = 0.01
FACTOR = 8.0
"""By how much the price is raised or lowered while its range is looked for."""
CLOSE = 1.6
"""Shares of the work by this factor apart are close enough to be interpolated."""
WIDE = 8.0
"""Shares of the work by this factor apart, or more, say nothing of what lies between: a slightly lower price may keep
nearly all, as where all runs are worth the same. What a budget between them finds for certain is a mixture of both."""
STRETCHES = 8
"""Parts of a past by which it is told how much one stretch of time differs from another."""
LEAST_PRICE = 1e-9
LEAST_ELASTICITY = 0.01


@dataclass(frozen=True)
class PricePoint:
    """What a run over the past did.

    Attributes
    ----------
    price : float
        Least score of a run that was kept; 0 where none was shed.
    steps : int
        Run-steps, passes included.
    points : int
        Match points found.
    rows : int64 array, shape (points,)
        Their rows in the past, as far as anybody remembers.
    cells : int64 array, shape (points,)
        The same number for those of one key within the time of a window: they share what befalls them.
    stretches : tuple of int
        Match points in each of ``STRETCHES`` equal parts of the past; empty where nobody remembers.
    """

    price: float
    steps: int
    points: int
    rows: Ints = field(default_factory=no_ints, compare=False, repr=False)
    cells: Ints = field(default_factory=no_ints, compare=False, repr=False)
    stretches: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prices:
    """Replays of the same past at rising prices; the first is the exact one, at price 0."""

    replays: tuple[PricePoint, ...] = (PricePoint(0.0, 0, 0),)

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """Share of the exact run's work at each price."""
        return np.array([replay.steps for replay in self.replays]) / max(self.replays[0].steps, 1)

    @property
    def recalls(self) -> npt.NDArray[np.float64]:
        """Share of the exact run's match points at each price."""
        return np.array([replay.points for replay in self.replays]) / max(self.replays[0].points, 1)

    def price(self, share: float) -> float:
        """The price that leaves a share of the work; between replays by logarithms.

        Examples
        --------
        >>> prices = Prices((PricePoint(0, 1000, 50), PricePoint(0.1, 400, 40), PricePoint(1.0, 40, 10)))
        >>> round(prices.price(0.04), 3), round(prices.recall(0.04), 3)
        (1.0, 0.2)
        """
        some = [replay for replay in self.replays if replay.price > 0 and replay.steps > 0]
        if not some:
            return LEAST_PRICE
        exact = self.replays[0].steps
        if some[0].steps < exact:  # no price was tried that leaves nearly all
            some = [PricePoint(some[0].price / FACTOR, exact, 0), *some]
        shares = np.log([replay.steps / exact for replay in some])[::-1]
        logs = np.log([replay.price for replay in some])[::-1]
        order = np.argsort(shares, kind="stable")
        return float(np.exp(np.interp(np.log(share), shares[order], logs[order])))

    def elasticity(self, share: float) -> float:
        """By which power of the work the price changes around a share of it; from 0.01 to 1.

        Where many runs are worth nearly the same, a slightly lower price keeps many more of them.

        Examples
        --------
        >>> prices = Prices((PricePoint(0, 1000, 50), PricePoint(0.1, 200, 40), PricePoint(0.2, 50, 10)))
        >>> round(prices.elasticity(0.1), 3)
        0.5
        """
        few, many = share / 2, min(2 * share, 1.0)
        power = np.log(self.price(few) / self.price(many)) / np.log(many / few)
        return float(np.clip(power, LEAST_ELASTICITY, 1.0))

    def marginal(self, share: float) -> float:
        """Find the match points that one more run-step brings at a share of the work.

        A price by itself says little beside that of another history: it is in match points per power of run-steps.
        Taken from the upper hull of the replays' work and match points; between its edges by logarithms.

        Examples
        --------
        >>> prices = Prices((PricePoint(0, 1000, 50), PricePoint(2.0, 200, 40), PricePoint(8.0, 50, 20)))
        >>> [round(prices.marginal(share), 3) for share in (0.05, 0.1, 0.2, 0.5)]
        [0.4, 0.133, 0.045, 0.013]
        """
        work = max(share * self.replays[0].steps, 1.0)
        return float(np.exp(np.interp(np.log(work), *self._slopes)))

    def share_at(self, marginal: Floats) -> Floats:
        """The share of the work at which one more run-step finds so many match points: see ``marginal``."""
        (works, slopes), steps = self._slopes, max(self.replays[0].steps, 1)
        asked = np.log(np.maximum(marginal, 1e-300))
        shares = np.minimum(np.exp(np.interp(-asked, -slopes, works)) / steps, 1.0)
        return np.where(asked > slopes[0], 0.0, np.where(asked < slopes[-1], 1.0, shares))

    def best_found(self, share: Floats | float) -> Floats:
        """The match points that a share of the work finds at best: on the upper hull of the replays.

        Examples
        --------
        >>> prices = Prices((PricePoint(0, 1000, 50), PricePoint(2.0, 200, 40), PricePoint(8.0, 50, 20)))
        >>> prices.best_found(np.array([0.025, 0.1, 1.0])).round(1).tolist()
        [10.0, 26.7, 50.0]
        >>> prices.share_at(np.array([9.0, 0.133, 1e-4])).round(2).tolist()
        [0.0, 0.1, 1.0]
        """
        work, points = zip(*self._hull, strict=True)
        return np.asarray(np.interp(np.asarray(share) * self.replays[0].steps, work, points), np.float64)

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        """Logarithms of work, and of what one more run-step finds there; a purse asks for them at every move.

        Behind the replay that finds all with the least work, more work finds nothing.
        """
        exact, most = self.replays[0].steps, self._hull[-1]
        hull = self._hull if most[0] >= exact else [*self._hull, (exact, most[1])]
        between = list(pairwise(hull)) or [((0, 0), (1, 0))]
        middle = [math.sqrt(max(one[0], 1) * another[0]) if one[0] else another[0] for one, another in between]
        return np.log(middle), np.log([max(_slope(*edge), LEAST_PRICE) for edge in between])

    @cached_property
    def _hull(self) -> list[tuple[int, int]]:
        """Work and match points of the replays that find most with their work, at rising work; from none of both."""
        hull = [(0, 0)]
        for steps, points in sorted((replay.steps, replay.points) for replay in self.replays if replay.steps > 0):
            while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-2], (steps, points)):
                hull.pop()
            if steps > hull[-1][0] and points > hull[-1][1]:
                hull.append((steps, points))
        return hull

    def at(self, others: Prices) -> Prices:
        """The same work and points, at the prices that others have for that work."""
        exact = self.replays[0]
        moved = [
            replace(replay, price=others.price(replay.steps / exact.steps), rows=no_ints(), cells=no_ints())
            for replay in self.replays[1:]
            if replay.steps > 0
        ]
        return Prices((exact, *sorted(moved, key=lambda replay: replay.price)))

    def bare(self) -> Prices:
        """The same without the rows of match points."""
        return Prices(tuple(replace(replay, rows=no_ints(), cells=no_ints()) for replay in self.replays))

    def recall(self, share: float) -> float:
        """The recall that a share of the work gave; between replays by the logarithm of the share.

        Where these are far apart by the share itself: then it is that of both in turns.

        Examples
        --------
        >>> prices = Prices((PricePoint(0, 1000, 50), PricePoint(0.1, 200, 40), PricePoint(0.2, 1, 0)))
        >>> [round(prices.recall(share), 2) for share in (0.1, 0.2, 0.4)]
        [0.4, 0.8, 0.89]
        """
        return float(self._weights(share) @ self.recalls)

    def in_stretches(self, share: float) -> tuple[Floats, Floats]:
        """Match points found with a share of the work in each stretch of the past, and all that were there.

        Both are empty where a replay does not remember.
        """
        lengths = {len(replay.stretches) for replay in self.replays}
        if len(lengths) > 1 or not max(lengths):
            return np.zeros(0), np.zeros(0)
        every = np.array([replay.stretches for replay in self.replays], np.float64)
        return np.minimum(self._weights(share) @ every, every[0]), every[0]

    def found(self, share: float) -> Floats:
        """The same for each match point of the exact run: how much of it was found, from 0 to 1."""
        rows = self.replays[0].rows
        found = np.zeros(len(rows))
        for weight, replay in zip(self._weights(share), self.replays, strict=True):
            found += weight * np.isin(rows, replay.rows)
        return found

    def are_far_apart(self, shares: Sequence[float]) -> bool:
        """Whether some of these shares lies between two replays that say nothing of it.

        Examples
        --------
        >>> prices = Prices((PricePoint(0, 1000, 50), PricePoint(0.1, 200, 40), PricePoint(0.2, 1, 0)))
        >>> prices.are_far_apart([0.1]), prices.are_far_apart([0.2, 0.4])
        (True, False)
        """
        known = np.unique(self.shares[self.shares > 0])
        gaps = [(few, many) for few, many in pairwise(known.tolist()) if many >= WIDE * few]
        return any(few < share < many for share in shares for few, many in gaps)

    def _weights(self, share: float) -> Floats:
        """How much each replay says about a share of the work."""
        weights, shares = np.zeros(len(self.replays)), self.shares
        order = np.argsort(shares, kind="stable")
        order = order[shares[order] > 0]
        if len(order) and share > 0:
            place = float(np.interp(np.log(share), np.log(shares[order]), np.arange(len(order))))
            low, high = int(np.floor(place)), int(np.ceil(place))
            few, many = shares[order[[low, high]]]
            of_more = (share - few) / (many - few) if many >= WIDE * few else place - low
            weights[order[high]] = of_more
            weights[order[low]] = 1 - of_more
            weights *= min(share / shares[order[0]], 1.0)
        return weights


def _slope(one: tuple[int, int], another: tuple[int, int]) -> float:
    return (another[1] - one[1]) / max(another[0] - one[0], 1)


def learn_prices(
    plan: Plan,
    worth: Worth,
    past: Sequence[EventBatch],
    bind: Callable[[Execution], None],
    *,
    known: Sequence[PricePoint] = (),
    begin: float | None = None,
    most: int = 14,
    most_share: float = 0.5,
) -> Prices:
    """Run over the past at several prices.

    Parameters
    ----------
    plan : Plan
    worth : Worth
        What runs are worth.
    past : sequence of EventBatch
        Events that ``worth`` was not learned from.
    bind : callable
        Binds a matcher to the columns of these events.
    known : sequence of PricePoint
        Runs that need not be done again: the exact one first.
    begin : float, optional
        A price that is tried first; default: one that sheds most, if all vertices were alike.
    most : int, default 14
        Runs in all.
    most_share : float, default 0.5
        Share of the exact run's work up to which prices are looked for.

    Complexity: so many runs, of which the dear ones do little.
    """
    first_row, events = (past[0].first_row if past else 0), sum(map(len, past))

    def run(price: float) -> PricePoint:
        noting = _Noting(Shedding(worth, Allowance(price=price, reserve=-1.0)))
        matcher = Execution(plan, output=BARE, merge=LISTED, shedding=noting)
        bind(matcher)
        for batch in past:
            for _ in matcher.run(batch):
                pass
        assert matcher.pipeline is not None
        steps = matcher.progress.steps + int(noting.arena.on_passes)
        points, rows, cells = noting.found(matcher.pipeline.window)
        stretch = (rows - first_row) * STRETCHES // max(events, 1)
        counts = np.bincount(stretch, minlength=STRETCHES)
        return PricePoint(price, steps, points, rows, cells, tuple(counts.tolist()))

    found = list(known) or [run(0.0)]
    if found[0].steps:
        if len(found) == 1:
            if begin is None:
                begin = max(float(np.quantile(worth.gain / worth.cost, 0.9)), LEAST_PRICE)
            found.append(run(begin))
            factor = FACTOR
            while len(found) < most - 3 and found[-1].steps > LEAST_SHARE * found[0].steps:
                found.append(run(found[-1].price * factor))
                factor *= FACTOR  # by more each time
        price, factor = min(replay.price for replay in found[1:]), FACTOR
        while len(found) < most - 1 and max(replay.steps for replay in found[1:]) < most_share * found[0].steps:
            price /= factor
            found.append(run(price))
            factor *= FACTOR
        _fill(found, run, most)
    return Prices(tuple(sorted(found, key=lambda replay: replay.price)))


def first_price(worth: Worth, share: float) -> float:
    """A price to begin with where none was learned: that of the best share of all vertices, and of the coins."""
    best = float(np.quantile(worth.gain / worth.cost, 1 - share))
    return max(best, LEAST_PRICE) * worth.spread / (worth.spread + share)


def _fill(found: list[PricePoint], run: Callable[[float], PricePoint], most: int) -> None:
    """Halve the widest gap between shares from 1% to half until all are close."""
    least, half = LEAST_SHARE * found[0].steps, found[0].steps / 2
    while len(found) < most:
        some = sorted(found[1:], key=lambda replay: replay.price)
        gaps = [
            (np.log(min(low.steps, half) / max(high.steps, least)), (low.price * high.price) ** 0.5)
            for low, high in pairwise(some)
            if low.steps > least and high.steps < half
        ]
        gap, between = max(gaps, default=(0.0, 0.0))
        if gap < np.log(CLOSE):
            return
        found.append(run(between))


class _Noting(FixedLoad):
    def __init__(self, arena: Shedding) -> None:
        super().__init__(arena)
        self._noted = [np.empty((3, 0), np.int64)]

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Note their rows, keys and ticks; two runs of one event are one match point."""
        event = np.unique(hits.event)
        self._noted.append(np.stack([events.row[event], events.slot[event], events.tick[event]]))

    def found(self, window: int) -> tuple[int, Ints, Ints]:
        """Number, rows and cells of the match points; a cell is one key for the time of a window."""
        rows, slots, ticks = np.concatenate(self._noted, axis=1)
        order = np.argsort(rows, kind="stable")
        cells = np.stack([slots, ticks // (window + 1)])[:, order]
        return len(rows), rows[order], np.unique(cells, axis=1, return_inverse=True)[1].reshape(-1)
