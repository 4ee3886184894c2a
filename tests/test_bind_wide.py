"""Wide matches: each value of a bound event in a column of its own, held against plain Python over the events."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from acep_approx import Query, QuerySet, Wide, compile_query, compile_rules
from acep_approx.cli.main import app
from acep_approx.errors import DataError, UsageError
from acep_approx.events.writing.tables import csv_lines
from tests.cases import examples
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for

Row = dict[str, Any]


# --- the oracle: rows of matches, looked up in the events, one by one ------------------------------------------------


def named_by(text: str, variable: str) -> list[str]:
    """What a text names of a variable in its WHERE, in its order, found without the tree of the query."""
    where = text.partition("WHERE")[2].partition("WITHIN")[0]
    found = re.findall(rf"(?<![\w`.]){variable}(?:\[[^\]]*\])?\.(\w+)", where)
    return list(dict.fromkeys(name for name in found if name != "LEN"))


def widened(rows: list[Row], events: list[Row], columns: dict[str, list[str]]) -> list[Row]:
    """Matches by rows as they should be: of each variable in the place of its rows these columns."""

    def value(row: Any, column: str) -> Any:
        if isinstance(row, list):
            return [events[one][column] for one in row]
        return None if row is None else events[row][column]

    return [
        {
            name: cell
            for old, seen in match.items()
            for name, cell in (
                [(f"{old}.{c}", value(seen, c)) for c in columns[old]] if old in columns else [(old, seen)]
            )
        }
        for match in rows
    ]


# --- random queries --------------------------------------------------------------------------------------------------


def pushed(query: Query, table: pa.Table, bind: Any, dice: Random) -> list[Row]:
    """The matches of random batches, now and then with the state saved and restored between them."""
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(4)))
    matcher = query.matcher(bind=bind)
    parts = []
    for first, last in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        parts.append(matcher.push(table.slice(first, last - first)))
        if dice.randrange(2):
            matcher = query.from_state(matcher.state_bytes())
    return pa.concat_tables([*parts, matcher.finish()]).to_pylist()


@examples(250, shrink=False)
@given(rich_worlds(), st.integers(0, 2**20))
def test_named_columns_stand_for_the_events_of_any_query(world: RichWorld, seed: int) -> None:
    def check(world: RichWorld) -> None:
        query = compiled(world)
        if query is None or not world.rows or world.query.outputs or world.query.is_regex:
            return
        table = world.table()
        names = [name for name in table.column_names if name != "ts"][:2]
        shown = {name: ["ts", *names] for name in query.plan.automaton.shown}
        by_row = query.match(table).to_arrow().to_pylist()
        expected = repr(widened(by_row, table.to_pylist(), shown))  # as text, where NaN is NaN
        assert repr(query.match(table).table(bind=["ts", *names]).to_pylist()) == expected
        assert repr(pushed(query, table, Wide(("ts", *names)), Random(seed))) == expected
        # by default it is a choice of columns, the time first
        wide = query.match(table).table()
        own = [name for name in wide.column_names if name.partition(".")[0] in shown and "." in name]
        chosen: dict[str, list[str]] = {name: [] for name in shown}
        for name in own:
            chosen[name.partition(".")[0]].append(name.partition(".")[2])
        assert all(columns[0] == "ts" for columns in chosen.values())
        assert repr(wide.to_pylist()) == repr(widened(by_row, table.to_pylist(), chosen))
        assert repr(pushed(query, table, Wide(), Random(seed))) == repr(wide.to_pylist())

    holds_for(world, check)


TEXTS: dict[str, dict[str, str | None]] = {
    "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5": {"a": "A", "b": "B"},
    "PATTERN SEQ(A a, B+ b[], ANY c) WHERE [g] AND b[i].x > 1 AND c.y >= 0 AND a.ts < c.ts WITHIN 7 ERRORS 1": {
        "a": "A", "b": "B", "c": None,
    },
    "PATTERN SEQ(A a, (B b | C c), D? d) WHERE b.y > a.y AND d.x != 2 WITHIN 6": {
        "a": "A", "b": "B", "c": "C", "d": "D",
    },
    "PATTERN SEQ(A a, ~(D n), B b) WHERE n.x = a.x AND sum(a.x) > 0 WITHIN 6": {},
    "PATTERN SEQ(A a, ~(D n), B b) WHERE [g] AND n.x = a.x AND b.y IS NOT NULL WITHIN 6 events": {"a": "A", "b": "B"},
    "PATTERN SEQ(A a, B+ b[]) WHERE avg(b[].y) > a.x AND b[a.LEN].x > 0 WITHIN 6": {},
    "PATTERN SEQ(A a, B+ b[]) WHERE avg(b[].y) > a.x AND count(b[]) > 0 WITHIN 4 events ERRORS 1": {"a": "A", "b": "B"},
    "PATTERN SEQ(ANY a, ANY b) WHERE [g] AND [x] AND a.type = 'A' AND b.g = 'p' WITHIN 6": {"a": None, "b": None},
}  # fmt: skip


def random_events(dice: Random, most: int = 24) -> list[Row]:
    return [
        {
            "ts": t // 2,
            "type": dice.choice("ABBCD"),
            "g": dice.choice("pq"),
            "x": dice.randrange(4),
            "y": dice.choice([None, 0.5, 1.5, 2.5]),
        }
        for t in range(1 + dice.randrange(most))
    ]


def expected_of(text: str, events: list[Row]) -> list[Row]:
    """The wide matches of one of ``TEXTS`` by default."""
    query, types = compile_query(text), TEXTS[text]
    keys = re.findall(r"\[(\w+)\] ", text)
    columns = {
        name: list(dict.fromkeys(["ts", *(["type"] if type_ is None else []), *named_by(text, name)]))
        for name, type_ in types.items()
    }
    columns = {name: [one for one in names if one not in keys] for name, names in columns.items()}
    return widened(query.match(events).to_arrow().to_pylist(), events, columns)


@examples(120, shrink=False)
@given(st.sampled_from([text for text, types in TEXTS.items() if types]), st.integers(0, 2**20))
def test_the_time_and_what_the_text_names_is_shown(text: str, seed: int) -> None:
    dice = Random(seed)
    events = random_events(dice)
    expected, query = expected_of(text, events), compile_query(text)
    table = pa.Table.from_pylist(events)
    assert query.match(table).table().to_pylist() == expected
    assert not expected or query.match(table).table().column_names == list(expected[0])
    assert pushed(query, table, Wide(), dice) == expected
    assert query.match_within(table, "100000 runs").table().to_pylist() == expected
    if " events" not in text:
        late = query.matcher(bind=Wide(), watermark=3)
        shuffled = sorted(events, key=lambda event: event["ts"] + dice.random() * 2)
        found = [*late.push(shuffled).to_pylist(), *late.finish().to_pylist()]
        # who comes late may change ties, and nothing else
        assert len(found) == len(query.match(sorted(shuffled, key=lambda e: e["ts"])).to_arrow())
    desk = QuerySet(bind=Wide())
    desk.add(text, id="one")
    mine = desk.match(table)["one"].drop_columns(["query"]).to_pylist()
    assert sorted(map(repr, mine)) == sorted(map(repr, expected))


@examples(60, shrink=False)
@given(st.sampled_from([text for text, types in TEXTS.items() if types]), st.integers(0, 2**20))
def test_a_changelog_says_the_same(text: str, seed: int) -> None:
    dice = Random(seed)
    events = random_events(dice, 12)
    if " events" in text:
        return
    matcher = compile_query(text).matcher(bind=Wide(), emit="early", watermark=0)
    there: dict[str, Row] = {}
    for event in events:
        for row in matcher.push([event]).to_pylist():
            op, match_id = row.pop("op"), row.pop("match_id")
            if op == "+I":
                there[match_id] = row
            else:
                assert there.pop(match_id) == row
    for row in matcher.finish().to_pylist():
        op, match_id = row.pop("op"), row.pop("match_id")
        there[match_id] = row
    assert sorted(map(repr, there.values())) == sorted(map(repr, expected_of(text, events)))


# --- kinds of values -------------------------------------------------------------------------------------------------


def test_times_are_of_one_kind() -> None:
    times = ["2024-03-01T10:00:00+01:00", "2024-03-01T10:00:01+01:00"]
    events = [{"when": t, "type": k} for t, k in zip(times, "AB", strict=True)]
    found = compile_query("PATTERN SEQ(A a, B+ b[]) WITHIN 5 s").match(events, time="when").table()
    stamp = pa.timestamp("us", "UTC")
    assert [found.schema.field(name).type for name in ("start", "a.when")] == [stamp, stamp]
    assert found.schema.field("b.when").type == pa.list_(stamp)
    row = found.to_pylist()[0]
    assert (row["start"], [row["end"]]) == (row["a.when"], row["b.when"])
    counted = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 s").match(
        [{"ts": 1_700_000_000 + t, "type": k} for t, k in enumerate("AB")], unit="s"
    )
    assert counted.table().schema.field("a.ts").type == stamp


def test_a_variable_may_have_the_name_of_a_key_and_events_any_column() -> None:
    events = [{"ts": t, "type": k, "user": "u", "errors": t, "a.x": t} for t, k in enumerate("AB")]
    query = compile_query("PATTERN SEQ(A user, B a) WHERE [user] AND user.errors < a.errors AND a.`a.x` > 0 WITHIN 5")
    with pytest.raises(DataError, match="ACEP-D043"):
        query.match(events).to_arrow()
    assert query.match(events).table().to_pylist() == [
        {"user": "u", "errors": 0, "start": 0, "end": 1, "missing": [], "user.ts": 0, "user.errors": 0,
         "a.ts": 1, "a.errors": 1, "a.a.x": 1},
    ]  # fmt: skip
    taken = compile_query("PATTERN SEQ(A a, B b) WHERE [`b.ts`] WITHIN 5")
    with pytest.raises(DataError, match="ACEP-D043"):
        taken.match([{"ts": 1, "type": "A", "b.ts": 1}, {"ts": 2, "type": "B", "b.ts": 1}]).table()


def test_what_is_shown_otherwise_stays() -> None:
    events = [{"ts": t, "type": k, "x": t} for t, k in enumerate("AB")]
    for text in ("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AS x", "AB WITHIN 5"):
        found = compile_query(text).match(events)
        assert found.table().equals(found.to_arrow())
    with pytest.raises(UsageError, match="ACEP-U051"):
        compile_query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AS x").match(events).table(bind="x")
    with pytest.raises(DataError, match="idd"):
        compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(events).table(bind="idd")
    found = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(events)
    assert found.head(0).table().column_names == [*found.to_arrow().column_names[:4], "a.ts", "b.ts"]
    assert found.to_arrow().column("a").to_pylist() == [0]


def test_the_column_that_names_events_stands_behind_the_time() -> None:
    events = [{"ts": t, "type": k, "id": f"e{t}", "x": t} for t, k in enumerate("AB")]
    matcher = compile_query("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5").matcher(id="id", bind=Wide(), op=None)
    assert matcher.push(events).column_names[4:] == ["a.ts", "a.id", "a.x", "b.ts", "b.id", "b.x"]


def test_lists_of_values_are_joined_in_csv() -> None:
    columns = {
        "x": pa.array([[1.5, None], [], None]),
        "s": pa.array([["a", None], [None], ["b"]], pa.list_(pa.string())),
        "b": pa.array([[True], [False, True], []]),
    }
    assert bytes(csv_lines(pa.table(columns))).decode().splitlines() == ["1.5;,a;,true", '"","",false;true', ',b,""']


# --- the command line ------------------------------------------------------------------------------------------------

QUERY = "PATTERN SEQ(A a, B+ b[], ANY c) WHERE [g] AND b[i].x > 1 AND c.y >= 0 AND a.ts < c.ts WITHIN 7 ERRORS 1"


@pytest.fixture
def made(tmp_path: Path) -> tuple[list[Row], dict[str, Path]]:
    """Events, and the files that hold them."""
    events = random_events(Random(7), 40)
    for event in events:
        event["y"] = event["x"] + 0.5
    table = pa.Table.from_pylist(events)
    files = {ending: tmp_path / f"events.{ending}" for ending in ("csv", "jsonl", "parquet")}
    pq.write_table(table, files["parquet"])
    files["jsonl"].write_text("".join(json.dumps(event) + "\n" for event in events))
    with files["csv"].open("w") as sink:
        writer = csv.DictWriter(sink, table.column_names)
        writer.writeheader()
        writer.writerows(events)
    return events, files


def acep(*words: str) -> str:
    done = CliRunner().invoke(app, ["run", *words, "--quiet"])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_acep_run_shows_values_in_every_form(
    made: tuple[list[Row], dict[str, Path]], tmp_path: Path, ending: str
) -> None:
    events, files = made
    expected = expected_of(QUERY, events)
    assert expected
    file = str(files[ending])
    assert [json.loads(line) for line in acep(QUERY, file).splitlines()] == expected
    acep(QUERY, file, "-o", str(tmp_path / "found.parquet"))
    assert pq.read_table(tmp_path / "found.parquet").to_pylist() == expected
    read = list(csv.DictReader(io.StringIO(acep(QUERY, file, "--format", "csv"))))
    assert [row["b.x"] for row in read] == [";".join(map(str, row["b.x"])) for row in expected]
    assert list(read[0]) == list(expected[0])
    budget, follow = ["--budget", "100000 runs"], ["--follow", "--until-idle", "0 s"]
    for more in (budget, [*budget, "--expand"], follow):
        if more[0] != "--follow" or ending != "parquet":
            assert [json.loads(line) for line in acep(QUERY, file, *more).splitlines()] == expected, more
    early = [json.loads(line) for line in acep(QUERY, file, "--emit", "early").splitlines()]
    assert list(early[0]) == [*expected[0], "op", "match_id"]


def test_acep_run_shows_rows_or_columns_that_are_asked_for(made: tuple[list[Row], dict[str, Path]]) -> None:
    events, files = made
    rows = compile_query(QUERY).match(events).to_arrow().to_pylist()
    assert [json.loads(line) for line in acep(QUERY, str(files["csv"]), "--bind", "row").splitlines()] == rows
    chosen = acep(QUERY, str(files["csv"]), "--bind", "x", "--bind", "type")
    expected = widened(rows, events, {name: ["x", "type"] for name in "abc"})
    assert [json.loads(line) for line in chosen.splitlines()] == expected
    partial = acep(QUERY, str(files["csv"]), "--output", "partial").splitlines()
    assert {name for line in partial for name in json.loads(line)} >= {"a.ts", "b.ts", "b.x", "c.type"}
    points = acep(QUERY, str(files["csv"]), "--output", "points", "--bind", "x").splitlines()
    assert "x" in json.loads(points[0])
    table = acep(QUERY, str(files["csv"]), "--format", "table")
    assert "a.ts" in table
    assert table.splitlines()[3].count("(missing)") <= 1


def test_a_set_of_queries_shows_values_too(made: tuple[list[Row], dict[str, Path]], tmp_path: Path) -> None:
    events, files = made
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "one.acep").write_text(QUERY)
    (folder / "two.acep").write_text("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 3 RETURN a.x AS x")
    for more in ([], ["--page", str(tmp_path / "page.html")]):
        found = [json.loads(line) for line in acep("--queries", str(folder), str(files["csv"]), *more).splitlines()]
        mine = [
            {name: value for name, value in row.items() if name not in ("query", "times", "x")}
            for row in found
            if row["query"] == "one"
        ]
        expected = [{name: row[name] for name in mine[0]} for row in expected_of(QUERY, events)]
        assert sorted(map(repr, mine)) == sorted(map(repr, expected))
    assert "of 2 have some" in (tmp_path / "page.html").read_text()
    rows = acep("--queries", str(folder), str(files["csv"]), "--bind", "row").splitlines()
    assert any(json.loads(line)["a"] is not None for line in rows)
    again = QuerySet(bind=Wide())
    again.add(QUERY, id="one")
    again.push(events[:10])
    restored = QuerySet.from_state(again.state_bytes())
    assert restored.push(events[10:]).to_arrow().equals(again.push(events[10:]).to_arrow())


def test_queries_of_a_template_show_what_they_name() -> None:
    desk = QuerySet(bind=Wide(), time="ts")
    desk.add_many("PATTERN SEQ(A a, B b) WHERE [g] AND b.x > :low WITHIN 5", [{"low": 1}, {"low": 2}])
    found = desk.match([{"ts": 1, "type": "A", "g": "p", "x": 0}, {"ts": 2, "type": "B", "g": "p", "x": 3}])
    assert found["q2"].to_pylist()[0] | {"query": ""} == {
        "query": "", "g": "p", "errors": 0, "start": 1, "end": 2, "missing": [], "a.ts": 1, "b.ts": 2, "b.x": 3,
    }  # fmt: skip


def test_a_narrow_table_says_a_day_once_in_each_row() -> None:
    from rich.console import Console
    from rich.table import Table

    from acep_approx.cli.tables import show

    table = Table()
    for name in ("key", "start", "a.ts", "b.ts"):
        table.add_column(name)
    day = "2024-05-01T"
    table.add_row("x", f"{day}08:00:00Z", f"{day}08:00:00Z", f"{day}08:01:00.5Z, 2024-05-02T08:00:00Z")
    printed = io.StringIO()
    show(table, to=Console(file=printed, width=200))
    assert printed.getvalue().count(day) == 3
    printed = io.StringIO()
    show(table, to=Console(file=printed, width=90))
    assert printed.getvalue().count(day) == 3
    printed = io.StringIO()
    show(table, to=Console(file=printed, width=90), events=[2, 3])
    assert "│ 08:00:00 │ 08:01:00.5, 2024-05-02T08:00:00Z │" in printed.getvalue()


RULES = """
TABLE seen (g text, n int DEFAULT 0, KEY (g))
RULE count ON PATTERN SEQ(A a, ANY b) WHERE [g] AND b.x > 1 AND store.seen[b.g].n < 50 WITHIN 4
  DO UPSERT seen SET n = old.n + 1 AT (b.g) END
RULE shown ON PATTERN SEQ(A a, B b) WITHIN 3 RETURN b.x AS x DO UPSERT seen SET n = old.n + 1 AT (a.g) END
RULE ends ON PATTERN SEQ(A a, B b) WITHIN 3 FOR EACH POINT DO UPSERT seen SET n = old.n + 1 AT (b.g) END
"""


def test_rules_show_the_events_of_their_matches(made: tuple[list[Row], dict[str, Path]], tmp_path: Path) -> None:
    events, files = made
    rules = tmp_path / "rules.acep"
    rules.write_text(RULES)
    by_row = compile_rules(RULES).run(events)["count"].to_pylist()
    expected = widened(by_row, events, {"a": ["ts"], "b": ["ts", "type", "x"]})
    assert expected

    def counted(*more: str) -> list[Row]:
        rows = [json.loads(line) for line in acep(str(rules), str(files["csv"]), *more).splitlines()]
        return [{name: cell for name, cell in row.items() if name != "rule"} for row in rows if row["rule"] == "count"]

    assert counted() == expected
    assert counted("--bind", "row") == by_row
    page = tmp_path / "page.html"
    assert counted("--bind", "x", "--page", str(page)) == widened(by_row, events, {"a": ["x"], "b": ["x"]})
    assert "a (" in page.read_text()
    for driver in ("auto", "stepping"):
        run = compile_rules(RULES).start(bind=Wide(), driver=driver)  # type: ignore[arg-type]
        found = [*run.push(events[:15])["count"].to_pylist(), *run.push(events[15:])["count"].to_pylist()]
        assert found == expected


def test_rules_go_on_as_they_began(made: tuple[list[Row], dict[str, Path]], tmp_path: Path) -> None:
    events, _ = made
    expected = compile_rules(RULES).run(events, bind=Wide())["count"].to_pylist()
    found = []
    for bind, some in ((Wide(), events[:15]), (None, events[15:])):
        with compile_rules(RULES).start(at=tmp_path / "store", bind=bind) as run:
            found += run.push(some)["count"].to_pylist()
    assert found == expected
