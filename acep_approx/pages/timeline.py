"""A page with one timeline and a few words."""

from __future__ import annotations

import pyarrow as pa

from acep_approx.events.columns import to_numpy
from acep_approx.pages.code import code
from acep_approx.pages.over_time import OverTime, Points
from acep_approx.pages.shell import page
from acep_approx.visible import escape


def timeline_html(points: pa.Table, *, title: str, subtitle: str, is_time: bool, query: str = "") -> str:
    """A page that shows where match points lie in time.

    Parameters
    ----------
    points : pyarrow.Table
        Columns ``errors`` and ``end``, as ``Matches.points`` makes them.
    title, subtitle : str
        Heading and explanation; plain text, empty lines separate paragraphs.
    is_time : bool
        Whether ``end`` holds times, or integers.
    query : str
        Shown as code; empty: none.

    Returns
    -------
    str
        HTML; needs no other file and no network.

    Complexity: linear in the number of points; the size of the page is bounded.
    """
    ticks, errors = (to_numpy(points.column(n).combine_chunks().cast(pa.int64())) for n in ("end", "errors"))
    shown = "<p>no match points</p>"
    if len(ticks):
        shown = OverTime([Points("", ticks, errors)], [], is_time=is_time).html()
    told = [f"<p>{escape(text)}</p>" for text in subtitle.split("\n\n")]
    return page(title, [f"<h1>{escape(title)}</h1>", *told, *([code(query)] if query else []), shown])
