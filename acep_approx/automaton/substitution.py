"""Values of registers written into the expressions that read them, and the limit on what that may add up to.

Each time `n = n + n` is written into itself the expression doubles, so twenty steps would make a million parts: they
are counted before they are built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from acep_approx.query.limits import MAX_DEPTH
from acep_approx.query.shape import operands, replaced, walk_with_depth
from acep_approx.query.syntax import (
    Between,
    Binary,
    Constant,
    Expression,
    In,
    MachineArc,
    RegisterValue,
    Unary,
)

Values = Mapping[str, Expression]
"""What registers hold, by what they held before and the current event."""
MAX_PARTS = 200_000
"""Parts of the expressions of all ways and steps of an automaton, each counted where it is used."""


@dataclass
class Substitution:
    """Writes values into expressions, and counts the parts that there are in all.

    Parameters
    ----------
    refuse : callable
        Gets what there is too much of, how many, their limit and the code; raises.
    parts : int, optional
        Counted so far.

    Examples
    --------
    >>> writing = Substitution(print)
    >>> writing.written(Binary("+", RegisterValue("n"), Constant(1)), {"n": Constant(2)})
    Binary(op='+', left=Constant(value=2), right=Constant(value=1))
    >>> writing.parts
    3
    """

    refuse: Callable[[str, int, int, str], None]
    parts: int = 0

    def written(self, expression: Expression, values: Values) -> Expression:
        """``expression`` with the values of registers in their places.

        What is computed from NULL is NULL: as a value of its own it would be of no kind.

        Complexity: O(parts of the result); none is built beyond the limit.
        """

        def held(node: Any) -> Expression | None:
            return values.get(node.name, node) if isinstance(node, RegisterValue) else None

        self.count_written(expression, held)
        return replaced(expression, held, _without_null)

    def count_written(self, expression: Expression, value: Callable[[Any], Any]) -> None:
        """Count the parts that an expression will have when ``value`` is in the places of those that it knows."""
        size, depth = 0, 0
        known: dict[int, tuple[int, int]] = {}
        for node, level in walk_with_depth(expression):
            found = value(node)
            inner = (1, 1) if found is None else known.get(id(found)) or known.setdefault(id(found), size_of(found))
            size, depth = size + inner[0], max(depth, level + inner[1] - 1)
        self.count(size)
        if depth > MAX_DEPTH:
            self.refuse("levels of expressions written into one another", depth, MAX_DEPTH, "ACEP-Q120")

    def after(
        self, values: Values, arc: MachineArc, of_event: Callable[[Expression], Expression] = lambda value: value
    ) -> dict[str, Expression]:
        """What registers hold once an arc was taken, by what ``values`` are about."""
        return {**values, **{one.register: self.written(of_event(one.value), values) for one in arc.sets}}

    def count(self, parts: int) -> None:
        """Count parts that are used once more."""
        self.parts += parts
        if self.parts > MAX_PARTS:
            self.refuse("parts of expressions written into one another", self.parts, MAX_PARTS, "ACEP-Q120")


def size_of(node: Any) -> tuple[int, int]:
    """How many parts an expression has, resolved or not, and on how many levels; O(parts)."""
    size, depth = 0, 0
    level = [node]
    while level:
        size, depth = size + len(level), depth + 1
        level = [part for one in level for part in operands(one)]
    return size, depth


def parts_of(expressions: Iterable[Any]) -> int:
    """How many parts expressions have in all."""
    return sum(size_of(expression)[0] for expression in expressions)


def _without_null(node: Expression) -> Expression:
    return Constant(None, node.span) if any(part == Constant(None) for part in _operands(node)) else node


def _operands(node: Expression) -> tuple[Expression, ...]:
    """The parts of which one that is NULL makes the whole NULL."""
    match node:
        case Binary(op=op, left=left, right=right) if op not in ("AND", "OR"):
            return left, right
        case Unary(operand=operand) | In(operand=operand):
            return (operand,)
        case Between(operand=operand):  # a bound that is NULL does not make it NULL: the other one may exclude
            return (operand,)
    return ()
