"""Calls with odd columns, in every role that a column can play; how they end is all that is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx import AcepError, QuerySet, compile_query, compile_rules, look
from acep_approx.events import open_source
from history.errors import HistoryError
from tests.odd_columns import ROWS, frames

COLUMNS: dict[str, list[Any]] = {
    "ts": list(range(ROWS)),
    "type": ["A", "B"] * (ROWS // 2),
    "key": ["k"] * ROWS,
    "id": list(range(ROWS)),
    "x": [3, 1, 4, 1, 5, 9, 2, 6],
}
"""The columns of events that are not odd."""
RULES = """
TABLE t (id text, n int DEFAULT 0, KEY (id))
RULE r ON PATTERN A a WITHIN 1 DO UPDATE t SET n = {value} AT ({key}) END
"""
PLAIN = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
NOT_READ = "not read"


@dataclass(frozen=True)
class OddCall:
    """A call, by a name that says all of it.

    Attributes
    ----------
    name : str
    make : callable
        Makes the call; what it returns does not matter.
    must_end_well : bool
        Whether even an ``AcepError`` is wrong.
    """

    name: str
    make: Callable[[], Any]
    must_end_well: bool = False

    def fault(self) -> str | None:
        """What is wrong with how it ends; None: nothing."""
        try:
            self.make()
        except (AcepError, HistoryError) as error:
            return f"{self.name}: {error}" if self.must_end_well or not error.code.startswith("ACEP-") else None
        except TypeError as error:
            is_a_name = "unexpected keyword argument" in str(error) or "keywords must be strings" in str(error)
            return None if is_a_name else f"{self.name}: TypeError: {error}"
        except Exception as error:  # noqa: BLE001  (this is what is looked for)
            return f"{self.name}: {type(error).__name__}: {error}"
        return None


def matched(text: str, **options: Any) -> Callable[[Any], Any]:
    """Runs a query over events, and shows what it found in every way."""
    query = compile_query(text)

    def run(events: Any) -> Any:
        matches = query.match(events, **options)
        matches.to_arrow()
        matches.counts()
        matches._repr_html_()
        list(matches)

    return run


def pushed(text: str, **options: Any) -> Callable[[Any], Any]:
    """Pushes events into a matcher, in two parts where that can be, with its state saved between them."""
    query = compile_query(text)

    def run(events: Any) -> Any:
        matcher = query.matcher(**options)
        for part in halves(events):
            matcher.push(part)
            matcher = query.from_state(matcher.state_bytes())
        matcher.finish()

    return run


def halves(events: Any) -> list[Any]:
    """The first events, and the others."""
    return [events[: ROWS // 2], events[ROWS // 2 :]]


def in_a_set(*texts: str) -> Callable[[Any], Any]:
    """Runs some queries as a set."""

    def run(events: Any) -> Any:
        queries = QuerySet()
        for text in texts:
            queries.add(text)
        queries.match(events).to_arrow()
        for part in halves(events):
            queries.push(part).to_arrow()
        QuerySet.from_state(queries.state_bytes()).finish().to_pandas()

    return run


def by_rules(value: str = "old.n + 1", key: str = "'p'") -> Callable[[Any], Any]:
    """Runs rules that write a value."""
    rules = compile_rules(RULES.format(value=value, key=key))

    def run(events: Any) -> Any:
        rules.check(events)
        rules.run(events).store["t"].to_pylist()

    return run


def with_late(folder: Path) -> Callable[[Any], Any]:
    """Leaves out what comes late, with a file for it: all columns are read."""
    return lambda events: PLAIN.match(events, on_late="skip", late=folder / "late.jsonl").to_arrow()


def as_a_template(events: Any) -> Any:
    """The odd column is one of constants."""
    for text in ("PATTERN SEQ(A a, B b) WHERE b.x > :x WITHIN 5", "SELECT x, :x AS p FROM A"):
        queries = QuerySet()
        queries.add_many(text, open_source(events))
        queries.match([{"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 2}]).to_arrow()


def of_events(events: Any) -> Any:
    """Whatever gives all columns of events back."""
    PLAIN.match(events).events()
    PLAIN.match(events).page()


def once(events: Any) -> Any:
    """Events that can be read only once."""
    if isinstance(events, list):
        return PLAIN.match(iter(events)).to_arrow()
    if isinstance(events, pa.Table):
        reader = pa.RecordBatchReader.from_batches(events.schema, events.to_batches())
        return PLAIN.match(reader).to_arrow() and PLAIN.match(iter(events.to_batches())).to_arrow()
    return PLAIN.match(events, sort=True).to_arrow()


def seen(events: Any) -> Any:
    """Reports of ``look``, in every format."""
    found = look(events)
    return str(found), found.to_dict(), found._repr_html_()


def explained(events: Any) -> Any:
    """Why there is a match, and why there is none."""
    str(compile_query("PATTERN SEQ(A a, B b) WHERE [x] AND b.x > a.x WITHIN 5").why(events, around=3))
    str(compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5").why(events, around=3))


def roles_of_columns(folder: Path) -> Iterator[tuple[str, str, Callable[[Any], Any]]]:
    """What can be done with a column: a name, the column, and what is done with events."""
    sparse_key = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 5"
    for name, run in (
        ("", lambda events: PLAIN.match(events).to_arrow()),
        (", counted and sorted", lambda events: len(PLAIN.match(events, sort=True))),
        (", pushed", pushed(PLAIN.plan.query.text)),
        (", pushed late", pushed(PLAIN.plan.query.text, watermark=2, id="id")),
        (", in a set", in_a_set(PLAIN.plan.query.text)),
        (", by rules", by_rules()),
        (", read once", once),
        (", within a budget", lambda events: PLAIN.match_within(events, "5 runs", audit=0).to_arrow()),
        (", why", lambda events: str(PLAIN.why(events))),
        (", no match", lambda events: str(compile_query("ZZ WITHIN 5").match(events).no_match())),
        (", columns of rules", lambda events: compile_rules(RULES.format(value="1", key="'p'")).check(events)),
    ):
        yield NOT_READ + name, "n", run
    yield "all columns given back", "n", of_events
    yield "late", "n", with_late(folder)
    yield "look", "n", seen
    yield "look at the time", "ts", lambda events: str(look(events, time="ts"))
    yield "look for a type and a key", "type", seen
    for role in ("ts", "type", "key"):
        yield f"by name: {role}", role, matched("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5")
    for role in ("time", "type", "key"):
        yield f"said: {role}", "x", matched("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5", **{role: "x"})
    yield "time, pushed", "ts", pushed(PLAIN.plan.query.text)
    yield "time, late", "ts", pushed(PLAIN.plan.query.text, watermark=2, id="id")
    yield "type, pushed", "type", pushed(PLAIN.plan.query.text)
    yield "key, pushed", "x", pushed(sparse_key)
    yield "id", "id", matched(PLAIN.plan.query.text, bind="id")
    yield "id with another", "id", matched(PLAIN.plan.query.text, bind=["id", "x"])
    yield "id, pushed", "id", pushed(PLAIN.plan.query.text, id="id")
    yield "id, revised", "id", pushed(PLAIN.plan.query.text, watermark=2, id="id", changelog=True)
    yield "op", "x", pushed(PLAIN.plan.query.text, watermark=2, id="id", op="x")
    yield "source", "x", pushed(PLAIN.plan.query.text, watermark=2, id="id", source="x")
    yield "sequence", "x", pushed(PLAIN.plan.query.text, watermark=2, id="id", sequence="x")
    yield "start", "x", matched("SELECT x FROM A NEXT B WITHIN 5", start="x")
    for condition in ("a.x = b.x", "b.x > a.x", "a.x = 1", "a.x = 'A'", "a.x > '2024-01-01'", "a.x IN (1, 2)"):
        yield f"condition {condition}", "x", matched(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 5")
    yield "arithmetic", "x", matched("PATTERN SEQ(A a, B b) WHERE a.x * 2 + b.x > 3 WITHIN 5")
    yield "condition, pushed", "x", pushed("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
    yield "condition, in a set", "x", in_a_set("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
    yield "condition, within a budget", "x", within_a_budget
    yield "condition, why", "x", explained
    for value in ("a.x", "a.x + b.x", "a.x = b.x", "a.x IS NULL"):
        yield f"RETURN {value}", "x", matched(f"PATTERN SEQ(A a, B b) WITHIN 5 RETURN {value} AS v")
    for function in ("sum", "min", "max", "count"):
        yield f"aggregate {function}", "x", matched(f"PATTERN SEQ(A+ a[], B b) WHERE {function}(a[].x) > 1 WITHIN 5")
    published = "PATTERN A a WITHIN 5 RETURN a.x AS x PUBLISH P"
    yield "published", "x", in_a_set(published, "PATTERN P p WITHIN 5 RETURN p.x AS y")
    yield "condition IS NULL", "x", matched("PATTERN SEQ(A a, B b) WHERE a.x IS NULL WITHIN 5")
    yield "SELECT", "x", matched("SELECT x FROM A")
    yield "SELECT, pushed", "x", pushed("SELECT x FROM A NEXT B WITHIN 5")
    machine = "AUTOMATON (REGISTERS n INT a -> b ON A t SET n = t.x FINAL b)"
    yield "register", "x", matched(f"PATTERN {machine} WITHIN 5 RETURN n")
    yield "FOLD", "x", matched("SELECT n FROM (SELECT *, 0 AS n FROM A) FOLD{, , $.n + $2.x AS n} B")
    yield "written by rules", "x", by_rules(value="a.x")
    yield "key of rules", "x", by_rules(key="a.x")
    yield "constants of a template", "x", as_a_template


def within_a_budget(events: Any) -> Any:
    """Some of the matches, with a condition that reads the column."""
    query = compile_query("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x WITHIN 5")
    return query.match_within(events, "2 runs", log_shed=True).shed()


def column_calls(folder: Path) -> Iterator[OddCall]:
    """Calls with an odd column in each role; one that no query reads must not be noticed."""
    made: dict[str, list[tuple[str, Any]]] = {}
    for role, column, run in roles_of_columns(folder):
        if column not in made:
            made[column] = list(frames(COLUMNS, column))
        for kind, events in made[column]:
            yield OddCall(f"{role}: {kind}", lambda run=run, events=events: run(events), role.startswith(NOT_READ))


def written(folder: Path) -> Iterator[tuple[str, Path]]:
    """Parquet files with a column ``n`` of every type that such files can hold."""
    import pyarrow.parquet as parquet

    for number, (kind, events) in enumerate(frames(COLUMNS, "n")):
        path = folder / f"odd{number}.parquet"
        if isinstance(events, pa.Table) and kind.endswith("values"):
            with suppress(pa.ArrowException, ValueError):  # no such file can be written
                parquet.write_table(events, path)
                yield kind, path
