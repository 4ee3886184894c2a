"""A run gives the same interpreted, compiled, and where it changes from one to the other at any call.

Results, states, counters and errors are compared bit by bit. Interpreted calls are a few events, or run-steps, long, so
that they end anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.jit import kernel as jit
from tests import tier_runs
from tests.cases import FULL, cases
from tests.corpus_cases import NAMED
from tests.rule_corpus import CASES as RULE_CASES
from tests.tiers_forced import always, assert_same, at_random, never, outcome

pytestmark = pytest.mark.filterwarnings("ignore::acep_approx.errors.UnseenTypeWarning")

WINGS = {
    tier_runs.language: cases(2000, 40),
    tier_runs.automata: cases(1000, 12),
    tier_runs.algebra: cases(1000, 20),
    tier_runs.templates: cases(300, 8),
    tier_runs.sets: cases(300, 4),
    tier_runs.rules: cases(500, 5),
    tier_runs.rules_within: cases(100, 3),
    tier_runs.revisions: cases(500, 5),
    tier_runs.budgets: cases(200, 6),
    tier_runs.shed_states: cases(200, 6),
    tier_runs.late_budgets: cases(200, 6),
    tier_runs.blocks: cases(100, 6),
    tier_runs.histories: cases(20, 1),
}


@pytest.mark.parametrize("run", WINGS, ids=lambda run: run.__name__)
def test_random_worlds(run: Callable[[int], Any]) -> None:
    first = 0 if not FULL else Random().randrange(10**6)
    for seed in range(first, first + WINGS[run]):
        assert_same(lambda seed=seed: run(seed), seed)


@pytest.mark.parametrize("part", range(4))
def test_the_corpus(part: int) -> None:
    for name in sorted(NAMED)[part :: 4 if FULL else 16]:
        assert_same(lambda name=name: tier_runs.corpus(name), part)


def test_the_corpus_of_rules() -> None:
    for number, name in enumerate(sorted(RULE_CASES)):
        if FULL or number % 3 == 0:
            assert_same(lambda name=name: tier_runs.rule_corpus(name), number)


@pytest.mark.parametrize("number", range(0, len(tier_runs.CAYUGA), 1 if FULL else 3))
def test_the_examples_of_cayuga(number: int) -> None:
    assert_same(lambda: tier_runs.cayuga(number), number)


def test_errors_have_the_same_code_and_text() -> None:
    rows = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [2**62, 1, 2**62]})
    query = compile_query("PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0 WITHIN 5")
    expected = assert_same(lambda: query.match(rows).counts())
    assert expected[1] == "ACEP-D201"


def test_a_difference_is_noticed() -> None:
    """So that the tests above compare something: both tiers are run, and all that is compared can differ."""
    ran: list[bool] = []
    real = jit.Kernel.interpreted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit.Kernel, "interpreted", lambda self, *args: ran.append(True) or real(self, *args))
        outcome(lambda: tier_runs.language(1), never)
        assert not ran
        outcome(lambda: tier_runs.language(1), always)
        every = len(ran)
        outcome(lambda: tier_runs.language(1), at_random(3))
        assert 0 < len(ran) - every < every
    with pytest.raises(AssertionError):
        assert_same(lambda: [jit.PIECE])
