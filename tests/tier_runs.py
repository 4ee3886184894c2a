"""Runs of every wing of the package, each made of a seed alone: what ``test_tiers_agree`` runs in several tiers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import HistoryGraph, Query, QuerySet, compile_query, compile_rules
from acep_approx.api.matcher import Matcher
from acep_approx.budget.budget import Budget
from acep_approx.errors import DataError, UnsupportedError
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from tests.afa_runs import compiled
from tests.afa_worlds import afa_world
from tests.cayuga_examples import CASES, STOCK
from tests.cel_worlds import cel_world
from tests.corpus_cases import NAMED, events_of
from tests.doubt_worlds import doubt_world
from tests.one_reading import learned
from tests.revised_streams import schedule
from tests.rich_worlds import rich_world
from tests.rule_corpus import CASES as RULE_CASES
from tests.rule_runs import RunUnderTest, Way
from tests.rule_worlds import RuleWorld, rule_world
from tests.runs_engine import MERGES
from tests.sets_worlds import long_stream
from tests.template_worlds import events as template_events
from tests.tied_worlds import tied_world
from tests.waiting_worlds import waiting_world

OUTPUTS = ("matches", "points", "counts", "partial", "compressed")


def split(table: pa.Table, dice: Random, most: int = 4) -> list[pa.Table]:
    """A table in batches that end anywhere."""
    cuts = sorted(dice.randint(0, table.num_rows) for _ in range(dice.randrange(most)))
    return [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]


def pushed(query: Query, matcher: Matcher, batches: Sequence[pa.Table], dice: Random) -> list[Any]:
    """All that a matcher gives, with its states, counters, and a restart now and then."""
    found: list[Any] = []
    for batch in batches:
        found.append(matcher.push(batch))
        state = matcher.state_bytes()
        found += [state, vars(matcher.progress)]
        if dice.randrange(3) == 0:
            matcher = query.from_state(state)
    return [*found, matcher.finish(), vars(matcher.progress)]


def language(seed: int) -> list[Any]:
    """A query of the language, by either engine, with any output."""
    dice = Random(seed)
    kind = dice.choice(("rich", "rich", "tied", "waiting"))
    if kind == "rich":
        world = rich_world(dice, dice.randrange(5) == 0, calls=True)
    else:
        world = tied_world(dice) if kind == "tied" else waiting_world(dice)
    engine, output, merge = dice.choice(("auto", "runs", "runs")), dice.choice(OUTPUTS), dice.choice(MERGES)
    query = compile_query(world.text, engine=engine)
    table = world.table()
    if output in ("partial", "compressed"):
        matches = query.match(table)
        return [matches.partial() if output == "partial" else matches.compressed().expand()]
    return pushed(query, query.matcher(output=output, merge=merge), split(table, dice), dice)


def corpus(name: str) -> list[Any]:
    """A case of the corpus."""
    case = NAMED[name]
    query, events, dice = compile_query(case["query"]), events_of(case), Random(name)
    return [query.match(events).counts(), *pushed(query, query.matcher(), split(events, dice), dice)]


def automata(seed: int) -> list[Any]:
    """An automaton that is written down, with registers and functions."""
    world, dice = afa_world(seed), Random(seed)
    query = compiled(world)
    if isinstance(query, str):
        return [query]
    matcher = query.matcher(output=dice.choice(OUTPUTS[:3]))
    return pushed(query, matcher, split(world.table(), dice), dice)


def algebra(seed: int) -> list[Any]:
    """Queries in CEL."""
    world, dice = cel_world(seed, subqueries=False, intervals=False), Random(seed)
    query = compile_query(world.text)
    return pushed(query, query.matcher(), split(world.table, dice), dice)


TEMPLATES = (
    "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > :p AND b.y > :f * a.y WITHIN :w",
    "PATTERN SEQ(A a, B b, C c) WHERE b.y <= a.y * :f AND c.x >= :p WITHIN :w",
    "PATTERN SEQ(A a, B b) WHERE [k] AND a.x = :p AND b.x = :p WITHIN :w",
    "PATTERN SEQ(A a, B b, C c) WHERE [k] AND c.x > a.x AND b.x > :p WITHIN :w",
)


def templates(seed: int) -> list[Any]:
    """Queries that differ in constants, some of which are below zero."""
    dice = Random(seed)
    template, desk = dice.choice(TEMPLATES), QuerySet(output=dice.choice(("matches", "points")))
    rows = [
        {"p": dice.randrange(-2, 4), "f": dice.choice([-1.0, 0.5, 1.5]), "w": dice.randrange(25)} for _ in range(8)
    ]
    names = [name for name in rows[0] if f":{name}" in template]
    desk.add_many(template, [{name: row[name] for name in names} for row in rows])
    found: list[Any] = []
    for batch in split(template_events(dice, 120), dice):
        found += [desk.push(batch).to_arrow(), desk.state_bytes()]
        desk = QuerySet.from_state(desk.state_bytes()) if dice.randrange(3) == 0 else desk
    return [*found, desk.finish().to_arrow()]


def sets(seed: int) -> list[Any]:
    """Several queries over one stream."""
    dice = Random(seed)
    desk = QuerySet()
    for _ in range(4):
        text = rich_world(dice, False).text
        try:
            desk.add(text)
        except UnsupportedError:
            continue
    found = [(desk.push(batch).to_arrow(), desk.state_bytes()) for batch in split(long_stream(dice, 3), dice)]
    return [*found, desk.finish().to_arrow()]


def rules_of(world: RuleWorld, seed: int) -> list[Any]:
    """A world of rules by one of its drivers."""
    dice = Random(seed)
    rules = compile_rules(world.text)
    cuts = tuple(sorted(dice.randrange(len(world.rows) + 1) for _ in range(2)))
    test = RunUnderTest(world, rules, Way("", dice.choice(("auto", "stepping")), cuts))
    found: list[Any] = []
    for batch in world.batches(cuts):
        test.push(batch)
        found.append(test.run.state_bytes())
    test.finish()
    return [*found, vars(test.end())]


def rules(seed: int) -> list[Any]:
    """Rules that write what they read."""
    return rules_of(rule_world(seed), seed)


def rules_within(seed: int) -> list[Any]:
    """Rules inside a load budget: what is certain, and what is in doubt."""
    world, dice = doubt_world(seed), Random(seed)
    budget, driver = dice.choice(("0.5 steps/event", "3 steps/event", "4 runs")), dice.choice(("auto", "stepping"))
    run = compile_rules(world.text).start(budget=budget, driver=driver)
    found: list[Any] = []
    for batch in world.batches():
        out = run.push(batch)
        found.append(({name: table.to_pylist() for name, table in out.items()}, run.state_bytes()))
    return [*found, {name: table.to_pylist() for name, table in run.finish().items()}]


def rule_corpus(name: str) -> list[Any]:
    """A case of the corpus of rules."""
    return rules_of(RULE_CASES[name].world(), len(name))


def revisions(seed: int) -> list[Any]:
    """Events that come late, are revised, or taken back."""
    asked = schedule(seed)
    query = compile_query(asked.text, engine=asked.engine)
    matcher = query.matcher(**asked.options())
    found: list[Any] = []
    for step in asked.steps:
        if step.tick is not None:
            try:
                found.append(matcher.punctuate(step.tick))
            except DataError as error:  # time would run backwards
                found.append(str(error))
        elif step.rows is not None:
            found += [matcher.push(asked.table(step.rows)), matcher.state_bytes()]
        else:
            matcher = query.from_state(matcher.state_bytes())
    return [*found, matcher.finish()]


BUDGETED = (
    "PATTERN SEQ(A a, B b, C c) WHERE [id] AND (c.x - a.x) * (c.x - a.x) < 40 WITHIN 150",
    "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x <> a.x WITHIN 120",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE [id] AND b[i].x > a.x AND c.x > a.x WITHIN 60",
)
BUDGETS = ("20%", "50 steps/event", "3 steps/event", "1.5 steps/event", "40 runs", "5 runs", "0.1 steps/event")


def stream(seed: int, events: int) -> pa.Table:
    """One event a tick, six keys; some events are of no interest. Every second stream begins before time 0."""
    rng = np.random.default_rng(seed)
    letter = rng.choice(4, events, p=[0.4, 0.3, 0.2, 0.1])
    columns = {"ts": np.arange(events) - seed % 2 * 10**6, "x": rng.integers(0, 30, events)}
    return pa.table({**columns, "id": rng.integers(0, 6, events), "type": np.array(list("ABCN"))[letter]})


@cache
def trained(text: str) -> HistoryGraph:
    """A history, made once: in whichever tier."""
    return learned(HistoryGraph(compile_query(text, engine="runs")), stream(1, 1500))


def budgets(seed: int) -> list[Any]:
    """A run inside a budget, with a history or without, that may learn."""
    dice = Random(seed)
    text, budget = dice.choice(BUDGETED), dice.choice(BUDGETS)
    query = compile_query(text, engine="runs")
    options: dict[str, Any] = {"audit": dice.choice((0, 0.5)), "seed": 3}
    if dice.randrange(3):
        options["history"] = trained(text)
        options["learn"] = dice.randrange(2) == 0
    found = query.match_within(stream(seed, 400), budget, **options)
    return [found.to_arrow(), repr(found)]


def shed_states(seed: int) -> list[Any]:
    """The same with its states, which are taken up now and then, and all that the shedder counts."""
    dice = Random(seed)
    text, budget, known = dice.choice(BUDGETED), dice.choice(BUDGETS[1:]), dice.randrange(4) > 0
    policy = dice.choice(("history", "coverage")) if known else "oldest"
    load = Load(Budget.parse(budget), trained(text) if known else None, policy=policy, audit=0.5, seed=3)
    plan, found, shedder = compile_query(text, engine="runs").plan, [], None
    matcher = None
    for batch in split(stream(seed, 300), dice):
        if matcher is None:
            shedder = Shedder(plan, load)
            matcher = Matcher(plan, shedding=shedder)
        elif dice.randrange(2):
            shedder = Shedder(plan, load)
            matcher = Matcher.from_state(plan, matcher.state_bytes(), shedder)
        found += [matcher.push(batch), matcher.state_bytes(), vars(matcher.progress), shedder.arena.words.tobytes()]
    return [*found, matcher.finish()]


def late_budgets(seed: int) -> list[Any]:
    """A run inside a budget whose events come late, with restarts, and all that the shedder counts."""
    dice = Random(seed)
    text, budget, known = dice.choice(BUDGETED), dice.choice(BUDGETS[1:]), dice.randrange(3) > 0
    query, options = compile_query(text, engine="runs"), {"history": trained(text)} if known else {}
    matcher: Any = query.matcher(budget=budget, emit="early", seed=3, **options)
    late = np.argsort([at + dice.randrange(40) * (dice.randrange(9) == 0) for at in range(300)], kind="stable")
    found: list[Any] = []
    for batch in split(stream(seed, 300).take(pa.array(late)), dice, 8):
        if dice.randrange(4) == 0:
            matcher = query.from_state(matcher.state_bytes(), **options)
        found += [matcher.push(batch), vars(matcher.progress)]
        found += [matcher.shedder.arena.words.tobytes()] if batch.num_rows else []
    return [*found, matcher.finish()]


DENSE = (
    "PATTERN SEQ(A a, (B b | C c), C d) WHERE d.x > a.x AND b.x < 20 WITHIN {}",
    "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN {} ERRORS 1",
    "PATTERN SEQ(A a, B+ b[]) WHERE b[i].x > b[i-1].x AND b[1].x > a.x WITHIN {}",
    "PATTERN SEQ(A a, B b, ~(C c)) WHERE b.x > a.x + 20 WITHIN {}",
)


def blocks(seed: int) -> list[Any]:
    """Many runs at each event, several steps of which lead to one pool: whole blocks, and parts of them."""
    dice = Random(seed)
    rows = dice.choice((60, 900))
    types = [dice.choice("AAAABC") for _ in range(rows)]
    columns = {"ts": [i // 2 for i in range(rows)], "type": types, "x": [dice.randrange(40) for _ in range(rows)]}
    text, merge = dice.choice(DENSE), dice.choice(MERGES)
    query = compile_query(text.format(12 if rows == 60 else 300), engine="runs")
    output = "points" if rows > 60 else dice.choice(("matches", "counts"))
    return pushed(query, query.matcher(output=output, merge=merge), split(pa.table(columns), dice), dice)


def histories(seed: int) -> list[Any]:
    """A history that is learned: which run led to what is found with the kernels of hindsight."""
    query = compile_query(BUDGETED[seed % len(BUDGETED)], engine="runs")
    history = learned(HistoryGraph(query), stream(seed, 500))
    return [query.match_within(stream(seed + 1, 200), "30%", history=history, audit=0.5).to_arrow()]


CAYUGA = [case for case in CASES if len(case.texts) == 1]


def cayuga(number: int) -> list[Any]:
    """An example of the papers on Cayuga."""
    case = CAYUGA[number]
    columns = zip(*[(quote[0], "Stock", *quote[1:]) for quote in case.quotes], strict=True)
    query = compile_query(case.texts[0])
    return [query.match(pa.table(dict(zip(("ts", "type", *STOCK), map(list, columns), strict=True)))).to_arrow()]
