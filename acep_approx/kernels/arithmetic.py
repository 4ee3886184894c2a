"""Arithmetic that gives the same bits where Python does it and where machine code does.

Whole numbers of Python do not wrap around, and it raises errors where processors give infinity or no number. Where that
can happen, helpers here are called. Counts of matches stop growing at a limit.
"""

from __future__ import annotations

import math

import numpy as np

from acep_approx.jit.marks import inline

LOWEST, LARGEST = -(2**63), 2**63 - 1
SURE, BEYOND = 9.2e18, 9.3e18
"""Products that are smaller as floats are whole numbers of 64 bits; those of more than ``BEYOND`` are not."""
WHOLE = 2.0**52
"""From here on floats have no fraction."""
MIX = np.uint64(0x9E3779B97F4A7C15)
SHORT = 1 << 40
"""Windows below can be multiplied by the number of their parts."""


@inline
def number(x: float) -> float:
    """A float; what is no number becomes NaN of always the same bits: processors differ in its sign."""
    return x if x == x else math.nan


@inline
def divided(x: float, y: float) -> float:
    """The quotient, infinite or NaN where ``y`` is zero."""
    return x / y if y != 0.0 else x * math.copysign(math.inf, y)


@inline
def floor_of(x: float) -> float:
    """The largest whole number that is not above ``x``; NaN, and what has no fraction, is what it is."""
    return float(math.floor(x)) if abs(x) < WHOLE else x


@inline
def rounded(x: float, scale: float) -> float:
    """``x`` to the next multiple of 1 / ``scale``, halves away from 0, as ``query/functions.py`` rounds columns."""
    scaled = abs(x) * scale
    if not scaled < WHOLE:
        return x
    whole = float(math.floor(scaled))
    if scaled - whole >= 0.5:
        whole += 1.0
    whole /= scale
    return -whole if x < 0.0 else whole


@inline
def shifted(word: int, by: int) -> int:
    """A word of 64 bits, shifted to the left by less than 64: bits that leave it are lost."""
    return int(np.int64(word) << np.int64(by))


@inline
def hashed(word: int, size: int) -> int:
    """A place for a word of 64 bits, which may be negative, in a table of ``size`` places, a power of two."""
    return int((np.uint64(np.int64(word)) * MIX) >> np.uint64(20)) & (size - 1)


@inline
def sum_passes(a: int, b: int) -> bool:
    """Whether a sum passes 64 bits."""
    return a > LARGEST - b if b > 0 else a < LOWEST - b


@inline
def difference_passes(a: int, b: int) -> bool:
    """The same of a difference."""
    return a < LOWEST + b if b > 0 else a > LARGEST + b


@inline
def product_passes(a: int, b: int) -> bool:
    """The same of a product."""
    about = abs(float(a) * float(b))
    if about < SURE or about > BEYOND:
        return about > BEYOND
    low, high = min(a, b), max(a, b)
    if (a < 0) == (b < 0):
        return low == LOWEST or abs(a) > LARGEST // abs(b)
    return low < LOWEST // high + int(LOWEST % high != 0)


@inline
def part_of(left: int, window: int, parts: int) -> int:
    """Which of the equal parts of a window ``left`` ticks are in: ``left * parts // (window + 1)``."""
    if window < SHORT:
        return left * parts // (window + 1)
    part = rest = bit = 0
    while parts >> bit > 1:
        bit += 1
    while bit >= 0:  # as one divides on paper
        rest = 2 * rest + left * ((parts >> bit) & 1)
        part = 2 * part + rest // (window + 1)
        rest %= window + 1
        bit -= 1
    return part


MOST = 2**63 - 1
"""Counts stop growing here: it means at least so many."""


@inline
def added_up(ways: int, more: int) -> int:
    """The sum of two counts, at most ``MOST``."""
    return MOST if more > MOST - ways else ways + more
