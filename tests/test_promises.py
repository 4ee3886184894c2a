"""What is promised is what runs find: through the same door, on the same events, and as often as the interval says."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, UsageError, compile_query
from acep_approx.events.source import open_source
from acep_approx.learning.online import refresh
from acep_approx.results.tuning import PastTable, tune
from acep_approx.shedding import promising
from acep_approx.shedding.promising import MERGES, promised
from acep_approx.training import promise as module
from acep_approx.training.promise import OUTPUTS, SHARES, Promises, Truth, intervals
from experiments.shedding.promises import SAME, Learned, measure
from experiments.shedding.workloads import Workload
from history.errors import HistoryError
from history.store import DIGEST, MANIFEST
from tests.cases import cases

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x AND c.x < b.x WITHIN 30"


def stream(seed: int, rows: int = 600, first: int = 0) -> list[dict[str, Any]]:
    dice, now, found = Random(seed), first, []
    for _ in range(rows):
        now += dice.randrange(3)
        found.append({"ts": now, "type": dice.choice("AABC"), "key": dice.choice("uvw"), "x": dice.randrange(50)})
    return found


def rows_of(some: Any) -> set[int]:
    return set(some.points()["row"].to_pylist())


# --- through the door that runs use -----------------------------------------------------------------------------


def test_what_is_promised_is_what_a_run_finds_by_what_was_learned_before() -> None:
    query, past, seen = compile_query(QUERY, engine="runs"), stream(1), []

    def measure(known: HistoryGraph, part: module.Part) -> Promises:
        seen.append((known, part))
        return promised(known, part)

    kept = HistoryGraph(query).fit(past, measure=measure)
    (known, part), promises = seen[0], kept.promises_
    assert promises is not None
    assert (promises.trained, promises.measured) == (360, 240) == (part.trained, part.events)
    assert known.graph_ is not kept.graph_
    assert known.graph_.counts.visits.sum() < 0.8 * kept.graph_.counts.visits.sum()
    last = past[360:]
    exact = rows_of(query.match(last))
    assert promises.points == len(exact) > 10
    assert [(one.output, one.share) for one in promises.rows] == [(o, share) for o in OUTPUTS for share in SHARES]
    for one in promises.rows:
        some = query.match_within(last, f"{100 * one.share:g}%", history=known, merge=MERGES[one.output])
        if one.output == "points":
            assert one.recall == pytest.approx(len(rows_of(some)) / len(exact))
        else:
            some.to_arrow()
            assert one.recall == pytest.approx(some.record().found / len(exact))
        assert one.steps == pytest.approx(some.record().work / len(last))
        assert 0 <= one.low <= one.recall <= one.high <= 1
    listed = query.match_within(last, "20%", history=known)
    listed.to_arrow()
    assert promises.of("matches")[3].steps == pytest.approx(listed.record().work / len(last))


def test_the_exact_run_is_that_of_the_output() -> None:
    query, past, steps = compile_query(QUERY, engine="runs"), stream(2), {}
    known = HistoryGraph(query).fit(past, measure=promised)
    assert known.promises_ is not None
    for output in OUTPUTS:
        matches = query.match(past[known.promises_.trained :])
        _ = matches.to_arrow() if output == "matches" else matches.points()
        steps[output] = matches.progress.steps / known.promises_.measured
    assert known.promises_.exact == pytest.approx((steps["matches"], steps["points"]))
    assert known.promises_.differ


def test_a_query_trains_as_the_command_does() -> None:
    query, past = compile_query(QUERY, engine="runs"), stream(2)
    stages: list[str] = []
    known = query.train(past[::-1], sort=True, gap="window", on_progress=lambda what, _: stages.append(what))
    assert "trying budgets" in stages
    same = HistoryGraph(query, gap="window").fit(past[::-1], sort=True, measure=promised)
    assert known.promises_ == same.promises_ is not None
    assert (known.gap, known.points_) == ("window", same.points_)
    assert f"{known.promises_.rows[0].low:.0%} to {known.promises_.rows[0].high:.0%}" in known._repr_html_()
    with pytest.raises(UsageError, match="ACEP-U053"):
        query.train(past, budget=1)


def test_nothing_is_promised_where_nobody_measures_or_nothing_is_found() -> None:
    query = compile_query(QUERY, engine="runs")
    assert HistoryGraph(query).fit(stream(3, 60)).promises_ is None
    none = [event | {"type": "A"} for event in stream(3, 60)]
    assert HistoryGraph(query).fit(none, measure=promised).promises_ is None


def test_a_promise_is_kept_with_the_history(tmp_path: Any) -> None:
    query = compile_query(QUERY, engine="runs")
    known = HistoryGraph(query).fit(stream(4, 300), measure=promised)
    folder = known.save(tmp_path / "kept")
    again = HistoryGraph.load(tmp_path / "kept", query)
    assert again.promises_ == known.promises_ is not None
    manifest = folder / MANIFEST
    whole = json.loads(manifest.read_text())
    del whole[DIGEST]
    one = [0.1, "points", 1.0, 0.5, 0.4, 0.6]
    rows = [["x"], [0.1, "other", *one[2:]], [*one[:5], "x"], [*one[:5], None], [*one[:5], float("inf")], one[1:], 1]
    changes = [{"rows": [row]} for row in rows]
    changes += [{"rows": 1}, {"points": -1}, {"points": 1.5}, {"exact": [1]}, {"exact": ["x", 1]}, {"exact": None}]
    kept = whole["notes"]["promises"]
    for promises in (*(kept | change for change in changes), {}, [], 1, "x"):
        manifest.write_text(json.dumps(whole | {"notes": whole["notes"] | {"promises": promises}}))
        with pytest.raises(HistoryError, match="ACEP-H004"):
            HistoryGraph.load(tmp_path / "kept", query)
    del whole["notes"]["promises"]  # as versions of before wrote it
    manifest.write_text(json.dumps(whole))
    assert HistoryGraph.load(tmp_path / "kept", query).promises_ is None


def test_what_was_learned_since_has_promised_nothing() -> None:
    query = compile_query(QUERY, engine="runs")
    known = query.train(stream(1))
    some = query.match_within(stream(2, 3000), "50%", full_work=2.0, learn=True)
    some.points()
    assert some.shedder is not None
    assert some.shedder.online is not None
    learner = some.shedder.online.learner
    assert learner.ranking is not None
    refresh(known, learner, 3000, 50, 2.0)
    assert known.learned_ is not None
    assert known.promises_ is None


# --- the interval -----------------------------------------------------------------------------------------------


def world(dice: np.random.Generator, keys: int, alike: float) -> tuple[np.ndarray[Any, Any], Truth]:
    """Match points of cells that share what befalls them, and who finds them at three budgets."""
    sizes = 1 + dice.poisson(2.0, keys * 20)
    cells = np.repeat(np.arange(len(sizes)), sizes)
    found = []
    for recall in RECALLS:
        scale = 1 / alike - 1
        chance = dice.beta(recall * scale, (1 - recall) * scale, len(sizes))
        found.append(dice.random(len(cells)) < chance[cells])
    stretches = cells // keys * module.STRETCHES // 20
    return np.array(found), Truth(np.arange(len(cells)), cells, stretches)


RECALLS = (0.3, 0.7, 0.95)


def held(keys: int, alike: float, tries: int) -> float:
    """How often the recall of the next stretch lies in the interval of the one before."""
    dice, right = np.random.default_rng(7), []
    for _ in range(tries):
        found, of = world(dice, keys, alike)
        after, _ = world(dice, keys, alike)
        ends = intervals(found, of)
        right += [low <= one.mean() <= high for (low, high), one in zip(ends, after, strict=True)]
    return float(np.mean(right))


@pytest.mark.parametrize(("keys", "alike"), [(2, 0.05), (2, 0.5), (5, 0.3), (20, 0.2)])
def test_the_next_stretch_lies_in_the_interval_as_often_as_it_says(keys: int, alike: float) -> None:
    assert 0.94 <= held(keys, alike, cases(1600, 200)) <= 0.999


@pytest.mark.parametrize("mutant", ["cells", "both stretches"])
def test_intervals_that_are_too_narrow_are_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant == "cells":
        monkeypatch.setattr(module, "_effect", lambda *_: 1.0)
    else:
        effect = module._effect
        monkeypatch.setattr(module, "_effect", lambda *given: effect(*given) / 2)
    assert held(5, 0.5, 200) < 0.94


def test_few_match_points_say_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert intervals(np.zeros((2, 0), np.bool_), Truth(none, none, none)) == [(0.0, 1.0)] * 2
    assert intervals(np.zeros((0, 5), np.bool_), Truth(*[np.arange(5)] * 3)) == []
    two = np.arange(2)
    low, high = intervals(np.array([[True, False]]), Truth(two, two, two))[0]
    assert (low, high) == pytest.approx((0, 1), abs=0.05)


def test_cells_are_of_one_key_and_the_time_of_a_window() -> None:
    query, events = compile_query(QUERY, engine="runs"), stream(5)
    points = query.match(events).points()
    truth = Truth.of([points.slice(0, 9), points.slice(9)], 30, len(events))
    told = {}
    for row, cell, stretch in zip(truth.rows.tolist(), truth.cells.tolist(), truth.stretches.tolist(), strict=True):
        event = events[row]
        assert told.setdefault((event["key"], event["ts"] // 31), cell) == cell
        assert stretch == row * module.STRETCHES // len(events)
    assert len(set(told.values())) == len(told)
    assert len(truth) == len(rows_of(query.match(events)))


# --- runs that go on --------------------------------------------------------------------------------------------


def test_runs_by_the_saved_history_find_what_was_promised() -> None:
    """On the part that it was measured on, and on the stretch that follows."""
    query, right = compile_query(QUERY, engine="runs"), []
    for seed in range(cases(40, 2)):
        whole = stream(100 + seed, 3000)
        past, parts = whole[:2000], (whole[1200:2000], whole[2000:2800])
        known = HistoryGraph(query).fit(past, measure=promised)
        assert known.promises_ is not None
        for part in parts:
            exact = len(rows_of(query.match(part)))
            for one in known.promises_.of("points"):
                some = query.match_within(part, f"{100 * one.share:g}%", history=known, seed=seed)
                right.append(one.low <= len(rows_of(some)) / exact <= one.high)
    assert np.mean(right) > 0.9


def test_the_experiment_holds_promises_against_runs_by_the_saved_history() -> None:
    whole, learned = pa.Table.from_pylist(stream(7, 900)), list[Learned]()
    held = [*measure(Workload("small", QUERY, whole.slice(0, 600), whole.slice(600), None), 1, learned)]
    known = learned[0].known
    promises = known.promises_
    assert promises is not None
    assert len(held) == 2 * len(promises.rows)
    query = compile_query(QUERY, engine="runs")
    for one in held:
        events = whole.slice(promises.trained, promises.measured) if one.on == SAME else whole.slice(600, 300)
        events = events.slice(0, promises.measured)
        budget, merge = f"{100 * one.promise.share:g}%", MERGES[one.promise.output]
        found = rows_of(query.match_within(events, budget, history=known, merge=merge))
        assert one.recall == len(found) / len(rows_of(query.match(events)))
        assert one.is_held == (one.promise.low <= one.recall <= one.promise.high)


def test_recalls_of_tuning_have_intervals() -> None:
    past = PastTable.read(open_source(stream(6, 400)))
    compiled = lambda errors, within: compile_query(QUERY, errors=errors, within=within, engine="runs")  # noqa: E731
    trial = tune(compiled, past, budgets=("20%", "50%", "100%")).trials[0]
    for recall, (low, high) in zip(trial.recalls, trial.intervals, strict=True):
        assert 0 <= low <= recall <= high <= 1
    assert trial.intervals[2] == (1.0, 1.0)
    assert trial.recall_words(2) == "100%"
    assert trial.recall_words(0).startswith(f"{trial.recalls[0]:.0%} (")
    assert promising.promised is promised
