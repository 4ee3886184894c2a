"""From text to the tree of a query in CEL."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

from acep_approx.arguments import checked
from acep_approx.query.cel.assemble import CelAssembler
from acep_approx.query.cel.messages import explain_cel
from acep_approx.query.cel.shape import expressions, nodes, refuse_deep
from acep_approx.query.cel.syntax import CelQuery
from acep_approx.query.kept import parser
from acep_approx.query.limits import refuse_deep_text, refuse_deep_tree, refuse_long_text, refuse_many_words
from acep_approx.query.parser import MOST_KEPT

_BEGINS = re.compile(r"(?:\s++|--[^\n]*+)*+(?:SELECT|FROM)\b", re.IGNORECASE)


def is_cel(text: str) -> bool:
    r"""Whether a text is a query in CEL: its first word, behind blanks and comments, is SELECT or FROM.

    Parameters
    ----------
    text : str
        Any query.

    Examples
    --------
    >>> is_cel("-- all quotes\nselect * FROM Stock"), is_cel("PATTERN SEQ(A a, B b) WITHIN 5")
    (True, False)
    """
    return bool(_BEGINS.match(text))


@checked
def parse_cel(text: str) -> CelQuery:
    """Read a query in CEL.

    Names are not looked at: `acep_approx.query.cel.names.resolved` does that.

    Parameters
    ----------
    text : str
        A query that starts with SELECT or FROM.

    Returns
    -------
    CelQuery
        The tree, with positions in ``text``.

    Raises
    ------
    QueryError
        The text is no query in CEL (ACEP-Q001 to Q008, Q100, Q101, Q110).
    LimitError
        It is too long (ACEP-Q020, Q023) or nested too deep (ACEP-Q021).

    Source
    ------
    Demers et al., CIDR 2007, section 2.2; WITHIN and ERRORS are ours.

    Examples
    --------
    >>> query = parse_cel("SELECT Price AS p FROM FILTER{Name = 'IBM'}(Stock) PUBLISH Ibm WITHIN 10 min")
    >>> query.select.publish, query.select.items[0].name, query.window.amount
    ('Ibm', 'p', 10)
    """
    return _kept(text) if len(text) <= MOST_KEPT else _parsed(text)


def _parsed(text: str) -> CelQuery:
    from lark import UnexpectedInput

    refuse_long_text(text)
    refuse_deep_text(text)
    refuse_many_words(text)
    try:
        tree = parser("cel").parse(text, start="cel")
    except UnexpectedInput as error:
        raise explain_cel(text, error) from None
    query = cast("CelQuery", CelAssembler(text).assemble(tree))
    refuse_deep(query.select, text)
    for node in nodes(query.select):
        for expression in expressions(node):
            refuse_deep_tree(expression, text)
    return query


_kept = lru_cache(maxsize=256)(_parsed)
