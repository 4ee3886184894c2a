"""Variants of the runs engine that are known to be wrong: random small worlds must notice each of them, and soon.

Each runs in a process of its own as plain Python.
"""

from __future__ import annotations

import pytest

from tests.cases import cases
from tests.plain_python import plainly
from tests.runs_mutants import (
    MUTANTS,
    TIED_MUTANTS,
    a_guard_passes,
    a_late_guard_looks_past_the_gap,
    neighbours_need_not_be_neighbours,
    proceed_inhibits_beside_take,
)

MOST_WORLDS = cases(3000, 400)
"""``test_runs_oracle`` and ``test_simultaneous`` show the engine itself the first of these, and those that are known to
show a mutant.
"""


def seed_that_notices(mutant: str, worlds: int) -> int:
    """``noticed`` in a process of its own, as plain Python."""
    return int(plainly("tests.runs_mutants", "noticed", mutant, worlds))


def test_the_engine_itself_is_right() -> None:
    """Without a change nothing is noticed, so what is noticed below is the mutant's."""
    assert seed_that_notices("nothing", cases(100)) == -1


RARE = {
    proceed_inhibits_beside_take,
    neighbours_need_not_be_neighbours,
    a_guard_passes,
    a_late_guard_looks_past_the_gap,
}
"""Noticed by one world in a hundred or so."""


WRONG = (*MUTANTS[1:], *TIED_MUTANTS)


@pytest.mark.parametrize(
    "mutant", [pytest.param(m.__name__, marks=pytest.mark.slow if m in RARE else ()) for m in WRONG]
)
def test_a_mutant_is_noticed(mutant: str) -> None:
    """Brute force tells a wrong variant from the right one."""
    assert seed_that_notices(mutant, MOST_WORLDS) >= 0
