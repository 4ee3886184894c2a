"""What can be asked of a query: each kind of output, and what it shows, needs and allows.

How each of them is made, and by which engine, stands in ``matching.choice``. Nothing else goes by the name of a kind.
"""

from __future__ import annotations

from typing import Literal, Self

OutputName = Literal["matches", "points", "counts", "partial", "compressed", "trace"]
"""The names that users give."""


class OutputKind(str):
    """The name of a kind of output, and what is so of it.

    Attributes
    ----------
    binds : bool
        Whether rows show the events that a match binds, by variable.
    is_point : bool
        Whether rows show the event that completes matches.
    by_errors : bool
        Whether a match point has a row for each number of errors.
    is_partial : bool
        Whether rows are matches that nearly were.
    is_linked : bool
        Whether rows are links to one another by numbers: no column of theirs can be shown otherwise.
    needs_all : bool
        Whether it is about all partial matches: then none can be shed, no other process has a part of them, and
        nothing is taken back.
    is_inner : bool
        Whether it is for us only.
    """

    def __new__(cls, name: str, **_: bool) -> Self:
        """Make it a text, so that it is written and compared as its name."""
        return super().__new__(cls, name)

    def __init__(self, _: str, **true: bool) -> None:
        self.binds = self.is_point = self.by_errors = self.is_partial = False
        self.is_linked = self.needs_all = self.is_inner = False
        vars(self).update(true)


MATCHES = OutputKind("matches", binds=True)
POINTS = OutputKind("points", is_point=True)
BARE = OutputKind("bare points", is_point=True, is_inner=True)
"""Match points without what their best matches show: for those who ask only where matches end."""
COUNTS = OutputKind("counts", is_point=True, by_errors=True)
PARTIAL = OutputKind("partial", binds=True, is_partial=True, needs_all=True)
COMPRESSED = OutputKind("compressed", is_linked=True, needs_all=True)
TRACE = OutputKind("trace", needs_all=True, is_inner=True)

KINDS: dict[str, OutputKind] = {kind: kind for kind in (MATCHES, POINTS, BARE, COUNTS, PARTIAL, COMPRESSED, TRACE)}
"""All of them, by name."""
STREAMED = tuple(kind for kind in KINDS.values() if not (kind.needs_all or kind.is_inner))
"""Those that a set of queries, a stream that changes, and Spark can put out."""
