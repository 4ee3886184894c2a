"""Vertices have the numbers they should, and buckets are learned from what tells, and from nothing else."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history import Feature, Place, Scheme, fit_scheme
from history.counting import vertices_of
from history.fitting import chi_square_quantile, g_statistic
from history.trace import Trace
from tests.naive_history import SCHEME, naive_vertex, random_trace

# --- vertices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_visits_are_at_the_vertices_of_the_naive_computation(seed):
    trace = random_trace(seed, births=50)
    assert vertices_of(SCHEME, trace).tolist() == [naive_vertex(trace, visit) for visit in range(150)]


@given(
    window=st.integers(0, 10**18),
    parts=st.integers(1, 9),
    share=st.floats(0, 1),
    late=st.floats(0, 1),
)
def test_a_vertex_is_described_by_ranges_that_hold_the_run(window, parts, share, late):
    scheme = Scheme((Place("a", 0), Place("a b", 1)), window, parts)
    remaining, since = min(int(share * window), window), min(int(late * window), window)
    vertex = int(scheme.encode(1, 0, remaining, since))
    assert scheme.first[1] <= vertex < scheme.vertices
    shown = scheme.describe(vertex)
    assert (shown["state"], shown["errors"]) == ("a b", 1)
    assert shown["remaining"][0] <= remaining <= shown["remaining"][1]
    assert shown["since"][0] <= since <= shown["since"][1]


@given(window=st.integers(8, 10**17))
def test_the_parts_of_the_window_are_equal(window):
    scheme = Scheme((Place("a", 0),), window)
    floors = [0, *scheme.remaining_floors.tolist(), window + 1]
    assert {high - low for low, high in pairwise(floors)} <= {
        (window + 1) // 8,
        (window + 1) // 8 + 1,
    }


def test_all_vertices_have_different_descriptions():
    shown = {json.dumps(SCHEME.describe(vertex)) for vertex in range(SCHEME.vertices)}
    assert len(shown) == SCHEME.vertices
    vertex = int(SCHEME.first[0]) + SCHEME.cells * (2 * 3 + 1)
    assert SCHEME.describe(vertex)["features"] == {"x": "2 or more", "key": "blue"}


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        (Feature("x", "float", (1.0, 2.5)), ["below 1", "1 to 2.5", "2.5 or more", "NULL"]),
        (Feature("x", "int", (1234567.0,)), ["below 1234567", "1234567 or more", "NULL"]),
        (Feature("x", "int"), ["any", "NULL"]),
        (Feature("x", "text", groups={"b": 0, "a": 0, "c": 1}), ["a, b", "c", "others"]),
        (Feature("x", "text", groups=dict.fromkeys("abcdefg", 0)), ["a, b, c, d, e and 2 more", "others"]),
        (Feature("x", "text"), ["others"]),
    ],
)
def test_buckets_in_words(feature, words):
    assert [feature.words(bucket) for bucket in range(feature.buckets)] == words


def test_a_scheme_comes_back_from_json():
    assert Scheme.from_json(json.loads(json.dumps(SCHEME.to_json()))) == SCHEME


def test_a_place_has_at_most_64_groups():
    wide = Feature("x", "int", tuple(map(float, range(7))))
    with pytest.raises(ValueError, match="81 groups at 'a'"):
        Place("a", 0, (wide, wide))


# --- what tells ---------------------------------------------------------------------------------------------


def births(reached: np.ndarray, key: np.ndarray | None = None, texts=(), **columns: np.ndarray) -> Trace:
    """Births at one place, some of which reach a match point; texts are columns of positions."""
    size = len(reached)
    zeros = np.zeros(size, np.int64)
    return Trace(
        place=zeros,
        tick=np.arange(size),
        start=np.arange(size),
        slot=zeros,
        columns=tuple(columns),
        kinds=tuple("float" if column.dtype == np.float64 else "text" for column in columns.values()),
        values=tuple(column.astype(np.float64) for column in columns.values()),
        key=zeros - 1 if key is None else key,
        texts=texts,
        birth=np.r_[np.arange(size), np.arange(size)],
        remaining=np.r_[zeros + 10, zeros],
        since=np.r_[zeros, zeros + 10],
        parent=np.r_[zeros - 1, np.arange(size)],
        first_point=np.zeros(2 * size, np.int64),
        mask=np.r_[reached, ~reached].astype(np.uint64),  # what a later visit reached does not count
        cost=np.zeros(2 * size),
        point_row=np.array([0]),
        point_tick=np.array([0]),
        point_slot=np.array([0]),
    )


def features(trace: Trace) -> dict[str, Feature]:
    (place,) = fit_scheme([("a", 0)], 10, trace).places
    return {feature.name: feature for feature in place.features}


def test_what_tells_is_found_and_noise_is_not():
    rng = np.random.default_rng(1)
    x, noise = rng.normal(size=2000), rng.normal(size=2000)
    found = features(births((x > 0.5) & (rng.random(2000) < 0.3), x=x, noise=noise))
    assert list(found) == ["x"]
    assert len(found["x"].edges) == 6
    assert min(abs(edge - 0.5) for edge in found["x"].edges) < 0.05


def test_a_second_feature_tells_more_given_the_first():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=4000), rng.normal(size=4000)
    copy = x + rng.normal(size=4000) * 1e-9
    assert list(features(births((x > 0) & (y > 0.5), x=x, copy=copy, y=y)))[1:] in (["x"], ["copy"], ["y"])
    found = features(births((x > 0) & (y > 0.5), x=x, y=y))
    assert set(found) == {"x", "y"}
    assert set(features(births(x > 0.1, x=x, copy=copy))) < {"x", "copy"}


def test_three_features_are_too_many():
    rng = np.random.default_rng(3)
    x, y, z = rng.normal(size=(3, 4000))
    assert len(features(births((x > 0) & (y > 0) & (z > 0), x=x, y=y, z=z))) == 2


def test_noise_is_kept_as_rarely_as_promised():
    rng = np.random.default_rng(4)
    kept = sum(bool(features(births(rng.random(600) < 0.3, x=rng.normal(size=600)))) for _ in range(300))
    assert kept <= 9  # 3 expected at a level of 0.01; more than 9 has a chance of 0.001


def test_what_was_true_only_once_does_not_count():
    """Values that never come back, such as numbers that grow with time, tell the past and nothing else."""
    order = np.arange(3000.0)
    assert not features(births((order < 200) | ((order > 700) & (order < 900)), order=order))
    codes = np.arange(3000) // 10
    rng = np.random.default_rng(5)
    lucky = rng.random(300)[codes] < 0.3
    assert not features(births(lucky, key=codes, texts=[str(n) for n in range(300)]))


def test_keys_that_never_succeed_are_not_put_beside_one_that_does():
    rng = np.random.default_rng(11)
    key = rng.integers(0, 12, 6000)
    reached = np.isin(key, [3, 7, 8]) & (rng.random(6000) < 0.2)
    found = features(births(reached, key=key, texts=[f"k{number}" for number in range(12)]))["key"]
    useful = {found.groups[text] for text in ("k3", "k7", "k8")}
    assert not useful & {group for text, group in found.groups.items() if text not in ("k3", "k7", "k8")}


def test_keys_are_ordered_by_their_success_into_groups():
    rng = np.random.default_rng(6)
    key = rng.integers(0, 70, 7000)
    key[rng.random(7000) < 0.02] = -1
    texts = [f"k{number:02}" for number in range(70)]
    reached = rng.random(7000) < np.where(key >= 0, key / 70, 0.5)
    found = features(births(reached, key=key, texts=texts))["key"]
    assert found.buckets == 8
    assert set(found.groups) == set(texts)
    assert sorted(set(found.groups.values())) == [*range(7)]
    ranks = [found.groups[text] for text in texts]
    assert np.corrcoef(ranks, np.arange(70))[0, 1] > 0.95
    assert found.bucket(np.array([-1, 0]), ["unheard of"]).tolist() == [7, 7]


def test_few_values_have_a_bucket_each():
    rng = np.random.default_rng(7)
    level = rng.integers(0, 4, 2000).astype(np.float64)
    level[:100] = np.nan
    found = features(births(rng.random(2000) < np.nan_to_num(level) / 4, level=level))["level"]
    assert found.edges == (1.0, 2.0, 3.0)
    assert found.bucket(np.array([0.0, 1.0, 2.0, 3.0, np.nan])).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("size", "reached"), [(199, lambda x: x > 0), (2000, lambda x: x > 9), (2000, lambda x: x < 9)]
)
def test_too_few_births_or_no_difference_give_no_features(size, reached):
    x = np.random.default_rng(8).normal(size=size)
    assert not features(births(reached(x), x=x))


# --- the test of it -----------------------------------------------------------------------------------------


def test_g_is_twice_the_births_times_the_mutual_information():
    rng = np.random.default_rng(9)
    bucket, reached = rng.integers(0, 4, 500), rng.random(500) < 0.3
    joint = np.histogram2d(bucket, reached, bins=(4, 2))[0] / 500
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    g, freedom = g_statistic(bucket, np.zeros(500, np.int64), reached)
    assert g == pytest.approx(2 * 500 * (joint * np.log(joint / apart)).sum())
    assert freedom == 3
    strata = rng.integers(0, 3, 500)
    parts = [g_statistic(bucket[strata == s], strata[strata == s] * 0, reached[strata == s]) for s in range(3)]
    assert g_statistic(bucket, strata, reached) == (pytest.approx(sum(g for g, _ in parts)), 9)


def test_a_stratum_without_a_difference_has_no_freedom():
    bucket, strata = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    assert g_statistic(bucket, strata, np.array([True, True, True, False]))[1] == 1


@pytest.mark.parametrize(
    ("chance", "freedom", "table"),
    [(0.05, 1, 3.841), (0.01, 1, 6.635), (0.01, 7, 18.475), (0.001, 7, 24.322), (0.01, 56, 83.513)],
)
def test_quantiles_are_those_of_the_tables(chance, freedom, table):
    assert chi_square_quantile(chance, freedom) == pytest.approx(table, rel=0.03)
