"""The explorer of a run: what is in it is what was found, whatever the query, and no words of users break it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.pages.over_time import MOST_STRIPS, Near, OverTime, Points
from acep_approx.results.explorer import listing, near_matches
from acep_approx.results.explorer.listing import spread
from tests.command_line import acep, csv_text

HOSTILE = "</script><script>alert(1)</script><!-- \" ' & \u2028 \u202eabc 👩‍👩‍👧 " + "x" * 400
LOST = "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 3 h ERRORS 1 WEIGHTS (p = 2, d = 2)"


def data_of(page: str) -> dict:
    """What the script of a page reads."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


@pytest.fixture(autouse=True)
def few_places(monkeypatch):
    """Each question takes some 50 ms."""
    monkeypatch.setattr(near_matches, "PLACES", 5)


def events(number: int = 120) -> list[dict]:
    draw = Random(7)
    return [
        {"ts": at, "type": draw.choice("ABC"), "key": draw.choice("uv"), "x": draw.randrange(9), "note": f"n{at}"}
        for at in range(number)
    ]


# --- what was found -------------------------------------------------------------------------------------------

PATTERN = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.x > a.x WITHIN 8 ERRORS 1"
KINDS = {
    "pattern": PATTERN,
    "repeats": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [key] AND b[i].x >= b[i-1].x } WITHIN 20",
    "negation": "PATTERN SEQ(A a, ~(B b), C c) WHERE [key] WITHIN 5",
    "choice": "PATTERN SEQ(A a, (B b | C c)) WITHIN 3 ERRORS 1",
    "events": "PATTERN SEQ(A a, B b) WITHIN 3 events",
    "letters": "AB+C WITHIN 6",
    "define": "ab WITHIN 5 DEFINE a AS x > 5, b AS x < 3",
    "machine": "PATTERN AUTOMATON (REGISTERS n = 0 s -> m ON A a m -> m ON B WHEN n < 2 SET n = n + 1 "
    "m -> d ON C c FINAL d) WHERE [key] WITHIN 20",
}


def listed(matches) -> list[tuple]:
    """Errors, times, key, missing variables and rows of each match, as results have them."""
    found = []
    for match in matches:
        rows = [(name, row) for name, value in match.values.items()
                for row in (value if isinstance(value, list) else [] if value is None else [value])]  # fmt: skip
        named = sorted((row, "" if name == "events" else name) for name, row in rows)
        key = [str(value) for value in match.key.values()]
        found.append((match.errors, match.start, match.end, key, list(match.missing), named))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_the_matches_of_every_kind_of_query(kind):
    given_ = events()
    matches = compile_query(KINDS[kind]).match(given_)
    data = data_of(matches.page())
    shown = [
        (errors, start, end, key, missing, sorted((row, name) for name, row in bound))
        for _, errors, start, end, key, missing, bound, hidden, _ in data["matches"]
        if not hidden
    ]
    assert shown == listed(matches)
    assert data["queries"][0]["total"] == len(matches)
    points = matches.points()
    assert sum(data["points"][0].values()) == points.num_rows
    for row, (tick, type_, *values) in data["events"].items():
        event = given_[int(row)]
        assert (tick, type_) == (event["ts"], event["type"])
        names = dict(zip(data["attributes"], values, strict=True))
        assert {name: str(event[name]) for name in names} == names
    bound = [*(match[6] for match in data["matches"]), *(place["events"] for place in data["near"])]
    assert set(map(int, data["events"])) == {row for one in bound for _, row in one}


def test_what_a_query_returns_is_shown_beside_the_events():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 RETURN a.x AS ax, b.x - a.x AS more")
    matches = query.match(events())
    data = data_of(matches.page())
    assert data["queries"][0]["columns"] == ["ax", "more"]
    assert [match[8] for match in data["matches"]] == [list(map(str, one.values.values())) for one in matches]
    assert all(len(match[6]) == 2 for match in data["matches"])


def test_registers_and_results_of_cel_are_values():
    machine = f"{KINDS['machine']} RETURN n"
    data = data_of(compile_query(machine).match(events()).page())
    assert data["queries"][0]["columns"] == ["n"]
    query = compile_query("SELECT x AS first, x_1 AS later FROM FILTER{x > 5}(A) NEXT{$1.key = $2.key} B")
    matches = query.match(events())
    page = matches.page()
    data = data_of(page)
    assert data["queries"][0]["columns"] == ["first", "later"]
    assert [match[8] for match in data["matches"]] == [list(map(str, one.values.values())) for one in matches]
    assert "What nearly matched is not shown" in page


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("SELECT x AS later, x_1 AS first FROM FILTER{x > 5}(A) NEXT{$1.key = $2.key} B", ["A", "B"]),
        ("SELECT x FROM FILTER{x > 5}(A)", ["A"]),
        ("SELECT x, n FROM (SELECT *, 1 AS n FROM A) FOLD{$2.key = $.key, $2.x > $.x, $.n + 1 AS n} A", None),
    ],
)
def test_results_of_cel_are_shown_with_the_events_that_they_come_from(query, kinds):
    matches, given_ = compile_query(query).match(events()), events()
    data = data_of(matches.page())
    known = [match for match in data["matches"] if match[6]]
    assert len(known) == near_matches.PLACES
    for match in known:
        found = [given_[row] for _, row in match[6]]
        assert [one["type"] for one in found] == (kinds or ["A"] * int(match[8][-1]))
        assert match[8][0] == str(found[-1]["x"])
        assert (match[2], match[3]) == (found[0]["ts"], found[-1]["ts"])


def test_of_many_results_of_cel_some_are_shown_with_their_events():
    page = compile_query("SELECT x FROM FILTER{x > 5}(A)").match(events()).page()
    matches = data_of(page)["matches"]
    assert sum(bool(match[6]) for match in matches) == near_matches.PLACES < len(matches)
    assert f"The events of {near_matches.PLACES} of {len(matches)} results are shown." in page


def test_columns_asked_for_are_shown_with_the_events():
    data = data_of(compile_query(PATTERN).match(events(), bind="note").page())
    assert data["attributes"][:2] == ["x", "note"]
    assert data["used"] == 2
    assert data["queries"][0]["conditions"] == [["b.x > a.x", [["b", "x"], ["a", "x"]]]]


def test_times_late_events_and_rows_of_the_input():
    begin = datetime(2024, 5, 1, 8, tzinfo=UTC)
    kinds = ["A", "B", "C"]
    given_ = [{"ts": begin + timedelta(minutes=at), "type": kinds[at % 3]} for at in (0, 1, 5, 3, 6, 7, 8)]
    matches = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 9 min").match(given_, on_late="skip")
    data = data_of(matches.page())
    assert data["time"]
    assert {int(row) for row in data["events"]} == {row for one in matches for row in one.values.values()}
    for row, (tick, type_) in data["events"].items():
        assert datetime.fromtimestamp(tick / 1e6, UTC) == given_[int(row)]["ts"]
        assert type_ == given_[int(row)]["type"]
    assert "1 late" in matches.page()


def test_sorted_events_are_those_of_the_matches():
    shuffled = events()
    Random(3).shuffle(shuffled)
    query = compile_query(PATTERN)
    data = data_of(query.match(shuffled, sort=True).page())
    for tick, _, _, note in data["events"].values():
        assert note == f"n{tick}"


# --- what is left out -----------------------------------------------------------------------------------------


def test_of_many_matches_some_of_each_number_of_errors_are_listed(monkeypatch):
    many = [{"ts": at, "type": "ABCC"[at % 4]} for at in range(3000)]
    matches = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 12 ERRORS 1").match(many)
    page = matches.page()
    data = data_of(page)
    total = len(matches)
    assert total > len(data["matches"]) == 2000
    assert f"The table holds 2,000 of {total:,} matches: some of each number of errors" in page
    assert {match[1] for match in data["matches"]} == {0, 1}
    ends = [match[3] for match in data["matches"]]
    assert ends[0] < 30
    assert ends[-1] > 2900
    assert len(page) < 1_500_000
    monkeypatch.setattr(listing, "KEPT", total - 1)  # too many to be kept: they are listed twice
    assert matches.page() == page
    first = data_of(compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 12 ERRORS 1").match(many, limit=30).page())
    assert [match[3] for match in first["matches"]] == [one.end for one in compile_query(
        "PATTERN SEQ(A a, B b, C c) WITHIN 12 ERRORS 1").match(many, limit=30)]  # fmt: skip


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 70))
def test_few_of_many_are_spread(kinds, most):
    kinds = np.array(kinds, np.int64)
    chosen = spread(kinds, most)
    assert len(chosen) == min(most, len(kinds))
    assert (np.diff(chosen) > 0).all()
    counts = np.bincount(kinds[chosen], minlength=5)
    for kind in range(5):  # no kind is cut while another has more
        if counts[kind] < (kinds == kind).sum():
            assert counts[kind] >= counts.max() - 1


def test_of_a_match_with_very_many_events_the_first_and_last_ones_are_listed():
    many = [{"ts": at, "type": "A"} for at in range(100)] + [{"ts": 100, "type": "B"}]
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE partition_contiguity WITHIN 200")
    longest = max(data_of(query.match(many).page())["matches"], key=lambda match: match[3] - match[2])
    assert (len(longest[6]), longest[7]) == (40, 61)
    assert (longest[6][0], longest[6][-1]) == (["a", 0], ["b", 100])


# --- what nearly matched --------------------------------------------------------------------------------------


def test_near_places_have_the_answer_of_why():
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.x > b.x + a.x WITHIN 6")
    given_ = events()
    data = data_of(query.match(given_).page())
    assert len(data["near"]) == 5
    for place in data["near"]:
        why = query.why(given_, around=place["tick"], key=place["key"][0])
        assert not why.matched
        assert place["headline"] == why.headline
        assert place["helps"] == list(why.helps)
        assert place["lines"] == [line for line in why.lines if line[2:] not in why.helps][: len(place["lines"])]
        assert [tuple(one) for one in place["events"]] == [(one["variable"], one["row"]) for one in why.events]
        assert place["ask"] == f"print(query.why(events, around={place['tick']}, key={{'key': '{place['key'][0]}'}}))"


def test_near_places_where_times_are_written_as_only_the_user_knows():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 3 min")
    events = [{"ts": f"0{day}.06.2024 10h0{day}", "type": kind, "x": day} for day, kind in enumerate("ABABA", 1)]
    page = query.match(events, time_format="%d.%m.%Y %Hh%M").page()
    assert "Nearly matched:" in page
    assert "not shown" not in page


def test_partial_matches_that_are_too_many_are_not_all_looked_through(monkeypatch):
    monkeypatch.setattr(near_matches, "RUN_STEPS", 50)
    page = compile_query(PATTERN).match(events()).page()
    assert "among the first ones" in page or "there are too many partial matches" in page


# --- whatever users write -------------------------------------------------------------------------------------


def test_nothing_that_users_write_breaks_it():
    types = [HOSTILE[:60], "<b>", "it's"]
    rows = [{"ts": at, "type": types[at % 3], "key": HOSTILE, "v": HOSTILE, "<i>": "&"} for at in range(9)]
    name = types[0].replace("'", "''")
    query = compile_query(f"PATTERN SEQ('{name}' a, '<b>' b, 'it''s' c) WHERE [key] AND a.v != 'x' WITHIN 5 ERRORS 1")
    page = query.match(rows).page(title=HOSTILE, source=HOSTILE)
    assert len(re.findall("<script", page)) == 2
    assert len(re.findall("</script", page)) == 2
    assert "<!-- " not in page.split("<script>")[0]
    data = data_of(page)
    assert data["matches"][0][4] == [HOSTILE[:119] + "…"]
    assert not re.search(r"src=|href=|url\(|@import", page.split("<script>")[0])


def test_no_events_no_matches_one_match():
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
    assert "There were no events." in query.match([]).page()
    nothing = query.match([{"ts": 1, "type": "C"}]).page()
    assert "<h1>No match</h1>" in nothing
    assert "<p>No match: no event is " in nothing
    one = query.match([{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]).page()
    assert "<h1>1 match</h1>" in one


def test_the_same_run_makes_the_same_page(tmp_path):
    query = compile_query(PATTERN)
    first, again = (query.match(pa.Table.from_pylist(events())) for _ in range(2))
    text = first.page()
    assert first.page() == text == again.page()
    assert again.page(tmp_path / "out.html") is None
    assert (tmp_path / "out.html").read_text(encoding="utf-8") == text


def test_the_page_of_a_budget_says_how_it_was_spent():
    query = compile_query(PATTERN)
    some = query.match_within(events(), "3 steps/event")
    page = some.page()
    data = data_of(page)
    assert data["queries"][0]["total"] == len(some)
    again = "match_within(events, &#x27;3 steps/event&#x27;"
    for words in ("A budget of 3 steps/event", "Load and budget over time", again):
        assert words in page


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 9", {"errors": 1, "within": "4 events"}),
        ("PATTERN SEQ(A a, B b) WITHIN 9", {}),
        ("SELECT x AS first, x_1 AS later FROM A NEXT{$1.key = $2.key} B", {"within": "4"}),
    ],
)
def test_the_call_on_the_page_finds_the_same(text, replaced):
    rows = [*events(60), {**events(1)[0], "ts": -5}]
    exact = compile_query(text, **replaced).match(rows, on_late="skip")
    assert made_again(exact.page(), rows).count_by_errors() == exact.count_by_errors()


def test_the_call_on_the_page_spends_a_budget_alike():
    query = compile_query(PATTERN)
    some = query.match_within(events(), "2 runs", policy="random", seed=3, audit=0)
    again = made_again(some.page(), events())
    assert again.load == some.load
    assert again.count_by_errors() == some.count_by_errors()


def made_again(page, rows):
    """The matches that the call on a page finds."""
    found = {"events": rows}
    code = unescape(re.sub("<[^>]*>", "", page))
    code = code[code.index("from acep_approx import") : code.index('.page("page.html")')]
    exec(code.replace("\nquery.match", "\nfound = query.match"), found)
    return found["found"]


# --- on the command line --------------------------------------------------------------------------------------


@pytest.fixture
def boxes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boxes.csv").write_text(csv_text(), encoding="utf-8")
    (tmp_path / "lost.acep").write_text(LOST, encoding="utf-8")
    return tmp_path


def test_the_command_writes_the_page_and_is_on_it(boxes):
    acep("run", "lost.acep", "boxes.csv", "--page", "out.html", "-o", "out.jsonl")
    page = (boxes / "out.html").read_text(encoding="utf-8")
    assert "3 matches in boxes.csv" in page
    assert "acep run lost.acep boxes.csv -o out.jsonl --page out.html" in page
    assert "query.match(&#x27;boxes.csv&#x27;).page" in page
    assert "acep why lost.acep boxes.csv --around TIME --key VALUE" in page
    assert data_of(page)["matches"][-1][4:7] == [["box 2"], ["l"], [["p", 1], ["d", 4]]]
    assert len((boxes / "out.jsonl").read_text().splitlines()) == 3


def test_the_page_asks_with_each_value_of_an_option_that_is_repeated(boxes):
    acep("run", "lost.acep", "boxes.csv", "--page", "out.html", "-o", "out.jsonl", "--null", "x", "--null", "y")
    page = (boxes / "out.html").read_text(encoding="utf-8")
    assert "acep why lost.acep boxes.csv --null x --null y --around TIME --key VALUE" in page


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["boxes.csv", "--page", "no/out.html"], "ACEP-U016"),
        (["boxes.csv", "--page", "boxes.csv"], "ACEP-U013"),
        (["boxes.csv", "--page", "same.jsonl", "-o", "same.jsonl"], "ACEP-U017"),
        (["boxes.csv", "--page", "out.html", "--spark"], "ACEP-S072"),
    ],
)
def test_pages_that_cannot_be_are_refused_before_any_work(boxes, options, code):
    assert code in acep("run", "lost.acep", *options, code=2).stderr
    assert not (boxes / "out.html").exists()


# --- many queries, rules -----------------------------------------------------------------------------------------


def test_the_page_of_many_queries_has_a_strip_of_each_and_one_table(boxes):
    folder = boxes / "queries"
    folder.mkdir()
    (folder / "lost.acep").write_text(LOST, encoding="utf-8")
    (folder / "heavy.acep").write_text("PATTERN Packed p WHERE p.kg > 8 WITHIN 1 h RETURN p.kg AS kg", encoding="utf-8")
    (folder / "never.acep").write_text("PATTERN SEQ(Packed p, Lost l) WITHIN 1 h", encoding="utf-8")
    (folder / "next.cel").write_text("SELECT kg FROM FILTER{kg < 8}(Packed)", encoding="utf-8")
    acep("run", "--queries", "queries", "boxes.csv", "--page", "out.html", "-o", "out.jsonl", "--limit", "1")
    page = (boxes / "out.html").read_text(encoding="utf-8")
    data = data_of(page)
    assert [(one["name"], one["total"]) for one in data["queries"]] == [
        ("heavy", 1), ("lost", 3), ("never", 0), ("next", 1)]  # fmt: skip
    assert len(strips(page)) == 3  # of those with matches
    found = sorted((data["queries"][one[0]]["name"], one[1], one[5], one[6], one[8]) for one in data["matches"])
    assert found == [
        ("heavy", 0, [], [], ["12"]),
        ("lost", 0, [], [["p", 0], ["l", 2], ["d", 3]], []),
        ("lost", 1, ["l"], [["p", 0], ["d", 3]], []),
        ("lost", 1, ["l"], [["p", 1], ["d", 4]], []),
        ("next", 0, [], [], ["7.5"]),
    ]
    assert {int(row) for row in data["events"]} == {0, 1, 2, 3, 4}


RULES = """TABLE box (id text, seen int DEFAULT 0, KEY (id))
RULE packed ON PATTERN Packed p WHERE store.box[p.key].seen = 0 WITHIN 1 h DO UPSERT box SET seen = 1 AT (p.key) END
RULE done ON PATTERN SEQ(Packed p, Delivered d) WHERE [key] AND store.box[d.key].seen = 1 WITHIN 3 h
DO CALL ring(d.key) END
"""


def test_the_page_of_rules_says_what_they_found_and_did(boxes):
    (boxes / "boxes.acep").write_text(RULES, encoding="utf-8")
    acep("run", "boxes.acep", "boxes.csv", "--page", "out.html", "-o", "found")
    page = (boxes / "out.html").read_text(encoding="utf-8")
    data = data_of(page)
    assert [(one["name"], one["total"]) for one in data["queries"]] == [("packed", 2), ("done", 2)]
    assert [match[6] for match in data["matches"] if match[0] == 1] == [[["p", 0], ["d", 3]], [["p", 1], ["d", 4]]]
    for words in ("What the rules did", "changes of box", "calls of ring", "UPSERT"):
        assert words in page


# --- the picture ----------------------------------------------------------------------------------------------


def strips(html: str) -> list[str]:
    return html.split('<div class="plot"')[1:]


@given(st.lists(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), max_size=40), min_size=1, max_size=14))
def test_the_strips_count_every_point(drawn):
    queries = [
        Points(f"q{at}", np.array([t for t, _ in some], np.int64), np.array([e for _, e in some], np.int64))
        for at, some in enumerate(drawn)
    ]
    filled = sorted((len(one.ticks) for one in queries if len(one.ticks)), reverse=True)
    if not filled:
        return
    html = OverTime(queries, [], is_time=False).html()
    named = re.findall(r"</i>[^<]*?: ([\d,]+)</span>", html)
    assert sum(int(number.replace(",", "")) for number in named) == sum(filled[:MOST_STRIPS])
    for strip in strips(html):
        top = int(re.search(r'viewBox="0 0 \d+ (\d+)"', strip)[1])
        for y, height in re.findall(r'y="(\d+)" width="0.84" height="(\d+)"', strip):
            assert 0 <= int(y) <= top - int(height)
    assert (len(filled) > MOST_STRIPS) == ("others have" in html)


def test_series_that_would_be_slivers_have_strips_of_their_own():
    ticks = np.arange(1000)
    rare = (ticks % 200 == 0).astype(np.int64)
    assert len(strips(OverTime([Points("", ticks, rare)], [], is_time=False).html())) == 2
    assert len(strips(OverTime([Points("", ticks, ticks % 2)], [], is_time=False).html())) == 1
    assert len(strips(OverTime([Points("", ticks, ticks % 4)], [], is_time=False).html())) == 4


def test_places_are_marked_even_where_nothing_matched():
    none = np.zeros(0, np.int64)
    html = OverTime([Points("", none, none)], [Near(5, "<at> 5"), Near(50, "at 50")], is_time=False).html()
    assert html.count('class="dot near"') == 2
    assert "&lt;at&gt; 5" in html


def table_of(rows: list[tuple[str, int, int]]) -> pa.Table:
    keys, starts, ends = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({"key": pa.array(keys, pa.string()), "start": pa.array(starts, pa.int64()),
                     "end": pa.array(ends, pa.int64())})  # fmt: skip


ROWS = st.lists(st.tuples(st.sampled_from("uvw"), st.integers(0, 20), st.integers(0, 9)), max_size=12)


@given(ROWS, ROWS, st.integers(0, 1))
def test_places_within_a_match_of_their_key_are_known(partial, matches, keys):
    partial, matches = ([(key, start, start + length) for key, start, length in rows] for rows in (partial, matches))
    covered = near_matches._covered(table_of(partial), table_of(matches), keys)
    for is_covered, (key, _, at) in zip(covered.tolist(), partial, strict=True):
        mine = [one for one in matches if one[0] == key or not keys]
        assert is_covered == any(start <= at <= end for _, start, end in mine)


def test_what_is_said_of_the_events_is_of_all_of_them(monkeypatch):
    """Also where the search for what nearly matched gives up before it has seen them."""
    monkeypatch.setattr("acep_approx.results.explorer.near_matches.RUN_STEPS", 10)
    rows = [{"ts": t, "type": "Accepted" if t % 50 == 49 else "Failed"} for t in range(300)]
    page = compile_query("PATTERN SEQ(Failed{5,} f, Accepted s) WITHIN 40 MAXIMAL").match(rows).page()
    assert "300 read, 300 relevant to the query" in page
    assert "What nearly matched is not shown: there are too many partial matches." in page
    assert "nothing came near" not in page
