"""Pages as people see them: in a real browser, on a phone and on a desk, light and dark, with a mouse and with keys.

Skipped where no Chromium or Chrome is installed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from matplotlib.image import imread

from acep_approx import compile_query
from acep_approx.budget.audit import RecallEstimate
from acep_approx.budget.ledger import Bundle, HistoryPath, PathStep, Piece, RunRecord, Shed
from acep_approx.pages.budget.page import write_report
from acep_approx.results.explorer import near_matches
from tests.browser import Browser, browser, installed

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="no browser is installed: Chromium or Chrome would be used"),
    pytest.mark.xdist_group("browser"),
]
WIDTHS, SCHEMES = (1280, 360), ("light", "dark")
QUERY = """PATTERN SEQ(Start a, Step b, End c) -- whoever starts
WHERE [key] AND b.x > a.x + 4 WITHIN 12 min
ERRORS 1 WEIGHTS (b = 2, c = 2)"""
LONG = "a very long name that does not end " * 6
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"
OUTSIDE = """
[...document.querySelectorAll('main *')].filter((node) => {
  const box = node.getBoundingClientRect();
  if (!box.width || node.closest('svg, .scroll, .rows, pre, .times, .plot, .marks, figure, table')) return false;
  return box.right > innerWidth + 1 || box.left < -1;
}).map((node) => node.outerHTML.slice(0, 80))
"""
CONTRAST = r"""
(() => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const words = parse(node.closest('svg') ? style.fill : style.color);
    const [one, other] = [light(words), light(ground(node))].sort();
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) low.push([node.outerHTML.slice(0, 60), contrast]);
  }
  return low;
})()
"""
LOOK = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Once all that was asked for is drawn."""


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """The explorer of a run with all that there is: errors, places, long texts."""
    draw = Random(5)
    at = 1_700_000_000_000_000
    rows = [
        {"ts": at + n * 61_000_000 + draw.randrange(9), "type": draw.choice(["Start", "Step", "End"]),
         "key": draw.choice(["plain", LONG, "\u202eright to left", "👩‍👩‍👧"]), "x": draw.randrange(9), "note": LONG}
        for n in range(240)
    ]  # fmt: skip
    query = compile_query(QUERY)
    file = tmp_path_factory.mktemp("page") / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_matches, "PLACES", 4)
        query.match(rows, unit="us").page(file, title=f"Matches {LONG}")
    return file


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> Iterator[Browser]:
    path = installed()
    assert path is not None
    with browser(path, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def pixels(seen: Browser) -> np.ndarray:
    """What is seen, as numbers: rows, columns, three colours."""
    return np.asarray(imread(io.BytesIO(seen.picture()), format="png"))[:, :, :3]


@pytest.mark.parametrize(("width", "scheme"), [*product(WIDTHS, SCHEMES)])
def test_it_fits_and_can_be_read(seen, page, width, scheme):
    seen.open(page, width=width, scheme=scheme)
    seen.value(LOOK)
    assert seen.errors == []
    assert seen.value(OVERFLOW) <= 0
    assert seen.value(OUTSIDE) == []
    assert seen.value(CONTRAST) == []
    picture = pixels(seen)
    ground = picture[2, 2]
    assert (ground.mean() < 0.5) == (scheme == "dark")
    is_drawn = (np.abs(picture - ground) > 0.05).any(axis=(1, 2))
    places = np.flatnonzero(is_drawn)
    assert np.diff(places).max() < 110, "a part of the page is blank"
    for selector in (".plot svg", ".marks svg", ".drawn svg"):
        box = seen.value(f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
                         "return [b.left, b.top + scrollY, b.right, b.bottom + scrollY]; })()")  # fmt: skip
        left, top, right, bottom = map(round, box)
        part = picture[top:bottom, left:right]
        assert (np.abs(part - ground) > 0.2).any(axis=2).mean() > 0.005, f"{selector} is blank"
        assert right - left > 0.75 * (width if width < 900 else 300)


def test_a_match_that_is_picked_shows_its_events(seen, page):
    seen.open(page, width=1280)
    seen.value(LOOK)
    number = seen.value("JSON.parse(document.getElementById('data').textContent).matches"
                        ".findIndex((match) => match[5].length)")  # fmt: skip
    seen.click(".rows tbody tr", number)
    seen.value(LOOK)
    match = seen.value(f"JSON.parse(document.getElementById('data').textContent).matches[{number}]")
    text = seen.value("document.querySelector('.detail').innerText")
    (missing,) = match[5]
    assert f"{missing} (" in text
    assert "missing: 1 error." in text
    assert seen.value("document.querySelectorAll('.drawn circle.event').length") == len(match[6])
    assert seen.value("document.querySelectorAll('.drawn circle.gone').length") == 1
    assert seen.value("document.querySelectorAll('.detail tbody tr').length") == len(match[6]) + 1
    places = seen.value("[...document.querySelectorAll('.drawn circle')].map((one) => +one.getAttribute('cx'))")
    assert len(set(places)) == 3
    assert seen.value("location.hash") == f"#m{number}"
    assert seen.errors == []


def test_bars_choose_matches_by_mouse_and_by_keys(seen, page):
    seen.open(page, width=1280)
    every = seen.value("document.querySelectorAll('.rows tbody tr').length")
    seen.value("document.querySelector('.plot').focus()")
    for key in ("ArrowRight", "Enter"):
        seen.press(key)
    chosen = seen.value("document.getElementById('chosen').innerText")
    assert "match point" in chosen
    few = seen.value("document.querySelectorAll('.rows tbody tr').length")
    assert few < every
    for _ in range(3):
        seen.press("ArrowRight", shift=True)
    assert seen.value("document.querySelectorAll('.rows tbody tr').length") > few
    seen.press("Escape")
    assert seen.value("document.querySelectorAll('.rows tbody tr').length") == every
    seen.click(".plot", at=(0.5, 0.9))
    middle = seen.value("document.getElementById('chosen').innerText")
    assert middle != chosen
    assert "match point" in middle
    seen.click("#chosen button")
    assert seen.value("document.querySelectorAll('.rows tbody tr').length") == every


def test_places_where_a_match_nearly_was_say_why_not(seen, page):
    seen.open(page, width=360)
    seen.click(".dot", 0)
    seen.value(LOOK)
    place = seen.value("JSON.parse(document.getElementById('data').textContent).near[0]")
    text = seen.value("document.querySelector('.detail').textContent")
    assert place["headline"][1:] in text
    assert all(line.strip() in text for line in place["lines"])
    assert seen.value("document.querySelector('[role=tab][aria-selected=true]').innerText").startswith("Nearly")
    seen.value("document.getElementById('tab-near').focus()")
    seen.press("ArrowLeft")
    assert seen.value("document.activeElement.id") == "tab-matches"
    assert seen.value(OVERFLOW) <= 0


def test_the_table_is_sorted_and_searched(seen, page):
    seen.open(page, width=1280)
    head = "[...document.querySelectorAll('.rows th button')].findIndex((one) => one.innerText.startsWith('took'))"
    cells = "[...document.querySelectorAll('.rows tbody tr')].map((row) => row.lastElementChild.innerText)"
    seen.click(".rows th button", seen.value(head))
    assert seen.value(f"{cells}[0]") != seen.value(f"{cells}.at(-1)")
    assert seen.value("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "ascending"
    seen.value("(() => { const box = document.querySelector('input'); box.value = 'PLAIN';"
               "box.dispatchEvent(new Event('input')); })()")  # fmt: skip
    keys = seen.value("[...document.querySelectorAll('.rows tbody tr')].map((row) => row.children[1].innerText)")
    assert set(keys) == {"plain"}
    seen.value("document.querySelector('.rows tbody tr button').focus()")
    seen.press("ArrowDown")
    picked = "[...document.querySelectorAll('.rows tbody tr')].findIndex((row) => row.className === 'on')"
    assert seen.value(picked) == 1


def test_without_a_script_picture_and_table_are_there(seen, page):
    seen.open(page, width=360, script=False)
    seen.send("Emulation.setScriptExecutionDisabled", value=False)
    assert seen.value("document.querySelector('.no-script table').getBoundingClientRect().height") > 100
    assert seen.value("document.querySelector('.plot svg').getBoundingClientRect().height") > 50
    assert seen.value("document.querySelector('.with-script').getClientRects().length") == 0
    assert seen.value(OVERFLOW) <= 0


@pytest.fixture(scope="module")
def budgeted(tmp_path_factory) -> Path:
    """The explorer of a run within a budget, over events that come once."""
    draw = Random(9)
    rows = ({"ts": at, "type": draw.choice("ABC"), "x": draw.randrange(9)} for at in range(200))
    query = compile_query("PATTERN SEQ(A a, B b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 12")
    file = tmp_path_factory.mktemp("page") / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_matches, "PLACES", 6)
        query.match_within(rows, "1 steps/event", audit=0).page(file)
    return file


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (360, "light")])
def test_what_was_shed_can_be_told_apart_and_read(seen, budgeted, width, scheme):
    seen.open(budgeted, width=width, scheme=scheme)
    seen.click("#tab-near")
    seen.value(LOOK)
    assert seen.errors == []
    assert seen.value(OVERFLOW) <= 0
    assert seen.value(OUTSIDE) == []
    assert seen.value(CONTRAST) == []
    assert "was shed" in seen.value("document.querySelector('.detail').innerText")
    assert seen.value("document.querySelectorAll('.drawn circle.event').length") == 3
    endings = seen.value("[...document.querySelectorAll('.rows tbody tr td:last-child')].map((one) => one.innerText)")
    assert set(endings) > {"shed"}
    smallest = seen.value("Math.min(...[...document.querySelectorAll('figure > svg')].map((one) => "
                          "13 * one.getBoundingClientRect().width / one.viewBox.baseVal.width))")  # fmt: skip
    assert smallest > 10.5, "the words in pictures are too small"


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_the_report_of_a_budget_fits_and_can_be_read(seen, tmp_path, width, scheme):
    ticks = np.arange(40) * 5
    record = RunRecord(
        f"PATTERN A a -- {LONG}", LONG, "20%", "at most 5 run-steps per event", "history", begin=0,
        pieces=[Piece(10 * i, 100 * i, 70 * i, 90 * i, i % 7, 0.5 / i, 3 * i, 2 * i) for i in range(1, 30)],
        shed=[Shed(LONG, LONG, 40), Shed("b", "in a pass", 20)],
        recall=RecallEstimate(0.9, 0.84, 0.94, points=40, cells=11, outside=100),
        point_ticks=ticks, point_errors=ticks % 2, bundles=[Bundle(0, 40, 9), Bundle(50, 50, 1)],
        paths=[HistoryPath((PathStep("a", 0), PathStep(LONG, 1)), 30, 0.6), HistoryPath((PathStep("b", 1),), 20, 0.4)],
    )  # fmt: skip
    write_report(record, tmp_path / "report.html")
    seen.open(tmp_path / "report.html", width=width, scheme=scheme)
    assert seen.errors == []
    assert seen.value(OVERFLOW) <= 0
    assert seen.value(OUTSIDE) == []
    assert seen.value(CONTRAST) == []
