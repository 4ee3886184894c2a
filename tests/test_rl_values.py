"""Values of runs: against closed forms, and against a plain recursion for random charts."""

from __future__ import annotations

import math
from collections import deque
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rl.values
from history.vectors import Feature, Place, Scheme
from rl.chart import Chart, Pairs
from rl.values import SLOTS, Hazards, solve
from tests.cases import examples

WINDOW = 32_000


def chain(letters, *, leaves=False, groups=1, remaining=8):
    """SEQ of some letters: place i has seen i of them."""
    feature = Feature("x", "int", edges=tuple(range(groups - 2))) if groups > 1 else None
    places = tuple(Place(f"s{i}", 0, (feature,) if feature and i else ()) for i in range(len(letters) + 1))
    steps = np.arange(1, len(letters))
    last = np.arange(len(places)) == len(letters)
    scheme = Scheme(places, WINDOW, remaining)
    return Chart(scheme, steps, steps + 1, steps - 1, np.full(len(steps), leaves), last, ~last, tuple(letters[1:]))


def constant(chart, rates, tests=0.0):
    """Hazards that are the same at all times: events per window of each step."""
    pairs = Pairs(chart)
    children = tuple(
        np.full((pairs.groups[s], pairs.groups[t]), 1 / pairs.groups[t])
        for s, t in zip(chart.source, chart.target, strict=True)
    )
    passing = np.asarray(rates, float)[pairs.step] / WINDOW
    return Hazards(passing, np.full(len(pairs), tests / WINDOW), children)


def at(chart, place, share):
    """Vertices of runs that have bound an event just now, with a share of the window left."""
    return int(chart.scheme.encode(place, 0, math.ceil(share * WINDOW), 0))


def middle(chart, place, share):
    """Share of the window that remains in the middle of their vertex."""
    low, high = chart.scheme.describe(at(chart, place, share))["remaining"]
    return (low + high + 1) / 2 / WINDOW


@pytest.mark.parametrize("rate", [0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_one_step_left(rate, share):
    chart = chain("AB")
    values = solve(chart, constant(chart, [rate], tests=2.5))
    vertex, left = at(chart, 1, share), middle(chart, 1, share)
    assert values.gain[vertex] == pytest.approx(rate * left, rel=1e-3)
    assert values.cost[vertex] == pytest.approx(max(2.5 * left, 0.05), rel=1e-3)
    parts = (left + np.linspace(-1 / 16, 1 / 16, 401)) * rate
    straight = (rate / (8 * SLOTS)) ** 2 / 12  # slots take the curve for straight lines
    assert values.chance[vertex] == pytest.approx(np.mean(1 - np.exp(-parts)), abs=1e-4 + straight)


@pytest.mark.parametrize(("b", "c"), [(0.3, 0.2), (2.0, 5.0), (6.0, 1.0)])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_two_steps_left_are_exact_as_slots_get_short(b, c, share):
    """C's after the first B, and the chance of a B and then a C: register-free, so the max backup is exact."""
    errors = []
    for remaining in (8, 128):
        chart = chain("ABC", remaining=remaining)
        values = solve(chart, constant(chart, [b, c]))
        left = middle(chart, 1, share)
        gain = c * (left - (1 - math.exp(-b * left)) / b)
        chance = 1 - (c * math.exp(-b * left) - b * math.exp(-c * left)) / (c - b)
        vertex = at(chart, 1, share)
        errors.append(max(abs(values.gain[vertex] / gain - 1), abs(values.chance[vertex] / chance - 1)))
    assert errors[0] < 0.04
    assert errors[1] < 5e-4
    assert errors[1] < errors[0] / 16  # slots a sixteenth as long: faster than errors that shrink with the slot


def test_a_run_that_leaves_has_one_child():
    """Then gain is a chance: that of two exponential times in a row."""
    b, c = 2.0, 5.0
    chart = chain("ABC", leaves=True, remaining=128)
    values = solve(chart, constant(chart, [b, c], tests=1.0))
    left = middle(chart, 1, 1.0)
    truth = 1 - (c * math.exp(-b * left) - b * math.exp(-c * left)) / (c - b)
    vertex = at(chart, 1, 1.0)
    assert values.gain[vertex] == pytest.approx(truth, rel=1e-4)
    assert values.chance[vertex] == pytest.approx(truth, rel=1e-4)
    # tests go on until the match or the end of the window: the mean of the shorter of both
    alive = (1 - math.exp(-b * left)) / b * (1 + b / (c - b)) - (1 - math.exp(-c * left)) / c * b / (c - b)
    assert values.cost[vertex] == pytest.approx(alive, rel=1e-4)


def test_a_loop_counts_each_event_once():
    """A+ that goes on: however many runs there are, each A is one match point."""
    scheme = Scheme((Place("start", 0), Place("a", 0)), WINDOW)
    yes, no = np.array([False, True]), np.array([False])
    chart = Chart(scheme, np.array([1]), np.array([1]), np.array([0]), no, yes, yes, ("A",))
    values = solve(chart, constant(chart, [3.0]))
    assert values.gain[at(chart, 1, 1.0)] == pytest.approx(3.0 * middle(chart, 1, 1.0), rel=1e-3)


def test_no_steps_no_value():
    scheme = Scheme((Place("start", 0), Place("a", 0)), WINDOW)
    none, flags = np.zeros(0, np.int64), np.ones(2, bool)
    chart = Chart(scheme, none, none, none, none.astype(bool), flags, flags, ())
    values = solve(chart, Hazards(np.zeros(0), np.zeros(0), ()))
    assert not values.gain.any()
    assert not values.chance.any()
    assert (values.cost == 0.05).all()


# --- random charts against a plain recursion ----------------------------------------------------------------


def naive_values(chart, hazards):
    """The recursion of the docstring of ``solve``, one run at a time."""
    scheme, pairs = chart.scheme, Pairs(chart)
    slots, dt = scheme.remaining * SLOTS, scheme.window / (scheme.remaining * SLOTS)
    buckets = len(scheme.since) + 1

    def bucket(since):
        return sum(since > limit for limit in scheme.since_limits.tolist())

    def first(hazard):
        return (1 - math.exp(-hazard * dt)) / hazard if hazard else dt

    @cache
    def taken(group, age, left):
        """Of each step: its number, chance, chance for costs, points and tests in the slot."""
        vertex = (group * scheme.remaining + (left - 1) // SLOTS) * buckets + bucket((age + 0.5) * dt)
        steps = np.flatnonzero(chart.source == scheme.place_of_group[group]).tolist()
        rates = [(hazards.passing[pair], hazards.testing[pair]) for pair in (int(pairs.of(n, vertex)) for n in steps)]
        moves = [bool(chart.leaves[n] or chart.stays[chart.target[n]]) for n in steps]
        until = first(sum(passing for passing, _ in rates))
        until_moved = first(sum(passing for (passing, _), does in zip(rates, moves, strict=True) if does))
        found = []
        for step, (passing, testing), does in zip(steps, rates, moves, strict=True):
            h, e = passing * until, float(chart.ends[chart.target[step]])
            points = e * (h if chart.leaves[step] else passing * dt)
            found.append((step, h, passing * until_moved * does, points, testing * until_moved))
        return found

    def arrives(step, group, left):
        """What a child has in the middle of the slot after ``left`` others."""
        target = int(chart.target[step])
        e = float(chart.ends[target])
        if not chart.stays[target]:
            return 0.0, e, 0.0
        if left:
            middle = [1.5 * a - 0.5 * b for a, b in zip(value(group, 0, left), value(group, 0, left - 1), strict=True)]
        else:
            own = taken(group, 0, 1)
            reached = sum(h for step, h, *_ in own if chart.ends[chart.target[step]])
            middle = [sum(one[3] for one in own) / 2, reached / 2, sum(one[4] for one in own) / 2]
        gain, chance, cost = (max(0.0, one) for one in middle)
        return gain, max(e, min(1.0, chance)), cost

    @cache
    def value(group, age, left):
        if not left:
            return 0.0, 0.0, 0.0
        stay = value(group, age + 1, left - 1)
        gain, chance, cost = stay
        own = taken(group, age, left)
        together = sum(points for _, _, _, points, _ in own)
        for step, h, h_cost, points, tests in own:
            gain, cost = gain + points, cost + tests
            target, leaves = int(chart.target[step]), bool(chart.leaves[step])
            for nth, share in enumerate(hazards.children[step][group - scheme.first_group[chart.source[step]]]):
                child = arrives(step, int(scheme.first_group[target]) + nth, left - 1)
                gain += h * share * (child[0] - stay[0] if leaves else max(0.0, child[0] - stay[0] - together / 2))
                chance += h * share * (child[1] - stay[1] if leaves else max(0.0, child[1] - stay[1]))
                cost += h_cost * share * (child[2] - stay[2])
        return gain, min(max(chance, 0.0), 1.0), cost

    found = np.zeros((scheme.vertices, 3))
    for vertex in range(scheme.vertices):
        group, cell = divmod(vertex, scheme.cells)
        part, late = divmod(cell, buckets)
        slots_of_part = range(part * SLOTS, part * SLOTS + SLOTS)
        ages = [age for age in range(slots) if bucket((age + 0.5) * dt) == late]
        pairs_of = [(slot, age, age + 1) for slot in slots_of_part for age in ages if slot + age < slots]
        if not ages:
            pairs_of = [(slot, 0, 0) for slot in slots_of_part]
        if pairs_of:
            corners = [value(group, a, left) for slot, *both in pairs_of for a in both for left in (slot, slot + 1)]
            found[vertex] = np.mean(corners, axis=0)
        else:
            found[vertex] = np.nan
    found[:, 1] = np.minimum(found[:, 1], found[:, 0])  # there are no matches without points
    return found


@st.composite
def charts(draw):
    feature = Feature("x", "int", edges=())
    places = draw(st.lists(st.booleans(), min_size=2, max_size=4))
    scheme = Scheme(
        tuple(Place(str(n), 0, (feature,) if has else ()) for n, has in enumerate(places)),
        draw(st.sampled_from([160, 1000])),
        draw(st.sampled_from([1, 3, 4])),
        draw(st.sampled_from([(), (0.0,), (0.0, 1 / 4), (0.0, 1 / 16, 1 / 4)])),
    )
    steps = draw(st.integers(1, 5))
    number = st.integers(0, len(places) - 1)

    def several(of, size):
        return np.array(draw(st.lists(of, min_size=size, max_size=size)))

    return Chart(
        scheme,
        several(number, steps).astype(np.int64),
        several(number, steps).astype(np.int64),
        np.zeros(steps, np.int64),
        several(st.booleans(), steps),
        several(st.booleans(), len(places)),
        several(st.booleans(), len(places)),
        ("A",),
    )


@examples(40)
@given(charts(), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 4.0, 60.0]))
def test_values_are_those_of_the_plain_recursion(chart, seed, scale):
    dice, pairs = np.random.default_rng(seed), Pairs(chart)
    passing = dice.exponential(scale / chart.scheme.window, len(pairs)) * (dice.random(len(pairs)) < 0.8)
    children = tuple(
        dice.dirichlet(np.ones(pairs.groups[t]), pairs.groups[s])
        for s, t in zip(chart.source, chart.target, strict=True)
    )
    hazards = Hazards(passing, dice.random(len(pairs)) / 10, children)
    values, naive = solve(chart, hazards), naive_values(chart, hazards)
    known = ~np.isnan(naive[:, 0])
    assert known.any()
    np.testing.assert_allclose(values.gain[known], naive[known, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values.chance[known], naive[known, 1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values.cost[known], np.maximum(naive[known, 2], 0.05), rtol=1e-9, atol=1e-9)
    for column in (values.gain, values.cost, values.chance):
        assert np.isfinite(column).all()


# --- extremes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e6, 1e-12, 1e-300, 5e-324])
@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.filterwarnings("error")
def test_no_rate_is_too_high_or_too_low(rate, leaves):
    """Events per tick."""
    chart = chain("ABC", leaves=leaves, groups=3)
    values = solve(chart, constant(chart, [rate * WINDOW, rate * WINDOW], tests=rate * WINDOW))
    for column in (values.gain, values.cost, values.chance):
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert (values.chance <= 1).all()
    vertex = at(chart, 2, 1.0)
    left = middle(chart, 2, 1.0) * WINDOW
    assert values.chance[vertex] == pytest.approx(-math.expm1(-rate * left), rel=1e-3)
    assert values.gain[vertex] == pytest.approx(-math.expm1(-rate * left) if leaves else rate * left, rel=1e-3)


def test_charts_of_the_same_numbers_are_not_mixed_up():
    """Tables are kept by chart, and a chart is more than its steps."""
    for _ in range(20):  # more than are kept, and dropped in between
        for leaves in (False, True):
            chart = chain("ABC", leaves=leaves)
            gain = solve(chart, constant(chart, [3.0, 9.0])).gain[at(chart, 1, 1.0)]
            assert (gain < 1) == leaves


def test_blocks_do_not_change_values(monkeypatch):
    """Steps are worked out together while that is cheaper: with one block for each, or one for all, it is the same."""
    charts = [chain("ABCDE", groups=groups, leaves=leaves) for groups in (1, 4) for leaves in (False, True)]
    dice = np.random.default_rng(5)
    for chart in charts:
        hazards = constant(chart, [3.0, 1.0, 6.0, 2.0][: chart.steps], tests=4.0)
        hazards = Hazards(hazards.passing * dice.random(len(hazards.passing)), hazards.testing, hazards.children)
        found = []
        for few in (0, 1 << 30):
            monkeypatch.setattr(rl.values, "_FEW", few)
            monkeypatch.setattr(rl.values, "_PLANS", deque(maxlen=1))
            found.append(solve(chart, hazards))
            assert len(rl.values._plan(chart).blocks) == (chart.steps if not few else 1)
        for name in ("gain", "cost", "chance"):
            np.testing.assert_allclose(getattr(found[0], name), getattr(found[1], name), rtol=1e-12, atol=1e-15)
