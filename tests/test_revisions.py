"""The net law: whatever comes late, is revised or taken back, all that was put out adds up to the plain answer.

Held after every push, punctuation and restart, over the whole language, against ``query.match`` of the events that the
model says are live. A schedule that fails says its seed, and is shown with all left out that can be.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError
from tests.cases import FULL, cases
from tests.revised_answers import plain
from tests.revised_model import Ledger, Model, Schedule, frozen, smallest
from tests.revised_streams import TWELVE, long_schedule, schedule

CHUNKS = 20
ONE = os.environ.get("ACEP_SCHEDULE")
REPEAT = "repeat it: ACEP_SCHEDULE={} pytest tests/test_revisions.py -k '{}'"
SHRINKING = 20
"""Seconds."""

# --- a schedule -------------------------------------------------------------------------------------------------------


def net_law(asked: Schedule) -> None:
    """Runs a schedule; after each step all that was put out must be the plain answer."""
    query = compile_query(asked.text, engine=asked.engine)
    matcher, model = query.matcher(**asked.options()), asked.model()
    rows = [row for step in asked.steps for row in step.rows or ()]
    has_ids = not asked.id or bool(asked.op) or all(row["id"] is not None for row in rows)
    is_telling = asked.output == "matches" and not query.syntax.outputs
    ledger = Ledger(has_ids=has_ids, is_telling=is_telling and has_ids)
    before: list[Any] = []
    for number, step in enumerate([*asked.steps, None]):
        known = len(model.left_out)
        if step is None:
            ledger.take(checked(matcher.finish(), asked))
        elif step.tick is not None:
            ledger.take(checked(punctuated(matcher, model, step.tick), asked))
        elif step.rows is not None:
            ledger.take(checked(matcher.push(asked.table(step.rows)), asked))
            model.push(step.rows)
        else:
            matcher = query.from_state(matcher.state_bytes())
        agrees_on_rejected(matcher.rejected(), model.left_out[known:], rows, asked)
        now = [[one.number for one in model.ordered()], model.horizon, model.watermark, step is None]
        if now != before:  # else nothing can have changed
            columns, expected = plain(asked, query, model, is_over=step is None)
        before = now
        more, fewer = ledger.net - expected, expected - ledger.net
        assert not more | fewer, f"after step {number} too much: {more}, missing: {fewer}"
        assert not ledger.columns or not columns or ledger.columns == columns
        assert step is None or matcher.watermark == model.watermark


def checked(table: pa.Table, asked: Schedule) -> pa.Table:
    """A table whose last columns are those that say what becomes of a row, where rows can be taken back."""
    last = [] if asked.emit == "final" else ["op", "match_id"]
    assert not table.num_columns or [n for n in table.column_names if n in ("op", "match_id")] == last
    assert table.column_names[len(table.column_names) - len(last) :] == last or not table.num_columns
    return table


def punctuated(matcher: Any, model: Model, tick: int) -> pa.Table:
    """Time passes, or is refused where it runs backwards."""
    if model.punctuate(tick):
        return matcher.punctuate(tick)
    with pytest.raises(DataError) as caught:
        matcher.punctuate(tick)
    assert caught.value.code == "ACEP-D072"
    return pa.table({})


def agrees_on_rejected(table: pa.Table, left_out: list[Any], rows: Sequence[Any], asked: Schedule) -> None:
    """The rows left out are those of the model, each for one of the reasons it may have, and with all its values."""
    assert table.column_names[:2] == ["reason", "row"] or not left_out
    found = sorted(table.to_pylist(), key=lambda row: row["row"]) if table.num_rows else []
    assert [row["row"] for row in found] == [number for number, _ in left_out]
    for row, (number, reasons) in zip(found, left_out, strict=True):
        assert row["reason"] in reasons, (number, row["reason"], reasons)
        assert {n: frozen(row[n]) for n in rows[number]} == {n: frozen(v) for n, v in rows[number].items()}


def holds_for(asked: Schedule, check: Callable[[Schedule], None], repeat: str) -> None:
    """Check a schedule; where the check fails, show its seed, and a smallest schedule that fails too."""
    until = time.monotonic() + SHRINKING

    def fails(smaller: Schedule) -> bool:
        try:
            check(smaller)
        except Exception:  # noqa: BLE001  whatever it is, a smaller one shows it better
            return time.monotonic() < until
        return False

    try:
        check(asked)
    except Exception as error:
        until = time.monotonic() + SHRINKING
        small = smallest(asked, fails)
        try:
            check(small)
        except Exception as shown_better:
            shown_better.add_note(f"{small}\n{repeat}")
            raise shown_better from None
        error.add_note(repeat)
        raise


@pytest.mark.parametrize("part", range(CHUNKS))
def test_net_law(part: int) -> None:
    """Random queries, streams, disorder, changes, watermarks, splits and restarts; every output and engine."""
    seeds = range(cases(5000, 80)) if ONE is None else [int(ONE)]
    for seed in seeds[part::CHUNKS]:
        holds_for(schedule(seed), net_law, REPEAT.format(seed, "net_law"))


@pytest.mark.parametrize("number", range(len(TWELVE)))
def test_long_streams(number: int) -> None:
    """Hundreds of events: windows expire, what is settled is forgotten, and late events are let in and left out."""
    for seed in (range(10) if FULL else [number % 10]) if ONE is None else [int(ONE)]:
        holds_for(long_schedule(TWELVE[number], seed), net_law, REPEAT.format(seed, f"long_streams and {number}"))


WALKED = (
    "PATTERN SEQ(A a, B b, C c) WITHIN 6 ERRORS 1 MAXIMAL",
    "PATTERN SEQ(A a, ~(C c), B+ b[]) WHERE [g] WITHIN 6 MAXIMAL",
    "PATTERN SEQ(A a, B+ b[], C? c) WHERE [g] WITHIN 5 events MAXIMAL",
    "PATTERN SEQ(A a, B* b[], C c) WHERE [g] WITHIN 9 ERRORS 1 MAXIMAL FIRST MATCH EVERY 3",
)
"""Queries whose maximal matches are listed without the others."""


@pytest.mark.parametrize("text", WALKED)
def test_maximal_matches_come_and_are_taken_back(text: str) -> None:
    """Results that are put out early, too."""
    assert compile_query(text).plan.walks_maximal
    for seed in range(cases(40, 4)):
        holds_for(long_schedule(text, seed), net_law, REPEAT.format(seed, "maximal_matches"))


def test_schedules_hold_what_they_should() -> None:
    """The model of some hundred of them: all reasons, restarts, empty pushes, retractions, and time that passes."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        asked = schedule(seed)
        model = asked.model()
        for step in asked.steps:
            seen["restart"] += step.rows is None and step.tick is None
            seen["empty"] += step.rows == ()
            seen["backwards, by a call"] += step.tick is not None and not model.punctuate(step.tick)
            model.push(step.rows or ())
        seen.update({f"emit {asked.emit}", asked.output, asked.engine, f"op {asked.op}", f"id {asked.id}"})
        seen.update(reason for _, reasons in model.left_out for reason in reasons)
        seen["taken back"] += sum(sign < 0 for sign, _ in model.changes)
        seen["kept its place"] += sum(held.place != held.number for held in model.live)
        words = ("RETURN", "NON OVERLAP", "~", "SIMULTANEOUS", " events", "ERRORS", "next", "partition", "strict")
        seen.update(word for word in words if word in asked.text)
    least = {"duplicate": 10, "unknown": 30, "late": 100, "backwards": 5, "taken back": 100, "kept its place": 20}
    least |= {"restart": 100, "empty": 20, "backwards, by a call": 5, "NON OVERLAP": 10, "RETURN": 10, "cells": 2}
    assert not {what: (seen[what], times) for what, times in least.items() if seen[what] < times}
    assert {"emit final", "emit early", "emit 2", "points", "counts", "runs", "op None", "op change"} <= seen.keys()
    assert {"SIMULTANEOUS", " events", "ERRORS", "next", "partition", "strict", "id None", "~"} <= seen.keys()


# --- by hand ----------------------------------------------------------------------------------------------------------

SOME = "PATTERN SEQ(A a, B b) WITHIN 5"


def event(ts: Any, kind: str, number: int, op: str = "+I") -> dict[str, Any]:
    return {"op": op, "id": number, "ts": ts, "type": kind}


def test_an_unknown_op_changes_nothing() -> None:
    """Nothing of its push is applied, and the matcher goes on as if it had not been."""
    matcher = compile_query(SOME).matcher(emit="early", id="id")
    matcher.push([event(1, "A", 1)])
    with pytest.raises(DataError) as caught:
        matcher.push([event(2, "B", 2), event(1, "A", 1, "-D"), event(3, "B", 3, "?")])
    assert caught.value.code == "ACEP-D070"
    found = matcher.push([event(2, "B", 2)]).to_pylist()
    assert [(row["a"], row["b"], row["op"]) for row in found] == [(1, 2, "+I")]
    assert matcher.rejected().num_rows == 0


def test_an_update_keeps_its_place_among_ties() -> None:
    """Also over a restart between its halves; not where its time changes."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE strict_contiguity WITHIN 5")
    rows = [event(1, kind, number) for number, kind in enumerate("CABC")]
    for ts, expected in ((1, [("-D", 1, 2), ("+I", 5, 2)]), (0, [("-D", 1, 2)])):
        matcher: Any = query.matcher(emit="early")
        assert matcher.push(rows).num_rows == 1
        found = matcher.push([{**rows[1], "op": "-U"}]).to_pylist()
        matcher = query.from_state(matcher.state_bytes())
        found += matcher.push([{**rows[1], "op": "+U", "id": 7, "ts": ts}]).to_pylist()
        assert [(row["op"], row["a"], row["b"]) for row in found] == expected


def test_equal_events_are_a_multiset() -> None:
    """Without ids each retraction takes one of those with the same content, whichever: they stand side by side."""
    for seed in range(cases(100)):
        dice = Random(seed)
        matcher, ledger = compile_query(SOME).matcher(emit="early"), Ledger()
        ticks: list[int] = []
        live: list[int] = []
        rows: list[dict[str, Any]] = []
        for _ in range(dice.randint(5, 25)):
            ts = dice.choice((*live, 0, 1, 2, 3, 4, 6, 8, 9))
            op = "-D" if live and dice.random() < 0.4 else "+I"
            rows.append({"op": op, "ts": ts, "type": "AB"[ts % 2]})
            ticks.append(ts)
            live += [ts] if op == "+I" else []
            if op == "-D" and ts in live:
                live.remove(ts)
            if dice.random() < 0.5:
                ledger.take(matcher.push(rows))
                rows = []
        ledger.take(matcher.push(rows))
        at = {name: ledger.columns.index(name) for name in ("a", "b")} if ledger.columns else {}
        found = Counter((ticks[row[at["a"]]], ticks[row[at["b"]]]) for row in ledger.net.elements())
        pairs = ((a, b) for a in live for b in live)
        assert found == Counter((a, b) for a, b in pairs if a % 2 == 0 and b % 2 and 0 < b - a <= 5), seed


def test_match_ids_say_nothing_of_how_events_came() -> None:
    """The same events in another order, split and restarted, some of them revised on the way: the same ids."""
    query = compile_query("PATTERN SEQ(A a, B+ b[]) WHERE [g] WITHIN 6")
    dice = Random(1)
    rows = [event(ts, "AB"[ts % 2], ts) | {"g": "pq"[ts % 3 == 0]} for ts in range(24)]
    whole = ids(query.matcher(emit="early", id="id", op="op").push(rows))
    matcher: Any = query.matcher(emit="early", id="id", op="op")
    found: dict[tuple[Any, ...], str] = {}
    for row in dice.sample(rows, len(rows)):
        wrong = {**row, "type": "B", "ts": row["ts"] + 1}
        changes = [wrong, {**wrong, "op": "-U"}, {**row, "op": "+U"}] if dice.random() < 0.5 else [row]
        for change in changes:
            table = matcher.push([change])
            found = {key: name for key, name in found.items() if key not in ids(table, "-D")} | ids(table)
        matcher = query.from_state(matcher.state_bytes())
    assert found == whole
    assert len(whole) == len(set(whole.values())) > 20


def ids(table: pa.Table, op: str = "+I") -> dict[tuple[Any, ...], str]:
    """The rows of a table put out, or taken back, with their ids."""
    rows = [row for row in table.to_pylist() if row["op"] == op]
    return {frozen([row["g"], row["a"], row["b"]]): row["match_id"] for row in rows}


def test_time_in_seconds() -> None:
    """Watermarks and speculation are said in units of time where events have dates; ticks are microseconds."""
    begin = datetime(2024, 5, 1, tzinfo=UTC)
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 seconds")
    matcher, ledger = query.matcher(watermark="10 s", emit="4 s", id="id"), Ledger()
    for number, second in enumerate((0, 20, 12, 9, 13, 22, 24, 11, 31)):
        row = {"id": number, "ts": begin + timedelta(seconds=second), "type": "AB"[second % 2]}
        ledger.take(matcher.push(pa.Table.from_pylist([row])))
    # the watermark is at 21: before it 9 came late (20 - 10), and 11 (24 - 10); before 25 are 0, 12, 13, 20, 22, 24
    assert matcher.watermark == (int(begin.timestamp()) + 21) * 1_000_000
    assert [(row["row"], row["reason"]) for row in matcher.rejected().to_pylist()] == [(3, "late"), (7, "late")]
    assert [row[-2:] for row in ledger.net] == [(2, 4)]


def test_what_was_done_is_counted() -> None:
    rows = [event(5, "A", 1), event(9, "B", 2), event(9, "B", 2), event(5, "A", 1, "-D"), event(5, "A", 1, "-D")]
    matcher = compile_query(SOME).matcher(emit="early", id="id", watermark=5)
    matcher.push([*rows, event(3, "A", 4), event(20, "A", 5), event(9, "B", 2, "-D")])
    counts = matcher.revisions
    assert (counts.inserted, counts.retracted, counts.late) == (3, 1, 2)
    reasons = [row["reason"] for row in matcher.rejected().to_pylist()]
    assert reasons == ["duplicate", "unknown", "late", "late"]
    assert matcher.rejected().num_rows == 0


def test_without_any_of_it_a_matcher_is_the_plain_one() -> None:
    """An id alone only says what is shown of events."""
    rows = [{"ts": 1, "type": "A", "id": "x"}, {"ts": 2, "type": "B", "id": "y"}]
    found = compile_query(SOME).matcher(id="id").push(rows)
    assert found.equals(compile_query(SOME).matcher(bind="id").push(rows))
