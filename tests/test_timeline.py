"""The timeline: every point is in it once, and the picture needs nothing from elsewhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.diagrams.colours import DARK, LIGHT, SERIES
from acep_approx.pages import timeline_html
from acep_approx.timeline.picture import axis_ticks, bin_edges, svg

SVG = "{http://www.w3.org/2000/svg}"


def points(ends: list[int], errors: list[int]) -> pa.Table:
    """Match points as ``Matches.points`` makes them."""
    return pa.table({"errors": pa.array(errors, pa.int64()), "end": pa.array(ends, pa.int64())})


@given(
    st.integers(-(2**50), 2**50), st.integers(0, 2**51), st.integers(2, 100), st.booleans(), st.lists(st.floats(0, 1))
)
def test_bins_hold_every_point(low: int, span: int, most: int, is_time: bool, places: list[float]) -> None:
    """Equal bins, few enough, from the first point to the last."""
    edges = bin_edges(low, low + span, most, is_time=is_time)
    assert len(edges) - 1 <= most
    assert len(set(np.diff(edges).tolist())) == 1
    values = [low, low + span, *(low + int(p * span) for p in places)]
    assert np.histogram(values, edges)[0].sum() == len(values)
    assert edges[0] <= low
    assert edges[-1] > low + span


@given(st.integers(-(2**50), 2**50), st.integers(1, 2**51), st.booleans())
def test_ticks_lie_on_the_axis(low: int, span: int, is_time: bool) -> None:
    """In order, inside, not too many."""
    ticks = [tick.at for tick in axis_ticks(low, low + span, 10, is_time=is_time)]
    assert ticks == sorted(set(ticks))
    assert all(low <= at <= low + span for at in ticks)
    assert len(ticks) <= 12


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 8)), max_size=60), st.booleans())
def test_the_picture_is_well_formed_and_counts_every_point(found: list[tuple[int, int]], is_time: bool) -> None:
    """XML; the legend adds up to the number of points; bars stay inside the plot."""
    root = ET.fromstring(svg(points([e for e, _ in found], [k for _, k in found]), is_time=is_time))
    texts = ["".join(t.itertext()) for t in root.iter(f"{SVG}text")]
    legend = [re.fullmatch(r"\d+ (?:errors?|or more): ([\d,]+)", text) for text in texts]
    assert sum(int(hit[1].replace(",", "")) for hit in legend if hit) == len(found)
    for bar in root.iter(f"{SVG}rect"):
        assert float(bar.get("width", "0")) >= 0
        assert float(bar.get("height", "0")) >= 0
    if not found:
        assert "no match points" in texts


def test_a_page_loads_nothing() -> None:
    """No script, no link, no image from anywhere; text of the user is escaped."""
    page = timeline_html(points([1, 2], [0, 1]), title="<b>&", subtitle="a < b", is_time=False)
    assert "&lt;b&gt;&amp;" in page
    assert not re.search(r"<script|<link|<img|@import|url\(", page)
    assert "://" not in page


@pytest.mark.parametrize("is_time", [True, False])
def test_many_points_make_a_small_page(is_time: bool) -> None:
    """The size of the page does not follow the number of points."""
    pages = [svg(points(list(range(n)), [i % 3 for i in range(n)]), is_time=is_time) for n in (100_000, 400_000)]
    assert len(pages[1]) < 1.1 * len(pages[0]) < 500_000


def test_matches_draw_themselves() -> None:
    """Timeline and first matches; a missing event says so; what can be read only once is left alone."""
    query = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1")
    events = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "C"}]
    view = query.match(events)._repr_html_()
    assert "<svg" in view
    assert "missing</td>" in view
    once = query.match(iter(events))
    assert "only once" in once._repr_html_()
    assert len(list(once)) == 1
    assert "There are no events." in query.match([])._repr_html_()


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_words_can_be_read_on_all_grounds(scheme: dict[str, str]) -> None:
    """Every colour of words against every ground."""
    for words in ("ink", "soft", *(f"c{i}" for i in range(SERIES))):
        for ground in ("back", "panel", "wash"):
            assert contrast(scheme[words], scheme[ground]) >= 4.5, (words, ground)
