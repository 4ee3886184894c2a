"""A set whose events come late: each query finds what it finds by itself, after each push; also from a state."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from acep_approx import AcepError, QuerySet, compile_query
from tests.cases import cases

QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WITHIN 4",
    "gone": "PATTERN SEQ(A a, ~(B b)) WHERE [k] WITHIN 3",
    "rises": "PATTERN SEQ(A a, A b) WHERE b.p > a.p WITHIN 6",
}
ASKED: list[dict[str, Any]] = [
    {"watermark": 3},
    {"watermark": 2, "source": "s"},
    {"watermark": 2, "source": "s", "idle": 5},
    {"sequence": "n"},
    {"watermark": 6, "sequence": "n", "source": "s"},
]


def events_of(random: Random, number: int) -> list[dict[str, Any]]:
    """Events of three sources out of order, each with the number that it has in its source."""
    whole = [
        {"ts": n // 2, "type": random.choice("AB"), "k": random.randrange(2), "p": random.randrange(5)}
        for n in range(number)
    ]
    of_source = dict.fromkeys("xyz", 0)
    for n, event in enumerate(whole):
        event |= {"s": "xyz"[n % 3], "n": n}
        of_source[event["s"]] += 1
        event["m"] = of_source[event["s"]]
    return sorted(whole, key=lambda event: event["ts"] + random.randrange(5))


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("seed", range(cases(20, 4)))
def test_each_query_finds_what_it_finds_by_itself(asked: dict[str, Any], seed: int) -> None:
    random = Random(seed)
    if asked.get("source") and asked.get("sequence"):
        asked = asked | {"sequence": "m"}
    events = events_of(random, 40)
    desk, alone = QuerySet(**asked), {name: compile_query(text).matcher(**asked) for name, text in QUERIES.items()}
    for name, text in QUERIES.items():
        desk.add(text, id=name)
    while events:
        some = random.randrange(1, 9)
        piece, events = events[:some], events[some:]
        found = desk.push(piece)
        for name, matcher in alone.items():
            assert rows(found[name]) == rows(matcher.push(piece)), name
            assert desk.watermark == matcher.watermark
        if random.random() < 0.4:
            desk = QuerySet.from_state(desk.state_bytes())
    if desk.late_count:
        assert rows(desk.late(), "row") == rows(alone["pair"].rejected(), "row")
    found = desk.finish()
    assert {name: rows(found[name]) for name in QUERIES} == {name: rows(m.finish()) for name, m in alone.items()}
    assert {matcher.revisions.late for matcher in alone.values()} == {desk.late_count}


def test_texts_of_events_that_have_gone_on_are_not_kept() -> None:
    desk, sizes = QuerySet(watermark=3), []
    desk.add("PATTERN SEQ(A a, B b) WHERE a.name != 'nobody' WITHIN 4")
    for first in range(0, 20_000, 500):
        desk.push([{"ts": n, "type": "AB"[n % 2], "name": f"the event {n}"} for n in range(first, first + 500)])
        sizes.append(len(desk.state_bytes()))
    assert sizes[-1] < sizes[1] + 1000


@pytest.mark.parametrize("asked", [{"watermark": 1}, {"reorder": 0}, {"watermark": 0, "source": "s"}], ids=str)
def test_late_events_of_whole_and_of_live_inputs_are_written_whole(asked: dict[str, Any], tmp_path: Path) -> None:
    events = pa.Table.from_pylist(events_of(Random(3), 60))
    csv.write_csv(events, tmp_path / "events.csv")
    desk = QuerySet(**asked)
    for name, text in QUERIES.items():
        desk.add(text, id=name)
    desk.push(events)
    expected = desk.rejected()
    held = desk.holding
    desk.finish()
    assert desk.holding == held
    found = desk.match(tmp_path / "events.csv", late=tmp_path / "late.parquet")
    assert desk.standing_in_match.holding == held
    late = pq.read_table(tmp_path / "late.parquet")
    assert late.column_names == ["reason", "row", *events.column_names]
    assert late.column("row").to_pylist() == expected.column("row").to_pylist() != []
    assert late.select(events.column_names).to_pylist() == events.take(late.column("row")).to_pylist()
    live = QuerySet(**asked)
    for name, text in QUERIES.items():
        live.add(text, id=name)
    run = live.follow(tmp_path / "events.csv", until_idle=0, late=tmp_path / "late.csv")
    assert sum(part.to_arrow().num_rows for part in run) == found.to_arrow().num_rows
    assert csv.read_csv(tmp_path / "late.csv").to_pylist() == late.to_pylist()
    with pytest.raises(AcepError, match=r"ACEP-U114.*would overwrite the input"):
        live.match(tmp_path / "events.csv", late=tmp_path / "events.csv")
    with pytest.raises(AcepError, match=r"ACEP-U114.*refused, not skipped"):
        QuerySet().match(tmp_path / "events.csv", late=tmp_path / "late.csv")


def rows(table: Any, *only: str) -> list[dict[str, Any]]:
    """The rows of some results, without what names the query; or only some of their columns."""
    names = only or [name for name in table.column_names if name != "query"]
    return table.select(names).to_pylist()  # type: ignore[no-any-return]
