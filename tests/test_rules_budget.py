"""Rules inside a load budget: the bound, what ran, what is certain; and the answer where nothing is shed."""

from __future__ import annotations

import pytest

from tests.cases import FULL
from tests.rule_budgets import way_of, wrong_within
from tests.rule_worlds import rule_world

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_random_worlds_ran_as_if_some_matches_did_not_fire_and_what_is_certain_is_exact(part: int) -> None:
    for seed in range(2_000 if FULL else 96)[part::PARTS]:
        world = rule_world(seed, failures=False)
        told = wrong_within(world, way_of(seed, world))
        assert not told, f"seed {seed}\n{told}"
