"""Why a query in CEL has a result around a time, or none: as the engine says, with the events and the edges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acep_approx import UsageError, compile_query
from acep_approx.api.query import Query
from tests.cases import cases
from tests.cel_worlds import cel_world
from tests.command_line import acep

FALLING = "SELECT price_1 AS high, price AS low FROM Stock FOLD{$2.name = $.name, $2.price < $.price, } Stock"
PRICES = [
    {"ts": tick, "type": "Stock", "name": name, "price": price}
    for tick, name, price in ((1, "IBM", 90), (2, "IBM", 85), (3, "Dell", 20), (4, "IBM", 95), (5, "IBM", 80))
]


def asked(query: Query, around: int, events: Any = PRICES, **more: Any) -> str:
    return query.why(events, around=around, **more).text()


def test_a_result_is_told_by_its_events_and_edges() -> None:
    assert asked(compile_query(FALLING), 2) == (
        "there is a result at 2, from 1 to 2\n"
        "  variable        row  time  type   name  price\n"
        "  forward to q1   0    1     Stock  IBM   90\n"
        "  forward to end  1    2     Stock  IBM   85\n"
        "the result: high 90, low 85"
    )


def test_a_chain_that_an_event_ended() -> None:
    answer = compile_query(FALLING).why(PRICES, around=3)
    assert answer.text() == (
        "no result at 3; the chain that came furthest has 2 events\n"
        "  variable       row  time  type   name  price\n"
        "  forward to q1  0    1     Stock  IBM   90\n"
        "  rebind q1      1    2     Stock  IBM   85\n"
        "it waited at q1 (FOLD) for Stock, after it gave results\n"
        "it was ended by what came next and did not go on: row 3, 4\n"
        "rebind q1, forward to end: 2 of Stock came\n"
        "  1 fails $2.name = $.name; nearest: 'Dell' = 'IBM' (row 2, 3)\n"
        "  1 fails $2.price < $.price; nearest: 95 < 85 (row 3, 4)"
    )
    assert answer.why == "ended"
    assert [one["condition"] for one in answer.awaited[0]["failed"]] == ["$2.name = $.name", "$2.price < $.price"]


def test_a_window_that_closed() -> None:
    answer = compile_query("FROM Stock NEXT{$1.name = $2.name AND $2.price = 95} Stock WITHIN 2").why(PRICES, around=3)
    assert answer.matched  # 2, 4
    answer = compile_query("FROM FILTER{price = 90}(Stock) NEXT{$2.price = 95} Stock WITHIN 2").why(PRICES, around=2)
    assert answer.why == "window closed"
    assert answer.helps == ("WITHIN 3",)
    assert answer.lines[-2:] == ("it would match with", "  WITHIN 3")


def test_the_stream_ended_and_nothing_began() -> None:
    answer = compile_query("FROM FILTER{price = 80}(Stock) NEXT Stock").why(PRICES, around=5)
    assert answer.why == "stream ended"
    assert "the stream ended before it did" in answer.lines
    answer = compile_query("FROM FILTER{price > 100}(Stock) NEXT Stock").why(PRICES, around=5)
    assert answer.headline == "no result at 5: no event there could begin one"
    assert answer.lines[-1] == "  5 fail price > 100; nearest: 95 > 100 (row 3, 4)"


def test_a_chain_that_is_done() -> None:
    answer = compile_query("FROM FILTER{price = 90}(Stock) NEXT Stock").why(PRICES, around=3)
    assert answer.lines == ("it ended with a result: row 1, 2",)


def test_real_time_has_units() -> None:
    stream = [dict(row, ts=f"2024-05-01T08:0{row['ts']}:00Z") for row in PRICES]
    query = compile_query("SELECT * FROM FILTER{DUR >= 2 min}(FILTER{price = 90}(Stock) NEXT Stock) WITHIN 9 min")
    answer = query.why(stream, around="2024-05-01T08:02:00Z")
    assert "  1 fails DUR >= 2 min" in answer.text()


def test_a_key_makes_no_sense() -> None:
    with pytest.raises(UsageError, match="ACEP-U111"):
        asked(compile_query(FALLING), 2, key="IBM")


def test_it_says_what_the_engine_finds() -> None:
    """On random queries and streams, with ties and intervals, at all times; also what a longer window would find."""
    number = there = 0
    for seed in range(cases(300)):
        world = cel_world(seed, subqueries=False, intervals=seed % 2 == 0)
        starts: dict[str, Any] = {"start": "start"} if seed % 2 == 0 else {}
        table = world.table if starts else world.table.drop_columns("start")
        if not table.num_rows:
            continue
        query = compile_query(world.text, within="6") if seed % 3 == 0 else compile_query(world.text)
        found = query.match(table, **starts).to_arrow().to_pylist()
        for around in sorted(set(table["ts"].to_pylist()))[::2]:
            answer = query.why(table, around=around, **starts)
            expected = [row for row in found if row["start"] <= around <= row["end"]]
            assert answer.matched == bool(expected), (seed, around, answer.text())
            number, there = number + 1, there + answer.matched
            if answer.matched:
                ends = {(row["start"], row["end"]) for row in expected}
                began, came = answer.headline.rpartition(" from ")[2].split(" to ")
                assert (int(began), int(came)) in ends
                assert int(answer.events[-1]["time"]) == int(came)
            for help_ in answer.helps:
                wider = compile_query(world.text, within=help_.removeprefix("WITHIN "))
                assert wider.why(table, around=around, **starts).matched, (seed, around)
    assert number > there > number / 20


def test_the_command_line_asks(tmp_path: Any) -> None:
    (tmp_path / "query.cel").write_text(FALLING, encoding="utf-8")
    lines = ["ts,type,name,price,left", *(f"{r['ts']},Stock,{r['name']},{r['price']},0" for r in PRICES)]
    (tmp_path / "events.csv").write_text("\n".join(lines), encoding="utf-8")
    given = (str(tmp_path / "query.cel"), str(tmp_path / "events.csv"), "--around")
    assert "there is a result at 2, from 1 to 2" in acep("why", *given, "2").stdout
    assert "no result at 2" in acep("why", *given, "2", "--start", "left").stdout  # none begins after another one
    answer = json.loads(acep("why", *given, "3", "--format", "json").stdout)
    assert answer["why"] == "ended"
    assert answer["events"][1]["variable"] == "rebind q1"
