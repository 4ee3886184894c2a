"""``acep run --queries`` over events that are still being written."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.metrics import tell_events
from acep_approx.cli.options.live import apart
from acep_approx.cli.options.queries import OUTPUTS, QueriesOptions
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.query_folder import Folder, read_folder
from acep_approx.cli.runs.live import LOGS, LiveJob, asked_of, put_out, say_going_on, say_tombstones
from acep_approx.cli.runs.live_progress import ends_cleanly
from acep_approx.cli.runs.queries import Taken, alone_in, gathered_of, queries_in_words, say_found_by
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.summary import say_dropped, say_malformed
from acep_approx.cli.terminal import amount, said, say

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from acep_approx.api.live_run import LiveRun


def run_live_queries(request: RunRequest) -> None:
    """Run the queries of a folder: put out what is found as it comes, write checkpoints, and say what came of it.

    Parameters
    ----------
    request : RunRequest

    Raises
    ------
    AcepError
        As ``run_queries``; ``ACEP-U138``: what does not go with live input.
    typer.Exit
        With 130 after Ctrl-C; with the code of the first query that was left out.
    """
    hide_pandas()
    job, options, page = LiveJob.of(request), request.options.many, request.page
    if not job.is_pushed or OUTPUTS.get(job.output.output) == "counts":
        what = "--on-late skip" if OUTPUTS.get(job.output.output) != "counts" else "--output count"
        raise apart(what, "live input and --queries", "choose matches or points; late events: --reorder '5 s'")
    begun = clock.perf_counter()
    assert options.queries is not None, "it was checked"
    key_idle = request.options.keys.key_idle
    folder = _folder(options.queries, options, job, key_idle)
    by_query: Counter[str] = Counter()
    with said(LOGS):
        live_run = folder.desk.follow(
            job.place,
            on_schema=_leaves_out(folder, options),
            also_asked=asked_of(job),
            **job.checkpointing,
            **job.reading,
        )
        with closing(live_run), ends_cleanly(live_run.stop):
            tell_events(live_run.source, lambda: live_run.source.given, lambda: folder.desk.late_count)
            gathered = None if page is None else gathered_of(folder)
            if page is not None:
                live_run.source.keep()
            results = put_out(job, live_run, _tables(live_run, Taken(by_query, gathered)))
            if not job.quiet:
                read = f"{amount(live_run.source.given, 'event')} read, {queries_in_words(len(folder.desk))}"
                say(f"{read}; {clock.perf_counter() - begun:.2f} s")
                say_found_by(results, by_query, job.output.output)
                if folder.desk.late_count:
                    say(f"{amount(folder.desk.late_count, 'event')} left out that came late")
                say_dropped(folder.desk.keys_dropped, key_idle)
                say_malformed(live_run.source.malformed)
                say_tombstones(live_run.source)
                say_going_on(job)
            if page is not None and gathered is not None:
                gathered.late = folder.desk.late_count
                kept = live_run.source.kept
                before = folder.desk.arrived - (kept.seen if kept else 0)
                page.gathered(gathered, job.source, live_run.source, alone_in(folder, options), before=before)
    if folder.wrong:
        say(f"{queries_in_words(len(folder.wrong))} left out, as reported above")
        raise typer.Exit(folder.exit_code)


def _folder(path: Path, options: QueriesOptions, job: LiveJob, key_idle: str | None) -> Folder:
    more: dict[str, Any] = {"reorder": options.reorder, "stamp": options.stamp, "key_idle": key_idle}
    folder = read_folder(path, strict=options.strict, output=OUTPUTS[job.output.output], **job.source.roles, **more)
    folder.tell_wrong()
    return folder


def _leaves_out(folder: Folder, options: QueriesOptions) -> Any:
    """What takes queries out that do not fit the columns, once these are known."""

    def on_schema(schema: pa.Schema) -> None:
        misfits: list[str] = []

        def misfit(id_: str, error: Any) -> None:
            misfits.append(id_)
            folder.misfit(id_, error)

        folder.desk.check(schema, misfit)
        if options.strict:
            folder.refuse()
        for id_ in misfits:
            if id_ in folder.desk:
                folder.desk.remove(id_, cascade=True)
        folder.tell_wrong()

    return on_schema


def _tables(live_run: LiveRun, taken: Taken) -> Iterator[pa.Table]:
    """The results of each batch as one table; those of no events are left out, as they show no columns of a query."""
    for found in live_run.results():
        taken.take(found)
        yield found.to_arrow()
