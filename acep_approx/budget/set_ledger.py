"""What a set of queries under one budget writes down about itself: plain data, for the terminal and tables.

Nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acep_approx.budget.ledger import Piece, Shed

if TYPE_CHECKING:
    from acep_approx.budget.audit import RecallEstimate


@dataclass(frozen=True)
class PartRecord:
    """What one engine of a set did: that of a query, or of all queries of a template.

    Attributes
    ----------
    name : str
        The id of the query, or the text of the template.
    weight : float
        What a match point counts for; of a template on average.
    piece : Piece
        Where it stands: work, what was granted, live runs, price, runs shed, match points.
    shed : sequence of Shed
        At most one for each state and reason.
    recall : RecallEstimate or None
        From the audit.
    """

    name: str
    weight: float
    piece: Piece
    shed: Sequence[Shed] = field(default=(), repr=False)
    recall: RecallEstimate | None = None


@dataclass(frozen=True)
class QueryRecord:
    """What a budget found of one query.

    Attributes
    ----------
    id : str
    part : str or None
        The engine that ran it; None: it is answered exactly, and nothing of it is shed.
    weight : float
    found : int or None
        Match points; None where several queries share their runs, or it is answered exactly.
    recall : RecallEstimate or None
        From the audit.
    """

    id: str
    part: str | None
    weight: float = 1.0
    found: int | None = None
    recall: RecallEstimate | None = None


@dataclass(frozen=True)
class SharedRecord:
    """What engines did under one budget.

    Attributes
    ----------
    budget : str
        As the user wrote it.
    policy : str
    piece : Piece
        Where all engines together stand, with those that have left.
    """

    budget: str
    policy: str
    piece: Piece

    @property
    def work(self) -> int:
        """Run-steps done, in all."""
        return self.piece.work

    @property
    def allowed(self) -> int:
        """Run-steps that were allowed, in all."""
        return self.piece.bound

    @property
    def runs_shed(self) -> int:
        """Runs shed, for whatever reason."""
        return self.piece.shed

    @property
    def in_words(self) -> str:
        """What was done of what was allowed."""
        return f"{self.work:,} of {self.allowed:,} run-steps, {self.runs_shed:,} runs shed"


@dataclass(frozen=True)
class SetRecord(SharedRecord):
    """What a set of queries did under one budget.

    Attributes
    ----------
    budget, policy, piece
        See ``SharedRecord``.
    seed : int
    parts : sequence of PartRecord
        The engines that shed, those with most work first.
    queries : sequence of QueryRecord
        In the order in which they were added.
    seconds : float
        How long the run took.
    """

    seed: int
    parts: Sequence[PartRecord] = field(default=(), repr=False)
    queries: Sequence[QueryRecord] = field(default=(), repr=False)
    seconds: float = 0.0

    @property
    def found(self) -> int:
        """Match points that the engines have found which shed."""
        return self.piece.points

    @property
    def shed_runs(self) -> int:
        """The same as ``runs_shed``."""
        return self.runs_shed

    @property
    def exact(self) -> list[str]:
        """The ids of the queries that are answered exactly: nothing of them is shed, and their work is not counted."""
        return [query.id for query in self.queries if query.part is None]

    def worst(self, most: int = 5) -> list[QueryRecord]:
        """The queries that miss most, as far as enough of them was audited."""
        known = [(query.recall.recall, place) for place, query in enumerate(self.queries) if query.recall is not None]
        order = sorted((recall, place) for recall, place in known if recall is not None)
        return [self.queries[place] for _, place in order[:most]]

    def rows(self) -> list[dict[str, object]]:
        """A row for each query, for ``pandas.DataFrame`` or ``pyarrow.Table.from_pylist``.

        Returns
        -------
        list of dict
            ``query``, ``engine`` (None: answered exactly), ``weight``, ``found``, and the estimated ``recall`` with its
            interval from ``low`` to ``high``, and the match points ``audited`` for it.
        """
        found = []
        for query in self.queries:
            known = query.recall
            row: dict[str, object] = {"query": query.id, "engine": query.part, "weight": query.weight}
            row["found"] = query.found
            row |= {name: None if known is None else getattr(known, name) for name in ("recall", "low", "high")}
            found.append(row | {"audited": 0 if known is None else known.points})
        return found

    @property
    def recall(self) -> tuple[float | None, float | None, float | None]:
        """Estimated share of the match points that were found, over all parts, and between which it lies.

        Each is None where that of some part cannot be told.
        """
        return self._recall("recall"), self._recall("low"), self._recall("high")

    def _recall(self, which: str) -> float | None:
        total = 0.0
        for part in self.parts:
            share = None if part.recall is None else getattr(part.recall, which)
            if share is None and part.piece.shed == 0:
                share = 1.0
            if share is None or (share == 0 and part.piece.points):
                return None
            total += part.piece.points / share if part.piece.points else 0.0
        found = sum(part.piece.points for part in self.parts)
        return found / total if total else None

    def __repr__(self) -> str:
        parts = f"{len(self.parts):,} engine{'s' * (len(self.parts) != 1)} of {len(self.queries):,} queries"
        return f"<SetRecord of {parts} under a budget of {self.budget}: {self.in_words}, {self.found:,} match points>"
