"""The stream side: what is read, typed and coded once per batch, for all queries on a stream.

A batch travels so: its columns are brought to the types of the stream, and those that no file has are put beside them;
then each query in turn takes from it what it asks for (``Pipeline``). Keys that are silent for all are forgotten, and
the streams of those end that had no event for a given time (``IdleKeys``).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints
from acep_approx.engines.engine import Engine
from acep_approx.engines.runs.event_columns import EventColumns, Texts
from acep_approx.errors import DataError, ManyKeysWarning, stopped_within
from acep_approx.events.columns import encode_text
from acep_approx.events.keys import KeyCodes
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit
from acep_approx.jit import tiers
from acep_approx.matching.fitting import Fitting, TextOrder, with_text
from acep_approx.matching.idle_keys import IdleKeys
from acep_approx.matching.stream_batch import ColumnOf, Computed, StreamBatch
from acep_approx.planning.durations import Duration, in_ticks

SWEEP = 4096
"""Keys beyond which silent ones are looked for."""
MANY_KEYS = 1_000_000
"""Keys that are kept for ever beyond which it is said."""
FOR_EVER = 2**62
"""Ticks."""
NO_SLOTS = np.zeros(0, np.int64)


class KeySlots:
    """The keys in some columns, each with its slot: for all queries that partition the stream by these columns.

    Parameters
    ----------
    columns : tuple of str
        None: all events are in slot 0.

    Attributes
    ----------
    keys : KeyCodes
        Values of the columns per slot.
    slots : int
        Slots in use so far; 1 without columns.
    without_key : int
        Events left out because one of the columns was NULL (NULL equals nothing).
    swept : int
        Keys that were left when silent ones were looked for.
    idle : IdleKeys or None
        When the streams of keys end; None: they do not, or no query would notice.
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.idle: IdleKeys | None = None
        self.forget()
        self._none = np.zeros(0, np.int64)  # the slots of events without key, one batch after the other

    def forget(self) -> None:
        """Know no key any more."""
        self.keys = KeyCodes()
        self.slots = 0 if self.columns else 1
        self.without_key = 0
        self.swept = 0
        if self.idle is not None:
            self.idle = IdleKeys(self.idle.ticks)

    def encode(self, events: EventBatch) -> Ints:
        """The slot of each event's key; -1 where it has none."""
        if not self.columns or not len(events):
            if len(events) > self._none.size:
                self._none = np.zeros(len(events), np.int64)
            return self._none[: len(events)]
        slot = self.keys.encode([events.data.column(name) for name in self.columns])
        self.without_key += int((slot < 0).sum())
        if self.idle is not None:
            slot = self.idle.divided(self.keys, slot, events.ticks)
        self.slots = max(self.slots, int(slot.max()) + 1)
        return slot

    @property
    def is_due(self) -> bool:
        """Whether there are so many keys, and twice as many as after the last time, that silent ones should go."""
        return len(self.keys) >= 2 * self.swept + SWEEP


class QuerySide(ABC):
    """What takes part in the batches of a stream: a query, or many together.

    Most of what is asked when a window or the stream of a key ends has a default: that of results that never wait.

    Attributes
    ----------
    stream : StreamSide
    key_slots : KeySlots
    engine : Engine
        Holds its runs, and texts for them.
    known : pyarrow.Schema
        Of the stream, when this was set up.
    reads : tuple of str
        Columns that must be in each batch.
    as_text : frozenset of str
        Columns whose bytes are text to it.
    compared : frozenset of str
        Columns whose values it compares otherwise than as keys.
    in_order : frozenset of str
        Columns whose values it compares by their order.
    """

    stream: StreamSide
    key_slots: KeySlots
    engine: Engine
    known: pa.Schema
    reads: tuple[str, ...]
    as_text: frozenset[str]
    compared: frozenset[str]
    in_order: frozenset[str]

    def join(self) -> None:
        """Take part in the batches from now on."""
        if not self.stream.schema.equals(self.known):
            self.set_up()  # types have become wider since
        self.stream.add(self)

    @abstractmethod
    def set_up(self) -> None:
        """Begin anew, with the schema that the stream has now."""

    @abstractmethod
    def widen(self, schema: pa.Schema) -> None:
        """Go on with these wider types."""

    @abstractmethod
    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""

    # --- batches --------------------------------------------------------------------------------------------

    @abstractmethod
    def prepare(self, batch: StreamBatch) -> None:
        """Take from a batch what is asked of it, before any of its events is run."""

    @abstractmethod
    def run(self, batch: StreamBatch) -> Iterator[pa.Table]:
        """Run a batch that was prepared."""

    @abstractmethod
    def done(self) -> None:
        """All queries are done with the batch."""

    def pass_time(self, tick: int) -> Iterator[pa.Table]:  # noqa: ARG002
        """What waited for windows that end before ``tick``."""
        return iter(())

    def finish(self) -> Iterator[pa.Table]:
        """What was still waiting for the end of its window."""
        return iter(())

    # --- keys that nothing needs any more -----------------------------------------------------------------

    @abstractmethod
    def is_silent(self, slots: Ints, now: int) -> Bools:
        """Per key slot whether nothing of its events is held that may still play a role at ``now``."""

    @abstractmethod
    def clear(self, slots: Ints) -> None:
        """Forget some key slots."""

    @abstractmethod
    def outlives(self, ticks: int) -> bool:
        """Whether an event can play a role when no event of its key has come for longer than so many ticks."""

    def waits_in(self) -> Ints:
        """The key slots of results that wait."""
        return NO_SLOTS

    @abstractmethod
    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:
        """The streams of some keys have ended: give what waits for them, and forget their slots."""

    # --- state ------------------------------------------------------------------------------------------------

    @abstractmethod
    def save(self, scope: Scope) -> None:
        """Save where it stands."""

    @abstractmethod
    def restore(self, scope: Scope) -> None:
        """Go on from what ``save`` saved, before anything was run.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """


class StreamSide:
    """One stream of events and the queries on it.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the events.
    roles : Roles
        Which columns are time, key and type.
    derived : mapping of str to pyarrow.DataType, optional
        Columns that no file has: they are given with each batch, and queries name them like all others.
    key_idle : str or int, optional
        The stream of a key ends when no event of it comes for longer; default: it does not. A bare number is in ticks.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the events with the derived columns, as wide as their types have become; bytes are bytes.
    texts : Texts
        Codes of texts in conditions across events.
    key_slots : dict of tuple of str to KeySlots
        By key columns.
    queries : dict of QuerySide to None
        In the order in which they were added; a dict, so that one comes and goes in a time that does not grow with
        their number.
    idle_ticks : int or None
        ``key_idle`` in ticks of the stream, once these are known.
    last_tick : int or None
        Of the last event.
    left_out : frozenset of str
        Columns of the schema that do not come with batches: see ``leave_out``.
    is_within : bool
        Whether it stands in the middle of a batch: an error stopped it there, or not all results were taken.
    ends : bool
        Whether no event can come behind its last one, once its queries are finished.
    unclosed : int
        If there can: how many results waited then for a window that these may lie in.

    Raises
    ------
    DataError
        ``ACEP-D046``: a derived column has the name of a column of the events, or is their time.
    """

    def __init__(
        self,
        schema: pa.Schema,
        roles: Roles,
        derived: Mapping[str, pa.DataType] | None = None,
        key_idle: Duration | None = None,
    ) -> None:
        self.key_idle = key_idle
        self.derived = tuple(derived or {})
        self.left_out: frozenset[str] = frozenset()
        for name in self.derived:
            if name in schema.names or name == roles.time:
                what = "a column of the events" if name in schema.names else "their time"
                raise _wrong_derived(f"the derived column {name!r} is {what}, too", "give it a name of its own")
        self.roles = roles
        self.texts = Texts()
        self.key_slots: dict[tuple[str, ...], KeySlots] = {}
        self.queries: dict[QuerySide, None] = {}
        self.last_tick: int | None = None
        self.is_within = False
        self.ends = True
        self.unclosed = 0
        self._has_warned = False
        self._text_order = TextOrder()
        self.know(pa.schema([*schema, *(derived or {}).items()]))

    def know(self, schema: pa.Schema) -> None:
        """Take over a schema."""
        self.schema = with_text(schema, ())
        self._asked: tuple[Fitting, EventColumns] | None = None
        self._in_order: frozenset[str] = frozenset()
        type_ = self.schema.field(self.roles.time).type
        if self.key_idle is None or (pa.types.is_null(type_) and self.roles.unit is None):
            self.idle_ticks: int | None = None
        else:
            is_time = tick_unit(type_, self.roles.unit) is not None
            self.idle_ticks = in_ticks("key_idle", self.key_idle, is_time=is_time)

    def _what_is_asked(self) -> tuple[Fitting, EventColumns]:
        """What the queries that are there ask of a batch: made when it is first needed after they have changed."""
        if self._asked is None:
            as_text = frozenset[str]().union(*(query.as_text for query in self.queries))
            shared = with_text(self.schema, as_text)
            reads = dict.fromkeys(name for query in self.queries for name in query.reads)
            self._in_order = frozenset[str]().union(*(query.in_order for query in self.queries))
            keys = {name for columns in self.key_slots for name in columns}
            compared = frozenset[str]().union(*(query.compared for query in self.queries))
            fitting = Fitting(shared, reads, keys, as_text, compared)
            self._asked = fitting, EventColumns(shared, self.roles.column, self.texts)
            self._let_keys_end()
        return self._asked

    def _let_keys_end(self) -> None:
        """Let the streams of keys end where a query would notice: one whose windows close before does not."""
        ticks = self.idle_ticks
        if ticks is None:
            return
        for query in self.queries:
            one = query.key_slots
            if one.columns and one.idle is None and query.outlives(ticks):
                one.idle = IdleKeys(ticks)
                one.idle.take_up(one.keys.used(), self.last_tick or 0)

    def leave_out(self, names: Iterable[str]) -> None:
        """Let some derived columns not come with batches: who runs the queries knows what they ask of these.

        To be called before queries are added.
        """
        self.left_out = frozenset(names)
        self.derived = tuple(name for name in self.derived if name not in self.left_out)

    def slots_of(self, key_columns: tuple[str, ...]) -> KeySlots:
        """The slots of the keys in some columns, the same for all who ask."""
        return self.key_slots.setdefault(key_columns, KeySlots(key_columns))

    def add(self, query: QuerySide) -> None:
        """Let one more query take part in the batches from now on."""
        self.queries[query] = None
        self._asked = None

    def remove(self, query: QuerySide) -> None:
        """Let a query take part no more; keys that no other one needs are forgotten.

        Complexity: O(1), and O(queries) with the next batch; O(queries) where no other has the same keys.
        """
        del self.queries[query]
        self._asked = None
        mine = query.key_slots
        if not any(other.key_slots is mine for other in self.queries):
            mine.forget()

    def learn(self, schema: pa.Schema) -> None:
        """Know of the columns that batches have from now on, also of those that no query has read so far.

        Queries that are added later can read them. Columns that are read keep their types until a batch comes.
        """
        read = {*self._what_is_asked()[0].columns, *self.derived, self.roles.time}
        known = {field.name: field.type for field in self.schema}
        wanted = known | {field.name: field.type for field in with_text(schema, ()) if field.name not in read}
        if wanted != known:
            self.know(pa.schema([*wanted.items()]))

    @property
    def keys_dropped(self) -> int:
        """How many streams of keys have ended, since no event of them came for too long."""
        now, idle = self.last_tick, [one.idle for one in self.key_slots.values()]
        return 0 if now is None else sum(one.dropped_by(now) for one in idle if one is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be read for the queries; those that are derived are not among them."""
        return tuple(name for name in self._what_is_asked()[0].columns if name not in self.derived)

    # --- batches --------------------------------------------------------------------------------------------

    def run(self, events: EventBatch, derived: Mapping[str, pa.Array] | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Run a batch through all queries, one after the other.

        Parameters
        ----------
        events : EventBatch
        derived : mapping of str to pyarrow.Array, optional
            The derived columns of these events.

        Yields
        ------
        number, table
            Results of the query of that number, as they are made; all must be taken before the next batch.

        Raises
        ------
        DataError
            ``ACEP-D007``: time runs backwards; ``ACEP-D045``: an error stopped it in the middle of a batch before;
            ``ACEP-D046``: a derived column is missing, or not as long as the batch; and those of ``fit``.
        """
        batch = self.begin(events, derived)
        for number, query in enumerate(self.queries):
            query.prepare(batch)
            if number == len(self.queries) - 1:
                batch.computed.forget_truths()  # memory that what comes now can use
            self.is_within = True
            for table in query.run(batch):
                yield number, table
        if together := batch.computed.together:
            numbers: dict[object, int] = {query: number for number, query in enumerate(self.queries)}
            for whose, results in together.values():
                yield numbers[whose], results.table()
        yield from self._end_keys(int(batch.ticks[-1]))
        self.end(int(batch.ticks[-1]))

    def begin(self, events: EventBatch, derived: Mapping[str, pa.Array] | None = None) -> StreamBatch:
        """The first part of ``run``, for who does the middle otherwise: checks a batch and makes it ready."""
        self.check_whole()
        self._check_order(events)
        tiers.expect(len(events))
        return self.batch(events, derived)

    def end(self, tick: int) -> None:
        """The last part of ``run``: all queries are done with the events up to a tick."""
        self.last_tick = tick
        self.sweep(tick)
        for query in self.queries:
            query.done()
        self.is_within = False

    def batch(self, events: EventBatch, derived: Mapping[str, pa.Array] | None = None) -> StreamBatch:
        """A batch in the types of the stream, ready for all queries."""
        if self.texts.has_many:
            self._forget_texts()
        if self.derived or derived:
            events = self._with_derived(events, derived or {})
        events = self.fit(events)
        column = ColumnOf(events.data, self.roles)
        words = self._what_is_asked()[1]
        return StreamBatch(
            events, Computed(events, column, words, lambda columns, batch: self.key_slots[columns].encode(batch))
        )

    def fit(self, events: EventBatch) -> EventBatch:
        """A batch in the types of the stream, which become wider where they must, for all queries.

        Raises
        ------
        DataError
            ``ACEP-D002``, ``ACEP-D024``, ``ACEP-D025``, ``ACEP-D031``: its columns do not fit those before.
        """
        if (wider := self._what_is_asked()[0].wider(events)) is not None:
            self._widen(wider)
        fitted = self._what_is_asked()[0].fitted(events)
        self._text_order.look(fitted.data, self._in_order)
        return fitted

    def _with_derived(self, events: EventBatch, derived: Mapping[str, pa.Array]) -> EventBatch:
        """The batch with its derived columns; what a file may have under their names is not looked at."""
        if set(derived) != set(self.derived):
            given, wanted = (", ".join(sorted(names)) or "none" for names in (derived, self.derived))
            raise _wrong_derived(f"a batch came with the derived columns {given}; wanted: {wanted}", "give all of them")
        for name, column in derived.items():
            if len(column) != len(events):
                raise _wrong_derived(
                    f"the derived column {name!r} has {len(column)} values, and the batch {len(events)} events",
                    "give one value for each event, NULL where there is none",
                )
        names = [name for name in events.data.schema.names if name not in derived]
        columns = {name: events.data.column(name) for name in names}
        for name, column in derived.items():
            columns[name] = encode_text(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
        return replace(events, data=pa.RecordBatch.from_pydict(columns))

    def _widen(self, wider: pa.Schema) -> None:
        before = self._what_is_asked()[0].schema
        changed = {field.name: field.type for field in wider if not field.type.equals(before.field(field.name).type)}
        schema = pa.schema([(field.name, changed.get(field.name, field.type)) for field in self.schema])
        if pa.types.is_null(self.schema.field(self.roles.time).type):  # every event has a time: none has come yet
            self.know(schema)
            for query in self.queries:
                query.set_up()
            return
        keys = {}
        try:
            for columns, one in self.key_slots.items():
                keys[columns] = one.keys.widened([schema.field(name).type for name in columns])
            for query in self.queries:
                query.widen(schema)
                self.is_within = len(self.queries) > 1  # should another one refuse, they know different types
        except pa.ArrowInvalid as error:
            raise DataError(
                f"columns change their types, and what is remembered of them cannot be held exactly: {error}",
                code="ACEP-D024",
                hint="give each column one type in all batches of a stream",
            ) from error
        self.is_within = False
        for columns, widened in keys.items():
            self.key_slots[columns].keys = widened
        self.know(schema)

    # --- what is remembered ---------------------------------------------------------------------------------

    def pass_time(self, tick: int) -> Iterator[tuple[int, pa.Table]]:
        """What waited for windows that end before ``tick``, by query; nothing earlier comes any more."""
        for number, query in enumerate(self.queries):
            for table in query.pass_time(tick):
                yield number, table
        yield from self._end_keys(tick)
        self.sweep(tick)

    def check_whole(self) -> None:
        """Refuse to go on from the middle of a batch: its events are half in, and links of runs lead nowhere."""
        if self.is_within:
            raise stopped_within("this matcher")

    def _check_order(self, events: EventBatch) -> None:
        first = int(events.ticks[0])
        if self.last_tick is not None and first < self.last_tick:
            raise DataError(
                f"row {events.first_row}: time runs backwards from batch to batch, {first} after {self.last_tick}",
                code="ACEP-D007",
                row=events.first_row,
                hint="push events in order of time",
            )

    def sweep(self, now: int, held: Ints = NO_SLOTS) -> None:
        """Free the slots of keys that have been silent for longer than the windows of all queries that use them.

        ``held``: slots of keys that are not silent, whatever the queries say.
        """
        self._look_at_number()
        for one in self.key_slots.values():
            if not one.is_due or one.idle is not None:
                continue
            users = [query for query in self.queries if query.key_slots is one]
            if not users:
                continue
            silent = one.keys.used()
            silent = silent[~np.isin(silent, held)] if len(held) else silent
            for query in users:
                silent = silent[query.is_silent(silent, now)]
            one.keys.release(silent)
            for query in users:
                query.clear(silent)
            one.swept = len(one.keys)

    def _end_keys(self, now: int) -> Iterator[tuple[int, pa.Table]]:
        """What waited for the streams of keys of which no event came for too long; their slots are free then."""
        for one in self.key_slots.values():
            if one.idle is None:
                continue
            users = [(number, query) for number, query in enumerate(self.queries) if query.key_slots is one]
            ended = one.idle.ended(now, np.concatenate([NO_SLOTS, *(query.waits_in() for _, query in users)]))
            if len(ended):
                for number, query in users:
                    for table in query.end_keys(ended):
                        yield number, table
                one.keys.release(ended)

    def _look_at_number(self) -> None:
        """Say it, once, where many keys are kept for ever."""
        if self._has_warned:
            return
        for columns, one in self.key_slots.items():
            if len(one.keys) <= MANY_KEYS or one.idle is not None:
                continue
            if any(query.key_slots is one and query.outlives(FOR_EVER) for query in self.queries):
                self._has_warned = True
                warnings.warn(
                    f"more than {MANY_KEYS:,} keys [{', '.join(columns)}] are kept, and their number grows with the "
                    "stream: windows of events do not close while no event of a key comes; --key-idle TIME (key_idle=; "
                    "not with rules or late events) drops keys that had no event for so long",
                    ManyKeysWarning,
                    stacklevel=2,
                )

    def _forget_texts(self) -> None:
        """Let go of the texts that no query holds, and give the others new codes."""
        held = [query.engine.texts_held() for query in self.queries]
        codes = self.texts.keep(np.concatenate([np.zeros(0, np.int64), *held]))
        for query in self.queries:
            query.engine.recode_texts(codes)


def _wrong_derived(what: str, hint: str) -> DataError:
    return DataError(what, code="ACEP-D046", hint=hint)
