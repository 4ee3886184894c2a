"""Histories that are learned with one reading: for tests to which it does not matter which of them is best."""

from __future__ import annotations

from typing import Any

import pytest

from acep_approx import HistoryGraph
from acep_approx.training import exact_work, training
from tests.cases import FULL

FEW_LOOKS = 256
"""After so many events at which it was looked what an exact run takes, at every second one: to look takes half of the
time of learning."""


def learned(known: HistoryGraph, events: Any, **columns: Any) -> HistoryGraph:
    """A history of events; to try some 30 readings takes most of the time, so that is left to ``ACEP_CASES=full``."""
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            for name in ("VALUES", "COST_POWERS", "OVERLAPS"):
                patch.setattr(training, name, getattr(training, name)[:1])
            patch.setattr(training, "MORE_OVERLAPS", ())
            patch.setattr(exact_work, "LOOKS", FEW_LOOKS)
        return known.fit(events, **columns)
