"""Many queries on one stream: they come and go while it runs, and read what others publish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pyarrow as pa

from acep_approx.api.adding import add_planned
from acep_approx.api.budgeted_set import SPENDING, BudgetedSet, new_purse, plain
from acep_approx.api.query import Query
from acep_approx.api.query_texts import Planned, QueryTexts, weights_in
from acep_approx.api.saved_set import SavedSet
from acep_approx.api.tunable_set import TunableSet
from acep_approx.arguments import Refusals, checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import UsageError, expect
from acep_approx.events.reading.malformed import PushedRows
from acep_approx.events.source import Source, open_source
from acep_approx.events.stream import stamped
from acep_approx.events.time_formats import TimeFormat
from acep_approx.matching.outputs.bind import Bind, as_plain
from acep_approx.matching.outputs.kinds import STREAMED, OutputName
from acep_approx.planning.changed import check_horizon
from acep_approx.planning.durations import Duration, check_duration
from acep_approx.planning.planner import Plan
from acep_approx.query.parser import parse_window
from acep_approx.results.beginning import LookoutOfSet
from acep_approx.revisions.request import REVISING
from acep_approx.run.lateness import Lateness
from acep_approx.run.left_out import written
from acep_approx.run.order import Order
from acep_approx.run.run import OrderedRun, parts_of
from acep_approx.subscriptions.graph import is_hidden
from acep_approx.subscriptions.members import Member
from acep_approx.subscriptions.results import Found, Subscription, Subscriptions
from acep_approx.subscriptions.running import Misfit, Running, Standing
from acep_approx.subscriptions.state import pack
from acep_approx.subscriptions.templates.literals import uses
from acep_approx.subscriptions.templates.template import Alike, require_columns
from acep_approx.visible import broken_at
from history.places import place_of

if TYPE_CHECKING:
    from acep_approx.api.live_run import LiveRun
    from acep_approx.spark.plan.matcher import SparkMatcher

ALONE = "run single queries: compile_query(text)"
REFUSED = Refusals(
    "a set of queries",
    "a set",
    "QuerySet",
    {
        "spending on Spark": ("a budget of its own, on Spark,", "give it to the job: desk.spark(budget='20%')"),
        "stamp on Spark": ("times of the clock (stamp=) on Spark", "give events a time, such as that of their arrival"),
        **{
            f"{name} on Spark": (f"{name}= on Spark", "leave it out: there one watermark is that of all events")
            for name in ("source", "sequence", "idle")
        },
        **dict.fromkeys(
            REVISING,
            (
                "a stream whose events change or are put out early ({name}=)",
                f"wait for late events with reorder='5 s', or {ALONE}.matcher(...)",
            ),
        ),
    },
)


class QuerySet(TunableSet, BudgetedSet, SavedSet, OrderedRun):
    """Many queries on one stream.

    Parameters
    ----------
    time, key, type : str, optional
        Columns that play these roles; inferred from the first events where not given.
    unit : {"ns", "us", "ms", "s"}, optional
        Unit of a time column of numbers. Default: plain ticks.
    start : str, optional
        Column that says when events began, for queries in CEL; the time says when they ended.
    time_format : str or TimeFormat, optional
        How times of text are written. Default: as the values show.
    output : {"matches", "points", "counts"}, default "matches"
        What the results of queries are, as for ``Query.matcher``.
    reorder : str or int, optional
        Events may come out of order by so much, such as ``"5 s"`` or a number of ticks: they wait, and are put in
        order. Later ones are left out and counted: see ``late``. Default: events come in order.
    watermark, source, sequence, idle : optional
        The same with all that ``Query.matcher`` knows of late events: ``watermark`` is what ``reorder`` is; each
        ``source`` may have a watermark of its own; numbers without gaps tell what is still to come.
    stamp : bool, default False
        Whether events without a time get that of the clock when they are pushed. By default they are an error.
    key_idle : str or int, optional
        How long a key may have no event, as for ``Query.match``. Not for queries in CEL.
    bind : str, sequence of str or Wide, optional
        What stands for events in the results of queries without RETURN, as for ``Query.matcher``.
    on_malformed, rejects
        What happens to rows that are pushed and have no time that can be used: as for ``Query.matcher``.
    budget, history, policy, audit, seed, learn, full_work, log_shed : optional
        A load budget of all queries together: as for ``match_within``. Default: all of the work is done.
    horizon : str, optional
        Of queries in CEL that have no window, as for ``add``; it says something inside a load budget only.

    Raises
    ------
    UsageError
        ``ACEP-U001``: no such output; ``ACEP-U056``: not a length of time; ``ACEP-U064``: what does not go with a set;
        as ``match_within``.

    Notes
    -----
    The events of one time are an *epoch*. It is complete when a later event has come; until then its events wait (in
    the state, too), so that results do not depend on how the stream was cut. ``pass_time`` and ``finish`` complete it.

    Examples
    --------
    >>> desk = QuerySet(time="ts")
    >>> up = desk.add("PATTERN SEQ(Stock a, Stock b) WHERE b.p > a.p WITHIN 5 RETURN b.p AS p PUBLISH Up", id="up")
    >>> high = desk.add("PATTERN Up u WHERE u.p > 3 WITHIN 5 RETURN u.p AS p", id="high")
    >>> found = desk.push([{"ts": t, "type": "Stock", "p": p} for t, p in enumerate([1, 2, 4, 3, 3])])
    >>> {id: table.column("p").to_pylist() for id, table in found.items()}
    {'up': [2, 4, 4, 3, 3], 'high': [4, 4]}
    """

    @checked
    def __init__(
        self,
        *,
        time: str | None = None,
        key: str | None = None,
        type: str | None = None,  # noqa: A002  (the word of the query language)
        unit: str | None = None,
        start: str | None = None,
        time_format: str | TimeFormat | None = None,
        output: OutputName = "matches",
        reorder: Duration | None = None,
        stamp: bool = False,
        key_idle: Duration | None = None,
        on_malformed: str = "refuse",
        rejects: str | Path | None = None,
        watermark: Duration | None = None,
        source: str | None = None,
        sequence: str | None = None,
        idle: Duration | None = None,
        bind: Bind = None,
        horizon: str | None = None,
        **others: Any,
    ) -> None:
        spending = {name: others.pop(name) for name in SPENDING if name in others}
        made = new_purse(spending)
        for name in others:
            REFUSED.refuse(name)
        if output not in STREAMED:
            what = f"there is no output {output!r} of a set"
            raise UsageError(what, code="ACEP-U001", hint="choose " + ", ".join(STREAMED))
        expect("stamp", stamp, bool, "True or False")
        if key_idle is not None:
            check_duration("key_idle", key_idle)
        if reorder is not None and watermark is not None:
            what = "reorder= and watermark= are the same, and both are given"
            raise UsageError(what, code="ACEP-U064", hint="leave one of them out")
        self.malformed = PushedRows(on_malformed, rejects)
        self._stamp = stamp
        lateness: dict[str, Any] = {"watermark": watermark, "source": source, "sequence": sequence, "idle": idle}
        self._made_with = {"output": output, "stamp": stamp, "reorder": reorder, **lateness}
        if bind is not None:  # else the state is what it was when there was none
            self._made_with["bind"] = as_plain(bind)
        if made is not None:
            self._made_with["spending"] = plain(spending)
        if horizon is not None:
            parse_window(horizon)  # refuses what is none
            self._made_with["horizon"] = horizon
        self._horizon = horizon
        if reorder is not None:
            lateness |= {"watermark": reorder, "called": "reorder"}
        asked = Lateness(**lateness) if any(value is not None for value in lateness.values()) else None
        wanted = {"time": time, "key": key, "type": type, "unit": unit, "start": start}
        self.output: OutputName = output
        self._running = Running(wanted | TimeFormat.plain(time_format), key_idle, asked, made)
        self._running.on_join = LookoutOfSet()
        self._running.graph.bind = bind
        # by the number of the part that is shown: those that a user holds, and those that have someone to tell
        self._held: WeakValueDictionary[int, Subscription] = WeakValueDictionary()
        self._listening: dict[int, Subscription] = {}
        self._gone: list[int] = []
        self._texts = QueryTexts(output)
        self.standing_in_match = Standing()  # of the last ``match``
        self.keeps_whole = False  # events that are left out, with all columns

    @checked
    def add(
        self,
        query: str | Query,
        *,
        id: str | None = None,  # noqa: A002  (what users call it)
        weight: float = 1.0,
        horizon: str | None = None,
    ) -> Subscription:
        """Add a query: it sees the epochs whose first event is pushed after this.

        Parameters
        ----------
        query : str or Query
            Its text, or what ``compile_query`` made of it.
        id : str, optional
            Names it; default "q1", "q2" and so on.
        weight : float, default 1
            Under a load budget: how much a match point of it counts for, beside those of others.
        horizon : str, optional
            Under a load budget, where it is in CEL and has no window: as for ``Query.match_within``. Default: that of
            the set.

        Returns
        -------
        Subscription
            Its ``id``; ``on_match(f)`` calls a function with its results.

        Raises
        ------
        QueryError
            The query is wrong; ``ACEP-Q930``: it cannot publish.
        UsageError
            ``ACEP-U060``: the id is taken; ``ACEP-U061``: streams would feed one another in a circle; ``ACEP-U062``:
            others that run already read what it publishes; ``ACEP-U064``, ``ACEP-U066``: it cannot be in a set.

        Complexity: that of compiling it; not of how many there are.
        """
        expect("the query", query, (str, Query), "its text, or what compile_query made of it")
        expect("id", id, (str, NoneType), "a text")
        if id is not None and broken_at(id) is not None:
            raise UsageError(f"the id {id!r} is no text", code="ACEP-U191", hint="give one without half characters")
        weights = weights_in(None, weight)
        planned = self._texts.planned(query, self._running.graph.next_number)
        if horizon is not None:
            check_horizon(planned.template.plan if isinstance(planned, Alike) else planned.plans[-1], horizon)
        added = self._add(self._texts.until(planned, horizon or self._horizon), [id], weights)
        return self._subscription(*added.popitem())

    @checked
    def add_many(
        self,
        template: str,
        table: Any,
        *,
        id: str | None = None,  # noqa: A002  (what users call it)
        weight: str | float = 1.0,
    ) -> Sequence[Subscription]:
        """Add a query for each row of a table of constants.

        Parameters
        ----------
        template : str
            A query with parameters in the places of constants: ``:limit``.
        table : pyarrow.Table, pandas.DataFrame, list of dicts, or file
            A column for each parameter. A column ``id`` names the queries, unless it is a parameter.
        id : str, optional
            Where no column does: the queries are ``id[0]``, ``id[1]`` and so on. Default: as for ``add``.
        weight : str or float, default 1
            A column of the table that has their weights, or one for all of them: see ``add``.

        Returns
        -------
        sequence of Subscription
            In the order of the rows.

        Raises
        ------
        QueryError, UsageError, DataError
            As for ``add``; ``ACEP-U070``: a column is missing, or has a NULL or what no constant can be;
            ``ACEP-Q045``: a number that is no window. Then none was added.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet()
        >>> many = desk.add_many("PATTERN SEQ(A a, B b) WHERE b.x > :low WITHIN 5", [{"low": 1}, {"low": 7}])
        >>> found = desk.match([{"ts": 1, "type": "A", "x": 0}, {"ts": 2, "type": "B", "x": 4}])
        >>> list(found), many
        (['q1'], [<Subscription 'q1'>, <Subscription 'q2'>])
        """
        syntax = self._texts.tree(template)
        names = [*uses(syntax)]
        source = open_source(table)
        require_columns(syntax, source.schema.names)
        graph = self._running.graph
        is_named = "id" in source.schema.names and "id" not in names
        ids: list[str] = []
        numbers: list[int] = []
        try:
            of_weights = [weight] if isinstance(weight, str) else []
            columns = [*names, *(["id"] if is_named else []), *of_weights] or source.schema.names[:1]
            for batch in source.batches(columns):
                first = len(ids)
                rows = range(first, first + batch.num_rows)
                if is_named and batch.column("id").null_count:
                    what = "the column 'id' of the table has no value in some row"
                    raise UsageError(what, code="ACEP-U070", hint="name each query, or leave the column out")
                given = map(str, batch.column("id").to_pylist()) if is_named else (id and f"{id}[{n}]" for n in rows)
                weighed = iter(weights_in(batch, weight))
                for made in self._texts.with_constants(syntax, batch, first, lambda: graph.next_number):
                    planned = self._texts.until(made, self._horizon)
                    some = [*islice(given, planned.queries)]
                    added = self._add(planned, some, [*islice(weighed, planned.queries)])
                    ids += added
                    numbers += added.values()
        except Exception:
            for one in ids:
                self.remove(one, cascade=True)
            raise
        return Subscriptions(ids, numbers, self._subscription)

    def _add(self, query: Planned | Alike, ids: Sequence[str | None], weights: Sequence[float]) -> dict[str, int]:
        """Add a query, or many that are alike; gives their ids and numbers."""
        graph = self._running.graph
        graph.refuse_taken([id_ for id_ in ids if id_ is not None])
        names = [graph.free_id() if id_ is None else id_ for id_ in ids]
        return add_planned(self._running, query, names, weights, self.output)

    @checked
    def remove(self, id: str | Subscription, *, cascade: bool = False) -> None:  # noqa: A002  (what users call it)
        """Remove a query: it sees no epoch whose first event is pushed after this.

        What of it waits for the end of a window is put out when its last epoch is complete.

        Parameters
        ----------
        id : str or Subscription
            Or what ``add`` gave.
        cascade : bool, default False
            Whether queries that read what only it publishes go, too.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query; ``ACEP-U063``: others read what it publishes.
        """
        self._gone += self._running.remove(self._id(id), cascade=cascade)

    def _id(self, query: str | Subscription) -> str:
        if isinstance(query, Subscription):
            if self._held.get(self._running.graph.shown(query.id)[0]) is not query:
                raise UsageError(
                    f"{query!r} is of another set, or its query was removed and another one has its id now",
                    code="ACEP-U060",
                    hint="give the id, or what add() of this set gave",
                )
            return query.id
        expect("the id", query, str, "the one that add() was given, or gave, or what add() gave")
        return query

    def __len__(self) -> int:
        return len(self._running.graph.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._running.graph.ids)

    def __contains__(self, id: object) -> bool:  # noqa: A002  (what users call it)
        return isinstance(id, str) and id in self._running.graph.ids

    @checked
    def text(self, id: str | Subscription) -> str:  # noqa: A002  (what users call it)
        """The text of a query.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet()
        >>> many = desk.add_many("PATTERN SEQ(A a, B b) WHERE b.x > :low WITHIN 5", [{"low": 1}, {"low": 7}])
        >>> " ".join(desk.text("q2").split())
        'PATTERN SEQ(A a, B b) WHERE b.x > 7 WITHIN 5'
        """
        return self._running.text(self._id(id))

    @checked
    def subscription(self, id: str | Subscription) -> Subscription:  # noqa: A002  (what users call it)
        """What ``add`` gave for a query, for example after ``from_state``.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query.
        """
        name = self._id(id)
        return self._subscription(name, self._running.graph.shown(name)[0])

    def _subscription(self, id: str, number: int) -> Subscription:  # noqa: A002
        if (held := self._held.get(number)) is None:
            held = self._held[number] = Subscription(id, number, self._listening)
        return held

    def levels(self) -> dict[int, list[str]]:
        """The ids of the queries by their level: those of level 0 read no stream that others publish."""
        found: dict[int, list[str]] = {}
        for _, id_, entry in self._running.graph.numbered:
            if entry.is_shown:
                found.setdefault(entry.level, []).append(id_)
        return found

    def streams(self) -> dict[str, tuple[list[str], list[str]]]:
        """The streams that queries publish, each with the ids of those that publish it, and that read it."""
        graph = self._running.graph
        shown = {name: numbers for name, numbers in graph.publishers.items() if not is_hidden(name)}
        return {name: (graph.ids_of(shown[name]), graph.ids_of(graph.readers.get(name, ()))) for name in shown}

    @checked
    def graph(self, format: str = "mermaid") -> str:  # noqa: A002  (as on the command line)
        """Who feeds whom, as a picture: "mermaid", "dot" or "svg"; queries that read and publish the same are one.

        Raises
        ------
        UsageError
            ``ACEP-U001``: no such format.
        """
        from acep_approx.api.views import drawn_set

        return drawn_set(self, format)

    def plans(self) -> dict[str, list[Plan]]:
        """The plans of the queries by their ids: one for each automaton that a query needs, its own last."""
        found: dict[str, list[Plan]] = {id_: [] for id_ in self}
        for _, id_, entry in self._running.graph.numbered:
            found[id_].append(entry.plan)
        return found

    # --- events -----------------------------------------------------------------------------------------------

    @property
    def stage(self) -> Running:
        """What the events go through."""
        return self._running

    def push(self, events: Any) -> Found:
        """Run more events.

        Parameters
        ----------
        events : table, frame or reader of any library, record batches, or iterable of dicts
            The next events of the stream, in order of time, or see ``reorder``.

        Returns
        -------
        Found
            The results of the epochs that are complete now: ``found[id]``, ``found[stream]``, ``found.to_arrow()``.

        Raises
        ------
        DataError
            A missing column, a wrong type, or time that runs backwards; ``ACEP-D080`` to ``ACEP-D082``: what is
            published does not fit; ``ACEP-D045``: an error stopped it in the middle of a batch before.
        """
        running = self._running
        parts = parts_of(running, self._stamped(self._opened(events)) if self._stamp else self._at_hand(events))
        return self._notified(running, parts) if running.load is None else self._pushed(running, parts)

    def _stamped(self, source: Source) -> Source:
        """Events with times of the clock, where they get such."""
        wanted = self._running.wanted
        return stamped(source, wanted["time"], wanted["unit"]) if self._stamp else source

    def match(self, events: Any, **reading: Any) -> Found:
        """Run the queries over a whole input of its own, from its beginning to its end.

        Parameters
        ----------
        events
            As for ``push``, or a path, or several: Parquet, CSV, JSON lines.
        **reading
            ``sort``, ``on_progress``, ``ended``, ``format``, ``on_malformed``, ``rejects``, ``on_late``, ``late``: as
            for ``Query.match``. Where late events are waited for, ``late`` gets those that ``rejected`` has.

        Returns
        -------
        Found

        Notes
        -----
        What was pushed plays no role, and stays as it is.
        """
        running = self._fresh()
        return self._notified(running, chain.from_iterable(self._batches(running, events, **reading)))

    def batches(self, events: Any, **reading: Any) -> Iterator[Found]:
        """The same, batch by batch, for results that are many; functions are told of each batch.

        Parameters
        ----------
        events, **reading
            As for ``match``. With ``on_misfit`` too: a function that is told the id of each query that does not fit the
            columns, and the error; it is left out, with those that read what it publishes. Default: it is an error.
        """
        running = self._fresh()
        for some in self._batches(running, events, **reading):
            yield self._notified(running, iter(some))

    @checked
    def _batches(
        self,
        running: Running,
        events: Any,
        *,
        sort: bool = False,
        on_progress: Callable[[int], None] | None = None,
        on_misfit: Misfit | None = None,
        ended: bool = True,
        **reading: Any,
    ) -> Iterator[list[tuple[Member, pa.Table]]]:
        running.on_misfit, running.on_join = on_misfit, LookoutOfSet()
        waits = running.lateness is not None and not sort
        if waits and reading.get("late") is not None:
            reading["on_late"] = "skip"
        source = self._stamped(open_source(events, **{"time": running.wanted["time"]} | reading))
        self._inputs = source.paths
        some: list[tuple[Member, pa.Table]] = []
        is_over = False

        def done(events: int) -> None:
            nonlocal is_over
            is_over = True
            if on_progress is not None:
                on_progress(events)

        with source.late.lent(waits) as late, written(late, source.schema, running.order.left_out.take) as take:
            running.kept = () if late is None else source.schema.names
            for result in parts_of(running, source, sort=sort, on_batch=done):
                if is_over and some:
                    self.standing_in_match = running.standing
                    take()
                    yield some
                    some = []
                is_over = False
                some.append(result)
            take()
        last = [*some, *running.finish(ended=ended)]
        self.standing_in_match = running.standing
        yield last

    @checked
    def follow(
        self,
        place: str | Path,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_every: str | float = "10 s",
        finish: bool = False,
        on_schema: Callable[[pa.Schema], None] | None = None,
        also_asked: dict[str, Any] | None = None,
        **reading: Any,
    ) -> LiveRun:
        """Push events that are still being written: of a file that grows, a folder, or a topic of Kafka.

        Parameters
        ----------
        place : str or Path
            As for ``events.follow``. Of a topic one partition, or more with ``source="kafka_partition"``.
        checkpoint, checkpoint_every, finish
            As for ``Query.follow``. The same queries must have been added in the same order.
        on_schema : callable, optional
            Told of the columns before the first event is pushed.
        also_asked : dict, optional
            What else must be the same for a run to go on from a checkpoint, as JSON.
        **reading
            ``until_idle``, ``format``, ``on_malformed``, ``rejects``, ``late``, ``kafka``, ``schema``: as for
            ``Query.follow``.

        Returns
        -------
        LiveRun
            Iterate over it: each ``Found`` has the results of the events that came together.

        Raises
        ------
        UsageError, DataError
            As for ``Query.follow``.
        """
        from acep_approx.api.live_run import Checkpointing, follow_set

        checkpointing = Checkpointing(checkpoint, checkpoint_every, finish)
        running, made_with = self._running.fresh(), dict(self._made_with)
        running.load, spending = None, made_with.pop("spending", {})
        spending = {name: value for name, value in spending.items() if name != "history"}  # the state knows them
        fresh = pack(running, made_with)  # the same for the same queries, read in the same way
        asked = {"queries": sha256(fresh).hexdigest()[:16]} | spending | (also_asked or {})
        reading = {"time": self._running.wanted["time"]} | reading
        return follow_set(self, place, checkpointing, reading, asked, on_schema)

    def expect(self, source: Any) -> None:
        """Let the watermark wait for the first event of a source, if it is not known yet; not before the first push."""
        if (wait := self._running.order.wait) is not None:
            wait.watermarks.expect(source)

    def expect_no_more(self, source: Any) -> None:
        """Let it not wait any more for a source that has sent nothing: what that completes comes with the next push."""
        if (wait := self._running.order.wait) is not None:
            wait.watermarks.expect_no_more(source)

    @checked
    def pass_time(self, tick: int) -> Found:
        """No event before ``tick`` comes any more: completes the epochs before it, and gives what waited for it."""
        expect("tick", tick, int, "a whole number")
        return self._notified(self._running, self._running.pass_time(tick))

    def finish(self, *, ended: bool = True) -> Found:
        """The stream has ended: completes its last epoch, and gives what waited for the end of a window.

        With ``ended=False`` only what later events cannot change; ``standing.unclosed`` counts what else waited.
        """
        self.malformed.finish()
        return self._notified(self._running, self._running.finish(ended=ended))

    @property
    def standing(self) -> Standing:
        """What became of what was pushed, as numbers; ``standing_in_match`` has those of the last ``match``."""
        return self._running.standing

    @property
    def _order(self) -> Order:
        """What holds events until their epochs are complete."""
        return self._running.order

    @property
    def late_in_match(self) -> int:
        """How many events of the last ``match`` or ``batches`` came later than ``reorder`` allows."""
        return self.standing_in_match.late

    @property
    def keys_dropped(self) -> int:
        """How many keys of pushed events were dropped, since they had no event for ``key_idle``: each time counts."""
        return self.standing.keys_dropped

    @property
    def keys_dropped_in_match(self) -> int:
        """The same of the last ``match`` or ``batches``."""
        return self.standing_in_match.keys_dropped

    def _notified(self, running: Running, results: Iterator[tuple[Member, pa.Table]]) -> Found:
        found = running.found(results)
        for number in found.numbers & self._listening.keys():
            self._listening[number].tell(found.of(number))
        if running is self._running and not running.leaving:
            for number in self._gone:
                self._listening.pop(number, None)
            self._gone = []
        return found

    @checked
    def check(self, schema: pa.Schema, on_misfit: Misfit) -> None:
        """Hold the queries against the columns of events, without any events.

        Parameters
        ----------
        schema : pyarrow.Schema
        on_misfit : callable
            Is told the id of each query that does not fit, and the error.
        """
        running = self._running.fresh()
        running.on_misfit = on_misfit
        running.begin(schema)

    def use(self, source: Source) -> None:
        """Tell an input which column is the time."""
        self._running.kept = source.schema.names if self.keeps_whole else ()
        if (levels := self._running.levels) is not None:
            source.use(levels.roles.read_in(levels.columns), is_stamped=self._stamp)

    @checked
    def spark(self, *, queries: str | Path | None = None, **options: Any) -> SparkMatcher:
        """A function from Spark DataFrames of events to DataFrames of results, batch and streaming.

        Parameters
        ----------
        queries : str or Path, optional
            A folder with versions, as ``acep queries`` writes it: the set gives the options, and has no query of its
            own. A stream that ``spark.start`` runs takes each new version while it runs. Rows are those of
            ``Found.to_arrow`` then.
        **options
            ``id``, ``bind``, ``shards``, ``watermark``, ``on_malformed``, ``budget``, ``history``, ``learn``,
            ``policy``, ``audit``, ``seed`` and ``full_work``, as for ``Query.spark``. Which columns are time, key and
            type, the output, ``key_idle``, and how late events may come where no ``watermark`` is given, are those of
            the set.

        Returns
        -------
        SparkMatcher
            For ``events.transform(...)``. Rows are those of ``Found.table``: with the column ``query``.

        Raises
        ------
        UsageError
            ``ACEP-U064``: the set has a load budget, sources or a clock of its own; ``ACEP-S089``: it has queries, and
            ``queries`` is given, too; ``ACEP-U231``: the folder has no versions.
        DataError
            ``ACEP-D210``: its versions are damaged.

        Notes
        -----
        Queries with common keys are matched apart by these. An event goes to the queries of each set of keys; those
        without a key are dealt out, and each task with some of them gets all events.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet(time="ts")
        >>> up = desk.add("PATTERN SEQ(Stock a, Stock b) WHERE [symbol] AND b.p > a.p WITHIN 5", id="up")
        >>> matcher = desk.spark(id="n")
        >>> # results = events.transform(matcher)
        """
        from acep_approx.api.on_spark.options import spark_matcher
        from acep_approx.api.on_spark.queries import SetProgram

        for name in ("spending", "source", "sequence", "idle", "stamp"):
            if self._made_with.get(name):
                REFUSED.refuse(f"{name} on Spark")
        late = self._made_with["reorder"] or self._made_with["watermark"]
        roles = {name: self._running.wanted[name] for name in ("time", "key", "type", "unit")}
        options = {"watermark": late} | options
        expect("queries", queries, (str, Path, NoneType), "a folder that acep queries has written")
        if queries is None:
            return spark_matcher(SetProgram.of(self._running), roles, **options)
        from acep_approx.api.on_spark.changing import ChangingProgram

        if len(self):
            raise UsageError(
                f"the set has {len(self):,} queries of its own, and queries={str(queries)!r} names a folder of others",
                code="ACEP-S089",
                hint=f"take a set without queries: QuerySet(time=...).spark(queries={str(queries)!r})",
            )
        return spark_matcher(ChangingProgram.reading(self._running, self.output, place_of(queries)), roles, **options)

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.api.views import set_view

        return set_view(self)

    def __repr__(self) -> str:
        return f"<QuerySet of {len(self):,} queries>"
