"""Statistics and the factored model, against loops over rows; what fades, adds up, is discounted, saved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.vectors import Feature, Place, Scheme
from rl.chart import Chart, Pairs
from rl.model import fit_model
from rl.records import Events
from rl.records import Tests as Rows
from rl.residual import corrected, residual
from rl.statistics import NEVER, Statistics
from tests.cases import examples

TWO = Feature("x", "int", edges=())
THREE = Feature("y", "int", edges=(0.0,))
SCHEME = Scheme((Place("start", 0), Place("a", 0, (TWO,)), Place("b", 0, (THREE,)), Place("c", 0)), 800)
CHART = Chart(
    SCHEME,
    source=np.array([1, 2, 1, 2]),
    target=np.array([2, 3, 1, 2]),
    letter=np.array([0, 1, 2, 0]),
    leaves=np.array([False, True, False, False]),
    ends=np.array([False, False, False, True]),
    stays=np.array([True, True, True, False]),
    letters=("B", "C", "A"),
)
EMPTY = Rows(*np.zeros((2, 0), np.int64), *np.zeros((4, 0)), np.zeros(0, np.int64))


def some_events(dice, tick):
    counts = dice.integers(0, 50, 3).astype(float)
    return Events(tick, counts, float(counts.sum() + dice.integers(0, 50)))


def some_tests(dice, rows):
    """Passed tests are looked at with a chance of their own: some rows stand for those only, and are not ``seen``."""
    step = dice.integers(0, CHART.steps, rows)
    groups = np.array([place.groups for place in SCHEME.places])
    source, target = CHART.source[step], CHART.target[step]
    vertex = SCHEME.first[source] + dice.integers(0, 10**6, rows) % (groups[source] * SCHEME.cells)
    weight = dice.choice([1.0, 4.0, 20.0], rows)
    passes, only = dice.random(rows) < 0.3, dice.random(rows) < 0.5
    tested = weight * (passes | (dice.random(rows) < 0.6))
    passed = dice.choice([1.0, 2.0], rows) * passes
    weight, tested = np.where(passes & only, 0.0, weight), np.where(passes & only, 0.0, tested)
    child = SCHEME.first_group[target] + dice.integers(0, 10**6, rows) % groups[target]
    child = np.where((passed > 0) & CHART.stays[target], child, -1)
    return Rows(step, vertex, dice.exponential(0.1, rows) + 0.01, weight, tested, passed, child)


def some_statistics(seed, rows=500, tick=1000, half_life=6400.0):
    dice = np.random.default_rng(seed)
    made = Statistics(CHART, half_life)
    made.add(some_events(dice, tick), some_tests(dice, rows))
    return made


def assert_same(one, other, rtol=1e-12):
    assert one.tick == other.tick
    for name, column in one.to_arrays().items():
        np.testing.assert_allclose(column, other.to_arrays()[name], rtol=rtol, atol=1e-300, err_msg=name)


# --- pairs --------------------------------------------------------------------------------------------------


def test_pairs_and_children_have_numbers_without_holes():
    pairs = Pairs(CHART)
    assert pairs.of(pairs.step, pairs.vertex).tolist() == list(range(len(pairs)))
    families = [
        int(pairs.of_child(np.array([step]), np.array([group]), np.array([child]))[0])
        for step in range(CHART.steps)
        for group in range(SCHEME.groups)[pairs.groups_of(CHART.source[step])]
        for child in range(SCHEME.groups)[pairs.groups_of(CHART.target[step])]
    ]
    assert families == list(range(int(pairs.families.sum())))
    assert (SCHEME.place_of_group[CHART.group_of_vertex[pairs.vertex]] == CHART.source[pairs.step]).all()


# --- statistics ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_of_a_loop_over_rows(seed):
    dice = np.random.default_rng(seed)
    made, half_life = Statistics(CHART, 500.0), 500.0
    lots = [(some_events(dice, tick), some_tests(dice, 60)) for tick in (100, 400, 2000)]
    for events, tests in lots:
        made.add(events, tests)
    sums = {}
    letters = np.zeros(3)
    for events, tests in lots:
        left = 2 ** ((events.tick - 2000) / half_life)
        letters += left * events.counts
        for row in range(len(tests.step)):
            key = int(tests.step[row]), int(tests.vertex[row])
            seen = left * tests.seen[row]
            columns = (seen, left * tests.tested[row], left * tests.passed[row], seen / tests.rate[row])
            looked = left * (tests.seen[row] > 0), left * (tests.passed[row] > 0)
            sums[key] = np.add(sums.get(key, np.zeros(6)), (*columns, *looked))
            if tests.child[row] >= 0:
                key = int(tests.step[row]), int(CHART.group_of_vertex[tests.vertex[row]]), int(tests.child[row])
                sums[key] = sums.get(key, 0.0) + left * tests.passed[row]
    pairs = made.pairs
    real = np.stack([made.seen, made.tested, made.passed, made.ticks, made.rows, made.hits], axis=1)
    keys = zip(pairs.step.tolist(), pairs.vertex.tolist(), strict=True)
    expected = np.array([sums.get(key, np.zeros(6)) for key in keys])
    np.testing.assert_allclose(real, expected, rtol=1e-12)
    np.testing.assert_allclose(made.letters, letters, rtol=1e-12)
    children = {key: total for key, total in sums.items() if len(key) == 3}
    for (step, group, child), total in children.items():
        number = pairs.of_child(np.array([step]), np.array([group]), np.array([child]))
        assert made.children[number] == pytest.approx(total)
    assert made.children.sum() == pytest.approx(sum(children.values()))


def test_the_order_of_records_does_not_matter():
    dice = np.random.default_rng(1)
    lots = [(some_events(dice, tick), some_tests(dice, 60)) for tick in (-100, 400, 2000)]
    one, other = Statistics(CHART, 500.0), Statistics(CHART, 500.0)
    for events, tests in lots:
        one.add(events, tests)
    for events, tests in lots[::-1]:
        other.add(events, tests)
    assert_same(one, other)


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(-(10**5), 10**5)), min_size=3, max_size=3))
def test_merging_is_associative_and_commutative(parts):
    a, b, c = (some_statistics(seed, 50, tick) for seed, tick in parts)
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_same(a.merge(b), b.merge(a))
    empty = Statistics(CHART, 6400.0)
    assert empty.tick == NEVER
    assert_same(a.merge(empty), a)


def test_merging_equals_seeing_both():
    dice = np.random.default_rng(2)
    lots = [(some_events(dice, tick), some_tests(dice, 40)) for tick in (10, 500, 900, 900)]
    whole, odd, even = (Statistics(CHART, 300.0) for _ in range(3))
    for number, (events, tests) in enumerate(lots):
        whole.add(events, tests)
        (odd if number % 2 else even).add(events, tests)
    assert_same(odd.merge(even), whole)


def test_of_different_half_lives_the_longer_one_holds():
    one, other = some_statistics(1, tick=1000, half_life=1000.0), some_statistics(2, tick=3000, half_life=10.0)
    merged = one.merge(other)
    assert_same(merged, other.merge(one))
    assert merged.half_life == 1000.0
    assert merged.seen.sum() == pytest.approx(one.seen.sum() / 4 + other.seen.sum())
    one.half_life = 500.0  # from outside, while the stream runs
    one.forget(3000)
    assert one.seen.sum() == pytest.approx(some_statistics(1).seen.sum() / 16)
    with pytest.raises(ValueError, match="must be above 0"):
        Statistics(CHART, 0.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [1e6, 1.0, 1e-12])
@pytest.mark.parametrize("paces", [(300,), (40, 20_000), (0.1, 333.3), (1074,), (10_000,)])
def test_what_fades_away_is_gone(rate, paces):
    """After half-lives by the thousand, at one go or bit by bit: nothing is left that cannot be divided by."""
    half_life, tick, made = 7.0, 0, some_statistics(3, 200, 0, half_life=7.0)
    made.ticks[:] = made.seen / rate
    for number in range(200):
        tick += int(1 + paces[number % len(paces)] * half_life)
        made.forget(tick)
        for name in ("letters", "total", "seen", "tested", "passed", "ticks", "rows", "hits", "children"):
            sums = getattr(made, name)
            assert (sums[sums != 0] > 1e-115).all(), name
        model = fit_model(CHART, made)
        assert np.isfinite(model.rate).all()
        assert (model.rate > 0).all()
        assert np.isfinite(corrected(CHART, made, model).passing).all()
    late = Statistics(CHART, 7.0)
    late.tick = tick
    assert_same(made, late)
    late.add(some_events(np.random.default_rng(4), 0), some_tests(np.random.default_rng(4), 50))  # long out of date
    assert_same(made, late)
    assert_same(made.merge(some_statistics(5, 50, 0, half_life=7.0)), late)


def test_ten_million_events_and_large_ticks_stay_finite():
    dice = np.random.default_rng(3)
    made = Statistics(CHART, 6400.0)
    tests = some_tests(dice, 1000)
    for tick in [0, *range(1_700_000_000_000_000_000, 1_700_000_000_000_064_000, 640)]:
        made.add(Events(tick, np.array([5e4, 3e4, 2e4]), 1e5), tests)
    # a geometric series: lots fade by 2^(-1/10) each; the one of tick 0 is gone
    lots = (1 - 2 ** (-100 / 10)) / (1 - 2 ** (-1 / 10))
    assert made.total[0] == pytest.approx(1e5 * lots)
    assert made.seen.sum() == pytest.approx(tests.seen.sum() * lots)
    made.forget(2**63 - 1)
    assert made.total[0] == 0
    assert np.isfinite(fit_model(CHART, made).rate).all()


def test_nothing_fades_with_an_infinite_half_life():
    made = some_statistics(4, half_life=np.inf)
    before = made.seen.sum()
    made.forget(10**18)
    assert made.seen.sum() == before > 0


def test_discount_reaches_the_steps_of_a_place_only():
    made, whole = some_statistics(5), some_statistics(5)
    made.discount([1], 0.1)
    factor = np.where(np.isin(CHART.source, [1]), 0.1, 1.0)
    np.testing.assert_allclose(made.seen, whole.seen * factor[made.pairs.step])
    np.testing.assert_allclose(made.children, whole.children * np.repeat(factor, made.pairs.families))
    assert made.total == whole.total
    made.discount(None, 0.5)
    assert made.total == whole.total / 2


def test_saved_and_loaded():
    made = some_statistics(6)
    assert_same(Statistics.from_arrays(CHART, made.to_arrays()), made, rtol=0)
    arrays = {**made.to_arrays(), "seen": np.zeros(7)}
    with pytest.raises(ValueError, match=r"seen: shape \(7,\) instead of"):
        Statistics.from_arrays(CHART, arrays)


# --- the model ----------------------------------------------------------------------------------------------


def shrunk(rows, above):
    """Weighted mean of (value, weight) of rows, and 4 rows more at the mean above."""
    weight = sum(w for _, w in rows)
    mean = sum(v * w for v, w in rows) / weight if weight else 0.0
    return (len(rows) * mean + 4 * above) / (len(rows) + 4)


def by_passes(passed, seen, above, weight):
    """Share that passed, with half a passed test more (``weight``), and as many others as ``above`` says."""
    return min((sum(passed) + 0.5 * weight) / (sum(seen) + 0.5 * weight / above), 1.0)


def mean_of_groups(groups, base):
    """Mean of means, each with the rows that it is known from, and one at ``base``."""
    known = [rows / (rows + 4) for _, rows in groups]
    return (sum(k * mean for k, (mean, _) in zip(known, groups, strict=True)) + base) / (sum(known) + 1)


@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_factors_are_those_of_a_loop_over_rows(rows):
    dice = np.random.default_rng(rows)
    events, tests = some_events(dice, 50), some_tests(dice, rows)
    made = Statistics(CHART, np.inf)
    made.add(events, tests)
    model = fit_model(CHART, made)
    columns = (tests.step, CHART.group_of_vertex[tests.vertex], tests.seen, tests.tested, tests.passed, 1 / tests.rate)
    table = list(zip(*(column.tolist() for column in columns), strict=True))
    share = (events.counts + 4 / 3) / (events.total + 4)
    np.testing.assert_allclose(model.share, np.repeat(share[:, None], SCHEME.groups, axis=1))
    for step in range(CHART.steps):
        mine = [row for row in table if row[0] == step]
        own = [[row for row in mine if row[1] == g] for g in range(SCHEME.groups)]
        hits = [row[4] for row in mine if row[4] > 0]
        weight = sum(hits) / len(hits) if hits else 1.0
        base = by_passes(hits, [row[2] for row in mine], 0.5, weight)
        means = []
        for rows_of in own:
            seen = [row[2] for row in rows_of if row[2] > 0]
            if seen:
                means.append((min(sum(row[4] for row in rows_of) / sum(seen), 1.0), len(seen)))
        above = mean_of_groups(means, base)
        looked = [[(row[3] > 0, row[2]) for row in rows_of if row[2] > 0] for rows_of in own]
        above_tested = shrunk([pair for pairs in looked for pair in pairs], 1.0)
        for one, rows_of in enumerate(own):
            expected = by_passes([row[4] for row in rows_of], [row[2] for row in rows_of], above, weight)
            assert model.selectivity[step, one] == pytest.approx(expected)
            assert model.tested[step, one] == pytest.approx(shrunk(looked[one], above_tested))


@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_rates_are_those_of_a_loop_over_rows(rows):
    """Of those that stand for passed tests only nothing is learned: they come where much passes."""
    dice = np.random.default_rng(rows)
    made, tests = Statistics(CHART, np.inf), some_tests(dice, rows)
    made.add(some_events(dice, 50), tests)
    group, seen, interval = CHART.group_of_vertex[tests.vertex], tests.seen, 1 / tests.rate
    everything = float(interval @ seen / seen.sum()) if seen.any() else 800 / 4
    own = [np.flatnonzero((group == g) & (seen > 0)) for g in range(SCHEME.groups)]
    rate = fit_model(CHART, made).rate
    for one, place in enumerate(SCHEME.place_of_group):
        beside = [own[g] for g in np.flatnonzero(SCHEME.place_of_group == place) if len(own[g])]
        above = mean_of_groups([(interval[at] @ seen[at] / seen[at].sum(), len(at)) for at in beside], everything)
        mine = list(zip(interval[own[one]], seen[own[one]], strict=True))
        assert rate[one] == pytest.approx(1 / shrunk(mine, above))


def test_children_are_shrunk_to_those_of_other_groups():
    """10 rows of weight 3 from group 0 of place 1 to its first child group; none from group 1."""
    rows = 10
    weight = np.full(rows, 3.0)
    vertex = np.full(rows, SCHEME.first[1])
    child = np.full(rows, SCHEME.first_group[2])
    made = Statistics(CHART, np.inf)
    made.add(Events(0, np.ones(3), 3.0), Rows(np.zeros(rows, np.int64), vertex, weight, weight, weight, weight, child))
    own, other = fit_model(CHART, made).children[0]
    of_all = np.array([10 + 4 / 3, 4 / 3, 4 / 3]) / 14
    pooled = (np.array([10, 0, 0]) + 4 * of_all) / 14  # by feature: the parent has none that the child has as well
    np.testing.assert_allclose(own, (np.array([10, 0, 0]) + 4 * pooled) / 14)
    np.testing.assert_allclose(other, pooled)


def test_children_are_in_the_buckets_of_what_their_parents_remember():
    """Runs of 3 of 4 groups made children that remember the same: those of the fourth will, though none was seen."""
    both = (THREE, TWO)
    scheme = Scheme((Place("start", 0), Place("a", 0, both), Place("b", 0, both)), 800)
    ones = np.ones(1, np.int64)
    chart = Chart(scheme, ones, ones + 1, ones - 1, ones < 0, np.zeros(3, bool), np.ones(3, bool), ("B",))
    group = np.repeat([0, 1, 2], 40)  # y and x: both below 0, or one of them
    many, vertex = np.ones(len(group)), scheme.first[1] + group * scheme.cells
    rows = Rows(0 * group, vertex, many, many, many, many, scheme.first_group[2] + group)
    made = Statistics(chart, np.inf)
    made.add(Events(0, np.ones(1), 1.0), rows)
    (children,) = fit_model(chart, made).children
    np.testing.assert_allclose(children.sum(axis=1), 1)
    of_y = (np.diag([80, 40, 0]) + 4 * (np.array([80, 40, 0]) + 4 / 3) / 124) / [[84], [44], [4]]
    of_x = (np.diag([80, 40]) + 4 * (np.array([80, 40]) + 4 / 2) / 124) / [[84], [44]]
    seen = np.diag([40.0, 40, 40, 0, 0, 0])
    np.testing.assert_allclose(children, (seen + 4 * np.kron(of_y, of_x)) / (seen.sum(axis=1, keepdims=True) + 4))
    assert children[3, 3] > 0.8


def looked_at(dice, tests, share, of_passed):
    """Those of some tests of weight 1 that two chances choose, by one coin each; ``of_passed`` is the larger."""
    coin = dice.random(len(tests.step))
    passes, is_seen = tests.passed > 0, coin < share
    chosen = np.flatnonzero(is_seen | (passes & (coin < of_passed)))
    seen = (is_seen / share)[chosen]
    columns = tests.step[chosen], tests.vertex[chosen], tests.rate[chosen], seen, seen * tests.tested[chosen]
    return Rows(*columns, (passes / of_passed)[chosen], tests.child[chosen])


def test_sums_stand_for_all_tests_whatever_passed_ones_were_looked_at_with():
    """Over 400 samples each mean is within 4.5 standard errors of the sum over all tests."""
    dice = np.random.default_rng(9)
    tests = some_tests(dice, 600)
    ones = np.ones(600)
    passed = (tests.passed > 0) * ones
    tests = Rows(tests.step, tests.vertex, tests.rate, ones, np.maximum(passed, tests.tested > 0), passed, tests.child)

    def sums(rows):
        made = Statistics(CHART, np.inf)
        made.add(Events(0, np.ones(3), 3.0), rows)
        by_step = [np.bincount(made.pairs.step, column) for column in (made.seen, made.tested, made.passed, made.ticks)]
        return np.concatenate([*by_step, made.children])

    truth = sums(tests)
    found = np.stack([sums(looked_at(dice, tests, 0.1, 0.5)) for _ in range(400)])
    error = found.std(axis=0, ddof=1) / 20
    assert (error[truth > 0] > 0).all()
    assert (np.abs(found.mean(axis=0) - truth) <= 4.5 * error).all()
    assert len(looked_at(dice, tests, 0.1, 0.5).step) > 1.3 * len(looked_at(dice, tests, 0.1, 0.1).step)


@pytest.mark.parametrize("chance", [0.03, 0.3])
def test_what_passes_is_known_better_where_passed_tests_are_looked_at_more(chance):
    """And right on average, within 4.5 standard errors or 3%, from 4000 tests of one group."""
    dice = np.random.default_rng(10)
    once, none = np.ones(4000), np.full(4000, -1)
    vertex = np.full(4000, SCHEME.first[2])

    def estimates(share, of_passed):
        found = []
        for _ in range(200):
            passed = once * (dice.random(4000) < chance)
            made = Statistics(CHART, np.inf)
            rows = looked_at(dice, Rows(none + 2, vertex, once, once, once, passed, none), share, of_passed)
            made.add(Events(0, np.ones(3), 3.0), rows)
            found.append(fit_model(CHART, made).selectivity[1, SCHEME.first_group[2]])
        return np.mean(found), np.std(found) / 200**0.5

    (sparse, wide), (dense, narrow) = estimates(0.1, 0.1), estimates(0.1, 1.0)
    assert sparse == pytest.approx(chance, abs=4.5 * wide, rel=0.03)
    assert dense == pytest.approx(chance, abs=4.5 * narrow, rel=0.03)
    assert narrow < 0.75 * wide


def test_every_factor_is_a_share_or_a_rate():
    for seed in range(5):
        model = fit_model(CHART, some_statistics(seed))
        assert (model.rate > 0).all()
        for share in (model.share, model.tested, model.selectivity):
            assert (share > 0).all()
            assert (share <= 1).all()
        for children in model.children:
            np.testing.assert_allclose(children.sum(axis=1), 1.0)


def test_busy_keys_do_not_count_twice():
    """A key with ten times the events shows ten times the rows: the mean rate is that of the runs' time, not theirs."""
    rate = np.repeat([10.0, 1.0], [10_000, 1000])
    ones, none = np.ones(11_000), np.full(11_000, -1)
    made = Statistics(CHART, np.inf)
    vertex = np.full(11_000, SCHEME.first[1])
    made.add(Events(0, np.ones(3), 3.0), Rows(none + 1, vertex, rate, ones, ones, ones * 0, none))
    assert fit_model(CHART, made).rate[SCHEME.first_group[1]] == pytest.approx(5.5, rel=1e-3)


# --- the residual -------------------------------------------------------------------------------------------


def test_without_rows_nothing_is_corrected():
    made = Statistics(CHART, np.inf)
    model = fit_model(CHART, made)
    plain, mine = model.hazards(CHART), corrected(CHART, made, model)
    np.testing.assert_allclose(mine.passing, plain.passing)
    np.testing.assert_allclose(mine.testing, plain.testing)
    rest = residual(CHART, made, model)
    for column in (rest.gain, rest.cost, rest.chance):
        np.testing.assert_allclose(column, 0.0, atol=1e-12)


def test_corrected_hazards_are_those_of_a_loop_over_rows():
    tests = some_tests(np.random.default_rng(8), 400)
    made = Statistics(CHART, np.inf)
    made.add(Events(5, np.array([20.0, 30.0, 40.0]), 200.0), tests)
    model = fit_model(CHART, made)
    mine = corrected(CHART, made, model)
    for pair in range(0, len(made.pairs), 7):
        step, vertex = int(made.pairs.step[pair]), int(made.pairs.vertex[pair])
        group = int(CHART.group_of_vertex[vertex])
        share = model.share[CHART.letter[step], group]
        here = np.flatnonzero((tests.step == step) & (tests.vertex == vertex))
        seen = tests.seen[here].sum()
        passes = tests.passed[(tests.step == step) & (tests.passed > 0)]
        three = 3 * passes.mean()
        time = (tests.seen / tests.rate)[here].sum() + three / (model.rate[group] * model.selectivity[step, group])
        assert mine.passing[pair] == pytest.approx(share * (tests.passed[here].sum() + three) / time)
        scale = (tests.seen[here] > 0).sum() / seen if seen else 0.0
        time = (scale * (tests.seen / tests.rate)[here].sum() + 10 / model.rate[group]) / share
        tested = scale * tests.tested[here].sum() + 10 * model.tested[step, group]
        assert mine.testing[pair] == pytest.approx(tested / time)
