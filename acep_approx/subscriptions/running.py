"""A set at work: batches in, results of all queries out; queries come and go between epochs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.errors import AcepError, UsageError, stopped_within
from acep_approx.events.roles import Roles, infer_roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit
from acep_approx.matching.outputs.tables import joined
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.shared_load import SharedLoad
from acep_approx.planning.durations import Duration
from acep_approx.run.lateness import Lateness
from acep_approx.run.left_out import LATE
from acep_approx.run.order import Order
from acep_approx.run.watermarks import Held
from acep_approx.subscriptions.graph import Entry, Graph
from acep_approx.subscriptions.levels import Levels, Results
from acep_approx.subscriptions.members import Member
from acep_approx.subscriptions.results import Found, common_columns
from acep_approx.subscriptions.templates.literals import filled, text_of
from acep_approx.subscriptions.templates.template import Alike, Shared

Misfit = Callable[[str, AcepError], None]
"""Is told the id of a query, and what is wrong with it."""


@dataclass
class Change:
    """Queries that come, or go, with the first epoch later than a time.

    ``after`` is None where no event waits: then it is the next epoch, whatever its time. ``comes`` are entries by their
    numbers, ``alike`` those of templates by their keys: others may be added to these. ``goes`` are numbers of queries,
    each with its entry.
    """

    after: int | None
    comes: dict[int, Entry] = field(default_factory=dict)
    alike: dict[object, Entry] = field(default_factory=dict)
    goes: dict[int, Entry] = field(default_factory=dict)

    def drop(self, entry: Entry) -> None:
        """Let an entry not come."""
        del self.comes[entry.number]
        if self.alike.get(entry.key) is entry:
            del self.alike[entry.key]


class Standing(NamedTuple):
    """Where a set stands: how many events came ``late``, ``keys_dropped``, what holds the watermark back.

    ``unclosed`` results waited for the end of their window at the end of events that others may follow.

    ``is_time`` says whether ticks are times: microseconds since 1970.
    """

    late: int = 0
    keys_dropped: int = 0
    holding: Held = Held()
    is_time: bool = False
    unclosed: int = 0


class Running:
    """The queries of a set and where their stream stands.

    Parameters
    ----------
    wanted : mapping of str to str or None
        Columns for the roles ``time``, ``key``, ``type``, and the ``unit``: as for ``infer_roles``.
    key_idle : str or int, optional
        See ``StreamSide``.
    lateness : Lateness, optional
        How late events may come. Default: they come in order.
    new_load : callable, optional
        Makes a load budget that all engines share. Default: nothing is shed.

    Attributes
    ----------
    graph : Graph
    order : Order
        Holds events until their epochs are complete.
    load : SharedLoad or None
        The load budget of all engines.
    levels : Levels or None
        None until the columns of the events are known.
    on_misfit : callable or None
        Is told the id of each query that does not fit the columns of the events, and why.
    on_join : callable or None
        Is told the id of each query by itself that takes part from now on, and its pipeline.
    kept : sequence of str
        Columns that are read beside those of the queries, since events that are left out are wanted whole.
    changes : list of Change
        What waits for its epoch, in order.
    leaving : dict of int to str or None
        The ids of queries that were removed and may still have results, by number; None where these are not shown.
    left : dict of int to str
        The streams that some of these publish, by number.
    """

    def __init__(
        self,
        wanted: Mapping[str, Any],
        key_idle: Duration | None = None,
        lateness: Lateness | None = None,
        new_load: Callable[[], SharedLoad] | None = None,
    ) -> None:
        self.wanted = dict(wanted)
        self.new_load = new_load
        self.load = None if new_load is None else new_load()
        self.key_idle = key_idle
        self.graph = Graph()
        self.order = Order()
        self.levels: Levels | None = None
        self.changes: list[Change] = []
        self.leaving: dict[int, str | None] = {}
        self.left: dict[int, str] = {}
        self.is_within = False
        self.lateness = lateness
        self.kept: Sequence[str] = ()
        self.on_misfit: Misfit | None = None
        self.on_join: Callable[[str, Pipeline], None] | None = None
        self._coming: dict[int, Member] = {}
        self._shape: tuple[pa.Schema, list[int], pa.Schema] | None = None

    @property
    def _known(self) -> Levels:
        assert self.levels is not None, "columns are known where there are events"
        return self.levels

    @property
    def roles(self) -> Roles | None:
        """Which columns are time, key and type; None before the columns of the events are known."""
        return None if self.levels is None else self.levels.roles

    @property
    def arrived(self) -> int:
        """How many events there were so far."""
        return self.order.arrived

    @property
    def waits(self) -> bool:
        """Whether events may come in any order."""
        return self.order.wait is not None

    # --- queries ----------------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Take in a query, or a part of one, from the next epoch on whose first event comes after this."""
        self._let_come(entry)
        self.graph.name(entry, [entry.number], [entry.id])

    def add_alike(self, alike: Alike, ids: list[str], output: str) -> list[int]:
        """The same with queries of a template; gives their numbers."""
        first, template = self.graph.next_number, alike.template
        numbers = [*range(first, first + len(ids))]
        entry = self._change().alike.get(alike.key)
        if entry is None:
            shared, publish = Shared(template, alike.kinds), template.plan.query.publish
            more: dict[str, Any] = {"shared": shared, "horizon": template.horizon}
            made = Entry(first, ids[0], template.plan, template.text, publish, output, **more)
            entry = self._let_come(made)
        assert entry.shared is not None, "it has the key of one that has it"
        entry.shared.add(numbers, alike.columns)
        self.graph.name(entry, numbers, ids)
        return numbers

    def _let_come(self, entry: Entry) -> Entry:
        """Let an entry come with the next epoch, without queries so far; gives the one that is like it if one does."""
        if self.key_idle is not None and entry.plan.cel is not None:
            raise UsageError(
                "key_idle= drops keys, and a query in CEL names none: the two do not go together in a set",
                code="ACEP-U200",
                hint="leave key_idle= out, or run the queries in CEL by themselves",
            )
        change = self._change()
        if entry.key in change.alike:
            return change.alike[entry.key]
        self.graph.add(entry)
        change.comes[entry.number] = entry
        if entry.shared is not None:
            change.alike[entry.key] = entry
        return entry

    def remove(self, id: str, *, cascade: bool = False) -> list[int]:  # noqa: A002  (what users call it)
        """Let go of a query from the next epoch on; gives the numbers of all parts that go."""
        numbers = []
        for one in self.graph.removal(id, cascade=cascade):
            for number, entry in self.graph.remove(one):
                numbers.append(number)
                if not self._takes_back(number, entry):  # it has seen, or will see, an event
                    self._change().goes[number] = entry
                    self.leaving[number] = one if entry.is_shown else None
                    if entry.is_shown and entry.plan.query.publish is not None:
                        self.left[number] = entry.plan.query.publish
        return numbers

    def _takes_back(self, number: int, entry: Entry) -> bool:
        """Whether a query was to come with the next epoch; then it does not."""
        change = self._change()
        if entry.number not in change.comes:
            return False
        if entry.shared is not None:
            entry.shared.drop(number)
        if not entry.queries:
            change.drop(entry)
        return True

    def take_back(self, id: str) -> None:  # noqa: A002  (what users call it)
        """Forget a query of which a part could not be added; those that would read it stay."""
        for number, entry in self.graph.remove(id):
            self._takes_back(number, entry)

    def _change(self) -> Change:
        """What is to change with the next epoch."""
        after = self.order.newest if self.order.is_holding else None
        if not self.changes or self.changes[-1].after != after:
            self.changes.append(Change(after))
        return self.changes[-1]

    # --- events -----------------------------------------------------------------------------------------------

    def begin(self, schema: pa.Schema) -> None:
        """Get ready for events of these columns: make what will run the queries that are to come.

        A query that does not fit them is an error; or ``on_misfit`` is told of it, and it is removed with those that
        read it.

        Raises
        ------
        DataError, QueryError
            Columns do not fit; then all is as it was.
        """
        self.check_whole()
        if self.levels is None:
            roles = infer_roles(schema, **self.wanted)
            wait = None
            if self.lateness is not None:
                wait = self.lateness.wait(is_time=_has_times(schema, roles))
            self.levels = Levels(self.graph, schema, roles, self.key_idle, self.load)
            if wait is not None:
                self.order.wait_for(wait)
        else:
            self.levels.base.learn(schema)
        try:
            self._coming = self._built()
        except AcepError:
            if self.on_misfit is None:
                raise
            self._without_misfits(self.on_misfit)
            self._coming = self._built()

    def _without_misfits(self, on_misfit: Misfit) -> None:
        """Remove the queries that are to come and do not fit, one by one."""
        ones: list[Entry] = []

        def apart(whole: Entry) -> list[Entry]:
            ones.extend(self._apart(whole))
            return ones

        coming = [entry for change in self.changes for entry in change.comes.values()]
        todo = sorted(coming, key=lambda entry: (entry.level, entry.number), reverse=True)
        while todo:
            entry = todo.pop()
            if not entry.queries:
                continue  # it went with another one, or its queries are by themselves now
            ones.clear()
            try:
                self._known.build([entry], apart, says_whose=False)
            except AcepError as error:
                todo += reversed(ones)
                for id_ in [] if ones else self.graph.ids_of([entry.number]):
                    for gone in self.graph.removal(id_, cascade=True):
                        on_misfit(gone, error)
                    self.remove(id_, cascade=True)

    def _apart(self, entry: Entry) -> list[Entry]:
        """Let each query of a template that is to come be an entry by itself."""
        made = {one.number: one for one in self.graph.apart(entry)}
        for change in self.changes:
            if change.comes.get(entry.number) is entry:
                change.drop(entry)
                change.comes |= made
            change.goes.update((number, made[number]) for number in change.goes.keys() & made.keys())
        return [*made.values()]

    def _built(self) -> dict[int, Member]:
        coming = (entry for change in self.changes for entry in change.comes.values())
        return self._known.build(coming, self._apart)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must be read now, with those of the queries to come."""
        levels, members = self._known, dict.fromkeys(self._coming.values())
        reads = [name for member in members for name in member.side.reads]
        order = () if self.order.wait is None else self.order.wait.reads
        return tuple(dict.fromkeys([*levels.columns, *levels.of_stream(reads), *order, *self.kept]))

    def run(self, batch: EventBatch) -> Results:
        """Run the epochs that a batch completes; all results must be taken."""
        self.order.is_joining = self.levels is not None and self.levels.has_many
        floor = self.order.floor
        for ready in self.order.push(batch):
            yield from self._run(ready)
        if self.order.floor > floor and self.levels is not None:  # the watermark says that windows have closed
            yield from self.levels.pass_time(self.order.floor)

    def close(self, before: int | None = None) -> Results:
        """Run the epochs before a time, all by default: no event of them comes any more."""
        if self.order.is_holding:
            self._coming = self._built()
        for ready in self.order.close(before):
            yield from self._run(ready)

    def pass_time(self, tick: int) -> Results:
        """No event before ``tick`` comes any more."""
        self.check_whole()
        yield from self.close(tick)
        if self.levels is not None:
            yield from self.levels.pass_time(tick)

    def finish(self, *, ended: bool = True) -> Results:
        """The stream has ended; or more events may come: then only what they cannot change is given."""
        self.check_whole()
        yield from self.close()
        if self.levels is None:
            return
        last_tick = self.levels.base.last_tick
        if not ended and last_tick is not None:
            yield from self.levels.pass_time(last_tick)
        yield from self.levels.finish(ended=ended)
        if self.load is not None:
            self.load.finish()

    def _run(self, batch: EventBatch) -> Results:
        """Run complete epochs, and change the queries between them."""
        self.is_within = True
        while len(batch):
            yield from self._changed(int(batch.ticks[0]))
            cut = len(batch)
            if self.changes and self.changes[0].after is not None:
                cut = int(np.searchsorted(batch.ticks, self.changes[0].after, side="right"))
            yield from self._known.run(batch.slice(0, cut))
            batch = batch.slice(cut, len(batch) - cut)
        self.is_within = False

    def _changed(self, tick: int) -> Results:
        """Let queries come and go that wait for an epoch before or at ``tick``."""
        while self.changes and (self.changes[0].after is None or self.changes[0].after < tick):
            change = self.changes.pop(0)
            for number, entry in change.goes.items():
                yield from self._known.remove(number, entry)
            for entry in change.comes.values():
                member = self._coming[entry.number]
                if self.on_join is not None and isinstance(member.side, Pipeline):
                    self.on_join(entry.id, member.side)
                self._known.join(entry, member)

    def settle(self) -> Results:
        """Let queries come and go now, and not with the next epoch: no event waits."""
        assert not self.order.is_holding, "all epochs so far are complete"
        self.check_whole()
        self.is_within = True
        yield from self._changed(self.order.floor)
        self.is_within = False

    @property
    def standing(self) -> Standing:
        """Where the set stands."""
        if self.levels is None:
            return Standing()
        held = Held() if self.order.wait is None else self.order.wait.watermarks.holding()
        is_time = _has_times(self.levels.base.schema, self.levels.roles)
        dropped = sum(level.side.keys_dropped for level in self.levels.levels.values())
        unclosed = sum(level.side.unclosed for level in self.levels.levels.values())
        return Standing(self.order.left_out.counts[LATE], dropped, held, is_time, unclosed)

    def check_whole(self) -> None:
        """Refuse to go on from the middle of a batch (``ACEP-D045``)."""
        if self.is_within:
            raise stopped_within("this set")

    # --- results ----------------------------------------------------------------------------------------------

    def found(self, results: Results) -> Found:
        """All results of a batch that users see, by query: those of parts that only feed others are left out."""
        parts: dict[Member, list[pa.Table]] = {}
        for member, table in results:
            if table.num_rows:
                parts.setdefault(member, []).append(table)
        leaving, left = self.leaving, self.left
        if not any(change.goes for change in self.changes):
            self.leaving, self.left = {}, {}

        def ids_of(numbers: Ints) -> dict[int, str | None]:
            gone = {number: leaving[number] for number in numbers.tolist() if number in leaving} if leaving else {}
            return gone | self.graph.ids_shown(numbers[~np.isin(numbers, [*gone])] if gone else numbers)

        def look(name: str) -> list[tuple[int, pa.Table]]:
            gone = [(number, pa.table({})) for number, stream in left.items() if stream == name]
            is_there = not gone or name in self.graph.ids or name in self.graph.publishers
            return sorted([*gone, *(self.look(name) if is_there else ())], key=lambda known: known[0])

        whole = [joined(tables, member.nothing().schema) for member, tables in parts.items()]
        return Found(whole, ids_of, look, self.result_columns)

    def result_columns(self) -> pa.Schema:
        """Return the columns of the results of all queries that are shown, each in one type."""
        if self.levels is None:
            return pa.schema([])
        members = self._coming | self.levels.members
        known = self.levels.base.schema, [*members]
        if self._shape is None or self._shape[0] is not known[0] or self._shape[1] != known[1]:
            shown = dict.fromkeys(entry.number for entry in self.graph if entry.is_shown and entry.number in members)
            self._shape = *known, common_columns(members[number].nothing().schema for number in shown)
        return self._shape[2]

    def look(self, name: str) -> list[tuple[int, pa.Table]]:
        """The queries of an id, or those that publish a stream, each with an empty table of its columns.

        Raises
        ------
        UsageError
            ``ACEP-U060``: neither is there; or only parts of queries publish that stream, and these are not shown.
        """
        graph, shown = self.graph, list[tuple[int, Entry]]()
        if name in graph.ids:
            shown = [graph.shown(name)]
        elif name in graph.publishers:  # parts of others publish, too
            publishers = map(graph.shown, graph.ids_of(graph.publishers[name]))
            shown = [(number, entry) for number, entry in publishers if entry.plan.query.publish == name]
            if not shown:
                raise UsageError(
                    f"what is published as {name!r} is a part of {graph.ids_of(graph.publishers[name])[0]!r}",
                    code="ACEP-U060",
                    hint=f"add a query that reads {name} and shows it",
                )
        else:
            graph.known(name)
        members = {} if self.levels is None else self.levels.members
        return [(n, members[entry.number].nothing().slice(0, 0)) for n, entry in shown if entry.running]

    def fresh(self, new_load: Callable[[], SharedLoad] | None = None) -> Running:
        """The same queries, before any event; with another load budget, as may be."""
        running = Running(self.wanted, self.key_idle, self.lateness, new_load or self.new_load)
        running.graph.bind, running.graph.weights = self.graph.bind, dict(self.graph.weights)
        running.graph.passed, running.graph.is_fed = self.graph.passed, self.graph.is_fed
        numbers = defaultdict[Entry, list[int]](list)
        for number, _, entry in self.graph.numbered:
            numbers[entry].append(number)
        copies = {}
        for entry in sorted(self.graph, key=lambda entry: entry.number):  # those that wait come after those that run
            shared = None if entry.shared is None else Shared(entry.shared.template, entry.shared.kinds)
            copy = replace(entry, level=0, running=0, columns_of=None, queries=0, shared=shared)
            copy = copies[entry] = running._let_come(copy)
            if entry.shared is not None and copy.shared is not None:
                copy.shared.add_table(numbers[entry], self._constants(entry, entry.shared, numbers[entry]))
        for entry, mine in groupby(self.graph.numbered, itemgetter(2)):
            those, ids, _ = zip(*mine, strict=True)
            running.graph.name(copies[entry], those, ids)
        return running

    def text(self, id: str) -> str:  # noqa: A002  (what users call it)
        """The text of a query, with its constants where it is one of a template."""
        number, entry = self.graph.shown(id)
        if entry.shared is None:
            return entry.text
        (constants,) = self._constants(entry, entry.shared, [number]).to_pylist()
        return text_of(filled(entry.shared.template.syntax, constants))

    def _constants(self, entry: Entry, shared: Shared, numbers: list[int]) -> pa.Table:
        if self.levels is None or not entry.running:
            waiting, table = shared.waiting()
            order = np.argsort(waiting)
            return table.take(pa.array(order[np.searchsorted(waiting, numbers, sorter=order)]))
        return self.levels.members[entry.number].constants(np.array(numbers, np.int64))


def _has_times(schema: pa.Schema, roles: Roles) -> bool:
    return tick_unit(schema.field(roles.time).type, roles.unit) is not None
