"""How large a training sample is to be: of which share of the events tests are written down."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.learning.training_sample import TrainingSample
from acep_approx.ranges import check, finite
from history.checking import check_column
from history.files import read_json, replace_file

FIRST_ROWS, ROWS_PER_ROOT, ROWS_PER_EVENT = 5_000, 40, 0.001
"""Tests that are sampled: so many in any case, this many times the root of the events, and this many per event."""
LEAST_ROWS = 300
"""New tests before runs are scored anew."""
FILE = "shares.json"


@dataclass(frozen=True)
class Shares:
    """Of which share of the events tests are written down.

    Attributes
    ----------
    share : float
        For any tests.
    passed : tuple of float
        For passed ones, by the place that they lead to.
    """

    share: float
    passed: tuple[float, ...]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``shares.json``; who reads sees the one before or this one."""
        replace_file(Path(folder) / FILE, json.dumps(vars(self)).encode())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self | None:
        """What ``save`` wrote; None where there is none, or it is not whole."""
        try:
            found = read_json(Path(folder) / FILE)
            made = cls(float(found["share"]), tuple(map(float, found["passed"])))
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        return made if all(0 < share <= 1 for share in (made.share, *made.passed)) else None


@dataclass
class SampleSize:
    """How much is sampled: shares of the events, and what they brought of late.

    ``passed`` are the shares for passed tests, by the pool that they lead to; ``rows`` tests were sampled of ``events``
    so far, and ``rows_then`` of ``events_then`` when the stream changed last: from there on as many are wanted as at
    the beginning. ``tests`` and ``passes`` are what an event brings.
    """

    passed: Floats
    share: float = 1.0
    rows: int = 0
    events: int = 0
    rows_then: int = 0
    events_then: int = 0
    tests: float = 0.0
    passes: Floats = field(default_factory=lambda: np.zeros(1))

    @property
    def shares(self) -> Shares:
        """Those for the next events."""
        return Shares(self.share, tuple(self.passed.tolist()))

    def adapt(self, sample: TrainingSample, ahead: int, most: float = np.inf) -> None:
        """Choose shares for the next ``ahead`` events, so that ``most`` tests are sampled, after these were."""
        relevant = int(sample.events.total)
        events = max(relevant, 1)
        self.rows += len(sample.tests)
        self.events += relevant
        then, rows = self.events + ahead - self.events_then, self.rows - self.rows_then
        wanted = FIRST_ROWS + ROWS_PER_ROOT * then**0.5 + ROWS_PER_EVENT * then - rows
        wanted = min(max(wanted, ROWS_PER_EVENT * ahead, LEAST_ROWS), most) / 2
        tests, passes = sample.population / events, sample.passes / events
        if not self.tests:
            self.tests, self.passes = tests, passes
        self.tests, self.passes = (self.tests + tests) / 2, (self.passes + passes) / 2
        self.share = float(np.clip(wanted / max(self.tests * ahead, 1.0), 1e-6, 1.0))
        each = wanted / max(int((self.passes > 0).sum()), 1)
        self.passed = np.clip(each / np.maximum(self.passes * ahead, 1e-300), self.share, 1.0)

    def begin_anew(self) -> None:
        """The stream has changed: look at as many of the tests that come as at the beginning."""
        self.rows_then, self.events_then = self.rows, self.events

    def save(self) -> dict[str, Any]:
        """All of it, for ``load``."""
        return dict(vars(self))

    @classmethod
    def load(cls, saved: dict[str, Any]) -> Self:
        """What ``save`` gave."""
        made = cls(**saved)
        finite("sample size", *(value for name, value in saved.items() if name not in ("passed", "passes")))
        passed = check_column("passed", made.passed, "float64")
        check("shares", good=0 < made.share <= 1 and ((passed > 0) & (passed <= 1)).all())
        check("passes", good=np.isfinite(check_column("passes", made.passes, "float64")).all())
        return made
