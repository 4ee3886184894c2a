"""What runs that were lost may still lead to: a rule's steps and conditions, as the kernel follows them.

Conditions that compare a number of an earlier event with one of the event at hand are asked of the least and the
greatest that the lost runs have. All others are taken to hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Floats, Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.automaton.resolve import Held, Own, Register
from acep_approx.automaton.states import Step
from acep_approx.engines.runs.shedding import EMPTY, Lost, Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.errors import DataError
from acep_approx.events.columns import to_numpy
from acep_approx.kernels.rules import lost as kernel
from acep_approx.kernels.rules.lost import OWN, PARTS, UNKNOWN
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.evaluate import evaluate, spread
from acep_approx.query.shape import passing_less
from acep_approx.query.syntax import Binary, Constant, Expression, Unary
from acep_approx.ranges import HIGHEST, LOWEST, Range, check
from acep_approx.rules.compiled import CompiledRule

HOW = {"<": kernel.LESS, "<=": kernel.LESS_OR_EQUAL, ">": kernel.GREATER, ">=": kernel.GREATER_OR_EQUAL}
HOW |= {"=": kernel.EQUAL, "!=": kernel.DIFFERENT, "<>": kernel.DIFFERENT}
MOST_LETTERS = 62
"""That fit into a word."""


def can_follow(rule: CompiledRule) -> bool:
    """Whether it is known of a rule where its runs stand, and that they lose nothing by what others do."""
    query, registers = rule.plan.query, rule.plan.registers
    if registers is None or rule.is_late or rule.plan.is_count_window or query.is_simultaneous or query.at_start:
        return False
    is_plain = query.selection.is_all and passing_less(query) is None and registers.counted == "nothing"
    return is_plain and len(rule.plan.letters) <= MOST_LETTERS


@dataclass(frozen=True)
class Sum:
    """``factor * register + times * own + shift``; None where there is no such part."""

    shift: float = 0.0
    register: Register | None = None
    factor: float = 0.0
    own: Expression | None = None
    times: float = 0.0

    @property
    def is_number(self) -> bool:
        """Whether there is nothing but a number."""
        return self.register is None and self.own is None

    def scaled(self, by: float) -> Sum:
        """Times a number."""
        return Sum(by * self.shift, self.register, by * self.factor, self.own, by * self.times)

    def plus(self, other: Sum) -> Sum | None:
        """The sum; None where it has two registers, or two values of the event."""
        if (self.register and other.register) or (self.own and other.own):
            return None
        held, asked = self if self.register else other, self if self.own else other
        return Sum(self.shift + other.shift, held.register, held.factor, asked.own, asked.times)


def sum_of(node: Any) -> Sum | None:
    """A condition's side as a sum; None where it is none, or not of numbers.

    Examples
    --------
    >>> twice = Binary("*", Constant(2), Own(Constant(5)))
    >>> found = sum_of(Binary("-", twice, Constant(3)))
    >>> found.own, found.times, found.shift
    (Constant(value=5), 2.0, -3.0)
    """
    match node:
        case Constant(value=int() | float() as value) if not isinstance(value, bool):
            return Sum(float(value))
        case Own(value=value):
            return Sum(own=value, times=1.0)
        case Held(register=register, updated=False):
            return Sum(register=register, factor=1.0)
        case Unary(op="-", operand=operand):
            found = sum_of(operand)
            return found and found.scaled(-1.0)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            one, other = sum_of(left), sum_of(right)
            return None if one is None or other is None else _together(op, one, other)
    return None


def _together(op: str, one: Sum, other: Sum) -> Sum | None:
    if op != "*":
        return one.plus(other.scaled(1.0 if op == "+" else -1.0))
    number, rest = (one, other) if one.is_number else (other, one)
    return rest.scaled(number.shift) if number.is_number else None


@dataclass(frozen=True)
class Comparison:
    """``factor * register + shift`` is compared with ``times`` a value of the event."""

    register: Register
    how: int
    factor: float
    shift: float
    own: Expression
    times: float


def comparison_of(check: Any) -> Comparison | None:
    """A condition as a comparison; None where it cannot be one."""
    if not isinstance(check, Binary) or check.op not in HOW:
        return None
    left, right = sum_of(check.left), sum_of(check.right)
    both = None if left is None or right is None else left.plus(right.scaled(-1.0))
    if both is None or both.register is None or both.own is None or not both.factor or not both.times:
        return None
    return Comparison(both.register, HOW[check.op], both.factor, both.shift, both.own, -both.times)


class Steps:
    """The steps of a rule, as the kernel follows lost runs.

    Parameters
    ----------
    tables : RunTables
        Of its engine.
    kinds : int64 array, shape (places, registers)
        Which registers hold numbers.
    window : int
    """

    def __init__(self, tables: RunTables, kinds: Ints, window: int) -> None:
        automaton = tables.automaton
        self.values: dict[tuple[Expression, float], int] = {}  # what is asked of events, times a number
        self._live, self._kinds = [automaton.live[state] for state, _ in automaton.places], kinds
        numbers = {place: number for number, place in enumerate(automaton.places)}
        first: list[int] = []
        flat: list[tuple[int, int, int]] = []  # letter, target, whether matches end there
        moves: list[int] = []
        tests: list[list[Comparison]] = []
        sources: list[int] = []
        for source, (state, errors) in enumerate(automaton.places):
            first.append(len(flat))
            for step in automaton.leaving(state) if state != START else ():
                target = automaton.leads_to(step, errors)
                if target is None:
                    continue
                place = numbers[target]
                flat.append((step.letter, place, int(bool(automaton.finals[target[0]]))))
                moves += self._moves(step, source, place)
                tests.append(self._tests(step, source))
                sources.append(source)
        every = [(source, test) for source, some in zip(sources, tests, strict=True) for test in some]
        letters, targets, ends = np.array(flat, np.int64).reshape(-1, 3).T
        self.moves = kernel.Moves(
            len(automaton.places),
            kinds.shape[1],
            window,
            np.array([*first, len(flat)]),
            np.ascontiguousarray(letters),
            np.ascontiguousarray(targets),
            np.ascontiguousarray(ends),
            np.array(moves, np.int64),
            np.cumsum([0, *map(len, tests)]),
            np.array([self._live[source].index(test.register) for source, test in every], np.int64),
            np.array([test.how for _, test in every], np.int64),
            np.array([test.factor for _, test in every], np.float64),
            np.array([test.shift for _, test in every], np.float64),
            np.array([self._value(test.own, test.times) for _, test in every], np.int64),
        )

    def _value(self, own: Expression, times: float = 1.0) -> int:
        return self.values.setdefault((own, times), len(self.values))

    def _holds_number(self, place: int, register: Register) -> bool:
        live = self._live[place]
        return register in live and bool(self._kinds[place, live.index(register)] > 0)

    def _moves(self, step: Step, source: int, target: int) -> list[int]:
        """What registers of the target become."""
        found = [UNKNOWN] * self._kinds.shape[1]
        for number, register in enumerate(self._live[target]):
            after = step.after(register)
            if not self._holds_number(target, register):
                continue
            if isinstance(after, Held) and not after.updated and self._holds_number(source, after.register):
                found[number] = self._live[source].index(after.register)
            elif isinstance(after, Own):
                found[number] = OWN - self._value(after.value)
        return found

    def _tests(self, step: Step, source: int) -> list[Comparison]:
        found = map(comparison_of, step.checks)
        return [test for test in found if test is not None and self._holds_number(source, test.register)]

    def values_of(self, batch: StreamBatch) -> Floats:
        """What is asked of events, a row for each of it; NaN where there is no number, infinite where nobody knows."""
        found = [self._column(own, batch) * times for own, times in self.values]
        return np.concatenate(found) if found else np.zeros(0)

    @staticmethod
    def _column(own: Expression, batch: StreamBatch) -> Floats:
        try:
            values = spread(evaluate(own, lambda leaf: batch.values(leaf.name)), len(batch))
        except DataError:  # of some event it cannot be computed
            return np.full(len(batch), np.inf)
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            return np.full(len(batch), np.nan if pa.types.is_null(values.type) else np.inf)
        return np.asarray(to_numpy(values.cast(pa.float64()).fill_null(np.nan)), np.float64)


class LostRuns:
    """Follows the runs of a rule that were lost.

    Parameters
    ----------
    arena : Shedding
        Of its engine.
    window : int
    """

    def __init__(self, arena: Shedding, window: int) -> None:
        self._arena, self._window = arena, window
        self._steps: Steps
        self._tables: RunTables | None = None
        self._kept = kernel.Kept(np.zeros(0, np.int64), np.zeros(0))

    def _know(self, slots: int) -> Steps:
        """The steps, and room for so many keys."""
        if self._tables is not self._arena.tables:
            self._tables = self._arena.tables
            self._steps = Steps(self._tables, self._arena.kinds_of_registers, self._window)
        moves, kept = self._steps.moves, self._kept
        wanted = slots * moves.places * PARTS
        if wanted > len(kept.start):
            more = np.zeros(4 * wanted * moves.registers - len(kept.bounds))
            self._kept = kernel.Kept(extended(kept.start, 2 * wanted, NEVER), np.concatenate((kept.bounds, more)))
        return self._steps

    def follow(
        self, batch: StreamBatch, slots: Ints, letters: Ints, lost: Lost, leads: Bools, all_end: Bools
    ) -> Bools:
        """At which events a lost run may complete a match.

        Parameters
        ----------
        batch : StreamBatch
        slots, letters : int64 array
            Of each event its key slot, below 0 where it has none, and its letters.
        lost : Lost
            What was lost at them.
        leads : bool array
            What it read is in doubt, and may lead matches on.
        all_end : bool array
            It ends all runs that have begun before.
        """
        steps = self._know(int(slots.max(initial=-1)) + 1)
        at = np.full(len(batch), -1)
        at[lost.rows - batch.first_row] = np.arange(len(lost.rows))
        ticks = np.require(batch.ticks, requirements="W")
        is_open = np.zeros(len(batch), np.bool_)
        coming = kernel.Coming(
            slots, ticks, letters, steps.values_of(batch), leads, all_end, at, lost.starts.ravel(), lost.bounds.ravel()
        )
        next_ = np.tile(EMPTY, max(steps.moves.registers, 1))
        kernel.follow_lost(steps.moves, coming, self._kept, next_, NEVER, is_open)
        return is_open

    def save(self, scope: Scope) -> None:
        """Save what is known at the end of a batch."""
        scope.arrays |= {"start": self._kept.start, "bounds": self._kept.bounds.view(np.int64)}

    def restore(self, scope: Scope) -> None:
        """Take over what ``save`` saved.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        moves = self._know(0).moves
        start = scope.array("start", Range(None, LOWEST, HIGHEST + 1))
        check("lost", good=len(start) % (moves.places * PARTS) == 0)
        bounds = scope.array("bounds", Range(2 * len(start) * moves.registers, LOWEST, HIGHEST + 1))
        self._kept = kernel.Kept(start, bounds.view(np.float64))
