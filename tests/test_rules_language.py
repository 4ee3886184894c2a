"""Rules as a language: what is read, how it is printed, what its words mean elsewhere, and what is refused how."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.errors import LimitError, QueryError
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text as text_of
from acep_approx.query.rules.checks import check_rules
from acep_approx.query.rules.named_events import (
    as_of,
    can_be_missing,
    certain,
    ends_late,
    is_late,
    known_variables,
    last_variable,
    reads_of,
    reads_of_query,
    rewritten,
    several,
)
from acep_approx.query.rules.parser import parse_rules
from acep_approx.query.rules.printer import to_text
from acep_approx.query.rules.syntax import Assign, Call, Column, Rule, RuleFile, Table, Write
from acep_approx.query.rules.types import check_types
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Binary, Constant, Read
from tests.cases import cases, examples
from tests.rules_refused import TABLES, refused
from tests.strategies import AGGREGATES, ATTRIBUTES, CONSTANTS, FIELDS, PATTERN_QUERIES, expressions

HYGIENE = """
-- the example of the paper
TABLE status (hcw text, level text DEFAULT 'safe', n int DEFAULT 0, KEY (hcw))
TABLE room (id text, ward text, KEY (id)) STATIC
RULE warn ON
  PATTERN SEQ(EXIT a, ~(SANITIZE n), ENTER b)
  WHERE [hcw] AND a.location != b.location AND store.status[b.hcw].level = 'safe'
  WITHIN 45 s
  WHEN store.room[b.location].ward != 'closed'   -- read when the match is complete
FOR EACH MATCH
DO UPDATE status SET level = 'warning', n = old.n + 1 AT (b.hcw); CALL badge(b.hcw, 'red') END
RULE look ON PATTERN ENTER b WHERE EXISTS store.room[b.location] WITHIN 5 RETURN store.status[b.hcw].n AS n
"""

# --- reading ------------------------------------------------------------------------------------------------------


def test_the_tree_of_a_file():
    file = parse_rules(HYGIENE)
    check_rules(file)
    status, room = file.tables
    columns = (Column("hcw", "text"), Column("level", "text", Constant("safe")), Column("n", "int", Constant(0)))
    assert status == Table("status", columns, ("hcw",))
    assert room == Table("room", (Column("id", "text"), Column("ward", "text")), ("id",), is_static=True)
    assert ([one.name for one in status.keys], [one.name for one in status.values]) == (["hcw"], ["level", "n"])
    assert (status.is_total, room.is_total) == (True, False)
    warn, look = file.rules
    key = (Attribute("b", None, "hcw"),)
    sets = (Assign("level", Constant("warning")), Assign("n", Binary("+", Attribute("old", None, "n"), Constant(1))))
    assert warn.actions == (Write("update", "status", key, sets), Call("badge", (*key, Constant("red"))))
    assert warn.when == Binary("!=", Read("room", (Attribute("b", None, "location"),), "ward"), Constant("closed"))
    assert warn.query.predicates[1] == Binary("=", Read("status", key, "level"), Constant("safe"))
    assert (warn.each, look.each, look.actions) == ("match", "match", ())
    assert look.query.predicates == (Read("room", (Attribute("b", None, "location"),), None),)


def test_places_are_in_the_whole_file():
    file = parse_rules(HYGIENE)
    for rule in file.rules:
        assert rule.query.text == HYGIENE
        assert HYGIENE[slice(*rule.span)].startswith(f"RULE {rule.name} ON")
        assert HYGIENE[slice(*dict(rule.places)["name"])] == rule.name
        for read in reads_of_query(rule.query):
            assert HYGIENE[slice(*read.span)] == text_of(read)
    write = file.rules[0].actions[0]
    assert isinstance(write, Write)
    assert {name: HYGIENE[slice(*span)] for name, span in write.places} == {
        "table": "status",
        "SET level": "level",
        "SET n": "n",
        "AT": "AT (b.hcw)",
    }
    assert HYGIENE[slice(*write.sets[1].span)] == "n = old.n + 1"


def test_tables_stand_anywhere_and_words_in_any_case():
    text = """rule r on pattern A a where exists Store.t [ a.x ] and STORE.t[a.x at a].v = 1 within 5
    do upsert t at (a.x) end Table t (v Int default -1, key (k), k TEXT) static"""
    file = parse_rules(text)
    assert file.tables[0] == Table("t", (Column("v", "int", Constant(-1)), Column("k", "text")), ("k",), is_static=True)
    assert file.rules[0].query.predicates[1].left.at == Attribute("a", None, "")
    assert file.rules[0].actions == (Write("upsert", "t", (Attribute("a", None, "x"),)),)


def test_whole_numbers_are_defaults_of_floats():
    (table,) = parse_rules("TABLE t (k text, v float DEFAULT 1, w float DEFAULT -2.5, KEY (k))").tables
    assert [repr(column.default.value) for column in table.values if column.default] == ["1.0", "-2.5"]


def test_names_that_are_no_words_stand_in_backticks():
    text = "TABLE t (`my key` text, `it``s` int, KEY (`my key`))\n\nRULE r ON\n  PATTERN A a\n"
    text += "  WHERE store.t[a.`the id`].`it``s` = 1\n  WITHIN 5\nDO UPDATE t SET `it``s` = old.`it``s` AT (a.x)\nEND"
    assert to_text(parse_rules(text)) == text
    check_rules(parse_rules(text))


WORDS = (
    *("table", "rule", "at", "do", "end", "set", "exists", "store", "key", "static", "default", "worth", "match"),
    *("point", "update", "upsert", "delete", "call", "when", "on", "each", "old", "int", "time", "publish", "final"),
)


@pytest.mark.parametrize("word", [*WORDS, *(word.upper() for word in WORDS)])
def test_words_that_are_still_names(word: str):
    file = parse_rules(f"""
        TABLE {word} ({word} text DEFAULT 'x', {word}2 int, KEY ({word}))
        RULE {word} ON PATTERN SEQ({word} {word}, B+ b[])
            WHERE [{word}] AND {word}.{word} = b.x AND store.{word}[{word}.{word}].{word} = 'x'
              AND b[i].{word} > {word}.x AND store.{word}[b[1].x AT {word}].{word} = 'x'
              AND EXISTS store.{word}[{word}.x]
            WITHIN 5 RETURN {word}.x AS {word}
            WHEN {word}.x > 3 AND store.{word}[{word}.{word}].{word} = 'x'
        DO UPSERT {word} SET {word} = {word}.{word} AT ({word}.{word}); CALL {word}({word}.{word}) END
        RULE r ON PATTERN {word} {word} WITHIN 5""")
    assert known_variables(file.rules[0].query.pattern) == (word, "b")
    assert file.rules[0].when is not None
    assert [read.table for read in reads_of(file.rules[0].when)] == [word]
    assert parse_rules(to_text(file)) == file


@pytest.mark.parametrize("word", ["store", "exists", "table", "rule", "at", "do", "end", "set", "old"])
def test_words_that_are_still_names_in_queries(word: str):
    query = parse(f"PATTERN SEQ({word} {word}, B+ b[]) WHERE {word}.{word} = b[i].{word} WITHIN 5")
    assert query == parse_rules(f"RULE r ON {text_of(query)}").rules[0].query


# --- printing -----------------------------------------------------------------------------------------------------


def test_what_is_canonical_stays():
    text = """TABLE status (hcw text, level text DEFAULT 'safe', n int DEFAULT 0, KEY (hcw))
TABLE way (a text, b text, km float DEFAULT 1.0, since time, open bool DEFAULT TRUE, KEY (a, b)) STATIC

RULE warn ON
  PATTERN SEQ(EXIT a, B+ c[], ENTER b)
  WHERE [hcw] AND store.status[c[i-1].hcw].level = 'it''s' AND NOT EXISTS store.way[a.x, b.x AT b]
  WITHIN 45 s
  ERRORS 1 WEIGHTS (b = 2)
  RETURN store.status['x' AT c[c.LEN]].n + 1 AS n
  WHEN store.status[max(c[].x)].n > 3
FOR EACH POINT
DO UPDATE status SET level = 'warning', n = -old.n AT (b.hcw);
   UPSERT status AT (b.hcw);
   DELETE status AT ('x');
   CALL badge;
   CALL badge(b.hcw, 5)
END

RULE hand ON
  PATTERN AUTOMATON (
  q0 -> q1 ON Tick t WHEN store.status[t.x].n > 3
  FINAL q1
)
  WITHIN 5
  RETURN t.x AS x"""
    assert to_text(parse_rules(text)) == text


NAMES = st.sampled_from([*WORDS, "status", "größe", "_t", "x1"])
READS = st.builds(
    Read,
    NAMES,
    st.lists(expressions(CONSTANTS | ATTRIBUTES | AGGREGATES), min_size=1, max_size=2).map(tuple),
    st.none() | FIELDS,
    st.none()
    | st.builds(Attribute, NAMES, st.sampled_from([None, "first", "current", "previous", "last"]), st.just("")),
)
NAMED_LIKE_WORDS = st.builds(Attribute, NAMES, st.sampled_from([None, "first", "current", "last"]), NAMES)
VALUES = expressions(CONSTANTS | ATTRIBUTES | AGGREGATES | READS | NAMED_LIKE_WORDS)
KEYS = st.lists(VALUES, min_size=1, max_size=2).map(tuple)
WRITES = st.builds(
    Write,
    st.sampled_from(["update", "upsert", "delete"]),
    NAMES,
    KEYS,
    st.lists(st.builds(Assign, FIELDS, VALUES), max_size=2).map(tuple),
)
CALLS = st.builds(Call, NAMES, st.lists(VALUES, max_size=2).map(tuple))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table with any names."""
    columns = []
    for name in draw(st.lists(FIELDS, min_size=1, max_size=4, unique=True)):
        holds = draw(st.sampled_from(["int", "float", "text", "bool", "time"]))
        default = draw(st.none() | CONSTANTS)
        if holds == "float" and default is not None and type(default.value) is int:
            default = Constant(float(default.value))
        columns.append(Column(name, holds, default))
    key = draw(st.lists(st.sampled_from([column.name for column in columns]), min_size=1, max_size=2, unique=True))
    return Table(draw(NAMES), tuple(columns), tuple(key), draw(st.booleans()))


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A rule that reads and writes anything."""
    single = VALUES.filter(lambda node: not (isinstance(node, Binary) and node.op == "AND"))
    query = replace(draw(PATTERN_QUERIES), predicates=tuple(draw(st.lists(single, max_size=2))))
    actions = tuple(draw(st.lists(WRITES | CALLS, max_size=3)))
    each = draw(st.sampled_from(["match", "point"])) if actions else "match"
    return Rule(draw(NAMES), query, draw(st.none() | VALUES), each, actions)


@given(st.builds(RuleFile, st.lists(tables(), max_size=2).map(tuple), st.lists(rules(), max_size=2).map(tuple)))
@examples(150)
def test_parse_of_print_is_the_same_file(file: RuleFile):
    text = to_text(file)
    found = parse_rules(text) if text else file
    assert found == file
    assert repr(found) == repr(file)  # 1, 1.0 and TRUE are equal in Python, but not the same
    assert to_text(found) == text
    for rule in found.rules:
        for read in [*reads_of_query(rule.query), *(reads_of(rule.when) if rule.when else ())]:
            assert text[slice(*read.span)] == text_of(read)


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "said"), refused(), ids=lambda part: part.removeprefix(TABLES)[:60])
def test_what_is_refused(text: str, said: str):
    with pytest.raises(QueryError) as error:
        check_rules(parse_rules(text))
    assert str(error.value) == said
    assert 0 <= error.value.start <= error.value.end <= len(text)


def test_many_are_refused():
    assert len(refused()) > 190
    assert len({said.split(":")[0] for _, said in refused() if said.startswith("ACEP-R")}) >= 25


RIGHT = [
    "PATTERN SEQ(A a, B b) WHERE store.status[a.x AT b].n = 1 WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE store.way[a.x, b.x AT b].km < 5 WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] AND store.status[a.k AT b].n = 1 } WITHIN 5 NON OVERLAP",
    "PATTERN SEQ(A a, B b) WITHIN 5 NON OVERLAP RETURN store.status[a.x AT b].n AS n",
    "PATTERN SEQ(A a, ~(N n), B b) WHERE store.status['limit' AT n].n < n.x AND store.status[n.x].n = 1 WITHIN 5",
    "PATTERN SEQ(A a, C+ c) WHERE store.status[c.x].n = 1 AND store.status[c[i-1].x].n = 2 WITHIN 5",
    "PATTERN SEQ(A a, C+ c) WHERE store.status['x' AT c].n < c.x AND store.status[c[1].x AT c[c.LEN]].n = 1 WITHIN 5",
    "PATTERN SEQ(A a, B b) WITHIN 5 WHEN store.way[a.x, b.x].km > 1 AND store.status['x'].n = 1",
    "PATTERN SEQ(A a, C+ c) WITHIN 5 WHEN store.status[max(c[].x)].n = count(c[]) DO CALL f END",
    "PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1 WHEN a.x = 1 DO CALL f END",
    "PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1 WEIGHTS (a = 2) DO CALL f(a.x) END",
    "PATTERN SEQ(A a, C+ c) WITHIN 5 DO CALL f(c[1].x, c[c.LEN].y, sum(c[].z), 'text', a.x > 3) END",
    "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5 FOR EACH POINT DO UPDATE status SET n = b.x AT (a.k) END",
    "PATTERN SEQ(A a, C+ c) WITHIN 5 FOR EACH POINT DO CALL f(c[c.LEN].x) END",
    "PATTERN SEQ(A a, (B b | C c)) WITHIN 5 FOR EACH POINT DO CALL f END",
    "PATTERN SEQ(A a, ~(N n)) WITHIN 5 DO CALL f(a.x) END",
    "PATTERN SEQ(A a, B old) WITHIN 5 DO DELETE status AT (old.x); CALL f(old.x) END",
    "PATTERN A a WITHIN 5 DO UPSERT status AT (a.x); UPDATE status SET n = 2.0, level = NULL AT (a.x) END",
    "PATTERN A a WITHIN 5 DO UPDATE way SET since = '2013-01-31T12:00', open = a.x > 3, km = 1 AT (a.x, a.y) END",
    "PATTERN AUTOMATON (q0 -> q1 ON T t WHEN store.status[t.x].n = 1 FINAL q1) WITHIN 5 WHEN t.x = 1 DO CALL f END",
    "PATTERN AUTOMATON (q0 -> q1 ON T t WHEN store.status['x' AT t].n = 1 FINAL q1) WITHIN 5 DO CALL f(t.x) END",
]


@pytest.mark.parametrize("rule", RIGHT)
def test_what_is_right(rule: str):
    file = parse_rules(f"{TABLES}RULE r ON {rule}")
    check_rules(file)
    check_types(file, dict.fromkeys("xyzk", "unknown"))
    assert parse_rules(to_text(file)) == file


@pytest.mark.parametrize(
    ("rule", "code", "piece"),
    [
        ("WHERE store.status[b.hwc].n = 1 WITHIN 5", "ACEP-Q060", "b.hwc"),
        ("WHERE store.status[b.x].n = 1 WITHIN 5", "ACEP-R010", "b.x"),
        ("WHERE store.status[b.hcw].n = b.hcw WITHIN 5", "ACEP-Q061", "store.status[b.hcw].n = b.hcw"),
        ("WHERE store.way[b.hcw, b.hcw].since = b.ts AND store.way[b.hcw, b.hcw].open WITHIN 5", None, ""),
        ("WHERE store.way[b.hcw, b.hcw].since = b.x WITHIN 5", "ACEP-Q061", "store.way[b.hcw, b.hcw].since = b.x"),
        ("WITHIN 5 WHEN b.x", "ACEP-Q063", "b.x"),
        ("WITHIN 5 DO UPDATE status SET n = b.hcw AT (b.hcw) END", "ACEP-R010", "b.hcw"),
        ("WITHIN 5 DO UPDATE status SET level = b.hcw, n = old.n + b.x AT (b.hcw) END", None, ""),
        ("WITHIN 5 DO UPDATE status SET level = b.raw AT (b.hcw) END", "ACEP-R010", "b.raw"),
        ("WITHIN 5 DO DELETE status AT (b.x) END", "ACEP-R010", "b.x"),
        ("WITHIN 5 DO CALL f(b.x, b.hcw, b.raw) END", None, ""),
        ("WITHIN 5 DO CALL f(b.y) END", "ACEP-Q060", "b.y"),
        ("WITHIN 5 DO CALL f(b.hcw + 1) END", "ACEP-Q062", "b.hcw"),
    ],
)
def test_types_of_the_events(rule: str, code: str | None, piece: str):
    text = f"{TABLES}RULE r ON PATTERN SEQ(A a, B b) {rule}"
    file = parse_rules(text)
    check_rules(file)
    schema = {"x": "number", "hcw": "string", "ts": "time", "raw": "other"}
    if code is None:
        check_types(file, schema)
        return
    with pytest.raises(QueryError) as error:
        check_types(file, schema)
    assert (error.value.code, text[error.value.start : error.value.end]) == (code, piece)


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("PATTERN A a WHERE store.status[a.x].level = 'x' WITHIN 5", "store.status[a.x]"),
        ("PATTERN A a WHERE a.x = 1 AND EXISTS store.status[a.x] WITHIN 5", "EXISTS store"),
        ("PATTERN A a WITHIN 5 RETURN store.status[a.x, a[1].y].n AS n", "store.status["),
    ],
)
def test_queries_read_no_tables(text: str, piece: str):
    with pytest.raises(QueryError, match="a query reads no tables") as error:
        parse(text)
    assert (error.value.code, text[error.value.start : error.value.end]) == ("ACEP-R024", piece)


@pytest.mark.parametrize("text", ["TABLE t (k text, KEY (k))", "RULE r ON PATTERN A a WITHIN 5"])
def test_a_file_of_rules_is_no_query(text: str):
    with pytest.raises(QueryError, match="compile_rules"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("RULE r ON PATTERN A a WITHIN 5 " + " " * 1_000_000, "ACEP-Q020"),
        ("RULE r ON PATTERN A a WHERE a.x IN (" + "1, " * 20_000 + "1) WITHIN 5", "ACEP-Q023"),
        ("RULE r ON PATTERN A a WITHIN 5 DO CALL f(" + "(" * 200 + "1" + ")" * 200 + ") END", "ACEP-Q021"),
        ("RULE r ON PATTERN A a WITHIN 5 DO CALL f(" + "NOT " * 200 + "a.x) END", "ACEP-Q021"),
        ("RULE r ON PATTERN A a WITHIN 5 WHEN " + "NOT " * 200 + "a.x", "ACEP-Q021"),
        ("RULE r ON PATTERN A a WITHIN 5 WHEN " + "store.t[" * 200 + "1" + "].x" * 200, "ACEP-Q021"),
        ("RULE r ON PATTERN A a WHERE " + "store.t[" * 200 + "1" + "].x" * 200 + " WITHIN 5", "ACEP-Q021"),
    ],
)
def test_limits(text: str, code: str):
    with pytest.raises(LimitError) as error:
        parse_rules(text)
    assert error.value.code == code


def test_any_damage_to_a_file_gives_a_message_with_a_place():
    dice = random.Random(1)
    texts = [re.findall(r"\w+|\s+|.", text) for text in (HYGIENE, *(f"{TABLES}RULE r ON {rule}" for rule in RIGHT))]
    spare = [word for words in texts for word in words] + [*"\"&!;~`'%@#\\é\n\0[]:", "--", "=>", "((", "1e999", ":low"]
    for _ in range(cases(2500)):
        words = list(dice.choice(texts))
        for _ in range(dice.choice([1, 1, 2, 4])):
            place = dice.randrange(len(words))
            words[place : place + dice.choice([0, 1, 1, 5])] = dice.choices(spare, k=dice.choice([0, 1]))
            words = words or [" "]
        text = "".join(words)
        try:
            file = parse_rules(text)
            check_rules(file)
            assert parse_rules(to_text(file)) == file
        except QueryError as error:
            assert 0 <= error.start <= error.end <= len(text)
            assert error.message in str(error)


def test_an_empty_text():
    for text in ("", "\n"):
        with pytest.raises(QueryError, match="there is no rule") as error:
            parse_rules(text)
        assert (error.value.code, error.value.text) == ("ACEP-R001", "")


def test_a_tree_that_was_not_parsed_has_no_places():
    file = parse_rules(f"{TABLES}RULE r ON PATTERN A a WITHIN 5 DO DELETE status AT (b.x) END")
    rule = replace(file.rules[0], query=replace(file.rules[0].query, text=""))
    with pytest.raises(QueryError, match="no variable 'b'") as error:
        check_rules(replace(file, text="", rules=(rule,)))
    assert "\n  hint: variables are a" in str(error.value)
    assert "line" not in str(error.value)


# --- as of when, and which events there are -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "read", "event", "key", "late"),
    [
        ("SEQ(A a, B b)", "store.t[b.x].v", ("b", None), "b.x", False),
        ("SEQ(A a, B b)", "store.t[b.x AT b].v", ("b", None), "b.x", False),
        ("SEQ(A a, B b)", "store.t['k' AT a].v", ("a", None), "'k'", False),
        ("SEQ(A a, B b)", "store.t[a.x AT b].v", ("b", None), "a.x", True),
        ("SEQ(A a, B b)", "store.t[a.key AT b].v", ("b", None), "b.key", False),
        ("SEQ(A a, B b)", "store.t[b.key AT a].v", ("a", None), "a.key", False),
        ("SEQ(A a, B b)", "store.t[a.key + b.x AT b].v", ("b", None), "b.key + b.x", False),
        ("SEQ(A a, B b)", "store.t[a.key + a.x AT b].v", ("b", None), "b.key + a.x", True),
        ("SEQ(A a, B+ b)", "store.t[b.x].v", ("b", "current"), "b.x", False),
        ("SEQ(A a, B+ b)", "store.t[b[i].x AT b].v", ("b", "current"), "b[i].x", False),
        ("SEQ(A a, B+ b)", "store.t[b[1].x].v", ("b", "first"), "b[1].x", False),
        ("SEQ(A a, B+ b)", "store.t[b[i-1].x].v", ("b", "previous"), "b[i-1].x", False),
        ("SEQ(A a, B+ b)", "store.t[b[1].x AT b[b.LEN]].v", ("b", "last"), "b[1].x", True),
        ("SEQ(A a, B+ b)", "store.t[b[1].key AT b[b.LEN]].v", ("b", "last"), "b[b.LEN].key", False),
        ("SEQ(A a, B+ b)", "store.t[a.key AT b[i-1]].v", ("b", "previous"), "b[i-1].key", False),
        ("SEQ(A a, ~(N n), B b)", "store.t[n.x].v", ("n", None), "n.x", False),
        ("SEQ(A a, B b)", "store.t[a.x + b.x].v", None, "a.x + b.x", False),
        ("SEQ(A a, B b)", "store.t['k'].v", None, "'k'", False),
    ],
)
def test_as_of(pattern: str, read: str, event: tuple[str, str | None] | None, key: str, late: bool):
    query = parse_rules(f"RULE r ON PATTERN {pattern} WHERE [key] AND {read} = 1 WITHIN 5").rules[0].query
    (found,) = reads_of_query(query)
    at = as_of(found, query)
    assert (at and (at.variable, at.index, at.name)) == (event and (*event, ""))
    assert [text_of(one) for one in rewritten(found, query).keys] == [key]
    assert is_late(found, query) == late


AUTOMATON = "AUTOMATON (q0 -> q1 ON T t q1 -> q1 ON U u q1 -> q2 ON V v q2 -> q3 {end} q0 -> q3 ON V w FINAL q3)"


@pytest.mark.parametrize(
    ("pattern", "sure", "last", "late"),
    [
        ("SEQ(A a, B b)", "a b", "b", False),
        ("SEQ(A a, B? b)", "a", None, False),
        ("SEQ(A a, B? b, C c)", "a c", "c", False),
        ("SEQ(A a, (B b | C c))", "a", None, False),
        ("SEQ(A a, (SEQ(B b, D d) | C c), E+ e)", "a e", "e", False),
        ("SEQ(A a, ~(B b))", "a", "a", True),
        ("SEQ(~(B b), A a)", "a", "a", False),
        ("SEQ(A a, ~(B b), C? c)", "a", None, True),
        ("SEQ(A a, (B b, C c)+)", "a b c", "c", False),
        ("SEQ(A a, (B b, C* c){2,3})", "a b", None, False),
        ("((A a | B b), (C c, ~(D d) | E e))", "", None, True),
        (AUTOMATON.format(end="ON V x"), "", None, False),
        (AUTOMATON.format(end="EPSILON").replace(" q0 -> q3 ON V w", ""), "t v", "v", False),
        (AUTOMATON.format(end="TIMEOUT").replace(" q0 -> q3 ON V w", ""), "t v", "v", True),
        ("AUTOMATON (q0 -> q1 ON T t q1 -> q1 ON U u q1 -> q2 ON V FINAL q2)", "t", None, False),
    ],
)
def test_which_events_a_match_has(pattern: str, sure: str, last: str | None, late: bool):
    query = parse(f"PATTERN {pattern} WITHIN 5")
    assert " ".join(name for name in known_variables(query.pattern) if name in certain(query.pattern)) == sure
    assert last_variable(query) == last
    assert ends_late(query.pattern) == late


def test_what_errors_let_be_missing():
    query = parse("PATTERN SEQ(A a, B+ b, C c) WITHIN 5 ERRORS 1 WEIGHTS (c = 2)")
    assert [can_be_missing(query, name) for name in "abc"] == [True, True, False]
    assert last_variable(query) == "c"
    assert last_variable(replace(query, weights=())) is None
    assert several(query.pattern) == {"b"}


def test_walks_see_the_key_of_a_read():
    (read,) = parse_rules("RULE r ON PATTERN A a WHERE EXISTS store.t[a.x, 5 AT a] WITHIN 5").rules[0].query.predicates
    assert [text_of(node) for node in walk(read)][1:] == ["a.x", "5"]


def test_nothing_heavy_is_loaded():
    code = (
        "import sys, acep_approx.query.rules.checks, acep_approx.query.rules.parser, acep_approx.query.rules.printer\n"
        "assert not {'lark', 'numba', 'pandas', 'pyspark', 'pyarrow'} & {*sys.modules}, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
