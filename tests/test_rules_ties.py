"""Matches of one event that tie in errors and start are in the order of the rows that they bind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.rules.compiled import HIDDEN
from acep_approx.rules.matched import _ranks

ONE = st.none() | st.integers(0, 3)
MANY = st.none() | st.lists(st.integers(0, 3), max_size=4)


def naive_key(match: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rows that a match binds, in order; then the variables that bind them."""
    pairs = []
    for variable, bound in enumerate(match):
        rows = bound if isinstance(bound, list) else [] if bound is None else [bound]
        pairs += [(row, variable) for row in rows]
    pairs.sort()
    return tuple(row for row, _ in pairs), tuple(variable for _, variable in pairs)


@given(st.lists(st.tuples(ONE, MANY, ONE, MANY), max_size=30))
def test_ranks_are_those_of_brute_force(matches: list[tuple[Any, ...]]) -> None:
    types = [pa.int64(), pa.list_(pa.int64())] * 2
    columns = [pa.array([match[at] for match in matches], kind) for at, kind in enumerate(types)]
    table = pa.table(columns, names=[f"{HIDDEN}{name}" for name in "abcd"])
    keys = list(map(naive_key, matches))
    before = [sum(other < key for other in keys) for key in keys]
    assert _ranks(table).tolist() == before
    assert _ranks(table.slice(1)).tolist() == [sum(other < key for other in keys[1:]) for key in keys[1:]]


def test_a_long_match_costs_others_nothing() -> None:
    """Of each match no more is looked at than tells it from the others."""
    long, short = np.arange(2_000_000), np.arange(20_000)
    rows = pa.ListArray.from_arrays(
        pa.array([0, len(long), *(len(long) + 1 + short)], pa.int32()), pa.array(np.concatenate([long, short + 1]))
    )
    assert _ranks(pa.table([rows], names=[f"{HIDDEN}a"])).tolist() == list(range(len(short) + 1))
