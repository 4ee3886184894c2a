"""Active rules: patterns that read a shared store, and actions that write it; and rules under way."""

from __future__ import annotations

import time as clock
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.api.rule_budget import SpendingRun, spending_of, taken_up
from acep_approx.api.rule_history import TunableRules
from acep_approx.arguments import LATENESS, Refusals, checked, refuse_unknown
from acep_approx.budget.budget import Budget
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import AcepError, UsageError, expect
from acep_approx.events.reading.malformed import PushedRows
from acep_approx.events.source import Source, open_source
from acep_approx.events.stream import EventBatch
from acep_approx.events.time_formats import TimeFormat
from acep_approx.events.writing.outfile import check_name
from acep_approx.matching.outputs.bind import Bind
from acep_approx.planning.durations import Duration
from acep_approx.query.rules.checks import check_rules
from acep_approx.query.rules.parser import parse_rules
from acep_approx.query.rules.syntax import RuleFile
from acep_approx.results.rules import RuleCall, RuleOutput, StoreView
from acep_approx.rules.checkpoints import Checkpoints
from acep_approx.rules.durable.notes import NO_CALLS
from acep_approx.rules.execution import Outcome
from acep_approx.rules.program import Driver, Program
from acep_approx.rules.runner import Runner
from acep_approx.rules.words import schema_of
from acep_approx.run.lateness import Lateness
from acep_approx.run.order import Order
from acep_approx.run.run import OrderedRun, parts_of
from acep_approx.training.history_graph import HistoryGraph

if TYPE_CHECKING:
    from acep_approx.spark.plan.matcher import SparkMatcher

OnBatch = Callable[[int], None]
Function = Callable[[RuleCall], Any]
"""What CALL calls."""
REFUSED = Refusals(
    "active rules",
    "rules",
    "RuleSet",
    {
        **dict.fromkeys(
            ("revise", "reorder", "retract", "early"),
            ("a stream whose events change ({name}=)", "wait for late events with watermark='5 s'"),
        ),
    },
)


class RuleRun(SpendingRun, OrderedRun):
    """Rules under way; made by ``RuleSet.start``.

    Attributes
    ----------
    store : StoreView
        The tables: ``run.store["status"].to_arrow()``.
    undelivered : dict of str to pyarrow.Table
        With a file: matches of the last checkpoint of an earlier run that it may not have handed on, by rule.
    """

    def __init__(
        self, runner: Runner, functions: Mapping[str, Function], checkpoints: Checkpoints | None = None
    ) -> None:
        self._runner = runner
        self._functions = functions
        self._checkpoints = checkpoints
        self.undelivered = {} if checkpoints is None else checkpoints.waiting
        self._calls: deque[RuleCall] = deque()
        self._ready: list[RuleOutput] = []  # not given yet, because a function that was called has failed
        if checkpoints is not None:
            self._calls.extend(RuleCall.of(checkpoints.calls))
            self._call()

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.api.views import rule_run_view

        return rule_run_view(self)

    def __repr__(self) -> str:
        return f"<RuleRun after {self.offset:,} events: {self.store!r}>"

    @property
    def stage(self) -> Runner:
        """What the events go through."""
        return self._runner

    @property
    def store(self) -> StoreView:
        """The tables as they are now."""
        return StoreView(self._runner.execution.tables)

    @property
    def unclosed(self) -> int:
        """How many matches waited for the end of their window at the end of events that others may follow."""
        return self._runner.execution.unclosed

    @property
    def offset(self) -> int:
        """Events that came: all of them were run, but those that wait for a watermark, and those that came late."""
        return self._runner.arrived

    @property
    def _order(self) -> Order:
        """What holds events until the watermark has passed them."""
        return self._runner.order

    @property
    def counters(self) -> dict[str, int]:
        """Numbers of what happened so far: ``events``; ``conflicts`` and ``without_row``.

        A conflict is a value that a transaction writes where it has written another one; ``without_row`` counts UPDATE
        and DELETE that found no row.
        """
        return vars(self._runner.execution.counters).copy()

    def push(self, events: Any) -> RuleOutput:
        """Run more events.

        Parameters
        ----------
        events : table, frame or reader of any library, record batches, or iterable of dicts

        Returns
        -------
        RuleOutput

        Raises
        ------
        RuleError
            ``ACEP-R101``: an action cannot be done. It is undone; ``error.outcome`` has what came before it.
        DataError
            The events are wrong.
        """
        found: list[RuleOutput] = []
        try:
            found.extend(self.outputs(self._at_hand(events)))
        except AcepError as error:
            found += [error.found] if isinstance(error.found, RuleOutput) else []
            error.found = self.joined(found) if found else None
            raise
        return self.joined(found)

    def outputs(
        self,
        source: Source | EventBatch,
        *,
        sort: bool = False,
        skips: bool = False,
        on_progress: OnBatch | None = None,
    ) -> Iterator[RuleOutput]:
        """What comes of the events of a source, batch by batch; ``skips``: those that were run are left out."""
        self._hand_on()
        try:
            for outcome in parts_of(self._runner, source, sort=sort, skips=skips, on_batch=on_progress):
                yield from self._delivered(outcome)
        except AcepError as error:
            self._put_out(error)
            raise

    def _put_out(self, error: AcepError) -> None:
        """Let what came before an error be lasting, and its output be that of the error."""
        if isinstance(error.found, Outcome):
            error.found = self.joined(self._delivered(error.found, now=True))

    @checked
    def pass_time(self, tick: int) -> RuleOutput:
        """No event before ``tick`` will come any more: what waited for windows that end before it."""
        return self._closed(tick, now=False)

    def finish(self, *, ended: bool = True) -> RuleOutput:
        """The stream has ended: what waited for the end of its window. With a file, a checkpoint is written.

        With ``ended=False`` only what later events cannot change; ``unclosed`` counts what else waited.
        """
        self.malformed.finish()
        self._runner.execution.ends = ended
        return self._closed(None, now=True)

    def _closed(self, before: int | None, *, now: bool) -> RuleOutput:
        self._hand_on()
        try:
            outcome = self._runner.close(before)
        except AcepError as error:
            self._put_out(error)
            raise
        return self.joined(self._delivered(outcome, now=now))

    def skip(self) -> pa.Table:
        """With a watermark: leave out the event at which the run has stopped, since its action cannot be done.

        Returns
        -------
        pyarrow.Table
            The event: the columns that are read. The next push, or ``finish``, goes on behind it.

        Raises
        ------
        UsageError
            ``ACEP-U055``: the run has not stopped at an event.
        """
        return self._runner.skip()

    def checkpoint(self) -> RuleOutput:
        """Write a checkpoint now; gives what has come since the last one."""
        self._hand_on()
        return self.joined(self._delivered(self._runner.execution.nothing(), now=True))

    def _delivered(self, outcome: Outcome, *, now: bool = False) -> Iterator[RuleOutput]:
        """What can be handed on: it is lasting, where that was asked for. Calls are made before."""
        lasting: Outcome | None = outcome
        if self._checkpoints is not None:
            lasting = self._checkpoints.note(outcome)
            if lasting is None and now:
                lasting = self._checkpoints.write()
        if lasting is not None:
            self._ready.append(RuleOutput(lasting, self.store))
            if lasting.calls.num_rows:
                self._calls.extend(RuleCall.of(lasting.calls))
        self._call()
        while self._ready:
            yield self._ready.pop(0)

    def _hand_on(self) -> None:
        if self._checkpoints is not None and not self._ready:
            self._checkpoints.hand_on()

    def _call(self) -> None:
        """Make the calls that wait; one that fails stays the next one."""
        while self._calls:
            call = self._calls[0]
            if call.name in self._functions:
                self._functions[call.name](call)
            self._calls.popleft()
            if self._checkpoints is not None:
                self._checkpoints.made(call.id)

    def close(self, *, is_failed: bool = False) -> None:
        """Let go of the file, if there is one: what is not in the last checkpoint is not in it.

        ``is_failed``: whoever got the last matches may not be done with them. The next run gives them again.
        """
        if self._checkpoints is not None:
            self._checkpoints.close(is_failed=is_failed)
            self._checkpoints = None

    def joined(self, outputs: Iterable[RuleOutput]) -> RuleOutput:
        """Outputs as one, with the store as it is now."""
        parts = [one.outcome for one in outputs] or [self._runner.execution.nothing()]
        return RuleOutput(Outcome.joined(parts), self.store)

    def state_bytes(self) -> bytes:
        """All that is needed to go on, here or elsewhere: see ``RuleSet.from_state``."""
        return self._runner.state()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(is_failed=kind is not None)


DRIVERS = ("auto", "stepping")


@checked
def compile_rules(rules: str | Path) -> RuleSet:
    """Compile a file of rules.

    Parameters
    ----------
    rules : str or Path
        Their text (``docs/how-to/rules.md``), or the file that has it.

    Returns
    -------
    RuleSet
        Immutable; can be started any number of times.

    Raises
    ------
    QueryError
        The text is wrong; the message shows where, and what to do.
    UsageError
        ``ACEP-U065``: there is no such file.

    Examples
    --------
    >>> rules = compile_rules('''
    ... TABLE seen (id text, n int DEFAULT 0, KEY (id))
    ... RULE count ON PATTERN Login a WITHIN 1 DO UPDATE seen SET n = old.n + 1 AT (a.user) END
    ... RULE third ON PATTERN Login a WHERE store.seen[a.user].n = 2 WITHIN 1
    ... ''')
    >>> run = rules.start()
    >>> out = run.push([{"ts": t, "type": "Login", "user": user} for t, user in enumerate("xyxxy")])
    >>> out["third"].to_pylist()
    [{'errors': 0, 'start': 3, 'end': 3, 'missing': [], 'a': 3}]
    >>> run.store["seen"].to_pylist()
    [{'id': 'x', 'n': 3}, {'id': 'y', 'n': 2}]
    """
    expect("the rules", rules, (str, Path), "their text, or a Path to it")
    file = parse_rules(_text_of(rules) if isinstance(rules, Path) else rules)
    check_rules(file)
    return RuleSet(Program.of(file))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the rules of {str(path)!r} cannot be read: {error}", code="ACEP-U065", hint="give the path of a text file"
        ) from error


class RuleSet(TunableRules):
    """Rules and the tables that they share; made by ``compile_rules``."""

    def __init__(self, program: Program) -> None:
        self.program = self._program = program

    @property
    def file(self) -> RuleFile:
        """The tree of the text."""
        return self._program.file

    @property
    def call_names(self) -> list[str]:
        """The names of the functions that rules call with ``CALL``, each once."""
        return self._program.call_names

    @property
    def many_matches(self) -> dict[str, str]:
        """The rules that may have more matches than anybody reads, each with the reason, and what limits them."""
        from acep_approx.rules.explain import many_matches

        return {rule.name: why for rule in self._program.rules if (why := many_matches(rule)) is not None}

    @property
    def waits_for_windows(self) -> bool:
        """Whether a rule ends with a negation: its matches are known when their windows have closed."""
        return any(rule.is_late for rule in self._program.rules)

    @property
    def readers(self) -> list[str]:
        """The names of the rules whose patterns read tables."""
        return [one.rule.name for one in self._program.rules if one.reads or one.late_reads]

    @checked
    def check(
        self,
        events: Any,
        *,
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002
        unit: str | None = None,
        time_format: str | TimeFormat | None = None,
    ) -> list[str]:
        """Hold names and types against the columns of events, without running anything.

        Parameters
        ----------
        events : as for ``run``
        time, key, type, unit, time_format
            As for ``start``.

        Returns
        -------
        list of str
            The columns that are read, in the order of the events.

        Raises
        ------
        DataError, QueryError
            A column is missing, or has the wrong type.

        Examples
        --------
        >>> rules = compile_rules('''
        ... TABLE seen (id text, n int DEFAULT 0, KEY (id))
        ... RULE count ON PATTERN Login a WITHIN 1 DO UPDATE seen SET n = old.n + 1 AT (a.user) END
        ... ''')
        >>> rules.check([{"ts": 1, "type": "Login", "user": "ann", "host": "db1"}])
        ['ts', 'type', 'user']
        """
        wanted = {"time": time, "key": key, "type": type, "unit": unit} | TimeFormat.plain(time_format)
        runner = Runner(self._program, wanted)
        source = open_source(events, time=time)
        runner.begin(source.schema)
        return [name for name in source.schema.names if name in runner.columns]

    @checked
    def start(
        self,
        *,
        store: Mapping[str, Any] | None = None,
        at: str | PathLike[str] | None = None,
        calls: Mapping[str, Function] | None = None,
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        time_format: str | TimeFormat | None = None,
        checkpoint: int = 1,
        driver: Driver = "auto",
        budget: str | float | Budget | None = None,
        on_malformed: str = "refuse",
        rejects: str | Path | None = None,
        watermark: Duration | None = None,
        source: str | None = None,
        sequence: str | None = None,
        idle: Duration | None = None,
        bind: Bind = None,
        **others: Any,
    ) -> RuleRun:
        """Begin to run the rules over a stream.

        Parameters
        ----------
        store : mapping of str to table, optional
            The rows that tables begin with: Arrow tables, pandas frames, lists of dicts, or files.
        at : path, optional
            A file of SQLite in which the tables are kept (``docs/how-to/store.md``). If it is there, the run goes on
            from its last checkpoint, and ``store`` plays no role: give events from ``run.offset`` on. Default: in
            memory.
        calls : mapping of str to function, optional
            What ``CALL`` calls, by name. Each takes a ``RuleCall``; calls that the last run may not have made are
            made first.
        time, key, type : str, optional
            Columns that play these roles; inferred from the first events where not given.
        unit : {"ns", "us", "ms", "s"}, optional
            Unit of a time column of numbers. Default: plain ticks.
        time_format : str or TimeFormat, optional
            How times of text are written. Default: as the values show.
        checkpoint : int, default 1
            With ``at``: a checkpoint is written after so many events, with the end of a batch. Matches and calls wait
            for it.
        driver : {"auto", "stepping"}, default "auto"
            With "stepping" all rules are run event by event; the answer is the same.
        budget : str or Budget, optional
            How much work all rules together may do: as for ``Query.match_within``. Then results have a column
            ``certain``: TRUE says that the match is in the exact answer. With it go ``history`` (a ``RuleHistory``, or
            the path of one), ``policy``, ``audit``, ``seed``, ``learn``, ``full_work``, ``log_shed``, and ``shed``:
            with "protect", the default, match points of a rule also count for others that read what it writes; with
            "alike" for itself alone.
        on_malformed, rejects
            What happens to rows that are pushed and have no time that can be used: as for ``Query.matcher``.
        watermark, source, sequence, idle : optional
            Events may come late, as for ``Query.matcher``: they wait until the watermark has passed them, and are run
            in order of time. Later ones are left out: see ``late``. Default: events come in order.
        bind : str, sequence of str or Wide, optional
            What stands for events in the matches of rules without RETURN, as for ``Query.matcher``. A run that goes on
            from a file shows them as it began.

        Raises
        ------
        UsageError
            ``ACEP-U065``: no such table, or a function for ``CALL`` is missing; ``ACEP-U064``: what does not go with
            rules yet; ``ACEP-U055``: the file was begun with another ``watermark``, ``source``, ``sequence`` or
            ``idle``; or ``idle`` is given without ``source``; ``ACEP-U056``: not a length of time.
        DataError
            ``ACEP-R110``, ``ACEP-R111``: rows do not fit their table.
        """
        spending = spending_of(self._program, budget, others)
        for name in others:
            REFUSED.refuse(name)
        if driver not in DRIVERS:
            raise UsageError(f"there is no driver {driver!r}", code="ACEP-U001", hint="choose " + ", ".join(DRIVERS))
        functions = self._functions(calls)
        expect("checkpoint", checkpoint, Integral, "a number of events")
        wanted = {"time": time, "key": key, "type": type, "unit": unit} | TimeFormat.plain(time_format)

        asked: dict[str, Any] = {"watermark": watermark, "source": source, "sequence": sequence, "idle": idle}
        lateness = Lateness(**asked) if any(value is not None for value in asked.values()) else None

        def begin() -> Runner:
            runner = Runner(self._program, wanted, driver, lateness, bind, spending)
            runner.load({name: self._rows_of(name, rows) for name, rows in (store or {}).items()})
            return runner

        malformed = PushedRows(on_malformed, rejects)
        if at is not None:
            check_name(Path(at), may_be_stored=False)
        checkpoints = None if at is None else Checkpoints(self._program, at, begin, checkpoint, spending)
        if checkpoints is not None and checkpoints.runner.lateness != lateness:
            checkpoints.close(is_failed=True)
            raise _begun_otherwise(checkpoints.runner.lateness)
        run = RuleRun(begin() if checkpoints is None else checkpoints.runner, functions, checkpoints)
        run.malformed = malformed
        return run

    def _functions(self, calls: Mapping[str, Function] | None) -> dict[str, Function]:
        """The functions for CALL; if any is given, all that rules name must be there."""
        if calls is None:
            return {}
        for name, function in calls.items():
            expect(f"the function {name!r}", function, Callable, "a function of one argument")  # type: ignore[arg-type]
        for name in self._program.call_names:
            if name not in calls:
                what = f"there is no function for CALL {name}"
                given = ", ".join(calls) or "none"
                raise UsageError(what, code="ACEP-U065", hint=f"give calls={{{name!r}: ...}}; given: {given}")
        return dict(calls)

    def _rows_of(self, name: str, rows: Any) -> pa.Table:
        tables = [table.name for table in self.file.tables]
        if name not in tables:
            raise UsageError(
                f"there is no table {name!r}", code="ACEP-U065", hint=f"tables are {', '.join(tables) or 'none'}"
            )
        batches = [] if isinstance(rows, list) and not rows else list(open_source(rows).batches())
        return pa.Table.from_batches(batches) if batches else schema_of(self.file.table(name)).empty_table()

    @checked
    def run(
        self,
        events: Any,
        *,
        sort: bool = False,
        on_progress: OnBatch | None = None,
        reading: Mapping[str, Any] | None = None,
        ended: bool = True,
        **starting: Any,
    ) -> RuleOutput:
        """Run the rules over a whole input.

        Parameters
        ----------
        events : path, table, frame or reader of any library, record batches, or iterable of dicts
        sort : bool, default False
            Sort the input first. Default: it must be in order.
        on_progress : callable, optional
            Is told the number of events so far, batch by batch.
        reading : mapping, optional
            As for ``Query.match``: ``format``, ``on_malformed``, ``on_late`` and so on.
        ended : bool, default True
            Whether the stream ends with these events: see ``Query.match``.
        **starting
            As for ``start``. With ``at`` the events that an earlier run has done are left out; matches that it may not
            have given come first.

        Returns
        -------
        RuleOutput
            Of all events; ``output.store`` are the tables at the end.
        """
        begun = clock.perf_counter()
        with self.start(**starting) as run:
            how: dict[str, Any] = {"time": starting.get("time")} | dict(reading or {})
            source = open_source(events, **how)
            before = [RuleOutput(Outcome(run.undelivered, {}, NO_CALLS), run.store)] if run.undelivered else []
            outputs = [*run.outputs(source, sort=sort, skips=True, on_progress=on_progress)]
            found = run.joined([*before, *outputs, run.finish(ended=ended)])
            found.history = run.refreshed()
            record = run.record()
            if record is not None:
                record = replace(record, seconds=clock.perf_counter() - begun)
            return found.with_record(record, run.shed, source.paths)

    @checked
    def explain(self, budget: str | float | Budget | None = None, **spending: Any) -> str:
        """How the rules are run: which wait for which, which are run in turn, and why.

        With a ``budget`` also how that will be shared; ``spending`` as for ``start``. Numbers are told where histories
        have them.
        """
        from acep_approx.rules.explain import explain

        spends = spending_of(self._program, budget, spending)
        refuse_unknown("explain", spending)
        return "\n".join([explain(self._program), *([] if spends is None else spends.explained(self._program))])

    @checked
    def graph(self, format: str = "mermaid") -> str:  # noqa: A002
        """The rules and the tables that they read and write, as a picture: "mermaid", "dot" or "svg"."""
        from acep_approx.rules.explain import drawn

        return drawn(self._program, format)

    @checked
    def from_state(
        self,
        state: bytes,
        *,
        calls: Mapping[str, Function] | None = None,
        on_malformed: str = "refuse",
        rejects: str | Path | None = None,
        history: Mapping[str, HistoryGraph] | str | Path | None = None,
    ) -> RuleRun:
        """Go on from what ``RuleRun.state_bytes`` gave; ``on_malformed`` and ``rejects`` are as for ``start``.

        A run inside a load budget goes on inside it; if it had a ``history`` it needs that again.

        Raises
        ------
        DataError
            ``ACEP-D040`` to ``ACEP-D042``: it is no state of these rules; ``ACEP-D048``: it needs its history.
        """
        functions = self._functions(calls)
        spending = taken_up(self._program, Runner.spending_of(self._program, state), history)
        runner = Runner.restored(self._program, state, spending)
        run = RuleRun(runner, functions)
        run.malformed = PushedRows(on_malformed, rejects)
        return run

    def match_within(self, events: Any, budget: str | float | Budget, **options: Any) -> RuleOutput:
        """Run the rules over a whole input, inside a load budget.

        Parameters
        ----------
        events
            As for ``run``.
        budget
            As for ``start``.
        **options
            As for ``run`` and ``start``: ``history``, ``policy``, ``audit``, ``seed``, ``learn``, ``full_work``,
            ``log_shed``, ``shed``.

        Returns
        -------
        RuleOutput
            Its tables of matches have a column ``certain``; ``output.record`` says what was done,
            ``output.report(path)`` as a page, and ``output.shed()`` what was dropped.

        Examples
        --------
        >>> rules = compile_rules("RULE rise ON PATTERN SEQ(A a, A b) WHERE b.x > a.x WITHIN 9")
        >>> events = [{"ts": t, "type": "A", "x": t * 7 % 11} for t in range(60)]
        >>> some = rules.match_within(events, "2 steps/event", audit=0)
        >>> some["rise"].column_names[-1], some.record.work <= 2 * 60
        ('certain', True)
        """
        return self.run(events, budget=budget, **options)

    @checked
    def spark(
        self,
        *,
        store: Mapping[str, Any] | None = None,
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        shed: str | None = None,
        **options: Any,
    ) -> SparkMatcher:
        """A function from Spark DataFrames of events to DataFrames of the matches of all rules, batch and streaming.

        Parameters
        ----------
        store : mapping of str to table, frame, file or list of dicts, optional
            The rows that tables begin with. Each worker gets all of them.
        time, key, type, unit, shed
            As for ``start``.
        **options
            ``id``, ``bind``, ``shards``, ``watermark``, ``on_malformed``, ``budget``, ``history``, ``learn``,
            ``policy``, ``audit``, ``seed`` and ``full_work``, as for ``Query.spark``.

        Returns
        -------
        SparkMatcher
            For ``events.transform(...)``: rows have the column ``rule``, then those that any rule returns. What is
            written to tables, and calls, are other tables of the job: ``matcher.flow(events).table("changes of
            status")``, ``spark.start(..., changes=folder, calls=folder)``.

        Notes
        -----
        Rules whose patterns have a common key, and that name the rows of their tables by it, are matched apart by that
        key: each row lies where its events are. All others run in one task, and the log says why.

        Examples
        --------
        >>> rules = compile_rules('''
        ... TABLE seen (id text, n int DEFAULT 0, KEY (id))
        ... RULE count ON PATTERN Login a WITHIN 1 DO UPDATE seen SET n = old.n + 1 AT (a.user) END
        ... ''')
        >>> matcher = rules.spark(time="ts", id="n")
        >>> # matches = events.transform(matcher)
        """
        from acep_approx.api.on_spark.options import spark_matcher
        from acep_approx.api.on_spark.rules import RulesProgram

        rows = {name: self._rows_of(name, given) for name, given in (store or {}).items()}
        program = RulesProgram(self._program, rows, shed=shed, spends=options.get("budget") is not None)
        return spark_matcher(program, {"time": time, "key": key, "type": type, "unit": unit}, **options)

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.api.views import rules_view

        return rules_view(self)

    def __repr__(self) -> str:
        return f"<RuleSet of {len(self.file.rules)} rules on {len(self.file.tables)} tables>"


def _begun_otherwise(lateness: Lateness | None) -> UsageError:
    """A file of a run that lets events come late in another way."""
    asked = {} if lateness is None else {name: getattr(lateness, name) for name in LATENESS}
    with_ = ", ".join(f"{name}={value!r}" for name, value in asked.items() if value is not None)
    return UsageError(
        f"the run in this file was begun {f'with {with_}' if with_ else 'without a watermark'}",
        code="ACEP-U055",
        hint="go on in the same way, or begin with a new file",
    )
