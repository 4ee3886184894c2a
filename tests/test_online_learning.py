"""The experiment on learning while a stream runs: its streams, its runs and its verdicts, and small parts of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Budget, compile_query
from acep_approx.shedding.load import Load
from experiments.learning.drifts import DAY, DRIFTS, KEYS, LETTERS, PRODUCTIVE, RATES, TELLING, days, jump, swapped
from experiments.learning.evaluation import (
    AFTER,
    LATER,
    SOON,
    TENTH,
    Result,
    cold_verdicts,
    cost_verdicts,
    drift_verdicts,
    main,
    mean,
    shares,
)
from experiments.learning.runs import Answer, Clocked, Found, answer, offline, run

SMALL = 2000

# --- streams ------------------------------------------------------------------------------------------------------


def test_keys_rates_and_selectivities_all_change_in_the_generated_stream() -> None:
    stream = swapped(3, 20_000)
    productive, letters, telling = [], [], []
    for part in (stream.before, stream.after, stream.fresh):
        events = part.to_pandas()
        ends = events[events.type == "D"]
        productive.append(set(ends.id))
        telling.append(set(ends.z))
        letters.append(events.type.value_counts(normalize=True))
        assert set(events.id) == set(range(1, KEYS + 1))
    assert [len(keys) for keys in productive] == [PRODUCTIVE] * 3
    assert not productive[0] & productive[1]
    assert productive[1] == productive[2]
    assert telling == [set(TELLING[0]), set(TELLING[1]), set(TELLING[1])]
    for part, changed in enumerate((0, 1, 1)):
        for letter in "ABC":
            assert letters[part][letter] == pytest.approx(RATES[changed][LETTERS.index(letter)], abs=0.02)


def test_parts_of_the_generated_stream_follow_each_other_and_seeds_differ() -> None:
    stream = swapped(3, SMALL)
    joined = pa.concat_tables([stream.before, stream.after, stream.fresh])
    assert joined.column("ts").to_pylist() == list(range(3 * SMALL))
    assert not stream.after.drop(["ts"]).equals(stream.fresh.drop(["ts"]))
    assert stream.before.equals(swapped(3, SMALL).before)
    assert not stream.before.equals(swapped(4, SMALL).before)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=12), st.integers(1, 5))
def test_a_jump_is_where_events_come_most_suddenly(counts: list[int], width: int) -> None:
    counts = [counts[0] + 1, *counts[1:-1], counts[-1] + 1]  # the first and last slot are those of the stream
    tick = np.array([7 + slot * width for slot, events in enumerate(counts) for _ in range(events)])
    found = jump(tick, width)
    best = max(counts[slot] / max(counts[slot - 1], 1) for slot in range(1, len(counts)))
    slot = next(s for s in range(1, len(counts)) if counts[s] / max(counts[s - 1], 1) == best)
    assert found == sum(counts[:slot])


@given(st.lists(st.tuples(st.integers(0, 4 * 24), st.booleans()), min_size=1, max_size=30))
def test_days_begin_and_end_with_events_inside_hours(events: list[tuple[int, bool]]) -> None:
    events = sorted(events)
    tick = np.array([hour * DAY // 24 for hour, _ in events])
    first, last = days(tick, np.array([is_open for _, is_open in events]))
    inside: dict[int, list[int]] = {}
    for number, (hour, is_open) in enumerate(events):
        if is_open:
            inside.setdefault(hour // 24, []).append(number)
    assert first.tolist() == [numbers[0] for numbers in inside.values()]
    assert last.tolist() == [numbers[-1] for numbers in inside.values()]


def test_real_streams_and_those_that_stand_for_them_have_all_three_parts_in_order_of_time() -> None:
    for name in ("zeek", "ticks", "soccer"):
        stream = DRIFTS[name](0)
        assert compile_query(stream.query, engine="runs").plan.registers is not None
        for part in (stream.before, stream.after, stream.fresh):
            assert len(part) > 5000
        tick = pa.concat_tables([stream.before, stream.after]).column("ts").to_numpy()
        assert (np.diff(tick) >= 0).all()


# --- runs ---------------------------------------------------------------------------------------------------------


def test_recall_is_that_of_the_last_part_and_all_runs_keep_inside_the_budget() -> None:
    stream = swapped(1, SMALL)
    query = compile_query(stream.query, engine="runs")
    exact = answer(query, stream.after, None)
    history = offline(query, stream.fresh, None)
    known = set(exact.rows.tolist())
    both = answer(query, pa.concat_tables([stream.before, stream.after]), None)
    in_all = set((both.rows - SMALL).tolist())
    assert known < in_all
    assert len(known) > 20
    for learns in (False, True):
        found = run(query, [stream.after], None, exact.steps / SMALL, history=history, learns=learns)
        assert set(found.rows.tolist()) <= known
        assert 0 < found.work <= 0.1 * exact.steps
        assert 0 <= found.learning <= found.seconds
        assert (found.learning > 0) == learns
        everything = np.ones(len(known), np.bool_)
        assert found.recall(exact, everything) == len(known & set(found.rows.tolist())) / len(known)
        whole = run(query, [stream.before, stream.after], None, exact.steps / SMALL, history=history, learns=learns)
        assert set(whole.rows.tolist()) <= in_all
        assert whole.rows.min() < 0 < whole.rows.max()


def test_nothing_is_saved_up_for_the_last_part(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = swapped(1, SMALL)
    query = compile_query(stream.query, engine="runs")
    at = stream.before.schema.get_field_index("type")
    idle = stream.before.set_column(at, "type", pa.array(["F"] * SMALL))
    full = answer(query, stream.after, None).steps / SMALL
    assert 0 < run(query, [idle, stream.after], None, full, learns=True).work <= 0.1 * full * SMALL
    shedder = Clocked(query.plan, Load(Budget.parse("10%"), full_work=full))
    monkeypatch.setattr(type(shedder), "forget_savings", lambda self: None)
    with pytest.raises(AssertionError, match="bound"):
        run(query, [idle, stream.after], None, full, learns=True)


def test_recall_counts_only_the_rows_that_are_asked_for() -> None:
    exact = Answer(np.array([2, 5, 7, 9]), np.array([2, 5, 7, 9]), 3, 1.0)
    found = Found(np.array([-4, 5, 9]), 1.0, 0.0, 0.0, 0)
    assert found.recall(exact, np.array([True, True, True, False])) == pytest.approx(1 / 3)
    assert np.isnan(found.recall(exact, np.zeros(4, np.bool_)))


# --- verdicts -----------------------------------------------------------------------------------------------------


def one(part: str, stream: str, how: str, seed: int, recall: dict[str, float], learning: float = 0.0) -> Result:
    return Result(part, stream, how, seed, recall, 0.1, 2.0 + learning, learning, 0)


def cold_of(offline_recall: float, learned: list[float]) -> list[Result]:
    found = [one("cold", "s", "offline", seed, {TENTH: offline_recall}) for seed in range(len(learned))]
    return found + [one("cold", "s", "learning", seed, {TENTH: recall}) for seed, recall in enumerate(learned)]


@pytest.mark.parametrize(
    ("before", "learned", "right"),
    [
        (0.6, [0.6, 0.52], [True, True]),
        (0.6, [0.5, 0.56], [False, True]),
        (0.5, [0.9, 0.9, 0.2], [True, False]),
        (0.9, [0.1, 0.1], [False, True]),
    ],
)
def test_a_cold_start_is_judged_by_its_mean_and_by_its_worst_seed(
    before: float, learned: list[float], right: list[bool]
) -> None:
    assert [is_right for is_right, _ in cold_verdicts(cold_of(before, learned))] == right


def test_a_seed_is_locked_in_by_the_mean_of_its_own_workload() -> None:
    other = [one("cold", "t", how, seed, {TENTH: 0.1}) for how in ("offline", "learning") for seed in range(2)]
    assert [is_right for is_right, _ in cold_verdicts([*cold_of(0.9, [0.9, 0.9]), *other])] == [True, True]


@pytest.mark.parametrize(
    ("later", "after", "right"),
    [
        ((0.9, 1.0), (0.31, 0.2), [True, True]),
        ((0.88, 1.0), (0.31, 0.2), [False, True]),
        ((0.9, 0.9), (0.29, 0.2), [True, False]),
    ],
)
def test_drift_is_judged_against_the_fresh_and_the_frozen_history(
    later: tuple[float, float], after: tuple[float, float], right: list[bool]
) -> None:
    """Later: learning, fresh; after the change: learning, frozen."""
    found = [
        one("drift", "swapped", "learning", 0, {SOON: float("nan"), LATER: later[0], AFTER: after[0]}),
        one("drift", "swapped", "fresh", 0, {SOON: 1.0, LATER: later[1], AFTER: 1.0}),
        one("drift", "swapped", "frozen", 0, {SOON: 0.0, LATER: 0.0, AFTER: after[1]}),
    ]
    assert [is_right for is_right, _ in drift_verdicts(found)] == right
    assert np.isnan(mean(found, "swapped", "learning", SOON))


def test_the_cost_of_learning_is_a_share_of_the_time_without_it() -> None:
    found = [one("cost", "s", "no learning", seed, {}) for seed in range(3)]
    for how, spent in (("learning on", 0.09), ("from nothing", 0.11)):
        found += [one("cost", "s", how, seed, {}, spent * (1 + 9 * (seed == 2))) for seed in range(3)]
    assert shares(found, "s", "learning on") == pytest.approx((0.045, 0.045))
    assert [is_right for is_right, _ in cost_verdicts(found)] == [True, False]


# --- all of it, small ---------------------------------------------------------------------------------------------


def test_small_parts_run_and_leave_their_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "numbers.jsonl"
    main(["--quick", "--only", "cold,drift,cost", "--streams", "DS2-sum,swapped,DS1-sum", "--out", str(out)])
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    runs = {(each["part"], each["stream"], each["run"]) for each in found}
    assert {part for part, _, _ in runs} == {"cold", "drift", "cost"}
    assert {how for part, _, how in runs if part == "drift"} == {"frozen", "learning", "fresh", "cold"}
    assert all(each["work"] <= 0.1 + 1e-3 for each in found)
    shown = capsys.readouterr().out
    assert "swapped: learning / fresh" in shown
    assert "learning takes" in shown
