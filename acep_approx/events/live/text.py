"""Rows of text as they come: what files that grow and topics of Kafka have in common, and when they have ended."""

from __future__ import annotations

import base64
import logging
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError, UsageError
from acep_approx.events.blocks import BLOCK_BYTES, BYTE_ORDER_MARK, Block, decodable
from acep_approx.events.columns import plain_schema
from acep_approx.events.live.file_columns import FileColumns
from acep_approx.events.reading.arriving import ArrivingEvents, Bound
from acep_approx.events.reading.formats.csv import CsvFormat
from acep_approx.events.reading.formats.readings import TYPES, TextFormat
from acep_approx.events.reading.malformed import MalformedRows, Row
from acep_approx.events.reading.text import TextRows
from acep_approx.events.reading.widening import as_wider, wider_text, with_marks
from acep_approx.events.times_in_order import TimesInOrder

POLL = 0.1
"""Seconds between two looks whether there is more."""
_LENGTH = re.compile(r"(\d+(?:\.\d+)?) *(ms|s|min|h)", re.ASCII)
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
LOG = logging.getLogger("acep_approx.live")


def seconds(name: str, given: str | float) -> float:
    """A length of time by the clock, in seconds.

    Parameters
    ----------
    name : str
        Of what is given, for the message.
    given : str or float
        ``"500 ms"``, ``"10 s"``, ``"1.5 min"``, ``"1 h"``; or seconds.

    Raises
    ------
    UsageError
        ``ACEP-U142``: it is none.

    Examples
    --------
    >>> seconds("until_idle", "1.5 min"), seconds("until_idle", 0)
    (90.0, 0.0)
    """
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    found = _LENGTH.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None:
        raise UsageError(
            f"{name} is {given!r}", code="ACEP-U142", hint="it is a length of time: '500 ms', '10 s', '5 min' or '1 h'"
        )
    return float(found[1]) * _SECONDS[found[2]]


class Pace:
    """Says when a live input has ended, and calls back wherever all that was given has been run.

    Parameters
    ----------
    until_idle : float, optional
        Seconds without anything new after which the input has ended. Default: it ends when ``stop`` is called.

    Attributes
    ----------
    on_border : callable or None
        Called between two batches, and while nothing comes: what was given before has been run, and its results have
        been taken.
    is_stopped : bool
        Whether ``stop`` was called.

    Examples
    --------
    >>> pace = Pace(until_idle=0)
    >>> pace.is_over()
    True
    >>> Pace().is_over()
    False
    """

    def __init__(self, until_idle: float | None = None) -> None:
        self.until_idle = until_idle
        self.on_border: Callable[[], None] | None = None
        self.is_stopped = False
        self._since: float | None = None

    def stop(self) -> None:
        """The input ends at the next border; may be called from a handler of signals, or another thread."""
        self.is_stopped = True

    def border(self) -> None:
        """All that was given has been run."""
        if self.on_border is not None:
            self.on_border()

    def heard(self) -> None:
        """Something new has come."""
        self._since = None

    def is_over(self) -> bool:
        """Nothing more is there now: whether that is the end."""
        if self.is_stopped:
            return True
        if self._since is None:
            self._since = time.monotonic()
        return self.until_idle is not None and time.monotonic() - self._since >= self.until_idle

    def wait(self, seconds: float = POLL) -> None:
        """Let some time pass before the next look."""
        time.sleep(seconds)


@dataclass(frozen=True)
class Resumed:
    """What a run that goes on knows of its input.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the text, with the types that they had.
    place : dict
        How far it was read; the reader knows what it means.
    sample : bytes
        The rows that have settled what the columns are.
    """

    schema: pa.Schema
    place: dict[str, Any]
    sample: bytes

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        schema = base64.b64encode(self.schema.serialize().to_pybytes()).decode()
        return {"schema": schema, "place": self.place, "sample": self.sample.decode()}

    @classmethod
    def from_json(cls, saved: Any) -> Resumed:
        """What ``to_json`` gave.

        Raises
        ------
        ValueError
            It is something else.
        """
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(saved["schema"], validate=True)))
            place, sample = saved["place"], saved["sample"].encode()
        except (AttributeError, KeyError, TypeError, ValueError, pa.ArrowException, OSError) as error:
            raise ValueError("not the place in an input") from error
        if not isinstance(place, dict):
            raise ValueError("not the place in an input")
        return cls(schema, place, sample)


@dataclass(frozen=True)
class LiveReading:
    """How live input is read, whatever it is.

    Parameters
    ----------
    malformed : MalformedRows
        What happens to rows that cannot be read.
    pace : Pace
        Says when it has ended.
    resumed : Resumed, optional
        Where an earlier run has ended.
    columns : FileColumns, optional
        Those that events have; a value that does not fit makes its row a malformed one. Default: the rows tell.
    """

    malformed: MalformedRows
    pace: Pace
    resumed: Resumed | None = None
    columns: FileColumns | None = None


class LiveText(ArrivingEvents):
    """Rows of text that are still being written; can be read once, and later from where that ended.

    Parameters
    ----------
    name : str
        For messages.
    format : TextFormat
    reading : LiveReading

    Attributes
    ----------
    given : int
        Events that were read so far.

    Notes
    -----
    Types are those of a file, or are settled by as few rows as the query needs, as for standard input, and become wider
    with later values.
    ``resumed`` is right at the borders that ``pace`` tells of.

    Raises
    ------
    ValueError
        ``resumed`` does not go with itself.
    """

    def __init__(
        self,
        name: str,
        format: TextFormat,  # noqa: A002  (the word of the public interface)
        reading: LiveReading,
    ) -> None:
        super().__init__(name, None, format, reading.malformed)  # type: ignore[arg-type]  # it has no stream of bytes
        self.pace = reading.pace
        self.given = 0
        self._text_schema: pa.Schema | None = None
        self._sample = b""
        self._waiting: list[Block] = []  # taken to settle the types, and not read yet
        self._coming = self._pieces()
        self._says_it_waits = reading.resumed is not None
        self._times_before: dict[str, Any] = {}  # what was known of times at the last border
        self._fixed = None if reading.columns is None else plain_schema(self._with_marks(reading.columns.text), name)
        if (resumed := reading.resumed) is None:
            self._text_schema = self._fixed
        elif not resumed.sample:  # the columns were those of a file
            self._text_schema, self._times_before = resumed.schema, resumed.place.get("times") or {}
        else:
            decided = self._typed_by(resumed.sample).schema  # what was decided of the columns then is decided again
            if isinstance(format, CsvFormat) and decided.names != resumed.schema.names:
                raise ValueError("not the columns of the input")
            self._text_schema, self._sample = resumed.schema, resumed.sample
            self._times_before = resumed.place.get("times") or {}
        self._order = TimesInOrder.of(self._times_before)
        self._last: tuple[TextRows, Block, int] | None = None  # where the batch given last comes from

    def check_declared(self) -> None:
        """Refuse types of columns that a run which goes on had not (``ACEP-U208``)."""
        known = self._text_schema or pa.schema([])
        is_of_file = self._fixed is not None
        if is_of_file == bool(self._sample) or (self._fixed is not None and not self._fixed.equals(known)):
            self.close()
            raise UsageError(
                "the run that goes on had "
                + ("the columns of a file" if not self._sample else "no columns of a file, or other ones"),
                code="ACEP-U208",
                hint="give the same --schema as that run, or none if it had none; or begin in another folder for "
                "checkpoints",
            )
        for name, word in self._format.understood.declared.items():
            before = known.field(name).type if name in known.names else TYPES[word]
            if not before.equals(TYPES[word]):
                self.close()
                raise UsageError(
                    f"column {name!r} is said to be {word}, and the run that goes on has {before} there",
                    code="ACEP-U208",
                    hint="say the types as that run did; or begin in another folder for checkpoints",
                )

    # --- what a kind of input says ------------------------------------------------------------------------------

    def _with_marks(self, text: pa.Schema) -> pa.Schema:
        """Columns of a file, with those that the input puts into its rows."""
        return text

    @abstractmethod
    def _pieces(self) -> Generator[Block]:
        """Whole rows as they come; waits for them, and ends when ``pace`` says so."""

    @property
    @abstractmethod
    def lag(self) -> tuple[int, str] | None:
        """How much is there that was not read yet, and in what it is counted; None: that is not known."""

    @abstractmethod
    def _place(self) -> dict[str, Any]:
        """How far it was read, behind the last piece that was taken in."""

    def _taken(self, piece: Block) -> None:
        """All rows of a piece have been given and run."""

    def _has_news(self) -> bool:
        """Whether whoever runs the rows should look at what has become of the input: a batch without rows tells so."""
        return False

    def _is_new(self, piece: Block) -> bool:  # noqa: ARG002
        """Whether a piece begins another file than those before it."""
        return False

    def _report(self, piece: Block, row: bytes, line: int, reason: str) -> None:
        self._malformed.add(self._row(piece, row, line), reason)

    def _row(self, piece: Block, row: bytes, line: int) -> Row:  # noqa: ARG002
        return Row(self._name, line, row.decode(errors="backslashreplace").rstrip("\r\n"))

    def _with_more(self, batch: pa.RecordBatch, columns: Sequence[str], piece: Block) -> pa.RecordBatch:  # noqa: ARG002
        """Rows of the text with those columns that are asked for, in this order."""
        return batch.select(columns)

    def _text_columns(self, columns: Sequence[str], text: pa.Schema) -> list[str]:
        return [name for name in columns if name in text.names] or text.names[:1]

    def close(self) -> None:
        """Let go of the input."""

    # --- columns ------------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """The columns: as ``settle`` has found them, else by what is there once an event is."""
        if self._text_schema is None:
            rows = self._format.rows(self._whole())
            while self._least(rows) > len(rows) and self._more():
                rows = self._format.rows(self._whole())
            if self._least(rows) > len(rows):  # it has ended before the first event
                self.close()
                return pa.schema([])
            self._sample = self._readable(Block(1, self._whole())).data
            self._settled(self._typed_by(self._sample).schema)
        assert self._text_schema is not None, "it was just settled"
        return self._shown(self._text_schema)

    def settle(self, bind: Callable[[pa.Schema], Bound]) -> Bound:
        """What ``bind`` makes of the columns, as soon as so many rows have come that it does not refuse them."""
        if self._text_schema is not None:
            return bind(self.schema)
        try:
            return super().settle(bind)
        except BaseException:
            self.close()
            raise
        finally:
            if self._text_schema is None and self._events is not None:
                self._settled(self._events.schema)

    def _tried(self, rows: list[bytes], bind: Callable[[pa.Schema], Bound]) -> Bound | None:
        found = super()._tried(rows, bind)
        if found is not None:
            self._sample = self._readable(Block(1, b"".join(rows))).data
        return found

    def _settled(self, schema: pa.Schema) -> None:
        self._text_schema = plain_schema(schema, self._name)

    def _more(self) -> bool:
        if len(self._head) >= BLOCK_BYTES:
            return False
        try:
            self._report_refusal()
            piece = next(self._coming, None)
        except BaseException:
            self.close()
            raise
        if piece is None:
            self._has_ended = True
            return False
        if self._is_new(piece):
            if self._has_event():  # what the query needs did not come in the file before
                self._has_ended = True
                return False
            self._waiting, self._head = [], b""
        self._waiting.append(piece)
        self._head += piece.data.removeprefix(BYTE_ORDER_MARK) if piece.line == 1 else piece.data
        return True

    def _whole(self) -> bytes:
        return self._head

    def _say_waiting(self) -> None:
        if self.given or self._says_it_waits or self._has_event():
            return
        self._says_it_waits = True
        LOG.warning("%s: there is no event in it yet; waiting", self._name)

    # --- events -------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, in batches of at most ``batch_rows``, as they come."""
        if self._text_schema is None:  # it has ended before the first event
            return
        names = self._text_columns(columns, self._text_schema)
        wanted = pa.schema([self._text_schema.field(name) for name in names])
        piece = Block(1, b"")

        def told(row: bytes, line: int, reason: str) -> None:
            self._report(piece, row, line, reason)

        rows = TextRows(self._format, wanted, told, has_fixed_types=self._fixed is not None)
        for piece in self._all_pieces():
            refuses = self._malformed.policy == "refuse"  # what is not UTF-8 has been refused
            readable = piece if refuses else decodable(piece, self._name, self._format.rows, told)
            for read in rows.parse(self._body(readable)):
                batch = rows.ordered(read, self._order)
                self.given += batch.num_rows
                whole = self._with_more(self._aligned(batch, names), columns, piece)
                for start in range(0, whole.num_rows, batch_rows):
                    self._last = rows, piece, start
                    yield whole.slice(start, batch_rows)
            self._taken(piece)
            if self._has_news():
                known = self.schema
                yield pa.RecordBatch.from_pylist([], schema=pa.schema([known.field(name) for name in columns]))
            self._times_before = self._order.state
            self.pace.border()

    def where(self, row: int) -> Row | None:
        """Where a row of the batch given last stands."""
        if self._last is None:
            return None
        rows, piece, first = self._last
        found = rows.standing(first + row)
        return self._row(piece, *found) if found else None

    def resumed(self) -> Resumed | None:
        """How far it was read; None before the first event."""
        if self._text_schema is None:
            return None
        times = {"times": self._times_before} if self._times_before else {}
        return Resumed(self._text_schema, self._place() | times, self._sample)

    def _all_pieces(self) -> Iterator[Block]:
        waiting, self._waiting, self._head = self._waiting, [], b""
        yield from waiting
        yield from self._coming

    def _body(self, piece: Block) -> Block:
        return self._format.after_header(piece)

    def _aligned(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        assert self._text_schema is not None
        for field in batch.schema:
            place = self._text_schema.get_field_index(field.name)
            known = self._text_schema.field(place).type
            wider = wider_text(known, field) or known
            if not wider.equals(known):
                self._text_schema = self._text_schema.set(place, pa.field(field.name, wider))
        arrays = []
        for name in names:
            type_ = self._text_schema.field(name).type
            try:
                arrays.append(as_wider(batch.column(name), type_))
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"{self._name}: column {name!r} cannot be read as {type_}, its type in all rows together: {error}",
                    code="ACEP-D016",
                    hint="write the column with one type",
                ) from error
        return with_marks(pa.RecordBatch.from_arrays(arrays, names=list(names)), batch.schema)
