"""Queries in CEL without a window inside a load budget: a horizon says how long partial matches are worth keeping."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from acep_approx import AcepError, QuerySet, UsageError, compile_query
from acep_approx.planning import changed
from tests.cases import cases
from tests.cel_runs import found, found_with_a_stop
from tests.cel_worlds import cel_world
from tests.command_line import acep

pytestmark = pytest.mark.usefixtures("one_reading")

RISING = "SELECT price_1 AS low, price FROM Stock NEXT{$2.name = $1.name AND $2.price > $1.price + 60} Stock"
FALLING = "SELECT name, price_1 AS high, price AS low FROM Stock FOLD{$2.name = $.name, $2.price < $.price, } Stock"
MANY = "SELECT price_1 AS low, price FROM FILTER{price > :p}(Stock) NEXT{$2.price > $1.price + 20} Stock"
BUDGETS = ("1 steps/event", "4 steps/event", "6 runs")


def stock(rows: int, seed: int) -> pa.Table:
    """Quotes of two stocks."""
    dice = Random(seed)
    made = [{"ts": n, "type": "Stock", "name": dice.choice("ab"), "price": dice.randrange(100)} for n in range(rows)]
    return pa.Table.from_pylist(made)


def rows(table: pa.Table, *without: str) -> Counter[str]:
    """The rows of a table, in no order."""
    return Counter(map(str, table.drop_columns(list(without)).to_pylist()))


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return stock(900, 1)


@pytest.mark.parametrize("horizon", ["3", "12", "40"])
def test_random_queries_find_nothing_wrong_and_all_with_all_of_the_work(horizon: str) -> None:
    number = some = 0
    for seed in range(cases(240, 15)):
        world = cel_world(seed, subqueries=False, intervals=False)
        table, query = world.table.drop_columns("start"), compile_query(world.text)
        if not query.plan.is_unbounded:
            continue
        exact = found(query.match(table).to_arrow())
        assert found(query.match_within(table, "100%", horizon=horizon).to_arrow()) == exact
        matcher = query.matcher(budget=BUDGETS[seed % 3], horizon=horizon, seed=seed)
        part = found_with_a_stop(query, matcher, table)
        assert not part - exact, seed
        number, some = number + exact.total(), some + part.total()
    assert number > some > 0


def test_what_is_older_than_the_horizon_is_shed(events: pa.Table) -> None:
    """As if the query had such a window: so shares are of the run that keeps what is younger."""
    query, window = compile_query(RISING), compile_query(RISING, within="20")
    known, same = query.train(events.slice(0, 500), horizon="20"), window.train(events.slice(0, 500))
    assert known.steps_per_event_ == same.steps_per_event_
    now = events.slice(500)
    some = query.match_within(now, "20%", history=known, horizon="20")
    assert some.to_arrow().equals(window.match_within(now, "20%", history=same).to_arrow())
    assert 0 < len(some) < len(query.match(now))
    assert query.match_within(now, "100%", history=known, horizon="20").to_arrow().equals(query.match(now).to_arrow())
    assert "no older than 20" in some.record().bound


def test_a_run_goes_on_and_learns_with_its_horizon(events: pa.Table, tmp_path: Path) -> None:
    query = compile_query(RISING)
    saved = query.train(events.slice(0, 500), horizon="20").save(tmp_path / "known").parent
    how: dict[str, Any] = {"budget": "30%", "history": saved, "horizon": "20"}
    whole, parts = query.matcher(**how), query.matcher(**how)
    for first in (500, 600, 700):
        parts = query.from_state(parts.state_bytes(), history=saved)  # type: ignore[assignment]
        assert parts.push(events.slice(first, 100)).equals(whole.push(events.slice(first, 100)))
    late = query.matcher(**how, watermark="5")
    late.push(events.slice(500, 100))
    again = query.from_state(late.state_bytes(), history=saved)
    assert again.push(events.slice(600)).equals(late.push(events.slice(600)))
    learned = query.match_within(events, "30%", full_work=9, horizon="20", learn=True)
    learned.to_arrow()
    refreshed = learned.refreshed(query)
    assert refreshed is not None
    assert refreshed.window == 20


def test_a_set_has_a_horizon_for_what_has_no_window(events: pa.Table, tmp_path: Path) -> None:
    def filled(**how: Any) -> QuerySet:
        desk = QuerySet(horizon="20", **how)
        desk.add(RISING, id="rising")
        desk.add(FALLING, id="falling", horizon="10")
        desk.add(f"{RISING} WITHIN 5", id="within")
        desk.add_many(MANY, [{"p": p} for p in (10, 30, 50)], id="many")
        return desk

    desk = filled()
    exact, now = desk.match(events.slice(500)), events.slice(500)
    assert desk.match_within(now, "100%").to_arrow().equals(exact.to_arrow())
    known = desk.train(events.slice(0, 500))
    assert len(known) == 4
    saved = known.save(tmp_path / "known")
    some = desk.match_within(now, "20%", history=saved)
    for id_ in desk:
        part, whole = rows(some[id_], "query"), rows(exact[id_], "query")
        assert not part - whole
        assert part.total() > 0
    live, parts = filled(budget="20%", history=saved), filled(budget="20%", history=saved)
    for first in (500, 650, 800):
        parts = QuerySet.from_state(parts.state_bytes(), history=saved)
        some_rows = events.slice(first, 150)
        assert parts.push(some_rows).to_arrow().equals(live.push(some_rows).to_arrow())
    exactly = parts.match_within(now, "100%")
    assert exactly.to_arrow().equals(exact.to_arrow())


def test_the_command_line(events: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(events.slice(0, 500), "past.csv")
    pa.csv.write_csv(events.slice(500), "now.csv")
    (tmp_path / "queries").mkdir()
    for name, text in (("rising", RISING), ("within", f"{FALLING} WITHIN 9")):
        (tmp_path / "queries" / f"{name}.cel").write_text(text)
    query, until = "queries/rising.cel", ("--horizon", "20")
    acep("train", query, "past.csv", "-o", "known", *until, "-q")
    within = ("--budget", "20%", "--history", "known", *until)
    some, exact = acep("run", query, "now.csv", *within), acep("run", query, "now.csv")
    assert 0 < len(some.stdout) < len(exact.stdout)
    assert set(some.stdout.splitlines()) <= set(exact.stdout.splitlines())
    assert "no older than 20" in some.stderr
    assert acep("run", query, "now.csv", "--budget", "100%", *until, "-q").stdout == exact.stdout
    assert acep("replay", query, "now.csv", *within, "--around", "700", "-q").stdout
    folder = ("--queries", "queries")
    acep("train", *folder, "past.csv", "-o", "all", *until, "-q")
    some = acep("run", *folder, "now.csv", "--budget", "20%", "--history", "all", *until, "-q")
    assert set(some.stdout.splitlines()) <= set(acep("run", *folder, "now.csv", "-q").stdout.splitlines())
    assert some.stdout


def test_wrong_use(events: pa.Table, tmp_path: Path) -> None:
    pa.csv.write_csv(events, tmp_path / "events.csv")
    query, file = compile_query(RISING), str(tmp_path / "events.csv")
    window = compile_query(RISING, within="20")
    refused = {
        "ACEP-U221": (
            lambda: window.match_within(events, "5 runs", horizon="9"),
            lambda: window.matcher(budget="5 runs", horizon="9"),
            lambda: window.train(events, horizon="9"),
            lambda: QuerySet().add(f"{RISING} WITHIN 5", horizon="9"),
            lambda: compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match_within([], "9 runs", horizon="4"),
        ),
        "ACEP-U073": (lambda: query.match_within(events, "5 runs"), lambda: query.train(events)),
        "ACEP-U040": (lambda: query.matcher(horizon="9"),),
        "ACEP-Q007": (lambda: query.match_within(events, "5 runs", horizon="9 apples"),),
        "ACEP-Q001": (lambda: QuerySet(horizon="x"),),
    }
    for code, calls in refused.items():
        for call in calls:
            with pytest.raises(AcepError) as error:
                call()
            assert error.value.code == code
    for more, code in (
        (("--horizon", "9"), "ACEP-U040"),
        (("--horizon", "9", "--budget", "5 runs", "--spark"), "ACEP-S072"),
        (("--budget", "5 runs"), "--horizon '10 min'"),
    ):
        assert code in acep("run", RISING, file, *more, code=2).stderr
    done = acep("train", "PATTERN SEQ(A a, B b) WITHIN 5", file, "-o", "x", "--horizon", "9", code=2)
    assert "ACEP-U221" in done.stderr


def test_a_horizon_that_is_one_for_all_budgets_would_be_noticed(
    events: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 100% nothing is shed, so no partial match may end with the horizon either."""
    from acep_approx.shedding.load import Load

    monkeypatch.setattr(Load, "plan_of", lambda load, plan: changed.until(plan, load.horizon))
    query = compile_query(RISING)
    assert len(query.match_within(events, "100%", horizon="20")) < len(query.match(events))


def test_several_automata_have_no_horizon(events: pa.Table) -> None:
    """A part that forgets what is old lets the whole take what comes later: that would be no result."""
    desk = QuerySet(horizon="9")
    desk.add("FROM Stock NEXT (FROM Stock NEXT Stock)", id="several")
    with pytest.raises(UsageError, match="ACEP-U073"):
        desk.match_within(events, "5 steps/event")
