"""Keys that are dropped when they had no event for a while: a later event of theirs is that of a new key.

The oracle is the same query without ``key_idle`` over the same events, where the key of an event says which stream of
its key it is in: ``p#0``, and ``p#1`` once no event of ``p`` has come for longer.
"""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import DataError, ManyKeysWarning, Matcher, QuerySet, UnseenTypeWarning, UsageError, compile_query
from acep_approx.matching import stream_side
from acep_approx.matching.state import MATCHER
from acep_approx.spark.worker.shard import Shard
from tests.cases import FULL, cases
from tests.command_line import acep

Rows = list[dict[str, Any]]
QUERIES = (
    "PATTERN SEQ(A a, B b) WHERE [g] WITHIN {w} events",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE [g] WITHIN {w} events",
    "PATTERN SEQ(A a, B b, C c) WHERE [g] AND b.x > a.x WITHIN {w} events",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN {w} events",
    "PATTERN SEQ(A a, ~(C c), B b) WHERE [g] AND b.x >= a.x WITHIN {w} events",
    "PATTERN SEQ(~(C c), A a, B b) WHERE [g] WITHIN {w} events",
    "PATTERN SEQ(A a, B b, C c) WHERE [g] WITHIN {w} events ERRORS 1",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity {{ [g] }} WITHIN {w} events",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity {{ [g] }} WITHIN {w} events",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match {{ [g] AND b[i].x >= b[i-1].x }} WITHIN {w} events",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN {w} events NON OVERLAP",
    "PATTERN SEQ(A a, B+ b[], C? c) WHERE [g] WITHIN {w} events MAXIMAL",
    # in windows of time what is left of the window matters no more once the stream of the key has ended
    "PATTERN SEQ(A a, B b) WHERE [g] WITHIN {w}",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] AND b.x >= a.x WITHIN {w} SIMULTANEOUS",
    "PATTERN SEQ(A a, B+ b[]) WHERE partition_contiguity {{ [g] AND b[i].x >= a.x }} WITHIN {w}",
    "PATTERN SEQ(A a, B+ b[], ~(C c)) WHERE [g] WITHIN {w} NON OVERLAP",
    "PATTERN SEQ(A a, B+ b[]) WHERE [g] WITHIN {w} events MAXIMAL CONSUME",
    "PATTERN SEQ(A a, B b) WHERE [g] WITHIN {w} MAXIMAL",
    "PATTERN SEQ(A a, ANY b) WHERE [g] WITHIN {w} FIRST MATCH EVERY 8",
    "PATTERN SEQ(A a, B+ b[], C? c) WHERE [g] WITHIN {w} MAXIMAL",
)


def stream(dice: Random) -> Rows:
    """Events of up to three keys with gaps between them; some have no key."""
    gaps, keys, tick, rows = [0, 1, 1, 2, dice.choice([3, 9])], "pqr"[: dice.randint(1, 3)], 0, []
    for _ in range(dice.choice([5, 20, 60, 200])):
        tick += dice.choice(gaps)
        key = dice.choice(keys) if dice.random() < 0.95 else None
        rows.append({"ts": tick, "type": dice.choice("AABBC"), "x": dice.randrange(4), "g": key})
    return rows


def in_streams(rows: Rows, idle: int) -> tuple[Rows, int]:
    """The events, with the number of the stream in their keys, and how many streams have ended."""
    last: dict[str, int] = {}
    number: dict[str, int] = {}
    found = []
    for row in rows:
        key = row["g"]
        if key is not None:
            number[key] = number.get(key, 0) + (row["ts"] - last.get(key, row["ts"]) > idle)
            last[key] = row["ts"]
            key = f"{key}#{number[key]}"
        found.append({**row, "g": key})
    return found, sum(number.values()) + sum(rows[-1]["ts"] - tick > idle for tick in last.values())


def shown(*tables: pa.Table) -> list[str]:
    """Results in an order of their own, with the keys as they were; partial matches may end for other reasons."""
    rows = [{**row, "g": str(row["g"]).split("#")[0], "why": None} for table in tables for row in table.to_pylist()]
    return sorted(repr(sorted(row.items())) for row in rows)


def pushed(matcher: Matcher, rows: Rows, dice: Random, *, saves: bool) -> tuple[list[str], Matcher]:
    """What a matcher finds in random pieces of the events, while time passes; it may be saved between them."""
    tables, at = [], 0
    while at < len(rows):
        size = dice.choice([1, 2, 5, 40, len(rows)])
        tables.append(matcher.push(rows[at : at + size]))
        at += size
        if saves and dice.random() < 0.3:
            matcher = Matcher.from_state(matcher.plan, matcher.state_bytes())
        if dice.random() < 0.2 and at < len(rows):
            tables.append(matcher.pass_time(rows[at]["ts"]))
    return shown(*tables, matcher.finish()), matcher


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_a_key_that_comes_back_is_a_new_key(number):
    for seed in range(cases(20, 2)):
        dice = Random(100 * number + seed)
        query = compile_query(QUERIES[number].format(w=dice.choice([2, 3, 5, 9])))
        rows, idle = stream(dice), dice.choice([0, 1, 3, 6])
        by_stream, ended = in_streams(rows, idle)
        for turn, output in enumerate(("matches", "points", "counts", "partial"), seed):
            oracle = query.matcher(output=output)
            expected = shown(oracle.push(by_stream), oracle.finish())
            for saves in (False, True) if FULL else (turn % 2 > 0,):
                found, matcher = pushed(query.matcher(output=output, key_idle=idle), rows, dice, saves=saves)
                assert found == expected, (seed, output, saves)
                if matcher.pipeline.key_slots.idle is not None:
                    assert matcher.progress.keys_dropped == ended


EVENTS = [
    {"ts": 0, "type": "A", "g": "p"},
    {"ts": 5, "type": "B", "g": "p"},  # not longer than 5
    {"ts": 11, "type": "B", "g": "p"},  # longer: the first of a new stream
    {"ts": 12, "type": "A", "g": "p"},
    {"ts": 13, "type": "B", "g": "p"},
    {"ts": 19, "type": "A", "g": "q"},
]
PAIR = compile_query("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 100 events")


def test_the_stream_of_a_key_ends_when_nothing_comes_for_longer():
    found = PAIR.match(EVENTS, key_idle=5)
    assert [match.values for match in found] == [{"a": 0, "b": 1}, {"a": 3, "b": 4}]
    assert found.progress.keys_dropped == 2
    assert len(PAIR.match(EVENTS).to_arrow()) == 4
    # numbers of events are those within the stream of their key
    assert found.points().column("position").to_pylist() == [1, 2]


def test_a_stream_that_ends_with_an_event_is_over_with_its_batch():
    matcher = PAIR.matcher(key_idle=1000)
    for tick, key in ((0, "p"), (1000, "q"), (1001, "p")):  # silent keys were looked for just before
        matcher.push([{"ts": tick, "type": "A", "g": key}])
    assert matcher.progress.keys_dropped == 1
    assert matcher.pipeline.key_slots.keys.used().tolist() == [2, 1]
    PAIR.from_state(matcher.state_bytes()).push([{"ts": 1001, "type": "B", "g": "p"}])


@pytest.mark.parametrize("text", ["SEQ(A a, B b)", "SEQ(A a, B b, ~(C c))", "SEQ(A a, B+ b[], C c)"])
@pytest.mark.parametrize("output", ["matches", "points", "counts"])
def test_keys_that_do_not_come_back_take_no_memory(text, output):
    query = compile_query(f"PATTERN {text} WHERE [g] AND b.x >= a.x WITHIN 50 events")
    for key_idle, most in ((10, 200), (None, 3000)):
        matcher = query.matcher(output=output, key_idle=key_idle)
        for first in range(0, 3000, 100):
            ticks = range(first, first + 100)
            rows = {"ts": ticks, "type": ["A"] * 100, "g": [f"k{tick}" for tick in ticks], "x": ticks}
            matcher.push(pa.table(rows))
        assert matcher.progress.keys <= most
        assert matcher.pipeline.engine.slots <= 2 * most
        assert matcher.progress.keys_dropped >= 2800 if key_idle else not matcher.progress.keys_dropped
        assert (len(matcher.state_bytes()) < 100_000) == bool(key_idle)


def test_links_of_keys_that_come_back_often_are_let_go():
    matcher = compile_query("PATTERN SEQ(A a, B b) WHERE [g] AND b.x >= a.x WITHIN 5 events").matcher(key_idle=10)
    for first in range(0, 40_000, 400):
        ticks = [100 * (tick // 4) + tick % 4 for tick in range(first, first + 400)]
        matcher.push(pa.table({"ts": ticks, "type": ["A"] * 400, "g": ["p"] * 400, "x": ticks}))
    assert matcher.pipeline.engine.links.size < 40_000


@pytest.mark.parametrize("window", ["5", "5 events"])
def test_runs_of_keys_that_went_do_not_live(window):
    matcher = compile_query(f"PATTERN SEQ(A a, B b) WHERE [g] AND b.x >= a.x WITHIN {window}").matcher(key_idle=50)
    for first in range(0, 8000, 400):
        ticks = range(first, first + 400)
        matcher.push(pa.table({"ts": ticks, "type": ["A"] * 400, "g": ticks, "x": ticks}))
    assert matcher.progress.live == matcher.progress.keys < 4000


@pytest.mark.parametrize("window", ["50", "50 events"])
def test_what_was_shed_has_the_key_that_it_had(window):
    ticks = range(20_000)
    rows = pa.table({"ts": ticks, "type": ["A"] * 20_000, "g": [f"k{tick // 4}" for tick in ticks], "x": ticks})
    query = compile_query(f"PATTERN SEQ(A a, B b) WHERE [g] AND b.x >= a.x WITHIN {window}")
    batches = rows.to_batches(max_chunksize=5000)
    found = query.match_within(iter(batches), "2 runs", audit=0, log_shed=True, key_idle=100)
    assert not len(found.to_arrow())
    shed = found.shed()
    assert shed.num_rows > 10_000
    remembered = [int(text.split()[-1]) for text in shed.column("remembers").to_pylist()]
    assert shed.column("key").to_pylist() == [f"k{x // 4}" for x in remembered]
    if window != "50":  # numbers within the stream of the key
        assert max(shed.column("at").to_pylist()) < 4


def test_what_waits_comes_when_the_stream_of_its_key_has_ended():
    query = compile_query("PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] WITHIN 100 events")
    matcher = query.matcher(key_idle=5)
    matcher.push(EVENTS[:2])
    assert matcher.waits_until == 11
    assert not len(matcher.pass_time(10))
    assert len(matcher.pass_time(11)) == 1
    assert matcher.waits_until is None


# --- sets, Spark, the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_sets_drop_keys(seed):
    dice = Random(seed)
    texts = [text.format(w=dice.choice([2, 3, 7])) for text in dice.sample(QUERIES, 4)]
    # of some queries with other constants, which run as one, and what a query publishes
    texts += [f"PATTERN SEQ(A a, B b) WHERE [g] AND a.x > {x} WITHIN 9" for x in range(3)]
    texts += ["PATTERN SEQ(A a, B b) WHERE [g] WITHIN 4 events RETURN b.g AS g, b.x AS x PUBLISH Pair"]
    texts += ["PATTERN SEQ(Pair a, Pair b) WHERE [g] WITHIN 3 events RETURN a.g AS g, b.x AS x"]
    rows, idle = stream(dice), dice.choice([1, 3])
    by_stream, _ = in_streams(rows, idle)
    desks = [QuerySet(), QuerySet(key_idle=idle)]
    for desk in desks:
        for number, text in enumerate(texts):
            desk.add(text, id=str(number))
    expected = desks[0].match(by_stream)
    whole, tables = desks[1].match(rows), {id_: [] for id_ in map(str, range(len(texts)))}
    dropped = desks[1].keys_dropped_in_match
    desk, at = desks[1], 0
    while at < len(rows):
        size = dice.choice([1, 5, 40])
        some = desk.push(rows[at : at + size])
        at += size
        for id_, parts in tables.items():
            parts.append(some[id_])
        desk = QuerySet.from_state(desk.state_bytes()) if dice.random() < 0.2 else desk
    some = desk.finish()
    for id_, parts in tables.items():
        if id_ == str(len(texts) - 1):  # pairs are rarer than events: more of its streams end
            assert shown(whole[id_]) == shown(*parts, some[id_])
            continue
        assert shown(whole[id_]) == shown(expected[id_]) == shown(*parts, some[id_]), texts[int(id_)]
    assert desk.keys_dropped == dropped > 0


def test_spark_passes_it_on():
    rows = pa.Table.from_pylist(EVENTS)
    job = PAIR.spark(id="ts", key_idle=5).job(rows.schema)
    shard = Shard(job, 0)
    found = pa.concat_tables([shard.process_sorted(rows).results, shard.finish().results])
    assert found.select(["a", "b"]).to_pylist() == [{"a": 0, "b": 5}, {"a": 12, "b": 13}]


def test_the_command_line_says_how_many_were_dropped(tmp_path):
    events = tmp_path / "events.csv"
    events.write_text("ts,type,g\n" + "".join(f"{row['ts']},{row['type']},{row['g']}\n" for row in EVENTS))
    asked = ("run", PAIR.syntax.text, str(events), "--key-idle", "5", "--format", "csv")
    for live in ((), ("--follow", "--until-idle", "0 s"), ("--follow", "--until-idle", "0 s", "--checkpoint", "c")):
        given = [str(tmp_path / name) if name == "c" else name for name in live]
        result = acep(*asked, *given)
        assert result.stdout.count("\n") == 3
        assert "2 keys dropped that had no event for more than 5" in result.stderr
    (tmp_path / "pair.acep").write_text(PAIR.syntax.text)
    result = acep("run", "--queries", str(tmp_path), str(events), "--key-idle", "5")
    assert "2 keys dropped that had no event for more than 5" in result.stderr


# --- what is said, and what is refused ------------------------------------------------------------------------


def test_many_keys_that_are_kept_are_said_once(monkeypatch):
    monkeypatch.setattr(stream_side, "MANY_KEYS", 100)
    rows = pa.table({"ts": range(150), "type": ["A"] * 150, "g": range(150)})
    matcher = PAIR.matcher()
    matcher.push(rows.slice(0, 100))
    with pytest.warns(ManyKeysWarning, match=r"\[g\].*--key-idle"):
        matcher.push(rows.slice(100, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManyKeysWarning)
        warnings.simplefilter("ignore", UnseenTypeWarning)
        matcher.push(rows.slice(110, 10))
        PAIR.match(rows, key_idle=500).to_arrow()
        compile_query("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 500").match(rows).to_arrow()


@pytest.mark.parametrize(
    ("text", "output", "given", "code"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 9 events", "matches", {}, "ACEP-U200"),
        ("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 9 events", "compressed", {}, "ACEP-U200"),
        ("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 9 events", "bundles", {}, "ACEP-U200"),
        ("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 9 events", "matches", {"key_idle": "soon"}, "ACEP-U056"),
        ("PATTERN SEQ(A a, B b) WHERE [g] WITHIN 9 events", "matches", {"key_idle": "5 s"}, "ACEP-D073"),
    ],
)
def test_what_does_not_go_together(text, output, given, code):
    def found() -> object:
        matches = compile_query(text).match(EVENTS, **{"key_idle": 5} | given)
        return matches.to_arrow() if output == "matches" else getattr(matches, output)()

    with pytest.raises((UsageError, DataError), match=code):
        found()


def test_late_events_and_cel_do_not_go_with_it():
    with pytest.raises(UsageError, match=r"ACEP-U055.*key_idle"):
        PAIR.matcher(watermark=5, key_idle=5)
    desk = QuerySet(key_idle=5)
    with pytest.raises(UsageError, match="ACEP-U200"):
        desk.add("SELECT * FROM A FOLD{$2.g = $1.g,, $.x} B", id="cel")


def test_a_state_in_which_times_of_keys_are_wrong_is_refused():
    matcher = PAIR.matcher(key_idle=5)
    matcher.push(EVENTS)
    saved = MATCHER.unpack(matcher.state_bytes())
    assert PAIR.from_state(MATCHER.pack(saved)).state_bytes() == matcher.state_bytes()
    for wrong in ([3], [-(2**62), 13, 19], [2**61, 19], []):
        keys = saved.parts["stream"].parts["keys 0"]
        assert "last" in keys.arrays
        keys.arrays["last"] = pa.array(wrong, pa.int64()).to_numpy(zero_copy_only=False)
        with pytest.raises(DataError, match="ACEP-D040"):
            PAIR.from_state(MATCHER.pack(saved))
