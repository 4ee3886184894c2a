"""What became of the runs of a cohort: whole lineages, in which nothing was shed. Ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from acep_approx.archive import Kind, Scope
from acep_approx.ranges import check, finite, impossible
from history.checking import check_trace
from history.counting import vertices_of
from history.trace import KEY, Trace
from history.vectors import Scheme
from rl.records import Lineages

OUTCOMES = Kind("outcomes")
TEXTS = ("columns", "kinds", "texts", "slots")
NUMBERS = tuple(column.name for column in fields(Trace) if column.name not in (*TEXTS, "values"))
"""Parts of a trace that are arrays of numbers, one beside the other."""


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
            self._check(trace, scheme)
            tick.append(trace.tick[trace.birth] + trace.since)
            vertex.append(vertices_of(scheme, trace))
            points.append(np.bitwise_count(trace.mask).astype(np.int64))
        rows = sum(map(len, vertex))
        return Lineages(
            np.concatenate(tick), np.concatenate(vertex), np.concatenate(points), np.full(rows, self.weight)
        )

    @staticmethod
    def _check(trace: Trace, scheme: Scheme) -> None:
        """Refuse births of places that there are not, or without what tells them apart.

        Raises
        ------
        DataError
            ``ACEP-D040``: only a state that was changed has such.
        """
        names = {name for place in scheme.places for one in place.features for name in one.of or (one.name,)}
        if trace.place.max(initial=0) >= len(scheme.places) or names - {*trace.columns, KEY}:
            raise impossible("the outcomes of the cohort are of another query")

    def to_bytes(self) -> bytes:
        """As an archive. Complexity: O(visits)."""
        scope = Scope({"weight": self.weight})
        for number, trace in enumerate(map(Trace.compact, self.traces)):
            one = scope.sub(str(number), {name: list(getattr(trace, name)) for name in TEXTS})
            for name in NUMBERS:
                one.put(name, np.ascontiguousarray(getattr(trace, name)).view(np.int64))
            one.put("values", np.array(trace.values, np.float64).reshape(-1))
        return OUTCOMES.pack(scope)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """What ``to_bytes`` wrote.

        Raises
        ------
        ValueError
            These are not such bytes.
        """
        scope = OUTCOMES.unpack(raw)
        traces = []
        for one in scope.parts.values():
            texts = {name: one.head[name] for name in TEXTS}
            numbers: dict[str, Any] = {name: one.array(name) for name in NUMBERS}
            numbers["mask"], numbers["cost"] = numbers["mask"].view(np.uint64), numbers["cost"].view(np.float64)
            flat = one.arrays["values"]
            check("values", good=flat.dtype == np.float64)
            values = list(flat.reshape(len(texts["columns"]), len(numbers["place"])))
            traces.append(Trace(**numbers, **texts, values=values))
            check_trace(traces[-1])
        finite("weight", scope.head["weight"])
        return cls(traces, scope.head["weight"])
