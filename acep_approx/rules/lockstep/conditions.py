"""Conditions on the store as trees that a kernel can decide: AND and OR over tests of one value each.

A condition that is not known does not hold. AND and OR over such truths say the same as SQL's over three; NOT does not,
so it is pushed down: what is left of it stands in a test (``NOT n = 1`` is ``n != 1``, and neither holds where n is
NULL) or in a condition on the event alone.

WHEN becomes such a tree, or conditions on the event that completes a match, with columns in the places of what it
reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acep_approx.automaton.letters import unbound
from acep_approx.kernels.rules.lockstep import EQUAL, GREATER, IN, IS_NULL, IS_VALUE, LESS, NOT_IN
from acep_approx.query.printer import to_text
from acep_approx.query.shape import MIRRORED, replaced, walk
from acep_approx.query.syntax import (
    Aggregate,
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    In,
    IsNull,
    Read,
    Unary,
)
from acep_approx.rules.compiled import CompiledRule, ReadColumn, always_last

OUTCOMES = {
    "=": EQUAL,
    "!=": LESS + GREATER,
    "<": LESS,
    "<=": LESS + EQUAL,
    ">": GREATER,
    ">=": GREATER + EQUAL,
}
ALL_OUTCOMES = LESS + EQUAL + GREATER
TRUE = Constant(True)
NEVER_KNOWN = 2**53
"""Whole numbers from here on have neighbours that are the same as floats."""
MOST_NODES = 200
"""Of a condition; larger ones are left to others."""


class NotATestError(Exception):
    """A condition asks something of the store that a test cannot; the message says what."""


@dataclass(frozen=True)
class Test:
    """One question about a value of the store, by the name of its column; ``outcomes`` as the kernel has them.

    ``operand`` is what it is compared with, over the event alone; ``values`` are those of IN.
    """

    read: str
    outcomes: int
    operand: Expression | None = None
    values: tuple[Constant, ...] = ()


@dataclass(frozen=True)
class Given:
    """A condition on the event alone."""

    condition: Expression


@dataclass(frozen=True)
class Both:
    """All parts, or one of them where it is not ``is_all``, must hold."""

    parts: tuple[Tree, ...]
    is_all: bool


Tree = Test | Given | Both


def tree_of(  # noqa: PLR0911  one for each kind of node
    condition: Expression, live: frozenset[str], *, wanted: bool = True
) -> Tree:
    """The tree of a condition; of its negation, where it is not ``wanted``.

    Parameters
    ----------
    condition : Expression
        Over one event; attributes name no variable.
    live : frozenset of str
        The names of columns that the store gives.

    Raises
    ------
    NotATestError
    """
    if not _reads(condition, live):
        return Given(condition if wanted else Unary("NOT", condition))
    if sum(1 for _ in walk(condition)) > MOST_NODES:
        raise NotATestError("a condition on what is read is too large")
    match condition:
        case Attribute(name=name):
            return Test(name, EQUAL if wanted else ALL_OUTCOMES - EQUAL, TRUE)
        case Unary(op="NOT", operand=operand):
            return tree_of(operand, live, wanted=not wanted)
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            parts = (tree_of(left, live, wanted=wanted), tree_of(right, live, wanted=wanted))
            return Both(parts, is_all=(op == "AND") == wanted)
        case Binary(op=op, left=left, right=right) if op in OUTCOMES:
            return _comparison(op, left, right, live, wanted=wanted)
        case IsNull(operand=Attribute(name=name), negated=negated):
            return Test(name, IS_VALUE if negated == wanted else IS_NULL)
        case Between(operand=operand, low=low, high=high, negated=negated):
            wanted = wanted != negated
            parts = (
                _comparison(">=", operand, low, live, wanted=wanted),
                _comparison("<=", operand, high, live, wanted=wanted),
            )
            return Both(parts, is_all=wanted)
        case In(operand=Attribute(name=name), values=values, negated=negated):
            return _contained(name, values, wanted=wanted != negated)
    raise NotATestError(f"{to_text(condition)} computes with what it reads")


def _comparison(op: str, left: Expression, right: Expression, live: frozenset[str], *, wanted: bool) -> Tree:
    if not _reads(left, live) and not _reads(right, live):
        return tree_of(Binary(op, left, right), live, wanted=wanted)
    if not _reads(left, live):
        op, left, right = MIRRORED[op], right, left
    if not isinstance(left, Attribute):
        raise NotATestError(f"{to_text(left)} computes with what it reads")
    if _reads(right, live):
        raise NotATestError(f"{to_text(left)} is compared with {to_text(right)}, which is read, too")
    return Test(left.name, OUTCOMES[op] if wanted else ALL_OUTCOMES - OUTCOMES[op], right)


def _contained(name: str, values: tuple[Constant, ...], *, wanted: bool) -> Tree:
    """IN, or NOT IN: what is not in a list that holds NULL is not known to be outside."""
    known = tuple(one for one in values if one.value is not None)
    if not known or (not wanted and len(known) < len(values)):
        return Both((), is_all=False)
    numbers = [one.value for one in known if isinstance(one.value, int | float)]
    if any(isinstance(one, float) for one in numbers) and any(abs(one) >= NEVER_KNOWN for one in numbers):
        raise NotATestError("whole numbers that floats do not tell apart stand beside floats")
    return Test(name, IN if wanted else NOT_IN, None, known)


def _reads(expression: Expression, live: frozenset[str]) -> bool:
    return any(isinstance(node, Attribute) and node.name in live for node in walk(expression))


def leaves(tree: Tree) -> Iterator[Test | Given]:
    """The tests of a tree, and its conditions on the event alone, from left to right."""
    if isinstance(tree, Both):
        for part in tree.parts:
            yield from leaves(part)
    else:
        yield tree


def decided(tree: Tree, known: dict[Test | Given, bool]) -> bool:
    """Whether a tree holds, where all its leaves are known."""
    if isinstance(tree, Both):
        return (all if tree.is_all else any)(decided(part, known) for part in tree.parts)
    return known[tree]


def reduced(tree: Tree, known: dict[Test | Given, bool]) -> Tree | bool:
    """What is left to ask where some leaves are known: a tree of the others, or whether it holds."""
    if not isinstance(tree, Both):
        return known.get(tree, tree)
    parts = [reduced(part, known) for part in tree.parts]
    if (not tree.is_all) in parts:
        return not tree.is_all
    asked = tuple(part for part in parts if not isinstance(part, bool))
    return Both(asked, tree.is_all) if asked else tree.is_all


@dataclass(frozen=True)
class When:
    """Conditions over one event, whose attributes name no variable, and the columns that it needs for them."""

    conditions: tuple[Expression, ...]
    reads: tuple[ReadColumn, ...]


def when_of(rule: CompiledRule) -> When:
    """What WHEN asks of the event that completes a match.

    Raises
    ------
    NotATestError
        It asks something of other events.
    """
    last, reads = always_last(rule.plan.query), dict[ReadColumn, None]()
    for condition in rule.conditions:
        for node in walk(condition):
            if isinstance(node, Aggregate) or (isinstance(node, Attribute) and node.variable != last):
                raise NotATestError(f"WHEN asks something of another event than the last one, {to_text(node)}")

    def as_attribute(node: Expression) -> Expression | None:
        if not isinstance(node, Read):
            return None
        column = ReadColumn(node.table, tuple(map(unbound, node.keys)), node.column)
        reads[column] = None
        return Attribute(last, None, column.name)

    conditions = tuple(unbound(replaced(one, as_attribute)) for one in rule.conditions)
    return When(conditions, tuple(reads))


def reads_of_circle(rules: Iterable[CompiledRule]) -> list[ReadColumn]:
    """The columns that the events of some rules get from the store, for WHEN, too."""
    return [*dict.fromkeys(read for rule in rules for read in (*rule.reads, *when_of(rule).reads))]
