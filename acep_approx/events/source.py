"""Everything events can come from, behind one face: a schema and batches; what paths stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.arrays import Ints
from acep_approx.errors import DataError, UsageError
from acep_approx.events.columns import laid_out, missing_column, readable, refuse_unreadable, why_unreadable
from acep_approx.events.date_and_time import DateAndTime, found_itself, said, unsaid
from acep_approx.events.kept_events import CountedRows, KeptEvents, KeptReader, Renumbered
from acep_approx.events.late import LateEvents
from acep_approx.events.live.kafka_address import is_address
from acep_approx.events.reading.arriving import ArrivingEvents, Bound, is_pipe, open_pipe, open_stdin
from acep_approx.events.reading.files import FileEvents, check_format, find_files, open_file, says_csv, would_be_read
from acep_approx.events.reading.layout import Layout, Understood
from acep_approx.events.reading.malformed import MalformedRows, Row
from acep_approx.events.reading.memory import DictEvents, TableEvents
from acep_approx.events.reading.python_objects import FlatEvents, Reader, RelationEvents, open_object
from acep_approx.events.roles import OPEN_TIMES_MARK, WRITTEN_MARK, Roles
from acep_approx.events.stores import reaching
from acep_approx.events.time import likelier_unit, likely_digits
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.usable_rows import TimeColumns, UsableRows
from acep_approx.events.writing.outfile import check_name, read_again, refuse_input, written_as
from history.places import place_of


def open_paths(
    paths: Sequence[str | Path],
    format: str | None,  # noqa: A002
    layout: Layout,
    malformed: MalformedRows,
    late: LateEvents,
) -> Reader:
    """Open files, folders, a pipe, or standard input.

    Raises
    ------
    DataError
        A file is not there, or its columns cannot be read.
    UsageError
        ``ACEP-U108``: what is read once is not alone; ``ACEP-U140``: a topic of Kafka; ``ACEP-U106``, ``ACEP-U114``:
        rows that are left out would overwrite an input; ``ACEP-U193``: they would be read with it.
    """
    if "-" in paths:
        if len(paths) > 1:
            raise UsageError(
                "standard input '-' cannot be combined with files",
                code="ACEP-U108",
                hint="name the files, or feed all events to standard input",
            )
        _refuse_inputs(malformed, late, [Path("/dev/stdin")])
        return open_stdin(format, malformed, layout)
    if any(map(is_address, paths)):
        raise UsageError(
            "a topic of Kafka has no end, and cannot be read as a whole",
            code="ACEP-U140",
            hint="run a query over it: acep run QUERY kafka://... (query.follow in Python); for all else write "
            "messages to a file first: kcat -C -b BROKER -t TOPIC -c 1000 -e > events.jsonl",
        )
    if any(map(is_pipe, paths)):
        if len(paths) > 1:
            raise UsageError(
                "a pipe cannot be combined with other inputs", code="ACEP-U108", hint="feed all events to one pipe"
            )
        return open_pipe(Path(paths[0]), format, malformed, layout)
    with reaching():
        files = find_files(paths, format, layout)
        named = [file.path for file in files]
        _refuse_inputs(malformed, late, named)
        for what, output in (("rejected rows", malformed.rejects), ("late events", late.file)):
            for folder in map(place_of, paths):
                if output and folder.is_dir() and would_be_read(folder, output, format, says_csv(layout)):
                    raise read_again(output, what, folder)
        return FileEvents([open_file(file, malformed, layout) for file in files], reusable=True, paths=named)


def _refuse_inputs(malformed: MalformedRows, late: LateEvents, inputs: Sequence[Path]) -> None:
    refuse_input(malformed.rejects, "rejected rows", inputs, "ACEP-U106")
    refuse_input(late.file, "late events", inputs, "ACEP-U114")


def refuse_same(rejects: Path | None, late: Path | None) -> None:
    """Refuse to write rejected rows and late events to one file (``ACEP-U114``)."""
    for file in filter(None, (rejects, late)):
        check_name(file)
    if rejects is None or late is None or written_as(rejects).isdisjoint(written_as(late)):
        return
    raise UsageError(
        f"rejected rows and late events cannot both go to {rejects}", code="ACEP-U114", hint="name another file"
    )


def layout_of(given: dict[str, Any], time: str | None = None) -> Layout:
    """What is said of how text files are written, by the arguments of ``open_source``."""
    try:
        return Layout(**given, time=time)
    except TypeError as error:
        wrong = next(name for name in given if name not in Layout.__dataclass_fields__)
        raise TypeError(f"open_source() got an unexpected keyword argument {wrong!r}") from error


def refuse_said_again(layout: Layout, understood: Understood | None, **others: Any) -> None:
    """Refuse to say how an open source is read (``ACEP-U147``), but for the format of times, which is for all text."""
    written = layout.time_format
    times = understood.times.values() if understood else ()
    is_other = written is not None and not all(one.is_like(written) for one in times)
    said = [name for name in layout.said if name != "time_format" or is_other]
    said += [name for name, value in others.items() if (value != "refuse" if name.startswith("on_") else value)]
    if said:
        raise UsageError(
            f"{', '.join(said)}: how these events are read was said when they were opened",
            code="ACEP-U147",
            hint="give it to open_source(), not here",
        )


BATCH_ROWS = 131_072
LOOKED_AT = 1_000
"""Events whose dates and times of day are looked at, where names say that they are such."""


@dataclass(frozen=True)
class Times:
    """What is said of the times: the column, or ``date+time``, and how they are written."""

    said: str | None = None
    format: TimeFormat | None = None


NO_TIMES = Times()


class Source:
    """Events to read, wherever they come from; made by :func:`open_source`.

    Parameters
    ----------
    reader : Reader
        Where the events come from.
    malformed : MalformedRows, optional
        What happens to rows that cannot be read.
    late : LateEvents, optional
        What happens to events that come late; ``read_events`` finds them.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns. Encodings are not shown: a string column is ``string``, whatever :meth:`batches`
        delivers. Without columns there are no events (an empty file of JSON lines, an empty list).
    rows : int or None
        Number of events if it is known without reading them.
    reusable : bool
        Whether :meth:`batches` can be called again.
    understood : Understood or None
        How the file was read (of several the first one), where events come from files: delimiter, formats of times, and
        others. Of standard input: as far as it is known before the columns are asked for.
    notes : list of str
        The same of all files, in words, as far as a user may not expect it; with names where files differ.
    malformed : MalformedRows
        Rows skipped so far in this pass.
    late : LateEvents
        Events left out so far in this pass.
    kept : KeptEvents or None
        What has passed of events that can be read only once, where it is kept; see ``keep``.
    """

    def __init__(
        self,
        reader: Reader,
        malformed: MalformedRows | None = None,
        late: LateEvents | None = None,
        times: Times = NO_TIMES,
    ) -> None:
        self._reader = reader
        self._times = times
        self._joined: tuple[pa.Schema, DateAndTime | None] | None = None
        self.rows = reader.rows
        self.reusable = reader.reusable
        self.malformed = MalformedRows() if malformed is None else malformed
        self.late = LateEvents() if late is None else late
        self.kept: KeptEvents | None = None
        self._used = False
        self._roles: Roles | None = None
        self._is_stamped = False
        self._given: tuple[int, int, Ints | None] = (0, 0, None)  # of the batch given last: first row, rows, places
        self._first_row = 0
        self._span: tuple[int, int, str | None] | None = None

    def counted(self, ticks: Ints, unit: str | None) -> None:
        """Take in the ticks of some events whose times are numbers of a unit."""
        self._widen_span(int(ticks[0]), int(ticks[-1]), unit)
        if self.likelier_unit or self.likely_digits:  # a wider span has none where a narrower one has none
            self._widen_span(int(ticks.min()), int(ticks.max()), unit)

    def _widen_span(self, one: int, other: int, unit: str | None) -> None:
        known = (one, other) if self._span is None else self._span[:2]
        self._span = min(*known, one, other), max(*known, one, other), unit

    @property
    def likelier_unit(self) -> str | None:
        """The unit that the times read are likely in, where the one they were taken in cannot be right."""
        return None if self._span is None else likelier_unit(*self._span)

    @property
    def likely_digits(self) -> str | None:
        """The format in which the numbers that were taken for times are likely times written as digits."""
        return None if self._span is None else likely_digits(*self._span)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._with_time(self._reader.schema)

    @property
    def readable(self) -> pa.Schema:
        """The columns without those whose values make none: these can be named, but not read."""
        return readable(self.schema)

    @property
    def _is_written(self) -> bool:
        """Whether the events are read from text."""
        return self.understood is not None and self.understood.format != "parquet"

    def _with_time(self, schema: pa.Schema) -> pa.Schema:
        joined = self._dated(schema)
        if joined is not None:
            return joined.schema(schema).with_metadata({WRITTEN_MARK: ""})
        marks = {WRITTEN_MARK: ""} if self._is_written else {}
        unsure = self.understood.open_times if self.understood else {}
        marks |= {OPEN_TIMES_MARK: json.dumps(dict(unsure))} if unsure else {}
        return schema.with_metadata(marks) if marks else schema

    def _dated(self, schema: pa.Schema) -> DateAndTime | None:
        if self._joined is None or not self._joined[0].equals(schema):
            found = said(schema, self._times.said, self._times.format)
            if found is None and self._times.said is None:
                found = found_itself(schema, self._first, self._times.format)
            self._joined = schema, found
        return self._joined[1]

    def _first(self, names: tuple[str, str]) -> pa.RecordBatch | None:
        if not self.reusable:
            return None
        with self.looked_at():
            return next(self._reader.read(names, LOOKED_AT), None)

    @property
    def understood(self) -> Understood | None:
        """How the first file was read."""
        return getattr(self._reader, "understood", None)

    @property
    def paths(self) -> Sequence[Path]:
        """The files that are read; none where events come from something else."""
        return getattr(self._reader, "paths", ())

    @property
    def notes(self) -> list[str]:
        """How files were read, in words, as far as a user may not expect it."""
        notes = list(getattr(self._reader, "notes", []))
        columns = ((field.name, why_unreadable(field)) for field in self._reader.schema)
        notes += [f"{name} cannot be read: {why}" for name, why in columns if why]
        if self._joined is None:
            return notes
        schema, joined = self._joined
        if joined is not None:
            return [*notes, f"time = {joined.date} + {joined.clock}"]
        written = self.understood.times.items() if self.understood else ()
        days = [name for name, how in written if not re.search("%[HIcX]", how.text or "%H")]
        note = unsaid(schema, days) if self._times.said is None else ""
        return [*notes, note] if note else notes

    def settle(self, bind: Callable[[pa.Schema], Bound]) -> Bound:
        """What ``bind`` makes of the columns.

        Parameters
        ----------
        bind : callable
            Raises ``DataError`` or ``QueryError`` where it lacks a column, or one is of the wrong type. Text that
            arrives on standard input is then read on, up to 4 MiB: others may come.

        Raises
        ------
        DataError, QueryError
            As ``bind``, with all columns that were looked for.
        """
        if isinstance(self._reader, ArrivingEvents):
            return self._reader.settle(lambda schema: bind(self._with_time(schema)))
        return bind(self.schema)

    @property
    def is_fetched(self) -> bool:
        """Whether events must be fetched before their library reads what comes of them."""
        return bool(getattr(self._reader, "is_fetched", False))

    def fetch(self, columns: Sequence[str], roles: Roles) -> None:
        """Read some columns, and the times, of a DuckDB relation to the end, and keep them in memory or in a file."""
        reader = self._reader
        if isinstance(reader, RelationEvents | FlatEvents):
            reader.fetch(list(self._wanted([*columns, *self.usable_rows(roles.read_in(columns), 0).columns])))

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Let rows that are left out be written to no file meanwhile, and what is known of them stay as it is.

        Who only looks may read the first part alone.
        """
        malformed, late = self.malformed, self.late
        known = malformed.count, malformed.reasons, late.known
        files = malformed.rejects, late.file
        malformed.rejects = late.file = None
        try:
            yield
        finally:
            malformed.rejects, late.file = files
            malformed.count, malformed.reasons, late.known = known

    def expect(self, names: Iterable[str]) -> None:
        """Let dicts lack these columns, which their stream has: they are null there."""
        if isinstance(self._reader, DictEvents):
            joined = self._dated(self._reader.schema)
            self._reader.expect(names if joined is None else [name for name in names if name != joined.name])

    def beside(self) -> Source:
        """The same events for another reader: with counts of its own, and no files for rows that are left out."""
        other = Source(self._reader, MalformedRows(self.malformed.policy), LateEvents(self.late.policy), self._times)
        other.use(self._roles, is_stamped=self._is_stamped)
        return other

    def keep(self) -> None:
        """Let events that can be read only once be kept as they pass, for ``again``: all columns are read then."""
        if not self.reusable and self.kept is None:
            self.kept = KeptEvents()

    def again(self, before: int = 0) -> Source:
        """The events once more: this source, where it can be read several times, else one of what was kept.

        Parameters
        ----------
        before : int
            Events of the stream that came before this source: its rows are numbered behind them.

        Raises
        ------
        UsageError
            ``ACEP-U103``: they have been read, and nothing was kept.
        """
        if self.reusable:
            return self
        if self.kept is None:
            raise self._gone()
        first = before + self.kept.seen - self.kept.rows
        late = Renumbered(lambda rows: rows + first, self.late.policy) if first else LateEvents(self.late.policy)
        other = Source(KeptReader(self.kept, self._reader.schema), CountedRows(self.malformed), late, self._times)
        other.kept, other._joined = self.kept, self._joined
        return other

    def instead(self, rows: Callable[[Source], pa.Table], late: LateEvents) -> Source:
        """Some of the events as a source that can be read again.

        Parameters
        ----------
        rows : callable
            Gives a table of some of its rows, with the columns of the source that it is given.
        late : LateEvents
            Knows their numbers.
        """
        plain = Source(self._reader, CountedRows(self.malformed))
        plain._joined, plain._roles = (self._reader.schema, None), self._roles
        other = Source(TableEvents(rows(plain)), self.malformed, late, self._times)
        other.kept, other._joined = self.kept, self._joined
        return other

    @property
    def is_used_up(self) -> bool:
        """Whether the events have been read, and cannot be read again."""
        return self._used and not self.reusable and self.kept is None

    def use(self, roles: Roles | None, *, is_stamped: bool = False) -> None:
        """Let rows without a time, in the column of these roles, count as malformed from now on.

        ``is_stamped``: but those where it is null, which get one later.
        """
        self._roles, self._is_stamped = roles, is_stamped

    def count_in(self, malformed: MalformedRows) -> None:
        """Let what happens to rows that cannot be used be said elsewhere."""
        self.malformed = malformed
        if isinstance(self._reader, DictEvents):
            self._reader.malformed = malformed

    def check(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Refuse the batch given last if a row in it has no time, by the column that is used.

        Raises
        ------
        DataError
            As ``UsableRows.taken``.
        """
        if self._roles is not None:
            self._sorting(self._roles, first_row).taken(batch)

    def usable_rows(self, roles: Roles, first_row: int = 0) -> UsableRows:
        """What tells the times of these events, and sorts out rows without; for ``batches``.

        Parameters
        ----------
        roles : Roles
            From now on ``batches`` sorts out the same rows, where these are left out.
        first_row : int
            The number of the first row.
        """
        self.use(roles)
        self._first_row = first_row
        return self._sorting(roles, first_row)

    def _sorting(self, roles: Roles, first_row: int = 0) -> UsableRows:
        columns = TimeColumns(roles, self.schema, self._dated(self._reader.schema), self._is_stamped)
        return UsableRows(columns, self.malformed, self.where, first_row)

    def where(self, row: int) -> Row | None:
        """Where a row of the batch that was read last stands; None: that is not known."""
        found: Row | None = getattr(self._reader, "where", lambda _: None)(row)
        return found

    def named(self, row: int, first_row: int | None = None) -> str:
        """How messages name an event of the batch given last, by its number: where it stands in a topic, else its row.

        ``first_row`` is the number of the first one of that batch. Default: as ``usable_rows`` was told.
        """
        first, rows, places = self._given
        place = row - (self._first_row + first if first_row is None else first_row)
        found = self.where(place if places is None else int(places[place])) if 0 <= place < rows else None
        return found.place if found is not None and found.is_message else f"row {row}"

    def locate(self, error: DataError, first_row: int | None = None) -> None:
        """Let an error about a row of the batch given last say where that stands in a topic; see ``named``."""
        if error.row is not None:
            named, row = self.named(error.row, first_row), rf"^(from )?row {error.row}\b"
            error.message = re.sub(row, lambda found: (found[1] or "") + named, error.message)
            error.args = (error.message,)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Let errors about rows of the batch given last say where these stand in a topic."""
        try:
            yield
        except DataError as error:
            if error.row is not None and self.late.renumbers:
                before, error.row = error.row, int(self.late.original(np.array([error.row]))[0])
                error.message = re.sub(rf"^(from )?row {before}\b", rf"\1row {error.row}", error.message)
            self.locate(error)
            raise

    def batches(
        self,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        rows: UsableRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The events in the order of the input, never all at once.

        Parameters
        ----------
        columns : sequence of str, optional
            Only these are read from the file, and only their values are checked. Default: all.
        batch_rows : int
            At most so many events per batch. Default 131,072.
        rows : UsableRows, optional
            Tells the times of each batch, when it is given. Default: where rows without a time are left out, they are
            sorted out once it is known which column that is; see ``use``.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            Columns in the order asked for; strings may be plain or dictionary-encoded.

        Raises
        ------
        DataError
            ``ACEP-D002`` no such column (at once); while reading, whatever is wrong with the input.
        UsageError
            ``ACEP-U103``: this source can be read only once, and was.
        """
        known = self.schema.names
        names = list(known if columns is None else dict.fromkeys(columns))
        there = set(known)
        for name in names:
            if name not in there:
                raise missing_column(name, known)
        refuse_unreadable(self._reader.schema, [name for name in names if name in self._reader.schema.names])
        if self._used and not self.reusable:
            raise self._gone()
        self._used = True
        if rows is None and self._roles is not None and self.malformed.policy == "skip":
            rows = self._sorting(self._roles)
        return self._read(names, batch_rows, rows)

    @staticmethod
    def _gone() -> UsageError:
        return UsageError(
            "these events can be read only once, and they have been read",
            code="ACEP-U103",
            hint="open them again; a list, a table or a file can be read several times",
        )

    def _read(self, names: list[str], batch_rows: int, rows: UsableRows | None) -> Iterator[pa.RecordBatch]:
        self._span = None
        self.malformed.restart()
        self.late.restart(self.schema)
        try:
            yield from self._usable(names, batch_rows, rows)
            if rows is not None:
                rows.finish(is_whole=not self.malformed.goes_on)
        finally:
            self.malformed.close()
            self.late.close()

    def _wanted(self, names: Iterable[str]) -> dict[str, None]:
        """The columns of the input that some columns of the events are made of."""
        joined, wanted = self._dated(self._reader.schema), dict.fromkeys(names)
        if joined is not None and joined.name in wanted:
            wanted |= dict.fromkeys((joined.date, joined.clock))
            del wanted[joined.name]
        return wanted

    def _usable(self, names: list[str], batch_rows: int, rows: UsableRows | None) -> Iterator[pa.RecordBatch]:
        joined = self._dated(self._reader.schema)
        wanted = self._wanted(names if rows is None else [*names, *rows.columns])
        keeps = None if self.reusable else self.kept
        if keeps is not None:
            wanted |= dict.fromkeys(readable(self._reader.schema).names)
        row = 0
        for read in map(laid_out, self._reader.read(list(wanted), batch_rows)):
            batch = read if rows is None or not read.num_rows else rows.taken(read)
            if read.num_rows and not batch.num_rows:
                continue
            self._given = row, batch.num_rows, None if rows is None else rows.places
            if keeps is not None:
                keeps.keep(batch.select(readable(self._reader.schema).names))
            if joined is not None and joined.name in names and joined.name not in batch.schema.names:
                batch = batch.append_column(joined.name, joined.times(batch, row))
            row += batch.num_rows
            yield batch if batch.schema.names == names else batch.select(names)
        if keeps is not None:
            keeps.is_whole = True


@checked
def open_source(
    events: Any,
    *,
    format: str | None = None,  # noqa: A002  (the option's name)
    on_malformed: str = "refuse",
    rejects: str | Path | None = None,
    on_late: str = "refuse",
    late: str | Path | None = None,
    time: str | None = None,
    **layout: Any,
) -> Source:
    """Open events of any kind.

    Parameters
    ----------
    events : table, frame, dicts, paths or Source
        A ``pyarrow.Table``, ``RecordBatch``, ``RecordBatchReader`` or ``Dataset``, or record batches one after the
        other; a frame of pandas or polars, eager or lazy; a DuckDB relation; anything else that hands out Arrow data
        (``__arrow_c_stream__``, ``__arrow_c_array__``); an array of numpy with names of columns; an iterable of dicts;
        a path (``str`` or ``Path``) or a list of them: Parquet, CSV, JSON lines, the last two also compressed, or a
        folder of such files; ``"-"`` for standard input. A ``Source`` is returned as it is.
    format : str, optional
        Format of the files: ``parquet``, ``csv``, ``jsonl``. Default: by their names, or else by their first lines.
    on_malformed : str
        ``"refuse"`` (default): a row of a text file that cannot be read is an error, and so is a row of any events
        without a time that can be used. ``"skip"``: it is counted in ``Source.malformed`` and left out.
    rejects : str or Path, optional
        With ``"skip"``: file that gets the rows left out, as JSON lines.
    on_late : str
        ``"refuse"`` (default): where events are read in order of time, one that comes late is an error. ``"skip"``: it
        is counted in ``Source.late`` and left out.
    late : str or Path, optional
        With ``"skip"``: file that gets the events left out; see ``LateEvents``. All columns are read then, not only
        those asked for.
    time : str, optional
        Column that will be the time. Only ``date+time`` matters here, where no column is called so: two columns that
        make one, which the source has, too. Default: such columns are found by their names and values.
    **layout
        How text files are written, where it is not found out: ``delimiter``, ``encoding``, ``columns``, ``decimal``,
        ``line_format``, ``time_format``; see ``Layout``. Of events that are no text files ``time_format`` is to be
        given where their columns get their roles, as to ``Query.match``.

    Returns
    -------
    Source
        Opened as far as its columns and their types.

    Raises
    ------
    DataError
        ``ACEP-D010`` to ``ACEP-D023``, ``ACEP-D066``, ``ACEP-D067``: see ``docs/reference/data.md``.
    UsageError
        ``ACEP-U018``, ``ACEP-U104`` to ``ACEP-U108``, ``ACEP-U113``, ``ACEP-U114``, ``ACEP-U146``, ``ACEP-U147``: see
        ``docs/reference/data.md``.

    Examples
    --------
    >>> source = open_source([{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}])
    >>> source.schema.names, source.rows
    (['ts', 'type'], 2)
    >>> [batch.num_rows for batch in source.batches(["ts"])]
    [2]
    """
    check_format(format)
    asked = layout_of(layout, time)
    if asked.line_format is not None and format is None and not isinstance(events, Source):
        format = "lines"  # noqa: A001
    if isinstance(events, Source):
        files = {"format": format, "rejects": rejects, "late": late}
        refuse_said_again(asked, events.understood, **files, on_malformed=on_malformed, on_late=on_late)
        return events
    times = Times(time, asked.time_format)
    malformed, left_out = MalformedRows(on_malformed, rejects), LateEvents(on_late, late)
    refuse_same(malformed.rejects, left_out.file)
    if isinstance(events, str | Path):
        events = [events]
    if isinstance(events, list | tuple) and events and all(isinstance(item, str | Path) for item in events):
        return Source(open_paths(events, format, asked, malformed, left_out), malformed, left_out, times)
    if said := [name for name in asked.said if name != "time_format"]:  # which is for all that is text
        raise UsageError(
            f"{said[0]} says how files are written, and the events are an object",
            code="ACEP-U121",
            hint="leave it out",
        )
    return Source(open_object(events, malformed), malformed, left_out, times)
