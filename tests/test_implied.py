"""What comparisons imply holds wherever they do, and nothing that follows is missed."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from acep_approx.automaton.paths import At, Path
from acep_approx.automaton.resolve import Resolved
from acep_approx.engines.search.implied import closed, is_implied
from acep_approx.query.syntax import Attribute, Binary
from tests.cases import cases

HOLDS = {"=": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
VALUES = [At(position, Attribute(variable, None, "x")) for position, variable in enumerate("abcd")]


def path(checks: list[Binary]) -> Path:
    about = [frozenset((check.left.position, check.right.position)) for check in checks]  # type: ignore[union-attr]
    return Path((0, 1, 2, 3), (0, 1, 2, 3), (frozenset(),) * 4, tuple(zip(about, checks, strict=True)), 0, 0)


def is_true(check: Resolved, numbers: dict[At, int]) -> bool:
    assert isinstance(check, Binary)
    return bool(HOLDS[check.op](numbers[check.left], numbers[check.right]))  # type: ignore[index]


@pytest.mark.parametrize("seed", range(cases(300, 60)))
def test_all_that_follows_and_nothing_else(seed: int) -> None:
    dice, checks = Random(seed), []
    for _ in range(dice.randint(1, 4)):
        one, other = dice.sample(VALUES, 2)
        checks.append(Binary(dice.choice(list(HOLDS)), one, other))  # type: ignore[arg-type]
    worlds = [dict(zip(VALUES, some, strict=True)) for some in product(range(4), repeat=4)]
    fitting = [world for world in worlds if all(is_true(check, world) for check in checks)]
    found = [check for _, check in closed(path(checks), lambda _: "int").checks]
    assert found[: len(checks)] == checks
    assert all(is_true(check, world) for check in found for world in fitting)
    if not fitting:
        return
    if any(check.op == "!=" for check in checks):
        plain = [check for check in checks if check.op in ("=", "!=")]
        if plain == checks:  # else more follows than is asked
            for one, other in product(VALUES, repeat=2):
                check = Binary("!=", one, other)  # type: ignore[arg-type]
                if one != other and not any(world[one] == world[other] for world in fitting):
                    assert is_implied(check, checks), (checks, check)
                    assert any(is_implied(check, [known]) for known in found), (checks, check)
        return
    for one, other in product(VALUES, repeat=2):
        for op in ("=", "<", "<="):
            check = Binary(op, one, other)  # type: ignore[arg-type]
            if one != other and all(is_true(check, world) for world in fitting):
                assert is_implied(check, checks), (checks, check)
                assert any(is_implied(check, [known]) for known in found), (checks, check)


def test_values_of_unlike_kinds_are_left_alone() -> None:
    """A whole number and one with a fraction are compared with rounding, which need not be transitive."""
    a, b, c, _ = VALUES
    checks = [Binary("<", a, b), Binary("<", b, c)]  # type: ignore[arg-type]
    kinds = {a: "int", b: "float", c: "int"}
    assert closed(path(checks), lambda value: kinds[value]).checks == path(checks).checks
