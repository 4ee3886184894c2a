"""The report: everything is in it, it needs nothing from elsewhere, and nothing that users write breaks it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.budget.audit import AuditSample, RecallEstimate
from acep_approx.budget.ledger import Bundle, HistoryPath, PathStep, Piece, RunRecord, Shed
from acep_approx.pages.budget.charts import MOST_STEPS, by_state, flow, load, readable_paths, shed_bars
from acep_approx.pages.budget.lines import summary
from acep_approx.pages.budget.page import report_html, write_report
from acep_approx.pages.drawing import MOST_PIECES, percent, short, steps, thinned
from tests.cases import examples
from tests.html_pages import Page, svgs

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "</pre><script>alert('x')</script> a < b & c \"d\""
ESTIMATE = RecallEstimate(0.9, 0.84, 0.94, points=40, cells=11, outside=100)
EMPTY = RunRecord("A a", "empty.csv", "20%", "nothing", "history")


def pieces(n: int) -> list[Piece]:
    return [Piece(10 * i, 100 * i, 70 * i, 90 * i, i % 7, 0.5 / i, 3 * i, 2 * i) for i in range(1, n + 1)]


def record(n: int = 20, text: str = "query", *, is_time: bool = False) -> RunRecord:
    ends = np.arange(2 * n) * 5
    return RunRecord(
        text, text, text, text, text, 3, is_time, 0, pieces(n),
        [Shed(text, text, 2 * n), Shed("b", "in a pass", n)],
        ESTIMATE, ends, ends % 3, [Bundle(0, 40, 9), Bundle(50, 50, 1)],
        [HistoryPath((PathStep(text, 0, text), PathStep("a b", 1)), 30, 0.6),
         HistoryPath((PathStep("b", 1),), 20, 0.4)], 4, 5, 6, 0.5,
    )  # fmt: skip


def numbers(picture: ET.Element, tag: str, name: str) -> list[float]:
    return [float(e.get(name)) for e in picture.iter(f"{SVG}{tag}") if e.get(name)]


# --- the page ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [EMPTY, record(1), record(20), record(500), record(is_time=True)])
def test_the_page_is_whole_and_needs_nothing_from_elsewhere(one):
    html = report_html(one)
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not {"src", "href"} & {name for name, _ in page.attributes}
    assert not re.search(r"url\(|@import", html)
    assert set(re.findall(r"https?://[^\"' ]+", html)) <= {"http://www.w3.org/2000/svg"}
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_pictures_say_in_words_what_they_show():
    html = report_html(record())
    drawn = [picture for picture in svgs(html) if not picture.get("aria-hidden")]
    assert len(drawn) == 4
    for picture in drawn:
        named = picture.get("aria-labelledby", "").split()
        found = {e.get("id"): e.text for e in picture.iter() if e.get("id")}
        assert named
        assert all(found[name] for name in named)
    strips = re.findall(r'<div class="plot"[^>]* role="img" aria-label="([^"]*)"', html)
    assert [re.split("[,;]", said)[0] for said in strips] == [
        "match points per 5 ticks",
        "2 bundles",
    ]


def test_nothing_that_users_write_breaks_it():
    html = report_html(record(text=NASTY))
    page = Page(html)
    assert "script" not in page.tags
    assert NASTY in page.words
    assert len(svgs(html)) == 9
    assert summary(record(text=NASTY))


@given(st.text(max_size=30), st.integers(1, 4))
@examples(30)
def test_any_text_makes_a_whole_page(text, n):
    Page(report_html(record(n, text.replace("\r", ""))))


def test_the_numbers_are_there():
    words = " ".join(Page(report_html(record())).words)
    for text in ("90%", "84% to 94%", "1,400 of 1,800", "4 late, 5 malformed, 6 without key", "about 151", "20 → 1"):
        assert text.replace("20 → 1", "b, 1 error") in words
    assert "runs shed" in words


def test_an_empty_run_says_what_is_not_there():
    words = " ".join(Page(report_html(EMPTY)).words)
    for text in ("There were no events", "Nothing: the budget", "there was no audit", "No match point"):
        assert text in words
    unknown = replace(EMPTY, recall=RecallEstimate(None, None, None, 0, 0, reason="too short"))
    assert "Unknown: too short." in report_html(unknown)


def test_of_too_few_match_points_there_is_an_interval_and_no_number():
    """Four audited match points once made a headline of 75%, where 28% was the truth."""
    few = AuditSample(np.arange(3), np.array([1, 1, 1]), np.array([1, 2, 1]), 300).estimate()
    low, high = percent(few.low), percent(few.high)
    shown = replace(record(), recall=few)
    page = " ".join(Page(report_html(shown)).words)
    for words in (page, "\n".join(summary(shown))):
        assert f"4 match points audited, too few for an estimate; it lies between {low} and {high}" in words
    assert f"{low} to {high}" in page
    assert "about" not in page.split("match points in the input")[1][:20]  # nor a number that follows from one
    assert '<circle class="r0"' not in report_html(shown)


def test_the_size_of_the_page_is_bounded():
    many = 20_000
    big = replace(
        record(many),
        shed=[Shed(f"s{i}", f"r{i % 50}", i) for i in range(2000)],
        bundles=[Bundle(i, i, 1) for i in range(many)],
        paths=[HistoryPath([PathStep(f"s{i}", 0)] * 40, 1, 0.01) for i in range(200)],
    )
    assert len(report_html(big)) < 700_000


def test_it_is_written(tmp_path):
    write_report(record(text="größer <"), tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text(encoding="utf-8") == report_html(record(text="größer <"))


# --- the pictures -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 7), min_size=1, max_size=30))
def test_the_load_stays_inside_its_picture(rows):
    sums = np.cumsum(np.array(rows), axis=0).tolist()
    both = zip(sums, rows, strict=True)
    made = [Piece(t, e, w, w + b, live, p / 100, s, e) for (t, e, w, b, _, _, s), (*_, live, p, _) in both]
    picture = ET.fromstring(load(replace(EMPTY, pieces=made)))
    width, height = map(float, picture.get("viewBox").split()[2:])
    for path in picture.iter(f"{SVG}path"):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d")):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height
        assert all(0 <= float(y) <= height for y in re.findall(r"V(-?[\d.]+)", path.get("d")))
        assert all(0 <= float(x) <= width for x in re.findall(r"H(-?[\d.]+)", path.get("d")))
    assert len([r for r in picture.iter(f"{SVG}rect") if r.get("class") == "hit"]) == len(made)


def test_work_lies_as_high_as_it_is():
    """At the end 70 of 90 are used: the two lines end at heights in that proportion above their base."""
    picture = ET.fromstring(load(record()))
    ends = {}
    for path in picture.iter(f"{SVG}path"):
        points = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d"))
        if path.get("class") in ("line l0", "line l1 dash") and len(points) == 21:
            ends[path.get("class")] = float(points[0][1]) - float(points[-1][1])
    assert ends["line l0"] / ends["line l1 dash"] == pytest.approx(70 / 90, abs=0.01)


def test_a_price_without_limit_is_drawn():
    made = [replace(piece, price=float("inf")) for piece in pieces(3)]
    ET.fromstring(load(replace(EMPTY, pieces=made)))
    assert "inf" in report_html(replace(EMPTY, pieces=made))


@given(st.integers(0, 2000), st.integers(1, 300))
def test_thinning_keeps_the_last_and_the_order(n, most):
    made = pieces(n)
    kept = thinned(made, most)
    assert len(kept) <= most
    assert [p.tick for p in kept] == sorted({p.tick for p in kept})
    assert not made or kept[-1] is made[-1]
    assert n > most or kept == made
    assert MOST_PIECES >= 100


@given(st.lists(st.builds(Shed, st.sampled_from([f"s{i}" for i in range(20)]),
                          st.sampled_from([f"r{i}" for i in range(8)]), st.integers(1, 99)), min_size=1))  # fmt: skip
def test_bars_add_up_to_what_was_shed(shed):
    states, reasons, counts = by_state(shed)
    assert sum(counts.values()) == sum(one.runs for one in shed)
    assert {place[0] for place in counts} == set(states)
    assert {place[1] for place in counts} == set(reasons)
    assert len(states) <= 12
    assert len(reasons) <= 5
    picture = ET.fromstring(shed_bars(shed))
    bars = [float(r.get("width")) for r in picture.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert len(bars) == len(counts)
    largest = max(counts.values())
    for width, place in zip(sorted(bars), sorted(counts, key=counts.get), strict=True):
        assert width == pytest.approx(max(bars) * counts[place] / largest, abs=0.2)


STEPS = st.builds(PathStep, st.sampled_from("abc"), st.integers(0, 1), st.sampled_from(["", "left"]))
PATHS = st.lists(st.builds(HistoryPath, st.lists(STEPS, min_size=1, max_size=9), st.integers(1, 9), st.floats(0, 1)),
                 min_size=1, max_size=7)  # fmt: skip


@given(PATHS)
def test_bands_lie_inside_their_vertices(paths):
    """Each band begins and ends within a bar, bars of a column do not overlap, and all paths end in the last one."""
    picture = ET.fromstring(flow(paths))
    height = float(picture.get("viewBox").split()[3])
    bars = [tuple(float(r.get(n)) for n in ("x", "y", "height")) for r in picture.iter(f"{SVG}rect")]
    assert all(y >= 0 and y + size <= height + 0.1 for _, y, size in bars)
    ordered = sorted(bars)
    for (x, y, size), (other, below, _) in pairwise(ordered):
        assert x != other or y + size <= below + 0.1
    bands = [p for p in picture.iter(f"{SVG}path") if "band" in p.get("class")]
    assert len(bands) == min(len(paths), 5)
    last = ordered[-1]
    thick = 0.0
    for band, path in zip(bands, paths, strict=False):
        first = re.match(r"M(-?[\d.]+) (-?[\d.]+)", band.get("d"))
        size = float(re.search(r"v([\d.]+)", band.get("d"))[1])
        assert any(abs(x + 10 - float(first[1])) < 0.11 and y - 0.11 <= float(first[2])
                   and float(first[2]) + size <= y + h + 0.21 for x, y, h in bars)  # fmt: skip
        thick += size
        assert (len(path.steps) > MOST_STEPS) <= any("more" in (t.text or "") for t in picture.iter(f"{SVG}text"))
    assert last[2] == pytest.approx(thick, abs=0.5)


def test_paths_that_nobody_can_read_are_left_out():
    """One way says nothing, nor do numbers of states; details of vertices are not ways of their own."""
    assert "strongest paths" in report_html(record())
    one = HistoryPath((PathStep("a", 0, "90% left"), PathStep("a", 0, "50% left")), 3, 0.3)
    for paths in ([], [one, one], [one, HistoryPath((PathStep("17", 0),), 1, 0.1)]):
        assert "strongest paths" not in report_html(replace(record(), paths=paths))
    both = readable_paths([one, HistoryPath((PathStep("a", 0),), 1, 0.1), HistoryPath((PathStep("b", 1),), 2, 0.2)])
    assert [(way.steps[0].state, way.count, len(way.steps)) for way in both] == [("a", 4, 1), ("b", 2, 1)]


def test_an_interval_that_says_nothing_is_no_number():
    unsure = RecallEstimate(None, 0.0, 0.999, points=2, cells=2, outside=300)
    page = report_html(replace(record(), recall=unsure))
    assert '<div class="tile"><b>unknown</b><span>recall (2 match points audited' in page
    for low in (0.0, 1e-9):
        assert "at least 302" in report_html(replace(record(), recall=replace(unsure, low=low)))


# --- words and numbers ------------------------------------------------------------------------------------


@given(st.floats(1e-9, 1e15), st.integers(1, 8))
def test_an_axis_reaches_its_top_in_few_steps(top, most):
    marks = steps(top, most)
    assert marks[0] == 0
    assert marks[-1] >= top * (1 - 1e-9)
    assert 2 <= len(marks) <= most + 1
    assert marks[-2] < top
    assert len(set(marks)) == len(marks)


@given(st.floats(0, 1))
def test_a_share_is_never_rounded_to_all_or_nothing(share):
    text = percent(share)
    assert (text == "100%") == (share == 1)
    assert (text == "0%") == (share == 0)
    if text[0].isdigit():
        assert abs(float(text[:-1]) - 100 * share) <= 0.0501


@given(st.floats(0, 1e15))
def test_short_numbers_are_short_and_near(number):
    text = short(number)
    assert len(text) <= 10
    scale = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1)
    assert float(text.rstrip("kMG").replace(",", "")) * scale == pytest.approx(number, rel=0.006)


def test_the_summary_names_every_state_and_reason():
    lines = summary(record(text="x"))
    assert lines[0].startswith("exact run: ")
    lines = lines[1:]
    assert lines[0].startswith("work: 1,400 run-steps of 1,800 allowed (77.8%), 0.7 per event")
    assert lines[1:4] == ["shed: 60 runs", "  x: 40 x", "  b: 20 in a pass"]
    assert lines[-1] == "events not matched: 4 late, 5 malformed, 6 without key"
    assert summary(EMPTY)[2:] == ["shed: 0 runs", "estimated recall: unknown: there was no audit"]


def test_a_vertex_in_words():
    described = {"state": "a", "errors": 0, "remaining": [50, 50], "features": {}}
    assert PathStep.of(described, 100).details == "50% left"
    assert PathStep.of(described, 0).state == "a"


def test_states_with_errors_have_the_same_words_in_all_sections():
    """Of paths through the history and of runs that were shed: ``a, 1 error``."""
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x WITHIN 50 ERRORS 1")
    events = [{"ts": ts, "type": "ABC"[ts * ts % 7 % 3], "x": ts * 37 % 100} for ts in range(400)]
    run = query.match_within(events, "1 steps/event")
    run.points()
    states = {one.state for one in run.record().shed}
    assert any(state.endswith(", 1 error") for state in states), states
    assert not any("missing" in state for state in states)
