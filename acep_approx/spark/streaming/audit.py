"""The recall of a job, by what Spark has added up over its shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from acep_approx.budget.audit import AuditSample, Members, RecallEstimate
from acep_approx.budget.evidence import EndSample, recall_by
from acep_approx.spark.worker.audited import BY_ENDS, ENDS, GROUPS


@dataclass(frozen=True)
class JobAudit:
    """What is known of the recall of all shards, of one micro-batch or more.

    Attributes
    ----------
    found, events : int
        Match points found, and events matched.
    audited, kept : tuple of int
        Audited match points, and those of them that were found, by group of cells.
    cells : Members
        With audited match points.
    given_up : int
        Cells that were chosen and given up.
    ends : EndSample
        Ends of matches that were tried.
    how : int
        The largest of those of ``worker.audited``; 0: there is no audit.
    """

    found: int = 0
    events: int = 0
    audited: tuple[int, ...] = (0,) * GROUPS
    kept: tuple[int, ...] = (0,) * GROUPS
    cells: Members = Members()  # noqa: RUF009  (it cannot be changed)
    given_up: int = 0
    ends: EndSample = field(default_factory=EndSample)
    how: int = 0

    @classmethod
    def of(cls, numbers: Mapping[str, Any]) -> Self:
        """Read what was ``observed``."""

        def whole(name: str) -> int:
            return int(numbers.get(name) or 0)

        audited, kept = (tuple(whole(f"{name}_{group}") for group in range(GROUPS)) for name in ("audited", "kept"))
        sums = [float(numbers.get(f"ends_{place}") or 0) for place in range(ENDS)]
        counts = [round(value) for value in sums[:4]]
        ends = EndSample(*counts, *sums[4:])
        cells = Members(whole("cells"), whole("squares"))
        return cls(whole("points"), whole("events"), audited, kept, cells, whole("given_up"), ends, whole("audit"))

    def combine(self, other: JobAudit) -> JobAudit:
        """Both as one; in any order."""
        return JobAudit(
            self.found + other.found,
            self.events + other.events,
            tuple(map(sum, zip(self.audited, other.audited, strict=True))),
            tuple(map(sum, zip(self.kept, other.kept, strict=True))),
            self.cells.combine(other.cells),
            self.given_up + other.given_up,
            self.ends.combine(other.ends),
            max(self.how, other.how),
        )

    def recall(self) -> RecallEstimate:
        """Return the estimated recall, with its interval, as a run on one machine estimates it."""
        points, found = np.array(self.audited, np.int64), np.array(self.kept, np.int64)
        groups = np.flatnonzero(points)
        sample = AuditSample(groups, found[groups], points[groups], members=self.cells)
        return recall_by(
            self.found, self.events, sample, self.given_up, self.ends if self.how >= BY_ENDS else None
        )
