"""A compiled query as everything below the Python interface knows it: its plan, its text, its drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.arguments import checked
from acep_approx.errors import expect
from acep_approx.planning.planner import Plan
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import QuerySyntax

if TYPE_CHECKING:
    from acep_approx.automaton.automaton import Automaton


class CompiledQuery:
    """A compiled query, without the verbs that ``Query`` adds: match, train, tune and Spark work on this.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @property
    def syntax(self) -> QuerySyntax:
        """The tree of the query."""
        return self.plan.query

    @property
    def automaton(self) -> Automaton:
        """What the query is compiled to."""
        return self.plan.automaton

    @checked
    def explain(self, format: str = "text") -> str:  # noqa: A002  (as on the command line)
        """The plan as text, or the automaton as a diagram.

        Parameters
        ----------
        format : {"text", "mermaid", "dot", "svg", "json", "air"}, default "text"
            ``svg``: a picture that needs nothing else, light and dark.
            ``air``: of a query in CEL its states and edges, with schemas and conditions, as JSON.

        Raises
        ------
        UsageError
            ``ACEP-U003``: there is no such format; ``ACEP-U075``: ``air`` of a query that is not in CEL.
        """
        from acep_approx.automaton.draw import FORMATS, draw  # few queries are explained where they run
        from acep_approx.planning.explain import air_text, explain_algebra, explain_text

        expect("format", format, str, ", ".join(FORMATS))
        if format == "air":
            return air_text(self.plan)
        if format != "text":
            return draw(self.plan.registers or self.plan.automaton, format)
        return explain_algebra(self.plan) if self.plan.query.is_algebra else explain_text(self.plan)

    def __str__(self) -> str:
        return to_text(self.plan.query)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledQuery) and other.syntax == self.syntax

    def __hash__(self) -> int:
        return hash(self.syntax)
