"""Approximate complex event matching: every match of a pattern in a stream, with up to k events missing.

>>> from acep_approx import compile_query
>>> query = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 10 ERRORS 1")
>>> [m.missing for m in query.match([{"ts": 1, "type": "A"}, {"ts": 5, "type": "C"}])]
[('b',)]
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from acep_approx.siblings import check_siblings

check_siblings()  # before anything of theirs is used

from history.lazy import lazy, moved  # noqa: E402

if TYPE_CHECKING:
    from acep_approx.api.compile import compile_query
    from acep_approx.api.matcher import Matcher
    from acep_approx.api.query import Query
    from acep_approx.api.query_set import QuerySet
    from acep_approx.api.rule_history import RuleHistory
    from acep_approx.api.rule_set import RuleSet, compile_rules
    from acep_approx.budget.budget import Budget
    from acep_approx.errors import (
        AcepError,
        CappedCountWarning,
        DataError,
        LimitError,
        ManyKeysWarning,
        ManyMatchesWarning,
        NeedlessHistoryWarning,
        NoLearningWarning,
        QueryError,
        RuleError,
        TextOrderWarning,
        UnseenTypeWarning,
        UnsupportedError,
        UsageError,
    )
    from acep_approx.matching.outputs.bind import Wide
    from acep_approx.profiling.profile import look
    from acep_approx.query.afa import Afa, afa_function
    from acep_approx.query.builder import absent, all_of, either, event, seq
    from acep_approx.results.match import Match
    from acep_approx.results.matches import Matches
    from acep_approx.training.histories import Histories
    from acep_approx.training.history_graph import HistoryGraph
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.api.compile": "compile_query",
            "acep_approx.api.query": "Query",
            "acep_approx.api.query_set": "QuerySet",
            "acep_approx.api.rule_history": "RuleHistory",
            "acep_approx.api.rule_set": "RuleSet compile_rules",
            "acep_approx.budget.budget": "Budget",
            "acep_approx.errors": "AcepError CappedCountWarning DataError LimitError ManyKeysWarning "
            "ManyMatchesWarning NeedlessHistoryWarning NoLearningWarning QueryError RuleError TextOrderWarning "
            "UnseenTypeWarning UnsupportedError UsageError",
            "acep_approx.api.matcher": "Matcher",
            "acep_approx.matching.outputs.bind": "Wide",
            "acep_approx.profiling.profile": "look",
            "acep_approx.query.afa": "Afa afa_function",
            "acep_approx.query.builder": "absent all_of either event seq",
            "acep_approx.results.match": "Match",
            "acep_approx.results.matches": "Matches",
            "acep_approx.training.histories": "Histories",
            "acep_approx.training.history_graph": "HistoryGraph",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "AcepError",
    "Afa",
    "Budget",
    "CappedCountWarning",
    "DataError",
    "Histories",
    "HistoryGraph",
    "LimitError",
    "ManyKeysWarning",
    "ManyMatchesWarning",
    "Match",
    "Matcher",
    "Matches",
    "NeedlessHistoryWarning",
    "NoLearningWarning",
    "Query",
    "QueryError",
    "QuerySet",
    "RuleError",
    "RuleHistory",
    "RuleSet",
    "TextOrderWarning",
    "UnseenTypeWarning",
    "UnsupportedError",
    "UsageError",
    "Wide",
    "absent",
    "afa_function",
    "all_of",
    "compile_query",
    "compile_rules",
    "either",
    "event",
    "look",
    "seq",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())
moved(["acep_approx.report", "acep_approx.report.summary"], "acep_approx.pages")
