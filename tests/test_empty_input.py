"""No events are no mistake: an empty hour has no matches, whatever it is read from and whatever is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from acep_approx import AcepError, QueryError, compile_query
from acep_approx.cli.main import app
from tests.cases import cases

NAMES = ("ts", "type", "id", "x", "y", "z")
TYPES = (pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.string(), pa.int32())
QUERIES = (
    "PATTERN SEQ(A a, B b) WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x AND a.y = 'k' AND b.z + 1 > 3 WITHIN 5 events ERRORS 1",
    "PATTERN SEQ(A a, B b) WHERE a.x / 2 > 3 WITHIN 5 RETURN a.x + 1 AS x, b.y AS y",
    "PATTERN SEQ(A a, B+ b[]) WHERE avg(b[].x) > a.x AND sum(b[].x) > 1 AND max(b[].y) = 'k' WITHIN 5",
    "PATTERN SEQ(A a, ~(B b), A c, ~(B d)) WHERE b.x > a.x AND d.z IN (1, 2) WITHIN 5 NON OVERLAP",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.y != a.y AND b.x BETWEEN 1 AND a.x } WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity { -a.x < b.x % 2 } WITHIN 5",
)
ENGINES = ("auto", "runs")


def inputs(folder: Path) -> dict[str, Any]:
    """Nothing, in all forms."""
    header = ",".join(NAMES)
    files = {"header.csv": header + "\n", "no_line_end.csv": header, "blank.csv": header + "\n\n\n", "none.jsonl": ""}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    pq.write_table(pa.schema(list(zip(NAMES, TYPES, strict=True))).empty_table(), folder / "typed.parquet")
    pq.write_table(pa.schema([(name, pa.null()) for name in NAMES]).empty_table(), folder / "nulls.parquet")
    found = {name: folder / name for name in (*files, "typed.parquet", "nulls.parquet")}
    frame = pd.DataFrame(columns=list(NAMES))
    return {**found, "list": [], "generator": iter(()), "frame": frame, "no columns": pd.DataFrame()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", QUERIES)
def test_nothing_is_found(text: str, engine: str, tmp_path: Path) -> None:
    """With and without conditions, by all ways to ask."""
    query = compile_query(text, engine=engine)
    for name, events in inputs(tmp_path).items():
        if name == "generator":
            assert query.match(events).to_arrow().num_rows == 0
            continue
        matches = query.match(events)
        for ask in (matches.to_arrow, matches.points, matches.counts, matches.partial, matches.bundles):
            assert ask().num_rows == 0, (name, ask)
        assert set(matches.count_by_errors().values()) == {0}, name
        assert len(matches) == len(list(matches)) == 0
        if "NON OVERLAP" not in text and "avg" not in text:
            assert len(matches.compressed()) == 0
        assert query.match(events, sort=True).to_arrow().num_rows == 0
        matcher = query.matcher()
        assert matcher.push(events).num_rows == matcher.finish().num_rows == 0, name


@pytest.mark.parametrize("window", ["5", "5 s", "5 events"])
def test_the_unit_of_time_is_open_until_an_event_comes(window: str, tmp_path: Path) -> None:
    """A header says nothing about it; the first events do, also against a window that does not fit them."""
    query = compile_query(f"PATTERN SEQ(A a, B b) WITHIN {window}")
    (tmp_path / "header.csv").write_text("ts,type\n", encoding="utf-8")
    for times, code in (((1, 2), "ACEP-Q908"), ((pd.Timestamp(1), pd.Timestamp(2)), "ACEP-Q907")):
        matcher = query.matcher()
        matcher.push(tmp_path / "header.csv")
        matcher = query.from_state(matcher.state_bytes())
        events = [{"ts": time, "type": type_} for time, type_ in zip(times, "AB", strict=True)]
        fits = window == "5 events" or (window == "5 s") == (code == "ACEP-Q907")
        if fits:
            assert matcher.push(events).num_rows == 1
        else:
            with pytest.raises(QueryError, match=code):
                matcher.push(events)


OUTPUTS = ("matches", "points", "count", "bundles", "partial")


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_command_line(output: str, tmp_path: Path) -> None:
    """Exit code 0, in all formats."""
    forms = ([], ["--format", "table"], ["-o", str(tmp_path / "o.parquet")], ["-o", str(tmp_path / "o.csv")])
    files = {name: path for name, path in inputs(tmp_path).items() if isinstance(path, Path)}
    for number, (name, path) in enumerate(files.items()):
        first = (number + OUTPUTS.index(output)) % len(forms)  # by default each file in two formats, in turn
        for more in (forms + forms)[first : first + cases(len(forms), 2)]:
            result = CliRunner().invoke(app, ["run", QUERIES[1], str(path), "--output", output, *more])
            assert result.exit_code == 0, (name, more, result.output)


def test_compressed_on_the_command_line(tmp_path: Path) -> None:
    """Its two files have no rows."""
    for path in [path for path in inputs(tmp_path).values() if isinstance(path, Path)]:
        folder = str(tmp_path / (path.name + ".out"))
        result = CliRunner().invoke(app, ["run", QUERIES[0], str(path), "--output", "compressed", "-o", folder])
        assert result.exit_code == 0, (path, result.output)


def test_a_wrong_query_is_refused_all_the_same(tmp_path: Path) -> None:
    """The names of the columns are known; and their types, where they are."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE a.price > 3 WITHIN 5")
    for name, events in inputs(tmp_path).items():
        if name not in ("none.jsonl", "list", "generator", "no columns"):
            with pytest.raises(QueryError, match="ACEP-Q060"):
                query.match(events).to_arrow()
    with pytest.raises(QueryError, match="ACEP-Q061"):
        compile_query("PATTERN A a WHERE a.y > 3 WITHIN 5").match(tmp_path / "typed.parquet").to_arrow()


def test_a_file_without_a_byte_is_no_csv(tmp_path: Path) -> None:
    """It has no header, so its columns are not known."""
    (tmp_path / "none.csv").touch()
    with pytest.raises(AcepError, match="ACEP-D015"):
        compile_query(QUERIES[0]).match(tmp_path / "none.csv")


def test_an_empty_hour_among_others(tmp_path: Path) -> None:
    """A file of a header only goes with all others."""
    for hour, rows in enumerate(["1,A,,1,2.5,k,\n", "", "3,B,,1,3,k,4\n"]):
        text = "ts,type,n,id,x,y,z\n" + rows
        (tmp_path / f"{hour}.csv").write_text(text, encoding="utf-8")
    text = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x AND a.y = b.y AND b.z = 4 WITHIN 5"
    assert len(compile_query(text).match(tmp_path)) == 1
