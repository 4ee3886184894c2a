"""What the texts are that a set of queries is given: plans, and templates where texts differ in constants alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import pyarrow as pa

from acep_approx.api.compile import compile_query
from acep_approx.api.query import Query
from acep_approx.errors import UsageError
from acep_approx.matching.outputs.kinds import KINDS
from acep_approx.planning.planner import Plan
from acep_approx.query.cel.parser import parse_cel
from acep_approx.subscriptions.graph import check_plan
from acep_approx.subscriptions.templates.literals import Literals, Syntax, filled, plans_of, text_of, tree_of, uses
from acep_approx.subscriptions.templates.template import Alike, Template, checked, constants_in


class Planned(NamedTuple):
    """A query of a set that runs by itself: the plans of its automata, its own last, its text, and its horizon."""

    plans: list[Plan]
    text: str
    queries: int = 1
    horizon: str | None = None

    def until(self, horizon: str | None) -> Planned:
        """The same with a horizon, where it has no window."""
        return self._replace(horizon=horizon) if len(self.plans) == 1 and self.plans[0].is_unbounded else self


class QueryTexts:
    """Turns texts into plans; those that differ in constants alone get one template.

    Parameters
    ----------
    output : {"matches", "points", "counts"}
        Of the set. What publishes has two parts where it is not ``matches``, and runs by itself.
    """

    def __init__(self, output: str) -> None:
        self._output = KINDS[output]
        self._literals = Literals()
        self._trees: dict[str, Syntax] = {}  # of the texts with parameters: the same text is the same template
        self._templates: dict[int, tuple[Syntax, Template | None]] = {}  # by the identity of the tree
        self._until: dict[tuple[int, str], Template] = {}  # with a horizon, by the identity of those without

    def until(self, found: Planned | Alike, horizon: str | None) -> Planned | Alike:
        """What has no window gets a horizon."""
        if isinstance(found, Planned) or horizon is None or not found.template.plan.is_unbounded:
            return found.until(horizon) if isinstance(found, Planned) else found
        key = id(found.template), horizon
        if key not in self._until:
            self._until[key] = replace(found.template, horizon=horizon)
        return found._replace(template=self._until[key])

    def planned(self, query: str | Query, mark: int) -> Planned | Alike:
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
            return Alike.one(template, read.values)
        return Planned(plans_of(tree_of(query), mark), query)

    def tree(self, template: str) -> Syntax:
        """The tree of a text with parameters, the same for the same text."""
        return self._trees.get(template) or self._trees.setdefault(template, tree_of(template))

    def with_constants(
        self, syntax: Syntax, rows: pa.RecordBatch, first: int, mark: Callable[[], int]
    ) -> Iterator[Planned | Alike]:
        """What a tree becomes with the constants of some rows in the places of its parameters: for all, or for each.

        ``first`` is the number of the first row; ``mark`` gives what ``planned`` takes, for each in turn.

        Raises
        ------
        UsageError, QueryError
            Those of ``constants.checked``.
        """
        template, rows = self._template_of(syntax), checked(syntax, rows, first)
        if template is not None and (alike := Alike.of(template, rows)):
            yield alike
            return
        for constants in constants_in(syntax, rows):
            if template is None or not template.can_have(constants):
                query = filled(syntax, constants)
                yield Planned(plans_of(query, mark()), text_of(query))
            else:
                yield Alike.one(template, constants)

    def _template_of(self, syntax: Syntax) -> Template | None:
        """The template of a tree with parameters, the same for the same tree; None where each runs by itself."""
        key = id(syntax)  # comparing trees would take longer than making one
        if key not in self._templates:
            made = Template.of(syntax) if uses(syntax) else None
            if made is not None and made.plan.query.publish is not None and not self._output.binds:
                made = None
            if made is not None:
                check_plan(made.plan)
            self._templates[key] = syntax, made
        return self._templates[key][1]


def weights_in(rows: pa.RecordBatch | None, weight: str | float) -> list[float]:
    """What match points of queries count for: one weight for all, or a column of the table that they are rows of.

    Raises
    ------
    UsageError
        ``ACEP-U220``: no number above 0.

    Examples
    --------
    >>> weights_in(None, 2), weights_in(pa.record_batch({"w": [1, 3]}), "w")
    ([2.0], [1.0, 3.0])
    """
    if isinstance(weight, str) and rows is not None:
        found = rows.column(weight).to_pylist()
    else:
        found = [weight] * (1 if rows is None else rows.num_rows)
    for one in found:
        if not isinstance(one, Real) or isinstance(one, bool) or not 0 < float(one) < math.inf:
            raise UsageError(f"the weight of a query is {one!r:.60}", code="ACEP-U220", hint="give a number above 0")
    return [*map(float, found)]


class SavedTexts:
    """Makes plans of what a state has of queries; those of one template get the same."""

    def __init__(self) -> None:
        self._templates: dict[tuple[str, str | None], Template] = {}
        self._parts: dict[tuple[str, int], list[Plan]] = {}

    def __call__(self, saved: Mapping[str, Any]) -> tuple[Plan, Template | None]:
        """The plan of a query, and its template where it has one."""
        text, horizon = saved["text"], saved.get("horizon")
        if saved["kinds"] is not None:
            if (text, horizon) not in self._templates:
                template = Template.of(tree_of(text))
                assert template is not None, "it was one"
                self._templates[text, horizon] = replace(template, horizon=horizon)
            return self._templates[text, horizon].plan, self._templates[text, horizon]
        if saved["part"] is not None:
            place, mark = saved["part"]
            if (text, mark) not in self._parts:
                self._parts[text, mark] = plans_of(parse_cel(text), mark)
            return self._parts[text, mark][place], None
        return compile_query(text, engine=saved["engine"]).plan, None
