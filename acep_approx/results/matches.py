"""The matches of a query in some events: found when asked for, as columns, one by one, only counted, or as a stream.

Each call runs the query over the events. Other libraries get a stream of Arrow, which polars, DuckDB and pyarrow read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.engines.progress import RunProgress
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.columns import to_list, to_numpy
from acep_approx.events.reading.widening import stacked
from acep_approx.events.source import Source
from acep_approx.events.writing.tables import gathered_table, to_pandas
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.bind import Wide, columns_of
from acep_approx.matching.outputs.kinds import BARE, COMPRESSED, COUNTS, MATCHES, PARTIAL, POINTS, OutputKind
from acep_approx.matching.outputs.tables import warn_at_least
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered, row_columns
from acep_approx.matching.tracing.compressed import Compressed, RunShared, compressed_plan
from acep_approx.matching.unseen import warn_of_unseen_types
from acep_approx.results.beginning import Lookout, warn_of_many
from acep_approx.results.bundles import bundles, check_bundles
from acep_approx.results.match import Match, by_number
from acep_approx.results.matched_events import Listed, listed, numbered, of_match, showing_events
from acep_approx.results.question import Question
from acep_approx.run.run import parts_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from acep_approx.why.result import NoMatch


class Matches:
    """All matches of one query in one input; nothing is computed before it is asked for.

    Parameters
    ----------
    question : Question
    source : Source

    Notes
    -----
    Each method reads the input anew. Where it can be read only once (a generator, a reader, standard input), the second
    call raises ``UsageError``. The first that comes to the end of the input warns (``UnseenTypeWarning``) of types that
    the query names and no event had.
    """

    unclosed = 0
    """How many results of the last run wait for their window to close: with ``ended=False`` they are not given."""
    warns_of_many = True
    """Whether it is still to be said that there are more matches than anybody reads, if so."""

    def __init__(self, question: Question, source: Source) -> None:
        source.late.check(sort=question.sort)
        self.question, self.plan = question, question.plan
        self.source = source
        self.progress = RunProgress()
        self.has_warned = False
        self._counting: Pipeline | None = None  # that of the last run, where its events are gone
        self._found = 0  # results of that

    @property
    def limit(self) -> int | None:
        """How many matches are listed at most."""
        return self.question.limit

    def asking(self, **changes: Any) -> Self:
        """The same, asked for otherwise: ``changes`` of the question. It leaves no trace in these."""
        other = copy(self)
        other.question = replace(self.question, **changes)
        other.plan = other.question.plan
        return other

    def _run(self, kind: OutputKind, question: Question | None = None) -> Iterator[pa.Table]:
        """Run a fresh matcher over the input; the first table is empty and shows the columns."""
        yield from self.found_by(self.begun(kind, question))

    def begun(self, kind: OutputKind, question: Question | None = None) -> Execution:
        """What runs the query once; without columns there are no events, and it has no pipeline."""

        def bound(schema: pa.Schema) -> Execution:
            matcher = self._matcher((question or self.question).of_columns(schema), kind)
            if len(schema):
                matcher.bind(schema)
            return matcher

        return self.source.settle(bound)

    def _matcher(self, question: Question, kind: OutputKind) -> Execution:
        return question.execution(kind)

    def fetched(self) -> Self:
        """Fetch what matches take of a DuckDB relation: while DuckDB reads the matches, the relation cannot be read."""
        if self.source.is_fetched:
            matcher = self.begun(MATCHES)
            assert matcher.pipeline is not None, "a relation has columns"
            self.source.fetch(matcher.pipeline.columns, matcher.pipeline.roles)
        return self

    def found_by(self, matcher: Execution) -> Iterator[pa.Table]:
        """The results of what has begun; of what was found it is remembered here."""
        pipeline, late = matcher.pipeline, self.source.late
        if pipeline is None:
            return
        self.progress = matcher.progress
        if not self.source.reusable:
            self._counting, pipeline.preparer.counts_classes = pipeline, True
        columns = row_columns(matcher.plan, matcher.output, matcher.bind_by)
        self._found = 0
        for table in self._tables_of(matcher, pipeline):
            self._found += 0 if matcher.output.is_partial else table.num_rows
            # of compressed output the links must change their numbers with the hits
            is_changed = late.renumbers and table.num_rows and not matcher.output.is_linked
            yield renumbered(table, columns, late.original) if is_changed else table

    def _tables_of(self, matcher: Execution, pipeline: Pipeline) -> Iterator[pa.Table]:
        """The results, with rows numbered as if there were no late events."""
        yield pipeline.nothing()
        yield from parts_of(matcher, self.source, sort=self.question.sort, on_batch=self.question.on_progress)
        pipeline.stream.ends = self.question.ended
        yield from pipeline.finish()
        self.unclosed = pipeline.stream.unclosed
        if matcher.progress.events and not self.has_warned:
            self.has_warned = True
            warn_of_unseen_types(self.plan.automaton, matcher.types_seen)

    @property
    def work(self) -> RunProgress:
        """What the last run over the events saw and did."""
        return self.progress

    def tables(self) -> Iterator[pa.Table]:
        """The matches as a stream of tables, each of bounded size; see ``to_arrow`` for the columns."""
        return self._listed(self.question)

    def _listed(self, question: Question) -> Iterator[pa.Table]:
        left = question.limit
        is_first = left is None and self.warns_of_many
        if is_first:
            self.warns_of_many = False
            warn_of_many(self)
        matcher = self.begun(MATCHES, question)
        if is_first and not self.source.reusable:
            Lookout.set(matcher)
        for table in self.found_by(matcher):
            if left is None:
                yield table
                continue
            yield table.slice(0, min(left, table.num_rows))
            left -= table.num_rows
            if left < 0:
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
        return gathered_table(self.tables())

    @checked
    def table(self, *, bind: str | Sequence[str] | None = None) -> pa.Table:
        """All matches as one table for who has not the events at hand: with values of the events, not row numbers.

        Parameters
        ----------
        bind : str or sequence of str, optional
            Columns of the events to show of each variable. Default: those that the query is asked for with, or else the
            time, and what the query names of the variable beside the keys; of an event of any type also its type.

        Returns
        -------
        pyarrow.Table
            As ``to_arrow`` up to ``missing``; then per variable a column for each of these, named ``variable.column``:
            null where no event is bound, a list where the variable repeats. The time is of the kind of ``start`` and
            ``end``. With RETURN, in CEL, and of a bare regular expression it is ``to_arrow``.

        Examples
        --------
        >>> from acep_approx import compile_query
        >>> query = compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10")
        >>> query.match([{"ts": 1, "type": "A", "x": 3}, {"ts": 5, "type": "B", "x": 4}]).table().to_pylist()
        [{'errors': 0, 'start': 1, 'end': 5, 'missing': [], 'a.ts': 1, 'a.x': 3, 'b.ts': 5, 'b.x': 4}]

        Complexity: as ``to_arrow``, with memory for these columns of the events in the window.
        """
        columns = columns_of(self.question.bind if bind is None else bind)
        return gathered_table(self.asking(bind=Wide(columns)).tables())

    def count_by_errors(self) -> dict[int, int]:
        """Number of matches by number of errors, counted without listing them; ``limit`` plays no role.

        The count of one match point stops growing at 2**63 - 1; sums are exact up to there. A number from there on
        means at least so many, and ``CappedCountWarning`` says so.
        """
        counts = dict.fromkeys(range(self.plan.automaton.errors + 1), 0)
        for table in self._run(COUNTS):
            add_counts(counts, table)
        warn_at_least(counts.values())
        return counts

    def counts(self) -> pa.Table:
        """Per match point and number of errors how many matches it completes.

        Returns
        -------
        pyarrow.Table
            Equivalence attributes, ``errors``, ``end``, ``row``, ``matches``, and ``at_least``: whether there may be
            more than that, as counts stop growing at 2**63 - 1.
        """
        return gathered_table(self._run(COUNTS))

    def points(self) -> pa.Table:
        """The match points: events that complete a match.

        Returns
        -------
        pyarrow.Table
            Equivalence attributes, ``errors`` (the least), ``start`` (the latest, at that number of errors; in a count
            window ``span`` in events instead), ``end``, ``row``.

        Complexity: O(1) per event for a fixed query, however many matches there are.
        """
        return gathered_table(self._run(POINTS))

    def point_tables(self) -> Iterator[pa.Table]:
        """``points`` as a stream of tables."""
        return self._run(POINTS)

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
        return gathered_table(self._run(PARTIAL))

    def partial_tables(self) -> Iterator[pa.Table]:
        """``partial`` as a stream of tables."""
        return self._run(PARTIAL)

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
        matcher = self.begun(COMPRESSED, replace(self.question, plan=compressed_plan(self.plan)))
        if matcher.pipeline is None:
            return Compressed(pa.table({}), pa.table({}), None)
        shared = matcher.pipeline.results
        assert isinstance(shared, RunShared), "this was asked for"
        found = shared.compressed(gathered_table(self.found_by(matcher)))
        return found.renumbered(self.source.late.original) if self.source.late.renumbers else found

    def bundles(self) -> pa.Table:
        """The match bundles (Li and Ge 2016, Definition 3): first, last, points, errors; see ``results.bundles``."""
        check_bundles(self.plan, self.question.key_idle)
        points = gathered_table(self._run(BARE))
        if not points.num_columns:
            return points  # no columns, no events
        if self.question.bind is not None:  # bundles are chained by rows, whatever stands for them
            last = points.num_columns - 1
            points = points.remove_column(last).append_column("row", pa.array(range(points.num_rows), pa.int64()))
        pipeline = self.question.execution(BARE).bind(self.source.schema)
        return bundles(points, pipeline.preparer.shown_columns, pipeline.window)

    def to_pandas(self) -> pd.DataFrame:
        """``to_arrow`` as a pandas DataFrame."""
        return to_pandas(self.to_arrow())

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
        return gathered_table(self.event_tables())

    def event_tables(self) -> Iterator[pa.Table]:
        """``events`` as a stream of tables."""
        return numbered(self._with_events(self.limit))

    def _events_of(self, match: Match) -> pa.Table:
        return of_match(self._with_events(match.number + 1), match)

    def _with_events(self, limit: int | None) -> Listed:
        """Tables of so many matches with their events."""
        plan = showing_events(self.plan)
        question = replace(self.question, plan=plan, limit=limit, bind=None, shows_rows=True)
        yield from listed(self._listed(question), plan, self.source.late)

    @checked
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
        return self.asking(limit=number if self.limit is None else min(number, self.limit))

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
            columns = dict(zip(keys, table.column_names, strict=False))  # of each key: they come first
            for row in _in_python(table):
                key = {name: row[column] for name, column in columns.items()}
                values = {n: row[n] for n in names if n not in columns.values()}
                missing = tuple(row.get("missing") or ())
                found = Match(row.get("errors", 0), row["start"], row["end"], key, missing, values, has_events, number)
                object.__setattr__(found, "_events", partial(self._events_of, found))
                number += 1
                yield from repeat(found, row["times"] if self.plan.cel is not None else 1)

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

    @checked
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
            ``ACEP-U126``: not a number of events; ``ACEP-U131``: the events can be read only once, and nothing has been
            looked for in them yet.

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
        if most is not None and most < 1:
            raise UsageError(f"most is {most}", code="ACEP-U126", hint="look at one event at least; None looks at all")
        from acep_approx.why.no_match import explain_no_match
        from acep_approx.why.tally import no_match_from_counters

        if self.source.reusable:
            with self.source.looked_at():
                return explain_no_match(self.plan, self.source, self.question.roles, sort=self.question.sort, most=most)
        if self._counting is None:
            raise UsageError(
                "these events can be read only once, and no match has been looked for in them",
                code="ACEP-U131",
                hint="look for matches first, e.g. to_arrow(); or pass a list, a table or a file",
            )
        return no_match_from_counters(self.plan, self._counting, self._found)

    @overload
    def page(self, path: None = None, *, source: str = ..., title: str = ...) -> str: ...
    @overload
    def page(self, path: str | Path, *, source: str = ..., title: str = ...) -> None: ...
    @checked
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
            ``ACEP-U013``: the file is one of those that are read; ``ACEP-U150``: the events can be read only once, and
            have been.

        Notes
        -----
        Events that can be read only once are read and kept, compressed, up to 128 MiB; of more the latest ones. Then
        the other methods see the kept ones, too.

        Complexity: a few passes over the events; the size of the page is bounded, and it says what it leaves out.
        """
        from acep_approx.events.writing.outfile import refuse_input
        from acep_approx.pages.shell import write_page
        from acep_approx.results.explorer.explorable import PageLabels, reread
        from acep_approx.results.explorer.explore import page_text

        refuse_input(None if path is None else Path(path), "the page", self.source.paths)
        self.source = reread(self.source)
        text = page_text(self, PageLabels.of(source, title))
        if path is None:
            return text
        write_page(text, path)
        return None

    @property
    def exact(self) -> Matches:
        """The same matches without a budget: themselves, where there is none."""
        return self

    def page_sections(self) -> Iterator[str]:
        """What the page has besides; of a budget how it was spent."""
        return iter(())

    @property
    def asked_by(self) -> tuple[str, str]:
        """The method of a query that finds them, and its arguments behind the events, as code."""
        return "match", ""

    def __repr__(self) -> str:
        size = "" if self.source.rows is None else f" in {self.source.rows:,} events"
        some = "Matches" if self.limit is None else f"The first {self.limit:,} matches"
        return f"<{some} of {self.plan.query.text.strip()!r}{size}; nothing is computed yet>"

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import matches_view

        return matches_view(self)


def add_counts(counts: dict[int, int], table: pa.Table) -> None:
    """Add numbers of matches.

    Parameters
    ----------
    counts : dict of int to int
        Matches by number of errors; gets what is added.
    table : pyarrow.Table
        As ``Matches.counts`` gives it.
    """
    errors, matches = (to_numpy(table.column(name).combine_chunks()) for name in ("errors", "matches"))
    for err in counts:
        mine = matches[errors == err]
        high, low = int((mine >> 32).sum()), int((mine & 0xFFFFFFFF).sum())  # their sum may not fit 64 bits
        counts[err] += (high << 32) + low


def _in_python(table: pa.Table) -> list[dict[str, Any]]:
    try:
        columns = [to_list(column) for column in table.columns]
    except (OverflowError, ValueError) as error:
        raise DataError(
            f"matches hold a value that Python cannot hold: {error}",
            code="ACEP-D166",
            hint="take them as a table: matches.to_arrow()",
        ) from error
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def reader_of(tables: Iterator[pa.Table]) -> pa.RecordBatchReader:
    """A stream of tables as a reader of record batches; they are made as they are read.

    Where the type of a column is not known before the first event comes, they are all made at once.

    Parameters
    ----------
    tables : iterator of pyarrow.Table
        The first one, which may be empty, shows the columns.
    """
    first = next(tables, pa.table({}))
    if any(pa.types.is_null(field.type) for field in first.schema):
        found = stacked([first, *tables])
        return found.to_reader()
    return pa.RecordBatchReader.from_batches(first.schema, _batches(first.schema, chain([first], tables)))


def _batches(schema: pa.Schema, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Tables in the types that were told to who reads them."""
    for table in tables:
        try:
            yield from (table if table.schema.equals(schema) else table.cast(schema)).to_batches()
        except pa.ArrowInvalid as error:
            raise DataError(
                f"a column got another type while the stream ran: {error}",
                code="ACEP-D068",
                hint="take all results at once: to_arrow()",
            ) from error


_KNOWN = frozenset(("errors", "start", "end", "missing", "times"))


def to_polars(table: pa.Table) -> pl.DataFrame:
    """A table as a polars frame.

    Raises
    ------
    UsageError
        ``ACEP-U149``: polars is not installed.
    DataError
        ``ACEP-D157``: polars has no such type.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise UsageError("to_polars() needs polars", code="ACEP-U149", hint="pip install polars") from error
    try:
        frame: Any = pl.from_arrow(table)
    except pl.exceptions.ComputeError as error:
        columns = ", ".join(f"{field.name!r} {field.type}" for field in table.schema if field.name not in _KNOWN)
        raise DataError(
            f"polars does not take all of these columns: {columns}: {error}",
            code="ACEP-D157",
            hint="take them with to_arrow() or to_pandas(), or leave out of the query what polars does not know",
        ) from error
    made: pl.DataFrame = frame
    return made
