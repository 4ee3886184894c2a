"""The corpus, run in every way there is: listed, counted, detected, in one batch, event by event, by brute force."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import Query, compile_query

FOLDER = Path(__file__).parent / "corpus"
CASES = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text())["case"]
]


def events_of(case: dict[str, Any]) -> pa.Table:
    """The events of a case: ts, type, and the attributes x and g."""
    rows = []
    for word in case["events"].split():
        found = re.fullmatch(r"(-?\d+):(\w+)(?:\{(.*)\})?", word)
        assert found, word
        attributes = dict(pair.split("=") for pair in found[3].split(",")) if found[3] else {}
        x = int(attributes["x"]) if "x" in attributes else None
        rows.append({"ts": int(found[1]), "type": found[2], "x": x, "g": attributes.get("g")})
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("x", pa.int64()), ("g", pa.string())])
    return pa.Table.from_pylist(rows, schema=schema)


def names_of(events: pa.Table) -> list[str]:
    """How each event is written: its time, and its place among those of that time where there are several."""
    times = events["ts"].to_pylist()
    return [f"{t}.{times[:i].count(t)}" if times.count(t) > 1 else str(t) for i, t in enumerate(times)]


def written(table: pa.Table, query: Query, events: pa.Table) -> list[str]:
    """Matches as the corpus writes them."""
    names, types = names_of(events), events["type"].to_pylist()
    texts = []
    for row in table.to_pylist():
        if query.syntax.is_regex:
            bound = [(i, types[i]) for i in row["events"]]
        else:
            bound = []
            for variable in query.automaton.variables:
                value = row[variable]
                bound += [(i, variable) for i in (value if isinstance(value, list) else [value]) if i is not None]
        words = [f"{label}{names[i]}" for i, label in sorted(bound)]
        texts.append(" ".join(words + ([f"!{row['errors']}"] if row["errors"] else [])))
    return texts


@pytest.mark.parametrize("case", CASES)
def test_matches(case: dict[str, Any]) -> None:
    """Listed in one batch and event by event; counted."""
    query, events = compile_query(case["query"]), events_of(case)
    found = written(query.match(events).to_arrow(), query, events)
    if "matches" in case:
        assert Counter(found) == Counter(case["matches"])
    assert set(case.get("only", ())) <= set(found)
    assert len(query.match(events)) == len(found)
    matcher = query.matcher()
    single = pa.concat_tables([matcher.push(events.slice(i, 1)) for i in range(events.num_rows)])
    assert written(single, query, events) == found


@pytest.mark.parametrize("case", CASES)
def test_points(case: dict[str, Any]) -> None:
    """Detected points are the last events of the listed matches, with the least err."""
    query, events = compile_query(case["query"]), events_of(case)
    names = names_of(events)
    rows = query.match(events).points().to_pylist()
    points = [names[row["row"]] + (f" !{row['errors']}" if row["errors"] else "") for row in rows]
    if "points" in case:
        assert points == case["points"]
    least: dict[str, int] = {}
    for text in written(query.match(events).to_arrow(), query, events):
        *bound, last = text.split()
        err = int(last[1:]) if last[0] == "!" else 0
        time = re.search(r"-?[\d.]+$", bound[-1] if err else last)
        assert time
        least[time[0]] = min(err, least.get(time[0], err))
    assert points == [f"{name} !{least[name]}" if least[name] else name for name in names if name in least]


def test_names_are_unique() -> None:
    """Each case can be found by its name."""
    for path in FOLDER.glob("*.toml"):
        names = [case["name"] for case in tomllib.loads(path.read_text())["case"]]
        assert len(names) == len(set(names)), path.name
