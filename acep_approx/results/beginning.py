"""How many matches the beginning of some events has: counted, before any is listed."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from acep_approx.errors import AcepError, CappedCountWarning, ManyMatchesWarning
from acep_approx.events.counts import counted, said
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import COUNTS, MATCHES
from acep_approx.matching.pipeline import Pipeline
from acep_approx.planning.many_matches import REMEDY, why_many
from acep_approx.planning.planner import Plan

MOST_EVENTS, MOST_SECONDS = 50_000, 0.2
MOST_QUERIES = 5
"""Queries of a set whose events are looked at."""
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
    count = _Counting(matcher)
    with source.looked_at():
        for batch in read_events(source.beside(), matcher.roles, columns=matcher.columns, batch_rows=MOST_EVENTS):
            if not count.goes_on(batch):
                break
    return count.found


class _Counting:
    """Counts the matches of the first events, for a fraction of a second.

    Parameters
    ----------
    matcher : Execution
        Of counts, and bound.
    """

    def __init__(self, matcher: Execution) -> None:
        self._matcher = matcher
        self._left = float("inf")  # the first piece may have to load kernels: then the clock begins
        self.found = Beginning(0, 0, 0, is_all=True)

    @property
    def matcher_columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self._matcher.columns

    def goes_on(self, batch: EventBatch) -> bool:
        """Count the matches of one more batch; return whether to go on."""
        at = 0
        while at < len(batch):
            known = self.found
            if known.events >= MOST_EVENTS or self._left <= 0:
                self.found = replace(known, is_all=False)
                return False
            begin = time.perf_counter()
            piece = batch.slice(at, min(FEWEST_EVENTS + known.events // 8, len(batch) - at))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CappedCountWarning)
                tables = list(self._matcher.run(piece))
            matches = known.matches + sum(sum(table["matches"].to_pylist()) for table in tables)
            points = known.points + sum(len(pc.unique(table["row"])) for table in tables)
            at += len(piece)
            self.found = Beginning(matches, points, known.events + len(piece), is_all=True)
            self._left = MOST_SECONDS if self._left == float("inf") else self._left - (time.perf_counter() - begin)
        return True


class Lookout:
    """Looks at the first events of a stream that passes but once, before they are run, and warns of many matches.

    Parameters
    ----------
    plan : Plan
    whose : str, default ""
        The id of the query in its set.
    """

    def __init__(self, plan: Plan, whose: str = "") -> None:
        self._plan = plan
        self._whose = f"{whose}: " if whose else ""
        self._count: _Counting | None = None

    @classmethod
    def set(cls, run: Execution | Pipeline, whose: str = "") -> bool:
        """Set a lookout on a run if its query lists matches and may have many for one case; return whether it was."""
        is_shed = isinstance(run, Execution) and run.shedding is not None
        if is_shed or run.output is not MATCHES or why_many(run.plan) is None:
            return False
        run.lookout = cls(run.plan, whose)
        if isinstance(run, Execution) and run.pipeline is not None:
            run.pipeline.lookout = run.lookout
        return True

    def __call__(self, run: Pipeline, batch: EventBatch) -> bool:
        """Count the matches of some events; return whether to go on."""
        try:
            if self._count is None:
                counting = Execution(self._plan, output=COUNTS)
                counting.bind(run.schema, run.roles)
                self._count = _Counting(counting)
            some = batch.data.select(list(self._count.matcher_columns))
            goes_on = self._count.goes_on(EventBatch(batch.first_row, batch.ticks, some))
        except AcepError:
            return False  # the run itself tells of it, or events come again
        found = replace(self._count.found, is_all=False)
        if not found.is_much:
            return goes_on
        why = why_many(self._plan)
        warnings.warn(f"{self._whose}{found}: {why}. {REMEDY}", ManyMatchesWarning, stacklevel=4)
        return False


class LookoutOfSet:
    """Sets lookouts on the first queries of a set that need one; on all of them it would take too long."""

    def __init__(self) -> None:
        self._left = MOST_QUERIES

    def __call__(self, id: str, pipeline: Pipeline) -> None:  # noqa: A002  (what users call it)
        """Set a lookout on the pipeline of a query that joins the set, unless enough queries have one."""
        if self._left:
            self._left -= Lookout.set(pipeline, id)
