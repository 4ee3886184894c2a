"""Rules inside a load budget: the bound, what ran, what is certain; and the answer where nothing is shed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import RuleHistory, RuleSet, compile_rules
from acep_approx.api.rule_budget import CREDIT
from acep_approx.engines.runs.lost import LostRuns
from acep_approx.errors import DataError, QueryError, UsageError
from acep_approx.events.roles import infer_roles
from acep_approx.kernels.rules.doubt import WRITES_IF
from acep_approx.rules import unsure
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.domains import Domain, domains_of
from acep_approx.rules.doubt import Guard, Marks, TableDoubt
from acep_approx.rules.firing import Firing
from acep_approx.rules.lockstep.loop import LockstepStage
from acep_approx.rules.log import TableLog, Transactions
from acep_approx.rules.losses import Watch
from acep_approx.rules.table import TableRows
from acep_approx.rules.unsure import ALL, Readings, Unsure
from acep_approx.rules.words import Texts
from history.errors import HistoryError
from tests.cases import FULL, cases
from tests.doubt_worlds import circle_world, doubt_world, late_world, world_by_hand
from tests.rule_budgets import Budgeted, run_within, way_of, wrong_within
from tests.rule_runs import Way as Exact
from tests.rule_runs import found_by
from tests.rule_worlds import RuleWorld, rule_world

pytestmark = pytest.mark.usefixtures("one_reading")

PARTS = 8
FEW_DOUBTS, FEW_CIRCLES, FEW_LATE, FEW_WORLDS = 64, 32, 16, 16
"""Of a default run."""

# --- against brute force ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_what_ran_is_exact_but_for_matches_that_did_not_fire_and_what_is_certain_is_in_the_exact_answer(
    part: int,
) -> None:
    seeds = [(doubt_world, seed) for seed in range(2_000 if FULL else FEW_DOUBTS)]
    seeds += [(circle_world, seed) for seed in range(1_000 if FULL else FEW_CIRCLES)]
    seeds += [(late_world, seed) for seed in range(200 if FULL else FEW_LATE)]
    seeds += [(_any_world, seed) for seed in range(1_000 if FULL else FEW_WORLDS)]
    for make, seed in seeds[part::PARTS]:
        world = make(seed)
        told = wrong_within(world, way_of(seed, world))
        assert not told, f"{make.__name__} {seed}\n{told}"


def _any_world(seed: int) -> RuleWorld:
    return rule_world(seed, failures=False)


# --- mutants ----------------------------------------------------------------------------------------------------------

Mutant = Callable[[], AbstractContextManager[Any]]


def doubt_is_off() -> AbstractContextManager[Any]:
    """No event is unsure."""
    return patch.object(Watch, "unsure", lambda _self, batch, _rows: Unsure.none(len(batch)))


def what_is_not_certain_clears() -> AbstractContextManager[Any]:
    """Every write takes the doubt away."""
    write, made = Firing._write, ExitStack()

    def all_clear(firing: Firing, found: Any, values: Any, numbers: Any, known: Any, _: Any) -> None:
        write(firing, found, values, numbers, known, np.arange(len(found)))

    made.enter_context(patch.object(Firing, "_leave_in_doubt", lambda *_: None))
    made.enter_context(patch.object(Firing, "_write", all_clear))
    return made


def _after_init(change: Callable[[Watch], None]) -> AbstractContextManager[Any]:
    begin = Watch.__init__

    def init(watch: Watch, *given: Any) -> None:
        begin(watch, *given)
        change(watch)

    return patch.object(Watch, "__init__", init)


def choosing_is_certain() -> AbstractContextManager[Any]:
    """NON OVERLAP and the like are as certain as all others."""
    return _after_init(lambda watch: setattr(watch, "_chooses", False))


def shadows_end_early() -> AbstractContextManager[Any]:
    """A run that was shed is forgotten before its window is over."""

    def halve(watch: Watch) -> None:
        watch._window = watch._window // 2 if watch._window > 0 else watch._window
        if watch._lost_runs is not None:
            watch._lost_runs._window //= 2

    return _after_init(halve)


def nothing_is_missed() -> AbstractContextManager[Any]:
    """What is shed leaves nothing in doubt."""
    return patch.object(Watch, "_missed", lambda *_: None)


def lost_runs_lead_nowhere() -> AbstractContextManager[Any]:
    """No event completes a run that was lost."""
    return patch.object(LostRuns, "follow", lambda _self, events, *_: np.zeros(len(events.slots), np.int64))


def windows_close_at_once() -> AbstractContextManager[Any]:
    """What waits for the end of a window leaves nothing in doubt."""
    return patch.object(Watch, "_missed_until", lambda *_: None)


def conditions_are_asked_of_what_stands_here() -> AbstractContextManager[Any]:
    """That a condition comes out otherwise for what the exact run may have is not seen."""
    return patch.object(Domain, "truth", lambda *_: (ALL, ALL))


def all_letters_end_matches() -> AbstractContextManager[Any]:
    """Events that may lead a match on are taken for such as can only end one."""
    return patch.object(unsure, "_last_letters", lambda rule: frozenset(range(len(rule.plan.letters))))


def what_ends_matches_is_in_no_doubt() -> AbstractContextManager[Any]:
    """Only events that may lead a match on are unsure."""
    made = Readings.unsure

    def ask(readings: Readings, *given: Any) -> Unsure:
        found = made(readings, *given)
        return replace(found, ends=np.zeros_like(found.ends))

    return patch.object(Readings, "unsure", ask)


def a_guard_says_all() -> AbstractContextManager[Any]:
    """That earlier events of a match are unsure is not seen where the last one is."""
    return patch.object(Watch, "guarded", lambda watch, found: watch._guards(found.end - watch._open[0][0]))


def guards_are_of_any_row() -> AbstractContextManager[Any]:
    """What is read of one row is taken for a value of the row that is written."""
    write = Watch.may_be_written

    def anywhere(watch: Watch, one: Any, of: Any, rows: Any, guard: Any = None) -> None:
        write(watch, one, of, rows, guard if guard is None or rows is None else replace(guard, rows=rows))

    return patch.object(Watch, "may_be_written", anywhere)


def guards_hold_where_several_write() -> AbstractContextManager[Any]:
    """What else may write a row in the same transaction is passed over."""

    def keep(marks: Marks) -> Marks:
        names = np.stack((marks.of.place, marks.of.tick, marks.of.start, marks.row))
        group = np.unique(names, axis=1, return_inverse=True)[1].reshape(-1)
        is_if = marks.what == WRITES_IF
        return marks.take(np.flatnonzero(is_if | ~Marks._runs(is_if, marks.statement, group)))

    return patch.object(Marks, "that_matter", keep)


def all_act_once() -> AbstractContextManager[Any]:
    """That several matches of an event count up several times is forgotten."""
    return patch.object(CompiledRule, "acts_once", True)


MUTANTS: dict[Mutant, tuple[int, ...]] = {
    doubt_is_off: (26, 122),
    what_is_not_certain_clears: (494, 610),
    choosing_is_certain: (22, 40),
    shadows_end_early: (273,),
    nothing_is_missed: (26, 59),
    lost_runs_lead_nowhere: (59, 161),
    windows_close_at_once: (146, 225),
    conditions_are_asked_of_what_stands_here: (26, 191),
}
"""Each with seeds of which one at least shows it."""


BY_HAND: dict[str, Mutant] = {
    "several count": all_act_once,
    "what leads on": all_letters_end_matches,
    "an earlier event": a_guard_says_all,
    "another row": guards_are_of_any_row,
    "two that write": guards_hold_where_several_write,
}
"""By the world that shows it."""


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_wrong_is_noticed_in_worlds_by_hand(name: str) -> None:
    world, way = world_by_hand(name), Budgeted("1 runs")
    found = run_within(world, way)
    assert not wrong_within(world, way)
    assert not found.matches["see"][0]["certain"]
    with BY_HAND[name]():
        assert wrong_within(world, way)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_what_is_wrong_is_noticed(mutant: Mutant) -> None:
    with mutant():
        worlds = {seed: doubt_world(seed) for seed in MUTANTS[mutant]}
        assert any(wrong_within(world, way_of(seed, world)) for seed, world in worlds.items())


def test_last_events_that_are_taken_for_certain_are_noticed() -> None:
    with what_ends_matches_is_in_no_doubt():
        worlds = {seed: circle_world(seed) for seed in (5, 40)}
        assert any(wrong_within(world, way_of(seed, world)) for seed, world in worlds.items())


def test_late_reads_that_are_taken_for_certain_are_noticed() -> None:
    with _after_init(lambda watch: watch._late.clear()):
        worlds = {seed: late_world(seed) for seed in (3, 6)}
        assert any(wrong_within(world, way_of(seed, world)) for seed, world in worlds.items())


# --- doubt, by hand ---------------------------------------------------------------------------------------------------


def test_what_is_computed_from_what_is_in_doubt_is_in_doubt() -> None:
    rules = compile_rules("""
    TABLE t (k text, n int, m int, KEY (k))
    RULE r ON PATTERN A a WITHIN 0 DO
      UPDATE t SET n = a.x AT (a.k); UPDATE t SET m = old.n AT (a.k); UPDATE t SET m = 1 AT (a.k);
      UPSERT t SET n = 1 AT (a.k); DELETE t AT (a.k) END
    """)
    rows = TableRows(rules.file.tables[0], Texts())
    assert rows.row_of([pa.array(["p"])]).tolist() == [0]
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.string(), "x": pa.int64()})
    programs = rules.program.programs(schema, infer_roles(schema))
    doubt = TableDoubt(TableLog(rows, programs["t"]), rules.program.writes["t"], [None, None])

    def at(event: int) -> Transactions:
        return Transactions.of_events(np.array([event]), np.array([event]))

    def seen(event: int) -> str:
        in_doubt = {"n": doubt.read("n", ROW, at(event)), "m": doubt.read("m", ROW, at(event))}
        in_doubt["row"] = doubt.read(None, ROW, at(event))
        return " ".join(name for name, found in in_doubt.items() if found[0])

    def certain(event: int, statement: int) -> None:
        doubt.is_written(at(event), ROW, statement, 0, ROW, 0)

    set_n, n_to_m, set_m, upsert, delete = range(5)
    assert seen(0) == ""
    doubt.may_be_written(at(0), ROW, set_n)
    certain(2, n_to_m)
    certain(4, set_m)
    certain(6, set_n)
    doubt.may_be_written(at(8), None, upsert)
    certain(10, upsert)
    certain(12, delete)
    doubt.may_be_written(at(14), ROW, set_m)
    certain(14, set_m)
    doubt.may_be_written(at(16), None, set_n, until=np.array([20]))
    certain(18, set_n)
    certain(22, set_n)
    wanted = ["n", "n m", "n", "", "n m row", "m", "", "m", "n m", "n m", "n m"]
    assert [seen(event) for event in range(1, 23, 2)] == wanted
    doubt.do_before(2 * 5 + 1, 0, 0)
    assert seen(9) == wanted[4]
    doubt.bring_back()
    assert [seen(event) for event in range(1, 23, 2)] == wanted
    doubt.fold()
    assert seen(30) == "m"


def test_which_values_the_exact_run_may_have() -> None:
    rules = compile_rules("""
    TABLE t (k text, s text DEFAULT 'a', n int DEFAULT 0, KEY (k))
    RULE r ON PATTERN A a WHERE store.t[a.k].n < 2 WITHIN 0 DO
      UPDATE t SET s = 'b' AT (a.k); UPDATE t SET s = 'c' AT (a.k); UPDATE t SET n = old.n + 1 AT (a.k);
      UPDATE t SET n = old.n + 1 AT (a.k); UPDATE t SET n = 1 AT (a.k); DELETE t AT (a.k) END
    """)
    rows = TableRows(rules.file.tables[0], Texts())
    assert rows.row_of([pa.array(["p"])]).tolist() == [0]
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.string(), "x": pa.int64()})
    domains = domains_of(rules.file, rules.program.rules)["t"]
    assert [one and one.values for one in domains] == [(None, "a", "b", "c"), (None, -2, -1, 0, 1, 2, 3, 4)]
    b, c, count, count_once, set_1, delete = range(6)
    log = TableLog(rows, rules.program.programs(schema, infer_roles(schema))["t"])
    doubt = TableDoubt(log, rules.program.writes["t"], domains, [count_once])

    def at(event: int) -> Transactions:
        return Transactions.of_events(np.array([event]), np.array([event]))

    def may_be(column: str, event: int) -> list[Any]:
        domain = domains[["s", "n"].index(column)]
        assert domain is not None
        worlds = int(doubt.possible(column, ROW, at(event))[0])
        known = [value for n, value in enumerate(domain.values) if worlds >> n & 1]
        return [*known, *(["more"] if domain.is_range and worlds & domain.above else [])]

    doubt.may_be_written(at(0), ROW, b)
    doubt.is_written_if(at(2), ROW, c, Guard("s", np.array([2])))  # where it was 'a'
    doubt.may_be_written(at(4), ROW, b)
    doubt.is_written(at(6), ROW, c, 0, ROW, 0)
    assert [may_be("s", event) for event in (1, 3, 5, 7)] == [["a", "b"], ["b", "c"], ["b", "c"], []]
    doubt.may_be_written(at(8), ROW, count_once)
    doubt.may_be_written(at(10), ROW, count_once)
    doubt.is_written(at(12), ROW, count, 0, ROW, 0)
    assert [may_be("n", event) for event in (9, 11, 13)] == [[0, 1], [0, 1, 2], [1, 2, 3]]
    doubt.may_be_written(at(14), ROW, count)
    doubt.is_written(at(16), ROW, set_1, 0, ROW, 0)
    doubt.may_be_written(at(18), ROW, delete)  # here nothing was written, so 0 is what stands there
    assert [may_be("n", event) for event in (15, 17, 19)] == [[1, 2, 3, 4, "more"], [], [0]]
    doubt.may_be_written(at(20), ROW, b)  # the same again: two may write it now, so neither is just where it was 'a'
    doubt.is_written_if(at(20), ROW, c, Guard("s", np.array([2])))
    assert may_be("s", 21) == ["a", "b", "c"]


def test_in_circles_doubt_ends() -> None:
    rules = compile_rules("""
    TABLE light (k text, s text DEFAULT 'green', KEY (k))
    RULE red ON PATTERN SEQ(A a, A b) WHERE [k] AND b.x > a.x + 30 AND store.light[b.k].s = 'green' WITHIN 6
    FOR EACH POINT DO UPDATE light SET s = 'red' AT (b.k) END
    RULE green ON PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x AND store.light[b.k].s = 'red' WITHIN 6
    FOR EACH POINT DO UPDATE light SET s = 'green' AT (b.k) END
    """)
    events = stream(2_000)
    out, exact = rules.match_within(events, "1 steps/event", audit=0, policy="random"), rules.run(events)
    assert out.record.runs_shed > 100
    assert out.record.certain is not None
    assert out.record.certain > 0.5
    for name in ("red", "green"):
        certain = out[name].filter(out[name]["certain"])["row"].to_pylist()
        assert {*certain} <= {*exact[name]["row"].to_pylist()}


ROW = np.zeros(1, np.int64)

# --- where nothing is shed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["100%", "1000000 steps/event"])
def test_all_of_the_work_is_exact_and_certain(budget: str) -> None:
    for seed in range(cases(60, 12)):
        world = doubt_world(seed)
        found = run_within(world, replace(way_of(seed, world), budget=budget, more={"audit": 0.0, "policy": "random"}))
        if found.record.runs_shed or any(one.untested for one in found.record.rules):
            assert budget != "100%"
            continue
        exact = found_by(world, compile_rules(world.text), Exact("", "auto", world.cuts))
        assert found.changes == exact.changes
        for rows in found.matches.values():
            assert all(row["certain"] for row in rows)
        assert {name: len(rows) for name, rows in found.matches.items()} == {
            name: len(rows) for name, rows in exact.matches.items()
        }


# --- the bound, splits, restarts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0.5, 2.0])
def test_the_bound_holds_at_every_event_over_all_rules(budget: float) -> None:
    for seed in range(cases(60, 12)):
        world = doubt_world(seed)
        run = compile_rules(world.text).start(budget=f"{budget} steps/event", audit=0.0)
        for number, row in enumerate(world.rows):
            run.push([row])
            record = run.record()
            assert record.work <= record.allowed + 1e-6, f"seed {seed}, event {number}"
            assert record.work <= budget * (number + 1) + 64 + 1e-6


def test_the_same_in_any_split_and_over_restarts() -> None:
    for seed in range(cases(100, 10)):
        world = doubt_world(seed)
        way = replace(way_of(seed, world), driver="stepping", restarts=frozenset())
        restarted = replace(way, cuts=(7, 20), restarts=frozenset((0, 1)))
        ways = [replace(way, cuts=()), replace(way, cuts=(7, 20, 21)), restarted]
        found = [run_within(world, one) for one in ways]
        for one, other in pairwise(found):
            assert (one.matches, one.changes) == (other.matches, other.changes), f"seed {seed}"


# --- rules of different worth -----------------------------------------------------------------------------------------

TWO = """
TABLE flag (k text, n int DEFAULT 0, KEY (k))
RULE first{0} ON PATTERN SEQ(A a, A b, B c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 60{2}
RULE second{1} ON PATTERN SEQ(A a, A b, B c) WHERE [k] AND b.x > a.x AND c.x >= b.x WITHIN 60
RULE see ON PATTERN B e WHERE store.flag[e.k].n > 0 WITHIN 0
"""
WRITES = "\nDO UPDATE flag SET n = old.n + 1 AT (c.k) END"


def two(first: str = "", second: str = "", writes: str = "") -> RuleSet:
    return compile_rules(TWO.format(first, second, writes))


def stream(events: int, seed: int = 0) -> list[dict[str, Any]]:
    dice = np.random.default_rng(seed)
    kinds, keys, numbers = dice.integers(0, 4, events), dice.integers(0, 3, events), dice.integers(0, 50, events)
    return [
        {"ts": ts, "type": "AAAB"[kind], "k": f"k{key}", "x": int(x)}
        for ts, (kind, key, x) in enumerate(zip(kinds, keys, numbers, strict=True))
    ]


def test_what_is_worth_more_gets_more_of_the_budget() -> None:
    some = two(" WORTH 20").match_within(stream(1_500), "4 steps/event", audit=0).record.rules
    others = two("", " WORTH 20").match_within(stream(1_500), "4 steps/event", audit=0).record.rules
    assert some[0].work > 2 * others[0].work
    assert others[1].work > 2 * some[1].work


def test_rules_that_others_read_are_served_first() -> None:
    spared = two(writes=WRITES).match_within(stream(1_500), "2 steps/event", audit=0).record.rules
    alike = two(writes=WRITES).match_within(stream(1_500), "2 steps/event", audit=0, shed="alike").record.rules
    assert [one.protected for one in spared] == [True, False, False]
    assert not any(one.protected for one in alike)
    assert spared[0].work > 1.1 * alike[0].work
    assert spared[2].certain >= alike[2].certain


def test_match_points_count_for_those_that_read_what_they_write() -> None:
    rules = compile_rules("""
    TABLE t (k text, n int DEFAULT 0, m int DEFAULT 0, KEY (k))
    RULE writes ON PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9 DO UPDATE t SET n = 1 AT (b.k) END
    RULE also ON PATTERN SEQ(A a, B b) WHERE b.x < a.x WITHIN 9 DO UPDATE t SET m = 1 AT (b.k) END
    RULE reads WORTH 3 ON PATTERN SEQ(A a, B b) WHERE b.x > a.x AND store.t[b.k].n = 1 WITHIN 9
    RULE see ON PATTERN C c WHERE store.t[c.k].n = 1 WITHIN 0
    RULE turns ON PATTERN SEQ(A a, C c) WHERE c.x > a.x AND store.t[c.k].m = 1 WITHIN 9
    DO UPDATE t SET m = 0 AT (c.k) END
    """)

    def weights(**how: str) -> dict[str, float]:
        spending = rules.start(budget="10 steps/event", **how).spending
        spending.begin(rules.program)
        return {one.name: round(one.weight, 2) for one in spending.purse.accounts.values()}

    assert weights(shed="alike") == {"writes": 1, "also": 1, "reads": 3, "turns": 1}
    wanted = {"writes": 1 + CREDIT * (3 + 1), "also": 1 + CREDIT, "reads": 3, "turns": 1}  # not for itself
    assert weights() == {name: round(weight, 2) for name, weight in wanted.items()}


def test_worth_is_a_number_above_0() -> None:
    assert two(" WORTH 2.5").file.rules[0].worth == 2.5
    with pytest.raises(QueryError, match="ACEP-R027"):
        two(" WORTH 0")


# --- histories --------------------------------------------------------------------------------------------------------


def test_the_past_says_which_runs_are_worth_it(tmp_path: Path) -> None:
    rules, past, today = two(writes=WRITES), stream(3_000, 1), stream(1_500, 2)
    known = RuleHistory(rules).fit(past)
    assert [*known] == known.names == ["first", "second"]
    folder = known.save(tmp_path / "known")
    assert sorted(one.name for one in folder.iterdir()) == ["first", "second"]
    assert [known.save(folder, new_version=True), *RuleHistory.load(folder, rules)] == [folder, *known]
    with pytest.raises(HistoryError, match="ACEP-H005"):
        known.save(folder)
    (tmp_path / "known" / "note").mkdir()
    with pytest.raises(HistoryError, match="ACEP-H006"):
        known.save(folder)
    with_it = rules.match_within(today, "30%", history=tmp_path / "known", audit=0)
    again = rules.match_within(today, "30%", history=RuleHistory.load(tmp_path / "known", rules), audit=0)
    assert with_it["first"].equals(again["first"])
    assert with_it.record.policy == "history"
    with pytest.raises(HistoryError, match="ACEP-H001"):
        rules.match_within(today, "30%", history=tmp_path / "none")
    with pytest.raises(HistoryError, match="there is the history of one query at") as refused:
        rules.match_within(today, "30%", history=tmp_path / "known" / "first")
    assert refused.value.hint == "learn those of first, second: acep train RULES PAST -o DIR"


def test_what_is_read_of_tables_is_a_column_of_the_past() -> None:
    rules = compile_rules(
        TWO.format("", "", WRITES)
        + "RULE third ON PATTERN SEQ(A a, B b) WHERE b.x > a.x AND store.flag[b.k].n > 2 WITHIN 9 "
    )
    known = RuleHistory(rules).fit(stream(1_000), store={"flag": [{"k": "k0", "n": 5}]})
    exact = rules.run(stream(1_000), store={"flag": [{"k": "k0", "n": 5}]})
    assert known["third"].points_ == len(set(exact["third"].column("b").to_pylist()))


def test_rules_without_partial_matches_learn_nothing() -> None:
    with pytest.raises(UsageError, match="ACEP-U046"):
        RuleHistory(compile_rules("RULE r ON PATTERN SEQ(A a, B b) WITHIN 5")).fit(stream(20))


def test_a_run_goes_on_with_its_history() -> None:
    rules = two(writes=WRITES)
    known = RuleHistory(rules).fit(stream(1_000))
    run = rules.start(budget="20%", history=known)
    run.push(stream(300, 3))
    state = run.state_bytes()
    with pytest.raises(DataError, match="ACEP-D048"):
        rules.from_state(state)
    assert rules.from_state(state, history=known).record() == run.record()


# --- other ------------------------------------------------------------------------------------------------------------


def test_circles_that_nothing_shed_can_reach_stay_in_their_kernel() -> None:
    text = """
    TABLE gate (k text, n int DEFAULT 0, KEY (k))
    TABLE flag (k text, n int DEFAULT 0, KEY (k))
    RULE on ON PATTERN A a WHERE store.gate[a.k].n = 0 WITHIN 0 DO UPDATE gate SET n = 1 AT (a.k) END
    RULE off ON PATTERN B b WHERE store.gate[b.k].n = 1 WITHIN 0 DO UPDATE gate SET n = 0 AT (b.k) END
    RULE rise ON PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 60 DO UPDATE flag SET n = 1 AT (b.k) END
    RULE see ON PATTERN B b WHERE store.flag[b.k].n = 0 WITHIN 0
    """
    rules, events = compile_rules(text), stream(400)
    run = rules.start(budget="0.05 steps/event", audit=0, policy="random")
    out = run.push(events)
    assert any(isinstance(stage, LockstepStage) for stage in run.stage.execution.bound.stages)
    exact = rules.run(events)
    for name in ("on", "off"):
        assert out[name].drop_columns(["certain"]).equals(exact[name])
        assert all(out[name].column("certain").to_pylist())
    assert all(out["rise"].column("certain").to_pylist())  # it reads nothing
    assert not all(out["see"].column("certain").to_pylist())


def test_a_file_keeps_the_budget(tmp_path: Path) -> None:
    rules, events = two(writes=WRITES), stream(600)
    once = rules.match_within(events, "2 steps/event", audit=0, driver="stepping")
    parts = []
    for some in (events[:250], events[250:]):
        with rules.start(at=tmp_path / "flag.db", budget="2 steps/event", audit=0, driver="stepping") as run:
            parts.append(run.push(some))
            parts.append(run.checkpoint())
    for rule in ("first", "second", "see"):
        rows = [row for part in parts for row in part[rule].to_pylist()]
        assert rows == once[rule].to_pylist()


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"budget": "20%"}, "ACEP-U034"),
        ({"budget": "0 runs"}, "ACEP-U030"),
        ({"budget": "5 runs", "policy": "history"}, "ACEP-U032"),
        ({"budget": "5 runs", "shed": "all"}, "ACEP-U001"),
        ({"budget": "5 runs", "audit": 1}, "ACEP-U033"),
        ({"policy": "oldest"}, "ACEP-U040"),
        ({"history": "h"}, "ACEP-U040"),
        ({"learn": True}, "ACEP-U040"),
    ],
)
def test_what_is_refused(given: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError, match=code):
        two().start(**given)
