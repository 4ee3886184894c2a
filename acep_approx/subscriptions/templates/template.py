"""A template: queries that differ in constants alone, as one plan that reads the constants from columns.

Source: Demers et al., CIDR 2007, section 4.3.1 (equal states are merged). Deviation: queries of one template are equal
by their text, and their constants are columns of the events that are tried for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from acep_approx.automaton.automaton import START
from acep_approx.errors import LimitError, QueryError
from acep_approx.planning.cel import plan_unbound
from acep_approx.planning.planner import MICROSECONDS, Plan, plan
from acep_approx.query.cel.splitting import left_associated
from acep_approx.query.cel.syntax import CelQuery
from acep_approx.query.parameters import MARK, as_attributes, parameters_of
from acep_approx.query.shape import MIRRORED, walk
from acep_approx.query.syntax import Attribute, Binary, Expression, Machine, Moment, QuerySyntax, Window
from acep_approx.subscriptions.templates.texts import Syntax, text_of, uses

_LONGEST = 2**40
"""Windows above may be too long in microseconds: they are checked as those of single queries are."""


@dataclass(frozen=True)
class Test:
    """``own op constant``: what the index and the pairs ask of an event and the constants of a query."""

    own: Expression
    op: str
    parameter: str


@dataclass(frozen=True)
class Template:
    """Queries that differ in constants alone.

    Parameters
    ----------
    syntax : QuerySyntax or CelQuery
        With parameters.
    parameters : tuple of str
        Their names, in the order of the text.
    plan : Plan
        Of the query in which attributes named ``:parameter`` stand for them.
    window : str or None
        The parameter that gives the window.
    """

    syntax: Syntax
    parameters: tuple[str, ...]
    plan: Plan
    window: str | None

    @classmethod
    def of(cls, syntax: Syntax) -> Template | None:
        """The template of a query with parameters; None where its queries must be run each by itself.

        That is so for automata written by hand and bare regular expressions, for windows that count events, where
        complete matches wait or are tested once more, where RETURN shows a parameter, and in CEL where a part is a
        stream of its own; and where it could be planned with constants alone, as their places say more than attributes.
        """
        try:
            return cls._of_cel(syntax) if isinstance(syntax, CelQuery) else cls._of_pattern(syntax)
        except (QueryError, LimitError):  # what is wrong with each of its queries is told of that
            return None

    @classmethod
    def _of_cel(cls, syntax: CelQuery) -> Template | None:
        if len(left_associated(syntax)) > 1:
            return None
        by = None if syntax.window is None else syntax.window.parameter
        plan = plan_unbound(syntax, allows_parameters=True)
        return cls(syntax, tuple(uses(syntax)), plan, None if by is None else by.name)

    @classmethod
    def _of_pattern(cls, syntax: QuerySyntax) -> Template | None:
        with_attributes = as_attributes(syntax)
        if with_attributes is None or isinstance(syntax.pattern, Machine) or syntax.is_regex:
            return None
        if syntax.window.unit == "events":
            return None
        by = syntax.window.parameter
        if by is not None:  # the cells have one window
            with_attributes = replace(with_attributes, window=Window(0, syntax.window.unit, syntax.window.span))
        made = plan(with_attributes, "auto" if by is None else "runs")
        if made.registers is not None and (
            made.registers.needs_filter or made.registers.has_late_ends or made.registers.negations
        ):
            return None
        return cls(syntax, parameters_of(syntax), made, by.name if by is not None else None)

    @cached_property
    def text(self) -> str:
        """What it can be made of again."""
        return text_of(self.syntax)

    def window_factor(self, *, is_time: bool) -> int:
        """How many ticks one is of what the parameter of the window counts."""
        window = self.syntax.window
        return MICROSECONDS[window.unit] if is_time and window is not None else 1

    def can_have(self, constants: Mapping[str, object]) -> bool:
        """Whether these are constants that a table can hold; the check of the query tells about all others."""
        if any(isinstance(value, Moment) or not isinstance(value, int | float | str) for value in constants.values()):
            return False
        window = 0 if self.window is None else constants[self.window]
        return isinstance(window, int) and not isinstance(window, bool) and 0 <= window <= _LONGEST

    @cached_property
    def begins(self) -> int:
        """The letters that can begin a run, as a mask."""
        arcs = self.plan.automaton.arcs
        return sum(1 << letter for letter in {arc.letter for arc in arcs if arc.source == START})


def with_key(plan: Plan) -> Plan:
    """A plan of a template that has no key, with the attribute as one that all letters ask to equal one constant.

    Events of another value are nothing to a query, so that those of each value need only be tried for its queries.
    """
    if plan.keys or plan.counted != "nothing":
        return plan
    tests = [{test_of(condition) for condition in letter.conditions} for letter in plan.letters]
    common = {test for test in set.intersection(*tests) if test is not None and test.op == "="}
    names = [test.own.name for test in common if isinstance(test.own, Attribute)]
    return replace(plan, implied_key=min(names, default=None))


@lru_cache(maxsize=4096)
def asks_parameter(expression: Expression) -> bool:
    """Whether the constants of a query have a part in an expression."""
    return any(isinstance(node, Attribute) and node.name.startswith(MARK) for node in walk(expression))


def test_of(condition: Expression) -> Test | None:
    """A condition on one event as a test against one constant; None where it is something else."""
    if not isinstance(condition, Binary) or condition.op not in MIRRORED:
        return None
    for own, other, op in (
        (condition.left, condition.right, condition.op),
        (condition.right, condition.left, MIRRORED[condition.op]),
    ):
        is_constant = isinstance(other, Attribute) and other.name.startswith(MARK)
        if is_constant and not asks_parameter(own) and any(isinstance(node, Attribute) for node in walk(own)):
            return Test(own, op, other.name.removeprefix(MARK))  # type: ignore[union-attr]
    return None
