"""What checks of one rule have in common: its variables, and how it is refused."""

from __future__ import annotations

from typing import NoReturn

from acep_approx.query.rules.bound import known_variables, several
from acep_approx.query.rules.messages import fault
from acep_approx.query.rules.syntax import Rule, Table
from acep_approx.query.shape import negated_variables
from acep_approx.query.syntax import Span


class RuleChecks:
    """Some checks of one rule.

    Parameters
    ----------
    rule : Rule
    tables : dict of str to Table
        All tables of its file.
    """

    def __init__(self, rule: Rule, tables: dict[str, Table]) -> None:
        self.rule = rule
        self.query = rule.query
        self.tables = tables
        self.known = known_variables(rule.query.pattern)
        self.several = several(rule.query.pattern)
        self.negated = negated_variables(rule.query.pattern)

    def fail(self, code: str, message: str, span: Span, hint: str | None = None) -> NoReturn:
        """Refuse the rule."""
        raise fault(self.query.text, code, message, span, hint)
