"""What became of the runs of a cohort: whole lineages, in which nothing was shed. Ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from history.counting import vertices_of
from history.trace import Trace
from history.vectors import Scheme
from rl.records import Lineages


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of a part of a cohort.

    Attributes
    ----------
    traces : sequence of Trace
        Of runs that lie, with their whole window, in a chosen cell.
    weight : float
        One over the chance of that.
    """

    traces: Sequence[Trace] = ()
    weight: float = 1.0

    def lineages(self, scheme: Scheme) -> Lineages:
        """The outcomes as a learner of these vertices takes them: one row for each visit.

        Complexity: O(visits).
        """
        none = np.zeros(0, np.int64)
        tick, vertex, points = [none], [none], [none]
        for trace in self.traces:
            tick.append(trace.tick[trace.birth] + trace.since)
            vertex.append(vertices_of(scheme, trace))
            points.append(np.bitwise_count(trace.mask).astype(np.int64))
        rows = sum(map(len, vertex))
        return Lineages(
            np.concatenate(tick), np.concatenate(vertex), np.concatenate(points), np.full(rows, self.weight)
        )
