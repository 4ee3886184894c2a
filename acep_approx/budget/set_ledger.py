"""What queries, or rules, that share one budget write down about themselves: plain data, for pages, terminals, tables.

Nothing heavy is imported.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from acep_approx.budget.ledger import Piece, Shed, SpentRecord

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
class SharedRecord(SpentRecord):
    """What came of one budget that several engines share.

    Attributes
    ----------
    budget : str
        As the user wrote it.
    policy : str
    seed : int
    pieces : sequence of Piece
        Where all engines together stood, with those that have left; there is a last one, which is now.
    parts : sequence of PartRecord
        The engines that shed, those with most work first.
    seconds : float, optional
        How long the run took.
    begin : int, optional
        Tick of the first event.
    is_time : bool
        Whether ticks are microseconds since 1970.
    full_work, past_work : float, optional
        Run-steps per event of the exact run of all engines, as far as known; and what it took in the past, where that
        is what is expected of the events that came.
    audit_work : int, optional
        Run-steps that the audit took; None where they are not told apart.
    source : str
        Name of the input, for people.
    """

    things: ClassVar[tuple[str, str]] = "query", "queries"
    """What shares the budget, for people: one, and several."""

    @property
    def has_one_price(self) -> bool:
        """Whether one engine sheds: those of several are in units of their own."""
        return len(self.parts) == 1

    budget: str
    policy: str
    seed: int
    pieces: Sequence[Piece] = field(default=(), repr=False, compare=False)  # a state does not keep those before it
    parts: Sequence[PartRecord] = field(default=(), repr=False)
    seconds: float | None = field(default=None, compare=False)
    begin: int | None = None
    is_time: bool = False
    full_work: float | None = None
    past_work: float | None = None
    audit_work: int | None = None
    source: str = ""

    @property
    def piece(self) -> Piece:
        """Where all engines together stand."""
        return self.pieces[-1]

    @property
    @abstractmethod
    def estimates(self) -> Sequence[tuple[str, RecallEstimate | None]]:
        """The name of each query or rule that may miss something, with what is known of its recall."""

    @property
    @abstractmethod
    def exact(self) -> list[str]:
        """The names of those that are answered exactly: nothing of them is shed, and their work is not counted."""

    @abstractmethod
    def rows(self) -> list[dict[str, object]]:
        """A row for each of them, for ``pandas.DataFrame`` or ``pyarrow.Table.from_pylist``."""

    @property
    def recall(self) -> tuple[float | None, float | None, float | None]:
        """Estimated share of the match points that were found, over all parts, and between which it lies.

        Each is None where that of some part cannot be told.
        """
        return self._recall("recall"), self._recall("low"), self._recall("high")

    def _recall(self, which: str) -> float | None:
        total = 0.0
        for part in self.parts:
            known = part.recall
            is_told = known is not None and (known.tells or known.is_certain or which != "recall")
            share = getattr(known, which) if is_told else None
            if share is None and part.piece.shed == 0:
                share = 1.0
            if share == 0 and part.piece.points:  # as many as you like may be missed
                return 0.0 if which == "low" else None
            if share is None:
                return None
            total += part.piece.points / share if part.piece.points else 0.0
        found = sum(part.piece.points for part in self.parts)
        return found / total if total else None


@dataclass(frozen=True)
class SetRecord(SharedRecord):
    """What a set of queries did under one budget; see ``SharedRecord``.

    Attributes
    ----------
    queries : sequence of QueryRecord
        In the order in which they were added.
    """

    queries: Sequence[QueryRecord] = field(default=(), repr=False)

    @property
    def estimates(self) -> Sequence[tuple[str, RecallEstimate | None]]:
        """The id of each query that may miss something, with what is known of its recall."""
        return [(query.id, query.recall) for query in self.queries if query.part is not None]

    @property
    def exact(self) -> list[str]:
        """The ids of the queries that are answered exactly: nothing of them is shed, and their work is not counted."""
        return [query.id for query in self.queries if query.part is None]

    def worst(self, most: int = 5) -> list[QueryRecord]:
        """The queries that miss most, as far as enough of them was audited."""
        by_id = {query.id: query for query in self.queries}
        return [by_id[id_] for id_, _ in worst(self.estimates, most)]

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
            engine = None if query.part is None else " ".join(query.part.split())
            row: dict[str, object] = {"query": query.id, "engine": engine, "weight": query.weight}
            row["found"] = query.found
            found.append(row | recall_columns(known))
        return found

    def __repr__(self) -> str:
        parts = f"{len(self.parts):,} engine{'s' * (len(self.parts) != 1)} of {len(self.queries):,} queries"
        work = f"{self.work:,} of {self.allowed:,} run-steps, {self.shed_runs:,} runs shed"
        return f"<SetRecord of {parts} under a budget of {self.budget}: {work}, {self.found:,} match points>"


ENOUGH = 0.6
"""An interval that is wider says too little to call a query one of the worst."""


def worst(
    known: Iterable[tuple[str, RecallEstimate | None]], most: int | None = None
) -> list[tuple[str, RecallEstimate]]:
    """Those that miss most, as far as enough of them was audited: of equal ones the first.

    Examples
    --------
    >>> from acep_approx.budget import RecallEstimate
    >>> some = {name: RecallEstimate(share, 0.1, 0.6, 9, 9) for name, share in (("a", 0.5), ("b", 0.2), ("c", None))}
    >>> [name for name, _ in worst(some.items())]
    ['b', 'a']
    """
    told = [
        (one.recall or 0.0, place, name, one)
        for place, (name, one) in enumerate(known)
        if one is not None and one.tells and (one.high or 0.0) - (one.low or 0.0) <= ENOUGH
    ]
    return [(name, one) for _, _, name, one in sorted(told, key=lambda of: of[:2])[:most]]


def recall_columns(known: RecallEstimate | None) -> dict[str, object]:
    """What is known of a recall, as columns of a row."""
    found: dict[str, object] = {
        name: None if known is None else getattr(known, name) for name in ("recall", "low", "high")
    }
    return found | {"audited": 0 if known is None else known.points}
