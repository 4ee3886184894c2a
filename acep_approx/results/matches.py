"""The matches of a query in some events: found when asked for, as columns, one by one, or only counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from itertools import repeat
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.diagrams.fragments import never_raises
from acep_approx.engines.progress import RunProgress
from acep_approx.errors import UsageError, expect
from acep_approx.events.columns import to_arrow
from acep_approx.events.source import Source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.matching.execution import Execution
from acep_approx.matching.pipeline import OutputKind, Pipeline
from acep_approx.matching.renumber import renumbered, row_columns
from acep_approx.matching.tracing.compressed import Compressed
from acep_approx.matching.tracing.compressing import compressed_plan
from acep_approx.matching.unseen import warn_of_unseen_types
from acep_approx.planning.planner import Plan
from acep_approx.results.bundles import bundles
from acep_approx.results.export import reader_of, to_polars
from acep_approx.results.match import Match, by_number
from acep_approx.results.matched_events import ROW, Listed, listed, numbered, of_match, showing_events

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from acep_approx.why.no_match.result import NoMatch


class Matches:
    """All matches of one query in one input; nothing is computed before it is asked for.

    Parameters
    ----------
    plan : Plan
    source : Source
    options : dict
        Which columns are time, key and type, and the unit: as for ``Execution``.
    sort : bool
        Sort the input by time first (needs memory for all of it).
    limit : int, optional
        List at most so many matches.
    on_progress : callable, optional
        Called after each batch with the number of events done so far.

    Notes
    -----
    Each method reads the input anew. Where it can be read only once (a generator, a reader, standard input), the second
    call raises ``UsageError``. The first that comes to the end of the input warns (``UnseenTypeWarning``) of types that
    the query names and no event had.
    """

    row_column: str | None = None
    """A column that events get beside their own, with their row numbers; matches show whole events then."""

    def __init__(
        self,
        plan: Plan,
        source: Source,
        options: dict[str, Any],
        *,
        sort: bool = False,
        limit: int | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        expect("limit", limit, (Integral, NoneType), "a whole number")
        expect("on_progress", on_progress, (Callable, NoneType), "a function of the number of events done")  # type: ignore[arg-type]
        if limit is not None and limit < 0:
            raise UsageError(f"limit is {limit}", code="ACEP-U002", hint="it cannot be negative")
        source.late.check(sort=sort)
        self.plan = plan
        self.source = source
        self.limit = limit
        self.is_cut = False
        self.progress = RunProgress()
        self._options = options
        self._sort = sort
        self._on_progress = on_progress
        self.has_warned = False
        self._counting: Pipeline | None = None  # that of the last run, where its events are gone

    def _run(self, kind: OutputKind) -> Iterator[pa.Table]:
        """Run a fresh matcher over the input; the first table is empty and shows the columns."""
        matcher, pipeline = self.source.settle(partial(self._bound, kind))
        if pipeline is not None:
            yield from self._through(matcher, pipeline)

    def _bound(self, kind: OutputKind, schema: pa.Schema) -> tuple[Execution, Pipeline | None]:
        """A fresh matcher with its pipeline; without columns there are no events, and there is none."""
        derived = None
        if self.row_column is not None:
            derived = {self.row_column: pa.int64()}
            self._options = {**self._options, "bind": [self.row_column, *schema.names]}
        matcher = self._matcher(self.plan, kind)
        return matcher, matcher.bind(schema, derived=derived) if len(schema) else None

    def _matcher(self, plan: Plan, kind: OutputKind) -> Execution:
        """A fresh matcher for one pass over the events."""
        return Execution(plan, output=kind, **self._options)

    def _through(self, matcher: Execution, pipeline: Pipeline) -> Iterator[pa.Table]:
        late, columns = self.source.late, () if matcher.bind_by else row_columns(self.plan, matcher.output)
        for table in self._found(matcher, pipeline):
            # of compressed output the links must change their numbers with the hits
            is_changed = late.count and table.num_rows and matcher.output != "compressed"
            yield renumbered(table, columns, late.original) if is_changed else table

    def _found(self, matcher: Execution, pipeline: Pipeline) -> Iterator[pa.Table]:
        """The results, with rows numbered as if there were no late events."""
        self.progress = matcher.progress
        if not self.source.reusable:
            self._counting, pipeline.preparer.counts_classes = pipeline, True
        yield pipeline.nothing()
        for batch in read_events(self.source, pipeline.roles, columns=pipeline.columns, sort=self._sort):
            yield from matcher.run(batch, self._beside(batch))
            if self._on_progress:
                self._on_progress(matcher.progress.events + self.source.late.count)
        yield from pipeline.finish()
        if matcher.progress.events and not self.has_warned:
            self.has_warned = True
            warn_of_unseen_types(self.plan.automaton, matcher.types_seen)

    def _beside(self, batch: EventBatch) -> dict[str, pa.Array] | None:
        """What events get beside their own columns."""
        if self.row_column is None:
            return None
        return {self.row_column: to_arrow(batch.first_row + np.arange(len(batch)))}

    @property
    def work(self) -> RunProgress:
        """What the last run over the events saw and did."""
        return self.progress

    def tables(self) -> Iterator[pa.Table]:
        """The matches as a stream of tables, each of bounded size; see ``to_arrow`` for the columns."""
        self.is_cut = False
        left = self.limit
        for table in self._run("matches"):
            if left is None:
                yield table
                continue
            self.is_cut = table.num_rows > left
            yield table.slice(0, left)
            left -= min(left, table.num_rows)
            if self.is_cut:
                return

    def to_arrow(self) -> pa.Table:
        """All matches as one table, in the order of docs/reference/language.md: as they are known, fewer errors first.

        Returns
        -------
        pyarrow.Table
            Equivalence attributes; ``errors`` (int64); ``start``, ``end`` (timestamp or int64); ``missing`` (list of
            string); then per variable the row number of its event: int64, null where none is bound, a list where the
            variable repeats; with ``bind`` values of the event. With RETURN its columns instead. A bare regular
            expression has one column ``events``.

        Complexity: linear in the number of events and in the size of the output.
        """
        return _joined(self.tables())

    def to_pandas(self) -> pd.DataFrame:
        """``to_arrow`` as a pandas DataFrame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """``to_arrow`` as a polars DataFrame.

        Raises
        ------
        UsageError
            ``ACEP-U149``: polars is not installed.
        """
        return to_polars(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The matches as a stream of Arrow: ``pyarrow.table(matches)``, ``polars.DataFrame(matches)``."""
        return reader_of(self.tables()).__arrow_c_stream__(requested_schema)

    def events(self) -> pa.Table:
        """The events of all matches, one row each, with all columns of the input.

        Returns
        -------
        pyarrow.Table
            ``match`` (int64), the number of the match in the order of ``to_arrow``; ``variable`` (string); ``missing``
            (bool), of an event that the pattern wanted and that is not there: its columns are null; ``row`` (int64),
            the number of the event in the input; then the columns of the events. A name that the events have, too, gets
            a ``_``. By match, then by time; a missing event stands behind the one before it in the pattern.

        Raises
        ------
        UsageError
            ``ACEP-U148``: results of queries in CEL name no events.

        Complexity: as ``to_arrow``, with memory for all columns of the events in the window, and for all rows.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 10 ERRORS 1")
        >>> found = query.match([{"ts": 1, "type": "A", "x": 7}, {"ts": 5, "type": "C", "x": 9}])
        >>> for event in found.events().drop_columns(["match", "missing", "ts"]).to_pylist():
        ...     print(event)
        {'variable': 'a', 'row': 0, 'type': 'A', 'x': 7}
        {'variable': 'b', 'row': None, 'type': None, 'x': None}
        {'variable': 'c', 'row': 1, 'type': 'C', 'x': 9}
        """
        return _joined(self.event_tables())

    def event_tables(self) -> Iterator[pa.Table]:
        """``events`` as a stream of tables."""
        return numbered(self._with_events())

    def _events_of(self, match: Match) -> pa.Table:
        return of_match(self._with_events(match.number + 1), match)

    def _with_events(self, limit: int | None = None) -> Listed:
        """Tables of matches with their events; what is told of the run that finds them is told of it here, too."""
        asked = copy(self)
        asked.plan, asked.row_column = showing_events(self.plan), ROW
        asked.limit = self.limit if limit is None else limit
        own = {"plan": self.plan, "row_column": None, "limit": self.limit, "_options": self._options}
        for table in listed(asked.tables(), asked.plan, self.source.late):
            vars(self).update(vars(asked) | own)
            yield table
        vars(self).update(vars(asked) | own)

    def head(self, number: int = 5) -> Self:
        """The same question for the first few matches only.

        Parameters
        ----------
        number : int, default 5
            How many; no further events are read than they take.
        """
        expect("number", number, Integral, "a whole number")
        if number < 0:
            raise UsageError(f"number is {number}", code="ACEP-U002", hint="it cannot be negative")
        some = copy(self)
        some.limit = number if self.limit is None else min(number, self.limit)
        return some

    @overload
    def __getitem__(self, number: int) -> Match: ...

    @overload
    def __getitem__(self, number: slice) -> list[Match]: ...

    def __getitem__(self, number: int | slice) -> Match | list[Match]:
        """One match, or a list of some; as in lists, from the end too, for which all are found.

        Raises
        ------
        IndexError
            There are not so many.
        """
        return by_number(self, self.head, number)

    def __bool__(self) -> bool:
        """Whether there is a match; nothing is read behind the first.

        Raises
        ------
        TypeError
            The events can be read only once, and would be used up.
        """
        if not self.source.reusable:
            raise TypeError("these events can be read only once; list their matches to see whether there are any")
        return any(table.num_rows for table in self.head(1).tables())

    def __iter__(self) -> Iterator[Match]:
        keys = [e.name for e in self.plan.query.equivalences]
        has_events = not self.plan.query.outputs and self.plan.cel is None
        number = 0
        for table in self.tables():
            own = ("errors", "start", "end", "missing", *(("times",) if self.plan.cel is not None else ()))
            names = [n for n in table.column_names if n not in own]
            columns = self._key_columns(table, keys)
            for row in table.to_pylist():
                key = {name: row[column] for name, column in columns.items()}
                values = {n: row[n] for n in names if n not in columns.values()}
                missing = tuple(row.get("missing") or ())
                found = Match(row.get("errors", 0), row["start"], row["end"], key, missing, values, has_events, number)
                object.__setattr__(found, "_events", partial(self._events_of, found))
                number += 1
                yield from repeat(found, row["times"] if self.plan.cel is not None else 1)

    @staticmethod
    def _key_columns(table: pa.Table, keys: list[str]) -> dict[str, str]:
        """Attribute of each equivalence -> its column, which comes first in every table."""
        return dict(zip(keys, table.column_names, strict=False))

    def __len__(self) -> int:
        """Number of matches (at most ``limit``), counted without listing them.

        Raises
        ------
        TypeError
            The events can be read only once. (``list`` asks for the length before it iterates, and takes a TypeError
            for "unknown"; anything else would use the events up.)
        OverflowError
            More than Python allows as a length (2**63 - 1); ``count_by_errors`` has no such limit.
        """
        if not self.source.reusable:
            raise TypeError("these events can be read only once; count_by_errors() counts their matches")
        total = sum(self.count_by_errors().values())
        return total if self.limit is None else min(total, self.limit)

    def count_by_errors(self) -> dict[int, int]:
        """Number of matches by number of errors, counted without listing them; ``limit`` plays no role.

        The count of one match point stops growing at 2**61; the sums are exact.
        """
        counts = dict.fromkeys(range(self.plan.automaton.errors + 1), 0)
        for table in self._run("counts"):
            add_counts(counts, table)
        return counts

    def counts(self) -> pa.Table:
        """Per match point and number of errors how many matches it completes: errors, end, row, matches."""
        return _joined(self._run("counts"))

    def points(self) -> pa.Table:
        """The match points: events that complete a match.

        Returns
        -------
        pyarrow.Table
            Equivalence attributes, ``errors`` (the least), ``start`` (the latest, at that number of errors; in a count
            window ``span`` in events instead), ``end``, ``row``.

        Complexity: O(1) per event for a fixed query, however many matches there are.
        """
        return _joined(self._run("points"))

    def point_tables(self) -> Iterator[pa.Table]:
        """``points`` as a stream of tables."""
        return self._run("points")

    def partial(self) -> pa.Table:
        """Partial matches that timed out: the events that began a run of the pattern, and with which no match began.

        Returns
        -------
        pyarrow.Table
            One row per such event, with the furthest partial match (most events, then fewest errors, then latest last
            event): equivalence attributes; ``errors`` so far; ``start``, ``end`` (its last event so far); ``bound``,
            the number of its events; ``awaited``, the variables that could have come next, those that need no error
            first; ``why``; then the variables as in ``to_arrow``. ``why`` is "window closed", "stream ended", "broken"
            (a neighbour came that did not fit; contiguity only) or "refused" (all came, but a condition on the whole
            match or a negation failed). In the order in which windows close.

        Notes
        -----
        NON OVERLAP plays no role, and no runs are merged: it costs what all partial matches cost.
        """
        return _joined(self._run("partial"))

    def partial_tables(self) -> Iterator[pa.Table]:
        """``partial`` as a stream of tables."""
        return self._run("partial")

    def compressed(self) -> Compressed:
        """All matches as the structure that they share, to spell out some of them later.

        Returns
        -------
        Compressed
            Found by the runs engine, whatever the plan says. ``limit`` plays no role.

        Raises
        ------
        UsageError
            ``ACEP-U007``: NON OVERLAP, or conditions that only complete matches can be tested with.

        Complexity: memory for what the matches share; never for the matches themselves.
        """
        matcher = self._matcher(compressed_plan(self.plan), "compressed")
        if not len(self.source.schema):
            return Compressed(pa.table({}), pa.table({}), None)
        pipeline = matcher.bind(self.source.schema)
        found = pipeline.compressed(_joined(self._through(matcher, pipeline)))
        return found.renumbered(self.source.late.original) if self.source.late.count else found

    def bundles(self) -> pa.Table:
        """The match bundles (Li and Ge 2016, Definition 3): first, last, points, errors; see ``results.bundles``."""
        points = self.points()
        if not points.num_columns:
            return points  # no columns, no events
        if self._options.get("bind") is not None:  # bundles are chained by rows, whatever stands for them
            last = points.num_columns - 1
            points = points.remove_column(last).append_column("row", pa.array(range(points.num_rows), pa.int64()))
        pipeline = Execution(self.plan, output="points", **self._options).bind(self.source.schema)
        return bundles(points, pipeline.preparer.shown_columns, pipeline.window)

    def no_match(self, *, most: int | None = 1_000_000) -> NoMatch:
        """Say which step of the pattern no event passed, where there is no match.

        Parameters
        ----------
        most : int, optional
            Look at so many events at most. Default: a million. None: at all of them.

        Returns
        -------
        NoMatch
            ``print`` shows it in words. Where there are matches it says so: its reason is "found". Of events that can
            be read only once it knows what the last call that looked for matches counted.

        Raises
        ------
        UsageError
            ``ACEP-U131``: the events can be read only once, and nothing has been looked for in them yet.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > 9 WITHIN 5")
        >>> print(query.match([{"ts": 1, "type": "A", "x": 4}, {"ts": 3, "type": "B", "x": 2}]).no_match())
        no match: 1 event is A (a), but the only B (b) does not pass b.x > 9 (the largest is 2)
          step  type  events  fit  passed
          a     A          1    1       1
          b     B          1    0       0

        Complexity: reads the events once, and runs over them once for each step and each condition on several events.
        """
        from acep_approx.why.no_match.from_counters import no_match_from_counters
        from acep_approx.why.no_match.search import explain_no_match

        if self.source.reusable:
            with self.source.looked_at():
                return explain_no_match(self.plan, self.source, self.roles, sort=self._sort, most=most)
        if self._counting is None:
            raise UsageError(
                "these events can be read only once, and no match has been looked for in them",
                code="ACEP-U131",
                hint="look for matches first, e.g. to_arrow(); or pass a list, a table or a file",
            )
        return no_match_from_counters(self.plan, self._counting)

    @property
    def roles(self) -> dict[str, Any]:
        """The options that say what columns mean."""
        return {name: value for name, value in self._options.items() if name not in ("merge", "bind")}

    @overload
    def page(self, path: None = None, *, source: str = ..., title: str = ...) -> str: ...
    @overload
    def page(self, path: str | Path, *, source: str = ..., title: str = ...) -> None: ...
    def page(self, path: str | Path | None = None, *, source: str = "", title: str = "") -> str | None:
        """The explorer: one HTML page of where the matches lie, what they are made of, and what nearly matched.

        Parameters
        ----------
        path : str or Path, optional
            Where to; a file there is replaced. Default: the page is returned.
        source : str
            Name of the input, for people.
        title : str
            Heading; default: the number of matches.

        Returns
        -------
        str or None
            HTML that needs no network; None where it was written. The same for the same events.

        Raises
        ------
        UsageError
            ``ACEP-U150``: the events can be read only once.

        Complexity: a few passes over the events; the size of the page is bounded, and it says what it leaves out.
        """
        from acep_approx.pages.shell import write_page
        from acep_approx.results.explorer.explorable import PageLabels
        from acep_approx.results.explorer.explore import page_text

        text = page_text(self, PageLabels.of(source, title))
        if path is None:
            return text
        write_page(text, path)
        return None

    def page_sections(self) -> Iterator[str]:
        """What the page has besides; of a budget how it was spent."""
        return iter(())

    @property
    def asked_by(self) -> tuple[str, str]:
        """The method of a query that finds them, and its arguments behind the events, as code."""
        return "match", ""

    def __repr__(self) -> str:
        size = "" if self.source.rows is None else f" in {self.source.rows:,} events"
        return f"<Matches of {self.plan.query.text.strip()!r}{size}; nothing is computed yet>"

    def fresh(self, kind: OutputKind) -> Execution:
        """What runs the query once, of which nothing is remembered here."""
        return Execution(self.plan, output=kind, **self._options)

    @property
    def is_sorted(self) -> bool:
        """Whether the events are sorted first."""
        return self._sort

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import matches_view

        return matches_view(self)


def _joined(tables: Iterator[pa.Table]) -> pa.Table:
    parts = list(tables)
    filled = [part for part in parts if part.num_rows] or parts[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})


def add_counts(counts: dict[int, int], table: pa.Table) -> None:
    """Add numbers of matches.

    Parameters
    ----------
    counts : dict of int to int
        Matches by number of errors; gets what is added.
    table : pyarrow.Table
        As ``Matches.counts`` gives it.
    """
    errors, matches = table.column("errors").to_numpy(), table.column("matches").to_numpy()
    for err in counts:
        mine = matches[errors == err]
        high, low = int((mine >> 32).sum()), int((mine & 0xFFFFFFFF).sum())  # their sum may not fit 64 bits
        counts[err] += (high << 32) + low


def errors_of(points: pa.Table) -> dict[int, int]:
    """Number of match points by least number of errors."""
    counted = pc.value_counts(points.column("errors").combine_chunks())
    return {item["values"]: item["counts"] for item in counted.to_pylist()}
