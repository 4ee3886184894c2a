"""``acep run RULES``: active rules over events; what they find, write and call."""

from __future__ import annotations

import sys
import time as clock
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from acep_approx.cli.metrics import freeze, tell_events, tell_found
from acep_approx.cli.no_match import SilentOnes
from acep_approx.cli.options.choices import Format
from acep_approx.cli.options.input import RunInputOptions
from acep_approx.cli.options.output import OutputOptions, check_folder, format_of
from acep_approx.cli.options.page import PageRequest
from acep_approx.cli.options.rules import RuleOptions, apart, check_rules, events_between
from acep_approx.cli.process import hide_pandas
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.rules_output import RulesOutput
from acep_approx.cli.summary import say_how_read, say_late, say_malformed, say_unit
from acep_approx.cli.terminal import EventBar, amount, progress_bar, say
from acep_approx.errors import RuleError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from acep_approx.api.rule_set import RuleRun, RuleSet
    from acep_approx.events.source import Source
    from acep_approx.results.explorer.many_queries import GatheredMatches


@dataclass(frozen=True)
class RulesRun:
    """What a run is to do.

    Attributes
    ----------
    text : str
        The file of rules.
    inputs : list of str, or Source
        Where events come from.
    form : Format
        How matches and changes are written.
    is_live : bool
        Whether events are still being written.
    """

    context: typer.Context
    text: str
    inputs: Any
    options: RuleOptions
    source: RunInputOptions
    output: OutputOptions
    form: Format
    quiet: bool
    is_live: bool = False
    page: PageRequest | None = None

    @classmethod
    def of(cls, request: RunRequest) -> RulesRun:
        """What was asked for.

        Raises
        ------
        UsageError
            ``ACEP-U064``: what does not go together; ``ACEP-U013``, ``ACEP-U016`` to ``ACEP-U018``: such files
            cannot be written.
        """
        options, output, page = request.options.rules, request.output, request.page
        check_rules(request.context, output.output)
        grows = options.store is not None
        for name, value in {"--checkpoint-every": options.checkpoint_every, "--finish": options.finish or None}.items():
            if value is not None and not grows:
                raise UsageError(f"{name} is of use with --store only", code="ACEP-U064", hint="add --store FILE")
        form = _form(output, options, grows=grows or request.is_live)
        if request.is_live and form is Format.TABLE:
            form = Format.JSONL  # a table is shown at the end
        how = (form, request.quiet, request.is_live, page)
        job = cls(request.context, request.text, request.inputs, options, request.options.source, output, *how)
        job._check_files()
        events_between(options.checkpoint_every)
        return job

    def _check_files(self) -> None:
        folders = {"matches": self.output.file, "changes": self.options.changes}
        for path in (*folders.values(), self.options.store, self.options.calls):
            check_folder(path)
        for path in folders.values():
            if path is not None and path.exists() and not path.is_dir():
                raise UsageError(
                    f"{str(path)!r} is no folder", code="ACEP-U019", hint="rules write a file for each: name a FOLDER"
                )
        if self.options.calls is not None and format_of(self.options.calls) is not Format.JSONL:
            raise UsageError(
                "calls are written as JSON lines", code="ACEP-U018", hint="name it so: --calls calls.jsonl"
            )


def _form(output: OutputOptions, options: RuleOptions, *, grows: bool) -> Format:
    """How rows are written: as said; else JSON lines to files that grow and to stdout, Parquet to others."""
    if output.file is None and output.format is Format.CSV and options.changes is None:
        raise apart("--format csv on stdout", "rules have different columns: name a folder, -o FOLDER")
    if grows and output.format is Format.PARQUET:
        raise apart("--format parquet with --store", "rows are added to files as they come: use jsonl or csv")
    if output.format is Format.TABLE or (output.format is Format.PARQUET and options.changes is None):
        output.check(output.format, is_expanded=False)
    if output.format is not None:
        return output.format
    if output.file is None:
        return Format.TABLE if sys.stdout.isatty() else Format.JSONL
    return Format.JSONL if grows else Format.PARQUET


def run_rules(job: RulesRun) -> None:
    """Run the rules, put out what comes of them, and say it in numbers.

    Raises
    ------
    AcepError
        The rules or the events are wrong, an action cannot be done, or the store cannot be used.
    """
    hide_pandas()
    from acep_approx.api.rule_set import compile_rules
    from acep_approx.cli.options.places import check_places
    from acep_approx.events.source import open_source
    from acep_approx.query.printer import to_text

    begun = clock.perf_counter()
    rules = compile_rules(job.text)
    check_places(job.context.params, _files_of(rules, job))
    rows = _tables(job.options.table or [])
    source = open_source(job.inputs, **job.source.reading)
    if job.page is not None:
        source.keep()
    is_seen = job.form is not Format.TABLE and job.output.file is None and sys.stdout.isatty()
    with ExitStack() as files:
        gathered = None if job.page is None else _gathered(rules)
        output = RulesOutput(rules, files, job.form, job.output.file, job.options, job.is_live, gathered)
        run = files.enter_context(
            rules.start(
                store=rows,
                at=job.options.store,
                calls=dict.fromkeys(rules.call_names, output.call),
                checkpoint=events_between(job.options.checkpoint_every),
                **job.source.roles,
            )
        )
        before = run.counters
        tell_events(source, lambda: run.counters["events"])
        tell_found(lambda: sum(output.found.copy().values()))
        if before["events"] and rows and not job.quiet:
            say(f"--table plays no role: {job.options.store} has rows already")
        with progress_bar("running", enabled=not (job.quiet or is_seen)) as bar:
            bar.total = source.rows
            _run(run, source, job, output, bar)
        freeze()
        output.end()
        after = run.counters
    sys.stdout.flush()
    if not job.quiet:
        seconds = clock.perf_counter() - begun
        _say(rules, output, {name: after[name] - before[name] for name in after}, before["events"], seconds)
        _say_silent(job, rules, output, None if before["events"] else source)
        if job.options.store is not None and not job.options.finish and rules.waits_for_windows:
            say("matches may wait for windows to close: --finish says that no more events will come")
        _say_left_out(source)
    if job.page is not None and gathered is not None:
        queries = {rule.name: to_text(rule.query) for rule in rules.file.rules if rule.name not in rules.readers}
        job.page.gathered(gathered, job.source, source, queries.get, _done(output))


def _files_of(rules: RuleSet, job: RulesRun) -> dict[str, Path]:
    """The files that are written to folders, by what they hold."""
    ending = (Format.JSONL if job.form is Format.TABLE else job.form).value
    folders = ("matches", job.output.file, rules.file.rules), ("changes", job.options.changes, rules.file.tables)
    return {
        f"{what} of {one.name}": folder / f"{one.name}.{ending}"
        for what, folder, all_of_them in folders
        if folder is not None
        for one in all_of_them
    }


def _say_left_out(source: Source) -> None:
    """Say how the events were read, and which of them were left out."""
    say_how_read(source)
    say_unit(source)
    say_malformed(source.malformed)
    say_late(source.late)


def _gathered(rules: RuleSet) -> GatheredMatches:
    """What gets the matches of each rule, for a page."""
    from acep_approx.results.explorer.many_queries import AskedQuery, GatheredMatches

    text = rules.file.text
    return GatheredMatches({rule.name: AskedQuery(rule.query, text[slice(*rule.span)]) for rule in rules.file.rules})


def _done(output: RulesOutput) -> list[str]:
    """What the rules did, as a section of a page."""
    from acep_approx.pages.shell import facts

    changed = [(f"changes of {name}", f"{number:,}") for name, number in output.changed.items() if number]
    called = [(f"calls of {name}", f"{number:,}") for name, number in output.called.items()]
    fired = [(f"{rule} fired", f"{number:,}") for rule, number in output.fired.items()]
    return ["<h2>What the rules did</h2>", facts([*fired, *changed, *called])] if changed or called else []


def _run(run: RuleRun, source: Source, job: RulesRun, output: RulesOutput, bar: EventBar) -> None:
    for rule, table in run.undelivered.items():
        output.matches(rule, table)
    try:
        for found in run.outputs(source, sort=job.source.sort, skips=True, on_progress=bar.done):
            output.take(found)
        is_end = job.options.store is None or job.options.finish
        output.take(run.finish() if is_end else run.checkpoint())
    except RuleError as error:
        if job.options.store is not None and error.outcome is not None:  # it is in the last checkpoint
            output.take(error.outcome)  # type: ignore[arg-type]
        raise


def _tables(given: list[str]) -> dict[str, str]:
    """The files of ``NAME=FILE``, by name.

    Raises
    ------
    UsageError
        ``ACEP-U076``: it is not that, or there are two for a table.
    """
    found: dict[str, str] = {}
    for one in given:
        name, is_there, file = one.partition("=")
        if not (is_there and name and file) or name in found:
            what = f"--table {one} names a table again" if name in found else f"--table {one} is not NAME=FILE"
            raise UsageError(what, code="ACEP-U076", hint="write --table room=rooms.parquet, once for each table")
        found[name] = file
    return found


def _say(rules: RuleSet, output: RulesOutput, happened: dict[str, int], before: int, seconds: float) -> None:
    earlier = f", {amount(before, 'event')} of an earlier run left out" if before else ""
    number = amount(len(rules.file.rules), "rule")
    say(f"{amount(happened['events'], 'event')} read{earlier}, {number}; {seconds:.2f} s")
    parts = [
        f"{rule} {number:,}" + (f" ({output.fired[rule]:,} fired)" if rule in output.fired else "")
        for rule, number in output.found.items()
    ]
    _say_each(amount(sum(output.found.values()), "match"), parts)
    changed = {name: number for name, number in output.changed.items() if number}
    _say_each(amount(sum(changed.values()), "change"), [f"{name} {number:,}" for name, number in changed.items()])
    if happened["conflicts"]:
        say(f"{amount(happened['conflicts'], 'conflict')}: values written again, another way, for the same event")
    if happened["without_row"]:
        say(f"{amount(happened['without_row'], 'write')} of rows that were not there")
    if output.called:
        _say_each(amount(sum(output.called.values()), "call"), [f"{n} {k:,}" for n, k in output.called.items()])


def _say_silent(job: RulesRun, rules: RuleSet, output: RulesOutput, source: Source | None) -> None:
    """Say which rules have no match, and of the first ones why, as far as the events tell."""
    from acep_approx.query.printer import to_text

    queries = {rule.name: rule.query for rule in rules.file.rules}
    silent = [name for name in queries if not output.found[name]]
    reasons = dict.fromkeys(rules.readers, "its conditions read tables, which acep why does not know")
    ones = SilentOnes(silent, "rule", lambda name: to_text(queries[name]), job.context, job.inputs, reasons)
    ones.say(source, sort=job.source.sort, **job.source.roles)


def _say_each(total: str, parts: list[str]) -> None:
    say(f"{total}: {', '.join(parts)}" if parts else total)
