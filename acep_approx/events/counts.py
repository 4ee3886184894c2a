"""Numbers in words; those of matches say "more than" from a limit on."""

from __future__ import annotations

MOST_COUNTED = 2**63 - 1
"""Where the count of one match point stops growing, in the kernels of both engines."""

AT_LEAST = "at_least"
"""The column that says whether there may be more matches than a count says: counts stop growing at a limit."""


def is_at_least(total: int) -> bool:
    """Whether a number of matches may be less than there are: the count of some match point stopped growing."""
    return total >= MOST_COUNTED


def said(total: int) -> str:
    """Return a number of matches in words; of one that may be too small the first two digits, rounded down.

    Examples
    --------
    >>> said(1200), said(2**63 - 1), said(199 * 10**20)
    ('1,200', 'more than 9.2e18', 'more than 1.9e22')
    """
    if not is_at_least(total):
        return f"{total:,}"
    digits = str(total)
    return f"more than {digits[0]}.{digits[1]}e{len(digits) - 1}"


def counted(number: int, thing: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "cell"), counted(1200, "cell"), counted(2, "match")
    ('1 cell', '1,200 cells', '2 matches')
    """
    plural = f"{thing}es" if thing.endswith("ch") else f"{thing}s"
    return f"{number:,} {thing if number == 1 else plural}"
