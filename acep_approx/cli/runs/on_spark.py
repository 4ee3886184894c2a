"""``acep run --spark``: the same in many processes, over files or over a stream."""

from __future__ import annotations

from typing import Any

from acep_approx.cli.on_spark.batch import OnSpark, run_batch
from acep_approx.cli.options.spark import OUTPUTS
from acep_approx.cli.runs.query_run import QueryRun
from acep_approx.cli.runs.request import RunRequest


def run_on_spark(job: QueryRun, request: RunRequest) -> None:
    """Run a query on Spark.

    Raises
    ------
    AcepError
        As a run here; what goes wrong in a worker too.
    """
    options = request.options
    revisions, malformed = options.revisions, {"on_malformed": options.source.on_malformed.value}
    more: dict[str, Any] = {"bind": job.output.bound, "id": revisions.id, "watermark": revisions.watermark}
    more |= {"key_idle": job.key_idle, "shards": options.spark.shards, "output": OUTPUTS[job.output.output]}
    more |= job.budget.on_spark() | malformed
    reading, roles = options.source.on_spark | malformed, options.source.roles
    asked = OnSpark(job.query, job.inputs, options.spark.master, reading, roles | more, job.quiet)
    if options.stream.stream:
        from acep_approx.cli.on_spark.stream import Places, run_stream

        places = Places.of(job.inputs, job.output.file, options.stream.checkpoint, options.source.late)
        run_stream(asked, places, options.stream, job.output.metrics_port)
    else:
        run_batch(asked, job.output, job.form)
