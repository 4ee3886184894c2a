"""A set of queries: each gives what it gives alone over its part of the stream, however it is cut, saved, changed."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import AcepError, DataError, QueryError, QuerySet, UsageError, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.subscriptions.state import SET
from tests.cases import cases
from tests.sets_worlds import alone, bag, fed, long_stream, part_of, run_schedule, some_text

PAIR = "PATTERN SEQ(A a, B b) WITHIN 5"
UP = "PATTERN SEQ(S a, S b) WHERE b.p > a.p WITHIN 3 RETURN b.p AS p, a.p AS low PUBLISH Up"


def again(desk: QuerySet) -> QuerySet:
    return QuerySet.from_state(desk.state_bytes())


def prices(*values: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"ts": t, "type": "S", "p": p} for t, p in enumerate(values, first)]


# --- each query alone over its part ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(cases(300)))
def test_queries_that_come_and_go_give_what_they_give_alone(seed: int) -> None:
    random = Random(seed)
    output = random.choice(("matches", "matches", "points", "counts"))
    events = long_stream(random, random.randrange(1, 6))
    saves = random.randrange(3) == 0

    def between(desk: QuerySet) -> QuerySet:
        return again(desk) if saves and random.randrange(2) else desk

    desk = QuerySet(output=output)  # type: ignore[arg-type]
    schedule, begins = run_schedule(random, desk, events, some_text, between)
    for name, (text, since, until) in schedule.seen.items():
        last = begins[until] if until < len(begins) else events.num_rows
        part, first = part_of(events, begins[since], last)
        assert bag(schedule.found.get(name, [])) == bag(alone(text, part, first, output)), (seed, name, text)


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_maximal_matches_of_queries_in_a_set(output: Any) -> None:
    """Those that wait come as they do alone, in any split and over restarts."""
    random = Random(3)
    types = random.choices("ABC", k=300)
    events = pa.table({"ts": range(300), "type": types, "k": random.choices("pq", k=300)})
    texts = [
        "PATTERN SEQ(A a, B b, C c) WITHIN 9 ERRORS 1 MAXIMAL",
        "PATTERN SEQ(A a, B+ b[]) WHERE [k] WITHIN 7 MAXIMAL",
        "PATTERN SEQ(A a, B+ b[]) WHERE [k] WITHIN 7 MAXIMAL CONSUME",
        "PATTERN SEQ(A+ a[], C c) WITHIN 6 FIRST MATCH EVERY 10",
    ]
    desk = QuerySet(output=output)
    for text in texts:
        desk.add(text, id=text)
    found: dict[str, list[Any]] = {text: [] for text in texts}
    for first in range(0, 300, 37):
        for name, table in desk.push(events.slice(first, 37)).items():
            found[name] += table.drop_columns("query").to_pylist()
        desk = again(desk)
    for name, table in desk.finish().items():
        found[name] += table.drop_columns("query").to_pylist()
    for text in texts:
        query = compile_query(text).match(events)
        whole = {"matches": query.to_arrow, "points": query.points, "counts": query.counts}[output]()
        assert bag(found[text]) == bag(whole.to_pylist()) != bag([])


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_a_whole_input_gives_the_results_of_each_query(output: Any) -> None:
    random = Random(7)
    events = long_stream(random, 6)
    texts = [some_text(random) for _ in range(20)]
    desk = QuerySet(output=output)
    for text in texts:
        desk.add(text)
    found = desk.match(events)
    assert found.rows > 50
    for number, text in enumerate(texts, 1):
        rows = found[f"q{number}"].drop_columns("query").to_pylist() if f"q{number}" in found else []
        assert list(map(repr, rows)) == list(map(repr, alone(text, events, 0, output))), text  # NaN is NaN


def test_rows_are_in_the_order_of_their_ends_then_of_the_queries() -> None:
    desk = QuerySet()
    for name in ("second", "first"):
        desk.add("PATTERN SEQ(S a, S b) WITHIN 1", id=name)
    table = desk.match(prices(1, 2, 3)).to_arrow()
    shown = [(row["query"], row["end"]) for row in table.to_pylist()]
    assert shown == [("second", 1), ("first", 1), ("second", 2), ("first", 2)]
    assert table.column("values")[0].as_py() == '{"missing": [], "a": 0, "b": 1}'


# --- epochs ---------------------------------------------------------------------------------------------------


def test_the_open_epoch_waits_and_belongs_to_the_old_set() -> None:
    desk = QuerySet()
    desk.add("PATTERN S a WITHIN 1", id="old")
    assert desk.push(prices(1)).rows == 0
    desk.add("PATTERN S a WITHIN 1", id="new")
    desk.remove("old")
    found = desk.push([{"ts": 0, "type": "S", "p": 2}, {"ts": 1, "type": "S", "p": 3}])
    assert {name: table.column("a").to_pylist() for name, table in found.items()} == {"old": [0, 1]}
    assert {name: table.column("a").to_pylist() for name, table in desk.finish().items()} == {"new": [2]}


def test_pass_time_completes_epochs_and_closes_windows() -> None:
    desk = QuerySet()
    desk.add("PATTERN SEQ(S a, ~(T t)) WITHIN 3")
    desk.push(prices(1))
    assert desk.pass_time(3).rows == 0
    assert desk.pass_time(4).rows == 1
    with pytest.raises(DataError, match=r"ACEP-D007.*3 after 4"):
        desk.push(prices(1, first=3))


def test_time_that_runs_backwards_is_an_error_as_for_a_matcher() -> None:
    desk = QuerySet()
    desk.add(PAIR)
    desk.push(prices(1, 2))
    with pytest.raises(DataError, match="ACEP-D007"):
        desk.push(prices(1))
    with pytest.raises(DataError, match="ACEP-D007"):
        desk.push(prices(1, 2, first=2)[::-1])
    assert desk.push(prices(3, first=9)).rows == 0  # it goes on


def test_wrong_columns_are_told_before_an_event_is_taken() -> None:
    desk = QuerySet()
    desk.add("PATTERN SEQ(S a, S b) WHERE b.p > a.p WITHIN 5", id="right")
    desk.push(prices(1, 2))
    desk.add("PATTERN S a WHERE a.wrong > 1 WITHIN 5", id="wrong")
    with pytest.raises(AcepError, match="wrong"):
        desk.push(prices(3, first=2))
    desk.remove("wrong")
    assert desk.push(prices(3, first=2)).rows == 1
    assert desk.finish().rows == 2


def test_a_query_can_read_columns_that_came_later() -> None:
    desk = QuerySet()
    desk.add("PATTERN S a WITHIN 1", id="old")
    desk.push(prices(1, 2))
    desk.add("PATTERN S a WHERE a.v > 1 WITHIN 1", id="new")
    desk.push([{"ts": 1, "type": "S", "p": 4, "v": 7}, {"ts": 2, "type": "S", "p": 4, "v": 7}])
    assert {name: table.column("a").to_pylist() for name, table in desk.finish().items()} == {"old": [3], "new": [3]}


def test_events_out_of_order_wait() -> None:
    random = Random(3)
    texts = [some_text(random) for _ in range(8)]
    events = long_stream(random, 5)
    shuffled = sorted(range(events.num_rows), key=lambda row: events.column("ts")[row].as_py() + random.random() * 4)
    plain, desk = QuerySet(), QuerySet(reorder=5)
    for text in texts:
        for one in (plain, desk):
            one.add(text)
    # events of one time keep the order in which they come
    arrived = events.take(shuffled)
    in_order = np.argsort(arrived.column("ts").to_numpy(), kind="stable")
    rows = 0
    for first in range(0, events.num_rows, 3):
        rows += desk.push(arrived.slice(first, 3)).rows
        desk = again(desk)
    rows += desk.finish().rows
    assert desk.late_count == 0
    assert rows == plain.match(arrived.take(in_order)).rows > 0


def test_late_events_are_counted_and_can_be_had() -> None:
    desk = QuerySet(reorder=1)
    desk.add("PATTERN SEQ(S a, S b) WITHIN 9 RETURN a.p AS x, b.p AS y")
    found = desk.push([{"ts": t, "type": "S", "p": t} for t in (3, 2, 5, 1, 4)])
    assert desk.late_count == 1
    assert desk.late_in_match == 0
    desk.match([{"ts": t, "type": "S", "p": t} for t in (3, 1, 5, 1)])
    assert (desk.late_count, desk.late_in_match) == (1, 2)
    desk = again(desk)
    assert desk.late().select(["row", "ts"]).to_pylist() == [{"row": 3, "ts": 1}]
    assert desk.late().num_rows == 0
    pairs = [(row["x"], row["y"]) for part in (found, desk.finish()) for row in part["q1"].to_pylist()]
    assert sorted(pairs) == [(2, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 5)]


def test_reorder_says_what_its_times_are() -> None:
    with pytest.raises(UsageError, match="ACEP-U056"):
        QuerySet(reorder="soon")
    desk = QuerySet(reorder="5 s")
    desk.add(PAIR)
    with pytest.raises(DataError, match=r"ACEP-D073: reorder='5 s'"):
        desk.push(prices(1))


def test_events_without_time_get_that_of_the_clock_if_asked() -> None:
    desk = QuerySet(stamp=True)
    desk.add("PATTERN SEQ(S a, S b) WITHIN 1 h")
    desk.push([{"type": "S"}])
    desk.push([{"type": "S"}])
    assert desk.finish().rows == 1
    some = QuerySet(stamp=True, unit="s")
    some.add("PATTERN SEQ(S a, S b) WITHIN 5 s")
    some.push([{"ts": 7, "type": "S"}, {"ts": None, "type": "S"}])
    assert some.finish().rows == 0
    with pytest.raises(UsageError, match="ACEP-U067"):
        QuerySet(stamp=True).push(prices(1))
    plain = QuerySet()
    plain.add(PAIR)
    with pytest.raises(DataError, match="ACEP-D004"):
        plain.push([{"ts": 1, "type": "S"}, {"ts": None, "type": "S"}])


# --- streams of streams ---------------------------------------------------------------------------------------

PUBLISHERS = (
    "PATTERN SEQ(A a, B b) WITHIN 4 RETURN a.x AS u, b.y AS v PUBLISH P",
    "PATTERN B b WHERE b.x > 1 WITHIN 4 RETURN b.x AS u, b.y AS v PUBLISH P",
    "PATTERN SEQ(A a, A b) WHERE [g] WITHIN 3 RETURN b.s AS s, b.x AS w PUBLISH R",
    "PATTERN SEQ(C a, ~(A n), B b) WITHIN 6 RETURN b.x AS x PUBLISH R2",
)
READERS = (
    "PATTERN SEQ(P p, A a) WHERE a.x >= p.u WITHIN 4 RETURN p.u AS c, a.x AS d",
    "PATTERN SEQ(A a, P p) WITHIN 0 RETURN p.v AS c, a.x AS d",
    "PATTERN SEQ(P p, ~(B n), P q) WITHIN 5 RETURN p.u AS c, q.u AS d",
    "PATTERN SEQ(P p, R r) WHERE partition_contiguity WITHIN 5 RETURN p.u AS c, r.s AS d",
    "PATTERN SEQ(R r, ANY a) WITHIN 3 events RETURN r.s AS c, a.ts AS d",
    "PATTERN SEQ(R2 r, A a) WHERE a.x = r.x WITHIN 8 RETURN r.start AS c, a.ts AS d",
    "PATTERN SEQ(A a, R r) WHERE a.s = r.s WITHIN 5 SIMULTANEOUS RETURN r.w AS c, a.ts AS d",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(cases(100)))
def test_streams_of_streams_are_queries_fed_by_hand(seed: int) -> None:
    """Two levels, any split, any state; queries in any order of adding."""
    random = Random(seed)
    events = long_stream(random, 4)
    publishers = random.sample(PUBLISHERS, 4)
    readers = random.sample(READERS, 5)
    texts = [*publishers, *readers]
    desk = QuerySet()
    for place in random.sample(range(len(texts)), len(texts)):
        desk.add(texts[place], id=str(place))
    order = [texts[int(name)] for name in desk]
    alone_ = {text: compile_query(text).match(events).to_arrow() for text in publishers}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in desk}
    first = 0
    while first < events.num_rows:
        rows = random.choice((1, 2, 7))
        for name, table in desk.push(events.slice(first, rows)).items():
            found[name] += table.to_pylist()
        first += rows
        desk = again(desk) if random.randrange(3) == 0 else desk
    for name, table in desk.finish().items():
        found[name] += table.to_pylist()
    for place, text in enumerate(texts):
        mine = [{key: value for key, value in row.items() if key != "query"} for row in found[str(place)]]
        if place < len(publishers):
            assert bag(mine) == bag(alone_[text].to_pylist())
            continue
        names = [one for one in order if one in publishers and _stream(one) in text.replace("(", " ").split()]
        expected = fed(text, events, [(_stream(one), alone_[one]) for one in names])
        assert bag(mine) == bag(expected.to_pylist()), (seed, text)


def _stream(text: str) -> str:
    return text.rsplit(maxsplit=1)[-1]


def test_three_levels_and_a_stream_with_two_publishers() -> None:
    desk = QuerySet()
    desk.add("PATTERN SEQ(Up u, Up w) WHERE w.p > u.p WITHIN 9 RETURN w.p AS p PUBLISH Upper", id="upper")
    desk.add("PATTERN Upper x WITHIN 9 RETURN x.p AS p, x.start AS since", id="top")
    desk.add(UP, id="up")
    desk.add("PATTERN S s WHERE s.p = 9 WITHIN 9 RETURN s.p AS p, s.p AS low PUBLISH Up", id="nine")
    found = desk.match(prices(1, 2, 9))
    assert found["top"].select(["p", "since"]).to_pylist() == [{"p": 9, "since": 1}] * 3
    assert found["Up"].column("query").to_pylist() == ["up"] * 3 + ["nine"]
    assert found["Upper"].num_rows == 3


def test_what_is_published_under_the_name_of_a_type_joins_its_events() -> None:
    desk = QuerySet()
    desk.add("PATTERN S s WHERE s.p > 1 WITHIN 9 RETURN s.p AS p PUBLISH T", id="t")
    desk.add("PATTERN T t WITHIN 9 RETURN t.p AS p", id="all")
    events = [{"ts": 1, "type": "T", "p": 0}, *prices(2, first=2)]
    assert desk.match(events)["all"].column("p").to_pylist() == [0, 2]


def test_publishing_plays_no_role_for_a_query_alone() -> None:
    query = compile_query(UP)
    assert query.plan.query.publish == "Up"
    assert compile_query(str(query)) == query
    assert query.plan.fingerprint() == compile_query(UP.replace(" PUBLISH Up", "")).plan.fingerprint()
    assert query.match(prices(1, 2)).to_arrow().column("p").to_pylist() == [2]


def test_points_of_a_set_whose_queries_publish() -> None:
    """Others read its matches all the same."""
    desk = QuerySet(output="points")
    desk.add(UP, id="up")
    desk.add("PATTERN Up u WITHIN 9", id="top")
    found = desk.match(prices(1, 2, 3))
    assert found["up"].num_rows == 2
    assert found["top"].num_rows == 3  # events that complete a match: three were published
    assert again(desk).match(prices(1, 2, 3)).rows == 5


# --- what does not fit ----------------------------------------------------------------------------------------


def test_a_circle_is_refused_with_its_names() -> None:
    desk = QuerySet()
    for name, reads in (("B", "A"), ("C", "B"), ("D", "C")):
        desk.add(f"PATTERN {reads} a WITHIN 1 PUBLISH {name}")
    with pytest.raises(UsageError, match=r"ACEP-U061.*A -> B -> C -> D -> A"):
        desk.add("PATTERN D a WITHIN 1 PUBLISH A", id="wrong")
    with pytest.raises(UsageError, match=r"ACEP-U061.*E -> E"):
        desk.add("PATTERN E a WITHIN 1 PUBLISH E")
    assert [*desk] == ["q1", "q2", "q3"]


def test_a_publisher_goes_only_with_its_readers() -> None:
    desk = QuerySet()
    desk.add(UP, id="up")
    desk.add("PATTERN Up u WITHIN 1 PUBLISH V", id="v")
    desk.add("PATTERN V u WITHIN 1", id="w")
    with pytest.raises(UsageError, match=r"ACEP-U063.*'up' cannot be removed.*'v'"):
        desk.remove("up")
    desk.remove("up", cascade=True)
    assert [*desk] == []
    desk.add(UP, id="up")
    desk.add(UP.replace("b.p > a.p", "b.p < a.p"), id="down")
    desk.add("PATTERN Up u WITHIN 1", id="v")
    desk.remove("up")  # the other one feeds it
    assert [*desk] == ["down", "v"]


def test_a_stream_that_is_read_already_cannot_be_published_later() -> None:
    desk = QuerySet()
    desk.add("PATTERN Up u WITHIN 1", id="reader")
    desk.push(prices(1, 2))
    with pytest.raises(UsageError, match=r"ACEP-U062.*'reader' reads 'Up' and runs already"):
        desk.add(UP, id="up")
    desk.remove("reader")
    desk.add(UP, id="up")
    desk.add("PATTERN Up u WITHIN 1", id="reader")
    desk.push(prices(1, 2, 3, first=1))
    assert desk.finish()["reader"].num_rows == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PATTERN S s WITHIN 1 RETURN s.p AS ts PUBLISH Up", "ACEP-D080"),
        ("PATTERN S s WITHIN 1 RETURN s.p AS other PUBLISH Up", "ACEP-D081"),
        ("PATTERN S s WITHIN 1 RETURN 'high' AS p, 1 AS low PUBLISH Up", "ACEP-D082"),
    ],
)
def test_attributes_that_do_not_fit(text: str, code: str) -> None:
    desk = QuerySet()
    desk.add(UP, id="up")
    desk.add(text, id="other")
    desk.add("PATTERN Up u WITHIN 1")
    with pytest.raises(DataError, match=f"{code}.*'other'"):
        desk.push(prices(1, 2))


def test_whole_numbers_and_floats_are_one_attribute() -> None:
    desk = QuerySet()
    desk.add("PATTERN S s WITHIN 1 RETURN s.p AS p PUBLISH Up")
    desk.add("PATTERN S s WITHIN 1 RETURN s.p / 2 AS p PUBLISH Up")
    desk.add("PATTERN Up u WITHIN 1 RETURN u.p AS p", id="all")
    assert desk.match(prices(1, 2))["all"].column("p").to_pylist() == [1.0, 0.5, 2.0, 1.0]


def test_a_query_whose_matches_wait_cannot_publish() -> None:
    with pytest.raises(QueryError, match="ACEP-Q930") as caught:
        QuerySet().add("PATTERN SEQ(A a, ~(B b)) WITHIN 5 PUBLISH W")
    assert "PUBLISH" in caught.value.caret()


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: QuerySet(emit="early"), "emit="),
        (lambda: QuerySet(op="op"), "op="),
        (lambda: QuerySet().add("PATTERN AUTOMATON(q0 -> q1 ON A a FINAL q1) WITHIN 5"), "AUTOMATON"),
    ],
)
def test_what_does_not_go_with_a_set_yet(call: Any, names: str) -> None:
    with pytest.raises(UsageError, match=f"ACEP-U064.*{names}") as caught:
        call()
    assert caught.value.hint


def test_wrong_use() -> None:
    desk = QuerySet()
    desk.add(PAIR, id="mine")
    for call, code in (
        (lambda: desk.add(PAIR, id="mine"), "ACEP-U060"),
        (lambda: desk.remove("mime"), "ACEP-U060.*'mime'(.|\n)*'mine'"),
        (lambda: desk.finish()["other"], "ACEP-U060"),
        (lambda: desk.add("PATTERN A query WITHIN 5"), "ACEP-U066"),
        (lambda: QuerySet(output="partial"), "ACEP-U001"),  # type: ignore[arg-type]
        (lambda: QuerySet(colour="red"), "ACEP-U053"),
        (lambda: desk.add(7), "ACEP-U053"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match=code):
            call()


# --- callbacks ------------------------------------------------------------------------------------------------


def test_functions_are_told_once_per_batch_and_may_fail() -> None:
    desk, told = QuerySet(), []

    def fails(table: pa.Table) -> None:
        raise RuntimeError("no disk")

    held = desk.add("PATTERN S s WITHIN 1", id="all").on_match(fails).on_match(lambda table: told.append(table))
    desk.add("PATTERN T t WITHIN 1").on_match(lambda _: pytest.fail("it has no results"))
    desk.push(prices(1, 2, 3))
    desk.push(prices(4, first=3))
    desk.remove("all")
    desk.finish()
    assert [table.column("s").to_pylist() for table in told] == [[0, 1], [2], [3]]
    assert set(told[0].column("query").to_pylist()) == {"all"}
    assert held.failures == 3
    assert str(held.last_error) == "no disk"


# --- state ----------------------------------------------------------------------------------------------------


def test_a_state_holds_queries_ids_and_what_waits() -> None:
    desk = QuerySet(time="ts")
    desk.add(UP, id="up")
    desk.add("PATTERN Up u WITHIN 9 RETURN u.p AS p")
    desk.push(prices(1, 2))
    desk.add("PATTERN S s WITHIN 1")
    desk.remove("q1")
    desk = again(desk)
    assert [*desk] == ["up", "q2"]
    found = [desk.push([{"ts": 1, "type": "S", "p": 5}]), desk.finish()]
    assert [dict.fromkeys(one, 0) | {n: len(t) for n, t in one.items()} for one in found] == [{}, {"up": 3, "q1": 3}]
    assert desk.add(PAIR).id == "q3"
    assert desk.subscription("q3").id == "q3"


def test_bytes_that_are_not_the_state_of_a_set_are_refused() -> None:
    desk = QuerySet()
    desk.add(PAIR)
    desk.push(prices(1, 2))
    state = desk.state_bytes()
    dice = Random(1)
    for _ in range(200):
        at = dice.randrange(len(state))
        harmed = state[:at] + bytes([state[at] ^ dice.randrange(1, 256)]) + state[at + 1 :]
        with pytest.raises(DataError, match="ACEP-D040"):
            QuerySet.from_state(harmed)
    query = compile_query(PAIR)
    matcher = query.matcher()
    assert isinstance(matcher, Matcher)
    matcher.push(prices(1))
    with pytest.raises(DataError, match="ACEP-D040"):
        QuerySet.from_state(matcher.state_bytes())
    with pytest.raises(DataError, match="ACEP-D040"):
        query.from_state(state)


@pytest.mark.parametrize(("what", "value"), [("rows", {}), ("rows", -1), ("reads", {"S": "x"}), ("published", 0.5)])
def test_numbers_of_a_level_that_are_none_are_refused(what: str, value: Any) -> None:
    desk = QuerySet()
    desk.add(UP)
    desk.push(prices(1, 2))
    saved = SET.unpack(desk.state_bytes())
    levels = saved.parts["levels"]
    (levels if what == "published" else levels.parts["level 0"]).head[what] = value
    with pytest.raises(DataError, match="ACEP-D040"):
        QuerySet.from_state(SET.pack(saved))


def test_an_error_in_the_middle_of_a_batch_ends_the_set() -> None:
    desk = QuerySet()
    desk.add("PATTERN SEQ(S a, S b) WHERE b.p > a.p WITHIN 5 RETURN a.p * b.p AS x")
    saved = desk.state_bytes()
    with pytest.raises(DataError, match="ACEP-D201"):
        desk.push([{"ts": t, "type": "S", "p": 2**62 + t} for t in range(3)])
    for call in (lambda: desk.push(prices(1, first=9)), desk.finish, desk.state_bytes):
        with pytest.raises(DataError, match="ACEP-D045"):
            call()
    assert QuerySet.from_state(saved).push(prices(1, 2, 3)).rows == 1


# --- many -----------------------------------------------------------------------------------------------------


def test_rows_of_a_table_are_queries() -> None:
    desk = QuerySet()
    template = "PATTERN SEQ(S a, S b) WHERE b.p > :f * a.p WITHIN :w"
    table = pa.table({"f": [1.0, 2.0], "w": [1, 9], "id": ["near", "far"]})
    assert [one.id for one in desk.add_many(template, table)] == ["near", "far"]
    assert [one.id for one in desk.add_many(template, [{"f": 0, "w": 0}], id="x")] == ["x[0]"]
    found = desk.match(prices(1, 2, 3))
    assert {name: len(rows) for name, rows in found.items()} == {"near": 2, "far": 1}
    with pytest.raises(UsageError, match="ACEP-U070"):
        desk.add_many(template, [{"f": 1}])
    with pytest.raises(UsageError, match="ACEP-U060"):
        desk.add_many(template, [{"f": 1, "w": 2, "id": "new"}, {"f": 1, "w": 2, "id": "far"}])
    assert [*desk] == ["near", "far", "x[0]"]


def test_an_empty_set_and_an_empty_stream() -> None:
    desk = QuerySet()
    assert desk.push(prices(1, 2)).rows == 0
    assert desk.push([]).rows == desk.finish().rows == 0
    assert again(desk).finish().to_arrow().column_names == ["query", "start", "end", "errors", "times", "values"]
    assert QuerySet().match([]).rows == 0
