"""A page with one timeline and a few words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from acep_approx.pages.shell import page
from acep_approx.timeline.picture import svg

if TYPE_CHECKING:
    import pyarrow as pa


def timeline_html(points: pa.Table, *, title: str, subtitle: str, is_time: bool) -> str:
    """A page that shows where match points lie in time.

    Parameters
    ----------
    points : pyarrow.Table
        Columns ``errors`` and ``end``, as ``Matches.points`` makes them.
    title, subtitle : str
        Heading and explanation; plain text, empty lines separate paragraphs.
    is_time : bool
        Whether ``end`` holds times, or integers.

    Returns
    -------
    str
        HTML; needs no other file and no network.

    Complexity: linear in the number of points; the size of the page is bounded.
    """
    told = [f"<p>{escape(text)}</p>" for text in subtitle.split("\n\n")]
    return page(title, [f"<h1>{escape(title)}</h1>", *told, f"<figure>{svg(points, is_time=is_time)}</figure>"])
