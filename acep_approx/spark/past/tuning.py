"""The choices of ``acep tune``, tried at the same time: each is a task of Spark."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from acep_approx.results.tuning import Elsewhere, HowTried, PastTable, Trial, tried
from acep_approx.spark.setup.failures import clear_errors
from acep_approx.spark.setup.kinds import send_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acep_approx.events.roles import Roles
    from acep_approx.planning.compiled import CompiledQuery


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
            files = []
            for table in (past.first, past.last):
                files.append(f"acep-past-{uuid4().hex}.arrow")
                place = str(Path(folder, files[-1]))
                with pa.ipc.new_file(place, table.schema) as writer:
                    for batch in table.to_batches():  # as it is: where batches end may decide what a budget sheds
                        writer.write_batch(batch)
                send_file(spark, place)
            cells = spark.range(0, len(queries), 1, len(queries))
            rows = cells.mapInArrow(_task(queries, files, past.roles, how), "cell long, trial string").collect()
        found = {}
        for row in rows:
            fields = json.loads(row.trial)
            lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
            found[row.cell] = Trial(**fields | lists)
        return [found[cell] for cell in range(len(queries))]

    return try_all


def _task(
    queries: Sequence[CompiledQuery], files: Sequence[str], roles: Roles, how: HowTried
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: numbers in, the choice of each with what it found out; each machine has the past as files."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import SparkFiles

        for batch in batches:
            for number in batch.column(0).to_pylist():
                first, last = (pa.ipc.open_file(pa.memory_map(SparkFiles.get(file))).read_all() for file in files)
                cell = len(queries) - 1 - number  # the heaviest first, or all would wait for the task that has it
                trial = tried(queries[cell], PastTable(first, last, roles), how)
                yield pa.RecordBatch.from_pydict({"cell": [cell], "trial": [json.dumps(asdict(trial))]})

    return run
