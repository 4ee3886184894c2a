"""Sets of queries that come and go, by hand: each query alone over its part of the stream, and streams of streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import QuerySet, UnsupportedError, compile_query
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.execution import Execution
from tests.rich_worlds import COLUMNS, Dice, rich_world, stream

Rows = list[dict[str, Any]]


def long_stream(random: Random, worlds: int) -> pa.Table:
    """Streams of several worlds, one after the other, with ties where they meet."""
    rows: Rows = []
    for _ in range(worlds):
        part = stream(Dice(random))
        shift = rows[-1]["ts"] - part[0]["ts"] + random.randrange(3) if rows and part else 0
        rows += [row | {"ts": row["ts"] + shift} for row in part]
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


def some_text(random: Random) -> str:
    """Any query of the language that an engine runs."""
    while True:
        text = rich_world(random, random.randrange(5) == 0).text
        try:
            compile_query(text)
        except UnsupportedError:
            continue
        return text


def bag(rows: Rows) -> Counter[str]:
    """Rows in any order; NaN is NaN."""
    return Counter(repr(sorted(row.items(), key=lambda item: item[0])) for row in rows)


def alone(text: str, events: pa.Table, first: int, output: str) -> Rows:
    """The results of one query over a part of the stream that begins with row ``first``."""
    if not events.num_rows:
        return []
    execution = Execution(compile_query(text).plan, output=output)  # type: ignore[arg-type]
    pipeline = execution.bind(events.schema)
    found: list[pa.Table] = []
    for batch in read_events(open_source(events), pipeline.roles, columns=pipeline.columns, first_row=first):
        found += execution.run(batch)
    return pipeline.joined([*found, execution.finish()]).to_pylist()


@dataclass
class Schedule:
    """What happened to a set: which query saw which pushes, and what came out.

    ``seen``: per id the text, the first push that it sees, and the first one that it does not see any more.
    """

    seen: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    found: dict[str, Rows] = field(default_factory=dict)


def run_schedule(
    random: Random,
    desk: QuerySet,
    events: pa.Table,
    make: Callable[[Random], str],
    between: Callable[[QuerySet], QuerySet],
) -> tuple[Schedule, list[int]]:
    """Push a stream in pieces while queries come and go; gives also where each piece begins."""
    schedule, begins, never = Schedule(), [0], 10**9
    for number in range(random.randrange(1, 4)):
        text = make(random)
        schedule.seen[desk.add(text, id=f"a{number}").id] = (text, 0, never)
    first, push = 0, 0
    while first < events.num_rows:
        rows = random.choice((1, 1, 2, 3, 5, 20))
        note(schedule, desk.push(events.slice(first, rows)))
        first, push = first + rows, push + 1
        begins.append(min(first, events.num_rows))
        desk = between(desk)
        if random.randrange(3) == 0:
            text = make(random)
            schedule.seen[desk.add(text).id] = (text, push, never)
        if len(desk) and random.randrange(4) == 0:
            gone = random.choice([*desk])
            desk.remove(gone)
            text, since, _ = schedule.seen[gone]
            schedule.seen[gone] = (text, since, push)
        desk = between(desk)
    note(schedule, desk.finish())
    return schedule, begins


def note(schedule: Schedule, found: Any) -> None:
    """Keep what came out; the table of everything holds as many rows."""
    whole = found.to_arrow()
    assert Counter(whole.column("query").to_pylist()) == {name: len(table) for name, table in found.items()}
    assert found.rows == whole.num_rows
    for name, table in found.items():
        rows = table.to_pylist()
        assert {row.pop("query") for row in rows} == {name}
        schedule.found.setdefault(name, []).extend(rows)


def part_of(events: pa.Table, first: int, last: int) -> tuple[pa.Table, int]:
    """The epochs whose first event has a row from ``first`` to before ``last``; and the first row of them."""
    ticks = events.column("ts").to_pylist()
    begins: dict[int, int] = {}
    for row, tick in enumerate(ticks):
        begins.setdefault(tick, row)
    rows = [row for row, tick in enumerate(ticks) if first <= begins[tick] < last]
    return events.take(pa.array(rows, pa.int64())), rows[0] if rows else 0


# --- streams of streams ------------------------------------------------------------------------------------------


def fed(text: str, base: pa.Table, published: list[tuple[str, pa.Table]]) -> pa.Table:
    """The results of one query on a stream with what others publish in it: at each time behind its events."""
    rows = [(row["ts"], -1, place, row) for place, row in enumerate(base.to_pylist())]
    for order, (name, table) in enumerate(published):
        for place, row in enumerate(table.to_pylist()):
            own = {key: value for key, value in row.items() if key not in ("errors", "start", "end", "missing")}
            rows.append((row["end"], order, place, {"ts": row["end"], "type": name, "start": row["start"]} | own))
    rows.sort(key=lambda row: row[:3])
    fields = [*base.schema, *(one for _, table in published for one in table.schema)]
    types = {one.name: one.type for one in fields if one.name not in ("errors", "end", "missing")}
    merged = pa.table({name: pa.array([row[3].get(name) for row in rows], type_) for name, type_ in types.items()})
    return compile_query(text).match(merged).to_arrow()
