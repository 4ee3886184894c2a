"""Plans in words and in drawings: what the runs engine tests when, remembers and merges, and what would be cheaper."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.automaton.resolve import Register
from acep_approx.automaton.words import register_text
from acep_approx.errors import UnsupportedError, UsageError
from acep_approx.planning.explain import MOST_LINES, advice, explain_text
from acep_approx.planning.planner import RunsCost, plan
from acep_approx.query.parser import parse
from acep_approx.query.syntax import Attribute, Binary, Constant
from tests.budgeted_sets import stream
from tests.cases import examples
from tests.command_line import acep
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled

RISING = """PATTERN SEQ(A a, B+ b[], C c)
WHERE [k] AND a.price < 5 AND b[i].price > b[i-1].price AND c.price > avg(b[].price) AND a.price < c.price
WITHIN 5 s"""
PRICE = Attribute(None, None, "price")


def section(text: str, label: str) -> list[str]:
    """The lines of a plan under a label."""
    found: list[str] = []
    now = ""
    for line in text.splitlines():
        now = line[:9].strip() or now
        if now == label:
            found.append(line[9:])
    return found


def explained(query: str) -> str:
    """The plan of a query for the runs engine."""
    return compile_query(query, engine="runs").explain()


def test_the_plan_says_why_the_runs_engine() -> None:
    """Each reason is a piece of the query; none where the engine was asked for."""
    reasons = section(compile_query(RISING).explain(), "engine")
    assert reasons[0] == "runs (exact)"
    assert re.findall(r"condition (.*), which", "\n".join(reasons)) == [
        "b[i].price > b[i-1].price",
        "c.price > avg(b[].price)",
        "a.price < c.price",
    ]
    assert "because it was asked for" in explained("ab WITHIN 5")


def test_states_say_what_their_runs_remember() -> None:
    """Only what a later condition reads."""
    assert section(explained(RISING), "states")[1:] == [
        "a: remembers price of a",
        "b: remembers number of b[] that have price, last price of b[], sum of price of b[], price of a",
        "c: remembers nothing of its events",
    ]


@pytest.mark.parametrize(
    ("register", "said"),
    [
        (Register("value", "a", PRICE), "price of a"),
        (Register("first", "a", PRICE), "first price of a[]"),
        (Register("last", "a", PRICE), "last price of a[]"),
        (Register("count", "a"), "number of a[]"),
        (Register("counted", "a", PRICE), "number of a[] that have price"),
        (Register("sum", "a", PRICE), "sum of price of a[]"),
        (Register("max", "a", PRICE), "max price of a[]"),
        (Register("least", "a", Binary("*", PRICE, Constant(2))), "least (price * 2) of a[]"),
        (Register("place", ""), "place of the last event"),
    ],
)
def test_registers_in_words(register: Register, said: str) -> None:
    """Short, and not to be confused."""
    assert register_text(register) == said


def test_conditions_stand_where_they_are_tested() -> None:
    """On one event once for all runs; else on an arc, as early as can be; else on complete matches."""
    assert section(explained(RISING), "tests") == [
        "of an event: A and price < 5",
        "of a run, b -> b: b[i].price > b[i-1].price",
        "of a run, b -> c: c.price > avg(b[].price) and a.price < c.price",
    ]
    ended = explained("PATTERN SEQ(A a, B+ b[]) WHERE sum(b[].x) > a.x WITHIN 5")
    assert section(ended, "tests") == ["of a run, which ends at b: sum(b[].x) > a.x"]
    inner = explained("PATTERN SEQ(A a, ~(X x), B b) WITHIN 5")
    assert section(inner, "tests") == ["of a run, a -> b: no X since"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "SEQ(A+ a[], B+ b[], C c) WHERE a[i].x + b[i].x < c.x",
            "a[i].x + b[i].x < c.x, because it compares all pairs of events of a[] and b[]",
        ),
        (
            "SEQ(A+ a[], C c) WHERE a[i].x + a[i-1].x < c.x",
            "a[i].x + a[i-1].x < c.x, because it is about every event of a[], and no one value sums them up",
        ),
        ("SEQ(~(X x), A a, B b)", "no X before the first event, because the last event tells how far back"),
        ("SEQ(A a, B b, ~(X x))", "no X after the last event, so it waits until its window has closed"),
        (
            "SEQ(A a, ~(X x), B b) WHERE x.v = a.v",
            "no X with x.v = a.v, because only then all its events are known",
        ),
    ],
)
def test_conditions_that_wait_for_the_match_say_why(query: str, said: str) -> None:
    """All pairs, negations at the ends, negations that are compared with other events."""
    assert section(explained(f"PATTERN {query} WITHIN 5"), "tests") == [f"of a complete match: {said}"]


@pytest.mark.parametrize(
    ("query", "waits"),
    [
        ("SEQ(ANY a, B b)", True),
        ("SEQ(A a, B+ b[])", True),
        ("SEQ(A+ a[], B b)", False),
        ("SEQ(B a, A+ c[], B b)", True),
    ],
)
def test_which_maximal_matches_wait_is_said_as_the_engine_knows_it(query: str, waits: bool) -> None:
    """One event may be both ANY and B, so that the last one of a match may begin or go on another one."""
    said = compile_query(f"PATTERN {query} WITHIN 5 MAXIMAL").explain()
    assert ("a match waits until its window has closed" in said) == waits


def test_merging_per_state() -> None:
    """All into one where nothing is carried; by values; across events where no strategy or negation forbids it."""
    compared = section(explained("PATTERN SEQ(A a, B b, C c) WHERE a.x != c.x WITHIN 5"), "merging")
    assert compared == [
        "a, b: equal, across events: one run stays for all equal (x of a)",
        "c: nothing comes after, no run stays",
    ]
    free = section(explained("abc WITHIN 5"), "merging")
    assert free[0] == "a, b: equal, across events: one run stays"
    equals = section(explained("PATTERN SEQ(A a, B b) WHERE a.x = b.x AND b.y > a.y WITHIN 5"), "merging")
    assert equals[0].endswith("(x of a, y of a); chain: an event meets only the runs whose x of a it equals")
    better = section(explained("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5"), "merging")
    assert better[0].endswith("(x of a); pareto, for points: low x of a is better, worse runs go")
    shown = section(explained("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 RETURN a.x AS x"), "merging")
    assert shown[0].endswith("(x of a); pareto, for bundles: low x of a is better, worse runs go")
    guarded = section(explained("PATTERN SEQ(A a, ~(X x), B b) WITHIN 5"), "merging")
    assert guarded[0].startswith("a: equal: of the runs that one event brings one stays; a negation asks when")
    next_ = section(
        explained("PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { a.x < c.x } WITHIN 5"), "merging"
    )
    assert next_[0] == "a: equal: of the runs that one event brings one stays; those of other events stay apart"
    assert next_[1].startswith("b: equal: of the runs that one event brings one for all equal (x of a) stays")


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("skip_till_any_match", "a run that can take an event also goes on without it"),
        ("skip_till_next_match", "passes over only events that it cannot take"),
        ("partition_contiguity", "an event of its partition"),
        ("strict_contiguity", "an event of the stream"),
    ],
)
def test_the_strategy_says_what_it_ignores(strategy: str, said: str) -> None:
    """In one sentence."""
    text = explained(f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ a.x < b.x }} WITHIN 5")
    (line,) = section(text, "strategy")
    assert line.startswith(strategy)
    assert said in line


def test_simultaneous_is_said_and_makes_another_query() -> None:
    """Why the runs engine, what becomes of events at one time; a state or a history is of no use to the other one."""
    text = "PATTERN SEQ(A a, B b) WITHIN 5"
    plain, query = compile_query(text, engine="runs"), compile_query(text + " SIMULTANEOUS")
    assert section(query.explain(), "engine") == ["runs (exact)", "because the cells cannot answer SIMULTANEOUS"]
    assert section(query.explain(), "strategy")[1].startswith("SIMULTANEOUS: what one event of a time does")
    assert "SIMULTANEOUS" not in plain.explain()
    assert plain.plan.fingerprint() != query.plan.fingerprint()
    with pytest.raises(UnsupportedError, match=r"ACEP-Q900.*SIMULTANEOUS"):
        compile_query(text + " SIMULTANEOUS", engine="cells")


def test_cost_is_sizes_alone() -> None:
    """Two words and the registers per run; nothing is determinised, however large that would be."""
    cost = compile_query(RISING).plan.cost
    assert isinstance(cost, RunsCost)
    assert (cost.states, cost.arcs, cost.letters, cost.bytes_per_run) == (4, 4, 3, 8 * (2 + 4))
    assert "16 to 48 bytes per run" in explained(RISING)
    many = "PATTERN SEQ(" + ", ".join(f"(A a{i}){{0,1}}, B b{i}" for i in range(12)) + ") WHERE b0.x < b1.x WITHIN 5"
    assert compile_query(many).plan.cost.states > 12


def test_advice() -> None:
    """What would be cheaper; nothing where nothing is known to be."""
    assert any("[attribute]" in note for note in section(explained("ab WITHIN 5"), "advice"))
    assert any("the cells can run this query" in note for note in section(explained("ab WITHIN 5"), "advice"))
    late = explained("PATTERN SEQ(A+ a[], B+ b[], C c, ~(D d)) WHERE a[i].x + b[i].x < c.x WITHIN 5")
    assert any("excludes no run on its way" in note for note in section(late, "advice"))
    assert any("wait for one window" in note for note in section(late, "advice"))
    kleene = "PATTERN SEQ(A+ a[], B b) WHERE [k] AND a[i].x > a[i-1].x WITHIN 5"
    assert [note for note in section(explained(kleene), "advice") if "2^n" in note]
    assert not section(explained(kleene + " NON OVERLAP"), "advice")
    chosen = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [k] AND a[i].x > a[i-1].x } WITHIN 5"
    assert not section(explained(chosen), "advice")
    assert "ERRORS 2 lists a complete case once more" in section(explained("abc WITHIN 5 ERRORS 2"), "advice")[0]


def test_long_plans_are_cut() -> None:
    """A drawing has them all."""
    letters = ", ".join(f"A a{i}" for i in range(30))
    states = section(explained(f"PATTERN SEQ({letters}) WITHIN 5"), "states")
    assert states[-1] == f"... and {30 - MOST_LINES} more"


# --- drawings ---------------------------------------------------------------------------------------------------


def test_drawings_show_registers_and_conditions() -> None:
    """At the states what is remembered, on the arcs what is tested."""
    query = compile_query(
        "PATTERN SEQ(A a, ~(X x), B+ b[], ~(Y y)) WHERE b[i].x > a.x AND sum(b[].x) > 3 WITHIN 5 ERRORS 1"
    )
    mermaid = query.explain("mermaid")
    assert '"B and b[i].x #gt; a.x if no X since"' in mermaid
    assert "x of a" in mermaid
    assert "end if sum(b[].x) #gt; 3 and no Y after" in mermaid
    value = json.loads(query.explain("json"))
    registers = query.plan.registers
    assert registers is not None
    assert len(value["states"]) == len(value["registers"]) == len(registers.states)
    assert len(set(value["states"])) == len(value["states"])
    assert len(value["arcs"]) == len(registers.steps)
    assert {"b[i].x > a.x"} == {test for arc in value["arcs"] for test in arc["tests"]}
    dot = query.explain("dot")
    assert len(re.findall(r"^  s\d+ -> s\d+", dot, re.M)) == len(registers.steps)


@examples(300, shrink=False)
@given(rich_worlds())
def test_every_query_can_be_explained(world: RichWorld) -> None:
    """In words and in drawings; states of one name would be confused."""
    query = compiled(world)
    if query is None:
        return
    assert "engine   runs" in query.explain()
    for form in ("mermaid", "dot", "json"):
        assert query.explain(form)
    assert explain_text(plan(parse(world.text)))
    assert all(isinstance(note, str) for note in advice(query.plan))


# --- inside a load budget ---------------------------------------------------------------------------------------------

WIDE = "PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40"
MANY = "PATTERN SEQ(A a, A b, B c) WHERE a.x > :p AND b.x <> a.x AND c.x <> a.x + b.x WITHIN 40"
RULES = """TABLE seen (k text, n int DEFAULT 0, KEY (k))
RULE rise ON PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 40 DO UPDATE seen SET n = old.n + 1 AT (b.k) END
RULE few WORTH 3 ON PATTERN SEQ(A a, C c) WHERE c.x > a.x AND store.seen[c.k].n = 0 WITHIN 50"""


def of_budget(text: str) -> list[str]:
    """The lines of the last section, which is that of the budget."""
    return [line.strip() for line in text[text.index("budget ") :].splitlines()]


@pytest.mark.usefixtures("one_reading")
def test_a_budget_of_one_query_is_said_with_what_its_history_knows() -> None:
    query = compile_query(WIDE)
    with warnings.catch_warnings(action="ignore"):
        known = query.train(stream(1, 200))
    said = of_budget(query.explain(budget="20%", history=known, output="points"))
    assert said[0] == "budget   20% of the exact run, policy history, seed 0"
    exact = known.work_.ratio * known.steps_per_event_
    assert said[1].startswith(f"the exact run: {exact:.3g} run-steps per event in the past; while it runs")
    assert said[2] == f"granted: {exact / 5:.3g} run-steps per event"
    assert said[-1].startswith("found of the match points of the past, by budget: 2% ")
    some = of_budget(query.explain(budget="9 steps/event", full_work=30, audit=0))
    assert some[2] == "granted: 9 run-steps per event (30% of that)"
    assert some[3] == "no audit; 0.1 for choosing among partial matches"
    assert "without a history nobody knows the work" in query.explain(budget="9 steps/event")
    assert query.explain(budget="100%").endswith("100%: nothing is shed")
    cells = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").explain(budget="5%")
    assert cells.endswith("the cells engine answers exactly, and sheds nothing")
    for wrong in ({"history": known}, {"budget": "5%", "format": "svg"}):
        with pytest.raises(UsageError, match="ACEP-U040"):
            query.explain(**wrong)
    with pytest.raises(UsageError, match="ACEP-U034"):
        query.explain(budget="5%")


@pytest.mark.usefixtures("one_reading")
def test_who_begins_with_which_part_of_a_budget_is_said(tmp_path: Path) -> None:
    def desk() -> QuerySet:
        made = QuerySet(output="points")
        made.add(WIDE, id="wide", weight=3)
        made.add_many(MANY, [{"p": 1}, {"p": 2}], id="many")
        made.add("PATTERN SEQ(A a, B b) WITHIN 5", id="easy")
        return made

    with warnings.catch_warnings(action="ignore"):
        known = desk().train(stream(1, 150)).save(tmp_path / "known")
    said = of_budget(desk().explain("20%", history=known))
    assert said[0] == "budget   20% of the exact runs of all queries, policy history, seed 0"
    begins = said[said.index("2 engines share it, and begin with") + 1 :]
    assert "2 queries of a template, where tries to begin a partial match are work, too" in begins[0]
    assert re.match(r"wide: weight 3, \d+% of it; its exact run takes [\d.]+ run-steps per event$", begins[1])
    parts = [int(re.search(r"(\d+)% of it", line).group(1)) for line in begins[:2]]
    assert sum(parts) == pytest.approx(100, abs=1)
    ran = desk().match_within(stream(2, 300), "20%", history=known).record()
    assert {part.name[:4] for part in ran.parts} == {line[:4] for line in begins[:2]} == {"PATT", "wide"}
    assert "wide: weight 3, no history" in of_budget(desk().explain("5 steps/event"))
    rules = compile_rules(RULES)
    said = of_budget(rules.explain("9 steps/event"))
    assert said[-5:-3] == ["rise: weight 3.4, no history", "few: weight 3, no history"]
    assert said[-1] == "these count for more, as others read what they write: rise"


def test_the_command_says_how_a_budget_is_shared(tmp_path: Path) -> None:
    (tmp_path / "wide.acep").write_text(WIDE)
    said = acep("explain", WIDE, "--budget", "20 steps/event", "--output", "points").stdout
    assert of_budget(said) == of_budget(compile_query(WIDE).explain(budget="20 steps/event", output="points"))
    of_set = acep("explain", "--queries", str(tmp_path), "--budget", "9 runs").stdout
    assert "1 engine shares it, and begins with" in of_set
    (tmp_path / "rules.txt").write_text(RULES)
    of_rules = acep("explain", str(tmp_path / "rules.txt"), "--budget", "9 steps/event").stdout
    assert "rise: weight 3.4, no history" in of_rules
    assert "ACEP-U040" in acep("explain", WIDE, "--seed", "1", code=2).stderr
    assert "ACEP-U064" in acep("explain", WIDE, "--budget", "9 runs", "--format", "dot", code=2).stderr
