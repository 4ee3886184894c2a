"""Readings of a history: the weight of run-steps, and that the one is chosen which finds most of a later past."""

from __future__ import annotations

import numpy as np
import pytest

from acep_approx import HistoryGraph, compile_query
from acep_approx.training import choosing
from acep_approx.training.policies import history as by_history
from acep_approx.training.policies import raised
from acep_approx.training.pricing import PricePoint, Prices
from history import Scheme
from history.values import fit_values

QUERY = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 60")
EVENTS = [{"ts": t, "type": "ABC"[t * t % 7 % 3], "x": t * 37 % 101} for t in range(3_000)]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_gain_is_divided_by_a_power_of_the_cost(power: float) -> None:
    known = HistoryGraph(QUERY).fit(EVENTS)
    automaton = QUERY.plan.registers
    assert automaton is not None
    graph = choosing.read_by(known.graph_, "means", power)
    assert Scheme.from_json(graph.scheme.to_json()) == graph.scheme
    values = fit_values(graph)
    worth = by_history(automaton, graph, 0.0)
    np.testing.assert_allclose(worth.gain / worth.cost, raised(values.gain) / values.cost**power)


def test_the_reading_that_finds_most_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(overlap: float, cost_power: float) -> Prices:
        points = 90 - 40 * abs(overlap - 0.7) - 20 * abs(cost_power - choosing.BETWEEN)
        return Prices((PricePoint(0.0, 1000, 100), PricePoint(1.0, 10, round(points))))

    monkeypatch.setattr(
        choosing._Trials, "prices", lambda _trials, reading, *_: found(reading.overlap, reading.cost_power)
    )
    known = HistoryGraph(QUERY).fit(EVENTS)
    assert (known.overlap_, known.graph_.scheme.cost_power) == (0.7, choosing.BETWEEN)
