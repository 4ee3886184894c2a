"""Templates whose match points need but the latest starts: their events are run as they are found, without the engine.

The runs stay where the runs engine keeps them, in its form, so that it can go on with any batch, and states are the
same. See ``kernels.ladders``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.engines.runs.event_columns import EventColumns, Kind
from acep_approx.engines.runs.hidden import NO_OPTIONS
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.tables import RunTables
from acep_approx.kernels import ladders as kernel
from acep_approx.kernels import pairs
from acep_approx.kernels.runs import layout, vm
from acep_approx.kernels.runs.fronts import HIGH_FLOAT, HIGH_INT, LOW_FLOAT, LOW_INT
from acep_approx.matching.keyed_events import Asking, KeyedEvents
from acep_approx.matching.outputs.output import Points
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.parameters import MARK
from acep_approx.query.syntax import Attribute, Binary, Expression
from acep_approx.subscriptions.templates.pairing import Pairing
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import asks_parameter

FIRST_ROOM = 64
"""Runs of a ladder, and points, that there is room for at first."""
_FRONTS = {
    LOW_INT: (kernel.INT, 1),
    HIGH_INT: (kernel.INT, -1),
    LOW_FLOAT: (kernel.FLOAT, 1),
    HIGH_FLOAT: (kernel.FLOAT, -1),
}
_BETTER = {1: vm.LESS, -1: vm.GREATER}
_WAYS = {"*": (kernel.TIMES, kernel.TIMES), "+": (kernel.PLUS, kernel.PLUS), "-": (kernel.MINUS, kernel.MINUS_EVENT)}
"""How a column of the events and a constant are taken together: with the column first, and with the constant first."""
_COUNTS = {
    kernel.STORED: layout.STORED,
    kernel.LIVE: layout.LIVE,
    kernel.SEARCHED: layout.DONE_STEPS,
    kernel.MADE: layout.MADE,
    kernel.MERGED: layout.MERGED,
    kernel.PEAK: layout.PEAK,
}
"""Words of the engine's header that are the kernel's, too."""


class Value(NamedTuple):
    """A value of the events: ``of`` them alone, perhaps made a float; or that and a constant, both floats, together."""

    way: int
    of: Expression
    as_float: bool
    letters: int
    parameter: str | None = None


class Moves(NamedTuple):
    """What the kernel goes by, the columns of events that it reads, those to be made floats too, and the constants."""

    words: kernel.Moves
    columns: tuple[Asking, ...]
    parameters: tuple[str, ...]


class Ladders:
    """Runs the pairs of a template.

    Parameters
    ----------
    moves : Moves
    engine : Runs
        Whose runs they are.
    pairing : Pairing
    """

    def __init__(self, moves: Moves, engine: Runs, pairing: Pairing) -> None:
        self._moves, self._engine, self._pairing = moves, engine, pairing
        self._version = -1
        self._parameters = np.zeros(0)
        pools = len(engine.tables.pools)
        self._pools = pools
        self._ladders = self._with_room(FIRST_ROOM)
        self._out = kernel.PointsFound(*(np.zeros(FIRST_ROOM, np.int64) for _ in range(3)))

    @classmethod
    def of(cls, engine: Runs | None, pairing: Pairing, before: Ladders | None) -> Ladders | None:
        """For the engine that finds match points, if any; None where more than the latest starts matters.

        They have as much room as those ``before``, which ran the pairs before queries came.
        """
        if engine is None or not _is_plain(engine) or any(pairing.asked.others):
            return None
        moves = _moves(engine.tables, engine.columns, pairing.table.kinds)
        if moves is None:
            return None
        made = cls(moves, engine, pairing)
        if before is not None:
            made._ladders, made._out = made._with_room(before._ladders.room), before._out
        return made

    def points(self, batch: StreamBatch, events: KeyedEvents, windows: Ints | None) -> Points:
        """The match points of a batch, slot by slot.

        Parameters
        ----------
        batch : StreamBatch
        events : KeyedEvents
            Its events.
        windows : int64 array, optional
            Per row of the table, in ticks; default: all have that of the engine.
        """
        engine, pairing = self._engine, self._pairing
        engine.put_away()
        letters, given = pairing.letters_of(events), self._given(events, pairing.table, windows)
        control = np.zeros(kernel.LADDER_CONTROL, np.int64)
        control[[*_COUNTS]] = engine.control[[*_COUNTS.values()]]
        status = -1
        while status != pairs.DONE:
            queries, slots = pairing.records
            status = kernel.find_points(
                control, events.groups, letters, queries, slots, self._moves.words, given, self._ladders,
                kernel.Store(engine.store.stored, engine.store.stored.view(np.float64), engine.store.spans), self._out,
            )  # fmt: skip
            self._make_room(int(status), control)
            engine.control[[*_COUNTS.values()]] = control[[*_COUNTS]]
        engine.reserve(pairing.slots)  # states have those that were asked for
        found = int(control[pairs.USED])
        at, slot, start = (column[:found].copy() for column in self._out)
        row = batch.first_row + at if batch.rows is None else batch.rows[at]
        return Points(slot, row, batch.ticks[at], start, np.zeros(found, np.int64))

    def _make_room(self, status: int, control: Ints) -> None:
        engine, wanted = self._engine, int(control[pairs.WANTED])
        if status == pairs.SLOTS_FULL:
            self._pairing.more_slots()
        elif status == kernel.SPANS_FULL:
            engine.reserve(wanted)
        elif status == kernel.LADDERS_FULL:
            self._ladders = self._with_room(2 * wanted)
        elif status == pairs.OUT_FULL:
            self._out = kernel.PointsFound(*(extended(column, 2 * wanted) for column in self._out))
        elif status == kernel.STORE_FULL:
            engine.control[layout.STORED] = control[kernel.STORED]
            engine.store.room_for(wanted, engine.control)
            control[kernel.STORED] = engine.control[layout.STORED]

    def _with_room(self, room: int) -> kernel.Ladders:
        start, word = (np.zeros(self._pools * room, np.int64) for _ in range(2))
        size, child = np.zeros(self._pools, np.int64), np.zeros(len(self._moves.words.steps) // kernel.STEP, np.int64)
        return kernel.Ladders(room, start, word, word.view(np.float64), size, child)

    def _given(self, events: KeyedEvents, table: QueryTable, windows: Ints | None) -> kernel.Given:
        """What the kernel reads of the events and of the constants."""
        numbers = events.columns(self._moves.columns)
        if self._version != table.version:
            columns = [np.asarray(table.values(name), np.float64) for name in self._moves.parameters]
            self._parameters, self._version = np.concatenate([*columns, np.zeros(0)]), table.version
        windows = np.full(table.room, self._engine.window) if windows is None else windows
        words = events.words
        return kernel.Given(numbers, words, words.view(np.float64), self._parameters, events.ticks, windows)


def _is_plain(engine: Runs) -> bool:
    """Whether matches are told apart by their starts and registers alone, and no event takes a run away."""
    tables, automaton = engine.tables, engine.automaton
    if engine.sheds or engine.keeps_lineage or engine.is_count or engine.options is not NO_OPTIONS:
        return False
    if tables.asks_more or tables.guard_letters or any(automaton.final_checks) or automaton.needs_filter:
        return False
    if automaton.automaton.errors or not automaton.query.selection.is_all or automaton.counted != "nothing":
        return False
    return all(map(automaton.is_passive, range(START + 1, len(automaton.states))))


def _moves(tables: RunTables, columns: EventColumns, kinds: Mapping[str, Kind]) -> Moves | None:
    """What the kernel goes by; None where a state has more than one register, or one that steps only carry."""
    automaton, pools = tables.automaton, [_pool(tables, number) for number in range(len(tables.pools))]
    numbers = {pool.state: number for number, pool in enumerate(tables.pools)}
    steps: list[list[int]] = []
    tests: list[int] = []
    made: dict[Value, int] = {}

    def value(scalar: int, *, as_float: bool = False) -> int | None:
        """Where the words of a scalar stand: the columns of the events come behind one for their place."""
        if not 0 < scalar <= len(columns.expressions):
            return None
        expression = columns.expressions[scalar - 1]
        found = _value(Asking(expression, as_float, tables.readers(expression)), columns, kinds)
        return None if found is None else made.setdefault(found, len(made)) * kernel.VALUE

    for step, code in zip(automaton.steps, tables.steps, strict=True):
        compared, given = code.compared(), code.given()
        if step.target is None or compared is None or given is None or step.source not in numbers:
            return None
        source, target = numbers[step.source], numbers.get(step.target, -1)
        kind, sign = pools[source]
        if kind < 0 or target < 0 or pools[target][0] < 0 or bool(compared) != (kind != kernel.NO_REGISTER):
            return None
        first, keeps = len(tests), tables.pools[target].stays
        for scalar, flags, as_float in compared:
            asked = value(scalar, as_float=as_float)
            if asked is None or flags & ~vm.EQUAL != _BETTER[sign]:
                return None
            tests += [asked, int(flags & vm.EQUAL > 0)]
        register = value(given[0]) if keeps and given else -1
        if register is None:
            return None
        ends = int(tables.pools[target].is_end)
        steps.append([step.letter, source, target if keeps else -1, ends, register, first, len(tests)])
    return _in_words(steps, tests, pools, [*made])


def _pool(tables: RunTables, number: int) -> tuple[int, int]:
    """The kind of the register that the runs of a pool have, and its sign; below 0 where they have others."""
    pool = tables.pools[number]
    if number == START or not pool.stays:
        return (kernel.NO_REGISTER, 1)
    if pool.fields == 0:
        return (kernel.NO_REGISTER, 1)
    return _FRONTS.get(pool.front[0], (-1, 1)) if pool.fields == 1 and pool.front else (-1, 1)


def _value(asking: Asking, columns: EventColumns, kinds: Mapping[str, Kind]) -> Value | None:
    """A value of the events that the kernel can make; None where it is made of more than a column and a constant."""
    expression, as_float, letters = asking
    if not asks_parameter(expression):
        return Value(kernel.PLAIN, expression, as_float and columns.kind(expression) == "int", letters)
    if not isinstance(expression, Binary) or expression.op not in _WAYS or columns.kind(expression) != "float":
        return None
    for of, other, way in zip(
        (expression.left, expression.right), (expression.right, expression.left), _WAYS[expression.op], strict=True
    ):
        if isinstance(other, Attribute) and other.name.startswith(MARK) and not asks_parameter(of):
            parameter, kind = other.name.removeprefix(MARK), columns.kind(of)
            are_numbers = {kind, kinds[parameter]} <= {"int", "float"}
            return Value(way, of, kind == "int", letters, parameter) if are_numbers else None
    return None


def _in_words(steps: list[list[int]], tests: list[int], pools: list[tuple[int, int]], made: list[Value]) -> Moves:
    read = [Asking(one.of, one.as_float, one.letters) for one in made]
    different, parameters = list(dict.fromkeys(read)), list(dict.fromkeys(v.parameter for v in made if v.parameter))
    values = [
        (one.way, different.index(of), parameters.index(one.parameter) if one.parameter else -1)
        for one, of in zip(made, read, strict=True)
    ]
    words = kernel.Moves(*(np.array(part, np.int64).ravel() for part in (steps, tests, pools, values)))
    return Moves(words, tuple(different), tuple(parameters))
