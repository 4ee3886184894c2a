"""One budget over several shards: never more than all of it, and more is found than where all shards get the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.shedding.load import RESERVE_EVENTS, Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.splitting import LEAST, Need, Split, shard_budget, split
from acep_approx.training.history_graph import HistoryGraph

BATCHES = 10


def numbers(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most, allow_nan=False)


def needs(shards: int) -> st.SearchStrategy[list[tuple[int, int, float]]]:
    """Events, run-steps and price of each shard."""
    one = st.tuples(st.integers(0, 10_000), st.integers(0, 10**6), st.just(0.0) | numbers(1e-12, 1e6))
    return st.lists(one, min_size=shards, max_size=shards)


@given(st.integers(1, 6).flatmap(lambda shards: st.lists(needs(shards), min_size=1, max_size=8)))
def test_no_more_is_ever_given_than_the_events_bring(batches: list[list[tuple[int, int, float]]]) -> None:
    """Whatever the events of the next batch are: after each, over all so far."""
    now = Split.even(len(batches[0]))
    events = given_out = 0.0
    for number, batch in enumerate(batches):
        seen = []
        for shard, (count, steps, price) in enumerate(batch):
            weight = now.weight(shard, count)
            seen.append(Need(count, weight, steps, round(count * weight), price))
            events, given_out = events + count, given_out + count * weight
        assert given_out <= events * (1 + 1e-9) + 1e-6
        now = split(now, seen, number)
        assert sum(now.surplus) <= now.saved * (1 + 1e-9)
        assert now.saved == pytest.approx(events - given_out, abs=1e-6 * (1 + events))
        counts = np.array([need.events for need in seen])
        if counts.sum():
            assert np.average(now.weights, weights=counts) == pytest.approx(1.0)
        assert min(now.weights) >= LEAST - 1e-9


@given(st.integers(1, 6).flatmap(lambda shards: st.lists(needs(shards), min_size=1, max_size=8)))
def test_places_for_runs_are_never_more_than_there_are(batches: list[list[tuple[int, int, float]]]) -> None:
    shards = len(batches[0])
    now, budget = Split.even(shards), Budget(100.0 * shards, "runs")
    for number, batch in enumerate(batches):
        parts = [shard_budget(budget, now.weight(shard, each[0]), shards) for shard, each in enumerate(batch)]
        assert sum(part.amount for part in parts) <= budget.amount
        assert all(part.amount == int(part.amount) >= 1 for part in parts)
        now = split(
            now, [Need(count, 1.0, steps, steps, price) for count, steps, price in batch], number, by_events=False
        )


def test_weights_move_until_prices_are_equal() -> None:
    """The price is 100 / steps granted for an event in one shard, and 1 / steps in the other: 10 to 1 is best."""
    now = Split.even(2)
    for number in range(60):
        prices = [100 / now.weights[0] ** 2, 1 / now.weights[1] ** 2]
        now = split(now, [Need(100, now.weight(s, 100), 100, 100, prices[s]) for s in range(2)], number)
    assert now.weights[1] == pytest.approx(LEAST)
    assert now.weight(0, 100) == pytest.approx(2 - LEAST, rel=1e-3)
    now = Split.even(2)
    for number in range(60):
        prices = [4 / now.weights[0] ** 2, 1 / now.weights[1] ** 2]
        now = split(now, [Need(100, now.weight(s, 100), 100, 100, prices[s]) for s in range(2)], number)
    assert now.weights[0] / now.weights[1] == pytest.approx(2.0, rel=1e-3)


def test_a_shard_that_sheds_nothing_keeps_what_it_needs() -> None:
    now = Split.even(2)
    for number in range(20):
        bound = [1000 * now.weight(shard, 100) for shard in range(2)]
        now = split(
            now, [Need(100, bound[0] / 1000, 400, int(bound[0]), 0.0), Need(100, bound[1] / 1000, 9**9, 1, 1.0)], number
        )
    assert now.weights == pytest.approx((0.6, 1.4), rel=0.01)


def test_a_batch_that_is_run_twice_counts_once() -> None:
    first = split(Split.even(2), [Need(10, 1.0, 5, 9, 2.0), Need(10, 1.0, 5, 9, 1.0)], 3)
    assert first.weights[0] > first.weights[1]
    assert split(first, [Need(10, 1.0, 5, 9, 2.0), Need(10, 1.0, 5, 9, 1.0)], 3) == first
    assert split(first, [Need(10, 1.0, 5, 9, 2.0), Need(10, 1.0, 5, 9, 1.0)], 2) is first
    nothing = [Need(0, 1.0, 0, 0, 0.0)] * 2
    assert split(first, nothing, 4) == replace(first, batch=4, before=replace(first, before=None))


def test_a_batch_that_is_run_again_counts_as_it_was_run_at_last() -> None:
    """What its first run saved is not there: the second may have used it."""
    even = [Need(100, 1.0, 9, 100, 1.0), Need(100, 1.0, 9, 100, 1.0)]
    now = split(Split.even(2), even, 0)
    frugal = split(now, [Need(100, 0.5, 50, 50, 1.0), Need(100, 1.0, 99, 100, 3.0)], 1)
    assert frugal.saved == pytest.approx(50)
    again = split(frugal, even, 1)
    assert (again.saved, again.batch) == (0, 1)
    assert sum(again.surplus) == 0


def test_a_surplus_is_given_in_the_next_batch_only() -> None:
    now = Split((0.5, 1.5), (0.0, 50.0), saved=50.0, batch=6)
    assert [now.weight(1, 100, batch) for batch in (None, 7)] == [1.5, 1.5]
    assert [now.weight(1, 100, batch) for batch in (6, 8)] == [1.0, 1.0]
    assert [now.weight(0, 100, batch) for batch in (6, 7, 8)] == [0.5, 0.5, 0.5]


def test_the_file_is_whole_or_all_shards_are_alike(tmp_path: Path) -> None:
    some = split(Split.even(3), [Need(10, 1.0, 5, 9, price) for price in (1.0, 2.0, 3.0)], 7)
    assert Split.load(tmp_path, 3) == Split.even(3)
    some.save(tmp_path)
    assert Split.load(tmp_path, 3) == some
    assert Split.load(tmp_path, 4) == Split.even(4)
    assert [entry.name for entry in tmp_path.iterdir()] == [Split.FILE]
    numbers = '{"weights": [1, 1, %s], "surplus": [0, 0, %s], "saved": %s, "batch": %s}'
    wrong = [
        (-1, 0, 0, 0), ("NaN", 0, 0, 0), ("Infinity", 0, 0, 0), (1, "NaN", 0, 0), (1, -1, 0, 0), (1, 0, "NaN", 0),
        (1, 0, -5, 0), (1, 0, 0, "Infinity"), (1, 0, 0, "null"), ("1" + 400 * "0", 0, 0, 0), ("[]", 0, 0, 0),
    ]  # fmt: skip
    texts = ["", "{", "[]", '{"weights": [1, 1, 1]}', '{"weights": 3, "surplus": 3, "saved": 0, "batch": 0}']
    for text in [*texts, "[" * 9999, *(numbers % some for some in wrong)]:
        (tmp_path / Split.FILE).write_text(text)
        assert Split.load(tmp_path, 3) == Split.even(3)
    whole = numbers % (1, 0, 0, 0)
    for text in ["3", "{}", whole.replace("[1, 1, 1]", "[1, 1]")]:
        (tmp_path / Split.FILE).write_text(f'{whole[:-1]}, "before": {text}}}')
        assert Split.load(tmp_path, 3) == Split.even(3)
    (tmp_path / Split.FILE).write_text(whole)  # as it was written before
    assert Split.load(tmp_path, 3) == replace(Split.even(3), batch=0)
    (tmp_path / Split.FILE).write_bytes(b"\xff\xfe")
    assert Split.load(tmp_path, 3) == Split.even(3)
    some_runs = split(Split.even(2), [Need(10, 1.0, 5, 9, price) for price in (1.0, 2.0)], 7, by_events=False)
    some_runs.save(tmp_path)
    assert Split.load(tmp_path, 2) == some_runs


# --- is more found? -------------------------------------------------------------------------------------------------

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x + b.x < c.x WITHIN 200"
SIZE, SHARDS = 2000, 4


def stream(seed: int, shard: int) -> pa.Table:
    """One event a tick; those of the first shard are of fewer keys, and more of them end a match."""
    rng = np.random.default_rng([seed, shard])
    events = SIZE * BATCHES
    letter = rng.choice(3, events, p=[0.4, 0.4, 0.2])
    x = rng.integers(0, 20, events)
    is_end = letter == 2
    x[is_end] = rng.integers(0, 25 if shard == 0 else 5, is_end.sum())
    key = np.char.add(f"{shard}-", rng.integers(0, 10 if shard == 0 else 20, events).astype(str))
    return pa.table({"ts": np.arange(events), "type": np.array(list("ABC"))[letter], "x": x, "id": key})


@pytest.fixture(scope="module")
def known() -> HistoryGraph:
    """What all shards together were like."""
    past = pa.concat_tables([stream(99, shard) for shard in range(SHARDS)]).sort_by("ts")
    return HistoryGraph(compile_query(QUERY, engine="runs")).fit(past)


def found(known: HistoryGraph, shards: Sequence[pa.Table], budget: Budget, *, is_split: bool) -> tuple[int, float]:
    """Match points of some shards that are matched batch by batch, and the largest share of the budget ever used."""
    now, used, most = Split.even(len(shards)), [0] * len(shards), 0.0
    load = Load(budget, known, audit=0, full_work=known.steps_per_event_)  # each event is granted the same
    shedders = [Shedder(known.plan, load) for _ in shards]
    matchers = [Matcher(known.plan, shedding=shedder) for shedder in shedders]
    full = budget.amount / 100 * known.steps_per_event_
    for batch in range(BATCHES):
        seen = []
        for shard, (shedder, matcher) in enumerate(zip(shedders, matchers, strict=True)):
            weight = now.weight(shard, SIZE)
            part = full * shard_budget(budget, weight, len(shards)).amount / budget.amount
            shedder._rate = part
            if batch:
                shedder.arena.allow(replace(shedder.arena.allowance, rate=part, reserve=RESERVE_EVENTS * part))
            matcher.push(shards[shard].slice(batch * SIZE, SIZE))
            piece = shedder.metrics.pieces[-1]
            price = piece.price if piece.shed else 0.0
            seen.append(Need(SIZE, weight, piece.work - used[shard], int(SIZE * part), price))
            used[shard] = piece.work
        if is_split:
            now = split(now, seen, batch)
        most = max(most, sum(used) / (full * SIZE * (batch + 1) * len(shards)))
    return sum(len(shedder.metrics.points) for shedder in shedders), most


def test_where_one_shard_is_rich_more_is_found_than_by_an_even_split_of_the_same_budget(known: HistoryGraph) -> None:
    shards = [stream(3, shard) for shard in range(SHARDS)]
    even, same = found(known, shards, Budget.parse("5%"), is_split=False)
    ours, most = found(known, shards, Budget.parse("5%"), is_split=True)
    assert ours > 1.15 * even
    assert max(same, most) <= 1


def test_parts_of_a_budget() -> None:
    """Together they are the budget of the job, whatever its unit."""
    for text in ("10%", "7 steps/event"):
        parts = [shard_budget(Budget.parse(text), weight, 2) for weight in (0.5, 1.5)]
        assert sum(part.amount for part in parts) == pytest.approx(2 * Budget.parse(text).amount)
    assert shard_budget(Budget.parse("100%"), 0.25, 4).is_unlimited  # all of the work is all of it in each shard
    assert not shard_budget(Budget.parse("90%"), 3.0, 4).is_unlimited
    assert sum(shard_budget(Budget.parse("80 ms/batch"), weight, 4, 2).amount for weight in (0.5, 1.5, 1, 1)) == 160
    assert shard_budget(Budget.parse("9k events/s"), 0.5, 4, 8).amount == 9000 / 2
