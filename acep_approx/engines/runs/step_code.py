"""The programs of a query: what the kernel runs to test steps, to take them, to end matches and to let events pass.

Some tell more: which runs wait for an event beyond a threshold, and which events can tell from bounds that they take
none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Resolved
from acep_approx.automaton.states import Step
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.engines.runs.hidden import HiddenColumns, RunOptions
from acep_approx.engines.runs.programs import ANY_LETTER, Lowering, Operand, Scalars
from acep_approx.kernels.runs import vm
from acep_approx.kernels.runs.waiting import IS_FALLING, IS_FLOAT, IS_INT, OR_EQUAL

NOTHING = -1
"""In the place of what runs wait for, and of the scalar of an event that looks at all of them."""
MAY_OVERFLOW = {vm.ADD_INT, vm.SUB_INT, vm.MUL_INT, vm.SUM_INT}
PASSED = {vm.LESS: (0, False), vm.LESS | vm.EQUAL: (0, True)}
PASSED |= {vm.GREATER: (IS_FALLING, False), vm.GREATER | vm.EQUAL: (IS_FALLING, True)}
"""How a scalar passes a register by the flags of their comparison: on its way up or down, and whether by equal."""


class Beyond(NamedTuple):
    """The scalar of an event that a step compares with a threshold, and whether equal is beyond it.

    ``is_int``: it is a whole number, made a float first.
    """

    scalar: int
    or_equal: bool
    is_int: bool


Thresholds = dict[int, Beyond]
"""What a step compares: column and kind of the threshold, as a pool notes them in ``WAITS_FOR``."""


def most_common(steps: Iterable[Thresholds]) -> int:
    """What runs wait for: the threshold that most steps compare; ``NOTHING`` where there is none."""
    count = Counter(threshold for step in steps for threshold in sorted(step))
    return max(count, key=lambda threshold: (count[threshold], -threshold), default=NOTHING)


def beyond(waits_for: int, steps: Sequence[Thresholds]) -> tuple[int, int]:
    """The words of a source: the scalar that all its steps compare with the thresholds, and how it passes them."""
    found = [step[waits_for] for step in steps if waits_for in step]
    if not found or len(found) < len(steps) or len({(one.scalar, one.is_int) for one in found}) > 1:
        return NOTHING, 0
    return found[0].scalar, OR_EQUAL * any(one.or_equal for one in found) | IS_INT * found[0].is_int


def thresholds(checks: Iterable[Instruction]) -> Thresholds:
    """The thresholds that a program of checks compares with scalars.

    Where numbers of runs may pass 64 bits none is found: all runs are looked at then, so that the error does not depend
    on bounds.
    """
    found: Thresholds = {}
    floats: dict[int, int] = {}  # temporary columns that are scalars made floats
    for one in checks:
        if one.op in MAY_OVERFLOW:
            return {}
        column, scalar, flags = one.number, one.other, one.flags
        is_int = one.form == (vm.TEST_FLOAT, vm.TEMPORARY, vm.REGISTER) and column in floats
        if is_int:
            column, scalar, flags = scalar, floats[column], turned(flags)
        elif one.op == vm.TO_FLOAT and one.place == vm.SCALAR:
            floats[one.target] = column
        is_test = one.op in (vm.TEST_INT, vm.TEST_FLOAT) and (one.place, one.other_place) == (vm.REGISTER, vm.SCALAR)
        if (is_test or is_int) and flags in PASSED:
            way, or_equal = PASSED[flags]
            found.setdefault(column << 2 | way | IS_FLOAT * (one.op == vm.TEST_FLOAT), Beyond(scalar, or_equal, is_int))
    return found


def turned(flags: int) -> int:
    """What a comparison asks with its sides changed."""
    return flags & vm.EQUAL | (vm.GREATER if flags & vm.LESS else 0) | (vm.LESS if flags & vm.GREATER else 0)


class Code(NamedTuple):
    """Where a program begins among all words, and how many instructions it has."""

    begin: int
    length: int


class Instruction(NamedTuple):
    """An instruction of the block machine: what it does, to which temporary column, with which two operands."""

    op: int
    target: int
    place: int
    number: int
    other_place: int
    other: int
    flags: int

    @property
    def form(self) -> tuple[int, int, int]:
        """What it does, and what kinds of operands it has."""
        return self.op, self.place, self.other_place


class Comparison(NamedTuple):
    """A register is compared with a scalar; ``as_float``: this is made a float first."""

    scalar: int
    flags: int
    as_float: bool


@dataclass(frozen=True)
class StepCode:
    """What a step does, with the scalars at their final places.

    ``moves`` says where each register of the target comes from; ``calls`` which functions it calls; ``tests`` has the
    instructions of checks and guards; ``equalities`` the register columns that checks compare for equality, with the
    addresses of the scalars; ``thresholds`` what it compares.
    """

    checks: Code
    guards: Code
    updates: Code
    moves: tuple[Operand, ...]
    calls: frozenset[int]
    tests: tuple[Instruction, ...]
    equalities: dict[int, int]
    thresholds: Thresholds

    @property
    def keeps(self) -> bool:
        """Whether the registers that it does not set stay in their columns."""
        return all(move.place != vm.REGISTER or move.number == column for column, move in enumerate(self.moves))

    @property
    def is_plain(self) -> bool:
        """Whether it does nothing but compare registers with scalars."""
        plain = {(op, vm.REGISTER, vm.SCALAR) for op in (vm.TEST_INT, vm.TEST_FLOAT)}
        return self.updates.length == 0 and {one.form for one in self.tests} <= plain

    def compared(self) -> list[Comparison] | None:
        """What it compares registers with; None where it does more than that."""
        if self.guards.length or self.updates.length:
            return None
        found: list[Comparison] = []
        floats: dict[int, int] = {}  # temporary columns that are scalars made floats
        for one in self.tests:
            if (one.op, one.place) == (vm.TO_FLOAT, vm.SCALAR):
                floats[one.target] = one.number
            elif one.op in (vm.TEST_INT, vm.TEST_FLOAT) and (one.place, one.other_place) == (vm.REGISTER, vm.SCALAR):
                found.append(Comparison(one.other, one.flags, as_float=False))
            elif one.form == (vm.TEST_FLOAT, vm.REGISTER, vm.TEMPORARY) and one.other in floats:
                found.append(Comparison(floats[one.other], one.flags, as_float=True))
            elif one.form == (vm.TEST_FLOAT, vm.TEMPORARY, vm.REGISTER) and one.number in floats:
                found.append(Comparison(floats[one.number], turned(one.flags), as_float=True))
            else:
                return None
        return found

    def given(self) -> list[int] | None:
        """The scalars that the registers become; None where some come from registers, or are computed."""
        return None if any(m.place != vm.SCALAR for m in self.moves) else [move.number for move in self.moves]


class Ignored(NamedTuple):
    """What is asked of runs of a state that an event may pass, and which functions are called for it."""

    code: Code
    calls: frozenset[int]


class Programs:
    """The programs of all steps and states.

    Parameters
    ----------
    automaton : RegisterAutomaton
    columns : EventColumns
        Of the schema of the events.
    hidden : HiddenColumns
        Their constants are scalars, too.
    options : RunOptions

    Attributes
    ----------
    scalars : Scalars
    guard_letters : list of int
        Letters of negations that the kernel tests.
    words : list of int
        All programs, one after the other.
    steps : list of StepCode
    finals, ignores : list of Code, list of Ignored
        By state.
    """

    def __init__(
        self, automaton: RegisterAutomaton, columns: EventColumns, hidden: HiddenColumns, options: RunOptions
    ) -> None:
        self._automaton = automaton
        self.guard_letters = sorted({j for step in automaton.steps for j in step.guard})
        self.scalars = Scalars(columns, len(self.guard_letters), options)
        self.words: list[int] = []
        for column in hidden:
            if column.constant is not None:  # before scalars get their final numbers
                self.scalars.word(column.constant, "int")
        lowered = [self._lowered(step) for step in automaton.steps]
        self.scalars.letters = ANY_LETTER
        states = range(len(automaton.states))
        self.finals = [self._tests(state, automaton.final_checks[state]).code for state in states]
        self.ignores = [self._tests(state, automaton.ignores[state].checks) for state in states]
        self._resolve_scalars()
        self.steps = [self._step(*parts) for parts in lowered]

    def _lowered(self, step: Step) -> tuple[Code, Code, Code, list[Operand], set[int]]:
        """Programs of checks, guards and updates, where each register of the target comes from, and what is called."""
        live = self._automaton.live
        self.scalars.letters = 1 << step.letter
        lowering = Lowering(self.scalars, live[step.source], step.after)
        for check in step.checks:
            lowering.test(check)
        checks = self._put(lowering.take())
        for letter in sorted(step.guard):
            lowering.test_guard(self.guard_letters.index(letter))
        guards = self._put(lowering.take())
        moves = [lowering.after(register) for register in (live[step.target] if step.target is not None else ())]
        return checks, guards, self._put(lowering.take()), moves, lowering.calls

    def _tests(self, state: int, checks: tuple[Resolved, ...]) -> Ignored:
        """The program of what is asked of runs of a state that bind nothing."""
        lowering = Lowering(self.scalars, self._automaton.live[state])
        for check in checks:
            lowering.test(check)
        return Ignored(self._put(lowering.take()), frozenset(lowering.calls))

    def _put(self, code: Iterable[tuple[int, ...]]) -> Code:
        begin = len(self.words)
        for instruction in code:
            self.words.extend(instruction)
        return Code(begin, (len(self.words) - begin) // vm.WIDTH)

    def _resolve_scalars(self) -> None:
        """Give scalars their final numbers, now that all are known."""
        for at in range(0, len(self.words), vm.WIDTH):
            for place in (at + 2, at + 4):
                if self.words[place] == vm.SCALAR:
                    self.words[place + 1] = self.scalars.address(self.words[place + 1])

    def _step(self, checks: Code, guards: Code, updates: Code, moves: list[Operand], calls: set[int]) -> StepCode:
        address = self.scalars.address
        equal = (vm.TEST_INT, vm.REGISTER, vm.SCALAR), vm.EQUAL
        return StepCode(
            checks=checks,
            guards=guards,
            updates=updates,
            moves=tuple(m._replace(number=address(m.number)) if m.place == vm.SCALAR else m for m in moves),
            calls=frozenset(calls),
            tests=(*self._instructions(checks), *self._instructions(guards)),
            equalities={
                one.number: one.other
                for one in self._instructions(checks)
                if (one.form, one.flags) == equal
            },
            thresholds=thresholds(self._instructions(checks)),
        )

    def _instructions(self, code: Code) -> Iterator[Instruction]:
        for at in range(code.begin, code.begin + code.length * vm.WIDTH, vm.WIDTH):
            yield Instruction(*self.words[at : at + vm.WIDTH])
