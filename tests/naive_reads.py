"""Reads of tables for the oracle of rules: which are columns of an event, which are asked of a match. Tests only.

A read whose key names one event is a value of that event, as of when it came: a column of the stream, for which
``naive.py`` needs to know nothing of tables. Any other has AT; it is asked of complete matches, and looks up what the
tables held when the event after AT came. Such a read gets one more key here: the number of that event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from acep_approx.query.rules.syntax import Rule, Table
from acep_approx.query.shape import atoms, conjuncts, negated_variables, replaced, walk
from acep_approx.query.syntax import Aggregate, Attribute, Expression, Index, QuerySyntax, Read
from tests.naive_conditions import Conjunct, Events, Row, Values, conjunct
from tests.naive_expressions import value_of
from tests.naive_places import Places

Key = tuple[Any, ...]
Store = dict[str, dict[Key, dict[str, Any]]]
"""Per table the rows that were made, by key: the value columns."""
Look = Callable[[Read, Key], Any]
NUMBER = "#"
"""The attribute of an event that is its number in the stream."""


def copy_of(store: Store) -> Store:
    """The same, which what comes next does not change; no value can be changed."""
    return {table: {key: dict(row) for key, row in rows.items()} for table, rows in store.items()}


def fresh(table: Table) -> dict[str, Any]:
    """What a row is made with."""
    return {column.name: column.default.value if column.default else None for column in table.values}


class ValuesAndReads(Values):
    """The values of attributes, aggregates and reads; what names a variable without event is NULL, and counts 0."""

    def __init__(self, events: Events, at: Mapping[str | None, int], *, look: Look) -> None:
        super().__init__(events, at)
        self.look = look

    def __missing__(self, leaf: Attribute | Aggregate | Read) -> Any:
        if isinstance(leaf, Read):
            named = {node.variable for key in leaf.keys for node in walk(key) if isinstance(node, Attribute)}
            return self.look(leaf, self.key(leaf)) if named <= self.events.keys() else None
        if leaf.variable not in self.events:
            return 0 if isinstance(leaf, Aggregate) and leaf.function == "count" else None
        return super().__missing__(leaf)

    def key(self, read: Read) -> Key:
        """The values that name a row."""
        return tuple(value_of(part, self) for part in read.keys)


class Reading:
    """A rule whose reads are columns of events, as far as they can be.

    ``columns`` are these, by name: reads of the current event. ``query`` is what ``naive.py`` understands. ``late`` and
    ``outputs`` may have reads with the number of an event as their last key; those of ``when`` are as of now.
    ``may_end_late``: all matches wait, without NON OVERLAP. ``positive`` are the atoms that bind events.
    """

    def __init__(self, rule: Rule, number: int) -> None:
        self.rule, self.number = rule, number
        self.columns: dict[str, Read] = {}
        self._shared = {equivalence.name for equivalence in rule.query.equivalences}
        predicates = [self._with_columns(one) for one in rule.query.predicates]
        self.late = tuple(conjunct(one) for one in predicates if has_reads(one))
        self.outputs = tuple(replace(one, value=self._with_columns(one.value)) for one in rule.query.outputs)
        self.may_end_late = may_end_late(rule.query)
        negated = negated_variables(rule.query.pattern)
        self.positive = [atom for atom in atoms(rule.query.pattern) if atom.variable not in negated]
        self.when = tuple(conjunct(one) for one in (conjuncts(rule.when) if rule.when else ()))
        self.query = replace(
            rule.query,
            predicates=tuple(one for one in predicates if not has_reads(one)),
            definitions=tuple(
                replace(one, condition=self._with_columns(one.condition)) for one in rule.query.definitions
            ),
            outputs=(),
        )

    def of_event(self, row: Row, look: Look) -> dict[str, Any]:
        """The columns of one event."""
        values = ValuesAndReads({None: [row]}, {None: 0}, look=look)
        return {name: values[read] for name, read in self.columns.items()}

    def _with_columns(self, expression: Expression) -> Expression:
        return replaced(expression, lambda node: self._of_read(node) if isinstance(node, Read) else None)

    def _of_read(self, read: Read) -> Expression:
        event = self._only_event(read)
        if event is None:
            assert read.at is not None, "the text must say when"
            return replace(read, keys=(*read.keys, replace(read.at, name=NUMBER)), at=None)
        keys = tuple(replaced(key, at_hand) for key in read.keys)
        name = f"read {self.number}.{len(self.columns)}"
        self.columns[name] = replace(read, keys=keys, at=None)
        return Attribute(*event, name)

    def _only_event(self, read: Read) -> tuple[str | None, Index | None] | None:
        """The one event that a read is of. Attributes of ``[attr]`` are those of the event after AT, too."""
        leaves = [node for key in read.keys for node in walk(key) if isinstance(node, (Attribute, Aggregate))]
        if read.at is not None:
            leaves = [read.at, *(leaf for leaf in leaves if leaf.name not in self._shared)]
        if any(isinstance(leaf, Aggregate) for leaf in leaves):
            return None
        events = {(leaf.variable, None if leaf.index == "current" else leaf.index) for leaf in leaves}
        return events.pop() if len(events) == 1 else None


def has_reads(expression: Expression) -> bool:
    """Whether an expression has reads."""
    return any(isinstance(node, Read) for node in walk(expression))


def at_hand(node: Expression) -> Expression | None:
    """An attribute as one of the current event."""
    return Attribute(None, None, node.name) if isinstance(node, Attribute) else None


def all_hold(conditions: Sequence[Conjunct], events: Events, look: Look) -> bool:
    """Whether conditions are TRUE however they are read. One that names a variable without event is void."""

    def values(events: Events, at: Mapping[str | None, int]) -> Values:
        return ValuesAndReads(events, at, look=look)

    return all(one.is_true(events, values) for one in conditions if one.names <= events.keys())


def may_end_late(query: QuerySyntax) -> bool:
    """Whether a negation can be the last part of a match: then all matches wait for the ends of their windows."""
    places = Places(query)
    seen = {(places.start, query.errors)}
    waiting = list(seen)
    while waiting:
        place, budget = waiting.pop()
        for step in places.steps(place, budget):
            if step.atom is None and step.gap:
                return True
            following = (step.place, budget - step.cost)
            if step.atom is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return False
