"""What the kernel writes down of tests: all of them when all are asked for, and as good as all when some are."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance, Worth
from acep_approx.kernels.runs.sample import AT_ONCE, LEFT_OUT
from acep_approx.learning.features import bare_scheme, select_features
from tests.cases import examples
from tests.rich_worlds import rich_worlds
from tests.runs_engine import compiled
from tests.sampled_tests import SUMS, sampled, stream


@examples(100)
@given(world=rich_worlds())
def test_all_tests_are_seen_when_all_are_asked_for(world):
    query = compiled(world)
    if query is None:
        return
    _, rows, matcher = sampled(query, world.table(), 1.0)
    if matcher.progress.peak >= 2 * AT_ONCE:
        return  # of so many only some are looked at
    tested = (rows.seen > 0) & (rows.outcome != LEFT_OUT)
    assert matcher.progress.steps <= tested.sum()  # one run-step may be for several steps
    assert rows.passed.sum() == matcher.progress.made
    assert (rows.start[rows.source > 0] + matcher.pipeline.window >= rows.tick[rows.source > 0]).all()


def test_rows_hold_what_runs_and_their_children_remember():
    table = stream(300, 1)
    reader, rows, _ = sampled(compile_query(SUMS, engine="runs"), table, 1.0, merge="chain")
    columns = reader.remembered.columns
    x, rank = table.column("x").to_numpy(), table.column("ts").to_numpy()
    first = rows[(rows.source == 1) & (rows.passed > 0)]  # b was bound: its child knows both
    assert len(first) > 50
    assert first.values[columns.index("x of a")].tolist() == x[first.start].tolist()
    assert first.children[columns.index("x of b")].tolist() == x[first.tick].tolist()
    assert first.children[columns.index("x of a")].tolist() == x[first.start].tolist()
    assert (first.last == first.start).all()
    assert set(rank[rows.tick]) <= set(range(300))


def test_runs_that_an_index_leaves_out_count_as_seen():
    query = compile_query(SUMS, engine="runs")
    reader, rows, matcher = sampled(query, stream(150, 2), 1.0, merge="chain")
    tests = reader.encode(rows, bare_scheme(reader, 60))
    seen, tested = (np.bincount(tests.step, column) for column in (tests.seen, tests.tested))
    assert tested[1] < 0.5 * seen[1]  # b is found by its id
    assert tested[2] == seen[2]
    assert 0.75 < tests.tested.sum() / matcher.progress.steps <= 1  # runs whose window is over are tested, but not seen
    assert tests.passed.sum() == pytest.approx(matcher.progress.made, rel=0.1)
    assert tests.seen[tests.passed > 0].sum() < tests.passed.sum()


def test_a_share_of_the_events_stands_for_all():
    """Over 60 seeds the mean of the estimates is within four standard errors of the truth, for each step."""
    query, table = compile_query(SUMS, engine="runs"), stream(400, 3)
    reader, everything, _ = sampled(query, table, 1.0)
    truth = np.bincount(everything.step, everything.seen, minlength=3)
    estimates = []
    for seed in range(60):
        _, rows, _ = sampled(query, table, 0.2, seed=seed)
        estimates.append(np.bincount(rows.step, rows.seen, minlength=3))
        passed = np.bincount(rows.step, rows.passed, minlength=3)
        assert passed.tolist() == np.bincount(everything.step, everything.passed, minlength=3).tolist()
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0) / 60**0.5
    assert (np.abs(mean - truth)[1:] < 4 * error[1:] + 1e-9).all()
    assert (error[1:] > 0).all()
    assert len(reader.remembered.places) == 4


@examples(20)
@given(seed=st.integers(0, 1000), pieces=st.integers(2, 9))
def test_pieces_of_a_stream_give_the_same_sample(seed, pieces):
    query, table = compile_query(SUMS, engine="runs"), stream(120, seed)
    _, whole, _ = sampled(query, table, 0.4, seed=seed)
    _, parts, _ = sampled(query, table, 0.4, seed=seed, pieces=pieces)
    assert len(whole) == len(parts)
    for name in ("step", "outcome", "tick", "start", "last", "seen", "passed"):
        assert np.array_equal(np.sort(getattr(whole, name)), np.sort(getattr(parts, name)))


def test_looking_changes_nothing_else():
    query, table = compile_query(SUMS, engine="runs"), stream(300, 4)
    plain = Matcher(query.plan, shedding=FixedLoad(Shedding(None, Allowance()))).push(table)
    shedding = Shedding(None, Allowance())
    matcher = Matcher(query.plan, shedding=FixedLoad(shedding))
    matcher.bind(table.schema)
    shedding.sample_tests(0.5, np.ones(4))
    assert matcher.push(table).equals(plain)
    assert len(shedding.take_sample()) > 0
    assert len(shedding.take_sample()) == 0


def test_runs_can_be_scored_anew_while_they_live():
    """With other vertices, gains and features; the bound goes on where it was."""
    query, table = compile_query(SUMS, engine="runs"), stream(600, 5)
    shedding = Shedding(None, Allowance(rate=3.0, price=0.5, reserve=3.0))
    matcher = Matcher(query.plan, shedding=FixedLoad(shedding))
    matcher.bind(table.schema)
    exact = set(Matcher(query.plan).push(table).column("c").combine_chunks().to_pylist())
    random = Random(6)
    found = set()
    for first in range(0, 600, 50):
        found |= set(matcher.push(table.slice(first, 50)).column("c").combine_chunks().to_pylist())
        before = shedding.granted, shedding.left, shedding.counts.copy()
        parts = random.choice((2, 4, 8))
        gain = np.random.default_rng(first).exponential(size=4 * parts)
        shedding.rescore(
            Worth([()] * 4, parts, (), gain, np.ones(4 * parts), np.zeros(4), [()] * 4)
        )
        assert (shedding.granted, shedding.left) == before[:2]
        assert np.array_equal(shedding.counts, before[2])
        assert matcher.progress.steps + shedding.on_passes <= shedding.granted
    assert found <= exact
    assert 0 < len(found) < len(exact)


def test_it_is_found_out_what_tells_runs_apart():
    """The sum decides: what was added so far tells, from the first step on; what must be equal tells nothing."""
    query = compile_query(SUMS, engine="runs")
    reader, rows, _ = sampled(query, stream(6000, 7), 0.5)
    scheme = select_features(reader, rows, bare_scheme(reader, 60))
    told = [{feature.name for feature in place.features} for place in scheme.places]
    assert told == [set(), {"x of a"}, {"x of a", "x of b"}, set()]


def test_few_tests_are_cut_into_few_groups():
    query = compile_query(SUMS, engine="runs")
    reader, rows, _ = sampled(query, stream(6000, 7), 0.5)
    many = [[], []]
    for few in (False, True):
        some = rows[: len(rows) // 20] if few else rows
        for number, place in enumerate(select_features(reader, some, bare_scheme(reader, 60)).places):
            many[few] += [feature.buckets for feature in place.features]
            tests = int((some.source == number).sum())
            assert all(feature.buckets <= max(3, (tests / 30) ** 0.5) for feature in place.features)
    assert max(many[True]) < max(many[False])


def test_noise_tells_nothing():
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x <> a.x AND c.x <> b.x WITHIN 60", engine="runs")
    rng = np.random.default_rng(8)
    table = stream(3000, 8).set_column(3, "x", pa.array(rng.random(3000)))  # always unequal: each test passes
    reader, rows, _ = sampled(query, table, 0.5)
    scheme = select_features(reader, rows, bare_scheme(reader, 60))
    assert all(not place.features for place in scheme.places)
