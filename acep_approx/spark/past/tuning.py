"""The choices of ``acep tune``, tried at the same time: each is a task of Spark."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from acep_approx.results.tuning import Elsewhere, HowTried, PastTable, Trial, tried
from acep_approx.spark.setup.failures import clear_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acep_approx.events.roles import Roles
    from acep_approx.planning.compiled import CompiledQuery

PARTS = ("first", "last")


def on_spark(spark: SparkSession) -> Elsewhere:
    """Try choices as tasks of Spark.

    Parameters
    ----------
    spark : SparkSession

    Returns
    -------
    callable
        For ``results.tuning.tune``: takes the queries, the past and how they are tried; gives the trials. The past is
        sent to each machine once, as files, which all its workers map into memory: it is held once, not once per task.

    Raises
    ------
    AcepError
        By the callable: what went wrong in a task.
    """

    def try_all(queries: Sequence[CompiledQuery], past: PastTable, how: HowTried) -> Sequence[Trial]:
        with tempfile.TemporaryDirectory() as folder, clear_errors():
            sent = _Sent(f"acep-past-{uuid4().hex}", past.roles)
            for part in PARTS:
                file = Path(folder, sent.name(part))
                _write(getattr(past, part), file)
                spark.sparkContext.addFile(str(file))
            cells = spark.range(0, len(queries), 1, len(queries))
            rows = cells.mapInArrow(_task(queries, sent, how), "cell long, trial string").collect()
        found = {row.cell: _trial(json.loads(row.trial)) for row in rows}
        return [found[cell] for cell in range(len(queries))]

    return try_all


@dataclass(frozen=True)
class _Sent:
    """A past that each machine has as files."""

    prefix: str
    roles: Roles

    def name(self, part: str) -> str:
        return f"{self.prefix}-{part}.arrow"

    def open(self) -> PastTable:
        from pyspark import SparkFiles

        first, last = (pa.ipc.open_file(pa.memory_map(SparkFiles.get(self.name(part)))).read_all() for part in PARTS)
        return PastTable(first, last, self.roles)


def _task(
    queries: Sequence[CompiledQuery], sent: _Sent, how: HowTried
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: numbers in, the choice of each with what it found out."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                cell = len(queries) - 1 - number  # the heaviest first, or all would wait for the task that has it
                trial = tried(queries[cell], sent.open(), how)
                yield pa.RecordBatch.from_pydict({"cell": [cell], "trial": [json.dumps(asdict(trial))]})

    return run


def _write(table: pa.Table, file: Path) -> None:
    """Batch by batch as it is: where batches end may decide what a budget sheds."""
    with pa.ipc.new_file(str(file), table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)


def _trial(fields: dict[str, object]) -> Trial:
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return Trial(**{**fields, **lists})  # type: ignore[arg-type]
