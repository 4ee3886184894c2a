"""``acep run`` over events that are still being written: results go out as they come, and a stop is no end."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar

from acep_approx.cli.metrics import tell_events, tell_query, tell_results
from acep_approx.cli.no_match import found_nothing, say_no_match_so_far
from acep_approx.cli.options.choices import Format, OnLate, ResultKind
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.live import LiveOptions, plainly
from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.options.page import PageRequest
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.runs.live_progress import Progress, ends_cleanly
from acep_approx.cli.runs.query_run import QueryRun
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.revised import page_of_remaining
from acep_approx.cli.runs.revised_summary import Changes, facts_of, say_changes, say_holding, say_rows
from acep_approx.cli.summary import SINGULAR, say_dropped, say_found, say_how_read, say_malformed, say_unit
from acep_approx.cli.terminal import amount, rows_out, said, say

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from acep_approx.api.live_run import LiveRun
    from acep_approx.cli.write import Results
    from acep_approx.events.live.source import LiveSource

LOGS = "acep_approx.live"
OUTPUTS = {ResultKind.MATCHES: "matches", ResultKind.POINTS: "points", ResultKind.PARTIAL: "partial"}
"""What is pushed through a matcher, in the words of ``Query.matcher``; the rest is counted or joined at the end."""


@dataclass(frozen=True)
class LiveJob:
    """What a run is to do, after all checks.

    Attributes
    ----------
    counts_events : bool
        Whether the run knows by their number which events it has seen, so that they must stand in one file.
    """

    place: str
    live: LiveOptions
    checkpoint: Path | None
    checkpoint_every: str | None
    source: RunInputOptions
    output: OutputOptions
    finish: bool = False
    quiet: bool = False
    counts_events: bool = False

    @classmethod
    def of(cls, request: RunRequest) -> LiveJob:
        """What was asked for, in options of several groups."""
        options = request.options
        return cls(
            request.inputs[0],
            options.live,
            options.stream.checkpoint,
            options.rules.checkpoint_every,
            options.source,
            request.output,
            finish=options.rules.finish,
            quiet=request.quiet,
            counts_events=options.rules.store is not None,
        )

    @property
    def form(self) -> Format:
        """How results are written."""
        return self.output.form()

    @property
    def is_pushed(self) -> bool:
        """Whether what is asked for can be pushed through a matcher, so that checkpoints can be written."""
        return self.output.output in OUTPUTS and self.source.on_late is OnLate.REFUSE

    @property
    def reading(self) -> dict[str, Any]:
        """How events are read, in the words of ``events.follow``."""
        ours = {"until_idle": self.live.until_idle, "kafka": self.live.kafka_option or ()}
        return {name: value for name, value in self.source.reading.items() if name not in ("on_late", "late")} | ours

    @property
    def checkpointing(self) -> dict[str, Any]:
        """How it lasts, in the words of ``Checkpointing``."""
        every = {} if self.checkpoint_every is None else {"checkpoint_every": self.checkpoint_every}
        return {"checkpoint": self.checkpoint, "finish": self.finish, **every}


class Job(Protocol):
    """What a run over any input is to do: a dataclass, too."""

    @property
    def inputs(self) -> Any:
        """Where events come from: names, or a Source."""
        ...

    @property
    def source(self) -> RunInputOptions:
        """How they are read."""
        ...


AnyJob = TypeVar("AnyJob", bound=Job)


def over(request: RunRequest, job: AnyJob, run: Callable[[AnyJob], None], *, is_in_order: bool = True) -> None:
    """Do a job over its inputs, or, where they are live, over these as over any others, to their end.

    Parameters
    ----------
    request : RunRequest
        Says whether they are live.
    job : dataclass
    run : callable
        Does it.
    is_in_order : bool
        Whether events must come in order of time.
    """
    if request.is_live:
        _run_opened(LiveJob.of(request), job, run, is_in_order=is_in_order)
    else:
        run(job)


def _run_opened(live: LiveJob, job: AnyJob, run: Callable[[AnyJob], None], *, is_in_order: bool) -> None:
    hide_pandas()
    from acep_approx.events.live.source import follow
    from acep_approx.events.writing.outfile import GrowingFile

    reading = live.reading | {"is_in_order": is_in_order, "is_one_file": live.counts_events}
    if is_in_order:
        reading |= {"on_late": job.source.on_late.value, "late": job.source.late}
    with said(LOGS):
        source = follow(live.place, opens=GrowingFile, **reading)
        is_shown = live.quiet or sys.stderr.isatty()  # there a bar moves
        source.pace.on_border = Progress(source, str, quiet=is_shown)
        with closing(source), ends_cleanly(source.stop):
            left = plainly(job.source, late=None if is_in_order else job.source.late)
            run(replace(job, inputs=source, source=left))  # type: ignore[type-var]  # it is a dataclass
            if not live.quiet:
                say_tombstones(source)


def is_pushed(request: RunRequest, asked: QueryRun) -> bool:
    """Whether a run of one query is pushed through a matcher, so that it can go on after a stop."""
    return request.is_live and LiveJob.of(request).is_pushed and not asked.is_within_budget


def run_live(asked: QueryRun, request: RunRequest) -> None:
    """Run one query: put out what is found as it comes, write checkpoints, and say what came of it.

    Parameters
    ----------
    asked : QueryRun
    request : RunRequest

    Raises
    ------
    AcepError
        As a run over other events; see ``Query.follow``.
    typer.Exit
        With 130 after Ctrl-C.
    """
    hide_pandas()
    from acep_approx.api.live_run import Checkpointing, follow_query

    begun, job, revisions = clock.perf_counter(), LiveJob.of(request), asked.revisions
    options = {"merge": asked.merge, "key_idle": asked.key_idle, **({} if revisions is None else revisions.header())}
    given = {name: value for name, value in options.items() if value is not None}
    given |= {"output": OUTPUTS[job.output.output], "bind": job.output.bound, **job.source.roles}
    reading = job.reading | ({"late": job.source.late} if job.source.late is not None else {})
    with said(LOGS):
        checkpointing = Checkpointing(**job.checkpointing)
        live_run = follow_query(asked.query, job.place, checkpointing, reading, given, also_asked=asked_of(job))
        with closing(live_run), ends_cleanly(live_run.stop):
            if asked.page is not None:
                live_run.source.keep()
            _tell(live_run)
            changes = Changes() if revisions is not None and revisions.is_changelog else None
            results = put_out(job, live_run, live_run.results(), changes)
            if not job.quiet:
                _say(job, live_run, results, changes, clock.perf_counter() - begun, asked.key_idle)
            if asked.page is not None:
                _write_page(asked, asked.page, live_run, changes)


def _tell(live_run: LiveRun) -> None:
    """Tell what is done, to those who ask."""
    from acep_approx.revisions.matcher import RevisedMatcher

    target: Any = live_run.runs
    if isinstance(target.matcher, RevisedMatcher):
        tell_events(live_run.source, lambda: target.matcher.rows, lambda: target.matcher.revisions.late)
    else:
        tell_query(live_run.source, lambda: target.matcher.progress)


def _write_page(asked: QueryRun, page: PageRequest, live_run: LiveRun, changes: Changes | None) -> None:
    """Make the page of what came since the run began, as if the stream ended here."""
    from acep_approx.revisions.matcher import RevisedMatcher

    target: Any = live_run.runs
    source, matcher = live_run.source, target.matcher
    seen = source.kept.seen if source.kept else 0
    if isinstance(matcher, RevisedMatcher):
        facts = facts_of(matcher, changes or Changes())
        page_of_remaining(asked, source, facts, before=matcher.rows - seen, partitions=target.partitions)
        return
    before = matcher.progress.events - seen
    more = {"bind": asked.output.bound, "key_idle": asked.key_idle, **asked.source.roles}
    page.write(asked.query.match(source.again(before), **more))


def asked_of(job: LiveJob) -> dict[str, Any]:
    """What must be the same for a run to go on: where its results go, and in which form."""
    where = None if job.output.file is None else str(job.output.file)
    return {"-o": where, "--format": job.form.value, "--output": job.output.output.value}


def put_out(job: LiveJob, live_run: LiveRun, tables: Iterable[pa.Table], changes: Changes | None = None) -> Results:
    """Write results as they come; gives numbers of them, and ``changes`` counts those that are taken back."""
    from acep_approx.cli.write import Results

    results = Results(tables, job.output.limit)
    tell_results(results, are_matches=job.output.output is ResultKind.MATCHES and changes is None)
    thing = SINGULAR[job.output.output]
    live_run.on_border = Progress(live_run.source, lambda: amount(results.rows, thing), quiet=job.quiet)
    if live_run.goes_on and not job.quiet:
        say(f"going on from the checkpoint in {job.checkpoint}")
    with ExitStack() as files:
        sink, is_begun = _sink(job, live_run, files)
        counted = results if changes is None else changes.counted(results)
        _write(counted, sink, is_csv=job.form is Format.CSV, is_begun=is_begun)
    return results


def _sink(job: LiveJob, live_run: LiveRun, files: ExitStack) -> tuple[BinaryIO, bool]:
    """Where results go, and whether it holds some already."""
    from acep_approx.events.writing.outfile import refusing

    if job.output.file is None:
        return rows_out(), False
    with refusing(job.output.file):
        file = live_run.outputs.opener("results")(job.output.file)
    files.callback(file.finish)
    return file.sink, not file.is_empty


def _write(tables: Iterable[pa.Table], sink: BinaryIO, *, is_csv: bool, is_begun: bool) -> None:
    from acep_approx.events.writing.tables import csv_header, csv_lines, json_lines

    lines = csv_lines if is_csv else json_lines
    for table in tables:
        if is_csv and not is_begun:
            sink.write(csv_header(table.column_names))
        is_begun = True
        if table.num_rows:
            sink.write(lines(table))
        sink.flush()


def _say(
    job: LiveJob,
    live_run: LiveRun,
    results: Results,
    changes: Changes | None,
    seconds: float,
    key_idle: str | None = None,
) -> None:
    from acep_approx.revisions.matcher import RevisedMatcher

    matcher, thing = live_run.runs.matcher, SINGULAR[job.output.output]  # type: ignore[attr-defined]
    say_how_read(live_run.source)
    if isinstance(matcher, RevisedMatcher):
        say_rows(matcher, job.source.late, seconds)
        say_changes(results, changes or Changes(), thing)
        say_holding(matcher)
    else:
        say(f"{amount(live_run.source.given, 'event')} read; {seconds:.2f} s")
        say_found(results, thing)
        without = matcher.progress.without_key
        if without:
            say(f"{amount(without, 'event')} left out: no value for the key")
        if matcher.pipeline is not None:
            say_dropped(matcher.pipeline.stream.keys_dropped, key_idle)
    say_unit(live_run.source)
    say_malformed(live_run.source.malformed)
    say_tombstones(live_run.source)
    if found_nothing(results, job.output.output) and not live_run.goes_on:
        say_no_match_so_far(job.place)
    say_going_on(job)
    if job.checkpoint is not None and not job.finish and getattr(matcher, "waits_until", None) is not None:
        say("matches may wait for windows to close: --finish says that no more events will come")


def say_going_on(job: LiveJob) -> None:
    """Say what a checkpoint is for."""
    if job.checkpoint is not None and not job.finish:
        say(f"the same command goes on from the checkpoint in {job.checkpoint}")


def say_tombstones(source: LiveSource) -> None:
    """Say how many messages had no value, if there were any."""
    if source.tombstones:
        say(f"{amount(source.tombstones, 'message')} left out: no value (tombstones)")
