"""``acep run RULES``: active rules over events; what they find, write and call."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.cli.metrics import tell, tell_events
from acep_approx.cli.no_match import say_silent
from acep_approx.cli.options.output import SHOWN, Format, check_folder, format_of, is_topic
from acep_approx.cli.options.together import RULES, not_with_rules, refuse
from acep_approx.cli.runs.page import PageRequest
from acep_approx.cli.runs.request import RunRequest
from acep_approx.cli.runs.run import ProgramRun
from acep_approx.cli.runs.spending import SavingMany, check_budget, home_of
from acep_approx.cli.summary import say_how_read, say_left_out, say_needed, say_unclosed
from acep_approx.cli.terminal import amount, rows_out, say
from acep_approx.cli.terminal import tell as print_lines
from acep_approx.errors import ManyMatchesWarning, RuleError, UsageError
from acep_approx.events.live.kafka_address import parse_target

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.budget.rules_ledger import RulesRecord
    from acep_approx.cli.write import RowsFile
    from acep_approx.results.rules import RuleCall, RuleOutput


class RulesRun(ProgramRun):
    """A run of a file of rules.

    Attributes
    ----------
    rules : RuleSet
    found, fired, changed, called : Counter of str
        Matches of each rule, those that fired, changes of each table, calls of each name.

    Raises
    ------
    UsageError
        ``ACEP-U064``: what does not go together; ``ACEP-U013``, ``ACEP-U016`` to ``ACEP-U019``: such files cannot be
        written; ``ACEP-U142``: ``--checkpoint-every`` is no number of events.
    """

    label = "running"

    def __init__(self, request: RunRequest) -> None:
        super().__init__(request)
        options = self.options.rules
        self.page = request.page
        refuse(request.asked, {"rules": RULES, "rules here": RULES})
        if options.store is None:
            refuse(request.asked, {"rules without a store": "--store"})
        check_budget(request)
        learning = self.options.learning
        self._saving = SavingMany(home_of(request), learning.save_every)
        if learning.save is not None:
            self._saving.check()
        self.form = self._form()
        if request.is_live and self.form is Format.TABLE:
            self.form = Format.JSONL  # a table is shown at the end
        self._check_files()
        self._between = _events_between(options.checkpoint_every)
        self.found: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.unclosed = 0
        self.changed: Counter[str] = Counter()
        self.called: Counter[str] = Counter()
        self._files = ExitStack()
        self._open: dict[Path, RowsFile] = {}
        self._some: dict[str, list[pa.Table]] = {}

    def _form(self) -> Format:
        """How rows are written: as said; else JSON lines to files that grow and to stdout, Parquet to others."""
        output, options = self.output, self.options.rules
        if output.topic is not None:
            return output.form()
        grows = options.store is not None or self.request.is_live
        if output.file is None and output.format is Format.CSV and options.changes is None:
            raise not_with_rules("--format csv on stdout", "rules have different columns: name a folder, -o FOLDER")
        if grows and output.format is Format.PARQUET:
            hint = "rows are added to files as they come: use jsonl or csv"
            raise not_with_rules("--format parquet with --store", hint)
        if output.format is Format.TABLE or (output.format is Format.PARQUET and options.changes is None):
            output.check(output.format, is_expanded=False)
        if output.format is not None:
            return output.format
        if output.file is None:
            return Format.TABLE if sys.stdout.isatty() else Format.JSONL
        return Format.JSONL if grows else Format.PARQUET

    def _check_files(self) -> None:
        options = self.options.rules
        folders = _but_topics(self.output.file, options.changes)
        (calls,) = _but_topics(options.calls)
        for path in (*folders, options.store, calls):
            check_folder(path)
        if is_topic(options.changes):
            raise UsageError("--changes does not go to a topic", code="ACEP-U019", hint="name a FOLDER")
        for path in folders:
            if path is not None and path.exists() and not path.is_dir():
                raise UsageError(
                    f"{str(path)!r} is no folder", code="ACEP-U019", hint="rules write a file for each: name a FOLDER"
                )
        if calls is not None and format_of(calls) is not Format.JSONL:
            raise UsageError(
                "calls are written as JSON lines", code="ACEP-U018", hint="name it so: --calls calls.jsonl"
            )

    def connect(self) -> None:
        """Find the topics that matches and calls go to, if they do, before anything is read."""
        from acep_approx.results.rules import CALL_KEYS

        super().connect()
        calls = self.options.rules.calls
        self._called = self.sender(parse_target(str(calls)), CALL_KEYS) if is_topic(calls) else None

    def open(self) -> None:
        """Compile the rules, and open the input."""
        from acep_approx.api.rule_set import compile_rules
        from acep_approx.cli.options.places import check_places

        self.rules = compile_rules(self.request.text)
        self._many = self.rules.many_matches
        file = self.rules.file
        self._keys = {rule.name: tuple(one.name for one in rule.query.equivalences) for rule in file.rules}
        found, changed = _but_topics(self.output.file, self.options.rules.changes)
        folders = ("matches", found, file.rules), ("changes", changed, file.tables)
        written = {
            f"{what} of {one.name}": folder / f"{one.name}.{self._ending.value}"
            for what, folder, all_of_them in folders
            if folder is not None
            for one in all_of_them
        }
        check_places(self.request.context.params, written)
        self._rows_given = rows_given(self.options.rules.table or [])
        self.source = self.kept(self.opened())
        if self.page is not None:
            from acep_approx.results.explorer.many_queries import AskedQuery, GatheredMatches

            asked = {rule.name: AskedQuery(rule.query, file.text[slice(*rule.span)]) for rule in file.rules}
            self.gathered = GatheredMatches(asked)

    @property
    def _ending(self) -> Format:
        return Format.JSONL if self.form is Format.TABLE else self.form

    def tell(self) -> None:
        """Tell what is done; the run begins with ``put_out``."""

    # --- results --------------------------------------------------------------------------------------------------

    def tables(self) -> Generator[pa.Table]:
        """None: each rule and each table has rows of its own."""
        yield from ()

    def put_out(self) -> None:
        """Run the rules, and put out what comes of them."""
        options = self.options.rules
        with self._files as files:
            self._begin_files()
            run = files.enter_context(
                self.rules.start(
                    store=self._rows_given,
                    at=options.store,
                    calls=dict.fromkeys(self.rules.call_names, self.call),
                    checkpoint=self._between,
                    bind=self.output.bound_with_rows,
                    **self._spending(),
                    **self.roles,
                )
            )
            before = run.counters
            tell_events(self.source, lambda: run.counters["events"])
            tell("MATCHES", lambda: sum(self.found.copy().values()))
            if before["events"] and self._rows_given and not self.request.quiet:
                say(f"--table plays no role: {options.store} has rows already")
            if self.options.learning.learn:
                self._saving.purse = lambda: run.purse
            self._run(run)
            after, self._record = run.counters, run.record(", ".join(self.request.inputs))
            self._shed, self._learned = run.shed, run.learning()
        self.before = before["events"]
        self.happened = {name: after[name] - before[name] for name in after}

    def _spending(self) -> dict[str, Any]:
        """How the budget is spent, if there is one."""
        spending = self.options.spending
        if spending.budget is None:
            return {}
        first = self.options.rules.shed_rules
        how = {"log_shed": self.options.reports.shed is not None, "learn": self.options.learning.learn}
        given = spending.given() | ({} if first is None else {"shed": first.value})
        return {"budget": spending.budget} | how | given

    def _run(self, run: Any) -> None:
        keeps = self.options.rules.store is not None
        for rule, table in run.undelivered.items():
            self.matches(rule, table)
        try:
            sort, done = self.options.source.sort, self._saving.after(self.progressed)
            for found in run.outputs(self.source, sort=sort, skips=True, on_progress=done):
                self.take(found)
            is_end = not keeps or self.options.rules.finish
            self.take(run.finish(ended=not self.options.source.open_end) if is_end else run.checkpoint())
            self.unclosed = run.unclosed
        except RuleError as error:
            if keeps and error.outcome is not None:  # it is in the last checkpoint
                self.take(error.outcome)  # type: ignore[arg-type]
            raise

    def _begin_files(self) -> None:
        options = self.options.rules
        (calls,) = _but_topics(options.calls)
        self._calls = None if calls is None else self._file(calls, Format.JSONL)
        for folder in _but_topics(self.output.file, options.changes):
            if folder is not None:
                with suppress(OSError):  # told when a file cannot be written
                    folder.mkdir(exist_ok=True)

    def take(self, output: RuleOutput) -> None:
        """Put out what came of some events."""
        changes = self.options.rules.changes
        for rule, table in output.items():
            self.matches(rule, table)
        for name, table in output.changes.items():
            self.changed[name] += table.num_rows
            if changes is not None and not self.rules.file.table(name).is_static:
                self._rows(changes, name, table)

    def matches(self, rule: str, table: pa.Table) -> None:
        """Put out matches of a rule."""
        import pyarrow.compute as pc

        from acep_approx.matching.outputs.bind import as_rows, without_rows

        self.found[rule] += table.num_rows
        self._warn_of_many(rule)
        if self.gathered is not None:
            self.gathered.take(rule, as_rows(table))
        table = without_rows(table)
        if "fired" in table.column_names:
            self.fired[rule] += pc.sum(table.column("fired")).as_py() or 0
        if self.messages is not None:
            self.messages.write(_with_rule(rule, table), self._keys[rule])
        elif self.output.file is not None:
            self._rows(self.output.file, rule, table)
        elif self.form is Format.TABLE:
            some = self._some.setdefault(rule, [])
            some.append(table.slice(0, max(0, SHOWN - sum(one.num_rows for one in some))))
        elif table.num_rows:
            _print(rule, table)

    def call(self, call: RuleCall) -> None:
        """Put out a call."""
        import pyarrow as pa

        self.called[call.name] += 1
        place = self._calls or self._called
        if place is not None:
            row = {**vars(call), "arguments": json.dumps(call.arguments, default=str)}
            place.write(pa.Table.from_pylist([row]))

    def _rows(self, folder: Path, name: str, table: pa.Table) -> None:
        path = folder / f"{name}.{self._ending.value}"
        if path not in self._open:
            self._open[path] = self._file(path, self._ending)
        self._open[path].write(table)

    def _file(self, path: Path, form: Format) -> RowsFile:
        from acep_approx.cli.write import RowsFile

        goes_on = self.options.rules.store is not None
        return RowsFile.at(self._files, path, form, grows=goes_on or self.request.is_live, anew=not goes_on)

    def show(self) -> None:
        """Show tables."""
        from acep_approx.cli.write import print_table

        for rule, tables in self._some.items():
            print_lines(rule)
            print_table(tables, "matches")

    # --- words ----------------------------------------------------------------------------------------------------

    def say(self, seconds: float) -> None:
        """Say what was read, found, written and called."""
        rules, happened, options = self.rules, self.happened, self.options.rules
        earlier = f", {amount(self.before, 'event')} of an earlier run left out" if self.before else ""
        number = amount(len(rules.file.rules), "rule")
        say(f"{amount(happened['events'], 'event')} read{earlier}, {number}; {seconds:.2f} s")
        parts = [
            f"{rule} {number:,}" + (f" ({self.fired[rule]:,} fired)" if rule in self.fired else "")
            for rule, number in self.found.items()
        ]
        _say_each(amount(sum(self.found.values()), "match"), parts)
        changed = {name: number for name, number in self.changed.items() if number}
        _say_each(amount(sum(changed.values()), "change"), [f"{name} {number:,}" for name, number in changed.items()])
        if happened["conflicts"]:
            say(f"{amount(happened['conflicts'], 'conflict')}: values written again, another way, for the same event")
        if happened["without_row"]:
            say(f"{amount(happened['without_row'], 'write')} of rows that were not there")
        if self.called:
            _say_each(amount(sum(self.called.values()), "call"), [f"{n} {k:,}" for n, k in self.called.items()])
        if self._record is not None:
            _say_spending(self._record)
        say_unclosed(self.unclosed, self.output.output)
        self._say_silent()
        if options.store is not None and not options.finish and rules.waits_for_windows:
            say("matches may wait for windows to close: --finish says that no more events will come")
        say_how_read(self.source)
        say_left_out(self.source)

    def _warn_of_many(self, rule: str) -> None:
        """Warn once of a rule that has more matches than anybody reads, as soon as it has."""
        from acep_approx.results.beginning import MOST_READ

        if self.found[rule] >= MOST_READ and (why := self._many.pop(rule, None)) is not None:
            warnings.warn(f"{rule} has {self.found[rule]:,} matches so far: {why}", ManyMatchesWarning, stacklevel=2)

    def _say_silent(self) -> None:
        from acep_approx.query.printer import to_text

        queries = {rule.name: rule.query for rule in self.rules.file.rules}
        silent = [name for name in queries if not self.found[name]]
        reasons = dict.fromkeys(self.rules.readers, "its conditions read tables, which acep why does not know")
        source, how = None if self.before else self.source, self.roles | {"sort": self.options.source.sort}
        say_silent(self.request, silent, "rule", lambda name: to_text(queries[name]), reasons, source, **how)

    def conclude(self) -> None:
        """Write what is to be written about the budget, and save what was learned."""
        if self._record is None:
            return
        from acep_approx.cli.write import write, write_report

        reports = self.options.reports
        if reports.report is not None:
            write_report(self._record, reports.report)
        if reports.shed is not None:
            write([self._shed()], format_of(reports.shed), reports.shed)
        learning = self.options.learning
        if learning.learn_log is not None:
            write([self._learned], format_of(learning.learn_log), learning.learn_log)
        if learning.learn:
            self._saving.finish(quiet=self.request.quiet)

    # --- the page -------------------------------------------------------------------------------------------------

    def write_page(self, page: PageRequest) -> None:
        """Make the page of the matches that were gathered, and of what the rules did."""
        from acep_approx.pages.shell import facts
        from acep_approx.query.printer import to_text

        assert self.gathered is not None, "it is asked for"
        rules = self.rules
        queries = {rule.name: to_text(rule.query) for rule in rules.file.rules if rule.name not in rules.readers}
        changed = [(f"changes of {name}", f"{number:,}") for name, number in self.changed.items() if number]
        called = [(f"calls of {name}", f"{number:,}") for name, number in self.called.items()]
        fired = [(f"{rule} fired", f"{number:,}") for rule, number in self.fired.items()]
        done = ["<h2>What the rules did</h2>", facts([*fired, *changed, *called])] if changed or called else []
        if self._record is not None:
            from acep_approx.pages.budget.shared import shared_sections

            done += shared_sections(self._record)
        page.gathered(self.gathered, self.options.source, self.source, queries.get, done)


def _events_between(given: str | None) -> int:
    if given is None:
        return 1
    if not (given.isascii() and given.isdigit() and int(given)):
        raise UsageError(
            f"--checkpoint-every is {given!r}", code="ACEP-U142", hint="with --store it is a number of events: 10000"
        )
    return int(given)


def rows_given(given: list[str]) -> dict[str, str]:
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


MOST_SHARES = 8
"""Rules of which the summary says what they shed."""


def _say_spending(record: RulesRecord) -> None:
    """Say what was done inside the budget, and what each rule that sheds did of it: first those that shed most."""
    say_needed(record)
    allowed = f"{amount(record.allowed, 'run-step')} that were allowed"
    say(f"budget {record.budget}: {record.work:,} of {allowed}, by {record.policy}")
    shedding = sorted((one for one in record.rules if one.sheds), key=lambda one: -one.runs_shed)
    for one in shedding[:MOST_SHARES]:
        protected = ", counts for more as others read what it writes" if one.protected else ""
        known = one.recall
        recall = "" if known is None or known.recall is None else f", recall about {known.recall:.0%}"
        say(f"  {one.name}: {amount(one.work, 'run-step')}, {amount(one.runs_shed, 'run')} shed{recall}{protected}")
    if len(shedding) > MOST_SHARES:
        say(f"  and {amount(len(shedding) - MOST_SHARES, 'more rule')}")
    exact = [one.name for one in record.rules if not one.sheds]
    if exact:
        say(f"  without partial matches, so that nothing is shed: {', '.join(exact[:MOST_SHARES])}")
    if record.certain is not None:
        say(f"certain: {record.certain:.1%} of the matches are in the exact answer for sure")


def _say_each(total: str, parts: list[str]) -> None:
    say(f"{total}: {', '.join(parts)}" if parts else total)


def _print(rule: str, table: pa.Table) -> None:
    from acep_approx.events.writing.tables import json_lines

    rows_out().write(json_lines(_with_rule(rule, table)))
    sys.stdout.flush()


def _with_rule(rule: str, table: pa.Table) -> pa.Table:
    """Matches with the name of their rule."""
    import pyarrow as pa

    names = ["rule_" if name == "rule" else name for name in table.column_names]
    return table.rename_columns(names).add_column(0, "rule", pa.repeat(pa.scalar(rule), table.num_rows))


def _but_topics(*places: Path | None) -> list[Path | None]:
    """Places, with nothing where they are topics."""
    return [None if is_topic(place) else place for place in places]
