"""Queries as code: keywords, texts, numbers and comments told apart by colour."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acep_approx.visible import escape

_KEYWORDS = """
PATTERN SEQ ANY WHERE WITHIN SIMULTANEOUS ERRORS WEIGHTS
START SINCE MAXIMAL FIRST MATCH NON OVERLAP AFTER SKIP TO NEXT PAST LAST ROW CONSUME EVERY RETURN
PUBLISH DEFINE AS AND OR NOT IN BETWEEN IS NULL TRUE FALSE
DISTINCT AUTOMATON REGISTERS INT FLOAT TEXT BOOLEAN TIME ON WHEN SET EPSILON TIMEOUT IGNORE OTHERWISE FINAL
SELECT FROM FILTER FOLD DUR
TABLE KEY DEFAULT STATIC RULE WORTH FOR EACH POINT DO END UPDATE UPSERT DELETE CALL AT EXISTS
"""
_STRATEGIES = ("skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity")
_FUNCTIONS = ("count", "sum", "min", "max", "avg", "first", "last", "stddev")
_TOKEN = re.compile(
    r"(?P<com>--[^\n]*)"
    r"|(?P<str>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    rf"|(?P<kw>\b(?:{'|'.join((*_KEYWORDS.split(), *_STRATEGIES))})\b)"
    rf"|(?P<fn>\b(?:{'|'.join(_FUNCTIONS)})(?=\s*\())"
    r"|(?P<num>(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))"
)
"""Keywords in capitals only: in small letters most of them may be names."""


def code(text: str) -> str:
    """A query, or a file of rules, as an element ``pre``.

    Parameters
    ----------
    text : str
        Whatever stands in it; nothing is parsed, so that any text is shown as it is.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> print(code("PATTERN A a -- all"))
    <pre><code><span class="kw">PATTERN</span> A a <span class="com">-- all</span></code></pre>
    """
    parts = (f'<span class="{kind}">{escape(part)}</span>' if kind else escape(part) for kind, part in tokens(text))
    return f"<pre><code>{''.join(parts)}</code></pre>"


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with its kind: com, str, kw, fn, num; empty: anything else.

    Examples
    --------
    >>> [*tokens("WITHIN 5 s")]
    [('kw', 'WITHIN'), ('', ' '), ('num', '5'), ('', ' s')]
    """
    at = 0
    for token in _TOKEN.finditer(text):
        if token.start() > at:
            yield "", text[at : token.start()]
        yield str(token.lastgroup), token[0]
        at = token.end()
    if at < len(text):
        yield "", text[at:]


def command(text: str) -> str:
    """A command of the terminal, or a call of Python, on as many lines as it takes."""
    return f'<pre class="wrap"><code>{escape(text)}</code></pre>'
