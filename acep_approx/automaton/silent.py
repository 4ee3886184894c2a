"""Ways through an automaton written by hand that consume no event: EPSILON arcs, and arcs that are skipped.

They are folded into the arcs around them when the automaton is compiled. Which events are passed over decides how: as
long as no state on the way passes over more than the one where it begins, the way is taken *late*, together with the
arc behind it. Otherwise a run of its own waits at its end from the moment on when its beginning is reached.

Source: Chandramouli, Goldstein and Maier, PVLDB 3(1) 2010, section 2.2 (next-ID relation of an epsilon arc).
Deviations: the paper runs them one by one; skipped arcs are ours (Li and Ge, PVLDB 10(4) 2016, section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from acep_approx.query.checks_machine import weight_of
from acep_approx.query.predicates import conjuncts
from acep_approx.query.shape import replaced, walk
from acep_approx.query.syntax import (
    Between,
    Binary,
    Constant,
    Expression,
    FunctionCall,
    In,
    IsNull,
    Machine,
    MachineArc,
    QuerySyntax,
    RegisterValue,
    Unary,
)

Values = Mapping[str, Expression]
"""What registers hold, by what they held before and the current event."""
Rules = frozenset[tuple[str | None, Expression | None]]
"""What a state passes over: types (None: any) and conditions on event and registers."""
ALL: Rules = frozenset({(None, None)})


@dataclass(frozen=True)
class Way:
    """A way to ``state`` that consumes nothing: its cost, what it asks of the registers, and what becomes of these.

    ``checks`` and ``values`` are about the registers at its beginning; registers that are not in ``values`` stay.
    """

    state: str
    cost: int = 0
    checks: tuple[Expression, ...] = ()
    values: tuple[tuple[str, Expression], ...] = ()
    skipped: tuple[str, ...] = ()

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


def substituted(expression: Expression, values: Values) -> Expression:
    """``expression`` with the values of registers in their places.

    Examples
    --------
    >>> substituted(Binary("+", RegisterValue("n"), Constant(1)), {"n": Constant(2)})
    Binary(op='+', left=Constant(value=2), right=Constant(value=1))
    """
    found = replaced(expression, lambda node: values.get(node.name, node) if isinstance(node, RegisterValue) else None)
    return _without_null(found)


def _without_null(node: Expression) -> Expression:  # noqa: PLR0911  one for each kind of node
    """``node`` where what is computed from NULL is NULL: as a value of its own it would be of no kind."""
    if isinstance(node, Binary) and node.op in ("AND", "OR"):
        return replace(node, left=_without_null(node.left), right=_without_null(node.right))
    if isinstance(node, IsNull):
        return replace(node, operand=_without_null(node.operand))
    if isinstance(node, FunctionCall):
        return replace(node, arguments=tuple(map(_without_null, node.arguments)))
    parts = [_without_null(part) for part in _operands(node)]
    if any(part == Constant(None) for part in parts):
        return Constant(None, node.span)
    match node, parts:
        case Binary(), (left, right):
            return replace(node, left=left, right=right)
        case Between(), (operand,):  # a bound that is NULL does not make it NULL: the other one may exclude
            return replace(node, operand=operand, low=_without_null(node.low), high=_without_null(node.high))
        case Unary() | In(), (operand,):
            return replace(node, operand=operand)
    return node


def _operands(node: Expression) -> tuple[Expression, ...]:
    """The parts of which one that is NULL makes the whole NULL."""
    match node:
        case Binary(left=left, right=right):
            return left, right
        case Unary(operand=operand) | In(operand=operand):
            return (operand,)
        case Between(operand=operand):
            return (operand,)
    return ()


def after(values: Values, arc: MachineArc, of_event: Callable[[Expression], Expression]) -> dict[str, Expression]:
    """What registers hold once an arc was taken, by what ``values`` are about."""
    return {**values, **{one.register: substituted(of_event(one.value), values) for one in arc.sets}}


def ways_from(
    query: QuerySyntax, machine: Machine, rules: Mapping[str, Rules], origin: str, refuse: Callable[[int], None]
) -> Ways:
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
    refuse : callable
        Gets the number of ways found so far, and raises if these are too many.

    Complexity: O(ways x arcs).
    """
    weights = dict(query.weights)
    late, early = list[Way](), list[Way]()
    known: dict[tuple[str, str], list[Way]] = {}
    waiting = [(0, 0, Way(origin), origin)]
    found = 1
    while waiting:  # cheap ways first: no way is known that a cheaper one makes needless
        _, _, way, base = heappop(waiting)
        if not _is_new(known.setdefault((way.state, base), []), way):
            continue
        if base == origin:
            late.append(way)
        elif base == way.state:
            early.append(way)
        for arc in machine.arcs:
            if arc.source != way.state or arc.kind == "timeout":
                continue
            onward = _onward(way, arc, weights)
            if onward.cost > query.errors:
                continue
            found += 1
            refuse(found)
            is_late = within(rules[onward.state], rules[base], onward)
            heappush(waiting, (onward.cost, found, onward, base if is_late else onward.state))
    return Ways(tuple(late), tuple(early))


def _onward(way: Way, arc: MachineArc, weights: Mapping[str, int]) -> Way:
    """A way, and one more arc of it: taken without an event, or skipped."""
    if arc.kind == "on":
        skipped = (*way.skipped, arc.variable or arc.type or "event")
        return Way(arc.target, way.cost + weight_of(arc, weights), way.checks, way.values, skipped)
    values = dict(way.values)
    checks = () if arc.when is None else tuple(substituted(check, values) for check in conjuncts(arc.when))
    kept = tuple(dict.fromkeys((*way.checks, *checks)))
    changed = after(values, arc, lambda value: value)
    moved = tuple((name, value) for name, value in changed.items() if value != RegisterValue(name))
    return Way(arc.target, way.cost, kept, moved, way.skipped)


def _is_new(known: list[Way], way: Way) -> bool:
    """Record a way unless one is known that does the same and asks for less."""
    if any(
        one.cost <= way.cost and set(one.checks) <= set(way.checks) and one.values == way.values for one in known
    ):
        return False
    known.append(way)
    return True
