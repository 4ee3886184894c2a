"""The measurement of sets and of early results inside load budgets, in small; and births of templates inside them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, QuerySet, UsageError
from acep_approx.subscriptions.templates.pair_runs import NUMBER
from experiments.shedding import early_programs, programs, set_programs
from experiments.shedding.set_programs import ALIKE, BY_ENGINE, BY_QUERY, OTHERS, OURS, SharingOtherwise
from experiments.shedding.set_workloads import GENERATED, PROGRAMS, load_set
from experiments.shedding.workloads import Workload, ds2

pytestmark = [
    pytest.mark.filterwarnings("ignore::acep_approx.errors.FewPointsWarning"),
    pytest.mark.usefixtures("one_reading"),
]


@pytest.fixture(scope="module")
def measured() -> set_programs.Measured:
    return set_programs.Measured(load_set(GENERATED, 1200), 60, is_weighted=True)


def test_one_budget_is_held_against_others_with_as_many_run_steps(measured: set_programs.Measured) -> None:
    """No wrong match points, and the bound, are asserted inside."""
    results = list(measured.run([20]))
    assert [one.way for one in results] == [OURS, *OTHERS]
    mine = {one.way: one for one in results}
    assert 0 < mine[OURS].recall < 1
    for way in (BY_QUERY, BY_ENGINE, ALIKE):
        assert mine[way].of_exact == pytest.approx(mine[OURS].of_exact, rel=0.35)
    (lead,) = programs.lead_over(results, ALIKE, 20)
    assert lead == pytest.approx((mine[OURS].recall + 0.01) / (mine[ALIKE].recall + 0.01))


def test_all_sets_can_be_made() -> None:
    """On the streams that stand for real ones where these are not here."""
    for name in PROGRAMS:
        workload = load_set(name, 300)
        desk = workload.filled(workload.desk(), 30, is_weighted=False)
        assert len(desk) == 33
        assert desk.match(workload.now).rows >= 0


def test_early_results_of_a_budget_are_held_against_the_exact_matcher() -> None:
    """The net law and the bound after every push are asserted inside."""
    stream = ds2(2400, 1)
    query = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x + b.x < c.x WITHIN 300"
    (found,) = early_programs.measure(Workload("small", query, stream.slice(0, 1200), stream.slice(1200), None), [30])
    assert 0 < found.recall <= 1
    assert found.early > 0.5
    assert found.spent <= 1


@pytest.mark.slow
def test_the_program_prints_its_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["programs", "--quick"])
    monkeypatch.setattr(programs, "QUICK", replace(programs.QUICK, queries=(20,), events=400))
    programs.main()
    printed = capsys.readouterr().out
    for title in (OURS, "mean (least) lead", "early results", "inside a budget"):
        assert title in printed


# --- templates inside a budget ------------------------------------------------------------------------------------

HOT = "PATTERN SEQ(A a, B b, C c) WHERE a.k = :k AND a.x >= :least AND b.x > a.x AND c.x >= a.x + b.x - 12 WITHIN 60"


def hot_stream(rows: int, seed: int) -> pa.Table:
    """Most events begin runs of many queries, and few of these lead anywhere."""
    dice = np.random.default_rng(seed)
    types = np.array(list("AAAAAAAABC"))[dice.integers(0, 10, rows)]
    columns = {"ts": np.arange(rows), "type": types, "k": dice.integers(0, 2, rows), "x": dice.integers(0, 20, rows)}
    return pa.table(columns)


def hot_set() -> SharingOtherwise:
    desk = SharingOtherwise(output="points")
    dice = Random(1)
    desk.add_many(HOT, [{"k": dice.randrange(2), "least": dice.randrange(12)} for _ in range(60)], id="hot")
    return desk


def test_tries_to_begin_do_not_eat_the_budget_of_a_template() -> None:
    """A run that is refused when it begins takes a look: not all is paid before anything is found."""
    desk, past, now = hot_set(), hot_stream(900, 5), hot_stream(900, 6)
    known = desk.train(past)
    exact = desk.match(now).rows
    for budget, least in (("10%", 0.1), ("30%", 0.3)):
        some = desk.match_within(now, budget, history=known, audit=0)
        record = some.record()
        assert record.work <= record.allowed
        assert some.rows >= least * exact, (budget, some.rows, exact)


def test_a_set_of_which_nothing_is_shed_takes_a_share() -> None:
    """A template that needs the latest starts alone has no history: there is nothing that it could be of use for."""
    desk, events = QuerySet(output="points"), hot_stream(300, 1)
    desk.add_many("PATTERN SEQ(A a, B b) WHERE a.k = :k AND b.x > a.x WITHIN 9", [{"k": 0}, {"k": 1}], id="up")
    known = desk.train(events)
    some = desk.match_within(events, "10%", history=known)
    assert len(known) == 0
    assert some.rows == desk.match(events).rows > 0
    desk.add("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x <> b.x WITHIN 40")
    with pytest.raises(UsageError) as error:
        desk.match_within(events, "10%", history=known)
    assert error.value.code == "ACEP-U034"


def test_a_past_that_no_query_asks_for_teaches_nothing(tmp_path: Path) -> None:
    """Many constants that fit no event: the set says so, and tries no budgets."""
    desk = QuerySet(output="points")
    desk.add_many(HOT, [{"k": 2 + k, "least": 1} for k in range(50)], id="hot")
    known = desk.train(hot_stream(300, 1))
    assert (len(known), known.promises_) == (0, None)
    with pytest.raises(UsageError) as error:
        known.save(tmp_path / "learned")
    assert error.value.code == "ACEP-U036"


def test_a_share_of_a_template_is_one_of_the_present() -> None:
    """With twice the events in a window, what a template is granted follows; births are counted one by one."""
    desk, past = hot_set(), hot_stream(1500, 1)
    known = desk.train(past)
    for step in (1, 2):
        now = hot_stream(1500, 2)
        now = now.set_column(0, "ts", pa.array(np.arange(1500) // step))
        full = desk.exact(now)[1]
        record = desk.match_within(now, "20%", history=known, audit=0).record()
        assert 0.75 < record.allowed / (0.2 * full) < 1.35, (step, record.allowed, full)


def test_the_law_of_a_template_knows_the_windows_of_its_queries() -> None:
    """Each query has a window of its own: what the past took is what is expected of it."""
    desk, past = SharingOtherwise(output="points"), hot_stream(900, 1)
    rows = [{"k": number % 2, "length": (5, 20, 80)[number % 3]} for number in range(30)]
    desk.add_many(HOT.replace("a.x >= :least AND ", "").replace("WITHIN 60", "WITHIN :length"), rows, id="hot")
    known = desk.train(past)
    full = desk.exact(past)[1]
    record = desk.match_within(past, "50%", history=known, audit=0).record()
    assert record.allowed == pytest.approx(0.5 * full, rel=0.1)


def test_a_set_is_granted_what_was_said_of_its_full_work() -> None:
    desk, past = hot_set(), hot_stream(900, 1)
    desk.add("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x <> b.x WITHIN 40")
    known = desk.train(past)
    record = desk.match_within(past, "50%", history=known, audit=0, full_work=200).record()
    assert record.allowed == pytest.approx(0.5 * 200 * len(past), rel=0.05)


def test_a_template_without_a_key_learns_from_events_that_have_one() -> None:
    """A column ``key`` of the stream is not one of the template's."""
    past = hot_stream(600, 1).append_column("key", pa.array(["u", "v"] * 300))
    desk = hot_set()
    known = desk.train(past)
    assert len(known) == 1
    assert desk.match_within(past, "40%", history=known).rows > 0


def test_queries_that_share_their_runs_learn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one class of queries is shown is not taken for that of another one."""
    desk, past = SharingOtherwise(output="points"), hot_stream(900, 1)
    rows = [{"k": number % 2, "length": (20, 40)[number // 2 % 2]} for number in range(40)]
    desk.add_many(HOT.replace("a.x >= :least AND ", "").replace("WITHIN 60", "WITHIN :length"), rows, id="hot")
    fit, keys = HistoryGraph.fit, set[int]()

    def noted(self: HistoryGraph, events: pa.Table, **how: Any) -> HistoryGraph:
        keys.update(events.column(NUMBER).to_pylist())
        return fit(self, events, **how)

    monkeypatch.setattr(HistoryGraph, "fit", noted)
    desk.train(past)
    assert len(keys) >= 4
