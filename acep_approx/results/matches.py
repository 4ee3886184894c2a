"""The matches of a query in some events: found when asked for, as columns, one by one, or only counted."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from itertools import repeat
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.columns import to_list
from acep_approx.events.writing.tables import to_pandas
from acep_approx.results.export import reader_of, to_polars
from acep_approx.results.match import Match, by_number
from acep_approx.results.match_tables import MatchTables, joined
from acep_approx.results.matched_events import ROW, Listed, listed, numbered, of_match, showing_events

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from acep_approx.why.result import NoMatch


class Matches(MatchTables):
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
        return joined(self.event_tables())

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
            for row in _in_python(table):
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
                return explain_no_match(self.plan, self.source, self.roles, sort=self._sort, most=most)
        if self._counting is None:
            raise UsageError(
                "these events can be read only once, and no match has been looked for in them",
                code="ACEP-U131",
                hint="look for matches first, e.g. to_arrow(); or pass a list, a table or a file",
            )
        return no_match_from_counters(self.plan, self._counting)

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


def _in_python(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as dicts."""
    try:
        columns = [to_list(column) for column in table.columns]
    except (OverflowError, ValueError) as error:
        raise DataError(
            f"matches hold a value that Python cannot hold: {error}",
            code="ACEP-D166",
            hint="take them as a table: matches.to_arrow()",
        ) from error
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
