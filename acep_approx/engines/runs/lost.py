"""What runs that nobody follows may still lead to: a query's steps and conditions, as the kernel follows them.

Conditions that compare numbers of earlier events, or sums of them, with one of the event at hand are asked of the least
and the greatest that these runs have. All others are taken to hold. So what is said to end no match ends none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Floats, Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Register
from acep_approx.automaton.states import Step
from acep_approx.engines.runs.shedding import EMPTY, Lost, Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.errors import DataError
from acep_approx.events.columns import to_numpy
from acep_approx.kernels.rules import lost as kernel
from acep_approx.kernels.rules.lost import OWN, PARTS, UNKNOWN
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.query.evaluate import evaluate, spread
from acep_approx.query.shape import passing_less
from acep_approx.query.syntax import Binary, Constant, Expression, Unary
from acep_approx.ranges import HIGHEST, LOWEST, Range, check, check_arrays

HOW = {"<": kernel.LESS, "<=": kernel.LESS_OR_EQUAL, ">": kernel.GREATER, ">=": kernel.GREATER_OR_EQUAL}
HOW |= {"=": kernel.EQUAL, "!=": kernel.DIFFERENT, "<>": kernel.DIFFERENT}
MOST_LETTERS = 62
"""That fit into a word."""
ColumnOf = Callable[[str], pa.Array]
"""Gives the column of an attribute name."""


def can_follow(registers: RegisterAutomaton | None) -> bool:
    """Whether it is known of a query where its runs stand, and that they lose nothing by what others do."""
    if registers is None or registers.query.is_simultaneous or registers.query.at_start:
        return False
    query = registers.query
    is_plain = query.selection.is_all and passing_less(query) is None and registers.counted == "nothing"
    return is_plain and query.window.unit != "events" and len(registers.letters) <= MOST_LETTERS


@dataclass(frozen=True)
class Sum:
    """``factors`` times registers, and ``times * own``, and ``shift``; ``own`` is None where there is no such part."""

    shift: float = 0.0
    factors: tuple[tuple[Register, float], ...] = ()
    own: Expression | None = None
    times: float = 0.0

    @property
    def is_number(self) -> bool:
        """Whether there is nothing but a number."""
        return not self.factors and self.own is None

    def scaled(self, by: float) -> Sum:
        """Times a number."""
        factors = tuple((register, by * factor) for register, factor in self.factors)
        return Sum(by * self.shift, factors, self.own, by * self.times)

    def plus(self, other: Sum) -> Sum | None:
        """The sum; None where it has two values of the event."""
        if self.own and other.own:
            return None
        factors = dict(self.factors)
        for register, factor in other.factors:
            factors[register] = factors.get(register, 0.0) + factor
        asked = self if self.own else other
        left = tuple((register, factor) for register, factor in factors.items() if factor)
        return Sum(self.shift + other.shift, left, asked.own, asked.times)


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
            return Sum(factors=((register, 1.0),))
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
    """A sum of registers is compared with ``times`` a value of the event."""

    how: int
    sum: Sum
    own: Expression
    times: float


def comparison_of(check: Any) -> Comparison | None:
    """A condition as a comparison; None where it cannot be one."""
    if not isinstance(check, Binary) or check.op not in HOW:
        return None
    left, right = sum_of(check.left), sum_of(check.right)
    both = None if left is None or right is None else left.plus(right.scaled(-1.0))
    if both is None or not both.factors or both.own is None or not both.times:
        return None
    return Comparison(HOW[check.op], both, both.own, -both.times)


class Steps:
    """The steps of a query, as the kernel follows runs.

    Parameters
    ----------
    tables : RunTables
        Of its engine.
    kinds : int64 array, shape (places, registers)
        Which registers hold numbers.
    window : int
    begins : bool
        Whether all runs are followed, as they begin.
    """

    def __init__(self, tables: RunTables, kinds: Ints, window: int, *, begins: bool = False) -> None:
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
            for step in automaton.leaving(state) if begins or state != START else ():
                target = automaton.leads_to(step, errors)
                if target is None:
                    continue
                place = numbers[target]
                flat.append((step.letter, place, int(bool(automaton.finals[target[0]]))))
                moves += self._moves(step, source, place)
                tests.append(self._tests(step, source))
                sources.append(source)
        every = [(source, test) for source, some in zip(sources, tests, strict=True) for test in some]
        terms = [(source, *term) for source, test in every for term in test.sum.factors]
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
            np.array([test.how for _, test in every], np.int64),
            np.array([test.sum.shift for _, test in every], np.float64),
            np.array([self._value(test.own, test.times) for _, test in every], np.int64),
            np.cumsum([0, *(len(test.sum.factors) for _, test in every)]),
            np.array([self._live[source].index(register) for source, register, _ in terms], np.int64),
            np.array([factor for *_, factor in terms], np.float64),
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
        return [
            test
            for test in found
            if test is not None and all(self._holds_number(source, register) for register, _ in test.sum.factors)
        ]

    def values_of(self, column: ColumnOf, number: int) -> Floats:
        """What is asked of events, a row for each of it; NaN where there is no number, infinite where nobody knows."""
        found = [self._values(own, column, number) * times for own, times in self.values]
        return np.concatenate(found) if found else np.zeros(0)

    @staticmethod
    def _values(own: Expression, column: ColumnOf, number: int) -> Floats:
        try:
            values = spread(evaluate(own, lambda leaf: column(leaf.name)), number)
        except DataError:  # of some event it cannot be computed
            return np.full(number, np.inf)
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            return np.full(number, np.nan if pa.types.is_null(values.type) else np.inf)
        return np.asarray(to_numpy(values.cast(pa.float64()).fill_null(np.nan)), np.float64)


@dataclass(frozen=True)
class Shown:
    """Events in order: key slots (below 0 where there is none), ticks, letters, and the column of an attribute name."""

    slots: Ints
    ticks: Ints
    letters: Ints
    column: ColumnOf


class LostRuns:
    """Follows the runs of a query that were lost, or all runs that it may have.

    Parameters
    ----------
    arena : Shedding
        Of its engine.
    window : int
    begins : bool
        Whether all runs are followed, as they begin.
    """

    def __init__(self, arena: Shedding, window: int, *, begins: bool = False) -> None:
        self._arena, self._window, self._begins = arena, window, begins
        self._steps: Steps
        self._tables: RunTables | None = None
        self._kept = kernel.Kept(np.zeros(0, np.int64), np.zeros(0))

    def _know(self, slots: int) -> Steps:
        """The steps, and room for so many keys."""
        if self._tables is not self._arena.tables:
            self._tables = self._arena.tables
            self._steps = Steps(self._tables, self._arena.kinds_of_registers, self._window, begins=self._begins)
        moves, kept = self._steps.moves, self._kept
        wanted = slots * moves.places * PARTS
        if wanted > len(kept.start):
            more = np.zeros(4 * wanted * moves.registers - len(kept.bounds))
            self._kept = kernel.Kept(extended(kept.start, 2 * wanted, NEVER), np.concatenate((kept.bounds, more)))
        return self._steps

    def follow(
        self, events: Shown, lost: Lost | None = None, leads: Bools | None = None, all_end: Bools | None = None
    ) -> Ints:
        """What each event may do to these runs: ``MAY_STEP``, ``MAY_END`` of the kernel.

        Parameters
        ----------
        events : Shown
        lost : Lost, optional
            What was lost at them; its rows are places among these events.
        leads : bool array, optional
            What an event read is in doubt, and may lead matches on.
        all_end : bool array, optional
            It ends all runs that have begun before.
        """
        steps, number = self._know(int(events.slots.max(initial=-1)) + 1), len(events.slots)
        at, none = np.full(number, -1), np.zeros(number, np.bool_)
        starts, bounds = np.zeros(0, np.int64), np.zeros(0)
        if lost is not None:
            at[lost.rows] = np.arange(len(lost.rows))
            starts, bounds = lost.starts.ravel(), lost.bounds.ravel()
        coming = kernel.Coming(
            events.slots,
            np.require(events.ticks, requirements="W"),
            events.letters,
            steps.values_of(events.column, number),
            none if leads is None else leads,
            none if all_end is None else all_end,
            at,
            starts,
            bounds,
        )
        may = np.zeros(number, np.int64)
        next_ = np.tile(EMPTY, max(steps.moves.registers, 1))
        kernel.follow_lost(steps.moves, coming, self._kept, next_, NEVER, may)
        return may

    @property
    def kept(self) -> tuple[Ints, Ints]:
        """What is known at the end of a batch, as words: latest starts, and bounds."""
        return self._kept.start, self._kept.bounds.view(np.int64)

    def save(self, scope: Scope) -> None:
        """Save what is known at the end of a batch."""
        scope.arrays |= dict(zip(("start", "bounds"), self.kept, strict=True))

    def restore(self, scope: Scope) -> None:
        """Take over what ``save`` saved.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        self.take_over(scope.array("start"), scope.array("bounds"))

    def take_over(self, start: Ints, bounds: Ints) -> None:
        """Go on from what ``kept`` gave, in another run.

        Raises
        ------
        DamagedError
        """
        moves = self._know(0).moves
        check_arrays({"start": start, "bounds": bounds}, {
            "start": Range(None, LOWEST, HIGHEST + 1),
            "bounds": Range(2 * len(start) * moves.registers, LOWEST, HIGHEST + 1),
        })  # fmt: skip
        check("lost", good=len(start) % (moves.places * PARTS) == 0)
        self._kept = kernel.Kept(start, bounds.view(np.float64))
