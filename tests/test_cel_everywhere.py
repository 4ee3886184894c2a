"""Queries in CEL take part in what other queries do, or are refused by name: budgets, history, late events, Spark."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from acep_approx import AcepError, HistoryGraph, UsageError, compile_query
from tests.cases import cases
from tests.cel_runs import found, found_with_a_stop
from tests.cel_worlds import cel_world
from tests.command_line import acep
from tests.patience import ended

pytestmark = pytest.mark.usefixtures("one_reading")

FALLING = "SELECT name, price_1 AS high, price AS low FROM Stock FOLD{$2.name = $.name, $2.price < $.price, } Stock"
BOUNDED = f"{FALLING} WITHIN 60"
NAMES = ("ts", "type", "name", "price", "left")


def stock(rows: int, seed: int, ties: int = 1) -> pa.Table:
    """Quotes of two stocks, ``ties`` at a time, each with a time at which it began."""
    dice = Random(seed)
    columns = [
        (n // ties, "Stock", dice.choice("ab"), dice.randrange(100), n // ties - dice.randrange(3)) for n in range(rows)
    ]
    return pa.table(dict(zip(NAMES, map(list, zip(*columns, strict=True)), strict=True)))


def late(events: pa.Table, delay: int, seed: int) -> pa.Table:
    """The same events, each up to ``delay`` rows late."""
    dice = Random(seed)
    return events.take(sorted(range(len(events)), key=lambda row: row + dice.random() * delay))


def rows(table: pa.Table, *without: str) -> Counter[str]:
    """The rows of a table, in no order."""
    return Counter(map(str, table.drop_columns(list(without)).to_pylist()))


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return stock(3000, 1)


# --- budgets and history ------------------------------------------------------------------------------------------


def test_a_budget_finds_a_part_of_the_exact_answer(events: pa.Table) -> None:
    """With a history, without one, and while it learns; all of it where the budget buys all."""
    query = compile_query(BOUNDED)
    exact = query.match(events).to_arrow()
    history = HistoryGraph(query).fit(events.slice(0, 1500))
    assert history.points_ > 500
    for more in ({"history": history}, {}, {"learn": True}, {"policy": "most-advanced"}, {"audit": 0}):
        some = query.match_within(events, "0.5 steps/event", **more)
        part = found(some.to_arrow())
        assert 0 < part.total() < found(exact).total()
        assert not part - found(exact)
        assert some.record().work <= 0.5 * len(events)
    assert query.match_within(events, "100%", history=history).to_arrow().equals(exact)
    assert query.match_within(events, "1000 steps/event").counts().equals(query.match(events).counts())


def test_random_queries_inside_a_budget_find_nothing_wrong() -> None:
    """Also with ties and intervals, merged or not, in batches and over restarts."""
    number = some = 0
    for seed in range(cases(400)):
        world = cel_world(seed, subqueries=False, intervals=seed % 2 == 0)
        starts: dict[str, Any] = {"start": "start"} if seed % 2 == 0 else {}
        table = world.table if starts else world.table.drop_columns("start")
        query = compile_query(world.text, within="12")
        exact = found(query.match(table, **starts).to_arrow())
        matcher = query.matcher(budget="1 steps/event", seed=seed, **starts)
        part = found_with_a_stop(query, matcher, table)
        assert not part - exact, seed
        number, some = number + exact.total(), some + part.total()
    assert number > some > 0


def test_points_of_a_budget_are_expanded(events: pa.Table) -> None:
    """To all results that end with one of them."""
    query = compile_query(BOUNDED)
    some = query.match_within(events, "2 steps/event")
    ends = set(some.points()["end"].to_pylist())
    exact = [row for row in query.match(events).to_arrow().to_pylist() if row["end"] in ends]
    assert some.expanded().to_pylist() == exact


@pytest.mark.parametrize("text", [FALLING, "FROM Stock NEXT Stock"])
def test_what_never_ends_has_no_budget(text: str, events: pa.Table) -> None:
    query = compile_query(text)
    tries = [
        lambda: query.match_within(events, "5 steps/event"),
        lambda: query.matcher(budget="5 runs"),
        lambda: HistoryGraph(query),
    ]
    for one in tries:
        with pytest.raises(UsageError, match="a query in CEL without a window do not go together") as refused:
            one()
        assert refused.value.code == "ACEP-U073"
        assert "WITHIN" in (refused.value.hint or "")
    assert len(compile_query(text, within="60").match_within(events, "1000 steps/event")) > 0


def test_what_remembers_nothing_has_nothing_to_shed(events: pa.Table) -> None:
    query = compile_query("SELECT price FROM FILTER{price > 90}(Stock)")
    assert query.match_within(events, "5 steps/event").to_arrow().equals(query.match(events).to_arrow())


# --- outputs ------------------------------------------------------------------------------------------------------


def test_outputs_that_show_events_are_refused(events: pa.Table) -> None:
    query = compile_query(BOUNDED)
    matches = query.match(events)
    tries = {
        "ACEP-U074": [matches.partial, lambda: query.matcher(output="partial")],
        "ACEP-U007": [matches.compressed],
        "ACEP-U051": [lambda: query.match(events, bind="price"), lambda: query.matcher(bind=["name", "price"])],
    }
    for code, some in tries.items():
        for one in some:
            with pytest.raises(UsageError, match="a query in CEL do not go together") as refused:
                one()
            assert refused.value.code == code
            assert refused.value.hint


def test_points_may_be_shown_by_a_column(events: pa.Table) -> None:
    query = compile_query(BOUNDED)
    shown, plain = (query.matcher(output="points", bind=bind).push(events) for bind in ("price", None))
    assert shown["price"].to_pylist() == events["price"].take(plain["row"].combine_chunks()).to_pylist()
    named = query.matcher(id="price").push(events)
    assert named.equals(query.match(events).to_arrow())


def test_bundles_are_of_points(events: pa.Table) -> None:
    matches = compile_query(BOUNDED).match(events)
    assert sum(matches.bundles()["points"].to_pylist()) == len(matches.points())


@pytest.mark.parametrize("within", ["50 events", "1.5"])
def test_windows_of_other_queries_are_refused(within: str) -> None:
    """A window that replaces that of the text is as good as one in the text."""
    with pytest.raises(AcepError, match=r"ACEP-Q112|ACEP-Q045"):
        compile_query(FALLING, within=within)


def test_templates_are_no_queries() -> None:
    with pytest.raises(AcepError, match="ACEP-Q085"):
        compile_query("SELECT price FROM FILTER{price > :low}(Stock)")


# --- late events --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["matches", "points", "counts"])
@pytest.mark.parametrize("start", [None, "left"])
def test_late_events_are_waited_for(output: Any, start: str | None) -> None:
    """As of the sorted stream, over restarts; also where no window bounds the query."""
    query, stream = compile_query(FALLING), stock(400, 2, ties=2)
    plain = query.matcher(output=output, start=start).push(stream)
    matcher, shuffled, parts = query.matcher(watermark=8, output=output, start=start), late(stream, 12, 3), []
    for first in range(0, 400, 37):
        parts.append(matcher.push(shuffled.slice(first, 37)))
        matcher = query.from_state(matcher.state_bytes())  # type: ignore[assignment]
    whole = pa.concat_tables([*parts, matcher.finish()])
    assert whole.schema == plain.schema
    other = () if output == "matches" else ("row",)  # the number of a row is that of its arrival
    assert rows(whole, *other) == rows(plain, *other)
    assert plain.num_rows > 100


def test_events_are_taken_back_before_the_watermark() -> None:
    query = compile_query("SELECT price_1 AS high, price AS low FROM Stock NEXT Stock")
    stream = [
        {"ts": tick, "type": "Stock", "price": price, "op": op}
        for tick, price, op in ((1, 9, "+I"), (2, 7, "+I"), (3, 5, "+I"), (2, 7, "-D"))
    ]
    matcher = query.matcher(watermark=5, op="op")
    pairs = pa.concat_tables([matcher.push(stream), matcher.finish()])
    assert pairs.to_pylist() == [{"high": 9, "low": 5, "start": 1, "end": 3, "times": 1}]


@pytest.mark.parametrize("output", ["matches", "points"])
def test_what_is_final_is_not_held(output: Any) -> None:
    """Also where no window ends: results name no events but their last one."""
    matcher, shuffled = compile_query(FALLING).matcher(watermark=8, output=output), late(stock(2000, 2, ties=2), 12, 3)
    for first in range(0, 2000, 100):
        matcher.push(shuffled.slice(first, 100))
    assert matcher.held_events < 50


def test_any_name_of_an_attribute_may_come_late() -> None:
    """Also one that results of other queries have as a column of their own."""
    query = compile_query("SELECT x AS row, x AS missing FROM A")
    stream = [{"ts": tick, "type": "A", "x": tick} for tick in (2, 1, 3)]
    matcher = query.matcher(watermark=2)
    done = pa.concat_tables([matcher.push(stream), matcher.finish()])
    assert done["row"].to_pylist() == done["missing"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("asked", [{"emit": "early"}, {"changelog": True, "watermark": 5}, {"emit": 2, "watermark": 5}])
def test_results_are_not_taken_back(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a query in CEL do not go together yet") as refused:
        compile_query(BOUNDED).matcher(**asked)
    assert refused.value.code == "ACEP-U055"


def test_late_events_may_be_left_out_or_sorted(tmp_path: Path) -> None:
    stream = stock(60, 4)
    query, shuffled = compile_query(FALLING), late(stream, 6, 5)
    assert query.match(shuffled, sort=True).to_arrow().equals(query.match(stream).to_arrow())
    with pytest.raises(AcepError, match="ACEP-D007"):
        query.match(shuffled).to_arrow()
    matches = query.match(shuffled, on_late="skip", late=tmp_path / "late.csv")
    kept = [row for n, row in enumerate(shuffled.to_pylist()) if row["ts"] >= max(shuffled["ts"].to_pylist()[: n + 1])]
    assert matches.to_arrow().equals(query.match(kept).to_arrow())
    assert matches.source.late.count == 60 - len(kept)


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, events: pa.Table) -> Path:
    home = tmp_path_factory.mktemp("cel")
    pa.csv.write_csv(events, home / "events.csv")
    pa.csv.write_csv(late(events, 5, 6), home / "late.csv")
    for name, text in (("free", FALLING), ("within", BOUNDED)):
        (home / f"{name}.cel").write_text(text, encoding="utf-8")
    return home


def test_a_history_is_trained_and_tuned(folder: Path) -> None:
    query, past, history = (str(folder / name) for name in ("within.cel", "events.csv", "history"))
    assert "match points" in acep("train", query, past, "-o", history).stderr
    assert "recommended" in acep("tune", query, past, "--quiet").stdout
    budget = ("--budget", "2 steps/event", "--history", history)
    run = acep("run", query, past, *budget, "--report", str(folder / "report.html"))
    assert "policy history" in run.stderr
    assert (folder / "report.html").stat().st_size > 10_000
    told = acep("replay", query, past, *budget, "--around", "100", "--quiet").stdout
    assert "a partial match of b that began at" in told


def test_the_command_line_sorts_waits_and_counts(folder: Path) -> None:
    query, sorted_, unsorted = (str(folder / name) for name in ("free.cel", "events.csv", "late.csv"))
    whole = acep("run", query, sorted_, "--quiet").stdout
    assert acep("run", query, unsorted, "--sort", "--quiet").stdout == whole
    waited = acep("run", query, unsorted, "--watermark", "6", "--quiet").stdout
    assert sorted(waited.splitlines()) == sorted(whole.splitlines())
    for more in ((), ("--watermark", "6")):
        counted = acep("run", query, unsorted, *(more or ("--sort",)), "--output", "count", "--quiet").stdout
        assert json.loads(counted)["matches"] == len(whole.splitlines())


REFUSED = {
    "ACEP-U007": ("run", "within.cel", "events.csv", "--output", "compressed", "-o", "links"),
    "ACEP-U051": ("run", "within.cel", "events.csv", "--bind", "price"),
    "ACEP-U055": ("run", "within.cel", "late.csv", "--watermark", "6", "--emit", "early"),
    "ACEP-U073": ("run", "free.cel", "events.csv", "--budget", "20 runs"),
    "ACEP-U073 train": ("train", "free.cel", "events.csv", "-o", "free"),
    "ACEP-U073 tune": ("tune", "free.cel", "events.csv"),
    "ACEP-U074": ("run", "within.cel", "events.csv", "--output", "partial"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_the_command_line_refuses(code: str, folder: Path) -> None:
    command, *given = REFUSED[code]
    named = [folder / word if word.endswith((".cel", ".csv")) or word in ("links", "free") else word for word in given]
    done = acep(command, *map(str, named), code=2)
    assert code.split(maxsplit=1)[0] in done.stderr
    assert "hint:" in done.stderr
    assert not done.stdout


# --- Spark --------------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("spark")
def test_spark_finds_the_same(spark: Any, events: pa.Table) -> None:
    """By the key that is implied, else in one task."""
    some = events.slice(0, 600)
    frame = spark.createDataFrame(late(some, 50, 7)).repartition(3)
    for text in (FALLING, BOUNDED, "SELECT price_1 AS low, price FROM Stock NEXT{$2.price > $1.price} Stock"):
        query = compile_query(text)
        (part,) = query.spark(time="ts").job(some.schema).parts
        assert part.keys == (("name",) if query.plan.implied_key else ())
        there = query.spark(time="ts")(frame).toArrow()
        assert rows(there) == rows(query.match(some).to_arrow())
    points = compile_query(BOUNDED).spark(time="ts", output="points", id="price")(frame).toArrow()
    assert rows(points) == rows(compile_query(BOUNDED).matcher(output="points", bind="price").push(some))
    part = compile_query(BOUNDED).spark(time="ts", budget="2 steps/event")(frame).toArrow()
    assert not rows(part) - rows(compile_query(BOUNDED).match(some).to_arrow())
    assert part.num_rows > 0
    with pytest.raises(UsageError, match="ACEP-U073"):
        compile_query(FALLING).spark(time="ts", budget="2 steps/event")(frame)
    with pytest.raises(UsageError, match="ACEP-U051"):
        compile_query(FALLING).spark(time="ts", bind="price")(frame)


@pytest.mark.xdist_group("spark")
def test_a_stream_of_spark_finds_the_same(spark: Any, tmp_path: Path) -> None:
    """Over several micro-batches, with events that come late."""
    stream = stock(300, 8, ties=2)
    stream = stream.set_column(0, "ts", pa.array([tick + 1 for tick in stream["ts"].to_pylist()], pa.int64()))
    shuffled, folder = late(stream, 8, 9), tmp_path / "events"
    folder.mkdir()
    future = stream.slice(0, 1).set_column(0, "ts", pa.array([10**6], pa.int64()))
    for number, part in enumerate([shuffled.slice(0, 140), shuffled.slice(140), future]):
        pq.write_table(part, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (10**9 + number,) * 2)  # Spark reads the oldest first
    files = spark.readStream.schema(spark.createDataFrame(stream.slice(0, 0)).schema)
    files = files.option("maxFilesPerTrigger", 1).parquet(str(folder))
    flow = compile_query(FALLING).spark(watermark="10 milliseconds", shards=1).flow(files)
    packed = flow.outputs().writeStream.format("memory").queryName("cel").trigger(availableNow=True).start()
    ended(packed)
    assert rows(flow.matches(spark.table("cel")).toArrow()) == rows(compile_query(FALLING).match(stream).to_arrow())


def test_spark_is_refused_what_it_cannot_do() -> None:
    with pytest.raises(UsageError, match="ACEP-U055"):
        compile_query(FALLING).spark(emit="early")
