"""Band joins: where ``abs(b.x - a.x) < 5``, an index finds the ``b`` whose ``x`` lies near that of a known ``a``.

Conditions that bound the difference of two values of events, from one side or both, are put together: ``a`` near ``b``
and ``b`` near ``c`` say how near ``a`` is to ``c``. A value then lies between two others, and is looked for in bins of
``WIDER`` times that width, of which each overlaps half of the next one: so one bin has all that lies near, and an event
is in two of them, an even one and an odd one. What is in the bin is tested as before.

Source: difference constraints and their closure (Warshall; Dechter, Meiri, Pearl, Temporal Constraint Networks, 1991);
that bins hold what a band join needs is DeWitt, Naughton, Schneider (VLDB 1991), that they overlap is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acep_approx.automaton.paths import At, Path
from acep_approx.automaton.resolve import Resolved
from acep_approx.engines.search.implied import Differences, closure
from acep_approx.query.syntax import Apply, Between, Binary, Constant, Unary

NUMBERS = ("int", "float")
WIDER, SLACK = 2.5, 0.1
"""How many times as wide as its band a bin is; and which part of the band rounding may take away on each side."""
MOST_BANDS = 2
"""That one event is looked for by: each doubles the chains that all events are put into."""


class Near(NamedTuple):
    """A value lies between another one less ``below``, and that plus ``above``."""

    value: At
    other: At
    below: float
    above: float

    @property
    def width(self) -> float:
        """Of the band."""
        return self.below + self.above


Bands = dict[int, list[Near]]
"""By position in which bands its event is looked for."""


@dataclass(frozen=True)
class Wanted:
    """The bin in which a value is looked for that lies near one of the event at a position; the column of such bins."""

    position: int
    column: int


def differences(path: Path, kind: Callable[[At], str]) -> Differences:
    """What the checks of a path say of differences of numbers; nothing where they only say which is less.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> text = "PATTERN SEQ(A a, B b, C c) WHERE abs(b.x - a.x) < 5 AND c.x BETWEEN b.x - 1 AND b.x WITHIN 9"
    >>> (path,) = compile_query(text, engine="runs").plan.paths
    >>> known = differences(path, lambda _: "int")
    >>> for position, some in bands(known, (2, 0, 1)).items():
    ...     print(position, [(near.other.position, near.below, near.above) for near in some])
    0 [(2, 5.0, 6.0)]
    1 [(2, 0.0, 1.0)]
    """
    stated = [stated for _, check in path.checks for stated in _stated(check)]
    if not any(most for _, _, most in stated):
        return {}
    known = {base: (value, more) for value in path.values[::-1] for base, more in [_shifted(value)]}
    found = list[tuple[At, At, float]]()
    for one, other, most in stated:
        (value, more), (beside, less) = known[one], known[other]
        if value.position != beside.position and kind(value) in NUMBERS and kind(beside) in NUMBERS:
            found.append((value, beside, most + more - less))
    return closure(found)


def bands(known: Differences, order: Sequence[int]) -> Bands:
    """By position in which bands its event is looked for, where the positions are bound in some order.

    Where one value lies in several bands, the narrowest is taken.
    """
    found: Bands = {}
    for number, position in enumerate(order[1:] if known else ()):
        nearest: dict[At, Near] = {}
        for (value, other), above in known.items():
            if value.position == position and other.position in order[: number + 1]:
                near = Near(value, other, known.get((other, value), math.inf), above)
                if 0 < near.width < (nearest[value].width if value in nearest else math.inf):
                    nearest[value] = near
        found[position] = list(nearest.values())[:MOST_BANDS]
    return found


def _stated(check: Resolved) -> Iterator[tuple[At, At, float]]:
    """Of which values a check says that the first one is so much more than the second, at most."""
    if isinstance(check, Between) and not check.negated:
        yield from _no_more(check.low, check.operand)
        yield from _no_more(check.operand, check.high)
    elif isinstance(check, Binary) and check.op in ("<", "<=", "="):
        yield from _no_more(check.left, check.right)
    if isinstance(check, Binary) and check.op in (">", ">=", "="):
        yield from _no_more(check.right, check.left)


def _no_more(left: Resolved, right: Resolved) -> Iterator[tuple[At, At, float]]:
    """What it says that one side is no more than the other."""
    low, high = _number(left), _number(right)
    if high is not None:
        yield from _at_most(left, high)
    elif low is not None:
        yield from _at_least(right, low)
    else:
        yield from _at_most(Binary("-", left, right), 0.0)


def _at_most(node: Resolved, most: float) -> Iterator[tuple[At, At, float]]:
    match node:
        case Binary(op="-", left=left, right=right):
            if isinstance(left, At) and isinstance(right, At):
                (one, more), (other, less) = _shifted(left), _shifted(right)
                yield one, other, most - more + less
        case Unary(op="-", operand=operand):
            yield from _at_least(operand, -most)
        case Binary(op="*", left=left, right=right) if left == right and most >= 0:
            yield from _within(left, math.sqrt(most))
        case Binary(op="*", left=left, right=right):
            for factor, scaled in ((_number(left), right), (_number(right), left)):
                if factor is not None and factor > 0:
                    yield from _at_most(scaled, most / factor)
        case Binary(op="+", left=left, right=right) if _is_no_less_than_0(left) and _is_no_less_than_0(right):
            yield from _at_most(left, most)
            yield from _at_most(right, most)
        case Apply(name="abs", arguments=(inner,)) if most >= 0:
            yield from _within(inner, most)


def _within(node: Resolved, most: float) -> Iterator[tuple[At, At, float]]:
    yield from _at_most(node, most)
    yield from _at_least(node, -most)


def _at_least(node: Resolved, least: float) -> Iterator[tuple[At, At, float]]:
    match node:
        case Binary(op="-", left=left, right=right):
            yield from _at_most(Binary("-", right, left), -least)
        case Unary(op="-", operand=operand):
            yield from _at_most(operand, -least)


def _is_no_less_than_0(node: Resolved) -> bool:
    match node:
        case Apply(name="abs"):
            return True
        case Binary(op="*", left=left, right=right):
            factors = [number for number in (_number(left), _number(right)) if number is not None]
            others = [one for one in (left, right) if _number(one) is None]
            return left == right or (min(factors, default=-1.0) >= 0 and all(map(_is_no_less_than_0, others)))
        case Binary(op="+", left=left, right=right):
            return _is_no_less_than_0(left) and _is_no_less_than_0(right)
    return False


def _number(node: Resolved) -> float | None:
    if isinstance(node, Unary) and node.op == "-":
        known = _number(node.operand)
        return None if known is None else -known
    if isinstance(node, Constant) and type(node.value) in (int, float):
        known = float(node.value)  # type: ignore[arg-type]
        return known if math.isfinite(known) else None
    return None


def _shifted(node: At) -> tuple[At, float]:
    """A value of an event, and what is added to it."""
    value = node.value
    if isinstance(value, Binary) and value.op in ("+", "-") and (more := _number(value.right)) is not None:
        base, before = _shifted(At(node.position, value.left))
        return base, before + (more if value.op == "+" else -more)
    if isinstance(value, Binary) and value.op == "+" and (more := _number(value.left)) is not None:
        base, before = _shifted(At(node.position, value.right))
        return base, before + more
    return node, 0.0
