"""Queries in CEL in a set: streams of streams as brute force says, in any split, order within an epoch, and restart."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import DataError, QueryError, QuerySet, UsageError, compile_query
from acep_approx.subscriptions.state import SET
from tests.cases import cases
from tests.cel_sets import REFUSED, among_patterns, comings_and_goings, disagreement
from tests.cel_worlds import cel_set, cel_world

PARTS = 6
MOST_REFUSED = 0.15
EXAMPLE = "SELECT a, x AS c FROM (SELECT x AS a FROM A) NEXT{} (SELECT x FROM FILTER{x > 1}(A) NEXT{} B)"
IBM = "SELECT Price AS p FROM FILTER{Name = 'IBM'}(Stock) PUBLISH Ibm"


def quotes(*prices: int, name: str = "IBM", first: int = 0) -> list[dict[str, Any]]:
    return [{"ts": t, "type": "Stock", "Name": name, "Price": price} for t, price in enumerate(prices, first)]


# --- brute force ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_queries_that_read_one_another_are_as_brute_force_says(part: int) -> None:
    found = []
    for seed in range(part, cases(900, 32), PARTS):
        intervals = seed % 3 == 0
        found.append(disagreement(seed, cel_set(seed, intervals=intervals), intervals=intervals))
        assert found[-1] in ("", REFUSED), seed
    assert found.count(REFUSED) <= 1 + len(found) * MOST_REFUSED


@pytest.mark.parametrize("part", range(PARTS))
def test_a_query_of_several_automata_is_as_brute_force_says(part: int) -> None:
    for seed in range(part, cases(600), PARTS):
        intervals = seed % 3 == 0
        world = cel_world(seed, depth=random.Random(seed).choice((2, 3)), intervals=intervals)
        assert disagreement(seed, world, intervals=intervals) in ("", REFUSED), seed


@pytest.mark.parametrize("output", ["points", "counts"])
def test_points_and_counts_are_those_of_brute_force(output: str) -> None:
    for seed in range(cases(200, 10)):
        intervals = seed % 3 == 0
        world = cel_set(seed, intervals=intervals)
        assert disagreement(seed, world, intervals=intervals, output=output) in ("", REFUSED), seed


@pytest.mark.parametrize("part", range(PARTS))
def test_queries_that_come_and_go_are_as_brute_force_says(part: int) -> None:
    for seed in range(part, cases(600, 24), PARTS):
        assert comings_and_goings(seed, cel_set(seed)) in ("", REFUSED), seed


@pytest.mark.parametrize("part", range(PARTS))
def test_queries_in_cel_among_patterns_are_as_brute_force_says(part: int) -> None:
    for seed in range(part, cases(300, 18), PARTS):
        assert not among_patterns(seed, cel_world(seed)), seed


# --- by hand ----------------------------------------------------------------------------------------------------


def test_hidden_streams_belong_to_one_query() -> None:
    """One that comes later sees nothing that began before."""
    events = [{"ts": t, "type": name, "x": t} for t, name in enumerate("ABABAABB", 1)]
    desk = QuerySet()
    desk.add(EXAMPLE, id="first")
    desk.push(events[:4])
    desk.add(EXAMPLE, id="second")
    rows = desk.push(events[4:])["second"].to_pylist() + desk.finish()["second"].to_pylist()
    alone = QuerySet()
    alone.add(EXAMPLE)
    assert [row | {"query": "q1"} for row in rows] == alone.match(events[4:])["q1"].to_pylist() != []
    assert desk.streams() == {}
    assert desk.levels() == {1: ["first", "second"]}
    desk.remove("first")
    assert [*desk] == ["second"]


def test_cel_and_patterns_read_one_another() -> None:
    desk = QuerySet()
    desk.add("SELECT x AS low FROM FILTER{x > 2}(A) PUBLISH High", id="high")
    pair = "PATTERN SEQ(High h, B b) WHERE b.x > h.low WITHIN 5 RETURN h.low AS low, b.x AS x PUBLISH Pair"
    desk.add(pair, id="pair")
    desk.add("SELECT low, x FROM FILTER{x - low > 1}(Pair)", id="far")
    rows = [("A", 1), ("A", 3), ("B", 4), ("B", 7)]
    result = desk.match([{"ts": t, "type": name, "x": x} for t, (name, x) in enumerate(rows)])
    assert [(row["low"], row["x"], row["start"], row["end"]) for row in result["far"].to_pylist()] == [(3, 7, 1, 3)]
    assert result["pair"].num_rows == 2
    whole = {(row["query"], row["errors"], row["times"]) for row in result.to_arrow().to_pylist()}
    assert whole == {("high", 0, 1), ("pair", 0, 1), ("far", 0, 1)}


def test_what_was_derived_several_times_is_several_events() -> None:
    desk = QuerySet()
    desk.add("SELECT x FROM A NEXT{} B PUBLISH P", id="p")
    desk.add("SELECT x AS y FROM P", id="cel")
    desk.add("PATTERN P p WITHIN 1 RETURN p.x AS y", id="pattern")
    rows = [(1, "A"), (1, "A"), (2, "B")]
    found = desk.match([{"ts": ts, "type": name, "x": 7} for ts, name in rows])
    assert [row["times"] for row in found["p"].to_pylist()] == [2]
    assert [row["y"] for row in found["cel"].to_pylist()] == [7, 7]
    assert found["pattern"].num_rows == 2


def test_ways_without_number_are_told_before_they_fill_the_memory() -> None:
    """A FOLD of which each iteration has six next events: 6 ** 12 ways."""
    desk = QuerySet()
    desk.add("SELECT x FROM A FOLD{,,} (SELECT x FROM A) PUBLISH P")
    desk.add("SELECT x FROM P", id="reader")
    with pytest.raises(DataError, match=r"ACEP-D083: 'q1' publishes results that were derived .* times"):
        desk.push([{"ts": ts, "type": "A", "x": 1} for ts in range(13) for _ in range(6)])


def test_all_attributes_are_those_of_the_stream_whatever_others_publish() -> None:
    """Also of columns that came later, after a restart."""
    desk = QuerySet()
    desk.add("SELECT * FROM A NEXT{} B", id="all")
    desk.add("SELECT x AS p, 2 AS q FROM A PUBLISH P", id="p")
    desk.add("SELECT * FROM P NEXT{} A", id="above")
    desk.push([{"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 2}])
    desk.add("SELECT v FROM A", id="v")
    desk.push([{"ts": 3, "type": "A", "x": 3, "v": 9}])
    desk = QuerySet.from_state(desk.state_bytes())
    result = desk.push([{"ts": 4, "type": "B", "x": 4, "v": 9}, {"ts": 5, "type": "B", "x": 4, "v": 9}])
    assert result["all"].column_names == ["query", "x_1", "x", "start", "end", "times"]
    assert result["above"].column_names == ["query", "p", "q", "x", "start", "end", "times"]
    assert result["v"].column("v").to_pylist() == [9]


@pytest.mark.parametrize(
    ("time", "start", "unit"),
    [
        (pa.int64(), pa.int64(), "ms"),
        (pa.timestamp("ms", "Europe/Paris"), pa.timestamp("us"), None),
        (pa.string(), pa.string(), None),
        (pa.float64(), pa.int64(), "s"),
    ],
)
def test_when_events_began_is_told_in_any_kind_of_time(time: Any, start: Any, unit: Any) -> None:
    ends, starts = [3_000, 6_000, 9_000, 12_000], [1_000, 2_000, 8_000, 10_000]

    def column(values: list[int], type_: Any) -> pa.Array:
        stamps = pa.array(values, pa.int64()).cast(pa.timestamp("ms", "UTC"))
        return pa.array(values).cast(type_) if unit else stamps.cast(type_) if type_ != pa.string() else pa.array(
            [f"1970-01-01T00:00:{value // 1_000:02}Z" for value in values]
        )

    table = pa.table({"ts": column(ends, time), "began": column(starts, start), "type": ["A"] * 4, "x": range(4)})
    desk = QuerySet(start="began", unit=unit)
    desk.add("SELECT x AS p FROM A PUBLISH P")
    desk.add("SELECT p, x FROM P NEXT{} A", id="pairs")
    found = desk.match(table)["pairs"]
    assert [(row["p"], row["x"]) for row in found.to_pylist()] == [(0, 2), (1, 2), (2, 3)]
    plain = compile_query("SELECT x_1 AS p, x FROM A NEXT{} A").match(table, start="began", unit=unit).to_arrow()
    assert found.select(["start", "end"]).equals(plain.select(["start", "end"]))


def test_a_window_holds_for_events_that_are_long_by_themselves() -> None:
    desk = QuerySet(start="left")
    desk.add("SELECT x FROM A WITHIN 2", id="all")
    desk.add("SELECT x FROM A PUBLISH P", id="p")
    desk.add("SELECT x FROM P WITHIN 2", id="short")
    found = desk.match([{"ts": 9, "left": 6, "type": "A", "x": 1}, {"ts": 9, "left": 7, "type": "A", "x": 2}])
    assert [found[name].column("x").to_pylist() for name in ("all", "p", "short")] == [[2], [1, 2], [2]]


# --- what does not fit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["SELECT q FROM Ibm", "SELECT * FROM Stock NEXT{$2.q > 1} (Ibm NEXT{} Stock)"])
def test_an_attribute_that_a_published_stream_lacks_is_told_once_that_is_known(text: str) -> None:
    desk = QuerySet()
    desk.add(text, id="wrong")
    desk.add(IBM, id="ibm")
    with pytest.raises(QueryError, match=r"ACEP-Q103: the query 'wrong': no attribute 'q'.*\(line 1") as caught:
        desk.push(quotes(1, 2))
    assert "^" in str(caught.value)
    assert caught.value.text[caught.value.start : caught.value.end] in ("q", "$2.q")
    desk.remove("wrong")
    desk.add("SELECT p FROM Ibm", id="right")
    desk.push(quotes(3, 4))
    assert desk.finish()["right"].column("p").to_pylist() == [4]


def test_a_query_that_does_not_fit_is_left_out_with_its_parts() -> None:
    desk = QuerySet()
    desk.add("SELECT * FROM Stock NEXT{$2.q > 1} (Ibm NEXT{} Stock) PUBLISH Wrong", id="wrong")
    desk.add("SELECT * FROM Wrong", id="reader")
    desk.add(IBM, id="ibm")
    misfits: dict[str, str] = {}
    found = list(desk.batches(quotes(1, 2), on_misfit=lambda id_, error: misfits.update({id_: error.message})))
    assert {*misfits} == {"wrong", "reader"}
    assert misfits["wrong"].startswith("no attribute 'q'")
    assert sum(one.rows for one in found) == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT $1.x FROM A", "Q102"),
        ("SELECT * FROM A NEXT{$.x = 3} (B NEXT C)", "Q102"),
        ("SELECT * FROM (SELECT x FROM P PUBLISH P) NEXT A", "Q111"),
        ("SELECT start FROM A", "Q108"),
        ("SELECT x FROM FILTER{x > :p}(A)", "Q085"),
    ],
)
def test_what_no_stream_makes_right_is_told_at_once(text: str, code: str) -> None:
    desk = QuerySet()
    with pytest.raises(QueryError, match=code):
        desk.add(text)
    assert [*desk] == []


def test_circles_are_refused_and_the_set_stays_as_it_was() -> None:
    desk = QuerySet()
    desk.add("SELECT p AS x FROM Inner", id="waits")
    desk.add("SELECT x FROM P PUBLISH Q", id="q")
    with pytest.raises(UsageError, match=r"ACEP-U061.*'wrong' would read what it publishes: P -> Q -> P"):
        desk.add("SELECT p FROM (SELECT x AS p FROM A PUBLISH Inner) NEXT{} (Q NEXT{} B) PUBLISH P", id="wrong")
    assert [*desk] == ["waits", "q"]
    assert desk.streams() == {"Q": (["q"], [])}
    desk.add("SELECT x AS p FROM A PUBLISH Inner", id="inner")
    assert desk.match([{"ts": 1, "type": "A", "x": 3}])["waits"].column("x").to_pylist() == [3]


def test_a_subquery_publishes_for_others() -> None:
    desk = QuerySet()
    msft = "(SELECT Price AS MSFT FROM FILTER{Name = 'MSFT'}(Stock) PUBLISH Msft)"
    desk.add(f"SELECT MSFT, p FROM {msft} NEXT{{}} Ibm", id="a")
    desk.add(IBM, id="ibm")
    desk.add("PATTERN Msft m WITHIN 1 RETURN m.MSFT AS price", id="reader")
    assert desk.streams() == {"Msft": (["a"], ["a", "reader"]), "Ibm": (["ibm"], ["a"])}
    found = desk.match([*quotes(25, name="MSFT"), *quotes(90, 91, first=1)])
    assert [(row["MSFT"], row["p"]) for row in found["a"].to_pylist()] == [(25, 90)]
    assert found["reader"].column("price").to_pylist() == [25]
    with pytest.raises(UsageError, match=r"ACEP-U060: what is published as 'Msft' is a part of 'a'"):
        found["Msft"]
    with pytest.raises(UsageError, match=r"ACEP-U063.*'reader'"):
        desk.remove("a")
    desk.remove("a", cascade=True)
    assert [*desk] == ["ibm"]


def test_an_event_that_ends_before_it_begins_is_told_with_its_column() -> None:
    desk = QuerySet(start="left")
    desk.add("PATTERN A a WITHIN 1 RETURN a.x AS x PUBLISH P")
    desk.add("SELECT x FROM P NEXT{} A")
    with pytest.raises(DataError, match=r"ACEP-D090: row 1.*\n.*'left'"):
        desk.push([{"ts": t, "left": left, "type": "A", "x": 1} for t, left in ((1, 1), (2, 9), (3, 9))])


def test_what_compile_query_made_reads_streams_too() -> None:
    desk = QuerySet()
    desk.add(compile_query("SELECT p AS q FROM Ibm"), id="reader")
    desk.add(compile_query(IBM), id="ibm")
    desk = QuerySet.from_state(desk.state_bytes())
    assert desk.match(quotes(5))["reader"].column("q").to_pylist() == [5]


def test_messages_do_not_name_hidden_streams() -> None:
    desk = QuerySet()
    desk.add("SELECT Price FROM Stock NEXT{} (SELECT Name AS Price FROM Stock NEXT{} (SELECT Price AS p FROM Stock))")
    with pytest.raises(DataError, match=r"ACEP-D082.*what 'q1' publishes as a stream of its own"):
        desk.push(quotes(1, 2))


@pytest.mark.parametrize("saves", [False, True])
def test_attributes_that_nobody_reads_are_in_nobodys_way(saves: bool) -> None:
    """Also if others read those of their names in streams where they are of another type, and come later."""
    desk = QuerySet()
    desk.add("SELECT x FROM P NEXT{} A", id="one")
    desk.add("SELECT 'text' AS p FROM A PUBLISH P")
    event = {"ts": 1, "type": "A", "x": 7}
    if saves:
        desk.push([event | {"ts": -1}, event | {"ts": 0}])
        desk = QuerySet.from_state(desk.state_bytes())
    desk.add("SELECT p FROM Q", id="other")
    desk.add("SELECT x AS p FROM A PUBLISH Q")
    found = desk.push([event, event | {"ts": 2}, event | {"ts": 3}])
    assert [found[name].num_rows for name in ("one", "other")] == [1 + 2 * saves, 2]


def test_a_stream_gets_other_attributes_while_the_set_runs() -> None:
    """Those that read the old one see the epoch that waits, those that read the new one what comes after it."""
    desk = QuerySet()
    shown: list[tuple[str, Any]] = []
    values = ("x", "'text'", "x", "1 AS y, 'text'")
    for tick, value in enumerate(values):
        for name in ("publisher", "reader"):
            if name in desk:
                desk.remove(name, cascade=True)
        desk.add("SELECT * FROM P", id="reader")
        desk.add(f"SELECT {value} AS p FROM A PUBLISH P", id="publisher")
        found = desk.push([{"ts": tick, "type": "A", "x": 7}])
        shown += [tuple(row.items())[1:-3] for row in found["reader"].to_pylist()]
        desk = QuerySet.from_state(desk.state_bytes())
    shown += [tuple(row.items())[1:-3] for row in desk.finish()["reader"].to_pylist()]
    assert shown == [(("p", 7),), (("p", "text"),), (("p", 7),), (("y", 1), ("p", "text"))]


def test_streams_of_a_state_that_are_not_as_they_were_written_are_refused() -> None:
    desk = QuerySet()
    desk.add(IBM, id="ibm")
    desk.push(quotes(1, 2))
    saved = SET.unpack(desk.state_bytes())
    saved.parts["entries"].parts["0"].head["columns_of"] = {"Other": ["Price"]}
    with pytest.raises(DataError, match=r"ACEP-D040: the streams that 'ibm' reads"):
        QuerySet.from_state(SET.pack(saved))
