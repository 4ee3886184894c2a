"""Few runs are tried one by one, many in blocks: nothing differs but the time it takes."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from acep_approx import compile_query
from experiments.speed.plain_runs import Room
from experiments.speed.runs_workloads import Prepared, rising_workload
from tests.cases import cases
from tests.match_tables import bindings
from tests.naive import expected_matches
from tests.plain_python import plainly


def test_both_ways_make_the_same() -> None:
    """Rows in order, counters and the state, byte by byte, on random worlds, with thresholds that leave out one way."""
    assert plainly("tests.few_and_blocks", "differing", cases(1000, 40)) == -1


@pytest.mark.parametrize("lineage", [False, True])
@pytest.mark.parametrize("window", [4, 9, 40])
def test_rising_values_as_by_a_loop(window: int, lineage: bool) -> None:
    """Runs are few at all events, at some of them, or at none; hits are those of a loop written by hand."""
    workload = rising_workload(window, 20_000)
    passed = Prepared(workload).run("none", lineage=lineage)
    assert passed.hits == workload.by_hand(lineage, Room())


PEAKS = "PATTERN SEQ(G a, G b, G c) WHERE b.peak > a.peak AND c.peak > b.peak WITHIN 18"


@pytest.mark.parametrize("seed", range(cases(50)))
def test_three_rising_peaks_as_by_brute_force(seed: int) -> None:
    """Bars of two symbols, a peak each: at most a few runs are alive at any event."""
    dice = Random(seed)
    rows = [{"ts": 6 * (i // 2), "type": "GA"[i % 2], "peak": dice.randrange(8) / 4} for i in range(40)]
    query = compile_query(PEAKS)
    found = bindings(query.match(pa.Table.from_pylist(rows)).to_arrow(), query.plan.query)
    assert found == expected_matches(query.plan.query, rows)


def test_many_runs_after_few_and_few_after_many() -> None:
    """The engine goes from one way to the other and back."""
    dice = Random(1)
    gaps = [1 if i // 300 % 2 else 40 for i in range(1800)]  # few and many events in the window, in turns
    rows = [{"ts": sum(gaps[: i + 1]), "type": dice.choice("ABC"), "x": dice.randrange(50)} for i in range(1800)]
    events, query = pa.Table.from_pylist(rows), compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 100")
    matches = query.match(events)
    expected = [
        (i, j)
        for j, b in enumerate(rows)
        if b["type"] == "B"
        for i, a in enumerate(rows[:j])
        if a["type"] == "A" and b["x"] > a["x"] and b["ts"] - a["ts"] <= 100
    ]
    assert sorted((m["a"], m["b"]) for m in matches.to_arrow().to_pylist()) == sorted(expected)
