"""What came of a run inside a budget: match points, pieces of the stream, what was audited."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.budget.audit import AuditCells, AuditSample
from acep_approx.budget.ledger import Piece

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


@dataclass
class Metrics:
    """What came of a run.

    Attributes
    ----------
    points : MatchPoints
        Found since this was made.
    found : int
        Match points found since the stream began.
    pieces : list of Piece
        Where the run stood after each piece of the stream.
    begin : int or None
        Tick of the first event.
    """

    points: MatchPoints = field(default_factory=MatchPoints)
    found: int = 0
    pieces: list[Piece] = field(default_factory=list)
    begin: int | None = None

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
        """What the audit saw of the match points found since this was made.

        Samples are added by ``AuditSample.combine``: those of later batches, and of parts of a stream that run with
        another seed each. Parts of one seed have the same cells, for keys are known by their slots.
        """
        of = cells.cells(self.points.joined("slot"), self.points.joined("tick"))
        is_audited = of >= 0
        kept = self.points.joined("is_kept").astype(np.bool_)
        return AuditSample.of(of[is_audited], kept[is_audited], int((~is_audited).sum()))
