"""Approximate complex event matching: every match of a pattern in a stream, with up to k events missing.

>>> from acep_approx import compile_query
>>> query = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 10 ERRORS 1")
>>> [m.missing for m in query.match([{"ts": 1, "type": "A"}, {"ts": 5, "type": "C"}])]
[('b',)]
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from acep_approx.siblings import check_siblings

if TYPE_CHECKING:
    from acep_approx.api import Query, compile_query
    from acep_approx.budget.budget import Budget
    from acep_approx.errors import (
        AcepError,
        DataError,
        LimitError,
        QueryError,
        UnseenTypeWarning,
        UnsupportedError,
        UsageError,
    )
    from acep_approx.matching.matcher import Matcher
    from acep_approx.query.builder import absent, either, event, seq
    from acep_approx.results.matches import Match, Matches
    from acep_approx.training.history_graph import HistoryGraph

__version__ = "0.1.0"

__all__ = [
    "AcepError",
    "Budget",
    "DataError",
    "HistoryGraph",
    "LimitError",
    "Match",
    "Matcher",
    "Matches",
    "Query",
    "QueryError",
    "UnseenTypeWarning",
    "UnsupportedError",
    "UsageError",
    "absent",
    "compile_query",
    "either",
    "event",
    "seq",
]

_HOME = {
    **dict.fromkeys(("Query", "compile_query"), "acep_approx.api"),
    **dict.fromkeys(
        ("AcepError", "DataError", "LimitError", "QueryError", "UnseenTypeWarning", "UnsupportedError", "UsageError"),
        "acep_approx.errors",
    ),
    **dict.fromkeys(("Match", "Matches"), "acep_approx.results.matches"),
    "Budget": "acep_approx.budget.budget",
    "HistoryGraph": "acep_approx.training.history_graph",
    "Matcher": "acep_approx.matching.matcher",
    **dict.fromkeys(("absent", "either", "event", "seq"), "acep_approx.query.builder"),
}

check_siblings()
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing the package stays cheap."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
