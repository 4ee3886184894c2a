"""Conditions on one binding, with the values they see: what holds, and how near to holding the rest is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.automaton.resolve import Condition, Leaf
from acep_approx.matching.outputs.aggregates import aggregate
from acep_approx.query.evaluate import evaluate
from acep_approx.query.printer import to_text
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Attribute, Binary, Expression
from acep_approx.why.place import StreamPlace

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
Binding = Mapping[str, Sequence[int]]
"""Places of the events of each variable; of the variable "" that of the current event, in DEFINE."""


@dataclass(frozen=True)
class Miss:
    """A condition that does not hold: the values it saw, and how far they are apart (for numbers)."""

    values: str
    distance: float = field(default=float("inf"), compare=False)


@dataclass(frozen=True)
class Failed:
    """A condition that some events failed, with the values that it saw at the nearest of them."""

    condition: str
    events: int
    nearest: Miss
    at: int

    def line(self, place: StreamPlace) -> str:
        """The same in words."""
        fail = "fails" if self.events == 1 else "fail"
        nearest = f"; nearest: {self.nearest.values}" if self.nearest.values else ", as the one at"
        return f"{self.events} {fail} {self.condition}{nearest} ({place.named(self.at)})"

    def plain(self, place: StreamPlace) -> dict[str, Any]:
        """The same as plain values, with the row of the input in place of the place."""
        row = int(place.rows[self.at])
        return {"condition": self.condition, "events": self.events, "nearest": self.nearest.values, "row": row}


@dataclass(frozen=True)
class _Instance:
    """One way to read a condition: a binding, and one event of each variable that it ranges over."""

    binding: Binding
    at: Mapping[str, int]


class Tester:
    """Tests conditions on the events of a place."""

    def __init__(self, place: StreamPlace) -> None:
        self._place = place

    def miss(self, condition: Condition, binding: Binding, only: str | None = None) -> Miss | None:
        """How a condition fails for a binding: its nearest failure; None where it holds.

        Parameters
        ----------
        condition : Condition
            All its variables are bound.
        binding : mapping
        only : str, optional
            Of this variable only the last event counts: the others have been tested.
        """
        each, ranges = sorted(condition.each), []
        for name in each:
            count, first = len(binding[name]), int(name in condition.looks_back)
            ranges.append(range(max(first, count - 1) if name == only else first, count))
        units = [_Instance(binding, dict(zip(each, at, strict=True))) for at in product(*ranges)]
        if not units:
            return None
        holds = self._values(condition.expression, units)
        failing = (unit for unit, one in zip(units, holds, strict=True) if one is not True)
        misses = [self._miss(condition.expression, unit) for unit in failing]
        return min(misses, key=lambda miss: miss.distance) if misses else None

    def _miss(self, expression: Expression, unit: _Instance) -> Miss:
        match expression:
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                (one,), (other,) = self._values(left, [unit]), self._values(right, [unit])
                return Miss(f"{shown(one)} {op} {shown(other)}", distance(one, other))
        named = dict.fromkeys(leaf for leaf in walk(expression) if isinstance(leaf, (Attribute, Aggregate)))
        values = [f"{to_text(leaf)} is {shown(self._values(leaf, [unit])[0])}" for leaf in named]
        return Miss(", ".join(values))

    def _values(self, expression: Expression, units: list[_Instance]) -> list[Any]:
        value = evaluate(expression, lambda leaf: self._column(leaf, units))
        return [value.as_py()] * len(units) if isinstance(value, pa.Scalar) else value.to_pylist()

    def _column(self, leaf: Leaf, units: list[_Instance]) -> pa.Array:
        if isinstance(leaf, Attribute):
            return self._take(leaf.name, [_event(leaf, unit) for unit in units])
        of_variable = [(unit.binding[leaf.variable], unit.at) for unit in units]
        events = [some[: at[leaf.variable]] if leaf.prior else some for some, at in of_variable]
        if leaf.name is None:
            return pa.array([len(some) for some in events], pa.int64())
        if leaf.function in ("first", "last"):
            return self._take(leaf.name, [some[0 if leaf.function == "first" else -1] for some in events])
        flat = self._take(leaf.name, [event for some in events for event in some])
        values = evaluate(Attribute(None, None, leaf.name), lambda _: flat)
        return aggregate(leaf.function, values, np.array([len(some) for some in events]))

    def _take(self, name: str, events: Sequence[int]) -> pa.Array:
        column = self._place.table.column(self._place.roles.column(name))
        return column.take(pa.array(events, pa.int64())).combine_chunks()


def _event(leaf: Attribute, unit: _Instance) -> int:
    events = unit.binding[leaf.variable or ""]
    if leaf.index == "first":
        return events[0]
    if leaf.index == "last" or leaf.variable not in unit.at:
        return events[-1]
    return events[unit.at[str(leaf.variable)] - (leaf.index == "previous")]


def distance(one: Any, other: Any) -> float:
    """How far two values are apart: numbers and times; infinity for what has no distance."""
    try:
        gap = abs(one - other)
        return float(gap.total_seconds() if hasattr(gap, "total_seconds") else gap)
    except TypeError:  # NULL, text
        return float("inf")


def shown(value: Any) -> str:
    """A value as a query would write it.

    Examples
    --------
    >>> shown(12.0), shown(None), shown("u")
    ('12.0', 'NULL', "'u'")
    """
    if value is None:
        return "NULL"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return repr(round(value, 6) if isinstance(value, float) else value)
