"""How many events of a batch the engine takes at a time: the links that a piece makes must fit into memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

from acep_approx.engines.engine import Engine
from acep_approx.engines.progress import RunProgress
from acep_approx.matching.stream_batch import StreamBatch

PIECE, LEAST_PIECE = 1 << 14, 64
"""Most and fewest events at a time, at first."""
LARGE_PIECE = 1 << 17
"""Most events at a time where they make few links: there what is done once per piece takes a fifth of the time. Only
once a piece of ``PIECE`` events was run: fewer say too little of what is to come, and do not end it either."""
MOST_PER_EVENT = 1.5
"""Links per event that are few. Where there are more, there are more matches, too, and listing many at once is slow."""
LINKS_AT_ONCE = 1 << 20
"""Links that so many events should make: the lineage of a piece must fit into memory."""


class Pieces:
    """Divides batches into pieces, and tells who sheds load when they begin and end.

    Parameters
    ----------
    engine : Engine
    progress : RunProgress
        What the engine has done so far.
    may_grow : bool
        Whether pieces may have more than ``PIECE`` events.

    Attributes
    ----------
    size : int
        Events of the next piece, at most.
    """

    def __init__(self, engine: Engine, progress: RunProgress, *, may_grow: bool) -> None:
        self._engine, self._progress = engine, progress
        self._may_grow = may_grow
        self.size = LEAST_PIECE

    def of(self, batch: StreamBatch, seconds: float) -> Iterator[StreamBatch]:
        """The pieces of a batch, each to be run before the next is asked for.

        ``seconds``: what was spent on each event before.
        """
        if not self._engine.makes_links:
            yield batch
            return
        shedder, progress, first = self._engine.load_shedder, self._progress, 0
        if shedder is not None:
            shedder.begin_batch(len(batch))
        while first < len(batch):
            most = min(self.size, self._engine.most_events if shedder is None else shedder.most_events)
            piece, made, begun = batch.piece(first, most), progress.made, time.perf_counter()
            yield piece
            first += len(piece)
            if shedder is not None:
                shedder.end_piece(piece, progress, time.perf_counter() - begun + len(piece) * seconds)
            events, links = len(piece), progress.made - made
            says_enough = self._may_grow and (events >= PIECE or self.size > PIECE)
            self.learn(events, links, LARGE_PIECE if says_enough and links <= MOST_PER_EVENT * events else PIECE)

    def learn(self, events: int, links: int, most: int) -> None:
        """So many events made so many links: how many to take next, at most ``most``."""
        per_event = max(links / max(events, 1), 1.0)
        self.size = int(min(most, max(LEAST_PIECE, LINKS_AT_ONCE / per_event)))
