"""The explorer of many queries, or of rules: their matches are gathered as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import AcepError
from acep_approx.events.columns import integers
from acep_approx.events.counts import counted
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import Source
from acep_approx.events.time import tick_unit
from acep_approx.events.writing.tables import gathered_table
from acep_approx.pages.explorer import EventShown, Explored, NearShown, QueryShown
from acep_approx.planning.planner import UNBOUNDED, window_ticks
from acep_approx.query.cel.parser import is_cel
from acep_approx.query.parser import parse
from acep_approx.query.syntax import OtherPattern, QuerySyntax, Window
from acep_approx.results.explorer.explorable import Explorable, PageLabels, by_rows, said_left_out
from acep_approx.results.explorer.explore import PointsOf, query_shown, uses, variables
from acep_approx.results.explorer.listing import (
    MOST_MATCHES,
    EventColumns,
    Listing,
    errors_of,
    events_at,
    in_time_order,
    shown,
    spread,
    value_columns,
)
from acep_approx.results.explorer.near_matches import PLACES, NearMatches, near_matches

MOST_QUERIES, FEWEST, MOST_KEPT = 60, 20, 500_000
"""Queries that a page shows, how many matches of each at least, and how many are kept to choose from."""
KEYS = 3
MOST_NEAR = 8
"""Queries that are asked what nearly matched: those with the fewest matches."""


@dataclass(frozen=True)
class AskedQuery:
    """A query: its tree, and its text as it is shown."""

    query: QuerySyntax
    text: str = ""


def asked_of(text: str) -> AskedQuery:
    """A query, or a template, as text; what it is in CEL stands in its text alone."""
    if is_cel(text):
        return AskedQuery(QuerySyntax(OtherPattern(text, is_query=True), Window(0, UNBOUNDED), text=text), text.strip())
    return AskedQuery(parse(text), text.strip())


@dataclass(frozen=True)
class RereadEvents:
    """The events once more.

    Attributes
    ----------
    source : Source
    roles : mapping
        ``time``, ``key``, ``type`` and ``unit``, as given.
    sort : bool
        Whether they are sorted by time first.
    alone : callable, optional
        Gives the matches of a query that is run by itself; None, where that would find others.
    is_in_order : bool
        Whether they are in order of time; else they were put in order on the way.
    """

    source: Source
    roles: Mapping[str, Any]
    sort: bool = False
    alone: Callable[[str], Explorable | None] | None = None
    is_in_order: bool = True


class GatheredMatches:
    """Matches of queries, or of rules.

    Parameters
    ----------
    queries : mapping of str to AskedQuery
        By name, in the order in which they are shown.

    Attributes
    ----------
    late : int
        Events that were left out as they came late.
    """

    def __init__(self, queries: Mapping[str, AskedQuery]) -> None:
        self.queries = dict(queries)
        self.counts: dict[str, Counter[int]] = {name: Counter() for name in queries}
        self._points: dict[str, list[pa.Table]] = {name: [] for name in queries}
        self._kept: dict[str, list[pa.Table]] = {name: [] for name in queries}
        self._rows = self.late = 0

    def take(self, name: str, table: pa.Table) -> None:
        """Take in matches of a query; those of an unknown one are of none that is shown."""
        if name not in self.counts or not table.num_rows:
            return
        errors = errors_of(table)
        levels, numbers = np.unique(errors, return_counts=True)
        self.counts[name].update(dict(zip(levels.tolist(), numbers.tolist(), strict=True)))
        keys = [column for column in self._keys(name) if column in table.column_names]
        ends = table.select([*keys, "end"]).append_column("errors", pa.array(errors))
        first = ends.group_by([*keys, "end"], use_threads=False).aggregate([("errors", "min")])
        self._points[name].append(first.select(["end", "errors_min"]))
        if self._rows < MOST_KEPT:
            self._kept[name].append(table)
            self._rows += table.num_rows

    def _keys(self, name: str) -> list[str]:
        return [one.name for one in self.queries[name].query.equivalences]

    # --- the page -------------------------------------------------------------------------------------------

    def explored(self, again: RereadEvents, labels: PageLabels) -> Explored:
        """What the explorer shows.

        Parameters
        ----------
        again : RereadEvents
        labels : PageLabels

        Complexity: one pass over the events, for those that are shown, and a few for each of up to ``MOST_NEAR``
        queries.
        """
        left_out = said_left_out(self.late, again.source.malformed.count)  # of the run: passes below stop early
        ranked = sorted(self.queries, key=lambda name: -self.counts[name].total())
        chosen = [name for name in self.queries if name in set(ranked[:MOST_QUERIES])]
        found = [name for name in chosen if self.counts[name]]
        near = self._near(again, chosen, labels)
        shown_too = {chosen[place.query] for place in near.places}
        keyed = [name for name in chosen if self.counts[name] or name in shown_too]
        keys = tuple(dict.fromkeys(key for name in keyed for key in self._keys(name)))[:KEYS]
        most = max(FEWEST, MOST_MATCHES // max(len(found), 1))
        listings = [self._listing(name, number, keys, most) for number, name in enumerate(chosen)]
        matches = [match for one in listings for match in one.matches]
        bound = [*(match.events for match in matches), *(place.events for place in near.places)]
        columns, events, is_time = self._events(again, chosen, bound)
        queries = [self._query(name, one, is_time=is_time) for name, one in zip(chosen, listings, strict=True)]
        total = sum(counts.total() for counts in self.counts.values())
        kept, notes = again.source.kept, list[str]()
        if len(matches) < total:
            some = f"{len(matches):,} of {total:,} matches: some of each"
            notes.append(f"The table holds {some}. The bars count all match points.")
        if len(chosen) < len(self.queries):
            left = len(self.queries) - len(chosen)
            notes.append(f"Shown are the {len(chosen):,} with most matches; {left:,} others are left out.")
        if kept is not None and kept.note:
            notes.append(kept.note)

        def in_columns(place: NearShown) -> tuple[str | None, ...]:
            mine = dict(zip(self._keys(chosen[place.query]), place.key, strict=True))
            return tuple(mine.get(key) for key in keys)

        return Explored(
            title=labels.title or f"{counted(total, 'match')} in {labels.source}",
            queries=queries,
            matches=in_time_order(sorted(matches, key=lambda match: match.end), events),
            events=events,
            near=[replace(place, key=in_columns(place)) for place in near.places],
            near_note=near.note,
            facts=[("input", labels.source), *left_out],
            tiles=[
                (f"{total:,}", "match" if total == 1 else "matches"),
                (f"{len([n for n in self.counts if self.counts[n]]):,}", f"of {len(self.counts):,} have some"),
            ],
            is_time=is_time,
            keys=keys,
            attributes=columns.names,
            used=columns.used,
            again=[("On the command line", labels.command)],
            again_notes=labels.notes,
            notes=notes,
        )

    def _near(self, again: RereadEvents, chosen: Sequence[str], labels: PageLabels) -> NearMatches:
        """What nearly matched of the queries with the fewest matches, each run by itself."""
        if not again.is_in_order:
            return NearMatches([], "What nearly matched is not known of events that are put in order on the way.")
        if again.alone is None or not len(again.source.schema):
            return NearMatches([], "")
        named = [name for name in chosen if not self.queries[name].query.is_algebra]
        rarest = sorted(named, key=lambda name: self.counts[name].total())
        plain = [(name, matches) for name in rarest if (matches := again.alone(name)) is not None]
        asked = plain[:MOST_NEAR]
        places: list[NearShown] = []
        unasked = replace(labels, events="", ask="")
        for name, matches in asked:
            matches.has_warned = True
            mine = by_rows(matches.asking(on_progress=None))
            most = max(1, PLACES // len(asked))
            places += near_matches(mine, unasked, mine.points(), chosen.index(name), most).places
        of = f"{len(asked):,} {'query, run' if len(asked) == 1 else 'queries, each run'} by itself"
        note = f"Nearly matched: {counted(len(places), 'place')} of {of}."
        if left_out := len(chosen) - len(asked):
            why = "in CEL, or reading what others publish or tables, or with more matches"
            note += f" {counted(left_out, 'other')} not asked: {why}."
        return NearMatches(sorted(places, key=lambda place: place.tick), note)

    def _listing(self, name: str, number: int, keys: Sequence[str], most: int) -> Listing:
        table = gathered_table(self._kept[name])
        if not table.num_rows:
            return Listing([], (), "")
        rows = table.take(pa.array(spread(errors_of(table), most)))
        query = self.queries[name].query
        named = ["events"] if query.is_regex else [variable for variable, _ in variables(query)]
        names = [] if query.outputs or query.is_algebra else [n for n in named if n in rows.column_names]
        mine = [key if key in self._keys(name) and key in rows.column_names else None for key in keys]
        others = [n for n in rows.column_names if n not in (*names, *self._keys(name), "query")]
        columns, values = value_columns(rows.select(others), [])
        return Listing(list(shown(rows, number, mine, names, values)), columns, "")

    def _query(self, name: str, chosen: Listing, *, is_time: bool) -> QueryShown:
        asked = self.queries[name]
        parts = self._points[name]
        ends, errors = (
            np.concatenate([np.zeros(0, np.int64), *(integers(part, column) for part in parts)])
            for column in ("end", "errors_min")
        )
        found = PointsOf.of(dict(sorted(self.counts[name].items())), ends, errors)
        window = _window(asked.query, is_time=is_time)
        return query_shown(asked.query, window, found, chosen, name=name, text=asked.text)

    def _events(
        self, again: RereadEvents, chosen: Sequence[str], bound: Sequence[Sequence[tuple[str, int]]]
    ) -> tuple[EventColumns, dict[int, EventShown], bool]:
        """The events of the matches; rows below 0 are of streams that queries publish."""
        source = again.source
        if not len(source.schema):
            return EventColumns((), (), 0), {}, False
        roles = infer_roles(source.schema, **again.roles)
        named = [name for one in chosen for _, name in uses(self.queries[one].query)]
        keys = [key for one in chosen for key in self._keys(one)]
        columns = EventColumns.of(roles, source.schema, dict.fromkeys(named), keys)
        rows = np.unique(np.array([row for one in bound for _, row in one if row >= 0], np.int64))
        is_time = tick_unit(source.schema.field(roles.time).type, roles.unit) is not None
        return columns, events_at(source, roles, rows, columns, sort=again.sort, is_in_order=again.is_in_order), is_time


def _window(query: QuerySyntax, *, is_time: bool) -> int:
    """The window in ticks; 0 where each query of a template has its own."""
    if query.window.parameter is not None:
        return 0
    try:
        return window_ticks(query, "us" if is_time else None)
    except AcepError:  # it is in the unit of another stream
        return 0
