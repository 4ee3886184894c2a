"""Which of the things that a run remembers tell whether it will succeed, and the buckets of a scheme that follow.

All of this is ours. The paper's match vectors do not look at what a run remembers.

For each place, candidates are compared by the mutual information between their bucket and "reached anything". Buckets
are made from the first half of the births and judged by the second, so that what was true once only does not count.
A feature is kept if its information is beyond chance: the G-test, with the chi-square quantile of
Wilson and Hilferty (1931) and Bonferroni's correction for the number of candidates. The test takes births for
independent; runs made by one event are not quite, so it keeps a feature rather too easily, which costs little because
values are shrunk (``history.values``).

Groups of equally many runs (quantiles) cut where runs are many, whether or not anything changes there, and put a value
that always succeeds beside one that never does. Our cuts are those between which success differs most, found by
dynamic programming: Fisher (1958), "On grouping for maximum homogeneity". His measure is the variance; ours is the
likelihood, which is what the test that judges a feature asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import cast

import numpy as np
import numpy.typing as npt

from history.arrays import Floats, Ints
from history.trace import KEY, Trace
from history.trees import Trees, fit_trees
from history.vectors import CONTEXT, PAIRED, Feature, FeatureKind, Place, Scheme

PRIOR = 10.0
"""Births at the mean rate that are added to those of a value, or of a group, before its rate is taken."""
BINS = 64
"""Places to cut at, at most."""
BIN_BIRTHS = 25
"""Births between two of them at least, so that small samples are cut nearly at quantiles."""


def bins_for(births: int, groups: int) -> int:
    """How many bins to tell apart before they are put together to groups.

    Examples
    --------
    >>> [bins_for(births, 7) for births in (100, 1000, 10_000)]
    [7, 40, 64]
    """
    return max(min(births // BIN_BIRTHS, BINS), groups)


def rates(births: Floats, success: Floats, mean: float) -> Floats:
    """Share of births that succeed, drawn to the mean where they are few; between 0 and 1, and never quite either.

    Examples
    --------
    >>> rates(np.array([0.0, 90.0]), np.array([0.0, 90.0]), 0.5).tolist()
    [0.5, 0.95]
    """
    return np.clip((success + PRIOR * mean) / (births + PRIOR), 1e-12, 1 - 1e-12)


def best_cuts(births: Floats, success: Floats, groups: int) -> Ints:
    """Where to cut a row of bins, so that the rates of the groups explain success best.

    Parameters
    ----------
    births, success : float64 array, shape (bins,)
        How many births each bin has, and how many of them succeed.
    groups : int
        At least 1; no more come than there are bins.

    Returns
    -------
    int64 array, shape (groups - 1,)
        The first bin of each group but the first, ascending.

    Complexity: O(bins² · groups).

    Examples
    --------
    >>> best_cuts(np.full(6, 100.0), np.array([0.0, 0.0, 0.0, 90.0, 90.0, 40.0]), 3).tolist()
    [3, 5]
    """
    bins = len(births)
    all_births, all_success = (np.concatenate([[0.0], np.cumsum(column)]) for column in (births, success))
    n = all_births[None, :] - all_births[:, None]
    k = all_success[None, :] - all_success[:, None]
    first, behind = np.indices(n.shape)
    rate = rates(np.maximum(n, 0.0), np.maximum(k, 0.0), all_success[-1] / max(all_births[-1], 1.0))
    likelihood = np.where(first < behind, k * np.log(rate) + (n - k) * np.log1p(-rate), -np.inf)
    best, came_from = likelihood[0], []
    for _ in range(min(groups, bins) - 1):
        through = best[:, None] + likelihood
        came_from.append(through.argmax(axis=0))
        best = through.max(axis=0)
    cuts = [bins]
    for before in reversed(came_from):
        cuts.append(int(before[cuts[-1]]))
    return np.array(cuts[:0:-1], np.int64)


Pairs = Sequence[tuple[str, str]]
"""Columns of numbers of which differences and sums are looked at."""
Column = tuple[str, npt.NDArray[np.generic]]
"""Kind and values of something that runs remember."""


# --- which features tell ------------------------------------------------------------------------------------

LEAST_BIRTHS = 200
"""Births that a place needs before it gets features."""
BUCKETS = 8
"""Buckets of a feature at most, with the one of NULL or of other texts: two features make 64 groups."""
LEAST_BUCKETS = 3
"""What a feature needs to tell anything apart: two, and the one of NULL."""
MOST_FEATURES = 2
MOST_TEXTS = 10_000
"""Texts of one feature that are told apart at most, the most frequent first."""
LEVEL = 0.01
"""Chance that one place keeps a feature that says nothing."""


def fit_scheme(
    places: Iterable[tuple[str, int]],
    window: int,
    trace: Trace,
    *,
    pairs: Sequence[Pairs] = (),
    day: int | None = None,
    remaining: int = 8,
    since: tuple[float, ...] = (0.0, 1 / 16, 1 / 4),
) -> Scheme:
    """Learn the buckets of every place from a trace.

    Parameters
    ----------
    places : iterable of (str, int)
        Name of the state and errors, in the numbering of the trace.
    window : int
        In ticks.
    trace : Trace
        Its births, with what they remember and whether they reached a match point. Candidates are its columns (where
        a place's runs have them) and the partition key.
    pairs : sequence of Pairs, default none
        Per place.
    day : int, optional
        Ticks of a day, 0: ticks are no times. If it is given, one candidate is what trees make of the context.
    remaining, since
        As for ``Scheme``.

    Returns
    -------
    Scheme
        Each place with up to 2 features of up to 8 buckets each, from at least 200 births.

    Complexity: O(births · columns · log births).
    """
    first = trace.first_visits()
    reached = np.zeros(len(first))
    reached[first >= 0] = trace.mask[first[first >= 0]] != 0
    kinds = [*zip(trace.columns, trace.kinds, strict=True), (KEY, "text")]
    kinds = [(name, kind) for name, kind in kinds if kind != CONTEXT]
    context = _context(trace, first, reached, day) if day is not None else None
    fitted = []
    for number, (state, errors) in enumerate(places):
        births = np.flatnonzero((trace.place == number) & (first >= 0))
        births = births[np.argsort(trace.tick[births], kind="stable")]  # traces may come key by key
        columns = {name: (kind, trace.column(name)[births]) for name, kind in kinds}
        if context is not None:
            columns[CONTEXT] = (CONTEXT, context[1][births])
        found = fit_features(columns, trace.texts, reached[births], pairs=pairs[number] if pairs else ())
        found = tuple(replace(f, trees=context[0]) if context and f.kind == CONTEXT else f for f in found)
        fitted.append(Place(state, errors, found))
    return Scheme(tuple(fitted), window, remaining, since)


def _context(trace: Trace, first: Ints, reached: Floats, day: int | None) -> tuple[Trees, Floats] | None:
    """Trees that look at the context of births, learned from the earlier half, and what they say of each birth."""
    inputs = [name for name, kind in zip(trace.columns, trace.kinds, strict=True) if kind == CONTEXT]
    columns = [trace.column(name).astype(np.float64) for name in inputs]
    known = np.flatnonzero(first >= 0)
    if not len(known) or not inputs:
        return None
    early = known[trace.tick[known] <= np.median(trace.tick[known])]
    trees = fit_trees(inputs, [column[early] for column in columns], day or 0, trace.place[early], reached[early] > 0)
    return (trees, trees.values(columns)) if trees is not None else None


def fit_features(
    columns: Mapping[str, Column],
    texts: Sequence[str],
    reached: Floats,
    *,
    pairs: Pairs = (),
    buckets: int = BUCKETS,
) -> tuple[Feature, ...]:
    """Learn which of some columns tell of success, and their buckets.

    Parameters
    ----------
    columns : mapping of str to (str, array of shape (runs,))
        Kind and values of each, as in a ``Trace``.
    texts : sequence of str
        What the values of texts point to.
    reached : float64 array, shape (runs,)
        Success, from 0 to 1; between them where it is only known how likely it is.
    pairs : Pairs, default none
    buckets : int, default 8
        Of a feature at most, from 3 to 8.

    Returns
    -------
    tuple of Feature
        Up to 2, the one that tells most first; none from fewer than 200 runs.

    Complexity: O(runs · columns · log runs).
    """
    births = len(reached)
    if births < LEAST_BIRTHS or reached.min() == 1 or not reached.any():
        return ()
    blanks = _candidates(columns, pairs)
    half = births // 2
    values = {name: blank.values(lambda name: columns[name][1]) for name, blank in blanks.items()}
    made = {
        name: _bucketed(blanks[name], column[:half], texts, reached[:half], buckets) for name, column in values.items()
    }
    judged = {name: made[name].bucket(column[half:], texts) for name, column in values.items()}
    chosen: list[str] = []
    strata = np.zeros(births - half, np.int64)
    while len(chosen) < MOST_FEATURES:
        best = _best(judged, chosen, strata, reached[half:])
        if best is None:
            break
        chosen.append(best)
        strata = strata * made[best].buckets + judged[best]
    return tuple(_bucketed(blanks[name], values[name], texts, reached, buckets) for name in chosen)


def g_statistic(bucket: Ints, strata: Ints, reached: Floats) -> tuple[float, int]:
    """How much a bucket tells of success within each stratum.

    Parameters
    ----------
    bucket, strata : int64 array, shape (births,)
        Not below 0.
    reached : float64 array, shape (births,)
        Success, from 0 to 1. Where it is between them, the test is stricter than it need be.

    Returns
    -------
    g : float
        2 · births · mutual information (in nats) of bucket and success, given the stratum. Without any relation it is
        distributed about like chi-square.
    freedom : int
        Its degrees of freedom: over the strata, occupied buckets less one; strata in which all or none succeed have
        none.

    Complexity: O(births + strata · buckets).
    """
    width = int(bucket.max(initial=0)) + 1
    size = (int(strata.max(initial=0)) + 1) * width
    cell = strata * width + bucket
    table = np.stack([np.bincount(cell, weights, minlength=size) for weights in (1.0 - reached, reached)])
    table = table.reshape(2, -1, width)
    births = table.sum(axis=0)
    success = table.sum(axis=2, keepdims=True)
    expected = births * success / np.maximum(births.sum(axis=1)[None, :, None], 1)
    ratio = np.divide(table, expected, out=np.ones(table.shape), where=table > 0)
    open_strata = (success > 0).all(axis=0)[:, 0]
    freedom = int(((births > 0).sum(axis=1) - 1)[open_strata].sum())
    return float(2 * (table * np.log(ratio)).sum()), freedom


def chi_square_quantile(chance: float, freedom: int) -> float:
    """Value that a chi-square variable is above with a given chance (Wilson and Hilferty: off by a few per cent).

    Examples
    --------
    >>> round(chi_square_quantile(0.05, 10), 1)  # tables say 18.307
    18.3
    """
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + NormalDist().inv_cdf(1 - chance) * spread**0.5) ** 3)


def _candidates(columns: Mapping[str, Column], pairs: Pairs) -> dict[str, Feature]:
    """Features without buckets: of the columns that differ among these births, and of pairs of them."""
    found: dict[str, Feature] = {}
    for name, (kind, column) in columns.items():
        same = column == column[0]
        if not (same | (np.isnan(column) & np.isnan(column[0]))).all():
            found[name] = Feature(name, cast("FeatureKind", kind))
    for one, other in pairs:
        if one in found and other in found:
            for kind, sign in zip(PAIRED, "-+", strict=True):
                name = f"{one} {sign} {other}"
                found[name] = Feature(name, cast("FeatureKind", kind), of=(one, other))
    return found


def _best(judged: dict[str, Ints], chosen: Sequence[str], strata: Ints, reached: Floats) -> str | None:
    """The candidate that tells most beyond chance, given those that are chosen."""
    most, best = 0.0, None
    for name, bucket in judged.items():
        if name in chosen:
            continue
        g, freedom = g_statistic(bucket, strata, reached)
        # under chance the mean of g is its degrees of freedom
        if freedom and g > chi_square_quantile(LEVEL / len(judged), freedom) and g - freedom > most:
            most, best = g - freedom, name
    return best


def _bucketed(
    blank: Feature, column: npt.NDArray[np.generic], texts: Sequence[str], reached: Floats, buckets: int
) -> Feature:
    if blank.kind == "text":
        return replace(blank, groups=_text_groups(column.astype(np.int64), texts, reached, buckets - 1))
    return replace(blank, edges=_edges(column.astype(np.float64), reached, buckets - 1))


def _edges(column: Floats, reached: Floats, groups: int) -> tuple[float, ...]:
    is_known = ~np.isnan(column)
    known, success = column[is_known], reached[is_known]
    values = np.unique(known)
    if len(values) <= groups:
        return tuple(values[1:].tolist())
    bins = bins_for(len(known), groups)
    edges = np.unique(np.sort(known)[np.arange(1, bins) * len(known) // bins])
    edges = edges[edges > values[0]]
    if len(edges) < groups:
        return tuple(edges.tolist())
    found = np.searchsorted(edges, known, side="right")
    cuts = best_cuts(_totals(found, np.ones(len(found))), _totals(found, success), groups)
    return tuple(edges[cuts - 1].tolist())


def _text_groups(codes: Ints, texts: Sequence[str], reached: Floats, groups: int) -> dict[str, int]:
    known = codes >= 0
    births = _totals(codes[known], np.ones(int(known.sum())), len(texts))
    success = _totals(codes[known], reached[known], len(texts))
    chosen = np.argsort(-births, kind="stable")[:MOST_TEXTS]
    chosen = chosen[births[chosen] > 0]
    rate = rates(births[chosen], success[chosen], float(reached.mean()))
    names = np.asarray(texts, dtype=np.str_)[chosen]
    order = np.lexsort((names, rate))
    weight = births[chosen][order]
    bins = bins_for(int(weight.sum()), groups)
    middle = np.cumsum(weight) - weight / 2
    found = np.unique((middle * bins // max(weight.sum(), 1.0)).astype(np.int64), return_inverse=True)[1]
    cuts = best_cuts(_totals(found, weight), _totals(found, success[chosen][order]), groups)
    return dict(sorted(zip(names[order].tolist(), np.searchsorted(cuts, found, side="right").tolist(), strict=True)))


def _totals(place: Ints, weight: Floats, size: int = 0) -> Floats:
    return np.asarray(np.bincount(place, weight, size), np.float64)
