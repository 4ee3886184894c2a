"""What to look for: the query language, from text or from Python, to a tree that is checked and typed.

``parser`` reads text, ``builder`` makes the same tree in Python, ``printer`` writes it back, ``cel`` does the same for
CEL and ``rules`` for files of tables and rules, ``checks`` and ``types`` refuse what makes no sense, ``shape`` and
``evaluate`` are for those who run the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.query.cel.parser import parse_cel
    from acep_approx.query.cel.printer import to_cel
    from acep_approx.query.parser import parse
    from acep_approx.query.printer import to_text
    from acep_approx.query.rules.parser import parse_rules
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.query.cel.parser": "parse_cel",
            "acep_approx.query.cel.printer": "to_cel",
            "acep_approx.query.parser": "parse",
            "acep_approx.query.printer": "to_text",
            "acep_approx.query.rules.parser": "parse_rules",
        },
    )

__all__ = [
    "parse",
    "parse_cel",
    "parse_rules",
    "to_cel",
    "to_text",
]
