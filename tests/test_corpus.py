"""The corpus, run in every way there is: by each engine and by brute force; listed, counted and detected; in one batch
and event by event.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import Query, compile_query
from acep_approx.query.parser import parse
from acep_approx.query.syntax import Machine
from tests.cases import FULL
from tests.corpus_cases import FOLDER, NAMED, Case, events_of, listing
from tests.naive import expected_matches
from tests.naive_afa import afa_matches, afa_rows
from tests.naive_selection import reported_matches

Way = tuple[str, str]
"""An engine, and which runs it merges."""

ALL_MERGES = "equal,pareto,chain"
WAYS = [
    pytest.param(("auto", ALL_MERGES), id="auto"),
    pytest.param(("runs", ALL_MERGES), id="runs"),
    pytest.param(("runs", "none"), id="runs without merging"),
]
compiled = cache(compile_query)
"""Queries keep nothing of what they are asked."""
in_every_way = pytest.mark.parametrize("way", WAYS)
every_case = pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in NAMED.items()])
returning = [pytest.param(case, id=name) for name, case in NAMED.items() if "returns" in case]


def is_run_by_another_way(query: Query, text: str, way: Way) -> bool:
    """Whether the planner gives just the query of the way "runs", so that it is run there."""
    return not FULL and way[0] == "auto" and query == compiled(text, engine="runs")


# --- reading a case ---------------------------------------------------------------------------------------------------


# --- writing matches as the corpus does -------------------------------------------------------------------------------


def names_of(events: pa.Table) -> list[str]:
    """How each event is written: its time, and its place among those of that time where there are several."""
    times = events["ts"].to_pylist()
    return [f"{t}.{times[:i].count(t)}" if times.count(t) > 1 else str(t) for i, t in enumerate(times)]


def written(bindings: Iterable[tuple[list[tuple[int, str]], int]], events: pa.Table) -> list[str]:
    """Matches, each the (row, variable) of its events and its err, as the corpus writes them; "" is the type."""
    names, types = names_of(events), events["type"].to_pylist()
    texts = []
    for bound, err in bindings:
        words = [f"{label or types[row]}{names[row]}" for row, label in sorted(bound)]
        texts.append(" ".join(words + ([f"!{err}"] if err else [])))
    return texts


def bindings_of(table: pa.Table, query: Query) -> list[tuple[list[tuple[int, str]], int]]:
    """The rows of a table of matches: what is bound, and err."""
    found = []
    for row in table.to_pylist():
        if query.syntax.is_regex:
            bound = [(event, "") for event in row["events"]]
        else:
            bound = []
            for variable in filter(None, query.automaton.variables):  # "" binds what is not shown
                value = row[variable]
                bound += [(i, variable) for i in (value if isinstance(value, list) else [value]) if i is not None]
        found.append((bound, row["errors"]))
    return found


def least_errs(events: pa.Table, bindings: list[tuple[list[tuple[int, str]], int]]) -> list[str]:
    """The match points of listed matches, as the corpus writes them: last events, with the least err."""
    least: dict[int, int] = {}
    for bound, err in bindings:
        row = max(bound)[0]
        least[row] = min(err, least.get(row, err))
    return points_written(least, events)


def points_written(least: dict[int, int], events: pa.Table) -> list[str]:
    """Match points with their err, in the order of the stream."""
    names = names_of(events)
    return [names[row] + (f" !{least[row]}" if least[row] else "") for row in sorted(least)]


# --- running a case ---------------------------------------------------------------------------------------------------


def pushed(query: Query, events: pa.Table, output: Any, merge: str) -> pa.Table:
    """What a matcher gives event by event, and at the end of the stream."""
    matcher = query.matcher(output=output, merge=merge)
    parts = [matcher.push(events.slice(i, 1)) for i in range(events.num_rows)]
    return pa.concat_tables([*parts, matcher.finish()])


@in_every_way
@every_case
def test_matches(case: Case, way: Way) -> None:
    """Listed at once and event by event."""
    engine, merge = way
    query, events = compiled(listing(case), engine=engine), events_of(case)
    if is_run_by_another_way(query, listing(case), way):
        return
    table = query.match(events, merge=merge).to_arrow()
    found = written(bindings_of(table, query), events)
    if "matches" in case:
        assert Counter(found) == Counter(case["matches"])
    assert set(case.get("only", ())) <= set(found)
    assert pushed(query, events, "matches", merge).to_pylist() == table.to_pylist()


@in_every_way
@every_case
def test_counts(case: Case, way: Way) -> None:
    """Counted at once and event by event: as many as are listed."""
    engine, merge = way
    query, events = compiled(case["query"], engine=engine), events_of(case)
    if is_run_by_another_way(query, case["query"], way):
        return
    matches = query.match(events, merge=merge)
    errors = Counter(matches.to_arrow()["errors"].to_pylist())
    assert matches.count_by_errors() == {err: errors[err] for err in range(query.syntax.errors + 1)}
    assert len(matches) == errors.total()
    assert pushed(query, events, "counts", merge).to_pylist() == matches.counts().to_pylist()


@in_every_way
@every_case
def test_points(case: Case, way: Way) -> None:
    """Detected points are the last events of the listed matches, with the least err."""
    engine, merge = way
    query, events = compiled(listing(case), engine=engine), events_of(case)
    if is_run_by_another_way(query, listing(case), way):
        return
    matches = query.match(events, merge=merge)
    table = matches.points()
    least: dict[int, int] = {}
    for row in table.to_pylist():  # an event has several points where its matches wait for the ends of their windows
        least[row["row"]] = min(row["errors"], least.get(row["row"], row["errors"]))
    points = points_written(least, events)
    if "points" in case:
        assert points == case["points"]
    assert points == least_errs(events, bindings_of(matches.to_arrow(), query))
    assert pushed(query, events, "points", merge).to_pylist() == table.to_pylist()
    if query.plan.engine == "cells":
        assert table["row"].to_pylist() == sorted(least)


@in_every_way
@pytest.mark.parametrize("case", returning)
def test_returns(case: Case, way: Way) -> None:
    """The columns of RETURN, at once and event by event."""
    engine, merge = way
    query, events = compiled(case["query"], engine=engine), events_of(case)
    if is_run_by_another_way(query, case["query"], way):
        return
    names = [output.name for output in query.syntax.outputs]
    table = query.match(events, merge=merge).to_arrow()
    found = table.select(names).to_pylist()
    assert Counter(tuple(sorted(row.items())) for row in found) == Counter(
        tuple(sorted(row.items())) for row in case["returns"]
    )
    assert pushed(query, events, "matches", merge).to_pylist() == table.to_pylist()


@every_case
def test_oracle_agrees(case: Case) -> None:
    """What the corpus says is what brute force finds: two opinions on the meaning of the language."""
    query, events = parse(case["query"]), events_of(case)
    rows = events.to_pylist()
    expected = afa_matches(query, rows) if isinstance(query.pattern, Machine) else expected_matches(query, rows)
    texts = dict(zip(expected, written(((list(b), err) for b, err in expected.items()), events), strict=True))
    if not query.selection.is_all:
        assert Counter(texts[bound] for bound in reported_matches(query, rows, expected)) == Counter(case["matches"])
    elif "matches" in case:
        assert Counter(texts.values()) == Counter(case["matches"])
    assert set(case.get("only", ())) <= set(texts.values())
    if "returns" in case and isinstance(query.pattern, Machine):
        names = [output.name for output in query.outputs]
        returned = [dict(zip(names, row.values, strict=True)) for row in afa_rows(query, rows)]
        assert sorted(returned, key=str) == sorted(case["returns"], key=str)
    if "points" in case:
        assert least_errs(events, [(list(bound), err) for bound, err in expected.items()]) == case["points"]


def test_names_are_unique() -> None:
    """Each case can be found by its name."""
    for path in FOLDER.glob("*.toml"):
        names = [case["name"] for case in tomllib.loads(path.read_text())["case"]]
        assert len(names) == len(set(names)), path.name
