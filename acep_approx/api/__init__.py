"""The faces: what one can do with a query, and with a stream of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.api.budgeted_matcher import BudgetedMatcher
    from acep_approx.api.budgeted_revisions import BudgetedChangelog, BudgetedRevisedMatcher
    from acep_approx.api.compile import compile_query
    from acep_approx.api.matcher import Matcher
    from acep_approx.api.query import Query
    from acep_approx.api.query_set import QuerySet
    from acep_approx.api.rule_history import RuleHistory
    from acep_approx.api.rule_set import RuleRun, RuleSet, compile_rules
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.api.budgeted_matcher": "BudgetedMatcher",
            "acep_approx.api.budgeted_revisions": "BudgetedChangelog BudgetedRevisedMatcher",
            "acep_approx.api.compile": "compile_query",
            "acep_approx.api.matcher": "Matcher",
            "acep_approx.api.query": "Query",
            "acep_approx.api.query_set": "QuerySet",
            "acep_approx.api.rule_history": "RuleHistory",
            "acep_approx.api.rule_set": "RuleRun RuleSet compile_rules",
        },
    )

__all__ = [
    "BudgetedChangelog",
    "BudgetedMatcher",
    "BudgetedRevisedMatcher",
    "Matcher",
    "Query",
    "QuerySet",
    "RuleHistory",
    "RuleRun",
    "RuleSet",
    "compile_query",
    "compile_rules",
]
