"""How many matches the beginning of some events has: counted, before any is listed."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from acep_approx.errors import AcepError, CappedCountWarning, ManyMatchesWarning
from acep_approx.events.counts import counted, said
from acep_approx.events.stream import read_events
from acep_approx.matching.outputs.kinds import COUNTS
from acep_approx.planning.many_matches import REMEDY, why_many

MOST_EVENTS, MOST_SECONDS = 50_000, 0.2
FEWEST_EVENTS = 24
"""Fewer events are not looked at."""
MOST_READ = 1000
"""Matches that somebody may read."""
PER_POINT = 3
"""Matches for each event that completes one, from which on most of them tell of the same."""


@dataclass(frozen=True)
class Beginning:
    """The matches of the first events.

    Attributes
    ----------
    matches, points : int
        Matches, and events that complete one.
    events : int
        How many were read.
    is_all : bool
        Whether these were all.
    """

    matches: int
    points: int
    events: int
    is_all: bool

    @property
    def is_much(self) -> bool:
        """Whether that is more than anybody reads."""
        return self.matches >= max(MOST_READ, PER_POINT * self.points)

    def __str__(self) -> str:
        some = f"the {self.events:,} events have" if self.is_all else f"the first {self.events:,} events have"
        complete = "completes" if self.points == 1 else "complete"
        return f"{some} {said(self.matches)} matches, and {counted(self.points, 'event')} {complete} one"


def much(matches: Any) -> Beginning | None:
    """Count the matches of the first events, if the query may have many for one case; None: there are not too many.

    What is counted are matches of the whole input, too, so a run lists at least as many.

    Parameters
    ----------
    matches : Matches

    Complexity: as ``count_by_errors``, of a fraction of a second at most, but for one piece of the events.
    """
    source, question = matches.source, matches.question
    is_small = source.rows is not None and source.rows < FEWEST_EVENTS
    if is_small or question.sort or not source.reusable or why_many(matches.plan) is None:
        return None
    try:
        found = _counted(matches)
    except AcepError:
        return None  # the run itself tells of it
    return found if found is not None and found.is_much else None


def warn_of_many(matches: Any) -> None:
    """Warn, before a query lists its matches, that these will be more than anybody reads."""
    found = much(matches)
    if found is not None:
        why = why_many(matches.plan)
        warnings.warn(f"{found}: {why}. {REMEDY}", ManyMatchesWarning, stacklevel=4)


def _counted(matches: Any) -> Beginning | None:
    source = matches.source
    if not len(source.schema):
        return None
    matcher = matches.asking(bind=None).begun(COUNTS)
    assert matcher.roles is not None, "it is bound"
    total = points = events = 0
    until = float("inf")  # the first piece may have to load kernels: then the clock begins
    with source.looked_at(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CappedCountWarning)
        for batch in read_events(source.beside(), matcher.roles, columns=matcher.columns, batch_rows=MOST_EVENTS):
            at = 0
            while at < len(batch):
                if events >= MOST_EVENTS or time.perf_counter() > until:
                    return Beginning(total, points, events, is_all=False)
                piece = batch.slice(at, min(FEWEST_EVENTS + events // 8, len(batch) - at))
                for table in matcher.run(piece):
                    total += sum(table["matches"].to_pylist())
                    points += len(pc.unique(table["row"]))
                at, events = at + len(piece), events + len(piece)
                until = min(until, time.perf_counter() + MOST_SECONDS)
    return Beginning(total, points, events, is_all=True)
