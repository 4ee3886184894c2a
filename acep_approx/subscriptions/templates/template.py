"""A template: queries that differ in constants alone, as one plan that reads the constants from columns.

Source: Demers et al., CIDR 2007, section 4.3.1 (equal states are merged). Deviation: queries of one template are equal
by their text, and their constants are columns of the events that are tried for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from acep_approx.automaton.automaton import START
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.parameters import MARK, as_attributes, parameters_of
from acep_approx.query.printer import to_text
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Binary, Expression, Machine, QuerySyntax, Window

_LONGEST = 2**40
"""Windows above may be too long in microseconds: they are checked as those of single queries are."""
FLIPPED = {"<": ">", "<=": ">=", "=": "=", ">": "<", ">=": "<="}


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
    syntax : QuerySyntax
        With parameters.
    parameters : tuple of str
        Their names, in the order of the text.
    plan : Plan
        Of the query in which attributes named ``:parameter`` stand for them.
    window : str or None
        The parameter that gives the window.
    """

    syntax: QuerySyntax
    parameters: tuple[str, ...]
    plan: Plan
    window: str | None

    @classmethod
    def of(cls, syntax: QuerySyntax) -> Template | None:
        """The template of a query with parameters; None where its queries must be run each by itself.

        That is so for automata written by hand and bare regular expressions, for windows that count events, where
        complete matches wait or are tested once more, and where results show a parameter.
        """
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
        return to_text(self.syntax)

    def can_have(self, constants: Mapping[str, object]) -> bool:
        """Whether these are constants that a table can hold; the check of the query tells about all others."""
        if not all(isinstance(value, int | float | str) for value in constants.values()):
            return False
        window = 0 if self.window is None else constants[self.window]
        return isinstance(window, int) and not isinstance(window, bool) and 0 <= window <= _LONGEST

    @cached_property
    def begins(self) -> int:
        """The letters that can begin a run, as a mask."""
        arcs = self.plan.automaton.arcs
        return sum(1 << letter for letter in {arc.letter for arc in arcs if arc.source == START})


@lru_cache(maxsize=4096)
def asks_parameter(expression: Expression) -> bool:
    """Whether the constants of a query have a part in an expression."""
    return any(isinstance(node, Attribute) and node.name.startswith(MARK) for node in walk(expression))


def test_of(condition: Expression) -> Test | None:
    """A condition on one event as a test against one constant; None where it is something else."""
    if not isinstance(condition, Binary) or condition.op not in FLIPPED:
        return None
    for own, other, op in (
        (condition.left, condition.right, condition.op),
        (condition.right, condition.left, FLIPPED[condition.op]),
    ):
        is_constant = isinstance(other, Attribute) and other.name.startswith(MARK)
        if is_constant and not asks_parameter(own) and any(isinstance(node, Attribute) for node in walk(own)):
            return Test(own, op, other.name.removeprefix(MARK))  # type: ignore[union-attr]
    return None
