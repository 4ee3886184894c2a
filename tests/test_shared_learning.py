"""Sets of queries and rules that learn on the way: each engine as a single query does, paid by the budget of all."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from acep_approx import Histories, NoLearningWarning, QuerySet, UsageError, compile_query, compile_rules
from acep_approx.learning.shown_later import BesidePairs, BesideReads
from acep_approx.shedding.purse import Purse
from tests.budgeted_sets import MANY, ONE, TWO, stream
from tests.cases import cases
from tests.command_line import acep

pytestmark = [
    pytest.mark.filterwarnings("ignore::acep_approx.errors.NoLearningWarning"),
    pytest.mark.usefixtures("one_reading"),
]

WINDOWS = "PATTERN SEQ(A a, A b, B c) WHERE b.x <> a.x AND c.x <> a.x + b.x WITHIN :w"
UP = "PATTERN SEQ(A a, A b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 9 RETURN c.x AS x PUBLISH Up"
READS = "PATTERN SEQ(Up u, B b, C c) WHERE b.x <> u.x AND c.x <> b.x WITHIN 30"
RULES = """
TABLE seen (k text, n int DEFAULT 0, KEY (k))
RULE rise ON PATTERN SEQ(A a, A b, B c) WHERE b.x <> a.x AND c.x <> b.x WITHIN 40
DO UPDATE seen SET n = old.n + 1 AT (c.k) END
RULE low ON PATTERN SEQ(A a, B b, C c) WHERE b.x <> a.x AND store.seen[c.k].n < 40000 WITHIN 50
"""


def filled(which: int, /, **options: Any) -> QuerySet:
    """Queries by themselves, of templates, and some that read others."""
    desk = QuerySet(**options)
    desk.add(ONE, id="one")
    desk.add(TWO, id="two", weight=3)
    desk.add_many(MANY, [{"p": p} for p in range(3)], id="many")
    if which % 2:
        desk.add_many(WINDOWS, [{"w": w} for w in (20, 30)], id="windows")
    if desk.output == "matches" and which % 3 == 0:
        desk.add(UP, id="up")
        desk.add(READS, id="reads")
    return desk


def ends(found: Any) -> dict[str, set[int]]:
    """When the results of each query end."""
    return {id_: set(table.column("end").to_pylist()) for id_, table in found.items()}


@pytest.mark.parametrize("budget", ["1 steps/event", "9 steps/event", "40 runs"])
def test_a_set_of_one_query_learns_as_the_query_does(budget: str) -> None:
    events, past = stream(3, 4_000), stream(4, 2_000)
    alone, desk = compile_query(TWO), QuerySet(output="points")
    desk.add(TWO, id="one")
    known = alone.train(past)
    known.search_ = None  # a set follows partial matches
    for history in (None, known):
        histories = None if history is None else Histories({alone.plan.known_as: known})
        found = desk.match_within(events, budget, learn=True, seed=4, history=histories)
        by_itself = alone.match_within(events, budget, learn=True, seed=4, history=history)
        table = by_itself.points()
        assert found["one"].select(table.column_names).to_pylist() == table.to_pylist()
        assert found.learning().drop_columns("query").to_pylist() == by_itself.learning().to_pylist()
        assert found.record().shed_runs == by_itself.record().shed_runs
        made, mine = found.refreshed(), by_itself.refreshed(alone)
        assert (made is None) == (mine is None)
        if made is not None and mine is not None:
            theirs = made.of(alone.plan, alone.plan.known_as)
            assert theirs is not None
            assert (theirs.events_, theirs.points_) == (mine.events_, mine.points_)
            assert theirs.steps_per_event_ == mine.steps_per_event_


@pytest.mark.parametrize("seed", range(cases(60, 6)))
def test_what_is_listed_is_a_match_and_the_bound_holds(seed: int) -> None:
    output = Random(seed).choice(("points", "matches"))
    events, budget = stream(seed, 1_500), (2.0, 8.0)[seed % 2]
    desk = filled(seed, output=output, budget=f"{budget:g} steps/event", learn=True, audit=0.1, seed=seed)
    again = filled(seed, output=output, budget=f"{budget:g} steps/event", learn=True, audit=0.1, seed=seed)
    found: dict[str, set[int]] = {}
    for first in range(0, len(events), 100):
        given, same = desk.push(events[first : first + 100]), again.push(events[first : first + 100])
        assert given.to_arrow().equals(same.to_arrow())  # the same is learned of the same
        for id_, some in ends(given).items():
            found.setdefault(id_, set()).update(some)
        record = desk.record()
        assert record.work <= record.allowed <= budget * (first + 100) + len(desk)
    true = ends(filled(seed, output=output).match(events))
    assert all(some <= true.get(id_, set()) for id_, some in found.items())
    assert desk.purse.load.learns
    assert desk.record().policy == "random, then what was learned"


@pytest.mark.parametrize("seed", range(cases(24, 3)))
def test_a_state_goes_on_with_what_was_learned(seed: int) -> None:
    events = stream(seed, 3_000)
    options: dict[str, Any] = {"output": "points", "budget": "6 steps/event", "learn": True, "seed": seed}
    desk, other = filled(seed, **options), filled(seed, **options)
    for first in range(0, len(events), 500):
        some = events[first : first + 500]
        assert desk.push(some).to_arrow().equals(other.push(some).to_arrow())
        other = QuerySet.from_state(other.state_bytes())
    assert desk.record().work == other.record().work
    assert desk.learning().equals(other.learning())
    assert desk.learning().num_rows > 0


def test_what_was_learned_is_saved_and_used(tmp_path: Path) -> None:
    events = stream(7, 5_000)
    desk = filled(1, output="points")
    found = desk.match_within(events, "6 steps/event", learn=True)
    known = found.refreshed()
    assert known is not None
    place = known.save(tmp_path / "known")
    assert known.changed == [*known]
    now = stream(8, 2_000)
    assert desk.match_within(now, "20%", history=place).to_arrow().equals(
        desk.match_within(now, "20%", history=known).to_arrow()
    )
    assert desk.match_within(stream(9, 60), "4 steps/event", learn=True).refreshed() is None
    again = desk.match_within(events, "20%", history=place, learn=True).refreshed()
    assert again is not None
    again.save(place, new_version=True)
    assert {len([*one.glob("v*")]) for one in place.iterdir()} == {2}
    assert again.save(tmp_path / "other").is_dir()


@pytest.mark.parametrize("seed", range(cases(20, 4)))
def test_a_cohort_of_pairs_is_what_the_run_would_find(seed: int) -> None:
    """A run that sheds almost nothing finds what the exact part beside it finds, unless pairs are mixed up."""
    desk = QuerySet(output="points", budget="99.9%", full_work=4000, learn=True, audit=0.9, seed=seed)
    desk.add_many(MANY, [{"p": p} for p in range(4)], id="many")
    desk.add_many(MANY.replace("[k]", "").replace("WHERE", "WHERE [k] AND"), [{"p": p} for p in range(2)], id="keyed")
    events = stream(seed, 2_500)
    for first in range(0, len(events), 333):
        desk.push(events[first : first + 333])
    desk.finish()
    for shedder in desk.purse.accounts:
        assert isinstance(shedder.beside, BesidePairs)
        sample = shedder.audited()
        assert sample is not None
        assert sample.points.sum() > 0
        assert sample.found.sum() >= 0.97 * sample.points.sum()
        assert shedder.beside.cohort is not None
        assert not shedder.beside.cohort.given_up


def test_pairs_that_are_numbered_otherwise_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: BesidePairs, rows: Any) -> None:
        self._found.append(self._first + rows // 2)

    monkeypatch.setattr(BesidePairs, "note_found", wrong)
    with pytest.raises(AssertionError):
        test_a_cohort_of_pairs_is_what_the_run_would_find(1)


def test_queries_of_a_template_with_windows_of_their_own_do_not_learn() -> None:
    desk = QuerySet(output="points")
    desk.add_many(WINDOWS, [{"w": w} for w in (20, 30)], id="windows")
    with pytest.warns(NoLearningWarning, match="ACEP-U222") as told:
        found = desk.match_within(stream(2, 2_000), "4 steps/event", learn=True)
    assert len(told) == 1
    assert found.refreshed() is None
    assert found.rows > 0


def test_parts_move_by_prices_once_all_have_learned() -> None:
    desk = filled(2, output="points")
    found = desk.match_within(stream(5, 8_000), "6 steps/event", learn=True)
    purse = found._run.running.load
    assert isinstance(purse, Purse)
    assert purse._all_learned
    by_age = desk.match_within(stream(5, 8_000), "6 steps/event")
    assert found.rows > 1.2 * by_age.rows


# --- rules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(cases(20, 2)))
def test_rules_learn_in_the_bound_and_what_is_certain_is_in_the_exact_answer(seed: int) -> None:
    rules, events = compile_rules(RULES), stream(seed, 2_500)
    exact = rules.run(events)
    true = {name: {tuple(map(str, row.values())) for row in exact[name].to_pylist()} for name in exact}
    run, other = (rules.start(budget="6 steps/event", learn=True, seed=seed) for _ in range(2))
    for first in range(0, len(events), 500):
        some = events[first : first + 500]
        found, same = run.push(some), other.push(some)
        record = run.record()
        assert record is not None
        assert record.work <= record.allowed <= 6 * (first + 500)
        for name, table in found.items():
            assert table.equals(same[name])
            for row in table.to_pylist():
                if row.pop("certain"):
                    assert tuple(map(str, row.values())) in true[name]
        other = rules.from_state(other.state_bytes())
    known, again = run.refreshed(), other.refreshed()
    assert known is not None
    assert again is not None
    assert run.learning().equals(other.learning())
    assert [*known] == ["rise", "low"]


@pytest.mark.parametrize("seed", range(cases(12, 3)))
def test_a_cohort_of_rules_has_read_what_the_rules_have(seed: int) -> None:
    rules = compile_rules(RULES.replace("< 40000", "> 300"))
    run = rules.start(budget="99.9%", full_work=4000, learn=True, audit=0.9, seed=seed)
    events = stream(seed, 2_000)
    for first in range(0, len(events), 250):
        run.push(events[first : first + 250])
    run.finish()
    assert run.purse is not None
    for shedder in run.purse.accounts:
        assert isinstance(shedder.beside, BesideReads)
        sample = shedder.audited()
        assert sample is not None
        assert sample.points.sum() > 0
        assert sample.found.sum() >= 0.85 * sample.points.sum(), shedder.known_as


def test_what_rules_have_learned_is_saved_and_used(tmp_path: Path) -> None:
    rules, events = compile_rules(RULES), stream(1, 3_000)
    known = rules.match_within(events, "6 steps/event", learn=True).history
    place = known.save(tmp_path / "known")
    some = rules.match_within(events, "20%", history=known)
    assert all(some[name].equals(table) for name, table in rules.match_within(events, "20%", history=place).items())
    assert rules.match_within(events, "20%", history=known).history is None


def test_wrong_use() -> None:
    for call, code in (
        (lambda: QuerySet(learn=True), "ACEP-U040"),
        (lambda: QuerySet(budget="5 runs", learn=True, policy="oldest"), "ACEP-U048"),
        (lambda: compile_rules(RULES).start(learn=True), "ACEP-U040"),
        (lambda: compile_rules(RULES).start(budget="5 runs", learn=True, policy="oldest"), "ACEP-U048"),
        (lambda: filled(1).refreshed(), "ACEP-U040"),
    ):
        with pytest.raises(UsageError, match=code):
            call()
    assert filled(1, budget="5 steps/event").refreshed() is None
    assert filled(1).match_within(stream(1, 50), "5 steps/event").learning().num_rows == 0


# --- on the command line ------------------------------------------------------------------------------------------


def test_a_folder_and_rules_learn_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "one.acep").write_text(ONE)
    (tmp_path / "queries" / "two.acep").write_text(TWO)
    (tmp_path / "rules.acep").write_text(RULES)
    pq.write_table(pa.Table.from_pylist(stream(1, 6_000)), "events.parquet")
    asked = ("run", "--queries", "queries", "events.parquet", "--output", "points", "-o", "out.parquet")
    told = acep(*asked, "--budget", "4 steps/event", "--learn", "--save", "known", "--learn-log", "log.csv").stderr
    assert "what was learned is in known (new: 2 histories)" in told
    assert (tmp_path / "log.csv").read_text().startswith("query,at,events,")
    told = acep(*asked, "--budget", "20%", "--learn", "--history", "known").stderr
    assert "policy history, then what was learned" in told
    assert {len([*one.glob("v*")]) for one in (tmp_path / "known").iterdir()} == {2}
    assert "ACEP-U049" in acep(*asked, "--budget", "20%", "--save", "x", code=2).stderr
    assert "ACEP-H006" in acep(*asked, "--budget", "9 runs", "--learn", "--save", "queries", code=None).stderr
    asked = ("run", "rules.acep", "events.parquet", "-o", "out", "--budget")
    told = acep(*asked, "4 steps/event", "--learn", "--save", "learned", "--learn-log", "log.jsonl").stderr
    assert "what was learned is in learned (new: 2 histories)" in told
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert {row["rule"] for row in rows} == {"rise", "low"}
    assert "by history" in acep(*asked, "20%", "--history", "learned").stderr
