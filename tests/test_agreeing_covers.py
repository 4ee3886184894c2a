"""Covers that agree in join registers: a run stands for another only where later events can do the same for both."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from acep_approx import HistoryGraph, compile_query
from acep_approx.training import training
from acep_approx.training.policies import AGREE, joins

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.to = a.to WITHIN 300"


def events(seed: int, many: int = 4000) -> list[dict[str, Any]]:
    """Many runs of few destinations, of which each event that ends a match asks for one."""
    dice = Random(seed)
    return [
        {"ts": ts, "type": dice.choices("ABC", [6, 3, 1])[0], "x": dice.randrange(100), "to": f"t{dice.randrange(60)}"}
        for ts in range(many)
    ]


def test_which_registers_must_be_equal() -> None:
    """At the place of ``a`` and of ``b`` that of ``a.to``; at the end none; a run of ``b`` has no ``a.x`` any more."""
    registers = compile_query(QUERY, engine="runs").plan.registers
    assert registers is not None
    found = joins(registers)
    assert found is not None
    live = [registers.live[state] for state, _ in registers.places]
    to = [next(place for place, one in enumerate(some) if "'to'" in str(one.of)) for some in live[1:3]]
    assert found[1, 1, :2].tolist() == [1, to[0]]
    assert found[1, 2, :2].tolist() == [1, to[0]]  # what covers it is further on: it must agree in what that remembers
    assert found[2, 2, :2].tolist() == [1, to[1]]
    assert found[3, 3, 0] == 0
    plain = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9", engine="runs").plan.registers
    assert plain is not None
    assert joins(plain) is None


@pytest.fixture(scope="module")
def known() -> dict[float, HistoryGraph]:
    """What is learned with one reading: later runs take nine tenths, all of them or those that agree."""
    found = {}
    for overlap in (0.9, AGREE + 0.9):
        with pytest.MonkeyPatch.context() as patch:
            for name, some in (("VALUES", ("paths",)), ("COST_POWERS", (1.0,)), ("OVERLAPS", (overlap,))):
                patch.setattr(training, name, some)
            for name in ("MORE_OVERLAPS", "AGREEING", "MORE_AGREEING"):
                patch.setattr(training, name, ())
            found[overlap] = HistoryGraph(compile_query(QUERY, engine="runs")).fit(events(1))
        found[overlap].search_ = None  # partial matches are followed
        assert found[overlap].overlap_ == overlap
    return found


def test_more_is_found_for_the_same_budget(known: dict[float, HistoryGraph]) -> None:
    query, now = compile_query(QUERY, engine="runs"), events(2)
    exact = query.match(now).points().num_rows
    plain, agreeing = (query.match_within(now, "10%", history=one, audit=0).points().num_rows for one in known.values())
    assert plain < agreeing <= exact


def test_a_state_goes_on_alike(known: dict[float, HistoryGraph]) -> None:
    """What is kept is known after a restart."""
    query, now, history = compile_query(QUERY, engine="runs"), events(3), known[AGREE + 0.9]
    whole = query.matcher(budget="5%", history=history, output="points")
    again = query.matcher(budget="5%", history=history, output="points")
    expected, found = [], []
    for first in range(0, len(now), 500):
        expected += whole.push(now[first : first + 500])["row"].to_pylist()
        found += again.push(now[first : first + 500])["row"].to_pylist()
        again = query.from_state(again.state_bytes(), history=history)
    assert found == expected
    assert len(found) > 10


def test_the_reading_is_kept_with_the_history(known: dict[float, HistoryGraph], tmp_path) -> None:
    query, history = compile_query(QUERY, engine="runs"), known[AGREE + 0.9]
    history.save(tmp_path / "known")
    loaded = HistoryGraph.load(tmp_path / "known", query)
    assert loaded.overlap_ == AGREE + 0.9
    mine, theirs = history.worth().joins, loaded.worth().joins
    assert mine is not None
    assert theirs is not None
    assert (mine == theirs).all()
