"""Events that come late: refused at once, or left out, counted and written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.errors import UsageError
from acep_approx.events.columns import to_arrow
from acep_approx.events.reading.files import DELIMITERS, SUFFIXES
from acep_approx.events.writing.outfile import GrowingFile, OutFile
from acep_approx.events.writing.tables import ParquetRows, csv_header, csv_lines, json_lines

POLICIES = ("refuse", "skip")
SHOWN = 5
"""Late events of which is kept what was wrong."""


class LateEvents:
    """What happens to events that come late, and how many there were.

    An event is late if its time is before that of an event that came before it.

    Parameters
    ----------
    policy : str
        ``"refuse"`` (default): the first such event is an error (``read_events``). ``"skip"``: it is left out and
        counted.
    file : str or Path, optional
        File that gets the events left out: JSON lines, CSV or Parquet, as its name says (JSON lines where it has no
        suffix). Their columns are ``row``, the number of the event in the whole input, then all columns of the input.

    Attributes
    ----------
    count : int
        Events left out in the current pass over the events.
    reasons : list of str
        Of the first few, what is wrong: "row: time runs backwards, from, to".

    Notes
    -----
    Matching goes on with the other events as if there were no late ones: they are numbered without gaps there, so that
    neighbours stay neighbours, and ``original`` gives the numbers in the whole input back. This takes 8 bytes per late
    event.

    Raises
    ------
    UsageError
        ``ACEP-U113`` no such policy; ``ACEP-U114`` a file without ``"skip"``; ``ACEP-U018`` no format has this name.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> events = [{"ts": t, "type": name} for t, name in ((1, "A"), (5, "B"), (2, "B"), (6, "A"), (7, "B"))]
    >>> matches = compile_query("PATTERN SEQ(A a, B b) WITHIN 3").match(events, on_late="skip")
    >>> [match.values for match in matches]
    [{'a': 3, 'b': 4}]
    >>> matches.source.late.count, matches.source.late.reasons
    (1, ['row 2: time runs backwards, from 5 to 2'])
    """

    def __init__(self, policy: str = "refuse", file: str | Path | None = None) -> None:
        if policy not in POLICIES:
            raise UsageError(f"on_late is {policy!r}", code="ACEP-U113", hint="it is 'refuse' (the default) or 'skip'")
        if file is not None and policy != "skip":
            raise UsageError(
                "a file for late events is given, but late events are refused, not skipped",
                code="ACEP-U114",
                hint="add on_late='skip' (--on-late skip; or --watermark DELAY, to wait for them)",
            )
        self.policy = policy
        self.file = None if file is None else Path(file)
        if self.file is not None:
            _format_of(self.file)  # a name that says none is refused before anything is read
        self._sink: Sink | None = None
        self.forget()

    @property
    def renumbers(self) -> bool:
        """Whether ``original`` gives other numbers than it gets."""
        return self.count > 0

    def check(self, *, sort: bool) -> None:
        """Refuse to leave out late events where the events are sorted.

        Raises
        ------
        UsageError
            ``ACEP-U115``.
        """
        if sort and self.policy == "skip":
            raise UsageError(
                "the events are to be sorted, so that none is late, and late events are to be skipped",
                code="ACEP-U115",
                hint="choose one of them: sort=True (--sort) or on_late='skip' (--on-late skip)",
            )

    def forget(self) -> None:
        """Begin to count anew."""
        self.count = 0
        self.reasons: list[str] = []
        self._places: list[Ints] = []

    @property
    def known(self) -> tuple[int, list[str], list[Ints]]:
        """What is known of them, to be set again when another pass has been looked at."""
        return self.count, self.reasons, self._places

    @known.setter
    def known(self, before: tuple[int, list[str], list[Ints]]) -> None:
        """Go back to what was known."""
        self.count, self.reasons, self._places = before

    def restart(self, schema: pa.Schema) -> None:
        """Begin a new pass over events with these columns: forget the count, empty the file.

        Raises
        ------
        UsageError
            ``ACEP-U114``: the file cannot be written; ``ACEP-U025``: another run is writing it.
        """
        self.close()
        self.forget()
        if self.file is None:
            return
        name = "row"
        while name in schema.names:  # late events may be read, and be late, again
            name += "_"
        self._sink = open_sink(self.file, pa.schema([pa.field(name, pa.int64()), *schema]))

    def add(self, rows: Ints, places: Ints, reasons: list[str], data: pa.RecordBatch | None) -> None:
        """Take in events that were left out.

        Parameters
        ----------
        rows : numpy.ndarray of int64, shape (n,)
            Their numbers in the whole input, ascending, above those of all calls before.
        places : numpy.ndarray of int64, shape (n,)
            For each the number, without late events, of the next event that is not late.
        reasons : list of str
            What is wrong with them; of the first few.
        data : pyarrow.RecordBatch or None
            All their columns, where they are written to a file.
        """
        self.count += len(rows)
        self.reasons += reasons[: SHOWN - len(self.reasons)]
        self._places.append(places)
        if self._sink is not None and data is not None:
            columns = [to_arrow(rows), *data.columns]
            self._sink.write(pa.table(columns, names=self._sink.schema.names))

    def original(self, rows: Ints) -> Ints:
        """Numbers in the whole input of events that are numbered without the late ones.

        Parameters
        ----------
        rows : numpy.ndarray of int64
            Of events that are not late.

        Returns
        -------
        numpy.ndarray of int64

        Complexity: O(log(late events)) for each.
        """
        if not self.count:
            return rows
        if len(self._places) > 1:
            self._places = [np.concatenate(self._places)]
        return rows + np.searchsorted(self._places[0], rows, side="right")

    @contextmanager
    def lent(self, is_lent: bool) -> Iterator[Path | None]:
        """The file, for whoever finds out what is late; nothing else is written to it meanwhile."""
        file = self.file
        self.file = None if is_lent else file
        try:
            yield file if is_lent else None
        finally:
            self.file = file

    def close(self) -> None:
        """Close the file, if one is open."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None


def _format_of(path: Path) -> str:
    if not path.suffix:
        return "jsonl"  # e.g. /dev/null
    if path.suffix.lower() not in SUFFIXES or path.suffix.lower() in DELIMITERS:
        raise UsageError(
            f"the format of {str(path)!r} cannot be told from its name",
            code="ACEP-U018",
            hint="name it .jsonl, .csv or .parquet",
        )
    form = SUFFIXES[path.suffix.lower()]
    return "jsonl" if form == "json" else form


class Sink:
    """A file that late events are written to.

    Parameters
    ----------
    file : OutFile or GrowingFile
    schema : pyarrow.Schema
    form : {"jsonl", "csv", "parquet"}
    """

    def __init__(self, file: OutFile | GrowingFile, schema: pa.Schema, form: str) -> None:
        self.schema = schema
        self._file = file
        self._rows = ParquetRows(file.sink, schema) if form == "parquet" else None
        self._lines = csv_lines if form == "csv" else json_lines
        if form == "csv" and file.is_empty:
            file.sink.write(csv_header(schema.names))

    def write(self, table: pa.Table) -> None:
        """Write events with the columns of the schema, whose types may have become wider."""
        if self._rows is not None:
            self._rows.write(table)
        else:
            self._file.sink.write(self._lines(table))

    def close(self) -> None:
        """Nothing more comes."""
        if self._rows is not None:
            self._rows.close()
        self._file.finish()


def open_sink(
    path: Path, columns: pa.Schema, opens: Callable[[Path], OutFile | GrowingFile] = OutFile
) -> Sink:
    """A file for late events, as JSON lines, CSV or Parquet: as its name says.

    Parameters
    ----------
    path : Path
    columns : pyarrow.Schema
    opens : callable
        Makes the file. Default: one that takes its name when it is whole.

    Raises
    ------
    UsageError
        ``ACEP-U018``: its name does not say; ``ACEP-U114``: it cannot be written; ``ACEP-U025``: another run is writing
        it.
    """
    format_ = _format_of(path)
    try:
        file = opens(path)
    except OSError as error:
        raise UsageError(
            f"cannot write late events to {path}: {error.strerror}",
            code="ACEP-U114",
            hint="name a file in a folder that exists and that you may write to",
        ) from error
    return Sink(file, columns, format_)
