"""Texts of other languages, and slips in ours: the hint has the text that was meant, and it can be run."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from acep_approx import compile_query
from acep_approx.errors import QueryError
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text

MATCH_RECOGNIZE = """SELECT * FROM ticker MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY ts MEASURES s.price AS high, LAST(u.price) AS last
  ONE ROW PER MATCH PATTERN (s d+ u+) DEFINE d AS d.price < PREV(d.price), u AS price > PREV(price))"""

# (text, what it says in ours)
LANGUAGES = [
    (
        MATCH_RECOGNIZE,
        ("PATTERN SEQ(ANY s, ANY+ d[], ANY+ u[]) WHERE partition_contiguity {[symbol] AND d[i].price < d[i-1].price "
        "AND d[1].price < s.price AND u[i].price > u[i-1].price AND u[1].price > d[d.LEN].price} WITHIN 1 h "
        "MAXIMAL AFTER MATCH SKIP PAST LAST ROW RETURN s.price AS high, u[u.LEN].price AS last"),
    ),
    (
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) WITHIN INTERVAL '10' MINUTE DEFINE B AS x > 3)",
        ("PATTERN SEQ(ANY A, ANY B) WHERE strict_contiguity {B.x > 3} WITHIN 10 min "
        "MAXIMAL AFTER MATCH SKIP PAST LAST ROW"),
    ),
    (
        'sequence by host with maxspan=5m [process where name == "x" and pid > 3] ![file where true] [net where ok]',
        "PATTERN SEQ(process a, ~(file b), net c) WHERE [host] AND a.name = 'x' AND a.pid > 3 AND c.ok WITHIN 5 min",
    ),
    (
        "sequence with maxspan=1h [a where true] by id, u.n [b where true] by id, u.n until [c where x == 1]",
        "PATTERN SEQ(a a, ~(c z1), b b) WHERE [id] AND [`u.n`] AND z1.x = 1 WITHIN 1 h",
    ),
    (
        "sequence [a where true] by pid [any where true] by parent with runs=3",
        "PATTERN SEQ(a a, ANY{3} b[]) WHERE a.pid = b.parent WITHIN 1 h",
    ),
    (
        "select * from pattern [every a=Login -> (b=Buy(user=a.user, price > 10) where timer:within(10 sec))]",
        "PATTERN SEQ(Login a, Buy b) WHERE b.user=a.user AND b.price > 10 WITHIN 10 s",
    ),
    (
        "from every e1=Login -> e2=Buy[e1.user == user and price > 3]<2:5> within 5 min select e1.user insert into O",
        "PATTERN SEQ(Login e1, Buy{2,5} e2[]) WHERE e1.user = e2[i].user AND e2[i].price > 3 WITHIN 5 min",
    ),
    (
        'Pattern.<Event>begin("a").where(e -> e.type.equals("View")).next("b").oneOrMore().within(Time.minutes(3))',
        "PATTERN SEQ(View a, ANY+ b[]) WHERE strict_contiguity WITHIN 3 min",
    ),
    (
        'index=web | transaction user, shop startswith="login" endswith="purchase" maxspan=5m',
        "PATTERN SEQ('login' a, 'purchase' b) WHERE [user] AND [shop] WITHIN 5 min",
    ),
    ("SELECT * FROM events WHERE price > 10 ORDER BY ts", "PATTERN ANY a WHERE a.price > 10 WITHIN 1 s"),
    ("login -> buy", "PATTERN SEQ(login a, buy b) WITHIN 10 s"),
    ("Login l then Buy b within 5 m", "PATTERN SEQ(Login l, Buy b) WITHIN 5 min"),
]  # fmt: skip

# (slip, as it was meant)
SLIPS = [
    ("PATTERN (cart a -> buy c) WITHIN 5 min", "PATTERN (cart a, buy c) WITHIN 5 min"),
    ("PATTERN SEQ(A a followed by B b) WITHIN 5", "PATTERN SEQ(A a, B b) WITHIN 5"),
    ("PATTERN SEQ(A a; B b) WITHIN 5", "PATTERN SEQ(A a, B b) WITHIN 5"),
    ("PATTERN SEQ(a: A, b: 'B c') WITHIN 5", "PATTERN SEQ(A a, 'B c' b) WITHIN 5"),
    ("PATTERN SEQ(every a=A -> b=B) WITHIN 5", "PATTERN SEQ(A a, B b) WITHIN 5"),
    ("PATTERN SEQ(A AS a, B AS b) WITHIN 5", "PATTERN SEQ(A a, B b) WITHIN 5"),
    ("PATTERN SEQ(A, B+, *) WITHIN 5", "PATTERN SEQ(A a, B+ b[], ANY c) WITHIN 5"),
    ("PATTERN SEQ(A a, NOT B b, C c) WITHIN 5", "PATTERN SEQ(A a, ~(B b), C c) WITHIN 5"),
    ("PATTERN SEQ(A a{3}, B b) WITHIN 5", "PATTERN SEQ(A{3} a[], B b) WITHIN 5"),
    ("EVENT SEQ(A a, !(B b), C c) WHERE [id] WITHIN 12 h", "PATTERN SEQ(A a, ~(B b), C c) WHERE [id] WITHIN 12 h"),
    ("SEQ(A a, B b) WITHIN 5 s", "PATTERN SEQ(A a, B b) WITHIN 5 s"),
    ("PATTERN SEQ(A a, B b) WHERE partition_contiguity AND [id] WITHIN 5",
     "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [id] } WITHIN 5"),
    ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] } AND a.x > 3 WITHIN 5",
     "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] AND a.x > 3 } WITHIN 5"),
    ("PATTERN SEQ(A a, B b) PARTITION BY u, v.w WITHIN 5", "PATTERN SEQ(A a, B b) WHERE [u] AND [`v.w`] WITHIN 5"),
    ("PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 5 GROUP BY u", "PATTERN SEQ(A a, B b) WHERE [u] AND a.x > 3 WITHIN 5"),
    ("PATTERN SEQ(A a WHERE a.x > 1, B b) WITHIN 5", "PATTERN SEQ(A a, B b) WHERE a.x > 1 WITHIN 5"),
    ("PATTERN SEQ(A a, B b) WITHIN 5 s WHERE [id]", "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 s"),
    ("PATTERN SEQ(A a, B b) AND a.x > 3 WITHIN 5", "PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 5"),
    ('PATTERN A a WHERE a.x == "it\'s" && a.y IN [1, 2] WITHIN 5',
     "PATTERN A a WHERE a.x == 'it''s' AND a.y IN (1, 2) WITHIN 5"),
    ("PATTERN A a WHERE a.x =~ 'x.*' WITHIN 5", "PATTERN A a WHERE matches(a.x, 'x.*') WITHIN 5"),
    ("PATTERN A a WHERE a.x BETWEEN 3 TO 5 OR a.y IS TRUE WITHIN 5",
     "PATTERN A a WHERE a.x BETWEEN 3 AND 5 OR a.y = TRUE WITHIN 5"),
    ("PATTERN A a WITHIN INTERVAL '10' SECOND", "PATTERN A a WITHIN 10 SECOND"),
    ("PATTERN A a WITHIN '10 min'", "PATTERN A a WITHIN 10 min"),
    ("PATTERN A a WITHIN 01:30:00", "PATTERN A a WITHIN 90 min"),
    ("PATTERN A a WITHIN 1h30m", "PATTERN A a WITHIN 90 min"),
    ("PATTERN A a WITHIN 5m", "PATTERN A a WITHIN 5 min"),
    ("PATTERN A a MAXSPAN = 5 min", "PATTERN A a WITHIN 5 min"),
    ("PATTERN A a WITHIN 5 RETURN a.x, a.`y z` AS y", "PATTERN A a WITHIN 5 RETURN a.x AS x, a.`y z` AS y"),
    ("PATTERN A a WITHIN 5 SELECT a.x", "PATTERN A a WITHIN 5 RETURN a.x AS x"),
    ("PATTERN A a WITHIN 5 RETURN *", "PATTERN A a WITHIN 5"),
    ("PATTERN A a WITHIN 5 ONE ROW PER MATCH;", "PATTERN A a WITHIN 5"),
    ("PATTERN A a\n  WHERE a.x > 3 || a.y > 3\n  WITHIN 5", "PATTERN A a WHERE a.x > 3 OR a.y > 3 WITHIN 5"),
]  # fmt: skip


def hint_of(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        compile_query(text)
    return f"{caught.value.message}; {caught.value.hint}"


@pytest.mark.parametrize(("text", "meant"), LANGUAGES)
def test_a_text_of_another_language_is_said_in_ours(text, meant):
    assert f"in our words: {meant};" in hint_of(text)
    assert parse(meant).text == meant


@pytest.mark.parametrize(("text", "meant"), SLIPS)
def test_a_slip_is_repaired(text, meant):
    assert hint_of(text).endswith(f"write {meant}")
    assert parse(to_text(parse(meant))) == parse(meant)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (MATCH_RECOGNIZE, "MATCH_RECOGNIZE is not read yet"),
        (MATCH_RECOGNIZE.replace("s d+ u+", "PERMUTE(s, d)"), "MATCH_RECOGNIZE is not read yet"),
        ("sequence by id [a where x : (1)]", "EQL is not read yet"),
        ("Logons | where Id == 4625 | summarize count() by Account", "KQL is not read yet"),
        ("SELECT u, count(*) FROM t GROUP BY u", "CEL has no functions"),
    ],
)
def test_the_language_is_named_even_where_nothing_is_translated(text, name):
    said = hint_of(text)
    assert name in said
    assert "decorate it" not in said
    for offered in re.findall(r"PATTERN [^;]*", said):
        assert parse(offered)


@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, B b) WITHIN 5 parsec", "PATTERN A a WHERE a.x > WITHIN 5", "a(b"])
def test_what_is_no_plain_slip_is_not_rewritten(text):
    assert "write PATTERN" not in hint_of(text)


def test_nothing_is_changed_within_quotes():
    said = hint_of("PATTERN A a WHERE a.x = 'p && q -> r' && a.y = 1 WITHIN 5")
    assert said.endswith("write PATTERN A a WHERE a.x = 'p && q -> r' AND a.y = 1 WITHIN 5")


def test_the_v_shape_of_match_recognize_finds_what_sql_finds():
    """One match: 37 down to 29, and up to 34; the first row of a symbol is held against the row before it."""
    prices = [25, 31, 36, 37, 35, 32, 29, 33, 34]
    meant = re.search(r"PATTERN [^;]*", hint_of(MATCH_RECOGNIZE))
    query = compile_query(meant[0].replace("WITHIN 1 h", "WITHIN 100"))
    found = query.match([{"ts": at, "symbol": "A", "price": price} for at, price in enumerate(prices)]).to_arrow()
    assert [(row["high"], row["last"]) for row in found.to_pylist()] == [(37, 34)]


def test_names_as_json_has_them_stand_in_backticks():
    with pytest.raises(QueryError) as caught:
        compile_query("PATTERN SEQ(A a, B b) WHERE b.@timestamp > a.@timestamp WITHIN 5")
    assert "`@timestamp`" in str(caught.value.hint)


def test_a_key_that_is_returned_is_shown_anyway():
    for returned, meant in (("user, b.x", "RETURN b.x AS x"), ("b.x, user", "RETURN b.x AS x")):
        text = f"PATTERN SEQ(A a, B b) WHERE [user] WITHIN 5 RETURN {returned}"
        with pytest.raises(QueryError) as caught:
            compile_query(text)
        assert str(caught.value.hint).endswith(f"WITHIN 5 {meant}")
        assert "a key is shown without RETURN" in str(caught.value.hint)
    with pytest.raises(QueryError, match="a key is shown anyway"):
        compile_query("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 5 RETURN user")


def test_times_that_are_texts_in_json_are_told_how_to_compute_with(tmp_path):
    """The time of the events is computed with at once; another column becomes a time with ``to_time``."""
    path = tmp_path / "a.jsonl"
    row = '{"ts":"2024-05-01T00:00:%sZ","type":"%s","due":"2024-05-02"}\n'
    path.write_text(row % ("00", "A") + row % ("09", "B"))
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 1 min RETURN b.ts - a.ts AS took")
    assert query.match(str(path)).to_arrow()["took"].to_pylist() == [timedelta(seconds=9)]
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 1 min RETURN b.due - a.ts AS left")
    with pytest.raises(QueryError, match="ACEP-Q062") as caught:
        query.match(str(path)).to_arrow()
    assert "write to_time(b.due), which rules and CEL do not have, or say how" in str(caught.value)
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 1 min RETURN to_time(b.due) - a.ts AS left")
    assert query.match(str(path)).to_arrow()["left"].to_pylist() == [timedelta(days=1)]
