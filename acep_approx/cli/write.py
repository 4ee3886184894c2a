"""Tables of results on their way out: cut at a limit, counted, and written batch by batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.cli.options.output import COMPRESSED_FILES, SUFFIXES, Format, format_of
from acep_approx.cli.terminal import rows_out, tell
from acep_approx.events.counts import AT_LEAST, is_at_least, said
from acep_approx.events.reading.widening import stacked
from acep_approx.events.writing.outfile import GrowingFile, check_name, refusing, whole_file
from acep_approx.events.writing.tables import (
    ROWS,
    ParquetRows,
    csv_header,
    csv_lines,
    json_lines,
    plain_text,
    with_times_as_text,
)

if TYPE_CHECKING:
    from acep_approx.budget.set_ledger import SharedRecord
    from acep_approx.matching.tracing.compressed import Compressed

LONGEST_LIST = 5
"""Items of a list that a table on the terminal shows."""


COUNTED = ["errors", "matches"]
"""The columns of ``--output count``."""
OTHER_FILES = 256
"""Files that a run may have open beside those of its results."""
WIDE = 2**63
"""Counts from here on do not fit 64 bits; they are written as decimals."""


class Results:
    """A stream of tables, cut at a limit and counted on the way.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        The first one may be empty; it shows the columns.
    limit : int or None
        Most rows.
    is_changelog : bool
        Whether results are taken back, as their column ``op`` says.

    Attributes
    ----------
    rows : int
        Rows passed on so far.
    by_errors : Counter
        These rows by number of errors.
    is_cut : bool
        Whether there are more rows than ``limit``.
    matches : int
        Matches that these rows count, where they are counts.
    came, gone : int
        Of a changelog: results so far, and those of them that were taken back.
    remaining : Counter
        The others by number of errors.
    """

    def __init__(self, tables: Iterable[pa.Table], limit: int | None, *, is_changelog: bool = False) -> None:
        self._tables = tables
        self._limit = limit
        self._is_changelog = is_changelog
        self.rows = 0
        self.by_errors: Counter[int] = Counter()
        self.is_cut = False
        self.matches = self.came = self.gone = 0
        self.remaining: Counter[int] = Counter()

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            left = table.num_rows if self._limit is None else self._limit - self.rows
            self.is_cut = table.num_rows > left
            part = table.slice(0, left) if self.is_cut else table
            self.rows += part.num_rows
            if part.column_names[:2] == COUNTED:
                self.matches += sum(part.column("matches").to_pylist())
            if "errors" in part.column_names:
                for item in pc.value_counts(part.column("errors")).to_pylist():
                    self.by_errors[item["values"]] += item["counts"]
            if self._is_changelog and part.num_rows:
                self.came += self._changed(part, "+I", 1)
                self.gone += self._changed(part, "-D", -1)
            yield part
            if self.is_cut:
                return

    def _changed(self, part: pa.Table, op: str, sign: int) -> int:
        mine = part.column("errors").filter(pc.equal(part.column("op"), op))
        for item in pc.value_counts(mine).to_pylist():
            self.remaining[item["values"]] += sign * item["counts"]
        return len(mine)


def write(
    results: Iterable[pa.Table],
    format: Format,  # noqa: A002
    path: Path | None,
    *,
    opens: Callable[[Path], GrowingFile] | None = None,
) -> None:
    """Write tables as JSON lines, CSV or Parquet.

    Parameters
    ----------
    results : iterable of pyarrow.Table
        All of one schema.
    format : Format
        Not ``Format.TABLE``.
    path : Path or None
        None: standard output.
    opens : callable, optional
        Opens a file that has its name from the beginning, for who reads it while it is written; rows go behind what it
        holds already. Default: the file takes its name when all has been written.

    Raises
    ------
    UsageError
        ``ACEP-U012``: the file cannot be written; ``ACEP-U025``: another run is writing it.

    Complexity: memory for the largest of the tables.
    """
    with _destination(path, opens) as (sink, is_empty):
        if format is Format.PARQUET:
            _write_parquet(results, sink)
        else:
            rows = _TextRows(sink, is_csv=format is Format.CSV, has_header=not is_empty)
            for table in results:
                rows.write(table)


class _TextRows:
    """Rows as JSON lines or CSV, which can be read at once; the first table may be empty, and shows the columns."""

    def __init__(self, sink: BinaryIO, *, is_csv: bool, has_header: bool) -> None:
        self._sink = sink
        self._lines = csv_lines if is_csv else json_lines
        self._needs_header = is_csv and not has_header

    def write(self, table: pa.Table) -> None:
        if self._needs_header:
            self._sink.write(csv_header(table.column_names))
            self._needs_header = False
        for start in range(0, table.num_rows, ROWS):
            self._sink.write(self._lines(table.slice(start, ROWS)))
        self._sink.flush()


def is_table(path: Path | None) -> bool:
    """Whether the name of a report asks for a table of rows."""
    return path is not None and path.suffix.lower() in SUFFIXES


def write_report(record: SharedRecord, path: Path) -> None:
    """Write what came of a budget that queries, or rules, share: as a page, or as a table if the name says so.

    Raises
    ------
    UsageError
        ``ACEP-U012``: the file cannot be written.
    """
    from acep_approx.pages.budget.shared import write_shared_report

    if not is_table(path):
        write_shared_report(record, path)
        return
    write([pa.Table.from_pylist(record.rows())], format_of(path), path)


class RowsFiles:
    """Files of rows in a folder, one for each of several things; it is made if it is not there.

    Parameters
    ----------
    folder : Path
    form : Format
        Not ``Format.TABLE``.
    opener : callable
        Gives for a name what opens its file, as ``write`` takes it.
    number : int
        How many files there will be: they are open at the same time.

    Raises
    ------
    UsageError
        ``ACEP-U012``: a file cannot be written; ``ACEP-U025``: another run is writing it.
    """

    def __init__(
        self, folder: Path, form: Format, opener: Callable[[str], Callable[[Path], GrowingFile] | None], number: int
    ) -> None:
        self._form, self._opener = form, opener
        self._files = ExitStack()
        self._open: dict[str, RowsFile] = {}
        _let_open(number)
        with refusing(folder):
            folder.mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        self._files.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._files.__exit__(*error)

    def open(self, name: str, path: Path) -> RowsFile:
        """Return the file of a name, which is opened when it is first asked for."""
        if name not in self._open:
            sink, is_empty = self._files.enter_context(_destination(path, self._opener(name)))
            self._open[name] = RowsFile(self._files, sink, self._form, is_empty=is_empty)
        return self._open[name]


def _let_open(files: int) -> None:
    """Let this process have more files open at the same time, as far as the system allows it."""
    try:
        from resource import RLIMIT_NOFILE, getrlimit, setrlimit
    except ImportError:  # not on Windows, which has no such limit
        return
    soft, hard = getrlimit(RLIMIT_NOFILE)
    wanted = files + OTHER_FILES if hard < 0 else min(files + OTHER_FILES, hard)
    if 0 <= soft < wanted:
        setrlimit(RLIMIT_NOFILE, (wanted, hard))


def _write_parquet(results: Iterable[pa.Table], sink: BinaryIO) -> None:
    tables = iter(results)
    first = next(tables, pa.table({}))
    rows = ParquetRows(sink, first.schema)
    for table in chain([first], tables):
        rows.write(table)
    rows.close()


class RowsFile:
    """A file of rows.

    Parameters
    ----------
    files : ExitStack
        Ends what is written to it.
    sink : binary file
    form : Format
        Not a table.
    is_empty : bool
        Whether nothing is in it yet: then CSV begins with a header.
    """

    def __init__(self, files: ExitStack, sink: BinaryIO, form: Format, *, is_empty: bool) -> None:
        self._files, self._sink = files, sink
        self._rows: ParquetRows | _TextRows | None = None
        if form is not Format.PARQUET:
            self._rows = _TextRows(sink, is_csv=form is Format.CSV, has_header=not is_empty)

    @classmethod
    def at(cls, files: ExitStack, path: Path, form: Format, *, grows: bool, anew: bool = False) -> Self:
        """Open the file of a path.

        Parameters
        ----------
        files : ExitStack
            Closes it: a whole file takes its name if all went well, else there is none.
        path : Path
        form : Format
            Not a table; with ``grows`` not Parquet.
        grows : bool
            Whether rows are added to what is there, and can be read at once: for a run that may be broken off, and goes
            on.
        anew : bool
            With ``grows``: whether nothing is kept of what is there.

        Raises
        ------
        UsageError
            ``ACEP-U012``: the file cannot be written; ``ACEP-U025``: another run is writing it.
        """
        with refusing(path):
            sink = files.enter_context(_to_grow(path, anew=anew) if grows else whole_file(path))
        return cls(files, sink, form, is_empty=not (grows and form is Format.CSV and sink.tell() > 0))

    def write(self, table: pa.Table) -> None:
        """Write rows; the first table may be empty, and says which columns there are."""
        if self._rows is None:
            self._rows = ParquetRows(self._sink, table.schema)
            self._files.callback(self._rows.close)
        self._rows.write(table)


def _to_grow(path: Path, *, anew: bool) -> BinaryIO:
    """A file to write behind what is there; a line that was not written to its end is cut off."""
    check_name(path, may_be_stored=False)
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


def count_table(counts: dict[int, int]) -> pa.Table:
    """Numbers of matches by number of errors, as ``--output count`` shows them."""
    return with_at_least({"errors": pa.array(counts.keys(), pa.int64())}, counts.values())


def with_at_least(columns: dict[str, Any], counts: Iterable[int]) -> pa.Table:
    """A table with numbers of matches; where one of them may be too small, a column says of which."""
    totals = list(counts)
    wide = pa.decimal128(38) if max(totals, default=0) >= WIDE else pa.int64()
    capped = [is_at_least(total) for total in totals]
    beside = {AT_LEAST: pa.array(capped)} if any(capped) else {}
    return pa.table({**columns, "matches": pa.array(totals, wide), **beside})


def write_compressed(compressed: Compressed, folder: Path) -> Results:
    """Write hits and links to two Parquet files of a folder; it is made if it is not there.

    Raises
    ------
    UsageError
        ``ACEP-U012``: they cannot be written there; ``ACEP-U025``: another run is writing there.
    """
    with suppress(OSError):  # told when a file cannot be written
        folder.mkdir(exist_ok=True)
    results = Results([compressed.hits], None)
    hits, links = (folder / name for name in COMPRESSED_FILES)
    with _destination(hits) as (to_hits, _), _destination(links) as (to_links, _):  # both at once: they belong together
        _write_parquet(results, to_hits)
        _write_parquet([compressed.links], to_links)
    return results


@contextmanager
def _destination(
    path: Path | None, opens: Callable[[Path], GrowingFile] | None = None
) -> Iterator[tuple[BinaryIO, bool]]:
    """Standard output, or a file; and whether nothing is in it yet."""
    if path is None:
        yield rows_out(), True
        return
    with ExitStack() as stack:
        with refusing(path):
            if opens is None:
                place = stack.enter_context(whole_file(path)), True
            else:
                file = opens(path)
                stack.callback(file.finish)
                place = file.sink, file.is_empty
        yield place


def print_table(results: Iterable[pa.Table], title: str) -> None:
    """Print all rows on stdout as a table for people.

    Parameters
    ----------
    results : iterable of pyarrow.Table
        Of few rows: they are gathered first.
    title : str
        Printed where there are no rows: what was looked for.
    """
    from rich.table import Table

    from acep_approx.cli.tables import show

    gathered = [table for table in results if table.num_rows]
    if not gathered:
        tell(f"no {title}")
        return
    found = stacked(gathered)
    shown, cells, whole = Table(header_style="bold"), [], []
    for number, (name, column) in enumerate(zip(found.column_names, found.columns, strict=True)):
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        shown.add_column(name, justify="right" if is_number else "left")
        cells.append(_cells(name, column, found))
        whole += [number] if is_number or pa.types.is_temporal(column.type) else []
    for row in zip(*cells, strict=True):
        shown.add_row(*row)
    names = found.column_names
    end = names.index("end") if "end" in names else len(names)
    events = [number for number, name in enumerate(names) if "." in name and number > end]
    show(shown, whole, events=[end, *events] if events else ())


def _cells(name: str, column: pa.ChunkedArray, table: pa.Table) -> list[str]:
    """The texts of one column; a variable whose event is missing says so."""
    texts: list[Any]
    values = with_times_as_text(column.combine_chunks())
    if pa.types.is_list(values.type) and name != "missing":
        lists = values.to_pylist()  # the first few items, and how many there are
        more = [f", ... ({len(items)})" if items and len(items) > LONGEST_LIST else "" for items in lists]
        texts = [
            None if items is None else ", ".join(map(_item_text, items[:LONGEST_LIST])) + rest
            for items, rest in zip(lists, more, strict=True)
        ]
    elif pa.types.is_struct(values.type):
        texts = [None if value is None else _item_text(value) for value in values.to_pylist()]
    else:
        texts = plain_text(values, ", ").to_pylist()
    if name == "matches" and AT_LEAST in table.column_names:
        numbers = zip(values.to_pylist(), table.column(AT_LEAST).to_pylist(), strict=True)
        texts = [said(int(number)) if is_capped else str(number) for number, is_capped in numbers]
    has_names = "missing" in table.column_names and pa.types.is_list(table.schema.field("missing").type)
    missing = table.column("missing").to_pylist() if has_names else [None] * len(texts)
    variable = name.partition(".")[0]  # of wide columns the first one says it
    before = table.column_names[: table.column_names.index(name)]
    says = not any(other.startswith(f"{variable}.") for other in before)
    return [
        "(missing)" if says and variable in (gone or ()) and not text else "-" if text is None else text
        for text, gone in zip(texts, missing, strict=True)
    ]


def _item_text(item: Any) -> str:
    return json.dumps(item, ensure_ascii=False, default=str) if isinstance(item, dict) else str(item)
