"""Conditions on complete matches, for many at once: what registers could not decide, and negations with conditions.

Source: "first compute matches of the positive components, then search for matches of each negative component: any
match of the latter eliminates the former" (Agrawal et al., SIGMOD 2008, section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints, places
from acep_approx.automaton.resolve import Condition, Leaf
from acep_approx.events.roles import Roles
from acep_approx.matching.outputs.aggregates import aggregate
from acep_approx.matching.outputs.recent import Recent
from acep_approx.query.evaluate import evaluate, is_true
from acep_approx.query.syntax import Aggregate, Attribute


class Bindings:
    """The events of some matches, by variable.

    Parameters
    ----------
    variables : sequence of str
        What the labels stand for.
    offset, ids, label : numpy.ndarray of int64
        Match ``m`` binds ``ids[offset[m] : offset[m + 1]]``, earliest first, to the variables of these labels.
    """

    def __init__(self, variables: tuple[str, ...], offset: Ints, ids: Ints, label: Ints) -> None:
        self.matches = len(offset) - 1
        self._rows: dict[str, tuple[Ints, Ints]] = {}
        match = np.repeat(np.arange(self.matches), np.diff(offset))
        for number, variable in enumerate(variables):
            mine = label == number
            ends = np.concatenate(([0], np.cumsum(np.bincount(match[mine], minlength=self.matches))))
            self._rows[variable] = ends, ids[mine]

    def events(self, variable: str) -> tuple[Ints, Ints]:
        """``(ends, rows)``: match ``m`` binds ``rows[ends[m] : ends[m + 1]]``."""
        return self._rows[variable]


class Verifier:
    """Tests conditions on matches.

    Parameters
    ----------
    roles : Roles
    recent : Recent
        Has the columns that the conditions name, of all events in question.
    """

    def __init__(self, roles: Roles, recent: Recent) -> None:
        self._roles = roles
        self.recent = recent

    def holds(self, condition: Condition, bindings: Bindings, among: Bools) -> Bools:
        """Which matches of some ``condition`` holds for, too; it is void where a variable has no event.

        Complexity: O(matches x events that it ranges over).
        """
        bound = among & _all_bound(condition.least, bindings, np.arange(bindings.matches))
        result = among.copy()
        result[bound] = self._tested(condition, bindings, np.flatnonzero(bound), {})
        return result

    def qualifies(
        self, conditions: tuple[Condition, ...], bindings: Bindings, match: Ints, ids: Mapping[str, Ints]
    ) -> Bools:
        """Per match and events beside it whether these, as the variables of ``ids``, satisfy all conditions.

        A condition that names a variable without event is not known to hold.
        """
        result = np.ones(len(match), np.bool_)
        for condition in conditions:
            others = {name: least for name, least in condition.least.items() if name not in ids}
            known = result & _all_bound(others, bindings, match)
            result[~known] = False
            extra = {name: some[known] for name, some in ids.items()}
            result[known] = self._tested(condition, bindings, match[known], extra)
        return result

    def _tested(
        self, condition: Condition, bindings: Bindings, match: Ints, extra: Mapping[str, Ints]
    ) -> Bools:
        """Whether it holds for every event that it ranges over; a unit is a match with the events in ``extra``."""
        unit = np.arange(len(match))
        chosen: dict[str, Ints] = {}
        for variable in sorted(condition.each):
            ends, _ = bindings.events(variable)
            first = ends[match[unit]] + (variable in condition.looks_back)
            count = (ends[match[unit] + 1] - first).clip(0)
            spread = np.repeat(np.arange(len(unit)), count)
            place = places(first, count)
            chosen = {name: before[spread] for name, before in chosen.items()}
            chosen[variable] = place
            unit = unit[spread]
        result = np.ones(len(match), np.bool_)
        if len(unit):
            leaves = _CombinationLeaves(self._roles, self.recent, bindings, match[unit], chosen)
            leaves.extra = {name: rows[unit] for name, rows in extra.items()}
            np.logical_and.at(result, unit, is_true(evaluate(condition.expression, leaves.column), len(unit)))
        return result


class _CombinationLeaves:
    """The values of attributes and aggregates, one per combination of events."""

    def __init__(
        self, roles: Roles, recent: Recent, bindings: Bindings, match: Ints, chosen: dict[str, Ints]
    ) -> None:
        self._roles = roles
        self._recent = recent
        self._bindings = bindings
        self._match = match
        self._chosen = chosen
        self.extra: dict[str, Ints] = {}

    def column(self, leaf: Leaf) -> pa.Array:
        if isinstance(leaf, Attribute):
            return self._values(leaf.name, self._row(leaf))
        return self._aggregate(leaf)

    def _row(self, leaf: Attribute) -> Ints:
        variable = str(leaf.variable)
        if variable in self.extra:
            return self.extra[variable]
        ends, rows = self._bindings.events(variable)
        if leaf.index == "first":
            return rows[ends[self._match]]
        if isinstance(leaf.index, int):
            return rows[ends[self._match] + leaf.index - 1]
        if leaf.index == "last" or variable not in self._chosen:
            return rows[ends[self._match + 1] - 1]
        return rows[self._chosen[variable] - (leaf.index == "previous")]

    def _aggregate(self, leaf: Aggregate) -> pa.Array:
        ends, rows = self._bindings.events(leaf.variable)
        first = ends[self._match]
        last = self._chosen[leaf.variable] if leaf.prior else ends[self._match + 1]
        last = first + leaf.upto if leaf.upto else last
        lengths = last - first
        if leaf.name is None:
            return pa.array(lengths)
        if leaf.function in ("first", "last"):
            return self._values(leaf.name, rows[first if leaf.function == "first" else last - 1])
        values = self._values(leaf.name, rows[places(first, lengths)])
        plain = evaluate(Attribute(None, None, leaf.name), lambda _: values)
        return aggregate(leaf.function, plain, lengths)

    def _values(self, name: str, rows: Ints) -> pa.Array:
        return self._recent.take(self._roles.column(name), rows, np.zeros(len(rows), np.bool_))


def _all_bound(least: Mapping[str, int], bindings: Bindings, match: Ints) -> Bools:
    bound = np.ones(len(match), np.bool_)
    for name, events in least.items():
        ends, _ = bindings.events(name)
        bound &= ends[match + 1] - ends[match] >= events
    return bound
