"""The matches of a rule in the order in which they act, and the transaction that each is of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.stream import EventBatch
from acep_approx.rules.compiled import HIDDEN, CompiledRule
from acep_approx.rules.log import Columns, Transactions
from acep_approx.rules.pipeline import AT_ONCE, KNOWN

NONE = 2**62
LEAF = 2 * HIDDEN


@dataclass(frozen=True)
class Moment:
    """Where the stream stands when matches come out: the events of the batch, and how many there were in all."""

    batch: EventBatch | None
    events: int
    rules: int
    last_tick: int

    def after(self, ticks: Ints) -> Ints:
        """The rows of the first events after some ticks; the number of all events where there is none."""
        if self.batch is None:
            return np.full(len(ticks), self.events, np.int64)
        return self.batch.first_row + np.searchsorted(self.batch.ticks, ticks, side="right")

    def ticks(self, rows: Ints) -> Ints:
        """The ticks of events of the batch; of the last event where there is none."""
        if self.batch is None:
            return np.full(len(rows), self.last_tick, np.int64)
        return self.batch.ticks[rows - self.batch.first_row]


@dataclass(frozen=True)
class Matched(Columns):
    """Matches in order.

    Attributes
    ----------
    table : pyarrow.Table
        As the pipeline gives them, with hidden columns.
    of : Transactions
    end : int64
        The rows of their last events.
    """

    table: pa.Table
    of: Transactions
    end: Ints

    def __len__(self) -> int:
        return len(self.end)


def matched(rule: CompiledRule, table: pa.Table, waits: tuple[int, int], moment: Moment) -> Matched:
    """Put matches that came out together into order: by transaction, then errors, later start, rows.

    Parameters
    ----------
    rule : CompiledRule
    table : pyarrow.Table
    waits : (int, int)
        How long after its first and after its last event a match waits at most, in ticks.
    moment : Moment

    Complexity: O(n log n); matches of one event that tie in errors and start are compared one by one.
    """
    tick = _numbers(table, "end")
    if not rule.lists:
        row = _numbers(table, "row")
        return Matched(table, Transactions.of_events(row, tick), row)
    bound, errors, start = _bound(table), _numbers(table, "errors"), _numbers(table, "start")
    end = np.max([edge(rows, last=True) for rows in bound], axis=0)
    if rule.is_late:
        first = np.min([edge(rows, last=False) for rows in bound], axis=0)
        known = _numbers(table, KNOWN)
        waited = known != AT_ONCE
        closed = np.minimum(start + waits[0], tick + waits[1])
        late = _late(rule, first, closed, np.where(waited, known, end), moment)
        of = Transactions.of_events(end, tick).replaced(waited, late)
    else:
        of = Transactions.of_events(end, tick)
    order = np.lexsort((-start, errors, of.start, of.tick, of.place))
    ties = _ties(order, of.place, of.tick, of.start, errors, start)
    if len(ties):
        ranks = np.zeros(len(end), np.int64)
        ranks[ties] = _ranks(table.take(to_arrow(ties)))
        order = np.lexsort((ranks, -start, errors, of.start, of.tick, of.place))
    found = Matched(table, of, end)
    return found if (order[1:] > order[:-1]).all() else found.take(order)


def _late(rule: CompiledRule, first: Ints, closed: Ints, known: Ints, moment: Moment) -> Transactions:
    """The transactions of matches that waited for their windows to close.

    In windows of time each is of the tick at which it closed, and of the first event. In windows of events all that one
    event closes is one transaction, before those of windows of time; at the end of the stream they are last.
    """
    none, start = np.full(len(first), -1, np.int64), first * moment.rules + rule.number
    if not rule.plan.is_count_window:
        return Transactions(2 * moment.after(closed), closed, start, closed, none)
    if moment.batch is None:
        last = np.full(len(first), NONE)
        return Transactions(np.full(len(first), 2 * moment.events), last, start, moment.ticks(known), none)
    tick, start = np.full(len(first), -NONE), np.full(len(first), rule.number)
    return Transactions(2 * known + 2, tick, start, moment.ticks(known), none)


def _numbers(table: pa.Table, name: str) -> Ints:
    return to_numpy(table.column(name).combine_chunks().cast(pa.int64()))


def _bound(table: pa.Table) -> list[pa.Array]:
    names = [name for name in table.column_names if name.startswith(HIDDEN) and not name.startswith(LEAF)]
    return [table.column(name).combine_chunks() for name in names]


def edge(rows: pa.Array, *, last: bool) -> npt.NDArray[np.int64]:
    """The last, or the first, of the rows that each match has for a variable; -1, or ``NONE``, where there is none."""
    none = -1 if last else NONE
    if not pa.types.is_list(rows.type):
        return to_numpy(pc.fill_null(rows, none))
    offsets = np.asarray(to_numpy(rows.offsets), np.int64)
    values = np.append(to_numpy(rows.values), none)
    at = offsets[1:] - 1 if last else offsets[:-1]
    return np.where(offsets[1:] > offsets[:-1], values[at], none)


def _ties(order: Ints, *columns: Ints) -> Ints:
    """Of things in order those that equal a neighbour in all columns."""
    if len(order) < 2:
        return order[:0]
    same = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns])
    is_tied = np.zeros(len(order), np.bool_)
    is_tied[1:] |= same
    is_tied[:-1] |= same
    return order[is_tied]


def _ranks(tied: pa.Table) -> Ints:
    """Numbers in the order of the rows that matches bind, then of the variables that bind them.

    Complexity: O(b log b) for b bound rows, of which those after a difference from all other matches are only sorted.
    """
    match, row, variable = map(np.concatenate, zip(*starmap(_bindings, enumerate(_bound(tied))), strict=True))
    order = np.lexsort((variable, row, match))
    sizes = np.bincount(match, minlength=tied.num_rows)
    first, ranks = np.cumsum(sizes) - sizes, np.zeros(tied.num_rows, np.int64)
    for values in (row[order], variable[order]):
        _refine(ranks, values, first, sizes)
    return ranks


def _bindings(variable: int, rows: pa.Array) -> tuple[Ints, Ints, Ints]:
    """Of each row that a variable is bound to: the match, the row, the variable."""
    if pa.types.is_list(rows.type):
        match, rows = to_numpy(pc.list_parent_indices(rows)).astype(np.int64), rows.flatten()
    else:
        match = np.flatnonzero(to_numpy(rows.is_valid()))
        rows = rows.drop_null()
    return match, to_numpy(rows), np.full(len(match), variable)


def _refine(ranks: Ints, values: Ints, first: Ints, sizes: Ints) -> None:
    """Tell things of one rank apart by their values, place by place; who has none left is before the others.

    The values of a thing are ``sizes`` many from ``first`` on; its rank is the number of things before it.
    """
    tied, place = np.arange(len(ranks)), 0
    while len(tied):
        here = np.full(len(tied), -1)
        more = sizes[tied] > place
        here[more] = values[first[tied[more]] + place]
        order = np.lexsort((here, ranks[tied]))
        tied, here, place = tied[order], here[order], place + 1
        rank, at = ranks[tied], np.arange(len(tied))
        begins = np.append(True, rank[1:] != rank[:-1])
        differs = begins | np.append(True, here[1:] != here[:-1])
        new = np.maximum.accumulate(np.where(differs, at, 0))
        ranks[tied] = rank + new - np.maximum.accumulate(np.where(begins, at, 0))
        is_alone = differs & np.append(differs[1:], True)
        tied = tied[~is_alone & (here >= 0)]
