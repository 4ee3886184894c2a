"""What a learner learns from: events, tests of live runs, outcomes of live lineages. Nothing that was shed is in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from history.arrays import Columns, Floats, Ints


@dataclass(frozen=True)
class Events:
    """Which events came, whatever was shed: what is never censored.

    Attributes
    ----------
    tick : int
        Of the last one; never before that of the records before.
    counts : float64 array, shape (letters,)
        Events of each letter.
    total : float
        Events in all; one may have several letters.
    by_key : float64 array, shape (buckets, letters + 1), optional
        The same by bucket of keys: events of each letter, and last events in all; default: not known.
    """

    tick: int
    counts: Floats
    total: float
    by_key: Floats | None = None


@dataclass(frozen=True)
class Tests:
    """Tests of live runs: parallel columns, one row for a run, a step and an event.

    Which events are looked at is decided by a coin per event that knows nothing of runs, so that a row is as good as
    any other; its weight is one by the chance that it was looked at. Passed tests are rare and tell more, so they may
    be looked at more often: ``passed`` has a weight of its own, and ``seen`` is 0 where only that brought the row in.
    A run that is shed is no longer tested. That is all: it says nothing about what would have become of it.

    Attributes
    ----------
    step : int64 array, shape (rows,)
        Which step of the chart.
    vertex : int64 array, shape (rows,)
        Where the run stood.
    rate : float64 array, shape (rows,)
        Events of the run's key per tick, as they came of late: above 0.
    seen, tested, passed : float64 array, shape (rows,)
        The row's weight in each, or 0: the run lived when an event of the step's letter came; it was tested (an index
        leaves out runs that it knows to fail); it passed.
    child : int64 array, shape (rows,)
        Group of the child, over all places; -1 where there is none that goes on.
    tick : int64 array, shape (rows,), optional
        When; default: with the last of the events. Drift is noticed the sooner, the finer this is.
    key : int64 array, shape (rows,), optional
        Bucket of the key of the run, -1: not known; default: of none.
    """

    step: Ints
    vertex: Ints
    rate: Floats
    seen: Floats
    tested: Floats
    passed: Floats
    child: Ints
    tick: Ints | None = None
    key: Ints | None = None


@dataclass(frozen=True)
class Lineages(Columns):
    """Outcomes of lineages of the cohort, in which nothing is shed: parallel columns, one row for a visit of a run.

    Attributes
    ----------
    tick : int64 array, shape (rows,)
        When the run was there.
    vertex : int64 array, shape (rows,)
        Where it stood.
    points : int64 array, shape (rows,)
        Match points that it led to.
    weight : float64 array, shape (rows,)
        One by the chance that the lineage is in the cohort.
    """

    tick: Ints
    vertex: Ints
    points: Ints
    weight: Floats

    @classmethod
    def none(cls) -> Lineages:
        """No outcome is known yet."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, np.zeros(0))
