"""Sets of queries inside one load budget: what is listed is true, and the bound holds at every event."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from acep_approx import DataError, Histories, QuerySet, UsageError, compile_query
from acep_approx.errors import FewPointsWarning
from acep_approx.shedding.purse import Purse
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.splitting import Need, towards_one_price
from history.errors import HistoryError
from tests.budgeted_sets import Rows, stream
from tests.cases import cases

WIDE = "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40"
OTHERS = "PATTERN SEQ(A a, B b, C c) WHERE b.x <> a.x AND c.x <> b.x WITHIN 60"
KEYED = "PATTERN SEQ(A a, A b, C c) WHERE [k] AND b.x <> a.x AND c.x >= b.x WITHIN 50"
TEMPLATES = (
    "PATTERN SEQ(A a, A b, B c) WHERE a.x > :p AND b.x <> a.x AND c.x <> a.x + b.x WITHIN 40",
    "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x > :p AND b.x <> a.x AND c.x > :q + b.x WITHIN 30",
    "PATTERN SEQ(A a, A b, C c) WHERE a.x = :p AND b.x <> a.x AND c.x <> b.x WITHIN 50",
)

pytestmark = pytest.mark.usefixtures("one_reading")
UP = "PATTERN SEQ(A a, A b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 9 RETURN c.x AS x PUBLISH Up"
READS = "PATTERN SEQ(Up u, B b, C c) WHERE b.x <> u.x AND c.x <> b.x WITHIN 30"
BUDGETS = ("1 steps/event", "5 steps/event", "20 steps/event", "90 steps/event")


def filled(dice: Random, desk: QuerySet) -> None:
    """Some queries by themselves, some of templates, some that read what others publish; weights, as may be."""
    for name, text in (("wide", WIDE), ("others", OTHERS), ("keyed", KEYED)):
        if dice.randrange(3):
            desk.add(text, id=name, weight=dice.choice((1, 1, 5)))
    for number, template in enumerate(TEMPLATES):
        rows = [{"p": dice.randrange(6), "q": dice.randrange(3), "w": dice.choice((1, 7))} for _ in range(4)]
        if dice.randrange(3):
            desk.add_many(template, rows, id=f"t{number}", weight=dice.choice(("w", 1.0)))
    if desk.output == "matches" and dice.randrange(2):
        desk.add(UP, id="up")
        desk.add(READS, id="reads")


def points(found: Any) -> dict[str, set[int]]:
    """The ends of the results of each query."""
    return {id_: set(table.column("end").to_pylist()) for id_, table in found.items()}


def holds_bound(desk: QuerySet) -> None:
    """Of all engines, and of each, the work is within what was granted."""
    record = desk.record()
    assert record.work <= record.allowed, record
    assert record.work == sum(part.piece.work for part in record.parts)
    for part in record.parts:
        assert part.piece.work <= part.piece.bound, part


@pytest.mark.parametrize("seed", range(cases(400, 12)))
def test_what_is_listed_is_a_match_and_the_bound_holds_at_every_event(seed: int) -> None:
    dice = Random(seed)
    output = dice.choice(("points", "matches"))
    budget, events = dice.choice(BUDGETS), stream(seed, dice.choice((60, 120)))
    desk = QuerySet(output=output, budget=budget, audit=dice.choice((0, 0.1)), seed=seed)  # type: ignore[arg-type]
    filled(dice, desk)
    exact = QuerySet(output=output)  # type: ignore[arg-type]
    dice = Random(seed)
    dice.choice((0, 0)), dice.choice((0, 0, 0, 0)), dice.choice((0, 0)), dice.choice((0, 0))
    filled(dice, exact)
    assert list(desk) == list(exact)
    found: dict[str, set[int]] = {}
    rate = float(budget.split()[0])
    for number, event in enumerate(events):
        for id_, ends in points(desk.push([event])).items():
            found.setdefault(id_, set()).update(ends)
        holds_bound(desk)
        assert desk.record().allowed <= rate * (number + 1) + len(desk)
    for id_, ends in points(desk.finish()).items():
        found.setdefault(id_, set()).update(ends)
    holds_bound(desk)
    true = points(exact.match(events))
    for id_, ends in found.items():
        assert ends <= true.get(id_, set()), id_


@pytest.mark.parametrize("seed", range(cases(200, 6)))
def test_all_of_the_work_is_the_exact_run(seed: int) -> None:
    for output in ("points", "matches", "counts"):
        desk = QuerySet(output=output)  # type: ignore[arg-type]
        filled(Random(seed), desk)
        events = stream(seed)
        exact = desk.match(events)
        within = desk.match_within(events, "100%")
        assert within.to_arrow().equals(exact.to_arrow())
        assert within.record().shed_runs == 0
        # a budget that is more than is ever needed sheds only what others stand for
        assert points(desk.match_within(events, "999M steps/event", audit=0)).keys() == points(exact).keys()


@pytest.mark.parametrize("text", [WIDE, OTHERS, "PATTERN SEQ(A a, B b, C c) WHERE b.x <> a.x AND c.x > 3 WITHIN 60"])
@pytest.mark.parametrize("budget", ["2 steps/event", "9 steps/event", "25 runs"])
def test_a_set_of_one_query_is_the_query_by_itself(text: str, budget: str) -> None:
    events = stream(3)
    desk = QuerySet(output="points")
    desk.add(text, id="one")
    for audit in (0, 0.1):
        found = desk.match_within(events, budget, seed=4, audit=audit)
        alone = compile_query(text).match_within(events, budget, seed=4, audit=audit)
        table = alone.points()
        assert found["one"].drop_columns("query").select(table.column_names).to_pylist() == table.to_pylist()
        assert found.record().shed_runs == alone.record().shed_runs
        assert audit or found.record().work == alone.record().work  # the audit is done when a batch is


def test_the_order_of_queries_does_not_matter() -> None:
    events, found = stream(5), []
    for names in (("wide", "others", "keyed"), ("keyed", "wide", "others")):
        desk = QuerySet(output="points")
        for name in names:
            desk.add({"wide": WIDE, "others": OTHERS, "keyed": KEYED}[name], id=name, weight=len(name))
        within = desk.match_within(events, "6 steps/event")
        found.append({name: within[name].to_pylist() for name in sorted(names)})
    assert found[0] == found[1]
    assert any(found[0].values())


@pytest.mark.parametrize("seed", range(cases(60, 3)))
def test_queries_by_themselves_shed_the_same_in_any_split(seed: int) -> None:
    events, found, dice = stream(seed, 700), [], Random(seed)
    for _ in range(2):
        desk = QuerySet(output="points", budget="4 steps/event", seed=seed)
        for name, text in (("wide", WIDE), ("others", OTHERS), ("keyed", KEYED)):
            desk.add(text, id=name)
        ends: dict[str, set[int]] = {}
        first = 0
        while first < len(events):
            rows = dice.choice((1, 7, 100, 400))
            for id_, some in points(desk.push(events[first : first + rows])).items():
                ends.setdefault(id_, set()).update(some)
            first += rows
        found.append((ends, desk.record().work))
    assert found[0] == found[1]


@pytest.mark.parametrize("budget", ["5 steps/event", "30 runs"])
def test_a_state_goes_on_where_it_stood(budget: str) -> None:
    events = stream(7)

    def made() -> QuerySet:
        desk = QuerySet(output="points", budget=budget, seed=1)
        filled(Random(2), desk)
        return desk

    whole, parts = made(), made()
    tables = [(whole.push(some), parts.push(some)) for some in (events[:100], events[100:150])]
    parts = QuerySet.from_state(parts.state_bytes())
    tables += [(whole.push(events[150:]), parts.push(events[150:])), (whole.finish(), parts.finish())]
    assert all(one.to_arrow().equals(other.to_arrow()) for one, other in tables)
    assert parts.record().work == whole.record().work
    assert parts.record().allowed == whole.record().allowed
    assert [query.found for query in parts.record().queries] == [query.found for query in whole.record().queries]


def test_more_is_found_with_more_and_where_it_counts_for_more() -> None:
    events, ids = stream(11, 400), ("wide", "others")

    def found(budget: str, seed: int, weights: tuple[float, float] = (1, 1)) -> list[int]:
        desk = QuerySet(output="points")
        for id_, text, weight in zip(ids, (WIDE, OTHERS), weights, strict=True):
            desk.add(text, id=id_, weight=weight)
        within = desk.match_within(events, budget, seed=seed, policy="random", audit=0)
        return [within[id_].num_rows for id_ in ids]

    mean = [sum(sum(found(budget, seed)) for seed in range(5)) for budget in ("1 steps/event", "4 steps/event", "100%")]
    assert mean[0] < mean[1] < mean[2]
    less, more = (sum(found("4 steps/event", seed, (1, weight))[1] for seed in range(3)) for weight in (0.1, 10))
    assert less < more


@pytest.mark.parametrize("seed", range(cases(100, 4)))
def test_all_engines_together_have_no_more_live_runs_than_may_be(seed: int) -> None:
    most = Random(seed).choice((4, 12, 40))
    desk = QuerySet(output="points", budget=f"{most} runs", seed=seed)
    filled(Random(seed), desk)
    for event in stream(seed, 150, 1):
        desk.push([event])
        assert sum(part.piece.live for part in desk.record().parts) <= most


def test_queries_come_and_go_with_their_parts() -> None:
    desk = QuerySet(output="points", budget="8 steps/event")
    desk.add(WIDE, id="wide")
    events = stream(13)
    desk.push(events[:80])
    desk.add(OTHERS, id="others")
    desk.push(events[80:160])
    holds_bound(desk)
    assert len(desk.record().parts) == 2
    desk.remove("wide")
    desk.push(events[160:])
    record = desk.record()
    assert [part.name for part in record.parts] == ["others"]
    assert record.work <= record.allowed <= 8 * len(events)


def test_what_keeps_no_partial_matches_is_exact_and_says_so() -> None:
    desk = QuerySet(output="points")
    desk.add("PATTERN SEQ(A a, B b) WITHIN 9", id="cells")
    desk.add(WIDE, id="wide")
    desk.add_many("PATTERN SEQ(A a, B b) WHERE a.x > :p AND b.x > a.x WITHIN 9", [{"p": p} for p in range(3)], id="up")
    events = stream(17)
    within, exact = desk.match_within(events, "2 steps/event"), desk.match(events)
    assert within.record().exact == ["cells", "up[0]", "up[1]", "up[2]"]
    assert all(within[id_].equals(exact[id_]) for id_ in within.record().exact)
    assert within["wide"].num_rows < exact["wide"].num_rows


def test_what_a_template_found_is_told_by_query() -> None:
    desk = QuerySet(output="points")
    desk.add_many(TEMPLATES[0], [{"p": p} for p in range(5)], id="t")
    within = desk.match_within(stream(19), "12 steps/event", audit=0.2, log_shed=True)
    by_id = {query.id: query.found for query in within.record().queries}
    assert by_id == {id_: within[id_].num_rows for id_ in desk}
    assert {row["query"]: row["found"] for row in within.record().rows()} == by_id
    assert within.shed().num_rows == within.record().shed_runs


def test_wrong_use() -> None:
    desk = QuerySet()
    desk.add(WIDE)
    with pytest.raises(UsageError, match="nobody knows the full work") as error:
        desk.match_within([], "10%")
    assert error.value.code == "ACEP-U034"
    assert "acep train --queries FOLDER PAST -o DIR" in (error.value.hint or "")
    for call in (desk.record, desk.shed, lambda: QuerySet(policy="random")):
        with pytest.raises(UsageError) as error:
            call()
        assert error.value.code == "ACEP-U040"
    with pytest.raises(UsageError) as error:
        desk.match_within([], "5 steps/event").shed()
    assert error.value.code == "ACEP-U039"
    for weight in (0, -1, float("nan"), "w"):
        with pytest.raises(UsageError):
            desk.add(OTHERS, weight=weight)  # type: ignore[arg-type]


def test_a_share_is_of_the_work_of_the_whole_set() -> None:
    desk = QuerySet(output="points")
    filled(Random(2), desk)
    events = stream(23)
    full = desk.match_within(events, "100%").record().work / len(events)
    record = desk.match_within(events, "20%", full_work=full).record()
    assert record.work <= record.allowed <= 0.2 * full * len(events) + len(record.parts)
    assert record.work > 0.1 * full * len(events)


# --- what must be noticed -----------------------------------------------------------------------------------------


def test_a_budget_for_each_engine_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Purse, "_tell", lambda _: None)
    desk = QuerySet(output="points", budget="5 steps/event", audit=0)
    filled(Random(2), desk)
    events = stream(29, 120)
    desk.push(events)
    assert desk.record().allowed > 5 * len(events) + len(desk)


def test_births_that_are_free_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = QuerySet(output="points")
    desk.add_many(TEMPLATES[2], [{"p": p % 9} for p in range(36)], id="hot")
    events = stream(31, 120)
    charged = desk.match_within(events, "100%").record().work
    shedder = Purse.shedder

    def free(*args: Any, **how: Any) -> Any:
        made = shedder(*args, **how)
        if made is not None:
            made.charges_births = False
        return made

    monkeypatch.setattr(Purse, "shedder", free)
    births = sum(event["type"] == "A" for event in events) * 4
    assert charged - desk.match_within(events, "100%").record().work == births


def test_events_that_are_granted_for_once_per_pair_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = QuerySet(output="points", budget="3 steps/event", audit=0)
    desk.add_many(TEMPLATES[0], [{"p": p % 3} for p in range(30)], id="hot")
    begin = Shedder.begin_pairs

    def per_pair(self: Shedder, *args: Any) -> None:
        begin(self, *args)
        self.arena.rate = self._rate

    monkeypatch.setattr(Shedder, "begin_pairs", per_pair)
    events = stream(37, 120)
    desk.push(events)
    assert desk.record().allowed > 3 * len(events) + 1


# --- what was learned ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned() -> tuple[QuerySet, Histories]:
    desk = QuerySet(output="points")
    desk.add(WIDE, id="wide")
    desk.add_many(TEMPLATES[0], [{"p": p} for p in range(4)], id="t")
    return desk, desk.train(stream(1, 300))


@pytest.mark.filterwarnings("ignore::acep_approx.errors.FewPointsWarning")
def test_a_history_for_each_query_and_each_template(learned: tuple[QuerySet, Histories], tmp_path: Path) -> None:
    desk, known = learned
    assert len(known) == 2
    now = stream(2, 300)
    within = desk.match_within(now, "20%", history=known)
    saved = known.save(tmp_path / "known")
    again = desk.match_within(now, "20%", history=saved)
    assert again.to_arrow().equals(within.to_arrow())
    record = within.record()
    assert record.policy == "history"
    assert record.work <= record.allowed
    assert len(Histories.load(saved)) == 2
    exact = desk.match(now)
    assert all(ends <= points(exact)[id_] for id_, ends in points(within).items())
    full = desk.match_within(now, "100%").record().work
    by_age = desk.match_within(now, "20%", full_work=full / len(now))
    assert within.rows > by_age.rows
    with pytest.raises(UsageError) as error:
        Histories.load(tmp_path)
    assert error.value.code == "ACEP-U036"


def test_a_history_of_the_wrong_kind_is_said_to_be_so(learned: tuple[QuerySet, Histories], tmp_path: Path) -> None:
    """With what to type: that of the query among those of a set, or how to learn one."""
    _, known = learned
    folder = known.save(tmp_path / "known")
    query, other = compile_query(WIDE, engine="runs"), compile_query(WIDE + "0", engine="runs")
    mine = folder / query.plan.known_as
    with pytest.raises(HistoryError, match="that of this query lies in it") as error:
        query.match_within(stream(2, 60), "20%", history=folder)
    assert (error.value.code, error.value.hint) == ("ACEP-H001", f"name it: --history {mine}")
    assert query.match_within(stream(2, 300), "20%", history=mine).points().num_rows > 0
    with pytest.raises(HistoryError, match=r"it holds those of several queries or rules: .*ticks") as error:
        other.match_within(stream(2, 60), "20%", history=folder)
    assert error.value.hint == "learn one first: acep train QUERY PAST -o DIR"
    with pytest.raises(UsageError, match="it is that of one query") as of_set:
        QuerySet().match_within(stream(2, 60), "20%", history=mine)
    assert of_set.value.hint == "learn them: acep train --queries FOLDER PAST -o DIR"


def test_one_warning_names_all_queries_with_too_few_match_points() -> None:
    desk = QuerySet(output="points")
    desk.add(WIDE, id="wide")
    desk.add("PATTERN SEQ(A a, B b, A c) WHERE b.x > a.x + c.x WITHIN 3", id="few")
    with pytest.warns(FewPointsWarning) as told:
        desk.train(stream(1, 160))
    (only,) = [str(one.message) for one in told]
    assert only.startswith("too few match points in this past to learn from: few (")
    assert "wide" not in only


def test_a_state_asks_for_its_histories(learned: tuple[QuerySet, Histories]) -> None:
    _, known = learned
    desk = QuerySet(output="points", budget="20%", history=known)
    desk.add(WIDE, id="wide")
    desk.push(stream(3, 60))
    state = desk.state_bytes()
    with pytest.raises(DataError) as error:
        QuerySet.from_state(state)
    assert error.value.code == "ACEP-D048"
    assert QuerySet.from_state(state, history=known).record().work == desk.record().work


def test_queries_that_no_history_knows_share_the_budget(learned: tuple[QuerySet, Histories]) -> None:
    _, known = learned
    desk = QuerySet(output="points")
    desk.add(WIDE, id="wide")
    desk.add(OTHERS, id="others")
    record = desk.match_within(stream(4), "30%", history=known).record()
    assert [part.piece.work > 0 for part in record.parts] == [True, True]
    assert record.work <= record.allowed


# --- one price for queries that are not alike ---------------------------------------------------------------------

HEAVY = "PATTERN SEQ(A a, A b, A c) WHERE b.x > a.x AND c.x = b.x + 37 WITHIN 25"
LIGHT = "PATTERN SEQ(B a, C b) WHERE [k] AND b.x > a.x WITHIN 400"


def uneven(seed: int, rows: int) -> Rows:
    """Many events of one query, and few of another, which finds more per run-step."""
    dice, names = Random(seed), "abcdefghijklmnopqrstu"
    types = dice.choices("ABC", (60, 4, 4), k=rows)
    return [{"ts": t, "type": of, "k": dice.choice(names), "x": dice.randrange(100)} for t, of in enumerate(types)]


def test_a_light_query_with_more_match_points_per_run_step_comes_first() -> None:
    desk = QuerySet(output="points")
    desk.add(HEAVY, id="heavy")
    desk.add(LIGHT, id="light")
    known, now = desk.train(uneven(1, 6_000)), uneven(2, 6_000)
    exact, within = points(desk.match(now)), points(desk.match_within(now, "10%", history=known))
    assert len(within["light"]) > 0.75 * len(exact["light"])


def test_a_price_far_from_all_others_does_not_hide_how_these_differ() -> None:
    parts, needs = [1.0, 1.0, 1.0], [Need(1.0, 1.0, 1.0, 1.0, price) for price in (0.1, 0.2, 1e-9)]
    some, more, none = towards_one_price(parts, needs, np.ones(3)).tolist()
    assert none < some < more


def test_a_template_without_a_key_learns_beside_a_query_with_one() -> None:
    desk = QuerySet(output="points", key="name")
    desk.add(LIGHT.replace("[k]", "[key]"), id="light")
    desk.add_many(TEMPLATES[0], [{"p": p} for p in range(4)], id="without")
    past = [{**row, "name": row["k"]} for row in uneven(1, 1500)]
    assert len(desk.train(past)) == 2
