"""Match points of queries of templates, as one table for all templates that have the same columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.matching.outputs.output import Points
from acep_approx.matching.pipeline import Pipeline
from acep_approx.subscriptions.templates.ordering import in_order
from acep_approx.subscriptions.templates.pair_stream import PairKeys, numbered


class QueryPoints(NamedTuple):
    """Match points with the number of the query and the slot of the key of each."""

    number: Ints
    key: Ints
    points: Points


class PointTable:
    """The points that templates found in a batch.

    Parameters
    ----------
    pipeline : Pipeline
        Of any of them; it has a ``points_engine``.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._parts: list[QueryPoints] = []

    def add(self, found: QueryPoints) -> None:
        """Take in some."""
        self._parts.append(found)

    def table(self) -> pa.Table:
        """All of them: by the end of each, then in the order of the queries."""
        parts, results = self._parts, self._pipeline.results
        number, key = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        points = Points(*map(np.concatenate, zip(*(part.points for part in parts), strict=True)))
        order, keys = in_order(number, points.row, points.tick), self._pipeline.key_slots.keys
        assert isinstance(keys, PairKeys), "these are the keys of pairs"
        keys.named = number[order], key[order]
        found = results.points_table(points.take(order)._replace(slot=np.arange(len(order))))
        keys.named = None
        return numbered(found)
