"""Rules through the engine are what brute force says: random files and streams, all pairs of small rules."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from acep_approx import compile_rules
from tests.cases import FULL, cases
from tests.rule_corpus import CASES, RuleCase
from tests.rule_pairs import TABLE, SmallRule, effects, events, small_pairs
from tests.rule_runs import DRIVERS, disagreement
from tests.rule_worlds import KINDS_OF_WORLDS, rule_world
from tests.smaller_rules import smallest_rules

PARTS = 8
FEW_PAIRS, FEW_WORLDS = 24, (*range(32), 111, 160)
"""Of a default run: each takes a while. They show all wrong meanings, the last two those that few others do."""


@pytest.mark.parametrize("part", range(PARTS))
def test_random_worlds_are_as_brute_force_says(part: int) -> None:
    """Matches, tables, changes, calls and counters; by each driver, in any split, over restarts."""
    for seed in (range(5_000) if FULL else FEW_WORLDS)[part::PARTS]:
        world = rule_world(seed)
        if disagreement(world, seed):
            small = smallest_rules(world, lambda world: disagreement(world, seed))  # noqa: B023
            pytest.fail(f"seed {seed}\n{disagreement(small, seed) or disagreement(world, seed)}")


@pytest.mark.parametrize("kind", sorted(set(KINDS_OF_WORLDS)))
def test_each_kind_of_worlds(kind: Any) -> None:
    """A few of each, to see at once what does not work."""
    for seed in range(cases(12, 4)):
        told = disagreement(rule_world(seed, kind), seed)
        assert not told, f"seed {seed}\n{told}"


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_the_corpus(case: RuleCase) -> None:
    for seed in range(2):  # each driver at once, and in batches
        assert not disagreement(case.world(), seed)


def test_texts_that_stood_in_rows_before_outlive_a_restart() -> None:
    """The table alone would give them other codes."""
    text = """TABLE t (k text, w text DEFAULT 'a', KEY (k))
    RULE put ON PATTERN W w WITHIN 0 DO UPDATE t SET w = w.s AT (w.k) END
    RULE see ON PATTERN SEQ(A a, B b) WHERE store.t[b.k AT a].w = b.s WITHIN 50"""
    events = [("W", "z"), ("W", "y"), ("A", None), ("W", "m"), ("B", "z"), ("B", "y"), ("B", "m")]
    rows = [{"ts": ts, "type": kind, "k": "p", "s": s} for ts, (kind, s) in enumerate(events)]
    run = compile_rules(text).start()
    run.push(rows[:4])
    run = compile_rules(text).from_state(run.state_bytes())
    assert run.push(rows[4:])["see"].column("b").to_pylist() == [5]


PAIRS = small_pairs()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_pairs_of_small_rules_on_all_short_streams(part: int) -> None:
    """Some of the pairs, or all; a fifth of these event by event, too."""
    numbers = Random(7).sample(range(len(PAIRS)), len(PAIRS))
    for number in numbers[: cases(len(PAIRS)) if FULL else FEW_PAIRS][part::PARTS]:
        for driver in DRIVERS if number % 5 == 0 else DRIVERS[:1]:
            check_pair(PAIRS[number], driver, Random(number))


def check_pair(pair: tuple[SmallRule, SmallRule], driver: str, dice: Random) -> None:
    """One pair on all streams, in two batches."""
    text = "\n".join([TABLE, *(rule.text(f"r{number}") for number, rule in enumerate(pair))])
    stream, run, expected = events(), compile_rules(text).start(driver=driver), effects(pair)
    cut = dice.randrange(stream.num_rows + 1)
    outs = [run.push(stream.slice(0, cut)), run.push(stream.slice(cut)), run.finish()]
    for number, rule in enumerate(pair):
        rows = [row for out in outs for row in out[f"r{number}"].to_pylist()]
        found = sorted(tuple(row[variable] for variable in "ab"[: len(rule.pattern)]) for row in rows)
        assert found == sorted(expected.matches[number]), text
    changes = [row for out in outs if "cell" in out.changes for row in out.changes["cell"].to_pylist()]
    assert [(row["row"], row["rule"], row["n"]) for row in changes] == expected.changes, text
    assert {row["k"]: row["n"] for row in run.store["cell"].to_arrow().to_pylist()} == expected.cells, text
