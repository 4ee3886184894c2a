"""Whether intervals of recall hold the truth as often as they say."""

from __future__ import annotations

from math import comb


def refutes(number: int, held: int) -> bool:
    """Whether so few intervals of 95% hold the truth that their level cannot be true: 1 in 10,000 by chance."""
    return sum(comb(number, k) * 0.95**k * 0.05 ** (number - k) for k in range(held + 1)) < 1e-4
