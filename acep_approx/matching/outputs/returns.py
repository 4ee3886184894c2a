"""The RETURN clause: expressions over the events of a match, evaluated for many matches at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.roles import Roles
from acep_approx.events.time import as_shown, in_type
from acep_approx.matching.outputs.aggregates import aggregate
from acep_approx.query.evaluate import Leaf, evaluate, spread
from acep_approx.query.functions import FUNCTIONS
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Apply, Attribute, Expression, Index, RegisterValue, ReturnItem


class Values(Protocol):
    """What knows the columns of some events; ``Recent`` is one."""

    def take(self, column: str, ids: Ints, missing: Bools, /) -> pa.Array:
        """Values of ``column`` of some events; null where ``missing``."""


class ReturnColumns:
    """Evaluates the outputs of a query; falsy when there are none.

    Parameters
    ----------
    outputs : tuple of ReturnItem
        Expressions that passed `acep_approx.query.checks.check`: one value per match.
    roles : Roles
    as_computed : bool, default False
        Whether values are left as expressions compute with them. Else those of an attribute, and the first, last, least
        or greatest of one, are shown as times if they are times: in the type of their column, or by the unit of the
        time.

    Attributes
    ----------
    needed : tuple of str
        Columns of the events that the expressions read.

    Notes
    -----
    Of a variable without event, missing or repeated not once, ``count`` is 0 and all else is NULL.
    """

    def __init__(self, outputs: tuple[ReturnItem, ...], roles: Roles, *, as_computed: bool = False) -> None:
        self._outputs = outputs
        self._roles = roles
        self._as_computed = as_computed
        leaves = [leaf for output in outputs for leaf in walk(output.value) if isinstance(leaf, (Attribute, Aggregate))]
        self.needed = tuple(dict.fromkeys(roles.column(leaf.name) for leaf in leaves if leaf.name is not None))

    def __bool__(self) -> bool:
        return bool(self._outputs)

    def columns(
        self, bound: dict[str, pa.Array], recent: Values, registers: Mapping[str, pa.Array], matches: int
    ) -> dict[str, pa.Array]:
        """One column per output.

        Parameters
        ----------
        bound : dict of str to pyarrow.Array
            Row numbers per variable: int64 with nulls, or lists of int64 for Kleene variables.
        recent : Values
            Has the columns ``needed`` of all these rows.
        registers : mapping of str to pyarrow.Array
            What registers with names held at the end of each match.
        matches : int

        Raises
        ------
        DataError
            ``ACEP-D201``: a whole number passed 64 bits.

        Complexity: O(bound events) per distinct attribute and aggregate.
        """
        leaves = _MatchLeaves(bound, recent, registers, self._roles)
        found = {output.name: spread(evaluate(output.value, leaves.column), matches) for output in self._outputs}
        if self._as_computed:
            return found
        return {output.name: self._shown(output.value, found[output.name], leaves.types) for output in self._outputs}

    def _shown(self, value: Expression, found: pa.Array, types: Mapping[str, pa.DataType]) -> pa.Array:
        """Times as times; other values as they are."""
        while isinstance(value, Apply) and FUNCTIONS[value.name].result == "same":  # one of its arguments
            value = value.arguments[value.name == "CASE"]
        if not isinstance(value, Attribute | Aggregate) or value.name is None:
            return self._in_zone(value, found, types)
        if isinstance(value, Aggregate) and value.function not in ("first", "last", "min", "max"):
            return found
        column = self._roles.column(value.name)
        type_ = types[column]
        is_time = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
        own = in_type(found, type_) if is_time and not found.type.equals(type_) else found
        return as_shown(own, column, self._roles)


    def _in_zone(self, value: Expression, found: pa.Array, types: Mapping[str, pa.DataType]) -> pa.Array:
        """What is computed of a time, with the zone of its column; of a text, in UTC."""
        if not pa.types.is_timestamp(found.type):
            return found
        named = [leaf.name for leaf in walk(value) if isinstance(leaf, Attribute | Aggregate) and leaf.name is not None]
        read = [types[self._roles.column(name)] for name in named]
        zones = [type_.tz for type_ in read if pa.types.is_timestamp(type_) and type_.tz is not None]
        zones += ["UTC" for node in walk(value) if isinstance(node, Apply) and node.name == "to_time"]
        zone = next(iter(zones), None)
        return found if zone is None else found.cast(pa.timestamp(found.type.unit, zone))


class _MatchLeaves:
    """The values of attributes and aggregates, one per match; what several outputs name is made once."""

    def __init__(
        self, bound: dict[str, pa.Array], recent: Values, registers: Mapping[str, pa.Array], roles: Roles
    ) -> None:
        self._bound = bound
        self._firsts: dict[str, pa.Array] = {}
        self._registers = registers
        self._recent = recent
        self._roles = roles
        self.types: dict[str, pa.DataType] = {}
        """The types of the columns that were asked for, as the events have them."""
        self._made: dict[Attribute | Aggregate, pa.Array] = {}
        self._listed: dict[tuple[str, str], pa.Array] = {}

    def column(self, leaf: Leaf) -> pa.Array:
        if isinstance(leaf, RegisterValue):
            return self._registers[leaf.name]
        assert isinstance(leaf, Attribute | Aggregate), "RETURN calls no functions"
        if leaf not in self._made:
            self._made[leaf] = self._one_row(leaf) if isinstance(leaf, Attribute) else self._all_rows(leaf)
        return self._made[leaf]

    def _one_row(self, attribute: Attribute) -> pa.Array:
        rows = self._bound[str(attribute.variable)]
        if attribute.index is not None:
            rows = _one_of(rows, attribute.index)
        return self._values(attribute.name, rows)

    def _first_rows(self, leaf: Aggregate, upto: int) -> pa.Array:
        """Values of the first ``upto`` rows of each list; NULL where a list is shorter."""
        rows, name = self._bound[leaf.variable], f"{leaf.variable}[..{upto}]"
        has_fewer = pa.array(_lengths(rows) < upto)
        if name not in self._firsts:
            self._firsts[name] = pc.if_else(has_fewer, pa.scalar([], rows.type), pc.list_slice(rows, 0, upto))
        found = self._all_rows(replace(leaf, variable=name, upto=None))
        return pc.if_else(has_fewer, pa.scalar(None, found.type), found)

    def _all_rows(self, leaf: Aggregate) -> pa.Array:
        if leaf.upto:
            return self._first_rows(leaf, leaf.upto)
        rows = self._firsts[leaf.variable] if leaf.variable in self._firsts else self._bound[leaf.variable]
        if leaf.name is None:
            return to_arrow(_lengths(rows))
        if leaf.function in ("first", "last"):
            return self._values(leaf.name, _one_of(rows, "first" if leaf.function == "first" else "last"))
        if (leaf.variable, leaf.name) not in self._listed:
            flat = self._values(leaf.name, rows.flatten())
            # `evaluate` gives a column as it takes part in expressions: wide numbers, NaN as NULL, plain strings.
            self._listed[leaf.variable, leaf.name] = evaluate(Attribute(None, None, leaf.name), lambda _: flat)
        return aggregate(leaf.function, self._listed[leaf.variable, leaf.name], _lengths(rows))

    def _values(self, name: str, rows: pa.Array) -> pa.Array:
        """The attribute at these rows, NULL where the row is."""
        missing, column = to_numpy(pc.is_null(rows)), self._roles.column(name)
        values = self._recent.take(column, to_numpy(pc.fill_null(rows, 0)), missing)
        self.types[column] = values.type
        return values


def _lengths(rows: pa.ListArray) -> Ints:
    return to_numpy(rows.value_lengths()).astype(np.int64)


def _one_of(rows: pa.ListArray, which: Index) -> pa.Array:
    """One row of each list: the first, the last, or that of a number from 1; null where there is none."""
    lengths = _lengths(rows)
    ends, number = np.cumsum(lengths), which if isinstance(which, int) else 1
    places = ends - 1 if which == "last" else ends - lengths + number - 1
    return rows.flatten().take(pa.array(places, mask=lengths < number))
