"""The levels of a set: queries that read what others publish come after these, batch by batch.

Queries of level 0 see the events of the stream; those of a level above also what levels below publish, at the same
time. A batch ends with a complete epoch (all events of its last time are in it), so that level by level is as good as
event by event.

Source: Demers et al., CIDR 2007, section 3.2: instances wait for the end of the epoch, and results are events of it.
There a queue holds events in order; here the streams form no circle, so that levels do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import pyarrow as pa

from acep_approx.errors import DataError, QueryError
from acep_approx.events.columns import to_numpy
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.matching.renumber import row_columns
from acep_approx.matching.shared_load import SharedLoad
from acep_approx.matching.stream_side import QuerySide, StreamSide
from acep_approx.planning.durations import Duration
from acep_approx.run.passing import Passing
from acep_approx.subscriptions.graph import NUMBER, Entry, Graph
from acep_approx.subscriptions.members import Budgeted, Level, Member, OneQuery
from acep_approx.subscriptions.published import (
    BEGAN,
    Published,
    Publishing,
    began_type,
    merged,
    roles_above,
    unified,
)
from acep_approx.subscriptions.stages import COMPLETED_BY, Given
from acep_approx.subscriptions.templates.member import TemplateMember

MANY = 16
"""Queries, and templates, beyond which a copy of a batch costs less than one batch more."""
Key = tuple[int, tuple[str, ...] | None]
"""A level; the streams that are seen there: None where those that are not named do not matter."""
Results = Iterator[tuple[Member, pa.Table]]


class Levels:
    """Runs the queries of a set, level by level.

    Parameters
    ----------
    graph : Graph
    schema : pyarrow.Schema
        Of the events of the stream.
    roles : Roles
    key_idle : str or int, optional
        See ``StreamSide``.
    load : SharedLoad, optional
        A load budget that all engines share; default: nothing is shed.

    Attributes
    ----------
    passing : Passing or None
        Collects what another set is to get of this one.
    """

    passing: Passing | None = None

    def __init__(
        self,
        graph: Graph,
        schema: pa.Schema,
        roles: Roles,
        key_idle: Duration | None = None,
        load: SharedLoad | None = None,
    ) -> None:
        self.roles = roles
        self._budget = None if load is None else Budgeted(load, graph.weights)
        self._key_idle = key_idle
        self.published = 0
        self.members: dict[int, Member] = {}
        self._member_of: dict[QuerySide, Member] = {}
        self._many: dict[object, tuple[Member, Entry]] = {}  # with the entry of queries that it got last
        self._stood_alone: set[object] = set()  # the next query of these templates does not
        self.levels: dict[Key, Level] = {}
        self._graph = graph
        self.levels[0, None] = self.new_level(StreamSide(schema, roles, key_idle=key_idle))
        self._publishers: dict[str, dict[int, Publishing]] = {}  # by the names of their streams
        self._waiting: dict[int, Entry] = {}  # those of them that do not take part yet

    def new_level(self, side: StreamSide, reads: dict[str, int] | None = None, rows: int = 0) -> Level:
        """A level without queries so far."""
        graph = self._graph
        return Level(side, reads or {}, rows, bind=graph.bind, budget=self._budget, passed=graph.passed)

    @property
    def base(self) -> StreamSide:
        """The stream itself."""
        return self.levels[0, None].side

    # --- queries that come and go -----------------------------------------------------------------------------

    def build(
        self, entries: Iterable[Entry], apart: Callable[[Entry], list[Entry]], *, says_whose: bool = True
    ) -> dict[int, Member]:
        """What will run some queries from their ``join`` on, by the numbers of their entries.

        Parameters
        ----------
        entries : iterable of Entry
        apart : callable
            Makes an entry for each query of a template: they cannot be run as one.
        says_whose : bool, default True
            Whether the message of an error about a query has its id: it was added long ago.

        Raises
        ------
        DataError, QueryError
            A column is missing or has the wrong type; ``ACEP-D080`` to ``ACEP-D082``: what is published does not fit.
        """
        self._forget()
        made: dict[int, Member] = {}
        entries = sorted(entries, key=lambda entry: (entry.level, entry.number))
        alike: Counter[int] = Counter()
        for entry in entries:
            if entry.shared is not None:
                alike[id(entry.shared.template)] += len(entry.shared)
        many: dict[object, Member] = {}
        for entry in entries:
            ones = [entry]
            if entry.shared is not None:
                is_alone = alike[id(entry.shared.template)] == 1
                if member := self._member_of_many(entry, many, is_alone=is_alone):
                    made[entry.number] = member
                    self._note_published(entry, member)
                    continue
                ones = apart(entry)
            for one in ones:
                level = self._level_for(one)
                try:
                    made[one.number] = new_member(level, one, self._columns_of(one))
                except QueryError as error:
                    if says_whose:
                        error.message = f"the query {one.id!r}: {error.message}"
                    raise
                self._note_published(one, made[one.number])
        return made

    def _forget(self) -> None:
        """Let go of levels without queries, and of queries that were built and went before they took part."""
        for key, level in [*self.levels.items()]:
            if not level.side.queries and key != (0, None):
                del self.levels[key]
        for entry in [entry for entry in self._waiting.values() if entry.number not in self._graph.entries]:
            self._note_gone(entry)

    def _member_of_many(self, entry: Entry, many: dict[object, Member], *, is_alone: bool) -> Member | None:
        """What runs queries that differ in constants alone; None: each runs by itself.

        ``many`` are those that were made just now.
        """
        level, columns_of = self._level_for(entry), self._columns_of(entry)
        key = _key_of_many(level, entry, columns_of)
        if key in self._many:
            return self._many[key][0]
        if key not in many and (not is_alone or key in self._stood_alone):
            with suppress(QueryError):  # a string that a time is compared with: only a constant is read as a time
                many[key] = new_member(level, entry, columns_of)
        if key not in many:
            self._stood_alone.add(key)
        return many.get(key)

    def _note_published(self, entry: Entry, member: Member) -> None:
        if entry.publish is not None:
            one = Publishing(entry, member.nothing().schema, self.roles)
            self._publishers.setdefault(entry.publish, {})[entry.number] = one
            self._waiting[entry.number] = entry

    def _note_gone(self, entry: Entry) -> None:
        self._waiting.pop(entry.number, None)
        alike = self._publishers.get(entry.publish or "", {})
        alike.pop(entry.number, None)
        if not alike:
            self._publishers.pop(entry.publish or "", None)

    def know(self, entry: Entry, member: Member) -> None:
        """Know of queries that take part in the batches already: they were restored."""
        self._note_published(entry, member)
        self._let_speak(entry, member)
        if entry.shared is not None:
            key = _key_of_many(member.level, entry, member.columns_of)
            if entry.queries or key not in self._many:
                self._many[key] = member, entry

    def join(self, entry: Entry, member: Member) -> None:
        """Let queries take part in the batches from now on."""
        numbers = member.take(entry)
        entry.running, entry.columns_of = len(numbers), member.columns_of
        if entry.shared is not None:
            key = _key_of_many(member.level, entry, member.columns_of)
            _, known = self._many.setdefault(key, (member, entry))
            if not known.queries:  # it is about to leave
                self._many[key] = member, entry
            elif known is not entry:  # they are parts of the entry of those that take part already
                given = self._graph.give(numbers.tolist(), entry, known)
                entry.running -= given
                known.running += given
            if not entry.running:
                self._note_gone(entry)
                return
        for name in entry.reads:
            member.level.reads[name] = member.level.reads.get(name, 0) + 1
        self._let_speak(entry, member)

    def _let_speak(self, entry: Entry, member: Member) -> None:
        """Note who runs an entry, and what its results are; all entries of a member publish the same stream."""
        self.members[entry.number] = self._member_of[member.side] = member
        if self._waiting.pop(entry.number, None) is not None:
            member.publishing = self._publishers[str(entry.publish)][entry.number]

    def remove(self, number: int, entry: Entry) -> Results:
        """Let go of a query; gives what of it waited for the end of a window."""
        member = self.members[entry.number]
        for table in member.remove(number):
            yield member, member.shown(table)
        entry.running -= 1
        if entry.running:
            return
        del self.members[entry.number]
        if member.is_empty:
            del self._member_of[member.side]
            self._many.pop(_key_of_many(member.level, entry, member.columns_of), None)
        self._note_gone(entry)
        reads = member.level.reads
        for name in entry.reads:
            reads[name] -= 1
            if not reads[name]:
                del reads[name]

    def _level_for(self, entry: Entry) -> Level:
        """What a query sees, with all columns that it may name.

        On a level all queries see the same, but for those to which events matter that they do not name, and those
        whose attributes have the names of others with types that do not go together.
        """
        if entry.level == 0:
            return self.levels[0, None]
        own = entry.level, tuple(sorted(entry.reads))
        if not entry.is_about_all:
            try:
                return self._level(entry, (entry.level, None))
            except DataError as error:
                if error.code != "ACEP-D082":
                    raise
        return self._level(entry, own)

    def _level(self, entry: Entry, key: Key) -> Level:
        """What the queries of a key see, with what one more of them reads."""
        level = self.levels.get(key)
        publishing = [one for name in sorted(entry.reads) for one in self._publishing_of(name, entry)]
        base, roles = self.base.schema, roles_above(self.roles)
        types = {str(roles.type): pa.string(), BEGAN: began_type(base.field(roles.time).type, roles.unit)}
        types |= {} if level is None else level.types
        types |= {field.name: field.type for field in base}
        schema = unified(pa.schema([*types.items()]), publishing)
        if level is None:
            level = self.levels[key] = self.new_level(StreamSide(schema, roles, key_idle=self._key_idle))
        level.types |= {field.name: schema.field(field.name).type for one in publishing for field in one.schema}
        level.side.learn(schema)
        return level

    def _publishing_of(self, stream: str, reader: Entry) -> list[Publishing]:
        """What makes the events of a stream that a query sees, which may have been removed and still see an epoch."""
        return [one for one in self._publishers.get(stream, {}).values() if one.entry.meets(reader)]

    def _columns_of(self, entry: Entry) -> dict[str, tuple[str, ...]] | None:
        """The columns of the streams that a query in CEL reads; those that are published have only what they say."""
        if entry.plan.cel is None or entry.columns_of is not None:
            return entry.columns_of
        own = {self.roles.time, self.roles.type, self.roles.start}
        base = tuple(name for name in self.base.schema.names if name not in own)
        found = {}
        for stream in entry.reads:
            shown = [name for one in self._publishing_of(stream, entry) for name in one.attributes]
            found[stream] = tuple(dict.fromkeys(shown)) if self._publishing_of(stream, entry) else base
        return found

    @property
    def has_many(self) -> bool:
        """Whether so many queries or templates are run that a batch more costs them something."""
        return sum(len(level.side.queries) for level in self.levels.values()) > MANY

    # --- batches ----------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream that must be read."""
        above = [name for (number, _), level in self.levels.items() if number for name in level.side.columns]
        return tuple(dict.fromkeys([*self.base.columns, *self.of_stream(above)])) or (self.roles.time,)

    def of_stream(self, names: Iterable[str]) -> Iterator[str]:
        """The columns of the stream that some columns of a level are, or are made of."""
        for name in names:
            if name == BEGAN and self.roles.start is not None:
                yield self.roles.start
            elif name in self.base.schema.names:
                yield name

    def run(self, batch: EventBatch) -> Results:
        """Run a batch of complete epochs through all queries; all results must be taken before the next one."""
        if self._budget is None:
            yield from self._run(batch)
            return
        for piece in self._budget.load.pieces(batch):
            yield from self._run(piece)

    def _run(self, batch: EventBatch) -> Results:
        published, moments = list[Published](), batch
        if self._graph.is_fed:
            given = Given(batch)
            batch, published = given.events, [*self._given(given)]
        if self.passing is not None:
            self.passing.begin(batch)
        for (number, _), level in self._in_order():
            if not level.side.queries or (self._graph.is_fed and not number):
                continue
            events = batch
            if number:
                parts = [part for part in published if part.name in level.reads and len(part)]
                events = merged(batch, parts, level.side.columns, self.roles, level.rows, moments)
            if not len(events):
                continue
            level.rows += len(events)
            for member, table in self._shown(level.side, level.side.run(events)):
                published += self._events_of(member, table)
                yield member, table

    def _shown(self, side: StreamSide, tables: Iterator[tuple[int, pa.Table]]) -> Results:
        """Results of what takes part in a stream, by its number, as those of members."""
        queries = [*side.queries]
        for number, table in tables:
            member = self._member_of[queries[number]]
            member.take_log()
            shown = member.shown(table)
            if self.passing is not None and member.publishing is not None and COMPLETED_BY in table.column_names:
                rows = to_numpy(table.column(COMPLETED_BY).combine_chunks())
                makers = shown.column(NUMBER).combine_chunks()
                self.passing.results(str(member.publishing.entry.publish), makers, shown, rows)
            yield member, shown

    def _given(self, batch: Given) -> Iterator[Published]:
        """The events that the results of level 0 are, which another set has found."""
        for member in map(self._member_of.__getitem__, self.levels[0, None].side.queries):
            if member.publishing is not None:
                known = member.nothing().schema
                yield from self._events_of(member, batch.results(member.publishing, member.numbers, known))

    def _in_order(self) -> list[tuple[Key, Level]]:
        return sorted(self.levels.items(), key=lambda item: item[0][0])

    def _events_of(self, member: Member, table: pa.Table) -> Iterator[Published]:
        """The events that results are, if somebody reads them."""
        one = member.publishing
        if one is None or not table.num_rows:
            return
        if any(one.entry.publish in level.reads for (number, _), level in self.levels.items() if number):
            events = one.events(table, self.published)
            self.published += len(events)
            yield events

    def pass_time(self, tick: int) -> Results:
        """What waited for windows that end before ``tick``; nothing earlier comes any more."""
        for _, level in self._in_order():
            yield from self._shown(level.side, level.side.pass_time(tick))

    def finish(self, *, ended: bool = True) -> Results:
        """The stream has ended: what was still waiting for the end of its window; see ``Running.finish``."""
        for _, level in self._in_order():
            level.side.ends = ended
            tables = ((number, table) for number, one in enumerate(level.side.queries) for table in one.finish())
            yield from self._shown(level.side, tables)


def new_member(level: Level, entry: Entry, columns_of: dict[str, tuple[str, ...]] | None) -> Member:
    """Return what runs the queries of an entry, and of others like it, once they take part.

    Raises
    ------
    DataError, QueryError
        A column is missing or has the wrong type.
    """
    made = (OneQuery if entry.shared is None else TemplateMember)(level, entry, columns_of)
    if entry.level:  # below there are rows only
        made.rows = row_columns(entry.plan, entry.output, level.bind_of(entry))
    return made


def _key_of_many(level: Level, entry: Entry, columns_of: Mapping[str, tuple[str, ...]] | None) -> object:
    """What queries have in common that one member runs."""
    return id(level), entry.key, *(columns_of or {}).items()
