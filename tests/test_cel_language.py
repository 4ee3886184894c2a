"""CEL as a language: what is read, how it is printed, how names are resolved, and what is refused in which words."""

from __future__ import annotations

import pytest

from acep_approx.errors import LimitError, QueryError, UnsupportedError
from acep_approx.planning.cel import left_associated
from acep_approx.query.cel.names import completed, resolved, schema_of
from acep_approx.query.cel.parser import is_cel, parse_cel
from acep_approx.query.cel.printer import to_cel
from acep_approx.query.cel.syntax import CelQuery, Filter, Fold, Next, Select, Star, Stream, nodes
from acep_approx.query.syntax import Attribute, Binary, Constant, Lasting, ReturnItem, Window
from tests.cayuga_examples import EXAMPLES, SCHEMAS, STOCK

ALL = pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
AB = {"A": ("x", "y"), "B": ("x", "z"), "C": ("u",)}


# --- reading and printing -----------------------------------------------------------------------------------------


def test_a_tree():
    query = parse_cel("SELECT a, b + 1 AS c FROM FILTER{DUR >= 10min}(A) NEXT{$1.a < $2.b} B PUBLISH P WITHIN 3 h")
    condition = Binary(">=", Attribute(None, None, "DUR"), Lasting(10, "min"))
    pair = Binary("<", Attribute("$1", None, "a"), Attribute("$2", None, "b"))
    items = (
        ReturnItem("a", Attribute(None, None, "a")),
        ReturnItem("c", Binary("+", Attribute(None, None, "b"), Constant(1))),
    )
    select = Select(items, Next(Filter(condition, Stream("A")), pair, Stream("B")), "P")
    assert query == CelQuery(select, Window(3, "h"))


def test_operators_group_to_the_left():
    found = parse_cel("FROM A NEXT B FOLD{, , } C NEXT{} D").select.source
    assert found == Next(
        Fold(Next(Stream("A"), None, Stream("B")), None, None, (), Stream("C")), None, Stream("D")
    )
    assert parse_cel("FROM A NEXT (B NEXT C)").select.source == Next(
        Stream("A"), None, Next(Stream("B"), None, Stream("C"))
    )


def test_filter_is_of_what_stands_behind_it():
    found = parse_cel("FROM FILTER{x = 1} A NEXT B").select.source
    assert isinstance(found, Next)
    assert isinstance(found.left, Filter)


@pytest.mark.parametrize(
    "text",
    [
        "select * from a publish p within 3 s",
        "Select * From a Within 3 s Publish p",
        "FROM a\nWITHIN 3 seconds -- a comment\nPUBLISH 'p'",
    ],
)
def test_keywords_in_any_case_and_clauses_in_both_orders(text: str):
    assert parse_cel(text) == CelQuery(Select((Star(),), Stream("a"), "p"), Window(3, "s"))


def test_signs_of_the_paper():
    plain = "FROM FILTER{a >= 1 AND b <= 2 AND c != 3}(S)"
    assert parse_cel(plain.replace(">=", "≥").replace("<=", "≤").replace("!=", "≠")) == parse_cel(plain)


PARTS = ["a = 1, b = 2, 1 AS c", "a = 1, b = 2, ", "a = 1, b = 2", ", ,", ",", " , , 1 AS c, 2 AS d"]


@pytest.mark.parametrize("parts", PARTS)
def test_each_part_of_fold_may_be_empty(parts: str):
    found = parse_cel(f"FROM A FOLD{{{parts}}} B").select.source
    assert isinstance(found, Fold)
    assert (found.filter is None, found.rebind is None) == ("a" not in parts, "b" not in parts)
    assert len(found.aggregates) == parts.count("AS")


PRINTED = [
    *EXAMPLES.values(),
    "SELECT `from`, `a b`, `Next` + 1 AS `select it` FROM 'a stream' NEXT 'FOLD' PUBLISH 'Errors'",
    "SELECT *, 1 AS n, * FROM A FOLD{$2.x > $.x OR NOT $1.y IS NULL, , $.n + 1 AS n, -(1) AS m} B",
    "FROM FILTER{a IN (1, -2, 'it''s') AND DUR > 1.5 h AND DUR < 3 ticks}(FROM A PUBLISH B) WITHIN 4",
    "FROM A NEXT (B FOLD{, , } C) NEXT (SELECT x FROM D) WITHIN :w min ERRORS 2 PUBLISH p",
    "FROM FILTER{`DUR` > :low AND `b`}(A)",
    "SELECT ANY, SEQ, where FROM WITHINX",
]


@pytest.mark.parametrize("text", PRINTED)
def test_what_is_printed_is_read_again(text: str):
    query = parse_cel(text)
    assert parse_cel(to_cel(query)) == query
    assert to_cel(parse_cel(to_cel(query))) == to_cel(query)


def test_what_begins_a_query():
    assert is_cel(" -- c\n\tSelect * FROM S")
    assert is_cel("FROM S")
    assert not any(map(is_cel, ("", "SELECTED", "fromage", "PATTERN SEQ(A a)", "-- SELECT", "ab WITHIN 5")))


def test_the_deepest_tree_is_read():
    chain = "FROM A" + " NEXT A" * 95
    assert parse_cel(to_cel(parse_cel(chain))) == parse_cel(chain)
    with pytest.raises(LimitError, match="ACEP-Q021"):
        parse_cel("FROM A" + " NEXT A" * 200)


# --- names --------------------------------------------------------------------------------------------------------


KNOWN = {"all": SCHEMAS, "stock": {"Stock": STOCK}, "none": {"Stock": None}, "empty": {}}


@ALL
@pytest.mark.parametrize("schemas", KNOWN.values(), ids=KNOWN)
def test_examples_of_the_paper_resolve(text: str, schemas: dict[str, tuple[str, ...] | None]):
    query = parse_cel(text)
    found = resolved(query, schemas)
    assert all(
        isinstance(item, ReturnItem) for node in nodes(found.select) if isinstance(node, Select) for item in node.items
    )
    assert resolved(found, schemas) == found
    assert resolved(parse_cel(to_cel(found)), schemas) == found
    assert schema_of(found.select, completed(query, schemas)) == schema_of(query.select, completed(query, schemas))


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("Example 1", ("Name", "Price", "Volume")),
        ("Example 2", ("IBMPrice",)),
        ("Example 5", ("IBMPrice", "Price", "Name")),
        ("Example 7", ("Name_1", "Price_1", "Volume_1", "cnt_1", "Name", "Price", "Volume", "cnt")),
        ("Example 9", ("Name", "MaxPrice", "MinPrice", "FinalPrice")),
    ],
)
def test_schemas_of_examples(name: str, schema: tuple[str, ...]):
    query = parse_cel(EXAMPLES[name])
    assert schema_of(resolved(query, SCHEMAS).select, completed(query, SCHEMAS)) == schema


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("FROM A NEXT C", "x y u"),
        ("FROM A NEXT B", "x_1 y_1 x z"),
        ("FROM A NEXT A NEXT C", "x_1 y_1 x y u"),
        ("FROM A FOLD{, , } (SELECT x FROM B)", "x_1 y x"),
        ("FROM A FOLD{, , $.y AS y, 1 AS n} (SELECT x FROM B)", "x_1 y_1 x y n"),
        ("SELECT y, * FROM (SELECT x FROM A NEXT B) NEXT (SELECT y FROM A)", None),
        ("SELECT x AS k, * FROM A", "k x y"),
        ("FROM (SELECT x AS q FROM A PUBLISH P) NEXT P", "q_1 q"),
    ],
)
def test_schemas(text: str, schema: str | None):
    query = parse_cel(text)
    if schema is None:
        with pytest.raises(QueryError, match="ACEP-Q106"):
            resolved(query, AB)
    else:
        assert " ".join(schema_of(resolved(query, AB).select, completed(query, AB))) == schema


def test_sides():
    found = resolved(parse_cel("FROM A NEXT{$2.x = 1 AND y = 2 AND z = 3} B"), AB).select.source
    assert to_cel(CelQuery(Select((Star(),), found))).endswith("NEXT{$2.x = 1 AND $1.y = 2 AND $2.z = 3} B")
    found = resolved(parse_cel("FROM FILTER{x > 1 AND DUR > 2}(A)"), AB).select.source
    assert to_cel(CelQuery(Select((Star(),), found))).endswith("FILTER{$1.x > 1 AND $1.DUR > 2}(A)")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("SELECT p_1 AS q FROM S NEXT S", {"S": ("p",)}),
        ("SELECT p_1 AS q FROM S FOLD{, , } S", {"S": ("p",)}),
        ("FROM S FOLD{$2.n = $.n, , } T", {"S": ("n",), "T": ("n",)}),
        ("SELECT n FROM S NEXT{$1.m > 2} T", {"S": ("m",), "T": ("n",)}),
        ("SELECT n, low_1 AS low FROM F NEXT{$2.n = $1.n AND p > 1.05 * low} S", {"F": ("n", "low"), "S": ("n", "p")}),
        ("SELECT c FROM (SELECT a AS b FROM S) NEXT T", {"S": ("a",), "T": ("c",)}),
    ],
)
def test_streams_without_data_have_what_is_asked_of_them(text: str, asked: dict[str, tuple[str, ...]]):
    assert completed(parse_cel(text), {}) == asked


# --- splitting ----------------------------------------------------------------------------------------------------


def test_left_associated_parts():
    text = (
        "FROM A NEXT (B NEXT (SELECT u FROM C)) FOLD{, , } FILTER{x = 1}(A) NEXT FILTER{DUR > 3}(A)"
        " NEXT (FROM B PUBLISH P) NEXT FILTER{x = 1}(FROM A PUBLISH Q) WITHIN 9 PUBLISH R"
    )
    found = left_associated(parse_cel(text))
    names = [one.select.publish for one in found]
    short = {name: f"i{place}" for place, name in enumerate(names) if name and name.startswith("$")}
    texts = [to_cel(one).replace("\n", " ") for one in found]
    for name, seen in short.items():
        texts = [one.replace(f"'{name}'", seen) for one in texts]
    assert texts == [
        "SELECT * FROM B NEXT (SELECT u FROM C) WITHIN 9 PUBLISH i0",
        "SELECT * FROM B PUBLISH P",
        "SELECT * FROM A PUBLISH Q",
        (
            "SELECT * FROM A NEXT i0 FOLD{, , } FILTER{x = 1}(A) NEXT FILTER{DUR > 3}(A) NEXT P NEXT FILTER{x = 1}(Q) "
            "WITHIN 9 PUBLISH R"
        ),
    ]


def test_equal_parts_are_one_query():
    found = left_associated(parse_cel("FROM A NEXT (B NEXT C) NEXT (B NEXT C)"))
    assert len(found) == 2
    again = left_associated(parse_cel("FROM B FOLD{, , } (B NEXT C)"))
    assert again[0].select.publish == found[0].select.publish
    longer = left_associated(parse_cel("FROM B FOLD{, , } (B NEXT C) WITHIN 3"))
    assert longer[0].select.publish != found[0].select.publish


@ALL
def test_examples_of_the_paper_are_one_automaton(text: str):
    query = resolved(parse_cel(text), SCHEMAS)
    assert left_associated(query) == (query,)


# --- wrong texts --------------------------------------------------------------------------------------------------

# (query, code, what the carets point at, words of the message, words of the hint)
SYNTAX = [
    ("SELECT a.b FROM x", "Q001", ".", "unexpected `.`", "write a alone, or decorate it"),
    ("SELECT FROM A", "Q001", "FROM", "expected a value such as price or $1.price or `*`", "an attribute as `FROM`"),
    ("SELECT x A", "Q001", "A", "expected an operator, AS, FROM or `,`", None),
    ("FROM select", "Q001", "select", "expected a stream such as Stock", "quote a stream of that name as 'select'"),
    ("FROM FLTER{a}(b)", "Q001", "{", "unexpected `{`", "did you mean `FILTER`?"),
    ("FROM FILTER{}(A)", "Q001", "FILTER{}(A)", "FILTER has no condition", "FILTER{price > 3}(Stock)"),
    ("FROM A B", "Q001", "B", "expected ERRORS, FOLD, NEXT", "put together by NEXT{..} or FOLD{..}"),
    ("FROM A, B", "Q001", ",", "unexpected `,`", "put together by NEXT{..} or FOLD{..}"),
    ("FROM A WHERE x = 1", "Q001", "WHERE", "unexpected `WHERE`", "CEL has FILTER{..}"),
    ("FROM A WITHN 3", "Q001", "WITHN", "unexpected `WITHN`", "did you mean `WITHIN`?"),
    ("FROM A PUBLISH c PUBLISH d", "Q001", "PUBLISH", "expected ERRORS, WITHIN or the end", "each clause stands once"),
    ("FROM A ERRORS 1 WITHIN 3", "Q001", "WITHIN", "unexpected `WITHIN`", "in this order: SELECT, FROM, WITHIN"),
    ("FROM A FOLD{x = 1} B", "Q001", "}", "expected an operator or `,`", "each may be empty"),
    ("FROM A FOLD{, , *} B", "Q001", "*", "* is no aggregate", "$.cnt + 1 AS cnt"),
    ("FROM A NEXT{count(x) = 3} B", "Q001", "(", "unexpected `(`", "CEL has no functions"),
    ("FROM A NEXT{x = 1 y = 2} B", "Q001", "=", "unexpected `=`", "joined by AND or OR"),
    ("FROM A NEXT{1 < x < 3} B", "Q001", "<", "unexpected `<`", "comparisons do not chain"),
    ("FROM A NEXT{$x = 1} B", "Q001", "=", "expected `.`", None),
    ("FROM (A NEXT B PUBLISH C)", "Q001", "PUBLISH", "unexpected `PUBLISH`", "a bracket is still open"),
    ("FROM A)", "Q001", ")", "unexpected `)`", "no open bracket"),
    ("FROM", "Q002", "", "expected a stream such as Stock", None),
    ("SELECT x", "Q002", "", "the query ends too early", None),
    ("FROM (A NEXT B", "Q002", "", "expected FOLD, NEXT or `)`", "a bracket is still open"),
    ("FROM A NEXT{x = 1", "Q002", "", "expected an operator or `}`", "a bracket is still open"),
    ("FROM A NEXT{#} B", "Q003", "#", "unexpected character", None),
    ("FROM A NEXT{x = 'y} B", "Q004", "'y} B", "never closed", "written twice"),
    ("FROM A WITHIN 3 minuts", "Q007", "minuts", "no such unit", "did you mean `minutes`?"),
    ("FROM FILTER{DUR > 3 parsec}(A)", "Q007", "parsec", "no such unit of time", "did you mean `sec`?"),
    ("FROM FILTER{DUR > 3 events}(A)", "Q007", "events", "no such unit of time", "units are us, ms"),
    ("FROM A WITHIN 3 ERRORS 1.5", "Q008", "1.5", "a whole number from 0, not 1.5", None),
    ("FROM A WITHIN 5 events", "Q112", "5 events", "cannot count events", "give it as a time"),
    ("FROM A WITHIN -1 s", "Q045", "-1 s", "a window of -1 s", "0 or longer"),
    ("FROM A WITHIN 1.5", "Q045", "1.5", "a window of 1.5 ticks", "a whole number"),
    ("SELECT x + 1 FROM A", "Q100", "x + 1", "needs a name", "x + 1 AS total"),
    ("FROM A FOLD{, , $.x + 1} B", "Q100", "$.x + 1", "needs a name", "add AS and a name"),
    ("FROM A NEXT{$3.x = 1} B", "Q101", "$3", "no such decorator $3", "$ the last iteration of FOLD"),
    ("FROM A FOLD{, , $$.x + 1 AS x} B", "Q101", "$$", "no such decorator $$", "$1 is the first input"),
    ("SELECT $1.x FROM A", "Q102", "$1.x", "$1 cannot stand in SELECT", "x_1 for what NEXT and FOLD rename"),
    ("FROM FILTER{x LIKE 'a%'}(A)", "Q175", "LIKE", "there is no LIKE in rules and in CEL", "list the values with IN"),
    ("FROM ''", "Q110", "''", "cannot have the name ''", "begins with $"),
    ("FROM A PUBLISH '$1'", "Q110", "'$1'", "cannot have the name '$1'", "begins with $"),
]
NAMES = [
    ("FROM FILTER{$2.x = 1}(A)", "Q102", "$2.x", "$2 cannot stand in FILTER", "$2 stands in NEXT and FOLD"),
    ("FROM A NEXT{$.x = 1} B", "Q102", "$.x", "$ cannot stand in NEXT", "$ stands in FOLD"),
    ("FROM FILTER{xx = 1}(A)", "Q103", "xx", "no attribute 'xx'", "did you mean `x`? attributes are x, y"),
    ("SELECT y FROM A NEXT B", "Q103", "y", "no attribute 'y'", "did you mean `y_1`?"),
    ("FROM A NEXT{$2.y = 1} B", "Q103", "$2.y", "no attribute 'y' in $2", "attributes are x, z"),
    ("FROM A FOLD{, , $.n + 1 AS n} A", "Q103", "$.n", "no attribute 'n' in $", "say what it begins with"),
    ("FROM A NEXT{x = 1} B", "Q104", "x", "'x' can be $1.x or $2.x", "$1 is the first input, $2 the second"),
    ("FROM A FOLD{y > 1, , } A", "Q104", "y", "'y' can be $1.y or $2.y", "$ the last iteration"),
    ("FROM A FOLD{, , y + 1 AS y} (SELECT x FROM A)", "Q104", "y", "'y' can be $1.y or $.y", "$ the last iteration"),
    ("FROM A NEXT{DUR > 3} B", "Q105", "DUR", "DUR cannot stand in NEXT", "FILTER{DUR <= 10 min}(A NEXT B)"),
    ("SELECT DUR AS d FROM A", "Q105", "DUR", "DUR cannot stand in SELECT", None),
    ("SELECT x, y AS x FROM A", "Q106", "y AS x", "SELECT has two attributes 'x'", "rename one"),
    ("FROM (SELECT x, y AS x_1 FROM A) FOLD{, , } (SELECT x FROM A)", "Q106", None, "two attributes 'x_1'", None),
    ("FROM A FOLD{, , 1 AS x} A", "Q106", None, "what FOLD puts together has two attributes 'x'", None),
    ("FROM A NEXT (SELECT x, z AS y_1 FROM B)", "Q106", None, "what NEXT puts together has two attributes 'y_1'", None),
    ("FROM A FOLD{, , } B", "Q107", "B", "in its first, which has no 'z'", "SELECT *, 0 AS name"),
    ("SELECT x AS start FROM A", "Q108", "x AS start", "a column 'start' of their own", "start AS start_of_event"),
    ("SELECT x AS DUR FROM A", "Q108", "x AS DUR", "the name DUR", "take another name"),
    ("SELECT * FROM (SELECT x AS times FROM A PUBLISH P)", "Q108", "x AS times", "a column 'times'", None),
    ("FROM A NEXT{y > 3 min} B", "Q109", "3 min", "a length of time in NEXT", "WITHIN 10 min"),
    ("FROM (FROM A PUBLISH P) NEXT (FROM B PUBLISH P)", "Q111", None, "two parts of the query publish P", "two names"),
    ("FROM A PUBLISH A", "Q111", None, "A is published and read", "another name"),
]


def refused(text: str, code: str, place: str | None, message: str, hint: str | None, error: QueryError) -> None:
    """Check one error: its code, its place and its words."""
    assert error.code == f"ACEP-{code}", error
    assert message in error.message
    assert hint is None or (error.hint and hint in error.hint), error.hint
    if place is not None:
        assert text[error.start : error.end] == place
        assert error.caret().count("^") == max(1, len(place))


@pytest.mark.parametrize(("text", "code", "place", "message", "hint"), SYNTAX, ids=[one[0] for one in SYNTAX])
def test_texts_that_are_no_query(text: str, code: str, place: str | None, message: str, hint: str | None):
    with pytest.raises(QueryError) as caught:
        parse_cel(text)
    refused(text, code, place, message, hint, caught.value)


@pytest.mark.parametrize(("text", "code", "place", "message", "hint"), NAMES, ids=[one[0] for one in NAMES])
def test_names_that_make_no_sense(text: str, code: str, place: str | None, message: str, hint: str | None):
    with pytest.raises(QueryError) as caught:
        resolved(parse_cel(text), AB)
    refused(text, code, place, message, hint, caught.value)


def test_the_letter_of_example_9_is_refused():
    """The paper closes a bracket before FOLD: where there is no Price_1 yet."""
    text = EXAMPLES["Example 9"].replace("(Stock)\n", "(Stock))\n").replace("Stock))\n  NEXT", "Stock)\n  NEXT")
    with pytest.raises(QueryError, match="ACEP-Q103: no attribute 'Price_1'"):
        resolved(parse_cel(text), SCHEMAS)


def test_errors_are_refused_until_an_engine_can_run_them():
    with pytest.raises(UnsupportedError, match="ACEP-Q900"):
        resolved(parse_cel("FROM A NEXT C WITHIN 3 ERRORS 1"), AB)


def test_a_column_dur_is_refused():
    with pytest.raises(QueryError, match="ACEP-Q108"):
        resolved(parse_cel("FROM A"), {"A": ("x", "DUR")})
