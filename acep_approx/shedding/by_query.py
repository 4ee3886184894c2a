"""Counts the match points that each query of a template has found inside a load budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.budget.audit import AuditCells, AuditSample
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.lineage import Hits
from acep_approx.ranges import Range, check, check_arrays

MOST_ROWS = 1 << 16
"""Rows from which on those of one query and cell are added up."""
WORDS = 4
"""Of a row: the number of the query, the audited cell or -1, match points, and those that the policy alone found."""


class PointsByQuery:
    """Adds up match points by query and audited cell.

    Examples
    --------
    >>> known = PointsByQuery()
    >>> known.found()
    {}
    """

    def __init__(self) -> None:
        self._rows = np.zeros((0, WORDS), np.int64)
        self._new: list[Ints] = []

    def add(self, whose: Ints, events: RunEvents, hits: Hits, cells: AuditCells | None) -> None:
        """Add the match points of a piece of the stream; ``whose``: the query of each pair of event and query."""
        event, place = np.unique(hits.event, return_inverse=True)
        is_kept = np.zeros(len(event), np.int64)
        np.maximum.at(is_kept, place, (hits.mark < 2).astype(np.int64))
        cell = np.full(len(event), -1) if cells is None else cells.cells(events.slot[event], events.tick[event])
        self._new.append(np.column_stack([whose[event], cell, np.ones(len(event), np.int64), is_kept]))
        if sum(map(len, self._new)) > MOST_ROWS:
            self._add_up()

    def _add_up(self) -> Ints:
        if self._new:
            rows = np.concatenate([self._rows, *self._new])
            order = np.lexsort((rows[:, 1], rows[:, 0]))
            rows = rows[order]
            is_first = np.ones(len(rows), np.bool_)
            is_first[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
            first = np.flatnonzero(is_first)
            self._rows, self._new = rows[first], []
            self._rows[:, 2:] = np.add.reduceat(rows[:, 2:], first)
        return self._rows

    def found(self) -> dict[int, int]:
        """How many match points each query has, by its number; without those that have none."""
        rows = self._add_up()
        numbers, place = np.unique(rows[:, 0], return_inverse=True)
        points = np.bincount(place, weights=rows[:, 2], minlength=len(numbers)).astype(np.int64)
        return dict(zip(numbers.tolist(), points.tolist(), strict=True))

    def samples(self) -> Iterator[tuple[int, AuditSample]]:
        """What the audit saw of each query."""
        rows = self._add_up()
        numbers, first = np.unique(rows[:, 0], return_index=True)
        for number, mine in zip(numbers.tolist(), np.split(rows, first)[1:], strict=True):
            inside, outside = mine[mine[:, 1] >= 0], mine[mine[:, 1] < 0]
            sample = AuditSample(inside[:, 1], inside[:, 3], inside[:, 2], int(outside[:, 2].sum()))
            yield number, sample

    def snapshot(self) -> list[list[int]]:
        """What must be kept to go on elsewhere, as JSON."""
        found: list[list[int]] = self._add_up().T.tolist()
        return found

    def restore(self, saved: Any) -> None:
        """Go on from what ``snapshot`` gave."""
        rows = np.array(saved, np.int64).reshape(WORDS, -1)
        check("by_query", good=all(len(column) == rows.shape[1] for column in saved))
        check_arrays({"by_query": rows.ravel()}, {"by_query": Range(rows.size, -1, 2**62)})
        self._rows, self._new = np.ascontiguousarray(rows.T), []
