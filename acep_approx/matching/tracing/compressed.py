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
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.arrays import Ints
from acep_approx.engines.columns import Listed
from acep_approx.engines.runs.lineage import Bound, Hits, WaysCounter, first_of_equal, listed
from acep_approx.errors import UsageError
from acep_approx.events.columns import to_numpy
from acep_approx.kernels.runs.layout import ARC_BITS, ARC_MASK
from acep_approx.matching.outputs.counted import warn_at_least
from acep_approx.matching.outputs.output import Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BindingColumns
from acep_approx.matching.renumber import Numbers, renumbered

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
        """Matches as columns."""
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
        """The matches that links spell, some at a time."""
        none, row, errors = np.zeros(len(hits), np.int64), self._row[hits], self._errors[hits]
        wanted = Hits(row, none, errors, self._link[hits], *(none for _ in range(4)))
        for bound in listed(self._words, wanted, self._since[hits], self._labels, CHUNK):
            yield replace(bound, hit=hits[bound.hit])
