"""What the texts are that a set of queries is given: plans, and templates where texts differ in constants alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from acep_approx.api.compile import compile_query
from acep_approx.api.query import Query
from acep_approx.planning.planner import Plan
from acep_approx.query.cel.parser import parse_cel
from acep_approx.subscriptions.adding import check
from acep_approx.subscriptions.templates.literals import Literals
from acep_approx.subscriptions.templates.shared import Shared
from acep_approx.subscriptions.templates.template import Template
from acep_approx.subscriptions.templates.texts import Syntax, filled, plans_of, text_of, tree_of, uses


class Planned(NamedTuple):
    """A query of a set: the plans of its automata, its own last, its text, and what it has in common with others."""

    plans: list[Plan]
    text: str
    shared: Shared | None = None


class QueryTexts:
    """Turns texts into plans; those that differ in constants alone get one template."""

    def __init__(self) -> None:
        self._literals = Literals()
        self._trees: dict[str, Syntax] = {}  # of the texts with parameters: the same text is the same template
        self._templates: dict[int, tuple[Syntax, Template | None]] = {}  # by the identity of the tree

    def planned(self, query: str | Query, mark: int) -> Planned:
        """The plans of a query.

        Parameters
        ----------
        query : str or Query
            What was compiled runs by itself.
        mark : int
            Tells hidden streams of a query in CEL apart from those of others.

        Raises
        ------
        QueryError, UsageError
            The query is wrong, or cannot be in a set.
        """
        if isinstance(query, Query):
            if query.plan.cel is None:
                return Planned([query.plan], str(query))
            return Planned(plans_of(query.plan.cel, mark), str(query))
        read = self._literals.read(query)
        if read.values and (template := self._template_of(read.syntax)) and template.can_have(read.values):
            return Planned([template.plan], template.text, Shared(template, read.values))
        return Planned(plans_of(tree_of(query), mark), query)

    def tree(self, template: str) -> Syntax:
        """The tree of a text with parameters, the same for the same text."""
        return self._trees.get(template) or self._trees.setdefault(template, tree_of(template))

    def with_constants(self, syntax: Syntax, constants: Mapping[str, Any], mark: int) -> Planned:
        """The plans of a tree with constants in the places of its parameters; ``mark`` as for ``planned``."""
        template = self._template_of(syntax)
        if template is None or not template.can_have(constants):
            query = filled(syntax, constants)
            return Planned(plans_of(query, mark), text_of(query))
        return Planned([template.plan], template.text, Shared(template, constants))

    def _template_of(self, syntax: Syntax) -> Template | None:
        """The template of a tree with parameters, the same for the same tree; None where each runs by itself."""
        key = id(syntax)  # comparing trees would take longer than making one
        if key not in self._templates:
            made = Template.of(syntax) if uses(syntax) else None
            if made is not None:
                check(made.plan)
            self._templates[key] = syntax, made
        return self._templates[key][1]


class SavedTexts:
    """Makes plans of what a state has of queries; those of one template get the same."""

    def __init__(self) -> None:
        self._templates: dict[str, Template] = {}
        self._parts: dict[tuple[str, int], list[Plan]] = {}

    def __call__(self, saved: Mapping[str, Any]) -> tuple[Plan, Template | None]:
        """The plan of a query, and its template where it has one."""
        text = saved["text"]
        if saved["constants"] is not None:
            if text not in self._templates:
                template = Template.of(tree_of(text))
                assert template is not None, "it was one"
                self._templates[text] = template
            return self._templates[text].plan, self._templates[text]
        if saved["part"] is not None:
            place, mark = saved["part"]
            if (text, mark) not in self._parts:
                self._parts[text, mark] = plans_of(parse_cel(text), mark)
            return self._parts[text, mark][place], None
        return compile_query(text, engine=saved["engine"]).plan, None
