"""Counts of matches are exact up to 2**63 - 2; the number after that says that it is a lower bound."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from acep_approx import CappedCountWarning, QuerySet, compile_query
from acep_approx.events.counts import MOST_COUNTED
from acep_approx.matching.outputs.tables import sums

CHOICES = "PATTERN SEQ(A+ a[], B b) WITHIN 500"
RUNS = "PATTERN SEQ(A+ a[], B b) WHERE a[i].x >= a[i-1].x WITHIN 500"
"""The same matches where all ``x`` are equal, by the other engine."""


def choices(events):
    """Events of which each choice of an A, and the B, is a match: 2**events - 1."""
    return [{"ts": tick, "type": "A" if tick < events else "B", "x": 1} for tick in range(events + 1)]


@pytest.mark.parametrize("text", [CHOICES, RUNS])
@pytest.mark.parametrize("events", [60, 61, 62, 63, 64, 90])
def test_counts_are_exact_to_the_last_number_below_the_limit(text, events):
    matches = compile_query(text).match(choices(events))
    is_capped = events >= 63  # 2**63 - 1 itself cannot be told from more
    row = matches.counts().to_pylist()[0]
    assert (row["matches"], row["at_least"]) == (min(2**events - 1, MOST_COUNTED), is_capped)
    desk = QuerySet(output="counts")
    desk.add(text, id="q")
    later = {"ts": 1000, "type": "C", "x": 0}
    row = desk.push([*choices(events), later])["q"].to_pylist()[0]
    assert (row["matches"], row["at_least"]) == (min(2**events - 1, MOST_COUNTED), is_capped)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(matches) == min(2**events - 1, MOST_COUNTED)
        assert matches.compressed().counts().tolist() == [min(2**events - 1, MOST_COUNTED)]
    assert [one.category for one in said] == 2 * is_capped * [CappedCountWarning]


@pytest.mark.parametrize("events", [60, 67, 68, 69, 70, 71, 90])
def test_times_of_results_are_exact_or_said_to_be_too_few(events):
    """Thirty folds, one in the other: each takes an event or more, and the last one ends with the last event."""
    text = "A"
    for _ in range(30):
        text = f"(SELECT k FROM {text} FOLD{{,,}} A)"
    stream = [{"ts": tick, "type": "A", "k": 1} for tick in range(events)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        times = max(compile_query(f"SELECT k FROM {text}").match(stream).to_arrow()["times"].to_pylist())
    assert times == min(math.comb(events - 2, 29), MOST_COUNTED)
    assert (times == MOST_COUNTED) == any(one.category is CappedCountWarning for one in said)


def test_sums_of_counts():
    most = MOST_COUNTED
    numbers = np.array([2**61 - 1, 1, 2**62, 2**62 - 2, 2**62, 2**62, most, most, most, 0])
    assert sums(numbers, np.array([0, 2, 4, 6, 8])).tolist() == [2**61, 2**63 - 2, most, most, most]
    assert sums(np.full(2**12, 2**51), np.array([0, 1])).tolist() == [2**51, (2**12 - 1) * 2**51]
