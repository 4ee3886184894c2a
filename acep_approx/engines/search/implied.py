"""What comparisons of events imply: where ``b.x > a.x`` and ``c.x > b.x``, ``c.x > a.x`` holds as well.

So a search that binds ``a`` and ``c`` first can test them before it knows ``b``. If they must be equal, an index
finds ``a``. And where values are equal, what differs from one of them differs from the other.

Source: transitive closure of predicates, as query optimisers do it (Ullman, Principles of Database Systems, 1982).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

from acep_approx.automaton.paths import At, Path
from acep_approx.automaton.resolve import Resolved
from acep_approx.query.shape import MIRRORED
from acep_approx.query.syntax import Binary

Order = dict[tuple[At, At], bool]
"""Of two values whether the first is less, or (False) no greater."""
Differences = dict[tuple[At, At], float]
"""Of two values how much the first one is more than the second, at most."""


def closed(path: Path, kind: Callable[[At], str]) -> Path:
    """Add what the checks of a path imply, behind them.

    Parameters
    ----------
    path : Path
    kind : callable
        Gives the kind of a value. Only values of one kind are compared exactly, others with rounding.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> text = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.y = b.x WITHIN 9"
    >>> (path,) = compile_query(text, engine="runs").plan.paths
    >>> [sorted(positions) for positions, _ in closed(path, lambda _: "int").checks]
    [[0, 1], [1, 2], [0, 2]]
    """
    checks = [check for _, check in path.checks]
    compared = [known for check in checks if (known := _compared(check)) and kind(known[0]) == kind(known[2])]
    order, more = _order(compared), list[tuple[frozenset[int], Resolved]]()
    for (one, other), is_less in order.items():
        if one.position == other.position:
            continue
        is_equal = order.get((other, one)) is False and not is_less
        if is_equal and (other.position, repr(other)) < (one.position, repr(one)):
            continue  # the same from the other side
        implied: Resolved = Binary("=" if is_equal else "<" if is_less else "<=", one, other)  # type: ignore[arg-type]
        if not any(is_implied(implied, [check]) for check in checks):
            more.append((frozenset((one.position, other.position)), implied))
    unlike = [(one, other) for one, op, other in compared if op == "!="]
    stated = set(map(frozenset, unlike))
    for pair in unlike:
        for one, other in product(*(_alike(order, side) for side in pair)):
            if one.position != other.position and frozenset((one, other)) not in stated:
                stated.add(frozenset((one, other)))
                follows: Resolved = Binary("!=", one, other)  # type: ignore[arg-type]
                more.append((frozenset((one.position, other.position)), follows))
    return replace(path, checks=(*path.checks, *more))


def is_implied(check: Resolved, by: Iterable[Resolved]) -> bool:
    """Whether a comparison follows from others. Each of them must be of two values of one kind."""
    wanted = _compared(check)
    if wanted is None:
        return False
    known, (one, op, other) = [some for stated in by if (some := _compared(stated)) is not None], wanted
    if not (any(one in some for some in known) and any(other in some for some in known)):
        return False
    order = _order(known)
    if op == "!=":
        pairs = set(product(_alike(order, one), _alike(order, other)))
        return any(((low, high) in pairs or (high, low) in pairs) for low, op, high in known if op == "!=")
    if op == "=":
        return (one, other) in order and (other, one) in order
    return (one, other) in order and (op == "<=" or order[one, other])


def _alike(order: Order, one: At) -> list[At]:
    """A value, and those that are equal to it."""
    return [one, *(other for value, other in order if value == one != other and (other, one) in order)]


def _compared(check: Resolved) -> tuple[At, str, At] | None:
    """A comparison of two values of events, as ``=``, ``!=``, ``<`` or ``<=``."""
    if not isinstance(check, Binary) or not (isinstance(check.left, At) and isinstance(check.right, At)):
        return None
    if check.op in (">", ">="):
        return check.right, MIRRORED[check.op], check.left
    return (check.left, check.op, check.right) if check.op in ("=", "!=", "<", "<=") else None


def _order(compared: Iterable[tuple[At, str, At]]) -> Order:
    """All that follows of which value is less."""
    stated = list[tuple[At, At, float]]()
    for one, op, other in compared:
        if op != "!=":
            stated.append((one, other, -1.0 if op == "<" else 0.0))
        if op == "=":
            stated.append((other, one, 0.0))
    return {pair: most < 0 for pair, most in closure(stated).items()}


def closure(stated: Iterable[tuple[At, At, float]]) -> Differences:
    """All that follows of how much values are more than others, at most.

    It is worked out by numbers of the values (Warshall): to hash a value takes time.
    """
    numbers: dict[At, int] = {}
    found: dict[tuple[int, int], float] = {}
    for one, other, most in stated:
        pair = numbers.setdefault(one, len(numbers)), numbers.setdefault(other, len(numbers))
        found[pair] = min(most, found.get(pair, math.inf))
    for middle in range(len(numbers)):
        before = [(pair[0], most) for pair, most in found.items() if pair[1] == middle]
        after = [(pair[1], most) for pair, most in found.items() if pair[0] == middle]
        for (low, some), (high, more) in product(before, after):
            if low != high:
                found[low, high] = min(some + more, found.get((low, high), math.inf))
    values = list(numbers)
    return {(values[low], values[high]): most for (low, high), most in found.items()}
