"""The paths of a query: the sequences of events that a match can be made of, with what is asked of them.

Whether a match ends at an event can be found out backwards: by searching the window for the other events of a path. For
this it must be enough to find *one* way to choose them, and it must not matter which events were passed over.

Source: ours. Searching from rare events is lazy evaluation (Kolchinsky, Sharfman, Schuster, DEBS 2015); the paths are
those of the register automaton, with a repetition taken once, as one event of it is enough for a match point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Held, Own, Resolved, calls, dynamic_conditions, held, leaves
from acep_approx.automaton.states import EVERYTHING, Step
from acep_approx.query.shape import operands, replaced
from acep_approx.query.syntax import LISTS_ALL, Attribute, Binary, Expression

MOST_PATHS = 64
"""With more, searching is not tried: each end of a match would be searched so many times."""
MOST_POSITIONS = 12
KINDS = ("value", "least", "greatest")
"""Registers that hold a value of the one event that a path has of a variable."""


@dataclass(frozen=True)
class At:
    """The value of an expression on the event at a position of a path."""

    position: int
    value: Expression


@dataclass(frozen=True)
class Path:
    """A way from the start to the end of a match.

    Attributes
    ----------
    letters : tuple of int
        Of the events at its positions, in their order: indexes of ``RegisterAutomaton.letters``.
    arcs : tuple of int
        Of the automaton, which bind them.
    guards : tuple of frozenset of int
        Per position the letters of which no event may lie between the one before and it.
    checks : tuple of (frozenset of int, Resolved)
        What must be TRUE, with ``At`` for values of events, and the positions that it is about.
    errors : int
        The weight of what is missing.
    final : int
        Of the automaton, where it ends.
    """

    letters: tuple[int, ...]
    arcs: tuple[int, ...]
    guards: tuple[frozenset[int], ...]
    checks: tuple[tuple[frozenset[int], Resolved], ...]
    errors: int
    final: int

    def __len__(self) -> int:
        return len(self.letters)

    @cached_property
    def values(self) -> tuple[At, ...]:
        """The values that its checks ask for, some more than once."""
        return tuple(value for _, check in self.checks for value in _values(check))


class NoPathsError(Exception):
    """Match points cannot be found backwards; the message says why."""


def paths(registers: RegisterAutomaton) -> tuple[Path, ...]:
    """The paths of a query, those with the fewest errors first.

    Parameters
    ----------
    registers : RegisterAutomaton

    Raises
    ------
    NoPathsError
        The query asks for more than that some events are there, or there are too many paths.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x WITHIN 9", engine="runs")
    >>> [(path.letters, path.errors) for path in paths(query.plan.registers)]
    [((0, 1, 2), 0)]
    """
    _refuse(registers)
    found = [*islice(_walked(registers, START, [], frozenset()), MOST_PATHS + 1)]
    if len(found) > MOST_PATHS:
        raise NoPathsError(f"a match can be made in more than {MOST_PATHS} ways")
    kept = [path for path in found if not _binds_twice(registers, path)]
    known = {_variables(registers, path): path.errors for path in reversed(kept)}
    for path in found:
        once = tuple(dict.fromkeys(_variables(registers, path)))
        if known.get(once, path.errors + 1) > path.errors:
            raise NoPathsError("a repetition asks for more than one event")
    return tuple(sorted(kept, key=lambda path: path.errors))


def has_repetition(registers: RegisterAutomaton) -> bool:
    """Whether a match can have more events than its path: a repetition is a path with one of them.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> queries = [compile_query(f"PATTERN SEQ({text}, C c) WITHIN 9", engine="runs") for text in ("A a", "A+ a[]")]
    >>> [has_repetition(query.plan.registers) for query in queries]
    [False, True]
    """
    return bool(registers.automaton.kleene) or _comes_back(registers, START, frozenset())


def _comes_back(registers: RegisterAutomaton, state: int, seen: frozenset[int]) -> bool:
    before = seen | {state}
    targets = {step.target for step in registers.leaving(state) if step.target is not None}
    return bool(targets & before) or any(_comes_back(registers, target, before) for target in targets)


def _refuse(registers: RegisterAutomaton) -> None:
    """Refuse queries of which points depend on more than the events of one path.

    Raises
    ------
    NoPathsError
    """
    query, automaton = registers.query, registers.automaton
    if query.is_machine or query.is_algebra or query.is_regex or registers.computed or registers.shown:
        raise NoPathsError("it is no pattern of variables")
    if registers.counted != "nothing" or registers.has_words or any(one != EVERYTHING for one in registers.ignores):
        raise NoPathsError("a match point depends on the events that were passed over")
    if any(step.inhibits or step.arc is None for step in registers.steps):
        raise NoPathsError("a match point depends on the events that were passed over")
    if query.selection != LISTS_ALL:
        raise NoPathsError("a match point depends on those before it")
    if registers.needs_filter or registers.waits or query.functions:
        raise NoPathsError("complete matches are tested once more")
    if any(arc.guard for arc in automaton.arcs) and (registers.is_simultaneous or automaton.kleene):
        what = "events of one time that do not follow one another" if registers.is_simultaneous else "a repetition"
        raise NoPathsError(f"a negation, and {what}")
    for condition in dynamic_conditions(query):
        repeated = [leaf for leaf in leaves(condition.expression) if leaf.variable in automaton.kleene]
        if any(not isinstance(leaf, Attribute) or leaf.index not in (None, "current") for leaf in repeated):
            raise NoPathsError("a condition is about several events of a repetition")


def _walked(registers: RegisterAutomaton, state: int, steps: list[Step], seen: frozenset[int]) -> Iterator[Path]:
    """The paths that go on from a state, each state at most once."""
    arcs = registers.automaton.arcs
    errors = sum(arcs[step.arc].cost for step in steps if step.arc is not None)
    if steps:
        for number in registers.finals[state]:
            whole = errors + registers.automaton.finals[number].cost
            if whole <= registers.automaton.errors:
                yield _path(registers, steps, whole, number)
    if len(steps) == MOST_POSITIONS and registers.leaving(state):
        raise NoPathsError(f"a match has more than {MOST_POSITIONS} events")
    for step in registers.leaving(state):
        assert step.target is not None, "no step ends runs here"
        assert step.arc is not None
        if step.target not in seen and errors + arcs[step.arc].cost <= registers.automaton.errors:
            yield from _walked(registers, step.target, [*steps, step], seen | {step.target})


def _path(registers: RegisterAutomaton, steps: list[Step], errors: int, final: int) -> Path:
    places = {step.binding.variable: position for position, step in enumerate(steps)}
    checks: list[Resolved] = []
    for position, step in enumerate(steps):
        checks += [_placed(check, position, places) for check in step.checks]
    last = steps[-1].target
    assert last is not None
    checks += [_placed(check, len(steps) - 1, places) for check in registers.final_checks[last]]
    return Path(
        letters=tuple(step.letter for step in steps),
        arcs=tuple(step.arc for step in steps if step.arc is not None),
        guards=tuple(step.guard for step in steps),
        checks=tuple((_positions(part), part) for check in checks for part in _parts(check)),
        errors=errors,
        final=final,
    )


def _placed(check: Resolved, position: int, places: Mapping[str | None, int]) -> Resolved:
    """A check with positions in the places of the current event and of registers."""
    if calls(check) or any(one.register.kind not in KINDS or one.register.upto for one in held(check)):
        raise NoPathsError("a condition asks for what no single event says")

    def known(part: Any) -> Any:
        if isinstance(part, Own):
            return At(position, part.value)
        if isinstance(part, Held):
            assert part.register.of is not None
            return At(places[part.register.variable], part.register.of)
        return part if isinstance(part, At) else None

    return replaced(check, known)


def _parts(check: Resolved) -> Iterator[Resolved]:
    if isinstance(check, Binary) and check.op == "AND":
        yield from _parts(check.left)
        yield from _parts(check.right)
    else:
        yield check


def _values(check: Resolved) -> Iterator[At]:
    if isinstance(check, At):
        yield check
        return
    for part in operands(check):
        yield from _values(part)


def _positions(check: Resolved) -> frozenset[int]:
    return frozenset(value.position for value in _values(check))


def _variables(registers: RegisterAutomaton, path: Path) -> tuple[int, ...]:
    return tuple(registers.automaton.arcs[arc].label for arc in path.arcs)


def _binds_twice(registers: RegisterAutomaton, path: Path) -> bool:
    variables = _variables(registers, path)
    return len(set(variables)) < len(variables)
