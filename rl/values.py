"""What a run is worth, from how often its steps are taken: dynamic programming over the remaining window.

Source: the backward recursion of a Markov process with a finite horizon (Bellman 1957; the chance that a partial match
completes as a Markov chain: pSPICE, Slo et al., Middleware 2019). Children are taken as they are in the middle of a
slot, foretold from the two slots before as by the explicit Adams method of order 2 (Hairer, Norsett and Wanner, Solving
Ordinary Differential Equations I, section III.1). Ours: the time since the last event as part of the state, and the max
backup. A run goes on beside its child and its child reaches no more than it does (except through what the child
remembers), so values of parent and child do not add up: the larger counts. That is exact for patterns whose runs
remember nothing, as slots get short; else it is a lower bound.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from history.arrays import Floats, Ints
from history.values import LEAST_COST, Values
from history.vectors import Scheme
from rl.chart import Chart, Pairs

SLOTS = 2
"""Slots that a part of the window is cut into."""


@dataclass(frozen=True)
class Grid:
    """Slots of the remaining window, and ages (slots since the last event) up to where they make no difference.

    Parameters
    ----------
    scheme : history.vectors.Scheme
        Its window and buckets; its places do not matter.

    Examples
    --------
    >>> grid = Grid(Scheme((), window=160))
    >>> grid.slots, grid.slot, grid.late.tolist()
    (16, 10.0, [1, 2, 2, 2, 3])
    """

    scheme: Scheme

    @property
    def slots(self) -> int:
        """How many there are."""
        return self.scheme.remaining * SLOTS

    @property
    def slot(self) -> float:
        """Ticks of one."""
        return self.scheme.window / self.slots

    @cached_property
    def late(self) -> Ints:
        """Bucket of the time since the last event in the middle of the slot that begins at each age."""
        middles = (np.arange(self.slots + 1) + 0.5) * self.slot
        bucket = np.searchsorted(self.scheme.since_limits, middles, side="left")
        return bucket[: 1 + int(np.argmax(bucket == bucket[-1]))].astype(np.int64)

    @property
    def ages(self) -> int:
        """How many there are."""
        return len(self.late)

    def means(self, worth: Floats) -> Floats:
        """Means of each vertex, over what is in it and can occur.

        Parameters
        ----------
        worth : float64 array, shape (kinds, groups, slots + 1, ages)
            What is known at the ends of slots.

        Returns
        -------
        float64 array, shape (kinds, vertices)
            Straight lines are drawn between the ends of slots.
        """
        kinds, groups = worth.shape[:2]
        flat, step = worth.reshape(kinds * groups, -1), SLOTS * self.ages
        means = np.empty((kinds * groups, self.scheme.remaining, len(self.scheme.since) + 1))
        for part, weights in enumerate(self._weights):
            means[:, part] = flat[:, part * step : part * step + len(weights)] @ weights
        return means.reshape(kinds, -1)

    @cached_property
    def _weights(self) -> Floats:
        """How much each end of a slot and age counts; shape (parts, (slots of a part + 1) * ages, buckets)."""
        buckets = len(self.scheme.since) + 1
        weights = np.zeros((self.scheme.remaining, SLOTS + 1, self.ages, buckets))
        for part, own, bucket in product(range(self.scheme.remaining), range(SLOTS), range(buckets)):
            for young, old in self._ages(bucket):
                # ages from here on that can occur with so much left
                most = max(self.slots - part * SLOTS - own - young, 0)
                times = most if old == young and self.late[young] == bucket else min(most, 1)
                for age in (young, old):
                    # where nothing can occur, as if a run could be that late
                    weights[part, own : own + 2, age, bucket] += times or 1e-12
        weights /= weights.sum(axis=(1, 2), keepdims=True)
        return weights.reshape(self.scheme.remaining, -1, buckets)

    def _ages(self, bucket: int) -> list[tuple[int, int]]:
        """The slots of age in a bucket, as the ages where they begin and end."""
        found = np.flatnonzero(self.late == bucket).tolist()
        if not found:  # shorter than half a slot, as "just bound" is: a moment, the age where it would begin
            moment = min(int(np.searchsorted(self.late, bucket)), self.ages - 1)
            return [(moment, moment)]
        return [(age, min(age + 1, self.ages - 1)) for age in found]


@lru_cache(maxsize=8)
def grid_of(window: int, remaining: int, since: tuple[float, ...]) -> Grid:
    """The same for all schemes of such vertices."""
    return Grid(Scheme((), window, remaining, since))


# --- values -------------------------------------------------------------------------------------------------

_FEW = 1 << 13
"""Numbers that are worked out as fast as a call takes: so many zeros are cheaper than one block of steps more."""


@dataclass(frozen=True)
class Hazards:
    """How often runs take their steps.

    Parameters
    ----------
    passing : float64 array, shape (pairs,)
        Steps taken per tick, by pair of step and vertex (``rl.chart.Pairs``: the vertices of the source of step 0,
        then those of step 1, ...).
    testing : float64 array, shape (pairs,)
        Run-steps (tests) per tick.
    children : tuple of float64 arrays, one per step, shape (groups of its source, groups of its target)
        Chance that the child of a run of a group is of a group; rows sum to 1.
    """

    passing: Floats
    testing: Floats
    children: tuple[Floats, ...]


def solve(chart: Chart, hazards: Hazards) -> Values:
    """Values of all vertices.

    Parameters
    ----------
    chart : Chart
        Places and steps; they may form loops. Its tables are kept for the next time, for the last few charts.
    hazards : Hazards
        How often steps are taken.

    Returns
    -------
    Values
        Means over the slots of the window and the times since the last event that are in a vertex and can occur.

    Notes
    -----
    With slots of dt ticks, m = hazard * dt events of a step in a slot, h the chance that this step is taken in it
    before any other of the place, V the value with one slot less remaining, p the points of all steps in the slot, and
    e = 1 if the step's target ends a match:

    * gain(s) = V(s) + p + sum of h E[max(0, A(child) - V(s) - p / 2)], where p is the sum of m e; of steps by which
      the run leaves: h e in p, and h (E[A(child)] - V(s));
    * chance(s) = V(s) + sum of h E[max(0, max(e, A(child)) - V(s))], or of h (E[max(e, A(child))] - V(s));
    * cost(s) = V(s) + tests until it goes on as another + sum of h (E[A(child)] - V(s)), over steps whose child stays
      or by which the run leaves; here h is the chance to be the first of those.

    A(child) is what the child has in the middle of the slot: V + (V - V of the slot before) / 2, at least 0; in the
    last slot half of what it has by points (or tests) of its own; 0 where it does not stay. Each slot looks only at
    those after it, so loops need no iteration.

    Complexity: O(slots * (vertices + steps * ages * groups of source * groups of target)).
    """
    plan = _plan(chart)
    slots = _SlotEvents.of(plan, hazards)
    room = np.empty(2 * plan.grid.ages * max((block.size() for block in plan.blocks), default=0))
    meetings = [_Meeting(plan, block, hazards.children, room) for block in plan.blocks]
    worth = np.zeros((3, chart.scheme.groups, plan.grid.slots + 1, plan.grid.ages))
    brings = np.zeros((3, len(plan.group) + 1, plan.grid.ages))  # the last row stays 0
    rows, now, before = brings[:, :-1], np.zeros_like(slots.direct[0]), -slots.early
    for slot in range(plan.grid.slots):
        part = slot // SLOTS
        arrival, before = 1.5 * now[:, :, 0] - 0.5 * before, now[:, :, 0].copy()
        np.minimum(np.maximum(arrival, plan.low, out=arrival), plan.high, out=arrival)
        now[:, :, :-1] = now[:, :, 1:]
        base = now.take(plan.group, axis=1)
        base[0] += slots.half[part]
        floor = plan.floor(base)
        for meeting in meetings:
            meeting.take_place(arrival, floor, rows)
        rows -= base
        rows[:2] *= slots.taken[part, 0]
        rows[2] *= slots.taken[part, 1]
        now += slots.direct[part]
        now += brings.take(plan.summands, axis=1).sum(axis=1)
        np.minimum(np.maximum(now[1], 0.0, out=now[1]), 1.0, out=now[1])
        worth[:, :, slot + 1] = now
    gain, chance, cost = plan.grid.means(worth)
    # each match is a point, so the chance of one is at most the points, and 1 but for rounding
    return Values(gain, np.maximum(cost, LEAST_COST), np.minimum(chance, np.minimum(gain, 1.0)))


@dataclass(frozen=True)
class _StepRange:
    """Some steps in a row, and all groups from the first to the last that a child of theirs may have."""

    steps: range
    rows: slice
    columns: slice

    def size(self) -> int:
        return int(self.rows.stop - self.rows.start) * int(self.columns.stop - self.columns.start)

    def with_next(self, other: _StepRange) -> _StepRange:
        low, high = min(self.columns.start, other.columns.start), max(self.columns.stop, other.columns.stop)
        return _StepRange(
            range(self.steps.start, other.steps.stop), slice(self.rows.start, other.rows.stop), slice(low, high)
        )


class _Layout:
    """What does not depend on hazards. A *row* is a step and a group that it leads from, in the order of pairs.

    Attributes
    ----------
    group : int64 array, shape (rows,)
        Source.
    summands : int64 array, shape (most steps of a place, groups)
        The rows of each group; the number of rows where it has no more.
    leaving : int64 array
        Rows of steps by which the run leaves.
    leaves, ends, moves : bool array, shape (pairs,)
        Whether the run ends by the step; whether its target ends a match; whether the run goes on as another or ends.
    low, high : float64 array, shape (3, groups)
        Least and most that a child that arrives is worth: gain, chance and cost.
    """

    def __init__(self, chart: Chart) -> None:
        scheme = chart.scheme
        self.chart, self.pairs = chart, Pairs(chart)
        self.grid = grid_of(scheme.window, scheme.remaining, scheme.since)
        sizes = self.pairs.groups[chart.source]
        step = np.repeat(np.arange(chart.steps), sizes)
        first = np.cumsum(sizes) - sizes
        self.group = np.arange(len(step)) + (scheme.first_group[chart.source] - first)[step]
        self.leaving = np.flatnonzero(chart.leaves[step])
        each = self.pairs.step
        self.leaves, self.ends = chart.leaves[each], chart.ends[chart.target[each]]
        self.moves = self.leaves | chart.stays[chart.target[each]]
        nth = np.array([int((chart.source[:one] == place).sum()) for one, place in enumerate(chart.source)], np.int64)
        self.summands = np.full((int(nth.max(initial=-1)) + 1, scheme.groups), len(step), np.int64)
        self.summands[nth[step], self.group] = np.arange(len(step))
        ends, stays = (flags[scheme.place_of_group].astype(np.float64) for flags in (chart.ends, chart.stays))
        self.low = np.stack([0.0 * ends, ends, 0.0 * ends])
        most = np.where(stays > 0, np.inf, 0.0)
        self.high = np.stack([most, np.maximum(stays, ends), most])
        self.blocks = self._blocks(first, first + sizes)

    def _blocks(self, first: Ints, stop: Ints) -> list[_StepRange]:
        found: list[_StepRange] = []
        for step in range(self.chart.steps):
            block = _StepRange(range(step, step + 1), slice(int(first[step]), int(stop[step])), self.columns(step))
            if found and found[-1].with_next(block).size() * self.grid.ages <= _FEW:
                block = found.pop().with_next(block)
            found.append(block)
        return found

    def columns(self, step: int) -> slice:
        """Groups that children may have; of those that do not stay one stands for all, as they are alike."""
        target = int(self.chart.target[step])
        own = self.pairs.groups_of(target)
        return own if self.chart.stays[target] else slice(own.start, own.start + 1)

    def floor(self, base: Floats) -> Floats:
        """What a child must be worth to bring more: what its parent has, if that goes on beside it."""
        if not len(self.leaving):
            return base[:2]
        floor = base[:2].copy()
        floor[:, self.leaving] = -np.inf
        return floor


_PLANS: deque[_Layout] = deque(maxlen=8)


def _plan(chart: Chart) -> _Layout:
    """The same for the same chart; charts hold arrays, so they cannot be keys."""
    for plan in tuple(_PLANS):
        if plan.chart is chart:
            return plan
    made = _Layout(chart)
    _PLANS.append(made)
    return made


class _Meeting:
    """A block with the shares of children, filled in.

    Parameters
    ----------
    plan : _Layout
        Of the chart.
    block : _StepRange
        One of its blocks.
    children : tuple of float64 arrays
        As in ``Hazards``.
    room : float64 array, shape (ages * size of the largest block * 2,)
        Where all blocks work in turn: it stays in the processor's cache.
    """

    def __init__(self, plan: _Layout, block: _StepRange, children: tuple[Floats, ...], room: Floats) -> None:
        self.rows, self.columns = block.rows, block.columns
        size, width = block.rows.stop - block.rows.start, block.columns.stop - block.columns.start
        self.shares, row = np.zeros((size, width)), 0
        for step in block.steps:
            own, born = plan.columns(step), children[step]
            low, high = own.start - block.columns.start, own.stop - block.columns.start
            self.shares[row : row + len(born), low:high] = born if high - low == born.shape[1] else 1.0
            row += len(born)
        self.larger = room[: 2 * plan.grid.ages * size * width].reshape(size, 2, plan.grid.ages, width)

    def take_place(self, arrival: Floats, floor: Floats, brings: Floats) -> None:
        """Mean of the larger one of child and floor (gain and chance), and of the child (cost), for each row."""
        coming, ages = arrival[:, self.columns], self.larger.shape[2]
        np.copyto(self.larger, floor[:, self.rows].transpose(1, 0, 2)[..., None])
        flat = self.larger.reshape(len(self.larger), -1)
        np.maximum(flat, np.repeat(coming[:2], ages, axis=0).ravel(), out=flat)
        mean = self.larger.reshape(len(flat), 2 * ages, -1) @ self.shares[..., None]
        brings[:2, self.rows] = mean.reshape(-1, 2, ages).transpose(1, 0, 2)
        brings[2, self.rows] = (self.shares @ coming[2])[:, None]


@dataclass(frozen=True)
class _SlotEvents:
    """What happens in a slot, by the part of the window that it is in.

    Parameters
    ----------
    taken : float64 array, shape (parts, 2, rows, ages)
        Chance of a step, for gain and chance, and for cost.
    half : float64 array, shape (parts, rows, ages)
        Half of the points of a run that goes on beside its child.
    direct : float64 array, shape (parts, 3, groups, ages)
        Points (gain) and tests (cost) of the run itself.
    early : float64 array, shape (3, groups)
        The same for a run that has just bound an event in the last slot, and its chance.
    """

    taken: Floats
    half: Floats
    direct: Floats
    early: Floats

    @classmethod
    def of(cls, plan: _Layout, hazards: Hazards) -> _SlotEvents:
        chart, pairs, grid = plan.chart, plan.pairs, plan.grid

        def by_vertex(column: Floats) -> Floats:
            return np.bincount(pairs.vertex, weights=column, minlength=chart.scheme.vertices).astype(np.float64)

        def by_part(columns: Floats) -> Floats:
            cells = columns.reshape(len(columns), -1, chart.scheme.remaining, len(chart.scheme.since) + 1)
            return np.ascontiguousarray(cells.transpose(2, 0, 1, 3)[..., grid.late])

        moving = np.where(plan.moves, hazards.passing, 0.0)
        chance = hazards.passing * _until_first(by_vertex(hazards.passing), grid.slot)[pairs.vertex]
        until = _until_first(by_vertex(moving), grid.slot)
        points = by_vertex(np.where(plan.leaves, chance, hazards.passing * grid.slot) * plan.ends)
        direct = by_part(np.stack([points, by_vertex(chance * plan.ends), by_vertex(hazards.testing) * until]))
        early = direct[0, :, :, 0].copy()
        direct[:, 1] = 0.0  # chances do not add up: they are worked out step by step
        half = 0.5 * direct[:, 0].take(plan.group, axis=1)
        half[:, plan.leaving] = 0.0
        return cls(by_part(np.stack([chance, moving * until[pairs.vertex]])), half, direct, early)


def _until_first(hazard: Floats, slot: float) -> Floats:
    """Mean ticks of a slot that pass until something comes, or until it ends: (1 - exp(-hazard slot)) / hazard."""
    until = np.divide(-np.expm1(-hazard * slot), hazard, out=np.full(len(hazard), slot), where=hazard > 0)
    return np.asarray(until, np.float64)
