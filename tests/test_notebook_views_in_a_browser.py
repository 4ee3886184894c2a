"""What notebooks show, in a real browser: nothing sticks out, all texts stand where they belong, and can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, browser, installed
from tests.notebook_objects import OBJECTS

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="no browser is installed: Chromium or Chrome would be used"),
    pytest.mark.xdist_group("browser"),
]
SHOWN = ("query", "query of runs", "query in CEL", "matches", "match", "record", "history", "why not", "matcher", "set",
         "rules", "rule output", "afa", "tuning")  # fmt: skip
OUTSIDE = """
[...document.querySelectorAll('.acep-view')].flatMap(view => {
  const frame = view.getBoundingClientRect();
  return [...view.children].filter(one => one.tagName != 'STYLE').map(one => one.getBoundingClientRect())
    .filter(box => box.width && (box.left < frame.left - 1 || box.right > frame.right + 1))
    .map(box => [frame.left, frame.right, box.left, box.right]);
})
"""
STICKS_OUT = """
[...document.querySelectorAll('svg.acep-graph rect.node, svg.acep-graph rect.back')].flatMap(rect => {
  const box = rect.getBoundingClientRect(), inside = [...rect.parentNode.children].filter(one => one.tagName == 'text'
    && one.parentNode.tagName == 'g' && (rect.matches('.node') ? one.matches('.name, .note') : one.matches('.said')));
  return !box.width ? [] : inside.filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 3 || own.bottom > box.bottom + 3;
  }).map(text => text.textContent);
})
"""
SMALLEST = """
Math.min(...[...document.querySelectorAll('svg.acep-graph text')].filter(one => one.getBoundingClientRect().width)
  .map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a))
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser."""
    path = installed()
    assert path is not None, "it was skipped"
    with browser(path, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is shown, below one another, as in a notebook."""
    views = "\n".join(OBJECTS[name]()._repr_html_() for name in SHOWN)
    path = tmp_path_factory.mktemp("page") / "views.html"
    head = '<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"></head>'
    path.write_text(f'{head}<body style="margin:8px">{views}</body></html>', encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_all_that_is_shown_fits_and_can_be_read(chromium, page, width, scheme):
    chromium.open(page, width=width, scheme=scheme)
    assert chromium.errors == []
    assert chromium.value("document.documentElement.scrollWidth") <= width
    assert chromium.value(OUTSIDE) == []
    assert chromium.value(STICKS_OUT) == []
    assert chromium.value(SMALLEST) > 8
    back = chromium.value("getComputedStyle(document.querySelector('.acep-view')).backgroundColor")
    assert back == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 25, 30)")


@pytest.mark.parametrize(("width", "down"), [(360, True), (1280, False)])
def test_graphs_lead_down_where_there_is_no_room_to_the_right(chromium, page, width, down):
    chromium.open(page, width=width)
    shown = chromium.value(
        "[...document.querySelectorAll('.narrow, .wide')].slice(0, 2).map(one => one.getBoundingClientRect().width > 0)"
    )
    assert shown == [not down, down]
