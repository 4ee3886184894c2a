"""Files of events as DataFrames, read as a local run reads them, and folders whose files grow in number, as streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError, UsageError
from acep_approx.events.reading.decoding import SUFFIXES as COMPRESSED
from acep_approx.events.reading.files import (
    AS_WRITTEN,
    SUFFIXES,
    InputFile,
    check_format,
    check_layout,
    find_files,
    format_of,
)
from acep_approx.events.reading.layout import Layout
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import Source, open_source
from acep_approx.events.time import shown_times
from acep_approx.events.usable_times import usable_times
from acep_approx.spark.setup.control import spark_address
from history.places import is_remote, is_stored, place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


TIMES = pa.timestamp("us", tz="UTC")
"""Spark's only type of times."""
AT_ONCE = 100_000
"""Events per micro-batch, about, and at least one file: the events of a micro-batch wait in the state for the next."""
TEXTS = {"csv", "jsonl", "json"}
"""Formats of text."""
SAMPLED = 8 << 20
"""Bytes of a text file that is read to learn how long events are; where all are larger, only the first events are."""
UNKNOWN = 64 << 20
"""Bytes per micro-batch where there is no event yet."""


@dataclass(frozen=True)
class EventFiles:
    """Files of events: found, and opened as far as their columns; Spark need not run for that.

    Attributes
    ----------
    files : list of InputFile
    reading : dict of str to object
        Arguments of ``open_source``.
    schema : pyarrow.Schema
        The columns of all files together.
    rows : int or None
        Events in all files; None: they are text, and nobody has read them yet.
    is_plain : bool
        Whether Spark reads them: they are Parquet with no column that it reads otherwise than we do.
    """

    files: list[InputFile]
    reading: dict[str, Any]
    schema: pa.Schema
    rows: int | None
    is_plain: bool

    @classmethod
    def of(
        cls,
        paths: Sequence[str | Path],
        format: str | None = None,  # noqa: A002  (the option's name)
        on_malformed: str = "refuse",
        **typed: Any,
    ) -> Self:
        """Find the files, and open each as far as its columns; the arguments and errors of ``read_files``."""
        check_format(format)
        if "-" in map(str, paths):
            raise UsageError("Spark cannot read standard input", code="ACEP-S020", hint="name files or folders")
        files = find_files(paths, format)
        kinds = {file.format for file in files}
        if "parquet" in kinds and len(kinds) > 1:
            raise UsageError(
                "Parquet and text files cannot be read together on Spark",
                code="ACEP-S021",
                hint="turn one kind into the other first",
            )
        if kinds == {"parquet"}:
            check_layout("parquet", str(files[0].path), Layout(**typed))
        reading = {"format": format, "on_malformed": on_malformed} | typed
        source = open_source([file.path for file in files], **reading)
        if not len(source.schema):
            raise DataError("there are no events in the files", code="ACEP-S022", hint="name files with events")
        is_plain = kinds == {"parquet"} and not needs_our_reader(files)
        schema = _as_spark_has_it(source.schema) if is_plain else planned_schema(source.schema, typed.get("time"))
        return cls(files, reading, schema, source.rows, is_plain)

    @classmethod
    def in_folder(cls, folder: str | Path, format: str | None = None, **typed: Any) -> Self:  # noqa: A002
        """Find the files that are in a folder by now; the arguments and errors of ``read_growing``."""
        if not place_of(folder).is_dir():
            raise UsageError(
                f"a stream is read from a folder, and {str(folder)!r} is none",
                code="ACEP-S070",
                hint="name the folder that the files come into",
            )
        return cls.of([folder], format, **typed)

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the events as a DataFrame, which is a batch."""
        if self.is_plain:
            names = [spark_address(file.path) for file in self.files]
            return spark.read.option("mergeSchema", str(len(names) > 1)).parquet(*names)
        paths = [str(file.path.absolute()) for file in self.files]
        listed = spark.createDataFrame([*enumerate(paths)], "number int, path string")
        return _read_listed(listed.repartitionById(len(paths), "number"), self.reading, self.schema)

    def grow(self, spark: SparkSession, folder: str | Path, at_once: int = AT_ONCE) -> DataFrame:
        """Return the events of their folder, and of files that come into it, as a DataFrame, which is a stream."""
        is_parquet = {file.format for file in self.files} == {"parquet"}
        endings = [suffix for suffix, kind in SUFFIXES.items() if (kind == "parquet") == is_parquet]
        if not is_parquet:
            endings += [f"{suffix}{packed}" for suffix in endings for packed in COMPRESSED]
        most = str(self.bytes_of(at_once))
        stream = spark.readStream.option("maxBytesPerTrigger", most).option("recursiveFileLookup", "true")
        stream = stream.option("pathGlobFilter", f"*{{{','.join(endings)}}}")
        where = spark_address(folder)
        if self.is_plain:
            return stream.schema(self.read(spark).schema).parquet(where)
        listed = stream.schema(LISTED).format("binaryFile").load(where).select("path")
        return _read_listed(listed, self.reading, self.schema, _local)

    def bytes_of(self, events: int) -> int:
        """Return about how many bytes of such files hold that number of events.

        Of Parquet the metadata tell; of text one file is read, or its first events.
        """
        sizes = {file.path: file.path.stat().st_size for file in self.files}
        size, rows = sum(sizes.values()), self.rows
        if rows is None:
            short = [path for path, size in sizes.items() if size <= SAMPLED]
            path = max(short, key=sizes.__getitem__) if short else min(sizes, key=sizes.__getitem__)
            size, rows = sizes[path], 0
            for batch in read_batches(str(path), self.reading, self.schema):
                rows += batch.num_rows
                if rows > events:  # then one file is enough for a micro-batch
                    break
        return max(size * events // rows, 1) if rows else UNKNOWN


def read_files(
    spark: SparkSession,
    paths: Sequence[str | Path],
    format: str | None = None,  # noqa: A002  (the option's name)
    on_malformed: str = "refuse",
    **typed: Any,
) -> DataFrame:
    """Read files of events.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str or Path
        Files and folders, which all workers must see under these names; or addresses such as ``s3a://bucket/folder``.
        Parquet at an address is read by Spark. Text is read by our own reader, from an object store that Python
        reaches, too; that it is text, the names of files tell, or ``format``.
    format : str, optional
        ``parquet``, ``csv`` or ``jsonl``. Default: by the files' names.
    on_malformed : str
        ``"skip"``: of a row that cannot be read an event of NULLs is made, which is left out as it has no time, and
        counted. Default: it is an error.
    **typed
        What columns of text files hold, as for ``open_source``: ``time``, ``column_types``, ``null``, ``thousands``.

    Returns
    -------
    DataFrame
        Parquet as Spark reads it. Text files, and Parquet with times of nanoseconds or with objects, by our own reader,
        one task for each file: types, what counts as null, and which rows are malformed are those of a local run, and
        nanoseconds are rounded down to microseconds. A column of text that is the time becomes timestamps, which Spark
        can put in order.

    Raises
    ------
    DataError
        What ``open_source`` raises. A row that cannot be read is an error when the DataFrame is used.
    UsageError
        ``ACEP-S020``: standard input; ``ACEP-S021``: Parquet and text mixed; ``ACEP-S085``: an address of text where
        Python reads none, or addresses of Parquet together with paths.
    """
    check_format(format)
    if any(map(is_remote, paths)) and not _is_stored_text(paths, format):
        return spark.read.option("recursiveFileLookup", "true").parquet(*_addresses(paths, format))
    return EventFiles.of(paths, format, on_malformed, **typed).read(spark)


def _is_stored_text(paths: Sequence[str | Path], format_: str | None) -> bool:
    """Whether addresses are of text in stores that Python reads, as the format says, or their names do."""
    formats = {format_ or format_of(place_of(path)) for path in paths}
    return formats <= TEXTS and all(is_stored(path) or not is_remote(path) for path in paths)


def _addresses(paths: Sequence[str | Path], format_: str | None) -> list[str]:
    """Return addresses, which only Spark can read, as they are written."""
    other = next((str(path) for path in paths if not is_remote(path)), None)
    if other is not None or format_ not in (None, "parquet"):
        what = f"not together with {other!r}" if other is not None else f"and no {format_}"
        raise UsageError(
            f"of addresses Spark reads Parquet, {what}",
            code="ACEP-S085",
            hint="write Parquet there, or mount the place as a folder that all machines have; text is read from "
            "s3://, gs:// and abfs://, with --input-format csv|jsonl for folders",
        )
    return [spark_address(path) for path in paths]


def needs_our_reader(files: Sequence[InputFile]) -> bool:
    """Whether Parquet files have columns that Spark does not read as we do.

    Nanoseconds, as pandas writes them: Spark reads no file with any. Objects: their fields are columns here.
    """
    from pyarrow import parquet

    types = [field.type for file in files for field in parquet.read_schema(file.path)]
    times = [type_ for type_ in types if pa.types.is_timestamp(type_) or pa.types.is_time(type_)]
    return any(map(pa.types.is_struct, types)) or any(type_.unit == "ns" for type_ in times)


def _read_listed(
    listed: DataFrame, reading: dict[str, Any], schema: pa.Schema, local: Callable[[str], str] = str
) -> DataFrame:
    """The events of the files that a column ``path`` names; ``local`` gives the path here."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                yield from read_batches(local(path), reading, schema)

    return listed.mapInArrow(read, from_arrow_schema(schema, prefer_timestamp_ntz=False))


def planned_schema(schema: pa.Schema, time: str | None) -> pa.Schema:
    """The columns with types that Spark has; the time as timestamps, also where it is written as text."""
    schema = _as_spark_has_it(schema)
    with suppress(DataError):  # none of them is the time: whoever asks for it says so
        field = schema.field(infer_roles(schema, time=time).time)
        if pa.types.is_string(field.type):
            return schema.set(schema.get_field_index(field.name), field.with_type(TIMES))
    return schema


def read_batches(path: str, reading: dict[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read one file.

    Parameters
    ----------
    path : str
    reading : dict of str to object
        Arguments of ``open_source``.
    schema : pyarrow.Schema
        Columns that all files have together, as ``EventFiles`` has them; those that this one has not are NULL.

    Yields
    ------
    pyarrow.RecordBatch
        For each malformed row that is left out there is an event of NULLs behind all others.
    """
    source = _opened(path, reading, schema)
    skips = source.malformed.policy == "skip"
    for batch in source.batches():
        table = pa.Table.from_batches([batch])
        columns = [as_planned(table, field, path, skips=skips) for field in schema]
        yield from pa.table(columns, schema=schema).to_batches()
    if left_out := source.malformed.count:  # events without a time are counted, by those who match
        yield pa.RecordBatch.from_arrays([pa.nulls(left_out, field.type) for field in schema], schema=schema)


def _opened(path: str, reading: dict[str, Any], schema: pa.Schema) -> Source:
    """One of several files; a column that is text in all together is text here, too, as it is written."""
    said = Layout(column_types=reading.get("column_types")).types
    plain = open_source(path, **reading | {"column_types": None})
    if plain.understood is None or plain.understood.format == "parquet":
        return plain
    here = {field.name: field.type for field in plain.schema}
    types = {name: type_ for name, type_ in said.items() if name in here}
    if plain.understood.format in AS_WRITTEN:
        texts = [field.name for field in schema if pa.types.is_string(field.type) and field.name in here]
        types |= {name: "text" for name in texts if not pa.types.is_string(here[name]) and name not in types}
    return open_source(path, **reading | {"column_types": types}) if types else plain


def as_planned(table: pa.Table, field: pa.Field, path: str, *, skips: bool) -> pa.ChunkedArray:
    """A column in the type that Spark was told; nanoseconds are rounded down, as those of ticks are.

    ``skips``: texts that are no times are NULL, and whoever matches counts events without a time.
    """
    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(len(table), field.type)])
    column = table.column(field.name)
    try:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = pc.floor_temporal(column.cast(pa.timestamp("ns", tz="UTC")), unit="microsecond")
        if pa.types.is_timestamp(field.type) and pa.types.is_string(column.type):
            texts = column.combine_chunks()
            texts = pc.if_else(pa.array(usable_times(texts, None, None)), texts, None) if skips else texts
            column = shown_times(texts, None)
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"{path}: column {field.name!r} is {field.type} in the first rows, and not further on: {error}",
            code="ACEP-D016",
            hint="write Parquet: Spark must know the types of columns before it reads them",
        ) from error


def _as_spark_has_it(schema: pa.Schema) -> pa.Schema:
    """Types that Spark has: times of microseconds in UTC, and text where there is nothing but nulls."""
    fields = []
    for field in schema:
        type_ = field.type
        if pa.types.is_timestamp(type_):
            type_ = TIMES
        elif pa.types.is_null(type_) or pa.types.is_time(type_):
            type_ = pa.string()
        fields.append(pa.field(field.name, type_))
    return pa.schema(fields)


LISTED = "path string, modificationTime timestamp, length bigint, content binary"
"""Columns of Spark's source ``binaryFile``; of these only the path is read."""


def read_growing(
    spark: SparkSession,
    folder: str | Path,
    format: str | None = None,  # noqa: A002  (the option's name)
    *,
    at_once: int = AT_ONCE,
    **typed: Any,
) -> DataFrame:
    """Read a folder as a stream: the files that are there, and those that come.

    Parameters
    ----------
    spark : SparkSession
    folder : path
        Which all workers must see under this name; or an address as for ``read_files``. Files count once they are
        there, so they should be moved into it when they are complete; they are taken in the order of their times of
        modification.
    format : str, optional
        ``parquet``, ``csv`` or ``jsonl``. Default: by the files' names.
    at_once : int, default 100,000
        Events in a micro-batch, about: Spark bounds files by their bytes, and the files that are there tell how many
        bytes an event takes. A micro-batch has one file at least; of addresses 64 MiB.
    **typed
        As for ``read_files``.

    Returns
    -------
    DataFrame
        Streaming, with the columns of the files that are there by now; read as ``files.read_files`` does.

    Raises
    ------
    DataError
        What ``find_files`` raises: there must be a file to tell the columns from.
    UsageError
        ``ACEP-S070``: no folder; ``ACEP-S021``: Parquet and text mixed; ``ACEP-S075``: ``at_once`` is below 1;
        ``ACEP-S085``: an address of text where Python reads none.
    """
    if at_once < 1:
        raise UsageError(f"at_once is {at_once}", code="ACEP-S075", hint="at least 1")
    if is_remote(folder) and not _is_stored_text([folder], format):
        stream = spark.readStream.option("maxBytesPerTrigger", str(UNKNOWN)).option("recursiveFileLookup", "true")
        return stream.schema(read_files(spark, [folder], format).schema).parquet(spark_address(folder))
    return EventFiles.in_folder(folder, format, **typed).grow(spark, folder, at_once)


def _local(uri: str) -> str:
    """The path in what Spark calls a file; an object as Python reads it.

    Examples
    --------
    >>> _local("file:///data/a%20b.csv"), _local("s3a://bucket/a%20b.csv")
    ('/data/a b.csv', 's3a://bucket/a b.csv')
    """
    from urllib.parse import unquote, urlsplit

    if is_stored(uri):
        return unquote(uri)
    return unquote(urlsplit(uri).path)
