"""Programs of all kinds on Spark are what they are here: sets of queries, rules, early results, counts."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.api.on_spark.common_part import CommonPart
from acep_approx.api.on_spark.queries import opened
from acep_approx.errors import AcepError, DataError, UnsupportedError, UsageError
from acep_approx.spark.plan.split import split_words
from acep_approx.spark.worker.shard import Shard
from acep_approx.subscriptions.results import common_columns, in_types_of
from acep_approx.subscriptions.state import pack
from tests.cases import cases
from tests.rule_worlds import rule_world
from tests.spark_cases import ID, random_cases, rows, waits_for_the_end
from tests.spark_streamed import in_batch, streamed
from tests.spark_streams import QUERIES, stream

SHARD_COUNTS = (1, 2, 3)


# --- sets -------------------------------------------------------------------------------------------------------------

def desk_of(names: Any, **options: Any) -> QuerySet:
    """A set of some of the queries."""
    desk = QuerySet(time="ts", **options)
    for name in names:
        desk.add(QUERIES[name], id=name)
    return desk


def choice(dice: Random) -> list[str]:
    """Some queries; those that read a stream come with those that publish it."""
    chosen = {name for name in QUERIES if dice.random() < 0.4} or {"by user"}
    chosen |= {"up"} if "twice up" in chosen else set()
    chosen |= {"low"} if "after low" in chosen else set()
    return [name for name in QUERIES if name in chosen]


@pytest.mark.parametrize("seed", range(cases(240)))
def test_a_set_finds_what_it_finds_here(seed):
    dice = Random(seed)
    events, names, output = stream(dice.choice((30, 120)), seed), choice(dice), dice.choice(("matches", "points"))
    expected = rows(desk_of(names, output=output, bind="id").match(events).table())
    matcher = desk_of(names, output=output).spark(id="id")
    job = matcher.job(events.schema, is_stream=True, shards=dice.choice(SHARD_COUNTS))
    found = streamed(job, events, dice, dice.choice((0, 3)))
    assert found.rows() == expected, names
    assert found.sums["events"] == len(events)
    assert in_batch(job, events, dice).rows() == expected


def test_queries_are_matched_apart_by_the_keys_that_they_share():
    job = desk_of(QUERIES).spark(id="id").job(stream(9, 1).schema, is_stream=True, shards=2)
    parts = [(part.keys, part.shards, part.is_copy, [*part.program.running.graph.ids]) for part in job.parts]
    assert parts == [
        (("user",), 2, False, ["by user", "by both", "up", "twice up", "low"]),
        (("shop",), 2, True, ["by shop"]),
        ((), 1, True, ["by nothing", "high"]),
        ((), 1, True, ["neighbours", "cel"]),
        ((), 1, True, ["low", "after low"]),
    ]
    told = [*split_words(job.parts)]
    assert told == [
        "the job has 4 parts, and each event goes to every part",
        "5 queries (by user, by both, up, ...): matched apart by user: all events of a match have the same",
        "the query by shop: matched apart by shop: all events of a match have the same",
        *(
            f"2 queries ({ids}): matched in one task: no column is a key of all of its queries, as [user] is, and with "
            "more shards they are dealt out to more tasks"
            for ids in ("by nothing, high", "neighbours, cel")
        ),
        (
            "2 queries (low, after low): matched in one task: behind those that publish what they read, which are "
            "matched apart by other keys"
        ),
    ]
    explained = desk_of(QUERIES).spark(id="id", shards=2).explain()
    assert [line[9:] for line in explained.splitlines()] == told
    assert desk_of(QUERIES).spark(id="id", shards=2).explain(stream(9, 1).schema) == explained


def test_events_left_out_are_told_once_though_several_parts_get_them():
    events = stream(40, 3)
    job = desk_of(QUERIES).spark(id="id").job(events.schema, is_stream=True, shards=1)
    assert (job.first_shards, job.shards) == (3, 4)
    told = [Shard(job, number) for number in range(job.first_shards)]
    for shard in told:
        shard.process(events.slice(20).select(job.schema.names), None)
    found = [shard.process(events.slice(0, 2).select(job.schema.names), 30) for shard in told]
    assert [one.metrics.late for one in found] == [2, 0, 0]
    assert [len(one.left_out) for one in found] == [2, 0, 0]


@pytest.mark.parametrize("size", [1, 40])
def test_queries_of_a_template_stay_one(size):
    events = stream(120, 4)
    template = "PATTERN SEQ(A a, B b) WHERE b.x > a.x + :low WITHIN 9"
    table = [{"low": n % 8} for n in range(size)]
    here, there = QuerySet(bind="id"), QuerySet()
    for desk in (here, there):
        desk.add_many(template, table)
    expected = rows(here.match(events).table())
    job = there.spark(id="id").job(events.schema, is_stream=True, shards=3)
    assert [len(part.program.running.graph.ids) for part in job.parts] == ([1] if size == 1 else [14, 13, 13])
    assert streamed(job, events, Random(1)).rows() == expected


def test_a_shard_keeps_no_queries_that_the_job_has():
    events, dice = stream(300, 6), Random(2)
    here, there = QuerySet(bind="id"), QuerySet()
    for desk in (here, there):
        desk.add_many(
            "PATTERN SEQ(A a, B b) WHERE [user] AND a.x = :x AND b.id > :id WITHIN 9",
            [{"x": n % 9, "id": n // 9} for n in range(5_000)],
        )
    job = there.spark(id="id").job(events.schema, is_stream=True, shards=2)
    assert streamed(job, events, dice).rows() == rows(here.match(events).table())
    shard = Shard(job)
    for part, watermark in ((events.slice(0, 100), None), (events.slice(0, 0), 20)):
        shard.process(part.select(job.schema.names), watermark)
        whole = pack(shard.work.running, {})
        assert len(shard.work.state_bytes()) < len(whole) - 200_000
    state = shard.to_bytes()
    common = shard.work._common
    other = CommonPart(common.scope, "another")
    with pytest.raises(DataError, match="ACEP-S011"):
        opened(shard.work.state_bytes(), common=other)
    assert rows(Shard(job, state=state).finish().results) == rows(shard.finish().results)


@pytest.mark.parametrize("output", ["points", "counts"])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WHERE [user] WITHIN 9 RETURN a.x AS p, a.shop AS s",
        "PATTERN SEQ(A a, B b) WHERE b.x > 2 AND [user] WITHIN 9 RETURN a.shop AS s",
        "SELECT x, shop FROM FILTER {x > 2} A",
    ],
)
def test_a_query_may_name_what_no_result_depends_on(output, text):
    events, here, there = stream(60, 1), QuerySet(output=output, bind="id"), QuerySet(output=output)
    for desk in (here, there):
        desk.add(text, id="a")
    job = there.spark(id="id").job(events.schema, is_stream=True, shards=2)
    assert streamed(job, events, Random(1)).rows() == rows(here.match(events).table())


def test_rules_may_name_what_no_result_depends_on():
    events = stream(60, 1)
    text = "PATTERN SEQ(A a, B b) WHERE [user] WITHIN 9 RETURN a.shop AS s"
    rules = compile_rules(f"RULE r ON {text} FOR EACH POINT DO CALL x END")
    job = rules.spark(id="id").job(events.schema, is_stream=True, shards=2)
    found, out = streamed(job, events, Random(1)), rules.run(events)["r"]
    assert found.table().num_rows == out.num_rows > 0
    assert {*out.column_names} - {*found.table().column_names} == {"row"}


def test_what_a_set_has_of_its_own_is_refused_where_spark_has_it():
    for options, words in (
        ({"budget": "5 steps/event"}, "budget"),
        ({"watermark": 5, "source": "user"}, "source"),
        ({"stamp": True}, "stamp"),
    ):
        with pytest.raises(UsageError, match=f"ACEP-U064: .*{words}"):
            QuerySet(**options).spark()
    with pytest.raises(UsageError, match="ACEP-U040"):
        QuerySet().spark(policy="oldest")
    assert QuerySet(reorder="5 s").spark().watermark == "5 s"


def test_the_checkpoint_of_another_set_is_refused():
    events = stream(9, 1)
    mine, other = (
        desk_of(names).spark(id="id").job(events.schema, is_stream=True) for names in (["by user"], ["by both"])
    )
    shard = Shard(mine)
    shard.process(events.select(mine.schema.names), 5)
    with pytest.raises(DataError, match=r"ACEP-S012: .* queries"):
        Shard(other, state=shard.to_bytes())


# --- rules ------------------------------------------------------------------------------------------------------------


Done = tuple[Counter[str], dict[str, Counter[str]], Counter[str]]
"""Matches, changes by table, and calls, without the numbers of rows."""


def outcome_here(rules: Any, events: pa.Table, store: Any) -> Done:
    """What rules do here; columns of several rules have one type, as in the results of a set."""
    out = rules.run(events, bind=ID, store=store)
    matches: Counter[str] = Counter()
    columns = common_columns(table.schema for table in out.values())
    points = {rule.name for rule in rules.program.file.rules if rule.each == "point"}
    for rule, table in out.items():
        if rule in points:  # the numbers of rows mean nothing on Spark
            table = table.drop_columns("row")
        matches.update(f"{rule} {_known(row)}" for row in in_types_of(columns, table).to_pylist())
    changes = {name: rows(table.drop_columns("row")) for name, table in out.changes.items()}
    calls = Counter(str({name: row[name] for name in CALLED}) for row in out.calls.to_pylist())
    return matches, changes, calls


CALLED = ("rule", "name", "time", "arguments")


def _known(row: dict[str, Any]) -> str:
    """A row without the columns that it has nothing in."""
    return str(sorted((name, str(value)) for name, value in row.items() if value is not None))


@pytest.mark.parametrize("seed", range(cases(480)))
def test_rules_do_what_they_do_here(seed):
    world, dice = rule_world(seed, failures=False), Random(seed)
    try:
        rules = compile_rules(world.text)
    except UnsupportedError:
        return
    events = world.events()
    shift = 1 - min([0, *events["ts"].to_pylist()])  # before 1970 Spark has no watermark
    events = events.set_column(0, "ts", pc.add(events["ts"], shift))
    events = events.append_column(ID, pa.array(range(len(events)), pa.int64()))
    expected, changes, calls = outcome_here(rules, events, world.store())
    matcher = rules.spark(store=world.store(), id=ID)
    job = matcher.job(events.schema, is_stream=True, shards=dice.choice(SHARD_COUNTS))
    found = streamed(job, events, dice, dice.choice((0, 3)))
    matches = [{**row} for row in found.table().to_pylist()]
    told = Counter(f"{row.pop('rule')} {_known(row)}" for row in matches)
    if not _waits_for_rows(rules):
        assert told == expected, world.text
        assert {name: found.rows(f"changes of {name}") for name in changes} == changes
        told_calls = Counter(str({name: row[name] for name in CALLED}) for row in found.table("calls").to_pylist())
        assert told_calls == calls
        ids = found.table("calls")["id"].to_pylist() if found.tables["calls"] else []
        assert len(set(ids)) == len(ids)
    else:
        assert not told - expected


def _waits_for_rows(rules: Any) -> bool:
    """Whether a match waits for a window of events to close: a stream has no end."""
    return any(rule.is_late and rule.plan.is_count_window for rule in rules.program.rules)


KEYED = """
TABLE seen (id text, n int DEFAULT 0, KEY (id))
TABLE limits (kind text, most int, KEY (kind))
RULE count ON PATTERN B a WITHIN 1 DO UPSERT seen SET n = old.n + 1 AT (a.user) END
RULE often ON PATTERN SEQ(A a, B b) WHERE [user] AND store.seen[b.user].n > store.limits['often' AT b].most WITHIN 10
  DO CALL note(a.user, b.x); UPDATE seen SET n = 0 AT (a.user) END
"""
ELSEWHERE = {
    "has no key": KEYED + "RULE all ON PATTERN SEQ(A a, C c) WITHIN 3 DO UPSERT seen SET n = 1 AT (c.user) END",
    "has not the key of those before it": KEYED
    + "RULE all ON PATTERN SEQ(A a, C c) WHERE [shop] WITHIN 3 DO UPSERT seen SET n = 1 AT (c.user) END",
    "names rows of the table 'seen' by no such key": KEYED
    + "RULE all ON PATTERN SEQ(A a, C c) WHERE [user] WITHIN 3 DO UPSERT seen SET n = 1 AT (c.shop) END",
}


def test_rules_are_matched_apart_where_their_rows_lie_with_their_events():
    events, store = stream(200, 5), {"limits": [{"kind": "often", "most": 3}]}
    rules = compile_rules(KEYED)
    job = rules.spark(id="id", store=store).job(events.schema, is_stream=True, shards=3)
    assert [(part.keys, part.shards) for part in job.parts] == [(("user",), 3)]
    assert rules.spark().explain().endswith(
        "apart by user: all events of a match have the same, and it names the rows of seen, and each task has all rows "
        "of limits, which no rule writes"
    )
    found = streamed(job, events, Random(1))
    out = rules.run(events, store=store, bind="id")
    assert sum(map(len, out.values())) == len(found.table()) > 50
    assert found.rows("changes of seen") == rows(out.changes["seen"].drop_columns("row"))


@pytest.mark.parametrize("why", ELSEWHERE)
def test_other_rules_run_in_one_task_and_it_is_said_why(why):
    job = compile_rules(ELSEWHERE[why]).spark(id="id").job(stream(9, 1).schema, is_stream=True, shards=3)
    assert job.shards == 1
    assert why in next(split_words(job.parts))
    assert why in compile_rules(ELSEWHERE[why]).spark().explain()


# --- early results, counts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_early_results_come_to_those_that_are_final(seed):
    dice = Random(seed)
    for case in random_cases(cases(240), seed):
        for emit in ("early", 2):
            try:
                matcher = case.matcher(emit=emit)
            except AcepError:  # what cannot be taken back: refused here, too
                continue
            job = matcher.job(case.events.schema, is_stream=True, shards=dice.choice(SHARD_COUNTS))
            found = streamed(job, case.events, dice, dice.choice((0, 3)))
            if not waits_for_the_end(case):
                assert net(found.table()) == case.expected(), case


def net(changes: pa.Table) -> Counter[str]:
    """What remains of results that come and are taken back; none is taken back before it came."""
    remain: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for row in changes.to_pylist():
        sign = 1 if row.pop("op") == "+I" else -1
        name = row.pop("match_id")
        there[name] += sign
        remain[str(row)] += sign
        assert there[name] in (0, 1)
    return +remain


@pytest.mark.parametrize("emit", ["early", 4])
def test_results_are_taken_back_where_a_late_event_excludes_them(emit):
    query, events = compile_query("PATTERN SEQ(A a, B b, ~(C c)) WHERE [user] AND b.x > a.x WITHIN 20"), stream(400, 3)
    job = query.spark(id="id", emit=emit).job(events.schema, is_stream=True, shards=2)
    found = streamed(job, events, Random(1), 12)
    assert "-D" in found.table()["op"].to_pylist()
    assert net(found.table()) == rows(query.match(events, bind="id").to_arrow())
    final = streamed(query.spark(id="id").job(events.schema, is_stream=True, shards=2), events, Random(1), 12)
    assert found.sums["late"] == final.sums["late"] == 0


def test_a_batch_has_no_early_results():
    matcher = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").spark(emit="early")
    with pytest.raises(UsageError, match="ACEP-S071"):
        matcher.job(stream(9, 1).schema)


@pytest.mark.parametrize("seed", range(2))
def test_counts_of_a_stream_add_up(seed):
    dice = Random(seed)
    for case in random_cases(cases(240), seed):
        if waits_for_the_end(case):
            continue
        job = case.matcher(output="counts").job(case.events.schema, is_stream=True, shards=dice.choice(SHARD_COUNTS))
        found = streamed(job, case.events, dice, 3)
        sums: Counter[int] = Counter()
        for row in found.table().to_pylist():
            sums[row["errors"]] += row["matches"]
        assert +sums == +Counter(case.query.match(case.events).count_by_errors()), case


@pytest.mark.parametrize("seed", range(2))
def test_bundles_are_what_they_are_here(seed):
    dice = Random(seed)
    for case in random_cases(cases(240), seed):
        expected = rows(case.query.match(case.events).bundles())
        job = case.matcher(output="bundles").job(case.events.schema, is_stream=True, shards=dice.choice(SHARD_COUNTS))
        assert in_batch(job, case.events, dice).rows() == expected, case
        found = streamed(job, case.events, dice, dice.choice((0, 3))).rows()
        if case.query.plan.is_count_window:  # the last one of a key is open for ever
            assert not found - expected, case
        else:
            assert found == expected, case


def test_a_bundle_comes_when_no_match_point_can_join_it():
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 10")
    events = pa.table({"ts": [1, 2, 8, 40], "type": list("ABBA"), "user": ["u"] * 4, "id": range(4)})
    job = query.spark(id="id", output="bundles").job(events.schema, is_stream=True)
    shard, came = Shard(job), []
    shard.process(events.select(job.schema.names), None)
    for tick in (9, 18, 19):
        shard = Shard(job, state=shard.to_bytes())
        came.append(shard.process(job.schema.empty_table(), tick).results.to_pylist())
        assert shard.waits_until == (19 if tick < 19 else 41)
    assert came == [[], [], [{"user": "u", "first": 2, "last": 8, "points": 2, "errors": 0}]]


@pytest.mark.parametrize(("options", "code"), [({"emit": "early"}, "ACEP-U055"), ({"key_idle": 5}, "ACEP-U200")])
def test_bundles_that_there_are_not(options, code):
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [user] WITHIN 10 EVENTS")
    with pytest.raises(UsageError, match=code):
        query.spark(output="bundles", **options)


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(cases(48, 2)))
@pytest.mark.parametrize("budget", ["1 steps/event", "30%"])
def test_a_set_inside_a_budget_finds_what_is_right(budget, seed):
    dice, events = Random(seed), stream(300, seed)
    names = ["by user", "by shop", "by both"]
    expected = rows(desk_of(names, bind="id").match(events).table())
    matcher = desk_of(names).spark(id="id", budget=budget, policy="oldest", full_work=4.0, seed=seed)
    job = matcher.job(events.schema, is_stream=True, shards=2)
    found = streamed(job, events, dice, 3, 60)
    assert not found.rows() - expected
    most = 1.0 if budget != "30%" else 0.3 * 4.0
    assert 0 < found.sums["steps"] <= most * len(events) + 1e-6
    assert found.table().num_rows < expected.total()


def test_the_whole_budget_is_the_exact_answer():
    events = stream(100, 1)
    job = desk_of(QUERIES).spark(id="id", budget="100%").job(events.schema, is_stream=True, shards=2)
    assert streamed(job, events, Random(1)).rows() == rows(desk_of(QUERIES, bind="id").match(events).table())


@pytest.mark.parametrize("seed", range(cases(48, 4)))
def test_rules_inside_a_budget_say_what_is_certain(seed):
    text = """
    TABLE seen (id text, n int DEFAULT 0, KEY (id))
    RULE rise ON PATTERN SEQ(A a, B b, C c) WHERE [user] AND b.x > a.x AND c.x > b.x WITHIN 40
      DO UPSERT seen SET n = old.n + 1 AT (c.user) END
    RULE see ON PATTERN SEQ(A a, C c) WHERE [user] AND store.seen[c.user].n > 2 WITHIN 9
    """
    rules, events = compile_rules(text), stream(400, seed)
    expected = outcome_here(rules, events.append_column(ID, events["id"]), None)[0]
    matcher = rules.spark(id="id", budget="2 steps/event", policy="oldest", audit=0)
    job = matcher.job(events.schema, is_stream=True, shards=2)
    found = streamed(job, events, Random(seed), most=80)
    certain = [row for row in found.table().to_pylist() if row.pop("certain")]
    told = Counter(f"{row.pop('rule')} {_known(row)}" for row in certain)
    assert told.total() > 5
    assert not told - expected
    assert found.sums["steps"] <= 2 * len(events)


def test_learning_goes_on_in_the_states_of_shards():
    events = stream(3_000, 2)
    matcher = desk_of(["by user"]).spark(id="id", budget="1 steps/event", learn=True)
    job = matcher.job(events.schema, is_stream=True, shards=1)
    found = streamed(job, events.slice(0, 600), Random(1), most=200)
    assert np.isfinite(found.sums["steps"])
    assert not found.rows() - rows(desk_of(["by user"], bind="id").match(events.slice(0, 600)).table())
