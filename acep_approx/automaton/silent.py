"""Ways through an automaton written by hand that consume no event: EPSILON arcs, and arcs that are skipped.

They are folded into the arcs around them when the automaton is compiled. Which events are passed over decides how: as
long as no state on the way passes over more than the one where it begins, the way is taken *late*, together with the
arc behind it. Otherwise a run of its own waits at its end from the moment on when its beginning is reached.

Source: Chandramouli, Goldstein and Maier, PVLDB 3(1) 2010, section 2.2 (next-ID relation of an epsilon arc).
Deviations: the paper runs them one by one; skipped arcs are ours (Li and Ge, PVLDB 10(4) 2016, section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from acep_approx.automaton.compile import MAX_WAYS, MAX_WAYS_TO_ONE
from acep_approx.automaton.substitution import Substitution, parts_of
from acep_approx.query.checks_machine import weight_of
from acep_approx.query.shape import conjuncts, walk
from acep_approx.query.syntax import (
    Expression,
    Machine,
    MachineArc,
    QuerySyntax,
    RegisterValue,
)

Rules = frozenset[tuple[str | None, Expression | None]]
"""What a state passes over: types (None: any) and conditions on event and registers."""
ALL: Rules = frozenset({(None, None)})


@dataclass(frozen=True)
class Way:
    """A way to ``state`` that consumes nothing: its cost, what it asks of the registers, and what becomes of these.

    ``checks`` and ``values`` are about the registers at its beginning; registers that are not in ``values`` stay.
    ``parts`` says how many parts these expressions have.
    """

    state: str
    cost: int = 0
    checks: tuple[Expression, ...] = ()
    values: tuple[tuple[str, Expression], ...] = ()
    skipped: tuple[str, ...] = ()
    parts: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it neither tests nor changes a register."""
        return not self.checks and not self.values


@dataclass(frozen=True)
class Ways:
    """Where a run can get from one state without an event.

    ``late`` are the ways that can wait until they are needed, the one that stays first. ``early`` are those that need a
    run of their own from the beginning on.
    """

    late: tuple[Way, ...]
    early: tuple[Way, ...]


def within(one: Rules, other: Rules, way: Way) -> bool:
    """Whether all that one state passes over, the other does, too; False also where that is not plain to see.

    ``way`` leads from one of them to the other: rules that read registers which it changes say different things.
    """
    changed = {name for name, _ in way.values}
    same = not changed or not any(
        isinstance(node, RegisterValue) and node.name in changed for _, when in one if when for node in walk(when)
    )
    return other >= ALL or (one <= other and same)


@dataclass
class Limits:
    """What the ways of one automaton may add up to, counted while they are made.

    Parameters
    ----------
    refuse : callable
        Gets what there are too many of, how many, their limit and the code; raises.
    """

    refuse: Callable[[str, int, int, str], None]
    ways: int = 0
    writing: Substitution = field(init=False)

    def __post_init__(self) -> None:
        self.writing = Substitution(self.refuse)

    def count(self, way: Way) -> None:
        """Count a way, and the parts that it carries along."""
        self.ways += 1
        if self.ways > MAX_WAYS:
            self.refuse("ways to go on without an event", self.ways, MAX_WAYS, "ACEP-Q911")
        self.writing.count(way.parts)


def ways_from(query: QuerySyntax, machine: Machine, rules: Mapping[str, Rules], origin: str, limits: Limits) -> Ways:
    """The ways from a state that consume nothing.

    Parameters
    ----------
    query : QuerySyntax
        Says how much may be skipped.
    machine : Machine
        Of the query; no circle of EPSILON arcs changes registers.
    rules : mapping of str to Rules
        Per state what it passes over.
    origin : str
    limits : Limits
        Raises if there are too many, or if their expressions grow too large.

    Complexity: O(ways x arcs out of a state + ways to one state ** 2).
    """
    weights = dict(query.weights)
    late, early = list[Way](), list[Way]()
    known: dict[tuple[str, str], _Known] = {}
    waiting = [(0, 0, Way(origin), origin)]
    found = 1
    while waiting:  # cheap ways first: no way is known that a cheaper one makes needless
        _, _, way, base = heappop(waiting)
        if not known.setdefault((way.state, base), _Known()).add(way, limits):
            continue
        if base == origin:
            late.append(way)
        elif base == way.state:
            early.append(way)
        for arc in machine.leaving.get(way.state, ()):
            cost = weight_of(arc, weights) if arc.kind == "on" else 0
            if arc.kind == "timeout" or way.cost + cost > query.errors:
                continue
            onward = _onward(way, arc, cost, limits.writing)
            limits.count(onward)
            found += 1
            is_late = within(rules[onward.state], rules[base], onward)
            heappush(waiting, (onward.cost, found, onward, base if is_late else onward.state))
    return Ways(tuple(late), tuple(early))


def _onward(way: Way, arc: MachineArc, cost: int, writing: Substitution) -> Way:
    if arc.kind == "on":
        skipped = (*way.skipped, arc.variable or arc.type or "event")
        return replace(way, state=arc.target, cost=way.cost + cost, skipped=skipped)
    if arc.when is None and not arc.sets:
        return replace(way, state=arc.target)
    values = dict(way.values)
    checks = tuple(writing.written(check, values) for check in conjuncts(arc.when))
    kept = tuple(dict.fromkeys((*way.checks, *checks)))
    changed = writing.after(values, arc)
    moved = tuple((name, value) for name, value in changed.items() if value != RegisterValue(name))
    return Way(arc.target, way.cost, kept, moved, way.skipped, parts_of((*kept, *changed.values())))


class _Known:
    def __init__(self) -> None:
        self.count = 0
        self.checks: dict[Expression, int] = {}
        self.by_values: dict[tuple[tuple[str, Expression], ...], list[int]] = {}

    def add(self, way: Way, limits: Limits) -> bool:
        """Record a way unless one is known that does the same and asks for less; none known costs more."""
        asked = 0
        for check in way.checks:
            asked |= 1 << self.checks.setdefault(check, len(self.checks))
        alike = self.by_values.setdefault(way.values, [])
        if any(one & asked == one for one in alike):
            return False
        alike.append(asked)
        self.count += 1
        if self.count > MAX_WAYS_TO_ONE:
            what = "ways from one state to another without an event"
            limits.refuse(what, self.count, MAX_WAYS_TO_ONE, "ACEP-Q911")
        return True
