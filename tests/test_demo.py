"""The demo: its numbers are those of an independent computation, and it says what it does."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from acep_approx import compile_query
from acep_approx.cli.commands.demo import QUERY, Findings, explore, picture
from acep_approx.cli.main import app
from acep_approx.events.demo import flights
from acep_approx.results.explorer import near_matches
from tests.cases import FULL

DAY = 24 * 3600


@pytest.fixture(scope="module")
def findings() -> Findings:
    """What the demo finds in the real data."""
    return explore(flights())


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nearly matched is asked about elsewhere."""
    monkeypatch.setattr(near_matches, "PLACES", 3)


def by_hand() -> tuple[set[int], set[int]]:
    """Rows that complete an exact match, and rows that complete one when the arrival may be missing; plain Python."""
    columns = flights().select(["ts", "key", "type", "delay_min"]).to_pydict()
    planes = defaultdict(list)
    for row, (ts, key, kind, delay) in enumerate(zip(*columns.values(), strict=True)):
        if key is not None:
            planes[key].append((ts.timestamp(), row, kind, delay))
    exact, loose = set(), set()
    for events in planes.values():
        arrivals = [row for _, row, kind, _ in events if kind == "ARR"]
        late = [(ts, row) for ts, row, kind, delay in events if kind == "DEP" and delay is not None and delay >= 60]
        for i, (end, c) in enumerate(late):
            for start, a in late[:i]:
                if end - start <= DAY:
                    loose.add(c)
                    at = bisect_left(arrivals, a)
                    if at < len(arrivals) and arrivals[at] < c:
                        exact.add(c)
    return exact, loose


def test_the_match_points_are_those_found_by_hand(findings: Findings) -> None:
    """k = 0 and k = 1 against two nested loops."""
    exact, loose = by_hand()
    assert findings.exact_points == len(exact)
    assert {c for _, c in findings.pairs} == loose - exact
    assert len(findings.pairs) == 17


def test_what_only_one_error_finds_really_lacks_its_arrival(findings: Findings) -> None:
    """The demo says so in words; here it is checked against the data."""
    assert all(findings.lost)
    table = flights()
    rows = table.select(["key", "carrier", "flight", "sched_ts", "type"]).to_pylist()
    arrived = {(r["key"], r["carrier"], r["flight"], r["sched_ts"]) for r in rows if r["type"] == "ARR"}
    for a, _ in findings.pairs:
        flight = rows[a]
        assert (flight["key"], flight["carrier"], flight["flight"], flight["sched_ts"]) not in arrived


@pytest.mark.parametrize("errors", [0, 1] if FULL else [1])
def test_counts_and_points_are_those_of_a_query_of_its_own(findings: Findings, errors: int) -> None:
    """The demo lists its matches once for both k; here each k is a query of its own."""
    found = compile_query(QUERY, errors=errors).match(flights())
    assert found.count_by_errors() == {number: findings.counts[number] for number in range(errors + 1)}
    points = found.points()
    assert set(points["row"].to_pylist()) == by_hand()[errors]
    assert points.num_rows == findings.exact_points + errors * len(findings.pairs)


def test_the_command_tells_its_story(tmp_path: Path) -> None:
    """Words, numbers, the table and the picture."""
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["demo", "--output", str(page)])
    assert done.exit_code == 0, done.output
    for piece in ("17 more", "arrival: missing", "events/s", "matches with 1 error", "N12996", str(page)):
        assert piece in done.output
    assert "<svg" in page.read_text()


def test_quiet_and_a_wrong_folder(tmp_path: Path) -> None:
    """Nothing but the picture; and an honest error where it cannot be written."""
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["demo", "--quiet", "--output", str(page)])
    assert (done.exit_code, done.output) == (0, "")
    assert page.exists()
    lost = CliRunner().invoke(app, ["demo", "--output", str(tmp_path / "nowhere" / "page.html")])
    assert lost.exit_code != 0


def test_the_flights_can_be_had_as_a_file(tmp_path: Path) -> None:
    """Columns, times and types are those of the demo; a name that says no format is refused."""
    file = tmp_path / "flights.parquet"
    done = CliRunner().invoke(app, ["demo", "--save-events", str(file)])
    assert (done.exit_code, done.output) == (0, f"{file}: 664,839 events\n")
    assert pq.read_table(file).equals(flights())
    assert [path.name for path in tmp_path.iterdir()] == ["flights.parquet"]
    for name in ("flights.xls", "nowhere/flights.csv"):
        assert CliRunner().invoke(app, ["demo", "--save-events", str(tmp_path / name)]).exit_code != 0


def test_the_picture_says_what_it_shows(findings: Findings) -> None:
    """Title, query and both numbers."""
    page = picture(flights(), findings)
    for piece in ("Delays that travelled", "9,221", "0 errors: 3,515", "1 error: 17"):
        assert piece in page
