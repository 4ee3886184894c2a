"""How much of the exact answer a run with a budget finds: recall of match points, bundles and matches, and precision.

A match is its labelled binding: the rows of the stream that it binds, each with its variable. Answers are taken from
the columns of the variables, which hold row numbers, so they are the same in any order and with any batches.

Source of match points and bundles: Li and Ge, PVLDB 2016, section 2.2 and Definition 3. Ours: bundles are kept apart by
partition, as matches are; a match point is an event, not a time, because several events can share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx import Matcher
from acep_approx.arrays import Ragged
from acep_approx.automaton.automaton import Automaton
from acep_approx.events.columns import to_numpy

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
LABEL_BITS = 12
"""Row and variable share one number; a query has fewer than 2 ** 12 variables."""
STAMPS = ("errors", "start", "end", "missing", "row", "tick")
"""Columns of a listing that are neither keys nor variables."""


@dataclass(frozen=True)
class Answer(Ragged):
    """Distinct matches as columns.

    Attributes
    ----------
    offset : int64 array, shape (matches + 1,)
        Match ``m`` binds ``id[offset[m] : offset[m + 1]]``, in order of the stream.
    id, arc : int64 arrays, shape (bound events,)
        Rows of the stream, and the numbers of the variables that they are bound to (labels of the automaton's arcs).
    tick : int64 array, shape (matches,)
        Tick of the match point.
    slot : int64 array, shape (matches,)
        Number of the partition; only comparable within one answer.
    """

    offset: Ints
    id: Ints
    arc: Ints
    tick: Ints
    slot: Ints

    @property
    def point(self) -> Ints:
        """Per match the row that completes it."""
        return self.id[self.offset[1:] - 1]


def answer(listing: pa.Table, automaton: Automaton) -> Answer:
    """The matches of a listing.

    Parameters
    ----------
    listing : pyarrow.Table
        What ``Matcher`` gives for the output "matches", of a query without RETURN and with named variables.
    automaton : Automaton
        Of the query.

    Complexity: O(n log n) in bound events.
    """
    matches = len(listing)
    match, row, arc = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for label, variable in enumerate(automaton.variables):
        column = listing.column(variable).combine_chunks()
        lengths = _lengths(column)
        match.append(np.repeat(np.arange(matches), lengths))
        row.append(_flat(column))
        arc.append(np.full(lengths.sum(), label))
    which, rows, arcs = np.concatenate(match), np.concatenate(row), np.concatenate(arc)
    order = np.lexsort((rows, which))
    offset = np.concatenate(([0], np.cumsum(np.bincount(which, minlength=matches)))).astype(np.int64)
    tick = to_numpy(listing.column("end").cast(pa.int64()).combine_chunks()).astype(np.int64)
    return Answer(offset, rows[order], arcs[order], tick, _slots(listing, automaton.variables))


def _lengths(column: pa.Array) -> Ints:
    """How many events a variable binds in each match."""
    if pa.types.is_list(column.type):
        return to_numpy(column.value_lengths()).astype(np.int64)
    return to_numpy(column.is_valid()).astype(np.int64)


def _flat(column: pa.Array) -> Ints:
    listed = column.flatten() if pa.types.is_list(column.type) else column.drop_null()
    return to_numpy(listed).astype(np.int64)


def _slots(listing: pa.Table, others: Sequence[str] = ()) -> Ints:
    """Numbers of the combinations of key values."""
    slots = np.zeros(len(listing), np.int64)
    for name in listing.column_names:
        if name not in (*STAMPS, *others):
            codes = listing.column(name).combine_chunks().dictionary_encode()
            slots = slots * len(codes.dictionary) + to_numpy(codes.indices)
    return np.unique(slots, return_inverse=True)[1].astype(np.int64)


class Exact(NamedTuple):
    """An exact run: its matches, window in ticks, and run-steps."""

    answer: Answer
    window: int
    steps: int


def exact(matcher: Matcher, events: pa.Table, batch: int = 1 << 16) -> Exact:
    """Run all events and list every match.

    Parameters
    ----------
    matcher : Matcher
        New, with the output "matches" (with a budget or without).
    events : pyarrow.Table
    batch : int, default 65,536
        Events that are pushed at a time.
    """
    tables = [matcher.push(events.slice(first, batch)) for first in range(0, max(len(events), 1), batch)]
    listing = pa.concat_tables([*tables, matcher.finish()])
    assert matcher.pipeline is not None, "it has been pushed"
    found = answer(listing, matcher.plan.automaton)
    return Exact(found, matcher.pipeline.window, matcher.progress.steps)


def points(found: Answer) -> tuple[Ints, Ints, Ints]:
    """Distinct match points: rows, ticks and slots, by row.

    A row without partition of its own belongs to one slot only, because every match of it has the same key.
    """
    rows, first = np.unique(found.point, return_index=True)
    return rows, found.tick[first], found.slot[first]


def bundles(tick: Ints, slot: Ints, window: int) -> Ints:
    """Number the bundles: maximal chains of match points of one slot, each at most ``window`` after the one before.

    Parameters
    ----------
    tick, slot : int64 arrays, shape (points,)
    window : int
        In ticks.

    Returns
    -------
    int64 array, shape (points,)
        The bundle of each point, from 0.

    Examples
    --------
    >>> bundles(np.array([1, 5, 6, 20]), np.array([0, 0, 1, 0]), 10).tolist()
    [0, 0, 2, 1]
    """
    order = np.lexsort((tick, slot))
    far = np.diff(tick[order], prepend=-(2**62)) > window
    other = np.diff(slot[order], prepend=-1) != 0
    number = np.empty(len(tick), np.int64)
    number[order] = np.cumsum(far | other) - 1
    return number


class Recalls(NamedTuple):
    """Shares of the exact answer that were found; 1 where there is nothing to find."""

    points: float
    bundles: float
    matches: float


def recalls(found: Answer, everything: Answer, window: int) -> Recalls:
    """Recall of an answer.

    Parameters
    ----------
    found, everything : Answer
        Of one stream; ``found`` should be part of ``everything`` (see ``precision``).
    window : int
        In ticks. A bundle is found where one of its match points is.
    """
    rows, tick, slot = points(everything)
    shares = _shares(np.isin(rows, found.point), tick, slot, window)
    return Recalls(*shares, _share(contained(everything, found)))


def _shares(is_found: Bools, tick: Ints, slot: Ints, window: int) -> tuple[float, float]:
    """Share of the match points that were found, and of their bundles."""
    bundle = bundles(tick, slot, window)
    hit = np.zeros(bundle.max(initial=-1) + 1, np.bool_)
    hit[bundle[is_found]] = True
    return _share(is_found), _share(hit)


def recalls_of_points(everything: pa.Table, found: Ints, window: int) -> tuple[float, float]:
    """Recall of match points and of bundles.

    Parameters
    ----------
    everything : pyarrow.Table
        What the exact run gives for the output "points".
    found : int64 array, shape (points found,)
        Their rows.
    window : int
        In ticks. A bundle is found where one of its match points is.
    """
    rows, first = np.unique(to_numpy(everything["row"].combine_chunks()), return_index=True)
    points = everything.take(pa.array(first))
    tick = to_numpy(points["end"].cast(pa.int64()).combine_chunks()).astype(np.int64)
    return _shares(np.isin(rows, found), tick, _slots(points), window)


def precision(found: Answer, everything: Answer) -> float:
    """Share of the matches found that are in the exact answer: 1, always, or something is wrong."""
    return _share(contained(found, everything))


def _share(part: Bools) -> float:
    return float(part.mean()) if len(part) else 1.0


def contained(some: Answer, others: Answer) -> Bools:
    """Which matches of one answer are in another; bool, shape (matches of ``some``,)."""
    width = max([0, *np.diff(some.offset), *np.diff(others.offset)])
    mine, theirs = _records(some, width), _records(others, width)
    _, code = np.unique(np.concatenate((mine, theirs)), axis=0, return_inverse=True)
    code = code.reshape(-1)
    return np.isin(code[: len(mine)], code[len(mine) :])


def _records(some: Answer, width: int) -> Ints:
    """One row per match: its bound events with their variables, filled up with -1."""
    lengths = np.diff(some.offset)
    table = np.full((len(some), width), -1, np.int64)
    table[np.arange(width) < lengths[:, None]] = some.id << LABEL_BITS | some.arc
    return table
