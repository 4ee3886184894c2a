"""The report's section on learning: its pictures show the numbers, and nothing that users write breaks it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.budget.ledger import (
    Drift,
    Learning,
    Piece,
    Rescoring,
    RunRecord,
    Score,
    SelectedFeature,
    Tenth,
    mean_score,
)
from acep_approx.learning.online import learning_table, news
from acep_approx.pages.budget.lines import summary
from acep_approx.pages.budget.page import learning_curve, piece_scores, reliability, report_html

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "</dd><script>alert('x')</script> a < b & c \"d\""
SIZE, LEFT, BASE = 300.0, 70.0, 334.0
"""Of the picture of reliability."""


def pieces(n: int) -> list[Piece]:
    return [Piece(10 * i, 100 * i, 70 * i, 90 * i, 3, 0.5, 3 * i, 2 * i) for i in range(1, n + 1)]


def learning(text: str = "b") -> Learning:
    return Learning(
        tests=1234,
        revalued=[Rescoring(40, 400, 8, 900, 280, 12, 0), Rescoring(100, 1000, 20, 1234, 700, 35, 2)],
        alarms=[Drift(61, text, 0, "whether tests pass"), Drift(75, text, 2, "whether runs lead to a match point")],
        tenths=[Tenth(0.05, 0.1, 400), Tenth(0.55, 0.5, 100)],
        scores=[Score(30, 0.3, 100), Score(95, 0.1, 300), Score(120, 0.2, 100)],
        features=[SelectedFeature(text, 0, f"price of {text}", ["below 3", "3 or more", "NULL"])],
        explored=35,
        given_up=1,
        explores=0.05,
        seconds=0.25,
    )


def record(known: Learning | None, n: int = 10) -> RunRecord:
    return RunRecord("q", "x.csv", "20%", "some", "oldest", begin=0, pieces=pieces(n), seconds=5.0, learning=known)


def texts(html: str) -> str:
    return re.sub(r"<[^>]*>", " ", html)


# --- numbers ----------------------------------------------------------------------------------------------


SCORES = st.lists(st.builds(Score, st.integers(0, 50), st.floats(0, 1), st.integers(1, 9)), max_size=9)


@given(SCORES)
def test_a_mean_score_is_that_of_all_cases(scores):
    errors = [score.brier for score in scores for _ in range(score.cases)]
    assert mean_score(scores) == (pytest.approx(sum(errors) / len(errors)) if errors else None)


@given(SCORES, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_each_score_belongs_to_the_piece_in_which_it_was_known(scores, steps):
    made = [replace(pieces(1)[0], tick=tick) for tick in accumulate(steps)]
    borders = [-1, *(piece.tick for piece in made[:-1]), 10**9]
    naive = [[one for one in scores if a < one.tick <= b] for a, b in pairwise(borders)]
    assert piece_scores(scores, made) == [mean_score(some) for some in naive]


def test_what_was_new_is_told_once():
    known = learning()
    assert list(news(known)) == [(known.scores[:1], []), (known.scores[1:2], known.alarms)]
    rows = learning_table(known, is_time=False).to_pylist()
    assert [row["brier"] for row in rows] == [0.3, 0.1]
    assert [row["cases"] for row in rows] == [100, 300]
    assert rows[0]["alarms"] == []
    assert rows[1]["alarms"] == ["b: whether tests pass", "b, 2 errors: whether runs lead to a match point"]
    assert learning_table(None, is_time=True).num_rows == 0
    assert learning_table(None, is_time=True).column_names == learning_table(known, is_time=False).column_names


# --- words ------------------------------------------------------------------------------------------------


def test_the_summary_says_what_was_learned():
    lines = summary(record(learning()))
    assert "learned: 1,234 tests seen; runs rescored 2 times, the last after 1,000 events" in lines
    assert "calibration: Brier score 0.16 over 500 cases (the mean alone would have 0.148)" in lines
    assert "drift: 2 alarms, the last at 75, b, 2 errors: whether runs lead to a match point" in lines
    said = "35 run-steps, 5% of the work (5% of the budget is for it); given up once, for want of budget"
    assert f"exploration: {said}" in lines
    assert "learning took: 0.25 s, 5% of the time" in lines
    assert not any("learned" in line for line in summary(record(None)))


def test_the_summary_of_a_run_that_learned_nothing():
    lines = summary(replace(record(Learning(tests=1)), seconds=0.0))
    assert "learned: 1 test seen; runs were never rescored" in lines
    assert "calibration: no outcome of the cohort is known: nothing to hold chances against" in lines
    assert {"drift: no alarm", "exploration: none", "learning took: 0.00 s"} <= set(lines)
    one = replace(learning(), alarms=learning().alarms[:1], revalued=learning().revalued[:1])
    assert "drift: 1 alarm, at 61, b: whether tests pass" in summary(record(one))
    assert any("runs rescored once, " in line for line in summary(record(one)))


def test_the_page_has_the_numbers_only_where_a_run_learned():
    plain, html = report_html(record(None)), report_html(record(learning()))
    assert "What was learned" not in plain
    shown = texts(html)
    for text in ("What was learned", "1,234 tests seen", "came true", "b, 2 errors", "below 3; 3 or more; NULL"):
        assert text in shown
    assert html.count("<svg") == plain.count("<svg") + 2
    empty = report_html(replace(record(Learning(tests=0)), pieces=()))
    assert "Nothing that runs remember was found" in empty


def test_nothing_that_users_write_breaks_it():
    html = report_html(record(learning(NASTY)))
    assert "<script" not in html
    for picture in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        ET.fromstring(picture)


def test_the_size_of_the_page_is_bounded():
    many = 5000
    known = replace(
        learning(),
        revalued=[Rescoring(i, i, i, i, i, i, i) for i in range(many)],
        alarms=[Drift(i, "b", 0, "tests") for i in range(many)],
        scores=[Score(i, 0.5, 1) for i in range(many)],
        features=[SelectedFeature("b", 0, f"x{i}", ["a range of texts"] * 64) for i in range(many)],
    )
    html = report_html(record(known, many))
    assert len(html) < 400_000
    assert "(the last 40 of 5,000)" in html


# --- pictures ---------------------------------------------------------------------------------------------


@given(st.lists(st.builds(Tenth, st.floats(0, 1), st.floats(0, 1), st.integers(1, 10**6)), min_size=1, max_size=10))
def test_circles_lie_where_chances_and_shares_are(tenths):
    picture = ET.fromstring(reliability(Learning(9, tenths=tenths)))
    circles = picture.findall(f"{SVG}circle")
    assert len(circles) == len(tenths)
    for circle, tenth in zip(circles, tenths, strict=True):
        x, y, radius = (float(circle.get(name, "")) for name in ("cx", "cy", "r"))
        assert (x - LEFT) / SIZE == pytest.approx(tenth.foretold, abs=0.001)
        assert (BASE - y) / SIZE == pytest.approx(tenth.reached, abs=0.001)
        assert f"{tenth.cases:,} cases" in circle.find(f"{SVG}title").text
        assert radius <= 16


def test_alarms_and_scores_lie_where_they_were():
    picture = ET.fromstring(learning_curve(record(learning()), learning()))
    lines = [(p.get("class"), p.get("d"), p.find(f"{SVG}title")) for p in picture.iter(f"{SVG}path")]
    left, right = 64, 960 - 20
    alarms = [
        (float(d[1:].split()[0]), title.text)
        for kind, d, title in lines
        if kind == "line l1 dash" and title is not None
    ]
    assert [x for x, _ in alarms] == pytest.approx([left + share * (right - left) for share in (0.61, 0.75)], abs=0.1)
    assert alarms[0][1] == "drift alarm at 61: b: whether tests pass"
    (score,) = [d for kind, d, _ in lines if kind == "line l0"]
    levels = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)", score)
    assert len(levels) == 2  # outcomes became known in the third and in the last of ten pieces
    places = [(float(a) - left, float(b) - left) for a, _, b in levels]
    width = (right - left) / 10
    assert places == [pytest.approx((2 * width, 3 * width), abs=0.2), pytest.approx((9 * width, 10 * width), abs=0.2)]
    high, low = (124 - float(y) for _, y, _ in levels)
    assert high / low == pytest.approx(0.3 / 0.125, rel=0.02)
    marks = [d for kind, d, title in lines if kind == "line l3" and "v8" in d]
    assert len(marks) == 2


def test_a_record_without_scores_or_points_is_drawn():
    quiet = [replace(piece, points=0) for piece in pieces(3)]
    ET.fromstring(learning_curve(replace(record(None), pieces=quiet), Learning(tests=0)))
