"""Compressed output: the hits and the links that they share, from which any of the matches can be spelled out later.

A **hit** is an event that completes matches; a **link** is one bound event and what came before it. To spell the
matches of a hit, begin at its link and go on like this, until there is nothing more to do:

* Leave a link alone if its ``latest`` is before the ``since`` of the hit: all that it stands for began too early.
* Else do the same with ``other``, the next alternative, if there is one, in the place of this link.
* If the link has no ``row``, it binds nothing: go on with ``before``, too.
* If the ``start`` of the link is not before ``since``, it binds event ``row`` to ``variable``. Go on with ``before``;
  if there is none, this was the first event, and the match is complete.

Source: the compressed output mode of Agrawal et al., SIGMOD 2008, section 2, which is their shared versioned buffer
(section 5.1). Deviation: starts in the place of version numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.arrays import Ints, extended
from acep_approx.engines.batches import Grouped
from acep_approx.engines.columns import Listed
from acep_approx.engines.runs.lineage import Bound, Hits, WaysCounter, first_of_equal, spelled
from acep_approx.engines.runs.runs import Runs
from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import to_numpy
from acep_approx.kernels.runs import layout
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs.layout import ARC_BITS, ARC_MASK
from acep_approx.matching.outputs.completed import Finder
from acep_approx.matching.outputs.of_runs import RunOutput
from acep_approx.matching.outputs.output import Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BindingColumns, warn_at_least
from acep_approx.matching.renumber import Numbers, renumbered
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.shape import walk
from acep_approx.query.syntax import RegisterValue

CHUNK = 1 << 18
"""Bound events that are spelled at a time."""
ROWS_AT_ONCE = 1024
"""Events of which all that they complete is gathered, where some may be spelled twice."""
NONE = -1
FAR = 1 << 62


@dataclass(frozen=True)
class Links:
    """Links as columns, in order of their numbers; -1 where there is no event, no arc, none before, no other."""

    id: Ints
    arc: Ints
    before: Ints
    other: Ints
    start: Ints
    latest: Ints

    def words(self) -> Ints:
        """As ``kernels.runs.lineage`` reads them."""
        first = np.where(self.id < 0, NONE, (self.id << ARC_BITS) | (self.arc & ARC_MASK))
        return np.stack([first, self.before, self.other, self.start, self.latest], axis=1).ravel()


@dataclass(frozen=True)
class Spelling:
    """What it takes to turn links into the columns of matches.

    ``labels`` has the variable of each arc, ``known`` are the events that links bind. ``is_machine`` says that arcs,
    not their variables, tell what is missing.
    """

    links: Links
    labels: Ints
    known: Recent
    stamps: Stamps
    bindings: BindingColumns
    is_ambiguous: bool
    is_machine: bool


NOTHING = Bound.joined([])


class Compressed:
    """All matches of a query in some events, as the structure that they share; made by ``Matches.compressed``.

    Attributes
    ----------
    hits : pyarrow.Table
        One row per event, number of errors and place in the pattern that completes matches: equivalence attributes,
        ``errors``, ``end``, ``row`` (of that event), ``since`` (the earliest start inside its window), ``start`` (the
        latest of its matches), ``link``.
    links : pyarrow.Table
        ``link`` (its number, from 0), ``row`` and ``variable`` of the event it binds, ``before`` and ``other`` (links),
        ``start``, ``latest``. In a count window starts are numbers of events within their partition.
    is_ambiguous : bool
        Whether the links may spell a match twice, also with more errors than it needs: of the same events and variables
        the first with the fewest errors counts.

    Notes
    -----
    ``len`` is the number of hits. How matches are spelled is said at the top of ``matching.tracing.compressed``.
    """

    def __init__(self, hits: pa.Table, links: pa.Table, spelling: Spelling | None) -> None:
        self.hits = hits
        self.links = links
        self._spelling = spelling
        self.is_ambiguous = spelling is not None and spelling.is_ambiguous
        none = np.zeros(0, np.int64)
        self._words, self._labels = (spelling.links.words(), spelling.labels) if spelling else (none, none)
        self._link, self._since, self._errors, self._row = (
            to_numpy(hits.column(name).cast(pa.int64()).combine_chunks()) if spelling else np.zeros(0, np.int64)
            for name in ("link", "since", "errors", "row")
        )

    def renumbered(self, original: Numbers) -> Compressed:
        """The same with other row numbers, in the same order.

        Parameters
        ----------
        original : callable
            Gives for row numbers the others; ``LateEvents.original``.
        """
        if self._spelling is None:
            return self
        old, known = self._spelling.links, copy(self._spelling.known)
        known.ids = original(known.ids)
        spelling = replace(
            self._spelling, known=known, links=replace(old, id=np.where(old.id < 0, NONE, original(old.id)))
        )
        hits, links = (renumbered(table, ["row"], original) for table in (self.hits, self.links))
        return Compressed(hits, links, spelling)

    def __len__(self) -> int:
        return len(self._link)

    def __repr__(self) -> str:
        return f"<Compressed: {len(self):,} hits, {self.links.num_rows:,} links>"

    def counts(self) -> Ints:
        """Per hit how many matches it stands for, without spelling them.

        2**63 - 1 means at least so many, and ``CappedCountWarning`` says so.

        Raises
        ------
        UsageError
            ``ACEP-U007``: the links may spell a match twice.

        Complexity: O(links that hits of one window lead to).
        """
        if self.is_ambiguous:
            raise UsageError(
                "these links may spell a match twice, so they cannot be counted",
                code="ACEP-U007",
                hint="expand them, or take Matches.counts()",
            )
        counts = WaysCounter().count(self._words, self._link, self._since)
        warn_at_least([int(counts.max(initial=0))])
        return counts

    @checked
    def expand(self, hits: Sequence[int] | None = None, limit: int | None = None) -> pa.Table:
        """Spell matches out.

        Parameters
        ----------
        hits : sequence of int, optional
            Rows of ``hits``. Default: all.
        limit : int, optional
            At most so many matches.

        Returns
        -------
        pyarrow.Table
            The columns of ``Matches.to_arrow``; matches in order of their hits, those of one event with as many errors
            in the order of ``Matches``. All hits together give all matches, each once.

        Raises
        ------
        UsageError
            ``ACEP-U002``: a negative limit. ``ACEP-U008``: there is no such hit.

        Complexity: linear in the size of the result; where ``is_ambiguous``, in all that the chosen events complete.
        """
        try:
            chosen = np.arange(len(self)) if hits is None else np.array(hits, np.int64)
            if chosen.ndim != 1:
                raise TypeError("not a list")
        except (ValueError, TypeError, OverflowError) as error:
            raise UsageError(f"hits is {hits!r:.80}", code="ACEP-U008", hint="give whole numbers, from 0") from error
        if limit is not None and limit < 0:
            raise UsageError(f"limit is {limit}", code="ACEP-U002", hint="it cannot be negative")
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(self):
            wrong = chosen[(chosen < 0) | (chosen >= len(self))][0]
            raise UsageError(f"there is no hit {wrong}", code="ACEP-U008", hint=f"there are {len(self)}, from 0")
        if self._spelling is None:
            return pa.table({})
        tables = [self._table(NOTHING)]
        left = FAR if limit is None else limit
        if left:
            for part in self._distinct(chosen) if self.is_ambiguous else self._spelled(chosen):
                tables.append(self._table(part if len(part) <= left else part.take(np.arange(left))))
                left -= tables[-1].num_rows
                if not left:
                    break
        return pa.concat_tables(tables)

    def _table(self, spelled: Bound) -> pa.Table:
        spelling = self._spelling
        assert spelling is not None, "without it there are no hits"
        known = spelling.known
        placement = spelling.bindings.placement
        events = Listed.of(placement, spelled.hit, spelled.hit, spelled.offset, spelled.id, self._labels[spelled.arc])
        errors = self._errors[spelled.hit]
        own = self.hits.select(list(spelling.stamps.preparer.shown_columns))
        columns = dict(zip(own.column_names, own.take(spelled.hit).columns, strict=True))
        columns["errors"] = pa.array(errors)
        columns["start"] = spelling.stamps.time(known.ticks[known.find(events.first)])
        columns["end"] = self.hits.column("end").take(spelled.hit)
        arcs = spelled.arc if spelling.is_machine else None
        return pa.table({**columns, **spelling.bindings.described(events, errors, known, arcs=arcs)})

    def _distinct(self, hits: Ints) -> Iterator[Bound]:
        """The matches of hits without those that another hit of the same event spells with fewer errors, or before."""
        rows = np.unique(self._row[hits])
        for first in range(0, len(rows), ROWS_AT_ONCE):
            alike = np.flatnonzero(np.isin(self._row, rows[first : first + ROWS_AT_ONCE]))
            found = Bound.joined(list(self._spelled(alike)))
            keep = first_of_equal(self._errors[found.hit], found.offset, found.id, self._labels[found.arc])
            yield found.take(np.flatnonzero(keep & np.isin(found.hit, hits)))

    def _spelled(self, hits: Ints) -> Iterator[Bound]:
        none, row, errors = np.zeros(len(hits), np.int64), self._row[hits], self._errors[hits]
        wanted = Hits(row, none, errors, self._link[hits], *(none for _ in range(4)))
        for bound in spelled(self._words, wanted, self._since[hits], self._labels, CHUNK):
            yield replace(bound, hit=hits[bound.hit])


HIT_COLUMNS = ("errors", "end", "row", "since", "start", "link")


def compressed_plan(wanted: Plan) -> Plan:
    """The plan that compressed output is made with: by the runs engine.

    Raises
    ------
    UsageError
        ``ACEP-U007``: what the links spell would not be the matches.
    """
    registers = wanted.registers
    if wanted.query.is_algebra:
        raise UsageError(
            "compressed output and a query in CEL do not go together: it shows matches by their events, and results in "
            "CEL name none",
            code="ACEP-U007",
            hint="list the results: equal ones are one row, with their number in the column times",
        )
    reads_registers = any(isinstance(n, RegisterValue) for o in wanted.query.outputs for n in walk(o.value))
    has_hidden = not wanted.query.is_regex and "" in wanted.automaton.variables
    if reads_registers or has_hidden:
        raise UsageError(
            "the matches of this query cannot be kept compressed: "
            + ("RETURN reads registers" if reads_registers else "some of their events are not shown"),
            code="ACEP-U007",
            hint="list the matches",
        )
    if not wanted.query.selection.is_all or (registers is not None and registers.needs_filter):
        clauses = wanted.query.selection.clauses
        why = f"{clauses[0]} chooses among them" if clauses else "conditions are tested on each of them"
        raise UsageError(
            f"the matches of this query cannot be kept compressed: {why} when they are complete",
            code="ACEP-U007",
            hint="list the matches; `explain` says which conditions are tested on complete matches",
        )
    return wanted if registers is not None else plan(wanted.query, "runs")


class SharedRuns(Runs):
    """Runs of which the links that hits reach are given away, each once, with numbers that stay.

    Attributes
    ----------
    shared : numpy.ndarray of int64
        Per link of the engine the number it was given away with; -1 for none.
    given : int
        Links given away so far.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.shared = np.zeros(0, np.int64)
        self.given = 0
        self.labels = np.array([arc.label for arc in self.automaton.automaton.arcs] or [0], np.int64)

    def share(self, hit: Ints, since: Ints) -> Links:
        """The links that hits reach and that have not been given away; afterwards ``shared`` has their numbers.

        Parameters
        ----------
        hit, since : numpy.ndarray of int64
            Per hit its link and the earliest start inside its window.

        Complexity: O(links held).
        """
        used = int(self.control[layout.LINKS])
        self.shared = extended(self.shared, used, NONE)
        need = np.full(used, kernel_lineage.NOBODY, np.int64)
        kernel_lineage.reach(hit, since, self.links, self.shared, need)
        new = np.flatnonzero((need != kernel_lineage.NOBODY) & (self.shared < 0))
        self.shared[new] = self.given + np.arange(len(new))
        self.given += len(new)
        words = self.links[: layout.LINK * used].reshape(-1, layout.LINK)[new]
        here = words[:, layout.LINK_HERE]
        is_event = here >= 0
        number = np.append(self.shared, NONE)  # links that lead nowhere any more have no number
        return Links(
            id=np.where(is_event, here >> layout.ARC_BITS, NONE),
            arc=np.where(is_event, here & layout.ARC_MASK, NONE),
            before=number[words[:, layout.LINK_BEFORE].clip(NONE)],
            other=number[words[:, layout.LINK_OTHER].clip(NONE)],
            start=words[:, layout.LINK_START],
            latest=words[:, layout.LINK_LATEST],
        )

    def _compact(self, floors: Ints) -> None:
        super()._compact(floors)
        self.shared = self.shared[self._number[: len(self.shared)] >= 0]


class RunShared(RunOutput):
    """Hits, batch by batch: key, errors, end, row, since, start, link; their links are gathered on the way."""

    engine: SharedRuns

    def __init__(
        self, engine: SharedRuns, finder: Finder, stamps: Stamps, recent: Recent, bindings: BindingColumns
    ) -> None:
        super().__init__(engine, finder, stamps, recent, bindings)
        self._links: list[Links] = []
        self._events: list[tuple[Ints, Ints, pa.Table]] = []
        taken = sorted(set(stamps.preparer.shown_columns) & set(HIT_COLUMNS))
        if taken:
            raise DataError(
                f"the key column {taken[0]!r} has the name of a column of the result",
                code="ACEP-D043",
                hint="rename it in the events",
            )

    @property
    def _keeps_recent(self) -> bool:
        return True

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the hits."""
        none = np.zeros(0, np.int64)
        return self._hits(none, none, none, none, none, none)

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        if not len(hits):
            return
        tick = events.tick[hits.event]
        links = self.engine.share(hits.link, tick - self.engine.window)
        self._links.append(links)
        places = np.flatnonzero(np.isin(self.recent.ids, np.unique(links.id)))
        data = self.recent.data.take(places) if self.recent.columns else self.recent.data
        self._events.append((self.recent.ids[places], self.recent.ticks[places], data))
        numbers = self.engine.shared[hits.link]
        yield self._hits(events.slot[hits.event], hits.errors, events.id[hits.event], tick, hits.start, numbers)

    def _hits(self, slot: Ints, errors: Ints, ids: Ints, tick: Ints, start: Ints, link: Ints) -> pa.Table:
        return pa.table(
            {
                **self.stamps.keys(slot),
                "errors": errors,
                "end": self._ticks(ids, tick),
                "row": ids,
                "since": self._stamp(tick - self.engine.window),
                "start": self._stamp(start),
                "link": link,
            }
        )

    def _stamp(self, ticks: Ints) -> pa.Array:
        """Starts: times, or numbers of events within their partition in count windows."""
        return pa.array(ticks) if self._is_count else self.stamps.time(ticks)

    def compressed(self, hits: pa.Table) -> Compressed:
        """All that was found, ``hits`` being the tables given so far."""
        links = Links(*(_joined([getattr(part, f.name) for part in self._links]) for f in fields(Links)))
        names, labels = pa.array(self.bindings.automaton.variables, pa.string()), self.engine.labels
        variables = np.where(links.arc < 0, NONE, labels[links.arc])
        columns = {
            "link": np.arange(len(links.id)),
            "row": _optional(links.id),
            "variable": pa.DictionaryArray.from_arrays(_optional(variables).cast(pa.int32()), names),
            "before": _optional(links.before),
            "other": _optional(links.other),
            "start": self._stamp(links.start),
            "latest": self._stamp(links.latest),
        }
        spelling = Spelling(
            links=links,
            labels=labels,
            known=self._known(),
            stamps=self.stamps,
            bindings=self.bindings,
            is_ambiguous=self.finder.automaton.is_ambiguous,
            is_machine=bool(self.finder.automaton.transfers),
        )
        return Compressed(hits, pa.table(columns), spelling)

    def _known(self) -> Recent:
        """The events that links bind, each once."""
        known = Recent(self.recent.data.schema, self.recent.columns)
        known.ids, first = np.unique(_joined([ids for ids, _, _ in self._events]), return_index=True)
        known.ticks = _joined([ticks for _, ticks, _ in self._events])[first]
        if self._events and self.recent.columns:
            parts = [data.cast(known.data.schema) for _, _, data in self._events]
            known.data = pa.concat_tables(parts).take(first)
        return known


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _optional(column: Ints) -> pa.Array:
    return pa.array(column, mask=column < 0)
