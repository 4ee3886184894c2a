"""How long things take here, measured: events and run-steps of a run, and what a micro-batch takes beside its matchers.

A budget of time is that of a micro-batch as a whole. Beside the matchers Spark plans, reads, shuffles, keeps state and
writes, and the driver learns. That is taken for base + rows * per_row seconds, by least squares over the last
micro-batches. A margin is added, from how far the last forecasts fell short: nineteen of twenty micro-batches are to
stay within the budget, and not only every other. Ours.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from acep_approx.budget.budget import Budget
from acep_approx.ranges import finite
from history.files import JsonFile

EVENT_SECONDS, STEP_SECONDS = 3e-7, 1e-8
"""What is assumed before anything was measured."""
LEAST_PIECES, MOST_ALIKE = 8, 0.99
"""Pieces from which on times are told, and how much alike (a squared cosine) their loads may be."""
CLOCK_PRIOR = 1e-6
"""How much the assumption counts for, beside one piece."""


@dataclass
class StepClock:
    """Least squares of seconds on events and run-steps, over the last pieces of the stream.

    Both are at least a twentieth of what is assumed: a clock that jumps must not make work free.

    Examples
    --------
    >>> clock = StepClock()
    >>> for steps in (0, 10_000, 200_000):
    ...     clock.observe(1000, steps, 1000 * 2e-6 + steps * 5e-9)
    >>> round(clock.event_seconds * 1e6, 1), round(clock.step_seconds * 1e9, 1)
    (2.0, 5.0)
    """

    event_seconds: float = EVENT_SECONDS
    step_seconds: float = STEP_SECONDS
    pieces: int = 0
    _products: tuple[float, float, float] = field(default=(0.0, 0.0, 0.0), repr=False)
    _answers: tuple[float, float] = field(default=(0.0, 0.0), repr=False)

    def observe(self, events: int, steps: int, seconds: float) -> None:
        """A piece of the stream took so long. Complexity: O(1)."""
        self.pieces += 1
        (squares, both, of_steps), (first, second) = self._products, self._answers
        squares = FORGET * squares + float(events * events)
        both = FORGET * both + float(events * steps)
        of_steps = FORGET * of_steps + float(steps * steps)
        first, second = FORGET * first + events * seconds, FORGET * second + steps * seconds
        self._products, self._answers = (squares, both, of_steps), (first, second)
        ridge, ridge_of_steps = CLOCK_PRIOR * squares + 1.0, CLOCK_PRIOR * of_steps + 1.0
        squares, of_steps = squares + ridge, of_steps + ridge_of_steps
        first, second = first + ridge * EVENT_SECONDS, second + ridge_of_steps * STEP_SECONDS
        whole = squares * of_steps - both * both
        self.event_seconds = max((of_steps * first - both * second) / whole, EVENT_SECONDS / 20)
        self.step_seconds = max((squares * second - both * first) / whole, STEP_SECONDS / 20)

    @property
    def is_known(self) -> bool:
        """Whether events and run-steps can be told apart: by enough pieces of different load."""
        events, both, steps = self._products
        return self.pieces >= LEAST_PIECES and both**2 < MOST_ALIKE * events * steps

    def snapshot(self) -> list[float]:
        """All that was measured, as JSON."""
        events, both, steps = self._products
        return [self.event_seconds, self.step_seconds, events, both, both, steps, *self._answers]

    @classmethod
    def restored(cls, saved: list[float]) -> StepClock:
        """What ``snapshot`` gave."""
        finite("clock", *saved)
        event_seconds, step_seconds, events, both, _, steps, *answers = saved
        return cls(event_seconds, step_seconds, 0, (events, both, steps), (answers[0], answers[1]))

    def steps_in(self, seconds: float, events: int) -> float:
        """Run-steps that fit into ``seconds`` beside what ``events`` take in any case; at least 0."""
        return max(seconds - events * self.event_seconds, 0.0) / self.step_seconds


# --- what a micro-batch takes beside its matchers -----------------------------------------------------------

ASSUMED_SHARE = 0.7
"""Of a micro-batch that is not the matchers', as long as nothing was measured."""
LEAST_SHARE = 0.1
"""Of the time that matchers have in any case: something must be found, however slow the rest is."""
BASE, PER_ROW = 0.3, 1e-6
"""Seconds that are assumed; they count only where what was measured does not tell the two apart."""
PRIOR = 0.01
"""How much the assumption counts for, beside one micro-batch."""
FORGET = 0.9
"""What a micro-batch, or a piece of a stream, still counts for when the next one is measured."""
MOST_LEAP = 2.0
"""A micro-batch counts for so many times the forecast at most: one that is slow once must not starve those after it.
One that is as many times faster has all before it forgotten."""
ERRORS, QUANTILE = 120, 0.965
"""So many errors of forecasts are kept; the margin is this quantile of them, and the largest where they are few. It is
above nineteen of twenty, because the time of the next micro-batch spreads a little more than those it is known from.
With many, a single slow micro-batch does not decide."""
LEAST_MARGIN = 0.05
"""Of the forecast."""
UNIT = 1e5
"""Rows that count as one in the sums, so that base and slope are of one size."""


@dataclass(frozen=True)
class Overhead(JsonFile):
    """Seconds of a micro-batch that are not the matchers'.

    Attributes
    ----------
    base, per_row : float
        Seconds of any micro-batch, and for each row that comes in or is matched.
    margin : float
        Seconds that are added.
    batch : int
        The last micro-batch that was measured; -1: none.
    products : tuple of 3 float
        Sums over micro-batches, forgotten step by step: 1, rows, rows squared, with rows in units of 100,000.
    answers : tuple of 2 float
        Likewise seconds, and seconds times rows.
    errors : tuple of float
        Seconds by which the last micro-batches were above the forecast; newest last.
    of_shards : tuple of float
        Events matched in each shard, forgotten step by step; empty where nothing is known.
    """

    FILE = "overhead.json"
    base: float = BASE
    per_row: float = PER_ROW
    margin: float = 0.0
    batch: int = -1
    products: tuple[float, ...] = (0.0, 0.0, 0.0)
    answers: tuple[float, ...] = (0.0, 0.0)
    errors: tuple[float, ...] = ()
    of_shards: tuple[float, ...] = ()

    def seconds(self, rows: int) -> float:
        """Forecast for so many rows, without the margin."""
        return self.base + rows * self.per_row

    def observe(self, batch: int, rows: int, seconds: float, of_shards: Sequence[int] = ()) -> Self:
        """After a micro-batch: the forecast for the next one.

        Parameters
        ----------
        batch : int
            Its number; one that is known already changes nothing.
        rows : int
            That came in, and that were matched, added up.
        seconds : float
            That were not the matchers'.
        of_shards : sequence of int, optional
            Events that were matched in each shard.
        """
        if batch <= self.batch:
            return self
        known, errors = self.seconds(rows), self.errors
        if self.is_known and seconds < known / MOST_LEAP:  # what was measured was the start of a job, or a bad time
            return replace(type(self)(), of_shards=self.of_shards).observe(batch, rows, seconds, of_shards)
        if self.products[0] > 1:  # a forecast from a single micro-batch, of other rows, tells nothing of the spread
            errors = (*errors, seconds - known)[-ERRORS:]
        if self.is_known:
            seconds = min(seconds, MOST_LEAP * known)
        size = rows / UNIT
        products = np.array(self.products) * FORGET + [1.0, size, size**2]
        answers = np.array(self.answers) * FORGET + [seconds, seconds * size]
        base, slope = _solved(products, answers)
        made = replace(self, base=base, per_row=slope / UNIT, batch=batch, errors=errors)
        if of_shards:
            before = self.of_shards if len(self.of_shards) == len(of_shards) else (0.0,) * len(of_shards)
            made = replace(made, of_shards=tuple(FORGET * a + b for a, b in zip(before, of_shards, strict=True)))
        made = replace(made, products=tuple(products.tolist()), answers=tuple(answers.tolist()))
        margin = LEAST_MARGIN * made.seconds(rows)
        if errors:  # with as many forecasts above it as one may expect of the next
            margin = max(float(np.quantile(errors, QUANTILE, method="weibull")), margin)
        return replace(made, margin=margin)

    def times_of(self, shard: int, shards: int) -> float:
        """How many times as many events as this shard all shards together get: it knows only its own.

        A shard counts as if it had got one event more, so that one which hardly gets any does not say that there are
        without end.

        Examples
        --------
        >>> Overhead().times_of(0, 4), Overhead(of_shards=(299.0, 99.0)).times_of(1, 2)
        (4.0, 4.0)
        """
        known = self.of_shards if len(self.of_shards) == shards else (0.0,) * shards
        return (sum(known) + shards) / (known[shard] + 1)

    @property
    def is_known(self) -> bool:
        """Whether anything was measured."""
        return self.batch >= 0

    def granted(self, budget: Budget, rows: int, matched: int) -> Budget:
        """What is left of a job's budget for its matchers.

        Parameters
        ----------
        budget : Budget
            Of the micro-batch as a whole; one that needs no clock is given back as it is.
        rows : int
            As for ``observe``.
        matched : int
            Those of them that are matched.

        Examples
        --------
        >>> str(Overhead(0.5, 1e-6, 0.1, batch=7).granted(Budget.parse("2 s/batch"), 400_000, 200_000))
        '1000 ms/batch'
        >>> str(Overhead(0.5, 1e-6, 0.1, batch=7).granted(Budget.parse("100k events/s"), 400_000, 200_000))
        '200000 events/s'
        >>> str(Overhead().granted(Budget.parse("20%"), 400_000, 200_000))
        '20%'
        """
        if not budget.needs_clock or not matched:
            return budget
        whole = whole_seconds(budget, matched)
        beside = self.seconds(rows) + self.margin if self.is_known else ASSUMED_SHARE * whole
        left = max(whole - beside, LEAST_SHARE * whole)
        return replace(budget, amount=left * 1e3 if budget.unit == "ms/batch" else matched / left)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """What ``save`` wrote; what is assumed where there is none, or it cannot be that."""
        made = cls.read(folder, cls._of)
        return made if made is not None and made._can_be() else cls()

    @classmethod
    def _of(cls, found: Any) -> Self:
        lists = {name: tuple(map(float, found[name])) for name in ("products", "answers", "errors")}
        lists["of_shards"] = tuple(map(float, found.get("of_shards", ())))  # an older version does not know them
        numbers = {name: float(found[name]) for name in ("base", "per_row", "margin")}
        return cls(**numbers, batch=int(found["batch"]), **lists)  # type: ignore[arg-type]

    def _can_be(self) -> bool:
        sizes = len(self.products), len(self.answers), len(self.errors) <= ERRORS
        positive = self.base, self.per_row, self.margin, *self.products, *self.of_shards
        are_amounts = all(0 <= one < math.inf for one in positive)
        return sizes == (3, 2, True) and are_amounts and all(map(math.isfinite, (*self.answers, *self.errors)))


def whole_seconds(budget: Budget, matched: int) -> float:
    """How long a micro-batch in which so many events are matched may take as a whole, by a budget of time.

    Examples
    --------
    >>> whole_seconds(Budget.parse("2 s/batch"), 500), whole_seconds(Budget.parse("1k events/s"), 500)
    (2.0, 0.5)
    """
    return budget.amount / 1e3 if budget.unit == "ms/batch" else matched / budget.amount


def _solved(products: np.ndarray, answers: np.ndarray) -> tuple[float, float]:
    """Base and seconds for ``UNIT`` rows, neither below 0."""
    one, size, square = products
    assumed = np.array([BASE, PER_ROW * UNIT])
    ridge = np.diag([PRIOR * one, PRIOR * square + 1e-9])
    base, slope = np.linalg.solve(np.array([[one, size], [size, square]]) + ridge, answers + ridge @ assumed)
    if slope < 0:
        return max(float(answers[0] / one), 0.0), 0.0
    return (float(base), float(slope)) if base >= 0 else (0.0, max(float(answers[1] / max(square, 1e-9)), 0.0))
