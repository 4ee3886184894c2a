"""Intervals of the recall estimate hold at their level on real streams, where match points come in bursts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from acep_approx import compile_query
from acep_approx.arrays import Bools, Ints
from acep_approx.budget.audit import AuditCells, AuditSample
from acep_approx.shedding.load import EPOCH_WINDOWS
from experiments.shedding.workloads import load
from experiments.streams.real import is_here

SEEDS, LEVEL = 200, 0.95
STREAMS = {"T7": "ticks", "W5": "tweets", "F4": "flights", "S4": "soccer", "B3": "bikes"}
"""Workload and stream."""


class Points(NamedTuple):
    """All match points of a stream: number of the key, tick, and whether the run within a budget finds it."""

    keys: Ints
    ticks: Ints
    found: Bools
    window: int


@pytest.fixture(scope="module", params=STREAMS)
def points(request: pytest.FixtureRequest) -> Points:
    if not is_here(STREAMS[request.param]):
        pytest.skip(f"there is no stream {STREAMS[request.param]} here")
    workload = load(request.param)
    query = compile_query(workload.query, engine="runs")
    exact = query.match(workload.test, unit=workload.unit).points()
    run = query.match_within(workload.test, "1 steps/event", audit=0, unit=workload.unit)
    some = run.points()
    names = exact.column_names[: exact.column_names.index("errors")]
    keys = exact.to_pandas().groupby(names).ngroup().to_numpy(np.int64) if names else np.zeros(len(exact), np.int64)
    found = np.isin(exact["row"].to_numpy(), some["row"].to_numpy())
    return Points(keys, exact["end"].cast("int64").to_numpy(), found, run.window)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_intervals_hold_at_their_level(points: Points, share: float) -> None:
    """Three standard deviations of a binomial below the level are allowed."""
    held = []
    for seed in range(SEEDS):
        audit = AuditCells(share, EPOCH_WINDOWS * points.window, points.window, seed)
        cells = audit.cells(points.keys, points.ticks)
        is_in = cells >= 0
        estimate = AuditSample.of(cells[is_in], points.found[is_in]).estimate(LEVEL)
        if estimate.low is not None and estimate.high is not None:
            held.append(estimate.low <= points.found.mean() <= estimate.high)
    assert np.mean(held) >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / len(held))
