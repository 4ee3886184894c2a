"""Folders of events whose files grow in number, as streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep_approx.errors import UsageError
from acep_approx.events.reading.decoding import SUFFIXES as COMPRESSED
from acep_approx.events.reading.files import SUFFIXES, find_files
from acep_approx.spark.sources.files import common_schema, needs_our_reader, read_batches, read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 64 << 20
"""Bytes of files per micro-batch, and at least one file: the events of a micro-batch wait in the state for the next."""
LISTED = "path string, modificationTime timestamp, length bigint, content binary"
"""Columns of Spark's source ``binaryFile``; of these only the path is read."""


def read_growing(
    spark: SparkSession,
    folder: str | Path,
    format: str | None = None,  # noqa: A002  (the option's name)
    **typed: Any,
) -> DataFrame:
    """Read a folder as a stream: the files that are there, and those that come.

    Parameters
    ----------
    spark : SparkSession
    folder : path
        Which all workers must see under this name. Files count once they are there, so they should be moved into it
        when they are complete; they are taken in the order of their times of modification.
    format : str, optional
        ``parquet``, ``csv`` or ``jsonl``. Default: by the files' names.
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
        ``ACEP-S070``: no folder; ``ACEP-S021``: Parquet and text mixed.
    """
    place = Path(folder)
    if not place.is_dir():
        raise UsageError(
            f"a stream is read from a folder, and {str(folder)!r} is none",
            code="ACEP-S070",
            hint="name the folder that the files come into",
        )
    files = find_files([place], format)
    is_parquet = {file.format for file in files} == {"parquet"}
    known = read_files(spark, [place], format, **typed).schema
    stream = spark.readStream.option("maxBytesPerTrigger", str(AT_ONCE)).option("recursiveFileLookup", "true")
    stream = stream.option("pathGlobFilter", _names(is_parquet=is_parquet))
    where = place.absolute().as_uri()
    if is_parquet and not needs_our_reader(files):
        return stream.schema(known).parquet(where)
    reading = {"format": format} | typed
    schema = common_schema([place], reading)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                yield from read_batches(_local(path), reading, schema)

    return stream.schema(LISTED).format("binaryFile").load(where).select("path").mapInArrow(read, known)


def _names(*, is_parquet: bool) -> str:
    """A pattern for the names of files that are events."""
    endings = [suffix for suffix, kind in SUFFIXES.items() if (kind == "parquet") == is_parquet]
    if not is_parquet:
        endings += [f"{suffix}{packed}" for suffix in endings for packed in COMPRESSED]
    return f"*{{{','.join(endings)}}}"


def _local(uri: str) -> str:
    """The path in what Spark calls a file.

    Examples
    --------
    >>> _local("file:///data/a%20b.csv")
    '/data/a b.csv'
    """
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(uri).path)
