"""Histories counted from traces, and whether two of them are the same."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from history import Graph, Trace
from history.bundles import Bundles
from history.counting import Counts
from tests.naive_history import SCHEME


def learned(traces: list[Trace], gap: int, most: int) -> Graph:
    graph = Graph(SCHEME, gap, most)
    for trace in traces:
        graph.observe(trace)
    return graph


def assert_same(one: Counts, other: Counts) -> None:
    """Equal in every bit."""
    for column in fields(Counts):
        if column.name not in ("bundles", "maps"):
            np.testing.assert_array_equal(getattr(one, column.name), getattr(other, column.name), column.name)
    for column in fields(Bundles):
        np.testing.assert_array_equal(getattr(one.bundles, column.name), getattr(other.bundles, column.name))
    assert list(one.maps.items()) == list(other.maps.items())
