"""A place in the stream: the events of one partition around a time, or all events; and queries run over it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.automaton.letters import LetterReader, Truths, type_name
from acep_approx.errors import AcepError, DataError, UsageError
from acep_approx.events.columns import is_bytes, plain_type
from acep_approx.events.keys import as_key, key_type
from acep_approx.events.reading.widening import one_table
from acep_approx.events.roles import Roles
from acep_approx.events.source import Source, open_source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.events.time import tick_unit, ticks, to_datetime
from acep_approx.events.writing.tables import plain_text
from acep_approx.matching.execution import Execution
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_batch import ColumnOf
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.shape import walk
from acep_approx.query.syntax import MICROSECONDS, Aggregate, Attribute, QuerySyntax
from acep_approx.run.run import parts_of

UNITS = sorted(((unit, size) for unit, size in MICROSECONDS.items() if unit != "week"), key=lambda item: -item[1])
"""Of time, the longest first, with their microseconds."""
SAMPLE = 1000
"""Keys that are remembered to propose the one that was meant."""


@dataclass(frozen=True)
class StreamPlace:
    """The events around a time.

    ``rows`` are their numbers in the input; ``is_part``: whether they are of the partition in question (only strict
    contiguity asks for others). ``until``: the last tick that was read.
    """

    plan: Plan
    roles: Roles
    around: int
    window: int
    is_time: bool
    key: dict[str, Any]
    table: pa.Table
    rows: Ints
    ticks: Ints
    is_part: npt.NDArray[np.bool_]
    until: int

    @cached_property
    def clock(self) -> Ints:
        """What the window counts, per event."""
        return np.cumsum(self.is_part) - 1 if self.plan.is_count_window else self.ticks

    @cached_property
    def masks(self) -> npt.NDArray[np.uint64]:
        """Which letters of the automaton hold on each event."""
        if not len(self.rows):
            return np.zeros(0, np.uint64)
        batch = self.table.combine_chunks().to_batches()[0]
        return LetterReader(self.plan.automaton.letters).masks(Truths(len(self.rows), ColumnOf(batch, self.roles)))

    @cached_property
    def types(self) -> list[str | None]:
        """The type of each event, where there are types."""
        if self.roles.type is None or self.roles.type not in self.table.column_names:
            return [None] * len(self.rows)
        return list(map(type_name, self.table.column(self.roles.type).to_pylist()))

    def column(self, name: str) -> pa.Array:
        """The values of an attribute."""
        return self.table.column(self.roles.column(name)).combine_chunks()

    def is_before(self, one: int, other: int) -> bool:
        """Whether an event (-1: the beginning) comes before another one: where times are shared, at an earlier time."""
        if not self.plan.query.is_simultaneous or one < 0 or other >= len(self.rows):
            return one < other
        return bool(self.ticks[one] < self.ticks[other])

    def between(self, one: int, other: int, *, of_part: bool = True) -> list[int]:
        """The events between two others, of the partition or of all."""
        places = np.flatnonzero(self.is_part).tolist() if of_part else range(len(self.rows))
        return [at for at in places if self.is_before(one, at) and self.is_before(at, other)]

    def near(self) -> npt.NDArray[np.bool_]:
        """The events of the partition within one window on both sides of the time."""
        if not self.plan.is_count_window:
            return self.is_part & (np.abs(self.ticks - self.around) <= self.window)
        middle = self.clock[min(int(np.searchsorted(self.ticks, self.around)), len(self.ticks) - 1)]
        near: npt.NDArray[np.bool_] = self.is_part & (np.abs(self.clock - middle) <= self.window)
        return near

    def when(self, tick: int) -> str:
        """A tick as people write it."""
        return tick_text(tick, is_time=self.is_time)

    def named(self, at: int) -> str:
        """An event in words: the number of its row, and its time."""
        return f"row {self.rows[at]}, {self.when(int(self.ticks[at]))}"

    def event(self, at: int) -> dict[str, Any]:
        """Row, time and type of an event, and the attributes that the query names."""
        values = {name: self.column(name)[at].as_py() for name in _named(self.plan) if name not in ("ts", "type")}
        return {"row": int(self.rows[at]), "time": self.when(int(self.ticks[at])), "type": self.types[at], **values}

    def run(
        self, query: QuerySyntax | None, output: str, most_steps: int | None = None
    ) -> Iterator[pa.Table]:
        """Run a query over the events; rows of the results are places among them.

        Parameters
        ----------
        query : QuerySyntax or None
            One made from that of the place; None: that itself, as it is planned.
        output : str
            As for ``Execution``.
        most_steps : int, optional
            Run-steps after which it is given up.

        Raises
        ------
        TooManyStepsError
            It takes more.
        QueryError
            It is no query.
        """
        execution = Execution(self.plan if query is None else plan(query), output=output)
        pipeline = execution.bind(self.table.schema, self.roles)
        if most_steps is not None:
            pipeline.results.give_up_after(most_steps)
        yield from parts_of(execution, open_source(self.table))
        yield from pipeline.finish()


def find_places(
    plan: Plan, source: Source, asked: Sequence[tuple[Any, Any]], options: Mapping[str, Any], *, sort: bool = False
) -> list[StreamPlace]:
    """Read the events of some keys within two windows on both sides of some times; once for all of them.

    Parameters
    ----------
    plan : Plan
    source : Source
    asked : sequence of (time, key)
        The time: a str, int or datetime; a whole number where time has no unit. The key: as for ``explain``.
    options : mapping
        ``time``, ``key``, ``type``, ``unit`` and ``start``, as for ``Execution``.
    sort : bool
        Sort the events by time first.

    Returns
    -------
    list of StreamPlace
        In the order asked for.

    Raises
    ------
    UsageError
        ``ACEP-U111``: a key is missing, or the query has none; ``ACEP-U112``: the time cannot be read; ``ACEP-U115``:
        late events are to be skipped, and all are to be sorted.
    DataError
        ``ACEP-D050``: no event has this key; ``ACEP-D051``: the time lies outside the events.

    Complexity: reads until two windows after the last of the times; memory for the events kept, once for each place.
    """
    source.late.check(sort=sort)
    if plan.looks_to_the_start:
        hint = "ask why there are no matches at all (without a time), or leave the clause out"
        message = "why a match came or not cannot be told yet where it depends on the start of its partition"
        raise plan.query.fault("ACEP-Q924", message, plan.query.place("AT START"), hint)
    pipeline = Execution(plan, **options).bind(source.schema)
    roles = pipeline.roles
    time_type = source.schema.field(roles.time).type
    columns = columns_asked(pipeline)
    readers = [
        _Collector(pipeline, _tick(around, time_type, roles.unit), key_asked(plan, key, source.schema, roles))
        for around, key in asked
    ]
    waiting = readers
    for given in read_events(source, roles, columns=columns, sort=sort):
        known, batch = pipeline.schema, pipeline.stream.fit(given)
        if pipeline.schema is not known:
            for reader, (_, key) in zip(readers, asked, strict=True):
                reader.ask_for(key_asked(plan, key, pipeline.schema, roles))
        waiting = [reader for reader in waiting if not reader.is_done(batch)]
        if not waiting:
            break
        for reader in waiting:
            reader.take(batch)
    is_time = tick_unit(time_type, roles.unit) is not None
    places = [reader.place(columns, is_time=is_time) for reader in readers]
    return [replace(place, rows=source.late.original(place.rows)) for place in places]


def columns_asked(pipeline: Pipeline) -> tuple[str, ...]:
    """The columns that a question about a query is answered with."""
    roles = pipeline.roles
    played = [column for column in (roles.key, roles.type) if column is not None]
    return tuple(dict.fromkeys([*pipeline.columns, *map(roles.column, _named(pipeline.plan)), *played]))


class _Collector:
    def __init__(self, pipeline: Pipeline, around: int, key: dict[str, pa.Scalar]) -> None:
        self.pipeline, self.roles, self.window, self.around = pipeline, pipeline.roles, pipeline.window, around
        self.ask_for(key)
        self.is_count = pipeline.plan.is_count_window
        self.takes_all = pipeline.plan.counted == "stream"
        self.first: int | None = None
        self.last = 0
        self.seen = 0  # events of the key
        self.after = 0  # of these, events after the time
        self.others: dict[str, None] = {}
        self.parts: list[tuple[pa.RecordBatch, Ints, Ints, npt.NDArray[np.bool_]]] = []

    def ask_for(self, key: dict[str, pa.Scalar]) -> None:
        """The key, by attribute, in the types of the columns as they are known now."""
        self.wanted = key
        self.key = {self.roles.column(name): value for name, value in key.items()}

    def is_done(self, batch: EventBatch) -> bool:
        """Whether this batch and what comes after it cannot matter; then it is the last that is looked at."""
        if not self.seen:
            return False
        if self.after <= 2 * self.window if self.is_count else batch.ticks[0] <= self.around + 2 * self.window:
            return False
        self.last = int(batch.ticks[0])
        return True

    def take(self, batch: EventBatch) -> None:
        self.first = int(batch.ticks[0]) if self.first is None else self.first
        self.last = int(batch.ticks[-1])
        reach = 2 * self.window
        if self.seen and not self.is_count:  # all that is still to be known lies within two windows of the time
            first = int(np.searchsorted(batch.ticks, self.around - reach))
            batch = batch.slice(first, int(np.searchsorted(batch.ticks, self.around + reach, side="right")) - first)
        mine = _of_key(batch, self.key)
        self.seen += int(mine.sum())
        self.after += int((mine & (batch.ticks > self.around)).sum())
        if not self.seen and len(self.others) < SAMPLE:
            self.others.update(_sample(batch, self.key))
        keep = mine | self.takes_all
        if not self.is_count:
            keep = keep & (np.abs(batch.ticks - self.around) <= reach)
        some = np.flatnonzero(keep)
        if len(some):
            self.parts.append((batch.data.take(pa.array(some)), some + batch.first_row, batch.ticks[some], mine[some]))

    def place(self, columns: Iterable[str], *, is_time: bool) -> StreamPlace:
        """What was kept; refuses a key or a time that is nowhere."""
        if self.key and not self.seen:
            raise _no_such_key(self.key, self.others)
        if self.first is None or not self.first <= self.around <= self.last:
            around, first, last = (tick_text(t, is_time=is_time) for t in (self.around, self.first or 0, self.last))
            extent = "there are no events" if self.first is None else f"the events go from {first} to {last}"
            raise DataError(f"no events around {around}: {extent}", code="ACEP-D051", hint="ask for a time within")
        if self.parts:
            table = unified(one_table([part[0] for part in self.parts])).combine_chunks()
            rows, found, mine = (np.concatenate([part[i] for part in self.parts]) for i in (1, 2, 3))
        else:
            table = pa.schema([self.pipeline.schema.field(name) for name in columns]).empty_table()
            rows, found, mine = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        if self.parts and self.is_count:
            places = np.flatnonzero(mine)
            middle = int(np.searchsorted(found[places], self.around))
            after = max(middle, int(np.searchsorted(found[places], self.around, side="right")) - 1)
            low, high = max(middle - 2 * self.window, 0), min(after + 2 * self.window, len(places) - 1)
            cut = slice(int(places[low]), int(places[high]) + 1)
            table, rows, found, mine = table.slice(cut.start, cut.stop - cut.start), rows[cut], found[cut], mine[cut]
        key = {name: value.as_py() for name, value in self.wanted.items()}
        plan, window = self.pipeline.plan, self.window
        return StreamPlace(plan, self.roles, self.around, window, is_time, key, table, rows, found, mine, self.last)


def _of_key(batch: EventBatch, key: Mapping[str, pa.Scalar]) -> npt.NDArray[np.bool_]:
    """Which events of a batch are of a key, by its columns."""
    return are_of_key([batch.data.column(column) for column in key], [*key.values()], len(batch))


def are_of_key(columns: Sequence[Any], key: Sequence[pa.Scalar], rows: int) -> npt.NDArray[np.bool_]:
    """Which rows have the values of a key in these columns."""
    mine = np.ones(rows, np.bool_)
    for column, value in zip(columns, key, strict=True):
        values = as_key(_plain(column))
        if pa.types.is_null(values.type):  # no event has a value so far
            mine[:] = False
        else:
            mine &= pc.fill_null(_equal(values, value), False).to_numpy(zero_copy_only=False)
    return mine


def _sample(batch: EventBatch, key: Mapping[str, pa.Scalar]) -> dict[str, None]:
    """Values that there are in the first column of a key."""
    known = as_key(_plain(batch.data.column(next(iter(key))))).unique().drop_null()
    return dict.fromkeys(map(str, known.to_pylist()))


def _no_such_key(key: Mapping[str, pa.Scalar], others: Iterable[str]) -> DataError:
    names = ", ".join(f"{name} = {value.as_py()!r}" for name, value in key.items())
    near = get_close_matches(str(next(iter(key.values())).as_py()), [*others], 3, 0.4)
    some = near or [*others][:3]
    hint = f"{'did you mean' if near else 'there are for example'} {', '.join(some)}" if some else None
    return DataError(f"no event has {names}", code="ACEP-D050", hint=hint)


def _named(plan: Plan) -> tuple[str, ...]:
    """The attributes that a query names, beside those of its equivalences."""
    query = plan.query
    trees = [*query.predicates, *(o.value for o in query.outputs), *(d.condition for d in query.definitions)]
    leaves = [leaf for tree in trees for leaf in walk(tree) if isinstance(leaf, (Attribute, Aggregate))]
    return tuple(dict.fromkeys(leaf.name for leaf in leaves if leaf.name is not None))


def tick_text(tick: int, *, is_time: bool) -> str:
    """A tick as people write it.

    Examples
    --------
    >>> tick_text(1_500_000, is_time=True), tick_text(7, is_time=False)
    ('1970-01-01T00:00:01.5Z', '7')
    """
    return str(plain_text(to_datetime(np.array([tick])), "")[0]) if is_time else str(tick)


def span_text(ticks: int, *, is_time: bool) -> str:
    """A length of time as a query would write it.

    Examples
    --------
    >>> span_text(90_000_000, is_time=True), span_text(7, is_time=False)
    ('90 s', '7')
    """
    return next(f"{ticks // size} {unit}" for unit, size in UNITS if ticks % size == 0) if is_time else str(ticks)


def unified(table: pa.Table) -> pa.Table:
    """Without dictionaries, which differ from batch to batch."""
    return pa.table({name: _plain(table.column(name)) for name in table.column_names})


def _plain(column: Any) -> Any:
    type_ = column.type
    return column.cast(type_.value_type) if pa.types.is_dictionary(type_) else column


def _equal(values: pa.Array, key: pa.Scalar) -> pa.Array:
    """Which values are a key; NaN equals itself there."""
    if pa.types.is_float16(key.type):  # Arrow compares no half floats
        values, key = values.cast(pa.float32()), key.cast(pa.float32())
    if pa.types.is_floating(key.type) and key.is_valid and math.isnan(key.as_py()):
        return pc.is_nan(values)
    return pc.equal(values, key)


def _tick(around: Any, type_: pa.DataType, unit: str | None) -> int:
    is_time = tick_unit(type_, unit) is not None
    try:
        if isinstance(around, str) and (not is_time or around.lstrip("+-").isdigit()):
            around = int(around)
        if isinstance(around, datetime) or (isinstance(around, str) and is_time):
            return int(ticks(pa.array([around]))[0])
        return int(ticks(pa.array([int(around)]), unit if is_time else None)[0])
    except (AcepError, ValueError, TypeError, OverflowError, pa.ArrowInvalid) as error:
        hint = "write a time as 2024-05-01T08:00:00Z" if is_time else "write a whole number, as in the time column"
        raise UsageError(f"{around!r} is not a time of these events", code="ACEP-U112", hint=hint) from error


def key_asked(plan: Plan, given: Any, schema: pa.Schema, roles: Roles) -> dict[str, pa.Scalar]:
    """Attribute of each equivalence -> the value asked for."""
    names = [e.name for e in plan.query.equivalences]
    values = _given(names, given)
    each = " ".join(f"--key {name}=VALUE" for name in names)
    if missing := [name for name in names if name not in values]:
        message = f"which {missing[0]}? the query has " + " ".join(f"[{name}]" for name in names)
        raise UsageError(message, code="ACEP-U111", hint=f"give a value for each: {each}")
    for name in names:
        if values[name] is None:
            message = f"NULL is given for {name}, and an event without {name} belongs to no key"
            raise UsageError(message, code="ACEP-U111", hint=f"give a value that events have: {each}")
    found = {}
    for name in names:
        value, type_ = values[name], plain_type(schema.field(roles.column(name)).type)
        type_ = pa.string() if is_bytes(type_) else type_  # keys are read as text
        try:
            if type_ != key_type(type_):
                value = json.loads(value) if isinstance(value, str) else value
                found[name] = as_key(pa.array([value], type_))[0]
            elif pa.types.is_null(type_):  # no event has one so far
                found[name] = pa.scalar(value)
            else:
                found[name] = pa.scalar(value).cast(type_) if isinstance(value, str) else pa.scalar(value, type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError) as error:
            message = f"{value!r} cannot be a value of {name}, which is {type_}"
            hint = "" if type_ == key_type(type_) else f"write a list as JSON: --key '{name}=[...]'"
            raise UsageError(message, code="ACEP-U111", hint=hint) from error
    return found


def _given(names: list[str], given: Any) -> dict[str, Any]:
    """The values asked for by attribute; a plain value is that of the attribute not named."""
    values: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
    rest: list[Any] = []
    several = given if isinstance(given, (list, tuple)) else [given]
    for item in [] if given is None or isinstance(given, Mapping) else several:
        name, equals, value = item.partition("=") if isinstance(item, str) else (item, "", "")
        if equals and name in names:
            values[name] = value
        else:
            rest.append(item)
    left = [name for name in names if name not in values]
    if len(rest) > len(left) or (len(rest) > 1) or set(values) - set(names):
        unknown = sorted(set(values) - set(names)) or rest
        hint = "the query has no [attribute], so all events are one partition: leave the key out"
        if names:
            hint = "give " + " ".join(f"--key {name}=VALUE" for name in names)
        raise UsageError(f"{unknown[0]!r} is no key of this query", code="ACEP-U111", hint=hint)
    return values | dict(zip(left, rest, strict=False))


def whole_stream(
    plan: Plan,
    source: Source,
    options: Mapping[str, Any],
    *,
    sort: bool = False,
    most: int | None = None,
    key: Any = None,
) -> tuple[StreamPlace, bool] | None:
    """Read the first events of a source, of all keys or of one.

    Parameters
    ----------
    plan : Plan
    source : Source
    options : mapping
        ``time``, ``key``, ``type``, ``unit`` and ``start``, as for ``Execution``.
    sort : bool
        Sort the events by time first.
    most : int, optional
        So many events at most. Default: all.
    key : str, list or dict, optional
        As for ``find_places``. Default: all keys.

    Returns
    -------
    (StreamPlace, bool) or None
        And whether there are more of them. None: there are no events.

    Raises
    ------
    UsageError
        ``ACEP-U111``: the query has no such key.
    DataError
        ``ACEP-D050``: no event has this key.

    Complexity: memory for the columns that the query names.
    """
    if not len(source.schema):
        return None
    pipeline = Execution(plan, **options).bind(source.schema)
    roles, parts, seen = pipeline.roles, [], 0
    wanted = _WantedKey(pipeline, key)
    for batch in read_events(source, roles, columns=columns_asked(pipeline), sort=sort):
        part = wanted.of(pipeline.stream.fit(batch))
        parts.append(part)
        seen += len(part.ticks)
        if most is not None and seen > most:
            break
    if not parts:
        return None
    wanted.check()
    table = unified(one_table([part.data for part in parts])).combine_chunks().slice(0, most)
    ticks = np.concatenate([part.ticks for part in parts])[:most]
    is_time = tick_unit(source.schema.field(roles.time).type, roles.unit) is not None
    rows = source.late.original(np.concatenate([part.rows for part in parts])[:most])
    mine = np.ones(len(ticks), np.bool_)
    last, window, values = int(ticks[-1]), pipeline.window, wanted.values
    place = StreamPlace(pipeline.plan, roles, last, window, is_time, values, table, rows, ticks, mine, last)
    return place, len(ticks) < seen


class _Part(NamedTuple):
    """Some events: their columns, times and rows."""

    data: pa.RecordBatch
    ticks: Ints
    rows: Ints


class _WantedKey:
    """Takes the events of a key; of all keys where none is given."""

    def __init__(self, pipeline: Pipeline, key: Any) -> None:
        self._pipeline, self._given, self._others = pipeline, key, dict[str, None]()
        self._wanted: dict[str, pa.Scalar] = {}
        self._seen = 0

    @property
    def values(self) -> dict[str, Any]:
        """The values of the key."""
        return {name: value.as_py() for name, value in self._wanted.items()}

    def of(self, batch: EventBatch) -> _Part:
        """Select the events of the key from a batch."""
        if self._given is None:
            return _Part(batch.data, batch.ticks, batch.first_row + np.arange(len(batch)))
        roles = self._pipeline.roles
        self._wanted = key_asked(self._pipeline.plan, self._given, self._pipeline.schema, roles)
        columns = {roles.column(name): value for name, value in self._wanted.items()}
        which = np.flatnonzero(_of_key(batch, columns))
        self._seen += len(which)
        if not self._seen and len(self._others) < SAMPLE:
            self._others.update(_sample(batch, columns))
        return _Part(batch.data.take(pa.array(which)), batch.ticks[which], batch.first_row + which)

    def check(self) -> None:
        """Refuse a key that no event has (``ACEP-D050``)."""
        if self._given is not None and not self._seen:
            raise _no_such_key(self._wanted, self._others)
