"""Tuning: what it measures is what runs find, nothing is learned from what is measured on, and what it recommends."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import DataError, UsageError, compile_query
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.worth import REASONS
from acep_approx.events.source import open_source
from acep_approx.pages.curves import Curve, curves_page, growth_curves, recall_curves
from acep_approx.results import tuning as module
from acep_approx.results.shed_replay import SENTENCES, in_words, nearest
from acep_approx.results.tuning import PastTable, Trial, Tuning, advise, tune
from acep_approx.training.history_graph import HistoryGraph
from tests.one_reading import learned
from tests.tuning_past import QUERY, make_events

EVENTS = make_events(900)
pytestmark = pytest.mark.usefixtures("one_reading")


def compiled(errors=None, within=None):
    return compile_query(QUERY, errors=errors, within=within, engine="runs")


@pytest.fixture(scope="module")
def past() -> PastTable:
    return PastTable.read(open_source(EVENTS))


@pytest.fixture(scope="module")
def tuned(past) -> Tuning:
    return tune(compiled, past, errors=(1, 0), within=("30", "15"), budgets=("20%", "100%"), seed=3)


def test_a_query_is_tuned_from_python(tuned):
    """As by the command."""
    query = compile_query(QUERY)
    asked = {"errors": (1, 0), "within": ["30", "15"], "seed": 3}
    same = query.tune(EVENTS, budgets=[0.2, "100%"], **asked)
    assert same == tuned
    assert same.advice == advise(tuned)
    shown = str(same).splitlines()
    assert shown[0].split("  ")[1:3] == ["WITHIN", "ERRORS"]
    assert len([line for line in shown if line.startswith("  15 ")]) == 2
    assert f"recommended: ERRORS {same.advice.errors} WITHIN {same.advice.within}, " in shown[5]
    assert query.tune(EVENTS[::-1], sort=True, budgets=[0.5]).trials[0].errors == query.plan.query.errors
    with pytest.raises(UsageError, match="ACEP-U053"):
        query.tune(EVENTS, budget=0.2)
    with pytest.raises(DataError, match="ACEP-D060"):
        query.tune(EVENTS[:9])
    with pytest.raises(UsageError, match="ACEP-U043"):
        query.tune(EVENTS, budgets=["2 ms/batch"])


# --- what is measured -------------------------------------------------------------------------------------------


def test_the_past_is_cut_in_time(past):
    assert past.first.num_rows == 630
    assert pa.concat_tables([past.first, past.last]).column("x").to_pylist() == [event["x"] for event in EVENTS]


def test_a_past_can_be_sorted_first():
    mixed = Random(1).sample(EVENTS, len(EVENTS))
    past = PastTable.read(open_source(mixed), sort=True)
    ticks = [*past.first.column("ts").to_pylist(), *past.last.column("ts").to_pylist()]
    assert ticks == sorted(event["ts"] for event in EVENTS)


def test_a_past_of_a_few_events_is_refused():
    with pytest.raises(DataError, match="a past of 9 events") as error:
        PastTable.read(open_source(EVENTS[:9]))
    assert error.value.code == "ACEP-D060"


def test_windows_and_errors_rise(tuned):
    assert [(trial.within, trial.errors) for trial in tuned.trials] == [("15", 0), ("15", 1), ("30", 0), ("30", 1)]
    assert (tuned.trained, tuned.measured) == (630, 270)


def test_points_matches_and_load_are_those_of_exact_runs(tuned):
    for trial in tuned.trials:
        exact = compiled(trial.errors, trial.within).match(EVENTS[630:])
        assert trial.points == exact.points().num_rows > 0
        assert trial.matches == sum(exact.count_by_errors().values())
        assert trial.steps == exact.progress.steps / 270


def test_recall_is_that_of_runs_inside_the_budget(tuned):
    trial = tuned.trials[2]
    query = compiled(0, "30")
    known = HistoryGraph(query).fit(EVENTS[:630])
    some = query.match_within(EVENTS[630:], "20%", history=known, seed=3)
    assert trial.recalls[0] == len(set(some.counts().column("row").to_pylist())) / trial.points
    assert trial.work[0] == some.record().work / (trial.steps * 270)


def test_all_of_the_work_finds_everything(tuned):
    for trial in tuned.trials:
        assert trial.recalls[1] == 1.0
        assert trial.recalls[0] < 1.0
        assert trial.work[0] < trial.work[1]


def test_nothing_is_learned_from_what_is_measured_on(past, monkeypatch):
    seen = []
    monkeypatch.setattr(HistoryGraph, "fit", lambda self, events, **_: seen.append(events) or self)
    monkeypatch.setattr(module, "Load", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tune(compiled, past)
    assert [table.num_rows for table in seen] == [630]
    assert seen[0].equals(past.first)


def test_the_same_twice_with_points_alone(past):
    one, two = (tune(compiled, past, budgets=("10%",), output="points", seed=5) for _ in range(2))
    assert one == two
    assert one.trials[0].matches == 0
    assert one.trials[0].points == compiled().match(EVENTS[630:]).points().num_rows


def test_too_much_load_leaves_out_what_is_heavier(past):
    stages = []
    done = tune(
        compiled,
        past,
        errors=(0, 1),
        within=("15", "30"),
        most_steps=0.01,
        on_progress=lambda stage, share: stages.append((stage, share)),
    )
    first, *others = done.trials
    assert first.skipped.endswith("run-steps per event")
    assert first.steps > 0.01
    assert {trial.skipped for trial in others} == {"as ERRORS 0 WITHIN 15"}
    assert stages == [
        ("ERRORS 0 WITHIN 15", 0.0),
        ("ERRORS 1 WITHIN 15", 0.25),
        ("ERRORS 0 WITHIN 30", 0.5),
        ("ERRORS 1 WITHIN 30", 0.75),
    ]
    advice = advise(done)
    assert advice.within is None
    assert "too much load" in advice.reasons[0]


def test_too_many_matches_are_too_much(past, monkeypatch):
    monkeypatch.setattr(module, "MOST_MATCHES", 10)
    assert tune(compiled, past).trials[0].skipped == "over 10 matches"


def test_a_budget_of_time_is_refused(past):
    with pytest.raises(UsageError, match="depends on the clock") as error:
        tune(compiled, past, budgets=("2 ms/batch",))
    assert error.value.code == "ACEP-U043"


# --- what is recommended ----------------------------------------------------------------------------------------

BUDGETS = (Budget.parse("50%"), Budget.parse("10%"), Budget.parse("900 runs"))
GOOD = Trial(0, "10 s", 100, 150, steps=80.0, work=(0.5, 0.1, 0.2), recalls=(0.99, 0.6, 0.93))


def advised(*trials: Trial):
    return advise(Tuning(BUDGETS, trials, 700, 300))


def test_the_budget_of_the_least_work_that_is_enough():
    advice = advised(GOOD)
    assert (advice.errors, advice.within, advice.budget) == (0, "10 s", "900 runs")
    assert advice.reasons == ("budget 900 runs: it is the least work that finds 90% of the match points; it finds 93%",)


def test_where_the_load_is_light_no_budget_is_recommended():
    advice = advised(replace(GOOD, steps=8.0))
    assert (advice.errors, advice.within, advice.budget) == (0, "10 s", None)
    assert advice.reasons == (
        "no budget: the exact run takes 8 run-steps per event, and below 10 a budget saves no time",
    )


def test_a_number_of_matches_that_stopped_growing_is_more_than_that():
    capped = replace(GOOD, errors=1, points=200, matches=2 * (2**63 - 1))
    advice = advised(GOOD, capped)
    reason = "the number of matches grows from 150 to more than 1.8e19 at 2.0 times the match points"
    assert any(reason in told for told in advice.reasons), advice.reasons
    shown = Tuning(BUDGETS, (GOOD, capped), 700, 300)._repr_html_()
    assert "more than 1.8e19" in shown
    assert "9223372036854775807" not in shown


def test_where_no_budget_is_enough_the_best_one():
    advice = advised(replace(GOOD, recalls=(0.7, 0.8, 0.2)))
    assert advice.budget == "10%"
    assert "none finds 90%" in advice.reasons[0]


@pytest.mark.parametrize(
    ("after", "errors", "why"),
    [
        ({"points": 200, "matches": 400}, 1, "grow from 100 to 200"),
        ({"points": 104, "matches": 200}, 0, "grow by 4% only"),
        ({"points": 200, "matches": 1501}, 0, "10 times as many matches"),
        ({"skipped": "30,000 run-steps per event", "points": 0}, 0, "too much: 30,000 run-steps per event"),
    ],
)
def test_one_more_error_must_be_worth_it(after, errors, why):
    advice = advised(GOOD, replace(GOOD, errors=1, steps=20.0, **after))
    assert advice.errors == errors
    assert why in advice.reasons[0]
    assert advice.reasons[0].startswith(f"ERRORS {errors}: ")


def test_windows_come_before_errors_and_may_bring_any_number_of_matches():
    longer = replace(GOOD, within="20 s", points=120, matches=10_000)
    advice = advised(GOOD, replace(GOOD, errors=1), longer, replace(longer, errors=1, points=400, matches=20_000))
    assert (advice.within, advice.errors) == ("20 s", 1)


def test_without_match_points_there_is_nothing_to_choose_by():
    advice = advised(replace(GOOD, points=0))
    assert (advice.errors, advice.within, advice.budget) == (None, None, None)


# --- why a run was shed -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shed():
    query = compiled()
    known = learned(HistoryGraph(query), EVENTS)
    known.search_ = None  # partial matches are followed
    matches = query.match_within(make_events(400, seed=9), "15%", history=known, log_shed=True)
    matches.to_arrow()
    return matches


def test_the_terms_of_a_score_make_up_the_score(shed):
    table = shed.shed().to_pandas()
    weighed = table[table.reason.isin(REASONS[:2])]
    assert len(weighed) > 50
    terms = (weighed.gain - weighed.covered) / weighed.cost * weighed.coin
    np.testing.assert_allclose(terms, weighed.score, rtol=1e-9)
    assert (weighed.score < weighed.price).all()


def test_the_vertex_is_the_one_the_history_knows(shed):
    scheme = shed.load.history.graph_.scheme
    for run in shed.shed().slice(0, 200).to_pylist():
        said = scheme.describe(run["vertex"])
        assert (said["state"], said["errors"]) == (run["state"], run["errors"])
        assert said["remaining"][0] <= run["start"] + 30 - run["at"] <= said["remaining"][1]
        assert said["since"][0] <= run["at"] - run["last"] <= said["since"][1]


def test_the_nearest_come_first(shed):
    table = shed.shed()
    for key, state, by in (("u", None, "at"), (None, "b", "at"), ("v", "a", "row")):
        rows = [
            run
            for run in table.to_pylist()
            if (key is None or run["key"] == key) and (state is None or run["state"] == state)
        ]
        wanted = sorted(rows, key=lambda run: abs(run[by] - 200))[:7]
        assert nearest(table, 200, by=by, key=key, state=state, limit=7) == wanted
    assert nearest(table, 200, key="nobody") == []
    assert nearest(pa.table({}), 200) == []


def test_why_in_words(shed):
    run = next(run for run in shed.shed().to_pylist() if run["reason"] == REASONS[0])
    said = dict(in_words(run, shed))
    assert said["state"] == f"{run['state']}, 0 errors"
    assert said["window"].startswith(f"{run['start'] + 30 - run['at']} left")
    assert said["score"].endswith(f"= {run['score']:.4g}")
    assert said["price"] == f"{run['price']:.4g}"
    assert said["why"] == SENTENCES[REASONS[0]]
    assert set(SENTENCES) == set(REASONS)
    for_the_bound = dict(in_words(run | {"score": None, "price": None}, shed))
    assert "score" not in for_the_bound
    assert "kept" not in for_the_bound


# --- the curves -------------------------------------------------------------------------------------------------


def test_the_page_of_curves_is_well_formed_and_loads_nothing():
    curves = [Curve(f"<{i}>", [(0, 10.0**i), (1, 0.0), (2, 5e6)]) for i in range(7)]
    recall = [Curve("ERRORS 0", [(0.0, 0.0), (0.5, 0.8), (1.2, 1.0)])]
    page = curves_page("a < b", ["because <so>"], recall, curves, curves)
    assert page.count("<svg") == 3
    assert "because &lt;so&gt;" in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    for text, drawn in ((recall_curves(recall), recall), (growth_curves("load", "Load", "steps", curves), curves)):
        circles = ElementTree.fromstring(text).findall(".//{*}circle")
        assert len(circles) == sum(len(curve.points) for curve in drawn)
        assert all(70 <= float(c.get("cx")) <= 670 and 34 <= float(c.get("cy")) <= 274 for c in circles)
    assert curves_page("q", [], [], [], []).count("<svg") == 0
