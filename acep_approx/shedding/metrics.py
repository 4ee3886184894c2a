"""What came of a run inside a budget: match points, pieces of the stream, what was audited."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.budget.audit import AuditCells, AuditSample
from acep_approx.budget.ledger import Piece
from acep_approx.ranges import TICK, finite, number_in

if TYPE_CHECKING:
    from acep_approx.engines.batches import RunEvents
    from acep_approx.engines.runs.lineage import Hits


@dataclass
class MatchPoints:
    """Match points found: parallel columns, one row each."""

    row: list[Ints] = field(default_factory=list)
    tick: list[Ints] = field(default_factory=list)
    slot: list[Ints] = field(default_factory=list)
    errors: list[Ints] = field(default_factory=list)
    is_kept: list[Bools] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.row))

    def joined(self, name: str) -> Ints:
        """A column as one array."""
        parts = getattr(self, name)
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def audited(self, cells: AuditCells) -> AuditSample:
        """What the audit saw of them."""
        of = cells.cells(self.joined("slot"), self.joined("tick"))
        is_audited = of >= 0
        kept = self.joined("is_kept").astype(np.bool_)
        return AuditSample.of(of[is_audited], kept[is_audited], int((~is_audited).sum()))

    def cut(self, number: int) -> tuple[MatchPoints, MatchPoints]:
        """The first ``number`` of them, and the others."""
        columns: list[Any] = [self.joined(column.name) for column in fields(self)]
        return MatchPoints(*([c[:number]] for c in columns)), MatchPoints(*([c[number:]] for c in columns))


MOST_POINTS, MOST_PIECES = 1 << 16, 1 << 12
"""Match points, and pieces of the stream, that are remembered where a run has no end."""


@dataclass
class Metrics:
    """What came of a run.

    Attributes
    ----------
    points : MatchPoints
        Found since this was made, but for those that were forgotten.
    found : int
        Match points found since the stream began.
    pieces : list of Piece
        Where the run stood after each piece of the stream.
    begin : int or None
        Tick of the first event.
    before : AuditSample
        What the audit saw of match points that are forgotten, or were found before this was made.
    """

    points: MatchPoints = field(default_factory=MatchPoints)
    found: int = 0
    pieces: list[Piece] = field(default_factory=list)
    begin: int | None = None
    before: AuditSample = field(default_factory=AuditSample.none)

    def add_points(self, events: RunEvents, hits: Hits) -> Ints:
        """Add the match points of a piece, and whether the policy alone would have found them; gives their rows."""
        event, place = np.unique(hits.event, return_inverse=True)
        least = np.full(len(event), np.iinfo(np.int64).max)
        np.minimum.at(least, place, hits.errors)
        is_kept = np.zeros(len(event), np.bool_)
        np.logical_or.at(is_kept, place, hits.mark < 2)
        points, rows = self.points, events.row[event]
        points.row.append(events.id[event])
        points.tick.append(events.tick[event])
        points.slot.append(events.slot[event])
        points.errors.append(least)
        points.is_kept.append(is_kept)
        self.found += len(event)
        return rows

    def add_piece(self, ticks: Ints, piece: Piece) -> None:
        """A piece of the stream is done; ``ticks`` are those of its events."""
        if self.begin is None:
            self.begin = int(ticks[0])
        self.pieces.append(piece)

    def audited(self, cells: AuditCells) -> AuditSample:
        """What the audit saw of the match points found since this was made, and of those before that it was told of.

        Samples are added by ``AuditSample.combine``: those of later batches, and of parts of a stream that run with
        another seed each. Parts of one seed have the same cells, for keys are known by their slots.
        """
        return self.before.combine(self.points.audited(cells))

    def forget(self, cells: AuditCells | None) -> None:
        """Of many match points and pieces remember the latest points, with what the audit saw, and every other piece.

        Complexity: O(points), once for as many more.
        """
        if len(self.points) > 2 * MOST_POINTS:
            older, self.points = self.points.cut(len(self.points) - MOST_POINTS)
            if cells is not None:
                self.before = self.before.combine(older.audited(cells))
        if len(self.pieces) > 2 * MOST_PIECES:
            self.pieces = [*self.pieces[1:-1:2], self.pieces[-1]]

    def snapshot(self, cells: AuditCells | None) -> dict[str, Any]:
        """What goes on elsewhere, as JSON: what the audit saw, when the stream began and where the run stands.

        The match points themselves stay here.
        """
        sample = self.audited(cells) if cells is not None else self.before
        columns = (sample.cells, sample.found, sample.points)
        return {
            "begin": self.begin,
            "last": [vars(piece) for piece in self.pieces[-1:]],
            "sample": [column.tolist() for column in columns],
            "outside": sample.outside,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        self.pieces = [Piece(**piece) for piece in saved["last"]]
        for piece in self.pieces:
            finite("last", *vars(piece).values())
        self.begin = None if saved["begin"] is None else number_in("begin", saved["begin"], -TICK, TICK)
        self.before = AuditSample.restored(saved["sample"], saved["outside"])
