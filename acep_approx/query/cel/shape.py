"""Walks over trees of CEL that do not recurse, and what stands in their nodes."""

from __future__ import annotations

from collections.abc import Iterator

from acep_approx.errors import LimitError
from acep_approx.query.cel.syntax import Algebra, Filter, Fold, Next, Select, Star, Stream
from acep_approx.query.limits import MAX_DEPTH
from acep_approx.query.syntax import Expression


def inputs(node: Algebra) -> tuple[Algebra, ...]:
    """The streams that a node reads, in the order of the text.

    Examples
    --------
    >>> inputs(Next(Stream("A"), None, Stream("B")))
    (Stream(name='A'), Stream(name='B'))
    """
    match node:
        case Stream():
            return ()
        case Filter(source=source) | Select(source=source):
            return (source,)
        case Next(left=left, right=right) | Fold(left=left, right=right):
            return (left, right)


def nodes(node: Algebra) -> Iterator[Algebra]:
    """Every node of a tree, each before what it reads, in the order of the text."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(inputs(found)))


def streams(node: Algebra) -> tuple[str, ...]:
    """The names of the streams that a tree reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(one.name for one in nodes(node) if isinstance(one, Stream)))


def expressions(node: Algebra) -> tuple[Expression, ...]:
    """The conditions and values that stand in a node itself."""
    match node:
        case Stream():
            return ()
        case Filter(condition=condition):
            return (condition,)
        case Next(condition=condition):
            return () if condition is None else (condition,)
        case Fold():
            conditions = tuple(one for one in (node.filter, node.rebind) if one is not None)
            return (*conditions, *(one.value for one in node.aggregates))
        case Select(items=items):
            return tuple(one.value for one in items if not isinstance(one, Star))


def refuse_deep(node: Algebra, text: str) -> None:
    """Refuse a tree of more than `MAX_DEPTH` levels.

    Raises
    ------
    LimitError
        ACEP-Q021.
    """
    level, depth = [node], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise LimitError(
                f"operators are nested more than {MAX_DEPTH} levels deep",
                code="ACEP-Q021",
                given=depth,
                limit=MAX_DEPTH,
                hint="publish a part of the query, and read the stream of that name",
                text=text,
                start=level[0].span[0],
                end=level[0].span[1],
            )
        level = [one for node in level for one in inputs(node)]
