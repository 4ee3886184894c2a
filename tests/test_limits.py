"""Whatever text is given: its tables have a stated size, or it is refused with the limit that it passes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest

from acep_approx import compile_query
from acep_approx.automaton import compile as compiling
from acep_approx.automaton.compile import MAX_ARCS, MAX_LETTERS, MAX_WAYS
from acep_approx.automaton.determinize import ARCS_AHEAD, Determinised
from acep_approx.automaton.registers import MAX_MOVES, MAX_STATES
from acep_approx.errors import LimitError, QueryError
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.limits import MAX_DEPTH, MAX_NODES, MAX_POSITIONS, MAX_WORDS
from acep_approx.query.parser import parse
from acep_approx.query.shape import walk_with_depth
from experiments.speed.nasty_queries import HARD, nasty_query
from tests.cases import cases

TEXTS = cases(20_000, 500)
EVENTS = [{"ts": t, "type": "AB"[t % 2], "x": t * 7 % 11, "y": t % 3} for t in range(20)]


def sizes_hold(found: Plan) -> None:
    """Everything that is counted stays below its limit."""
    query, automaton = found.query, found.automaton
    trees = [query.pattern, *query.predicates, *(output.value for output in query.outputs)]
    nodes = [depth for tree in trees for _, depth in walk_with_depth(tree)]
    assert len(nodes) <= MAX_NODES
    assert max(nodes) <= MAX_DEPTH
    assert automaton.size <= MAX_POSITIONS + 1
    assert len(automaton.arcs) <= MAX_ARCS
    assert len(automaton.letters) <= MAX_LETTERS
    if found.registers is not None:
        known = found.registers
        assert len(known.states) <= MAX_STATES
        assert len(known.steps) <= MAX_ARCS
        assert len(known.letters) <= MAX_LETTERS
        targets = Counter(place for place, _ in known.places)
        assert sum(targets[s.source] for s in known.steps if automaton.arcs[s.arc].cost == 0) <= MAX_MOVES


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many ways through a pattern are looked at, as ``now``."""
    ways = Counter[str]()
    real = compiling.reach

    def counted(*arguments):
        for way in real(*arguments):
            ways["now"] += 1
            yield way

    monkeypatch.setattr(compiling, "reach", counted)
    return ways


def test_nasty_texts_stay_below_the_limits(ways: Counter[str]) -> None:
    """Random ones, and those made by hand that the tests below do not compile."""
    dice = random.Random(23)
    outcomes = Counter[str]()
    by_hand = [text for name, text in HARD.items() if name not in (*REFUSED, *PASS)]
    texts = chain(by_hand, (nasty_query(dice) for _ in range(TEXTS)))
    for i, text in enumerate(texts):
        ways["now"] = 0
        try:
            found = plan(parse(text), "auto" if i < len(by_hand) else dice.choice(("auto", "auto", "runs")))
        except QueryError as error:
            if isinstance(error, LimitError):
                assert error.given > error.limit
                assert error.hint
            outcomes[error.code] += 1
            assert ways["now"] <= MAX_WAYS + 1
            continue
        sizes_hold(found)
        assert ways["now"] <= MAX_WAYS
        outcomes["compiled"] += 1
        if i % 10 == 0 and found.registers is None:
            subset = Determinised(found.automaton, cap=200)
            try:
                subset.add_classes([1 << letter for letter in range(len(found.letters))])
            except LimitError as error:
                assert error.code == "ACEP-Q905"
            assert subset.looked_at <= ARCS_AHEAD + len(found.automaton.arcs) * len(found.letters)
    assert outcomes["compiled"] > TEXTS / 3
    limits = {"ACEP-Q021", "ACEP-Q022", "ACEP-Q023", "ACEP-Q903", "ACEP-Q904", "ACEP-Q905", "ACEP-Q911", "ACEP-Q912"}
    known = {*outcomes, *REFUSED.values()}
    assert limits <= known, limits - known


REFUSED = {
    "(a?){400}a": "ACEP-Q904",
    "A{1000} ERRORS 999": "ACEP-Q904",
    "IN of 20,000": "ACEP-Q023",
    "200,000 NOT": "ACEP-Q023",
    "100,000 alternatives": "ACEP-Q023",
    "500,000 brackets": "ACEP-Q021",
    "100 optional": "ACEP-Q905",
    "20 stages of negations": "ACEP-Q911",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_the_number_and_the_limit(name: str, ways: Counter[str]) -> None:
    with pytest.raises(LimitError) as caught:
        compile_query(HARD[name])
    assert caught.value.code == REFUSED[name]
    assert caught.value.given > caught.value.limit
    assert f"{caught.value.limit:,}" in str(caught.value)
    assert caught.value.hint
    assert ways["now"] <= MAX_WAYS + 1


PASS = (
    "100 steps ERRORS 3",
    "IN of 10,000",
    "50 alternatives",
    "A{500} ERRORS 10",
    "120 alternatives of 5",
    "1,000 steps",
)


@pytest.mark.parametrize("name", PASS)
@pytest.mark.parametrize("engine", ["auto", "runs"])
def test_what_is_long_but_plain_still_runs(name: str, engine: str, ways: Counter[str]) -> None:
    query = compile_query(HARD[name], engine=engine)
    sizes_hold(query.plan)
    assert ways["now"] <= MAX_WAYS
    assert query.match(EVENTS, limit=10).to_arrow().num_columns > 0


def test_a_tree_without_text_is_counted_too() -> None:
    from acep_approx import event
    from acep_approx.query.syntax import Attribute, Constant, In

    condition = In(Attribute("a", None, "x"), tuple(map(Constant, range(MAX_NODES))), negated=False)
    query = replace(event("A", "a").within("5").syntax(), predicates=(condition,))
    with pytest.raises(LimitError) as caught:
        plan(query)
    assert (caught.value.code, caught.value.limit) == ("ACEP-Q024", MAX_NODES)


def test_words_are_counted_without_comments_and_texts_are_one_word() -> None:
    some = ", ".join(["'it''s (one), word'", "1.5e3", "`a b`", "v1"] * 10)
    text = f"PATTERN A a -- {'word ' * 40_000}\nWHERE a.x IN ({some.replace('`a b`', '2').replace('v1', '3')}) WITHIN 5"
    assert len(compile_query(text).syntax.predicates) == 1
    with pytest.raises(LimitError) as caught:
        parse("PATTERN A a WHERE a.x IN (" + "1, " * MAX_WORDS + "1) WITHIN 5")
    assert caught.value.given == 2 * MAX_WORDS + 13
