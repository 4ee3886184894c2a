"""All matches at the match points that a budgeted run found: the regions before them are matched again, exactly.

Under a budget one run stands for others that lead to the same match points, so few of the matches of each are listed.
Source: approximate proxy match, Li and Ge, PVLDB 2016, section 3.3; a reconstruction (docs/how-it-works/paper.md).
Definition 3 says that a found region is enumerated afterwards, and section 3.2 how it grows: "we could extend t on both
sides of the stream (forward and backward) by w at a time, and do a match in the local area of t until an extension
resulted in no more matches". That finds the rest of each match bundle, also the match points that the run has missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.stream import EventBatch
from acep_approx.matching.choice import OutputKind
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.tables import joined
from history.coverage.proxy import regions


@dataclass
class Expansion:
    """What it took to expand what a budget found; outside of that budget.

    Attributes
    ----------
    rounds : int
        Times that regions were extended by a window on both sides; the last one found no more.
    events, steps : int
        Events that were matched again, and run-steps of that, over all rounds and the listing.
    """

    rounds: int = 0
    events: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Again:
    """A stream that can be read again.

    Parameters
    ----------
    matcher : callable
        Makes an exact matcher of an output, bound to the columns of the events.
    batches : callable
        The events, once more.
    cost : Expansion
        Is added to.
    """

    matcher: Callable[[OutputKind], Execution]
    batches: Callable[[], Iterable[EventBatch]]
    cost: Expansion

    def run(self, output: OutputKind, first: Ints, last: Ints) -> tuple[pa.Table, Ints]:
        """What an exact run over the events of some regions finds, and the rows in the stream of these events.

        Parameters
        ----------
        output : str
        first, last : int64 arrays
            First and last tick of each region; disjoint and in order.
        """
        matcher = self.matcher(output)
        assert matcher.pipeline is not None
        tables, rows, seen = [matcher.pipeline.nothing()], [np.zeros(0, np.int64)], 0
        for batch in self.batches():
            inside = _inside(batch.ticks, first, last)
            if len(inside):
                rows.append(batch.first_row + inside)
                tables += matcher.run(EventBatch(seen, batch.ticks[inside], batch.data.take(pa.array(inside))))
                seen += len(inside)
        found = joined([*tables, *matcher.pipeline.finish()], matcher.pipeline.nothing().schema)
        self.cost.events += seen
        self.cost.steps += matcher.progress.steps
        return found, np.concatenate(rows)


def ticks_of(found: pa.Table) -> Ints:
    """When matches, or match points, end."""
    ends: Ints = found["end"].combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    return ends


def _inside(ticks: Ints, first: Ints, last: Ints) -> Ints:
    """Which of some ticks lie in one of the regions."""
    if not len(first):
        return np.zeros(0, np.int64)
    region = np.searchsorted(first, ticks, side="right") - 1
    return np.flatnonzero((region >= 0) & (ticks <= last[np.maximum(region, 0)]))


def whole_bundles(again: Again, ticks: Ints, window: int, late: int) -> Ints:
    """The match points of all bundles that have one of some match points, over all keys together.

    Parameters
    ----------
    again : Again
    ticks : int64 array
        Times of the match points that were found.
    window : int
        In ticks.
    late : int
        Ticks behind a region that must be seen to know its matches: a window where a negation ends the pattern, else 0.

    Returns
    -------
    int64 array
        Ticks, in order. Complexity: a round for each window by which a bundle grows; each reads the stream, and matches
        the events less than two windows before and one behind the match points that the round before has found.
    """
    known = new = np.unique(ticks)
    while len(new):
        again.cost.rounds += 1
        _, first, last = regions(new + window, 2 * window)  # [t - w, t + w]
        found, _ = again.run("points", first - window, last + late)
        ends = np.unique(ticks_of(found))
        new = np.setdiff1d(ends[_inside(ends, first, last)], known)
        known = np.union1d(known, new)
    return known


def expanded(again: Again, ticks: Ints, window: int, late: int) -> tuple[pa.Table, Ints]:
    """Every match that ends at one of some times, and the rows in the stream of the events that its rows count.

    Parameters
    ----------
    again : Again
    ticks : int64 array
        Times of the match points that were found.
    window, late : int
        As for ``whole_bundles``.

    Complexity: an exact run over the events at most a window before a match point (and a window after it, where a
    negation at the end must be waited for).
    """
    _, first, last = regions(ticks, window)
    found, stream = again.run("matches", first, last + late)
    return found.filter(pa.array(np.isin(ticks_of(found), ticks))), stream
