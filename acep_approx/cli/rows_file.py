"""Files that get rows batch by batch: whole at the end, or each batch as it comes, behind what is there already."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from acep_approx.cli.options.choices import Format
from acep_approx.events.writing.outfile import refusing, whole_file
from acep_approx.events.writing.tables import ParquetRows, csv_header, csv_lines, json_lines

if TYPE_CHECKING:
    import pyarrow as pa


class RowsFile:
    """A file of rows.

    Parameters
    ----------
    files : ExitStack
        Closes it: a whole file takes its name if all went well, else there is none.
    path : Path
    form : Format
        Not a table; with ``grows`` not Parquet.
    grows : bool
        Whether rows are added to what is there, and can be read at once: for a run that may be broken off, and goes on.
    anew : bool
        With ``grows``: whether nothing is kept of what is there.

    Raises
    ------
    UsageError
        ``ACEP-U012``: the file cannot be written; ``ACEP-U025``: another run is writing it.
    """

    def __init__(
        self, files: ExitStack, path: Path, form: Format, *, grows: bool, anew: bool = False
    ) -> None:
        self._files = files
        self._form = form
        self._parquet: ParquetRows | None = None
        self._grows = grows
        with refusing(path):
            self._sink = files.enter_context(_to_grow(path, anew=anew) if grows else whole_file(path))
        self._has_header = form is not Format.CSV or (grows and self._sink.tell() > 0)

    def write(self, table: pa.Table) -> None:
        """Write rows; the first table may be empty, and says which columns there are."""
        if self._form is Format.PARQUET:
            if self._parquet is None:
                self._parquet = ParquetRows(self._sink, table.schema)
                self._files.callback(self._parquet.close)
            self._parquet.write(table)
            return
        if not self._has_header:
            self._sink.write(csv_header(table.column_names))
            self._has_header = True
        if table.num_rows:
            self._sink.write((csv_lines if self._form is Format.CSV else json_lines)(table))
        if self._grows:
            self._sink.flush()


def _to_grow(path: Path, *, anew: bool) -> BinaryIO:
    """A file to write behind what is there; a line that was not written to its end is cut off."""
    if path.exists() and not path.is_file():
        return path.open("wb", buffering=0)
    if anew:
        return path.open("wb")
    sink = path.open("r+b") if path.exists() else path.open("w+b")
    sink.seek(0)
    end = 0
    for line in sink:
        if line.endswith(b"\n"):
            end += len(line)
    sink.seek(end)
    sink.truncate()
    return sink
