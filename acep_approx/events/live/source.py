"""Live inputs behind the face of all others: a schema and batches, which end when they are stopped or idle."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.errors import DataError, UsageError
from acep_approx.events.late import LateEvents
from acep_approx.events.live.file_columns import FileColumns
from acep_approx.events.live.growing import FollowedPath, GrowingText, from_json, would_be_followed
from acep_approx.events.live.kafka import Topic
from acep_approx.events.live.kafka_address import is_address, parse_address, settings
from acep_approx.events.live.kafka_messages import AS_JSON, KafkaMessages, PartitionNews, place_in
from acep_approx.events.live.text import LiveReading, LiveText, Pace, Resumed, seconds
from acep_approx.events.reading.arriving import is_pipe
from acep_approx.events.reading.decoding import SUFFIXES as COMPRESSED
from acep_approx.events.reading.files import (
    DELIMITERS,
    SUFFIXES,
    check_format,
    check_layout,
    find_files,
    format_of,
    is_there,
    says_csv,
)
from acep_approx.events.reading.layout import Layout, Stored
from acep_approx.events.reading.malformed import MalformedRows
from acep_approx.events.reading.text import text_format
from acep_approx.events.source import NO_TIMES, Source, Times, refuse_same
from acep_approx.events.times_in_order import TimesInOrder
from acep_approx.events.usable_rows import UsableRows
from acep_approx.events.writing.outfile import GrowingFile, OutFile, read_again, refuse_input
from history.places import is_stored, place_of


class LiveSource(Source):
    """Events that are still being written; made by ``follow``.

    ``batches`` waits for them, and ends when ``stop`` was called or nothing has come for a while.

    Attributes
    ----------
    pace : Pace
        Says when it ends, and tells of the borders between batches.
    """

    def __init__(
        self,
        reader: LiveText,
        malformed: MalformedRows,
        late: LateEvents,
        skipped: int = 0,
        times: Times = NO_TIMES,
        order: TimesInOrder | None = None,
    ) -> None:
        super().__init__(reader, malformed, late, times)
        self._live = reader
        self._skipped = skipped
        self._rows: UsableRows | None = None
        self._order = order or TimesInOrder()  # what an earlier run knew of the times
        self._end: dict[str, Any] | None = None
        self.pace = reader.pace

    @property
    def given(self) -> int:
        """Events that were read so far, since it was opened."""
        return self._live.given - (0 if self._rows is None else self._rows.left_out)

    @property
    def lag(self) -> tuple[int, str] | None:
        """How much is there that was not read yet, and what it is: bytes or messages. None: that is not known."""
        return self._live.lag

    @property
    def tombstones(self) -> int:
        """Messages of Kafka without a value, which are no events."""
        return self._live.tombstones if isinstance(self._live, KafkaMessages) else 0

    def partition_news(self) -> PartitionNews:
        """What has become of the partitions of a topic since it was asked last."""
        return self._live.news() if isinstance(self._live, KafkaMessages) else PartitionNews()

    def stop(self) -> None:
        """Let it end at the next border; may be called from anywhere."""
        self.pace.stop()

    @property
    def _is_written(self) -> bool:
        """Whether the events are read from text: all that is live is."""
        return True

    def place(self) -> dict[str, Any] | None:
        """How far it was read, as JSON, for ``follow(resumed=...)``; right at borders. None before the first event."""
        if self._end is not None:
            return self._end
        resumed = self._live.resumed()
        known = self._order.state if self._rows is None else self._rows.order.state
        ticks = {"ticks": known} if known else {}
        return None if resumed is None else {**resumed.to_json(), "malformed": self.malformed.count, **ticks}

    def close(self) -> None:
        """Let go of the file or the broker."""
        self._live.close()

    def _read(self, names: list[str], batch_rows: int, rows: UsableRows | None) -> Iterator[pa.RecordBatch]:
        self.malformed.restart()
        self.malformed.count = self._skipped
        self.late.restart(self.schema)
        try:
            if rows is not None:
                self._rows, rows.order = rows, self._order
            yield from self._usable(names, batch_rows, rows)
            if rows is not None:
                rows.finish(is_whole=False)
        finally:
            try:
                self._end = self.place()
            finally:
                self.close()
                self.malformed.close()
                self.late.close()


@checked
def follow(
    place: str | Path,
    *,
    until_idle: str | float | None = None,
    format: str | None = None,  # noqa: A002  (as in open_source)
    on_malformed: str = "refuse",
    rejects: str | Path | None = None,
    on_late: str = "refuse",
    late: str | Path | None = None,
    kafka: Mapping[str, object] | Sequence[str] = (),
    schema: str | Path | None = None,
    is_in_order: bool = True,
    is_one_file: bool = False,
    resumed: dict[str, Any] | None = None,
    opens: Callable[[Path], OutFile | GrowingFile] = OutFile,
    time: str | None = None,
    **layout: Any,
) -> LiveSource:
    r"""Events of a file that grows, of a folder in which files appear, or of a topic of Kafka.

    Parameters
    ----------
    place : str or Path
        A file of CSV or JSON lines, which need not be there yet; a folder of such files, which are read in the order of
        their names; or ``kafka://BROKER:9092/TOPIC?group=NAME&from=beginning|end&partition=0,1``.
    until_idle : str or float, optional
        The input ends when nothing has come for so long: ``"5 s"``, or seconds. Default: when it is stopped.
    format, on_malformed, rejects, on_late, late
        As for ``open_source``.
    kafka : mapping or sequence of str
        Settings of the client of Kafka, by name, or as ``"name=value"``, or ``"@FILE"`` of such lines.
    schema : str or Path, optional
        A file of events whose columns and types the messages of a topic have. Default: the messages tell.
    is_in_order : bool, default True
        Whether events must come in order of time: then one partition of a topic is read at most.
    is_one_file : bool, default False
        Whether all events must stand in one file, which is not replaced.
    resumed : dict, optional
        Where to go on: what ``LiveSource.place`` gave.
    opens : callable
        Makes the file of rejects.
    time : str, optional
        As for ``open_source``: ``date+time``.
    **layout
        How text files are written, as for ``open_source``. They are in UTF-8.

    Returns
    -------
    LiveSource
        For ``Query.match``, ``QuerySet.batches`` and all else that takes events. It can be read once.

    Raises
    ------
    DataError
        ``ACEP-D010``, ``ACEP-D055`` to ``ACEP-D059``, ``ACEP-D061``, ``ACEP-D150``, ``ACEP-D171``, ``ACEP-D172``: see
        the how-to page on live input.
    UsageError
        ``ACEP-U135`` to ``ACEP-U142``; ``ACEP-U208``: a run that goes on had other columns; ``ACEP-U104`` to
        ``ACEP-U114`` as ``open_source``.
    ValueError
        ``resumed`` is not the place in this input.

    Examples
    --------
    >>> import tempfile
    >>> from acep_approx import compile_query
    >>> place = Path(tempfile.mkdtemp()) / "events.csv"
    >>> _ = place.write_text("ts,type\n1,A\n3,B\n4,A\n")
    >>> query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
    >>> [match.values for match in query.match(follow(place, until_idle=0))]
    [{'a': 0, 'b': 1}]
    """
    check_format(format)
    written = Layout(**layout, time=time)
    malformed, left_out = MalformedRows(on_malformed, rejects), LateEvents(on_late, late)
    refuse_same(malformed.rejects, left_out.file)
    malformed.opens = opens
    pace = Pace(None if until_idle is None else seconds("until_idle", until_idle))
    columns = None if schema is None else FileColumns.of(schema, written)
    reading = LiveReading(malformed, pace, None if resumed is None else Resumed.from_json(resumed), columns)
    skipped = 0 if resumed is None else resumed.get("malformed")
    order = TimesInOrder.of(None if resumed is None else resumed.get("ticks"))
    if not isinstance(skipped, int):
        raise ValueError("not the place in an input")
    if is_address(place):
        if is_one_file:
            raise UsageError(
                "--store does not go with kafka://: a store knows by their number which events of a file it has seen, "
                "and the messages of a topic have no such numbers",
                code="ACEP-U138",
                hint="leave --store out: the tables are then in memory, and each run begins anew; or let a consumer "
                "write the messages to a file, one on a line, and run the rules over that: --follow --store FILE",
            )
        check_messages(format, written)
        given, address = settings(kafka), parse_address(str(place))
        topic = Topic(address, given, place_in(reading.resumed, address.topic), is_in_order=is_in_order)
        reader: LiveText = KafkaMessages(topic, written, reading)
    else:
        if schema is not None:
            raise UsageError(
                f"schema= is of use with a topic of Kafka only, and {str(place)!r} is none",
                code="ACEP-U139",
                hint="leave it out; the types of columns are said by --column-type NAME=TYPE (column_types= in Python)",
            )
        refuse_to_read(Path(place), malformed.rejects, "rejected rows", "ACEP-U106")
        refuse_to_read(Path(place), left_out.file, "late events", "ACEP-U114")
        reader = _files(Path(place), format, written, reading)
        reader.is_one_file = is_one_file
    if resumed is not None:
        reader.check_declared()
    return LiveSource(reader, malformed, left_out, skipped, Times(time, written.time_format), order)


def check_messages(format_: str | None, layout: Layout) -> None:
    """Refuse what is said of files and not of messages (``ACEP-U121``)."""
    options = {"delimiter": "--delimiter", "columns": "--columns", "decimal": "--decimal"}
    options |= {"line_format": "--line-format", "encoding": "--encoding"}
    wrong = [option for name, option in options.items() if name in layout.said]
    if layout.encoding is not None and codecs.lookup(layout.encoding).name == "utf-8":
        wrong.remove("--encoding")
    if format_ not in (None, "json", "jsonl"):
        wrong.insert(0, f"--input-format {format_}")
    if wrong:
        raise UsageError(
            f"{wrong[0]} is given, and that is not said of messages of Kafka",
            code="ACEP-U121",
            hint=f"leave it out: {AS_JSON}",
        )


def refuse_to_read(place: Path, file: Path | None, what: str, code: str = "ACEP-U013") -> None:
    """Refuse to write over what is followed (``code``), or where it would be read (``ACEP-U193``).

    Parameters
    ----------
    place : Path
        That is followed.
    file : Path or None
        To be written; None: nothing is.
    what : str
        That goes there, in words.
    code : str
    """
    refuse_input(file, what, [place], code)
    if file is not None and would_be_followed(place, file):
        raise read_again(file, what, place)


def _files(path: Path, format_: str | None, layout: Layout, reading: LiveReading) -> GrowingText:
    if str(path) == "-" or (is_there(path) and is_pipe(path)):
        raise UsageError(
            f"{str(path)!r} cannot be followed: it is read as it comes, and once only",
            code="ACEP-U140",
            hint="leave --follow out (query.match in Python): events on standard input or in a pipe are matched as "
            "they come",
        )
    if is_stored(path):
        raise UsageError(
            f"{place_of(path)} cannot be followed: objects of a store do not grow",
            code="ACEP-U140",
            hint="leave --follow out (query.match in Python); a folder that gets new objects is matched on Spark: "
            "acep run --spark --stream QUERY s3a://BUCKET/FOLDER",
        )
    form = format_ or (_format_in(path, layout) if layout.line_format is None else "lines")
    if form == "parquet":
        raise DataError(
            f"{path}: Parquet cannot be followed: it is no file before it is whole",
            code="ACEP-D055",
            hint="write CSV or JSON lines",
        )
    if layout.encoding is not None and codecs.lookup(layout.encoding).name != "utf-8":
        raise UsageError(
            f"{path}: a file in {layout.encoding} cannot be followed",
            code="ACEP-U138",
            hint="let it be written in UTF-8; or pass it on: tail -F FILE | iconv -f ... | acep run QUERY -",
        )
    check_layout(form, str(path), layout)
    if form == "csv":
        layout = replace(layout, delimiter=layout.delimiter or DELIMITERS.get(path.suffix.lower()))
    followed = _followed(path, reading.resumed)
    text = text_format(form, followed.name, layout, Stored())
    return GrowingText(followed, text, reading)


def _followed(path: Path, resumed: Resumed | None) -> FollowedPath:
    if resumed is None:
        return FollowedPath(path)
    if resumed.place.get("kind") != "file" or not isinstance(resumed.place.get("header"), str):
        raise ValueError("not the place in a file")
    return FollowedPath(path, from_json(resumed.place.get("file")))


def _format_in(path: Path, layout: Layout) -> str:
    compressed = path.suffix.lower() in COMPRESSED
    if path.is_file() and path.stat().st_size and not compressed:
        return find_files([path], layout=layout)[0].format
    found = {format_of(path)}
    if path.is_dir():
        files = (child for child in path.iterdir() if child.is_file() and child.name[0] not in "._")
        found = {format_of(child) for child in files if child.suffix.lower() not in COMPRESSED} - {None}
    if says_csv(layout) and found <= {None}:
        return "csv"
    if len(found) == 1 and None not in found and not compressed:
        return str(found.pop())
    what = "holds no file whose name says its format" if not found else "holds files of different formats"
    raise DataError(
        f"{path}: {what if path.is_dir() else 'the format cannot be told from the name'}",
        code="ACEP-D012",
        hint=f"say it: --input-format csv|jsonl (format='...' in Python); names are {' '.join(SUFFIXES)}",
    )
