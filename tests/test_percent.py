"""A percentage is of the exact run of the same query and output, on the events that come: not of the past."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.runs import event_columns
from acep_approx.engines.runs.expected_work import Correction, WorkLaw
from acep_approx.pages import summary
from acep_approx.training import training
from acep_approx.training.exact_work import ExactWork
from acep_approx.training.pricing import LISTED, POINTED
from history import HistoryError

KEYED = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x AND c.y - a.y > b.y - 9 WITHIN 900"
WITHOUT_KEY = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x + a.x AND c.y = a.y WITHIN 150"
LOOP = "PATTERN SEQ(A a, B+ b[], C c) WHERE [k] AND sum(b[].x) + a.y < c.x + c.y WITHIN 200"
EVENTS = 12_000

pytestmark = [pytest.mark.xdist_group("percent"), pytest.mark.usefixtures("one_reading")]
"""One process learns the histories."""


@cache
def events(seed: int, *, every: float = 1.0, keys: int = 8, begins: float = 1.0) -> list[dict[str, Any]]:
    """A stream; ``every``: ticks between two events, ``begins``: how often they begin a match, beside others."""
    dice, found = random.Random(seed), []
    for number in range(EVENTS):
        kind = dice.choices("ABCD", [begins, 1.0, 0.3, 1.0])[0]
        row = {"ts": int(number * every), "type": kind, "k": dice.randrange(keys), "x": dice.randrange(200)}
        found.append({**row, "y": dice.randrange(10)})
    return found


@cache
def learned(text: str, kinds: int = 0) -> tuple[Query, HistoryGraph]:
    """A query, and a history of the usual stream (of its begin for the loop, which takes ten times as long)."""
    query = compile_query(text, engine="runs")
    past = with_texts(events(1), kinds) if kinds else events(1)
    return query, HistoryGraph(query).fit(past[: EVENTS // 3 if text == LOOP else EVENTS])


@cache
def exact_steps_of(text: str, seed: int, merge: str) -> int:
    """The same of a stream that several tests have."""
    return exact_steps(learned(text)[0], events(seed), merge)


def exact_steps(query: Query, stream: list[dict[str, Any]], merge: str) -> int:
    """Run-steps of the exact run."""
    matcher = Matcher(query.plan, output="points", merge=merge)
    matcher.push(stream)
    return matcher.progress.steps


@pytest.mark.parametrize("text", [KEYED, WITHOUT_KEY, LOOP])
@pytest.mark.parametrize(("output", "merge"), [("points", POINTED), ("counts", LISTED)])
@pytest.mark.parametrize("share", [10, 50, 80])
def test_a_share_is_of_the_exact_run_of_the_same_output(text: str, output: str, merge: str, share: int):
    """Never more than of the load that is stated; about as much of the true one, unless there is nothing left to do."""
    query, known = learned(text)
    stream = events(2)
    some = query.match_within(stream, f"{share}%", history=known)
    getattr(some, output)()
    record, true = some.record(), exact_steps_of(text, 2, merge)
    assert record.full_work is not None
    stated = record.full_work * len(stream)
    assert record.work <= share / 100 * stated + 1
    assert 0.88 * true <= stated <= 1.12 * true
    lost = some.shedder.arena.counts.sum() if some.shedder is not None else 0
    assert record.work >= (0.8 * share / 100 * true if lost > EVENTS / 10 else 0)


def test_where_runs_come_back_the_law_says_of_the_past_what_its_exact_run_took(monkeypatch: pytest.MonkeyPatch):
    """There, what is tested hangs on how events come: a law of short stretches would be too low."""
    query, known = learned(LOOP)
    monkeypatch.setattr(Correction, "end_block", lambda *_: None)
    some = query.match_within(events(1), "50%", history=known)
    some.counts()
    full = some.record().full_work
    assert full is not None
    assert full * EVENTS == pytest.approx(exact_steps(query, events(1), LISTED), rel=0.01)


@pytest.mark.parametrize("change", [{"every": 0.5}, {"every": 2.0}, {"keys": 3}, {"begins": 3.0}, {"begins": 0.3}])
def test_a_share_follows_the_present_load(change: dict[str, float]):
    """Where the load has risen tenfold, or fallen, the past says nothing of it; the events do."""
    query, known = learned(KEYED)
    stream = events(3, **change)  # type: ignore[arg-type]
    some = query.match_within(stream, "10%", history=known)
    some.counts()
    record, true = some.record(), exact_steps(query, stream, LISTED)
    assert record.full_work is not None
    assert record.past_work == pytest.approx(known.steps_per_event_)
    assert not 0.8 < record.past_work * len(stream) / true < 1.25
    assert 0.75 * true <= record.full_work * len(stream) <= 1.35 * true
    assert 0.07 * true <= record.work <= 0.135 * true


def test_within_a_stream_the_budget_follows_the_load():
    """Each half spends its share, though the second has twice as many events in a window."""
    query, known = learned(KEYED)
    first, second = events(4), events(5, every=0.5)
    stream = [*first, *({**row, "ts": row["ts"] + EVENTS} for row in second)]
    matcher = query.matcher(budget="10%", history=known, output="counts", audit=0)
    done, true, before = [], [], 0
    exact = Matcher(query.plan, output="points", merge=LISTED)
    for part in (stream[:EVENTS], stream[EVENTS:]):
        matcher.push(part)
        exact.push(part)
        done.append(matcher.record().work - sum(done))
        true.append(exact.progress.steps - before)
        before = exact.progress.steps
    assert true[1] > 1.5 * true[0]
    assert all(0.085 * of <= spent <= 0.12 * of for spent, of in zip(done, true, strict=True))


def test_a_small_budget_is_spent_and_not_held_back():
    """What should be left for bursts is no large part of what was granted so far."""
    query, known = learned(WITHOUT_KEY)
    some = query.match_within(events(2), "1%", history=known)
    some.counts()
    record = some.record()
    assert record.full_work is not None
    assert 0.9 < record.work / (0.01 * record.full_work * EVENTS) <= 1


def test_the_run_says_which_load_it_meant():
    """And what it spent of it."""
    query, known = learned(KEYED)
    some = query.match_within(events(3, every=0.5), "10%", history=known)
    some.counts()
    line = summary(some.record())[0]
    assert "expected of these events;" in line
    assert f"{known.steps_per_event_:,.3g} in the past" in line
    assert "(10%)" in line or "(9%)" in line


def test_a_load_that_is_said_counts():
    """Who says the full work means that, whatever the events are."""
    query, known = learned(KEYED)
    some = query.match_within(events(3, every=0.5), "10%", history=known, full_work=known.steps_per_event_)
    some.counts()
    record = some.record()
    assert record.past_work is None
    assert record.work <= 0.1 * known.steps_per_event_ * EVENTS


def test_a_history_keeps_what_exact_runs_take(tmp_path: Path):
    """Saved and read again it grants the same; a file that cannot be of one is refused."""
    query, known = learned(KEYED)
    known.save(tmp_path / "saved")
    again = HistoryGraph.load(tmp_path / "saved", query)
    assert again.work_ == known.work_
    (manifest,) = (path for path in (tmp_path / "saved").rglob("*.json") if "work" in path.read_text(encoding="utf-8"))
    notes = json.loads(manifest.read_text(encoding="utf-8"))
    assert notes["notes"]["work"]
    notes["notes"]["work"]["ratio"] = 7.0
    manifest.write_text(json.dumps(notes), encoding="utf-8")
    with pytest.raises(HistoryError):
        HistoryGraph.load(tmp_path / "saved", query)


@pytest.mark.parametrize("text", [KEYED, WITHOUT_KEY])
@pytest.mark.parametrize("budget", ["10%", "20 steps/event"])
def test_a_run_that_is_taken_up_again_goes_on_alike(text: str, budget: str):
    """What was seen of the events is part of its state."""
    query, known = learned(text)
    stream = events(6)
    whole, half = (query.matcher(budget=budget, history=known, output="points") for _ in range(2))
    expected = whole.push(stream).to_pylist()
    found = half.push(stream[: EVENTS // 3]).to_pylist()
    again = query.from_state(half.state_bytes(), history=known)
    found += again.push(stream[EVENTS // 3 :]).to_pylist()
    assert found == expected


SHORT = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x + 120 AND c.x > b.x WITHIN 150"
TEXTS = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND b.t <> a.t AND c.x > b.x WITHIN 300"


def with_texts(stream: list[dict[str, Any]], kinds: int) -> list[dict[str, Any]]:
    """The same events, each with one of so many texts."""
    return [{**row, "t": f"t{17 * number % kinds}"} for number, row in enumerate(stream)]


@pytest.mark.parametrize("output", ["points", "counts"])
def test_where_more_runs_are_merged_than_in_the_past_a_share_follows(output: str, monkeypatch: pytest.MonkeyPatch):
    """The law knows how many events come, not which of them begin the same run; the pools of first places do."""
    query, known = learned(SHORT)
    stream = [{**row, "x": row["x"] // 40 * 40} for row in events(7)]
    some = query.match_within(stream, "50%", history=known, policy="scores")  # partial matches are followed
    getattr(some, output)()
    record, true = some.record(), exact_steps(query, stream, POINTED if output == "points" else LISTED)
    assert record.full_work is not None
    assert 0.95 * true <= record.full_work * len(stream) <= 1.5 * true, "it is too much only at the beginning"
    monkeypatch.setattr(Correction, "end_block", lambda *_: None)
    getattr(some, output)()
    by_law = some.record().full_work
    assert by_law is not None
    assert by_law * len(stream) > 2 * true, "the law alone is off"


PAIRS = "PATTERN SEQ(A a, A b, C c) WHERE b.x <> a.x AND c.x > a.x + b.x WITHIN 40"


def values(seed: int, *many: int, each: int = 1024) -> list[dict[str, Any]]:
    """A stream; ``many``: how many values there are, in one stretch after the other."""
    dice = random.Random(seed)
    kinds = [one for one in many for _ in range(each)]
    return [{"ts": n, "type": dice.choice("AAC"), "x": 100 // k * dice.randrange(k)} for n, k in enumerate(kinds)]


@pytest.mark.parametrize(("many", "stated"), [(3, (0.9, 2.5)), (30, (0.8, 1.2))])
def test_runs_of_one_bound_event_tell_of_those_of_two(many: int, stated: tuple[float, float]):
    """Looks count the runs of one bound event, which are merged where values are equal; the law tells pairs from them.

    What is stated is off only at the beginning. By the product of the place it was 7.6 and 0.6 of what is true.
    """
    query = compile_query(PAIRS, engine="runs")
    known = HistoryGraph(query).fit(values(1, 20, 3, 5, 40, 4, 10))
    assert known.work_ is not None
    assert known.work_.listed.fed_places == (2,)
    stream = values(2, many, many)
    some = query.match_within(stream, "30%", history=known)
    some.counts()
    full, true = some.record().full_work, exact_steps(query, stream, LISTED)
    assert full is not None
    assert stated[0] * true <= full * len(stream) <= stated[1] * true


@pytest.mark.parametrize("text", [KEYED, WITHOUT_KEY])
def test_work_grows_no_faster_than_values_can_be_put_together(text: str):
    """More than that was so in the past by chance, and is far off where there is more to do than there was."""
    work = learned(text)[1].work_
    assert work is not None
    assert max(*work.listed.powers, *work.pointed.powers) <= 1


def test_a_history_of_before_knows_less():
    """Its law is not held against what the run does; all else is as it was."""
    known = learned(KEYED)[1]
    assert known.work_ is not None
    saved = known.work_.as_json()
    places, (factors, powers, *_) = len(saved["listed"][0]), saved["listed"]
    older = ExactWork.from_json({**saved, "listed": [factors, powers], "pointed": [factors, powers]}, places)
    assert older.listed == WorkLaw(tuple(factors), tuple(powers))
    fed = [[0.0, 0.0, 1.0, 0.0]] * places
    wrong_ones: list[list[Any]] = [[factors, powers, [-1.0] * places, fed], [factors, powers, [1.0], fed], [factors]]
    wrong_ones += [[factors, [9.0] * places], [factors, powers, [], [[1.0, 0.0, 9.0, 0.0]] * places]]
    for wrong in wrong_ones:
        with pytest.raises((ValueError, TypeError, LookupError)):
            ExactWork.from_json({**saved, "listed": wrong}, places)


@pytest.mark.parametrize("kinds", [3, 5000])
@pytest.mark.parametrize("output", ["points", "counts"])
def test_however_the_stream_arrives_the_load_is_the_same(kinds: int, output: str, monkeypatch: pytest.MonkeyPatch):
    """Cut into batches, saved and taken up again in between, with texts that are forgotten on the way."""
    monkeypatch.setattr(event_columns, "MANY_TEXTS", 64)
    query, known = learned(TEXTS, kinds)
    stream, dice = with_texts(events(2, every=0.7), kinds), random.Random(5)
    whole, parts = (query.matcher(budget="20%", history=known, output=output) for _ in range(2))
    expected, found, first = whole.push(stream).to_pylist(), [], 0
    while first < len(stream):
        size = dice.choice([1, 37, 700, 2500])
        found += parts.push(stream[first : first + size]).to_pylist()
        first += size
        if dice.random() < 0.3:
            parts = query.from_state(parts.state_bytes(), history=known)
    assert found == expected
    assert parts.record().full_work == pytest.approx(whole.record().full_work, rel=1e-12)


def test_columns_may_get_wider_on_the_way(monkeypatch: pytest.MonkeyPatch):
    """The runs of first places go on with the others; a history that knows runs by their values knows whole numbers."""
    monkeypatch.setattr(training, "READINGS", (training.WITHOUT_FEATURES,))
    query = learned(KEYED)[0]
    known = HistoryGraph(query).fit(events(1)[:3000])
    stream = events(8)[:4000]
    wider = [{**row, "x": row["x"] + 0.0} for row in stream]
    whole, parts = (query.matcher(budget="20%", history=known, output="points") for _ in range(2))
    expected = whole.push(wider).to_pylist()
    found = parts.push(stream[:2000]).to_pylist() + parts.push(wider[2000:]).to_pylist()
    assert found == expected
