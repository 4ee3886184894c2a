"""Which runs wait for an event beyond a threshold, and which events can tell from bounds that they take none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from acep_approx.kernels.runs import vm
from acep_approx.kernels.runs.waiting import IS_FALLING, IS_FLOAT, IS_INT, OR_EQUAL

NOTHING = -1
"""In the place of what runs wait for, and of the scalar of an event that looks at all of them."""
MAY_OVERFLOW = {vm.ADD_INT, vm.SUB_INT, vm.MUL_INT, vm.SUM_INT}
PASSED = {vm.LESS: (0, False), vm.LESS | vm.EQUAL: (0, True)}
PASSED |= {vm.GREATER: (IS_FALLING, False), vm.GREATER | vm.EQUAL: (IS_FALLING, True)}
"""How a scalar passes a register by the flags of their comparison: on its way up or down, and whether by equal."""


class Beyond(NamedTuple):
    """The scalar of an event that a step compares with a threshold, and whether equal is beyond it.

    ``is_int``: it is a whole number, made a float first.
    """

    scalar: int
    or_equal: bool
    is_int: bool


Thresholds = dict[int, Beyond]
"""What a step compares: column and kind of the threshold, as a pool notes them in ``WAITS_FOR``."""


def thresholds(checks: Sequence[int]) -> Thresholds:
    """The thresholds that a program of checks compares with scalars.

    Parameters
    ----------
    checks : sequence of int
        Instructions of the block machine. Where numbers of runs may pass 64 bits none is found: all runs are looked at
        then, so that the error does not depend on bounds.
    """
    found: Thresholds = {}
    floats: dict[int, int] = {}  # temporary columns that are scalars made floats
    for at in range(0, len(checks), vm.WIDTH):
        op, target, place, column, other, scalar, flags = checks[at : at + vm.WIDTH]
        if op in MAY_OVERFLOW:
            return {}
        is_int = (op, place, other) == (vm.TEST_FLOAT, vm.TEMPORARY, vm.REGISTER) and column in floats
        if is_int:
            column, scalar, flags = scalar, floats[column], turned(flags)
        elif op == vm.TO_FLOAT and place == vm.SCALAR:
            floats[target] = column
        is_test = op in (vm.TEST_INT, vm.TEST_FLOAT) and (place, other) == (vm.REGISTER, vm.SCALAR)
        if (is_test or is_int) and flags in PASSED:
            way, or_equal = PASSED[flags]
            found.setdefault(column << 2 | way | IS_FLOAT * (op == vm.TEST_FLOAT), Beyond(scalar, or_equal, is_int))
    return found


def turned(flags: int) -> int:
    """The flags of a comparison whose sides change places."""
    return flags & vm.EQUAL | (flags & vm.LESS and vm.GREATER) | (flags & vm.GREATER and vm.LESS)


def most_common(steps: Iterable[Thresholds]) -> int:
    """What runs wait for: the threshold that most steps compare; ``NOTHING`` where there is none."""
    count = Counter(threshold for step in steps for threshold in sorted(step))
    return max(count, key=lambda threshold: (count[threshold], -threshold), default=NOTHING)


def beyond(waits_for: int, steps: Sequence[Thresholds]) -> tuple[int, int]:
    """The words of a source: the scalar that all its steps compare with the thresholds, and how it passes them."""
    found = [step[waits_for] for step in steps if waits_for in step]
    if not found or len(found) < len(steps) or len({(one.scalar, one.is_int) for one in found}) > 1:
        return NOTHING, 0
    return found[0].scalar, OR_EQUAL * any(one.or_equal for one in found) | IS_INT * found[0].is_int
