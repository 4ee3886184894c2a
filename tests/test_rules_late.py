"""Rules whose events come late: after each push all is as with the sorted stream without what came too late."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import RuleSet, compile_query, compile_rules
from acep_approx.errors import DataError, RuleError, UsageError
from tests.cases import cases
from tests.rule_runs import DRIVERS
from tests.rule_worlds import RuleWorld, rule_world

ASKED: list[dict[str, Any]] = [
    {"watermark": 3},
    {"watermark": 0},
    {"watermark": 2, "source": "src"},
    {"watermark": 2, "source": "src", "idle": 5},
    {"sequence": "seq"},
    {"watermark": 6, "sequence": "own", "source": "src"},
]
MORE = {"src": pa.string(), "seq": pa.int64(), "own": pa.int64()}
Row = dict[str, Any]


def disordered(random: Random, world: RuleWorld) -> list[Row]:
    """The events of a world out of order, of three sources, with their numbers among all and in their source."""
    rows, of_source = [dict(row) for row in world.rows], dict.fromkeys("xyz", 0)
    for number, row in enumerate(rows):
        row |= {"src": "xyz"[number % 3], "seq": number}
        of_source[row["src"]] += 1
        row["own"] = of_source[row["src"]]
    return sorted(rows, key=lambda row: row["ts"] + random.randrange(5))


def table_of(world: RuleWorld, rows: list[Row]) -> pa.Table:
    """Events as columns."""
    kinds = {**world.attributes, **MORE}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def pushes(random: Random, world: RuleWorld, asked: dict[str, Any]) -> Iterator[tuple[pa.Table, list[Row], int | None]]:
    """Pieces of the stream, each with the events that the watermark passes with it, in order, and the watermark.

    Which events come too late is asked of a query.
    """
    judge = compile_query("PATTERN SEQ(A a, B b) WITHIN 1").matcher(**asked)
    rows, waiting, number = disordered(random, world), list[tuple[int, int, Row]](), 0
    while rows:
        some = random.randrange(1, 9)
        piece, rows = rows[:some], rows[some:]
        judge.push(table_of(world, piece))
        late = {one["row"] for one in judge.rejected().to_pylist()}
        waiting += [(row["ts"], n, row) for n, row in enumerate(piece, number) if n not in late]
        number += len(piece)
        mark = judge.watermark
        passed = sorted(one[:2] for one in waiting if mark is not None and one[0] < mark)
        by_number = {n: row for _, n, row in waiting}
        waiting = [one for one in waiting if one[:2] not in passed]
        yield table_of(world, piece), [by_number[n] for _, n in passed], mark
    yield table_of(world, []), [row for *_, row in sorted(waiting, key=lambda one: one[:2])], None


def plain(output: Any) -> dict[str, Any]:
    """What came of a push, as Python has it."""
    tables = {f"match {name}": output[name] for name in output}
    tables |= {f"change {name}": table for name, table in output.changes.items()}
    return {name: table.to_pylist() for name, table in tables.items() if table.num_rows} | {
        "calls": output.calls.to_pylist(),
        "store": {name: table.to_pylist() for name, table in output.store.items()},
    }


class Both:
    """Rules that are given late events, beside the same rules that are given the sorted stream."""

    def __init__(self, world: RuleWorld, asked: dict[str, Any], driver: str, at: Path | None) -> None:
        self.world, self.rules = world, compile_rules(world.text)
        self.options: dict[str, Any] = {"store": world.store(), "driver": driver}
        self.asked, self.at = asked, at
        self.sorted = self.rules.start(**self.options)
        self.late = self.rules.start(**self.options, **asked, at=at)

    def step(self, piece: pa.Table | None, passed: list[Row], mark: int | None) -> str | None:
        """One push, or the end: gives what stopped both."""
        outcomes, errors = [], list[Any]()
        steps = (lambda: self._in_order(passed, mark, is_end=piece is None), lambda: self._late(piece))
        for step in steps:
            try:
                outcomes.append(plain(step()))
            except DataError as error:
                outcomes.append(plain(error.found) if error.found is not None else {})
                errors.append((error.code, getattr(error, "rule", None)))
        assert outcomes[0] == outcomes[1]
        assert self.late.counters == self.sorted.counters
        assert not errors or errors[0] == errors[1]
        return errors[0] if errors else None

    def _late(self, piece: pa.Table | None) -> Any:
        return self.late.finish() if piece is None else self.late.push(piece)

    def _in_order(self, passed: list[Row], mark: int | None, *, is_end: bool) -> Any:
        run, found = self.sorted, []
        try:
            if passed:
                found.append(run.push(table_of(self.world, passed)))
            found.append(run.finish() if is_end else run.pass_time(-(2**59) if mark is None else mark))
        except RuleError as error:
            error.found = run.joined([*found, error.found])  # type: ignore[list-item]
            raise
        return run.joined(found)

    def restart(self) -> None:
        """Go on from the state, or from the file."""
        if self.at is None:
            self.late = self.rules.from_state(self.late.state_bytes())
        else:
            self.late.close()
            self.late = self.rules.start(**self.options, **self.asked, at=self.at)


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("is_kept", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize("part", range(2))
def test_rules_see_the_sorted_stream(asked: dict[str, Any], part: int, tmp_path: Path, *, is_kept: bool) -> None:
    for seed in range(cases(400, 2)):
        random = Random(f"{seed} {part} {asked}")
        world = rule_world(10_000 * part + seed, failures=random.random() < 0.3)
        both = Both(world, asked, random.choice(DRIVERS), tmp_path / f"{seed}.db" if is_kept else None)
        came = 0
        for piece, passed, mark in pushes(random, world, asked):
            is_end = not piece.num_rows
            failed = both.step(None if is_end else piece, passed, mark)
            came += piece.num_rows
            assert both.late.offset == came
            if failed is not None:
                break
            assert is_end or both.late.watermark == mark
            if random.random() < 0.4:
                both.restart()
        both.late.close()


ACCOUNTS = """TABLE account (id text, n int DEFAULT 0, KEY (id))
RULE pay ON PATTERN A a WITHIN 0 DO UPDATE account SET n = old.n + a.x AT (a.id) END
RULE gone ON PATTERN SEQ(A a, ~(B b)) WITHIN 2 RETURN a.id AS id, a.x AS x"""
FULL = 2**63 - 1


def payments(*rows: tuple[int, str | None, int]) -> list[Row]:
    """Events A by time, id and sum."""
    return [{"ts": ts, "type": "A", "id": id_, "x": x} for ts, id_, x in rows]


def test_what_waits_behind_an_action_that_fails_is_neither_lost_nor_run_twice(tmp_path: Path) -> None:
    """The run stops before the event each time, until the row that it writes is mended by hand in the file."""
    rules, at = compile_rules(ACCOUNTS), tmp_path / "a.db"
    early = payments((1, "u", 1), (3, "v", FULL), (2, "v", 1), (4, "v", 5), (3, "u", 7), (9, "u", 100))
    run = rules.start(at=at, watermark=4)
    with pytest.raises(RuleError, match="row 1: the rule 'pay' cannot write") as caught:
        run.push(early)
    assert caught.value.row == 1
    assert rows_of(caught.value.outcome.changes["account"]) == [("u", 1), ("v", 1)]  # type: ignore[attr-defined]
    assert run.offset == 6
    assert run.counters["events"] == 2
    for _ in range(2):
        run.close()
        run = rules.start(at=at, watermark=4)
        assert run.offset == 6
        with pytest.raises(RuleError) as caught:
            run.pass_time(5)
        assert caught.value.row == 1
        assert not caught.value.outcome.changes["account"].num_rows  # type: ignore[attr-defined]
    run.close()
    with sqlite3.connect(at) as database:
        database.execute("UPDATE account SET n = -5 WHERE id = 'v'")
    database.close()
    with rules.start(at=at, watermark=4) as run:
        found = run.push(payments((12, "u", 1000)))
        assert rows_of(found.changes["account"]) == [("v", FULL - 5), ("u", 8), ("v", FULL)]
        assert [one["x"] for one in found["gone"].to_pylist()] == [1, 1, FULL, 7, 5]
        assert rows_of(run.finish().changes["account"]) == [("u", 108), ("u", 1108)]


def rows_of(table: Any) -> list[tuple[str, int]]:
    """The rows that changes wrote."""
    return [(one["id"], one["n"]) for one in table.to_pylist()]


@pytest.mark.parametrize("is_taken_up", [False, True])
def test_the_event_at_which_a_run_has_stopped_can_be_left_out(*, is_taken_up: bool) -> None:
    rules = compile_rules(ACCOUNTS)
    run = rules.start(watermark=0)
    for nothing in (run, rules.start()):
        with pytest.raises(UsageError, match="ACEP-U055"):
            nothing.skip()
    with pytest.raises(RuleError) as caught:
        run.push(payments((1, "u", 1), (2, None, 3), (2, "u", 5), (3, "w", 7), (4, "u", 9)))
    assert caught.value.row == 1
    if is_taken_up:
        run = rules.from_state(run.state_bytes())
        with pytest.raises(RuleError):
            run.push(payments((4, "w", 1)))
    assert run.skip().select(["ts", "x"]).to_pylist() == [{"ts": 2, "x": 3}]
    with pytest.raises(UsageError, match="ACEP-U055"):
        run.skip()
    run.finish()
    assert rows_of(run.store["account"]) == [("u", 15), ("w", 8 if is_taken_up else 7)]


def test_a_push_that_is_refused_leaves_no_trace() -> None:
    run = compile_rules(ACCOUNTS).start(sequence="m")
    rows = [event | {"m": event["ts"]} for event in payments((1, "u", 1), (2, "u", 2), (3, "u", 4))]
    run.push(rows[:1])
    with pytest.raises(DataError, match="ACEP-D074"):
        run.push([rows[1] | {"m": None}])
    assert run.offset == 1
    run.push(rows[1:])
    run.finish()
    assert rows_of(run.store["account"]) == [("u", 7)]


def test_a_file_goes_on_with_the_watermark_it_was_begun_with(tmp_path: Path) -> None:
    rules, at = compile_rules(ACCOUNTS), tmp_path / "a.db"
    events = payments((1, "u", 1), (9, "u", 2), (5, "u", 4), (3, "u", 8), (20, "u", 16))
    with rules.start(at=at, watermark=5) as run:
        run.push(events[:2])
    for other in ({}, {"watermark": 6}, {"watermark": 5, "source": "id"}):
        with pytest.raises(UsageError, match="was begun with watermark=5"):
            rules.start(at=at, **other)
    out = rules.run(events, at=at, watermark=5)
    assert rows_of(out.changes["account"]) == [("u", 5), ("u", 7), ("u", 23)]
    with rules.start(at=at, watermark=5) as run:
        assert (run.offset, run.counters["events"], run.late_count, run.watermark) == (5, 4, 1, 21)
        assert run.late().to_pylist() == [{"row": 3, "ts": 3, "type": "A", "id": "u", "x": 8}]
        assert not run.late().num_rows


def test_what_does_not_go_together_is_refused() -> None:
    rules: RuleSet = compile_rules(ACCOUNTS)
    for asked, code in (({"idle": 3}, "U055"), ({"watermark": "soon"}, "U056"), ({"reorder": 3}, "U064")):
        with pytest.raises(UsageError, match=f"ACEP-{code}"):
            rules.start(**asked)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="ACEP-D073"):
        rules.start(watermark="3 s").push(payments((1, "u", 1)))
