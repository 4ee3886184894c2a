"""The oracle of CEL against the examples of the paper, against automata with epochs, and against itself in parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from acep_approx.planning.cel import left_associated
from acep_approx.query.cel.names import completed, resolved
from acep_approx.query.cel.parser import parse_cel
from acep_approx.query.cel.printer import to_cel
from acep_approx.query.cel.syntax import CelQuery
from tests.cases import cases
from tests.cayuga_examples import CASES, EARLY, SCHEMAS, STOCK, Case, Quote
from tests.cel_worlds import CelWorld, cel_set, cel_world
from tests.naive_cel import Event, TooManyEvents, Values, bag, published, run, run_all

MINUTES = {"min": 1}


def stocks(*quotes: Quote) -> dict[str, list[Event]]:
    """Quotes as events of Stock."""
    return {"Stock": [Event(t, t, {"Name": n, "Price": p, "Volume": v}) for t, n, p, v in quotes]}


def found(text: str, events: dict[str, list[Event]], **schemas: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Times and values of the results, in order."""
    query = resolved(parse_cel(text), {**SCHEMAS, **schemas})
    return sorted((one.t0, one.t1, *one.values.values()) for one in run(query, events, MINUTES))


# --- the paper ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_cases_of_the_paper(case: Case):
    schemas = {"Stock": STOCK}
    queries = []
    for text in case.texts:
        query = parse_cel(text)
        queries.append(resolved(query, schemas))
        schemas |= completed(query, schemas)
    results = run_all(queries, stocks(*case.quotes), MINUTES)[-1]
    assert sorted((one.t0, one.t1, *one.values.values()) for one in results) == sorted(case.results)


# --- facts --------------------------------------------------------------------------------------------------------


def test_next_takes_all_events_of_the_least_time_that_begin_behind():
    events = {
        "A": [Event(0, 2, {"x": 1})],
        "B": [Event(t0, t1, {"y": n}) for n, (t0, t1) in enumerate([(0, 3), (2, 3), (3, 6), (6, 6), (4, 6), (7, 7)])],
    }
    assert found("FROM A NEXT B", events, A=("x",), B=("y",)) == [(0, 6, 1, 2), (0, 6, 1, 3), (0, 6, 1, 4)]


def test_conditions_have_three_values():
    events = {
        "A": [Event(0, 0, {"x": None}), Event(1, 1, {"x": 2})],
        "B": [Event(3, 3, {"y": None}), Event(4, 4, {"y": 2})],
    }
    schemas = {"A": ("x",), "B": ("y",)}
    assert found("FROM FILTER{NOT x = 1}(A)", events, **schemas) == [(1, 1, 2)]
    assert found("FROM A NEXT{x = y OR x IS NULL} B", events, **schemas) == [(0, 3, None, None), (1, 4, 2, 2)]


def test_each_derivation_is_a_result():
    events = {"A": [Event(0, 0, {"x": 1}), Event(0, 0, {"x": 1})], "B": [Event(1, 1, {"y": 1}), Event(1, 1, {"y": 1})]}
    assert found("SELECT y FROM A NEXT B", events, A=("x",), B=("y",)) == [(0, 1, 1)] * 4


def test_streams_of_streams():
    equal = "SELECT Price_1 AS p, Name AS n FROM Stock NEXT{$1.Price = $2.Price} Stock PUBLISH Pairs"
    texts = ["FROM Pairs NEXT Stock", equal]
    pairs = parse_cel(texts[1])
    schemas = {**SCHEMAS, **completed(pairs, SCHEMAS)}
    queries = [resolved(parse_cel(text), schemas) for text in texts]
    last, first = run_all(queries, stocks(*EARLY))
    assert bag(first) == bag([Event(1, 3, {"p": 84, "n": "DELL"})])
    assert [(one.t0, one.t1, one.values["p"], one.values["Price"]) for one in last] == [(1, 5, 84, 90)]


def test_a_window_is_how_long_results_last():
    events = {"A": [Event(0, 0, {"x": 1}), Event(1, 1, {"x": 2})], "B": [Event(3, 3, {"y": 0})]}
    assert found("SELECT x FROM A NEXT B WITHIN 2", events, A=("x",), B=("y",)) == [(1, 3, 2)]


# --- declarative = operational ------------------------------------------------------------------------------------

Test = Callable[[Values, Values], bool]


def automaton(left: list[Event], right: list[Event], chosen: Test, rebind: Test | None) -> list[tuple[int, ...]]:
    """One state: instances wait; what an event used, or killed, leaves when the epoch is over.

    Source: Demers et al., section 3.2. Gives the times, the first and the last price.
    """
    live: list[tuple[int, int, int, Values]] = []  # begin, end, first price, last values
    results = []
    for t in sorted({one.t1 for one in left + right}):
        pending, gone = [], set()
        for event in (one for one in right if one.t1 == t):
            for number, (begin, end, first, last) in enumerate(live):
                if event.t0 > end and chosen(last, event.values):
                    gone.add(number)
                    if rebind is None or rebind(last, event.values):
                        results.append((begin, t, first, event.values["p"]))
                        if rebind is not None:
                            pending.append((begin, t, first, event.values))
        pending += [(one.t0, t, one.values["p"], one.values) for one in left if one.t1 == t]
        live = [one for number, one in enumerate(live) if number not in gone] + pending
    return sorted(results)


def streams() -> Iterator[tuple[list[Event], list[Event]]]:
    random_ = random.Random(5)

    def stream(most: int) -> list[Event]:
        long = random_.random() < 0.5
        ends = [random_.randrange(8) for _ in range(random_.randrange(most))]
        starts = [t - (random_.randrange(3) if long else 0) for t in ends]
        return [
            Event(t0, t1, {"k": random_.randrange(2), "p": random_.randrange(4)})
            for t0, t1 in zip(starts, ends, strict=True)
        ]

    for _ in range(cases(3000, 700)):
        yield stream(5), stream(8)


def test_next_and_fold_are_automata_with_epochs():
    schemas = {"R": ("k", "p"), "S": ("k", "p")}
    next_ = resolved(parse_cel("SELECT p_1, p FROM R NEXT{$1.k = $2.k AND $2.p >= $1.p} S"), schemas)
    fold = resolved(parse_cel("SELECT p_1, p FROM R FOLD{$2.k = $.k, $2.p >= $.p, } S"), schemas)
    some = 0
    for left, right in streams():
        events = {"R": left, "S": right}
        pairs, chains = (
            sorted((one.t0, one.t1, *one.values.values()) for one in run(query, events)) for query in (next_, fold)
        )
        assert pairs == automaton(left, right, lambda x, e: x["k"] == e["k"] and e["p"] >= x["p"], None)
        assert chains == automaton(left, right, lambda x, e: x["k"] == e["k"], lambda x, e: e["p"] >= x["p"])
        some += bool(pairs) and len(chains) > 2
    assert some > 30


# --- random worlds ------------------------------------------------------------------------------------------------


def parts(world: CelWorld) -> list[CelQuery]:
    """All queries of a world as what one automaton each can run."""
    schemas: dict[str, tuple[str, ...]] = {"A": ("g", "x", "y"), "B": ("g", "x", "y")}
    made: dict[str, CelQuery] = {}
    for number, text in enumerate(world.texts):
        for query in left_associated(resolved(parse_cel(text), {**schemas, **completed(parse_cel(text), schemas)})):
            schemas |= completed(query, schemas)
            made[query.select.publish or f"query {number}"] = resolved(query, schemas)
    return list(made.values())


def check_parts(world: CelWorld) -> bool:
    """Hold what is run in parts against the whole; gives whether there was something."""
    try:
        whole = run_all(world.queries(), world.events)
        split = published([*parts(world)], world.events)
        alone = run_all(parts(world), world.events)
    except TooManyEvents:
        return False
    streams_of = published(world.queries(), world.events)
    assert {name: bag(split[name]) for name in streams_of} == {name: bag(one) for name, one in streams_of.items()}
    if len(world.texts) == 1:
        assert bag(alone[-1]) == bag(whole[-1])
    return any(whole)


@pytest.mark.parametrize("make", [cel_world, cel_set])
def test_what_is_split_gives_the_same(make: Callable[[int], CelWorld]):
    number = cases(2000, 120) if make is cel_world else cases(500, 40)
    assert sum(check_parts(make(seed)) for seed in range(number)) > number // 3


def test_worlds_are_read_and_the_same_seed_gives_the_same():
    kinds = set()
    for seed in range(cases(2000, 100)):
        one, several = cel_world(seed), cel_set(seed)
        for world in (one, several):
            assert len(world.queries()) == len(world.texts)
            for text in world.texts:
                tree = parse_cel(text)
                assert parse_cel(to_cel(tree)) == tree
                kinds |= {word for word in ("FOLD", "NEXT", "DUR", "WITHIN", "PUBLISH S", "(SELECT") if word in text}
        assert cel_world(seed) == one
    assert len(kinds) == 6


def test_worlds_for_one_automaton():
    for seed in range(cases(1000)):
        query = cel_world(seed, subqueries=False).queries()[0]
        assert left_associated(query) == (query,)
