"""One table of the rows that were left out, with the reason of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Ints
from acep_approx.events.columns import to_arrow
from acep_approx.events.late import open_sink
from acep_approx.events.writing.outfile import GrowingFile, OutFile
from acep_approx.ranges import COUNT, check, number_in

REASONS = LATE, UNKNOWN, DUPLICATE, BACKWARDS = ("late", "unknown", "duplicate", "backwards")


class LeftOut:
    """The rows that were left out of a stream.

    Attributes
    ----------
    counts : Counter of str
        How many there were so far, by reason.
    tables : list of pyarrow.Table
        Those that nobody has taken yet.
    """

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.tables: list[pa.Table] = []

    def add(self, data: pa.RecordBatch, places: Ints, reasons: Sequence[str], arrival: Ints) -> None:
        """Take in the rows at some places of a batch; ``arrival`` has the numbers of all rows of the batch."""
        if len(places):
            self.counts.update(reasons)
            self.tables.append(rejected_table(data, places, reasons, arrival))

    def take(self) -> pa.Table:
        """Return the rows since the last call: ``reason``, ``row``, then their columns."""
        tables, self.tables = self.tables, []
        if not tables:
            return rejected_table(pa.RecordBatch.from_pylist([], schema=pa.schema([])), NO_ROWS, [], NO_ROWS)
        return pa.concat_tables(tables, promote_options="permissive")

    def save(self, scope: Scope) -> None:
        """Keep what was left out, and how much."""
        scope.head["counts"] = dict(self.counts)
        for number, table in enumerate(self.tables):
            scope.put(str(number), table)

    def load(self, scope: Scope) -> None:
        """Go on from what ``save`` kept."""
        counts = scope.head["counts"]
        self.counts = Counter({reason: number_in(reason, counts[reason], 0, COUNT) for reason in counts})
        check("reasons", good=set(counts) <= {*REASONS})
        self.tables = [scope.table(str(number)) for number in range(len(scope.arrays))]


NO_ROWS = np.zeros(0, np.int64)


def rejected_table(data: pa.RecordBatch, rows: Ints, reasons: Sequence[str], arrival: Ints) -> pa.Table:
    """Rows that were left out, as a table: the reason, the number of the row, then what stands in it."""
    fixed = []
    for name in ("reason", "row"):
        free = name
        while free in data.schema.names:
            free += "_"
        fixed.append(free)
    some = data.take(to_arrow(rows)).columns if len(rows) or data.num_columns else []
    columns = [pa.array(reasons, pa.string()), to_arrow(arrival[rows]), *some]
    return pa.table(columns, names=[*fixed, *data.schema.names])


@contextmanager
def written(
    file: str | Path | None,
    schema: pa.Schema,
    rejected: Callable[[], pa.Table],
    opens: Callable[[Path], OutFile | GrowingFile] = OutFile,
) -> Iterator[Callable[[], None]]:
    """What takes the rows that were left out so far, so that they do not gather, and writes them to a file.

    Parameters
    ----------
    file : str, Path or None
        JSON lines, CSV or Parquet, as its name says. None: they are not written.
    schema : pyarrow.Schema
        Of the events.
    rejected : callable
        Gives the rows that were left out since it was called last (see ``LeftOut.take``).
    opens : callable
        Makes the file; see ``open_sink``.

    Raises
    ------
    UsageError
        As ``open_sink``.
    """
    sink = None
    if file is not None:
        nothing = rejected_table(pa.RecordBatch.from_pylist([], schema=schema), NO_ROWS, [], NO_ROWS)
        sink = open_sink(Path(file), nothing.schema, opens)

    def take() -> None:
        rows = rejected()
        if sink is not None and rows.num_rows:
            sink.write(rows.select(sink.schema.names))

    try:
        yield take
    finally:
        if sink is not None:
            sink.close()
