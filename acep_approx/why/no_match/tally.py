"""How many events fit each variable of a pattern by themselves, and which of its own conditions keep the others out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools
from acep_approx.automaton.letters import Truths, unbound
from acep_approx.matching.stream_batch import ColumnOf
from acep_approx.matching.tracing.partial import States
from acep_approx.matching.unseen import NEAR, nearest
from acep_approx.planning.planner import Plan
from acep_approx.query.evaluate import evaluate_asked
from acep_approx.query.printer import to_text
from acep_approx.query.shape import MIRRORED, is_static, variables
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression
from acep_approx.why.conditions import shown
from acep_approx.why.place import StreamPlace

EXAMPLES = 3
"""Values of an attribute that are shown."""


@dataclass(frozen=True)
class OwnCondition:
    """A condition on single events of one variable: how many events of its type fail it, and how nearly they hold."""

    condition: str
    failing: int
    nearest: str = ""


@dataclass(frozen=True)
class Tally:
    """Of one variable: its type, how many events are of that type, and how many of these meet its own conditions.

    ``first`` is the place of the first event that fits, or else is of the type; None where no event is.
    """

    variable: str
    type: str | None
    events: int
    fitting: int
    failed: tuple[OwnCondition, ...] = ()
    first: int | None = None


class Letters:
    """Which letters of the automaton stand for which variables, and what is reached with some of them.

    Attributes
    ----------
    order : tuple of str
        The variables that bind events, in the order of the pattern.
    bits : dict of str to int
        Per variable its letters, as a mask.
    """

    def __init__(self, plan: Plan) -> None:
        self.automaton = plan.automaton
        self._states = States(plan.query, self.automaton)
        self.order = tuple(dict.fromkeys(one.variable for one in self.automaton.components if not one.is_negated))
        self.bits = dict.fromkeys(self.order, 0)
        for arc in self.automaton.arcs:
            for name in self._states.names(arc.label, arc.letter, arc.target):
                self.bits[name] = self.bits.get(name, 0) | 1 << arc.letter

    def accepts(self, present: int) -> bool:
        """Whether a match could be made of events of these letters, in any order and number."""
        paid = self._reached(present)
        left = self.automaton.errors
        return any(f.state in paid and paid[f.state] + f.cost <= left for f in self.automaton.finals)

    def blocking(self, present: int) -> tuple[str, ...]:
        """The variables that events of these letters do not get past: those that are needed; else any that would do."""
        paid, left = self._reached(present), self.automaton.errors
        found = {
            name
            for arc in self.automaton.arcs
            if arc.source in paid and paid[arc.source] + arc.cost <= left and not present >> arc.letter & 1
            for name in self._states.names(arc.label, arc.letter, arc.target)
        }
        every = sum(1 << number for number in range(len(self.automaton.letters)))
        needed = {name for name in found if not self.accepts(every & ~self.bits[name])}
        return tuple(name for name in self.order if name in (needed or found))

    def _reached(self, present: int) -> dict[int, int]:
        """The states that can be reached, each with the fewest errors."""
        paid = {0: 0}
        waiting = [0]
        while waiting:
            state = waiting.pop()
            for arc in self.automaton.arcs:
                cost = paid[state] + arc.cost
                if arc.source != state or cost > self.automaton.errors or not present >> arc.letter & 1:
                    continue
                if cost < paid.get(arc.target, self.automaton.errors + 1):
                    paid[arc.target] = cost
                    waiting.append(arc.target)
        return paid


def tallies(place: StreamPlace, letters: Letters) -> tuple[Tally, ...]:
    """The tally of each variable, in the order of the pattern.

    Complexity: O(events x conditions), vectorised.
    """
    batch = place.table.to_batches()[0]
    counter = _Counter(place, Truths(len(place.rows), ColumnOf(batch, place.roles)), ColumnOf(batch, place.roles))
    masks = place.masks
    types = {one.variable: one.type for one in place.plan.automaton.components if not one.is_negated}
    return tuple(
        counter.tally(name, types[name], (masks & np.uint64(letters.bits[name])) != 0, letters.bits[name])
        for name in letters.order
    )


class _Counter:
    def __init__(self, place: StreamPlace, truths: Truths, column: Callable[[str], pa.Array]) -> None:
        self._place = place
        self._truths = truths
        self._column = column

    def tally(self, name: str, type_: str | None, fits: Bools, bits: int) -> Tally:
        typed = self._typed(type_)
        failed = tuple(
            self._failed(text, condition, typed)
            for text, condition in self._conditions(name, bits)
            if not self._truths.holds_on(condition, lambda: typed)[typed].all()
        )
        firsts = np.flatnonzero(fits if fits.any() else typed)
        first = int(firsts[0]) if len(firsts) else None
        return Tally(name, type_, int(typed.sum()), int(fits.sum()), failed, first)

    def _typed(self, type_: str | None) -> Bools:
        if type_ is None:
            return np.ones(len(self._place.rows), np.bool_)
        names, codes = self._truths.types
        wanted = np.array([*(name is not None and str(name) == type_ for name in names), False])
        typed: Bools = wanted[codes]
        return typed

    def _conditions(self, name: str, bits: int) -> Iterator[tuple[str, Expression]]:
        """The conditions of the letter of a variable, as the query writes them."""
        query, letters = self._place.plan.query, self._place.plan.automaton.letters
        mine = [letter for number, letter in enumerate(letters) if bits >> number & 1]
        if len(mine) != 1:  # an automaton written by hand asks for other things elsewhere
            return
        texts = {unbound(p): to_text(p) for p in query.predicates if is_static(p) and variables(p) == {name}}
        for condition in mine[0].conditions:
            yield texts.get(condition, to_text(condition)), condition

    def _failed(self, text: str, condition: Expression, typed: Bools) -> OwnCondition:
        failing = int((typed & ~self._truths.holds_on(condition, lambda: typed)).sum())
        return OwnCondition(text, failing, self._nearest(condition, typed) if failing else "")

    def _nearest(self, condition: Expression, typed: Bools) -> str:
        """What values there are, where a side of a comparison is a constant."""
        match condition:
            case Binary(op=op, left=side, right=Constant(value=wanted)) if op in MIRRORED:
                pass
            case Binary(op=mirrored, left=Constant(value=wanted), right=side) if mirrored in MIRRORED:
                op = MIRRORED[mirrored]
            case _:
                return ""
        found = evaluate_asked(side, lambda leaf: self._column(str(leaf.name)), lambda: typed)
        if isinstance(found, pa.Scalar):
            return ""
        values = found.filter(pa.array(typed)).drop_null()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not len(values):
            return f"{to_text(side)} is NULL in all of them" if isinstance(side, Attribute) else "it is always NULL"
        return _nearest_value(op, wanted, values)


def _nearest_value(op: str, wanted: object, values: pa.Array) -> str:
    if op in (">", ">=") and not pa.types.is_boolean(values.type):
        return f"the largest is {shown(pc.max(values).as_py())}"
    if op in ("<", "<=") and not pa.types.is_boolean(values.type):
        return f"the smallest is {shown(pc.min(values).as_py())}"
    counted = pc.value_counts(values)
    order = np.argsort(-counted.field("counts").to_numpy(zero_copy_only=False), kind="stable")
    distinct = counted.field("values").take(pa.array(order)).to_pylist()
    if op == "=" and isinstance(wanted, str):
        near = nearest(wanted, {str(value) for value in distinct[:1000]}, NEAR)
        if near is not None:
            return f"did you mean {shown(near)}?"
    examples = ", ".join(shown(value) for value in distinct[:EXAMPLES])
    return f"the only value is {examples}" if len(distinct) == 1 else f"values are for example {examples}"
