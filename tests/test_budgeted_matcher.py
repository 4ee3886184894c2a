"""A live run inside a load budget: pushed batch by batch, saved, taken up, and what it says about itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import Query, compile_query
from acep_approx.api import BudgetedMatcher
from acep_approx.errors import AcepError
from acep_approx.pages.budget.page import report_html
from acep_approx.shedding import metrics
from acep_approx.training.history_graph import HistoryGraph
from tests.one_reading import learned

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 150"
EVENTS = 3000


def stream(seed: int, events: int = EVENTS) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"ts": np.arange(events), "x": rng.integers(0, 30, events), "id": rng.integers(0, 6, events)}
    return pa.table({**columns, "type": rng.choice(list("ABCN"), events, p=[0.4, 0.3, 0.2, 0.1])})


@cache
def query() -> Query:
    return compile_query(TEXT, engine="runs")


@cache
def known() -> HistoryGraph:
    return learned(HistoryGraph(query()), stream(1))


def pushed(matcher: BudgetedMatcher, table: pa.Table, size: int = 500) -> list[pa.Table]:
    return [matcher.push(table.slice(first, size)) for first in range(0, len(table), size)]


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
@pytest.mark.parametrize("budget", ["10%", "4 steps/event", "60 runs"])
def test_batches_find_what_one_run_does(budget: str, output: str) -> None:
    """The same stream as one batch is the same run; in batches it finds true matches, inside the bound."""
    table, how = stream(2), {"history": known(), "seed": 4}
    some = query().match_within(table, budget, **how)
    whole = {"matches": some.to_arrow, "points": some.points, "counts": some.counts}[output]()
    matcher = query().matcher(budget=budget, output=output, **how)
    assert matcher.push(table).equals(whole)
    matcher.finish()
    theirs, ours = some.record(), matcher.record()
    assert (ours.work, ours.allowed, ours.shed, ours.recall) == (
        theirs.work, theirs.allowed, theirs.shed, theirs.recall,
    )  # fmt: skip
    assert ours.shed_runs > 0 or output != "counts"  # the others are searched for
    parts = query().matcher(budget=budget, output=output, **how)
    found = pa.concat_tables(pushed(parts, table))
    assert len(found) > 0
    exact = query().matcher(output="points").push(table)
    if output == "points":
        assert set(found["row"].to_pylist()) <= set(exact["row"].to_pylist())
    assert parts.record().work <= parts.record().allowed


@pytest.mark.parametrize("budget", ["50%", "4 steps/event", "60 runs"])
def test_saved_and_taken_up_it_goes_on_and_knows_what_it_did(budget: str) -> None:
    table, how = stream(3), {"history": known(), "seed": 4, "audit": 0.5}
    whole, first = (query().matcher(budget=budget, **how) for _ in range(2))
    wanted, got = pushed(whole, table), pushed(first, table.slice(0, 1500))
    state = first.state_bytes()
    second = query().from_state(state, history=known())
    assert isinstance(second, BudgetedMatcher)
    got += pushed(second, table.slice(1500))
    assert pa.concat_tables(got).equals(pa.concat_tables(wanted))
    ours, theirs = second.record(), whole.record()
    for name in ("work", "allowed", "found", "events", "shed", "recall", "begin", "budget", "policy", "seed"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.recall.points > 0 or ours.recall.is_certain
    assert ours.audit_work == theirs.audit_work
    assert f"{ours.found:,} match points found" not in report_html(ours)  # of a page the number stands by itself
    assert f"<b>{ours.found:,}</b>" in report_html(ours)


def test_a_history_is_asked_for_when_a_state_is_taken_up(tmp_path) -> None:
    known().save(tmp_path / "known")
    matcher = query().matcher(budget="10%", history=tmp_path / "known")
    matcher.push(stream(4))
    state = matcher.state_bytes()
    with pytest.raises(AcepError, match=r"version 1, learned from 3,000 events") as caught:
        query().from_state(state)
    assert caught.value.code == "ACEP-D048"
    assert query().from_state(state, history=tmp_path / "known").record().found == matcher.record().found
    with pytest.raises(AcepError) as caught:
        query().from_state(query().matcher().state_bytes(), history=known())
    assert caught.value.code == "ACEP-D044"


def test_how_a_budget_is_spent_is_refused_without_one() -> None:
    for how in ({"history": known()}, {"learn": True}, {"audit": 0.1}, {"seed": 3}):
        with pytest.raises(AcepError, match="there is none") as caught:
            query().matcher(**how)
        assert caught.value.code == "ACEP-U040"
    for output in ("partial", "compressed"):
        with pytest.raises(AcepError) as caught:
            query().matcher(budget="10%", history=known(), output=output)
        assert caught.value.code == "ACEP-U038"
    with pytest.raises(AcepError) as caught:
        query().matcher(budget="10%")
    assert caught.value.code == "ACEP-U034"


def test_it_learns_on_its_way() -> None:
    matcher = query().matcher(budget="20 steps/event", learn=True)
    assert matcher.refreshed(query()) is None
    pushed(matcher, stream(5, 12_000))
    matcher.finish()
    learned = matcher.refreshed(query())
    assert learned is not None
    assert learned.points_ == matcher.record().found > 0
    assert len(matcher.record().learning.revalued) == len(matcher.learning()) > 0


def test_memory_is_bounded_and_nothing_is_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    table, how = stream(6), {"history": known(), "audit": 0.3, "budget": "20%"}
    whole, bounded = (query().matcher(**how) for _ in range(2))
    pushed(whole, table, 100)
    monkeypatch.setattr(metrics, "MOST_POINTS", 40)
    monkeypatch.setattr(metrics, "MOST_PIECES", 5)
    pushed(bounded, table, 100)
    ours, theirs = bounded.record(), whole.record()
    assert len(ours.point_ticks) <= 80 < len(theirs.point_ticks)
    assert len(ours.pieces) <= 10 < len(theirs.pieces)
    assert set(ours.point_ticks.tolist()) <= set(theirs.point_ticks.tolist())
    for name in ("work", "allowed", "found", "events", "recall", "begin"):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_where_the_cells_answer_nothing_is_shed() -> None:
    easy = compile_query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 30")
    matcher = easy.matcher(budget="5%")
    assert matcher.push(stream(7)).equals(easy.matcher().push(stream(7)))
    assert "sheds nothing" in matcher.record().bound
    again = easy.from_state(matcher.state_bytes())
    assert again.push([]).num_rows == 0
