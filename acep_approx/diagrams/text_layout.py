"""Texts in pictures: how they are written, how wide they are, about; shortened in the middle; in lines."""

from __future__ import annotations

import re
import textwrap

from acep_approx.visible import escape

_BREAKS = re.compile(r" (?=\[\w.* missing: )| (?=/ )| (?=if no )| (?=unless )")
"""Where a label on an edge begins anew: with what is missing, with what is set, with what must not come."""
_NARROW, _WIDE = frozenset("fijlrtI.,:;'|!()[]{}/\\- \""), frozenset("mwMWQOG@%→≥≤≠…")
MONO = 7.25
"""Width of a letter of 12 pixels where all are equally wide."""


def label(x: float, y: float, text: str, *, kind: str = "", anchor: str = "") -> str:
    """A text in a picture of SVG, at a place; plain text is escaped."""
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}"{anchor}>{escape(text)}</text>'


def width(text: str, size: float = 13.0) -> float:
    """About how wide a text is, in pixels; rather too much than too little."""
    ems = sum(0.36 if one in _NARROW else 0.9 if one in _WIDE or ord(one) > 0x2E80 else 0.6 for one in text)
    return ems * size


def shortened(text: str, most: int) -> str:
    """A text in at most so many letters: its middle is left out.

    Examples
    --------
    >>> shortened("departure_of_the_flight", 12), shortened("short", 12)
    ('depart…light', 'short')
    """
    if len(text) <= most:
        return text
    keep = most - 1
    return text[: keep - keep // 2] + "…" + text[len(text) - keep // 2 :]


def one_line(text: str) -> str:
    r"""A query in one line, of at most a hundred letters.

    Examples
    --------
    >>> one_line("PATTERN A a\n  WITHIN 5")
    'PATTERN A a WITHIN 5'
    """
    return shortened(" ".join(text.split()), 100)


def wrapped(text: str, most: int, lines: int) -> list[str]:
    """A text in at most so many lines of at most so many letters; what does not fit is left out in the middle.

    Examples
    --------
    >>> wrapped("Buy and b.price > a.price [a missing: +1]", 26, 3)
    ['Buy and b.price > a.price', '[a missing: +1]']
    """
    for size in range(most * lines, 0, -max(most // 2, 1)):
        parts = _BREAKS.split(shortened(text, size))
        found = [line for part in parts for line in textwrap.wrap(part, most, break_on_hyphens=False)]
        if len(found) <= lines:
            return found
    return [shortened(text, most)]
