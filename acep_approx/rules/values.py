"""Values of expressions over the events of matches, or over single events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.query.evaluate import as_key, evaluate, spread
from acep_approx.query.syntax import Attribute, Expression
from acep_approx.rules.compiled import HIDDEN, CompiledRule, Leaf
from acep_approx.rules.matched import Matched, Moment, edge


class Values:
    """Values of expressions over the events of matches.

    Parameters
    ----------
    rule : CompiledRule
    found : Matched
    moment : Moment
        Has the events that complete match points.
    roles : Roles
    """

    def __init__(self, rule: CompiledRule, found: Matched, moment: Moment, roles: Roles) -> None:
        self._rule, self._found, self._moment, self._roles = rule, found, moment, roles

    def __len__(self) -> int:
        return len(self._found)

    def take(self, which: Ints) -> Values:
        """Of some of the matches."""
        return Values(self._rule, self._found.take(which), self._moment, self._roles)

    def first(self) -> Values:
        """Of the first of them."""
        return self.take(np.arange(min(len(self), 1)))

    def column(self, leaf: Leaf) -> pa.Array:
        """An attribute or an aggregate."""
        if self._rule.lists:
            return self._found.table.column(self._rule.leaves[leaf]).combine_chunks()
        batch = self._moment.batch
        assert batch is not None, "points come with their batch"
        assert leaf.name is not None, "count() needs matches"
        return batch.data.column(self._roles.column(leaf.name)).take(to_arrow(batch.at(self._found.end)))

    def computed(self, expression: Expression) -> pa.Array:
        """An expression, one value per match."""
        return spread(evaluate(expression, self.column), len(self))

    def tried(self, expression: Expression) -> tuple[pa.Array, Bools]:
        """The same as for a key, and for which matches it cannot be computed: there it is NULL."""
        failed = np.zeros(len(self), np.bool_)
        try:
            return as_key(expression, self.column, len(self)), failed
        except DataError:
            parts = []
            for match in range(len(self)):
                try:
                    parts.append(self.take(np.array([match])).computed(expression))
                except DataError:
                    failed[match] = True
                    parts.append(pa.nulls(1))
            kinds = [part.type for part in parts if not pa.types.is_null(part.type)]
            return pa.concat_arrays([part.cast(kinds[0]) if kinds else part for part in parts]), failed

    def rows_of(self, event: Attribute) -> Ints:
        """The row of an event of each match; 0 where it is missing."""
        rows = self._found.table.column(HIDDEN + str(event.variable)).combine_chunks()
        if pa.types.is_list(rows.type):
            return np.maximum(edge(rows, last=event.index != "first"), 0)
        return to_numpy(pc.fill_null(rows, 0))

    def lacks(self, named: frozenset[str]) -> Bools:
        """Which matches have no event for one of some variables."""
        lacking = np.zeros(len(self), np.bool_)
        for name in named:
            if not self._rule.lists or HIDDEN + name not in self._found.table.column_names:
                continue
            rows = self._found.table.column(HIDDEN + name).combine_chunks()
            is_list = pa.types.is_list(rows.type)
            lacking |= to_numpy(pc.equal(rows.value_lengths(), 0) if is_list else rows.is_null())
        return lacking


@dataclass(frozen=True)
class OfBatch:
    """A batch of events, which columns are what, and the rows that the events name, by table and key."""

    batch: EventBatch
    roles: Roles
    rows: Mapping[tuple[str, tuple[Expression, ...]], Ints]


class OfEvents(Values):
    """Values of expressions over single events of a batch.

    Parameters
    ----------
    of : OfBatch
    at : int64
        Where they stand in it.
    """

    def __init__(self, of: OfBatch, at: Ints) -> None:
        self.of, self.at = of, at

    def __len__(self) -> int:
        return len(self.at)

    def take(self, which: Ints) -> OfEvents:
        """Of some of the events."""
        return OfEvents(self.of, self.at[which])

    def column(self, leaf: Leaf) -> pa.Array:
        """An attribute."""
        assert leaf.name is not None, "aggregates are of matches"
        return self.of.batch.data.column(self.of.roles.column(leaf.name)).take(to_arrow(self.at))

    def named(self, table: str, key: tuple[Expression, ...]) -> Ints | None:
        """The rows of a table that a key names, where the events read these; else None."""
        rows = self.of.rows.get((table, key))
        return None if rows is None else rows[self.at]
