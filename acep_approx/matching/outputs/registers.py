"""What registers that have names held when a match ended: computed once more along the arcs of its events.

Runs carry only registers that something to come may read; what RETURN asks for is found here, for many matches at once.

Source: Chandramouli, Goldstein and Maier, PVLDB 3(1) 2010, Definition 2: the payload of an output is the register.
Oracle: ``tests/naive_afa.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.machine import HIDDEN
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.engines.columns import Listed
from acep_approx.errors import QueryError
from acep_approx.events.roles import Roles
from acep_approx.matching.outputs.bind import BoundEvents
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.returns import ReturnColumns
from acep_approx.matching.outputs.tables import BindingColumns
from acep_approx.query.evaluate import evaluate, spread
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Expression, RegisterValue

ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "truth": pa.bool_(),
    "text": pa.string(),
    "time": pa.timestamp("us"),
    "duration": pa.duration("us"),
}
_NUMPY: dict[str, Any] = {
    "int": np.int64,
    "float": np.float64,
    "truth": np.bool_,
    "text": object,
    "time": "datetime64[us]",
    "duration": "timedelta64[us]",
}
FIRST, LAST, VALUES = -2, -3, -4
"""Labels of what tells two matches apart beside the events that are shown: their ends, and values from here down."""


class MachineMatches:
    """What is particular about the matches of an automaton written by hand; falsy for other queries.

    Parameters
    ----------
    automaton : RegisterAutomaton
    roles : Roles
    schema : pyarrow.Schema
        Of the events.

    Attributes
    ----------
    names : tuple of str
        The registers that RETURN reads, in the order of their declaration.
    needed : tuple of str
        Columns of the events that their values depend on.
    recent : Recent
        To be set: has these columns of all events in question.
    """

    def __init__(self, automaton: RegisterAutomaton, roles: Roles, schema: pa.Schema) -> None:
        query = automaton.query
        is_machine = bool(automaton.transfers)
        self.recent: Recent | None = None
        self._text, self._all_moves = query.text, automaton.transfers
        self._roles = roles
        self._declared = {one.register.variable: one for one in automaton.computed if is_machine}
        read = {n.name for o in query.outputs for n in walk(o.value) if isinstance(n, RegisterValue)}
        self.names = tuple(name for name in self._declared if name in read)
        wanted = _read_by(read, automaton.transfers)
        self._moves = [{n: value for n, value in moves.items() if n in wanted} for moves in automaton.transfers]
        self._wanted = tuple(name for name in self._declared if name in wanted)
        attributes = [n for moves in self._moves for e in moves.values() for n in walk(e) if isinstance(n, Attribute)]
        returned = tuple(o for o in query.outputs if any(isinstance(n, RegisterValue) for n in walk(o.value)))
        self._returns = ReturnColumns(returned, roles, as_computed=True)
        events = BoundEvents((), schema, roles, query, is_time=False)
        self._bindings = BindingColumns(automaton.automaton, self._returns, events, is_regex=False)
        named = [roles.column(one.name) for one in attributes]
        self.needed = tuple(dict.fromkeys([*named, *self._returns.needed]))
        variables = automaton.automaton.variables
        self.hidden = variables.index(HIDDEN) if is_machine and HIDDEN in variables else None
        self.check(schema)

    def check(self, schema: pa.Schema) -> None:
        """Refuse moves that give registers of whole numbers others: only the types of the columns tell.

        Raises
        ------
        QueryError
            ``ACEP-Q913``.
        """

        def column(leaf: Any) -> pa.Array:
            if isinstance(leaf, RegisterValue):
                return pa.nulls(0, ARROW[self._declared[leaf.name].register.holds])
            return pa.nulls(0, schema.field(self._roles.column(leaf.name)).type)

        for name, value in ((name, value) for moves in self._all_moves for name, value in moves.items()):
            is_whole = self._declared[name].register.holds == "int"
            if is_whole and pa.types.is_floating(evaluate(value, column).type):
                start, end = value.span if self._text else (0, 0)
                raise QueryError(
                    f"the register {name!r} holds whole numbers, and this may be none",
                    code="ACEP-Q913",
                    hint=f"declare it as {name} FLOAT, or begin with a fraction: {name} = 0.0",
                    text=self._text,
                    start=start,
                    end=end,
                )

    def __bool__(self) -> bool:
        return bool(self.names) or self.hidden is not None

    def values(self, offset: Ints, ids: Ints, arc: Ints) -> dict[str, pa.Array]:
        """The values of ``names`` at the end of some matches.

        Parameters
        ----------
        offset, ids, arc : int64 arrays
            Match ``m`` takes the arcs ``arc[offset[m] : offset[m + 1]]`` with these events, earliest first.

        Returns
        -------
        dict of str to pyarrow.Array, length (matches,)

        Complexity: O(bound events), and what an expression costs for each arc and place in a match.
        """
        if not self.names:
            return {}
        matches = len(offset) - 1
        declared = [self._declared[name] for name in self._wanted]
        held = {one.register.variable: _Column.of(one.register.holds, one.init.value, matches) for one in declared}
        lengths = np.diff(offset)
        longest_first = np.argsort(-lengths, kind="stable")
        going_on = np.searchsorted(-lengths[longest_first], -np.arange(int(lengths.max(initial=0))))
        for place, count in enumerate(going_on.tolist()):
            going = longest_first[:count]
            at = offset[going] + place
            taken = arc[at]
            for number in np.unique(taken).tolist():
                if moves := self._moves[number]:
                    mine = taken == number
                    self._move(moves, held, going[mine], ids[at[mine]])
        return {name: held[name].arrow() for name in self.names}

    def _move(self, moves: Mapping[str, Expression], held: dict[str, _Column], which: Ints, events: Ints) -> None:
        recent = self.recent
        assert recent is not None, "it looks attributes up"
        none = np.zeros(len(events), np.bool_)

        def column(leaf: Any) -> pa.Array:
            if isinstance(leaf, RegisterValue):
                return held[leaf.name].arrow(which)
            return recent.take(self._roles.column(leaf.name), events, none)

        found = {name: spread(evaluate(value, column), len(which)) for name, value in moves.items()}
        for name, values in found.items():
            held[name].put(which, values)

    def told_apart(self, offset: Ints, ids: Ints, arc: Ints, label: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """What tells matches apart: the events that are shown, their first and last event, and what is returned.

        Returns
        -------
        offset, ids, label : int64 arrays
            As for ``first_of_equal``.
        """
        matches = len(offset) - 1
        own = np.repeat(np.arange(matches), np.diff(offset))
        shown = np.ones(len(ids), np.bool_) if self.hidden is None else label != self.hidden
        parts = [(own[shown], ids[shown], label[shown])]
        every = np.arange(matches)
        if self.hidden is not None:
            parts += [(every, ids[offset[:-1]], np.full(matches, FIRST)), (every, end, np.full(matches, LAST))]
        for number, values in enumerate(self._returned(offset, ids, arc, label, end)):
            codes = values.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            parts.append((every, codes, np.full(matches, VALUES - number)))
        match, some, labels = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(match, kind="stable")
        begins = np.concatenate(([0], np.cumsum(np.bincount(match, minlength=matches))))
        return begins, some[order], labels[order]

    def _returned(self, offset: Ints, ids: Ints, arc: Ints, label: Ints, end: Ints) -> list[pa.Array]:
        if not self.names:
            return []
        registers = self.values(offset, ids, arc)
        listed = Listed.of(self._bindings.placement, end, end, offset, ids, label)
        assert self.recent is not None, "it looks attributes up"
        found = self._returns.columns(self._bindings.columns(listed), self.recent, registers, len(end))
        return list(found.values())


class _Column:
    """What a register holds in each match: values, and whether they are known."""

    def __init__(self, holds: str, values: npt.NDArray[Any], is_known: Bools) -> None:
        self.holds, self.values, self.is_known = holds, values, is_known

    @classmethod
    def of(cls, holds: str, initial: Any, matches: int) -> _Column:
        values: npt.NDArray[Any] = np.zeros(matches, _NUMPY[holds])
        if initial is not None:
            values[:] = np.datetime64(initial, "us") if holds == "time" else initial
        return cls(holds, values, np.full(matches, initial is not None))

    def arrow(self, which: Ints | None = None) -> pa.Array:
        values = self.values if which is None else self.values[which]
        is_known = self.is_known if which is None else self.is_known[which]
        return pa.array(values, ARROW[self.holds], mask=~is_known)

    def put(self, which: Ints, values: pa.Array) -> None:
        if values.type != ARROW[self.holds]:
            values = values.cast(ARROW[self.holds])
        known = values.is_valid().to_numpy(zero_copy_only=False)
        self.is_known[which] = known
        self.values[which[known]] = values.drop_null().to_numpy(zero_copy_only=False)


def _read_by(wanted: set[str], transfers: tuple[Mapping[str, Expression], ...]) -> set[str]:
    """The registers that some depend on, and these."""
    found = set(wanted)
    while True:
        more = {
            node.name
            for moves in transfers
            for name, value in moves.items()
            if name in found
            for node in walk(value)
            if isinstance(node, RegisterValue)
        } - found
        if not more:
            return found
        found |= more
