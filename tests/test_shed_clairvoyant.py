"""What a shedder that knows the future keeps, against brute force and the engine."""

from __future__ import annotations

import random
from itertools import pairwise, permutations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from experiments.shedding.clairvoyant import ROW_BITS, Meets, Prefixes, clairvoyant, forest_densities, prefixes
from experiments.shedding.future import meets, states
from experiments.shedding.metrics import Answer, exact, points
from tests.cases import examples
from tests.shed_streams import LISTED, world

SEEDS = st.integers(0, 10**6)


def small_answer(dice: random.Random) -> Answer:
    """Up to five match points with up to three matches each, on 14 rows."""
    matches = set()
    for end in dice.sample(range(3, 14), dice.randint(1, 5)):
        for _ in range(dice.randint(1, 3)):
            before = sorted(dice.sample(range(max(0, end - 6), end), dice.randint(0, min(3, end))))
            matches.add(tuple((row, i) for i, row in enumerate([*before, end])))
    flat = [item for match in sorted(matches) for item in match]
    offset = np.cumsum([0, *(len(match) for match in sorted(matches))])
    none = np.zeros(len(matches), np.int64)
    return Answer(offset, np.array([r for r, _ in flat]), np.array([v for _, v in flat]), none, none)


def meeting(trie: Prefixes, dice: random.Random) -> tuple[Meets, list[set[int]]]:
    """By the number of its events a prefix is tested with these rows: all that are needed, and some more."""
    depth = np.array([len(trie.path(p)) for p in range(len(trie))], np.int64)
    rows = [set(dice.sample(range(14), 7)) for _ in range(4)]
    for match in range(len(trie.of)):
        for prefix, row in zip(trie.of[match].tolist(), trie.needs[match].tolist(), strict=True):
            if prefix >= 0:
                rows[depth[prefix]].add(row)
    events = sorted(group << ROW_BITS | row for group, some in enumerate(rows) for row in some)
    return Meets(depth, np.array(events)), rows


def naive_steps(found: Answer, chosen: list[int], rows: list[set[int]]) -> int:
    """Run-steps of the prefixes of some matches, each until it is needed for the last time."""
    until: dict[tuple[tuple[int, int], ...], int] = {}
    for match in chosen:
        a, b = found.offset[match : match + 2].tolist()
        path = list(zip(found.id[a:b].tolist(), found.arc[a:b].tolist(), strict=True))
        for size in range(1, len(path)):
            prefix = tuple(path[:size])
            until[prefix] = max(until.get(prefix, 0), path[size][0])
    return sum(sum(path[-1][0] < row <= end for row in rows[len(path)]) for path, end in until.items())


@examples(150)
@given(SEEDS)
def test_the_clairvoyant_covers_all_points_and_keeps_to_its_budget(seed: int) -> None:
    dice = random.Random(seed)
    found = small_answer(dice)
    trie = prefixes(found)
    met, rows = meeting(trie, dice)
    kept = clairvoyant(found, trie, met)
    ways: dict[int, list[int]] = {}
    for match, end in enumerate(found.point.tolist()):
        ways.setdefault(end, []).append(match)
    assert sorted(found.point[kept.matches].tolist()) == sorted(ways)
    assert kept.steps == naive_steps(found, kept.matches.tolist(), rows)
    best = min(naive_steps(found, list(some), rows) for some in product(*ways.values()))
    assert best <= kept.steps <= 1.5 * best
    wanted = {trie.of[match][j] for match in kept.matches.tolist() for j in range(trie.of.shape[1])} - {-1}
    assert set(kept.prefix.tolist()) == wanted
    for prefix, needed in zip(kept.prefix.tolist(), kept.needed.tolist(), strict=True):
        uses = [trie.needs[m][trie.of[m] == prefix].max(initial=0) for m in kept.matches.tolist()]
        assert needed == max(uses)

    budget = dice.randint(0, best + 1)
    less = clairvoyant(found, trie, met, budget)
    assert less.steps == naive_steps(found, less.matches.tolist(), rows) <= budget
    most = max(
        sum(match is not None for match in some)
        for some in product(*([*matches, None] for matches in ways.values()))
        if naive_steps(found, [match for match in some if match is not None], rows) <= budget
    )
    assert most / 2 <= len(less.matches) <= most
    assert len(set(found.point[less.matches].tolist())) == len(less.matches)


def test_prefixes_are_shared_and_know_their_way() -> None:
    found = small_answer(random.Random(5))
    trie = prefixes(found)
    seen = [tuple(trie.path(p)) for p in range(len(trie))]
    assert len(set(seen)) == len(seen)
    expected = set()
    for a, b in zip(found.offset[:-1].tolist(), found.offset[1:].tolist(), strict=True):
        path = list(zip(found.id[a:b].tolist(), found.arc[a:b].tolist(), strict=True))
        expected |= {tuple(path[:size]) for size in range(1, len(path))}
    assert set(seen) == expected
    assert trie.first_rows().tolist() == [path[0][0] for path in seen]


@examples(60)
@given(SEEDS)
def test_densities_give_the_order_of_least_weighted_delay(seed: int) -> None:
    dice = random.Random(seed)
    jobs = dice.randint(1, 6)
    after = [dice.randint(-1, job - 1) for job in range(jobs)]
    weight, length = [dice.randint(0, 4) for _ in range(jobs)], [dice.randint(1, 4) for _ in range(jobs)]
    density = forest_densities(after, weight, length)

    def delay(order: tuple[int, ...]) -> int:
        clock = total = 0
        for job in order:
            clock += length[job]
            total += weight[job] * clock
        return total

    orders = permutations(range(jobs))
    allowed = [o for o in orders if all(a < 0 or o.index(a) < o.index(job) for job, a in enumerate(after))]
    assert all(a < 0 or density[j] <= density[a] + 1e-12 for j, a in enumerate(after))
    best = min(map(delay, allowed))
    falling = [o for o in allowed if all(density[x] >= density[y] - 1e-12 for x, y in pairwise(o))]
    assert best == min(map(delay, falling))


@pytest.mark.parametrize(
    ("query", "merge"),
    [
        ("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 1000", "none"),
        ("PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x AND a.u < c.u WITHIN 1000", "none"),
        ("PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x AND a.u < c.u WITHIN 1000", "chain"),
        ("PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x AND a.u < c.u AND b.u < c.u WITHIN 1000", "chain"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE [k] AND sum(b[].x) < c.x WITHIN 1000", "none"),
    ],
)
def test_the_events_a_run_is_tested_with_are_those_of_the_engine(query: str, merge: str) -> None:
    """All partial matches there are, each tested until the end of the stream: the run-steps of the engine.

    An index brings merging of equal runs with it; here ``u`` keeps runs apart.
    """
    rows = [{**row, "type": str(row["type"]).replace("D", "A"), "u": u} for u, row in enumerate(world(3, 24))]
    table = pa.Table.from_pylist(rows)
    plan = compile_query(query, engine="runs").plan
    found = exact(Matcher(plan, merge=merge), table)
    assert plan.registers is not None
    trie = everything(query, table.to_pylist())
    pipeline = Matcher(plan, merge=merge).bind(table.schema)
    events = meets(pipeline, plan.registers, table, trie, indexed=merge == "chain")
    numbers = np.arange(len(trie))
    taken = events.until(numbers, np.full(len(trie), len(rows))) - events.until(numbers, trie.row)
    assert taken.sum() == found.steps > 0


def everything(query: str, rows: list[dict[str, object]]) -> Prefixes:
    """The prefixes that conditions let live in these patterns, whether they lead to a match or not."""
    names = ["a", "b"]
    keyed, joined = "[k]" in query, "a.x = b.x" in query
    paths_: list[tuple[tuple[int, int], ...]] = []
    for row, event in enumerate(rows):
        longer = []
        if event["type"] == "A":
            longer.append(((row, names.index("a")),))
        for path in paths_:
            fits = event["type"] == "B" and (len(path) == 1 or "b[]" in query)
            fits &= not keyed or rows[path[0][0]]["k"] == event["k"]
            fits &= not joined or rows[path[0][0]]["x"] == event["x"]
            if fits:
                longer.append((*path, (row, names.index("b"))))
        paths_ += longer
    paths_.sort(key=len)
    number = {path: i for i, path in enumerate(paths_)}
    parent = np.array([number[path[:-1]] if path[:-1] else -1 for path in paths_])
    last = np.array([path[-1] for path in paths_])
    none = np.zeros((0, 0), np.int64)
    return Prefixes(parent, last[:, 0].copy(), last[:, 1].copy(), none, none)


def test_the_states_of_prefixes_are_those_of_the_engine() -> None:
    table = pa.Table.from_pylist(world(7, 80))
    plan = compile_query(LISTED, engine="runs").plan
    found = exact(Matcher(plan), table).answer
    assert plan.registers is not None
    assert len(points(found)[0]) > 2
    trie = prefixes(found)
    state, arc = states(plan.registers, trie)
    arcs = plan.registers.automaton.arcs
    for prefix in range(len(trie)):
        assert arcs[arc[prefix]].label == trie.path(prefix)[-1][1]
        assert arcs[arc[prefix]].target == plan.registers.states[state[prefix]].position
