"""What of a query one automaton cannot run: each such part becomes a query of its own that publishes a stream.

Source: Demers et al., CIDR 2007, section 3: "any left-associated Cayuga algebra expression can be implemented" by one
automaton, others "can be broken up into a set of left-associated ones".
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from acep_approx.query.cel.printer import to_algebra
from acep_approx.query.cel.syntax import INTERNAL, Algebra, CelQuery, Filter, Fold, Next, Select, Star, Stream
from acep_approx.query.printer import to_text


def left_associated(query: CelQuery, mark: str = "") -> tuple[CelQuery, ...]:
    r"""The queries that must run for one query, each of them one automaton.

    Composite right operands of NEXT and FOLD, and subqueries with PUBLISH, become queries of their own; a `Stream`
    stands in their place. A right operand of nothing but FILTERs and SELECTs over a stream stays.

    Parameters
    ----------
    query : CelQuery
        Parsed or resolved.
    mark : str, optional
        Ends the names of hidden streams, so that those of several queries differ.

    Returns
    -------
    tuple of CelQuery
        Those whose streams others read come first; the last one is the query itself. What the text gives no name is
        published under one that no text can say, which is the same for equal parts, and is
        ``SELECT *``: resolve it before it is compiled. The window of the query is also the window of these parts, as
        what lasts too long is in no result; what is published by name has none.

    Examples
    --------
    >>> from acep_approx.query import parse_cel, to_cel
    >>> inner, outer = left_associated(parse_cel("FROM A NEXT (FROM B NEXT C PUBLISH D)"))
    >>> print(to_cel(inner), to_cel(outer), sep="\n")
    SELECT *
    FROM B NEXT C
    PUBLISH D
    SELECT *
    FROM A NEXT D
    """
    parts = _Parts(query, mark)
    select = replace(query.select, source=parts.left(query.select.source))
    return (*parts.found.values(), replace(query, select=select))


class _Parts:
    """The queries that were found in one query, by the names of their streams."""

    def __init__(self, query: CelQuery, mark: str) -> None:
        self.query = query
        self.mark = mark
        self.found: dict[str, CelQuery] = {}

    def left(self, node: Algebra) -> Algebra:
        """What stays where it is: the part of an automaton that reads from the left."""
        match node:
            case Stream():
                return node
            case Filter():
                return replace(node, source=self.left(node.source))
            case Next() | Fold():
                left = self.left(node.left)
                return replace(node, left=left, right=self.right(node.right))
            case Select():
                made = replace(node, source=self.left(node.source))
                if node.publish is None:
                    return made
                self._publish(node.publish, made)
                return Stream(node.publish, node.span)

    def right(self, node: Algebra) -> Algebra:
        """A right operand: the events of one stream, or one of their own."""
        made = self.left(node)
        inside = made
        while isinstance(inside, Filter | Select):
            inside = inside.source
        if isinstance(inside, Stream):
            return made
        window = "" if self.query.window is None else to_text(self.query.window)
        name = INTERNAL + sha256(f"{to_algebra(made)} WITHIN {window}".encode()).hexdigest()[:16] + self.mark
        self._publish(name, Select((Star(),), made, name, node.span), internal=True)
        return Stream(name, node.span)

    def _publish(self, name: str, select: Select, *, internal: bool = False) -> None:
        window = self.query.window if internal else None
        self.found.setdefault(name, CelQuery(select, window, 0, self.query.text))
